"""Traces: each event's own time, by thread; and what sets two builds apart in theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rig import trace
from rig.browsers import find, flags
from rig.browsers.flags import AdapterAsked
from rig.executors.chromium import ChromiumExecutor
from rig.matrix import traces, tracing
from rig.matrix.records import Trace, Traced
from rig.policies import policy
from rig.programs import micro
from rig.records import Cell
from rig.trace import Activity, TraceBroken

NAMES = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Renderer"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "CrRendererMain"}},
]


def event(name: str, ts: float, dur: float, tdur: float | None = None, tid: int = 7) -> dict[str, object]:
    cpu = {} if tdur is None else {"tdur": tdur}
    return {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": {}, "cat": "gpu", **cpu}


def read(*events: dict[str, object]) -> list[Activity]:
    return trace.activities(json.dumps({"traceEvents": [*NAMES, *events], "metadata": {}}).encode())


def test_an_event_has_its_time_without_those_inside_it() -> None:
    found = read(event("flush", 2, 3, 2), event("task", 0, 10, 6), event("flush", 6, 2, 1), event("deep", 3, 1))
    assert found == [
        Activity("Renderer", "CrRendererMain", "task", 1, 5, 3),
        Activity("Renderer", "CrRendererMain", "flush", 2, 4, 3),
        Activity("Renderer", "CrRendererMain", "deep", 1, 1, 0),
    ]


def test_events_of_other_threads_and_those_after_are_not_inside() -> None:
    found = {one.event: one for one in read(event("a", 0, 5), event("b", 1, 3, tid=8), event("c", 5, 2))}
    assert [found[name].own_us for name in "abc"] == [5, 3, 2]
    assert found["b"].thread == "unnamed"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"traceEvents": [{}]}'])
def test_what_is_no_trace_is_told_in_one_line(data: bytes) -> None:
    with pytest.raises(TraceBroken, match=r"^no trace: [^\n]+$"):
        trace.activities(data)


# --- both sides of a step ----------------------------------------------------------------------------------------


def traced(build: str, flushes: list[int], own_us: float = 100, why: str = "") -> list[Trace]:
    """A launch for each count of flushes, of 100 dispatches each."""
    return [
        Trace(build, "k", number, 100, 5000, (Activity("GPU", "Main", "Flush", times, own_us, own_us / 2),), why)
        for number, times in enumerate(flushes)
    ]


def between(before: list[Trace], after: list[Trace]) -> Traced | None:
    return traces.between([*before, *after], "k", "a", "b")


def test_an_event_that_all_launches_of_one_side_have_more_of_is_told_for_each_dispatch() -> None:
    found = between(traced("a", [1, 2, 1, 0]), traced("b", [100, 101, 100, 99], 700))
    assert found is not None
    (flush,) = found.events
    assert (flush.times_before, flush.times_after) == (0.01, 1)
    assert (flush.own_us_before, flush.own_us_after, flush.own_cpu_us_after) == (1, 7, 3.5)
    assert (found.us_before, found.launches) == (50, 4)


def test_an_event_that_overlaps_or_hardly_differs_is_not_told() -> None:
    overlapping = between(traced("a", [10, 90, 10, 10]), traced("b", [80, 80, 80, 80]))
    hardly = between(traced("a", [100, 100, 100, 100], 100), traced("b", [101, 102, 101, 101], 110))
    assert overlapping is not None
    assert hardly is not None
    assert (overlapping.events, hardly.events) == ((), ())


def test_too_few_traces_tell_nothing_and_why() -> None:
    broken = between(traced("a", [1, 2, 1, 0]), [*traced("b", [9, 9, 9]), *traced("b", [0], why="no answer")])
    assert broken is not None
    assert (broken.events, broken.why) == ((), "no answer")
    assert between(traced("a", [1]), []) is None


@pytest.mark.browser
def test_a_trace_of_a_real_browser_has_a_submit_for_each_dispatch(tmp_path: Path) -> None:
    browser = find.find()
    executor = ChromiumExecutor(browser, flags.flags(AdapterAsked.software, version=browser.version))
    cell = Cell(
        program=micro.increment_chain(),
        policy=policy("submit_each"),
        n=100,
        executor="chromium",
        build=executor.build_id,
        flags=executor.flags,
    )
    try:
        (taken,) = tracing.take(executor, {"k": cell}, "system", 0, tmp_path / "raw")
    finally:
        executor.close()
    assert taken.why == ""
    assert taken.dispatches == tracing.DISPATCHES
    (submit,) = [one for one in taken.activities if (one.thread, one.event) == ("CrGpuMain", "Queue::Submit")]
    assert submit.process == "GPU Process"
    assert taken.dispatches <= submit.times <= 1.05 * taken.dispatches
    assert submit.own_us > 0
    assert len(list((tmp_path / "raw").glob("*.json.gz"))) == 1
