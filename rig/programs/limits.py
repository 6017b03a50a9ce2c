"""What a program asks of a device, in the names of WebGPU's limits (WebGPU specification, section 3.6.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rig.records import Program


def needed(programs: Iterable[Program]) -> dict[str, int]:
    """The least value of each limit that runs all of `programs`."""
    limits: dict[str, int] = {}
    for program in programs:
        largest = max(buffer.size_bytes for buffer in program.buffers)
        wanted = {
            "maxBufferSize": largest,
            "maxStorageBufferBindingSize": largest,
            "maxStorageBuffersPerShaderStage": max(len(d.bindings) for d in program.dispatches),
            "maxComputeWorkgroupsPerDimension": max(max(d.workgroups) for d in program.dispatches),
        }
        for name, value in wanted.items():
            limits[name] = max(value, limits.get(name, 0))
    return limits


def shortfall(program: Program, granted: Mapping[str, int]) -> str:
    """Empty where the device carries `program`, else the first limit that is too small, with both numbers."""
    for name, value in needed([program]).items():
        if name in granted and value > granted[name]:
            return f"needs {name} {value}, the device has {granted[name]}"
    return ""
