"""Is tonight worse than the last good night? Pure: from two stored matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import structs

from rig import stats
from rig.compare import ALPHA, MARGIN, MOST_FAILED, welch
from rig.frames import Run
from rig.matrix.records import Matrix, Stage
from rig.matrix.steps import LEAST_ROUNDS, Values, numbers, ratio, watched
from rig.nights.records import Shift
from rig.report import words
from rig.stats import Contrast, Floats

ERROR = (
    "Each build's cost is taken over the control's, round by round, so that what the machine does to both drops out; "
    "the rounds of the two nights are independent samples (Welch). Of nights alike, any comes out worse or better with "
    f"a probability of at most {words.level(ALPHA)}, as far as rounds of one night scatter as those of two nights do; "
    "what is found must come out so once more in rounds of its own."
)
"""What the verdicts of a night are worth."""

Side = tuple[Matrix, Values]


def invalid(matrix: Matrix, known: Values) -> str:
    """Why a night as a whole compares with nothing, or nothing."""
    rows = [one for one in matrix.builds if not one.swapped]
    absent = [one for one in rows if one.name not in known.by_build]
    if not rows or len(absent) > MOST_FAILED * len(rows):
        why = next((one.why for one in absent if one.why), matrix.why)
        return f"{len(absent)} of its {len(rows)} builds have no figures, the first: {why}"
    if matrix.control is not None and matrix.control.name not in known.by_build:
        return f"its control {matrix.control.name} has no figures: {matrix.control.why or matrix.why}"
    if len(numbers(matrix, Stage.search)) < LEAST_ROUNDS:
        return f"it has fewer than {words.counted(LEAST_ROUNDS, 'round')}: {matrix.why}"
    return ""


def apart(before: tuple[Matrix, dict[str, Run]], after: tuple[Matrix, dict[str, Run]]) -> list[str]:
    """In what two nights differ that forbids to compare them: then no figure is called worse."""
    (old, old_runs), (new, new_runs) = before, after
    found = []
    for what, (x, y) in {
        "adapter": (_adapters(old_runs), _adapters(new_runs)),
        "machine": (_machines(old_runs), _machines(new_runs)),
        "control": tuple(one.control.sha256 if one.control else "none" for one in (old, new)),
    }.items():
        if x != y:
            found.append(f"{what}: {_told(x)} then, {_told(y)} now")
    return found


def _adapters(runs: dict[str, Run]) -> set[str]:
    adapters = [launch.adapter for run in runs.values() for launch in run.launches if launch.adapter is not None]
    return {f"{'software' if one.is_fallback else 'hardware'} {one.renderer or 'unnamed'}" for one in adapters}


def _machines(runs: dict[str, Run]) -> set[str]:
    return {f"{run.manifest.host.cpu}, {run.manifest.host.cores} cores" for run in runs.values()}


def _told(what: object) -> str:
    return ", ".join(sorted(what)) if isinstance(what, set) else str(what)[:16]


def shifts(before: Side, after: Side) -> list[Shift]:
    """Every watched figure of every build that both nights have, tonight over then.

    How, and how sure, ERROR says.
    """
    (old, then), (new, now) = before, after
    control = new.control.name if new.control else ""
    builds = [b.name for b in new.builds if not b.swapped and b.name in then.by_build and b.name in now.by_build]
    found: list[Shift] = []
    for build in builds:
        for key, metric in now.metrics.items():
            if not watched(metric) or key not in then.metrics or (build == control and len(builds) > 1):
                continue
            x = _over_control(then, build, control, key, numbers(old, Stage.search))
            y = _over_control(now, build, control, key, numbers(new, Stage.search))
            if x.size < LEAST_ROUNDS or y.size < LEAST_ROUNDS:
                continue
            shift = welch(x, y)
            sides = [v.mean(build, key, numbers(m, Stage.search)) for v, m in ((then, old), (now, new))]
            found.append(
                Shift(
                    build=build,
                    metric=key,
                    unit=metric.unit,
                    before=sides[0],
                    after=sides[1],
                    ratio=ratio(shift),
                    p=shift.p,
                )
            )
    adjusted = stats.holm([one.p for one in found])
    return _confirmed(before, after, [structs.replace(one, p=p) for one, p in zip(found, adjusted, strict=True)])


def suspects(found: Sequence[Shift]) -> set[str]:
    """Builds of which a figure seems to have changed."""
    return {one.build for one in found if _suspect(one)}


def _suspect(one: Shift) -> bool:
    beyond = one.ratio.ci_low > 1 + MARGIN or one.ratio.ci_high < 1 / (1 + MARGIN)
    return one.p <= ALPHA and beyond


def _confirmed(before: Side, after: Side, found: Sequence[Shift]) -> list[Shift]:
    (old, then), (new, now) = before, after
    control = new.control.name if new.control else ""
    again: dict[int, Contrast] = {}
    for index, one in enumerate(found):
        if _suspect(one):
            x = _over_control(then, one.build, control, one.metric, numbers(old, Stage.search))
            y = _over_control(now, one.build, control, one.metric, numbers(new, Stage.confirm))
            if y.size >= LEAST_ROUNDS:
                again[index] = welch(x, y)
    p_again = dict(zip(again, stats.holm([shift.p for shift in again.values()]), strict=True))
    made = []
    for index, one in enumerate(found):
        if index in again:
            sure = p_again[index] <= ALPHA and (again[index].value > 0) == (one.ratio.value > 1)
            up = one.ratio.value > 1
            one = structs.replace(one, p_confirmed=p_again[index], worse=sure and up, better=sure and not up)
        made.append(one)
    return made


def _over_control(known: Values, build: str, control: str, key: str, rounds: Sequence[int]) -> Floats:
    """Logarithms, one a round that has them."""
    rows = known.table([build, control] if control and control != build else [build], key, rounds)
    values = rows[0] - rows[1] if len(rows) == 2 else rows[0]
    return np.asarray(values[np.isfinite(values)], dtype=np.float64)
