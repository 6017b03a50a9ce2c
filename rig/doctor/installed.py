"""Is what the rig starts there and whole: Python's packages, the driver's Node, the browser and its libraries?"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from rig.browsers import find
from rig.browsers.find import Browser, BrowserMissing
from rig.browsers.flags import AdapterAsked
from rig.doctor.around import Around
from rig.doctor.finding import Finding, State
from rig.executors import native
from rig.executors.native import NativeMissing

PACKAGES = (
    "altair",
    "jinja2",
    "msgspec",
    "numpy",
    "pandas",
    "playwright",
    "psutil",
    "scipy",
    "typer",
    "vl-convert-python",
)
"""What the rig needs to run."""

OLDEST_PYTHON = (3, 11)

DEBIAN = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-dri3.so.0": "libxcb-dri3-0",
    "libxcb-present.so.0": "libxcb-present0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libXext.so.6": "libxext6",
    "libEGL.so.1": "libegl1",
    "libvulkan.so.1": "libvulkan1",
    "libatomic.so.1": "libatomic1",
    "libnss3.so": "libnss3",
    "libnspr4.so": "libnspr4",
    "libexpat.so.1": "libexpat1",
    "libgbm.so.1": "libgbm1",
    "libasound.so.2": "libasound2",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libdbus-1.so.3": "libdbus-1-3",
}
"""Debian's package of a library."""


def install(libraries: list[str]) -> str:
    """The command that brings libraries, as far as it is known, and how to find the rest."""
    known = sorted({DEBIAN[name] for name in libraries if name in DEBIAN})
    unknown = [name for name in libraries if name not in DEBIAN]
    steps = [f"apt-get install {' '.join(known)}"] if known else []
    if unknown:
        steps.append(f"install what brings {', '.join(unknown)} (Debian: apt-file search NAME)")
    return "; ".join(steps)


def python(version: tuple[int, ...], installed: dict[str, str]) -> Finding:
    """The interpreter and the packages, by version."""
    text = f"{'.'.join(map(str, version))}"
    if version[:2] < OLDEST_PYTHON:
        return Finding("Python", State.wrong, f"{text} is too old", "make the environment with Python 3.11 or newer")
    missing = [name for name in PACKAGES if name not in installed]
    if missing:
        mend = f"pip install {' '.join(missing)}, or ./do setup"
        return Finding("Python", State.wrong, f"{text}, without {', '.join(missing)}", mend)
    return Finding("Python", State.fine, f"{text}; {', '.join(f'{name} {installed[name]}' for name in PACKAGES)}")


def python_here() -> Finding:
    """The same, of the process that asks."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return python(tuple(map(int, re.findall(r"\d+", platform.python_version())[:3])), installed)


def libraries(link: str, executable: Path, around: Around) -> Finding | None:
    """Shared libraries that an executable asks for and that are not there. None where there is nobody to ask."""
    said = around.said(("ldd", str(executable)))
    if said is None:
        return None
    missing = sorted(set(re.findall(r"^\s*(\S+) => not found", said, re.MULTILINE)))
    if missing:
        return Finding(link, State.wrong, f"{executable.name} lacks {', '.join(missing)}", install(missing))
    return Finding(link, State.fine, f"all {said.count('=>')} of {executable.name} are there")


def browser(wanted: str, around: Around, *, windowed: bool = False) -> Iterator[Finding | Browser]:
    """The executable and its libraries; the browser itself last, where there is one."""
    try:
        found = find.find(wanted, windowed=windowed)
    except BrowserMissing as error:
        yield _no_browser(str(error))
        return
    yield Finding("browser", State.fine, f"{found.path}, version {found.version}, sha256 {found.sha256[:16]}")
    told = libraries("libraries", found.path, around)
    if told is not None:
        yield told
    yield found


def beside() -> Finding:
    """The executors without a browser: a run needs none of them, and can say what each lacks."""
    told = []
    for name in native.EXECUTORS:
        try:
            told.append(native.executor(name, AdapterAsked.any).build_id.partition(" sha256:")[0])
        except NativeMissing as missing:
            told.append(f"no {name} ({missing})")
    return Finding("executors beside it", State.fine, "; ".join(told))


def _no_browser(why: str) -> Finding:
    library = re.search(r"error while loading shared libraries: ([^:\s]+)", why)
    if library:
        return Finding("libraries", State.wrong, why, install([library[1]]))
    if "--version: exit" in why or "does not start" in why:
        return Finding("browser", State.wrong, why, "install it again, or name another one with --browser PATH")
    mend = "apt-get install chromium-headless-shell, or name one with --browser PATH"
    return Finding("browser", State.wrong, why, mend)
