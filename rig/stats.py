"""Estimators and intervals, pure: arrays in, numbers out. Each formula names its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

RANGE_TOLERANCE = 0.05
"""A count belongs to the linear range while its time is within this fraction of the line through the range."""

STALL_RATIO = 1.5
"""Encoding time a dispatch, over its least, from which on the caller is held up."""

LEAST_COUNTS = 4
"""A slope is fitted to at least so many counts, so that each of its two halves has a slope of its own."""


@dataclass(frozen=True)
class Interval:
    """A value and its confidence interval, in the value's own unit. `n`: independent values behind it."""

    value: float
    low: float
    high: float
    level: float
    n: int


def mean_interval(values: Sequence[float] | Floats, level: float = 0.95) -> Interval:
    """Arithmetic mean with Student's t interval, n − 1 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.5.2).

    ValueError below two values: one launch says nothing about launches.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size < 2:
        raise ValueError(f"an interval over launches needs 2 launches, there are {x.size}")
    half = student_t(level, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size)
    return Interval(float(x.mean()), float(x.mean() - half), float(x.mean() + half), level, x.size)


@cache
def student_t(level: float, degrees: float) -> float:
    """How many standard errors a two-sided interval of that level reaches to either side."""
    return float(stats.t.ppf((1 + level) / 2, degrees))


def split_level(launches: int, looks: Sequence[int], comparisons: int = 1, alpha: float = 0.05) -> float:
    """Level of each interval of a comparison, so that over all looks and all comparisons the error stays below alpha.

    Bonferroni twice (Dunn, JASA 56, 1961, for comparisons; Pocock, Biometrika 64, 1977, for why looks must share): a
    look's share is in proportion to its launches, so that the later ones, at which a run usually ends, keep most. A run
    that ended between two looks has the share of the next one.
    """
    look = next((look for look in sorted(looks) if look >= launches), max(looks))
    return 1 - alpha * look / sum(looks) / comparisons


def equivalent(interval: Interval, margin: float) -> bool:
    """Whether a ratio lies within 1 / (1 + margin) and 1 + margin with its whole interval.

    Of an interval of level 1 − 2α, two one-sided tests at α (TOST; Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
    That several are *all* equivalent needs no further split (intersection-union; Berger, Technometrics 24, 1982).
    """
    return interval.low >= 1 / (1 + margin) and interval.high <= 1 + margin


def different(interval: Interval, margin: float) -> bool:
    """Whether a ratio lies outside 1 / (1 + margin) to 1 + margin with its whole interval; of margin 0, beside 1.

    Of an interval of level 1 − α, the error is at most α. That *any* of several is different takes the split over them.
    """
    return interval.low > 1 + margin or interval.high < 1 / (1 + margin)


def geometric_interval(values: Sequence[float] | Floats, level: float = 0.95) -> Interval:
    """Geometric mean: Student's t interval of the logarithms, taken back (Fleming and Wallace, CACM 29(3), 1986, for
    why ratios are averaged so). ValueError below two values, or where one is not positive.
    """
    x = np.asarray(values, dtype=np.float64)
    if (x <= 0).any():
        raise ValueError(f"{int((x <= 0).sum())} of {x.size} launches gave no positive value")
    log = mean_interval(np.log(x), level)
    return Interval(float(np.exp(log.value)), float(np.exp(log.low)), float(np.exp(log.high)), level, log.n)


def share_interval(values: Sequence[float] | Floats, level: float = 0.95) -> Interval:
    """As mean_interval, for shares: its ends stay within 0 and 1."""
    found = mean_interval(values, level)
    return Interval(found.value, max(found.low, 0.0), min(found.high, 1.0), level, found.n)


@dataclass(frozen=True)
class Line:
    """y = fixed + slope · n; each a number, or an array of as many as there were rows of y."""

    slope: Floats
    fixed: Floats

    def at(self, n: Floats | float) -> Floats:
        return np.asarray(self.fixed[..., None] + self.slope[..., None] * np.asarray(n, dtype=np.float64))


def line(n: Sequence[float] | Floats, y: Sequence[float] | Floats) -> Line:
    """Least squares along the last axis of y, shape (..., counts), with weights 1/ŷ²: times scatter in proportion to
    themselves (iteratively reweighted; Carroll and Ruppert, Transformation and Weighting in Regression, 1988, chapter
    2). NaN where a row has one. ValueError below two different counts.
    """
    n, y = np.asarray(n, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(n) < 2 or (n == n[0]).all():
        raise ValueError("a slope needs two different counts")
    weight = 1 / y**2
    for iteration in range(5):
        total = weight.sum(axis=-1, keepdims=True)
        center = (weight * n).sum(axis=-1, keepdims=True) / total
        mean = (weight * y).sum(axis=-1, keepdims=True) / total
        away = weight * (n - center)
        slope = (away * (y - mean)).sum(axis=-1, keepdims=True) / (away * (n - center)).sum(axis=-1, keepdims=True)
        fixed = mean - slope * center
        if iteration < 4:
            # A line that comes near zero inside the ladder would give one count all the weight.
            weight = 1 / np.maximum(fixed + slope * n, 0.1 * y) ** 2
    return Line(slope[..., 0], fixed[..., 0])


def linear_range(n: Floats, y: Floats, error: Floats | None = None) -> tuple[int, int] | None:
    """First and last index of the counts on which time grows in proportion to work, or None.

    n rises; y are the times at each count and `error` their standard errors (none: exact). Searched from the top down:
    a GPU process that lags bends the line at large counts (back-pressure), and a wait that is polled hides the work at
    small ones (the knee). The top four counts that make a sound line are the seed; the range grows downward while the
    line so far predicts the next count. A time agrees with a line within RANGE_TOLERANCE, or three standard errors, its
    own and the line's: with a dozen counts to look at, one beyond two of them is to be expected.
    """
    error = np.zeros_like(y) if error is None else error
    for last in range(len(n) - 1, LEAST_COUNTS - 2, -1):
        first = last - LEAST_COUNTS + 1
        part = slice(first, last + 1)
        if not _sound(n[part], y[part], error[part]):
            continue
        while first > 0 and _predicts(slice(first, last + 1), n, y, error):
            first -= 1
        return first, last
    return None


def _sound(n: Floats, y: Floats, error: Floats) -> bool:
    """Whether these counts lie on one line that can be a cost: rising, and with a fixed part that can be a wait.

    Below zero a fixed part can't be: there the line is bent by back-pressure. Nor may it outweigh the work at the first
    count: the plateau under the knee is a perfect line too, with a meaningless slope.
    """
    fit = line(n, y)
    slack = np.maximum(RANGE_TOLERANCE * y, 3 * error)
    least_fixed = -max(slack[0], 3 * _uncertainty(fit, n, y, error, 0.0))
    close = np.abs(y - fit.at(n)) <= slack
    return bool(close.all() and fit.slope > 0 and fit.fixed >= least_fixed) and _works(fit, n[0])


def _predicts(part: slice, n: Floats, y: Floats, error: Floats) -> bool:
    """Whether the line through `part` predicts the time at the count below it."""
    fit, below = line(n[part], y[part]), part.start - 1
    unsure = np.hypot(error[below], _uncertainty(fit, n[part], y[part], error[part], n[below]))
    slack = max(RANGE_TOLERANCE * y[below], 3 * unsure)
    return bool(abs(y[below] - fit.at(n[below])[0]) <= slack) and _works(fit, n[below])


def _uncertainty(fit: Line, n: Floats, y: Floats, error: Floats, at: float) -> float:
    """Standard error of the line at a count, from those of the times it goes through: a weighted sum of them (Bevington
    and Robinson, Data Reduction and Error Analysis, 3rd edition, section 6.4).
    """
    weight = 1 / np.maximum(fit.at(n), 0.1 * y) ** 2
    center = (weight * n).sum() / weight.sum()
    share = weight / weight.sum() + (at - center) * weight * (n - center) / (weight * (n - center) ** 2).sum()
    return float(np.sqrt(((share * error) ** 2).sum()))


def _works(fit: Line, n: float) -> bool:
    """Whether the work at n is at least half the fixed part: with less, the wait's own scatter bends the slope."""
    return bool(2 * fit.slope * n >= fit.fixed)


def before_stall(n: Floats, encode: Floats) -> int | None:
    """Index of the last count before encoding stalls, or None where it never does.

    Encoding costs a fixed part and so much a dispatch, so its time over n falls with n; where the caller is held up it
    rises again. It stalls from the count on above which it stays STALL_RATIO times its least.
    """
    per_dispatch = encode / n
    least = int(np.argmin(per_dispatch))
    stalled = per_dispatch[least:] >= STALL_RATIO * per_dispatch[least]
    if per_dispatch[least] <= 0 or not stalled[-1]:
        return None  # too fast for the clock, or never held up
    return least + int(np.flatnonzero(~stalled)[-1])


def halves(n: Floats) -> tuple[slice, slice]:
    """The lower and the upper half of an index range, disjoint; the middle one of an odd number goes up."""
    middle = len(n) // 2
    return slice(0, middle), slice(middle, len(n))


@dataclass(frozen=True)
class Modes:
    """Two groups of times: their medians, the share of samples in the upper one, and the border between them."""

    lower: float
    upper: float
    upper_share: float
    border: float


def two_modes(values: Sequence[float] | Floats, least_share: float = 0.05) -> Modes | None:
    """The two modes of a sample, or None where it has one.

    The border is Otsu's threshold on the logarithms (IEEE Trans. SMC 9(1), 1979: least variance within both groups).
    They count as two where each holds `least_share` of the samples and the gap is clear: Ashman's D above 3 (Ashman,
    Bird and Zepf, AJ 108, 1994, ask for 2).
    """
    x = np.sort(np.log(np.asarray(values, dtype=np.float64)))
    least = max(2, int(np.ceil(least_share * x.size)))
    splits = range(least, x.size - least + 1)
    if not splits:
        return None
    at = min(splits, key=lambda i: x[:i].var() * i + x[i:].var() * (x.size - i))
    low, high = x[:at], x[at:]
    spread = np.sqrt((_robust_sd(low) ** 2 + _robust_sd(high) ** 2) / 2)
    if np.median(high) - np.median(low) <= 3 * spread or np.median(high) == np.median(low):
        return None
    border = float(np.exp((low[-1] + high[0]) / 2))
    return Modes(float(np.exp(np.median(low))), float(np.exp(np.median(high))), high.size / x.size, border)


def _robust_sd(x: Floats) -> float:
    """Standard deviation by the median absolute deviation, 1.4826 × MAD (Rousseeuw and Croux, JASA 88, 1993)."""
    return float(1.4826 * np.median(np.abs(x - np.median(x))))


def fieller(over: Floats, under: Floats, level: float = 0.95) -> Interval:
    """Ratio of two means from pairs, with Fieller's interval (J. R. Stat. Soc. B 16, 1954): exact for normal pairs, and
    not symmetric. ValueError below two pairs, or where the mean below can't be told from zero: the interval is then
    everything, or all but a gap.
    """
    n = over.size
    if n < 2:
        raise ValueError(f"an interval over launches needs 2 launches, there are {n}")
    a, b = float(over.mean()), float(under.mean())
    (aa, ab), (_, bb) = np.cov(over, under) / n
    t2 = student_t(level, n - 1) ** 2
    head, lead = a * b - t2 * ab, b * b - t2 * bb
    if lead <= 0:
        raise ValueError("the mean that is divided by can't be told from zero")
    half = np.sqrt(max(0.0, head * head - lead * (a * a - t2 * aa)))
    return Interval(a / b, float((head - half) / lead), float((head + half) / lead), level, n)


@dataclass(frozen=True)
class Contrast:
    """A difference of two effects, its standard error and the degrees of freedom behind that."""

    value: float
    error: float
    degrees: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        half = student_t(level, self.degrees) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """Two-sided, of no difference."""
        if self.error == 0:
            return 1.0 if self.value == 0 else 0.0
        return float(2 * stats.t.sf(abs(self.value) / self.error, self.degrees))


class Blocks:
    """y = treatment + block + error, shape (treatments, blocks), NaN where there is none: a randomised block design by
    least squares (Cochran and Cox, Experimental Designs, 2nd edition, chapter 4), so that what a block does to all its
    treatments drops out. The scatter is pooled over all treatments. ValueError where it leaves no degree of freedom.
    """

    def __init__(self, y: Floats) -> None:
        treatment, block = np.nonzero(np.isfinite(y))
        design = np.zeros((treatment.size, sum(y.shape)))
        design[np.arange(treatment.size), treatment] = 1
        design[np.arange(treatment.size), y.shape[0] + block] = 1
        known = y[treatment, block]
        self._normal = design.T @ design
        self._inverse = np.linalg.pinv(self._normal)
        self._effects = self._inverse @ design.T @ known
        self.degrees = int(treatment.size - np.linalg.matrix_rank(design))
        if self.degrees < 1:
            raise ValueError("too few launches to tell scatter from change")
        left = known - design @ self._effects
        self._variance = float(left @ left) / self.degrees

    def contrast(self, before: int, after: int) -> Contrast | None:
        """Treatment `after` less treatment `before`; None where no chain of blocks leads from one to the other."""
        by = np.zeros(self._effects.size)
        by[before], by[after] = by[before] - 1, by[after] + 1
        if not np.allclose(by @ self._inverse @ self._normal, by, atol=1e-6):
            return None
        error = np.sqrt(self._variance * float(by @ self._inverse @ by))
        return Contrast(float(by @ self._effects), float(error), self.degrees)


def holm(p: Sequence[float]) -> list[float]:
    """p values for all hypotheses together (Holm, Scand. J. Statist. 6, 1979), in the order given."""
    adjusted, highest = [0.0] * len(p), 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        highest = max(highest, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = highest
    return adjusted
