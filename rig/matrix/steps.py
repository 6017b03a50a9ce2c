"""Between which builds does which figure change, how sure is that, and what is to blame? Pure: from stored runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs

from rig import analysis, stats
from rig.compare import ALPHA, MARGIN, as_one
from rig.frames import Run
from rig.matrix import traces
from rig.matrix.records import Build, Cause, Change, Changes, Figure, Matrix, Moved, Ratio, Stage, Summary, Trace
from rig.records import SCHEMA, Metric
from rig.report import words
from rig.stats import Blocks, Contrast, Floats

LEVEL = 0.95

NOT_SWAPPED = "not looked for (no drivers were swapped)"

LEAST_ROUNDS = 3
"""With fewer rounds that both sides of a step have, nothing is confirmed."""


def watched(metric: Metric) -> bool:
    """Whether steps of it are looked for: what a caller pays, by wall. The others are there to explain those."""
    if metric.metric == "policy.per_dispatch_us":
        return metric.variant.get("clock") == "wall"
    if metric.metric == "anatomy.layer_us":
        return metric.variant == {"policy": "submit_each", "layer": "submit"}
    return metric.metric == "single_op.latency_us" and metric.variant.get("waiter", "work_done") == "work_done"


EXPLAINING = (
    *("policy.cpu_us", "policy.switches", "policy.encode_us", "policy.busy_us", "policy.per_dispatch_us"),
    *("anatomy.submit_cpu_us", "anatomy.submit_switches", "anatomy.layer_us"),
)
"""Figures that are told beside a step."""

MOST_MOVED = 12


@dataclass
class Values:
    """What each build's launches say, by figure and round: all builds analysed as of one run, so that every slope is
    over the same counts.
    """

    metrics: dict[str, Metric] = field(default_factory=dict)
    by_build: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict)

    def row(self, build: str, key: str, rounds: Iterable[int]) -> Floats:
        """One value a round, NaN where there is none."""
        known = self.by_build.get(build, {}).get(key, {})
        return np.array([known.get(number, np.nan) for number in rounds], dtype=np.float64)

    def table(self, builds: Sequence[str], key: str, rounds: Iterable[int]) -> Floats:
        """Logarithms, shape (builds, rounds)."""
        rows = np.array([self.row(build, key, rounds) for build in builds], dtype=np.float64)
        return np.log(np.where(rows > 0, rows, np.nan))

    def mean(self, build: str, key: str, rounds: Iterable[int]) -> float:
        """Geometric, over the rounds that there are."""
        return float(np.exp(np.nanmean(self.table([build], key, rounds))))


def values(runs: Mapping[str, Run]) -> Values:
    """Of every run that has launches that count, by the name of its build."""
    found = Values()
    usable = {name: run for name, run in runs.items() if not run.main.samples.empty and run.main.launches}
    if not usable:
        return found
    whole: Run | None = None
    starts: dict[str, int] = {}
    for name, run in usable.items():
        starts[name] = 0 if whole is None else 1 + max(max(one.launch, one.round) for one in whole.launches)
        whole = run if whole is None else as_one(whole, run, starts[name])
    assert whole is not None
    joint = analysis.summarise(whole)
    found.metrics = {metric.key: metric for metric in joint.metrics if not metric.executor}
    owner: dict[int, tuple[str, int]] = {}
    for name, run in usable.items():
        owner |= {starts[name] + launch.launch: (name, launch.round) for launch in run.main.launches}
    for key, metric in found.metrics.items():
        for launch, value in metric.per_launch.items():
            name, number = owner[int(launch)]
            found.by_build.setdefault(name, {}).setdefault(key, {})[number] = value
    return found


Doubts = Mapping[str, Mapping[str, str]]
"""Why a figure is not to be relied on, by build and figure."""


def doubts(runs: Mapping[str, Run]) -> Doubts:
    """Those of each build's own run."""
    found = {name: analysis.summarise(run).metrics for name, run in runs.items()}
    return {name: {one.key: one.reason for one in metrics if one.reason} for name, metrics in found.items()}


# --- figures -----------------------------------------------------------------------------------------------------


def summary(matrix: Matrix, known: Values, doubted: Doubts | None = None) -> Summary:
    """Watched figures of every build, and each over the control's: the scatter pooled over all builds. `doubted`: what
    `doubts` found.
    """
    names = [one.name for one in matrix.builds if not one.swapped]
    rounds = numbers(matrix, Stage.search)
    control = matrix.control
    figures: list[Figure] = []
    for key, metric in known.metrics.items():
        if not watched(metric):
            continue
        blocks = _blocks(known.table(names, key, rounds))
        for index, name in enumerate(names):
            row = known.row(name, key, rounds)
            row = row[np.isfinite(row) & (row > 0)]
            if row.size < 2:
                continue
            interval = stats.geometric_interval(row, LEVEL)
            apart = None
            if blocks is not None and control is not None and name != control.name:
                apart = blocks.contrast(names.index(control.name), index)
            figures.append(
                Figure(
                    build=name,
                    metric=key,
                    unit=metric.unit,
                    value=interval.value,
                    ci_low=interval.low,
                    ci_high=interval.high,
                    n_launches=row.size,
                    to_control=ratio(apart) if apart is not None else None,
                    doubt=(doubted or {}).get(name, {}).get(key, ""),
                )
            )
    return Summary(schema=SCHEMA, control=control.name if control else "", builds=matrix.builds, figures=tuple(figures))


# --- steps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A figure that seems to change between two neighbours."""

    key: str
    before: Build
    after: Build
    shift: Contrast
    p: float


def search(matrix: Matrix, known: Values) -> tuple[list[Candidate], int]:
    """The steps that the rounds of the search show, and how many were looked for.

    Neighbours by version are those that have the figure in at least half of the rounds: one that died hides no step
    between those around it. Of builds all alike, any comes out with a probability of at most ALPHA (Holm over all
    neighbours and figures); a change smaller than MARGIN is not worth mentioning.
    """
    rounds = numbers(matrix, Stage.search)
    rows = [one for one in matrix.builds if not one.swapped]
    tested: list[tuple[str, Build, Build, Contrast]] = []
    for key, metric in known.metrics.items():
        if not watched(metric):
            continue
        table = known.table([one.name for one in rows], key, rounds)
        blocks = _blocks(table)
        if blocks is None:
            continue
        have = [i for i, row in enumerate(table) if np.isfinite(row).sum() >= max(2, len(rounds) / 2)]
        for i, j in itertools.pairwise(have):
            if (shift := blocks.contrast(i, j)) is not None:
                tested.append((key, rows[i], rows[j], shift))
    adjusted = stats.holm([shift.p for *_, shift in tested])
    found = [
        Candidate(key, before, after, shift, p)
        for (key, before, after, shift), p in zip(tested, adjusted, strict=True)
        if p <= ALPHA and abs(shift.value) > np.log1p(MARGIN)
    ]
    return found, len(tested)


def changes(matrix: Matrix, known: Values, traced: Sequence[Trace] = (), doubted: Doubts | None = None) -> Changes:
    """Every step, whether the second set of rounds confirms it, its cause as far as the swapped drivers show it, what
    traces of both sides show, and what is to be doubted of its figure.
    """
    found, tests = search(matrix, known)
    rounds = numbers(matrix, Stage.confirm)
    again = [_again(matrix, known, one) for one in found]
    looked_at = [index for index, shift in enumerate(again) if shift is not None]
    p_again = dict(zip(looked_at, stats.holm([_p(again[i]) for i in looked_at]), strict=True))
    return Changes(
        schema=SCHEMA,
        method=(
            "Every round launches each build once, in random order. Logarithms of each figure are build + round + "
            "error, the scatter pooled over all builds; neighbours are compared by t. A step found so is looked at "
            "again, in rounds of its own with both sides of every step found, by the same comparison."
        ),
        error=(
            f"Of builds all alike, any of {words.counted(tests, 'comparison')} comes out as a step with a probability "
            f"of at most {words.level(ALPHA)} (Holm), as far as builds scatter alike; to be confirmed it must come "
            f"out once more, the same way, at {words.level(ALPHA)} over all that are looked at again."
        ),
        alpha=ALPHA,
        margin=MARGIN,
        tests=tests,
        rounds=len(numbers(matrix, Stage.search)),
        rounds_confirming=len(rounds),
        changes=tuple(
            structs.replace(
                _change(matrix, known, one, shift, p_again.get(index), traced), doubts=_doubts(one, doubted or {})
            )
            for index, (one, shift) in enumerate(zip(found, again, strict=True))
        ),
    )


def _change(
    matrix: Matrix,
    known: Values,
    one: Candidate,
    again: Contrast | None,
    p: float | None,
    traced: Sequence[Trace],
) -> Change:
    metric = known.metrics[one.key]
    settled = again or one.shift
    stage = Stage.confirm if again is not None else Stage.search
    sides = [known.mean(build.name, one.key, numbers(matrix, stage)) for build in (one.before, one.after)]
    same_way = again is not None and np.sign(again.value) == np.sign(one.shift.value)
    confirmed = bool(p is not None and p <= ALPHA and same_way)
    return Change(
        metric=metric.metric,
        variant=metric.variant,
        unit=metric.unit,
        build_before=one.before.name,
        build_after=one.after.name,
        version_before=one.before.version,
        version_after=one.after.version,
        before=sides[0],
        after=sides[1],
        ratio=ratio(settled),
        found=ratio(one.shift),
        p=one.p,
        confirmed=confirmed,
        p_confirmed=p,
        cause=cause(matrix, known, one) if confirmed else Cause(told="not looked for (the step is not confirmed)"),
        moved=_moved(known, one, numbers(matrix, stage)),
        traced=traces.between(traced, one.key, one.before.name, one.after.name) if confirmed else None,
    )


def _doubts(one: Candidate, doubted: Doubts) -> tuple[str, ...]:
    """Of both sides, each with its build."""
    sides = ((side.name, doubted.get(side.name, {}).get(one.key, "")) for side in (one.before, one.after))
    return tuple(f"{name}: {why}" for name, why in sides if why)


def _again(matrix: Matrix, known: Values, one: Candidate) -> Contrast | None:
    """The same pair in the rounds that had no part in its choice; None where too few of them have both sides."""
    rounds = numbers(matrix, Stage.confirm)
    names = list(dict.fromkeys(name for stage in matrix.of(Stage.confirm) for name in stage.builds))
    if not {one.before.name, one.after.name} <= set(names):
        return None
    table = known.table(names, one.key, rounds)
    i, j = names.index(one.before.name), names.index(one.after.name)
    blocks = _blocks(table)
    if blocks is None or min(np.isfinite(table[k]).sum() for k in (i, j)) < LEAST_ROUNDS:
        return None
    return blocks.contrast(i, j)


def _paired(known: Values, key: str, weights: Mapping[str, float], rounds: Sequence[int]) -> Contrast | None:
    """A weighted sum of builds, round by round; None where too few rounds have them all."""
    if not rounds:
        return None
    table = known.table(list(weights), key, rounds)
    apart = np.array(list(weights.values())) @ table
    apart = apart[np.isfinite(apart)]
    if apart.size < LEAST_ROUNDS:
        return None
    return Contrast(float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(apart.size)), apart.size - 1)


# --- causes ------------------------------------------------------------------------------------------------------


def swapped_name(build: Build, driver: Build) -> str:
    return f"{build.name}@{driver.name}"


def cause(matrix: Matrix, known: Values, one: Candidate) -> Cause:
    """Of a step between A and B: other ways to put browser and driver together say which of the two changed it."""
    a, b = one.before, one.after
    if a.driver_sha256 and a.driver_sha256 == b.driver_sha256:
        return Cause(told="the browser (both bring the same software driver)")
    rounds = numbers(matrix, Stage.swap)
    ways = {"browser": _by_browser(a, b), "driver": _by_driver(a, b)}
    parts = {part: _first(known, one.key, weights, rounds) for part, weights in ways.items()}
    browser, driver = parts["browser"], parts["driver"]
    if browser is None or driver is None:
        mixed = (swapped_name(a, b), swapped_name(b, a))
        broken = next((build.why for build in matrix.builds if build.name in mixed and build.why), "")
        if broken:
            return Cause(told=f"not shown (drivers could not be swapped: {broken})")
        return Cause(told="not looked for (too few rounds with the drivers swapped)" if rounds else NOT_SWAPPED)
    told = [name for name, shift in (("browser", browser), ("software driver", driver)) if _explains(shift, one.shift)]
    return Cause(
        told=f"the {' and the '.join(told)}" if told else "not shown (neither part is told from none)",
        browser=ratio(browser),
        driver=ratio(driver),
    )


Weights = dict[str, float]


def _by_browser(a: Build, b: Build) -> tuple[Weights, ...]:
    """Another browser with the same driver: with both drivers, or, where one can't be swapped, with the other alone."""
    b_on_a, a_on_b = swapped_name(b, a), swapped_name(a, b)
    both = {a.name: -0.5, b_on_a: 0.5, a_on_b: -0.5, b.name: 0.5}
    return both, {a_on_b: -1.0, b.name: 1.0}, {a.name: -1.0, b_on_a: 1.0}


def _by_driver(a: Build, b: Build) -> tuple[Weights, ...]:
    """Another driver with the same browser, likewise."""
    b_on_a, a_on_b = swapped_name(b, a), swapped_name(a, b)
    both = {a.name: -0.5, a_on_b: 0.5, b_on_a: -0.5, b.name: 0.5}
    return both, {a.name: -1.0, a_on_b: 1.0}, {b_on_a: -1.0, b.name: 1.0}


def _first(known: Values, key: str, ways: Iterable[Weights], rounds: Sequence[int]) -> Contrast | None:
    """By the first way that there are rounds of."""
    return next((shift for weights in ways if (shift := _paired(known, key, weights, rounds)) is not None), None)


def _explains(part: Contrast, whole: Contrast) -> bool:
    """Whether a part goes the way of the whole, beyond chance, and is worth mentioning."""
    low, high = part.interval(LEVEL)
    same_way = low > 0 if whole.value > 0 else high < 0
    return same_way and abs(part.value) > np.log1p(MARGIN)


def _moved(known: Values, one: Candidate, rounds: Sequence[int]) -> tuple[Moved, ...]:
    """Figures of the same policy, or of a bare submit, that moved across the step too: the most certain ones first."""
    policy = known.metrics[one.key].variant.get("policy")
    found: list[tuple[float, Moved]] = []
    for key, metric in known.metrics.items():
        about = metric.variant.get("policy") in (policy, None) or metric.metric.startswith("anatomy")
        if metric.metric not in EXPLAINING or not about or key == one.key:
            continue
        both = _both(known, key, one, rounds)
        shift = _paired(known, key, {one.before.name: -1, one.after.name: 1}, both)
        if shift is None or shift.p > 1 - LEVEL or abs(shift.value) < np.log1p(MARGIN):
            continue
        before, after = (known.mean(build.name, key, both) for build in (one.before, one.after))
        found.append((shift.p, Moved(metric=key, unit=metric.unit, before=before, after=after, ratio=ratio(shift))))
    return tuple(moved for _, moved in sorted(found, key=lambda pair: pair[0])[:MOST_MOVED])


def _both(known: Values, key: str, one: Candidate, rounds: Sequence[int]) -> list[int]:
    """The rounds in which both sides have a figure, so that values and ratio are of the same."""
    table = known.table([one.before.name, one.after.name], key, rounds)
    return [number for number, pair in zip(rounds, table.T, strict=True) if np.isfinite(pair).all()]


# --- small parts -------------------------------------------------------------------------------------------------


def numbers(matrix: Matrix, stage: Stage) -> list[int]:
    """The rounds of a stage."""
    return [number for one in matrix.of(stage) for number in range(one.first, one.last + 1)]


def _blocks(table: Floats) -> Blocks | None:
    try:
        return Blocks(table)
    except ValueError:
        return None


def ratio(shift: Contrast) -> Ratio:
    """A difference of logarithms as a ratio."""
    low, high = shift.interval(LEVEL)
    return Ratio(value=float(np.exp(shift.value)), ci_low=float(np.exp(low)), ci_high=float(np.exp(high)))


def _p(shift: Contrast | None) -> float:
    assert shift is not None
    return shift.p
