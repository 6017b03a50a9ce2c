"""The command line: verbs, progress, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from rig import __version__, cli_browsers, cli_matrix, config, doctor, frames, store
from rig.browsers import cache, find, names
from rig.browsers import flags as browser_flags
from rig.browsers.flags import AdapterAsked
from rig.browsers.providers import PROVIDERS, named
from rig.compare import MARGIN, ComparisonVerdict, NothingToCompare, Unlike, told
from rig.compare import compare as compare_runs
from rig.console import err, fail, out, progress
from rig.executors import native
from rig.executors.chromium import ChromiumExecutor
from rig.executors.native import NativeExecutor
from rig.experiments import REGISTRY
from rig.export import export as export_run
from rig.matrix import records as matrix_records
from rig.measure import Exit, measure, render, resume
from rig.merge import merge as merge_runs
from rig.publish import publish as publish_run
from rig.records import encode
from rig.report import findings

app = typer.Typer(
    help="What a WebGPU dispatch costs in a real browser, and how sure that is.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(cli_browsers.app, name="browsers")
app.command()(cli_matrix.matrix)
app.command()(cli_matrix.nightly)

Browser = Annotated[
    str, typer.Option("--browser", help="A path, 'system', 'playwright', or a build: npm:131.", metavar="NAME|PATH")
]
Adapter = Annotated[AdapterAsked, typer.Option("--adapter", help="Which adapter to ask for.")]
Hardware = Annotated[bool, typer.Option("--require-hardware", help="Same as --adapter hardware: exit 5 without a GPU.")]
Flags = Annotated[list[str] | None, typer.Option("--flag", help="One more flag for the browser.", metavar="FLAG")]


def main() -> None:
    """The entry point of the command `rig`."""
    for stream in (sys.stdout, sys.stderr):
        # An adapter may have any name; the locale must not decide whether it can be printed.
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    # what stops a container is as good a reason to store what there is as what stops a terminal
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


@app.command()
def run(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Which experiments; all of the profile's if none.")
    ] = None,
    profile: Annotated[str, typer.Option(help="A profile's name, or a TOML file.", metavar="NAME|FILE")] = "quick",
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override, e.g. sequential.blocks=5.", metavar="K=V")
    ] = None,
    also: Annotated[
        str, typer.Option(help="Executors that take turns with the browser: wgpu, dawn, cuda.", metavar="NAME,...")
    ] = "",
    browser: Browser = "",
    adapter: Adapter = AdapterAsked.any,
    require_hardware: Hardware = False,
    precision: Annotated[float | None, typer.Option(help="Relative half-interval demanded: exit 4 if missed.")] = None,
    flag: Flags = None,
    program: Annotated[
        Path | None, typer.Option(help="Run this program (JSON, see docs/programs.md) instead.", metavar="FILE")
    ] = None,
    resume_: Annotated[
        Path | None, typer.Option("--resume", help="Go on with a run that ended early.", metavar="RUN")
    ] = None,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Where the run goes; default runs/<UTC>-<profile>.")
    ] = None,
    replace: Annotated[bool, typer.Option(help="A run already at --out is kept beside it, as OUT.previous.")] = False,
) -> None:
    """Measure, and write a run with its report."""
    asked = browser_flags.settled(AdapterAsked.hardware if require_hardware else adapter)
    if require_hardware and adapter is AdapterAsked.software:
        raise fail(Exit.usage, "--require-hardware and --adapter software exclude each other")
    wrong = next((word for word in flag or () if not word.startswith("--")), None)
    if wrong is not None:
        raise fail(Exit.usage, f"--flag {wrong}: a browser's flag begins with --")
    flags, demanded = tuple(flag or ()), precision is not None
    if resume_ is not None:
        if experiments or sets or program or out_ or replace or also:
            raise fail(Exit.usage, "--resume goes on with the run's own plan, in its own place")
        try:
            plan = store.read_manifest(resume_).plan
        except store.StoreError as error:
            raise fail(Exit.usage, str(error)) from None
        begun_with = AdapterAsked(plan.adapter_asked)
        with closing(_chromium(browser, begun_with, flags)) as executor:
            beside = _beside(plan.profile.get("also") or (), begun_with, executor)
            work = partial(resume, resume_, executor, beside=beside, demand_precision=demanded, progress=progress)
            _carry_out(work, executor, resume_)
        return
    try:
        overrides = [*(sets or []), *([f"precision={precision}"] if precision is not None else [])]
        overrides += [f"also={json.dumps([name.strip() for name in also.split(',')])}"] if also else []
        if program is not None and experiments:
            raise config.ProfileError("--program is an experiment of its own: no other can be named beside it")
        chosen = config.load(profile, ["program"] if program else experiments or (), overrides, program)
        place = out_ or Path(os.environ.get("RIG_RUNS", "runs")) / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{chosen.name}"
    except config.ProfileError as error:
        raise fail(Exit.usage, str(error)) from None
    with closing(_chromium(browser, asked, flags)) as executor:
        beside = _beside(chosen.also, asked, executor)

        def in_its_place() -> tuple[Exit, str]:
            # only now, when nothing is missing any more: what was asked for wrongly must move nothing
            _make_room(place, replace)
            return measure(
                *(chosen, executor, place, ("rig", *sys.argv[1:])),
                beside=beside,
                asked=asked,
                demand_precision=demanded,
                progress=progress,
            )

        _carry_out(in_its_place, executor, place)


@app.command()
def report(run: Annotated[Path, typer.Argument(help="A run directory.")]) -> None:
    """Compute a stored run's (or matrix') figures and page again; no browser needed."""
    try:
        if matrix_records.is_matrix(run):
            cli_matrix.tell(run)
            return
        render(run)
    except (store.StoreError, config.ProfileError) as error:
        raise fail(Exit.usage, str(error)) from None
    _tell(run)


@app.command()
def publish(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    name: Annotated[str, typer.Argument(help="Its name under reports/.")],
    to: Annotated[Path, typer.Option(help="Where published runs live.")] = Path("reports"),
) -> None:
    """Copy a run, its samples packed, to reports/NAME: at most 3 MB, fit to be committed."""
    try:
        if Path(name).name != name:
            raise store.StoreError(f"'{name}' is no name for a published run")
        place = publish_run(run, to / name)
    except (store.StoreError, config.ProfileError) as error:
        raise fail(Exit.usage, str(error)) from None
    out.print(escape(f"published: {place}"))


@app.command()
def compare(
    baseline: Annotated[Path, typer.Argument(help="The run to compare with.")],
    candidate: Annotated[Path, typer.Argument(help="The run that may be worse.")],
    margin: Annotated[float, typer.Option(help="A change smaller than this fraction does not matter.")] = MARGIN,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Figures whose name begins so; all if none.", metavar="NAME")
    ] = None,
    unlike: Annotated[
        bool, typer.Option("--unlike", help="Compare other machines, adapters or programs all the same.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout instead of the table.")] = False,
) -> None:
    """Tell which figures of a run are worse than a baseline's: exit 1 if any is."""
    if not 0 < margin < 1:
        raise fail(Exit.usage, f"--margin {margin:g} is not between 0 and 1")
    try:
        both = (frames.read(baseline), frames.read(candidate))
        names = (str(baseline), str(candidate))
        found = compare_runs(*both, margin=margin, only=only or (), unlike=unlike, names=names)
    except (store.StoreError, config.ProfileError) as error:
        raise fail(Exit.usage, str(error)) from None
    except Unlike as error:
        raise fail(Exit.usage, f"not alike (--unlike compares them all the same): {error}") from None
    except NothingToCompare as error:
        raise fail(Exit.no_result, str(error)) from None
    typer.echo(encode(found).decode() if as_json else "\n".join(told(found)))
    if worse := found.having(ComparisonVerdict.worse):
        raise fail(Exit.worse, f"worse than the baseline: {len(worse)}, first {worse[0].key}")
    if found.lost:
        raise fail(Exit.no_result, f"failed in B alone: {len(found.lost)}, first {found.lost[0]}")


@app.command()
def merge(
    to: Annotated[Path, typer.Argument(help="Where the joined run goes: a new or empty folder.", metavar="OUT")],
    runs: Annotated[list[Path], typer.Argument(help="Runs of one plan, two or more.")],
) -> None:
    """Join runs of one plan, machine, build and adapter into one with all their launches."""
    try:
        merge_runs(to, runs)
    except (store.StoreError, config.ProfileError) as error:
        raise fail(Exit.usage, str(error)) from None
    _tell(to)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    to: Annotated[Path | None, typer.Option("--out", help="Where the files go; default RUN/csv.")] = None,
) -> None:
    """Write a run's samples, metrics and launches as CSV."""
    try:
        for place in export_run(run, to):
            out.print(escape(str(place)))
    except (store.StoreError, config.ProfileError) as error:
        raise fail(Exit.usage, str(error)) from None


@app.command("doctor")
def doctor_(
    browser: Browser = "",
    adapter: Adapter = AdapterAsked.any,
    require_hardware: Hardware = False,
    flag: Flags = None,
    json: Annotated[bool, typer.Option("--json", help="Findings and cause as one line of JSON.")] = False,
) -> None:
    """Examine the chain from Python to the GPU's timer, link by link."""
    asked = browser_flags.settled(AdapterAsked.hardware if require_hardware else adapter)
    diagnosis = doctor.examine(browser, asked, tuple(flag or ()))
    if json:
        out.out(diagnosis.json().decode())
    for finding in () if json else diagnosis.findings:
        mend = f"; to mend it: {finding.mend}" if finding.mend else ""
        out.print(escape(f"{finding.state:5}  {finding.link}: {finding.found}{mend}"))
    cause = diagnosis.cause
    if cause is None:
        return
    mend = f"; to mend it: {cause.mend}" if cause.mend else ""
    why = f"the cause is {cause.link}: {cause.found}{mend}"
    if diagnosis.software_refused:
        raise fail(Exit.software_refused, f"no hardware adapter; {why}")
    raise fail(Exit.no_result, why)


@app.command()
def experiments() -> None:
    """List the experiments."""
    for experiment in REGISTRY.values():
        out.print(escape(f"{experiment.id:12} {experiment.line}"))


@app.command()
def profiles() -> None:
    """List the profiles that come with the rig."""
    for name in config.names():
        profile = config.load(name)
        out.print(escape(f"{name:12} {profile.budget_s:g} s: {', '.join(profile.experiments)}"))


@app.command()
def version() -> None:
    """Print the version."""
    out.print(__version__)


def _carry_out(work: Callable[[], tuple[Exit, str]], executor: ChromiumExecutor, place: Path) -> None:
    """Measures into `place`, tells what was found, and exits as the run earns."""
    try:
        code, why = work()
    except (store.StoreError, config.ProfileError) as error:
        raise fail(Exit.usage, str(error)) from None
    except KeyboardInterrupt:
        raise fail(Exit.no_result, f"interrupted; what was measured is in {place}, --resume goes on with it") from None
    _tell(place)
    if code is Exit.software_refused:
        why += _diagnosed(executor)
    if code is not Exit.fine:
        raise fail(code, why)
    err.print(escape(f"finished: {why}"))


def _diagnosed(executor: ChromiumExecutor) -> str:
    """Why there is no GPU, as the doctor sees it."""
    cause = doctor.examine(str(executor.browser.path), AdapterAsked.hardware).cause
    return f"; the cause is {cause.link}: {cause.found}; to mend it: {cause.mend}" if cause else ""


def _chromium(browser: str, asked: AdapterAsked, extra: tuple[str, ...]) -> ChromiumExecutor:
    try:
        found = _found(browser, windowed=browser_flags.windowed(browser_flags.flags(asked, extra)))
        return ChromiumExecutor(found, browser_flags.flags(asked, extra, version=found.version))
    except (find.BrowserMissing, names.UnknownBuild) as error:
        raise fail(Exit.no_result, str(error)) from None


def _found(browser: str, *, windowed: bool) -> find.Browser:
    """By path or place, or by the name of a build, which is installed where it is not yet."""
    if names.is_named(browser, tuple(PROVIDERS)):
        return cache.build(named(browser))
    return find.find(browser, windowed=windowed)


def _beside(executors: Sequence[str], asked: AdapterAsked, main: ChromiumExecutor) -> list[NativeExecutor]:
    """The executors beside the browser, as far as they are known and installed."""
    unknown = next((name for name in executors if name not in native.EXECUTORS), None)
    if unknown is not None:
        raise fail(Exit.usage, f"--also {unknown}: there are {', '.join(native.EXECUTORS)}")
    try:
        return [native.executor(name, asked, main.browser.path) for name in executors]
    except native.NativeMissing as error:
        raise fail(Exit.no_result, str(error)) from None


def _make_room(place: Path, replace: bool) -> None:
    """Moves a run that is already at `place` aside, if told to."""
    if not replace or not store.is_run(place):
        return
    if store.in_use(place):
        raise store.StoreError(f"{place} is still being written by another run")
    previous = place.with_name(place.name + ".previous")
    try:
        shutil.rmtree(previous, ignore_errors=True)
        place.rename(previous)
    except OSError as error:
        raise store.StoreError(f"can't move {place} aside: {error.strerror or error}") from None


def _tell(run: Path) -> None:
    stored = frames.read(run)
    for sentence in (*findings.banners(stored), *findings.headline(store.read_summary(run))):
        out.print(escape(sentence))
    out.print(escape(f"adapter: {findings.adapter_line(stored)}"))
    out.print(escape(f"report: {run / store.REPORT}"))
