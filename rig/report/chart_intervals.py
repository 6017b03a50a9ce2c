"""How do figures with their intervals stand beside each other? A row each: point, interval, value; and who uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from rig.experiments import anatomy, dtype, modifier, policy, validation, wait
from rig.frames import Run
from rig.records import Metric, MetricOutcome
from rig.report import charts, words

ROW, MARGINS = 26, 70
"""Height of one row and of what is around them all, in pixels."""

LETTER, MOST_ROOM = 7.5, 240
"""Width of a letter in any font that a reader may have, and the most room for names, in pixels."""

_KEYS = (
    ("wall", "●", "value, with its interval over launches"),
    ("wall", "○", "not to be relied on: unresolved"),
)

_STAGES = {
    "caller": "The caller, encoding",
    "gpu_process": "The GPU process's main thread",
    "gpu": "The GPU, busy",
}

Rows = Sequence[tuple[str, Metric]]


@dataclass(frozen=True)
class Scale:
    """Of the values: their axis' title; logarithmic or not; a line to compare with; a band around it."""

    title: str
    log: bool = False
    line: float | None = None
    band: tuple[float, float] | None = None


def panel(title: str, rows: Rows, scale: Scale) -> list[charts.Panel]:
    """One row a figure that has a value, from the top down; none without any."""
    known = [(label, m) for label, m in rows if _drawable(m, scale.log)]
    if not known:
        return []
    data = [_row(f"{label}  {words.quantity(m.value, m.unit)}", m) for label, m in known]
    room = LETTER * max(len(str(row["label"])) for row in data)
    names = alt.Axis(title=None, labelLimit=MOST_ROOM, minExtent=min(room, MOST_ROOM), ticks=False)
    x, y = _axis(data, scale), alt.Y("label:N", sort=None, axis=names)
    base = charts.layer(data)
    drawn = _background(scale, x)
    drawn.append(
        base.mark_rule(color=charts.COLOURS["wall"], strokeWidth=3, opacity=0.45).encode(x, alt.X2("high:Q"), y)
    )
    for ok, inside in ((True, charts.COLOURS["wall"]), (False, charts.PAGE)):
        some = [row for row in data if row["ok"] is ok]
        mark = charts.layer(some).mark_point(
            size=70, opacity=1, color=charts.COLOURS["wall"], strokeWidth=2, fill=inside
        )
        drawn += [mark.encode(_axis(data, scale, "value"), y)] if some else []
    told = "; ".join(f"{label} {words.quantity(m.value, m.unit)}" for label, m in known)
    return [charts.panel(title, f"{title}. {told}.", drawn, height=ROW * len(known) + MARGINS)]


def _drawable(metric: Metric, log: bool) -> bool:
    """A logarithmic axis has no place for an interval that reaches zero."""
    return words.has_value(metric) and (not log or (metric.ci_low or 0) > 0)


def _row(label: str, metric: Metric) -> dict[str, object]:
    ok = metric.outcome is MetricOutcome.ok
    return {"label": label, "value": metric.value, "low": metric.ci_low, "high": metric.ci_high, "ok": ok}


def _axis(data: Sequence[Mapping[str, object]], scale: Scale, field: str = "low") -> alt.X:
    ends = [float(str(row[end])) for row in data for end in ("low", "value", "high")]
    ends += [value for value in (scale.line, *(scale.band or ())) if value is not None]
    if scale.log:
        return alt.X(f"{field}:Q", title=scale.title, scale=charts.log_scale(charts.padded(ends)))
    room = 0.05 * (max(ends) - min(ends) or 1.0)
    domain = [min(0.0 if scale.line is None else min(ends), min(ends)) - room, max(ends) + room]
    return alt.X(f"{field}:Q", title=scale.title, scale=alt.Scale(domain=domain, nice=False))


def _background(scale: Scale, x: alt.X) -> list[charts.Layer]:
    drawn: list[charts.Layer] = []
    if scale.band is not None:
        low, high = scale.band
        band = charts.layer([{"low": low, "high": high}]).mark_rect(color=charts.MUTED, opacity=0.15)
        drawn.append(band.encode(x, alt.X2("high:Q")))
    if scale.line is not None:
        line = charts.layer([{"low": scale.line}]).mark_rule(color=charts.MUTED, strokeDash=[4, 3])
        drawn.append(line.encode(x))
    return drawn


def natives(ratios: Sequence[Metric], named: Callable[[Metric], str]) -> list[charts.Figure]:
    """The browser's cost over that of executors without one, a panel an executor."""
    executors = list(dict.fromkeys(m.executor for m in ratios))
    scale = Scale("the browser's cost over the other's", log=True, line=1.0)
    panels = [
        made
        for name in executors
        for made in panel(f"Chromium over {name}", [(named(m), m) for m in ratios if m.executor == name], scale)
    ]
    note = "Right of the line the browser costs more, left of it less. By wall time, paired by round of launches."
    return _figure("What is the browser's own part of a dispatch?", note, panels, ratios, log=True)


def _figure(
    title: str, note: str, panels: Sequence[charts.Panel], metrics: Sequence[Metric], *, log: bool = False
) -> list[charts.Figure]:
    """A figure of these panels; those of `metrics` that are not in it are named in its note."""
    if not panels:
        return []
    absent: dict[str, list[str]] = {}
    for metric in metrics:
        if not _drawable(metric, log):
            why = words.absence(metric) or "an interval that reaches zero"
            absent.setdefault(why, []).append(_named(metric))
    for why, names in absent.items():
        note += f" Not shown: {words.listed(dict.fromkeys(names))} ({why})."
    return [charts.Figure(title, note, _KEYS, tuple(panels))]


def _named(metric: Metric) -> str:
    return " ".join(str(value) for name, value in metric.variant.items() if name != "clock")


def _of(metrics: Sequence[Metric], name: str, **variant: object) -> list[Metric]:
    return [m for m in metrics if m.metric == name and all(m.variant.get(k) == v for k, v in variant.items())]


def _by(
    metrics: Sequence[Metric], key: str, title: Callable[[str], str], label: Callable[[Metric], str], scale: Scale
) -> list[charts.Panel]:
    """A panel for each value that `key` has in the metrics' variants."""
    groups = ((value, [m for m in metrics if str(m.variant[key]) == value]) for value in _values(metrics, key))
    return [one for value, group in groups for one in panel(title(value), [(label(m), m) for m in group], scale)]


def _policy(name: str) -> str:
    return words.sentence(words.policy(name))


def _values(metrics: Sequence[Metric], key: str) -> list[str]:
    return list(dict.fromkeys(str(m.variant[key]) for m in metrics if key in m.variant))


# --- what each experiment shows --------------------------------------------------------------------------------------


def of_policy(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:  # noqa: ARG001
    """Cost by policy; and how much of the wall each stage takes."""
    costs = _of(metrics, "policy.per_dispatch_us", clock="span")
    costs = costs if any(words.has_value(m) for m in costs) else _of(metrics, "policy.per_dispatch_us", clock="wall")
    walls = _of(metrics, "policy.per_dispatch_us", clock="wall")
    scale = Scale("µs a dispatch", log=True)
    panels = [
        one
        for title, chosen in (("By GPU span", costs), ("By wall time", walls))
        for one in panel(title, [(str(m.variant["policy"]), m) for m in chosen], scale)
    ]
    shares = _of(metrics, "policy.stage_share")
    share = Scale("share of the wall's time a dispatch", line=1.0)
    stages = _by(shares, "stage", lambda name: _STAGES.get(name, name), lambda m: str(m.variant["policy"]), share)
    return [
        *_figure("What a dispatch costs depends on how it is submitted", "A row a policy.", panels, costs, log=True),
        *_figure(
            "Which stage binds",
            "Time of one stage over that of the wall, both a dispatch. The stage nearest to 1 is the one that binds.",
            stages,
            shares,
        ),
    ]


def of_modifier(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:  # noqa: ARG001
    """What each modifier adds, by the policy that it is added to."""
    costs = _of(metrics, "modifier.cost_us")
    scale = Scale("µs that it adds to a dispatch, by wall time", line=0.0)
    panels = _by(costs, "policy", _policy, lambda m: str(m.variant["modifier"]), scale)
    note = (
        "Ways to deliver values are set against the same kernel with values written beforehand, the rest against plain."
    )
    return _figure("What one change adds to a dispatch", note, panels, costs)


def of_dtype(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:  # noqa: ARG001
    """Ratios to f32, by policy."""
    ratios = _of(metrics, "dtype.ratio_to_f32")
    band = (1 / (1 + dtype.MARGIN), 1 + dtype.MARGIN)
    sides = {"submit_each": ": the host's side"}
    scale = Scale("times what f32 costs", log=True, line=1.0, band=band)
    panels = _by(ratios, "policy", lambda name: _policy(name) + sides.get(name, ""), _typed, scale)
    note = (
        f"Band: within {words.level(dtype.MARGIN)} of f32. The planted difference costs 10 % more and has to be seen."
    )
    missing = [m for m in _of(metrics, "dtype.per_dispatch_us") if not words.has_value(m)]
    return _figure("Whether the type of the data matters", note, panels, [*ratios, *missing], log=True)


def _typed(metric: Metric) -> str:
    name = str(metric.variant["dtype"])
    return name if metric.variant.get("held") == dtype.ELEMENTS else f"{name}, as many {metric.variant.get('held')}"


def of_wait(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:  # noqa: ARG001
    """Latency against what is waited for, by waiter."""
    latency = _of(metrics, "wait.latency_us")
    scale = Scale("µs from the last submit to the answer", log=True)
    named = {name: words.sentence(meaning) for name, meaning in words.WAITERS.items()}
    panels = _by(latency, "waiter", lambda name: named.get(name, name), lambda m: f"n = {m.variant['n']}", scale)
    return _figure("How long the wait alone takes", "n: dispatches waited for, in one pass.", panels, latency, log=True)


def of_anatomy(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:  # noqa: ARG001
    """What calls cost their caller; what layers add end to end."""
    calls, layers = _of(metrics, "anatomy.call_us"), _of(metrics, "anatomy.marginal_us")
    rest = [("unexplained", m) for m in _of(metrics, "anatomy.call_remainder_us")]
    by_call = panel("Each call", [*((str(m.variant["call"]), m) for m in calls), *rest], Scale("µs a call", line=0.0))
    panels = []
    for base in _values(layers, "policy"):
        rows = [(f"+ {m.variant['layer']}".replace("_", " "), m) for m in layers if m.variant["policy"] == base]
        rows += [("unexplained", m) for m in _of(metrics, "anatomy.remainder_us", policy=base)]
        panels += panel(_policy(base), rows, Scale("µs that the layer adds", line=0.0))
    return [
        *_figure("What each call costs its caller", "The caller's own time, not the work it sets off.", by_call, calls),
        *_figure(
            "What each layer adds end to end", "Each row has all that is above it, and one thing more.", panels, layers
        ),
    ]


def of_validation(run: Run, metrics: Sequence[Metric]) -> list[charts.Figure]:  # noqa: ARG001
    """With a check over without it."""
    ratios = _of(metrics, "validation.ratio")
    scale = Scale("times the cost without the check", log=True, line=1.0)
    panels = _by(ratios, "ablation", lambda name: f"Without it: {name}", _measured, scale)
    note = (
        "Launches with and without in turn. At 1 the check costs nothing; the interval tells what could have been seen."
    )
    return _figure("What checking every call costs", note, panels, ratios, log=True)


def _measured(metric: Metric) -> str:
    return f"{metric.variant['of']}, {metric.variant['policy']}".replace("_", " ")


CHARTS: dict[str, Callable[[Run, Sequence[Metric]], list[charts.Figure]]] = {
    policy.ID: of_policy,
    modifier.ID: of_modifier,
    dtype.ID: of_dtype,
    wait.ID: of_wait,
    anatomy.ID: of_anatomy,
    validation.ID: of_validation,
}
