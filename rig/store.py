"""A run directory: written while it is measured, read back whole. The shapes are the results contract."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

import msgspec

from rig.records import Cell, Launch, Manifest, Program, Record, Sample, Summary, decode, encode, plain

T = TypeVar("T")

fcntl = None if os.name == "nt" else importlib.import_module("fcntl")

MANIFEST, CELLS, PROGRAMS, LAUNCHES, SAMPLES, SUMMARY, REPORT = (
    "manifest.json",
    "cells.json",
    "programs.jsonl",
    "launches.jsonl",
    "samples.jsonl",
    "summary.json",
    "report.html",
)


class StoreError(Exception):
    """A run directory that can't be written or read, in one line."""


def is_run(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def in_use(path: Path) -> bool:
    """Whether a rig is still writing the run at `path`."""
    try:
        with (path / SAMPLES).open("rb") as file:
            _lock(file)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _lock(file: IO[bytes]) -> None:
    """Holds the file until it is closed. OSError where another process does; without effect on Windows."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _to_end(file: IO[bytes]) -> None:
    """Behind the last whole line, with nothing after it."""
    file.seek(file.read().rfind(b"\n") + 1)
    file.truncate()


class Writer:
    """Appends to a run directory; every line reaches the file at once. StoreError where it can't be made.

    A new run's folder must be empty. With `again`, the run that is there is gone on with: a line that was cut off when
    the process that wrote it ended is taken away.
    """

    def __init__(self, path: Path, *, again: bool = False) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not again and any(path.iterdir()):
                raise StoreError(f"{path} is not empty (--replace keeps a run that is there as {path.name}.previous)")
            self._samples: IO[bytes] = (path / SAMPLES).open("r+b" if again else "x+b")
            self._launches: IO[bytes] = (path / LAUNCHES).open("r+b" if again else "x+b")
            _lock(self._samples)
            for file in (self._samples, self._launches):
                _to_end(file)
        except BlockingIOError:
            raise StoreError(f"{path} is still being written by another run") from None
        except OSError as error:
            raise StoreError(f"can't write to {path}: {error.strerror or error}") from None

    def manifest(self, manifest: Manifest) -> None:
        write_json(self.path / MANIFEST, manifest)

    def cells(self, cells: Iterable[Cell]) -> None:
        named, programs = split(cells)
        write_text(self.path / PROGRAMS, "".join(encode(program).decode() + "\n" for program in programs))
        write_json(self.path / CELLS, named)

    def sample(self, sample: Sample) -> None:
        self._append(self._samples, sample)

    def launch(self, launch: Launch) -> None:
        self._append(self._launches, launch)
        for file in (self._samples, self._launches):
            os.fsync(file.fileno())

    def _append(self, file: IO[bytes], record: Record) -> None:
        try:
            file.write(encode(record) + b"\n")
            file.flush()
        except OSError as error:
            raise StoreError(f"can't write to {self.path}: {error.strerror or error}") from None

    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        for file in (self._samples, self._launches):
            with contextlib.suppress(OSError):  # what could not be written was said then
                file.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def split(cells: Iterable[Cell]) -> tuple[dict[str, Any], list[Program]]:
    """Plain cells by key, each with its program's name instead of the program; and every program once.

    A program may have a thousand dispatches, and many cells. ValueError: two different ones share a name.
    """
    programs: dict[str, Program] = {}
    named = {}
    for cell in cells:
        held = programs.setdefault(cell.program.name, cell.program)
        if held is not cell.program and held != cell.program:
            raise ValueError(f"two programs are named {held.name}")
        named[cell.key] = {**msgspec.structs.asdict(cell), "program": cell.program.name}
    return named, list(programs.values())


def write_json(path: Path, data: object) -> None:
    """Strict, indented JSON, replaced in one step."""
    write_text(path, msgspec.json.format(encode(plain(data)), indent=1).decode() + "\n")


def write_summary(path: Path, summary: Summary) -> None:
    """Strict JSON, a line a figure and a line a verdict, numbers to ten digits; replaced in one step."""
    metrics, verdicts = (
        ",\n".join(encode(_rounded(plain(row))).decode() for row in rows)
        for rows in (summary.metrics, summary.verdicts)
    )
    write_text(path, f'{{"schema":{summary.schema},\n"metrics":[\n{metrics}\n],\n"verdicts":[\n{verdicts}\n]}}\n')


def _rounded(data: Any) -> Any:  # noqa: ANN401
    """Plain data, its numbers to ten digits: more than any clock has."""
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_rounded(value) for value in data]
    return float(f"{data:.10g}") if isinstance(data, float) else data


def write_text(path: Path, text: str) -> None:
    """UTF-8, replaced in one step. StoreError where it can't be written."""
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"can't write {path}: {error.strerror or error}") from None


def read_manifest(path: Path) -> Manifest:
    return read(path / MANIFEST, Manifest)


def read_cells(path: Path) -> Mapping[str, Cell]:
    """Cells by key, each with its program. StoreError: one names a program that is not there."""
    named = read(path / CELLS, dict[str, dict[str, Any]])
    programs = {program.name: program for program in _lines(path / PROGRAMS, Program)}
    cells = {}
    for key, cell in named.items():
        program = programs.get(str(cell.get("program")))
        if program is None:
            raise StoreError(f"{path / CELLS}: {key} names a program that is not in {PROGRAMS}")
        try:
            cells[key] = msgspec.convert({**cell, "program": program}, Cell)
        except msgspec.ValidationError as error:
            raise StoreError(f"{path / CELLS}: {key}: {error}") from None
    return cells


def read_launches(path: Path) -> list[Launch]:
    return list(_lines(path / LAUNCHES, Launch))


def read_samples(path: Path) -> list[Sample]:
    return list(_lines(path / SAMPLES, Sample))


def read_summary(path: Path) -> Summary:
    return read(path / SUMMARY, Summary)


def read(path: Path, kind: type[T]) -> T:
    """A file of a run, or of a matrix. StoreError where it is not there or not whole."""
    try:
        return decode(path.read_bytes(), kind)
    except FileNotFoundError:
        raise StoreError(f"{path.parent} is not a run: it has no {path.name}") from None
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{path}: {error}") from None


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Records of a JSON-lines file, or of the same file packed (.gz).

    A last line without its end is left out: the process that wrote it was killed in the middle.
    """
    packed = path.with_name(path.name + ".gz")
    try:
        data = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{packed if packed.is_file() else path}: {error}") from None
    whole, _, _ = data.rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
        try:
            yield decode(line, kind)
        except msgspec.DecodeError as error:
            raise StoreError(f"{path}:{number}: {error}") from None
