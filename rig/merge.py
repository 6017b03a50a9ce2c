"""Several runs of one plan as one run: more launches, and so narrower intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from rig import frames, likeness, store
from rig.frames import Run
from rig.measure import render
from rig.records import Launch, Manifest, canonical

FREE = ("budget_s", "seed")
"""What the profiles may differ in: how long each run took, and in which random order."""


def merge(out: Path, places: Sequence[Path]) -> Manifest:
    """Joins the runs at `places` into the new run `out`, launches and rounds numbered through in the order given.

    StoreError where they are not of one plan, machine, rig, build and adapter, or share a launch.
    """
    if len(places) < 2:
        raise store.StoreError("a merge takes two runs or more")
    runs = [frames.read(place) for place in places]
    for place, run in zip(places[1:], runs[1:], strict=True):
        if why := _apart(runs[0], run):
            raise store.StoreError(f"{places[0]} and {place} can't be joined: {why}")
    _no_launch_twice(places, runs)
    if out.is_dir() and any(out.iterdir()):
        raise store.StoreError(f"{out} is not empty")
    manifest = _joined([run.manifest for run in runs])
    with store.Writer(out) as writer:
        writer.manifest(manifest)
        writer.cells(runs[0].cells.values())
        launches = rounds = 0
        for place, run in zip(places, runs, strict=True):
            samples = store.read_samples(place)
            for sample in samples:
                writer.sample(msgspec.structs.replace(sample, launch=sample.launch + launches))
            for launch in run.launches:
                writer.launch(
                    msgspec.structs.replace(launch, launch=launch.launch + launches, round=launch.round + rounds)
                )
            numbers = {launch.launch for launch in run.launches} | {sample.launch for sample in samples}
            launches += 1 + max(numbers, default=-1)
            rounds += 1 + max((one.round for one in run.launches), default=-1)
    render(out)
    return manifest


def _joined(manifests: Sequence[Manifest]) -> Manifest:
    """The first one's plan, with the budgets added up; every command that led to the launches is kept."""
    first = manifests[0]
    budget_s = sum(float(one.plan.profile["budget_s"]) for one in manifests)
    return msgspec.structs.replace(
        first,
        plan=msgspec.structs.replace(first.plan, profile=first.plan.profile | {"budget_s": budget_s}),
        started=min(one.started for one in manifests),
        ended=max(one.ended for one in manifests),
        finished=all(one.finished for one in manifests),
        why=f"joined from {len(manifests)} runs: {'; '.join(one.why for one in manifests)}",
        resumed=tuple(when for one in manifests for when in one.resumed),
        joined=tuple(command for one in manifests for command in one.joined or (one.command,)),
    )


# --- what can't be joined ----------------------------------------------------------------------------------------


def _apart(a: Run, b: Run) -> str:
    """Why two runs are not of one plan made under the same conditions, or nothing."""
    if machines := likeness.machines(a, b):
        return machines[0]
    ours, theirs = a.manifest.rig, b.manifest.rig
    if ours != theirs:
        return f"rigs: source {ours.source_hash} against {theirs.source_hash}"
    if why := _plans_apart(a.manifest, b.manifest):
        return why
    builds = _by_arm(a, lambda launch: launch.build), _by_arm(b, lambda launch: launch.build)
    if why := _records_apart("builds", *builds):
        return why
    adapters = [_by_arm(run, lambda launch: launch.adapter.itself if launch.adapter else None) for run in (a, b)]
    if why := _records_apart("adapters", adapters[0], adapters[1]):
        return why
    if apart := sorted(a.cells.keys() ^ b.cells.keys()):
        return f"{len(apart)} cells are in one of them alone, first {apart[0]}"
    return ""


def _plans_apart(ours: Manifest, theirs: Manifest) -> str:
    left, right = (
        {name: value for name, value in likeness.plan(one).items() if name not in FREE} for one in (ours, theirs)
    )
    place = next((name for name in sorted({*left, *right}) if left.get(name) != right.get(name)), None)
    return f"plans: {place} {left.get(place)} against {right.get(place)}" if place else ""


def _by_arm(run: Run, what: Callable[[Launch], msgspec.Struct | None]) -> dict[str, dict[bytes, msgspec.Struct]]:
    """The different records that the launches of each executor and arm have, by their JSON."""
    found: dict[str, dict[bytes, msgspec.Struct]] = {}
    for launch in run.launches:
        record = what(launch)
        if record is not None:
            found.setdefault(f"{launch.executor} {launch.arm}", {})[canonical(record)] = record
    return found


def _records_apart(
    kind: str, ours: dict[str, dict[bytes, msgspec.Struct]], theirs: dict[str, dict[bytes, msgspec.Struct]]
) -> str:
    """Names the first field that differs, with both its values."""
    for arm in sorted(ours.keys() & theirs.keys()):
        if ours[arm].keys() != theirs[arm].keys():
            left, right = (next(iter(side[arm].values())) for side in (ours, theirs))
            for field in left.__struct_fields__:
                one, other = getattr(left, field), getattr(right, field)
                if one != other:
                    return f"{kind}: {field} {_short(one)} against {_short(other)}"
            return f"{kind}: one of them has several"
    return ""


def _short(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _no_launch_twice(places: Sequence[Path], runs: Sequence[Run]) -> None:
    """StoreError where a launch would count twice: scatter would be taken for less than it is."""
    seen: dict[bytes, Path] = {}
    for place, run in zip(places, runs, strict=True):
        for launch in run.launches:
            itself = canonical(msgspec.structs.replace(launch, launch=0, round=0))
            if itself in seen:
                raise store.StoreError(f"launch {launch.launch} of {place} is in {seen[itself]} already")
            seen[itself] = place
