"""What was published? The rows of published.csv, each checked; a bad one is an error with its line."""

from __future__ import annotations

import csv
import io
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from rig.records import Name, Positive, Record, refuse_nonfinite

FILE = Path(__file__).with_name("published.csv")

Backend = Literal["", "vulkan", "metal", "d3d12", "cuda", "cpu"]
Dtype = Literal["", "float32", "float16", "q4f16_1", "float32 vs float16"]
# fmt: off
Unit = Literal[
    "us", "ms", "ratio", "percent", "tok/s", "nodes", "dispatches", "patterns", "batch", "abs", "rel",
    "W", "MB", "1/s", "TFLOP/s", "J/token", "J/forward",
]
# fmt: on
NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class Row(Record, frozen=True, kw_only=True):
    """One published figure. Text that the source does not give is empty, a number None; README.md has the columns."""

    experiment: Name
    implementation: str = ""
    version: str = ""
    backend: Backend = ""
    gpu: str = ""
    os: str = ""
    dtype: Dtype = ""
    model: str = ""
    n_dispatches: Positive | None = None
    value: float
    unit: Unit
    spread: NotNegative | None = None
    spread_kind: str = ""
    iterations: Positive | None = None
    source_path: Name
    source_commit: str = ""
    note: str = ""


COLUMNS = [field.name for field in msgspec.structs.fields(Row)]


@cache
def read() -> tuple[Row, ...]:
    """All rows of the package's own file."""
    return parse(FILE.read_text(encoding="utf-8"))


def parse(text: str) -> tuple[Row, ...]:
    """The rows of CSV with exactly these columns. ValueError with the line of the first bad one."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = next(lines, [])
        if head != COLUMNS:
            raise ValueError(f"columns {', '.join(head)}; expected {', '.join(COLUMNS)}")
        return tuple(_row(fields, lines.line_num) for fields in lines)
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num}: {error}") from None


def _row(fields: list[str], line: int) -> Row:
    if len(fields) != len(COLUMNS):
        raise ValueError(f"line {line}: {len(fields)} fields; expected {len(COLUMNS)}")
    given = {name: text for name, text in zip(COLUMNS, fields, strict=True) if text}
    try:
        row = msgspec.convert(given, Row, strict=False)
        refuse_nonfinite([row.value, row.spread])
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"line {line}: {error}") from None
    return row
