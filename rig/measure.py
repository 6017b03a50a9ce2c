"""One run from start to report: everything between the command line and the rooms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgspec

from rig import __version__, analysis, assets, config, frames, host, store
from rig.browsers.flags import AdapterAsked
from rig.config import Profile
from rig.executors.base import Executor
from rig.records import SCHEMA, Adapter, Launch, Manifest, Plan, Rig, Summary, plain
from rig.report import page
from rig.runner import AdapterRefused, NoResult, Runner, now


class Exit(IntEnum):
    """The contract's exit codes."""

    fine = 0
    worse = 1
    usage = 2
    no_result = 3
    imprecise = 4
    software_refused = 5


def measure(
    profile: Profile,
    executor: Executor,
    out: Path,
    command: Sequence[str],
    *,
    beside: Sequence[Executor] = (),
    asked: AdapterAsked = AdapterAsked.any,
    demand_precision: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Exit, str]:
    """Runs `profile` into `out`; returns the exit code and why, in one line.

    However it ends, what was measured is kept.
    StoreError where `out` can't be written; KeyboardInterrupt passes through once the run is stored.
    """
    with store.Writer(out) as writer:
        manifest = begun(profile, asked, command)
        return _carry_out(writer, manifest, profile, (executor, *beside), (), demand_precision, progress)


def begun(profile: Profile, asked: AdapterAsked, command: Sequence[str]) -> Manifest:
    """The manifest of a run that begins now."""
    return Manifest(
        schema=SCHEMA,
        rig=Rig(version=__version__, source_hash=assets.source_hash()),
        plan=Plan(profile=_plain(profile), seed=profile.seed, adapter_asked=asked),
        command=tuple(command),
        host=host.describe(),
        started=now(),
        ended="",
        finished=False,
        why="still running",
    )


def resume(
    out: Path,
    executor: Executor,
    *,
    beside: Sequence[Executor] = (),
    demand_precision: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Exit, str]:
    """Goes on with the run at `out` to the end of its own plan; returns as `measure` does. A precision that its command
    demanded is still demanded.

    StoreError where it can't be gone on with: it ended, is still running, or another rig, build or host made it.
    """
    manifest, launches = store.read_manifest(out), store.read_launches(out)
    if manifest.finished:
        raise store.StoreError(f"{out} is finished: {manifest.why}")
    here = host.describe()
    if (here.cpu, here.cores) != (manifest.host.cpu, manifest.host.cores):
        raise store.StoreError(f"{out} is of another machine: {manifest.host.cpu}, {manifest.host.cores} cores")
    if manifest.rig.source_hash != assets.source_hash():
        raise store.StoreError(f"{out} was made by another rig, source {manifest.rig.source_hash}")
    profile = config.resolve(manifest.plan.profile, str(out / store.MANIFEST))
    demand_precision = demand_precision or any(word.startswith("--precision") for word in manifest.command)
    with store.Writer(out, again=True) as writer:
        again = msgspec.structs.replace(manifest, resumed=(*manifest.resumed, now()), why="still running")
        return _carry_out(writer, again, profile, (executor, *beside), launches, demand_precision, progress)


def _carry_out(
    writer: store.Writer,
    manifest: Manifest,
    profile: Profile,
    executors: Sequence[Executor],
    earlier: Sequence[Launch],
    demand_precision: bool,
    progress: Callable[[str], None],
) -> tuple[Exit, str]:
    out = writer.path
    asked = AdapterAsked(manifest.plan.adapter_asked)
    samples = store.read_samples(out)
    numbers = [*(sample.launch for sample in samples), *(launch.launch for launch in earlier)]
    runner = Runner(
        profile,
        executors[0],
        writer,
        beside=executors[1:],
        satisfied=lambda: not analysis.imprecise(analysis.summarise(frames.read(out)), profile.precision or 1.0),
        accept=lambda name, adapter: accept(adapter, asked, [one for one in earlier if one.executor == name]),
        progress=progress,
        earlier=earlier,
        number=1 + max(numbers, default=-1),
    )
    if (earlier or samples) and set(runner.keys()) != set(store.read_cells(out)):
        builds = ", ".join(one.build_id for one in executors)
        raise store.StoreError(f"{out} has other cells: another build or other flags made it, not {builds}")
    writer.manifest(manifest)
    code, finished, why = Exit.no_result, False, "interrupted"
    try:
        why = runner.run()
        code, finished = Exit.fine, True
    except NoResult as error:
        why = str(error)
        if asked is AdapterAsked.hardware and error.no_adapter:
            code = Exit.software_refused
    except AdapterRefused as error:
        code, why = Exit.software_refused, str(error)
    finally:
        writer.manifest(msgspec.structs.replace(manifest, ended=now(), finished=finished, why=why))
        summary = render(out)
    if code is Exit.fine:
        return judge(summary, profile.precision if demand_precision else None) or (code, why)
    return code, why


def render(run: Path) -> Summary:
    """Computes summary.json and report.html of a stored run again. StoreError where the run is not whole."""
    stored = frames.read(run)
    summary = analysis.summarise(stored)
    store.write_summary(run / store.SUMMARY, summary)
    store.write_text(run / store.REPORT, page.render(stored, summary))
    return summary


def judge(summary: Summary, precision: float | None) -> tuple[Exit, str] | None:
    """The exit code that a finished run earns otherwise than fine, and why; None where all is well."""
    if not any(metric.value is not None for metric in summary.metrics):
        reason = summary.metrics[0].reason if summary.metrics else "no experiment"
        return Exit.no_result, f"nothing could be measured: {reason}"
    missing = analysis.missing(summary)
    if missing:
        return Exit.no_result, f"{len(missing)} figures have no value, first {missing[0].key}: {missing[0].reason}"
    if precision is not None and not analysis.per_dispatch(summary):
        return Exit.imprecise, f"±{100 * precision:g} % was demanded and no per-dispatch figure was measured"
    wide = analysis.imprecise(summary, precision) if precision is not None else []
    if precision is not None and wide:
        first = f"first {wide[0].key}, {wide[0].reason or f'±{100 * (wide[0].half_width or 0):.1f} %'}"
        return Exit.imprecise, f"±{100 * precision:g} % was demanded and {len(wide)} figures miss it, {first}"
    return None


def accept(adapter: Adapter, asked: AdapterAsked, earlier: Sequence[Launch] = ()) -> None:
    """AdapterRefused where it is not what was asked for, or not what `earlier` launches of its executor had."""
    if asked is AdapterAsked.hardware and adapter.is_fallback:
        raise AdapterRefused(f"asked for hardware, got the software adapter {adapter.label}")
    if asked is AdapterAsked.software and not adapter.is_fallback:
        raise AdapterRefused(f"asked for the software adapter, got {adapter.label}")
    before = next((launch.adapter for launch in earlier if launch.adapter is not None), None)
    if before is not None and (before.label, before.renderer) != (adapter.label, adapter.renderer):
        raise AdapterRefused(f"the run was begun on {before.label}, this is {adapter.label}")


def _plain(profile: Profile) -> dict[str, Any]:
    data = plain(profile)
    assert isinstance(data, dict)
    return data
