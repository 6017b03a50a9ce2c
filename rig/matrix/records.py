"""What a matrix is made of on disk: its builds, its stages, and what was found between them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from rig.records import Count, Name, Record, Rig
from rig.trace import Activity

MATRIX, CHANGES, SUMMARY, PAGE, BUILDS = "matrix.json", "changes.json", "summary.json", "index.html", "builds"
TRACES, RAW_TRACES = "traces.json", "traces"


class Stage(StrEnum):
    """Rounds with all builds; rounds once more with both sides of each step; and those with their drivers swapped."""

    search = "search"
    confirm = "confirm"
    swap = "swap"


class Build(Record, frozen=True):
    """A row of the matrix. `run`: its folder under builds/; `why`: the reason why it has no figures, or stopped early.

    `control`: it is in every round. `swapped`: it is there only to tell a browser from the driver it brings.
    """

    name: Name
    run: Name
    flavour: str = ""
    version: str = ""
    sha256: str = ""
    driver_sha256: str = ""
    control: bool = False
    swapped: bool = False
    why: str = ""


class Rounds(Record, frozen=True):
    """A stage: its rounds, by number, and the names of the builds that were launched in each."""

    stage: Stage
    first: Count
    last: Count
    builds: tuple[Name, ...]


class Matrix(Record, frozen=True):
    """The whole, as it was measured. Everything else is computed from it and the runs of its builds."""

    schema: int
    rig: Rig
    command: tuple[str, ...]
    started: str
    ended: str
    finished: bool
    why: str
    builds: tuple[Build, ...]
    rounds: tuple[Rounds, ...] = ()

    @property
    def control(self) -> Build | None:
        return next((one for one in self.builds if one.control), None)

    def of(self, stage: Stage) -> tuple[Rounds, ...]:
        return tuple(one for one in self.rounds if one.stage is stage)


class Ratio(Record, frozen=True):
    """One value over another, of paired rounds, with its interval."""

    value: float
    ci_low: float
    ci_high: float
    ci_level: float = 0.95


class Figure(Record, frozen=True):
    """A figure of a build over its rounds of the search, and over the control's."""

    build: Name
    metric: Name
    unit: str
    value: float
    ci_low: float
    ci_high: float
    n_launches: int
    to_control: Ratio | None
    doubt: str = ""


class Moved(Record, frozen=True):
    """Another figure on both sides of a step: not tested, told to help to see what moved."""

    metric: Name
    unit: str
    before: float
    after: float
    ratio: Ratio | None


class Cause(Record, frozen=True):
    """What the swapped drivers show: the browser's own part of a step, and the software driver's."""

    told: str
    browser: Ratio | None = None
    driver: Ratio | None = None


class Trace(Record, frozen=True):
    """What DevTools traced of one launch of a build, while it ran the cell of a figure again and again.

    `us`: of all its dispatches by wall, with what tracing costs; `why`: the reason why there is no trace.
    """

    build: Name
    metric: Name
    launch: Count
    dispatches: Count = 0
    us: float = 0
    activities: tuple[Activity, ...] = ()
    why: str = ""


class Traces(Record, frozen=True):
    schema: int
    categories: tuple[str, ...]
    traces: tuple[Trace, ...]


class Event(Record, frozen=True):
    """An event of a thread on both sides of a step, for each dispatch: how often, and its own time by wall and CPU."""

    process: str
    thread: str
    event: Name
    times_before: float
    times_after: float
    own_us_before: float
    own_us_after: float
    own_cpu_us_before: float
    own_cpu_us_after: float


class Traced(Record, frozen=True):
    """What the traces of both sides of a step show: those events that all launches of one side tell from all of the
    other. `us_before`, `us_after`: a dispatch while it was traced. `why`: the reason where there is nothing to see.
    """

    launches: Count = 0
    us_before: float = 0
    us_after: float = 0
    events: tuple[Event, ...] = ()
    why: str = ""


class Change(Record, frozen=True):
    """A step of one figure between two neighbouring builds. `before`, `after` and `ratio` are of the confirming rounds
    where there are such, which had no part in its choice; else, and in `found`, of the search.

    `p`, `p_confirmed`: by Holm over all that was tested, and over all that was looked at again.
    """

    metric: Name
    variant: dict[str, str | int | float]
    unit: str
    build_before: Name
    build_after: Name
    version_before: str
    version_after: str
    before: float
    after: float
    ratio: Ratio
    found: Ratio
    p: float
    confirmed: bool
    p_confirmed: float | None
    cause: Cause
    moved: tuple[Moved, ...] = ()
    traced: Traced | None = None
    doubts: tuple[str, ...] = ()


class Changes(Record, frozen=True):
    """All steps of a matrix, and under which error rate they were looked for."""

    schema: int
    method: str
    error: str
    alpha: float
    margin: float
    tests: int
    rounds: int
    rounds_confirming: int
    changes: tuple[Change, ...]


class Summary(Record, frozen=True):
    schema: int
    control: str
    builds: tuple[Build, ...]
    figures: tuple[Figure, ...]


def is_matrix(path: Path) -> bool:
    return (path / MATRIX).is_file()
