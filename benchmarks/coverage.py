"""How often does the interval of a slope hold the true slope? Simulated runs, through the real estimator.

Each simulated run goes through rig.ladder as a stored one would: linear range, per-launch lines, interval over
launches, halves. Coverage is counted among the runs whose slope came out as ok; its Monte Carlo error is the
standard error of a share. The truth is the geometric mean of the slope over all launches that the case could make.

Not covered yet: equivalence and difference over several looks, and noise resampled from a stored run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rig.experiments.sequential import SequentialOptions
from rig.ladder import Ladder
from rig.records import MetricOutcome
from rig.stats import Floats

COUNTS = np.array(SequentialOptions().counts, dtype=np.float64)
SLOPE_US, FIXED_US, FLOOR_US = 20.0, 300.0, 2500.0
LAUNCH_SD, SAMPLE_SD = 0.08, 0.10
"""Standard deviations of the logarithms, between launches and between samples."""

LEAST, MOST = 0.94, 0.97
"""Bounds on coverage: the lower in every case but two-mode launches, the upper in the plain one."""

Rng = np.random.Generator


def launches(rng: Rng, n: int) -> Floats:
    """Slope of each launch, in µs."""
    return np.asarray(SLOPE_US * np.exp(rng.normal(0, LAUNCH_SD, n)))


def scattered(rng: Rng, slopes: Floats, blocks: int) -> Floats:
    """Wall times, shape (launches, blocks, counts), in µs."""
    times = FIXED_US + slopes[:, None, None] * COUNTS
    return np.asarray(times * np.exp(rng.normal(0, SAMPLE_SD, (slopes.size, blocks, COUNTS.size))))


def plain(rng: Rng, n: int, blocks: int) -> Floats:
    return scattered(rng, launches(rng, n), blocks)


def polled(rng: Rng, n: int, blocks: int) -> Floats:
    """A wait that answers no sooner than the first poll."""
    times = np.maximum(FIXED_US + launches(rng, n)[:, None, None] * COUNTS, FLOOR_US)
    return np.asarray(times * np.exp(rng.normal(0, SAMPLE_SD, (n, blocks, COUNTS.size))))


def stalled(rng: Rng, n: int, blocks: int) -> Floats:
    """Back-pressure: above 1,000 dispatches each costs three times as much."""
    extra = np.maximum(COUNTS - 1000, 0)
    times = FIXED_US + launches(rng, n)[:, None, None] * (COUNTS + 2 * extra)
    return np.asarray(times * np.exp(rng.normal(0, SAMPLE_SD, (n, blocks, COUNTS.size))))


def two_mode_samples(rng: Rng, n: int, blocks: int) -> Floats:
    """Every other sample costs four times what the rest do, as threads of a software adapter on two cores make it."""
    modes = np.where(rng.random((n, blocks, COUNTS.size)) < 0.5, 0.4, 1.6)
    times = FIXED_US + launches(rng, n)[:, None, None] * COUNTS * modes
    return np.asarray(times * np.exp(rng.normal(0, SAMPLE_SD, times.shape)))


def drifting(rng: Rng, n: int, blocks: int) -> Floats:
    """Each block of a launch is 1 % slower than the one before; the mean block is the truth."""
    drift = 1 + 0.01 * (np.arange(blocks) - (blocks - 1) / 2)
    times = FIXED_US + launches(rng, n)[:, None, None] * COUNTS * drift[:, None]
    return np.asarray(times * np.exp(rng.normal(0, SAMPLE_SD, (n, blocks, COUNTS.size))))


def one_bad_launch(rng: Rng, n: int, blocks: int) -> Floats:
    """One launch of the run is three times as slow throughout; the others are the truth."""
    times = plain(rng, n, blocks)
    times[rng.integers(n)] *= 3
    return times


def two_mode_launches(rng: Rng, n: int, blocks: int) -> Floats:
    """Half the launches, by chance, cost three times what the others do."""
    return scattered(rng, launches(rng, n) * np.where(rng.random(n) < 0.5, 1 / np.sqrt(3), np.sqrt(3)), blocks)


CASES: dict[str, Callable[[Rng, int, int], Floats]] = {
    case.__name__: case
    for case in (plain, polled, stalled, two_mode_samples, drifting, one_bad_launch, two_mode_launches)
}


@dataclass(frozen=True)
class Coverage:
    """Of one case: share of runs whose slope was ok, and of those the share whose interval held the truth."""

    runs: int
    ok: int
    held: int

    @property
    def share(self) -> float:
        return self.held / self.ok if self.ok else 0.0

    @property
    def error(self) -> float:
        """Standard error of the share."""
        return float(np.sqrt(self.share * (1 - self.share) / self.ok)) if self.ok else 1.0


def cover(case: Callable[[Rng, int, int], Floats], rng: Rng, runs: int, n: int, blocks: int) -> Coverage:
    """Simulates `runs` runs of `n` launches with `blocks` blocks each."""
    ok = held = 0
    launch, _, count = np.meshgrid(np.arange(n), np.arange(blocks), COUNTS, indexing="ij")
    for _ in range(runs):
        frame = pd.DataFrame({"launch": launch.ravel(), "n": count.ravel(), "wall_us": case(rng, n, blocks).ravel()})
        slope = Ladder("sequential", {}, "wall", frame).per_dispatch()
        if slope.outcome is MetricOutcome.ok and slope.ci_low is not None and slope.ci_high is not None:
            ok += 1
            held += slope.ci_low <= SLOPE_US <= slope.ci_high
    return Coverage(runs, ok, held)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=10_000, help="simulated runs a case (default 10,000: some minutes each)"
    )
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--case", choices=CASES, action="append", help="only this case; may be given again")
    asked = parser.parse_args()
    out: dict[str, dict[str, float]] = {}
    within = True
    for number, (name, case) in enumerate(CASES.items()):
        if asked.case and name not in asked.case:
            continue
        got = cover(case, np.random.default_rng([1, number]), asked.runs, asked.launches, asked.blocks)
        out[name] = {"coverage": got.share, "error": got.error, "ok": got.ok / got.runs}
        print(
            f"{name:18} covers {got.share:.1%} ± {got.error:.1%} of the {got.ok / got.runs:.1%} that are ok", flush=True
        )
        reached = got.share + 2 * got.error >= LEAST or name == "two_mode_launches"
        within &= reached and (name != "plain" or got.share - 2 * got.error <= MOST)
    print(json.dumps(out))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
