"""How is a figure, or the lack of one, put into words? The only place that rounds a number for people."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rig.records import Metric, MetricOutcome, VerdictOutcome

MISSING = "not measured"
NO_SUPPORT = "not supported here"
MINUS = "\u2212"
DASH = "–"
UNBROKEN = "\u00a0"
"""A space at which no line ends."""

MARKS = {
    MetricOutcome.ok: "✓ ok",
    MetricOutcome.unresolved: "? unresolved",
    MetricOutcome.not_supported: f"– {NO_SUPPORT}",
    MetricOutcome.failed: "✗ failed",
}
VERDICT_MARKS = {
    VerdictOutcome.holds: "✓ holds",
    VerdictOutcome.does_not_hold: "✗ does not hold",
    VerdictOutcome.unresolved: "? unresolved",
    VerdictOutcome.not_tested: "– not tested",
}
WAITERS = {
    "work_done": "onSubmittedWorkDone",
    "map": "mapAsync of a word copied behind the work",
}
CLOCKS = {"span": "GPU span", "wall": "wall time"}

# What figures are called on the page; one that is not here goes by its own name.
_LABELS = {
    "single_op.latency_us": "Waited latency, mean",
    "single_op.latency_quantile_us": "Waited latency, quantile",
    "single_op.first_us": "First sample of a launch",
    "single_op.encode_us": "Encoding one dispatch, mean",
    "single_op.mode_us": "Mode, median",
    "single_op.upper_mode_share": "Samples in the upper mode",
    "sequential.per_dispatch_us": "Time per dispatch, slope",
    "sequential.fixed_us": "Fixed part, line at n = 0",
    "sequential.total_over_n_us": "Published estimator, total over n",
    "sequential.naive_over_true": "One waited dispatch over the slope",
    "sequential.part_us": "Slope of a part of the ladder",
    "sequential.naive_over_steepest": "One waited dispatch over the steepest part",
    "sequential.fitted_n": "Counts the slope is fitted to",
    "sequential.knee_n": "Knee",
    "sequential.back_pressure_n": "Back-pressure begins",
    "policy.per_dispatch_us": "Time per dispatch, slope",
    "policy.total_over_n_us": "Published estimator, total over n",
    "policy.encode_us": "Encoding per dispatch, slope",
    "policy.cpu_us": "CPU time per dispatch, slope",
    "policy.gain": "Times cheaper than one submit each",
    "policy.back_pressure_n": "Back-pressure begins",
    "policy.busy_us": "GPU busy per dispatch, slope",
    "policy.stamping_us": "What stamping every pass adds",
    "policy.switches": "Context switches per dispatch",
    "policy.cores_share": "Share of the cores in use",
    "policy.cpu_saturated": "The CPU is saturated",
    "policy.stage_share": "Stage over wall, per dispatch",
    "policy.binding_share": "The stage that binds",
    "modifier.per_dispatch_us": "Time per dispatch, slope",
    "modifier.cost_us": "What the modifier adds",
    "dtype.per_dispatch_us": "Time per dispatch, slope",
    "dtype.ratio_to_f32": "Slope over that of f32",
    "anatomy.call_us": "A call, its caller's time",
    "anatomy.call_share": "Share of all calls",
    "anatomy.call_remainder_us": "Loop less the sum of its calls",
    "anatomy.submit_over_next": "submit over the next largest call",
    "anatomy.layer_us": "A layer with all under it, slope",
    "anatomy.marginal_us": "What the layer adds",
    "anatomy.remainder_us": "Whole less the sum of its layers",
    "validation.per_dispatch_us": "Time per dispatch, slope",
    "validation.cpu_us": "GPU process's CPU per dispatch",
    "validation.ratio": "Checked over unchecked",
    "validation.smallest_effect": "Smallest effect that could be seen",
    "noop.wall_us": "The empty program, mean",
    "noop.difference_us": "Above the empty program",
    "program.per_dispatch_us": "Time per dispatch, slope",
    "program.fixed_us": "Fixed part, line at n = 0",
    "program.encode_us": "Encoding per dispatch, slope",
    "program.gain": "Times cheaper than one submit each",
    "program.knee_n": "Knee",
    "wait.latency_us": "Wait alone, mean",
    "wait.mode_us": "Wait alone, mode",
    "wait.upper_mode_share": "Samples in the upper mode",
    "wait.polling_step_us": "Polling step, mode to mode",
    "fusion.dispatches": "Dispatches of a step, counted",
    "fusion.traffic_bytes": "Bytes that a step's dispatches read and write",
    "fusion.step_us": "Time of a step",
    "fusion.tokens_per_s": "Tokens a second",
    "fusion.step_readback_us": "Time of a step with a wait after each",
    "fusion.first_token_us": "Time of one step and its wait",
    "fusion.gain": "Times as fast as unfused",
    "fusion.saved_us": "What fusing saves a step",
    "fusion.submission_gain": "Times as fast as when submitted otherwise",
    "fusion.batching_over_fusing": "Unfused and batched over fused",
    "fusion.marginal_us": "One more dispatch in the step, slope",
    "fusion.dispatch_share": "All dispatches at that price, over the step",
    "fusion.padding_us": "What putting dispatches back costs",
    "fusion.explained_fraction": "Put back over saved",
    "fusion.quality_gain": "Times as fast as the plain kernel",
    "fusion.batch_slowdown": "Time over that of one sequence",
    "fusion.split_us": "A fixed piece of work, wall time",
    "fusion.split_busy_us": "A fixed piece of work, GPU busy",
    "fusion.split_dispatch_us": "Each dispatch more of that work, slope",
    "fusion.bandwidth_gb_per_s": "Bandwidth of a copy",
    "fusion.traffic_us": "Time of a step's bytes at that bandwidth",
    "fusion.spared_us": "Time of the bytes that fusing spares",
    "fusion.traffic_fraction": "Time of the bytes spared, over what fusing saves",
    "fusion.cores_share": "Share of the cores in use",
    "fusion.cpu_saturated": "The CPU is saturated",
    "sequential.mode_us": "Time over n on the line, mode",
    "sequential.upper_mode_share": "Samples in the upper mode",
    "sequential.wall_over_span": "Slope by wall over slope by span",
}

# The bounds, in microseconds, above which a time is told in the next larger unit: 1,431 µs reads well, 71,000 µs not.
_TIMES = ((1e4, 1.0, "µs"), (1e7, 1e3, "ms"), (math.inf, 1e6, "s"))
_UNITS = {"fraction": (0.01, "%"), "ratio": (1.0, "times"), "bytes": (1.0, "bytes")}

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NOT_A_NUMBER = re.compile(r"(?<![\w.])NaN(?!\w)")
_LOOKS_ABSENT = {"undefined", "Infinity", "-Infinity", "None", "null"}


def foreign(text: str) -> str:
    """Text from elsewhere (a driver, a browser, a command line) made fit to stand on a page beside figures.

    Control and direction-changing characters are replaced, and what a reader could take for a figure that went wrong is
    spelled out or put in quotation marks.
    """
    text = _NOT_A_NUMBER.sub("not a number", _UNFIT.sub("\ufffd", text))
    return f"“{text.strip()}”" if text.strip() in _LOOKS_ABSENT else text


def given(text: str) -> str:
    """Text from elsewhere, or the words for its absence."""
    return text if text.strip() else "not given"


def number(value: float | None) -> str:
    """Three significant digits, all digits from 1,000 up, with thousands separators; in words where there is none."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    size = float(f"{abs(value):.3g}") if abs(value) < 1000 else abs(value)
    decimals = max(0, 2 - math.floor(math.log10(size)))
    text = f"{size:,.{decimals}f}" if decimals < 9 else f"{size:.2e}".replace("-", MINUS)
    return f"{MINUS if value < 0 else ''}{text}"


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit."""
    if value is None or not math.isfinite(value):
        return MISSING
    divisor, label = _scale(unit, value)
    return f"{number(value / divisor)} {label}"


def interval(low: float | None, high: float | None, unit: str, beside: float | None = None) -> str:
    """`36.4 to 41.8`, in the unit in which `quantity(beside, unit)` is told; nothing where it is not finite."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    divisor, _ = _scale(unit, beside if beside is not None else high)
    return f"{number(low / divisor)} to {number(high / divisor)}"


def ranged(value: float | None, low: float | None, high: float | None, unit: str) -> str:
    """`1.2 times (1.15 to 1.25)`: a value with its interval."""
    return f"{quantity(value, unit)} ({interval(low, high, unit, value)})"


def percent(fraction: float | None) -> str:
    """A measured fraction in percent."""
    return MISSING if fraction is None else quantity(fraction, "fraction")


def exact(value: float | None, unit: str = "") -> str:
    """A number that was chosen, not measured (a count, a level): without digits that would claim a precision."""
    return MISSING if value is None or not math.isfinite(value) else f"{value:,.12g} {unit}".rstrip()


def level(fraction: float) -> str:
    """The level of an interval."""
    return exact(100 * fraction, "%")


def sentence(text: str) -> str:
    """Text with a capital at its begin; a lone letter there is a symbol, and stays."""
    return text[:1].upper() + text[1:] if text[1:2].isalpha() else text


def counted(count: int, one: str, many: str = "") -> str:
    """`1 launch`, `1,200 launches`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(items: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *head, last = list(items) or [""]
    return f"{', '.join(head)} and {last}" if head else last


def policy(name: str) -> str:
    """How the dispatches reach the GPU under the policy `name`, to follow `a dispatch costs so much`."""
    known = {
        "submit_each": "with one submit each",
        "command_buffers": "with one command buffer each in one submit",
        "pass_each": "with one pass each in one submit",
        "one_pass": "in one pass",
    }
    match = re.fullmatch(r"every_(\d+)(?:_pass_(\d+))?", name)
    if match:
        passes = f", one pass for every {match[2]}" if match[2] else ""
        return f"with one submit for every {match[1]}{passes}"
    return known.get(name, f"under the policy {name}")


def label(metric: str) -> str:
    """What a figure is called on the page."""
    bare = re.sub(r"_us$", "", metric.partition(".")[2] or metric).replace("_", " ")
    return _LABELS.get(metric, sentence(bare))


def has_value(metric: Metric) -> bool:
    """True where there is a figure to show: measured (though perhaps unresolved) and finite."""
    shown = metric.outcome in (MetricOutcome.ok, MetricOutcome.unresolved)
    return shown and metric.value is not None and math.isfinite(metric.value)


def absence(metric: Metric) -> str:
    """Why there is no figure to rely on, in words; nothing where there is one."""
    if metric.outcome is MetricOutcome.ok and has_value(metric):
        return ""
    word = {MetricOutcome.not_supported: NO_SUPPORT, MetricOutcome.unresolved: "unresolved"}
    return f"{word.get(metric.outcome, MISSING)}: {reason(metric)}"


def reason(metric: Metric) -> str:
    """Why a figure is not to be relied on; nothing where it is."""
    if metric.outcome is MetricOutcome.ok and has_value(metric):
        return ""
    return metric.reason or "no reason was recorded"


@dataclass(frozen=True)
class Shown:
    """A figure as it stands in a table. `value` is empty where there is none; then `instead` says so."""

    value: str
    interval: str
    half_width: str
    instead: str


def shown(metric: Metric) -> Shown:
    """A figure for a table; a bracket (level 1) as the two counts between which it lies."""
    if not has_value(metric):
        return Shown("", "", "", NO_SUPPORT if metric.outcome is MetricOutcome.not_supported else MISSING)
    if metric.ci_level == 1.0:
        ends = f"{exact(metric.ci_low)} to {exact(metric.ci_high)}"
        return Shown(f"n = {ends}" if metric.unit == "dispatches" else f"{ends} {metric.unit}", "bracket", "", "")
    ends = interval(metric.ci_low, metric.ci_high, metric.unit, metric.value)
    half = metric.half_width
    wide = f"±{percent(half)}" if half is not None and math.isfinite(half) else "no relative width"
    other = "" if metric.ci_level == 0.95 else f" ({level(metric.ci_level)})"
    return Shown(quantity(metric.value, metric.unit), f"{ends or MISSING}{other}", wide, "")


def cell(metric: Metric | None, *, bare: bool = False) -> str:
    """A figure in one cell of a table, with its interval and what is in doubt; a dash where there is none.

    `bare`: without its unit, which the table's head has.
    """
    if metric is None or not has_value(metric):
        return DASH
    doubt = f" {MARKS[metric.outcome]}" if metric.reason else ""
    told = number(metric.value) if bare else quantity(metric.value, metric.unit)
    return f"{told}{_ends(metric)}{doubt}"


def _ends(metric: Metric) -> str:
    """The interval in brackets; without one for what was counted and not measured."""
    if metric.ci_level == 1.0 and metric.ci_low == metric.ci_high:
        return ""
    ends = (interval(metric.ci_low, metric.ci_high, metric.unit, metric.value) or MISSING).replace(" ", UNBROKEN)
    return f" ({ends}, of single launches)" if metric.ci_level == 1.0 else f" ({ends})"


def _scale(unit: str, value: float) -> tuple[float, str]:
    if unit == "us":
        return next((divisor, name) for bound, divisor, name in _TIMES if abs(value) < bound)
    return _UNITS.get(unit, (1.0, unit))
