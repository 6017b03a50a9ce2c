"""The process's one door: requests are lines on stdin, answers lines on stdout, as pages/node.js has them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rig.executors.base import ExecutorFault
from rig.executors.wire import Surroundings
from rig.records import Outcome, encode

Operation = Callable[[dict[str, Any]], object]
Told = Callable[[Exception], Outcome]


def serve(operations: Mapping[str, Operation], outcome_of: Told) -> None:
    """Answers until stdin ends. `outcome_of`: the outcome that somebody else's exception stands for."""
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(b"\n" + _answer(line, operations, outcome_of) + b"\n")
        sys.stdout.buffer.flush()


def _answer(line: bytes, operations: Mapping[str, Operation], outcome_of: Told) -> bytes:
    request = msgspec.json.decode(line)
    try:
        return encode({"ok": operations[request["op"]](request)})
    except ExecutorFault as fault:
        return _fault(fault.outcome, fault.detail)
    except Exception as error:
        # whatever it is, it becomes the sample's outcome and not the end of the process
        return _fault(outcome_of(error), str(error).strip() or type(error).__name__)


def _fault(outcome: Outcome, detail: str) -> bytes:
    return encode({"fault": {"outcome": outcome, "detail": detail}})


# --- the clock ---------------------------------------------------------------------------------------------------


def now_us() -> float:
    """Microseconds, from nobody knows when."""
    return time.perf_counter_ns() / 1000


def surroundings(_: dict[str, Any]) -> Surroundings:
    """Where the process stands: nothing of a page's limits holds here."""
    return Surroundings(secure=True, isolated=True, visibility="visible", has_api=True, tick_us=_tick_us())


def _tick_us(steps: int = 50) -> float:
    """The smallest step that the clock was seen to make."""
    smallest = float("inf")
    for _ in range(steps):
        before = now_us()
        while (after := now_us()) == before:
            pass
        smallest = min(smallest, after - before)
    return smallest
