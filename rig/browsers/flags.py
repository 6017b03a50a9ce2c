"""With which flags a Chromium is started, and whether in its sandbox."""

from __future__ import annotations

import sys
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


class AdapterAsked(StrEnum):
    """Which adapter to ask for: whatever the browser gives, a GPU or nothing, or the CPU."""

    any = "any"
    hardware = "hardware"
    software = "software"


def flags(asked: AdapterAsked, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Our flags, before the driver adds its own. Chromium keeps the last switch of a name, and `extra` comes last."""
    wanted = SOFTWARE if asked is AdapterAsked.software else (UNSAFE_WEBGPU,)
    return QUIET + wanted + extra


DAWN = "--enable-dawn-features="

F16_ON_NVIDIA = "vulkan_enable_f16_on_nvidia"
"""Dawn's toggle without which NVIDIA's driver gives no 16-bit floats."""


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
