"""What an experiment is: which cells, which figures from their samples, which verdicts from the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from rig import stats
from rig.frames import Run
from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Metric, Name, Policy, Positive, Program, Record, Verdict

CountLadder = Annotated[tuple[Positive, ...], msgspec.Meta(min_length=stats.LEAST_COUNTS)]
PolicyNames = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]


class Options(Record, frozen=True):
    """Options that every experiment has. `blocks`: at most so many in each launch, as far as its time goes."""

    blocks: Positive = 10


class LadderOptions(Options, frozen=True, kw_only=True):
    """Options of an experiment that takes slopes. `counts`: a rising ladder; `policies`: by name, see rig.policies."""

    elements: Positive = 64
    counts: CountLadder
    policies: PolicyNames


@dataclass(frozen=True)
class Point:
    """A cell before it is known who executes it."""

    program: Program
    policy: Policy
    n: int


def check_ladder(options: LadderOptions) -> None:
    """ValueError where the counts do not rise, or a policy is there twice."""
    if list(options.counts) != sorted(set(options.counts)):
        raise ValueError(f"counts: {list(options.counts)} does not rise")
    if len(set(options.policies)) != len(options.policies):
        raise ValueError(f"policies: {list(options.policies)} names one twice")


def ladder_cells(options: LadderOptions) -> list[Point]:
    """The chain of increments under every policy at every count. ValueError as check_ladder, or an unknown policy."""
    check_ladder(options)
    program = increment_chain(options.elements)
    return [Point(program, policy(name), n) for name in options.policies for n in options.counts]


@dataclass(frozen=True)
class Experiment:
    """`cells` and `figures` get the experiment's own options; `figures` and `verdicts` are pure."""

    id: str
    line: str
    options: type[Options]
    cells: Callable[[Any], Sequence[Point]]
    figures: Callable[[Run, Any], Sequence[Metric]]
    verdicts: Callable[[Sequence[Metric]], Sequence[Verdict]]
