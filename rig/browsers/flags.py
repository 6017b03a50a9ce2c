"""With which flags a Chromium is started, and whether in its sandbox."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

from rig import host

# A closed network must not make the browser try, fail and try again while it is measured.
QUIET = ("--disable-quic", "--no-first-run", "--disable-sync")

UNSAFE_WEBGPU = "--enable-unsafe-webgpu"

SOFTWARE = (
    UNSAFE_WEBGPU,
    "--enable-features=Vulkan,VulkanFromANGLE,DefaultANGLEVulkan",
    "--use-angle=swiftshader",
    "--use-vulkan=swiftshader",
    "--ignore-gpu-blocklist",
)


DAWN = "--enable-dawn-features="

F16_ON_NVIDIA = "vulkan_enable_f16_on_nvidia"
"""Dawn's toggle without which NVIDIA's driver gives no 16-bit floats."""

WINDOWED = "--disable-vulkan-surface"
"""NVIDIA's Vulkan driver has no surface for a headless browser, so that one with this flag must have a window."""

HARDWARE = (UNSAFE_WEBGPU, "--ignore-gpu-blocklist", "--enable-features=Vulkan", "--use-angle=vulkan")
NVIDIA = (*HARDWARE, WINDOWED, DAWN + F16_ON_NVIDIA)


@dataclass(frozen=True)
class Era:
    """Flags that builds need from a major version on: for whatever adapter is there, the software one, a GPU."""

    since: int
    default: tuple[str, ...]
    software: tuple[str, ...] = SOFTWARE
    hardware: tuple[str, ...] = HARDWARE
    nvidia: tuple[str, ...] = NVIDIA


ERAS = (Era(113, default=SOFTWARE), Era(143, default=(UNSAFE_WEBGPU,)))
"""The one table of flags by version. Before 143 the software adapter comes only to those who ask for it."""


class AdapterAsked(StrEnum):
    """Which adapter to ask for: a GPU where there is one with its driver, else the CPU; a GPU or nothing; the CPU."""

    any = "any"
    hardware = "hardware"
    software = "software"


def settled(asked: AdapterAsked) -> AdapterAsked:
    """What is asked for on this machine: where a GPU is there, nothing falls back to the CPU without being told to."""
    return AdapterAsked.hardware if asked is AdapterAsked.any and host.has_gpu() else asked


def flags(asked: AdapterAsked, extra: tuple[str, ...] = (), *, version: str = "") -> tuple[str, ...]:
    """Our flags for a build of `version` (none: the newest known), before the driver adds its own. Chromium keeps the
    last switch of a name, and `extra` comes last.
    """
    since = int(version.partition(".")[0]) if version else ERAS[-1].since
    era = next((one for one in reversed(ERAS) if since >= one.since), ERAS[0])
    wanted = era.default
    if asked is AdapterAsked.software:
        wanted = era.software
    elif asked is AdapterAsked.hardware and sys.platform.startswith("linux"):
        wanted = era.nvidia if host.has_nvidia() else era.hardware
    elif asked is AdapterAsked.hardware:
        wanted = (UNSAFE_WEBGPU,)
    return QUIET + wanted + extra


def windowed(given: tuple[str, ...]) -> bool:
    """Whether a browser with these flags must have a window."""
    return WINDOWED in given


def merged(given: tuple[str, ...]) -> tuple[str, ...]:
    """The same flags with Dawn's toggles in one: of several switches of a name Chromium would keep the last alone."""
    toggles = [flag.removeprefix(DAWN) for flag in given if flag.startswith(DAWN)]
    rest = tuple(flag for flag in given if not flag.startswith(DAWN))
    return (*rest, DAWN + ",".join(toggles)) if toggles else rest


def sandbox() -> tuple[bool, str]:
    """Whether the browser can be started in its sandbox, and why (or why not)."""
    if not sys.platform.startswith("linux"):
        return True, "on: not Linux"
    if host.is_root():
        return False, "off: Chromium refuses its sandbox as root"
    if host.in_container():
        return False, "off: a container's default seccomp profile forbids the sandbox's namespaces"
    if not host.user_namespaces():
        return False, "off: this kernel forbids unprivileged user namespaces"
    return True, "on"
