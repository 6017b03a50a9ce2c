"""Can Vulkan find a driver: the loader, the drivers' files, the variables that replace them, what a driver opens?

The search paths are those of the Vulkan loader (LoaderDriverInterface.md, "Driver Discovery").
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rig.doctor.around import Around
from rig.doctor.finding import Finding, State, wrong_if
from rig.doctor.installed import install

LOADER = "libvulkan.so.1"

VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES")
"""Variables that name drivers' files; the first two replace the search, the older name is heeded without the newer."""

NVIDIA_OPENS = (
    *("libX11-xcb.so.1", "libxcb-dri3.so.0", "libxcb-present.so.0", "libxcb-sync.so.1"),
    *("libxcb-xfixes.so.0", "libxcb-randr.so.0", "libXext.so.6", "libEGL.so.1"),
)
"""Libraries that NVIDIA's Vulkan driver opens by name: without one of them Vulkan has no NVIDIA device."""


@dataclass(frozen=True)
class Driver:
    """A driver's file and what is wrong with it, if something is."""

    file: Path
    library: str
    fault: str = ""

    @property
    def nvidia(self) -> bool:
        return "nvidia" in f"{self.file.name} {self.library}".lower()


def loader(around: Around, executable: Path | None, needed: bool) -> Finding:
    """The library that finds drivers: the browser's own, beside it, or else the system's."""
    own = executable.parent / LOADER if executable else None
    if own is not None and own.is_file() and not around.opened(str(own)).error:
        return Finding("Vulkan loader", State.fine, f"{own}, the browser's own")
    found = around.opened(LOADER)
    if found.error:
        return wrong_if(needed, "Vulkan loader", f"{LOADER} can't be opened: {found.error}", install([LOADER]))
    return Finding("Vulkan loader", State.fine, found.path)


def variables(around: Around) -> Iterator[Finding]:
    """Each variable that is set, and whether what it names is there and works."""
    for name in VARIABLES:
        value = around.environ.get(name, "")
        if not value:
            continue
        files = [Path(part) for part in value.split(os.pathsep) if part]
        for driver in _drivers(files, around):
            if driver.fault:
                mend = f"unset {name}, or let it name a driver's file in {_named(standard_folders(around))}"
                yield Finding("Vulkan variables", State.wrong, f"{name} names {driver.file}, {driver.fault}", mend)
                break
        else:
            yield Finding("Vulkan variables", State.fine, f"{name} names {value}")


def files(around: Around, needed: bool) -> tuple[Finding, list[Driver]]:
    """The drivers' files in the standard folders."""
    found = _drivers([path for folder in standard_folders(around) for path in sorted(folder.glob("*.json"))], around)
    broken = [driver for driver in found if driver.fault]
    if broken:
        text = "; ".join(f"{driver.file}: {driver.fault}" for driver in broken)
        return wrong_if(needed, "Vulkan drivers", text, "install the driver that the file belongs to, whole"), found
    if not found:
        mend = "install the GPU's Vulkan driver (NVIDIA: see the container's capabilities; others: mesa-vulkan-drivers)"
        none = f"no driver's file in {_named(standard_folders(around))}"
        return wrong_if(needed, "Vulkan drivers", none, mend if needed else ""), found
    return Finding("Vulkan drivers", State.fine, ", ".join(str(driver.file) for driver in found)), found


def opened_by_name(around: Around, nvidia: bool) -> Finding:
    """What NVIDIA's driver opens by name."""
    missing = [name for name in NVIDIA_OPENS if around.opened(name).error]
    if missing:
        text = f"NVIDIA's Vulkan driver opens {', '.join(missing)} by name, and can't"
        return wrong_if(nvidia, "driver's libraries", text, install(missing))
    return Finding("driver's libraries", State.fine, f"all {len(NVIDIA_OPENS)} that NVIDIA's driver opens by name")


def standard_folders(around: Around) -> list[Path]:
    """Where the loader looks for drivers' files, that of configuration before that of data."""
    home = around.environ.get("HOME", "")
    config, data = f"{home}/.config", f"{home}/.local/share"
    places = [
        around.environ.get("XDG_CONFIG_HOME") or (config if home else ""),
        *(around.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
        "/etc",
        around.environ.get("XDG_DATA_HOME") or (data if home else ""),
        *(around.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep),
    ]
    return [around.path(f"{place}/vulkan/icd.d") for place in dict.fromkeys(places) if place]


def _drivers(files: list[Path], around: Around) -> list[Driver]:
    return [_driver(path, around) for path in files]


def _driver(path: Path, around: Around) -> Driver:
    if not path.exists():
        return Driver(path, "", "which is not there")
    if path.is_dir():
        return Driver(path, "")
    try:
        library = str(json.loads(path.read_bytes())["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError):
        return Driver(path, "", "which is no driver's file")
    # a bare name is looked for as any library is; a path is relative to the file
    place = str(path.parent / library) if "/" in library else library
    error = around.opened(place).error
    return Driver(path, library, f"whose library can't be opened: {error}" if error else "")


def _named(folders: list[Path]) -> str:
    return ", ".join(map(str, folders))
