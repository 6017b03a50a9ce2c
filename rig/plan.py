"""What is run in which order: seeded launches and blocks, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rig import config
from rig.config import Profile
from rig.experiments import REGISTRY
from rig.experiments.base import MAIN, Arm
from rig.records import Cell

MIN_BLOCKS = 2
"""A launch whose time is short still makes so many blocks of each experiment."""


@dataclass(frozen=True)
class Visit:
    """One cell's turn: of which experiment, and in which of that experiment's blocks."""

    experiment: str
    block: int
    cell: Cell


@dataclass(frozen=True)
class Block:
    """One pass over all cells of one experiment, and over those in every block, in the order of their visits."""

    experiment: str
    visits: tuple[Visit, ...]


def arms(profile: Profile) -> list[Arm]:
    """The different kinds of launch that the profile's experiments want, the main one first."""
    wanted = [a for name in profile.experiments if not REGISTRY[name].in_every_block for a in _arms(profile, name)]
    return sorted(dict.fromkeys(wanted), key=lambda arm: arm != MAIN)


def round_order(profile: Profile, number: int) -> list[Arm]:
    """Each round launches every arm once, in fresh random order."""
    every = arms(profile)
    return [every[i] for i in np.random.default_rng([profile.seed, number, 1]).permutation(len(every))]


def cells(profile: Profile, arm: Arm, executor: str, build: str, flags: tuple[str, ...]) -> dict[str, tuple[Cell, ...]]:
    """Cells of an arm's launches by experiment, in the experiment's own order."""
    return {
        name: tuple(
            Cell(program=p.program, policy=p.policy, n=p.n, executor=executor, build=build, flags=(*flags, *arm.flags))
            for p in REGISTRY[name].cells(config.options(profile, name))
        )
        for name in profile.experiments
        if REGISTRY[name].in_every_block or arm in _arms(profile, name)
    }


def blocks(profile: Profile, cells: Mapping[str, Sequence[Cell]], launch: int) -> list[Block]:
    """The blocks of launch `launch`, the same whenever the profile is: numbered from 1, each in fresh random order.

    Every experiment's blocks are spread evenly over the launch, so that a launch cut short has a share of each.
    """
    rng = np.random.default_rng([profile.seed, launch])
    timeline: list[tuple[float, str, int]] = []
    for name in cells:
        if not REGISTRY[name].in_every_block:
            count = config.options(profile, name).blocks
            timeline += [((number - rng.random()) / count, name, number) for number in range(1, count + 1)]
    timeline.sort()
    everywhere = [(name, cell) for name in cells if REGISTRY[name].in_every_block for cell in cells[name]]
    made = []
    for index, (_, name, number) in enumerate(timeline, 1):
        members = [Visit(name, number, cell) for cell in cells[name]]
        members += [Visit(guest, index, cell) for guest, cell in everywhere]
        made.append(Block(name, tuple(members[i] for i in rng.permutation(len(members)))))
    return made


def _arms(profile: Profile, experiment: str) -> Sequence[Arm]:
    return REGISTRY[experiment].arms(config.options(profile, experiment))


def launch_share(profile: Profile, arm: Arm) -> float:
    """Fraction of a round's time for a launch of `arm`."""
    return arm.share if arm != MAIN else 1 - sum(other.share for other in arms(profile))


def share_s(profile: Profile, spent_s: float, launches: int) -> float:
    """Seconds that the next round may take: the budget that is left, over the rounds until the next look."""
    goal = next((look for look in profile.launches.looks if look > launches), launches + 1)
    return max(0.0, profile.budget_s - spent_s) / (goal - launches)


def stop_because(profile: Profile, spent_s: float, launches: int, longest_s: float, satisfied: bool) -> str:
    """Why to stop after `launches` good launches of each arm, or nothing: looks first, then the budget."""
    looks = profile.launches.looks
    if launches >= looks[-1]:
        return f"last look, {launches} launches"
    if profile.precision is not None and launches in looks and satisfied:
        return f"precision reached at {launches} launches"
    if launches >= looks[0] and spent_s + longest_s > profile.budget_s:
        return f"budget spent at {launches} launches"
    return ""
