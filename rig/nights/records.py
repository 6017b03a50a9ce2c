"""What a night is on disk, and what it is to be."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from rig import config
from rig.browsers.flags import AdapterAsked
from rig.matrix.records import Ratio
from rig.records import Name, Record, decode

NIGHT, NIGHTS, PAGE, FOLDER, LOCK = "night.json", "nights.json", "index.html", "nights", ".lock"


class Config(Record, frozen=True):
    """`builds` and `control` as `rig matrix` takes them; `sets`: overrides of the profile; `folder`: where the nights
    go, relative to the file that says so. `accept`: ids of nights that were worse, or lost a build, and are as good as
    any to be compared with from then on.
    """

    builds: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    folder: Name
    budget_min: Annotated[float, msgspec.Meta(gt=0, le=1440)]
    control: str = ""
    profile: Name = "matrix"
    adapter: AdapterAsked = AdapterAsked.any
    sets: tuple[Name, ...] = ()
    accept: tuple[Name, ...] = ()


class State(StrEnum):
    """`first`: nothing to compare with; `apart`: the last good night had another adapter, machine, control or plan, or
    no cost in common; `lost`: a build that had figures has none.
    """

    fine = "fine"
    worse = "worse"
    first = "first"
    apart = "apart"
    lost = "lost"
    invalid = "invalid"


class Shift(Record, frozen=True):
    """A figure of one build against the last good night. `ratio` is that of the costs, each over its own night's
    control where there is one; of the rounds that looked again where there are such, else, and in `found`, of the
    search. `worse`, `better`: significant by Holm, beyond the margin, and so again in rounds of its own.
    """

    build: Name
    metric: Name
    unit: str
    before: float
    after: float
    ratio: Ratio
    found: Ratio
    p: float
    worse: bool = False
    better: bool = False
    p_confirmed: float | None = None


class Slot(Record, frozen=True):
    """A build of a night: what it reports, or why it has no figures."""

    name: Name
    version: str
    sha256: str
    driver_sha256: str = ""
    why: str = ""


class Night(Record, frozen=True):
    """One night. `compared_with`: the id of the last good night before it; `exit`: the code that it ended with."""

    schema: int
    id: Name
    started: str
    ended: str
    state: State
    exit: int
    why: str
    compared_with: str
    error: str
    environment: tuple[str, ...]
    builds: tuple[Slot, ...]
    lost: tuple[str, ...]
    shifts: tuple[Shift, ...]
    steps: int
    accepted: bool = False

    @property
    def good(self) -> bool:
        """Whether later nights are compared with it: a regression stays one until it is gone, or accepted."""
        return self.accepted or self.state in (State.fine, State.first, State.apart)


def load(path: Path) -> Config:
    """A night's plan, from TOML. ProfileError, in one line that names the place."""
    return config.convert(config.read_toml(path, str(path)), Config, str(path))


def stored(folder: Path, accept: Sequence[str] = ()) -> list[Night]:
    """Every night of a folder, oldest first; one that can't be read is none. `accept`: ids, as the plan has them."""
    found = []
    for path in sorted((folder / FOLDER).glob(f"*/{NIGHT}")):
        try:
            night = decode(path.read_bytes(), Night)
            accepted = night.id in accept and night.state is not State.invalid
            found.append(msgspec.structs.replace(night, accepted=accepted))
        except (OSError, msgspec.DecodeError):
            continue
    return found


def last_good(nights: Sequence[Night]) -> Night | None:
    """The latest that others may be compared with."""
    return next((night for night in reversed(nights) if night.good), None)
