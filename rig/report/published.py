"""How are the published figures and ours told beside each other? Prepared strings, by our figure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from rig.frames import Run
from rig.published import gaps
from rig.published.beside import Beside, Timed, bare, beside
from rig.published.rows import Row
from rig.records import Summary
from rig.report import words

_TIMED = {
    Timed.waited: "timed until the wait is answered",
    Timed.encoded: "timed until the last submit returns, without a wait",
    Timed.call: "caller's time; ours of calls of one kind in a row, median over blocks",
}
_EXECUTORS = {"": "Chromium", "wgpu": "wgpu", "dawn": "Dawn"}

_LEAD = (
    "Each of ours is by the published figure's own estimator, of the same implementation, in float32. Sources are "
    "the two papers and the result files behind them, with what to know of each row under it. Where the two are more "
    f"than {words.exact(gaps.WIDE)} times apart, a sentence says what measured here accounts for it. A published "
    "figure that waits holds a wait of its own, which no run here can measure."
)
_ABSENT = (
    "No figure of this run stands beside a published one here: none is of one kind with it. A decode step has its "
    "published ladder in a section of its own."
)


@dataclass(frozen=True)
class PublishedRow:
    """A published figure as the table tells it. `state` marks a gap that a sentence is about."""

    value: str
    by: str
    on: str
    ratio: str
    state: str
    source: str
    note: str


@dataclass(frozen=True)
class OurFigure:
    """A figure of ours and the published ones that stand beside it."""

    label: str
    name: str
    of: str
    value: str
    interval: str
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class Told:
    """Figures, and a sentence for each gap among them."""

    figures: tuple[OurFigure, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Published:
    """The section. `near`: of our backend; `rest`: of other backends, or of no implementation that is named."""

    lead: str
    near: Told
    rest: Told
    rest_told: str
    absent: str


def section(run: Run, summary: Summary) -> Published:
    """The published figures that figures of this run stand beside."""
    pairs = beside(run, summary)
    near, rest = ([pair for pair in pairs if pair.near is which] for which in (True, False))
    return Published(
        lead=_LEAD,
        near=_told(run, summary, near),
        rest=_told(run, summary, rest),
        rest_told=f"{words.counted(len(rest), 'more figure')}, of other backends or of no implementation that is named",
        absent=_ABSENT,
    )


def _told(run: Run, summary: Summary, pairs: list[Beside]) -> Told:
    by_ours = itertools.groupby(pairs, key=lambda pair: pair.ours.key)
    return Told(
        figures=tuple(_figure(list(group)) for _, group in by_ours),
        sentences=tuple(gaps.sentences(run, summary, pairs)),
    )


def _figure(pairs: list[Beside]) -> OurFigure:
    ours, shown = pairs[0].ours, words.shown(pairs[0].ours)
    variant = (f"{key} = {value}" for key, value in sorted(bare(ours.variant).items()))
    return OurFigure(
        label=words.label(ours.metric),
        name=ours.metric,
        of=_joined((_EXECUTORS[ours.executor], *variant, _TIMED[pairs[0].estimator.timed])),
        value=shown.value,
        interval=f"{words.level(ours.ci_level)} interval {shown.interval}",
        rows=tuple(_row(pair) for pair in pairs),
    )


def _row(pair: Beside) -> PublishedRow:
    row = pair.row
    return PublishedRow(
        value=words.quantity(row.value, row.unit),
        by=_by(row),
        on=_joined((row.backend, row.gpu, row.os)) or words.given(""),
        ratio=words.quantity(pair.ratio, "ratio"),
        state="wide" if gaps.is_wide(pair) else "",
        source=_joined((row.source_path, f"commit {row.source_commit[:7]}" if row.source_commit else "")),
        note=row.note,
    )


def _by(row: Row) -> str:
    """What ran it; of the ends of a range that no implementation is named for, which end."""
    if not row.implementation:
        return f"no implementation named, {'lowest' if row.experiment.endswith('_low') else 'highest'}"
    return _joined((row.implementation, row.version))


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)
