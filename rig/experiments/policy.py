"""policy: the same dispatches, submitted in every way. What does a dispatch cost when submits and passes are shared?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rig import figures, stats
from rig.experiments.base import CountLadder, Experiment, LadderOptions, PolicyNames, ladder_cells
from rig.frames import Run
from rig.ladder import Ladder, back_pressure, pair, ratio
from rig.records import Metric, MetricOutcome, Positive, Verdict, VerdictOutcome

ID = "policy"
BASE = "submit_each"
"""The policy that the others are compared with."""


class PolicyOptions(LadderOptions, frozen=True, kw_only=True):
    """`policies`: by name, see rig.policies; `counts`: a short ladder, above the knee of a polled wait."""

    blocks: Positive = 6
    counts: CountLadder = (100, 300, 600, 1000)
    policies: PolicyNames = (
        *(
            "submit_each",
            "command_buffers",
            "pass_each",
            "every_4",
            "every_16",
            "every_64",
            "every_64_pass_1",
            "one_pass",
        ),
    )


def compute(run: Run, options: PolicyOptions) -> list[Metric]:
    """Of each policy: slopes by span and wall, encoding and CPU time a dispatch, and its gain over one submit each."""
    primary: dict[str, Ladder] = {}
    found: list[Metric] = []
    for name in options.policies:
        good = run.good(ID).query("policy == @name")
        if good["n"].nunique() < stats.LEAST_COUNTS:
            found += _nothing(run, name)
            continue
        primary[name], by_span, by_wall = pair(ID, {"policy": name}, good)
        found += [by_span.per_dispatch(), by_wall.per_dispatch()]
        found += [_encode(name, good), *_cpu(name, good), *back_pressure(ID, name, good)]
    if BASE in primary:
        found += [
            ratio("policy.gain", {"policy": name}, primary[BASE], own) for name, own in primary.items() if name != BASE
        ]
    return found


def _nothing(run: Run, name: str) -> list[Metric]:
    rows = run.samples[(run.samples["experiment"] == ID) & (run.samples["policy"] == name)]
    reason, outcome = figures.why_none(run, rows, ID)
    return [
        figures.missing(ID, f"policy.{metric}", {"policy": name}, "us", reason, outcome)
        for metric in ("per_dispatch_us", "encode_us", "cpu_us")
    ]


def _encode(name: str, good: pd.DataFrame) -> Metric:
    """Time that the caller spends encoding, a dispatch: slope through the median at each count, since stalls come in
    bursts and are not the caller's own work. Arithmetic mean: in one pass it may be lost in the scatter.
    """
    slopes = _slopes(good, good["encode_us"], "median")
    return figures.over_launches(
        *(ID, "policy.encode_us", {"policy": name}, "us", slopes, len(good)), interval=stats.mean_interval
    )


def _cpu(name: str, good: pd.DataFrame) -> list[Metric]:
    """CPU time a dispatch, in all and by class. Slopes: what the call into the page costs each time drops out."""
    measured = good.dropna(subset=["cpu_us"])
    if measured.empty:
        reason = "the kernel does not tell CPU time by thread"
        return [
            figures.missing(
                ID, "policy.cpu_us", {"policy": name, "thread": "all"}, "us", reason, MetricOutcome.not_supported
            )
        ]
    classes = pd.DataFrame(measured["cpu_us"].tolist(), index=measured.index).fillna(0.0)
    classes.insert(0, "all", classes.sum(axis=1))
    return [
        figures.over_launches(
            *(ID, "policy.cpu_us", {"policy": name, "thread": str(thread)}, "us"),
            _slopes(measured, classes[thread], "mean"),
            len(measured),
            interval=stats.mean_interval,
        )
        for thread in classes.columns
    ]


def _slopes(rows: pd.DataFrame, times_us: pd.Series[float], center: str) -> pd.Series[float]:
    """Slope over all counts, by launch."""
    table = times_us.groupby([rows["launch"], rows["n"]]).agg(center).unstack("n").dropna()
    n = table.columns.to_numpy(dtype=np.float64)
    # a class that did nothing has no line
    positive = table.clip(lower=1e-3)
    slopes = [stats.line(n, row.to_numpy(dtype=np.float64)).slope for _, row in positive.iterrows()]
    return pd.Series(slopes, index=table.index, dtype=float)


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C10, from the gain of one pass."""
    gain = next((m for m in metrics if m.metric == "policy.gain" and m.variant["policy"] == "one_pass"), None)
    return [claim_amortise(gain)]


def claim_amortise(gain: Metric | None) -> Verdict:
    """C10, as far as batching goes: holds where a dispatch in one pass costs less, the whole interval above 1."""
    if gain is None or gain.value is None or gain.ci_low is None or gain.ci_high is None:
        reason = gain.reason if gain else "this run has not both submit_each and one_pass"
        return Verdict(claim="C10", outcome=VerdictOutcome.not_tested, statement=f"no figure: {reason}")
    outcome = VerdictOutcome.unresolved
    if gain.outcome is MetricOutcome.ok and gain.ci_low > 1:
        outcome = VerdictOutcome.holds
    elif gain.outcome is MetricOutcome.ok and gain.ci_high < 1:
        outcome = VerdictOutcome.does_not_hold
    times = f"{gain.value:.3g} times ({gain.ci_low:.3g} to {gain.ci_high:.3g})"
    statement = f"one submit each costs {times} what one pass costs, a dispatch; published: 1.8 times; capture untested"
    return Verdict(claim="C10", outcome=outcome, statement=statement, evidence=(gain.key,))


EXPERIMENT = Experiment(
    id=ID,
    line="the same dispatches in every way of submitting them: shared submits, command buffers and passes",
    options=PolicyOptions,
    cells=ladder_cells,
    figures=compute,
    verdicts=verdicts,
)
