"""How do the figures of many builds become one picture: cost against version, a line a policy, steps marked?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from rig.matrix.records import Build, Change, Changes, Figure, Summary
from rig.records import key_of
from rig.report import charts, words

WIDE, TALL, LOW = 980, 380, 190

BEYOND = 1.5
"""An interval is shown to this many times the largest value, or a part of the smallest."""

LINES: tuple[tuple[str, str, str, str], ...] = (
    ("policy.per_dispatch_us{clock=wall,policy=submit_each}", "#0072b2", "circle", "one submit each"),
    ("policy.per_dispatch_us{clock=wall,policy=command_buffers}", "#cc79a7", "square", "command buffers, one submit"),
    ("policy.per_dispatch_us{clock=wall,policy=pass_each}", "#009e73", "triangle-up", "one pass each, one encoder"),
    ("policy.per_dispatch_us{clock=wall,policy=every_16}", "#7d4e00", "cross", "16 to a submit"),
    ("policy.per_dispatch_us{clock=wall,policy=one_pass}", "#d55e00", "diamond", "all in one pass"),
    ("anatomy.layer_us{layer=submit,policy=submit_each}", "#59636e", "triangle-down", "submit([]): nothing in it"),
)
"""Key of a figure, colour, shape and meaning of each line; what else is watched has a picture of its own."""

MARKS = {"circle": "●", "square": "■", "triangle-up": "▲", "cross": "✚", "diamond": "◆", "triangle-down": "▼"}

Row = dict[str, Any]


def figures(summary: Summary, changes: Changes) -> list[charts.Figure]:
    """What a dispatch costs build by build, and below it what one dispatch with its wait takes."""
    measured = {figure.build for figure in summary.figures}
    order = [build for build in summary.builds if not build.swapped and build.name in measured]
    rows = [_row(order, figure, summary.control) for figure in summary.figures]
    many = [row for row in rows if row["line"]]
    one = [row for row in rows if not row["line"]]
    made = []
    if many:
        note = (
            "Geometric means over the rounds with 95 % intervals, on a logarithmic axis that begins where the data do. "
            "A dashed line stands where a step is confirmed, beside it how many times the cost is after it, which is "
            "of the confirming rounds; the marks are of the search. Point at a mark for its build."
        )
        keys = tuple(
            (f"line-{index}", MARKS[shape], meaning)
            for index, (_, _, shape, meaning) in enumerate(LINES)
            if any(row["line"] == meaning for row in many)
        )
        panel = _panel("microseconds a dispatch, by wall", many, order, changes.changes, TALL)
        made.append(charts.Figure("What a dispatch costs, by version", note, keys, (panel,)))
    if one:
        panel = _panel("microseconds, by wall", one, order, changes.changes, LOW)
        made.append(charts.Figure("One dispatch and its wait, by version", "", (), (panel,)))
    return made


def line_of(key: str) -> int | None:
    """Which of LINES is of this figure."""
    return next((index for index, (of, *_) in enumerate(LINES) if of == key), None)


def _row(order: Sequence[Build], figure: Figure, control: str) -> Row:
    at = next(index for index, build in enumerate(order) if build.name == figure.build)
    build, line = order[at], line_of(figure.metric)
    ratio = figure.to_control
    told = (
        f"{build.name}, {build.flavour} {build.version}\n{figure.metric}\n"
        f"{words.ranged(figure.value, figure.ci_low, figure.ci_high, figure.unit)}, {figure.n_launches} launches"
    )
    if ratio is not None:
        told += f"\n{words.quantity(ratio.value, 'ratio')} {control}'s "
        told += f"({words.interval(ratio.ci_low, ratio.ci_high, 'ratio')})"
    return {
        "at": at,
        "value": figure.value,
        "low": figure.ci_low,
        "high": figure.ci_high,
        "key": figure.metric,
        "line": LINES[line][3] if line is not None else "",
        "told": told,
    }


def _panel(
    title: str, rows: Sequence[Row], order: Sequence[Build], steps: Sequence[Change], height: int
) -> charts.Panel:
    names = [label(order, index) for index in range(len(order))]
    domain = _domain(rows)
    axis = alt.Axis(
        values=list(range(len(order))),
        labelExpr=f"{names!r}[datum.value]",
        title="Chromium",
        grid=False,
        labelOverlap=False,
    )
    x = alt.X("at:Q", axis=axis, scale=alt.Scale(domain=[-0.5, len(order) - 0.5], nice=False, zero=False))
    y = alt.Y("value:Q", **charts.time_axis(title, domain))
    meanings = [meaning for *_, meaning in LINES] + [""]
    colours = alt.Scale(domain=meanings, range=[colour for _, colour, *_ in LINES] + [charts.COLOURS["wall"]])
    shapes = alt.Scale(domain=meanings, range=[shape for _, _, shape, _ in LINES] + ["circle"])
    colour = alt.Color("line:N", scale=colours, legend=None)
    ends = [
        {**row, "low": max(row["low"], domain[0]), "high": min(row["high"], domain[1])}
        for row in rows
        if row["high"] > domain[0] and row["low"] < domain[1]
    ]
    layers: list[charts.Layer] = [
        *_marked(rows, order, steps, x, y, colour),
        charts.layer(ends).mark_rule(strokeWidth=1.5, opacity=0.55).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour),
        charts.layer(rows).mark_line(strokeWidth=1.5, clip=True).encode(x, y, colour),
        charts.layer(rows)
        .mark_point(filled=True, size=60, opacity=1, aria=True)
        .encode(x, y, colour, alt.Shape("line:N", scale=shapes, legend=None), alt.Description("told:N")),
    ]
    chart = alt.layer(*layers).properties(width=WIDE, height=height, autosize=alt.AutoSizeParams(type="fit"))
    spec = chart.configure(**charts.LOOK).to_dict()
    alt_text = f"{title} of {len(order)} builds from Chromium {names[0]} to {names[-1]}"
    svg = hoverable(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    return charts.Panel("", alt_text, charts.embedded(svg, alt_text))


def _domain(rows: Sequence[Row]) -> tuple[float, float]:
    """All values, and of their intervals so much that a wide one does not press the lines together."""
    least, most = (pick(row["value"] for row in rows) for pick in (min, max))
    ends = [max(row["low"], least / BEYOND) for row in rows] + [min(row["high"], most * BEYOND) for row in rows]
    return charts.padded(ends)


def _marked(
    rows: Sequence[Row], order: Sequence[Build], steps: Sequence[Change], x: alt.X, y: alt.Y, colour: alt.Color
) -> list[charts.Layer]:
    """Confirmed steps of the figures shown: a line between the two builds, and the ratio on it."""
    place = {build.name: index for index, build in enumerate(order)}
    by_key = {row["key"]: row for row in rows}
    marks = []
    for change in steps:
        row = by_key.get(key_of(change.metric, change.variant))
        if not change.confirmed or row is None:
            continue
        at = (place[change.build_before] + place[change.build_after]) / 2
        value = (change.before * change.after) ** 0.5
        marks.append({"at": at, "value": value, "line": row["line"], "text": f"×{words.number(change.ratio.value)}"})
    if not marks:
        return []
    base = charts.layer(marks)
    rule = base.mark_rule(strokeDash=[4, 3], strokeWidth=1, color=charts.MUTED).encode(x)
    text = base.mark_text(dx=4, align="left", fontSize=12, fontWeight="bold").encode(x, y, colour, alt.Text("text:N"))
    return [rule, text]


def label(order: Sequence[Build], index: int) -> str:
    """A build's major version, or its name where another build of the matrix has the same."""
    majors = [build.version.partition(".")[0] for build in order]
    return majors[index] if majors.count(majors[index]) == 1 and majors[index] else order[index].name


def hoverable(svg: str) -> str:
    """With what each mark says of itself as the title that a browser shows under the pointer."""

    def titled(match: re.Match[str]) -> str:
        told = Markup("<title>{}</title>").format(unescape(match["told"]))
        return f"<path{match['before']}{match['after']}>{told}</path>"

    return re.sub(r'<path(?P<before>[^>]*?) aria-label="(?P<told>[^"]*)"(?P<after>[^>]*?)/>', titled, svg)


def style() -> str:
    """The colours of the lines, for the legend."""
    return "\n".join(f".key-line-{index} {{ color: {colour}; }}" for index, (_, colour, *_) in enumerate(LINES))
