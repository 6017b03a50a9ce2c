"""A run as CSV, for any other tool: samples, metrics and launches. RFC 4180, UTF-8; what is absent is an empty cell."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rig import analysis, frames, store
from rig.records import plain

FOLDER = "csv"
"""Inside the run, unless another place is named."""

SAMPLES, METRICS, LAUNCHES = "samples.csv", "metrics.csv", "launches.csv"


def export(run: Path, to: Path | None = None) -> list[Path]:
    """Writes the three files into `to`; returns their paths. StoreError where they can't be read or written."""
    stored = frames.read(run)
    metrics = analysis.summarise(stored).metrics
    tables = {
        SAMPLES: stored.samples.to_dict("records"),
        METRICS: [{"key": metric.key, **plain(metric)} for metric in metrics],
        LAUNCHES: [plain(launch) for launch in stored.launches],
    }
    folder = to if to is not None else run / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            (folder / name).write_bytes(table(rows).encode())
    except OSError as error:
        raise store.StoreError(f"can't write to {folder}: {error.strerror or error}") from None
    return [folder / name for name in tables]


def table(rows: Iterable[Mapping[Any, Any]]) -> str:
    """Rows as CSV. A nested value has a column for each of its own, `variant.policy`; a list is JSON in its cell."""
    flat = [_flat(row) for row in rows]
    # a nested field stays in its place, whichever row is the first to have it
    places: dict[str, dict[str, None]] = {}
    for row in flat:
        for column in row:
            places.setdefault(column.partition(".")[0], {})[column] = None
    for name, place in places.items():
        if len(place) > 1:
            place.pop(name, None)  # there it is null, elsewhere it has fields
    columns = [column for place in places.values() for column in place]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in flat)
    return file.getvalue()


def _flat(row: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _cell(value: object) -> str:
    """Floats in the fewest digits that give the same float again; nothing for what is absent."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return msgspec.json.encode(plain(value)).decode()
    return repr(value) if isinstance(value, float) else str(value)
