"""Drives an executor through a plan, launch after launch, until the plan says stop. It decides nothing about figures.

A launch that breaks is followed by a fresh one. A cell that ends two launches is left out of the rest of the run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rig import host, plan
from rig.config import Profile
from rig.executors.base import Executor, ExecutorFault, Session
from rig.launch import LaunchOver, Visit
from rig.programs import limits
from rig.records import Adapter, Cell, Launch, Outcome
from rig.store import Writer

STRIKES = 2
"""So many launches may one cell end, and so many more in a row may fail before the run gives up."""


class NoResult(Exception):
    """The run ended early: launch after launch failed; one line says why."""


class AdapterRefused(Exception):
    """The adapter obtained is not one that was asked for; one line says which it is."""


@dataclass
class Runner:
    """`accept` may raise AdapterRefused; `satisfied` tells whether the figures are precise enough."""

    profile: Profile
    executor: Executor
    writer: Writer
    satisfied: Callable[[], bool] = lambda: False
    accept: Callable[[Adapter], None] = lambda _: None
    progress: Callable[[str], None] = lambda _: None
    strikes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.cells = plan.cells(self.profile, self.executor.name, self.executor.build_id, self.executor.flags)
        self.writer.cells(cell for members in self.cells.values() for cell in members)

    def run(self) -> str:
        """Launches until it is time to stop; returns why. NoResult where launch after launch fails."""
        start = time.monotonic()
        number = good = failed = 0
        longest_s = 0.0
        while True:
            began = time.monotonic()
            launch = self._launch(number, began + plan.share_s(self.profile, began - start, good))
            number += 1
            good, failed = (good + 1, 0) if launch.outcome is Outcome.ok else (good, failed + 1)
            longest_s = max(longest_s, time.monotonic() - began)
            self.progress(_told(launch))
            if failed > STRIKES or (failed and launch.adapter is None and launch.outcome is Outcome.not_supported):
                raise NoResult(f"{launch.outcome} ({failed} in a row): {launch.detail}")
            look_reached = self.profile.precision is not None and good in self.profile.launches.looks
            spent_s = time.monotonic() - start
            why = plan.stop_because(self.profile, spent_s, good, longest_s, look_reached and self.satisfied())
            if why:
                return why

    def _launch(self, number: int, deadline: float) -> Launch:
        before, began = host.state(), now()
        visit: Visit | None = None
        session: Session | None = None
        outcome, detail = Outcome.ok, ""
        refused: AdapterRefused | None = None
        programs = {cell.program.name: cell.program for cells in self.cells.values() for cell in cells}
        try:
            session = self.executor.launch(limits.needed(programs.values()))
            self.accept(session.adapter)
            visit = Visit(number, session, self.cells, self.writer.sample)
            visit.open(skip=self._struck_out)
            visit.run(plan.blocks(self.profile, self.cells, number), deadline)
            visit.close()
            visit.vouch()
        except ExecutorFault as fault:
            outcome, detail = fault.outcome, fault.detail
        except AdapterRefused as refusal:
            refused, outcome, detail = refusal, Outcome.not_supported, str(refusal)
        except LaunchOver as over:
            outcome, detail = over.fault.outcome, over.fault.detail
            if over.cell is not None:
                self.strikes[over.cell.key] += 1
        finally:
            if session is not None:
                session.close()
        launch = Launch(
            launch=number,
            executor=self.executor.name,
            build=session.build if session else None,
            adapter=session.adapter if session else None,
            clock=session.clock if session else None,
            host_before=before,
            host_after=host.state(),
            began=began,
            ended=now(),
            outcome=outcome,
            detail=detail,
            blocks=sum(visit.done.values()) if visit else 0,
            checks=tuple(visit.checks) if visit else (),
        )
        self.writer.launch(launch)
        if refused is not None:
            raise refused
        return launch

    def _struck_out(self, cell: Cell) -> bool:
        return self.strikes[cell.key] >= STRIKES


def now() -> str:
    """UTC in ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _told(launch: Launch) -> str:
    if launch.outcome is not Outcome.ok:
        return f"launch {launch.launch}: {launch.outcome}, {launch.detail.splitlines()[0]}"
    adapter = launch.adapter.label if launch.adapter else ""
    return f"launch {launch.launch}: {launch.blocks} blocks on {adapter}"
