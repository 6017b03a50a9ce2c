"""The decode step: its graph and stages, its kernels in the real browser, and that a wrong one is caught."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pytest

from rig import assets
from rig.browsers.find import Browser
from rig.browsers.flags import AdapterAsked, flags
from rig.executors.chromium import ChromiumExecutor, ChromiumSession
from rig.policies import policy, structure, waiting
from rig.programs import limits, reference
from rig.programs.decode.graph import Graph, lasts
from rig.programs.decode.lower import PADDINGS, QUALITIES, is_weight, lower, padded, traffic_bytes
from rig.programs.decode.passes import PUBLISHED, STAGES, staged
from rig.programs.decode.reference import outputs
from rig.programs.decode.shapes import SHAPES, shape
from rig.programs.fill import weights
from rig.records import (
    Buffer,
    Dispatch,
    Dtype,
    HashFill,
    Hazard,
    Kernel,
    Model,
    Policy,
    Program,
    WeightFill,
    decode,
    encode,
)

TINY = shape("tiny", context=4)
ONE_PASS = policy("one_pass")
COUNTS = (876, 636, 588, 564, 559, 535, 511, 292, 244, 196, 196, 122)


def program(stage: str, model: Model = TINY, quality: str = "workgroup") -> Program:
    return lower(model, staged(model, stage), f"{stage}_{model.batch}_{quality}", quality)


# --- graph -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["qwen2.5-0.5b", "tiny"])
def test_stages_have_the_published_counts_and_go_on_to_the_fewest(name: str) -> None:
    assert [len(staged(shape(name), stage)) for stage in STAGES] == list(COUNTS)
    assert [len(staged(shape(name), stage)) for stage in PUBLISHED] == [876, 636, 588, 564]


def test_a_layer_has_36_dispatches_whatever_its_shape() -> None:
    assert len(staged(shape("qwen2.5-1.5b"), "unfused")) == 28 * 36 + 12


def test_a_pass_leaves_its_graph_as_it_was_and_reads_what_its_members_read_from_outside() -> None:
    before = staged(TINY, "residual_norm")
    copy = tuple(before)
    for one in STAGES["append"]:
        one(before)
    assert before == copy
    for op in staged(TINY, "rmsnorm"):
        if op.kind == "rmsnorm":
            inside = {name for member in op.absorbed for name in member.writes}
            outside = {name for member in op.absorbed for name in member.reads} - inside
            assert set(op.reads) == outside
            assert len(op.absorbed) == 6


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_stage_reads_was_written_before_it(stage: str) -> None:
    written: set[str] = set()
    for op in staged(TINY, stage):
        assert all(is_weight(name) or lasts(name) or name in written for name in op.reads), op
        written |= set(op.writes)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("kind", PADDINGS)
def test_padding_puts_back_that_share_where_it_was_with_as_many_buffers_in_a_chain(kind: str, share: float) -> None:
    fused = staged(TINY, "kv")
    graph = padded(fused, share, kind)
    assert len(graph) == 564 + round(share * 312)
    assert [op for op in graph if not op.kind.startswith("pad_")] == list(fused)
    _each_chain_ends_in_what_it_stands_before(graph, share)


def _each_chain_ends_in_what_it_stands_before(graph: Graph, share: float) -> None:
    chain: list[str] = []
    arities: list[int] = []
    for op in graph:
        if op.kind.startswith("pad_"):
            if chain:
                assert op.reads[0] == chain[-1], "reads what the one before it wrote"
            chain.append(op.writes[0])
            arities.append(len(op.reads) + len(op.writes))
            continue
        if chain:
            assert chain[-1] == op.writes[0], "the last one writes what is then written again"
            if share == 1:
                assert arities == [len(one.reads) + len(one.writes) for one in op.absorbed[:-1]]
        chain, arities = [], []


def test_fusing_never_moves_more_bytes() -> None:
    moved = [traffic_bytes(SHAPES["qwen2.5-0.5b"], staged(SHAPES["qwen2.5-0.5b"], stage)) for stage in PUBLISHED]
    assert moved == sorted(moved, reverse=True)
    # all weights once, in 32-bit floats
    assert moved[-1] == pytest.approx(4 * 494e6, rel=0.01)


def test_a_shape_beyond_the_limits_is_named_by_its_limit() -> None:
    made = lower(shape("qwen2.5-1.5b"), staged(shape("qwen2.5-1.5b"), "unfused"), "big")
    granted = {"maxBufferSize": 2**30, "maxStorageBufferBindingSize": 2**27, "maxStorageBuffersPerShaderStage": 10}
    assert "maxStorageBufferBindingSize 933494784, the device has 134217728" in limits.shortfall(made, granted, ())


def test_every_kernel_of_the_step_is_one_of_a_stage() -> None:
    made = [program(stage) for stage in STAGES] + [program("rmsnorm", quality=quality) for quality in QUALITIES]
    made += [lower(TINY, staged(TINY, stage), stage, weights=Dtype.f16) for stage in PUBLISHED]
    used = {kernel.wgsl for one in made for kernel in one.kernels}
    steps = {name for name in assets.kernels() if "rig.programs.decode.reference" in assets.source(name)}
    assert {assets.wgsl(name) for name in steps} == used


def test_a_shape_beyond_the_memory_is_named_by_it_before_anything_is_allocated() -> None:
    made = lower(shape("qwen2.5-0.5b"), staged(shape("qwen2.5-0.5b"), "unfused"), "big")
    assert "of memory, there are 1,000,000,000" in limits.shortfall(made, {}, (), memory_bytes=10**9)
    assert limits.shortfall(made, {}, (), memory_bytes=3 * 10**9) == ""


def test_a_step_is_checked_as_a_whole_or_not_at_all() -> None:
    with pytest.raises(ValueError, match="no whole number of steps"):
        reference.run(program("fewest"), 123)


def test_a_program_with_a_model_survives_the_wire() -> None:
    made = program("fewest")
    assert decode(encode(made), Program) == made


def test_tokens_depend_on_those_before_them() -> None:
    first = outputs(TINY, 4)["tokens"]
    assert len(set(first.tolist())) > 1
    assert outputs(TINY, 4)["tokens"].tolist() == outputs(TINY, 8)["tokens"].tolist()


# --- in the browser ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def device(browser: Browser) -> Iterator[ChromiumSession]:
    """One launch for all of them, with the limits that any of them needs."""
    executor = ChromiumExecutor(browser, flags(AdapterAsked.any))
    session = executor.launch(limits.needed([program(stage) for stage in STAGES]))
    yield session
    session.close()
    executor.close()


def ran(device: ChromiumSession, made: Program, tokens: int, way: Policy = ONE_PASS) -> dict[str, np.ndarray]:
    device.load(made)
    device.reset(made)
    device.time(made, way, tokens * len(made.dispatches))
    issued, got = device.outputs(made)
    assert issued == tokens * len(made.dispatches)
    return got


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_computes_the_models_logits_and_tokens(device: ChromiumSession, stage: str) -> None:
    made = program(stage)
    for tokens in (1, 3, 6):  # the sequence begins again after 4
        got = ran(device, made, tokens)
        assert reference.compare(made, outputs(TINY, tokens), got) == ""


def test_all_stages_agree_with_each_other_more_closely_than_with_the_reference(device: ChromiumSession) -> None:
    logits = [ran(device, program(stage), 3)["logits"] for stage in STAGES]
    largest = np.abs(logits[0]).max()
    assert max(np.abs(one - logits[0]).max() for one in logits) < 1e-5 * largest


@pytest.mark.parametrize("stage", ["unfused", "fewest"])
def test_several_sequences_at_once_are_each_their_own(device: ChromiumSession, stage: str) -> None:
    model = shape("tiny", context=4, batch=3)
    made = program(stage, model)
    assert reference.compare(made, outputs(model, 3), ran(device, made, 3)) == ""
    rows = outputs(model, 3)["logits"].reshape(3, -1)
    assert np.abs(rows[0] - rows[1]).max() > 0.1 * np.abs(rows).max()


@pytest.mark.parametrize("kind", PADDINGS)
def test_padding_changes_nothing_of_what_comes_out(device: ChromiumSession, kind: str) -> None:
    made = lower(TINY, padded(staged(TINY, "kv"), 1.5, kind), f"padded_{kind}")
    assert reference.compare(made, outputs(TINY, 2), ran(device, made, 2)) == ""


@pytest.mark.parametrize("quality", QUALITIES)
def test_every_quality_of_kernel_computes_the_same(device: ChromiumSession, quality: str) -> None:
    made = program("rmsnorm", quality=quality)
    if limits.shortfall(made, {}, device.adapter.enabled_features):
        pytest.skip("this adapter has no subgroups")
    assert reference.compare(made, outputs(TINY, 2), ran(device, made, 2)) == ""


@pytest.mark.parametrize("stage", PUBLISHED)
def test_matrices_of_16_bit_floats_compute_the_same_in_half_the_bytes(device: ChromiumSession, stage: str) -> None:
    graph = staged(TINY, stage)
    made = lower(TINY, graph, f"{stage}_f16", weights=Dtype.f16)
    assert reference.compare(made, outputs(TINY, 3), ran(device, made, 3)) == ""
    halves = traffic_bytes(TINY, graph) - traffic_bytes(TINY, graph, Dtype.f16)
    matrices = sum(b.size_bytes for b in made.buffers if b.dtype is Dtype.f16 and not b.name.startswith("embedding"))
    assert halves == matrices + 2 * TINY.hidden * (TINY.vocabulary + 1)
    with pytest.raises(ValueError, match="no kernel add_norm_gate_up for matrices of f16"):
        lower(TINY, staged(TINY, "fewest")[2:], "none", weights=Dtype.f16)


def test_a_wait_after_each_token_splits_everything_there_and_leaves_the_same(device: ChromiumSession) -> None:
    made = program("kv")
    way = waiting(policy("every_16"), 564)
    assert reference.compare(made, outputs(TINY, 3), ran(device, made, 3, way)) == ""
    timing = device.time(made, way, 3 * 564)
    assert timing.issued == structure(way, 3 * 564)
    assert timing.issued["submits"] == 3 * -(-564 // 16)
    assert timing.stamps_ns is None
    assert timing.wall_us > timing.encode_us > 0


WRONG: Sequence[tuple[str, str, str, str]] = (
    ("one element", "rmsnorm", "out[base + i] = x[base + i]", "out[base + i] = f32(i != 7) * x[base + i]"),
    ("all zero", "rmsnorm", "out[base + i] = x[base + i]", "out[base + i] = 0 * x[base + i]"),
    ("not a number", "rmsnorm", "out[base + i] = x[base + i]", "out[base + i] = sqrt(-1 - abs(x[base + i]))"),
    ("keys and values swapped", "kv", "if (row < KV) {", "if (row >= KV) {"),
    ("a head too far", "attention", "group.x / (HEADS / KV_HEADS) * DIM", "group.x % KV_HEADS * DIM"),
)


@pytest.mark.parametrize(("how", "kernel", "right", "wrong"), WRONG, ids=[one[0].replace(" ", "_") for one in WRONG])
def test_b38_a_planted_wrong_kernel_is_caught(
    device: ChromiumSession, how: str, kernel: str, right: str, wrong: str
) -> None:
    made = program("kv")
    assert sum(right in one.wgsl for one in made.kernels if one.name == kernel) == 1
    kernels = tuple(
        msgspec.structs.replace(one, wgsl=one.wgsl.replace(right, wrong)) if one.name == kernel else one
        for one in made.kernels
    )
    planted = msgspec.structs.replace(made, name=f"planted {how}", kernels=kernels)
    assert reference.compare(planted, outputs(TINY, 2), ran(device, planted, 2)) != ""


def test_weights_made_on_the_device_are_those_of_numpy_to_the_bit(device: ChromiumSession) -> None:
    fill = WeightFill(seed=2**32 - 5, scale=0.25, offset=1.0)
    wgsl = (
        "@group(0) @binding(0) var<storage, read> a: array<f32>;\n"
        "@group(0) @binding(1) var<storage, read_write> b: array<f32>;\n"
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n"
        "  if (id.x < arrayLength(&b)) { b[id.x] = a[id.x]; }\n}\n"
    )
    own = Program(
        name="weights",
        hazard=Hazard.chained,
        buffers=(
            Buffer(name="a", dtype=Dtype.f32, elements=1000, fill=fill),
            Buffer(name="b", dtype=Dtype.f32, elements=1000, fill=HashFill(seed=1, below=2)),
        ),
        kernels=(Kernel(name="see", wgsl=wgsl, read_only=(0,)),),
        dispatches=(Dispatch(kernel="see", bindings=("a", "b"), workgroups=(16, 1, 1)),),
        outputs=("b",),
    )
    device.load(own)
    device.reset(own)
    device.time(own, ONE_PASS, 1)
    assert np.array_equal(device.outputs(own)[1]["b"], weights(fill, 1000))


@pytest.mark.thorough
def test_a_full_size_step_runs_on_the_cpu_and_is_right(
    chromium: ChromiumExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rig.executors.wire.GPU_LIMIT_S", 200.0)
    monkeypatch.setattr("rig.executors.chromium.CALL_LIMIT_S", 250.0)
    model = shape("qwen2.5-0.5b")
    made = [program(stage, model) for stage in ("unfused", "kv", "fewest")]
    session = chromium.launch(limits.needed(made))
    for one in made:
        assert reference.compare(one, outputs(model, 1), ran(session, one, 1)) == ""
    session.close()
