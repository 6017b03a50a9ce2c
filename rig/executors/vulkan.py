"""Which Vulkan driver does a native process use? Environment variables, since the loader knows no other way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rig import host
from rig.browsers.flags import AdapterAsked

SOFTWARE = (
    "/usr/lib/chromium/vk_swiftshader_icd.json",
    "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
    "/usr/share/vulkan/icd.d/lvp_icd.json",
)
"""Drivers that compute on the CPU: SwiftShader as it lies beside Debian's Chromium, Mesa's lavapipe."""

LOADERS = ("/usr/lib/chromium",)
"""Where a Vulkan loader lies that the system does not know of."""


def environ(asked: AdapterAsked, beside: Path | None = None) -> dict[str, str]:
    """What to add to the environment. `beside`: the browser's folder, which may have a driver of its own."""
    places = [beside / "vk_swiftshader_icd.json"] if beside else []
    software = next((path for path in (*places, *map(Path, SOFTWARE)) if path.is_file()), None)
    folders = [str(beside)] if beside and (beside / "libvulkan.so.1").is_file() else []
    added = {"LD_LIBRARY_PATH": ":".join(filter(None, (os.environ.get("LD_LIBRARY_PATH", ""), *folders, *LOADERS)))}
    on_cpu = asked is AdapterAsked.software or (asked is AdapterAsked.any and not host.has_gpu())
    if on_cpu and software is not None:
        added |= {"VK_DRIVER_FILES": str(software), "VK_ICD_FILENAMES": str(software)}
    return added


def told(added: Mapping[str, str]) -> tuple[str, ...]:
    """What of it decides about the driver, for the record."""
    return tuple(f"{name}={value}" for name, value in added.items() if name == "VK_DRIVER_FILES")
