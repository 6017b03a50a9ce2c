"""What an experiment is: which cells, which figures from their samples, which verdicts from the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rig.frames import Run
from rig.records import Metric, Policy, Positive, Program, Record, Verdict


class Options(Record, frozen=True):
    """Options that every experiment has. `blocks`: at most so many in each launch, as far as its time goes."""

    blocks: Positive = 10


@dataclass(frozen=True)
class Point:
    """A cell before it is known who executes it."""

    program: Program
    policy: Policy
    n: int


@dataclass(frozen=True)
class Experiment:
    """`cells` and `figures` get the experiment's own options; `figures` and `verdicts` are pure."""

    id: str
    line: str
    options: type[Options]
    cells: Callable[[Any], Sequence[Point]]
    figures: Callable[[Run, Any], Sequence[Metric]]
    verdicts: Callable[[Sequence[Metric]], Sequence[Verdict]]
