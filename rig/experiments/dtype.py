"""dtype: does a dispatch cost the same whatever the type of its data? And could this run have seen it if not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from rig import figures, stats
from rig.claims import no_figure
from rig.experiments.base import CountLadder, Experiment, Options, Point, check_counts
from rig.frames import Run
from rig.ladder import Ladder, pair, ratio
from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Dtype, Metric, MetricOutcome, Name, Positive, Program, Verdict, VerdictOutcome

ID = "dtype"
BASE = Dtype.f32
MARGIN = 0.05
"""Costs within so much of each other are equivalent."""

PLANTED = "planted"
PLANTED_TENTHS = 11
"""The planted difference: each ten of its dispatches are eleven, so it costs 10 % more on any adapter."""


ELEMENTS, BYTES = "elements", "bytes"
"""What two types have in common: as many numbers, or as many bytes."""


class DtypeOptions(Options, frozen=True, kw_only=True):
    """`counts`, by policy: multiples of ten, above the knee of a polled wait. `elements`: numbers; a multiple of four.

    In one pass the GPU's time is compared, in submit_each what the host does for a dispatch.
    """

    blocks: Positive = 6
    elements: Positive = 64
    counts: dict[Name, CountLadder] = msgspec.field(
        default_factory=lambda: {"one_pass": (200, 400, 700, 1000), "submit_each": (100, 200, 300, 400)}
    )


@dataclass(frozen=True)
class Series:
    """One type with one thing held constant, and the program that it is measured with."""

    label: str
    held: str
    program: Program
    tenths: int = 10

    def stretched(self, n: int) -> int:
        """The count it is run with, for one that stands for n."""
        return n * self.tenths // 10


def series(elements: int) -> list[Series]:
    """Every type with as many elements as f32 has, those of other width with as many bytes too, and the planted one."""
    every = [Series(str(dtype), ELEMENTS, increment_chain(elements, dtype)) for dtype in Dtype]
    every += [
        Series(str(dtype), BYTES, increment_chain(elements * BASE.size_bytes // dtype.size_bytes, dtype))
        for dtype in Dtype
        if dtype.size_bytes != BASE.size_bytes
    ]
    slower = msgspec.structs.replace(increment_chain(elements, BASE), name=PLANTED)
    return [*every, Series(PLANTED, ELEMENTS, slower, PLANTED_TENTHS)]


def cells(options: DtypeOptions) -> list[Point]:
    """Every series at every count. ValueError where counts do not rise, are no tens, or elements do not fill words."""
    if options.elements % 4:
        raise ValueError(f"elements: {options.elements} is not a multiple of four")
    points = []
    for name, counts in options.counts.items():
        check_counts(f"counts.{name}", counts)
        if any(n % 10 for n in counts):
            raise ValueError(f"counts.{name}: {list(counts)} are not multiples of ten")
        points += [Point(s.program, policy(name), s.stretched(n)) for s in series(options.elements) for n in counts]
    return points


def compute(run: Run, options: DtypeOptions) -> list[Metric]:
    """Each type's slope by the primary clock, and its ratio to that of f32; likewise the planted one's."""
    return [metric for name in options.counts for metric in _of(run, options, name)]


def _of(run: Run, options: DtypeOptions, name: str) -> list[Metric]:
    found: list[Metric] = []
    ladders: dict[tuple[str, str], Ladder] = {}
    for one in series(options.elements):
        rows = run.rows(ID, policy=name, program=one.program.name)
        rows = rows.assign(n=rows["n"] * 10 // one.tenths)
        good = run.counted(rows)
        variant: figures.Variant = {"dtype": one.label, "held": one.held, "policy": name}
        if reason := figures.no_slope(run, rows, ID):
            found.append(figures.missing(ID, "dtype.per_dispatch_us", variant, "us", *reason))
            continue
        ladder, _, _ = pair(ID, variant, good)
        ladders[one.label, one.held] = ladder
        found.append(ladder.per_dispatch())
    base = ladders.pop((str(BASE), ELEMENTS), None)
    if base is not None:
        looks = run.manifest.plan.profile["launches"]["looks"]
        level = stats.split_level(len(base.labels), looks, max(1, len(ladders)))
        found += [
            ratio("dtype.ratio_to_f32", {"dtype": label, "held": held, "policy": name}, own, base, level)
            for (label, held), own in ladders.items()
        ]
    return found


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C3, from the ratios in one pass, where nothing but the dispatches is in the slope."""
    ratios = {_label(m): m for m in metrics if m.metric == "dtype.ratio_to_f32" and m.variant["policy"] == "one_pass"}
    slower = ratios.pop(PLANTED, None)
    return [claim_same(ratios, slower)]


def _label(metric: Metric) -> str:
    held = metric.variant["held"]
    return str(metric.variant["dtype"]) + ("" if held == ELEMENTS else f" with as many {held}")


def claim_same(ratios: dict[str, Metric], slower: Metric | None) -> Verdict:
    """C3: holds where all types are equivalent to f32 within the margin, does not hold where one is different, and
    neither unless the planted 10 % came out as slower in the same run. The ratios' level has the error split over looks
    and over them; that all are equivalent takes no split over them (see rig.stats.equivalent).
    """
    known = {label: m for label, m in ratios.items() if m.value is not None}
    if not known or slower is None or slower.value is None:
        return no_figure("C3", None, "this run has no such ratios")
    told = "; ".join(f"{label} takes {figures.told(m, 'times')} of what f32 takes" for label, m in known.items())
    evidence = (*(m.key for m in known.values()), slower.key)
    if not _settled(slower) or (slower.ci_low or 0) <= 1:
        statement = f"{told}; but a planted 10 % came out as {figures.told(slower, 'times')}, so this run can't tell"
        return Verdict(claim="C3", outcome=VerdictOutcome.unresolved, statement=statement, evidence=evidence)
    outcome = VerdictOutcome.unresolved
    if any(_settled(m) and stats.different(figures.interval_of(m), MARGIN) for m in known.values()):
        outcome = VerdictOutcome.does_not_hold
    elif all(_settled(m) and stats.equivalent(_for_all(m, len(known) + 1), MARGIN) for m in known.values()):
        outcome = VerdictOutcome.holds
    statement = f"{told}, in one pass; a planted 10 % was seen as {figures.told(slower, 'times')}{_absent(ratios)}"
    return Verdict(claim="C3", outcome=outcome, statement=statement, evidence=evidence)


def _for_all(metric: Metric, comparisons: int) -> stats.Interval:
    """The interval of two one-sided tests, each with the error that the look has, not split over comparisons."""
    return figures.at_level(metric, 1 - 2 * comparisons * (1 - metric.ci_level))


def _absent(ratios: dict[str, Metric]) -> str:
    absent = [str(dtype) for dtype in Dtype if dtype is not BASE and str(dtype) not in ratios]
    return f"; {' and '.join(absent)} could not be measured" if absent else ""


def _settled(metric: Metric) -> bool:
    return metric.outcome is MetricOutcome.ok


EXPERIMENT = Experiment(
    id=ID,
    line="the same kernel on f32, f16, i32, u32 and packed bytes, with a planted difference of 10 % beside them",
    options=DtypeOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
