"""Which Chromium is there, and exactly which build is it?"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Debian's own commands are shell scripts around these; the executable itself is what is hashed and started.
SYSTEM_PLACES = (
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib/chromium/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
SYSTEM_COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")


class BrowserMissing(Exception):
    """No browser where one was looked for; the message is one line and says where that was and what to do."""


@dataclass(frozen=True)
class Browser:
    """One executable: `flavour` is its file name, `version` what it reports, `sha256` the hash of its bytes."""

    path: Path
    flavour: str
    version: str
    sha256: str
    stamp: tuple[int, int]
    """Size in bytes and time of change in ns of the file that was hashed."""

    @property
    def id(self) -> str:
        return f"{self.flavour} {self.version} sha256:{self.sha256[:16]}"


def find(wanted: str = "", *, windowed: bool = False) -> Browser:
    """The browser `wanted`: a path, `system`, `playwright`, or nothing, which tries RIG_BROWSER, system, Playwright's.
    `windowed`: one that can have a window, as a headless shell can't.

    BrowserMissing: none is there, or it does not start.
    """
    wanted = wanted or os.environ.get("RIG_BROWSER", "")
    if wanted not in ("", "system", "playwright"):
        path = _existing(wanted)
        if windowed and _headless_only(path):
            raise BrowserMissing(f"{path} is a headless shell, and this GPU's driver needs a browser with a window")
        return identify(path)
    places = []
    if wanted != "playwright":
        places += _system()
    if wanted != "system":
        places += _playwright()
    for place in places:
        if place.is_file() and not (windowed and _headless_only(place)):
            return identify(place)
    looked = ", ".join(str(place) for place in places) or "no known place"
    kind, package, shell = "", "chromium-headless-shell", " --only-shell"
    if windowed:
        kind, package, shell = "that can have a window ", "chromium", ""
    raise BrowserMissing(
        f"no Chromium {kind}found (looked for: {looked}); install one (Debian: apt-get install {package}; "
        f"elsewhere: playwright install chromium{shell}) or name one with --browser PATH"
    )


def identify(path: Path) -> Browser:
    """Version as reported by `--version`, and the hash of the executable. BrowserMissing where it does not start."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BrowserMissing(f"browser {path} does not start: {error}") from None
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    version = re.search(r"\d+\.\d+\.\d+\.\d+", said)
    if done.returncode != 0 or version is None:
        first = said.splitlines()[0] if said else "no output"
        raise BrowserMissing(f"browser {path} --version: exit {done.returncode}, {first}")
    stat = path.stat()
    stamp = (stat.st_size, stat.st_mtime_ns)
    return Browser(path=path, flavour=path.name, version=version[0], sha256=_sha256(path), stamp=stamp)


def _headless_only(path: Path) -> bool:
    return "headless" in path.name


def _existing(wanted: str) -> Path:
    path = Path(shutil.which(wanted) or wanted)
    if not path.is_file():
        raise BrowserMissing(f"no browser at {wanted} (--browser takes a path, 'system' or 'playwright')")
    real = Path("/usr/lib/chromium") / path.name
    return real if str(path).startswith("/usr/bin/") and real.is_file() else path


def _system() -> list[Path]:
    commands = (shutil.which(name) for name in SYSTEM_COMMANDS)
    return [Path(place) for place in SYSTEM_PLACES] + [Path(found) for found in commands if found]


def _playwright() -> list[Path]:
    """Playwright's own downloads, newest first; headless shells before full browsers."""
    cache = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or {
        "darwin": "~/Library/Caches/ms-playwright",
        "win32": "~/AppData/Local/ms-playwright",
    }.get(sys.platform, "~/.cache/ms-playwright")
    names = {"headless_shell", "chrome-headless-shell", "chrome", "chrome.exe", "Chromium", "chrome-headless-shell.exe"}
    found = [p for p in Path(cache).expanduser().glob("chromium*/**/*") if p.name in names and os.access(p, os.X_OK)]
    return sorted(found, key=lambda p: ("headless" not in str(p), -int((re.findall(r"-(\d+)/", str(p)) or ["0"])[0])))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
