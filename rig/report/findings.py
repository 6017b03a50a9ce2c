"""What did this run find, and what must be known before any of it is believed? The first lines of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rig import analysis, beside, gates
from rig.experiments.fusion.cells import BASE, FUSED, OTHER, UNFUSED
from rig.experiments.fusion.cells import ID as FUSION
from rig.experiments.fusion.verdicts import Found
from rig.frames import Run
from rig.gates import COARSE_TICK_US
from rig.ladder import MOST_APART
from rig.policies import REPLAYED
from rig.records import Adapter, Build, Launch, Metric, MetricOutcome, Outcome, Summary, canonical
from rig.report import words

# --- first lines -------------------------------------------------------------------------------------------------


COSTS = ("sequential", "program", "policy")
"""Experiments that say what a dispatch costs; the first that a run has is told at the top."""


HEADLINE = ("submit_each", "one_pass")
"""Policies that the first lines tell both clocks of."""


def headline(summary: Summary) -> list[str]:
    """What a dispatch costs and what timing it naively says, with intervals, in the browser; or why there is no figure;
    and what the browser's share of it is.
    """
    own = msgspec.structs.replace(summary, metrics=tuple(m for m in summary.metrics if not m.executor))
    return [*_costs(own), *_serial(own), *_modes(own), *_naive(own), *_steps(own), *_beside(summary)]


def _steps(summary: Summary) -> list[str]:
    """What a decode step takes unfused and fused, under HEADLINE's policies; what fusing and batching
    gain, and how much of that the count alone explains.
    """
    found = Found([m for m in summary.metrics if m.value is not None])
    counts = {str(m.variant["stage"]): m.value or 0 for m in found.all("dispatches")}
    sentences = []
    for policy in HEADLINE:
        steps = {stage: found.one("step_us", policy=policy, stage=stage) for stage in counts}
        known = {stage: step for stage, step in steps.items() if step is not None}
        told = [
            f"{_value(step)} in {counts[stage]:,.0f} dispatches"
            for stage, step in known.items()
            if stage in (UNFUSED, FUSED, list(known)[-1])
        ]
        if told:
            sentences.append(f"{words.sentence(words.policy(policy))}, a decode step takes {words.listed(told)}.")
    gain = found.one("gain", stage=FUSED, policy=BASE)
    batching = found.one("submission_gain", stage=UNFUSED, policy=OTHER, over=BASE)
    if gain is not None and batching is not None:
        sentences.append(
            f"With one submit each, the published fusing makes a token {_value(gain)} as fast; "
            f"one pass instead, unfused, {_value(batching)}."
        )
    back = found.one("explained_fraction", padding="empty", policy=BASE)
    if back is not None and back.outcome is MetricOutcome.ok and found.one("cpu_saturated", policy=BASE) is None:
        sentences.append(
            f"With one submit each, empty dispatches put back where fusing took some away cost {_value(back)} of what "
            "it saved."
        )
    return sentences


def _serial(summary: Summary) -> list[str]:
    """Where the wall clearly takes more than the GPU, both are told: what one submit holds runs only once issued."""
    by_key = {m.key: m for m in summary.metrics if m.outcome is MetricOutcome.ok}
    told: dict[str, str] = {}
    for experiment in COSTS:
        for policy in dict.fromkeys(str(m.variant.get("policy", "")) for m in summary.metrics):
            name = f"{experiment}.per_dispatch_us{{clock=%s,policy={policy}}}"
            span, wall = by_key.get(name % "span"), by_key.get(name % "wall")
            if span is None or wall is None or policy not in HEADLINE:
                continue
            if (wall.ci_low or 0) > MOST_APART * (span.ci_high or 0):
                told.setdefault(
                    policy,
                    f"{words.sentence(words.policy(policy))}, its caller waits {_value(wall)} for it, by wall time: "
                    "the GPU begins only when all of them are issued and translated.",
                )
    return list(told.values())


def _beside(summary: Summary) -> list[str]:
    """The browser against executors without one."""
    ratios = [m for m in summary.metrics if m.metric == "native.ratio" and m.outcome is MetricOutcome.ok]
    core = [m for m in ratios if m.variant.get("policy") in beside.CORE]
    parts = [f"{_value(m)} {_counterpart(m)}" for m in core]
    return [f"By wall time, a dispatch in the browser costs {words.listed(parts)}."] if parts else []


def _counterpart(ratio: Metric) -> str:
    policy = str(ratio.variant["policy"])
    if ratio.executor != beside.CUDA:
        return f"what one on {ratio.executor} does {words.policy(policy)}"
    replayed = beside.counterpart(ratio.executor, policy) == REPLAYED
    return f"what a kernel of CUDA's does {'replayed in a graph' if replayed else 'launched on its own'}"


def _costs(summary: Summary) -> list[str]:
    found = ([m for m in summary.metrics if m.metric == f"{name}.per_dispatch_us"] for name in COSTS)
    slopes = next((metrics for metrics in found if metrics), [])
    if not slopes and any(m.experiment == FUSION for m in summary.metrics):
        return []
    if not slopes:
        return [f"This run has no figure of what a dispatch costs: none of {', '.join(COSTS)} is part of it."]
    policies = list(dict.fromkeys(str(m.variant.get("policy", "")) for m in slopes))
    primary = {str(m.variant.get("policy", "")): m for m in analysis.primary(slopes)}
    chosen = [primary[name] for name in policies]
    sentences = [_cost_sentence(group) for group in _grouped(m for m in chosen if not words.absence(m))]
    sentences += _absence_sentences("What a dispatch costs", [m for m in chosen if words.absence(m)])
    return sentences + _no_timestamps(slopes, chosen)


def _grouped(metrics: Iterable[Metric]) -> list[list[Metric]]:
    groups: dict[object, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault((metric.variant.get("clock"), metric.n_launches, metric.ci_level), []).append(metric)
    return list(groups.values())


def _cost_sentence(metrics: Sequence[Metric]) -> str:
    parts = []
    for index, metric in enumerate(metrics):
        level = f"{words.level(metric.ci_level)} interval " if index == 0 else ""
        parts.append(f"{_value(metric, level)} {words.policy(str(metric.variant.get('policy', '')))}")
    return f"A dispatch costs {words.listed(parts)}, by {_clock(metrics[0])}, over {_launches(metrics[0])}."


def _absence_sentences(subject: str, metrics: Sequence[Metric]) -> list[str]:
    """One sentence for all that lack a figure for the same reason."""
    by_reason: dict[str, list[Metric]] = {}
    for metric in metrics:
        by_reason.setdefault(f"{_clock(metric)}, is {words.absence(metric)}", []).append(metric)
    return [
        f"{subject} {words.listed(words.policy(str(m.variant.get('policy', ''))) for m in group)}, by {reason}."
        for reason, group in by_reason.items()
    ]


def _no_timestamps(slopes: Sequence[Metric], chosen: Sequence[Metric]) -> list[str]:
    absent = [m for m in slopes if m.variant.get("clock") == "span" and m not in chosen]
    return [f"The slope by GPU span is {words.absence(absent[0])}."] if absent else []


def _modes(summary: Summary) -> list[str]:
    """Where the times behind a slope come in two modes, the slope is a mean of two costs: both are told."""
    found = {m.key: m for m in summary.metrics if m.metric in ("sequential.mode_us", "sequential.upper_mode_share")}
    sentences = []
    for share in (m for m in found.values() if m.metric == "sequential.upper_mode_share"):
        lower, upper = (
            found.get(
                msgspec.structs.replace(share, metric="sequential.mode_us", variant={**share.variant, "mode": name}).key
            )
            for name in ("lower", "upper")
        )
        if lower is not None and upper is not None and words.has_value(lower) and words.has_value(upper):
            where = words.sentence(words.policy(str(share.variant.get("policy", ""))))
            sentences.append(
                f"{where}, the times come in two modes, {words.quantity(lower.value, 'us')} and "
                f"{words.quantity(upper.value, 'us')} a dispatch; {words.quantity(share.value, 'fraction')} of the "
                "samples are in the upper one."
            )
    return sentences


def _naive(summary: Summary) -> list[str]:
    by_key = {m.key: m for m in summary.metrics}
    single = by_key.get("single_op.latency_us{waiter=work_done}")
    ratio = by_key.get("sequential.naive_over_true{policy=submit_each}")
    sentences = []
    if single is not None:
        subject = "Timing one dispatch with its wait"
        why = words.absence(single)
        sentences.append(f"{subject} is {why}." if why else f"{subject} says {_value(single)}.")
    if ratio is not None:
        why = words.absence(ratio)
        subject = "How much one waited dispatch overstates that cost"
        sentences.append(
            f"{subject} is {why}."
            if why
            else f"Launch by launch, the wall time of one waited dispatch is {_value(ratio)} the slope with "
            "one submit each."
        )
    return sentences


def _value(metric: Metric, level: str = "") -> str:
    ends = words.interval(metric.ci_low, metric.ci_high, metric.unit, metric.value) or words.MISSING
    return f"{words.quantity(metric.value, metric.unit)} ({level}{ends})"


def _clock(metric: Metric) -> str:
    return words.CLOCKS.get(str(metric.variant.get("clock", "wall")), str(metric.variant.get("clock")))


def _launches(metric: Metric) -> str:
    return words.counted(metric.n_launches, "launch", "launches")


# --- adapters and builds -----------------------------------------------------------------------------------------


def adapters(run: Run) -> list[Adapter]:
    """The different adapters that the launches gave, in the order of their first launch."""
    found: dict[bytes, Adapter] = {}
    for launch in run.launches:
        if launch.adapter is not None:
            found.setdefault(canonical(launch.adapter.itself), launch.adapter)
    return list(found.values())


def builds(run: Run) -> list[Build]:
    """The different builds that were launched, with their flags: each arm has its own."""
    found: list[Build] = []
    for launch in run.launches:
        if launch.build is not None and launch.build not in found:
            found.append(launch.build)
    return found


def adapter_line(run: Run) -> str:
    """Which adapter was obtained and which was asked for."""
    got = words.listed(dict.fromkeys(adapter.label for adapter in adapters(run.main))) or "none, no launch gave one"
    return f"{got}; asked for: {words.given(run.manifest.plan.adapter_asked)}"


# --- banners -----------------------------------------------------------------------------------------------------


def banners(run: Run) -> list[str]:
    """What a reader must know before the figures, most serious first."""
    good = [launch for launch in run.launches if launch.outcome is Outcome.ok]
    told = [_software(run), _unfinished(run), _no_good_launch(run, good)]
    told += [
        _differ("adapter", len(adapters(run.main))),
        _differ("browser build", len({(build.version, build.sha256) for build in builds(run.main)})),
    ]
    return [text for text in (*told, *_clock_banners(run.launches), _disturbed(run)) if text]


def _software(run: Run) -> str:
    software = [adapter for adapter in adapters(run.main) if adapter.is_fallback]
    if not software:
        return ""
    names = words.listed(dict.fromkeys(adapter.label for adapter in software))
    verb = "computes" if len(software) == 1 else "compute"
    return (
        f"This is a software adapter: {names} {verb} on the CPU. The figures tell what the browser's path and this "
        "host's CPU do; they say nothing about a GPU, and are not to be compared with figures of one."
    )


def _unfinished(run: Run) -> str:
    return "" if run.manifest.finished else f"This run did not finish: {run.manifest.why or 'no reason was recorded'}."


def _no_good_launch(run: Run, good: Sequence[Launch]) -> str:
    if good:
        return ""
    if not run.launches:
        return "This run has no launch."
    last = run.launches[-1]
    made = words.counted(len(run.launches), "launch", "launches")
    return f"No launch counts, of {made}; the last one ended with {last.outcome}: {last.detail or 'no detail'}."


def _differ(what: str, count: int) -> str:
    return f"The launches of this run had {count} different {what}s: the figures mix them." if count > 1 else ""


def disturbances(run: Run) -> dict[int, list[gates.Closed]]:
    """The gates that closed on each launch, by its number, with the effects that the run's profile gave them."""
    effects = analysis.profile_of(run).gates
    cores, first = run.manifest.host.cores, min((launch.launch for launch in run.launches), default=0)
    return {x.launch: gates.closed(x, cores, effects, first=x.launch == first) for x in run.launches}


def _disturbed(run: Run) -> str:
    by_launch = disturbances(run)
    causes = gates.marks(by_launch)
    if not causes:
        return ""
    marked = sum(any(gate.marks for gate in closed) for closed in by_launch.values())
    share = f"{marked:,} of {words.counted(len(by_launch), 'launch', 'launches')}"
    reasons = "; ".join(f"{cause} ({count:,})" for cause, count in causes.items())
    return f"Something disturbed {share}, and their figures may be off: {reasons}."


def _clock_banners(launches: Sequence[Launch]) -> list[str]:
    clocks = [launch.clock for launch in launches if launch.clock is not None]
    coarse = [clock.tick_us for clock in clocks if clock.tick_us >= COARSE_TICK_US]
    open_pages = sum(not clock.isolated for clock in clocks)
    hidden = sum(clock.visibility != "visible" for clock in clocks)
    found = []
    if coarse:
        found.append(
            f"The page's clock is coarse: it moves in steps of {words.quantity(max(coarse), 'us')}. "
            "Times near that step say more about the clock than about the work."
        )
    if open_pages:
        found.append(f"The page was not cross-origin isolated in {words.counted(open_pages, 'launch', 'launches')}.")
    if hidden:
        found.append(
            f"The page was not visible in {words.counted(hidden, 'launch', 'launches')}: "
            "browsers slow the timers of hidden pages."
        )
    return found
