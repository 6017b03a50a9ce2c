"""What an experiment is: which cells, which figures from their samples, which verdicts from the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from rig import stats
from rig.frames import Run
from rig.policies import policy
from rig.programs.micro import carrying, increment_chain
from rig.records import Metric, Name, Parameters, Policy, Positive, Program, Record, Uniforms, Verdict

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


@dataclass(frozen=True)
class Arm:
    """Launches with `flags` of their own. The main arm has none, and no name.

    `share`: fraction of a round's time for one launch of it; the main arm gets what the others leave. `validates`:
    whether the device must say so when it is used wrongly, which each launch proves. `executor`: which one launches it,
    empty for the run's main one; those beside it take no other arms, and share evenly with the main arm.
    """

    name: str = ""
    flags: tuple[str, ...] = ()
    share: float = 0.0
    validates: bool = True
    executor: str = ""


MAIN = Arm()


def check_counts(where: str, counts: Sequence[int]) -> None:
    """ValueError where the counts do not rise."""
    if list(counts) != sorted(set(counts)):
        raise ValueError(f"{where}: {list(counts)} does not rise")


def check_ladder(options: LadderOptions) -> None:
    """ValueError where the counts do not rise, or a policy is there twice."""
    check_counts("counts", options.counts)
    if len(set(options.policies)) != len(options.policies):
        raise ValueError(f"policies: {list(options.policies)} names one twice")


def ladder_cells(options: LadderOptions) -> list[Point]:
    """The chain of increments under every policy at every count. ValueError as check_ladder, or an unknown policy."""
    check_ladder(options)
    return [point(name, n, options.elements) for name in options.policies for n in options.counts]


def point(name: str, n: int, elements: int) -> Point:
    """The chain of increments under the policy `name`; one whose dispatches carry values, where it delivers some."""
    chosen = policy(name)
    if chosen.uniforms is Uniforms.none:
        return Point(increment_chain(elements), chosen, n)
    immediate = chosen.uniforms is Uniforms.immediates
    return Point(carrying(elements, Parameters.immediate if immediate else Parameters.uniform), chosen, n)


@dataclass(frozen=True)
class Experiment:
    """`cells`, `figures` and `arms` get the experiment's own options; `figures` and `verdicts` are pure.

    `arms`: in which launches it is measured. `in_every_block`: it has no blocks of its own, its cells are visited in
    every block of the others.
    """

    id: str
    line: str
    options: type[Options]
    cells: Callable[[Any], Sequence[Point]]
    figures: Callable[[Run, Any], Sequence[Metric]]
    verdicts: Callable[[Sequence[Metric]], Sequence[Verdict]]
    arms: Callable[[Any], Sequence[Arm]] = lambda _: (MAIN,)
    in_every_block: bool = False

    def everywhere(self, options: Options) -> bool:
        """Whether its cells are measured in launches without flags of their own, which any executor can have."""
        return self.in_every_block or MAIN in self.arms(options)
