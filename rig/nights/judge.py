"""Is tonight worse than the last good night? Pure: from two stored matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import structs

from rig import likeness, stats
from rig.compare import ALPHA, MARGIN, MOST_FAILED, welch
from rig.frames import Run
from rig.matrix.records import Build, Matrix, Ratio, Stage
from rig.matrix.steps import LEAST_ROUNDS, Values, numbers, ratio, watched
from rig.nights.records import Shift
from rig.report import words
from rig.stats import Contrast, Floats

ERROR = (
    "Each build's cost is taken over the control's, round by round, so that what the machine does to both drops out; "
    "the rounds of the two nights are independent samples (Welch). Of nights alike, any comes out worse or better with "
    f"a probability of at most {words.level(ALPHA)}, as far as rounds of one night scatter as those of two nights do; "
    "what is found must come out so once more, beyond the margin, in rounds that tonight has for that alone. The "
    "earlier night's rounds are the same both times: by what chance did to them, both may be misled."
)
"""What the verdicts of a night are worth."""

Side = tuple[Matrix, Values]


def invalid(matrix: Matrix, known: Values) -> str:
    """Why a night as a whole compares with nothing, or nothing."""
    if not matrix.finished:
        return f"it did not finish: {matrix.why}"
    rows = [one for one in matrix.builds if not one.swapped]
    absent = [one for one in rows if one.name not in known.by_build]
    if not rows or len(absent) > MOST_FAILED * len(rows):
        why = next((one.why for one in absent if one.why), matrix.why)
        return f"{len(absent)} of its {len(rows)} builds have no figures, the first: {why}"
    rounds = numbers(matrix, Stage.search)
    if len(rounds) < LEAST_ROUNDS:
        return f"it has fewer than {words.counted(LEAST_ROUNDS, 'round')}: {matrix.why}"
    if matrix.control is not None and _most_values(known, matrix.control.name, rounds) < LEAST_ROUNDS:
        return (
            f"its control {matrix.control.name} has figures in fewer than {words.counted(LEAST_ROUNDS, 'round')}: "
            f"{matrix.control.why or matrix.why}"
        )
    return ""


def _most_values(known: Values, build: str, rounds: Sequence[int]) -> int:
    """In how many rounds a build has the figure that it has most often."""
    return max((len(at.keys() & set(rounds)) for at in known.by_build.get(build, {}).values()), default=0)


def apart(before: tuple[Matrix, dict[str, Run]], after: tuple[Matrix, dict[str, Run]]) -> list[str]:
    """In what two nights differ that forbids to compare them: then no figure is called worse."""
    found = []
    for what, tell in _KINDS.items():
        x, y = (tell(matrix, runs) for matrix, runs in (before, after))
        if x != y:
            found.append(f"{what}: {_only(x, y)} then, {_only(y, x)} now")
    return found


def _only(ours: set[str], theirs: set[str]) -> str:
    return ", ".join(sorted(ours - theirs)) or "the rest alone"


def _control(matrix: Matrix, _: dict[str, Run]) -> set[str]:
    one = matrix.control
    return {f"{one.version} {one.sha256[:16]}, driver {one.driver_sha256[:16] or 'of the system'}" if one else "none"}


def _plan(_: Matrix, runs: dict[str, Run]) -> set[str]:
    """What is asked of every launch; how many there are, and in how much time, may differ."""
    plans = (likeness.plan(run.manifest) for run in runs.values())
    return {f"{name} {value}" for plan in plans for name, value in plan.items() if name not in _MAY_DIFFER}


def _adapters(runs: dict[str, Run]) -> set[str]:
    adapters = [launch.adapter for run in runs.values() for launch in run.launches if launch.adapter is not None]
    return {f"{'software' if one.is_fallback else 'hardware'} {one.renderer or 'unnamed'}" for one in adapters}


def _machines(runs: dict[str, Run]) -> set[str]:
    return {f"{run.manifest.host.cpu}, {run.manifest.host.cores} cores" for run in runs.values()}


_KINDS: dict[str, Callable[[Matrix, dict[str, Run]], set[str]]] = {
    "adapter": lambda _, runs: _adapters(runs),
    "machine": lambda _, runs: _machines(runs),
    "control": _control,
    "plan": _plan,
}

_MAY_DIFFER = ("name", "seed", "budget_s", "launches", "precision")


def shifts(before: Side, after: Side) -> list[Shift]:
    """Every watched figure of every build that both nights have, tonight over then.

    How, and how sure, ERROR says.
    """
    (old, then), (new, now) = before, after
    pairs = _pairs(old, new)
    found: list[Shift] = []
    for was, build in pairs:
        if build.control and len(pairs) > 1:
            continue
        for key, metric in now.metrics.items():
            if not watched(metric):
                continue
            x = _over_control(old, then, was.name, key, Stage.search)
            y = _over_control(new, now, build.name, key, Stage.search)
            if x.size < LEAST_ROUNDS or y.size < LEAST_ROUNDS:
                continue
            shift = welch(x, y)
            found.append(
                Shift(
                    build=build.name,
                    metric=key,
                    unit=metric.unit,
                    before=then.mean(was.name, key, numbers(old, Stage.search)),
                    after=now.mean(build.name, key, numbers(new, Stage.search)),
                    ratio=ratio(shift),
                    found=ratio(shift),
                    p=shift.p,
                )
            )
    adjusted = stats.holm([one.p for one in found])
    found = [structs.replace(one, p=p) for one, p in zip(found, adjusted, strict=True)]
    return _looked_again(before, after, {build.name: was.name for was, build in pairs}, found)


def _pairs(old: Matrix, new: Matrix) -> list[tuple[Build, Build]]:
    """The builds of then, each with that of tonight which stands for it."""
    had, have = ([one for one in matrix.builds if not one.swapped] for matrix in (old, new))
    pairs = ((_counterpart(one, had, have), one) for one in have)
    return [(was, one) for was, one in pairs if was is not None and was.control == one.control]


def _counterpart(one: Build, had: Sequence[Build], have: Sequence[Build]) -> Build | None:
    """The control of then for the control; else the build of this name; else, since a patch release renames what a
    range finds, the only one of its provider's major version.
    """
    if one.control:
        return next((was for was in had if was.control), None)
    named = next((was for was in had if was.name == one.name), None)
    alike = [was for was in had if _line(was) == _line(one)]
    only = len(alike) == 1 and sum(_line(other) == _line(one) for other in have) == 1
    return named or (alike[0] if only else None)


def _line(build: Build) -> tuple[str, str]:
    """Provider and major version."""
    return build.name.partition(":")[0], build.version.partition(".")[0]


def suspects(found: Sequence[Shift]) -> set[str]:
    """Builds of which a figure seems to have changed."""
    return {one.build for one in found if _suspect(one)}


def _suspect(one: Shift) -> bool:
    return one.p <= ALPHA and _beyond(one.found)


def _beyond(one: Ratio) -> bool:
    return one.ci_low > 1 + MARGIN or one.ci_high < 1 / (1 + MARGIN)


def _looked_again(before: Side, after: Side, was: Mapping[str, str], found: Sequence[Shift]) -> list[Shift]:
    """With what tonight's second set of rounds says of those that seem to have changed."""
    (old, then), (new, now) = before, after
    again: dict[int, Contrast] = {}
    for index, one in enumerate(found):
        if _suspect(one):
            x = _over_control(old, then, was[one.build], one.metric, Stage.search)
            y = _over_control(new, now, one.build, one.metric, Stage.confirm)
            if x.size >= LEAST_ROUNDS and y.size >= LEAST_ROUNDS:
                again[index] = welch(x, y)
    p_again = dict(zip(again, stats.holm([shift.p for shift in again.values()]), strict=True))
    return [_settled(one, again.get(index), p_again.get(index)) for index, one in enumerate(found)]


def _settled(one: Shift, again: Contrast | None, p: float | None) -> Shift:
    if again is None or p is None:
        return one
    told = ratio(again)
    sure = p <= ALPHA and _beyond(told) and (told.value > 1) == (one.found.value > 1)
    up = told.value > 1
    return structs.replace(one, ratio=told, p_confirmed=p, worse=sure and up, better=sure and not up)


def _over_control(matrix: Matrix, known: Values, build: str, key: str, stage: Stage) -> Floats:
    """Logarithms, one a round that has them."""
    control = matrix.control
    names = [build, control.name] if control is not None and control.name != build else [build]
    rows = known.table(names, key, numbers(matrix, stage))
    values = rows[0] - rows[1] if len(rows) == 2 else rows[0]
    return np.asarray(values[np.isfinite(values)], dtype=np.float64)
