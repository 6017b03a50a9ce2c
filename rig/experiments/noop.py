"""noop: the empty program, in every block of every experiment. Which cells can't be told from doing nothing?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rig import figures, stats
from rig.experiments.base import Experiment, Options, Point
from rig.frames import Run
from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Metric, MetricOutcome, Target, Verdict

ID = "noop"


def cells(options: Options) -> list[Point]:  # noqa: ARG001
    """Nothing at all is issued: what is timed is the wait for an empty queue."""
    return [Point(increment_chain(), policy("one_pass"), 0)]


def compute(run: Run, options: Options) -> list[Metric]:  # noqa: ARG001
    """The empty program's own time, and the cells that are not clearly above it, launch by launch."""
    good = run.good(ID)
    if good.empty:
        return [figures.missing(ID, "noop.wall_us", {}, "us", *figures.why_none(run, run.rows(ID), ID))]
    own = good.groupby("launch")["wall_us"].mean()
    found = [figures.over_launches(ID, "noop.wall_us", {}, "us", own, len(good))]
    issued = {key for key, cell in run.cells.items() if cell.policy.target is Target.device}
    others = run.counted(run.samples[(run.samples["experiment"] != ID) & run.samples["cell"].isin(issued)])
    keys = ["experiment", "program", "policy", "waiter", "n"]
    by_cell = others.groupby([*keys, "launch"])["wall_us"].mean().unstack("launch")
    for names, row in by_cell.iterrows():
        assert isinstance(names, tuple)
        marked = _indistinct(dict(zip(keys, names, strict=True)), (row - own).dropna(), len(good))
        found += [marked] if marked else []
    return found


def _indistinct(variant: figures.Variant, above_us: pd.Series[float], samples: int) -> Metric | None:
    """A mark for a cell whose interval over launches of its time above the empty program's reaches zero."""
    if len(above_us) < 2 or stats.mean_interval(above_us.to_list()).low > 0:
        return None
    plain = {name: value if isinstance(value, str) else int(value) for name, value in variant.items()}
    doubt = "can't be told from the empty program"
    return figures.over_launches(
        *(ID, "noop.difference_us", plain, "us", above_us, samples), interval=stats.mean_interval, doubt=doubt
    )


def marks(metrics: Sequence[Metric]) -> list[Metric]:
    """Of a summary, the cells that can't be told from the empty program."""
    return [m for m in metrics if m.metric == "noop.difference_us" and m.outcome is MetricOutcome.unresolved]


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:  # noqa: ARG001
    """None."""
    return []


EXPERIMENT = Experiment(
    id=ID,
    line="the empty program, in every block of the others: which cells can't be told from it?",
    options=Options,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
    in_every_block=True,
)
