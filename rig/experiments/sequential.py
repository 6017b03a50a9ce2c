"""sequential: n dispatches, one wait. The slope of time on n is what a dispatch costs; the fixed part is the wait."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rig import figures, stats
from rig.claims import no_figure
from rig.experiments.base import CountLadder, Experiment, LadderOptions, PolicyNames, ladder_cells
from rig.frames import Run
from rig.ladder import Ladder, back_pressure, pair, ratio
from rig.records import Metric, MetricOutcome, Positive, Verdict, VerdictOutcome

ID = "sequential"
NO_SUBMIT_EACH = "this run has no submit_each in its sequential experiment"


class SequentialOptions(LadderOptions, frozen=True, kw_only=True):
    """`counts`: the ladder, at least four rising counts from 1; `policies`: by name, see rig.policies."""

    blocks: Positive = 12
    counts: CountLadder = (*(1, 2, 5, 10, 20, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1400, 2000),)
    policies: PolicyNames = ("submit_each", "one_pass")


def compute(run: Run, options: SequentialOptions) -> list[Metric]:
    """Slopes by span and by wall, the fixed part, the published estimator, and how much the naive one overstates."""
    return [metric for name in options.policies for metric in _of(run, name)]


def _of(run: Run, name: str) -> list[Metric]:
    rows = run.rows(ID, policy=name)
    good = run.counted(rows)
    if none := figures.no_slope(run, rows, ID):
        reason, outcome = none
        if counts := good["n"].nunique():
            reason = f"samples of {counts} counts count, a slope needs {stats.LEAST_COUNTS}; {reason}"
        return [
            figures.missing(ID, f"sequential.{metric}", {"policy": name}, unit, reason, outcome)
            for metric, unit in (
                ("per_dispatch_us", "us"),
                ("fixed_us", "us"),
                ("total_over_n_us", "us"),
                ("naive_over_true", "ratio"),
            )
        ]
    primary, by_span, by_wall = pair(ID, {"policy": name}, good)
    found = [by_span.per_dispatch(), by_wall.per_dispatch()]
    found += [by_wall.fixed(), figures.total_over_n(run, ID, name, good), _naive_over_true(run, name, good, primary)]
    found += _parts(name, good, primary)
    found += [*(range_ for ladder in (by_span, by_wall) if ladder.stamped for range_ in ladder.fitted())]
    found += [*by_wall.knee(), *back_pressure(ID, name, good), *primary.modes()]
    if by_span.stamped:
        found.append(ratio("sequential.wall_over_span", {"policy": name}, by_wall, by_span))
    return found


def _naive_over_true(run: Run, name: str, good: pd.DataFrame, primary: Ladder) -> Metric:
    """Mean time of one waited dispatch over the slope by the primary clock, launch by launch."""
    metric, variant = "sequential.naive_over_true", {"policy": name}
    single = good[good["n"] == 1]
    if single.empty:
        return figures.missing(ID, metric, variant, "ratio", *figures.why_none(run, run.rows(ID, policy=name, n=1), ID))
    over = single.groupby("launch")["wall_us"].mean() / primary.slopes()
    return figures.over_launches(ID, metric, variant, "ratio", over, len(single), doubt=primary.doubt)


def _parts(name: str, good: pd.DataFrame, primary: Ladder) -> list[Metric]:
    """The flattest and the steepest slope that any part of the ladder has, above the knee; and one waited dispatch over
    the steepest. Where a ladder is not straight, these hold what no single slope tells.
    """
    windows = primary.series.windows
    means = np.nanmean(windows, axis=1)
    single = good[good["n"] == 1].groupby("launch")["wall_us"].mean()
    found = []
    for part, chosen in (("flattest", int(means.argmin())), ("steepest", int(means.argmax()))):
        slopes = pd.Series(windows[chosen], index=primary.labels, dtype=float)
        variant: figures.Variant = {"policy": name, "part": part}
        found.append(_with_doubt("part_us", variant, "us", slopes, primary))
        if part == "steepest" and not single.empty:
            over = (single / slopes).dropna()
            found.append(_with_doubt("naive_over_steepest", {"policy": name}, "ratio", over, primary))
    return found


def _with_doubt(metric: str, variant: figures.Variant, unit: str, values: pd.Series[float], primary: Ladder) -> Metric:
    """That a ladder is not straight is no doubt here; that the clocks contradict each other is."""
    return figures.over_launches(
        ID, f"sequential.{metric}", variant, unit, values, len(primary.rows), doubt=primary.distrust
    )


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C1 and C2, each from the interval of the figure of submit_each."""
    by_name = {(m.metric, m.variant.get("policy"), m.variant.get("clock")): m for m in metrics}
    naive = by_name.get(("sequential.naive_over_true", "submit_each", None))
    slopes = [by_name.get(("sequential.per_dispatch_us", "submit_each", clock)) for clock in ("span", "wall")]
    slope = next((m for m in slopes if m is not None and m.outcome is not MetricOutcome.not_supported), None)
    steepest = by_name.get(("sequential.naive_over_steepest", "submit_each", None))
    parts = [m for m in metrics if m.metric == "sequential.part_us" and m.variant["policy"] == "submit_each"]
    return [claim_naive(naive, steepest), claim_tens(slope, parts)]


def claim_naive(naive: Metric | None, steepest: Metric | None = None) -> Verdict:
    """C1: one dispatch timed with its wait overstates its cost. Holds where the whole interval is above 1; where the
    ladder is not straight, if even the steepest part of it costs less.
    """
    if naive is None or naive.value is None or naive.ci_low is None or naive.ci_high is None:
        return no_figure("C1", naive, NO_SUBMIT_EACH)
    told = figures.told(naive, "times")
    statement = f"one dispatch timed with its wait takes {told} the slope; published: about 20 times"
    if naive.outcome is MetricOutcome.unresolved:
        if steepest is not None and steepest.outcome is MetricOutcome.ok and (steepest.ci_low or 0) > 1:
            told = f"even of the steepest part of the ladder, {figures.told(steepest, 'times')}"
            return _verdict("C1", VerdictOutcome.holds, f"{statement}; {told}; {naive.reason}", naive, steepest)
        return _verdict("C1", VerdictOutcome.unresolved, f"{statement}; {naive.reason}", naive)
    if naive.ci_low > 1:
        return _verdict("C1", VerdictOutcome.holds, statement, naive)
    outcome = VerdictOutcome.does_not_hold if naive.ci_high <= 1 else VerdictOutcome.unresolved
    return _verdict("C1", outcome, statement, naive)


def claim_tens(slope: Metric | None, parts: Sequence[Metric] = ()) -> Verdict:
    """C2: a dispatch, submitted on its own, costs tens of µs. Holds where the interval is within 10 to 100; where the
    ladder is not straight, if its flattest and its steepest part both are.
    """
    if slope is None or slope.value is None or slope.ci_low is None or slope.ci_high is None:
        return no_figure("C2", slope, NO_SUBMIT_EACH)
    clock = slope.variant["clock"]
    told = figures.told(slope, "µs")
    statement = f"with one submit each, a dispatch costs {told} by the slope of {clock}; published: 24 to 71 µs"
    if slope.outcome is MetricOutcome.unresolved:
        within = [
            m for m in parts if m.outcome is MetricOutcome.ok and (m.ci_low or 0) >= 10 and (m.ci_high or 0) <= 100
        ]
        if len(within) == 2:
            told = " and ".join(f"{figures.told(m, 'µs')} over its {m.variant['part']} part" for m in within)
            return _verdict("C2", VerdictOutcome.holds, f"{statement}; {told}; {slope.reason}", slope, *within)
        return _verdict("C2", VerdictOutcome.unresolved, f"{statement}; {slope.reason}", slope)
    if slope.ci_low >= 10 and slope.ci_high <= 100:
        return _verdict("C2", VerdictOutcome.holds, statement, slope)
    outside = slope.ci_high < 10 or slope.ci_low > 100
    return _verdict("C2", VerdictOutcome.does_not_hold if outside else VerdictOutcome.unresolved, statement, slope)


def _verdict(claim: str, outcome: VerdictOutcome, statement: str, *evidence: Metric) -> Verdict:
    return Verdict(claim=claim, outcome=outcome, statement=statement, evidence=tuple(m.key for m in evidence))


EXPERIMENT = Experiment(
    id=ID,
    line="n dispatches, one wait, over a ladder of n: the slope is the cost, the fixed part is the wait",
    options=SequentialOptions,
    cells=ladder_cells,
    figures=compute,
    verdicts=verdicts,
)
