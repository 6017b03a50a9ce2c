"""Is B worse than A, the baseline? Two stored runs, figure by figure, each with an interval and a verdict. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec
import numpy as np
import pandas as pd

from rig import analysis, config, likeness
from rig.experiments import REGISTRY
from rig.experiments.base import MAIN
from rig.frames import Run
from rig.likeness import Difference
from rig.records import SCHEMA, Launch, Metric, MetricOutcome, Name, Outcome, Record, Summary
from rig.report import words
from rig.stats import Contrast, Floats, holm

MARGIN = 0.05
"""A change smaller than this fraction is not worth mentioning."""

ALPHA = 0.05
"""Probability that of two runs alike any cost comes out as different, all of them together."""

MOST_FAILED = 0.5
"""A run in which a larger share of the cells failed says nothing of the rest either."""

COST_UNITS = ("us", "switches")
"""Of figures in these units more is worse."""

LEFT_OVER = ("anatomy.call_remainder_us", "anatomy.remainder_us", "noop.difference_us", "policy.stamping_us")
"""What remains between two figures of the same thing: it examines the instrument, and is nobody's cost."""

MODES = ("mode_us", "upper_mode_share", "polling_step_us")
"""Parts of a mean that is compared itself, each run's times parted at a border of its own."""


class Unlike(Exception):
    """The two runs are not of the same thing, in one line with both."""


class NothingToCompare(Exception):
    """One of the runs, or all of their figures, can't be compared: why, in one line."""


class ComparisonVerdict(StrEnum):
    """Of one figure. `differs`: it changed, but is no cost, so that neither way is worse."""

    worse = "worse"
    unresolved = "unresolved"
    differs = "differs"
    same = "same"
    better = "better"
    not_comparable = "not_comparable"


class Scale(StrEnum):
    """How two values are set against each other: B over A, or B less A where they may be zero or negative."""

    ratio = "ratio"
    difference = "difference"


class Comparison(Record, frozen=True):
    """One figure of both runs. `baseline`, `candidate`: means of the values that are compared; of a figure that is not,
    its value in each run's own summary.

    `value` with its interval is on `scale`; `significant`: "no change" is ruled out, by `p_adjusted`, which is Holm's
    of a cost; `practical`: its whole interval is beyond the margin.
    """

    key: Name
    experiment: Name
    metric: Name
    variant: dict[str, str | int | float]
    unit: str
    cost: bool
    verdict: ComparisonVerdict
    reason: str = ""
    baseline: float | None = None
    candidate: float | None = None
    scale: Scale | None = None
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float = 1 - ALPHA
    paired: bool = False
    baseline_launches: int = 0
    candidate_launches: int = 0
    p: float | None = None
    p_adjusted: float | None = None
    significant: bool = False
    practical: bool = False


class Report(Record, frozen=True):
    """A whole comparison, worst first. `lost`: figures that have failed in the candidate alone."""

    schema: int
    baseline: str
    candidate: str
    sentence: str
    method: str
    error: str
    margin: float
    alpha: float
    costs_compared: int
    unlike: tuple[str, ...]
    environment: tuple[Difference, ...]
    lost: tuple[str, ...]
    comparisons: tuple[Comparison, ...]

    def having(self, verdict: ComparisonVerdict) -> list[Comparison]:
        return [one for one in self.comparisons if one.verdict is verdict]


def compare(
    a: Run,
    b: Run,
    *,
    margin: float = MARGIN,
    only: Sequence[str] = (),
    unlike: bool = False,
    names: tuple[str, str] = ("A", "B"),
) -> Report:
    """Compares B with the baseline A; summaries are computed anew. `unlike` allows runs that are not of one kind.

    `only`: begins of the names of the figures to compare; of fewer figures smaller changes are significant.

    NothingToCompare where a run is not valid as a whole, or no figure can be compared; Unlike unless they are alike.
    """
    for name, run in zip(names, (a, b), strict=True):
        if why := invalid(run):
            raise NothingToCompare(f"{name} compares with nothing: {why}")
    have = [[str(name) for name in run.manifest.plan.profile["experiments"]] for run in (a, b)]
    if not set(have[0]) & set(have[1]):
        raise NothingToCompare(f"they share no experiment: A has {', '.join(have[0])}, B has {', '.join(have[1])}")
    apart = likeness.unlike(a, b)
    if apart and not unlike:
        raise Unlike("; ".join(apart))
    ours, theirs = analysis.summarise(a), analysis.summarise(b)
    pairs = alternating(a, b)
    pairable = paired_experiments(a, b)
    over_both = together(a, b)
    found = corrected(
        [
            one_figure(*over_both(one, other), pairs if experiment in pairable else {}, margin)
            for experiment, one, other in _matched(ours, theirs, only)
        ]
    )
    settled = tuple(sorted((_judged(one, margin) for one in found), key=_worst_first))
    if all(one.verdict is ComparisonVerdict.not_comparable for one in settled):
        first = f"; first {settled[0].key}: {settled[0].reason}" if settled else ""
        raise NothingToCompare(f"no figure can be compared, of {len(settled)}{first}")
    costs = sum(one.cost and one.p is not None for one in settled)
    return Report(
        schema=SCHEMA,
        baseline=names[0],
        candidate=names[1],
        sentence=_sentence(settled, margin),
        method=_method(settled),
        error=_error(costs),
        margin=margin,
        alpha=ALPHA,
        costs_compared=costs,
        unlike=tuple(apart),
        environment=tuple(likeness.environment(a, b)),
        lost=_lost(ours, theirs, only),
        comparisons=settled,
    )


# --- which runs and figures --------------------------------------------------------------------------------------


def invalid(run: Run) -> str:
    """Why a run as a whole compares with nothing, or nothing."""
    if not run.manifest.finished:
        return f"it did not finish: {' '.join(run.manifest.why.split())}"
    if not likeness.good(run):
        last = f", the last one {run.launches[-1].outcome}" if run.launches else ""
        return f"of its {words.counted(len(run.launches), 'launch', 'launches')} none counts{last}"
    rows = run.samples
    absent = set(rows["cell"]) - set(rows.loc[rows["outcome"] != str(Outcome.not_supported), "cell"])
    cells = set(run.cells) - absent
    failed = cells - set(Run.counted(rows)["cell"])
    if len(failed) > MOST_FAILED * len(cells):
        return f"{len(failed)} of its {len(cells)} cells have no sample that counts"
    return ""


def paired_experiments(a: Run, b: Run) -> set[str]:
    """Experiments of both runs that are measured in the main arm alone: their values are by launch, not by round."""
    profiles = [analysis.profile_of(run) for run in (a, b)]
    return {
        name
        for name in REGISTRY
        if all(
            name in profile.experiments
            and not REGISTRY[name].in_every_block
            and tuple(REGISTRY[name].arms(config.options(profile, name))) == (MAIN,)
            for profile in profiles
        )
    }


def _matched(ours: Summary, theirs: Summary, only: Sequence[str]) -> list[tuple[str, Metric | None, Metric | None]]:
    """Experiment and figure of both by key, those that only one has included."""
    left, right = ({metric.key: metric for metric in summary.metrics} for summary in (ours, theirs))
    every = right | left
    keys = [key for key in dict.fromkeys([*left, *right]) if _wanted(key, only)]
    return [(every[key].experiment, left.get(key), right.get(key)) for key in keys]


def _lost(ours: Summary, theirs: Summary, only: Sequence[str]) -> tuple[str, ...]:
    before = {metric.key for metric in analysis.missing(ours)}
    after = [metric.key for metric in analysis.missing(theirs)]
    return tuple(key for key in after if key not in before and _wanted(key, only))


def _wanted(key: str, only: Sequence[str]) -> bool:
    return not only or key.startswith(tuple(only))


# --- estimated together ------------------------------------------------------------------------------------------

Both = tuple[Metric | None, Metric | None]


def together(a: Run, b: Run) -> Callable[[Metric | None, Metric | None], Both]:
    """Gives two figures the values that their launches have when those of both runs are analysed as of one run.

    To which counts a slope is fitted is found from the data. Each run by itself may find others, all its launches
    alike, and the two would differ by what no scatter between launches tells of.
    """
    border = 1 + max(number for launch in a.launches for number in (launch.launch, launch.round))
    joint = {metric.key: metric for metric in analysis.summarise(as_one(a, b, border)).metrics}

    def given(ours: Metric | None, theirs: Metric | None) -> Both:
        if ours is None or theirs is None or _why_not(ours, theirs) or _part(ours) in MODES:
            return ours, theirs
        # a doubt of both together is none of either: over the same counts even a bent line compares like with like
        known = joint[ours.key].per_launch if ours.key in joint else {}
        values = [(int(number), value) for number, value in known.items()]
        left = {str(number): value for number, value in values if number < border}
        right = {str(number - border): value for number, value in values if number >= border}
        return msgspec.structs.replace(ours, per_launch=left), msgspec.structs.replace(theirs, per_launch=right)

    return given


def as_one(a: Run, b: Run, border: int) -> Run:
    """Launches of both, B's numbered (and its rounds) from `border`, with the experiments that both have."""
    profile = a.manifest.plan.profile
    common = [name for name in profile["experiments"] if name in b.manifest.plan.profile["experiments"]]
    options = {name: profile["options"][name] for name in common}
    plan = msgspec.structs.replace(a.manifest.plan, profile=profile | {"experiments": common, "options": options})
    theirs = b.samples.assign(launch=b.samples["launch"] + border, round=b.samples["round"] + border)
    return Run(
        manifest=msgspec.structs.replace(a.manifest, plan=plan),
        cells={**a.cells, **b.cells},
        launches=(
            *a.launches,
            *(
                msgspec.structs.replace(launch, launch=launch.launch + border, round=launch.round + border)
                for launch in b.launches
            ),
        ),
        samples=pd.concat([a.samples, theirs], ignore_index=True),
    )


# --- pairs -------------------------------------------------------------------------------------------------------


def alternating(a: Run, b: Run) -> dict[str, str]:
    """Launch k of A by launch k of B, where they were made in turn; empty where they were not.

    In turn: in the order of their begins, each two that follow each other are one of each run. What drifts slowly is
    then in both of a pair. A pair of which one does not count is left out.
    """
    try:
        ours, theirs = (_in_time(run) for run in (a, b))
    except ValueError:
        return {}
    if len(ours) != len(theirs) or len(ours) < 2:
        return {}
    turns = list(zip(ours, theirs, strict=True))
    begins = [sorted((_began(one), _began(other))) for one, other in turns]
    if any(later[0] <= earlier[1] for earlier, later in itertools.pairwise(begins)):
        return {}
    return {
        str(one.launch): str(other.launch)
        for one, other in turns
        if one.outcome is Outcome.ok and other.outcome is Outcome.ok
    }


def _in_time(run: Run) -> list[Launch]:
    return sorted((launch for launch in run.launches if launch.arm == MAIN.name), key=_began)


def _began(launch: Launch) -> datetime:
    return datetime.fromisoformat(launch.began)


# --- one figure --------------------------------------------------------------------------------------------------


def welch(x: Floats, y: Floats) -> Contrast:
    """Mean of y less mean of x, two independent samples whose variances may differ (Welch, Biometrika 34, 1947), with
    Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946).
    """
    of_x, of_y = x.var(ddof=1) / x.size, y.var(ddof=1) / y.size
    total = of_x + of_y
    share = of_x / total if total > 0 else 0.5
    degrees = 1 / (share**2 / (x.size - 1) + (1 - share) ** 2 / (y.size - 1))
    return Contrast(float(y.mean() - x.mean()), float(np.sqrt(total)), float(degrees))


def paired(x: Floats, y: Floats) -> Contrast:
    """Mean of y − x over pairs, with Student's t (NIST/SEMATECH e-Handbook, 7.3.1.1)."""
    apart = y - x
    return Contrast(float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(apart.size)), apart.size - 1)


def is_cost(metric: Metric) -> bool:
    """Whether more of it is worse. Brackets are enclosures of a count, no costs."""
    apart = metric.metric in LEFT_OVER or _part(metric) in MODES
    return metric.unit in COST_UNITS and not apart and metric.ci_level < 1


def _part(metric: Metric) -> str:
    """Its name without that of its experiment."""
    return metric.metric.partition(".")[2]


def one_figure(
    ours: Metric | None, theirs: Metric | None, pairs: Mapping[str, str] | None = None, margin: float = MARGIN
) -> Comparison:
    """The figure's shift with its interval; its verdict is yet to come, but where it is not comparable."""
    common = _as_found(ours, theirs)
    reason = _why_not(ours, theirs)
    if reason or ours is None or theirs is None:
        return msgspec.structs.replace(common, reason=reason)
    x, y, in_pairs = _values(ours, theirs, pairs or {})
    scale = Scale.ratio if (x > 0).all() and (y > 0).all() else Scale.difference
    if scale is Scale.ratio:
        x, y = np.log(x), np.log(y)
    shift = (paired if in_pairs else welch)(x, y)
    value, low, high = _on(scale, shift.value, *shift.interval(1 - ALPHA))
    if not all(map(math.isfinite, (value, low, high))):
        return msgspec.structs.replace(common, reason="its launches scatter too widely for any interval")
    before, after = _on(scale, float(x.mean()), float(y.mean()))
    common = msgspec.structs.replace(common, baseline=before, candidate=after)
    least, most = _bounds(scale, margin, common)
    return msgspec.structs.replace(
        common,
        verdict=ComparisonVerdict.unresolved,
        scale=scale,
        value=value,
        ci_low=low,
        ci_high=high,
        paired=in_pairs,
        baseline_launches=x.size,
        candidate_launches=y.size,
        p=shift.p,
        practical=low > most or high < least,
    )


def _as_found(ours: Metric | None, theirs: Metric | None) -> Comparison:
    """What the two summaries say, not yet set against each other."""
    metric = ours or theirs
    assert metric is not None
    return Comparison(
        key=metric.key,
        experiment=metric.experiment,
        metric=metric.metric,
        variant=metric.variant,
        unit=metric.unit,
        cost=is_cost(metric),
        verdict=ComparisonVerdict.not_comparable,
        baseline=ours.value if ours else None,
        candidate=theirs.value if theirs else None,
        baseline_launches=ours.n_launches if ours else 0,
        candidate_launches=theirs.n_launches if theirs else 0,
    )


def _values(ours: Metric, theirs: Metric, pairs: Mapping[str, str]) -> tuple[Floats, Floats, bool]:
    """Values of both by launch, and whether they stand in pairs: where there are pairs, only those that both have."""
    left, right = ours.per_launch, theirs.per_launch
    chosen = [(left[one], right[other]) for one, other in pairs.items() if one in left and other in right]
    in_pairs = len(chosen) >= 2
    x, y = zip(*chosen, strict=True) if in_pairs else (tuple(left.values()), tuple(right.values()))
    return np.array(x, dtype=np.float64), np.array(y, dtype=np.float64), in_pairs


def _on(scale: Scale, *values: float) -> tuple[float, ...]:
    """A shift of logarithms is a ratio."""
    with np.errstate(over="ignore"):
        return tuple(float(np.exp(value)) if scale is Scale.ratio else value for value in values)


def _why_not(ours: Metric | None, theirs: Metric | None) -> str:
    """Why a figure can't be compared, or nothing."""
    left, right = _absence(ours), _absence(theirs)
    if left == right:
        return f"both {left}" if left else ""
    return "; ".join(f"{side} {why}" for side, why in (("A", left), ("B", right)) if why)


def _absence(metric: Metric | None) -> str:
    if metric is None:
        return "without such a figure"
    if metric.outcome is not MetricOutcome.ok:
        return f"{str(metric.outcome).replace('_', ' ')}: {metric.reason}"
    if metric.ci_level == 1:
        return "an enclosure, without values by launch"
    return "" if len(metric.per_launch) >= 2 else "without values of two launches"


def _bounds(scale: Scale | None, margin: float, one: Comparison) -> tuple[float, float]:
    """Within these a change is not worth mentioning. Of a difference: the margin of the larger of the two values."""
    if scale is Scale.ratio:
        return 1 / (1 + margin), 1 + margin
    size = margin * max(abs(one.baseline or 0.0), abs(one.candidate or 0.0))
    return -size, size


def corrected(found: Sequence[Comparison]) -> list[Comparison]:
    """With p values for all costs together (Holm, Scand. J. Statist. 6, 1979), and whether they are significant.

    What is no cost stands for itself: nothing is concluded from it about better or worse.
    """
    family = [one for one in found if one.cost and one.p is not None]
    adjusted = dict(zip((one.key for one in family), holm([one.p or 0.0 for one in family]), strict=True))
    out = []
    for one in found:
        p = adjusted.get(one.key, one.p)
        out.append(msgspec.structs.replace(one, p_adjusted=p, significant=p is not None and p <= ALPHA))
    return out


def _judged(one: Comparison, margin: float) -> Comparison:
    """The verdict: both significant and practical, or the same with the whole interval, or neither."""
    if one.value is None or one.ci_low is None or one.ci_high is None:
        return one
    low, high = _bounds(one.scale, margin, one)
    if one.significant and one.practical:
        changed = ComparisonVerdict.worse if one.value > _no_change(one) else ComparisonVerdict.better
        return msgspec.structs.replace(one, verdict=changed if one.cost else ComparisonVerdict.differs)
    # two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987)
    if low <= one.ci_low and one.ci_high <= high:
        return msgspec.structs.replace(one, verdict=ComparisonVerdict.same)
    beyond = words.exact(100 * margin, "%")
    if one.practical:
        why = f"beyond {beyond} taken alone, not among all costs compared (p {words.number(one.p_adjusted)} by Holm)"
    elif one.significant:
        why = f"it changed, but maybe by less than {beyond}"
    else:
        why = f"neither no change nor one of {beyond} can be ruled out"
    return msgspec.structs.replace(one, reason=why)


# --- in words ----------------------------------------------------------------------------------------------------


def _worst_first(one: Comparison) -> tuple[object, ...]:
    """By verdict, costs before others; what is worse by its size, the rest by how far from chance it went up, and last
    what surely went down.
    """
    up = one.value is not None and one.value > _no_change(one)
    chance = 1.0 if one.p is None else one.p
    order = -_relative(one) if one.verdict is ComparisonVerdict.worse else chance if up else 2 - chance
    return list(ComparisonVerdict).index(one.verdict), not one.cost, order, one.key


def _relative(one: Comparison) -> float:
    """The change as a fraction of the larger value, on either scale."""
    before, after = one.baseline or 0.0, one.candidate or 0.0
    size = max(abs(before), abs(after))
    return (after - before) / size if size else 0.0


def _no_change(one: Comparison) -> float:
    return 1.0 if one.scale is Scale.ratio else 0.0


def _sentence(found: Sequence[Comparison], margin: float) -> str:
    """The whole comparison in one sentence, and its worst figure in another."""
    costs = [one for one in found if one.cost]
    count = {verdict: sum(one.verdict is verdict for one in costs) for verdict in ComparisonVerdict}
    compared = len(costs) - count[ComparisonVerdict.not_comparable]
    worse = count[ComparisonVerdict.worse]
    told = (
        f"{worse or 'None'} of {words.counted(compared, 'cost')} compared "
        f"{'is' if worse <= 1 else 'are'} worse, {count[ComparisonVerdict.better]} better, "
        f"{count[ComparisonVerdict.same]} the same within {words.exact(100 * margin, '%')}, "
        f"{count[ComparisonVerdict.unresolved]} unresolved; "
        f"{count[ComparisonVerdict.not_comparable]} can't be compared."
    )
    return f"{told} Worst: {found[0].key}, {change(found[0])}." if worse else told


def _method(found: Sequence[Comparison]) -> str:
    pairs = sum(one.paired for one in found)
    how = (
        "Launches of the two runs alternate in time and are compared in pairs (paired t)"
        if pairs
        else "Launches of the two runs do not alternate in time and are compared as independent (Welch's t)"
    )
    rest = sum(one.p is not None for one in found) - pairs
    apart = f"; {words.counted(rest, 'figure')} as independent (Welch's t)" if pairs and rest else ""
    level = words.level(1 - ALPHA)
    return f"{how}{apart}; on logarithms where all values are positive, else on differences; {level} intervals."


def _error(costs: int) -> str:
    """What the verdicts are worth; without Holm each of many figures would have its own chance of a false alarm."""
    return (
        f"Of two runs alike, any of the {words.counted(costs, 'cost')} comes out as worse or better with a probability "
        f"of at most {words.level(ALPHA)} (Holm's correction), as far as the launches of a run scatter as those of two "
        "runs do; drift between runs is told apart only where their launches alternate."
    )


def change(one: Comparison) -> str:
    """`1.2 times (1.15 to 1.25)`, or the difference in its unit."""
    if one.value is None:
        return words.MISSING
    unit = "ratio" if one.scale is Scale.ratio else one.unit
    return words.ranged(one.value, one.ci_low, one.ci_high, unit)


def told(report: Report) -> list[str]:
    """The comparison as lines for people: what to know first, then a table, worst first."""
    lines = [report.sentence, "", f"baseline A: {report.baseline}", f"candidate B: {report.candidate}"]
    lines += [f"not alike: {why}" for why in report.unlike]
    lines += [line for one in report.environment for line in _surroundings(one)]
    if not report.environment:
        lines.append("same browser, flags, rig and system")
    lines += [f"has failed in B alone: {key}" for key in report.lost]
    lines += [report.method, report.error, ""]
    head = ("verdict", "A", "B", "change", "significant", "practical", "launches", "figure")
    rows = [head, *(_row(one) for one in report.comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head) - 1)]
    for row in rows:
        lines.append("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]))
    return lines


def _surroundings(one: Difference) -> list[str]:
    if one.what == "flags":
        sides = (("removed", one.baseline), ("added", one.candidate))
        return [f"flags {what}: {words.foreign(text)}" for what, text in sides if text]
    left, right = (words.foreign(words.given(text)) for text in (one.baseline, one.candidate))
    return [f"{one.what}: {left} in A, {right} in B"]


def _row(one: Comparison) -> tuple[str, ...]:
    absent = one.value is None
    return (
        str(one.verdict).replace("_", " "),
        words.quantity(one.baseline, one.unit),
        words.quantity(one.candidate, one.unit),
        "" if absent else change(one),
        "" if absent else _yes(one.significant),
        "" if absent else _yes(one.practical),
        "" if absent else f"{one.baseline_launches} {'pairs' if one.paired else f'and {one.candidate_launches}'}",
        one.key + (f": {words.foreign(one.reason)}" if one.reason else ""),
    )


def _yes(truth: bool) -> str:
    return "yes" if truth else "no"
