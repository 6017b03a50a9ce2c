"""single_op: one dispatch, one wait. What a loop that waits for each operation pays for each."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rig import figures
from rig.experiments.base import Experiment, Options, Point
from rig.frames import Run
from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Metric, Positive, Verdict, Waiter

ID = "single_op"
QUANTILES = (0.05, 0.50, 0.95)


class SingleOpOptions(Options, frozen=True):
    """`elements`: floats that the one dispatch changes."""

    blocks: Positive = 60
    elements: Positive = 64


def cells(options: SingleOpOptions) -> list[Point]:
    """Both waiters, one dispatch each."""
    program = increment_chain(options.elements)
    return [Point(program, policy("submit_each", waiter), 1) for waiter in Waiter]


def compute(run: Run, options: SingleOpOptions) -> list[Metric]:  # noqa: ARG001
    """Latency of each waiter: the mean, since n waited operations cost n times that; quantiles; the two modes. And the
    mean of its encoding, which is all that the papers timed where their implementation did not wait.
    """
    return [metric for waiter in Waiter for metric in _of(run, str(waiter))]


def _of(run: Run, waiter: str) -> list[Metric]:
    every = run.rows(ID, waiter=waiter)
    good = run.counted(every)
    if good.empty:
        reason, outcome = figures.why_none(run, every, ID)
        return [figures.missing(ID, "single_op.latency_us", {"waiter": waiter}, "us", reason, outcome)]
    wall = good.groupby("launch")["wall_us"]

    def figure(name: str, per_launch: pd.Series[float], n: int = len(good), **extra: float) -> Metric:
        return figures.over_launches(ID, f"single_op.{name}", {"waiter": waiter, **extra}, "us", per_launch, n)

    found = [figure("latency_us", wall.mean()), figure("encode_us", good.groupby("launch")["encode_us"].mean())]
    found += [figure("latency_quantile_us", wall.quantile(q), q=q) for q in QUANTILES]
    first = run.first(ID).query("waiter == @waiter and order == 0")
    if not first.empty:
        found.append(figure("first_us", first.set_index("launch")["wall_us"], len(first)))
    return found + figures.modes(ID, {"waiter": waiter}, good["wall_us"], good["launch"])


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:  # noqa: ARG001
    """None of its own: its claim, C1, needs the slope beside it."""
    return []


EXPERIMENT = Experiment(
    id=ID,
    line="one dispatch, one wait, with both waiters: the whole distribution",
    options=SingleOpOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
