"""A ladder of counts: which of them lie on one line, and what each launch's line says a dispatch costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rig import figures, stats
from rig.records import Metric, MetricOutcome
from rig.series import LEAST_LAUNCHES, Series, ratios

LEAST_STAMPED = 0.95
"""Share of samples that must have a time by a clock for it to be used."""

LEAST_SHARED = 0.8
"""Share of launches that must have a count for it to be used."""

MOST_APART = 1.25
"""Slopes by wall and by span further apart than this, by more than scatter, do not tell of the same cost."""


class Ladder:
    """The times of one series of cells by one clock: its Series, and figures from it.

    `labels`: launches in the order of the series' first axis; `rows`: the samples behind it.
    """

    def __init__(self, experiment: str, variant: figures.Variant, clock: str, good: pd.DataFrame) -> None:
        self.column = f"{clock}_us"
        self.experiment = experiment
        self.clockless = variant
        self.variant: figures.Variant = {**variant, "clock": clock}
        timed = good.dropna(subset=[self.column])
        # A clock that only some samples have is a selection of them: which ones were dropped is no accident.
        self.stamped = len(timed) >= LEAST_STAMPED * len(good)
        self.rows = timed[timed["n"].isin(_shared(timed))]
        self.distrust = ""
        self.blocks = self.rows.pivot_table(index=["launch", "block"], columns="n", values=self.column)
        self.labels = list(self.blocks.index.get_level_values("launch").unique())
        self.series = Series(self.blocks.columns.to_numpy(dtype=np.float64), _array(self.blocks, self.labels))

    @property
    def counts(self) -> list[float]:
        """Counts on the line; without a linear range the top ones of the ladder, for a value that is not relied on."""
        return [float(n) for n in self.series.counts]

    def slopes(self) -> pd.Series[float]:
        """Microseconds a dispatch, by launch."""
        return pd.Series(self.series.slopes, index=self.labels, dtype=float)

    @property
    def doubt(self) -> str:
        """Why the slope is not to be relied on, or nothing."""
        return self.distrust or self.series.doubt if self.series.range else self.series.doubt

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
        fixed = pd.Series(np.asarray(self.series.lines().fixed), index=self.labels, dtype=float)
        return figures.over_launches(
            *(self.experiment, f"{self.experiment}.fixed_us", self.clockless, "us", fixed, self._samples()),
            interval=stats.mean_interval,
            doubt=self.doubt,
        )

    def knee(self) -> list[Metric]:
        """Between which counts the line begins, where it does not begin with the ladder. Only a wait has a knee."""
        if self.series.range is None or self.series.range[0] == 0:
            return []
        return [between(self.experiment, "knee_n", self.variant, self.series.n, self.series.range[0] - 1, self.rows)]

    def fitted(self) -> list[Metric]:
        """The first and the last count that the slope is fitted to."""
        ends, launches = (self.counts[0], self.counts[-1]), len(self.labels)
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


def _array(blocks: pd.DataFrame, labels: Sequence[int]) -> stats.Floats:
    """Shape (launches, blocks, counts): blocks that a launch lacks are NaN, and so many as the longest has."""
    numbers = sorted(blocks.index.get_level_values("block").unique())
    every = pd.MultiIndex.from_product([labels, numbers], names=["launch", "block"])
    shape = (len(labels), len(numbers), len(blocks.columns))
    return blocks.reindex(every).to_numpy(dtype=np.float64).reshape(shape)


def _shared(rows: pd.DataFrame) -> list[float]:
    """The counts that most launches have: one that few have would leave out all the others."""
    launches = rows.groupby("n")["launch"].nunique()
    kept = launches[launches >= LEAST_SHARED * rows["launch"].nunique()].index
    return list(kept if len(kept) >= 2 else launches.index)


def cross_check(by_span: Ladder, by_wall: Ladder) -> None:
    """Marks both where their slopes contradict each other: fitted to counts that cost differently, or not in one unit.

    The wall can't take less than the GPU did. It may take more, as far as issuing accounts for it: what is in one
    submit runs only after all of it was issued and translated, so that the three add up; with many they overlap.
    """
    if not by_span.stamped:
        return
    span, wall, issuing = by_span.slopes(), by_wall.slopes(), _issuing(by_wall.rows)
    over_span, over_all = (wall / span).dropna(), (wall / (span + issuing)).dropna()
    if _range(over_span)[1] < 1 / MOST_APART or _range(over_all)[0] > MOST_APART:
        by_span.distrust = by_wall.distrust = (
            f"the cross-check fails: the slope by wall, from {by_wall.counts[0]:g} to {by_wall.counts[-1]:g} "
            f"dispatches, is {over_span.median():.3g} times that by span, from {by_span.counts[0]:g} "
            f"to {by_span.counts[-1]:g}, and issuing takes {issuing.median():.3g} µs"
        )


def _issuing(rows: pd.DataFrame) -> pd.Series[float]:
    """What the caller and the GPU process take of a dispatch, by launch, in µs; the caller alone where the kernel does
    not tell CPU time by thread.
    """
    issuing = slopes(rows, rows["encode_us"], "median").clip(lower=0)
    measured = rows.dropna(subset=["cpu_us"])
    if measured.empty:
        return issuing
    main = pd.Series([us.get("gpu_main", 0.0) for us in measured["cpu_us"]], index=measured.index, dtype=float)
    return issuing + slopes(measured, main, "mean").clip(lower=0)


def _range(values: pd.Series[float]) -> tuple[float, float]:
    return (values.min(), values.max()) if len(values) < LEAST_LAUNCHES else _ends(values)


def _ends(values: pd.Series[float]) -> tuple[float, float]:
    interval = stats.mean_interval(values.to_list())
    return interval.low, interval.high


def pair(experiment: str, variant: figures.Variant, good: pd.DataFrame) -> tuple[Ladder, Ladder, Ladder]:
    """The primary ladder, and both: by span, by wall."""
    by_span, by_wall = (Ladder(experiment, variant, clock, good) for clock in ("span", "wall"))
    cross_check(by_span, by_wall)
    return (by_span if by_span.stamped else by_wall), by_span, by_wall


def ratio(metric: str, variant: figures.Variant, over: Ladder, under: Ladder, level: float = 0.95) -> Metric:
    """Slope over slope, launch by launch, paired by block; unresolved where either slope is."""
    samples = len(over.rows.index.union(under.rows.index))
    labels, (a, b) = _aligned(over, under)
    try:
        values = pd.Series(ratios(a, b), index=labels, dtype=float)
    except ValueError as error:
        return figures.missing(over.experiment, metric, variant, "ratio", str(error))
    return figures.over_launches(
        over.experiment, metric, variant, "ratio", values, samples, level=level, doubt=_doubts(over, under)
    )


def _doubts(*ladders: Ladder) -> str:
    return "; ".join(f"{_named(ladder)}: {ladder.doubt}" for ladder in ladders if ladder.doubt)


def _aligned(over: Ladder, under: Ladder) -> tuple[list[int], tuple[Series, Series]]:
    """Both series over the launches and blocks that either has, and the counts that both have: one that the other side
    lacks altogether would leave no launch a pair. Each keeps its own range.
    """
    index, columns = over.blocks.index.union(under.blocks.index), over.blocks.columns.intersection(under.blocks.columns)
    labels = list(index.get_level_values("launch").unique())
    n = columns.to_numpy(dtype=np.float64)
    made = []
    for ladder in (over, under):
        series = Series(n, _array(ladder.blocks.reindex(index=index, columns=columns), labels))
        series.range = (
            int(np.searchsorted(n, ladder.counts[0])),
            int(np.searchsorted(n, ladder.counts[-1], side="right")) - 1,
        )
        made.append(series)
    return labels, (made[0], made[1])


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
    samples = len(over.rows.index.union(under.rows.index))
    return figures.over_launches(
        *(over.experiment, metric, variant, "us", over.slopes() - under.slopes(), samples),
        interval=stats.mean_interval,
        doubt=_doubts(over, under),
    )


def slopes(rows: pd.DataFrame, times: pd.Series[float], center: str) -> pd.Series[float]:
    """Slope of any times over all counts, by launch, through their `center` ("mean", "median") at each count."""
    table = times.groupby([rows["launch"], rows["n"]]).agg(center).unstack("n").dropna()
    n = table.columns.to_numpy(dtype=np.float64)
    # what did nothing has no line
    found = stats.line(n, table.clip(lower=1e-3).to_numpy(dtype=np.float64)).slope
    return pd.Series(found, index=table.index, dtype=float)


def by_thread(rows: pd.DataFrame, column: str) -> dict[str, pd.Series[float]]:
    """Slopes of `column`, a count by process and thread class, by class and launch; and of `all` classes together.

    Slopes, so that what each call into the page costs drops out.
    """
    present = rows.dropna(subset=[column])
    classes = pd.DataFrame(present[column].tolist(), index=present.index).fillna(0.0)
    classes.insert(0, "all", classes.sum(axis=1))
    return {str(thread): slopes(present, classes[thread], "mean") for thread in classes.columns}
