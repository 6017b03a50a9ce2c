"""The times of one series of cells, as arrays: which counts lie on one line, and what a dispatch costs in each launch.

Here is the one estimator that every slope comes from, in stored runs (rig.ladder) and in simulated ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from rig import stats
from rig.stats import Floats, Interval

LEAST_LAUNCHES = 3
"""So many launches it takes to tell whether halves agree."""

HALVES = 0.02
"""Slopes of the two halves of a ladder that are no further apart, of the whole slope, tell of the same cost."""

DRIFT = 0.10
"""From its first block to its last a launch may change by so much."""

BEND = 0.25
"""Counts below the range that differ in slope by more than this are another regime."""


class Series:
    """`us`: times in µs, shape (launches, blocks, counts), NaN where there is none; `n`: the counts, rising.

    The range is found on the means over all launches, so that every launch is fitted to the same counts. In a launch,
    the line goes through the mean of the blocks at each count: where times have two modes, a median jumps between them.
    """

    def __init__(self, n: Floats, us: Floats) -> None:
        self.n = n
        self.us = us
        self.means = _mean(us, 1)

    @cached_property
    def range(self) -> tuple[int, int] | None:
        """First and last index of the counts on the line, or None."""
        return stats.linear_range(self.n, *self._pooled)

    @property
    def part(self) -> slice:
        """The counts on the line; without a range the top ones, for a value that is not relied on."""
        first, last = self.range or (max(0, len(self.n) - stats.LEAST_COUNTS), len(self.n) - 1)
        return slice(first, last + 1)

    @property
    def counts(self) -> Floats:
        return self.n[self.part]

    def lines(self, part: slice | None = None) -> stats.Line:
        """A line a launch through its means at the counts of `part`; NaN for a launch that lacks one of them."""
        part = part or self.part
        return stats.line(self.n[part], self.means[:, part])

    @cached_property
    def slopes(self) -> Floats:
        """Microseconds a dispatch, shape (launches,)."""
        return self.lines().slope

    @property
    def windows(self) -> Floats:
        """Slopes of every LEAST_COUNTS neighbouring counts, from the line's first on; shape (windows, launches)."""
        first, last = self.part.start, max(self.part.start + 1, len(self.n) - stats.LEAST_COUNTS + 1)
        return np.array([self.lines(slice(i, i + stats.LEAST_COUNTS)).slope for i in range(first, last)])

    def interval(self, level: float = 0.95) -> Interval:
        """The cost of a dispatch: geometric mean over launches. ValueError where there is none."""
        return stats.geometric_interval(self.slopes[~np.isnan(self.slopes)], level)

    @cached_property
    def doubt(self) -> str:
        """Why the slope is not to be relied on, or nothing."""
        if self.range is None:
            return (
                f"no {stats.LEAST_COUNTS} counts of the ladder lie on one line above the knee and below back-pressure; "
                f"the slope is that of the top counts, {self.counts[0]:g} to {self.counts[-1]:g}"
            )
        tests = (self._not_positive, self._halves_disagree, self._below_zero, self._bent, self._drifts)
        return next((told for told in (test() for test in tests) if told), "")

    @cached_property
    def _pooled(self) -> tuple[Floats, Floats]:
        """Mean over all samples at each count, and its standard error; zero for a single one."""
        flat = self.us.reshape(-1, len(self.n))
        count = (~np.isnan(flat)).sum(axis=0)
        mean = _mean(flat, 0)
        variance = np.nansum((flat - mean) ** 2, axis=0) / np.maximum(count - 1, 1)
        return mean, np.sqrt(variance / np.maximum(count, 1))

    def _not_positive(self) -> str:
        """Whether the cost is lost in the scatter of some launch."""
        lost = int((self.slopes <= 0).sum())
        return f"in {lost} of {len(self.slopes)} launches the slope is not positive" if lost else ""

    def _halves_disagree(self) -> str:
        """Whether the slopes of the halves differ, paired within each launch, by more than their scatter and HALVES."""
        first = self.part.start
        lower, upper = (slice(first + half.start, first + half.stop) for half in stats.halves(self.counts))
        low, high = (self.lines(half).slope for half in (lower, upper))
        relative = _known((high - low) / self.slopes)
        if len(relative) < LEAST_LAUNCHES:
            return f"{len(relative)} launches can't show whether the two halves of the ladder agree"
        if _clearly(relative, HALVES) is None:
            return ""
        return (
            f"the two halves of the ladder disagree: {_known(low).mean():.3g} µs from {_ends(self.n[lower])} "
            f"dispatches, {_known(high).mean():.3g} µs from {_ends(self.n[upper])}"
        )

    def _below_zero(self) -> str:
        """Whether the fixed part is clearly below zero, which a wait can't be."""
        interval = stats.mean_interval(_known(self.lines().fixed))
        if interval.high >= 0:
            return ""
        return f"the line is bent: its fixed part is below zero, {interval.value:.3g} µs"

    def _bent(self) -> str:
        """Whether counts below the range lie on a line of their own, with another slope: then the range may be that of
        back-pressure, which a ladder without its bend in the middle does not show.
        """
        below = slice(0, self.part.start + 1)
        mean, error = self._pooled
        found = stats.linear_range(self.n[below], mean[below], error[below])
        if found is None:
            return ""
        part = slice(found[0], found[1] + 1)
        under = self.lines(part).slope
        known = _known(under / self.slopes - 1)
        if len(known) < LEAST_LAUNCHES:
            return f"{len(known)} launches can't show whether the ladder bends"
        if _clearly(known, BEND) is None:
            return ""
        return (
            f"the ladder bends: {_known(under).mean():.3g} µs from {_ends(self.n[part])} dispatches, "
            f"{_known(self.slopes).mean():.3g} µs from {_ends(self.counts)}"
        )

    @cached_property
    def drift(self) -> Floats:
        """Relative change of times from a launch's first block to its last, on the line; shape (launches,), NaN where
        a launch has not two blocks. Slope of times over their launch's mean at each count, on the block's position.
        """
        relative = self.us[:, :, self.part] / self.means[:, None, self.part] - 1
        there = ~np.isnan(relative)
        position = np.where(there, np.arange(self.us.shape[1])[None, :, None], np.nan)
        length = (~np.isnan(self.us).all(axis=2)).sum(axis=1) - 1.0
        away = position - _mean(position.reshape(len(position), -1), 1)[:, None, None]
        square = np.nansum(away**2, axis=(1, 2))
        slope = np.nansum(away * relative, axis=(1, 2)) / np.where(square > 0, square, np.nan)
        return np.asarray(slope * np.where(length > 0, length, np.nan))

    def _drifts(self) -> str:
        """Whether times rise or fall within launches, clearly and by more than DRIFT: one mean tells of neither."""
        known = _known(self.drift)
        if len(known) < LEAST_LAUNCHES:
            return ""
        change = _clearly(known, DRIFT)
        if change is None:
            return ""
        return f"times drift: by {100 * change:+.3g} % from a launch's first block to its last"


def ratios(over: Series, under: Series) -> Floats:
    """Slope over slope, shape (launches,), of two series of the same launches, blocks and counts.

    Paired by block: only samples count whose launch, block and count both sides have, so that what disturbed one of
    them disturbed both. Fitted to the counts that are on both lines, if they are enough for one.
    """
    both = ~(np.isnan(over.us) | np.isnan(under.us))
    parts = [side.part for side in (over, under)]
    shared = slice(max(p.start for p in parts), min(p.stop for p in parts))
    if shared.stop - shared.start >= stats.LEAST_COUNTS:
        parts = [shared, shared]
    paired = [Series(side.n, np.where(both, side.us, np.nan)) for side in (over, under)]
    slopes = [side.lines(part).slope for side, part in zip(paired, parts, strict=True)]
    return np.asarray(slopes[0] / slopes[1])


def _mean(us: Floats, axis: int) -> Floats:
    """Mean of what is there; NaN where nothing is."""
    count = (~np.isnan(us)).sum(axis=axis)
    return np.asarray(np.where(count > 0, np.nansum(us, axis=axis) / np.maximum(count, 1), np.nan))


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _clearly(relative: Floats, least: float) -> float | None:
    """The mean over launches where its interval leaves out zero and it is more than `least`, else None."""
    mean = stats.mean_interval(relative)
    return None if mean.low <= 0 <= mean.high or abs(mean.value) <= least else mean.value


def _ends(counts: Sequence[float] | Floats) -> str:
    return f"{counts[0]:g} to {counts[-1]:g}"
