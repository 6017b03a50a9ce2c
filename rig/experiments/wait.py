"""wait: how long does the wait itself take, with nothing to wait for, with one dispatch, and with many?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import pandas as pd

from rig import figures
from rig.experiments.base import Experiment, Options, Point
from rig.frames import Run
from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Count, Metric, Positive, Verdict, Waiter

ID = "wait"


class WaitOptions(Options, frozen=True):
    """`counts`: dispatches, in one pass, that each wait is for; 0 is the empty queue."""

    blocks: Positive = 30
    elements: Positive = 64
    counts: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (0, 1, 10, 100)


def cells(options: WaitOptions) -> list[Point]:
    """Both waiters at every count."""
    program = increment_chain(options.elements)
    return [Point(program, policy("one_pass", waiter), n) for waiter in Waiter for n in dict.fromkeys(options.counts)]


def compute(run: Run, options: WaitOptions) -> list[Metric]:
    """Mean latency of each wait, and the two modes it comes in, where it does."""
    return [metric for waiter in Waiter for n in dict.fromkeys(options.counts) for metric in _of(run, str(waiter), n)]


def _of(run: Run, waiter: str, n: int) -> list[Metric]:
    variant: figures.Variant = {"waiter": waiter, "n": n}
    rows = run.rows(ID, waiter=waiter, n=n)
    good = run.counted(rows)
    if good.empty:
        reason, outcome = figures.why_none(run, rows, ID)
        return [figures.missing(ID, "wait.latency_us", variant, "us", reason, outcome)]
    # the clock's tick is the least that can be told of a wait that was answered at once
    tick_us = max(launch.clock.tick_us for launch in run.launches if launch.clock is not None)
    latency = (good["wall_us"] - good["encode_us"]).clip(lower=tick_us)
    launch = good["launch"]
    mean = latency.groupby(launch).mean()
    return [
        figures.over_launches(ID, "wait.latency_us", variant, "us", mean, len(good)),
        *figures.modes(ID, variant, latency, launch),
        *(_step(variant, latency, launch) if n == 1 else []),
    ]


def _step(variant: figures.Variant, latency: pd.Series[float], launch: pd.Series[int]) -> list[Metric]:
    """The polling step: from the lower mode's median to the upper one's, launch by launch; of one dispatch, which is
    done before the first poll or not.
    """
    upper = figures.upper_mode(latency, launch)
    if upper is None:
        return []
    step = latency[upper].groupby(launch[upper]).median() - latency[~upper].groupby(launch[~upper]).median()
    if step.count() < 2:
        return []
    return [figures.over_launches(ID, "wait.polling_step_us", variant, "us", step.dropna(), len(latency))]


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:  # noqa: ARG001
    """None of its own: C1 takes the whole waited dispatch."""
    return []


EXPERIMENT = Experiment(
    id=ID,
    line="the wait alone, for an empty queue, one dispatch and many, with both waiters: what does polling add?",
    options=WaitOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
