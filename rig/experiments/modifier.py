"""modifier: one thing changed at a time, from one submit each and from one pass. What does each add to a dispatch?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from rig import figures
from rig.experiments.base import CountLadder, Experiment, Options, Point, check_counts
from rig.frames import Run
from rig.ladder import Ladder, difference
from rig.policies import MODIFIERS as OF_POLICIES
from rig.policies import policy
from rig.programs import micro
from rig.records import Metric, Name, Parameters, Positive, Program, Realm, Verdict

ID = "modifier"
NONE = "none"
VALUES = "values"
"""Dispatches that carry values, which nothing delivers: what the ways to deliver them are compared with."""

_DELIVERED = ("write_buffer", "write_slots", "dynamic_offset", "mapped_ring", "immediates")

_PROGRAMS: dict[str, Callable[[int], Program]] = {
    "independent": micro.independent,
    "many_groups": micro.many_groups,
    "switching": micro.switching,
    "worker": lambda elements: micro.increment_chain(elements, realm=Realm.worker),
    VALUES: lambda elements: micro.carrying(elements, Parameters.uniform),
    **{way: lambda elements: micro.carrying(elements, Parameters.uniform) for way in _DELIVERED[:-1]},
    "immediates": lambda elements: micro.carrying(elements, Parameters.immediate),
}
"""Modifiers that need another program; the others change the policy of the chain alone."""

MODIFIERS = (
    *("map", "created", "many_groups", "independent", "switching", "indirect", "idle", "sustained", "worker", "wasm"),
    *(VALUES, *_DELIVERED),
)


class ModifierOptions(Options, frozen=True, kw_only=True):
    """`counts`, by policy that each modifier is added to: above the knee of a polled wait; `modifiers`: which."""

    blocks: Positive = 4
    elements: Positive = 64
    counts: dict[Name, CountLadder] = msgspec.field(
        default_factory=lambda: {"submit_each": (60, 100, 140, 180), "one_pass": (300, 500, 700, 900)}
    )
    modifiers: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = MODIFIERS


def cells(options: ModifierOptions) -> list[Point]:
    """Every base, plain and with each modifier, at every count. ValueError where counts do not rise, or on an unknown
    modifier.
    """
    for base, counts in options.counts.items():
        check_counts(f"counts.{base}", counts)
    unknown = next((name for name in options.modifiers if name not in MODIFIERS), None)
    if unknown is not None:
        raise ValueError(f"modifiers: unknown '{unknown}' (there are {', '.join(MODIFIERS)})")
    return [
        modified(base, name, options.elements, n)
        for base, counts in options.counts.items()
        for name in _series(options)
        for n in counts
    ]


def modified(base: str, modifier: str, elements: int, n: int) -> Point:
    """The chain under `base` with one thing changed."""
    program = _PROGRAMS.get(modifier, micro.increment_chain)(elements)
    named = f"{base}+{modifier}" if modifier in OF_POLICIES else base
    return Point(program, policy(named), n)


def _series(options: ModifierOptions) -> list[str]:
    """Plain first; what delivers values needs the undelivered ones beside it."""
    carried = [VALUES] if set(options.modifiers) & set(_DELIVERED) else []
    return list(dict.fromkeys([NONE, *carried, *options.modifiers]))


def compute(run: Run, options: ModifierOptions) -> list[Metric]:
    """Each one's slope by wall, and what it adds to the plain one; what delivers values adds to those undelivered."""
    return [metric for base in options.counts for metric in _of(run, options, base)]


def _of(run: Run, options: ModifierOptions, base: str) -> list[Metric]:
    found: list[Metric] = []
    ladders: dict[str, Ladder] = {}
    for name in _series(options):
        point = modified(base, name, options.elements, options.counts[base][0])
        rows = run.rows(ID, program=point.program.name, policy=point.policy.name)
        good = run.counted(rows)
        variant: figures.Variant = {"policy": base, "modifier": name}
        if reason := figures.no_slope(run, rows, ID):
            found.append(figures.missing(ID, "modifier.per_dispatch_us", variant, "us", *reason))
            if name != NONE:
                found.append(figures.missing(ID, "modifier.cost_us", variant, "us", *reason))
            continue
        # what a modifier adds is paid by the caller too, which the GPU's clock does not see in one pass
        ladders[name] = Ladder(ID, variant, "wall", good)
        found.append(ladders[name].per_dispatch())
        against = ladders.get(VALUES if name in _DELIVERED else NONE)
        if against is not None and name != NONE:
            found.append(difference("modifier.cost_us", variant, ladders[name], against))
    return found


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:  # noqa: ARG001
    """None: no published claim is about one of them alone."""
    return []


EXPERIMENT = Experiment(
    id=ID,
    line="one thing changed at a time: bind groups, uniforms, waiter, indirect, pipelines, worker, WebAssembly",
    options=ModifierOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
