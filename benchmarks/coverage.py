"""How often does the interval of a slope hold the true slope, and how often is a comparison wrong? Simulated runs.

Every simulated run goes through rig.series and rig.stats as a stored one does: linear range, a line a launch, interval
over launches, doubts; ratios paired by block, the error split over looks. Beside each share stands its Monte Carlo
error, the standard error of a share. Coverage is counted among the runs whose slope came out without a doubt.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rig import config, frames, stats
from rig.experiments import dtype
from rig.experiments.sequential import SequentialOptions
from rig.ladder import Ladder
from rig.series import Series, ratios
from rig.stats import Floats
from rig.store import StoreError

COUNTS = np.array(SequentialOptions().counts, dtype=np.float64)
SLOPE_US, FIXED_US, FLOOR_US = 20.0, 300.0, 2500.0
LAUNCH_SD, SAMPLE_SD = 0.08, 0.10
"""Standard deviations of the logarithms, between launches and between samples."""

LAUNCHES, BLOCKS = 5, 10
"""Of one simulated run in the cases of coverage."""

LEAST, MOST = 0.94, 0.97
"""Bounds on coverage: the lower in every case but two-mode launches, the upper in the plain one."""

WRONG, POWER = 0.05, 0.80
"""At most so many comparisons may be wrong; so many ought to be settled at the budget of the profile standard."""

LOOKS = (5, 8, 12, 20)
APART = 1.15
LAUNCHES_TRIED = (12, 20, 40, 80, 160, 320, 640)
NOISE = Path("reports/noise")
PAIR_COUNTS = np.array(dtype.DtypeOptions().counts["one_pass"], dtype=np.float64)

Rng = np.random.Generator
Case = Callable[[Rng, int, int], Floats]


# --- runs of one series, shape (launches, blocks, counts), in µs ----------------------------------------------------


def _launches(rng: Rng, n: int) -> Floats:
    """Slope of each launch, ready to be multiplied with counts."""
    return np.asarray(SLOPE_US * np.exp(rng.normal(0, LAUNCH_SD, (n, 1, 1))))


def _scattered(rng: Rng, times: Floats, n: int, blocks: int, sd: float = SAMPLE_SD) -> Floats:
    """Each sample off by a factor whose mean is 1: a slope through means is what many dispatches cost."""
    return np.asarray(times * np.exp(rng.normal(-(sd**2) / 2, sd, (n, blocks, COUNTS.size))))


def plain(rng: Rng, n: int, blocks: int) -> Floats:
    return _scattered(rng, FIXED_US + _launches(rng, n) * COUNTS, n, blocks)


def lognormal(rng: Rng, n: int, blocks: int) -> Floats:
    """Samples with a long upper tail, as interruptions make it."""
    return _scattered(rng, FIXED_US + _launches(rng, n) * COUNTS, n, blocks, 0.4)


def polled(rng: Rng, n: int, blocks: int) -> Floats:
    """A wait that answers no sooner than the first poll."""
    return _scattered(rng, np.maximum(FIXED_US + _launches(rng, n) * COUNTS, FLOOR_US), n, blocks)


def stalled(rng: Rng, n: int, blocks: int) -> Floats:
    """Back-pressure: above 1,000 dispatches each costs three times as much."""
    extra = np.maximum(COUNTS - 1000, 0)
    return _scattered(rng, FIXED_US + _launches(rng, n) * (COUNTS + 2 * extra), n, blocks)


def two_mode_samples(rng: Rng, n: int, blocks: int) -> Floats:
    """Every other sample costs four times what the rest do, as threads of a software adapter on two cores make it."""
    modes = np.where(rng.random((n, blocks, COUNTS.size)) < 0.5, 0.4, 1.6)
    return _scattered(rng, FIXED_US + _launches(rng, n) * COUNTS * modes, n, blocks)


def drifting(rng: Rng, n: int, blocks: int) -> Floats:
    """Each block of a launch is 1 % slower than the one before; the mean block is the truth."""
    drift = 1 + 0.01 * (np.arange(blocks) - (blocks - 1) / 2)
    return _scattered(rng, FIXED_US + _launches(rng, n) * COUNTS * drift[:, None], n, blocks)


def one_bad_launch(rng: Rng, n: int, blocks: int) -> Floats:
    """One launch of the run is three times as slow throughout; the others are the truth."""
    times = plain(rng, n, blocks)
    times[rng.integers(n)] *= 3
    return times


def two_mode_launches(rng: Rng, n: int, blocks: int) -> Floats:
    """Half the launches, by chance, cost three times what the others do."""
    modes = np.where(rng.random((n, 1, 1)) < 0.5, 1 / np.sqrt(3), np.sqrt(3))
    return _scattered(rng, FIXED_US + _launches(rng, n) * modes * COUNTS, n, blocks)


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (*(plain, lognormal, polled, stalled, two_mode_samples, drifting, one_bad_launch, two_mode_launches),)
}


# --- noise of a stored run ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise:
    """How a stored run scatters. `slopes`: of its launches, over their geometric mean; `samples`: of each launch, its
    samples over its own line, shape (blocks, counts), of mean 1.

    Drawn with replacement are launches, blocks of each, and samples of each block, whatever their count (residuals of a
    two-stage sample; Davison and Hinkley, Bootstrap Methods and their Application, 1997, sections 3.8 and 6.2). The
    line that they are put upon is straight and known, which the stored one is not.
    """

    slopes: Floats
    samples: tuple[Floats, ...]

    @classmethod
    def of(cls, stored: Series) -> Noise:
        """From the samples on the line; blocks that lack one are left out."""
        relative = stored.us[:, :, stored.part] / stored.lines().at(stored.counts)[:, None]
        whole = [launch[~np.isnan(launch).any(axis=1)] for launch in relative]
        slopes = stored.slopes / np.exp(np.log(stored.slopes).mean())
        return cls(slopes, tuple(samples / samples.mean() for samples in whole))

    def one(self, rng: Rng, n: int, blocks: int) -> Floats:
        launch = rng.integers(len(self.slopes), size=n)
        scatter = self._scatter(rng, launch, blocks, COUNTS.size)
        return np.asarray((FIXED_US + SLOPE_US * self.slopes[launch, None, None] * COUNTS) * scatter)

    def two(self, rng: Rng, n: int, blocks: int) -> tuple[Floats, Floats]:
        """Two identical series of the same launches and blocks."""
        launch = rng.integers(len(self.slopes), size=n)
        times = SLOPE_US * self.slopes[launch, None, None] * np.concatenate([PAIR_COUNTS, PAIR_COUNTS])
        a, b = np.split(times * self._scatter(rng, launch, blocks, 2 * PAIR_COUNTS.size), 2, axis=2)
        return a, b

    def _scatter(self, rng: Rng, launch: npt.NDArray[np.int64], blocks: int, counts: int) -> Floats:
        drawn = [self.samples[i] for i in launch]
        block = [rng.integers(len(samples), size=(blocks, 1)) for samples in drawn]
        count = rng.integers(self.samples[0].shape[1], size=(len(launch), blocks, counts))
        return np.stack([samples[b, c] for samples, b, c in zip(drawn, block, count, strict=True)])


@cache
def noise_of(path: Path) -> Noise:
    """That of one pass by span, where a stored run scatters most. StoreError where there is no such run."""
    run = frames.read(path)
    return Noise.of(Ladder("sequential", {}, "span", run.counted(run.rows("sequential", policy="one_pass"))).series)


# --- coverage -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """`hits` of `of` simulated runs."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        return self.hits / self.of if self.of else 0.0

    @property
    def error(self) -> float:
        """Standard error of the share."""
        return float(np.sqrt(self.value * (1 - self.value) / self.of)) if self.of else 1.0

    def __str__(self) -> str:
        return f"{self.value:.1%} ± {self.error:.1%}"


def cover(case: Case, rng: Rng, runs: int, launches: int = LAUNCHES, blocks: int = BLOCKS) -> tuple[Share, Share]:
    """Of `runs` simulated runs the share whose slope is without doubt, and of those whose interval holds the truth."""
    sure = held = 0
    for _ in range(runs):
        series = Series(COUNTS, case(rng, launches, blocks))
        if series.doubt:
            continue
        interval = series.interval()
        sure += 1
        held += interval.low <= SLOPE_US <= interval.high
    return Share(sure, runs), Share(held, sure)


# --- comparisons ----------------------------------------------------------------------------------------------------


def settle(over: Floats, under: Floats, looks: Sequence[int], margin: float) -> str:
    """What a run says of two series, stopping at the first look that settles it: different, equivalent, or nothing."""
    for look in (look for look in looks if look <= len(over)):
        sides = [Series(PAIR_COUNTS, us[:look]) for us in (over, under)]
        if any(side.doubt for side in sides):
            continue
        values = ratios(*sides)
        if not (values > 0).all():
            continue
        level = stats.split_level(look, looks)
        if stats.different(stats.geometric_interval(values, level), margin):
            return "different"
        if stats.equivalent(stats.geometric_interval(values, 1 - 2 * (1 - level)), margin):
            return "equivalent"
    return ""


Pair = Callable[[Rng, int, int], tuple[Floats, Floats]]


def simple_pair(rng: Rng, n: int, blocks: int, sd: float = 0.01) -> tuple[Floats, Floats]:
    """Two identical series of the same launches, each launch of which treats them a little differently."""
    common = _launches(rng, n)
    times = [common * np.exp(rng.normal(0, sd, (n, 1, 1))) * PAIR_COUNTS for _ in range(2)]
    a, b = (t * np.exp(rng.normal(0, SAMPLE_SD, (n, blocks, PAIR_COUNTS.size))) for t in times)
    return a, b


def told(
    pair: Pair,
    factor: float,
    rng: Rng,
    runs: int,
    looks: Sequence[int],
    launches: int,
    blocks: int,
    margin: float = dtype.MARGIN,
) -> dict[str, Share]:
    """Shares of what is said of two series of which one costs `factor` times the other, over the looks that
    `launches` reach. With a margin of 0 nothing is equivalent, and no run stops before it calls them different.
    """
    counted = {"different": 0, "equivalent": 0, "": 0}
    for _ in range(runs):
        over, under = pair(rng, launches, blocks)
        counted[settle(over * factor, under, looks, margin)] += 1
    return {said: Share(hits, runs) for said, hits in counted.items()}


def enough(pair: Pair, factor: float, said: str, runs: int, blocks: int) -> str:
    """What it takes to be told so in POWER of the runs: launches of a single look."""
    share = Share(0, runs)
    for launches in LAUNCHES_TRIED:
        rng = np.random.default_rng([3, launches])
        share = told(pair, factor, rng, runs, [launches], launches, blocks)[said]
        if share.value >= POWER:
            return f"takes {launches} launches of {blocks} blocks ({share})"
    return f"is not reached with {LAUNCHES_TRIED[-1]} launches of {blocks} blocks ({share})"


# --- all of it ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One printed result: whether it is within its bound, None where there is none."""

    name: str
    text: str
    figures: dict[str, float]
    within: bool | None


def covered(name: str, runs: int, noise: Path) -> Line:
    case = noise_of(noise).one if name == "resampled" else CASES[name]
    number = [*CASES, "resampled"].index(name)
    sure, held = cover(case, np.random.default_rng([1, number]), runs)
    within: bool | None = held.value + 2 * held.error >= LEAST
    if name == "plain":
        within = within and held.value - 2 * held.error <= MOST
    if name == "two_mode_launches":
        within = None
    text = f"intervals cover {held} of the {sure.value:.1%} without doubt"
    return Line(name, text, {"coverage": held.value, "error": held.error, "without_doubt": sure.value}, within)


def compared(kind: str, runs: int, noise: Path) -> list[Line]:
    """Wrong calls over the whole stopping procedure; `kind` of noise: simple or resampled."""
    pair, blocks = _pair(kind, noise)
    rng = np.random.default_rng([2, len(kind)])
    same = told(pair, 1.0, rng, runs, LOOKS, LOOKS[-1], blocks, margin=0.0)
    edge = told(pair, 1 + dtype.MARGIN, rng, runs, LOOKS, LOOKS[-1], blocks)
    return [
        _bounded(f"{kind}: identical, called different", same["different"]),
        _bounded(f"{kind}: at the margin, called equivalent", edge["equivalent"]),
        _bounded(f"{kind}: at the margin, called different", edge["different"]),
    ]


def powered(kind: str, runs: int, noise: Path) -> list[Line]:
    """Power at the budget of the profile standard: its first look, its blocks. Where it falls short, what it takes."""
    pair, blocks = _pair(kind, noise)
    looks = config.load("standard").launches.looks
    lines = []
    for name, factor, said in (("identical", 1.0, "equivalent"), ("15 % apart", APART, "different")):
        share = told(pair, factor, np.random.default_rng([4, len(kind)]), runs, looks, looks[0], blocks)[said]
        text = f"{share}, at {looks[0]} launches of {blocks} blocks"
        if share.value < POWER:
            text += f"; {POWER:.0%} {enough(pair, factor, said, max(200, runs // 20), blocks)}"
        lines.append(Line(f"{kind}: {name}, called {said}", text, {"share": share.value, "error": share.error}, None))
    return lines


def _pair(kind: str, noise: Path) -> tuple[Pair, int]:
    blocks = config.options(config.load("standard"), "dtype").blocks
    return (noise_of(noise).two if kind == "resampled" else simple_pair), blocks


def _bounded(name: str, share: Share) -> Line:
    within = share.value - 2 * share.error <= WRONG
    return Line(name, str(share), {"share": share.value, "error": share.error}, within)


def _work(noise: Path) -> Iterable[Callable[[int, Path], Line | list[Line]]]:
    stored = ["resampled"]
    try:
        noise_of(noise)
    except StoreError as error:
        print(f"no resampled noise: {error}", file=sys.stderr)
        stored = []
    yield from (partial(covered, name) for name in (*CASES, *stored))
    for kind in ("simple", *stored):
        yield from (partial(compared, kind), partial(powered, kind))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000, help="simulated runs a case (default 10,000)")
    parser.add_argument("--noise", type=Path, default=NOISE, help="the stored run whose noise is resampled")
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: as many as cores)")
    asked = parser.parse_args()
    lines: list[Line] = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for done in [pool.submit(work, asked.runs, asked.noise) for work in _work(asked.noise)]:
            result = done.result()
            for line in result if isinstance(result, list) else [result]:
                mark = {True: "ok", False: "MISSED", None: "-"}[line.within]
                print(f"{mark:7}{line.name:45} {line.text}", flush=True)
                lines.append(line)
    print(json.dumps({line.name: line.figures for line in lines}))
    return 0 if all(line.within is not False for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
