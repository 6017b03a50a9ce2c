"""stub: the same loop, issued to objects that do nothing. What of encoding is the caller's own language?"""

from __future__ import annotations

from collections.abc import Sequence

from rig import figures, stats
from rig.experiments.base import CountLadder, Experiment, LadderOptions, Point, PolicyNames, check_ladder, point
from rig.frames import Run
from rig.ladder import slopes
from rig.records import Metric, Positive, Verdict

ID = "stub"


class StubOptions(LadderOptions, frozen=True, kw_only=True):
    """`counts`: so many that a coarse clock can tell them apart; `policies`: by name, see rig.policies."""

    blocks: Positive = 2
    counts: CountLadder = (20_000, 40_000, 60_000, 80_000)
    policies: PolicyNames = ("submit_each", "one_pass")


def cells(options: StubOptions) -> list[Point]:
    """Every policy at every count, with the stub in the device's place. ValueError as check_ladder."""
    check_ladder(options)
    return [point(f"{name}+stub", n, options.elements) for name in options.policies for n in options.counts]


def compute(run: Run, options: StubOptions) -> list[Metric]:
    """The slope of encoding: loop and calls, without any WebGPU behind them."""
    found = []
    for name in options.policies:
        rows = run.rows(ID, policy=f"{name}+stub")
        good = run.counted(rows)
        variant = {"policy": name}
        if reason := figures.no_slope(run, rows, ID):
            found.append(figures.missing(ID, "stub.encode_us", variant, "us", *reason))
            continue
        own = slopes(good, good["encode_us"], "median")
        found.append(
            figures.over_launches(ID, "stub.encode_us", variant, "us", own, len(good), interval=stats.mean_interval)
        )
    return found


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:  # noqa: ARG001
    """None."""
    return []


EXPERIMENT = Experiment(
    id=ID,
    line="the same loop, issued to objects that do nothing: what of encoding is the caller's own language?",
    options=StubOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
