"""The published claims that a run passes verdicts on, and what verdicts have in common.

From arXiv:2608.08730v1 and its preliminary version, arXiv:2604.02344v1.
"""

from __future__ import annotations

from rig.records import Metric, MetricOutcome, Verdict, VerdictOutcome

CLAIMS = {
    "C1": "Timing one dispatch with its wait overstates the cost, because it times the wait.",
    "C2": "A dispatch costs tens of microseconds.",
    "C3": "The cost does not depend on the data type.",
    "C4": "Fusing lowers the dispatch count and raises throughput although the computation stays the same.",
    "C5": "The dispatch count is the cause of what fusing gains.",
    "C6": "Memory traffic is not the cause of what fusing gains.",
    "C7": "Kernel quality is not the bottleneck.",
    "C8": "The submit is the largest part of a dispatch.",
    "C9": "Validation of each operation is the price of the browser's safety.",
    "C10": "Amortising dispatches (batching, capture and replay) is the way.",
    "C11": "Browsers cost more than native implementations.",
    "batching_over_fusing": "Batching the submission is worth more than fusing.",
    "tiny_dispatch_bound": "A decode step of the shape tiny is bound by its dispatches.",
}
"""Claim id to the claim, in our words. Those without a number are not the papers' but ours."""


def not_tested(claim: str, why: str) -> Verdict:
    """A verdict for a run that can't test the claim."""
    return Verdict(claim=claim, outcome=VerdictOutcome.not_tested, statement=why)


def no_figure(claim: str, metric: Metric | None, otherwise: str) -> Verdict:
    """Not tested, since `metric` has no value; `otherwise` says why there is no such metric at all."""
    return not_tested(claim, f"no figure: {metric.reason if metric else otherwise}")


def above_one(ratio: Metric) -> VerdictOutcome:
    """Whether a claimed ratio is above 1 with its whole interval, below it with its whole interval, or neither."""
    if ratio.outcome is MetricOutcome.ok and (ratio.ci_low or 0) > 1:
        return VerdictOutcome.holds
    if ratio.outcome is MetricOutcome.ok and ratio.ci_high is not None and ratio.ci_high < 1:
        return VerdictOutcome.does_not_hold
    return VerdictOutcome.unresolved
