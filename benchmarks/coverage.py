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
import pandas as pd

from rig import config, frames, stats
from rig.experiments import dtype
from rig.experiments.sequential import SequentialOptions
from rig.ladder import Ladder
from rig.programs.micro import increment_chain
from rig.records import Dtype
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

Rng = np.random.Generator
Case = Callable[[Rng, int, int], Floats]


# --- runs of one series, shape (launches, blocks, counts), in µs ----------------------------------------------------


def _launches(rng: Rng, n: int) -> Floats:
    """Slope of each launch, ready to be multiplied with counts."""
    return np.asarray(SLOPE_US * np.exp(rng.normal(0, LAUNCH_SD, (n, 1, 1))))


def _scattered(rng: Rng, times: Floats, n: int, blocks: int, sd: float = SAMPLE_SD) -> Floats:
    return np.asarray(times * np.exp(rng.normal(0, sd, (n, blocks, COUNTS.size))))


def plain(rng: Rng, n: int, blocks: int) -> Floats:
    return _scattered(rng, FIXED_US + _launches(rng, n) * COUNTS, n, blocks)


def lognormal(rng: Rng, n: int, blocks: int) -> Floats:
    """Samples with a long upper tail, as interruptions make it; the mean sample is the truth."""
    sd = 0.4
    return _scattered(rng, (FIXED_US + _launches(rng, n) * COUNTS) / np.exp(sd**2 / 2), n, blocks, sd)


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
    """A stored run's samples: a ladder, and f32 and i32 side by side; shape (launches, blocks, counts)."""

    n: Floats
    ladder: Floats
    pair_n: Floats
    base: Floats
    other: Floats

    def one(self, rng: Rng, n: int, blocks: int) -> Floats:
        """A run like the stored one: launches drawn from its own, and blocks from each launch's own, with replacement
        (bootstrap of a two-stage sample; Davison and Hinkley, Bootstrap Methods, 1997, section 3.8).
        """
        (drawn,) = _drawn(rng, n, blocks, self.ladder)
        return drawn

    def two(self, rng: Rng, n: int, blocks: int) -> tuple[Floats, Floats]:
        """Both types, of the same launches and blocks; over the whole stored run their ratio is 1."""
        base, other = _drawn(rng, n, blocks, self.base, self.other)
        return other, base


def _drawn(rng: Rng, n: int, blocks: int, *arrays: Floats) -> tuple[Floats, ...]:
    launch = rng.integers(len(arrays[0]), size=n)
    filled = [np.flatnonzero(~np.isnan(arrays[0][i]).any(axis=1)) for i in launch]
    block = np.stack([rng.choice(there, size=blocks) for there in filled])
    return tuple(array[launch[:, None], block] for array in arrays)


@cache
def noise_of(path: Path) -> Noise:
    """StoreError where there is no such run."""
    run = frames.read(path)
    sequential = run.counted(run.rows("sequential", policy="one_pass"))
    ladder = Ladder("sequential", {}, "span", sequential).series
    sides: dict[Dtype, pd.DataFrame] = {
        kind: run.counted(run.rows("dtype", policy="one_pass", program=increment_chain(64, kind).name))
        for kind in (Dtype.f32, Dtype.i32)
    }
    base, other = (Ladder("dtype", {}, "span", rows).series for rows in sides.values())
    apart = stats.geometric_interval(ratios(other, base)).value
    return Noise(ladder.n, ladder.us, base.n, base.us, other.us / apart)


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


def cover(
    case: Case, truth_us: float, n: Floats, rng: Rng, runs: int, launches: int = LAUNCHES, blocks: int = BLOCKS
) -> tuple[Share, Share]:
    """Of `runs` simulated runs the share whose slope is without doubt, and of those whose interval holds the truth."""
    sure = held = 0
    for _ in range(runs):
        series = Series(n, case(rng, launches, blocks))
        if series.doubt:
            continue
        interval = series.interval()
        sure += 1
        held += interval.low <= truth_us <= interval.high
    return Share(sure, runs), Share(held, sure)


# --- comparisons ----------------------------------------------------------------------------------------------------


def settle(n: Floats, over: Floats, under: Floats, looks: Sequence[int], *, doubting: bool = True) -> str:
    """What a run says of two series, stopping at the first look that settles it: different, equivalent, or nothing.

    Without `doubting`, what it would say if both ladders were straight.
    """
    for look in (look for look in looks if look <= len(over)):
        sides = [Series(n, us[:look]) for us in (over, under)]
        if doubting and any(side.doubt for side in sides):
            continue
        values = ratios(*sides)
        if not (values > 0).all():
            continue
        level = stats.split_level(look, looks)
        if stats.different(stats.geometric_interval(values, level), dtype.MARGIN):
            return "different"
        if stats.equivalent(stats.geometric_interval(values, 1 - 2 * (1 - level)), dtype.MARGIN):
            return "equivalent"
    return ""


Pair = Callable[[Rng, int, int], tuple[Floats, Floats]]


def simple_pair(rng: Rng, n: int, blocks: int, sd: float = 0.01) -> tuple[Floats, Floats]:
    """Two identical series of the same launches, each launch of which treats them a little differently."""
    common = _launches(rng, n)
    counts = np.array(dtype.DtypeOptions().counts["one_pass"], dtype=np.float64)
    times = [common * np.exp(rng.normal(0, sd, (n, 1, 1))) * counts for _ in range(2)]
    a, b = (t * np.exp(rng.normal(0, SAMPLE_SD, (n, blocks, counts.size))) for t in times)
    return a, b


def told(
    pair: Pair,
    n: Floats,
    factor: float,
    rng: Rng,
    runs: int,
    looks: Sequence[int],
    launches: int,
    blocks: int,
    *,
    doubting: bool = True,
) -> dict[str, Share]:
    """Shares of what is said of two series of which one costs `factor` times the other, over the looks that
    `launches` reach.
    """
    counted = {"different": 0, "equivalent": 0, "": 0}
    for _ in range(runs):
        over, under = pair(rng, launches, blocks)
        counted[settle(n, over * factor, under, looks, doubting=doubting)] += 1
    return {said: Share(hits, runs) for said, hits in counted.items()}


def enough(pair: Pair, n: Floats, factor: float, said: str, runs: int, blocks: int) -> str:
    """What it takes to be told so in POWER of the runs, if the ladder stayed straight: launches of a single look."""
    share = Share(0, runs)
    for launches in LAUNCHES_TRIED:
        rng = np.random.default_rng([3, launches])
        share = told(pair, n, factor, rng, runs, [launches], launches, blocks, doubting=False)[said]
        if share.value >= POWER:
            return f"takes {launches} launches of {blocks} blocks ({share}), were the ladder straight"
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
    if name == "resampled":
        stored = noise_of(noise)
        whole = Series(stored.n, stored.ladder)
        sure, held = cover(stored.one, whole.interval().value, stored.n, np.random.default_rng([1, 99]), runs)
    else:
        number = list(CASES).index(name)
        sure, held = cover(CASES[name], SLOPE_US, COUNTS, np.random.default_rng([1, number]), runs)
    within: bool | None = held.value + 2 * held.error >= LEAST
    if name == "plain":
        within = within and held.value - 2 * held.error <= MOST
    if name == "two_mode_launches":
        within = None
    text = f"intervals cover {held} of the {sure.value:.1%} without doubt"
    return Line(name, text, {"coverage": held.value, "error": held.error, "without_doubt": sure.value}, within)


def compared(kind: str, runs: int, noise: Path) -> list[Line]:
    """Wrong calls over the whole stopping procedure; `kind` of noise: simple or resampled."""
    pair, n, blocks = _pair(kind, noise)
    rng = np.random.default_rng([2, len(kind)])
    same = told(pair, n, 1.0, rng, runs, LOOKS, LOOKS[-1], blocks)
    edge = told(pair, n, 1 + dtype.MARGIN, rng, runs, LOOKS, LOOKS[-1], blocks)
    return [
        _bounded(f"{kind}: identical, called different", same["different"]),
        _bounded(f"{kind}: at the margin, called equivalent", edge["equivalent"]),
    ]


def powered(kind: str, runs: int, noise: Path) -> list[Line]:
    """Power at the budget of the profile standard: its first look, its blocks. Where it falls short, what it takes."""
    pair, n, blocks = _pair(kind, noise)
    looks = config.load("standard").launches.looks
    lines = []
    for name, factor, said in (("identical", 1.0, "equivalent"), ("15 % apart", APART, "different")):
        share = told(pair, n, factor, np.random.default_rng([4, len(kind)]), runs, looks, looks[0], blocks)[said]
        text = f"{share}, at {looks[0]} launches of {blocks} blocks"
        if share.value < POWER:
            text += f"; {POWER:.0%} {enough(pair, n, factor, said, max(200, runs // 20), blocks)}"
        lines.append(Line(f"{kind}: {name}, called {said}", text, {"share": share.value, "error": share.error}, None))
    return lines


def _pair(kind: str, noise: Path) -> tuple[Pair, Floats, int]:
    blocks = config.options(config.load("standard"), "dtype").blocks
    if kind == "resampled":
        stored = noise_of(noise)
        return stored.two, stored.pair_n, blocks
    return simple_pair, np.array(dtype.DtypeOptions().counts["one_pass"], dtype=np.float64), blocks


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
