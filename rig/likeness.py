"""Are these runs of one kind, and in what do their surroundings differ?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rig.frames import Run
from rig.records import Adapter, Build, Launch, Manifest, Outcome, Record, canonical


class Difference(Record, frozen=True):
    """Something of the surroundings that two runs may differ in and still be compared: it is what one compares."""

    what: str
    baseline: str
    candidate: str


def good(run: Run) -> list[Launch]:
    """Launches that count."""
    return [launch for launch in run.launches if launch.outcome is Outcome.ok]


def unlike(a: Run, b: Run) -> list[str]:
    """Why figures of the two runs are not of the same thing, each reason with both sides; empty where they are.
    Executors beside the main one are compared where both runs have them.
    """
    both = [name for name in a.also if name in b.also]
    pairs = [(a.main, b.main), *((a.of(name), b.of(name)) for name in both)]
    return [*machines(a, b), *(reason for pair in pairs for reason in _unlike(*pair))]


def _unlike(a: Run, b: Run) -> list[str]:
    found = [*_mixed("A", a), *_mixed("B", b)]
    ours, theirs = _adapters(a), _adapters(b)
    if ours.keys() != theirs.keys():
        found.append(_apart(list(ours.values()), list(theirs.values())))
    return found + _elements_apart(elements(a), elements(b))


def machines(a: Run, b: Run) -> list[str]:
    """Whether two machines differ in what decides about their speed."""
    ours, theirs = (f"{run.manifest.host.cpu}, {run.manifest.host.cores} cores" for run in (a, b))
    return [f"machines: {ours} against {theirs}"] if ours != theirs else []


def plan(manifest: Manifest) -> dict[str, Any]:
    """A plan with every option of its experiments by its place, `sequential.blocks`."""
    profile = dict(manifest.plan.profile)
    options = profile.pop("options", {})
    spelled = {f"{name}.{key}": value for name, given in options.items() for key, value in given.items()}
    return {**profile, **spelled, "adapter asked for": manifest.plan.adapter_asked}


def environment(a: Run, b: Run) -> list[Difference]:
    """In what the surroundings differ: browser, effective flags, rig, system, plan."""
    facts, other_facts, flags, other_flags = _facts(a), _facts(b), _flags(a), _flags(b)
    found = [
        Difference(what=what, baseline=facts[what], candidate=other_facts[what])
        for what in facts
        if facts[what] != other_facts[what]
    ]
    removed, added = ([flag for flag in x if flag not in y] for x, y in ((flags, other_flags), (other_flags, flags)))
    if removed or added:
        found.append(Difference(what="flags", baseline=" ".join(removed), candidate=" ".join(added)))
    elif flags != other_flags:
        found.append(Difference(what="order of flags", baseline=" ".join(flags), candidate=" ".join(other_flags)))
    left, right = plan(a.manifest), plan(b.manifest)
    return found + [
        Difference(what=name, baseline=_option(left.get(name)), candidate=_option(right.get(name)))
        for name in dict.fromkeys([*left, *right])
        if left.get(name) != right.get(name)
    ]


def _option(value: object) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


# --- adapters and builds -----------------------------------------------------------------------------------------


def named(adapter: Adapter) -> str:
    """Label and class in one line."""
    return f"{adapter.label}, {'software' if adapter.is_fallback else 'hardware'}"


def _identity(adapter: Adapter) -> tuple[object, ...]:
    """What makes it this adapter. One without a name is known by its limits alone: two of them must not be taken for
    one and the same.
    """
    names = (adapter.vendor, adapter.architecture, adapter.device)
    limits = () if any((*names, adapter.description)) else tuple(sorted(adapter.limits.items()))
    return (*names, adapter.driver, adapter.is_fallback, limits)


def _adapters(run: Run) -> Mapping[tuple[object, ...], Adapter]:
    return {_identity(launch.adapter): launch.adapter for launch in good(run) if launch.adapter is not None}


def _apart(ours: list[Adapter], theirs: list[Adapter]) -> str:
    """One line about two different sets of adapters."""
    left, right = (", ".join(named(adapter) for adapter in side) or "none" for side in (ours, theirs))
    if left != right:
        return f"adapters: {left} against {right}"
    name, one, other = next(
        (name, str(ours[0].limits.get(name)), str(theirs[0].limits.get(name)))
        for name in sorted({*ours[0].limits, *theirs[0].limits})
        if ours[0].limits.get(name) != theirs[0].limits.get(name)
    )
    return f"adapters: {left}, with {name} {one} against {other}"


def _mixed(side: str, run: Run) -> list[str]:
    """Whether the launches of one run are of several adapters or builds: then its figures are of neither."""
    builds = {f"{build.version}, {build.sha256[:12]}" for build in _builds(good(run))}
    found = [f"{side} mixes builds: {' and '.join(sorted(builds))}"] if len(builds) > 1 else []
    adapters = _adapters(run).values()
    if len(adapters) > 1:
        found.append(f"{side} mixes adapters: {' and '.join(named(adapter) for adapter in adapters)}")
    return found


def _builds(launches: Iterable[Launch]) -> list[Build]:
    return [launch.build for launch in launches if launch.build is not None]


# --- surroundings ------------------------------------------------------------------------------------------------


def _facts(run: Run) -> dict[str, str]:
    manifest, builds = run.manifest, _builds(good(run.main))

    def of_builds(field: str) -> str:
        return ", ".join(dict.fromkeys(str(getattr(build, field)) for build in builds))

    return {
        "executors beside it": ", ".join(
            dict.fromkeys(f"{b.flavour} {b.version}" for n in run.also for b in _builds(good(run.of(n))))
        ),
        "browser": of_builds("flavour"),
        "browser version": of_builds("version"),
        "executable hash": of_builds("sha256"),
        "driver version": of_builds("driver_version"),
        "rig version": manifest.rig.version,
        "rig source hash": manifest.rig.source_hash,
        "system": manifest.host.system,
        "python": manifest.host.python,
        "memory": f"{manifest.host.memory_bytes} bytes",
        "container": str(manifest.host.container).lower(),
    }


def _flags(run: Run) -> list[str]:
    """Effective flags of the main arm. Of a list (`--enable-features=a,b`) each item is told apart."""
    builds = _builds(launch for launch in good(run.main) if not launch.arm)
    return [part for flag in (builds[0].flags if builds else ()) for part in _parts(flag)]


def _parts(flag: str) -> list[str]:
    name, equals, value = flag.partition("=")
    return [f"{name}={item}" for item in value.split(",")] if equals else [flag]


# --- cells -------------------------------------------------------------------------------------------------------


def elements(run: Run) -> dict[tuple[str, str], dict[str, bytes]]:
    """What the figures of each experiment and policy are of: by its name, each program with its policy in full."""
    found: dict[tuple[str, str], dict[str, bytes]] = {}
    for experiment, key in run.samples[["experiment", "cell"]].drop_duplicates().itertuples(index=False):
        cell = run.cells[key]
        content = canonical([cell.program, cell.policy])
        found.setdefault((str(experiment), cell.policy.name), {})[cell.program.name] = content
    return found


def _elements_apart(
    ours: Mapping[tuple[str, str], Mapping[str, bytes]], theirs: Mapping[tuple[str, str], Mapping[str, bytes]]
) -> list[str]:
    """Where one figure's key stands for different programs or policies. One side may have more of them."""
    found = []
    for place in sorted(ours.keys() & theirs.keys()):
        left, right = ours[place], theirs[place]
        common = sorted(left.keys() & right.keys())
        where = ", ".join(place)
        if not common:
            found.append(f"{where}: program {', '.join(sorted(left))} against {', '.join(sorted(right))}")
        found += [
            f"{where}: {name} of A is not {name} of B, {_first_difference(left[name], right[name])}"
            for name in common
            if left[name] != right[name]
        ]
    return found


def _first_difference(ours: bytes, theirs: bytes) -> str:
    """Which field of a program or policy it is, with both values where they are short."""
    for left, right in zip(msgspec.json.decode(ours), msgspec.json.decode(theirs), strict=True):
        for field in sorted({*left, *right}):
            one, other = (str(side.get(field, "its default")) for side in (left, right))
            if one != other:
                return f"{field} {one} against {other}" if len(one + other) < 80 else f"{field} differs"
    return "in their order"
