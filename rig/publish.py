"""A run made fit to be committed: its samples packed, its summary and report computed again, its size bounded."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from rig import store
from rig.measure import render
from rig.records import Record, encode

MOST_BYTES = 3_000_000


def publish(run: Path, to: Path) -> Path:
    """Copies `run` to the new folder `to`. StoreError where the run is not whole, too large, or already there."""
    if not store.is_run(run):
        raise store.StoreError(f"{run} is not a run")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", to.name) or ".." in to.parts:
        raise store.StoreError(f"'{to.name}' is no name for a published run: lower case, digits, '.', '_' and '-'")
    if to.exists():
        raise store.StoreError(f"{to} is already there")
    partial = to.with_name(to.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for name in (store.MANIFEST, store.LAUNCHES):
            shutil.copyfile(run / name, partial / name)
        named, programs = store.split(store.read_cells(run).values())
        (partial / store.CELLS).write_bytes(encode(named))
        _pack(partial / store.PROGRAMS, programs)
        # those of one cell together, and cells beside those like them: a quarter smaller
        samples = sorted(store.read_samples(run), key=lambda s: (s.experiment, s.n, s.cell, s.launch, s.block))
        _pack(partial / store.SAMPLES, samples)
        if not any(metric.value is not None for metric in render(partial).metrics):
            raise store.StoreError(f"{run} has no figure at all")
        size = sum(path.stat().st_size for path in partial.iterdir())
        if size > MOST_BYTES:
            raise store.StoreError(
                f"{run} takes {size / 1e6:.1f} MB when packed; a published run has {MOST_BYTES / 1e6:g} MB"
            )
        partial.rename(to)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return to


def _pack(path: Path, records: Iterable[Record]) -> None:
    """JSON lines, packed."""
    lines = b"".join(encode(record) + b"\n" for record in records)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(lines, mtime=0))
