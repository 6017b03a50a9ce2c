"""What does the executor add to a loop written by hand: microseconds a dispatch while encoding, and share of the wall?

The opponent is handwritten.js, loaded into the executor's own page: same renderer and GPU process, same WGSL, buffer
size and dispatch size, but its own device, pipeline, bind group and loops. Timestamps, policies, counting and error
scopes are what the executor adds; the opponent has none of them. Both sides exist twice (A, A', B, B'); a block visits
all of them in a fresh random order, always with an idle GPU before it.

The statistic of a launch is the mean of the fastest tenth of the samples of one side, A and A' together against B and
B' together. Code that costs more costs more in every sample, the fast ones included, while means and medians here
measure something else: with one submit each, encoding stalls whenever the GPU process lags, of which the code has no
part, and on a software adapter the wall of one pass has two modes, chosen by the cores that its threads happen to be
on. A difference of medians of such samples would need hours. Lest the choice hide anything, the ratio of the geometric
means over all samples stands beside it, wider and without a bound. The main threads of renderer and GPU process are
kept on different cores, where there are two, for both sides alike: that is what thins out the stalls. Intervals are
Student's t over launches, 95 %. It takes some four minutes; on a machine that does other work besides, the intervals
are wider than the bounds.

Exit: 0 the bounds hold, 1 they do not, 2 no browser, 3 a side computed something wrong or did not answer.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rig import host
from rig.browsers.find import BrowserMissing, find
from rig.browsers.flags import AdapterAsked, flags
from rig.executors.base import ExecutorFault
from rig.executors.chromium import ChromiumExecutor, ChromiumSession
from rig.executors.wire import CALL_LIMIT_S
from rig.policies import policy
from rig.programs.fill import contents
from rig.programs.micro import increment_chain
from rig.stats import Interval, geometric_interval, mean_interval

N = 1000
"""Dispatches a sample."""

POLICIES = {"one_pass": 3, "submit_each": 1}
"""Each policy is visited in every so many blocks: submit_each scatters most, so it gets most of the time."""

EXECUTOR = ("A", "A'")
HAND = ("B", "B'")
PROGRAM = increment_chain()

WARM_UP_BLOCKS = 10
"""Blocks that come first and are not counted: the page's code is not compiled yet."""

FASTEST_FRACTION = 0.1

ADDED_ENCODE_LIMIT_US = 0.1
WALL_RATIO_LIMIT = 1.05


class WrongResult(Exception):
    """A side did not compute what it was asked to, so its times say nothing."""


@dataclass(frozen=True)
class Sample:
    """N dispatches, by the page's clock: until the last submit returned, and until the wait answered."""

    encode_us: float
    wall_us: float


Launch = dict[tuple[str, str], list[Sample]]
"""The samples of one launch, by policy and variant."""


# --- the two sides ---


class HandWritten:
    """handwritten.js in the page of a session."""

    def __init__(self, session: ChromiumSession) -> None:
        assert session._page is not None
        self._session = session
        self._page = session._page
        self.issued = 0
        script = Path(__file__).with_name("handwritten.js")
        session._run(self._page.add_script_tag(path=script, type="module"), CALL_LIMIT_S)
        session._run(self._page.wait_for_function("globalThis.handwritten !== undefined"), CALL_LIMIT_S)
        self._call("prepare", PROGRAM.kernels[0].wgsl, PROGRAM.buffers[0].elements)

    def time(self, name: str) -> Sample:
        self.issued += N
        return Sample(**self._call("time", name, N))

    def check(self) -> None:
        """WrongResult unless every dispatch added one to every element, without an error."""
        got = self._call("result")
        if got["errors"] or set(got["values"]) != {self.issued}:
            raise WrongResult(f"hand-written: {got['errors'] or got['values'][:4]} after {self.issued} dispatches")

    def _call(self, function: str, *arguments: object) -> Any:  # noqa: ANN401
        call = self._page.evaluate(f"arguments => globalThis.handwritten.{function}(...arguments)", list(arguments))
        return self._session._run(call, CALL_LIMIT_S)


class Executed:
    """The rig's own way."""

    def __init__(self, session: ChromiumSession) -> None:
        self._session = session
        self.issued = 0
        session.load(PROGRAM)
        session.reset(PROGRAM)

    def time(self, name: str) -> Sample:
        self.issued += N
        timing = self._session.time(PROGRAM, policy(name), N)
        return Sample(timing.encode_us, timing.wall_us)

    def check(self) -> None:
        """WrongResult unless every dispatch added one to every element."""
        buffer = PROGRAM.buffers[0]
        _, outputs = self._session.outputs(PROGRAM)
        if not np.array_equal(outputs[buffer.name], contents(buffer) + np.float32(self.issued)):
            raise WrongResult(f"executor: {outputs[buffer.name][:4]} after {self.issued} dispatches")


# --- measuring ---


def keep_apart(session: ChromiumSession) -> None:
    """Renderer and GPU process get a core each for their main threads (an id of a process names its main thread)."""
    if sys.platform == "linux":
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) > 1:
            processes = session.processes()
            os.sched_setaffinity(processes["renderer"], {cores[0]})
            os.sched_setaffinity(processes["gpu"], {cores[1]})


def measure(session: ChromiumSession, blocks: int, order: random.Random) -> Launch:
    """The samples of `blocks` blocks in one launch. WrongResult where a side did not compute."""
    executed, hand = Executed(session), HandWritten(session)
    visits = [(name, variant) for name in POLICIES for variant in EXECUTOR + HAND]
    launch: Launch = {visit: [] for visit in visits}
    keep_apart(session)
    for block in range(-WARM_UP_BLOCKS, blocks):
        due = [visit for visit in visits if block < 0 or block % POLICIES[visit[0]] == 0]
        for name, variant in order.sample(due, len(due)):
            sample = (executed if variant in EXECUTOR else hand).time(name)
            if block >= 0:
                launch[name, variant].append(sample)
    executed.check()
    hand.check()
    return launch


def measure_all(executor: ChromiumExecutor, launches: int, blocks: int) -> list[Launch]:
    """One launch after the other, each a fresh browser process."""
    order = random.Random(1)
    done = []
    for i in range(launches):
        session = executor.launch({})
        try:
            if i == 0:
                print(f"{executor.build_id}, {session.adapter.renderer}")
            done.append(measure(session, blocks, order))
        finally:
            session.close()
        print(f"launch {i + 1} of {launches}", file=sys.stderr)
    return done


# --- comparing ---


def fastest(values: Sequence[float]) -> float:
    """Mean of the fastest tenth, at least one value; in the unit of the values."""
    return float(np.mean(sorted(values)[: max(1, round(FASTEST_FRACTION * len(values)))]))


def geometric(values: Sequence[float]) -> float:
    """Geometric mean, in the unit of the values."""
    return math.exp(float(np.mean(np.log(values))))


@dataclass(frozen=True)
class Comparison:
    """Executor against hand-written under one policy. Times in microseconds a dispatch; A/A is A against A'."""

    added_encode_us: Interval
    aa_added_encode_us: Interval
    wall_ratio: Interval
    aa_wall_ratio: Interval
    wall_ratio_all_samples: Interval


def compare(launches: Sequence[Launch], name: str) -> Comparison:
    """The launches' own statistics, and their intervals over launches."""

    def encode_us(launch: Launch, variants: Sequence[str]) -> float:
        return fastest([s.encode_us for v in variants for s in launch[name, v]])

    def wall_us(launch: Launch, variants: Sequence[str], center: Callable[[Sequence[float]], float]) -> float:
        return center([s.wall_us for v in variants for s in launch[name, v]])

    def added(a: Sequence[str], b: Sequence[str]) -> Interval:
        return mean_interval([(encode_us(launch, a) - encode_us(launch, b)) / N for launch in launches])

    def ratio(a: Sequence[str], b: Sequence[str], center: Callable[[Sequence[float]], float] = fastest) -> Interval:
        return geometric_interval([wall_us(launch, a, center) / wall_us(launch, b, center) for launch in launches])

    a, twin = EXECUTOR[:1], EXECUTOR[1:]
    return Comparison(
        added_encode_us=added(EXECUTOR, HAND),
        aa_added_encode_us=added(a, twin),
        wall_ratio=ratio(EXECUTOR, HAND),
        aa_wall_ratio=ratio(a, twin),
        wall_ratio_all_samples=ratio(EXECUTOR, HAND, geometric),
    )


# --- saying it ---


def describe(name: str, got: Comparison) -> str:
    """One policy's lines; the A/A pair has half the samples on each side, and so the wider interval."""

    def interval(it: Interval) -> str:
        return f"{it.value:7.3f} [{it.low:.3f}, {it.high:.3f}]"

    return (
        f"{name}\n"
        f"  encode added, µs a dispatch {interval(got.added_encode_us)}   A/A {interval(got.aa_added_encode_us)}\n"
        f"  wall ratio                  {interval(got.wall_ratio)}   A/A {interval(got.aa_wall_ratio)}\n"
        f"  wall ratio, all samples     {interval(got.wall_ratio_all_samples)}"
    )


def summary(compared: dict[str, Comparison]) -> dict[str, object]:
    """The worst upper ends over the policies under the three keys; below them each policy's own."""

    def uppers(got: Comparison) -> dict[str, float]:
        return {
            "added_encode_us_upper": round(got.added_encode_us.high, 4),
            "wall_ratio_upper": round(got.wall_ratio.high, 4),
            "aa_wall_ratio_upper": round(got.aa_wall_ratio.high, 4),
        }

    each = {name: uppers(got) for name, got in compared.items()}
    worst = {key: max(of[key] for of in each.values()) for key in next(iter(each.values()))}
    return {**worst, "policies": each}


def holds(compared: dict[str, Comparison]) -> bool:
    return all(
        got.added_encode_us.high <= ADDED_ENCODE_LIMIT_US and got.wall_ratio.high <= WALL_RATIO_LIMIT
        for got in compared.values()
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--launches", type=int, default=14, help="fresh browser processes, at least 2 (default 14)")
    parser.add_argument("--blocks", type=int, default=45, help="blocks a launch (default 45)")
    parser.add_argument("--browser", default="", help="a path, 'system' or 'playwright'")
    asked = parser.parse_args()
    if asked.launches < 2 or asked.blocks < 1:
        parser.error("an interval needs 2 launches of 1 block")
    return asked


def main() -> int:
    asked = arguments()
    try:
        executor = ChromiumExecutor(find(asked.browser), flags(AdapterAsked.any))
    except BrowserMissing as error:
        print(error, file=sys.stderr)
        return 2
    print(f"before the first launch the machine was {host.state(1.0).cpu_busy_fraction:.0%} busy")
    try:
        launches = measure_all(executor, asked.launches, asked.blocks)
    except (ExecutorFault, WrongResult) as error:
        print(error, file=sys.stderr)
        return 3
    finally:
        executor.close()
    compared = {name: compare(launches, name) for name in POLICIES}
    for name, got in compared.items():
        print(describe(name, got))
    print(json.dumps(summary(compared)))
    return 0 if holds(compared) else 1


if __name__ == "__main__":
    sys.exit(main())
