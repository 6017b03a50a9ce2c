"""A stored run as data frames. From here on everything is pure: no browser, no clock, no disk but the run's own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import pandas as pd

from rig import store
from rig.records import SCHEMA, Cell, Launch, Manifest, Outcome, Sample

COLUMNS = [field.name for field in msgspec.structs.fields(Sample)]
MOST_US = 1e12
"""A sample that took longer, some eleven days, was not timed."""

TICKS_PER_SAMPLE = 10
"""A sample shorter than so many ticks of the page's clock says more about the clock than about the work."""


@dataclass(frozen=True)
class Run:
    """One run. `samples`: a row a sample, the columns of the contract and `program`, `policy`, `waiter`, `executor`,
    `arm`, `round`, `void`.

    `void` is empty where the sample counts, else why it does not: its own outcome, a check that failed, a launch that
    broke, a clock too coarse for it.
    """

    manifest: Manifest
    cells: Mapping[str, Cell]
    launches: tuple[Launch, ...]
    samples: pd.DataFrame

    @property
    def also(self) -> tuple[str, ...]:
        """Executors whose launches took turns with the main one's."""
        return tuple(str(name) for name in self.manifest.plan.profile.get("also") or ())

    @cached_property
    def main(self) -> Run:
        """The run without them: launches of the main executor alone."""
        return self._only([launch for launch in self.launches if launch.executor not in self.also])

    def of(self, executor: str) -> Run:
        """Launches of one executor alone."""
        return self._only([launch for launch in self.launches if launch.executor == executor])

    def by_round(self, per_launch: pd.Series[float]) -> pd.Series[float]:
        """Values by round instead of by launch: launches of one round are neighbours in time."""
        return per_launch.rename(index={launch.launch: launch.round for launch in self.launches})

    def _only(self, launches: Sequence[Launch]) -> Run:
        if len(launches) == len(self.launches):
            return self
        numbers = {launch.launch for launch in launches}
        samples = self.samples[self.samples["launch"].isin(numbers)]
        return Run(self.manifest, self.cells, tuple(launches), samples)

    def rows(self, experiment: str, **values: object) -> pd.DataFrame:
        """All samples of `experiment` whose columns have these values, those that don't count included."""
        rows = self.samples[self.samples["experiment"] == experiment]
        for column, value in values.items():
            rows = rows[rows[column] == value]
        return rows

    def good(self, experiment: str) -> pd.DataFrame:
        """Warm samples of `experiment` that count."""
        rows = self.samples
        return rows[(rows["experiment"] == experiment) & (rows["void"] == "") & (rows["block"] > 0)]

    def first(self, experiment: str) -> pd.DataFrame:
        """Samples of the opening checks of `experiment` that count."""
        rows = self.samples
        return rows[(rows["experiment"] == experiment) & (rows["void"] == "") & (rows["block"] == 0)]

    @staticmethod
    def counted(rows: pd.DataFrame) -> pd.DataFrame:
        """Of `rows`, the warm samples that count."""
        return rows[(rows["void"] == "") & (rows["block"] > 0)]

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
    launches, samples = tuple(launches), list(samples)
    _belong_together(manifest, cells, launches, samples)
    frame = pd.DataFrame([[getattr(s, name) for name in COLUMNS] for s in samples], columns=COLUMNS)
    frame["outcome"] = [str(outcome) for outcome in frame["outcome"]]
    for name in ("wall_us", "encode_us", "span_us", "busy_us"):
        frame[name] = frame[name].astype(float)
    of = [cells[key] for key in frame["cell"]]
    frame["program"] = [cell.program.name for cell in of]
    frame["policy"] = [cell.policy.name for cell in of]
    frame["waiter"] = [str(cell.policy.waiter) for cell in of]
    by_number = {launch.launch: launch for launch in launches}
    made_in = [by_number.get(number) for number in frame["launch"]]
    frame["executor"] = [cell.executor for cell in of]
    frame["arm"] = [launch.arm if launch else "" for launch in made_in]
    frame["round"] = [launch.round if launch else -1 for launch in made_in]
    frame["void"] = _void(frame, launches)
    return Run(manifest=manifest, cells=cells, launches=launches, samples=frame)


def _belong_together(
    manifest: Manifest, cells: Mapping[str, Cell], launches: Sequence[Launch], samples: Sequence[Sample]
) -> None:
    """StoreError where the files can't be of one run, whole and each line once."""
    if manifest.schema != SCHEMA:
        raise store.StoreError(f"{store.MANIFEST}: schema {manifest.schema}, this version reads {SCHEMA}")
    wrong = next((key for key, cell in cells.items() if key != cell.key), None)
    if wrong is not None:
        raise store.StoreError(f"{store.CELLS}: {wrong} is not the key of its cell")
    for what, count in Counter(launch.launch for launch in launches).items():
        if count > 1:
            raise store.StoreError(f"{store.LAUNCHES}: launch {what} is there {count} times")
    for place, count in Counter((s.experiment, s.launch, s.block, s.order, s.cell) for s in samples).items():
        if count > 1:
            raise store.StoreError(f"{store.SAMPLES}: {place} is there {count} times")
    for sample in samples:
        if sample.cell not in cells:
            raise store.StoreError(f"{store.SAMPLES}: cell {sample.cell} is not in {store.CELLS}")
        if sample.n != cells[sample.cell].n:
            raise store.StoreError(f"{store.SAMPLES}: n {sample.n}, its cell {sample.cell} has {cells[sample.cell].n}")


def _void(frame: pd.DataFrame, launches: tuple[Launch, ...]) -> list[str]:
    by_number = {launch.launch: launch for launch in launches}
    failed = {
        (launch.launch, what): f"{check.stage} check: {check.outcome}"
        for launch in launches
        for check in launch.checks
        for what in [check.cell or check.program]
        if check.outcome is not Outcome.ok
    }

    def reason(number: int, cell: str, program: str, outcome: str, wall_us: float, span_us: float) -> str:
        if outcome != Outcome.ok:
            return outcome
        if not 0 < wall_us < MOST_US:
            return "no wall time"
        if not (math.isnan(span_us) or 0 < span_us <= wall_us):
            return "a span that the wall does not hold"
        launch = by_number.get(number)
        if launch is None:
            return "launch without an end"
        if launch.outcome is not Outcome.ok:
            return f"launch {launch.outcome}"
        if not any(check.stage == "closing" for check in launch.checks):
            return "launch without a closing check"
        if launch.clock is not None and wall_us < TICKS_PER_SAMPLE * launch.clock.tick_us:
            return f"shorter than {TICKS_PER_SAMPLE} ticks of the clock"
        return failed.get((number, cell)) or failed.get((number, program), "")

    columns = (frame[name].tolist() for name in ("launch", "cell", "program", "outcome", "wall_us", "span_us"))
    return [reason(*row) for row in zip(*columns, strict=True)]
