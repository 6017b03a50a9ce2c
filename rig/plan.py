"""What is run in which order: seeded launches and blocks, and when to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rig import config
from rig.config import Profile
from rig.executors.base import Executor
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
    """The different kinds of launch that the profile wants, the main one first."""
    wanted = [a for name in profile.experiments if not REGISTRY[name].in_every_block for a in _arms(profile, name)]
    beside = [Arm(executor=name) for name in profile.also]
    return [*sorted(dict.fromkeys(wanted), key=lambda arm: arm != MAIN), *beside]


def round_order(profile: Profile, number: int) -> list[Arm]:
    """Each round launches every arm once, in fresh random order."""
    every = arms(profile)
    return [every[i] for i in np.random.default_rng([profile.seed, number, 1]).permutation(len(every))]


def cells(profile: Profile, arm: Arm, executor: Executor) -> dict[str, tuple[Cell, ...]]:
    """Cells of an arm's launches by experiment, in the experiment's own order: those that its executor takes."""
    made = {name: _cells(profile, name, arm, executor) for name in profile.experiments if _is_in(profile, name, arm)}
    return {name: cells for name, cells in made.items() if cells}


def _is_in(profile: Profile, experiment: str, arm: Arm) -> bool:
    if arm.executor:
        return config.beside(profile, experiment)
    return REGISTRY[experiment].in_every_block or arm in _arms(profile, experiment)


def _cells(profile: Profile, experiment: str, arm: Arm, executor: Executor) -> tuple[Cell, ...]:
    flags = (*executor.flags, *arm.flags)
    return tuple(
        Cell(program=p.program, policy=p.policy, n=p.n, executor=executor.name, build=executor.build_id, flags=flags)
        for p in REGISTRY[experiment].cells(config.options(profile, experiment))
        if executor.takes(p.program, p.policy)
    )


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
    if arm != MAIN and not arm.executor:
        return arm.share
    return (1 - sum(other.share for other in arms(profile))) / (1 + len(profile.also))


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
