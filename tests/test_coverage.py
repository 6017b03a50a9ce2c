"""What intervals and comparisons promise, in short simulations; and that a planted fault of an estimator is caught."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks import coverage
from rig import series, stats
from rig.ladder import Ladder, ratio
from rig.series import Series
from rig.stats import Floats, Interval

RUNS = 400
SLACK = 3 * np.sqrt(0.94 * 0.06 / RUNS)
"""Three standard errors of a share of 94 % over so many runs."""


def covers(case: str) -> float:
    number = list(coverage.CASES).index(case)
    rng = np.random.default_rng([5, number])
    return coverage.cover(coverage.CASES[case], rng, RUNS)[1].value


@pytest.mark.parametrize("case", [name for name in coverage.CASES if name != "two_mode_launches"])
def test_the_interval_of_a_slope_holds_the_truth_as_often_as_it_says(case: str) -> None:
    assert covers(case) >= coverage.LEAST - SLACK


def stored_run() -> Series:
    """Twenty launches that scatter by 10 %, of samples in two modes, on a ladder that is bent by 4 % in its middle."""
    rng = np.random.default_rng(8)
    n = np.array([100.0, 200.0, 400.0, 700.0, 1000.0])
    modes = np.where(rng.random((20, 12, n.size)) < 0.25, 2.5, 0.5)
    launch = np.exp(rng.normal(0, 0.1, (20, 1, 1)))
    us = (500 + 7 * launch * n * np.array([1, 1, 1.04, 1, 1])) * modes
    us[3, 7:] = us[5, 0, 2] = np.nan
    return Series(n, us)


def test_resampled_noise_has_the_scatter_and_the_modes_of_the_stored_run_and_a_known_slope() -> None:
    stored = stored_run()
    times = coverage.Noise.of(stored).one(np.random.default_rng(9), 400, 50)
    drawn = Series(coverage.COUNTS, times)
    assert np.log(drawn.slopes).mean() == pytest.approx(np.log(coverage.SLOPE_US), abs=0.02)
    assert np.log(drawn.slopes).std() == pytest.approx(np.log(stored.slopes).std(), rel=0.15)
    modes = stats.two_modes((times / drawn.lines().at(coverage.COUNTS)[:, None])[:20].ravel())
    assert modes is not None
    assert (modes.upper_share, modes.upper / modes.lower) == pytest.approx((0.25, 5), rel=0.15)


def test_the_interval_holds_the_truth_of_resampled_noise_too() -> None:
    _, held = coverage.cover(coverage.Noise.of(stored_run()).one, np.random.default_rng(10), RUNS)
    assert held.value >= coverage.LEAST - SLACK


def test_planted_samples_whose_mean_is_not_the_cost_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Series, "lines", lambda self, part=None: stats.line(self.n, np.nanmedian(self.us, axis=1)))  # noqa: ARG005
    monkeypatch.setattr(Series, "doubt", "")
    assert covers("lognormal") < coverage.LEAST - SLACK


def test_planted_the_wait_not_subtracted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def total_over_n(n: Floats, y: Floats) -> stats.Line:
        slope = (np.asarray(y) / n).mean(axis=-1)
        return stats.Line(slope, np.zeros_like(slope))

    honest = coverage.cover(coverage.CASES["plain"], np.random.default_rng(1), 50)
    monkeypatch.setattr(Series, "lines", lambda self, part=None: total_over_n(self.n, self.means))  # noqa: ARG005
    monkeypatch.setattr(Series, "doubt", "")
    faulty = coverage.cover(coverage.CASES["plain"], np.random.default_rng(1), 50)
    assert honest[1].value > 0.8
    assert faulty[1].value < 0.05


def test_planted_counts_below_the_knee_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Series, "range", property(lambda self: (0, len(self.n) - 1)))
    monkeypatch.setattr(Series, "doubt", "")
    assert covers("polled") < coverage.LEAST - SLACK


def test_planted_counts_below_the_knee_are_doubted_even_where_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Series, "range", property(lambda self: (0, len(self.n) - 1)))
    rng = np.random.default_rng(2)
    sure, _ = coverage.cover(coverage.CASES["polled"], rng, 50)
    assert sure.value < 0.1


def interval_covers() -> float:
    """Of many runs of three launches each: little enough that a fault of the interval shows."""
    slopes = np.exp(np.random.default_rng(11).normal(0, 0.1, size=(20_000, 3)))
    intervals = [stats.geometric_interval(run) for run in slopes]
    return float(np.mean([interval.low <= 1 <= interval.high for interval in intervals]))


@pytest.mark.parametrize(("ddof", "more"), [(0, 0), (1, 1)])
def test_planted_a_divisor_or_degrees_of_freedom_that_are_wrong_are_caught(
    monkeypatch: pytest.MonkeyPatch, ddof: int, more: int
) -> None:
    def narrow(x: Floats, level: float = 0.95) -> Interval:
        half = stats.student_t(level, x.size - 1 + more) * x.std(ddof=ddof) / np.sqrt(x.size)
        return Interval(float(x.mean()), float(x.mean() - half), float(x.mean() + half), level, x.size)

    assert coverage.LEAST <= interval_covers() <= coverage.MOST
    monkeypatch.setattr(stats, "mean_interval", narrow)
    assert interval_covers() < coverage.LEAST


def equivalent_share(looks: tuple[int, ...] = (12,)) -> float:
    shares = coverage.told(coverage.simple_pair, 1.0, np.random.default_rng(3), 150, looks, 12, 12)
    return float(shares["equivalent"].value)


def test_planted_pairs_that_are_broken_cost_all_the_power(monkeypatch: pytest.MonkeyPatch) -> None:
    assert equivalent_share() > 0.8
    whole = series.ratios

    def shuffled(over: Series, under: Series) -> Floats:
        """As if launch k of one side were not launch k of the other."""
        return whole(over, Series(under.n, np.roll(under.us, 1, axis=0)))

    monkeypatch.setattr(coverage, "ratios", shuffled)
    assert equivalent_share() < 0.3


def cut_short(rng: np.random.Generator, n: int, blocks: int) -> tuple[Floats, Floats]:
    """Two identical series in launches that slow down, one of which has the first half of the blocks only."""
    slowing = 1 + 0.008 * np.arange(blocks)[:, None]
    over, under = (us * slowing for us in coverage.simple_pair(rng, n, blocks))
    over[:, blocks // 2 :] = np.nan
    return over, under


def different_share() -> float:
    shares = coverage.told(cut_short, 1.0, np.random.default_rng(12), 150, (20,), 20, 12, margin=0.0)
    return shares["different"].value


def test_planted_blocks_that_are_not_matched_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert different_share() <= coverage.WRONG + 3 * np.sqrt(0.05 * 0.95 / 150)
    monkeypatch.setattr(coverage, "ratios", lambda over, under: over.slopes / under.slopes)
    assert different_share() > 0.2


def test_a_sample_that_one_side_lacks_is_left_out_of_the_other() -> None:
    counts = np.array([100.0, 200.0, 300.0, 400.0])
    even = 10 * np.ones((3, 4, 1)) * counts
    even[:, 0] *= 3  # one block in which everything was three times as slow
    lacking = even.copy()
    lacking[:, 0, 1] = np.nan  # and one side has no sample of it at one count
    assert series.ratios(Series(counts, lacking), Series(counts, even)) == pytest.approx(1.0)


def ladder(counts: list[int], slope_us: float) -> Ladder:
    rows = [(launch, block, n, slope_us * n) for launch in range(3) for block in range(2) for n in counts]
    return Ladder("sequential", {}, "wall", pd.DataFrame(rows, columns=["launch", "block", "n", "wall_us"]))


@pytest.mark.parametrize(
    ("counts", "value"),
    [([100, 200, 300, 500], 2.0), ([100, 200, 500, 700], 2.0), ([300, 500, 700, 900], 2.0), ([1, 2, 5, 10], None)],
)
def test_a_count_that_one_side_lacks_altogether_is_left_out_of_the_ratio(
    counts: list[int], value: float | None
) -> None:
    found = ratio("sequential.ratio", {}, ladder([100, 200, 300, 500, 700], 10), ladder(counts, 5))
    assert found.value == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("factor", "margin", "wrong"), [(1.0, 0.0, "different"), (1.05, 0.05, "different"), (1.05, 0.05, "equivalent")]
)
def test_comparisons_are_seldom_wrong_over_all_looks(factor: float, margin: float, wrong: str) -> None:
    rng, last = np.random.default_rng(4), coverage.LOOKS[-1]
    shares = coverage.told(coverage.simple_pair, factor, rng, 200, coverage.LOOKS, last, 12, margin)
    assert shares[wrong].value <= coverage.WRONG + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_looking_four_times_at_the_full_level_would_be_wrong_too_often() -> None:
    rng = np.random.default_rng(6)
    values = np.exp(rng.normal(np.log(1.05), 0.04, size=(2000, 20)))

    def called(split: bool) -> float:
        hits = 0
        for run in values:
            for look in coverage.LOOKS:
                alpha = 1 - stats.split_level(look, coverage.LOOKS) if split else 0.05
                if stats.equivalent(stats.geometric_interval(run[:look], 1 - 2 * alpha), 0.05):
                    hits += 1
                    break
        return hits / len(values)

    assert called(split=True) <= 0.05
    assert called(split=False) > 0.05


def test_the_error_is_split_over_looks_and_comparisons() -> None:
    looks = (5, 8, 12, 20)
    shares = [1 - stats.split_level(look, looks) for look in looks]
    assert sum(shares) == pytest.approx(0.05)
    assert shares == sorted(shares)
    assert 1 - stats.split_level(12, looks, 4) == pytest.approx(shares[2] / 4)
    assert stats.split_level(9, looks) == stats.split_level(12, looks)
    assert stats.split_level(25, looks) == stats.split_level(20, looks)


@pytest.mark.parametrize(
    ("low", "value", "high", "said"),
    [
        (0.97, 1.0, 1.03, (True, False)),
        (0.90, 1.0, 1.10, (False, False)),
        (1.01, 1.03, 1.049, (True, False)),
        (1.01, 1.10, 1.20, (False, False)),
        (1.06, 1.10, 1.14, (False, True)),
        (0.80, 0.85, 0.90, (False, True)),
    ],
)
def test_equivalent_and_different_follow_the_interval(
    low: float, value: float, high: float, said: tuple[bool, bool]
) -> None:
    interval = Interval(value, low, high, 0.95, 5)
    assert (stats.equivalent(interval, 0.05), stats.different(interval, 0.05)) == said
