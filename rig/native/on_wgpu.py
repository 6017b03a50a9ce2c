"""The native process on wgpu:  python -m rig.native.on_wgpu"""

from __future__ import annotations

import time as clock
from typing import Any

import msgspec
import wgpu

from rig.executors.base import ExecutorFault
from rig.native import door
from rig.native.door import now_us
from rig.native.issue import Stamps, StubDevice, issue, issue_staged
from rig.native.program import Compiled, LoadedProgram
from rig.native.span import StampClock
from rig.records import Lead, Outcome, Policy, Program, Target, Waiter

IDLE_S = 0.04
"""A burst comes after so long a rest."""

_VENDORS = {0x10DE: "nvidia", 0x1002: "amd", 0x8086: "intel", 0x13B5: "arm", 0x1AE0: "google", 0x10005: "mesa"}
"""By PCI or Khronos vendor id; wgpu puts the driver's name where WebGPU has the vendor's."""


class Realm(door.Realm[LoadedProgram]):
    """The operations on one device."""

    def __init__(self) -> None:
        super().__init__()
        self._device: Any = None
        self._span: StampClock | None = None

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        adapter = wgpu.gpu.request_adapter_sync(power_preference=request["power"])
        if adapter is None:
            raise ExecutorFault(Outcome.not_supported, "no adapter: request_adapter gave none")
        features = sorted(set(request["features"]) & set(adapter.features))
        # all that the adapter has of those wanted: unlike WebGPU, wgpu also takes less than its default
        most = {name: adapter.limits[name] for name in map(kebab, request["limits"]) if name in adapter.limits}
        self._device = adapter.request_device_sync(required_features=features, required_limits=most)
        if "timestamp-query" in features:
            self._span = StampClock(self._device, 2)
        info = adapter.info
        return {
            "adapter": {
                "vendor": _VENDORS.get(info["vendor_id"], info["vendor"]),
                "architecture": info["architecture"],
                "device": info["device"],
                "description": f"{info['backend_type']}, {info['adapter_type']}",
                "is_fallback": info["adapter_type"] == "CPU",
                "features": sorted(adapter.features),
                "limits": {camel(name): value for name, value in adapter.limits.items()},
                "enabled": features,
                "granted": {camel(name): value for name, value in self._device.limits.items()},
            },
            "has_span": self._span is not None,
            "driver": " ".join(word for word in (info["vendor"], info["description"]) if word),
        }

    def loaded(self, program: Program) -> LoadedProgram:
        return LoadedProgram(self._device, program)

    def validates(self, _: dict[str, Any]) -> dict[str, Any]:
        """Whether the device validates: an invalid call, and whether an error came of it."""
        try:
            self._device.create_buffer(size=16, usage=wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.STORAGE)
        except wgpu.GPUError:
            return {"validates": True}
        return {"validates": False}

    def time(self, request: dict[str, Any]) -> dict[str, Any]:
        """One sample, as pages/realm.js takes it."""
        program = self.programs[request["program"]]
        policy = msgspec.convert(request["policy"], Policy)
        compiled = program.batch(policy, request["n"])
        if not compiled.settled:
            self._device.queue.on_submitted_work_done_sync()
            compiled.settled = True
        if policy.lead is Lead.idle:
            clock.sleep(IDLE_S)
        if policy.lead is Lead.sustained:
            self._once(program, policy, compiled)
        sample = self._once(program, policy, compiled)
        # without a stamped pass, what stands in the query set is an earlier sample's
        stamped = sample["issued"]["passes"] > 0 and not policy.staged and policy.target is Target.device
        used = compiled.passes or self._span
        return {**sample, "stamps_ns": used.read() if used is not None and stamped else None}

    def _once(self, program: LoadedProgram, policy: Policy, compiled: Compiled) -> dict[str, Any]:
        """The clock before the first call, at the return of the last submit, and when the wait has answered."""
        batch, calls_us = compiled.batch, None
        device = StubDevice() if policy.target is Target.stub else self._device
        map_, stamps = policy.waiter is Waiter.map, self._stamps(policy, compiled)
        tail = program.encode_probe if map_ else None
        if batch.deliver is not None:
            batch.deliver.ready()
        t0 = now_us()
        if policy.staged:
            issued, calls_us = issue_staged(device, batch, compiled.make)
        else:
            issued = issue(device, batch, stamps, tail)
        t1 = now_us()
        if map_:
            program.probe.map_sync(wgpu.MapMode.READ)
        elif policy.target is Target.device:
            self._device.queue.on_submitted_work_done_sync()
        t2 = now_us()
        if map_:
            program.probe.unmap()
        if policy.target is Target.device:
            program.issued += issued["dispatches"]
        return {"issued": issued, "wall_us": t2 - t0, "encode_us": t1 - t0, "calls_us": calls_us}

    def _stamps(self, policy: Policy, compiled: Compiled) -> Stamps:
        if policy.target is Target.stub:
            return Stamps()
        if compiled.passes is not None:
            return compiled.passes.around_each
        return self._span.around_all if self._span is not None else Stamps()

    def outcome_of(self, error: Exception) -> Outcome:
        """What an exception of wgpu's stands for."""
        return Outcome.out_of_memory if isinstance(error, wgpu.GPUOutOfMemoryError) else Outcome.validation_error


def camel(name: str) -> str:
    """WebGPU's name of a limit, from wgpu's: max-buffer-size is maxBufferSize."""
    first, *rest = name.split("-")
    return first + "".join(f"{word[0].upper()}{word[1:]}" if word[0].isalpha() else word for word in rest)


def kebab(name: str) -> str:
    """wgpu's name of a limit, from WebGPU's."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


if __name__ == "__main__":
    door.serve(Realm())
