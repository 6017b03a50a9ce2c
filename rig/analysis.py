"""A run's summary: every experiment's figures, and a verdict on every claim. Pure: from the stored run alone."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rig import beside, claims, config, figures
from rig.claims import CLAIMS
from rig.config import Profile
from rig.experiments import REGISTRY
from rig.frames import Run
from rig.records import EXECUTOR, SCHEMA, Metric, MetricOutcome, Summary, Verdict


def profile_of(run: Run) -> Profile:
    """The profile that the run was made with. ProfileError where this version knows it no longer."""
    return config.resolve(run.manifest.plan.profile, "in manifest.json")


def summarise(run: Run) -> Summary:
    """Figures and verdicts of a run."""
    profile = profile_of(run)
    metrics: list[Metric] = []
    verdicts: dict[str, Verdict] = {}
    for name in profile.experiments:
        found = REGISTRY[name].figures(run.main, config.options(profile, name))
        metrics += found
        verdicts |= {verdict.claim: verdict for verdict in REGISTRY[name].verdicts(_at_look(found, profile))}
    for executor in run.also:
        metrics += _of(run.of(executor), executor, profile)
    shares = beside.compute(run, metrics)
    metrics += shares
    verdicts["C11"] = beside.verdict(_at_look(shares, profile))
    rest = {claim: claims.not_tested(claim, "no experiment of this run tests it") for claim in CLAIMS}
    ordered = [(rest | verdicts)[claim] for claim in CLAIMS]
    return Summary(schema=SCHEMA, metrics=tuple(metrics), verdicts=tuple(ordered))


def _of(run: Run, executor: str, profile: Profile) -> list[Metric]:
    """Figures of an executor beside the main one, which their variant names; none of what is not for it."""
    found: list[Metric] = []
    for name in profile.experiments:
        if config.beside(profile, name):
            found += REGISTRY[name].figures(run, config.options(profile, name))
    return [
        msgspec.structs.replace(metric, variant={**metric.variant, EXECUTOR: executor})
        for metric in found
        if metric.reason != figures.NO_CELL
    ]


def _at_look(metrics: Iterable[Metric], profile: Profile) -> list[Metric]:
    return [figures.at_look(metric, profile.launches.looks) for metric in metrics]


def missing(summary: Summary) -> list[Metric]:
    """Figures without a value that should have one; what is not supported here is not missing."""
    return [metric for metric in summary.metrics if metric.outcome is MetricOutcome.failed]


def primary(metrics: Iterable[Metric]) -> list[Metric]:
    """Of figures that differ only in their clock, the one by span, or by wall where the device has no timestamps."""
    chosen: dict[tuple[object, ...], Metric] = {}
    for metric in sorted(metrics, key=lambda m: m.variant.get("clock") != "span"):
        others = tuple(sorted((k, v) for k, v in metric.variant.items() if k != "clock"))
        held = chosen.get((metric.metric, *others))
        if held is None or held.outcome is MetricOutcome.not_supported:
            chosen[(metric.metric, *others)] = metric
    return list(chosen.values())


def per_dispatch(summary: Summary) -> list[Metric]:
    """Primary per-dispatch figures, the ones that a precision is about."""
    return primary(m for m in summary.metrics if m.metric.endswith(".per_dispatch_us"))


def imprecise(summary: Summary, precision: float) -> list[Metric]:
    """Primary per-dispatch figures whose relative half-interval is above `precision`, or which are unresolved."""
    return [
        metric
        for metric in per_dispatch(summary)
        if metric.outcome is not MetricOutcome.ok or metric.half_width is None or metric.half_width > precision
    ]
