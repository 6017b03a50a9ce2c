"""The process's one door: requests are lines on stdin, answers lines on stdout, as pages/node.js has them."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from rig.executors.base import ExecutorFault
from rig.executors.wire import Surroundings
from rig.records import Outcome, Program, encode


class Loaded(Protocol):
    """A program made real. `issued`: dispatches since the last reset."""

    issued: int

    def reset(self) -> None: ...
    def outputs(self) -> dict[str, bytes]: ...


T = TypeVar("T", bound=Loaded)


class Realm(ABC, Generic[T]):
    """The operations on one device; each takes a request and gives what a record of rig.executors.wire holds."""

    def __init__(self) -> None:
        self.programs: dict[str, T] = {}

    def surroundings(self, _: dict[str, Any]) -> Surroundings:
        """Where the process stands: nothing of a page's limits holds here."""
        return Surroundings(secure=True, isolated=True, visibility="visible", has_api=True, tick_us=_tick_us())

    @abstractmethod
    def open(self, request: dict[str, Any]) -> object: ...

    @abstractmethod
    def time(self, request: dict[str, Any]) -> object: ...

    @abstractmethod
    def validates(self, request: dict[str, Any]) -> object: ...

    @abstractmethod
    def loaded(self, program: Program) -> T:
        """The program, real on this device."""

    @abstractmethod
    def outcome_of(self, error: Exception) -> Outcome:
        """The outcome that somebody else's exception stands for."""

    def load(self, request: dict[str, Any]) -> object:
        program = msgspec.convert(request["program"], Program)
        self.programs[program.name] = self.loaded(program)
        return {}

    def reset(self, request: dict[str, Any]) -> object:
        self.programs[request["program"]].reset()
        return {}

    def outputs(self, request: dict[str, Any]) -> object:
        program = self.programs[request["program"]]
        return {"issued": program.issued, "values": program.outputs()}


def serve(realm: Realm[Any]) -> None:
    """Answers until stdin ends."""
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(b"\n" + _answer(line, realm) + b"\n")
        sys.stdout.buffer.flush()


def _answer(line: bytes, realm: Realm[Any]) -> bytes:
    request = msgspec.json.decode(line)
    try:
        return encode({"ok": getattr(realm, request["op"])(request)})
    except ExecutorFault as fault:
        return _fault(fault.outcome, fault.detail)
    except Exception as error:
        # whatever it is, it becomes the sample's outcome and not the end of the process
        return _fault(realm.outcome_of(error), str(error).strip() or type(error).__name__)


def _fault(outcome: Outcome, detail: str) -> bytes:
    return encode({"fault": {"outcome": outcome, "detail": detail}})


# --- the clock ---------------------------------------------------------------------------------------------------


def now_us() -> float:
    """Microseconds, from nobody knows when."""
    return time.perf_counter_ns() / 1000


def _tick_us(steps: int = 50) -> float:
    """The smallest step that the clock was seen to make."""
    smallest = float("inf")
    for _ in range(steps):
        before = now_us()
        while (after := now_us()) == before:
            pass
        smallest = min(smallest, after - before)
    return smallest
