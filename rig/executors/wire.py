"""The calls that every executor's process answers, as JSON: records of both sides, and a session made of such calls.

What stands at the other end is pages/realm.js, in a page or in Node, or a process of rig/native.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self, TypeVar

import msgspec
import numpy as np

from rig import assets, cpu
from rig.executors.base import ExecutorFault, Timing
from rig.policies import conflict
from rig.programs.fill import NUMPY, Array
from rig.records import Adapter, Clock, Dtype, Outcome, Policy, Program, Record, WeightFill, encode

T = TypeVar("T")

CALL_LIMIT_S = 30.0
GPU_LIMIT_S = 20.0

FEATURES = ("timestamp-query", "shader-f16", "subgroups")
"""Asked of every device, where the adapter has them."""

_SOFTWARE_MARKS = ("swiftshader", "llvmpipe", "lavapipe", "basic render")


class Fault(Record, frozen=True):
    outcome: Outcome
    detail: str


class Reply(Record, frozen=True):
    """The answer to a call: one of the two."""

    ok: msgspec.Raw = msgspec.Raw(b"")
    fault: Fault | None = None


class Surroundings(Record, frozen=True):
    secure: bool
    isolated: bool
    visibility: str
    has_api: bool
    tick_us: float


class WireAdapter(Record, frozen=True):
    vendor: str
    architecture: str
    device: str
    description: str
    is_fallback: bool | None
    features: tuple[str, ...]
    limits: dict[str, int]
    enabled: tuple[str, ...]
    granted: dict[str, int]


class Opened(Record, frozen=True):
    """`driver`: where the process knows it better than the adapter's description tells."""

    adapter: WireAdapter
    has_span: bool
    driver: str = ""


class Outputs(Record, frozen=True):
    """`values`: what stands in each output, its bytes in base64."""

    issued: int
    values: dict[str, bytes]


class Validates(Record, frozen=True):
    validates: bool


class WireSession(ABC):
    """The session interface, but for its start and end, over calls that `_ask` carries."""

    _workers: Sequence[tuple[str, int]] = ()
    """The processes whose CPU time is measured, by kind."""

    def load(self, program: Program) -> None:
        types = {str(buffer.dtype) for buffer in program.buffers if isinstance(buffer.fill, WeightFill)}
        weights = {one: assets.wgsl(f"decode/weights{'' if one == Dtype.f32 else f'_{one}'}") for one in types}
        self._call("load", dict, realm=program.realm, program=program, weights=weights)

    def reset(self, program: Program) -> None:
        self._call("reset", dict, realm=program.realm, program=program.name)

    def outputs(self, program: Program) -> tuple[int, dict[str, Array]]:
        reply = self._call("outputs", Outputs, realm=program.realm, program=program.name)
        dtypes = {buffer.name: NUMPY[buffer.dtype] for buffer in program.buffers}
        return reply.issued, {name: np.frombuffer(data, dtypes[name]) for name, data in reply.values.items()}

    def time(self, program: Program, policy: Policy, n: int) -> Timing:
        request = {"program": program.name, "policy": policy, "n": n, "limit_ms": GPU_LIMIT_S * 1000}
        before = cpu.spent(self._workers)
        timing = self._call("time", Timing, realm=program.realm, **request)
        used = cpu.between(before, cpu.spent(self._workers))
        if used is None:
            return timing
        return msgspec.structs.replace(timing, cpu_us=dict(used.cpu_us), switches=dict(used.switches))

    def conflict(self, program: Program, policy: Policy, n: int) -> str:
        return conflict(program, policy, n)

    def validates(self) -> bool:
        return self._call("validates", Validates).validates

    def _call(self, operation: str, kind: type[T], **request: object) -> T:
        answer = self._ask(encode({"op": operation, **request}).decode())
        try:
            reply = msgspec.json.decode(answer, type=Reply)
            if reply.fault is None:
                return msgspec.json.decode(reply.ok, type=kind)
        except msgspec.DecodeError as error:
            raise ExecutorFault(Outcome.crashed, f"the answer to {operation} is malformed: {error}") from None
        raise ExecutorFault(reply.fault.outcome, reply.fault.detail)

    def opened(self, limits: dict[str, int]) -> Self:
        """Itself, with its device; where it gets none, it is closed before the fault goes on."""
        try:
            self.open(limits)
        except BaseException:
            self.close()
            raise
        return self

    @abstractmethod
    def open(self, limits: dict[str, int]) -> None:
        """Asks for the adapter and makes the device; ExecutorFault: there is none."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _ask(self, text: str) -> str:
        """Carries one request there and its answer back, within CALL_LIMIT_S; ExecutorFault where none comes."""


def clock_record(around: Surroundings, *, has_span: bool) -> Clock:
    """The clock and surroundings as the other end tells them."""
    return Clock(
        tick_us=around.tick_us,
        isolated=around.isolated,
        secure=around.secure,
        visibility=around.visibility,
        has_span=has_span,
    )


def adapter_record(got: WireAdapter, renderer: str, driver: str) -> Adapter:
    """The adapter as the page and the browser tell it together. Where no page field says whether it computes on the CPU
    (Chromium before 122 has no adapter.info), the renderer's name decides.
    """
    names = f"{got.architecture} {got.description}".lower() if got.vendor else renderer.lower()
    software = bool(got.is_fallback) or any(mark in names for mark in _SOFTWARE_MARKS)
    return Adapter(
        vendor=got.vendor or "unknown",
        architecture=got.architecture,
        device=got.device,
        description=got.description,
        is_fallback=software,
        features=got.features,
        limits=got.limits,
        driver=driver,
        renderer=renderer,
        enabled_features=got.enabled,
        granted_limits=got.granted,
    )
