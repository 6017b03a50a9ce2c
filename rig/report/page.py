"""How does a run become one page? Prepares every string, then fills the template, which only places them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rig.claims import CLAIMS
from rig.experiments import REGISTRY, sequential, single_op
from rig.experiments.fusion.cells import ID as FUSION
from rig.frames import Run
from rig.records import Metric, MetricOutcome, Summary, Verdict, VerdictOutcome
from rig.report import (
    chart_intervals,
    chart_sequential,
    chart_single_op,
    environment,
    findings,
    fusion,
    method,
    natives,
    published,
    words,
)
from rig.report.charts import Figure

_HERE = Path(__file__).resolve().parent

CHARTS: dict[str, Callable[[Run, Sequence[Metric]], list[Figure]]] = {
    single_op.ID: chart_single_op.figures,
    sequential.ID: chart_sequential.figures,
    **chart_intervals.CHARTS,
}
"""Experiments with charts of their own; the others have their table."""


MOST_OPEN = 30
"""A table with more rows than this is folded: the charts say what it says."""


@dataclass(frozen=True)
class MetricRow:
    """A figure as the table tells it; `reason`: why there is none, or why it is not to be relied on."""

    label: str
    name: str
    variant: tuple[str, ...]
    shown: words.Shown
    samples: str
    launches: str
    outcome: str
    state: str
    reason: str


@dataclass(frozen=True)
class VerdictRow:
    claim: str
    text: str
    outcome: str
    state: str
    statement: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One experiment of the run. `own`: what is told of it in its own way, or nothing; `open`: the attribute of a table
    that is not folded.
    """

    id: str
    line: str
    own: tuple[fusion.Section, ...]
    figures: tuple[Figure, ...]
    rows: tuple[MetricRow, ...]
    samples: str
    told: str
    open: str


def render(run: Run, summary: Summary) -> str:
    """The report of a run: one HTML file that asks for nothing, the same for the same run."""
    template = templates().get_template("template.html.j2")
    return template.render(
        style=Markup(style()),
        title=f"What a WebGPU dispatch costs: {findings.adapter_line(run)}",
        banners=findings.banners(run),
        headline=findings.headline(summary),
        about=_about(run),
        counting=method.counting(run),
        void=method.void_table(run),
        verdicts=[_verdict(verdict) for verdict in summary.verdicts],
        published=published.section(run, summary),
        natives=natives.section(run, summary),
        sections=[_section(name, run.main, summary) for name in _experiments(run, summary)],
        method=method.method(run),
        command=method.command(run),
        environment=environment.facts(run),
        launches=environment.launch_table(run),
        gpus=environment.gpu_table(run),
    )


def style() -> str:
    """The look of every page of the rig."""
    return (_HERE / "style.css").read_text(encoding="utf-8")


def templates(*also: Path) -> Environment:
    """The templates here, and those of another room."""
    return Environment(
        loader=FileSystemLoader([_HERE, *also]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_placed,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _placed(value: object) -> str:
    """What a template may place: strings. Anything else (a None, a NaN) is a fault of this room, not of the run."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return words.foreign(value)
    raise TypeError(f"the template was given {value!r}, not a string")


def _about(run: Run) -> list[tuple[str, str]]:
    """The lines under the findings: on what, with what, when."""
    host = run.manifest.host
    builds = dict.fromkeys(f"{build.flavour} {build.version}" for build in findings.builds(run.main))
    also = dict.fromkeys(
        f"{build.flavour} {build.version}" for name in run.also for build in findings.builds(run.of(name))
    )
    profile = run.manifest.plan.profile.get("name", "without a name")
    return [
        ("Adapter", findings.adapter_line(run)),
        ("Browser", words.listed(builds) or "none, no launch gave one"),
        *([("Beside it", words.listed(also) or "none, no launch of another executor began")] if run.also else []),
        ("Host", f"{words.given(host.cpu)}, {words.counted(host.cores, 'core')}; {words.given(host.system)}"),
        ("Run", f"profile {profile}, {run.manifest.started} to {run.manifest.ended}; {words.given(run.manifest.why)}"),
    ]


def _experiments(run: Run, summary: Summary) -> list[str]:
    """The experiments of the run: planned ones first, then whatever else has samples or figures."""
    planned = run.manifest.plan.profile.get("experiments") or ()
    measured = [m.experiment for m in summary.metrics if not m.executor] + [
        str(e) for e in run.samples["experiment"].unique()
    ]
    return list(dict.fromkeys([*(str(name) for name in planned), *measured]))


def _section(name: str, run: Run, summary: Summary) -> Section:
    metrics = [m for m in summary.metrics if m.experiment == name and not m.executor]
    known = REGISTRY.get(name)
    own = (fusion.section(metrics),) if name == FUSION and metrics else ()
    charted = CHARTS[name](run, metrics) if name in CHARTS else [figure for one in own for figure in one.figures]
    return Section(
        id=name,
        line=_sentence(known.line) if known else "An experiment that this version of the rig does not know.",
        own=own,
        figures=tuple(charted),
        rows=tuple(_metric(metric) for metric in metrics),
        told=f"All {words.counted(len(metrics), 'figure')}" if len(metrics) > 1 else "The figure",
        open="" if own or len(metrics) > MOST_OPEN else " open",
        samples=f"{words.counted(len(run.good(name)), 'sample')} counted, {len(run.void(name)):,} set aside.",
    )


def _sentence(line: str) -> str:
    return words.sentence(line) + ("" if line.endswith("?") else ".")


def _metric(metric: Metric) -> MetricRow:
    shown = words.shown(metric)
    broken = metric.outcome in (MetricOutcome.ok, MetricOutcome.unresolved) and bool(shown.instead)
    outcome = MetricOutcome.failed if broken else metric.outcome
    return MetricRow(
        label=words.label(metric.metric),
        name=metric.metric,
        variant=tuple(f"{key} = {metric.variant[key]}" for key in sorted(metric.variant)),
        shown=shown,
        samples=f"{metric.n_samples:,}",
        launches=f"{metric.n_launches:,}",
        outcome=words.MARKS[outcome],
        state=str(outcome),
        reason=words.reason(metric),
    )


def _verdict(verdict: Verdict) -> VerdictRow:
    return VerdictRow(
        claim=verdict.claim,
        text=CLAIMS.get(verdict.claim, "a claim that this version of the rig does not know"),
        outcome=words.VERDICT_MARKS[verdict.outcome],
        state="absent" if verdict.outcome is VerdictOutcome.not_tested else str(verdict.outcome),
        statement=verdict.statement,
        evidence=verdict.evidence,
    )
