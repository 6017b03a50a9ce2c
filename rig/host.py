"""What machine is this, and what else is it doing?

Readings of the kernel's files take the roots of /proc, /sys and /dev, so that a test can plant another machine. What
the system does not tell is None, never zero.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import psutil

from rig import nvml
from rig.records import Host, HostState

LOOK_S, LONG_LOOK_S = 0.1, 1.0
"""How long to look at what the CPU does: around each launch, and before something is refused for it."""

PROC, SYS, DEV = Path("/proc"), Path("/sys"), Path("/dev")

DRIVERS = (Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d"))
SOFTWARE_DRIVERS = ("lvp_", "vk_swiftshader")
"""Manifests of Vulkan drivers that compute on the CPU begin so."""

BUSY_CORES = 0.2
"""A process that uses more than so much of a core is a busy one."""

_FIRST_NAMESPACE = "pid:[4026531836]"
"""That of the machine itself: the number is a constant of Linux."""

_CPU_SENSORS = {"coretemp", "k10temp", "zenpower", "cpu_thermal"}
_CPU_ZONES = {"x86_pkg_temp", "cpu-thermal", "cpu_thermal"}


def describe() -> Host:
    """The machine, without anything that names its owner."""
    return Host(
        system=f"{_distribution()}, {platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu(),
        cores=cores(),
        memory_bytes=psutil.virtual_memory().total,
        python=platform.python_version(),
        container=in_container(),
        root=is_root(),
        governor=governor(),
        cpu_quota_cores=quota_cores(),
        shared_memory_bytes=shared_memory_bytes(),
    )


def state(interval_s: float = LOOK_S) -> HostState:
    """Load now; the busy and stolen fractions, and other processes, are seen over the next `interval_s` seconds."""
    # first, and outside the look at the CPU: what held a GPU back while it worked does not stay for long
    gpus = nvml.read(all_seen=sees_all_processes())
    began, times, processes = time.monotonic(), psutil.cpu_times(), process_ticks()
    time.sleep(interval_s)
    after = psutil.cpu_times()
    spent = {name: getattr(after, name) - getattr(times, name) for name in after._fields}
    # a guest's time is in the user's already
    whole = sum(s for name, s in spent.items() if not name.startswith("guest")) or 1.0
    periods, throttled = throttling()
    return HostState(
        load_1min=round(psutil.getloadavg()[0], 2),
        cpu_busy_fraction=round(max(0.0, 1 - (spent["idle"] + spent.get("iowait", 0.0)) / whole), 3),
        steal_fraction=round(spent.get("steal", 0.0) / whole, 3),
        memory_free_bytes=psutil.virtual_memory().available,
        cpu_periods=periods,
        cpu_throttled_periods=throttled,
        cpu_mhz=cpu_mhz(),
        busy_processes=busy_processes(processes, process_ticks(), time.monotonic() - began),
        cpu_pressure_fraction=cpu_pressure(),
        temperature_c=temperature_c(),
        gpus=gpus,
    )


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def in_container() -> bool:
    """True in our own image (it says so), and where Docker or Podman left their mark."""
    return bool(os.environ.get("RIG_IN_CONTAINER")) or any(
        Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")
    )


def has_nvidia(dev: Path = DEV) -> bool:
    """Whether this process may use an NVIDIA GPU."""
    return (dev / "nvidiactl").exists() and any(dev.glob("nvidia[0-9]*"))


def has_gpu(dev: Path = DEV, drivers: Iterable[Path] = DRIVERS) -> bool:
    """Whether this process may use a GPU: NVIDIA's, or a render node that some Vulkan driver is installed for."""
    manifests = (path for folder in drivers for path in folder.glob("*.json"))
    driven = any(not path.name.startswith(SOFTWARE_DRIVERS) for path in manifests)
    return has_nvidia(dev) or (driven and any((dev / "dri").glob("renderD*")))


def user_namespaces(proc: Path = PROC) -> bool:
    """Whether an unprivileged process may make user namespaces, as far as the kernel's switches tell."""
    switches = {
        "sys/kernel/unprivileged_userns_clone": "0",
        "sys/kernel/apparmor_restrict_unprivileged_userns": "1",
        "sys/user/max_user_namespaces": "0",
    }
    return not any(_text(proc / name) == forbids for name, forbids in switches.items())


# --- the CPU: its clock, and how much of it we may have -----------------------------------------------------------


def cpu_mhz(proc: Path = PROC) -> float | None:
    """The mean over cores of what /proc/cpuinfo says now."""
    lines = (line.partition(":") for line in _text(proc / "cpuinfo").splitlines())
    found = [_number(value) for name, _, value in lines if name.strip() == "cpu MHz"]
    known = [mhz for mhz in found if mhz is not None]
    return round(sum(known) / len(known), 1) if known else None


def governor(sys: Path = SYS) -> str | None:
    """What chooses the clock of the CPU: the governors of all cores, where the system has any."""
    found = {_text(path) for path in sys.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")} - {""}
    return ", ".join(sorted(found)) or None


def quota_cores(proc: Path = PROC, sys: Path = SYS) -> float | None:
    """How many cores' time this process may use by the tightest quota of its control groups; None without one."""
    quotas = (_quota(group) for group in _groups(proc, sys))
    return min((quota for quota in quotas if quota is not None), default=None)


def throttling(proc: Path = PROC, sys: Path = SYS) -> tuple[int | None, int | None]:
    """Periods of the tightest quota so far, and those in which it stopped us: cpu.stat, of either kind of groups."""
    groups = sorted(_groups(proc, sys), key=lambda group: _quota(group) or float("inf"))
    for group in groups:
        counts = dict(line.split(maxsplit=1) for line in _text(group / "cpu.stat").splitlines() if " " in line)
        if "nr_periods" in counts and "nr_throttled" in counts:
            return int(counts["nr_periods"]), int(counts["nr_throttled"])
    return None, None


def _groups(proc: Path, sys: Path) -> Iterator[Path]:
    """This process's control group of the CPU and all above it, where they can be seen: version 2 and version 1."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = sys / "fs" / "cgroup" / controllers if controllers else sys / "fs" / "cgroup"
        inside = Path(path.lstrip("/"))
        # a container may see its own group as the top, whatever the path says
        yield from (top / part for part in (inside, *inside.parents) if (top / part / "cpu.stat").is_file())


def _quota(group: Path) -> float | None:
    if text := _text(group / "cpu.max"):
        quota, _, period = text.partition(" ")
    else:
        quota, period = _text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us")
    allowed, every = _number(quota), _number(period)
    return allowed / every if allowed and every and allowed > 0 else None


# --- what else runs ------------------------------------------------------------------------------------------------


def sees_all_processes(proc: Path = PROC) -> bool:
    """Whether none can hide from us: from inside a container, or a namespace of process ids, others are not seen."""
    try:
        namespace = str((proc / "self" / "ns" / "pid").readlink())
    except OSError:
        namespace = ""
    return not in_container() and namespace in ("", _FIRST_NAMESPACE)


def process_ticks(proc: Path = PROC, own: int | None = None) -> Mapping[int, int] | None:
    """CPU time so far, in clock ticks, of each process but our own and its descendants. None without a /proc."""
    ticks: dict[int, int] = {}
    parents: dict[int, int] = {}
    for folder in proc.glob("[0-9]*"):
        # a command may hold spaces and brackets: what counts comes after the last one
        _, _, rest = _text(folder / "stat").rpartition(") ")
        fields = rest.split()
        if len(fields) > 12:
            parents[int(folder.name)] = int(fields[1])
            ticks[int(folder.name)] = int(fields[11]) + int(fields[12])
    ours = {os.getpid() if own is None else own}
    return {pid: spent for pid, spent in ticks.items() if not _descends(pid, ours, parents)} if ticks else None


def _descends(pid: int, ours: set[int], parents: Mapping[int, int]) -> bool:
    seen = set()
    while pid not in seen:
        if pid in ours:
            return True
        seen.add(pid)
        pid = parents.get(pid, 0)
    return False


def busy_processes(
    before: Mapping[int, int] | None, after: Mapping[int, int] | None, elapsed_s: float, hz: float = 0.0
) -> int | None:
    """How many of them used more than BUSY_CORES of a core from one reading to the other."""
    if before is None or after is None:
        return None
    hz = hz or os.sysconf("SC_CLK_TCK")
    return sum((ticks - before[pid]) / hz / elapsed_s > BUSY_CORES for pid, ticks in after.items() if pid in before)


def cpu_pressure(proc: Path = PROC) -> float | None:
    """The share of the last 10 s in which some process waited for a CPU."""
    for line in _text(proc / "pressure" / "cpu").splitlines():
        kind, *pairs = line.split()
        percent = _number(dict(pair.split("=", 1) for pair in pairs).get("avg10", ""))
        if kind == "some" and percent is not None:
            return round(percent / 100, 4)
    return None


def temperature_c(sys: Path = SYS) -> float | None:
    """The hottest sensor of the CPU."""
    zones = [zone / "temp" for zone in sys.glob("class/thermal/thermal_zone*") if _text(zone / "type") in _CPU_ZONES]
    chips = [chip for chip in sys.glob("class/hwmon/hwmon*") if _text(chip / "name") in _CPU_SENSORS]
    readings = (_number(_text(path)) for path in (*zones, *(p for chip in chips for p in chip.glob("temp*_input"))))
    return max((round(milli / 1000, 1) for milli in readings if milli is not None and milli > 0), default=None)


def shared_memory_bytes(dev: Path = DEV) -> int | None:
    """The size of /dev/shm, through which the browser's processes may talk."""
    if not (dev / "shm").is_dir() or not hasattr(os, "statvfs"):
        return None
    place = os.statvfs(dev / "shm")
    return place.f_frsize * place.f_blocks


# --- small parts ---------------------------------------------------------------------------------------------------


def _text(path: Path) -> str:
    """A kernel's file, or nothing where it can't be read: some exist and refuse."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _cpu(proc: Path = PROC) -> str:
    for line in _text(proc / "cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", sys.platform)
    except OSError:
        return sys.platform
