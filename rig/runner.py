"""Drives an executor through a plan, launch after launch, until the plan says stop. It decides nothing about figures.

A launch that breaks is followed by a fresh one. A cell that ends two launches is left out of the rest of the run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rig import gates, host, plan
from rig.config import Profile
from rig.executors.base import Executor, ExecutorFault, Session
from rig.experiments.base import MAIN, Arm
from rig.launch import LaunchOver, Outputs, Visit
from rig.programs import limits
from rig.records import Adapter, Cell, HostState, Launch, Outcome
from rig.store import Writer

STRIKES = 2
"""So many launches may one cell end, and so many more in a row may fail before the run gives up."""


class NoResult(Exception):
    """The run ended early: launch after launch failed, or a gate refused to measure; one line says why.

    `no_adapter`: since there is no adapter at all.
    """

    def __init__(self, why: str, *, no_adapter: bool = False) -> None:
        super().__init__(why)
        self.no_adapter = no_adapter


class NotQuiet(NoResult):
    """A gate refused to measure on this machine as it is now."""


class AdapterRefused(Exception):
    """The adapter obtained is not one that was asked for; one line says which it is."""


@dataclass
class Runner:
    """`accept` may raise AdapterRefused; `satisfied` tells whether the figures are precise enough.

    `beside`: executors whose launches take turns with the main one's. `earlier`: launches that the run already has,
    where it is taken up again; `number`: of the first launch to come.
    """

    profile: Profile
    executor: Executor
    writer: Writer
    satisfied: Callable[[], bool] = lambda: False
    accept: Callable[[str, Adapter], None] = lambda *_: None
    progress: Callable[[str], None] = lambda _: None
    beside: Sequence[Executor] = ()
    earlier: Sequence[Launch] = ()
    number: int = 0
    strikes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.cells = {arm: plan.cells(self.profile, arm, self._executor(arm)) for arm in plan.arms(self.profile)}
        named = {(self._executor(arm).name, arm.name): arm for arm in self.cells}
        good = (launch for launch in self.earlier if launch.outcome is Outcome.ok)
        self.good = Counter(named[launch.executor, launch.arm] for launch in good)
        self.failed: Counter[Arm] = Counter()
        self.first = self.number
        self._outputs: Outputs = {}

    def keys(self) -> dict[str, Cell]:
        """Every cell of the plan by its key."""
        every = (cell for by_name in self.cells.values() for members in by_name.values() for cell in members)
        return {cell.key: cell for cell in every}

    def run(self) -> str:
        """Rounds of launches until it is time to stop; returns why. NoResult where launch after launch fails."""
        self.begin()
        start = time.monotonic() - sum(_seconds(launch) for launch in self.earlier)
        number = 1 + max((launch.round for launch in self.earlier), default=-1)
        longest_s = 0.0
        while not (why := self._done(time.monotonic() - start, longest_s)):
            began = time.monotonic()
            self.round(number, plan.share_s(self.profile, began - start, self._rounds()))
            number += 1
            longest_s = max(longest_s, time.monotonic() - began)
        return why

    def begin(self) -> None:
        """Stores what is to be measured."""
        self.writer.cells(self.keys().values())

    def round(self, number: int, share_s: float) -> None:
        """Launches every arm once, in random order, in some `share_s` seconds. NoResult as `run`."""
        for arm in plan.round_order(self.profile, number):
            if self.failed[arm] <= STRIKES:
                deadline = time.monotonic() + share_s * plan.launch_share(self.profile, arm)
                self._count(arm, self._launch(arm, number, deadline))

    def _executor(self, arm: Arm) -> Executor:
        return {one.name: one for one in self.beside}[arm.executor] if arm.executor else self.executor

    def _rounds(self) -> int:
        """Good launches that every arm has that can be launched."""
        return min(self.good[arm] for arm in self.cells if self.failed[arm] <= STRIKES)

    def _done(self, spent_s: float, longest_s: float) -> str:
        rounds = self._rounds()
        look_reached = self.profile.precision is not None and rounds in self.profile.launches.looks
        return plan.stop_because(self.profile, spent_s, rounds, longest_s, look_reached and self.satisfied())

    def _count(self, arm: Arm, launch: Launch) -> None:
        self.progress(_told(launch))
        if launch.outcome is Outcome.ok:
            self.good[arm] += 1
            self.failed[arm] = 0
            return
        self.failed[arm] += 1
        hopeless = launch.adapter is None and launch.outcome is Outcome.not_supported
        if hopeless:
            self.failed[arm] = STRIKES + 1
        if self.failed[arm] > STRIKES and (arm == MAIN or MAIN not in self.cells):
            # the run goes on without an arm with flags, or an executor, of its own
            times = "" if hopeless else f" ({self.failed[arm]} in a row)"
            raise NoResult(f"{launch.outcome}{times}: {launch.detail}", no_adapter=hopeless)

    def _launch(self, arm: Arm, round_: int, deadline: float) -> Launch:
        number, cells, executor = self.number, self.cells[arm], self._executor(arm)
        self.number += 1
        before, began = self._quiet(first=number == self.first), now()
        visit: Visit | None = None
        session: Session | None = None
        outcome, detail = Outcome.ok, ""
        refused: AdapterRefused | None = None
        programs = {cell.program.name: cell.program for members in cells.values() for cell in members}
        try:
            session = executor.launch(limits.needed(programs.values()), arm.flags)
            self.accept(executor.name, session.adapter)
            on_gpu = gates.closed_on_gpu(session.adapter, self.profile.gates, before)
            if why := gates.refusal([*on_gpu, *gates.closed_on_page(session.clock, self.profile.gates)]):
                raise ExecutorFault(Outcome.not_supported, why)
            room = limits.memory_bytes(session.adapter, before)
            visit = Visit(number, session, cells, self.writer.sample, self._outputs, room)
            visit.prove(arm.validates)
            visit.open(skip=self._struck_out)
            visit.run(plan.blocks(self.profile, cells, number), deadline)
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
            executor=executor.name,
            arm=arm.name,
            round=round_,
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

    def _quiet(self, *, first: bool) -> HostState:
        """The host before a launch. NoResult where a gate refuses it, and a second, longer look too."""
        for interval_s in (host.LOOK_S, host.LONG_LOOK_S):
            state = host.state(interval_s)
            why = gates.refusal(gates.closed_before(state, host.cores(), self.profile.gates, first=first))
            if not why:
                return state
        raise NotQuiet(why)

    def _struck_out(self, cell: Cell) -> bool:
        return self.strikes[cell.key] >= STRIKES


def now() -> str:
    """UTC in ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(launch: Launch) -> float:
    began, ended = (datetime.fromisoformat(text) for text in (launch.began, launch.ended))
    return (ended - began).total_seconds()


def _told(launch: Launch) -> str:
    if launch.outcome is not Outcome.ok:
        return f"launch {launch.launch}{_which(launch)}: {launch.outcome}, {launch.detail.splitlines()[0]}"
    adapter = launch.adapter.label if launch.adapter else ""
    return f"launch {launch.launch}{_which(launch)}: {launch.blocks} blocks on {adapter}"


def _which(launch: Launch) -> str:
    return f", {launch.executor}" + (f", {launch.arm}" if launch.arm else "")
