"""One night from start to page."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rig import config, store
from rig.browsers.names import Wanted
from rig.config import Profile
from rig.frames import Run
from rig.matrix import page as matrix_page
from rig.matrix import records as matrix_records
from rig.matrix import steps
from rig.matrix.records import Changes, Matrix
from rig.matrix.rounds import Measuring, stored_runs
from rig.measure import Exit
from rig.nights import judge, page, records
from rig.nights.records import Config, Night, Slot, State
from rig.records import SCHEMA
from rig.report import words
from rig.runner import NoResult


def profile_of(plan: Config) -> Profile:
    """The plan's profile with its overrides and its budget. ProfileError on what is wrong with it."""
    chosen = config.load(plan.profile, (), plan.sets)
    return msgspec.structs.replace(chosen, budget_s=60 * plan.budget_min)


def measure(
    plan: Config,
    folder: Path,
    builds: Sequence[Wanted],
    control: Wanted | None,
    command: Sequence[str],
    progress: Callable[[str], None] = lambda _: None,
) -> Night:
    """Measures a matrix, compares it with the last good night, and writes both pages.

    A night without valid data is stored too, says so, and compares with nothing. StoreError: another night is running
    in this folder, or it can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / records.LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise store.StoreError(f"another night is running in {folder}") from None
        nights = records.stored(folder, plan.accept)
        out = folder / records.FOLDER / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        if nights and nights[-1].id >= out.name:
            raise store.StoreError(f"the last night, {nights[-1].id}, is of the future: a clock is, or was, wrong")
        chosen = profile_of(plan)
        last, before = _last(folder, nights)

        def suspects(matrix: Matrix, known: steps.Values) -> set[str]:
            """Builds to be looked at again before anybody is told that they are worse."""
            if before is None or judge.apart(before[:2], (matrix, stored_runs(out, matrix))):
                return set()
            return judge.suspects(judge.shifts((before[0], before[2]), (matrix, known)))

        measuring = Measuring(out, chosen, plan.adapter, tuple(command), progress, explain=False, suspects=suspects)
        broke = ""
        try:
            measuring.run(builds, control)
        except NoResult as error:
            broke = str(error)
        finally:
            matrix_page.render(out)
            night = judged(out, last, before, broke)
            store.write_json(out / records.NIGHT, night)
            page.render(folder, plan.accept)
        return night


Before = tuple[Matrix, dict[str, Run], steps.Values]


def _last(folder: Path, nights: Sequence[Night]) -> tuple[Night | None, Before | None]:
    """The last good night whose matrix can be read."""
    for night in reversed(nights):
        if night.good:
            with contextlib.suppress(store.StoreError):
                return night, _read(folder / records.FOLDER / night.id)
    return None, None


def _read(place: Path) -> Before:
    matrix = store.read(place / matrix_records.MATRIX, Matrix)
    runs = stored_runs(place, matrix)
    return matrix, runs, steps.values(runs)


def judged(out: Path, last: Night | None, before: Before | None, broke: str = "") -> Night:
    """What a stored matrix says as a night after the last good one."""
    matrix, runs, known = _read(out)
    changes = store.read(out / matrix_records.CHANGES, Changes)
    rows = [one for one in matrix.builds if not one.swapped]
    slots = tuple(
        Slot(name=one.name, version=one.version, sha256=one.sha256, driver_sha256=one.driver_sha256, why=one.why)
        for one in rows
    )
    lost: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    shifts: tuple[records.Shift, ...] = ()
    if why := broke or judge.invalid(matrix, known):
        state = State.invalid
    elif last is None or before is None:
        state, why = State.first, "there is no earlier night to compare with"
    else:
        had = {one.name for one in last.builds if not one.why}
        lost = tuple(one.name for one in rows if one.name in had and (one.why or one.name not in known.by_build))
        forbids = judge.apart(before[:2], (matrix, runs))
        environment = (*forbids, *_other_builds(last, slots))
        if not forbids:
            shifts = tuple(judge.shifts((before[0], before[2]), (matrix, known)))
            forbids = [] if shifts else ["no cost is known of both"]
        state, why = _state(forbids, shifts, [_gone(name, last, slots, runs.get(name)) for name in lost])
    return Night(
        schema=SCHEMA,
        id=out.name,
        started=matrix.started,
        ended=matrix.ended,
        state=state,
        exit=exit_of(state),
        why=why,
        compared_with=last.id if last is not None and state not in (State.invalid, State.apart) else "",
        error=judge.ERROR,
        environment=environment,
        builds=slots,
        lost=lost,
        shifts=shifts,
        steps=sum(change.confirmed for change in changes.changes),
    )


def exit_of(state: State) -> Exit:
    """The contract's exit code of a night."""
    return {State.worse: Exit.worse, State.invalid: Exit.no_result, State.lost: Exit.no_result}.get(state, Exit.fine)


def _gone(name: str, last: Night, slots: Sequence[Slot], run: Run | None) -> str:
    """A lost build with both versions, and its last launch's own words, which tell the flags where no adapter came."""
    was, now = (next(one for one in side if one.name == name) for side in (last.builds, slots))
    said = run.launches[-1].detail if run is not None else ""
    return f"{name} ({was.version} then, {now.version or 'absent'} now: {said or now.why or 'no figures'})"


def _state(forbids: Sequence[str], shifts: Sequence[records.Shift], lost: Sequence[str]) -> tuple[State, str]:
    """What weighs most, and why in a line: it tells a loss beside whatever else there is."""
    gone = f"builds that had figures have none: {', '.join(lost)}" if lost else ""
    worse = [one for one in shifts if one.worse]
    if worse:
        first = max(worse, key=lambda one: one.ratio.value)
        told = f"most of all {first.metric} of {first.build}: {matrix_page.times(first.ratio)}"
        state, why = State.worse, f"{words.counted(len(worse), 'cost')} worse, {told}"
    elif forbids:
        state, why = State.apart, f"not comparable with the last good night: {'; '.join(forbids)}"
    else:
        state, why = State.fine, f"none of {words.counted(len(shifts), 'cost')} is worse; {_power(shifts)}"
    if state is State.worse or not gone:
        return state, "; ".join(filter(None, (why, gone)))
    return State.lost, f"{gone}; {why}"


def _power(shifts: Sequence[records.Shift]) -> str:
    """What could have been missed: a night that is fine says little where its intervals are wide."""
    highs = sorted(one.ratio.ci_high for one in shifts)
    half, most = (words.number(value) for value in (highs[len(highs) // 2], highs[-1]))
    return f"by their intervals half could be up to {half} times what they were, and any up to {most}"


def _other_builds(last: Night, slots: Sequence[Slot]) -> tuple[str, ...]:
    """Builds whose executable or driver is another than it was, which is what a night is there to price; and those
    that are no longer asked for.
    """
    had, have = ({one.name: one for one in side} for side in (last.builds, slots))
    changed = [
        f"{name}: {_told(had[name])} then, {_told(one)} now"
        for name, one in have.items()
        if name in had and one.sha256 and had[name].sha256 and _told(one) != _told(had[name])
    ]
    return (*changed, *(f"{name} is no longer among the builds" for name in had if name not in have))


def _told(one: Slot) -> str:
    return f"{one.version} ({one.sha256[:8]}, driver {one.driver_sha256[:8] or 'of the system'})"
