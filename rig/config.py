"""A profile, from TOML and from --set, as validated frozen records. Each bad value gets one line with its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from rig.experiments import REGISTRY
from rig.experiments.base import Options
from rig.gates import Effects
from rig.records import Name, Positive, Record

T = TypeVar("T")

_PROFILES = Path(__file__).resolve().parent / "profiles"


class ProfileError(Exception):
    """What is wrong with a profile, in one line that names the place."""


class Launches(Record, frozen=True):
    """`looks`: launch counts after which the run may stop."""

    looks: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]


class Profile(Record, frozen=True):
    """`precision`: relative half-interval aimed at; without it the budget decides. `options`: by experiment id.

    `gates`: what is done where a launch is disturbed. `also`: executors whose launches take turns with the browser's;
    `also_experiments`: those that they run, all if none is named.
    """

    name: Name
    seed: Annotated[int, msgspec.Meta(ge=0)]
    budget_s: Annotated[float, msgspec.Meta(gt=0, lt=1e7)]
    launches: Launches
    experiments: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    precision: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    gates: Effects = Effects()
    also: tuple[Name, ...] = ()
    also_experiments: tuple[Name, ...] = ()
    options: dict[str, Any] = msgspec.field(default_factory=dict)


def names() -> list[str]:
    """The profiles that come with the rig."""
    return sorted(path.stem for path in _PROFILES.glob("*.toml"))


def load(
    profile: str, experiments: Iterable[str] = (), sets: Iterable[str] = (), program: Path | None = None
) -> Profile:
    """The profile named `profile` (or the TOML file at that path) with its overrides.

    `experiments` replaces the profile's own list; each of `sets` is `key=value` or `experiment.key=value`, the value in
    TOML (a bare word is taken as a string). `program`: a file with the program of the experiment `program`.
    ProfileError on anything unknown or out of range.
    """
    path = _find(profile)
    data = read_toml(path, f"profile {path}")
    for assignment in sets:
        _assign(data, assignment)
    if experiments := list(experiments):
        data["experiments"] = experiments
    if program is not None:
        data.setdefault("program", {})["program"] = _program(program)
    return resolve(data, str(profile))


def resolve(data: dict[str, Any], where: str) -> Profile:
    """A profile from plain data, the options of all its experiments spelled out."""
    head = {key: value for key, value in data.items() if key not in REGISTRY and key != "options"}
    spelled = data.get("options", {})
    if not isinstance(spelled, dict):
        raise ProfileError(f"profile {where}: options: not a table")
    given = spelled | {key: value for key, value in data.items() if key in REGISTRY}
    profile = convert(head, Profile, f"profile {where}")
    looks = profile.launches.looks
    if list(looks) != sorted(set(looks)):
        raise ProfileError(f"profile {where}: launches.looks: {list(looks)} does not rise")
    for name in (*profile.experiments, *profile.also_experiments, *given):
        if name not in REGISTRY:
            raise ProfileError(f"profile {where}: unknown experiment '{name}' (there are {', '.join(REGISTRY)})")
    if all(REGISTRY[name].in_every_block for name in profile.experiments):
        raise ProfileError(
            f"profile {where}: {', '.join(profile.experiments)} has no blocks of its own: name another too"
        )
    if len(set(profile.also)) != len(profile.also):
        raise ProfileError(f"profile {where}: also: {list(profile.also)} names one twice")
    options = {
        name: convert(given.get(name, {}), REGISTRY[name].options, f"profile {where}: {name}")
        for name in dict.fromkeys(profile.experiments)
    }
    for name, value in options.items():
        try:
            REGISTRY[name].cells(value)
        except ValueError as error:
            raise ProfileError(f"profile {where}: {name}: {error}") from None
    return msgspec.structs.replace(profile, experiments=tuple(options), options=options)


def options(profile: Profile, experiment: str) -> Options:
    """The options of one experiment of a resolved profile."""
    value = profile.options[experiment]
    assert isinstance(value, Options)
    return value


def beside(profile: Profile, experiment: str) -> bool:
    """Whether executors beside the browser run this experiment."""
    named = not profile.also_experiments or experiment in profile.also_experiments
    return named and REGISTRY[experiment].everywhere(options(profile, experiment))


def _find(profile: str) -> Path:
    if profile in names():
        return _PROFILES / f"{profile}.toml"
    if Path(profile).is_file():
        return Path(profile)
    raise ProfileError(f"no profile '{profile}': neither a file nor one of {', '.join(names())}")


def _program(path: Path) -> dict[str, Any]:
    """A program's JSON as plain data. A kernel's `wgsl_file`, beside it, stands for its `wgsl`."""
    try:
        data = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        for kernel in data.get("kernels", []):
            if "wgsl_file" in kernel:
                kernel["wgsl"] = (path.parent / kernel.pop("wgsl_file")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, msgspec.DecodeError, TypeError) as error:
        raise ProfileError(f"program {path}: {error}") from None
    return data


def _assign(data: dict[str, Any], assignment: str) -> None:
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise ProfileError(f"--set {assignment}: not of the form key=value")
    *tables, last = key.strip().split(".")
    for table in tables:
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise ProfileError(f"--set {assignment}: {table} is not a table")
    try:
        data[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        data[last] = text


def read_toml(path: Path, where: str) -> dict[str, Any]:
    """A TOML file as plain data. ProfileError where it can't be read, beginning with `where`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{where}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{where}: {error}") from None


def convert(data: object, kind: type[T], where: str) -> T:
    """Plain data as a record. ProfileError on what is not valid, with its place in `where`."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        place = re.sub(r"^`?\$\.?|`$", "", place)
        if "unknown field" in what and not place and issubclass(kind, msgspec.Struct):
            what += f" (there are {', '.join(one.encode_name for one in msgspec.structs.fields(kind))})"
        raise ProfileError(f"{where}: {place + ': ' if place else ''}{what}") from None
