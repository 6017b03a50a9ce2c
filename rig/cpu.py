"""How much CPU have these processes used, and how often did they come to it, by process and thread class?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Spent:
    """So far, by class: CPU time in µs, and how often a thread was switched to."""

    cpu_us: Mapping[str, float]
    switches: Mapping[str, float]


def spent(processes: Iterable[tuple[str, int]]) -> Spent | None:
    """What threads have used so far, from pairs of process type and id. None where the kernel does not tell.

    A class is the process type and `main` or `other`: the thread whose id is the process's own, and the rest (of a GPU
    process on a software adapter: the threads that compute). Source: /proc/PID/task/TID/schedstat, of which the first
    field is nanoseconds on a CPU and the third how many timeslices were begun, one for each switch to the thread
    (Linux, Documentation/scheduler/sched-stats). A thread that ends takes its share with it.
    """
    cpu_us: dict[str, float] = {}
    switches: dict[str, float] = {}
    for kind, pid in processes:
        tasks = _PROC / str(pid) / "task"
        try:
            threads = list(tasks.iterdir())
        except OSError:
            return None
        for thread in threads:
            try:
                on_cpu_ns, _, timeslices = (int(word) for word in (thread / "schedstat").read_bytes().split()[:3])
            except (OSError, ValueError):
                continue
            name = f"{kind}_{'main' if thread.name == str(pid) else 'other'}"
            cpu_us[name] = cpu_us.get(name, 0.0) + on_cpu_ns / 1000
            switches[name] = switches.get(name, 0.0) + timeslices
    return Spent(cpu_us, switches) if cpu_us else None


def between(before: Spent | None, after: Spent | None) -> Spent | None:
    """What was used from one reading to the next, never below zero; None where either is missing."""
    if before is None or after is None:
        return None
    return Spent(_less(after.cpu_us, before.cpu_us), _less(after.switches, before.switches))


def _less(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: float(round(max(0.0, total - before.get(name, 0.0)))) for name, total in after.items()}
