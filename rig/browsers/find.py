"""Which Chromium is there, and exactly which build is it?"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from rig.browsers import flags

# Debian's own commands are shell scripts around these; the executable itself is what is hashed and started.
SYSTEM_PLACES = (
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib/chromium/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
SHELL = "chromium-headless-shell"
SYSTEM_COMMANDS = (SHELL, "chromium", "chromium-browser", "google-chrome", "chrome")


VERSION_LIMIT_S = 20.0
_VERSION = re.compile(r"\d+\.\d+\.\d+\.\d+")
_DEVTOOLS = re.compile(r"DevTools listening on ws://([^/]+)/")


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
        if windowed and headless_only(path):
            raise BrowserMissing(f"{path} is a headless shell, and this GPU's driver needs a browser with a window")
        return identify(path)
    places = []
    if wanted != "playwright":
        places += _system()
    if wanted != "system":
        places += _playwright()
    for place in places:
        if place.is_file() and not (windowed and headless_only(place)):
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
    """Version as the executable itself reports it, and its bytes' hash. BrowserMissing where it does not start."""
    version, refusal = _told(path)
    version = version or _asked(path)
    if not version:
        raise BrowserMissing(refusal)
    stat = path.stat()
    stamp = (stat.st_size, stat.st_mtime_ns)
    return Browser(path=path, flavour=path.name, version=version, sha256=sha256_of(path), stamp=stamp)


def _told(path: Path) -> tuple[str, str]:
    """Version by `--version`, or nothing and why there is none: old headless shells don't know the option."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=VERSION_LIMIT_S, check=False)
    except OSError as error:
        raise BrowserMissing(f"browser {path} does not start: {error}") from None
    except subprocess.TimeoutExpired as error:
        return "", f"browser {path} does not start: {error}"
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    version = _VERSION.search(said)
    if done.returncode != 0 or version is None:
        first = said.splitlines()[0] if said else "no output"
        return "", f"browser {path} --version: exit {done.returncode}, {first}"
    return version[0], ""


def _asked(path: Path) -> str:
    """Version by the browser's own DevTools, of a short run of it; nothing where it does not tell."""
    in_sandbox, _ = flags.sandbox()
    words = [str(path), "--headless", "--disable-gpu", "--remote-debugging-port=0", *flags.QUIET, "about:blank"]
    words += [] if in_sandbox else ["--no-sandbox"]
    with tempfile.TemporaryDirectory(prefix="rig-version-", ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [*words, f"--user-data-dir={home}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            return _by_devtools(process)
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _by_devtools(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)
    said, deadline = "", time.monotonic() + VERSION_LIMIT_S
    while time.monotonic() < deadline:
        said += (process.stderr.read() or b"").decode("utf-8", "replace")
        if door := _DEVTOOLS.search(said):
            with urllib.request.urlopen(f"http://{door[1]}/json/version", timeout=VERSION_LIMIT_S) as answer:
                version = _VERSION.search(str(json.load(answer).get("Browser", "")))
            return version[0] if version is not None else ""
        if process.poll() is not None:
            break
        time.sleep(0.05)
    return ""


def headless_only(path: Path) -> bool:
    """Whether an executable, by its name, can have no window."""
    return "headless" in path.name


def _existing(wanted: str) -> Path:
    path = Path(shutil.which(wanted) or wanted)
    try:
        there = path.is_file()
    except OSError as error:
        raise BrowserMissing(f"no browser at {wanted}: {error.strerror}") from None
    if not there:
        raise BrowserMissing(f"no browser at {wanted} (a path, 'system' or 'playwright' would do)")
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


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
