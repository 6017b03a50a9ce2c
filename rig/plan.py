"""What is run in which order: seeded launches and blocks, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rig import config
from rig.config import Profile
from rig.experiments import REGISTRY
from rig.records import Cell

MIN_BLOCKS = 2
"""A launch whose time is short still makes so many blocks of each experiment."""


@dataclass(frozen=True)
class Block:
    """One pass over all cells of one experiment, in the order in which they are visited."""

    experiment: str
    number: int
    cells: tuple[Cell, ...]


def cells(profile: Profile, executor: str, build: str, flags: tuple[str, ...]) -> dict[str, tuple[Cell, ...]]:
    """Cells by experiment, in the experiment's own order."""
    return {
        experiment: tuple(
            Cell(program=p.program, policy=p.policy, n=p.n, executor=executor, build=build, flags=flags)
            for p in REGISTRY[experiment].cells(config.options(profile, experiment))
        )
        for experiment in profile.experiments
    }


def blocks(profile: Profile, cells: Mapping[str, Sequence[Cell]], launch: int) -> list[Block]:
    """The blocks of launch `launch`, the same whenever the profile is: numbered from 1, each in fresh random order.

    Every experiment's blocks are spread evenly over the launch, so that a launch cut short has a share of each.
    """
    rng = np.random.default_rng([profile.seed, launch])
    timeline: list[tuple[float, Block]] = []
    for experiment in profile.experiments:
        members = cells[experiment]
        count = config.options(profile, experiment).blocks
        for number in range(1, count + 1):
            order = tuple(members[i] for i in rng.permutation(len(members)))
            timeline.append(((number - rng.random()) / count, Block(experiment, number, order)))
    return [block for _, block in sorted(timeline, key=lambda entry: entry[0])]


def share_s(profile: Profile, spent_s: float, launches: int) -> float:
    """Seconds that the next launch may take: the budget that is left, over the launches until the next look."""
    goal = next((look for look in profile.launches.looks if look > launches), launches + 1)
    return max(0.0, profile.budget_s - spent_s) / (goal - launches)


def stop_because(profile: Profile, spent_s: float, launches: int, longest_s: float, satisfied: bool) -> str:
    """Why to stop after `launches` good launches, or nothing: looks first, then the budget."""
    looks = profile.launches.looks
    if launches >= looks[-1]:
        return f"last look, {launches} launches"
    if profile.precision is not None and launches in looks and satisfied:
        return f"precision reached at {launches} launches"
    if launches >= looks[0] and spent_s + longest_s > profile.budget_s:
        return f"budget spent at {launches} launches"
    return ""
