"""The verbs that measure many builds: `rig matrix`, and `rig nightly` that does so every night."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.markup import escape

from rig import config, store
from rig.browsers import names
from rig.browsers.flags import AdapterAsked, settled
from rig.browsers.providers import named
from rig.cli_browsers import Names, expanded
from rig.console import err, fail, out, progress
from rig.matrix import page, records
from rig.matrix.rounds import Measuring
from rig.measure import Exit
from rig.nights import night
from rig.nights import records as night_records
from rig.runner import NoResult


def matrix(
    builds: Names,
    control: Annotated[str, typer.Option(help="A build that is in every round, and that all are set against.")] = "",
    profile: Annotated[str, typer.Option(help="A profile's name, or a TOML file.", metavar="NAME|FILE")] = "matrix",
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override, e.g. launches.looks=[8].", metavar="K=V")
    ] = None,
    adapter: Annotated[AdapterAsked, typer.Option(help="Which adapter to ask for.")] = AdapterAsked.any,
    explain: Annotated[bool, typer.Option(help="Look into confirmed steps: with drivers swapped, and traced.")] = True,
    out_: Annotated[Path, typer.Option("--out", help="Where the matrix goes: a new or empty folder.")] = Path("matrix"),
) -> None:
    """Measure builds of Chromium in turn, round after round; find the steps between them, and look at those again."""
    try:
        chosen = config.load(profile, (), sets or ())
        pinned = named(control) if control else None
    except (config.ProfileError, names.UnknownBuild) as error:
        raise fail(Exit.usage, str(error)) from None
    wanted = expanded(builds)
    asked = _one_adapter(adapter)
    if out_.exists() and not (out_.is_dir() and not any(out_.iterdir())):
        raise fail(Exit.usage, f"{out_} is no new or empty folder; a matrix is begun anew, in a folder of its own")
    measuring = Measuring(out_, chosen, asked, ("rig", *sys.argv[1:]), progress, explain=explain)
    try:
        found = measuring.run(wanted, pinned)
    except store.StoreError as error:
        raise fail(Exit.usage, str(error)) from None
    except NoResult as error:
        page.render(out_)
        raise fail(Exit.no_result, str(error)) from None
    except KeyboardInterrupt:
        page.render(out_)
        raise fail(Exit.no_result, f"interrupted; what was measured is in {out_ / records.PAGE}") from None
    tell(out_)
    if not found.finished:
        raise fail(Exit.no_result, found.why)
    err.print(escape(f"finished: {found.why}"))


def _one_adapter(asked: AdapterAsked) -> AdapterAsked:
    """The adapter that all builds are asked for: where there is no GPU the software one, and none by falling back."""
    on_here = settled(asked)
    return AdapterAsked.software if on_here is AdapterAsked.any else on_here


def tell(place: Path) -> None:
    """Computes a stored matrix' figures, steps and page, and says what they are."""
    for line in page.render(place):
        out.print(escape(line))
    out.print(escape(f"page: {place / records.PAGE}"))


def nightly(
    plan: Annotated[
        Path,
        typer.Argument(help="Builds, control, profile, budget_min and folder.", metavar="CONFIG.toml"),
    ],
) -> None:
    """Measure tonight's matrix inside its budget, and compare it with the last good night: exit 1 if one is worse."""
    try:
        asked_for = night_records.load(plan)
        night.profile_of(asked_for)
        pinned = named(asked_for.control) if asked_for.control else None
    except (config.ProfileError, names.UnknownBuild) as error:
        raise fail(Exit.usage, str(error)) from None
    folder = plan.parent / asked_for.folder
    wanted = expanded(list(asked_for.builds))
    asked_for = msgspec.structs.replace(asked_for, adapter=_one_adapter(asked_for.adapter))
    try:
        found = night.measure(asked_for, folder, wanted, pinned, ("rig", *sys.argv[1:]), progress)
    except store.StoreError as error:
        raise fail(Exit.usage, str(error)) from None
    except KeyboardInterrupt:
        raise fail(Exit.no_result, f"interrupted; what was measured is in {folder}") from None
    out.print(escape(f"night {found.id}: {found.state}; {found.why}"))
    out.print(escape(f"index: {folder / night_records.PAGE}"))
    if found.exit:
        raise fail(Exit(found.exit), found.why)
