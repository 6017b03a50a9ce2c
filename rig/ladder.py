"""A ladder of counts: which of them lie on one line, and what each launch's line says a dispatch costs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rig import figures, stats
from rig.records import Metric, MetricOutcome


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
        self.rows = good.dropna(subset=[column])
        # a clock that only some launches have would leave the others out
        self.stamped = self.rows["launch"].nunique() == good["launch"].nunique()
        self.column = column
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
        return self._halves_disagree()

    def per_dispatch(self) -> Metric:
        """The slope over the linear range; unresolved where its two halves disagree."""
        metric = f"{self.experiment}.per_dispatch_us"
        if not self.stamped:
            reason = "no GPU timestamps: a launch lacks timestamp-query, or all its pairs were bad"
            return figures.missing(self.experiment, metric, self.variant, "us", reason, MetricOutcome.not_supported)
        return figures.over_launches(
            self.experiment, metric, self.variant, "us", self.slopes(), self._samples(), doubt=self.doubt
        )

    def fixed(self) -> Metric:
        """Time that does not depend on the count: the line at n = 0. Arithmetic mean: it may be negative."""
        fixed = pd.Series([fit.fixed if fit else np.nan for fit in self.lines(self.counts)], dtype=float)
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

    def modes(self) -> list[Metric]:
        """The two modes of time over count, on the line, where there are two: what the slope is a mean of."""
        rows = self.rows[self.rows["n"].isin(self.counts)]
        return figures.modes(self.experiment, self.variant, rows[self.column] / rows["n"], rows["launch"])

    def _samples(self) -> int:
        return int(self.rows["n"].isin(self.counts).sum())

    def _halves_disagree(self) -> str:
        lower, upper = (self.counts[half] for half in stats.halves(np.array(self.counts)))
        try:
            low, high = (stats.mean_interval(self.slopes(half).dropna().to_list()) for half in (lower, upper))
        except ValueError:
            return ""  # too few launches: over_launches says so
        if low.overlaps(high):
            return ""
        return (
            f"the two halves of the ladder disagree: {low.value:.3g} µs ({low.low:.3g} to {low.high:.3g}) from "
            f"{lower[0]:g} to {lower[-1]:g} dispatches, {high.value:.3g} µs ({high.low:.3g} to {high.high:.3g}) from "
            f"{upper[0]:g} to {upper[-1]:g}"
        )


def primary(experiment: str, variant: figures.Variant, good: pd.DataFrame) -> Ladder:
    """The ladder by span where every launch has it, else by wall."""
    by_span = Ladder(experiment, variant, "span", good)
    return by_span if by_span.stamped else Ladder(experiment, variant, "wall", good)


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
