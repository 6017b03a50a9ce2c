"""Streams that do everything at once, and graphs that record instead of doing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OutOfMemoryError = MemoryError
_recording: list[Callable[[], object]] | None = None


def do(work: Callable[[], object]) -> None:
    if _recording is not None:
        _recording.append(work)
    else:
        work()


class CUDAGraph:
    def __init__(self) -> None:
        self.work: list[Callable[[], object]] = []

    def replay(self) -> None:
        for one in self.work:
            one()


@contextmanager
def graph(into: CUDAGraph) -> Iterator[None]:
    global _recording
    _recording = into.work
    yield
    _recording = None


class Stream:
    def wait_stream(self, other: Stream) -> None: ...


@contextmanager
def stream(on: Stream) -> Iterator[None]:  # noqa: ARG001
    yield


class Event:
    def __init__(self, enable_timing: bool) -> None:  # noqa: ARG002
        self.at = 0.0

    def record(self) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, later: Event) -> float:
        return (later.at - self.at) * 1000


def current_stream() -> Stream:
    return Stream()


def is_available() -> bool:
    return True


def get_device_capability() -> tuple[int, int]:
    return 9, 0


def get_device_name() -> str:
    return "planted"


def synchronize() -> None: ...
