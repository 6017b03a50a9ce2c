"""The cells of `fusion`: stages of one decode step under every policy, and the arms that vary one cause at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Annotated

import msgspec

from rig import assets
from rig.experiments.base import Options, Point, PolicyNames
from rig.policies import PRESETS, policy, waiting
from rig.programs.decode.graph import Graph
from rig.programs.decode.lower import PADDINGS, QUALITIES, lower, padded
from rig.programs.decode.passes import STAGES, staged
from rig.programs.decode.shapes import CONTEXT, shape
from rig.records import (
    Buffer,
    ConstantFill,
    Dispatch,
    Dtype,
    HashFill,
    Hazard,
    Kernel,
    Model,
    Name,
    Policy,
    Positive,
    Program,
    Uniforms,
    WeightFill,
)

ID = "fusion"
UNFUSED, FUSED = "unfused", "kv"
"""The two ends of the published ladder, between which the causes are told apart."""

BASE, OTHER = "submit_each", "one_pass"
"""The policy under which causes are told apart and that others are compared with, and the one that batches most."""

QUALITY_STAGE = "rmsnorm"
"""The stage at which kernels of other qualities take the place of the plain one: no product is fused with another."""

BUSY = "pass_each+busy"
"""How the GPU's own time of the pieces of a split is taken."""

COPIES = (2, 8)
"""So often the copy program copies: the bandwidth is from the slope between them."""

WEIGHTS = (Dtype.f32, Dtype.f16)

Stages = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
Share = Annotated[float, msgspec.Meta(gt=0, le=4)]


class FusionOptions(Options, frozen=True, kw_only=True):
    """`shape`: of the model, see rig.programs.decode.shapes; `weights`: type of its matrices (f16: the published stages
    only, without other qualities); `tokens`: chained in a sample, with one wait at the end.

    `stages`, `policies`: of the map; `arm_policies`: under which the other arms run. `shares`: of the removed
    dispatches that padding puts back; `splits`: into how many dispatches the fixed piece of work of `split_steps` is
    cut; `batches`: sequences at once; `copy_mib`: what the copy program copies.
    """

    blocks: Positive = 4
    shape: Name = "tiny"
    weights: Name = Dtype.f32
    tokens: Positive = 2
    context: Positive = CONTEXT
    stages: Stages = tuple(STAGES)
    policies: PolicyNames = ("submit_each", "every_16", "one_pass", *PRESETS)
    arm_policies: PolicyNames = ("submit_each", "one_pass")
    paddings: tuple[Name, ...] = PADDINGS
    shares: tuple[Share, ...] = (0.25, 0.5, 1.0, 1.5)
    splits: tuple[Positive, ...] = (1, 4, 16, 64, 256, 1024)
    split_steps: Positive = 2**18
    qualities: tuple[Name, ...] = tuple(name for name in QUALITIES if name != "workgroup")
    batches: tuple[Positive, ...] = (2, 4, 8, 16)
    copy_mib: Positive = 16
    readback: tuple[Name, ...] = (UNFUSED, FUSED)

    def model(self, batch: int = 1) -> Model:
        """ValueError: no such shape."""
        return shape(self.shape, context=self.context, batch=batch)


def points(options: FusionOptions) -> list[Point]:
    """Everything once. ValueError: an unknown shape, stage, policy, padding or quality; stages without both ends."""
    _check(options)
    return [
        *_map(options),
        *_readback(options),
        *_padding(options),
        *_quality(options),
        *_batch(options),
        *_rest(options),
    ]


def way(name: str) -> Policy:
    """The policy `name` as a step can be run: an engine's preset without its uniforms, which no kernel here reads."""
    return msgspec.structs.replace(policy(name), uniforms=Uniforms.none)


def stage_name(options: FusionOptions, stage: str, batch: int = 1) -> str:
    return f"{options.shape}_{stage}{'' if batch == 1 else f'_x{batch}'}"


def padded_name(options: FusionOptions, kind: str, share: float) -> str:
    return f"{options.shape}_{FUSED}_{kind}_{share:g}"


def quality_name(options: FusionOptions, quality: str) -> str:
    return f"{options.shape}_{QUALITY_STAGE}_{quality}"


def removed(options: FusionOptions) -> int:
    """Dispatches that the published fusing takes away."""
    model = options.model()
    return len(graph(model, UNFUSED)) - len(graph(model, FUSED))


@lru_cache(maxsize=64)
def graph(model: Model, stage: str) -> Graph:
    return staged(model, stage)


@lru_cache(maxsize=256)
def _lowered(
    model: Model, stage: str, name: str, weights: str, quality: str = "workgroup", padding: str = "", share: float = 0
) -> Program:
    ops = graph(model, stage)
    return lower(model, padded(ops, share, padding) if padding else ops, name, quality, Dtype(weights))


def _check(options: FusionOptions) -> None:
    for name in options.policies:
        policy(name)
    _known("weights", (options.weights,), WEIGHTS)
    _known("stages", options.stages, STAGES)
    if not {UNFUSED, FUSED} <= set(options.stages):
        raise ValueError(
            f"stages: {', '.join(options.stages)} lack {UNFUSED} or {FUSED}, with which all else is compared"
        )
    _known("arm_policies", options.arm_policies, options.policies)
    _known("readback", options.readback, options.stages)
    _known("paddings", options.paddings, PADDINGS)
    _known("qualities", options.qualities, QUALITIES)
    for many in (
        options.stages,
        options.policies,
        options.arm_policies,
        options.shares,
        options.splits,
        options.batches,
    ):
        if len(set(many)) != len(many):
            raise ValueError(f"{list(many)} names one twice")
    if any(options.split_steps % pieces for pieces in options.splits):
        raise ValueError(f"splits: {options.split_steps} steps can't be cut into all of {list(options.splits)}")


def _known(what: str, given: Iterable[str], known: Collection[str]) -> None:
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise ValueError(f"{what}: unknown '{unknown}': {', '.join(known)}")


def _step(program: Program, name: str, tokens: int) -> Point:
    return Point(program, way(name), tokens * len(program.dispatches))


def _map(options: FusionOptions) -> Iterator[Point]:
    model = options.model()
    for stage, name in product(options.stages, options.policies):
        yield _step(_lowered(model, stage, stage_name(options, stage), options.weights), name, options.tokens)


def _readback(options: FusionOptions) -> Iterator[Point]:
    """A wait after each token; and one token alone."""
    for stage, name in product(options.readback, options.arm_policies):
        program = _lowered(options.model(), stage, stage_name(options, stage), options.weights)
        once = len(program.dispatches)
        yield Point(program, waiting(way(name), once), options.tokens * once)
        if options.tokens > 1:
            yield Point(program, waiting(way(name), once), once)


def _padding(options: FusionOptions) -> Iterator[Point]:
    for kind, share, name in product(options.paddings, options.shares, options.arm_policies):
        padding = padded_name(options, kind, share)
        program = _lowered(options.model(), FUSED, padding, options.weights, padding=kind, share=share)
        yield _step(program, name, options.tokens)


def _quality(options: FusionOptions) -> Iterator[Point]:
    for quality, name in product(("workgroup", *options.qualities), options.arm_policies):
        program = _lowered(options.model(), QUALITY_STAGE, quality_name(options, quality), options.weights, quality)
        yield _step(program, name, options.tokens)


def _batch(options: FusionOptions) -> Iterator[Point]:
    for batch, stage, name in product(options.batches, (UNFUSED, FUSED), options.arm_policies):
        if batch > 1:
            program = _lowered(options.model(batch), stage, stage_name(options, stage, batch), options.weights)
            yield _step(program, name, options.tokens)


def _rest(options: FusionOptions) -> Iterator[Point]:
    for pieces in options.splits:
        program = split(pieces, options.split_steps)
        yield from (Point(program, policy(name), pieces) for name in (*options.arm_policies, BUSY))
    yield from (Point(copying(options.copy_mib), policy("one_pass"), 2 * times) for times in COPIES)


def split(pieces: int, steps: int) -> Program:
    """A fixed piece of work in so many dispatches: each goes on where the one before it ended."""
    kernel = Kernel(
        name="iterate",
        wgsl=assets.wgsl("decode/iterate"),
        constants={"STEPS": float(steps // pieces)},
        reference="decode/iterate",
    )
    return Program(
        name=f"split_{pieces}",
        hazard=Hazard.chained,
        buffers=(Buffer(name="data", dtype=Dtype.u32, elements=64, fill=HashFill(seed=1, below=2**31)),),
        kernels=(kernel,),
        dispatches=(Dispatch(kernel="iterate", bindings=("data",), workgroups=(1, 1, 1)),),
        outputs=("data",),
        accumulates=True,
    )


def copying(mib: int) -> Program:
    """Copies a large buffer, and of the copy a little more, which can be looked at."""
    kernel = Kernel(name="copy", wgsl=assets.wgsl("decode/copy"), read_only=(0,), reference="decode/copy")
    elements = mib * 2**18
    zeros = ConstantFill()
    return Program(
        name=f"copy_{mib}_mib",
        hazard=Hazard.chained,
        buffers=(
            Buffer(name="source", dtype=Dtype.f32, elements=elements, fill=WeightFill(seed=1, scale=1.0)),
            Buffer(name="out", dtype=Dtype.f32, elements=elements, fill=zeros),
            Buffer(name="sight", dtype=Dtype.f32, elements=1024, fill=zeros),
        ),
        kernels=(kernel,),
        dispatches=(
            Dispatch(kernel="copy", bindings=("source", "out"), workgroups=(4096, 1, 1)),
            Dispatch(kernel="copy", bindings=("out", "sight"), workgroups=(1, 1, 1)),
        ),
        outputs=("sight",),
    )


def copied_bytes(options: FusionOptions) -> int:
    """Bytes that one copy reads and writes."""
    return 2 * options.copy_mib * 2**20
