"""What did each thread of a browser do while DevTools traced it? Pure: from a trace (Trace Event Format)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from rig.records import Count, Name, Record

CATEGORIES = (
    *("gpu", "gpu.dawn", "disabled-by-default-gpu.dawn", "disabled-by-default-gpu.service"),
    *("toplevel", "ipc", "blink.user_timing"),
)
"""Of these each submit leaves its marks in the page's process and in the one that drives the GPU."""


class Activity(Record, frozen=True):
    """An event of a thread, all its occurrences together. `own_us`: by wall, without the events inside it, but with
    the time that the thread was kept waiting for a core; `own_cpu_us`: its CPU time, likewise. Both clocks are cut to
    whole microseconds.
    """

    process: str
    thread: str
    event: Name
    times: Count
    own_us: float
    own_cpu_us: float


class TraceBroken(Exception):
    """What came is no trace; one line says why."""


# a length of zero is left out of the format
class _Event(msgspec.Struct):
    ph: str
    pid: int = 0
    tid: int = 0
    name: str = ""
    ts: float = 0
    dur: float = 0
    tdur: float = 0
    args: dict[str, Any] = {}


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]  # noqa: N815, the format's own name


def activities(data: bytes) -> list[Activity]:
    """Every event that has a length, by process, thread and name, the longest first. TraceBroken."""
    try:
        events = msgspec.json.decode(data, type=_Trace).traceEvents
    except msgspec.DecodeError as error:
        raise TraceBroken(f"no trace: {error}") from None
    named: dict[str, dict[tuple[int, int], str]] = {"process_name": {}, "thread_name": {}}
    lanes: defaultdict[tuple[int, int], list[_Event]] = defaultdict(list)
    for event in events:
        if event.ph == "X":
            lanes[event.pid, event.tid].append(event)
        elif event.ph == "M" and event.name in named:
            named[event.name][event.pid, event.tid] = str(event.args.get("name", ""))
    processes = {pid: name for (pid, _), name in named["process_name"].items()}
    sums: dict[tuple[str, str, str], tuple[int, float, float]] = {}
    for (pid, tid), lane in lanes.items():
        place = processes.get(pid, "unnamed"), named["thread_name"].get((pid, tid), "unnamed")
        for name, own_us, cpu_us in _own(lane):
            times, wall, cpu = sums.get((*place, name), (0, 0.0, 0.0))
            sums[*place, name] = times + 1, wall + own_us, cpu + cpu_us
    found = [Activity(*where, times, wall, cpu) for where, (times, wall, cpu) in sums.items()]
    return sorted(found, key=lambda one: (-one.own_us, one.process, one.thread, one.event))


def _own(lane: Iterable[_Event]) -> list[tuple[str, float, float]]:
    """Each event of a thread with its time less that of the events right inside it."""
    ordered = sorted(lane, key=lambda event: (event.ts, -event.dur))
    walls, cpus = [event.dur for event in ordered], [event.tdur for event in ordered]
    around: list[int] = []
    for index, event in enumerate(ordered):
        while around and ordered[around[-1]].ts + ordered[around[-1]].dur <= event.ts:
            around.pop()
        if around:
            walls[around[-1]] -= event.dur
            cpus[around[-1]] -= event.tdur
        around.append(index)
    # cut as they are, parts may be longer than their whole
    return [
        (event.name, max(us, 0.0), max(cpu_us, 0.0)) for event, us, cpu_us in zip(ordered, walls, cpus, strict=True)
    ]
