"""How does time grow with the count of dispatches, and what does dividing by the count make of it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from rig.experiments import sequential
from rig.figures import PUBLISHED_N
from rig.frames import Run
from rig.ladder import Ladder
from rig.records import Metric
from rig.report import charts, words

Row = dict[str, Any]
Domain = tuple[float, float]
Ladders = Mapping[str, Sequence[Ladder]]

_BORDERS = {"sequential.knee_n": "knee", "sequential.back_pressure_n": "back-pressure"}
_KEYS = {"wall": ("wall", "●", "wall time, the wait included"), "span": ("span", "◆", "GPU span")}
_POINTS = "Points: mean of the launches' means; bars behind them: 10 % to 90 % of all samples."
SPREAD = (0.1, 0.9)


def figures(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:
    """Time against the count, and time per dispatch against the count, a panel for each policy on the same axes."""
    good = run.good(sequential.ID)
    planned = [str(metric.variant["policy"]) for metric in metrics if "policy" in metric.variant]
    ladders = {}
    for name in dict.fromkeys([*planned, *sorted(set(good["policy"]))]):
        rows = good[good["policy"] == name]
        timed = [clock for clock in ("wall", "span") if rows[f"{clock}_us"].gt(0).any()]
        if timed:
            ladders[name] = [Ladder("sequential", {"policy": name}, clock, rows) for clock in timed]
    if not ladders:
        return []
    return [_times(ladders, metrics), _costs(ladders, metrics)]


def _clock(ladder: Ladder) -> str:
    return str(ladder.variant["clock"])


def _keys(ladders: Ladders) -> tuple[tuple[str, str, str], ...]:
    found = {_clock(ladder) for group in ladders.values() for ladder in group}
    return tuple(key for clock, key in _KEYS.items() if clock in found)


def _points(ladder: Ladder, divided: bool) -> list[Row]:
    """At each count the mean of the launches' means, and the spread of all samples."""
    rows: list[Row] = []
    for n, means in zip(ladder.series.n, ladder.series.means.T, strict=True):
        times = ladder.rows.loc[ladder.rows["n"] == n, f"{_clock(ladder)}_us"]
        low, high = float(times.quantile(SPREAD[0])), float(times.quantile(SPREAD[1]))
        by = float(n) if divided else 1.0
        middle = float(np.nanmean(means))
        rows.append({"clock": _clock(ladder), "n": float(n), "y": middle / by, "low": low / by, "high": high / by})
    return [row for row in rows if row["low"] > 0]  # a logarithmic axis has no place for others


def _spread(points: Sequence[Row], x: Row, y: Row) -> list[charts.Layer]:
    """Points with the spread behind them as a vertical bar."""
    base, style = charts.layer(points), charts.by_clock("points")
    bar = base.mark_rule(strokeWidth=5, opacity=0.28)
    point = base.mark_point(size=55, filled=True, opacity=1)
    return [
        bar.encode(alt.X("n:Q", **x), alt.Y("low:Q", **y), alt.Y2("high:Q"), style["color"]),
        point.encode(alt.X("n:Q", **x), alt.Y("y:Q", **y), *style.values()),
    ]


def _domains(ladders: Ladders, divided: bool, more: Sequence[float] = ()) -> tuple[Domain, Domain]:
    """The same axes for all policies."""
    points = [row for group in ladders.values() for ladder in group for row in _points(ladder, divided)]
    times = [row[end] for row in points for end in ("low", "high")]
    return charts.padded([row["n"] for row in points], 0.04), charts.padded([*times, *more], 0.1)


# --- time against the count --------------------------------------------------------------------------------------


def _times(ladders: Ladders, metrics: Sequence[Metric]) -> charts.Figure:
    xs, ys = _domains(ladders, divided=False)
    x, y = charts.count_axis(xs), charts.time_axis("time of n dispatches", ys)
    panels = [_times_panel(name, group, metrics, x, y) for name, group in ladders.items()]
    knee = any(metric.metric == "sequential.knee_n" for metric in metrics)
    title = "Time grows with the count only above the knee" if knee else "Time against the count of dispatches"
    fitted = any(ladder.series.range for group in ladders.values() for ladder in group)
    more = "Line: the fit over the linear range, median launch. Shaded: where the knee lies and back-pressure begins."
    return charts.Figure(title, f"{_POINTS} {more if fitted else 'No linear range.'}", _keys(ladders), tuple(panels))


def _times_panel(name: str, group: Sequence[Ladder], metrics: Sequence[Metric], x: Row, y: Row) -> charts.Panel:
    points = [row for ladder in group for row in _points(ladder, divided=False)]
    fits = [row for ladder in group for row in _fit(ladder)]
    drawn = _border_bands(name, metrics, x) + _spread(points, x, y)
    if fits:
        line = charts.layer(fits).mark_line(strokeWidth=2)
        drawn.append(line.encode(alt.X("n:Q", **x), alt.Y("y:Q", **y), *charts.by_clock("lines").values()))
    clocks = words.listed(words.CLOCKS[_clock(ladder)] for ladder in group)
    alt_text = f"Time of n dispatches against n, both logarithmic, {words.policy(name)}, by {clocks}."
    return charts.panel(words.sentence(words.policy(name)), alt_text, drawn)


def _fit(ladder: Ladder) -> list[Row]:
    """The line over the linear range, the median of the launches' lines; a curve on logarithmic axes."""
    if ladder.series.range is None:
        return []
    counts = np.geomspace(ladder.counts[0], ladder.counts[-1], 40)
    middle = np.nanmedian(ladder.series.lines().at(counts), axis=0)
    rows = zip(counts, middle, strict=True)
    return [{"clock": _clock(ladder), "n": float(n), "y": float(time)} for n, time in rows if time > 0]


def _border_bands(name: str, metrics: Sequence[Metric], x: Row) -> list[charts.Layer]:
    """The brackets of knee and back-pressure, as bands over the whole height, named along their left edge."""
    drawn: list[charts.Layer] = []
    for metric in metrics:
        if metric.metric not in _BORDERS or metric.variant.get("policy") != name or not words.has_value(metric):
            continue
        clock = str(metric.variant.get("clock"))
        band = charts.layer([{"n": metric.ci_low, "end": metric.ci_high}])
        rect = band.mark_rect(color=charts.COLOURS.get(clock, charts.MUTED), opacity=0.12)
        text = band.mark_text(
            text=f"{_BORDERS[metric.metric]}, {clock}",
            angle=270,
            align="right",
            baseline="top",
            dy=3,
            fontSize=11,
            color=charts.MUTED,
        )
        drawn.append(rect.encode(alt.X("n:Q", **x), alt.X2("end:Q")))
        drawn.append(text.encode(alt.X("n:Q", **x), y=alt.value(4)))
    return drawn


# --- time per dispatch against the count -------------------------------------------------------------------------


def _costs(ladders: Ladders, metrics: Sequence[Metric]) -> charts.Figure:
    slopes = [slope for name in ladders for slope in _slopes(name, metrics)]
    xs, ys = _domains(ladders, True, [end for m in slopes for end in (m.ci_low, m.ci_high) if end is not None])
    x, y = charts.count_axis(xs), charts.time_axis("time of n dispatches, over n", ys)
    panels = [_costs_panel(name, group, metrics, x, y, xs) for name, group in ladders.items()]
    over = any(_overstates(name, metrics) for name in ladders)
    title = "Total over count overstates the cost" if over else "Time over count, beside the slope"
    note = "Points: the same means, divided by n."
    if slopes:
        note += " Horizontal band: the slope with its interval, where it is resolved."
    if any(_published(name, metrics) for name in ladders):
        note += " Ring: the published estimator, which divides the time of so many dispatches by their number."
    return charts.Figure(title, note, _keys(ladders), tuple(panels))


def _of(name: str, metric: str, metrics: Sequence[Metric]) -> list[Metric]:
    return [m for m in metrics if m.metric == metric and m.variant.get("policy") == name and not words.absence(m)]


def _slopes(name: str, metrics: Sequence[Metric]) -> list[Metric]:
    return _of(name, "sequential.per_dispatch_us", metrics)


def _published(name: str, metrics: Sequence[Metric]) -> Metric | None:
    return next(iter(_of(name, "sequential.total_over_n_us", metrics)), None)


def _overstates(name: str, metrics: Sequence[Metric]) -> bool:
    """True where the published estimator's whole interval is above that of every slope."""
    told, slopes = _published(name, metrics), _slopes(name, metrics)
    return bool(told and slopes) and all(told and (told.ci_low or 0) > (m.ci_high or np.inf) for m in slopes)


def _costs_panel(
    name: str, group: Sequence[Ladder], metrics: Sequence[Metric], x: Row, y: Row, xs: Domain
) -> charts.Panel:
    points = [row for ladder in group for row in _points(ladder, divided=True)]
    slopes, published = _slopes(name, metrics), _published(name, metrics)
    bands = [_slope_band(slope, x, y, xs) for slope in slopes]
    drawn = [part for band, _ in bands for part in band] + _spread(points, x, y)
    drawn += [part for _, text in bands for part in text]
    told = [f"slope by {words.CLOCKS[str(m.variant['clock'])]} {words.quantity(m.value, 'us')}" for m in slopes]
    if published is not None:
        drawn += _ring(published, x, y)
        told.append(f"published estimator {words.quantity(published.value, 'us')}")
    alt_text = f"Time over n against n, both logarithmic, {words.policy(name)}"
    alt_text += f": {words.listed(told)}." if told else "."
    return charts.panel(words.sentence(words.policy(name)), alt_text, drawn)


def _slope_band(slope: Metric, x: Row, y: Row, xs: Domain) -> tuple[list[charts.Layer], list[charts.Layer]]:
    """The interval as a band with the value as a line; and its name, above the line by wall and below it by span."""
    clock = str(slope.variant.get("clock"))
    row = {"clock": clock, "n": xs[0], "end": xs[1], "y": slope.value, "low": slope.ci_low, "high": slope.ci_high}
    base, across, value = charts.layer([row]), alt.X("n:Q", **x), alt.Y("y:Q", **y)
    band = base.mark_rect(color=charts.COLOURS.get(clock, charts.MUTED), opacity=0.2)
    line = base.mark_rule(strokeWidth=1.5)
    text = f"slope, {clock}: {words.quantity(slope.value, 'us')}"
    side = {"baseline": "bottom", "dy": -5} if clock == "wall" else {"baseline": "top", "dy": 7}
    return (
        [
            band.encode(across, alt.X2("end:Q"), alt.Y("low:Q", **y), alt.Y2("high:Q")),
            line.encode(across, alt.X2("end:Q"), value, *charts.by_clock("lines").values()),
        ],
        charts.label(base, text, across, value, {"align": "left", "dx": 5, **side}),
    )


def _ring(published: Metric, x: Row, y: Row) -> list[charts.Layer]:
    n = published.variant.get("n", PUBLISHED_N)
    base, at, value = charts.layer([{"n": n, "y": published.value}]), alt.X("n:Q", **x), alt.Y("y:Q", **y)
    ring = base.mark_point(shape="circle", size=190, filled=False, color=charts.INK, strokeWidth=1.5)
    text = f"total over {n}: {words.quantity(published.value, 'us')}"
    return [
        ring.encode(at, value),
        *charts.label(base, text, at, value, {"align": "left", "baseline": "bottom", "dx": 9, "dy": -9}),
    ]
