"""How does a decode step's time fall with its dispatches, and at which stage under which policy is it what?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import altair as alt

from rig.experiments.fusion.cells import FUSED, UNFUSED
from rig.experiments.fusion.verdicts import Found
from rig.policies import PRESETS
from rig.programs.decode.lower import put_back
from rig.records import Metric, MetricOutcome
from rig.report import charts, words
from rig.report.chart_intervals import LETTER

SHAPES = {"": "circle", "empty": "triangle-up", "copy": "square"}
_MARKS = {"": "●", "empty": "▲", "copy": "■"}
_MEANINGS = {
    "": "a stage of fusing",
    "empty": f"{FUSED} with empty dispatches put back",
    "copy": f"{FUSED} with copies put back",
}

ROW, MARGINS = 22, 110
"""Height of a row of the map and of what is around them all, in pixels."""

MS = 1e3
"""Microseconds to a millisecond."""

APART = 0.06
"""Names of stages stand at least so much of the axis apart; those between go without."""

Row = dict[str, str | float | bool]


@dataclass(frozen=True)
class Axes:
    """What the map has: stages in the order of fusing, policies, and those under which the other arms ran."""

    stages: tuple[str, ...]
    policies: tuple[str, ...]
    arms: tuple[str, ...]


def axes(found: Found) -> Axes:
    """From the figures alone."""
    steps = found.all("step_us")
    on_map = [m for m in steps if m.variant.keys() == {"stage", "policy"}]
    policies = _values(on_map, "policy")
    others = [m for m in steps if m.variant.keys() != {"stage", "policy"}]
    others += [*found.all("split_us"), *found.all("step_readback_us")]
    stages = dict.fromkeys((*_values(found.all("dispatches"), "stage"), *_values(on_map, "stage")))
    return Axes(tuple(stages), policies, _values(others, "policy") or policies)


def dispatches(found: Found, stage: str) -> float | None:
    """How many dispatches a step has at a stage, where that was counted."""
    return next((m.value for m in found.all("dispatches", stage=stage) if words.has_value(m)), None)


def figures(found: Found) -> list[charts.Figure]:
    """Time against the count, and the map beside it."""
    known = axes(found)
    points = [point for arm in known.arms for point in (*_stages(found, known, arm), *padded(found, arm))]
    cells = [cell for stage in known.stages for cell in _cells(found, known, stage)]
    panels = [*_times(points, known.arms), *_map(cells, known)]
    if not panels:
        return []
    notes = [_times_note(points), *_map_notes(cells, known)]
    title = "What a step takes, by its dispatches and by how they are submitted"
    return [charts.Figure(title, " ".join(note for note in notes if note), _keys(points, known.arms), tuple(panels))]


def _values(metrics: Sequence[Metric], key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(m.variant[key]) for m in metrics if key in m.variant))


# --- time against the count --------------------------------------------------------------------------------------


def _stages(found: Found, known: Axes, arm: str) -> list[Row]:
    rows = []
    for stage in known.stages:
        row = _point(found.one("step_us", stage=stage, policy=arm), dispatches(found, stage), arm, "")
        rows += [{**row, "name": stage} for row in row]
    return rows


def padded(found: Found, arm: str) -> list[Row]:
    """The fused step with a share of what fusing removed put back: so many dispatches more."""
    fused, unfused = dispatches(found, FUSED), dispatches(found, UNFUSED)
    if fused is None or unfused is None:
        return []
    rows = []
    for metric in found.all("step_us", policy=arm):
        if "padding" in metric.variant:
            more = put_back(int(unfused - fused), float(metric.variant["share"]))
            rows += _point(metric, fused + more, arm, str(metric.variant["padding"]))
    return rows


def _point(metric: Metric | None, n: float | None, arm: str, kind: str) -> list[Row]:
    """One point, or none where either of its figures is absent."""
    if metric is None or n is None or not words.has_value(metric):
        return []
    low, value, high = (float(end or 0) / MS for end in (metric.ci_low, metric.value, metric.ci_high))
    ok = metric.outcome is MetricOutcome.ok
    return [{"arm": arm, "kind": kind, "n": n, "low": low, "y": value, "high": high, "ok": ok}]


def _times(points: Sequence[Row], arms: Sequence[str]) -> list[charts.Panel]:
    if not points:
        return []
    most = max(float(row["n"]) for row in points), max(float(row["high"]) for row in points)
    x = alt.X("n:Q", title="dispatches of a step", scale=alt.Scale(domain=[0, 1.05 * most[0]], nice=False))
    scale = alt.Scale(domain=[0, 1.08 * most[1]], nice=False)
    low, y = (alt.Y(f"{end}:Q", title="time of a step, ms", scale=scale) for end in ("low", "y"))
    colours = [colour for _, colour in zip(arms, cycle(charts.SERIES.values()), strict=False)]
    colour = alt.Color("arm:N", scale=alt.Scale(domain=list(arms), range=colours), legend=None)
    ladder = [row for row in points if not row["kind"]]
    drawn: list[charts.Layer] = [
        charts.layer(points).mark_rule(strokeWidth=3, opacity=0.35).encode(x, low, alt.Y2("high:Q"), colour)
    ]
    if ladder:
        drawn.append(charts.layer(ladder).mark_line(strokeWidth=2).encode(x, y, colour))
    for kind, shape in SHAPES.items():
        for ok in (True, False):
            some = [row for row in points if row["kind"] == kind and row["ok"] is ok]
            style = {"filled": True} if ok else {"fill": charts.PAGE, "strokeWidth": 2}
            if some:
                mark = charts.layer(some).mark_point(shape=shape, size=45, opacity=1, **style)
                drawn.append(mark.encode(x, y, colour))
    drawn += _names(ladder, most[0], x, scale)
    told = "; ".join(f"{row['name']}, {row['arm']}: {words.number(float(row['y']))} ms" for row in ladder)
    return [
        charts.panel("Time of a step against its dispatches", f"Time of a step against its dispatches. {told}.", drawn)
    ]


def _names(ladder: Sequence[Row], most: float, x: alt.X, scale: alt.Scale) -> list[charts.Layer]:
    """Stages by name above their highest point, the ends of the published ladder before all others."""
    tops: dict[str, Row] = {}
    for row in ladder:
        before = tops.get(str(row["name"]))
        if before is None or float(row["high"]) > float(before["high"]):
            tops[str(row["name"])] = row
    chosen: list[Row] = []
    for row in sorted(tops.values(), key=lambda row: row["name"] not in (UNFUSED, FUSED)):
        if all(abs(float(row["n"]) - float(other["n"])) >= APART * most for other in chosen):
            chosen.append(row)
    if not chosen:
        return []
    base = charts.layer(
        [{"n": row["n"], "name": row["name"], "high": _height(row, tuple(tops.values()), most)} for row in chosen]
    )
    style: dict[str, Any] = {"fontSize": 11, "dy": -7}
    y, text = alt.Y("high:Q", scale=scale), alt.Text("name:N")
    rim = base.mark_text(stroke=charts.PAGE, color=charts.PAGE, strokeWidth=4, strokeJoin="round", **style)
    return [rim.encode(x, y, text), base.mark_text(color=charts.INK, **style).encode(x, y, text)]


def _height(row: Row, others: Sequence[Row], most: float) -> float:
    """Above all that stands within reach of a name."""
    reach = APART / 2 * most
    return max(float(other["high"]) for other in others if abs(float(other["n"]) - float(row["n"])) <= reach)


def _times_note(points: Sequence[Row]) -> str:
    if not points:
        return ""
    return "Left: line and points with their intervals over launches, on axes from zero, so that a slope is a cost."


def _keys(points: Sequence[Row], arms: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    kinds = [kind for kind in SHAPES if any(row["kind"] == kind for row in points)]
    doubt = [("plain", "○", "not to be relied on: unresolved")] if any(not row["ok"] for row in points) else []
    drawn = {str(row["arm"]) for row in points}
    series = [(name, "▬", arm) for name, arm in zip(cycle(charts.SERIES), arms, strict=False) if arm in drawn]
    return (*series, *(("plain", _MARKS[kind], _MEANINGS[kind]) for kind in kinds), *doubt)


# --- every stage under every policy ------------------------------------------------------------------------------


def _cells(found: Found, known: Axes, stage: str) -> list[Row]:
    n = dispatches(found, stage)
    label = f"{stage}, {words.DASH if n is None else words.exact(n)}"
    rows: list[Row] = []
    for policy in known.policies:
        metric = found.one("step_us", stage=stage, policy=policy)
        row: Row = {"stage": label, "policy": policy, "text": words.DASH}
        if metric is not None and metric.value is not None and words.has_value(metric):
            doubt = "" if metric.outcome is MetricOutcome.ok else " ?"
            row |= {"ms": metric.value / MS, "text": f"{words.number(metric.value / MS)}{doubt}"}
        rows.append(row)
    return rows


def _timed(cells: Sequence[Row]) -> list[Row]:
    return sorted((row for row in cells if "ms" in row), key=lambda row: float(row["ms"]))


def _map(cells: Sequence[Row], known: Axes) -> list[charts.Panel]:
    """Numbers on cells, the darker the longer; a dash without a cell where there is none."""
    timed = _timed(cells)
    if not timed:
        return []
    ends = [float(row["ms"]) for row in (timed[0], timed[-1])]
    # relative to the quickest, in equal ratios; a map of one value is all light
    scale = alt.Scale(type="log", domain=[1, max(ends[1] / ends[0], 1.01)], range=list(charts.HEAT), nice=False)
    plain = {"title": None, "ticks": False, "domain": False, "labelLimit": 160, "labelOverlap": False}
    # names lean over the room that the stages' names take
    slant = {"orient": "top", "labelAngle": 30, "labelAlign": "right", "labelBaseline": "bottom"}
    x = alt.X("policy:N", sort=list(known.policies), axis={**plain, **slant})
    stages = list(dict.fromkeys(str(row["stage"]) for row in cells))
    y = alt.Y("stage:N", sort=stages, axis={**plain, "minExtent": LETTER * max(len(name) for name in stages)})
    ratios = [{**row, "times": float(row["ms"]) / ends[0]} for row in timed]
    colour = alt.Color("times:Q", scale=scale, legend=None)
    drawn: list[charts.Layer] = [charts.layer(ratios).mark_rect().encode(x, y, colour)]
    for some, ink in ((timed, charts.ON_HEAT), ([row for row in cells if "ms" not in row], charts.MUTED)):
        if some:
            drawn.append(charts.layer(some).mark_text(color=ink, fontSize=12).encode(x, y, text="text:N"))
    told = "; ".join(f"{row['stage']}, {row['policy']}: {row['text']}" for row in cells)
    title = "Every stage under every policy: ms a step"
    return [charts.panel(title, f"{title}. {told}.", drawn, height=ROW * len(known.stages) + MARGINS)]


def _map_notes(cells: Sequence[Row], known: Axes) -> list[str]:
    timed = _timed(cells)
    if not timed:
        return []
    first, last = timed[0], timed[-1]
    ratio = words.quantity(float(last["ms"]) / float(first["ms"]), "ratio")
    ends = [f"{row['text']} ms ({row['stage']}, {row['policy']})" for row in (first, last)]
    notes = [
        "Right: stages with their dispatches; the darker a cell, the longer the step, "
        f"from {ends[0]} to {ends[1]}, {ratio} as long."
    ]
    presets = [name for name in known.policies if name in PRESETS]
    if presets:
        are = "is" if len(presets) == 1 else "are"
        notes.append(
            f"{words.listed(presets)} {are} here without the uniform writes of "
            f"{'that engine' if len(presets) == 1 else 'those engines'}: the step's kernels read no uniforms."
        )
    return notes
