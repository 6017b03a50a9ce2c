"""dtype: does a dispatch cost the same whatever the type of its data? And could this run have seen it if not?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pandas as pd

from rig import figures, stats
from rig.experiments.base import CountLadder, Experiment, LadderOptions, Point, PolicyNames, check_ladder
from rig.frames import Run
from rig.ladder import Ladder, pair, ratio
from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Dtype, Metric, MetricOutcome, Positive, Program, Verdict, VerdictOutcome

ID = "dtype"
BASE = Dtype.f32
MARGIN = 0.05
"""Costs within so much of each other are equivalent."""

PLANTED = "planted"
PLANTED_TENTHS = 11
"""The planted difference: each ten of its dispatches are eleven, so it costs 10 % more on any adapter."""


class DtypeOptions(LadderOptions, frozen=True, kw_only=True):
    """`counts`: multiples of ten, above the knee of a polled wait."""

    blocks: Positive = 6
    counts: CountLadder = (200, 400, 700, 1000)
    policies: PolicyNames = ("one_pass",)


def cells(options: DtypeOptions) -> list[Point]:
    """Every type, and the planted difference, at every count. ValueError as check_ladder, or a count is no ten."""
    check_ladder(options)
    if any(n % 10 for n in options.counts):
        raise ValueError(f"counts: {list(options.counts)} are not multiples of ten")
    points = []
    for name in options.policies:
        for dtype in Dtype:
            points += [Point(increment_chain(options.elements, dtype), policy(name), n) for n in options.counts]
        points += [Point(planted(options), policy(name), n * PLANTED_TENTHS // 10) for n in options.counts]
    return points


def planted(options: DtypeOptions) -> Program:
    """The f32 program under another name; what is planted is the count it is run with."""
    return msgspec.structs.replace(increment_chain(options.elements, BASE), name=PLANTED)


def compute(run: Run, options: DtypeOptions) -> list[Metric]:
    """Each type's slope by the primary clock, and its ratio to that of f32; likewise the planted one's."""
    return [metric for name in options.policies for metric in _of(run, options, name)]


def _of(run: Run, options: DtypeOptions, name: str) -> list[Metric]:
    found: list[Metric] = []
    ladders: dict[str, Ladder] = {}
    for label, rows in _series(run, options, name).items():
        good = rows[(rows["void"] == "") & (rows["block"] > 0)]
        variant: figures.Variant = {"dtype": label, "policy": name}
        if good["n"].nunique() < stats.LEAST_COUNTS:
            found.append(figures.missing(ID, "dtype.per_dispatch_us", variant, "us", *figures.why_none(run, rows, ID)))
            continue
        ladders[label], _, _ = pair(ID, variant, good)
        found.append(ladders[label].per_dispatch())
    base = ladders.get(str(BASE))
    if base is not None:
        found += [
            ratio("dtype.ratio_to_f32", {"dtype": label, "policy": name}, own, base)
            for label, own in ladders.items()
            if own is not base
        ]
    return found


def _series(run: Run, options: DtypeOptions, name: str) -> dict[str, pd.DataFrame]:
    """All samples of each type and of the planted difference, whose counts are taken back to what they stand for."""
    rows = run.samples[(run.samples["experiment"] == ID) & (run.samples["policy"] == name)]
    series = {str(dtype): rows[rows["program"] == increment_chain(options.elements, dtype).name] for dtype in Dtype}
    slower = rows[rows["program"] == PLANTED]
    return {**series, PLANTED: slower.assign(n=slower["n"] * 10 // PLANTED_TENTHS)}


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C3, from the ratios in one pass, where nothing but the dispatches is in the slope."""
    ratios = {
        str(m.variant["dtype"]): m
        for m in metrics
        if m.metric == "dtype.ratio_to_f32" and m.variant["policy"] == "one_pass"
    }
    slower = ratios.pop(PLANTED, None)
    return [claim_same(ratios, slower)]


def claim_same(ratios: dict[str, Metric], slower: Metric | None) -> Verdict:
    """C3: holds where every ratio's 95 % interval lies within the margin, which is two one-sided tests at 2.5 %
    (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987), and the planted 10 % came out as slower in the same run.
    """
    known = {label: m for label, m in ratios.items() if m.value is not None}
    if not known or slower is None or slower.value is None:
        return Verdict(
            claim="C3", outcome=VerdictOutcome.not_tested, statement="no figure: this run has no such ratios"
        )
    told = "; ".join(f"{label} takes {_ends(m)} of what f32 takes" for label, m in known.items())
    evidence = (*(m.key for m in known.values()), slower.key)
    if not _settled(slower) or (slower.ci_low or 0) <= 1:
        statement = f"{told}; but a planted 10 % came out as {_ends(slower)}, so this run can't tell"
        return Verdict(claim="C3", outcome=VerdictOutcome.unresolved, statement=statement, evidence=evidence)
    outcome = VerdictOutcome.unresolved
    if any(_settled(m) and _outside(m) for m in known.values()):
        outcome = VerdictOutcome.does_not_hold
    elif all(_settled(m) and _inside(m) for m in known.values()):
        outcome = VerdictOutcome.holds
    statement = f"{told}, in one pass; a planted 10 % was seen as {_ends(slower)}; f16 was not measured"
    return Verdict(claim="C3", outcome=outcome, statement=statement, evidence=evidence)


def _settled(metric: Metric) -> bool:
    return metric.outcome is MetricOutcome.ok


def _inside(metric: Metric) -> bool:
    return (metric.ci_low or 0) >= 1 / (1 + MARGIN) and (metric.ci_high or 0) <= 1 + MARGIN


def _outside(metric: Metric) -> bool:
    return (metric.ci_low or 0) > 1 + MARGIN or (metric.ci_high or 0) < 1 / (1 + MARGIN)


def _ends(metric: Metric) -> str:
    return f"{metric.value:.3g} times ({metric.ci_low:.3g} to {metric.ci_high:.3g})"


EXPERIMENT = Experiment(
    id=ID,
    line="the same kernel on f32, i32 and u32, with a planted difference of 10 % beside them",
    options=DtypeOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
