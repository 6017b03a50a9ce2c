"""A run made fit to be committed: its samples packed, its summary and report computed again, its size bounded."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from rig import store
from rig.matrix import page as matrix_page
from rig.matrix import records as matrix_records
from rig.measure import render
from rig.records import Record, encode

MOST_BYTES = 3_000_000
MOST_BYTES_OF_MATRIX = 4_000_000
"""Of all its builds' runs together."""


def publish(run: Path, to: Path) -> Path:
    """Copies a run, or a matrix with the runs of its builds, to the new folder `to`. StoreError where it is not whole,
    too large, or already there.
    """
    if not store.is_run(run) and not matrix_records.is_matrix(run):
        raise store.StoreError(f"{run} is not a run")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", to.name) or ".." in to.parts:
        raise store.StoreError(f"'{to.name}' is no name for a published run: lower case, digits, '.', '_' and '-'")
    if to.exists():
        raise store.StoreError(f"{to} is already there")
    partial = to.with_name(to.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        if matrix_records.is_matrix(run):
            _copy_matrix(run, partial)
        else:
            _copy_run(run, partial)
            if not any(metric.value is not None for metric in render(partial).metrics):
                raise store.StoreError(f"{run} has no figure at all")
        size = sum(path.stat().st_size for path in partial.rglob("*") if path.is_file())
        most = MOST_BYTES_OF_MATRIX if matrix_records.is_matrix(run) else MOST_BYTES
        if size > most:
            raise store.StoreError(
                f"{run} takes {size / 1e6:.1f} MB when packed; what is published has {most / 1e6:g} MB"
            )
        partial.rename(to)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return to


def _copy_run(run: Path, to: Path, *, launches_packed: bool = False) -> None:
    """What was measured, without what is computed from it."""
    shutil.copyfile(run / store.MANIFEST, to / store.MANIFEST)
    if launches_packed:
        _pack(to / store.LAUNCHES, store.read_launches(run))
    else:
        shutil.copyfile(run / store.LAUNCHES, to / store.LAUNCHES)
    named, programs = store.split(store.read_cells(run).values())
    (to / store.CELLS).write_bytes(encode(named))
    _pack(to / store.PROGRAMS, programs)
    # those of one cell together, and cells beside those like them: a quarter smaller
    samples = sorted(store.read_samples(run), key=lambda s: (s.experiment, s.n, s.cell, s.launch, s.block))
    _pack(to / store.SAMPLES, samples)


def _copy_matrix(matrix: Path, to: Path) -> None:
    """The matrix, its notes, what its traces tell, and its builds' runs; of those `rig report` makes the reports."""
    for name in (matrix_records.MATRIX, matrix_records.TRACES, matrix_page.NOTES):
        if (matrix / name).is_file():
            shutil.copyfile(matrix / name, to / name)
    for run in sorted((matrix / matrix_records.BUILDS).glob("*")):
        place = to / matrix_records.BUILDS / run.name
        place.mkdir(parents=True)
        _copy_run(run, place, launches_packed=True)
    matrix_page.render(to)
    if not store.read(to / matrix_records.SUMMARY, matrix_records.Summary).figures:
        raise store.StoreError(f"{matrix} has no figure at all")


def _pack(path: Path, records: Iterable[Record]) -> None:
    """JSON lines, packed."""
    lines = b"".join(encode(record) + b"\n" for record in records)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(lines, mtime=0))
