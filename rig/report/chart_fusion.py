"""How does a decode step's time go with its dispatches? Stages and padding on one pair of axes, and the whole map."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from rig.experiments.fusion.cells import FUSED, UNFUSED
from rig.frames import Run
from rig.records import Metric
from rig.report import charts, words

STAGES, EMPTY, COPY = "stages", "empty", "copy"
_COLOURS = {STAGES: charts.COLOURS["wall"], EMPTY: charts.COLOURS["span"], COPY: charts.MUTED}
_SHAPES = {STAGES: "circle", EMPTY: "diamond", COPY: "square"}
_KEYS = (
    ("wall", "●", "stages of fusing"),
    ("span", "◆", "the fused step with empty dispatches put back"),
    ("muted", "■", "with copies put back"),
)


def figures(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:  # noqa: ARG001
    """Time against count under each policy that padding was measured under; time of every stage under every policy."""
    known = [metric for metric in metrics if words.has_value(metric)]
    counts = {str(m.variant["stage"]): m.value or 0 for m in known if m.metric == "fusion.dispatches"}
    steps = [m for m in known if m.metric == "fusion.step_us" and m.value is not None]
    if not counts or not steps:
        return []
    return [*_against_count(steps, counts), *_map(steps, counts)]


def _against_count(steps: Sequence[Metric], counts: dict[str, float]) -> list[charts.Figure]:
    policies = list(dict.fromkeys(str(m.variant["policy"]) for m in steps if "padding" in m.variant))
    panels = [_panel(policy, _points(steps, policy, counts)) for policy in policies]
    if not panels:
        return []
    note = (
        "Milliseconds a token, with 95 % intervals. Where padding climbs along the stages' own line, the count "
        "explains what fusing gains; where it stays below, something else does."
    )
    return [charts.Figure("A step's time goes with its dispatches", note, _KEYS, tuple(panels))]


def _points(steps: Sequence[Metric], policy: str, counts: dict[str, float]) -> list[dict[str, object]]:
    points = []
    for metric in steps:
        variant = metric.variant
        if variant["policy"] != policy or metric.value is None:
            continue
        if "padding" in variant and {UNFUSED, FUSED} <= counts.keys():
            count = counts[FUSED] + float(variant["share"]) * (counts[UNFUSED] - counts[FUSED])
            series = str(variant["padding"])
        elif set(variant) == {"stage", "policy"}:
            count, series = counts[str(variant["stage"])], STAGES
        else:
            continue
        ends = (metric.ci_low or metric.value, metric.ci_high or metric.value)
        points.append(
            {
                "count": count,
                "series": series,
                "ms": metric.value / 1000,
                "low": ends[0] / 1000,
                "high": ends[1] / 1000,
            }
        )
    return points


def _panel(policy: str, points: list[dict[str, object]]) -> charts.Panel:
    x = alt.X("count:Q", title="dispatches a token", scale=alt.Scale(zero=True), axis=alt.Axis(format=",~r"))
    y = alt.Y("ms:Q", title="a step, ms", scale=alt.Scale(zero=True), axis=alt.Axis(format=",~r"))
    names = list(_COLOURS)
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=list(_COLOURS.values())), legend=None)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=list(_SHAPES.values())), legend=None)
    of_stages = charts.layer([point for point in points if point["series"] == STAGES])
    every = charts.layer(points)
    layers: list[charts.Layer] = [
        of_stages.mark_line(color=_COLOURS[STAGES], strokeWidth=1.5).encode(x, y),
        every.mark_rule(strokeWidth=1.5).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour),
        every.mark_point(size=60, filled=True, opacity=1).encode(x, y, colour, shape),
    ]
    told = words.sentence(words.policy(policy))
    stages = [point for point in points if point["series"] == STAGES]
    ends = [f"{point['ms']:.3g} ms at {point['count']:,.0f}" for point in (stages[:1] + stages[-1:])]
    return charts.panel(told, f"Step time against dispatches, {words.policy(policy)}: {words.listed(ends)}.", layers)


def _map(steps: Sequence[Metric], counts: dict[str, float]) -> list[charts.Figure]:
    cells = [m for m in steps if set(m.variant) == {"stage", "policy"} and m.value is not None]
    rows = [
        {
            "stage": f"{m.variant['stage']} ({counts[str(m.variant['stage'])]:,.0f})",
            "policy": str(m.variant["policy"]),
            "us": m.value,
            "told": f"{(m.value or 0) / 1000:.3g}",
        }
        for m in cells
    ]
    if not rows:
        return []
    order = {name: list(dict.fromkeys(str(row[name]) for row in rows)) for name in ("stage", "policy")}
    base = charts.layer(rows)
    x = alt.X(
        "policy:N", sort=order["policy"], title=None, axis=alt.Axis(orient="top", labelAngle=-30, labelOverlap=False)
    )
    y = alt.Y("stage:N", sort=order["stage"], title=None)
    values = [m.value for m in cells if m.value is not None]
    scale = alt.Scale(type="log", domain=[min(values), max(values) * 1.0001], range=[0.05, 0.6])
    rect = base.mark_rect(color=charts.COLOURS["wall"]).encode(x, y, alt.Opacity("us:Q", scale=scale, legend=None))
    text = base.mark_text(color=charts.INK, fontSize=12).encode(x, y, alt.Text("told:N"))
    fastest = min(cells, key=lambda m: m.value or 0)
    note = (
        "Milliseconds a token; the darker, the longer. torch_webgpu, onnxruntime_web and tvm submit as those engines "
        "do, without their uniform writes, since the step's kernels read no uniforms."
    )
    alt_text = (
        f"Step time by stage and policy; the shortest is {words.quantity(fastest.value, 'us')}, "
        f"{fastest.variant['stage']} with {fastest.variant['policy']}."
    )
    panel = charts.panel(
        "stage (dispatches a token), under each policy", alt_text, [rect, text], height=28 * len(order["stage"]) + 70
    )
    return [charts.Figure("Fewer dispatches, or the same ones submitted otherwise", note, (), (panel,))]
