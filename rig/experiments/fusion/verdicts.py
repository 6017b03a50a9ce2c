"""What the figures of `fusion` say of the claims, on this adapter. Causes are told apart under one submit each, as the
published experiment submitted; where the CPU that issues is also what computes, or has no time to spare, they are not.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from rig import figures, stats
from rig.claims import above_one, no_figure, not_tested
from rig.experiments.fusion.cells import BASE, FUSED, OTHER, QUALITY_STAGE, UNFUSED
from rig.records import Metric, MetricOutcome, Verdict, VerdictOutcome

ALONE = "with one submit each"
"""What the verdicts on causes are for, as their statements tell it."""

EXPLAINS = 0.8
"""The count is the cause where putting the dispatches back costs at least so much of what removing them saved."""

TRAFFIC = 0.1
"""Memory traffic is a cause from this fraction of the saving on."""

MARGIN = 0.1
"""Better kernels that change the step by less than this are no matter."""

BOUND = 0.5
"""A step is bound by its dispatches where they take at least so much of it."""

CAUSAL = ("C5", "C6", "C7", "batching_over_fusing", "tiny_dispatch_bound")


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C4 to C7, C10, and two claims of our own."""
    found = Found(metrics)
    told = [claim_gain(found), claim_amortise(found)]
    saturated = found.one("cpu_saturated", policy=BASE)
    if saturated is not None:
        busy = saturated.reason if saturated.value is None else f"{figures.told(saturated, 'of its cores')} are busy"
        why = (
            f"the CPU that issues is saturated, or is itself the adapter: {busy}, so a dispatch's cost and a kernel's "
            "can't be told apart"
        )
        return [*told, *(not_tested(claim, why) for claim in CAUSAL)]
    return [
        *told,
        claim_cause(found),
        claim_traffic(found),
        claim_quality(found),
        claim_batching(found),
        claim_bound(found),
    ]


class Found:
    """Figures by name and variant."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = [metric for metric in metrics if metric.metric.startswith("fusion.")]

    def all(self, name: str, **variant: str | int | float) -> list[Metric]:
        return [m for m in self._metrics if m.metric == f"fusion.{name}" and variant.items() <= m.variant.items()]

    def one(self, name: str, **variant: str | int | float) -> Metric | None:
        """That of exactly this variant."""
        return next((m for m in self.all(name, **variant) if m.variant == variant), None)


def claim_gain(found: Found) -> Verdict:
    """C4: holds where the published fusing makes the step shorter, the whole interval of the ratio above 1."""
    gain = found.one("gain", stage=FUSED, policy=BASE)
    if gain is None or gain.value is None:
        return no_figure("C4", gain, f"this run has not both {UNFUSED} and {FUSED} under {BASE}")
    counts = [count.value for stage in (UNFUSED, FUSED) for count in found.all("dispatches", stage=stage)]
    ladder = " to ".join(f"{count:g}" for count in counts if count is not None)
    others = [
        m
        for m in found.all("gain", stage=FUSED)
        if m.variant["policy"] != BASE and "batch" not in m.variant and m.value is not None
    ]
    rest = "".join(f"; {figures.told(m, 'times')} under {m.variant['policy']}" for m in others)
    statement = (
        f"from {ladder} dispatches, outputs the same, a token comes {figures.told(gain, 'times')} as fast under {BASE}"
        f"{rest}; published: 1.53 times, from 876 to 564"
    )
    return Verdict(claim="C4", outcome=above_one(gain), statement=statement, evidence=_keys(gain, *others))


def claim_cause(found: Found) -> Verdict:
    """C5: holds where empty dispatches put back cost EXPLAINS to 1 / EXPLAINS of the saving, with the whole interval;
    does not hold where they cost less. Beyond, they cost more than what they stand for, and settle nothing.
    """
    gain = found.one("gain", stage=FUSED, policy=BASE)
    if gain is not None and above_one(gain) is VerdictOutcome.does_not_hold:
        return not_tested("C5", f"fusing gains nothing here: a token comes {figures.told(gain, 'times')} as fast")
    empty, copies = (found.one("explained_fraction", padding=kind, policy=BASE) for kind in ("empty", "copy"))
    if empty is None or empty.value is None:
        return no_figure("C5", empty, f"this run has no padding under {BASE}")
    fraction = _at_look(found, empty, "padding_us")
    interval, outcome = figures.interval_of(fraction), VerdictOutcome.unresolved
    if fraction.outcome is MetricOutcome.ok and interval.low >= EXPLAINS and interval.high <= 1 / EXPLAINS:
        outcome = VerdictOutcome.holds
    elif fraction.outcome is MetricOutcome.ok and interval.high < EXPLAINS:
        outcome = VerdictOutcome.does_not_hold
    beside = ""
    if copies is not None and copies.value is not None:
        beside = f", copies {figures.told(_at_look(found, copies, 'padding_us'), 'of it')}"
    statement = (
        f"{ALONE}, empty dispatches put back where they were cost {figures.told(fraction, 'of the saving')}{beside}; "
        f"the cause is {EXPLAINS:g} to {1 / EXPLAINS:g}{_doubt(fraction)}"
    )
    parts = (found.one("padding_us", **empty.variant), found.one("saved_us", stage=FUSED, policy=BASE))
    return Verdict(claim="C5", outcome=outcome, statement=statement, evidence=_keys(empty, *parts, copies))


def _at_look(found: Found, fraction: Metric, part: str) -> Metric:
    """A fraction of the saving at the level that the look leaves the saving, by Fieller's interval once more;
    unresolved where that has no ends. `part`: the figure that is divided.
    """
    over = found.one(part, **fraction.variant)
    saved = found.one("saved_us", stage=FUSED, policy=fraction.variant["policy"])
    if fraction.outcome is not MetricOutcome.ok or over is None or saved is None or saved.ci_level == fraction.ci_level:
        return fraction
    launches = sorted(over.per_launch.keys() & saved.per_launch.keys())
    parts, under = (np.array([m.per_launch[launch] for launch in launches]) for m in (over, saved))
    try:
        wide = stats.fieller(parts, under, saved.ci_level)
    except ValueError as error:
        reason = f"at {100 * saved.ci_level:.3g} % {error}"
        return msgspec.structs.replace(fraction, outcome=MetricOutcome.unresolved, reason=reason)
    return msgspec.structs.replace(
        fraction, value=wide.value, ci_low=wide.low, ci_high=wide.high, ci_level=saved.ci_level
    )


def _doubt(metric: Metric) -> str:
    return f"; {metric.reason}" if metric.reason else ""


def claim_traffic(found: Found) -> Verdict:
    """C6: holds where the bytes that fusing spares take less than TRAFFIC of the saving, with the whole interval, and
    there is a saving at all.
    """
    gain = found.one("gain", stage=FUSED, policy=BASE)
    if gain is not None and above_one(gain) is VerdictOutcome.does_not_hold:
        return not_tested("C6", f"fusing gains nothing here: a token comes {figures.told(gain, 'times')} as fast")
    share = found.one("traffic_fraction", policy=BASE)
    if share is None or share.value is None:
        return no_figure("C6", share, f"this run has no time of the bytes spared under {BASE}")
    fraction = _at_look(found, share, "spared_us")
    interval, outcome = figures.interval_of(fraction), VerdictOutcome.unresolved
    if fraction.outcome is MetricOutcome.ok and gain is not None and above_one(gain) is VerdictOutcome.holds:
        if interval.high < TRAFFIC:
            outcome = VerdictOutcome.holds
        elif interval.low > TRAFFIC:
            outcome = VerdictOutcome.does_not_hold
    statement = (
        f"{ALONE}, the bytes that fusing spares take {figures.told(fraction, 'of the saving')} at the bandwidth of a "
        f"copy; a cause is {TRAFFIC:g} or more; published: under 1 µs of 30 ms{_doubt(fraction)}"
    )
    parts = (found.one("spared_us", policy=BASE), found.one("saved_us", stage=FUSED, policy=BASE))
    return Verdict(claim="C6", outcome=outcome, statement=statement, evidence=_keys(share, *parts))


def claim_quality(found: Found) -> Verdict:
    """C7: holds where no other kernel makes the step shorter by MARGIN, the error split over them; does not hold where
    one does, whichever it is.
    """
    every = [m for m in found.all("quality_gain", policy=BASE) if m.outcome is not MetricOutcome.not_supported]
    gains = [m for m in every if m.value is not None and m.outcome is MetricOutcome.ok]
    if not gains:
        absent = next(iter(every or found.all("quality_gain", policy=BASE)), None)
        return no_figure("C7", absent, f"this run has no other kernels at {QUALITY_STAGE} under {BASE}")
    split = [figures.at_level(m, 1 - (1 - m.ci_level) / len(gains)) for m in gains]
    outcome = VerdictOutcome.unresolved
    if any(interval.low > 1 + MARGIN for interval in split):
        outcome = VerdictOutcome.does_not_hold
    elif len(gains) == len(every) and all(interval.high < 1 + MARGIN for interval in split):
        outcome = VerdictOutcome.holds
    told = "; ".join(f"{figures.told(m, 'times')} as fast with {m.variant['quality']}" for m in gains)
    others = [m for m in found.all("quality_gain") if m.variant["policy"] != BASE and m.value is not None]
    most = max(others, key=lambda m: m.value or 0, default=None)
    beside = ""
    if most is not None:
        times, of = figures.told(most, "times"), most.variant
        beside = f"; the most under another policy: {times} with {of['quality']} under {of['policy']}"
    statement = (
        f"{ALONE}, at one count, a token comes {told}; a matter is {1 + MARGIN:g} times or more by another "
        f"kernel{beside}"
    )
    return Verdict(claim="C7", outcome=outcome, statement=statement, evidence=_keys(*gains, most))


def claim_amortise(found: Found) -> Verdict:
    """C10: holds where the unfused step is shorter in one pass, the whole interval of the ratio above 1."""
    gain = found.one("submission_gain", stage=UNFUSED, policy=OTHER, over=BASE)
    if gain is None or gain.value is None:
        return no_figure("C10", gain, f"this run has not both {BASE} and {OTHER}")
    statement = (
        f"in one pass a token comes {figures.told(gain, 'times')} as fast as with one submit each; published: 1.8 times"
    )
    return Verdict(claim="C10", outcome=above_one(gain), statement=statement, evidence=(gain.key,))


def claim_batching(found: Found) -> Verdict:
    """Ours: holds where the unfused step in one pass is shorter than the fused one with one submit each."""
    claim, worth = "batching_over_fusing", found.one("batching_over_fusing", policy=OTHER, over=BASE)
    if worth is None or worth.value is None:
        return no_figure(claim, worth, f"this run has not both {BASE} and {OTHER}")
    fusing, batching = (
        found.one("gain", stage=FUSED, policy=BASE),
        found.one("submission_gain", stage=UNFUSED, policy=OTHER, over=BASE),
    )
    both = [m for m in (batching, fusing) if m is not None and m.value is not None]
    gains = ", ".join(f"{figures.told(m, 'times')}" for m in both)
    statement = (
        f"unfused in one pass, a token comes {figures.told(worth, 'times')} as fast as fused with one submit each "
        f"(gains of batching and of fusing alone: {gains})"
    )
    return Verdict(claim=claim, outcome=above_one(worth), statement=statement, evidence=_keys(worth, *both))


def claim_bound(found: Found) -> Verdict:
    """Ours: holds where all dispatches at the price of one more take at least BOUND of the step, the whole interval.
    One more may cost more than those that are there: a share that is surely above the whole settles nothing.
    """
    claim, share = "tiny_dispatch_bound", found.one("dispatch_share", padding="empty", policy=BASE)
    if not found.all("dispatches", shape="tiny"):
        return not_tested(claim, "this run's shape is another")
    if share is None or share.value is None or share.ci_low is None or share.ci_high is None:
        return no_figure(claim, share, f"this run has no padding under {BASE}")
    outcome = VerdictOutcome.unresolved
    if BOUND <= share.ci_low <= 1:
        outcome = VerdictOutcome.holds
    elif share.ci_high < BOUND:
        outcome = VerdictOutcome.does_not_hold
    statement = f"at the price of one more empty one, its dispatches take {figures.told(share, 'of the step')}"
    return Verdict(claim=claim, outcome=outcome, statement=statement, evidence=_keys(share))


def _keys(*metrics: Metric | None) -> tuple[str, ...]:
    return tuple(metric.key for metric in metrics if metric is not None)
