"""How is the browser told beside executors without one? One table of costs, one chart of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rig import beside
from rig.frames import Run
from rig.records import Metric, Summary
from rig.report import chart_intervals, words
from rig.report.charts import Figure
from rig.report.environment import Table

NAMES = {"": "Chromium", "wgpu": "wgpu, from Python", "dawn": "Dawn, from Node", "cuda": "CUDA, from PyTorch"}

ROWS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("policy.per_dispatch_us", "a dispatch, by wall time", {"clock": "wall"}),
    ("policy.encode_us", "a dispatch, encoding alone", {}),
    ("program.per_dispatch_us", "a dispatch of the program, by wall time", {"clock": "wall"}),
    ("stub.encode_us", "the same loop, issued to a stub: the language's own part", {}),
    ("single_op.latency_us", "one dispatch with its wait", {"waiter": "work_done"}),
)
"""Figures that the table has: a row for each policy of each."""


@dataclass(frozen=True)
class Section:
    """`costs`: a column an executor; `figures`: charts of the ratios."""

    costs: Table
    figures: tuple[Figure, ...]


def section(run: Run, summary: Summary) -> list[Section]:
    """The section, or nothing where the browser ran alone."""
    if not run.also:
        return []
    executors = ("", *run.also)
    rows = [row for name, told, fixed in ROWS for row in _rows(summary, executors, name, told, fixed)]
    head = ("what", "policy", *(NAMES.get(name, name) for name in executors))
    ratios = [m for m in summary.metrics if m.metric == "native.ratio"]
    return [Section(Table("costs", head, tuple(rows)), tuple(chart_intervals.natives(ratios, _named)))]


def _rows(
    summary: Summary, executors: Sequence[str], name: str, told: str, fixed: dict[str, str]
) -> list[tuple[str, ...]]:
    found: dict[tuple[str, str], Metric] = {}
    for metric in summary.metrics:
        if metric.metric == name and all(metric.variant.get(key) == value for key, value in fixed.items()):
            policy = str(metric.variant.get("policy", ""))
            found[policy, metric.executor] = metric
    policies = list(dict.fromkeys(policy for policy, _ in found))
    return [
        (told, policy or words.DASH, *(words.cell(found.get((policy, one))) for one in executors))
        for policy in policies
    ]


def _named(metric: Metric) -> str:
    policy = str(metric.variant.get("policy", ""))
    other = beside.counterpart(metric.executor, policy)
    return policy if other == policy else f"{policy} over {other}"
