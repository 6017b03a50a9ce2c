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
from rig.records import Launch, Metric, plain

FOLDER = "csv"
"""Inside the run, unless another place is named."""

SAMPLES, METRICS, LAUNCHES = "samples.csv", "metrics.csv", "launches.csv"


def export(run: Path, to: Path | None = None) -> list[Path]:
    """Writes the three files into `to`; returns their paths. StoreError where they can't be read or written."""
    stored = frames.read(run)
    metrics = analysis.summarise(stored).metrics
    tables = {
        SAMPLES: table(stored.samples.columns, stored.samples.to_dict("records")),
        METRICS: table(("key", *Metric.__struct_fields__), [{"key": one.key, **plain(one)} for one in metrics]),
        LAUNCHES: table(Launch.__struct_fields__, map(plain, stored.launches)),
    }
    folder = to if to is not None else run / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in tables.items():
            (folder / name).write_bytes(text.encode())
    except OSError as error:
        raise store.StoreError(f"can't write to {folder}: {error.strerror or error}") from None
    return [folder / name for name in tables]


def table(fields: Iterable[str], rows: Iterable[Mapping[Any, Any]]) -> str:
    """Rows as CSV, in the order of `fields`. A nested value has a column for each of its own, `variant.policy`; a list
    is JSON in its cell.
    """
    flat = [_flat(row) for row in rows]
    found = dict.fromkeys(column for row in flat for column in row)
    nested = {field: [column for column in found if column.startswith(f"{field}.")] for field in fields}
    columns = [column for field, own in nested.items() for column in own or [field]]
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
