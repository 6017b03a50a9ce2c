"""Launches builds in turn, round after round, each into a run of its own; and looks again at what seems to change.

It decides nothing about figures: which steps to look at again, rig.matrix.steps tells it from what is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from rig import __version__, assets, frames, store, trace
from rig.browsers import cache
from rig.browsers import flags as browser_flags
from rig.browsers.find import BrowserMissing, headless_only
from rig.browsers.flags import AdapterAsked
from rig.browsers.names import Wanted, order
from rig.browsers.providers import PROVIDERS, named
from rig.config import Profile
from rig.executors.chromium import ChromiumExecutor, without_flags
from rig.experiments.base import MAIN
from rig.frames import Run
from rig.matrix import records, steps, traces, tracing
from rig.matrix.records import Build, Change, Matrix, Rounds, Stage, Trace, Traces
from rig.measure import accept, begun, render
from rig.records import SCHEMA, Rig
from rig.runner import AdapterRefused, NoResult, NotQuiet, Runner, now

SEARCH_SHARE = 0.55
"""Of the budget, for the first stage: what it finds must be looked at again."""

CONFIRM_SHARE, SWAP_SHARE = 0.55, 0.75
"""Of what is then left, where steps are to be explained too."""

LEAST_LAUNCH_S = 20.0


@dataclass
class Lane:
    """One build on its way through the matrix: its run, still being written, and why it is over, if it is."""

    build: Build
    executor: ChromiumExecutor
    writer: store.Writer
    runner: Runner
    why: str = ""

    def launch(self, number: int, share_s: float) -> None:
        """One launch. NotQuiet passes through: it is the machine that is to blame, and no build."""
        try:
            self.runner.round(number, share_s)
        except NotQuiet:
            raise
        except (NoResult, AdapterRefused) as error:
            self.why = without_flags(error)
        finally:
            self.executor.rest()

    def end(self, *, finished: bool, why: str) -> None:
        manifest = store.read_manifest(self.writer.path)
        self.writer.manifest(msgspec.structs.replace(manifest, ended=now(), finished=finished, why=why))
        self.writer.close()
        self.executor.close()


@dataclass
class Measuring:
    """A matrix while it is measured. `rounds`: of each stage; `suspects`: names of builds that are to be looked at
    again for another reason than a step beside them.
    """

    out: Path
    profile: Profile
    asked: AdapterAsked
    command: tuple[str, ...]
    progress: Callable[[str], None] = lambda _: None
    explain: bool = True
    suspects: Callable[[Matrix, steps.Values], set[str]] = lambda *_: set()
    lanes: dict[str, Lane] = field(default_factory=dict)
    rows: list[Build] = field(default_factory=list)
    stages: list[Rounds] = field(default_factory=list)
    number: int = 0
    started: str = field(default_factory=now)
    start: float = field(default_factory=time.monotonic)

    @property
    def rounds(self) -> int:
        return self.profile.launches.looks[-1]

    def run(self, builds: Sequence[Wanted], control: Wanted | None) -> Matrix:
        """All stages; what was measured is stored however it ends. StoreError, KeyboardInterrupt and NoResult pass: the
        machine is not quiet, or there is no control.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        finished, why = False, "interrupted"
        try:
            if control is not None:
                self._enter(control, control=True)
                if not self.lanes:
                    raise NoResult(f"the control can't be had: {self.rows[0].why}")
            for wanted in builds:
                if wanted != control:
                    self._enter(wanted)
            self.rows.sort(key=lambda row: order(row.version))
            self._store(False, "still running")
            self._search()
            self._look_again(control)
            confirmed = self._confirmed()
            self._swap(confirmed)
            self._trace(confirmed)
            measured = any(lane.runner.good[MAIN] for lane in self.lanes.values())
            finished, why = measured, f"{self.number} rounds" if measured else "no build could be measured"
        except NoResult as error:
            why = str(error)
            raise
        finally:
            for lane in self.lanes.values():
                lane.end(finished=finished and not lane.why, why=lane.why or f"{why} of a matrix")
            self.rows = [self._with_reason(row) for row in self.rows]
            self._store(finished, why)
        for place in run_places(self.out, self.matrix(finished, why)).values():
            render(place)
        return self.matrix(finished, why)

    # --- builds ---

    def _enter(self, wanted: Wanted, *, control: bool = False, swapped: bool = False) -> None:
        """A row for the build, and a lane if it is there and starts."""
        name = str(wanted)
        asked_for = wanted.version if wanted.provider in PROVIDERS else ""
        row = Build(name=name, run=wanted.folder, control=control, swapped=swapped, version=asked_for)
        try:
            browser = cache.build(wanted)
            flags = browser_flags.flags(self.asked, version=browser.version)
            if browser_flags.windowed(flags) and headless_only(browser.path):
                raise BrowserMissing("a headless shell, and this GPU's driver needs a browser with a window")
        except BrowserMissing as error:
            self.rows.append(msgspec.structs.replace(row, why=str(error)))
            self.progress(f"{name}: {error}")
            return
        row = msgspec.structs.replace(
            row,
            flavour=browser.flavour,
            version=browser.version,
            sha256=browser.sha256,
            driver_sha256=cache.driver_sha256(browser.path),
        )
        self.rows.append(row)
        executor = ChromiumExecutor(browser, flags)
        writer = store.Writer(self.out / records.BUILDS / wanted.folder)
        writer.manifest(begun(self.profile, self.asked, self.command))
        runner = Runner(
            self.profile,
            executor,
            writer,
            accept=lambda _, adapter: accept(adapter, self.asked),
            progress=lambda text: self.progress(f"{name}, {text}"),
        )
        runner.begin()
        self.lanes[name] = Lane(row, executor, writer, runner)

    def _with_reason(self, row: Build) -> Build:
        """With why it has no figures, or stopped early."""
        lane = self.lanes.get(row.name)
        if lane is None:
            return row
        nothing = "" if lane.runner.good[MAIN] else "no launch of it ended well"
        return msgspec.structs.replace(row, why=lane.why or nothing)

    # --- stages ---

    def _search(self) -> None:
        names = [row.name for row in self.rows if row.name in self.lanes]
        self._rounds_of(Stage.search, names, self.profile.budget_s * SEARCH_SHARE)

    def _look_again(self, control: Wanted | None) -> None:
        """Both sides of every step that the search shows, and the control, in as many rounds once more."""
        known = self._known()
        found, _ = steps.search(*known)
        names = {side.name for one in found for side in (one.before, one.after)} | self.suspects(*known)
        if names:
            self.progress(f"looking again at {', '.join(sorted(names))}")
            names |= {str(control)} & self.lanes.keys()
            self._rounds_of(Stage.confirm, sorted(names), self._left_s() * (CONFIRM_SHARE if self.explain else 1.0))

    def _confirmed(self) -> dict[tuple[str, str], list[Change]]:
        """The confirmed steps by the builds on both sides, where they are to be explained."""
        found: dict[tuple[str, str], list[Change]] = {}
        if self.explain:
            for one in steps.changes(*self._known()).changes:
                if one.confirmed:
                    found.setdefault((one.build_before, one.build_after), []).append(one)
        return found

    def _swap(self, pairs: Collection[tuple[str, str]]) -> None:
        """Each confirmed step once more in all four ways to put its browsers and drivers together."""
        if self.asked is not AdapterAsked.software:
            return
        for names in sorted(pairs):
            a, b = (named(name) for name in names)
            same_driver = len({self._row(name).driver_sha256 for name in names}) < 2
            if same_driver or not {a.provider, b.provider} <= PROVIDERS.keys():
                continue  # with what is not in the cache no driver can be swapped
            mixed = [Wanted(x.provider, x.version, y) for x, y in ((a, b), (b, a))]
            for one in mixed:
                if str(one) not in self.lanes:
                    self._enter(one, swapped=True)
            four = [*names, *(str(one) for one in mixed)]
            if all(name in self.lanes for name in four):
                self._rounds_of(Stage.swap, four, self._left_s() * SWAP_SHARE / len(pairs))

    def _trace(self, pairs: Mapping[tuple[str, str], Sequence[Change]]) -> None:
        """Both sides of each confirmed step under DevTools' tracing, launch by launch in turn, while there is time."""
        taken: list[Trace] = []
        longest_s = 0.0
        for names, changes in sorted(pairs.items()):
            self.progress(f"tracing {' and '.join(names)}")
            for number in range(traces.LAUNCHES):
                for lane in (self.lanes[name] for name in (names if number % 2 else names[::-1])):
                    cells = tracing.cells(changes, lane.runner.cells[MAIN])
                    began = time.monotonic()
                    if why := lane.why or ("the budget was spent" if self._left_s() < longest_s else ""):
                        taken += [Trace(lane.build.name, key, number, why=why) for key in cells]
                        continue
                    taken += tracing.take(lane.executor, cells, lane.build.name, number, self.out / records.RAW_TRACES)
                    lane.executor.rest()
                    longest_s = max(longest_s, time.monotonic() - began)
        if taken:
            store.write_json(self.out / records.TRACES, Traces(SCHEMA, trace.CATEGORIES, tuple(taken)))

    def _rounds_of(self, stage: Stage, names: Sequence[str], budget_s: float) -> None:
        """Rounds of a stage until there are enough, or the next would not fit into the budget."""
        if not names:
            return
        first, began, longest_s = self.number, time.monotonic(), 0.0
        share_s = max(LEAST_LAUNCH_S, budget_s / self.rounds / len(names))
        while self.number - first < self.rounds:
            spent_s = time.monotonic() - began
            if self.number - first >= steps.LEAST_ROUNDS and spent_s + longest_s > budget_s:
                break
            round_began = time.monotonic()
            lanes = [self.lanes[name] for name in names if not self.lanes[name].why]
            for index in np.random.default_rng([self.profile.seed, self.number]).permutation(len(lanes)):
                lanes[index].launch(self.number, share_s)
            longest_s = max(longest_s, time.monotonic() - round_began)
            self.number += 1
            done = Rounds(stage=stage, first=first, last=self.number - 1, builds=tuple(names))
            self.stages = [*(one for one in self.stages if one.first != first), done]
            self._store(False, "still running")
            self.progress(f"{stage}: round {self.number - first} of {self.rounds}")

    def _left_s(self) -> float:
        return self.profile.budget_s - (time.monotonic() - self.start)

    # --- what there is so far ---

    def matrix(self, finished: bool, why: str) -> Matrix:
        return Matrix(
            schema=SCHEMA,
            rig=Rig(version=__version__, source_hash=assets.source_hash()),
            command=self.command,
            started=self.started,
            ended=now() if finished or why != "still running" else "",
            finished=finished,
            why=why,
            builds=tuple(self.rows),
            rounds=tuple(self.stages),
        )

    def _store(self, finished: bool, why: str) -> None:
        store.write_json(self.out / records.MATRIX, self.matrix(finished, why))

    def _known(self) -> tuple[Matrix, steps.Values]:
        matrix = self.matrix(False, "still running")
        return matrix, steps.values(stored_runs(self.out, matrix))

    def _row(self, name: str) -> Build:
        return next(row for row in self.rows if row.name == name)


def run_places(out: Path, matrix: Matrix) -> dict[str, Path]:
    """Where the runs of a matrix are, by the names of their builds; without those that have no launch."""
    places = {row.name: out / records.BUILDS / row.run for row in matrix.builds}
    return {name: at for name, at in places.items() if store.is_run(at) and store.read_launches(at)}


def stored_runs(out: Path, matrix: Matrix) -> dict[str, Run]:
    """Those runs themselves."""
    return {name: frames.read(place) for name, place in run_places(out, matrix).items()}
