"""Estimators: against data whose true answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from rig import stats
from rig.series import Series

COUNTS = np.array([1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000, 1400, 2000], dtype=np.float64)


def test_the_interval_of_a_mean_is_that_of_the_handbook() -> None:
    # NIST/SEMATECH e-Handbook, 1.3.5.2: the t table, not the normal one, and n − 1 degrees of freedom.
    found = stats.mean_interval([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * np.sqrt(5 / 3) / 2
    assert found.value == pytest.approx(2.5)
    assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half))


def test_one_launch_has_no_interval() -> None:
    with pytest.raises(ValueError, match="needs 2 launches"):
        stats.mean_interval([1.0])


def test_a_geometric_interval_of_something_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="1 of 2 launches gave no positive value"):
        stats.geometric_interval([1.0, -1.0])


def test_intervals_over_launches_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(7)
    runs = 4000
    covered = 0
    for values in np.exp(rng.normal(np.log(30), 0.2, size=(runs, 6))):
        interval = stats.geometric_interval(values)
        covered += interval.low <= 30 <= interval.high
    # three standard errors of a share of 0.95 over 4,000 runs
    assert covered / runs == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / runs))


def test_a_line_is_found_exactly_and_its_fixed_part_may_be_negative() -> None:
    for fixed in (500.0, -3.0):
        fit = stats.line(COUNTS[4:], fixed + 7 * COUNTS[4:])
        assert (fit.slope, fit.fixed) == pytest.approx((7, fixed))


def test_the_slope_is_unbiased_when_times_scatter_in_proportion_to_themselves() -> None:
    rng = np.random.default_rng(3)
    slopes = [
        stats.line(COUNTS, (400 + 20 * COUNTS) * np.exp(rng.normal(0, 0.05, COUNTS.size))).slope for _ in range(500)
    ]
    assert np.mean(slopes) == pytest.approx(20, rel=0.005)


def test_the_range_leaves_out_counts_below_the_knee() -> None:
    polled = np.maximum(400 + 6 * COUNTS, 2500.0)
    first, last = stats.linear_range(COUNTS, polled) or (0, 0)
    assert COUNTS[first] == 500  # 400 + 6 · 300 is still under the floor
    assert COUNTS[last] == 2000


def test_the_plateau_below_the_knee_is_no_linear_range_though_it_is_a_perfect_line() -> None:
    # a slight slope under the poll, as a host's encoding makes: the trap of a ladder that ends too early
    assert stats.linear_range(COUNTS[:8], 2500 + 1.5 * COUNTS[:8]) is None


def test_the_range_leaves_out_counts_above_back_pressure() -> None:
    stalled = 300 + 40 * COUNTS + 80 * np.maximum(COUNTS - 500, 0)
    first, last = stats.linear_range(COUNTS, stalled) or (0, 0)
    assert COUNTS[last] == 500
    assert stats.line(COUNTS[first : last + 1], stalled[first : last + 1]).slope == pytest.approx(40)


def test_encoding_stalls_from_the_count_on_where_its_time_a_dispatch_rises_again() -> None:
    encode = 60 + 5 * COUNTS + 10 * np.maximum(COUNTS - 700, 0)
    assert COUNTS[stats.before_stall(COUNTS, encode) or 0] == 700
    assert stats.before_stall(COUNTS, 60 + 5 * COUNTS) is None
    assert stats.before_stall(COUNTS, 0 * COUNTS) is None  # too fast for the clock


def test_a_noisy_time_agrees_with_the_line_within_three_standard_errors_and_no_further() -> None:
    y = 5 * COUNTS
    y[-1] *= 1.15
    assert stats.linear_range(COUNTS, y, 0.1 * y) == (0, COUNTS.size - 1)
    assert stats.linear_range(COUNTS, y, 0.01 * y) == (0, COUNTS.size - 2)


def test_time_that_does_not_grow_with_the_work_has_no_linear_range() -> None:
    assert stats.linear_range(COUNTS, np.full(COUNTS.size, 30.0)) is None


def test_the_whole_ladder_is_the_range_where_all_of_it_is_linear() -> None:
    assert stats.linear_range(COUNTS, 5 * COUNTS) == (0, COUNTS.size - 1)


@pytest.mark.parametrize("size", [4, 5, 9, 12])
def test_the_two_halves_are_disjoint_and_leave_nothing_out(size: int) -> None:
    indices = np.arange(size, dtype=np.float64)
    low, high = (list(indices[half]) for half in stats.halves(indices))
    assert low + high == list(indices)
    assert min(len(low), len(high)) >= 2


def test_two_modes_are_found_with_their_shares() -> None:
    rng = np.random.default_rng(1)
    fast, slow = np.exp(rng.normal(np.log(400), 0.15, 600)), np.exp(rng.normal(np.log(2500), 0.05, 400))
    modes = stats.two_modes(np.concatenate([fast, slow]))
    assert modes is not None
    assert (modes.lower, modes.upper, modes.upper_share) == pytest.approx((400, 2500, 0.4), rel=0.02)


@pytest.mark.parametrize("sd", [0.0, 0.05, 0.5])
def test_one_mode_is_not_taken_for_two(sd: float) -> None:
    rng = np.random.default_rng(2)
    assert stats.two_modes(np.exp(rng.normal(7, sd, 500))) is None


def test_a_few_outliers_are_no_mode() -> None:
    rng = np.random.default_rng(2)
    assert stats.two_modes(np.concatenate([np.exp(rng.normal(6, 0.1, 400)), [40_000.0] * 5])) is None


def drifting(change: float, blocks: int = 10, launches: int = 5) -> Series:
    rng = np.random.default_rng(4)
    position = np.linspace(-0.5, 0.5, blocks)[None, :, None]
    times = (300 + 20 * COUNTS) * (1 + change * position)
    return Series(COUNTS, times * np.exp(rng.normal(0, 0.02, (launches, blocks, COUNTS.size))))


def test_b33_times_that_drift_within_a_launch_are_told_instead_of_one_mean() -> None:
    assert drifting(0.3).drift == pytest.approx(np.full(5, 0.3), abs=0.03)
    assert "times drift: by +" in drifting(0.3).doubt
    assert "times drift: by -" in drifting(-0.3).doubt
    assert drifting(0.0).doubt == ""


def test_b33_a_launch_with_a_single_block_says_nothing_of_drift() -> None:
    assert np.isnan(drifting(0.0, blocks=1).drift).all()
    assert drifting(0.0, blocks=1).doubt == ""
