"""How does a chart become a still picture in the page? Shared look, axes and the way from Vega-Lite to SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from rig.report import words

# Every colour is named once here and once in style.css, which gives it its counterpart on a dark page. The two series
# colours are of Okabe and Ito's palette, told apart with every kind of colour vision; shapes and dashes say it again.
INK, MUTED, GRID, PAGE = "#1f2328", "#59636e", "#d9dee3", "#fffffe"
COLOURS = {"wall": "#0072b2", "span": "#d55e00"}
SHAPES = {"wall": "circle", "span": "diamond"}
DASHES: dict[str, list[float]] = {"wall": [1, 0], "span": [6, 3]}
SERIES = {**COLOURS, "third": "#009e73", "fourth": "#cc79a7"}
"""Colours of series that are no clocks, by their class in style.css."""

HEAT, ON_HEAT = ("#eef5fa", "#5aa9d6"), "#10151a"
"""Cells of a map from its least to its most, the same on a light page and a dark one; and text on them."""

WIDTH, HEIGHT = 470, 320

Layer = alt.Chart | alt.LayerChart
Rows = Sequence[Mapping[str, Any]]
_MICROSECONDS = (
    "datum.value < 1000 ? format(datum.value, ',~r') + ' µs' : "
    "datum.value < 1e6 ? format(datum.value / 1e3, ',~r') + ' ms' : format(datum.value / 1e6, ',~r') + ' s'"
)


@dataclass(frozen=True)
class Panel:
    """One picture. `alt` says in words what it shows."""

    title: str
    alt: str
    svg: Markup


@dataclass(frozen=True)
class Figure:
    """Panels side by side on the same axes, under a title that says what to see.

    `keys`: the legend, as (class in style.css, mark, meaning).
    """

    title: str
    note: str
    keys: tuple[tuple[str, str, str], ...]
    panels: tuple[Panel, ...]


def layer(rows: Rows) -> alt.Chart:
    """A chart of `rows`, plain dicts."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def time_axis(title: str, domain: tuple[float, float]) -> dict[str, Any]:
    """Arguments of a logarithmic axis of microseconds, the field left to be named."""
    axis = alt.Axis(values=ticks(domain), labelExpr=_MICROSECONDS, title=title)
    return {"axis": axis, "scale": log_scale(domain)}


def count_axis(domain: tuple[float, float]) -> dict[str, Any]:
    """Arguments of a logarithmic axis of dispatch counts, the field left to be named."""
    axis = alt.Axis(values=ticks(domain), format=",~r", title="dispatches before one wait, n")
    return {"axis": axis, "scale": log_scale(domain)}


def log_scale(domain: tuple[float, float]) -> alt.Scale:
    return alt.Scale(type="log", domain=list(domain), nice=False)


def padded(values: Sequence[float], by: float = 0.06) -> tuple[float, float]:
    """A logarithmic domain around the positive ones of `values`, a fraction of its length wider at both ends."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    low, high = math.log10(min(positive)), math.log10(max(positive))
    room = max(by * (high - low), 0.05)
    return 10 ** (low - room), 10 ** (high + room)


def ticks(domain: tuple[float, float]) -> list[float]:
    """Powers of ten within a domain; with numbers between them where the powers alone would be few."""
    if math.log10(domain[1] / domain[0]) > 2.5:
        return _ticks(domain, ("1",))
    found = (_ticks(domain, steps) for steps in _STEPS)
    return next((values for values in found if len(values) > 1), [])


_STEPS = (
    ("1", "2", "5"),
    tuple(f"{ones}" for ones in range(1, 10)),
    tuple(f"{halves / 2:g}" for halves in range(2, 20)),
    tuple(f"{tenths / 10:g}" for tenths in range(10, 100)),
)


def _ticks(domain: tuple[float, float], steps: Sequence[str]) -> list[float]:
    decades = range(math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1])) + 1)
    # read as they are printed: 10.0 ** -2 * 5 is not the number that is printed as 0.05
    values = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [value for value in values if domain[0] <= value <= domain[1]]


def by_clock(kind: str) -> dict[str, Any]:
    """Encodings that tell the clocks apart, by colour and by shape (of points) or dash (of lines).

    The legend is the page's, Figure.keys: one for all panels, in text that can be read at any width.
    """
    names = list(COLOURS)
    colour = alt.Color("clock:N", scale=alt.Scale(domain=names, range=list(COLOURS.values())), legend=None)
    if kind == "points":
        shape = alt.Shape("clock:N", scale=alt.Scale(domain=names, range=list(SHAPES.values())), legend=None)
        return {"shape": shape, "color": colour}
    dash = alt.StrokeDash("clock:N", scale=alt.Scale(domain=names, range=list(DASHES.values())), legend=None)
    return {"strokeDash": dash, "color": colour}


def label(base: alt.Chart, text: str, x: alt.X, y: alt.Y, where: Mapping[str, Any]) -> list[Layer]:
    """Text beside a point, with a rim in the page's colour so that it can be read across lines and bars."""
    style = {"text": text, "fontSize": 12, **where}
    return [
        base.mark_text(stroke=PAGE, color=PAGE, strokeWidth=4, strokeJoin="round", **style).encode(x, y),
        base.mark_text(color=INK, **style).encode(x, y),
    ]


def panel(title: str, alt_text: str, layers: Sequence[Layer], height: int = HEIGHT) -> Panel:
    """Layers, first at the bottom, as one picture."""
    chart = alt.layer(*layers).properties(
        width=WIDTH, height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding")
    )
    spec = chart.configure(**LOOK).to_dict()
    # No base address is allowed: a chart has its data in it, and nothing is ever fetched for one.
    return Panel(title, alt_text, embedded(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]), alt_text))


def embedded(svg: str, alt_text: str) -> Markup:
    """An SVG document as an element of the page: scalable, named for those who can't see it, without clashing ids.

    `alt_text` holds no equals sign, so that no text from elsewhere can look like an attribute.
    """
    numbers: dict[str, str] = {}
    for old in re.findall(r'\bid="([^"]+)"', svg):
        numbers.setdefault(old, f"c{abs(_hash(alt_text)):x}-{len(numbers)}")
    for old, new in numbers.items():
        svg = svg.replace(f'id="{old}"', f'id="{new}"').replace(f"url(#{old})", f"url(#{new})")
    named = escape(words.foreign(alt_text).replace("=", ":"), quote=True)
    view = re.search(r'viewBox="([^"]*)"', svg)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="{named}"'
    head += f' viewBox="{view[1] if view else f"0 0 {WIDTH} {HEIGHT}"}">'
    return Markup(lean(re.sub(r"^.*?<svg\b[^>]*>", lambda _: head, svg, count=1, flags=re.S)))


_IDLE = re.compile(
    r' (?:opacity="1"|stroke-width="1"|pointer-events="none"|aria-roledescription="[^"]*"|role="graphics-[a-z]*")'
    r'|<path class="(?:background|foreground)"[^>]* (?:d="M0,0h0v0h0Z"|display="none")[^>]*/>'
)
_LONG = re.compile(r"(\d+\.\d\d)\d+")


def lean(svg: str) -> str:
    """The same picture in two thirds of the bytes: without what is a default, empty or a hundredth of a pixel."""
    return _LONG.sub(r"\1", _IDLE.sub("", svg))


def _hash(text: str) -> int:
    """The same in every process, unlike hash()."""
    value = 0
    for byte in text.encode("utf-8", "replace"):
        value = (value * 131 + byte) % (1 << 32)
    return value


_AXIS = {
    "labelColor": MUTED,
    "titleColor": INK,
    "domainColor": MUTED,
    "tickColor": MUTED,
    "gridColor": GRID,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "titlePadding": 8,
    "labelOverlap": True,
}
LOOK: dict[str, Any] = {
    "aria": False,
    "background": "transparent",
    "font": "sans-serif",
    "padding": 4,
    "axis": _AXIS,
    "view": {"stroke": None},
}
