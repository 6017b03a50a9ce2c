"""How do the nights of a folder become one page, and one file for machines?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from rig import store
from rig.matrix.page import times
from rig.matrix.records import PAGE as MATRIX_PAGE
from rig.nights import records
from rig.nights.records import Night, State
from rig.records import SCHEMA
from rig.report import page as report_page
from rig.report import words
from rig.report.environment import Table

TOLD = {
    State.fine: "fine",
    State.worse: "worse",
    State.first: "nothing to compare with",
    State.apart: "surroundings changed",
    State.lost: "a build was lost",
    State.invalid: "no valid data",
}

MARKED = {State.fine: "ok", State.worse: "failed", State.lost: "failed", State.invalid: "failed"}

GAP_DAYS = 1.5
"""Nights further apart have one missing between them."""


@dataclass(frozen=True)
class Row:
    """A night as the page tells it, or (without a link) a gap between two."""

    id: str
    link: str
    state: str
    mark: str
    why: str
    builds: str
    compared: str


def render(folder: Path, accept: Sequence[str] = ()) -> None:
    """Writes the index of nights, and nights.json beside it. `accept`: ids of nights, as the plan has them."""
    nights = records.stored(folder, accept)
    store.write_text(folder / records.PAGE, html(nights))
    last = records.last_good(nights)
    latest = nights[-1] if nights else None
    store.write_json(
        folder / records.NIGHTS,
        {
            "schema": SCHEMA,
            "last_good": last.id if last else None,
            "latest": latest.id if latest else None,
            "state": str(latest.state) if latest else None,
            "exit": int(latest.exit) if latest else None,
            "nights": [
                {"id": night.id, "state": str(night.state), "exit": int(night.exit), "why": night.why}
                for night in nights
            ],
        },
    )


def html(nights: list[Night]) -> str:
    """The index: newest first, a gap said where nights are missing."""
    last = records.last_good(nights)
    lede = ["No night yet."]
    if nights:
        latest = nights[-1]
        lede = [
            f"The latest night, {latest.id}: {TOLD[latest.state]}; {latest.why}.",
            f"The last good night, with which the next is compared, is {last.id}." if last else "No night is good.",
        ]
    rows: list[Row] = []
    for newer, night in zip([None, *reversed(nights)], reversed(nights), strict=False):
        days = (_began(newer) - _began(night)).total_seconds() / 86400 if newer is not None else 0.0
        if days > GAP_DAYS:
            rows.append(Row("", "", "missing", "unresolved", f"no night for {days:.0f} days", "", ""))
        rows.append(_row(night))
    template = report_page.templates(Path(__file__).parent).get_template("index.html.j2")
    return template.render(
        title="Dispatch costs, night by night",
        style=Markup(report_page.style()),
        lede=lede,
        rows=rows,
        worst=_shifts(nights, changed=True),
        every=_shifts(nights, changed=False),
        error=nights[-1].error if nights else "",
    )


def _began(night: Night) -> datetime:
    return datetime.fromisoformat(night.started)


def _row(night: Night) -> Row:
    told = ((one.name, one.version or "absent", f" ({one.why})" if one.why else "") for one in night.builds)
    versions = words.listed(f"{name} {version}{why}" for name, version, why in told)
    return Row(
        id=night.id,
        link=f"{records.FOLDER}/{night.id}/{MATRIX_PAGE}",
        state=TOLD[night.state] + (" (accepted)" if night.accepted else ""),
        mark=MARKED.get(night.state, "unresolved"),
        why="; ".join((night.why, *night.environment)),
        builds=versions,
        compared=night.compared_with or "nothing",
    )


def _shifts(nights: list[Night], *, changed: bool) -> Table:
    """What the latest night found worse or better; or every cost that it compared."""
    latest = nights[-1].shifts if nights else ()
    chosen = [one for one in latest if one.worse or one.better or not changed]
    return Table(
        "changed" if changed else "compared",
        ("Verdict", "Build", "Figure", "Last good night", "Now", "Times, over the control's"),
        tuple(
            (
                "worse" if one.worse else "better" if one.better else "not told apart",
                one.build,
                one.metric,
                words.quantity(one.before, one.unit),
                words.quantity(one.after, one.unit),
                times(one.ratio),
            )
            for one in sorted(chosen, key=lambda one: -one.ratio.value)
        ),
    )
