"""Which builds are installed, and how does one get there? A folder each: whole, checked and told of, or not there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rig.browsers.find import Browser, BrowserMissing, find, identify, sha256_of
from rig.browsers.names import UNVERSIONED, Wanted, newest, order
from rig.browsers.providers import PROVIDERS, client, named, whole
from rig.records import Name, Record, decode

TOLD = "build.json"
DRIVER = "libvk_swiftshader.so"
"""The software driver that a build brings beside its executable."""


class Installed(Record, frozen=True):
    """A build in the cache. `executable`: its path within the folder; `driver_sha256`: of the software driver beside
    it, empty where there is none.
    """

    name: Name
    provider: Name
    version: Name
    executable: Name
    flavour: Name
    reports: Name
    sha256: Name
    driver_sha256: str

    @property
    def wanted(self) -> Wanted:
        return named(self.name)


def root() -> Path:
    """RIG_BROWSERS, or the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("RIG_BROWSERS") or cache / "rig" / "browsers")


def installed() -> list[Installed]:
    """All of them, by provider and version."""
    found = []
    for told in root().glob(f"*/{TOLD}"):
        if told.parent.name.startswith("."):
            continue  # not whole yet, or no more
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found.append(decode(told.read_bytes(), Installed))
    return sorted(found, key=lambda one: (one.provider, order(one.version), one.name))


def build(wanted: Wanted) -> Browser:
    """The build, installed where it is not yet. BrowserMissing where it can't be had or does not run."""
    if wanted.provider == "path":
        return find(wanted.version)
    if wanted.provider == "playwright":
        return _by_playwright()
    if wanted.provider in UNVERSIONED:
        return find(wanted.provider)
    one = install(wanted)
    return identify(root() / one.wanted.folder / one.executable)


def _by_playwright() -> Browser:
    """The build that this version of Playwright is made for, fetched by its own client unless it is there."""
    with _locked("playwright"):
        with contextlib.suppress(BrowserMissing):
            return find("playwright")
        client(sys.executable, "-m", "playwright", "install", "--only-shell", "chromium")
        return find("playwright")


def install(wanted: Wanted) -> Installed:
    """Fetches a build into the cache, unless it is there. BrowserMissing as providers say it; and where the build that
    came reports another version than was asked for.

    One at a time for each build, by a lock; a folder gets its name only when all is in it.
    """
    exact = _exact(wanted)
    with _locked(exact.folder):
        have = next((one for one in installed() if one.name == str(exact)), None)
        if have is not None:
            return have
        partial = root() / f".{exact.folder}.partial"
        partial.mkdir(exist_ok=True)
        fetch = PROVIDERS[exact.provider].fetch
        executable = _swapped(exact, partial) if exact.driver else fetch(exact.version, partial)
        browser = identify(executable)
        if not PROVIDERS[exact.provider].fits(exact.version, browser.version):
            shutil.rmtree(partial)
            raise BrowserMissing(f"{exact} reports version {browser.version}")
        one = Installed(
            name=str(exact),
            provider=exact.provider,
            version=exact.version,
            executable=str(executable.relative_to(partial)),
            flavour=browser.flavour,
            reports=browser.version,
            sha256=browser.sha256,
            driver_sha256=driver_sha256(executable),
        )
        (partial / TOLD).write_bytes(msgspec.json.format(msgspec.json.encode(one), indent=1) + b"\n")
        shutil.rmtree(root() / exact.folder, ignore_errors=True)  # what lies there can't be read, or it would be known
        partial.rename(root() / exact.folder)
        return one


def remove(wanted: Wanted) -> list[str]:
    """Takes every installed build away that `wanted` names, and returns their names. BrowserMissing: there is none."""
    names = [one.name for one in installed() if _names(wanted, one.wanted)]
    if not names:
        raise BrowserMissing(f"{wanted} is not installed; rig browsers list tells what is")
    for name in names:
        folder = named(name).folder
        with _locked(folder):
            # out of the list at once: what is half removed must not look whole
            gone = root() / f".{folder}.removed"
            shutil.rmtree(gone, ignore_errors=True)
            shutil.rmtree((root() / folder).rename(gone))
    return names


def known(wanted: Wanted) -> Installed | None:
    """The newest installed build that `wanted` names; None where there is none."""
    fitting = [one for one in installed() if _names(wanted, one.wanted)]
    return max(fitting, key=lambda one: order(one.version), default=None)


def _names(wanted: Wanted, have: Wanted) -> bool:
    """Whether a name, whose versions may be beginnings of versions, is that of an installed build."""
    if wanted.provider != have.provider or not newest(wanted.version, [have.version]):
        return False
    if wanted.driver is None or have.driver is None:
        return wanted.driver is have.driver
    return _names(wanted.driver, have.driver)


def driver_sha256(executable: Path) -> str:
    """Hash of the software driver beside an executable; empty where there is none."""
    driver = executable.resolve().parent / DRIVER
    return sha256_of(driver) if driver.is_file() else ""


def _exact(wanted: Wanted) -> Wanted:
    """With whole versions."""
    if wanted.provider not in PROVIDERS:
        raise BrowserMissing(f"{wanted} is not a build that can be installed")
    had = [one.version for one in installed() if one.provider == wanted.provider]
    version = whole(wanted.provider, wanted.version, had)
    return Wanted(wanted.provider, version, _exact(wanted.driver) if wanted.driver else None)


def _swapped(wanted: Wanted, folder: Path) -> Path:
    """A build's files, with another's software driver in the place of its own."""
    assert wanted.driver is not None
    own, other = (install(one) for one in (Wanted(wanted.provider, wanted.version), wanted.driver))
    source, driver = (root() / one.wanted.folder / one.executable for one in (own, other))
    for name, executable in ((own.name, source), (other.name, driver)):
        if not (executable.parent / DRIVER).is_file():
            raise BrowserMissing(f"{name} has no software driver of its own")
    shutil.rmtree(folder)
    # the executable finds what belongs to it beside itself, wherever a link to it may lie: it must be a file here
    shutil.copytree(source.parent, folder, copy_function=os.link)
    (folder / TOLD).unlink(missing_ok=True)
    (folder / DRIVER).unlink()
    shutil.copy2(driver.parent / DRIVER, folder / DRIVER)
    return folder / source.name


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    root().mkdir(parents=True, exist_ok=True)
    with (root() / f".{folder}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
