"""How does a matrix become one page?"""

from __future__ import annotations

from pathlib import Path

from rig import store
from rig.matrix import records, steps
from rig.matrix.records import Change, Matrix
from rig.matrix.rounds import stored_runs
from rig.report import words


def render(place: Path) -> list[str]:
    """Computes summary.json, changes.json and index.html of a stored matrix again; returns what they say, in lines.

    StoreError where it is not whole.
    """
    matrix = records.read(place / records.MATRIX, Matrix)
    known = steps.values(stored_runs(place, matrix))
    summary, changes = steps.summary(matrix, known), steps.changes(matrix, known)
    store.write_json(place / records.SUMMARY, summary)
    store.write_json(place / records.CHANGES, changes)
    return [sentence(change) for change in changes.changes] or ["no step between neighbours"]


def sentence(change: Change) -> str:
    """A step in one line."""
    key = f"{change.metric}{{{','.join(f'{k}={v}' for k, v in sorted(change.variant.items()))}}}"
    low, high = change.ratio.ci_low, change.ratio.ci_high
    return (
        f"{change.version_before} to {change.version_after}: {key} {words.quantity(change.before, change.unit)} to "
        f"{words.quantity(change.after, change.unit)}, {words.number(change.ratio.value)} times "
        f"({words.number(low)} to {words.number(high)}), {'confirmed' if change.confirmed else 'not confirmed'}; "
        f"cause: {change.cause.told}"
    )
