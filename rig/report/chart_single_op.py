"""What does the latency of one waited dispatch look like, sample by sample, for each waiter?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from rig import stats
from rig.experiments import single_op
from rig.frames import Run
from rig.records import Metric
from rig.report import charts, words

BINS = 48
_LINES = {"lower": "lower mode", "upper": "upper mode", "mean": "mean"}


def figures(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:
    """One histogram a waiter, on the same axes, with the modes and the mean marked where there are figures of them."""
    good = run.good(single_op.ID)
    good = good[good["wall_us"] > 0]
    if good.empty:
        return []
    waiters = sorted(set(good["waiter"]), key=lambda name: (name != "work_done", name))
    edges = np.geomspace(*charts.padded(good["wall_us"].to_list(), by=0.04), BINS + 1)
    shares = {name: _shares(good.loc[good["waiter"] == name, "wall_us"], edges) for name in waiters}
    top = 1.25 * max(max(share) for share in shares.values())
    panels = [_panel(name, shares[name], edges, top, _marked(metrics, name)) for name in waiters]
    two = any(metric.metric == "single_op.mode_us" for metric in metrics)
    title = "The wait ends in one of two modes" if two else "How long one waited dispatch takes, sample by sample"
    note = "Bars: share of all samples that count, all launches together, in steps of equal ratio."
    if two:
        note += " The mean is what a loop of waited dispatches pays for each; few samples need be near it."
    return [charts.Figure(title, note, (), tuple(panels))]


def _shares(wall_us: pd.Series[float], edges: stats.Floats) -> list[float]:
    counts, _ = np.histogram(wall_us.to_numpy(dtype=float), edges)
    return [float(count) / max(1, len(wall_us)) for count in counts]


def _marked(metrics: Sequence[Metric], waiter: str) -> dict[str, float]:
    """Values to be marked, by the name of their line, rising."""
    found = {}
    for metric in metrics:
        if metric.variant.get("waiter") != waiter or metric.value is None or not words.has_value(metric):
            continue
        if metric.metric == "single_op.mode_us":
            found[str(metric.variant.get("mode"))] = metric.value
        elif metric.metric == "single_op.latency_us":
            found["mean"] = metric.value
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _panel(waiter: str, shares: list[float], edges: stats.Floats, top: float, marked: dict[str, float]) -> charts.Panel:
    domain = (float(edges[0]), float(edges[-1]))
    x = alt.X("low:Q", **charts.time_axis("wall time of one dispatch and its wait", domain))
    in_percent = alt.Axis(labelExpr="format(datum.value * 100, ',~r') + ' %'", title="share of samples", tickCount=5)
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=in_percent)
    bars = [
        {"low": float(low), "high": float(high), "share": share, "zero": 0}
        for low, high, share in zip(edges, edges[1:], shares, strict=False)
        if share > 0
    ]
    bar = charts.layer(bars).mark_rect(color=charts.COLOURS["wall"], opacity=0.75)
    drawn: list[charts.Layer] = [bar.encode(x, alt.X2("high:Q"), y, alt.Y2("zero:Q"))]
    for row, (name, value) in enumerate(marked.items()):
        drawn += _mark(name, value, x, y, height=top * (0.97 - 0.06 * row), side=_side(value, domain))
    told = words.listed(f"{_LINES.get(n, n)} {words.quantity(v, 'us')}" for n, v in marked.items())
    title = words.WAITERS.get(waiter, waiter)
    alt_text = f"Histogram of the wall time of one waited dispatch, waiter {title}" + (f": {told}." if told else ".")
    return charts.panel(title, alt_text, drawn)


def _side(value: float, domain: tuple[float, float]) -> dict[str, Any]:
    """To the right of its line, where there is room for a name."""
    leftward = math.log(value / domain[0]) > 0.65 * math.log(domain[1] / domain[0])
    return {"align": "right", "dx": -5} if leftward else {"align": "left", "dx": 5}


def _mark(name: str, value: float, x: alt.X, y: alt.Y, *, height: float, side: dict[str, Any]) -> list[charts.Layer]:
    """A line at `value` with its name at the top. Lines further right are lower, so that no name meets a line."""
    base = charts.layer([{"low": value, "zero": 0, "share": height}])
    rule = base.mark_rule(color=charts.INK, strokeWidth=1.5, strokeDash=[2, 3] if name == "mean" else [1, 0])
    text = f"{_LINES.get(name, name)} {words.quantity(value, 'us')}"
    return [
        rule.encode(x, y, alt.Y2("zero:Q")),
        *charts.label(base, text, x, y, {"baseline": "middle", "dy": 5, **side}),
    ]
