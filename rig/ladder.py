"""A ladder of counts: which of them lie on one line, and what each launch's line says a dispatch costs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rig import figures, stats
from rig.records import Metric, MetricOutcome

LEAST_STAMPED = 0.95
"""Share of samples that must have a time by a clock for it to be used."""

LEAST_SHARED = 0.8
"""Share of launches that must have a count for it to be used."""

LEAST_LAUNCHES = 3
"""So many launches it takes to tell whether halves agree."""

BEND = 0.25
"""Counts below the range that differ in slope by more than this are another regime."""

MOST_APART = 1.25
"""Slopes by wall and by span further apart than this, by more than scatter, do not tell of the same cost."""


class Ladder:
    """The times of one series of cells by one clock: which counts are on the line, and each launch's line through them.

    The range is found on the means over all launches, so that every launch is fitted to the same counts. In a launch,
    the line goes through the mean of the blocks at each count: where times have two modes, a median jumps between them.
    """

    def __init__(self, experiment: str, variant: figures.Variant, clock: str, good: pd.DataFrame) -> None:
        column = f"{clock}_us"
        self.experiment = experiment
        self.clockless = variant
        self.variant: figures.Variant = {**variant, "clock": clock}
        timed = good.dropna(subset=[column])
        # A clock that only some samples have is a selection of them: which ones were dropped is no accident.
        self.stamped = len(timed) >= LEAST_STAMPED * len(good)
        self.rows = timed[timed["n"].isin(_shared(timed))]
        self.column = column
        self.distrust = ""
        self.means = self.rows.groupby(["launch", "n"])[column].mean().unstack("n")
        pooled = self.rows.groupby("n")[column].agg(["mean", "sem"]).fillna(0.0)
        self.n = pooled.index.to_numpy(dtype=np.float64)
        self.range = stats.linear_range(self.n, *(pooled[name].to_numpy(dtype=np.float64) for name in ("mean", "sem")))

    @property
    def counts(self) -> list[float]:
        """Counts on the line; without a linear range the top ones of the ladder, for a value that is not relied on."""
        first, last = self.range or (max(0, len(self.n) - stats.LEAST_COUNTS), len(self.n) - 1)
        return list(self.n[first : last + 1])

    def lines(self, counts: list[float]) -> list[stats.Line | None]:
        """A line a launch through its means at `counts`; None for a launch that lacks one of them."""
        chosen = self.means[counts]
        return [
            stats.line(np.array(counts), row.to_numpy(dtype=np.float64)) if row.notna().all() else None
            for _, row in chosen.iterrows()
        ]

    def slopes(self, counts: list[float] | None = None) -> pd.Series[float]:
        """Microseconds a dispatch, by launch."""
        lines = self.lines(counts or self.counts)
        return pd.Series([fit.slope if fit else np.nan for fit in lines], index=self.means.index, dtype=float)

    @property
    def doubt(self) -> str:
        """Why the slope is not to be relied on, or nothing."""
        if self.range is None:
            return (
                f"no {stats.LEAST_COUNTS} counts of the ladder lie on one line above the knee and below back-pressure; "
                f"the slope is that of the top counts, {self.counts[0]:g} to {self.counts[-1]:g}"
            )
        return self.distrust or self._halves_disagree() or self._below_zero() or self._bent()

    def per_dispatch(self) -> Metric:
        """The slope over the linear range; unresolved where its two halves disagree."""
        metric = f"{self.experiment}.per_dispatch_us"
        if not self.stamped:
            reason = "no GPU timestamps, or too many bad pairs: what is left would be a selection"
            return figures.missing(self.experiment, metric, self.variant, "us", reason, MetricOutcome.not_supported)
        return figures.over_launches(
            self.experiment, metric, self.variant, "us", self.slopes(), self._samples(), doubt=self.doubt
        )

    def fixed(self) -> Metric:
        """Time that does not depend on the count: the line at n = 0. Arithmetic mean: it may be negative."""
        lines = self.lines(self.counts)
        fixed = pd.Series([fit.fixed if fit else np.nan for fit in lines], index=self.means.index, dtype=float)
        return figures.over_launches(
            *(self.experiment, f"{self.experiment}.fixed_us", self.clockless, "us", fixed, self._samples()),
            interval=stats.mean_interval,
            doubt=self.doubt,
        )

    def knee(self) -> list[Metric]:
        """Between which counts the line begins, where it does not begin with the ladder. Only a wait has a knee."""
        if self.range is None or self.range[0] == 0:
            return []
        return [between(self.experiment, "knee_n", self.variant, self.n, self.range[0] - 1, self.rows)]

    def fitted(self) -> list[Metric]:
        """The first and the last count that the slope is fitted to."""
        ends, launches = (float(self.counts[0]), float(self.counts[-1])), len(self.means)
        return [
            figures.bracket(
                self.experiment, f"{self.experiment}.fitted_n", self.variant, *ends, self._samples(), launches
            )
        ]

    def modes(self) -> list[Metric]:
        """The two modes of time over count, on the line, where there are two: what the slope is a mean of."""
        rows = self.rows[self.rows["n"].isin(self.counts)]
        return figures.modes(self.experiment, self.variant, rows[self.column] / rows["n"], rows["launch"])

    def _samples(self) -> int:
        return int(self.rows["n"].isin(self.counts).sum())

    def _halves_disagree(self) -> str:
        """Whether the slopes of the halves differ, paired within each launch, by more than their scatter."""
        lower, upper = (self.counts[half] for half in stats.halves(np.array(self.counts)))
        low, high = self.slopes(lower), self.slopes(upper)
        relative = ((high - low) / self.slopes()).dropna()
        if len(relative) < LEAST_LAUNCHES:
            return f"{len(relative)} launches can't show whether the two halves of the ladder agree"
        difference = stats.mean_interval(relative.to_list())
        if difference.low <= 0 <= difference.high:
            return ""
        return (
            f"the two halves of the ladder disagree: {low.mean():.3g} µs from {lower[0]:g} to {lower[-1]:g} "
            f"dispatches, {high.mean():.3g} µs from {upper[0]:g} to {upper[-1]:g}"
        )

    def _below_zero(self) -> str:
        """Whether the fixed part is clearly below zero, which a wait can't be."""
        interval = stats.mean_interval([fit.fixed for fit in self.lines(self.counts) if fit is not None])
        if interval.high >= 0:
            return ""
        return f"the line is bent: its fixed part is below zero, {interval.value:.3g} µs"

    def _bent(self) -> str:
        """Whether counts below the range lie on a line of their own, with another slope: then the range may be that of
        back-pressure, which a ladder without its bend in the middle does not show.
        """
        first, _ = self.range or (0, 0)
        pooled = self.rows.groupby("n")[self.column].agg(["mean", "sem"]).fillna(0.0).iloc[: first + 1]
        below = stats.linear_range(
            *(np.asarray(x, dtype=np.float64) for x in (pooled.index, pooled["mean"], pooled["sem"]))
        )
        if below is None:
            return ""
        counts = list(self.n[below[0] : below[1] + 1])
        relative = (self.slopes(counts) / self.slopes() - 1).dropna()
        difference = stats.mean_interval(relative.to_list())
        if difference.low <= 0 <= difference.high or abs(difference.value) <= BEND:
            return ""
        return (
            f"the ladder bends: {self.slopes(counts).mean():.3g} µs from {counts[0]:g} to {counts[-1]:g} dispatches, "
            f"{self.slopes().mean():.3g} µs from {self.counts[0]:g} to {self.counts[-1]:g}"
        )


def _shared(rows: pd.DataFrame) -> list[float]:
    """The counts that most launches have: one that few have would leave out all the others."""
    launches = rows.groupby("n")["launch"].nunique()
    return list(launches[launches >= LEAST_SHARED * rows["launch"].nunique()].index)


def cross_check(by_span: Ladder, by_wall: Ladder) -> None:
    """Marks both where their slopes are clearly apart: fitted to counts that cost differently, or not in one unit."""
    if not by_span.stamped:
        return
    apart = (by_wall.slopes() / by_span.slopes()).dropna()
    low, high = (apart.min(), apart.max()) if len(apart) < LEAST_LAUNCHES else _ends(apart)
    if high < 1 / MOST_APART or low > MOST_APART:
        by_span.distrust = by_wall.distrust = (
            f"the cross-check fails: the slope by wall, from {by_wall.counts[0]:g} to {by_wall.counts[-1]:g} "
            f"dispatches, is {apart.median():.3g} times that by span, from {by_span.counts[0]:g} "
            f"to {by_span.counts[-1]:g}"
        )


def _ends(values: pd.Series[float]) -> tuple[float, float]:
    interval = stats.mean_interval(values.to_list())
    return interval.low, interval.high


def pair(experiment: str, variant: figures.Variant, good: pd.DataFrame) -> tuple[Ladder, Ladder, Ladder]:
    """The primary ladder, and both: by span, by wall."""
    by_span, by_wall = (Ladder(experiment, variant, clock, good) for clock in ("span", "wall"))
    cross_check(by_span, by_wall)
    return (by_span if by_span.stamped else by_wall), by_span, by_wall


def ratio(metric: str, variant: figures.Variant, over: Ladder, under: Ladder) -> Metric:
    """Slope over slope, launch by launch; unresolved where either slope is."""
    doubts = [f"{_named(ladder)}: {ladder.doubt}" for ladder in (over, under) if ladder.doubt]
    values = over.slopes() / under.slopes()
    samples = len(over.rows.index.union(under.rows.index))
    return figures.over_launches(over.experiment, metric, variant, "ratio", values, samples, doubt="; ".join(doubts))


def _named(ladder: Ladder) -> str:
    return ", ".join(str(value) for value in ladder.variant.values())


def between(
    experiment: str, name: str, variant: figures.Variant, n: stats.Floats, low: int, rows: pd.DataFrame
) -> Metric:
    """A count known to lie between the steps `low` and `low` + 1 of the ladder n."""
    ends = (float(n[low]), float(n[low + 1]))
    return figures.bracket(experiment, f"{experiment}.{name}", variant, *ends, len(rows), rows["launch"].nunique())


def back_pressure(experiment: str, policy: str, good: pd.DataFrame) -> list[Metric]:
    """Between which counts encoding begins to stall, where it does."""
    encode = good.groupby("n")["encode_us"].median()
    n = encode.index.to_numpy(dtype=np.float64)
    last = stats.before_stall(n, encode.to_numpy(dtype=np.float64))
    if last is None:
        return []
    return [between(experiment, "back_pressure_n", {"policy": policy, "clock": "encode"}, n, last, good)]


def difference(metric: str, variant: figures.Variant, over: Ladder, under: Ladder) -> Metric:
    """Slope less slope, launch by launch; unresolved where either slope is."""
    doubts = [f"{_named(ladder)}: {ladder.doubt}" for ladder in (over, under) if ladder.doubt]
    samples = len(over.rows.index.union(under.rows.index))
    return figures.over_launches(
        *(over.experiment, metric, variant, "us", over.slopes() - under.slopes(), samples),
        interval=stats.mean_interval,
        doubt="; ".join(doubts),
    )


def slopes(rows: pd.DataFrame, times: pd.Series[float], center: str) -> pd.Series[float]:
    """Slope of any times over all counts, by launch, through their `center` ("mean", "median") at each count."""
    table = times.groupby([rows["launch"], rows["n"]]).agg(center).unstack("n").dropna()
    n = table.columns.to_numpy(dtype=np.float64)
    # what did nothing has no line
    positive = table.clip(lower=1e-3)
    found = [stats.line(n, row.to_numpy(dtype=np.float64)).slope for _, row in positive.iterrows()]
    return pd.Series(found, index=table.index, dtype=float)
