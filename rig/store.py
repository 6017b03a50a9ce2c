"""A run directory: written while it is measured, read back whole. The shapes are the results contract."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

import msgspec

from rig.records import Cell, Launch, Manifest, Record, Sample, Summary, decode, encode, plain

T = TypeVar("T")

MANIFEST, CELLS, LAUNCHES, SAMPLES, SUMMARY, REPORT = (
    "manifest.json",
    "cells.json",
    "launches.jsonl",
    "samples.jsonl",
    "summary.json",
    "report.html",
)


class StoreError(Exception):
    """A run directory that can't be written or read, in one line."""


def is_run(path: Path) -> bool:
    return (path / MANIFEST).is_file()


class Writer:
    """Appends to a new run directory; every line reaches the file at once. StoreError where it can't be made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise StoreError(f"{path} is not empty")
            self._samples: IO[bytes] = (path / SAMPLES).open("ab")
            self._launches: IO[bytes] = (path / LAUNCHES).open("ab")
        except OSError as error:
            raise StoreError(f"can't write to {path}: {error.strerror or error}") from None

    def manifest(self, manifest: Manifest) -> None:
        write_json(self.path / MANIFEST, manifest)

    def cells(self, cells: Iterable[Cell]) -> None:
        write_json(self.path / CELLS, {cell.key: cell for cell in cells})

    def sample(self, sample: Sample) -> None:
        self._append(self._samples, sample)

    def launch(self, launch: Launch) -> None:
        self._append(self._launches, launch)
        for file in (self._samples, self._launches):
            os.fsync(file.fileno())

    def _append(self, file: IO[bytes], record: Record) -> None:
        file.write(encode(record) + b"\n")
        file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._samples.close()
        self._launches.close()


def write_json(path: Path, data: object) -> None:
    """Strict, indented JSON, replaced in one step."""
    text = msgspec.json.format(encode(plain(data)), indent=1)
    partial = path.with_suffix(".partial")
    partial.write_bytes(text + b"\n")
    partial.replace(path)


def read_manifest(path: Path) -> Manifest:
    return _decode(path / MANIFEST, Manifest)


def read_cells(path: Path) -> Mapping[str, Cell]:
    return _decode(path / CELLS, dict[str, Cell])


def read_launches(path: Path) -> list[Launch]:
    return list(_lines(path / LAUNCHES, Launch))


def read_samples(path: Path) -> list[Sample]:
    return list(_lines(path / SAMPLES, Sample))


def read_summary(path: Path) -> Summary:
    return _decode(path / SUMMARY, Summary)


def _decode(path: Path, kind: type[T]) -> T:
    try:
        return decode(path.read_bytes(), kind)
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{path}: {error}") from None


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Records of a JSON-lines file, or of the same file packed (.gz).

    A last line without its end is left out: the process that wrote it was killed in the middle.
    """
    packed = path.with_name(path.name + ".gz")
    try:
        data = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: {error}") from None
    whole, _, _ = data.rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
        try:
            yield decode(line, kind)
        except msgspec.DecodeError as error:
            raise StoreError(f"{path}:{number}: {error}") from None
