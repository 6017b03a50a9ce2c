"""One launch: opening checks, blocks, closing checks, each sample stored as it comes.

A fault becomes the outcome of the sample that had it. One that ends the process (lost device, timeout, crash) ends the
launch: LaunchOver.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

import msgspec
import numpy as np

from rig import plan
from rig.executors.base import ExecutorFault, Session, Timing
from rig.plan import Block
from rig.policies import reaches, runs, structure
from rig.programs import limits, reference
from rig.programs.fill import Array
from rig.records import Cell, Check, Outcome, Policy, Program, Sample, decode, encode

CellsByExperiment = Mapping[str, Sequence[Cell]]
Result = Timing | ExecutorFault
Outputs = dict[tuple[str | int, ...], Mapping[str, Array]]
"""What programs without a reference made, by program and the dispatches of each run."""


class LaunchOver(Exception):
    """This launch can't go on; `cell` is the one at fault, if one is."""

    def __init__(self, fault: ExecutorFault, cell: Cell | None = None) -> None:
        super().__init__(fault.detail)
        self.fault = fault
        self.cell = cell


class Visit:
    """What one launch does with its session. `checks` and `done` (blocks by experiment) are there however it ends.

    `seen`: what earlier launches, of any executor, saw programs without a reference make; this one adds to it.
    `memory_bytes`: what a program's buffers may take together, where that is known.
    """

    def __init__(
        self,
        number: int,
        session: Session,
        cells: CellsByExperiment,
        store: Callable[[Sample], None],
        seen: Outputs | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        self.number = number
        self.session = session
        self.cells = cells
        self.store = store
        self.memory_bytes = memory_bytes
        self.checks: list[Check] = []
        self.done: Counter[str] = Counter()
        self._unusable: set[str] = set()
        self._seen: Outputs = {} if seen is None else seen
        self._held: set[tuple[str | int, ...]] = set()
        self._ran: dict[str, list[int]] = {}  # by program, the dispatches of each run since the last reset

    def prove(self, validates: bool) -> None:
        """LaunchOver where the device's validation is not on or off as it should be: an invalid call shows it."""
        with ending(None):
            got = self.session.validates()
        words = {True: "an invalid call raises an error", False: "an invalid call raises none"}
        outcome = Outcome.ok if got is validates else Outcome.mismatch
        self.checks.append(Check(stage="validation", program="", cell=None, outcome=outcome, detail=words[got]))
        if outcome is not Outcome.ok:
            raise LaunchOver(ExecutorFault(outcome, f"{words[got]}, against this launch's flags"))

    def open(self, skip: Callable[[Cell], bool]) -> None:
        """Loads every program and runs it under each of its policies once from first contents, at the most dispatches
        it will be run with, its outputs compared with the reference.

        In the experiments' own order, so that the very first sample of every launch is of the same cell. Cells that
        `skip` names, and those that fail here, are left out of the blocks.
        """
        self._unusable = {cell.key for cell in self._all() if skip(cell)}
        for program in self._programs():
            self._load(program)
        for experiment, cells in self.cells.items():
            for order, alike in enumerate(_fullest_first(cells)):
                usable = (cell for cell in alike if cell.key not in self._unusable)
                # one that fails says nothing of fewer dispatches: the next one is tried
                next((cell for cell in usable if self._opening(experiment, order, cell)), None)
        for program in self._usable():
            self._note("opening", program, None, detail=self._held_against(program))
            with ending(None):
                self._reset(program)

    def run(self, blocks: Sequence[Block], deadline: float) -> None:
        """The blocks in their order, until `deadline` (time.monotonic) and the least number of each experiment."""
        for block in blocks:
            if time.monotonic() < deadline or self.done[block.experiment] < plan.MIN_BLOCKS:
                self._block(block)

    def close(self) -> None:
        """Compares again: what accumulated must be what all the issued dispatches make; the rest runs once more, a
        decode step under one of its policies, since all leave the same.
        """
        for program in self._usable():
            if program.accumulates and reference.known(program):
                with ending(None):
                    issued, got = self.session.outputs(program)
                ran = self._ran[program.name]
                wrong = _miscounted(issued, sum(ran)) or mismatch(program, reference.run(program, *ran), got)
                self._note("closing", program, None, wrong)
                continue
            own = [c for c in self._all() if c.program.name == program.name and c.key not in self._unusable]
            for cell in own[:1] if program.model else own:
                result = self._verified(cell)
                whole = None if program.model else cell
                self._note("closing", program, whole, result if isinstance(result, ExecutorFault) else None)

    def vouch(self) -> None:
        """LaunchOver where a closing check failed: what was wrong at the end may have been wrong all along."""
        for check in self.checks:
            if check.stage == "closing" and check.outcome is not Outcome.ok:
                raise LaunchOver(ExecutorFault(check.outcome, f"closing check of {check.program}: {check.detail}"))

    # --- steps ---

    def _load(self, program: Program) -> None:
        try:
            adapter = self.session.adapter
            too_small = limits.shortfall(program, adapter.granted_limits, adapter.enabled_features, self.memory_bytes)
            if too_small:
                raise ExecutorFault(Outcome.not_supported, too_small)
            self.session.load(program)
        except ExecutorFault as fault:
            self._note("opening", program, None, fault)
            for experiment, cells in self.cells.items():
                for order, cell in enumerate(cells):
                    if cell.program.name == program.name and cell.key not in self._unusable:
                        self._keep(experiment, cell, 0, order, fault)
            self._unusable |= {cell.key for cell in self._all() if cell.program.name == program.name}
            if fault.outcome.ends_launch:
                raise LaunchOver(fault) from None

    def _opening(self, experiment: str, order: int, cell: Cell) -> bool:
        result = self._verified(cell)
        self._keep(experiment, cell, 0, order, result)
        if isinstance(result, ExecutorFault):
            self._note("opening", cell.program, cell, result)
            self._unusable.add(cell.key)
            if result.outcome.ends_launch:
                raise LaunchOver(result, cell)
        return not isinstance(result, ExecutorFault)

    def _block(self, block: Block) -> None:
        for order, visit in enumerate(block.visits):
            if visit.cell.key in self._unusable:
                continue
            result = self._timed(visit.cell)
            self._keep(visit.experiment, visit.cell, visit.block, order, result)
            if isinstance(result, ExecutorFault):
                self._unusable.add(visit.cell.key)
                if result.outcome.ends_launch:
                    raise LaunchOver(result, visit.cell)
        self.done[block.experiment] += 1

    def _verified(self, cell: Cell) -> Result:
        try:
            self._reset(cell.program)
            result = self._timed(cell)
            if isinstance(result, ExecutorFault):
                return result
            issued, got = self.session.outputs(cell.program)
        except ExecutorFault as fault:
            return fault
        ran = self._ran[cell.program.name]
        return _miscounted(issued, sum(ran)) or mismatch(cell.program, self._expected(cell, got), got) or result

    def _expected(self, cell: Cell, got: Mapping[str, Array]) -> Mapping[str, Array]:
        """What a run from first contents makes; of a program without a reference, what the first such run made, in
        whichever executor.
        """
        ran = self._ran[cell.program.name]
        if reference.known(cell.program):
            return _reference(encode(cell.program), *ran)
        key: tuple[str | int, ...] = (cell.program.name, *ran)
        self._held.add(key)
        return self._seen.setdefault(key, got)

    def _reset(self, program: Program) -> None:
        self.session.reset(program)
        self._ran[program.name] = []

    def _timed(self, cell: Cell) -> Result:
        result = timed(self.session, cell)
        if not isinstance(result, ExecutorFault):
            self._ran[cell.program.name] += runs(cell.policy) * [reaches(cell.policy, cell.n)]
        return result

    # --- small parts ---

    def _all(self) -> Iterator[Cell]:
        return (cell for cells in self.cells.values() for cell in cells)

    def _programs(self) -> list[Program]:
        return list({cell.program.name: cell.program for cell in self._all()}.values())

    def _usable(self) -> list[Program]:
        return list({c.program.name: c.program for c in self._all() if c.key not in self._unusable}.values())

    def _held_against(self, program: Program) -> str:
        """What a program without a reference was compared with: itself, and a hash of what it made."""
        if reference.known(program):
            return ""
        digest = hashlib.sha256()
        for key in sorted(key for key in self._held if key[0] == program.name):
            outputs = self._seen[key]
            for name in sorted(outputs):
                digest.update(np.ascontiguousarray(outputs[name]).tobytes())
        return f"no reference; outputs agree, sha256 {digest.hexdigest()[:16]}"

    def _note(
        self,
        stage: str,
        program: Program,
        cell: Cell | None,
        fault: ExecutorFault | None = None,
        detail: str = "",
    ) -> None:
        outcome, detail = (fault.outcome, fault.detail) if fault else (Outcome.ok, detail)
        key = cell.key if cell else None
        self.checks.append(Check(stage=stage, program=program.name, cell=key, outcome=outcome, detail=detail))

    def _keep(self, experiment: str, cell: Cell, block: int, order: int, result: Result) -> None:
        self.store(sample(experiment, cell, self.number, block, order, result))


@contextmanager
def ending(cell: Cell | None) -> Iterator[None]:
    """A fault in here ends the launch."""
    try:
        yield
    except ExecutorFault as fault:
        raise LaunchOver(fault, cell) from None


def timed(session: Session, cell: Cell) -> Result:
    """One execution of a cell, or its fault. What was counted while issuing must be what the policy says."""
    impossible = session.conflict(cell.program, cell.policy, cell.n)
    if impossible:
        return ExecutorFault(Outcome.not_supported, impossible)
    try:
        timing = session.time(cell.program, cell.policy, cell.n)
    except ExecutorFault as fault:
        return fault
    expected = structure(cell.policy, cell.n)
    if timing.issued != expected:
        return ExecutorFault(Outcome.mismatch, f"issued {timing.issued}, the policy says {expected}")
    return timing


def mismatch(program: Program, want: Mapping[str, Array], got: Mapping[str, Array]) -> ExecutorFault | None:
    """A fault where outputs differ from the reference, else None."""
    wrong = reference.compare(program, want, got)
    return ExecutorFault(Outcome.mismatch, wrong) if wrong else None


def sample(experiment: str, cell: Cell, launch: int, block: int, order: int, result: Result) -> Sample:
    """The stored form of a result. A fault has an outcome and no figure at all."""
    outcome = result.outcome if isinstance(result, ExecutorFault) else Outcome.ok
    bare = Sample(
        experiment=experiment, cell=cell.key, launch=launch, block=block, order=order, n=cell.n, outcome=outcome
    )
    if isinstance(result, ExecutorFault):
        return msgspec.structs.replace(bare, detail=result.detail)
    span_us, busy_us, doubt = on_gpu(result)
    return msgspec.structs.replace(
        bare,
        wall_us=round(result.wall_us, 3),
        encode_us=round(result.encode_us, 3),
        span_us=span_us,
        busy_us=busy_us,
        cpu_us=_each(result.cpu_us, runs(cell.policy)),
        switches=_each(result.switches, runs(cell.policy)),
        calls_us=result.calls_us,
        detail=doubt,
    )


def _each(used: dict[str, float] | None, times: int) -> dict[str, float] | None:
    """Of one run, where a sample has several."""
    return used if used is None or times == 1 else {name: value / times for name, value in used.items()}


def on_gpu(timing: Timing) -> tuple[float | None, float | None, str]:
    """GPU span and busy time in µs, and what is wrong with the timestamps if something is: then there is neither, not a
    zero. Busy is the sum over passes, known where each was stamped: a single one always is.

    Counters may reset or be in other units than nanoseconds; the work can't have taken longer than the wait for it.
    """
    if timing.stamps_ns is None:
        return None, None, ""
    stamps = [int(stamp) for stamp in timing.stamps_ns]
    begins, ends = stamps[::2], stamps[1::2]
    backward = next(((b, e) for b, e in zip(begins, ends, strict=True) if e < b), None)
    if backward is not None or ends[-1] <= begins[0]:
        begin, end = backward or (begins[0], ends[-1])
        return None, None, f"timestamps: end {end} is not after begin {begin}"
    span_us = (ends[-1] - begins[0]) / 1000
    if span_us > timing.wall_us:
        return None, None, f"timestamps: span {span_us:.3f} µs is above the wall's {timing.wall_us:.3f} µs (unit?)"
    if len(begins) != timing.issued["passes"]:
        return round(span_us, 3), None, ""
    busy_us = sum(end - begin for begin, end in zip(begins, ends, strict=True)) / 1000
    return round(span_us, 3), round(busy_us, 3) or None, ""


def _fullest_first(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells of each program and policy, most dispatches first, in the order in which they first come."""
    groups: dict[tuple[str, Policy], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.program.name, cell.policy), []).append(cell)
    return [sorted(group, key=lambda cell: -cell.n) for group in groups.values()]


def _miscounted(issued: int, expected: int) -> ExecutorFault | None:
    return ExecutorFault(Outcome.mismatch, f"issued {issued}, expected {expected}") if issued != expected else None


@cache
def _reference(program: bytes, *ran: int) -> Mapping[str, Array]:
    """The same for every launch; keyed by JSON, since records with dicts in them don't hash."""
    return reference.run(decode(program, Program), *ran)
