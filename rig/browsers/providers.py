"""Where do builds of Chromium come from? Each provider asks its own client, which knows its own archive or registry."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import brotli
import msgspec

from rig.browsers.find import SHELL, BrowserMissing
from rig.browsers.names import Wanted, major, newest, order, parse

CLIENT_LIMIT_S = 600.0
CHUNK_BYTES = 1 << 20
FULL = "chromium"


class Provider(Protocol):
    """`fetch` leaves in `folder` the executable and what it needs beside it, and returns the executable's path there.
    What it finds there of an earlier attempt it goes on with. Both raise BrowserMissing, in one line.
    """

    def versions(self) -> list[str]:
        """All that can be had, oldest first."""

    def fetch(self, version: str, folder: Path) -> Path: ...

    def fits(self, version: str, reported: str) -> bool:
        """Whether a browser that reports such a version is what this provider calls `version`."""


class Debian:
    """Debian's packages, unpacked without being installed. apt checks their signed hashes. A package is named as the
    executable in it.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def versions(self) -> list[str]:
        return sorted({v.partition("-")[0] for v in self._packaged()}, key=order)

    def fetch(self, version: str, folder: Path) -> Path:
        packaged = next((v for v in self._packaged() if v.partition("-")[0] == version), "")
        if not packaged:
            have = ", ".join(self.versions()) or "none; apt-get update brings its lists"
            raise BrowserMissing(f"{self._package} {version} is not in Debian's archive any more (there is {have})")
        for package in (self._package, "chromium-common"):
            if not list(folder.glob(f"{package}_*.deb")):
                client("apt-get", "download", f"{package}={packaged}", at=folder)
        for archive in sorted(folder.glob("*.deb")):
            try:
                client("dpkg-deb", "-x", str(archive), "unpacked", at=folder)
            finally:
                archive.unlink()  # a broken one must be fetched again
        return folder / "unpacked/usr/lib/chromium" / self._package

    def fits(self, version: str, reported: str) -> bool:
        return reported == version

    def _packaged(self) -> list[str]:
        """Debian's own version strings, newest first."""
        rows = client("apt-cache", "madison", self._package).splitlines()
        return [fields[1].strip() for fields in (row.split("|") for row in rows) if len(fields) == 3]


class Npm:
    """A headless shell for Linux, packed with Brotli in an npm package. npm checks its integrity hash."""

    package = "@sparticuz/chromium"

    def versions(self) -> list[str]:
        listed = json.loads(_npm("view", self.package, "versions", "--json") or "[]")
        return sorted((v for v in listed if re.fullmatch(r"[\d.]+", v) and order(v) >= (113,)), key=order)

    def fetch(self, version: str, folder: Path) -> Path:
        packed = folder / f"{self.package.strip('@').replace('/', '-')}-{version}.tgz"
        if not packed.is_file():
            partial = folder / "downloading"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _npm("pack", "--silent", f"{self.package}@{version}", at=partial)
            (partial / packed.name).rename(packed)
            partial.rmdir()
        client("tar", "-xzf", packed.name, at=folder)
        binaries = folder / "package" / "bin"
        executable = folder / SHELL
        _unbrotli(binaries / "chromium.br", executable)
        executable.chmod(0o755)
        libraries = folder / "swiftshader.tar"
        _unbrotli(binaries / "swiftshader.tar.br", libraries)
        client("tar", "-xf", libraries.name, at=folder)
        libraries.unlink()
        packed.unlink()
        shutil.rmtree(folder / "package")
        return executable

    def fits(self, version: str, reported: str) -> bool:
        """The package has numbers of its own, of which only the first is Chromium's."""
        return major(reported) == major(version)


class _Download(msgspec.Struct):
    platform: str
    url: str


class _Entry(msgspec.Struct):
    version: str
    downloads: dict[str, list[_Download]]


class _Listed(msgspec.Struct):
    versions: list[_Entry]


class ChromeForTesting:
    """Chrome for Testing, by its list of known good versions; RIG_CFT_LIST names another list."""

    LIST = "https://googlechromelabs.github.io/chrome-for-testing/known-good-versions-with-downloads.json"

    def versions(self) -> list[str]:
        return sorted((v for v in self._listed() if order(v) >= (113,)), key=order)

    def fetch(self, version: str, folder: Path) -> Path:
        downloads = self._listed().get(version)
        if downloads is None:
            raise BrowserMissing(f"Chrome for Testing has no version {version}")
        for kind in ("chrome-headless-shell", "chrome"):
            url = next((one.url for one in downloads.get(kind, ()) if one.platform == "linux64"), "")
            if url:
                packed = _download(url, folder / f"{kind}.zip")
                break
        else:
            raise BrowserMissing(f"Chrome for Testing {version} has no download for linux64")
        try:
            with zipfile.ZipFile(packed) as archive:
                if damaged := archive.testzip():
                    raise zipfile.BadZipFile(f"{damaged} is damaged")
                for entry in archive.infolist():
                    made = Path(archive.extract(entry, folder))
                    if entry.external_attr >> 16 & 0o111 and made.is_file():
                        made.chmod(0o755)
        except zipfile.BadZipFile as error:
            packed.unlink()
            raise BrowserMissing(f"{url}: {error}") from None
        packed.unlink()
        return folder / f"{kind}-linux64" / kind

    def fits(self, version: str, reported: str) -> bool:
        return reported == version

    def _listed(self) -> dict[str, dict[str, list[_Download]]]:
        url = os.environ.get("RIG_CFT_LIST", self.LIST)
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                listed = msgspec.json.decode(answer.read(), type=_Listed)
        except (OSError, ValueError) as error:
            raise BrowserMissing(
                f"the list of Chrome for Testing, {url}: {error} (RIG_CFT_LIST names another)"
            ) from None
        return {entry.version: entry.downloads for entry in listed.versions}


PROVIDERS: dict[str, Provider] = {
    "debian": Debian(SHELL),
    "debian-full": Debian(FULL),
    "npm": Npm(),
    "cft": ChromeForTesting(),
}
"""By what a build's name begins with. `debian-full`: the browser with a window, which a GPU's driver may want."""


def named(text: str) -> Wanted:
    """The build that `text` names. UnknownBuild: none."""
    return parse(text, tuple(PROVIDERS))


def whole(provider: str, version: str, had: Sequence[str]) -> str:
    """The newest version of which `version` is the beginning: of those already `had`, else of those that can be had."""
    known = newest(version, had)
    if known:
        return known
    offered = PROVIDERS[provider].versions()
    found = newest(version, offered)
    if not found:
        near = sorted(offered, key=lambda one: abs(major(one) - major(version)))[:4]
        told = ", ".join(sorted(near, key=order)) or "nothing"
        raise BrowserMissing(f"{provider} has no version {version} (the nearest: {told})")
    return found


def client(*command: str, at: Path | None = None) -> str:
    """What a command says on stdout. BrowserMissing where it is absent or fails."""
    try:
        done = subprocess.run(command, cwd=at, capture_output=True, timeout=CLIENT_LIMIT_S, check=False)
    except FileNotFoundError:
        raise BrowserMissing(f"there is no {command[0]} here, which this build is fetched with") from None
    except subprocess.TimeoutExpired:
        raise BrowserMissing(f"{' '.join(command)}: no end in {CLIENT_LIMIT_S:g} s") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit {done.returncode}"]
        telling = [line for line in said if line.startswith(("E:", "npm error", "npm ERR")) and "code" not in line]
        raise BrowserMissing(f"{' '.join(command[:3])}: {(telling or said)[0]}")
    return done.stdout.decode("utf-8", "replace")


def _npm(*words: str, at: Path | None = None) -> str:
    """npm of the PATH, or of the Python environment that the rig is installed in."""
    beside = Path(sys.executable).parent / "npm"
    return client(shutil.which("npm") or (str(beside) if beside.is_file() else "npm"), *words, at=at)


def _unbrotli(packed: Path, to: Path) -> None:
    unpacker = brotli.Decompressor()
    try:
        with packed.open("rb") as source, to.open("wb") as target:
            while chunk := source.read(CHUNK_BYTES):
                target.write(unpacker.process(chunk))
    except (OSError, brotli.error) as error:
        raise BrowserMissing(f"{packed}: {error}") from None


def _download(url: str, to: Path) -> Path:
    """The file at `url`, gone on with where an earlier attempt broke off. BrowserMissing: it does not come whole."""
    partial = to.with_suffix(".partial")
    have = partial.stat().st_size if partial.is_file() else 0
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(request, timeout=60) as answer:
            goes_on = answer.status == 206
            wanted = int(answer.headers.get("Content-Length", 0)) + (have if goes_on else 0)
            with partial.open("ab" if goes_on else "wb") as file:
                shutil.copyfileobj(answer, file, CHUNK_BYTES)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # nothing is left to be sent
            raise BrowserMissing(f"{url}: {error}") from None
        wanted = have
    except (OSError, ValueError) as error:
        raise BrowserMissing(f"{url}: {error}; what has come is kept") from None
    size = partial.stat().st_size
    if size < wanted:
        raise BrowserMissing(f"{url}: broke off at {size:,} of {wanted:,} bytes; what has come is kept")
    return partial.rename(to)
