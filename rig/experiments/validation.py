"""validation: what does the browser's checking of every call cost? Launches with it and without, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from rig import figures, stats
from rig.claims import no_figure
from rig.experiments.base import Arm, CountLadder, Experiment, Options, Point, check_counts
from rig.frames import Run
from rig.ladder import Ladder, cross_check, slopes
from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Metric, MetricOutcome, Name, Outcome, Positive, Verdict, VerdictOutcome

ID = "validation"
CHECKED = "checked"
"""Launches with every check on, and otherwise like those with one off."""

ABLATIONS: dict[str, tuple[str, bool]] = {
    "skip_validation": ("skip_validation", False),
    "disable_robustness": ("disable_robustness", True),
}
"""Name to Dawn's toggle, and whether an invalid call must still raise an error."""

MARGIN = 0.05
"""A check that costs less than so much of a dispatch is no price worth naming."""

WALL, GPU_CPU = "wall", "gpu_cpu"


class Cost(NamedTuple):
    """What a dispatch costs in one arm, by round; why that is not to be relied on, or nothing; samples behind it."""

    by_round: pd.Series[float]
    doubt: str
    samples: int


Costs = dict[tuple[str, str], Cost]
"""By arm and by what it is a cost of."""


class ValidationOptions(Options, frozen=True, kw_only=True):
    """`ablations`: what is switched off, an arm of launches each; `share`: of a round's time, for one such launch."""

    blocks: Positive = 8
    elements: Positive = 64
    ablations: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = tuple(ABLATIONS)
    share: Annotated[float, msgspec.Meta(gt=0, lt=0.3)] = 0.1
    counts: dict[Name, CountLadder] = msgspec.field(
        default_factory=lambda: {"submit_each": (100, 200, 300, 400), "one_pass": (250, 500, 750, 1000)}
    )


def arms(options: ValidationOptions) -> list[Arm]:
    """Everything on, and each ablation. ValueError on one that is not known."""
    for name in options.ablations:
        if name not in ABLATIONS:
            raise ValueError(f"ablations: unknown '{name}' (there are {', '.join(ABLATIONS)})")
    off = [Arm(n, (f"--enable-dawn-features={ABLATIONS[n][0]}",), options.share, ABLATIONS[n][1]) for n in ABLATIONS]
    return [Arm(CHECKED, share=options.share), *(arm for arm in off if arm.name in options.ablations)]


def cells(options: ValidationOptions) -> list[Point]:
    """The chain under each policy at its counts, the same in every arm. ValueError as arms, or counts do not rise."""
    arms(options)
    for name, counts in options.counts.items():
        check_counts(f"counts.{name}", counts)
    program = increment_chain(options.elements)
    return [Point(program, policy(name), n) for name, counts in options.counts.items() for n in counts]


def compute(run: Run, options: ValidationOptions) -> list[Metric]:
    """In each arm the slope by wall and the GPU process's CPU time; with everything on over with one check off."""
    return [metric for name in options.counts for metric in _of(run, options, name)]


def _of(run: Run, options: ValidationOptions, name: str) -> list[Metric]:
    found: list[Metric] = []
    costs: Costs = {}
    for arm in arms(options):
        rows = run.rows(ID, policy=name, arm=arm.name)
        good = run.counted(rows)
        variant: figures.Variant = {"arm": arm.name, "policy": name}
        if good["n"].nunique() < stats.LEAST_COUNTS:
            reason, outcome = _why_none(run, rows, arm)
            found.append(figures.missing(ID, "validation.per_dispatch_us", variant, "us", reason, outcome))
            continue
        by_wall, by_span = (Ladder(ID, variant, clock, good) for clock in ("wall", "span"))
        cross_check(by_span, by_wall)
        found += [by_wall.per_dispatch(), *([by_span.per_dispatch()] if by_span.stamped else [])]
        costs[arm.name, WALL] = Cost(run.by_round(by_wall.slopes()), by_wall.doubt, len(good))
        found += _cpu(run, variant, good, costs, arm)
    for ablation in options.ablations:
        for of in (WALL, GPU_CPU):
            found += _ratio(ablation, name, of, costs)
    return found


def _cpu(run: Run, variant: figures.Variant, good: pd.DataFrame, costs: Costs, arm: Arm) -> list[Metric]:
    """CPU time of the GPU process a dispatch, all its threads: the checks run there, and in the renderer hardly any."""
    measured = good.dropna(subset=["cpu_us"])
    if measured.empty:
        reason = "the kernel does not tell CPU time by thread"
        return [figures.missing(ID, "validation.cpu_us", variant, "us", reason, MetricOutcome.not_supported)]
    used = pd.Series([sum(us for thread, us in row.items() if thread.startswith("gpu")) for row in measured["cpu_us"]])
    used.index = measured.index
    own = slopes(measured, used, "mean")
    costs[arm.name, GPU_CPU] = Cost(run.by_round(own), "", len(measured))
    return [
        figures.over_launches(ID, "validation.cpu_us", variant, "us", own, len(measured), interval=stats.mean_interval)
    ]


def _ratio(ablation: str, name: str, of: str, costs: Costs) -> list[Metric]:
    """With everything on over without, round by round; and the smallest effect that its interval could have shown."""
    variant: figures.Variant = {"ablation": ablation, "policy": name, "of": of}
    if (CHECKED, of) not in costs or (ablation, of) not in costs:
        reason = "one of its two sides was not measured"
        return [figures.missing(ID, "validation.ratio", variant, "ratio", reason, MetricOutcome.not_supported)]
    on, off = costs[CHECKED, of], costs[ablation, of]
    doubt = "; ".join(f"{arm}: {cost.doubt}" for arm, cost in ((CHECKED, on), (ablation, off)) if cost.doubt)
    values = figures.quotient(on.by_round, off.by_round)
    ratio = figures.over_launches(
        ID, "validation.ratio", variant, "ratio", values, on.samples + off.samples, doubt=doubt
    )
    if ratio.ci_low is None or ratio.ci_high is None or ratio.ci_low <= 0:
        return [ratio]
    effect = float(np.sqrt(ratio.ci_high / ratio.ci_low)) - 1
    smallest = msgspec.structs.replace(
        ratio,
        metric="validation.smallest_effect",
        unit="fraction",
        value=effect,
        ci_low=effect,
        ci_high=effect,
        ci_level=1.0,
        per_launch={},
    )
    return [ratio, smallest]


def _why_none(run: Run, rows: pd.DataFrame, arm: Arm) -> tuple[str, MetricOutcome]:
    """The last launch of this arm that broke, if that is why; else as for any cell."""
    broken = [launch for launch in run.launches if launch.arm == arm.name and launch.outcome is not Outcome.ok]
    if rows.empty and broken:
        return f"{broken[-1].outcome}: {broken[-1].detail}", MetricOutcome.failed
    return figures.why_none(run, rows, ID)


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C9, from the launches without validation."""
    ratios = [m for m in metrics if m.metric == "validation.ratio" and m.variant["ablation"] == "skip_validation"]
    return [claim_price(ratios)]


def claim_price(ratios: Sequence[Metric]) -> Verdict:
    """C9: checking every call is a price. Holds where one of the costs is more than MARGIN higher with it, its whole
    interval; does not hold where all are less than that higher; the error is split over the costs (Bonferroni).
    """
    known = [m for m in ratios if m.value is not None and m.ci_low is not None and m.ci_high is not None]
    if not known:
        return no_figure("C9", ratios[0] if ratios else None, "this run has no launches without validation")
    settled = [m for m in known if m.outcome is MetricOutcome.ok]
    split = [figures.at_level(m, 1 - (1 - m.ci_level) / len(known)) for m in settled]
    outcome = VerdictOutcome.unresolved
    if any(interval.low > 1 + MARGIN for interval in split):
        outcome = VerdictOutcome.holds
    elif len(split) == len(ratios) and all(interval.high < 1 + MARGIN for interval in split):
        outcome = VerdictOutcome.does_not_hold
    told = "; ".join(f"{m.variant['of']} of {m.variant['policy']} {figures.told(m, 'times')}" for m in known)
    statement = f"with validation over without: {told}; a price is more than {100 * MARGIN:g} %"
    return Verdict(claim="C9", outcome=outcome, statement=statement, evidence=tuple(m.key for m in known))


EXPERIMENT = Experiment(
    id=ID,
    line="launches with the browser's checks on and off in turn: what does checking every call cost?",
    options=ValidationOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
    arms=arms,
)
