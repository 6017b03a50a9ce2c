"""The verbs of `rig browsers`: which builds are here, and how more get here."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from rig.browsers import cache, find, names
from rig.browsers.providers import PROVIDERS, named
from rig.console import fail, out, progress
from rig.measure import Exit
from rig.records import encode

app = typer.Typer(help="Builds of Chromium: installed beside each other, each by its name.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(help="debian:156.0.8078.114, npm:143, npm:113..153/3, cft:131.")]


@app.command("list")
def list_(
    available: Annotated[
        str, typer.Option(help="Ask this provider which versions it has.", metavar="|".join(PROVIDERS))
    ] = "",
) -> None:
    """List what is installed, or with --available what could be."""
    if available:
        if available not in PROVIDERS:
            raise fail(Exit.usage, f"no provider '{available}' (there are {', '.join(PROVIDERS)})")
        try:
            versions = PROVIDERS[available].versions()
        except find.BrowserMissing as error:
            raise fail(Exit.no_result, str(error)) from None
        for version in versions:
            out.print(escape(f"{available}:{version}"))
        return
    have = cache.installed()
    for one in have:
        out.print(escape(f"{one.name:34} {one.flavour} {one.reports} sha256:{one.sha256[:16]}"))
    if not have:
        progress(f"nothing is installed in {cache.root()}; rig browsers install npm:143 brings one")


@app.command()
def install(builds: Names) -> None:
    """Fetch builds into the cache; what is there already stays as it is. Exit 3 if any can't be had."""
    missing = 0
    for wanted in expanded(builds):
        try:
            browser = cache.build(wanted)
            progress(f"{wanted}: {browser.id}, {browser.path}")
        except find.BrowserMissing as error:
            missing += 1
            progress(f"{wanted}: {error}")
    if missing:
        raise fail(Exit.no_result, f"{missing} of the builds can't be had")


@app.command()
def show(build: Annotated[str, typer.Argument(help="A build's name.")]) -> None:
    """What is known of an installed build, or of one that is here anyway, as JSON; exit 3 if it is not here."""
    wanted = parsed(build)
    if wanted.provider in PROVIDERS:
        if (one := cache.known(wanted)) is None:
            raise fail(Exit.no_result, f"{build} is not installed (rig browsers install {build})")
        out.out(encode(one).decode())
        return
    try:
        here = find.find(wanted.version or wanted.provider)
    except find.BrowserMissing as error:
        raise fail(Exit.no_result, str(error)) from None
    told = {"name": build, "executable": str(here.path), "flavour": here.flavour, "reports": here.version}
    out.out(encode({**told, "sha256": here.sha256}).decode())


@app.command()
def remove(builds: Annotated[list[str], typer.Argument(help="Names of installed builds.")]) -> None:
    """Take builds out of the cache."""
    for build in builds:
        try:
            for name in cache.remove(parsed(build)):
                progress(f"removed: {name}")
        except find.BrowserMissing as error:
            raise fail(Exit.no_result, str(error)) from None


def expanded(builds: list[str]) -> list[names.Wanted]:
    """The builds that `builds` name, ranges spelled out. Exits where one names none, or a provider does not answer."""
    try:
        return names.expand(builds, tuple(PROVIDERS), lambda provider: PROVIDERS[provider].versions())
    except names.UnknownBuild as error:
        raise fail(Exit.usage, str(error)) from None
    except find.BrowserMissing as error:
        raise fail(Exit.no_result, str(error)) from None


def parsed(build: str) -> names.Wanted:
    """The build that `build` names. Exits where it names none."""
    try:
        return named(build)
    except names.UnknownBuild as error:
        raise fail(Exit.usage, str(error)) from None
