"""From one value a launch to a figure with its interval, or with the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd

from rig import stats
from rig.frames import Run
from rig.records import Metric, MetricOutcome, Outcome

PLAIN_LEVEL = 0.95

NO_CELL = "the profile has no such cell"

PUBLISHED_N = 100
"""The papers divide the time of so many dispatches, the final wait included, by their number."""

Variant = Mapping[str, str | int | float]
Estimator = Callable[[stats.Floats, float], stats.Interval]


def over_launches(
    experiment: str,
    metric: str,
    variant: Variant,
    unit: str,
    per_launch: pd.Series[float],
    n_samples: int,
    *,
    interval: Estimator = stats.geometric_interval,
    level: float = PLAIN_LEVEL,
    doubt: str = "",
) -> Metric:
    """A figure from one value a launch. `doubt` makes it unresolved: a value that is shown, but not to be relied on.

    So is one that ought to be positive and is not in some launch: lost in the scatter, its mean is arithmetic.
    """
    values = np.asarray(per_launch.dropna(), dtype=np.float64)
    if interval is stats.geometric_interval and (values <= 0).any():
        interval = stats.mean_interval
        doubt = doubt or f"{int((values <= 0).sum())} of {values.size} launches gave no positive value"
    try:
        found = interval(values, level)
    except ValueError as error:
        return missing(experiment, metric, variant, unit, str(error))
    return Metric(
        experiment=experiment,
        metric=metric,
        variant=dict(variant),
        unit=unit,
        outcome=MetricOutcome.unresolved if doubt else MetricOutcome.ok,
        value=found.value,
        ci_low=found.low,
        ci_high=found.high,
        ci_level=found.level,
        n_samples=n_samples,
        n_launches=found.n,
        reason=doubt,
        per_launch={str(launch): float(value) for launch, value in per_launch.dropna().items()},
    )


def quotient(over: pd.Series[float], under: pd.Series[float]) -> pd.Series[float]:
    """One over the other where both are known and the ratio is a number."""
    return (over / under).replace([np.inf, -np.inf], np.nan).dropna()


def bracket(
    experiment: str, metric: str, variant: Variant, low: float, high: float, n_samples: int, n_launches: int
) -> Metric:
    """A count known to lie between two steps of the ladder: an enclosure, not a confidence interval (level 1)."""
    return Metric(
        experiment=experiment,
        metric=metric,
        variant=dict(variant),
        unit="dispatches",
        outcome=MetricOutcome.ok,
        value=(low * high) ** 0.5,
        ci_low=low,
        ci_high=high,
        ci_level=1.0,
        n_samples=n_samples,
        n_launches=n_launches,
    )


def upper_mode(times_us: pd.Series[float], launch: pd.Series[int]) -> pd.Series[bool] | None:
    """Which of the pooled samples are in the upper of two modes; None where there are not two, in two launches each."""
    found = stats.two_modes(np.asarray(times_us, dtype=np.float64))
    if found is None:
        return None
    upper = times_us > found.border
    return upper if min(launch[which].nunique() for which in (upper, ~upper)) >= 2 else None


def modes(experiment: str, variant: Variant, times_us: pd.Series[float], launch: pd.Series[int]) -> list[Metric]:
    """The two modes of pooled samples and the share of the upper one, where there are two, in several launches each."""
    upper = upper_mode(times_us, launch)
    if upper is None:
        return []
    rows = [
        over_launches(
            *(experiment, f"{experiment}.mode_us", {**variant, "mode": name}, "us"),
            times_us[which].groupby(launch[which]).median(),
            int(which.sum()),
        )
        for name, which in (("lower", ~upper), ("upper", upper))
    ]
    share = upper.groupby(launch).mean().astype(np.float64)
    name = f"{experiment}.upper_mode_share"
    return [
        *rows,
        over_launches(experiment, name, variant, "fraction", share, len(upper), interval=stats.share_interval),
    ]


def total_over_n(run: Run, experiment: str, policy: str, good: pd.DataFrame) -> Metric:
    """The published estimator: mean time of 100 dispatches, the wait included, over 100. `good`: samples that count."""
    metric = f"{experiment}.total_over_n_us"
    variant: Variant = {"policy": policy, "n": PUBLISHED_N}
    rows = good[good["n"] == PUBLISHED_N]
    if rows.empty:
        every = run.rows(experiment, policy=policy, n=PUBLISHED_N)
        return missing(experiment, metric, variant, "us", *why_none(run, every, experiment))
    mean = rows.groupby("launch")["wall_us"].mean() / PUBLISHED_N
    return over_launches(experiment, metric, variant, "us", mean, len(rows))


def missing(
    experiment: str,
    metric: str,
    variant: Variant,
    unit: str,
    reason: str,
    outcome: MetricOutcome = MetricOutcome.failed,
) -> Metric:
    """A figure that has no value. Absent is not zero."""
    return Metric(
        experiment=experiment, metric=metric, variant=dict(variant), unit=unit, outcome=outcome, reason=reason
    )


def no_slope(run: Run, rows: pd.DataFrame, experiment: str) -> tuple[str, MetricOutcome] | None:
    """Why too few counts have samples that count for a slope; None where enough have. `rows` as in why_none."""
    if run.counted(rows)["n"].nunique() >= stats.LEAST_COUNTS:
        return None
    return why_none(run, rows, experiment)


def why_none(run: Run, rows: pd.DataFrame, experiment: str) -> tuple[str, MetricOutcome]:
    """Why no sample among `rows` (all samples of one cell or more, void ones included) counts."""
    if rows.empty and not run.samples.empty:
        return NO_CELL, MetricOutcome.not_supported
    void = rows[rows["void"] != ""]
    if void.empty:
        broken = [f"{launch.outcome}: {launch.detail}" for launch in run.launches if launch.outcome is not Outcome.ok]
        return (f"no sample of {experiment}; last launch {broken[-1]}" if broken else "no sample"), MetricOutcome.failed
    reason = str(void["void"].mode()[0])
    detail = next((str(d).splitlines()[0] for d in void.loc[void["void"] == reason, "detail"] if d), "")
    outcome = MetricOutcome.not_supported if reason == Outcome.not_supported else MetricOutcome.failed
    if detail:
        return (detail if outcome is MetricOutcome.not_supported else f"{reason}: {detail}"), outcome
    return reason, outcome


def interval_of(metric: Metric) -> stats.Interval:
    """The interval of a metric that has a value."""
    assert metric.value is not None
    assert metric.ci_low is not None
    assert metric.ci_high is not None
    return stats.Interval(metric.value, metric.ci_low, metric.ci_high, metric.ci_level, metric.n_launches)


def at_look(metric: Metric, looks: Sequence[int]) -> Metric:
    """A figure as a verdict takes it: its plain interval once more, at the level that the look leaves it."""
    if metric.ci_level != PLAIN_LEVEL or len(metric.per_launch) < 2:
        return metric
    values = list(metric.per_launch.values())
    level = stats.split_level(len(values), looks)
    geometric = min(values) > 0 and np.isclose(stats.geometric_interval(values).value, metric.value or 0.0, rtol=1e-9)
    interval = (stats.geometric_interval if geometric else stats.mean_interval)(values, level)
    return msgspec.structs.replace(metric, ci_low=interval.low, ci_high=interval.high, ci_level=level)


def told(metric: Metric, unit: str) -> str:
    """A figure with its interval and level, for the statement of a verdict."""
    level = f" at {100 * metric.ci_level:.3g} %" if metric.ci_level != PLAIN_LEVEL else ""
    level = " in single launches" if metric.ci_level == 1 else level
    return f"{metric.value:.3g} {unit} ({metric.ci_low:.3g} to {metric.ci_high:.3g}{level})"


def at_level(metric: Metric, level: float) -> stats.Interval:
    """The interval of a ratio over launches once more, at another level. ValueError where there is none."""
    return stats.geometric_interval(list(metric.per_launch.values()), level)
