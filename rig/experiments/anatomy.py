"""anatomy: what is a dispatch made of? What each call costs its caller, and what each layer adds end to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pandas as pd

from rig import figures, stats
from rig.claims import above_one, no_figure
from rig.experiments.base import CountLadder, Experiment, Options, Point, check_counts
from rig.frames import Run
from rig.ladder import Ladder, by_thread, difference
from rig.policies import policy
from rig.programs import micro
from rig.records import Depth, Metric, MetricOutcome, Name, Positive, Program, Verdict

ID = "anatomy"

STAGED, WHOLE_CALLS = "submit_each+staged", "submit_each+created"
"""The calls stage by stage, and the same calls as a loop makes them."""

SUBMIT = "submit"
APART = ("createBindGroup",)
"""Calls that the published table does not have: an engine may keep what they make."""

_CALLS = (
    *("createBindGroup", "createCommandEncoder", "beginComputePass", "setPipeline", "setBindGroup"),
    *("dispatchWorkgroups", "end", "finish", SUBMIT),
)

LAYERS: dict[str, tuple[Callable[[int], Program], Depth]] = {
    "submit": (micro.increment_chain, Depth.submit),
    "command_buffer": (micro.increment_chain, Depth.command_buffer),
    "compute_pass": (micro.increment_chain, Depth.compute_pass),
    "state": (micro.increment_chain, Depth.state),
    "zero_sized": (micro.zero_sized, Depth.dispatch),
    "empty_kernel": (micro.empty_kernels, Depth.dispatch),
    "work": (micro.independent, Depth.dispatch),
    "barrier": (micro.increment_chain, Depth.dispatch),
}
"""Each layer has all that the one before it has, and one thing more."""

IN_ONE_PASS = tuple(LAYERS)[3:]
"""Where all share a pass, only these are there once for each dispatch."""

WHOLE = "whole"
"""A full dispatch, measured once more apart from the ladder."""


class AnatomyOptions(Options, frozen=True, kw_only=True):
    """`calls_n`: objects in a stage, few enough that no call is held up; `counts`: of the ladder, by policy."""

    blocks: Positive = 4
    elements: Positive = 64
    calls_n: Positive = 200
    counts: dict[Name, CountLadder] = msgspec.field(
        default_factory=lambda: {"submit_each": (100, 200, 300, 400), "one_pass": (500, 1000, 1500, 2000)}
    )


def cells(options: AnatomyOptions) -> list[Point]:
    """The stages and the loop of the same calls; every layer, and the whole once more, at every count of its policy.

    ValueError where counts do not rise, or a policy has no layers.
    """
    chain = micro.increment_chain(options.elements)
    points = [Point(chain, policy(name), options.calls_n) for name in (STAGED, WHOLE_CALLS)]
    for base, counts in options.counts.items():
        check_counts(f"counts.{base}", counts)
        points += [layer_point(base, name, options.elements, n) for name in (*_layers(base), WHOLE) for n in counts]
    return points


def _layers(base: str) -> tuple[str, ...]:
    known = {"submit_each": tuple(LAYERS), "one_pass": IN_ONE_PASS}
    if base not in known:
        raise ValueError(f"counts: layers are those of {' and '.join(known)}, not of '{base}'")
    return known[base]


def layer_point(base: str, layer: str, elements: int, n: int) -> Point:
    """n times one layer of a dispatch, with all the layers under it."""
    build, depth = LAYERS.get(layer, (micro.increment_chain, Depth.dispatch))
    program = msgspec.structs.replace(build(elements), name=f"{layer}_layer_{elements}")
    plain = policy(base)
    name = base if depth is Depth.dispatch else f"{base}@{depth}"
    return Point(program, msgspec.structs.replace(plain, name=name, depth=depth), n)


def compute(run: Run, options: AnatomyOptions) -> list[Metric]:
    """Both tables, each with what it leaves unexplained."""
    return [*_calls(run), *(metric for base in options.counts for metric in _ladder(run, options, base))]


# --- what each call costs its caller -------------------------------------------------------------------------------


def _calls(run: Run) -> list[Metric]:
    """Medians over blocks, launch by launch: a stage that is held up once is not what the call costs."""
    staged = run.counted(run.rows(ID, policy=STAGED)).dropna(subset=["calls_us"])
    looped = run.counted(run.rows(ID, policy=WHOLE_CALLS))
    if staged.empty or looped.empty:
        reason = figures.why_none(run, run.rows(ID, policy=STAGED if staged.empty else WHOLE_CALLS), ID)
        return [figures.missing(ID, "anatomy.call_us", {"call": call}, "us", *reason) for call in _CALLS]
    table = pd.DataFrame(staged["calls_us"].tolist(), index=staged.index).div(staged["n"], axis=0)
    calls = table.groupby(staged["launch"]).median()
    total = calls.sum(axis=1)
    loop = (looped["encode_us"] / looped["n"]).groupby(looped["launch"]).median()

    def figure(name: str, variant: figures.Variant, values: pd.Series[float], unit: str = "us") -> Metric:
        interval = stats.share_interval if unit == "fraction" else stats.mean_interval
        return figures.over_launches(ID, f"anatomy.{name}", variant, unit, values, len(staged), interval=interval)

    published = calls.drop(columns=list(APART), errors="ignore")
    rest = published.drop(columns=[SUBMIT])
    runner_up = str(rest.mean().idxmax())
    return [
        *(figure("call_us", {"call": str(call)}, calls[call]) for call in calls),
        *(figure("call_share", {"call": str(c)}, published[c] / published.sum(axis=1), "fraction") for c in published),
        figure("call_remainder_us", {}, (loop - total).dropna()),
        figures.over_launches(
            *(ID, "anatomy.submit_over_next", {"next": runner_up}, "ratio"),
            (published[SUBMIT] / published[runner_up]).replace([np.inf], np.nan).dropna(),
            len(staged),
        ),
    ]


# --- what each layer adds end to end -------------------------------------------------------------------------------


def _ladder(run: Run, options: AnatomyOptions, base: str) -> list[Metric]:
    found: list[Metric] = []
    under: Ladder | None = None
    slopes: dict[str, Ladder] = {}
    for layer in (*_layers(base), WHOLE):
        point = layer_point(base, layer, options.elements, options.counts[base][0])
        rows = run.rows(ID, program=point.program.name, policy=point.policy.name)
        good = run.counted(rows)
        variant: figures.Variant = {"policy": base, "layer": layer}
        if reason := figures.no_slope(run, rows, ID):
            found.append(figures.missing(ID, "anatomy.marginal_us", variant, "us", *reason))
            under = None
            continue
        slopes[layer] = Ladder(ID, variant, "wall", good)
        found.append(_slope(slopes[layer], variant))
        if layer == WHOLE:
            continue
        if layer == _layers(base)[0]:
            found.append(msgspec.structs.replace(found[-1], metric="anatomy.marginal_us"))
        elif under is None:
            found.append(figures.missing(ID, "anatomy.marginal_us", variant, "us", "the layer under it has no figure"))
        else:
            found.append(difference("anatomy.marginal_us", variant, slopes[layer], under))
        if layer == SUBMIT:
            found += _threads(good)
        under = slopes[layer]
    last = _layers(base)[-1]
    if WHOLE in slopes and last in slopes:
        found.append(difference("anatomy.remainder_us", {"policy": base}, slopes[WHOLE], slopes[last]))
    return found


def _slope(ladder: Ladder, variant: figures.Variant) -> Metric:
    """The layer with all under it. Arithmetic mean: the first layers may cost next to nothing."""
    return figures.over_launches(
        *(ID, "anatomy.layer_us", variant, "us", ladder.slopes(), len(ladder.rows)),
        interval=stats.mean_interval,
        doubt=ladder.doubt,
    )


def _threads(good: pd.DataFrame) -> list[Metric]:
    """CPU time and context switches of a bare submit, in all and by class, where the kernel tells: no GPU works in it,
    so what it costs is the browser's.
    """
    return [
        figures.over_launches(
            *(ID, f"anatomy.submit_{column}", {"thread": thread}, unit, own, len(good)), interval=stats.mean_interval
        )
        for column, unit in (("cpu_us", "us"), ("switches", "switches"))
        if good[column].notna().any()
        for thread, own in by_thread(good, column).items()
    ]


# --- verdicts ------------------------------------------------------------------------------------------------------


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C8, from the calls' own times, as it was published."""
    over = next((m for m in metrics if m.metric == "anatomy.submit_over_next"), None)
    share = next((m for m in metrics if m.metric == "anatomy.call_share" and m.variant["call"] == SUBMIT), None)
    layers = [m for m in metrics if m.metric == "anatomy.marginal_us" and m.variant["policy"] == "submit_each"]
    return [claim_submit(over, share, layers)]


def claim_submit(over: Metric | None, share: Metric | None, layers: Sequence[Metric] = ()) -> Verdict:
    """C8: the submit is the largest part of what a dispatch costs its caller. Holds where submit over the next largest
    call is above 1 with its whole interval. What it is of the whole, waited for, is told beside it.
    """
    if over is None or over.value is None:
        return no_figure("C8", over, "this run has no anatomy of calls")
    statement = (
        f"of its caller's time, submit takes {figures.told(over, 'times')} what {over.variant['next']}, the next, takes"
    )
    evidence = [over.key]
    if share is not None and share.value is not None:
        statement += f", {100 * share.value:.3g} % of all calls; published: 40 %"
        evidence.append(share.key)
    known = [m for m in layers if m.outcome is MetricOutcome.ok]
    if known:
        largest = max(known, key=lambda m: m.value or 0)
        statement += f"; end to end the largest layer is {largest.variant['layer']}, {largest.value:.3g} µs"
        evidence.append(largest.key)
    return Verdict(claim="C8", outcome=above_one(over), statement=statement, evidence=tuple(evidence))


EXPERIMENT = Experiment(
    id=ID,
    line="a dispatch taken apart: what each call costs its caller, and what each layer adds end to end",
    options=AnatomyOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
