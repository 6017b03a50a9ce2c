"""What a program asks of a device, in the names of WebGPU's limits (WebGPU specification, section 3.6.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rig.records import Parameters, Program

IMMEDIATE_BYTES = 16
"""Immediate data of one dispatch: four values."""


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
        if any(kernel.parameters is Parameters.immediate for kernel in program.kernels):
            wanted["maxImmediateSize"] = IMMEDIATE_BYTES
        for name, value in wanted.items():
            limits[name] = max(value, limits.get(name, 0))
    return limits


def shortfall(program: Program, granted: Mapping[str, int], features: Collection[str]) -> str:
    """Empty where the device carries `program`, else the first feature that is missing or limit that is too small."""
    for kernel in program.kernels:
        for feature in kernel.features:
            if feature not in features:
                return f"needs {feature}, which this adapter does not have"
    for name, value in needed([program]).items():
        if name in granted and value > granted[name]:
            return f"needs {name} {value}, the device has {granted[name]}"
    return ""
