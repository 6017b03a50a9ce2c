"""What of a dispatch's cost is the browser's own? The browser against executors without one, policy by policy.

Launches of one round are neighbours in time, so the figures are paired by round. Pure: from metrics and launches.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pandas as pd

from rig import figures, stats
from rig.claims import no_figure, not_tested
from rig.frames import Run
from rig.policies import REPLAYED
from rig.records import EXECUTOR, Adapter, Metric, MetricOutcome, Outcome, Verdict, VerdictOutcome

ID = "native"
CUDA = "cuda"

FROM = ("policy.per_dispatch_us", "program.per_dispatch_us")
"""Figures that are set beside each other, by wall: in one pass the GPU's clock does not see what the caller pays."""

CORE = ("submit_each", "one_pass")
"""Policies that the claim is tested on."""


def counterpart(executor: str, policy: str) -> str:
    """The policy of another executor that the browser's `policy` is set beside. WebGPU can't replay: what a CUDA graph
    is set beside is all dispatches in one pass.
    """
    return REPLAYED if (executor, policy) == (CUDA, "one_pass") else policy


def compute(run: Run, metrics: Sequence[Metric]) -> list[Metric]:
    """Of every policy that both have: the browser's cost over the other's, and its own share of it."""
    by_key = {m.key: m for m in metrics}
    own = [m for m in metrics if m.metric in FROM and m.variant.get("clock") == "wall" and not m.executor]
    found: list[Metric] = []
    for executor in run.also:
        apart = _apart(run, executor)
        for browser in own:
            policy = counterpart(executor, str(browser.variant["policy"]))
            variant = {**browser.variant, EXECUTOR: executor, "policy": policy}
            native = by_key.get(msgspec.structs.replace(browser, variant=variant).key)
            if native is not None:
                found += _of(run, executor, browser, native, apart)
    return found


def _of(run: Run, executor: str, browser: Metric, native: Metric, apart: str) -> list[Metric]:
    variant: figures.Variant = {EXECUTOR: executor, **{k: v for k, v in browser.variant.items() if k != "clock"}}
    if native.outcome is MetricOutcome.not_supported or browser.value is None:
        return []
    if native.value is None:
        return [figures.missing(ID, "native.ratio", variant, "ratio", native.reason)]
    doubts = [f"{side}: {m.reason}" for side, m in (("browser", browser), (executor, native)) if m.reason]
    doubt = apart or "; ".join(doubts)
    ratio = figures.quotient(*(run.by_round(_per_launch(m)) for m in (browser, native)))
    samples = browser.n_samples + native.n_samples
    return [
        figures.over_launches(ID, "native.ratio", variant, "ratio", ratio, samples, doubt=doubt),
        figures.over_launches(
            *(ID, "native.browser_share", variant, "fraction", 1 - 1 / ratio, samples),
            interval=stats.mean_interval,
            doubt=doubt,
        ),
    ]


def _per_launch(metric: Metric) -> pd.Series[float]:
    return pd.Series({int(launch): value for launch, value in metric.per_launch.items()}, dtype=float)


def _apart(run: Run, executor: str) -> str:
    """That the two computed on different adapters, if they did: then their ratio is no share of the browser's."""
    ours, theirs = _adapter(run.main), _adapter(run.of(executor))
    if ours is None or theirs is None or executor == CUDA:
        return ""
    if (ours.vendor, ours.is_fallback) == (theirs.vendor, theirs.is_fallback):
        return ""
    return f"different adapters: the browser's is {ours.label}, {executor}'s {theirs.label}"


def _adapter(run: Run) -> Adapter | None:
    return next((one.adapter for one in run.launches if one.outcome is Outcome.ok and one.adapter is not None), None)


def verdict(metrics: Sequence[Metric]) -> Verdict:
    """C11, from the core policies: holds where every native WebGPU costs less than the browser with its whole interval,
    does not hold where one costs more. The error is split over the comparisons (Bonferroni).
    """
    ratios = [
        m for m in metrics if m.metric == "native.ratio" and m.executor != CUDA and m.variant.get("policy") in CORE
    ]
    if not ratios:
        return not_tested(
            "C11", "this run has no policies of a native WebGPU beside the browser (policy, with --also wgpu,dawn)"
        )
    known = [m for m in ratios if m.value is not None]
    if not known:
        return no_figure("C11", ratios[0], "")
    settled = [m for m in known if m.outcome is MetricOutcome.ok]
    split = [figures.at_level(m, 1 - (1 - m.ci_level) / len(ratios)) for m in settled]
    outcome = VerdictOutcome.unresolved
    if any(interval.high < 1 for interval in split):
        outcome = VerdictOutcome.does_not_hold
    elif len(split) == len(ratios) and all(interval.low > 1 for interval in split):
        outcome = VerdictOutcome.holds
    told = "; ".join(f"{figures.told(m, 'times')} {m.executor}'s with {m.variant['policy']}" for m in known)
    statement = (
        f"the browser's cost of a dispatch is {told}; published: 2.2 times within Metal, by other waits and work"
    )
    return Verdict(claim="C11", outcome=outcome, statement=statement, evidence=tuple(m.key for m in known))
