"""How are both sides of a step traced? The cell of each figure is run again and again while DevTools looks on."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rig import trace
from rig.executors.base import ExecutorFault
from rig.executors.chromium import ChromiumExecutor, ChromiumSession, without_flags
from rig.matrix.records import Change, Trace
from rig.policies import structure
from rig.programs import limits
from rig.records import Cell, Depth, Outcome, Waiter, key_of
from rig.trace import Activity

DISPATCHES, MOST_RUNS = 800, 64
"""A trace has some so many dispatches, in so many runs of the cell at most."""

LEAST_TIMES, LEAST_US = 0.05, 0.1
"""An event that a dispatch has fewer of, and that takes less of it, is not kept."""


def cells(changes: Iterable[Change], planned: Mapping[str, Sequence[Cell]]) -> dict[str, Cell]:
    """The smallest cell that each changed figure is of, by its key, where there is one. `planned`: by experiment."""
    found = {}
    for change in changes:
        experiment = change.metric.partition(".")[0]
        fits = [one for one in planned.get(experiment, ()) if _is_of(change, experiment, one)]
        if fits:
            found[key_of(change.metric, change.variant)] = min(fits, key=lambda one: one.n)
    return found


def _is_of(change: Change, experiment: str, cell: Cell) -> bool:
    match experiment:
        case "policy":
            return cell.policy.name == change.variant.get("policy")
        case "anatomy":
            return cell.policy.depth is Depth.submit
        case _:
            return cell.n == 1 and cell.policy.waiter is Waiter.work_done


def take(executor: ChromiumExecutor, cells: Mapping[str, Cell], build: str, launch: int, raw: Path) -> list[Trace]:
    """One launch, in which each figure's cell is run and traced in turn. Of the first launch the traces themselves go
    into the folder `raw`, for people to look at.
    """
    taken: list[Trace] = []
    session: ChromiumSession | None = None
    try:
        session = executor.launch(limits.needed(one.program for one in cells.values()))
        for figure, one in cells.items():
            data, us, dispatches = _traced(session, one)
            if launch == 0:
                raw.mkdir(parents=True, exist_ok=True)
                name = f"{build}-{one.program.name}-{one.policy.name}.json.gz".replace("/", "-").replace(":", "-")
                (raw / name).write_bytes(gzip.compress(data, mtime=0))
            kept = (act for act in trace.activities(data) if _matters(act, dispatches))
            taken.append(Trace(build, figure, launch, dispatches, us, tuple(kept)))
    except (ExecutorFault, trace.TraceBroken) as error:
        why = without_flags(error)
        done = {one.metric for one in taken}
        taken += [Trace(build, figure, launch, why=why) for figure in cells if figure not in done]
    finally:
        if session is not None:
            session.close()
    return taken


def _traced(session: ChromiumSession, one: Cell) -> tuple[bytes, float, int]:
    """The trace of some DISPATCHES dispatches, what they took, and how many they were."""
    runs = min(MOST_RUNS, -(-DISPATCHES // one.n))
    session.load(one.program)
    session.reset(one.program)
    session.time(one.program, one.policy, one.n)  # the first one compiles
    session.start_trace(trace.CATEGORIES)
    us = 0.0
    for _ in range(runs):
        timing = session.time(one.program, one.policy, one.n)
        us += timing.wall_us
        if timing.issued["submits"] != (expected := structure(one.policy, one.n)["submits"]):
            raise ExecutorFault(Outcome.mismatch, f"{timing.issued['submits']} submits instead of {expected}")
    return session.end_trace(), us, runs * one.n


def _matters(act: Activity, dispatches: int) -> bool:
    return act.times >= LEAST_TIMES * dispatches or act.own_us >= LEAST_US * dispatches
