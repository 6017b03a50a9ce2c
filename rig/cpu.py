"""How much CPU have these processes used, by process and thread class?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

_PROC = Path("/proc")


def spent_us(processes: Iterable[tuple[str, int]]) -> dict[str, float] | None:
    """CPU time so far, in µs, by class, from pairs of process type and id. None where the kernel does not tell.

    A class is the process type and `main` or `other`: the thread whose id is the process's own, and the rest (of a GPU
    process on a software adapter: the threads that compute). Source: the first field of /proc/PID/task/TID/schedstat,
    nanoseconds on a CPU (Linux, Documentation/scheduler/sched-stats). A thread that ends takes its time with it.
    """
    classes: dict[str, float] = {}
    for kind, pid in processes:
        tasks = _PROC / str(pid) / "task"
        try:
            threads = list(tasks.iterdir())
        except OSError:
            return None
        for thread in threads:
            try:
                on_cpu_ns = int((thread / "schedstat").read_bytes().split()[0])
            except (OSError, IndexError, ValueError):
                continue
            name = f"{kind}_{'main' if thread.name == str(pid) else 'other'}"
            classes[name] = classes.get(name, 0.0) + on_cpu_ns / 1000
    return classes or None


def between(before: Mapping[str, float] | None, after: Mapping[str, float] | None) -> dict[str, float] | None:
    """What was used from one reading to the next, never below zero; None where either is missing."""
    if before is None or after is None:
        return None
    return {name: round(max(0.0, total - before.get(name, 0.0)), 1) for name, total in after.items()}
