"""A stored run as data frames. From here on everything is pure: no browser, no clock, no disk but the run's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pandas as pd

from rig import store
from rig.records import Cell, Launch, Manifest, Outcome, Sample

COLUMNS = [field.name for field in msgspec.structs.fields(Sample)]
TICKS_PER_SAMPLE = 10
"""A sample shorter than so many ticks of the page's clock says more about the clock than about the work."""


@dataclass(frozen=True)
class Run:
    """One run. `samples`: a row a sample, the columns of the contract and `program`, `policy`, `waiter`, `void`.

    `void` is empty where the sample counts, else why it does not: its own outcome, a check that failed, a launch that
    broke, a clock too coarse for it.
    """

    manifest: Manifest
    cells: Mapping[str, Cell]
    launches: tuple[Launch, ...]
    samples: pd.DataFrame

    def good(self, experiment: str) -> pd.DataFrame:
        """Warm samples of `experiment` that count."""
        rows = self.samples
        return rows[(rows["experiment"] == experiment) & (rows["void"] == "") & (rows["block"] > 0)]

    def first(self, experiment: str) -> pd.DataFrame:
        """Samples of the opening checks of `experiment` that count."""
        rows = self.samples
        return rows[(rows["experiment"] == experiment) & (rows["void"] == "") & (rows["block"] == 0)]

    def void(self, experiment: str) -> pd.DataFrame:
        """Samples of `experiment` that don't count."""
        rows = self.samples
        return rows[(rows["experiment"] == experiment) & (rows["void"] != "")]


def read(path: Path) -> Run:
    """The run stored at `path`. StoreError where it is not whole."""
    return assemble(
        store.read_manifest(path), store.read_cells(path), store.read_launches(path), store.read_samples(path)
    )


def assemble(
    manifest: Manifest, cells: Mapping[str, Cell], launches: Iterable[Launch], samples: Iterable[Sample]
) -> Run:
    """A run from its records. StoreError where they don't belong together."""
    launches = tuple(launches)
    frame = pd.DataFrame([[getattr(s, name) for name in COLUMNS] for s in samples], columns=COLUMNS)
    frame["outcome"] = [str(outcome) for outcome in frame["outcome"]]
    for name in ("wall_us", "encode_us", "span_us", "busy_us"):
        frame[name] = frame[name].astype(float)
    unknown = set(frame["cell"]) - set(cells)
    if unknown:
        raise store.StoreError(f"samples of cells that {store.CELLS} does not define: {', '.join(sorted(unknown)[:3])}")
    of = [cells[key] for key in frame["cell"]]
    frame["program"] = [cell.program.name for cell in of]
    frame["policy"] = [cell.policy.name for cell in of]
    frame["waiter"] = [str(cell.policy.waiter) for cell in of]
    frame["void"] = _void(frame, launches)
    return Run(manifest=manifest, cells=cells, launches=launches, samples=frame)


def _void(frame: pd.DataFrame, launches: tuple[Launch, ...]) -> list[str]:
    by_number = {launch.launch: launch for launch in launches}
    failed = {
        (launch.launch, what): f"{check.stage} check: {check.outcome}"
        for launch in launches
        for check in launch.checks
        for what in [check.cell or check.program]
        if check.outcome is not Outcome.ok
    }

    def reason(number: int, cell: str, program: str, outcome: str, wall_us: float) -> str:
        if outcome != Outcome.ok:
            return outcome
        if math.isnan(wall_us):
            return "no wall time"
        launch = by_number.get(number)
        if launch is None:
            return "launch without an end"
        if launch.outcome is not Outcome.ok:
            return f"launch {launch.outcome}"
        if launch.clock is not None and wall_us < TICKS_PER_SAMPLE * launch.clock.tick_us:
            return f"shorter than {TICKS_PER_SAMPLE} ticks of the clock"
        return failed.get((number, cell)) or failed.get((number, program), "")

    columns = (frame[name].tolist() for name in ("launch", "cell", "program", "outcome", "wall_us"))
    return [reason(*row) for row in zip(*columns, strict=True)]
