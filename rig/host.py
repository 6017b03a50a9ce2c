"""What machine this is, and what else it is doing."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

import psutil

from rig.records import Host, HostState


def describe() -> Host:
    """The machine, without anything that names its owner."""
    return Host(
        system=f"{_distribution()}, {platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        python=platform.python_version(),
        container=in_container(),
        root=is_root(),
    )


def state(interval_s: float = 0.1) -> HostState:
    """Load now; the busy and stolen fractions are of all cores, over the next `interval_s` seconds."""
    before = psutil.cpu_times()
    time.sleep(interval_s)
    after = psutil.cpu_times()
    spent = {name: getattr(after, name) - getattr(before, name) for name in after._fields}
    # a guest's time is in the user's already
    whole = sum(s for name, s in spent.items() if not name.startswith("guest")) or 1.0
    return HostState(
        load_1min=round(psutil.getloadavg()[0], 2),
        cpu_busy_fraction=round(max(0.0, 1 - (spent["idle"] + spent.get("iowait", 0.0)) / whole), 3),
        steal_fraction=round(spent.get("steal", 0.0) / whole, 3),
        memory_free_bytes=psutil.virtual_memory().available,
    )


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def in_container() -> bool:
    """True in our own image (it says so), and where Docker or Podman left their mark."""
    return bool(os.environ.get("RIG_IN_CONTAINER")) or any(
        Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")
    )


def user_namespaces() -> bool:
    """Whether an unprivileged process may make user namespaces, as far as the kernel's switches tell."""
    switches = {
        "/proc/sys/kernel/unprivileged_userns_clone": "0",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
        "/proc/sys/user/max_user_namespaces": "0",
    }
    return not any(Path(p).is_file() and Path(p).read_text().strip() == forbids for p, forbids in switches.items())


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", sys.platform)
    except OSError:
        return sys.platform
