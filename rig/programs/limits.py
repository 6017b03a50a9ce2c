"""What a program asks of a device, in the names of WebGPU's limits (WebGPU specification, section 3.6.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rig.records import Adapter, HostState, Parameters, Program

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


def shortfall(
    program: Program, granted: Mapping[str, int], features: Collection[str], memory_bytes: int | None = None
) -> str:
    """Empty where the device carries `program`, else the first feature that is missing or limit that is too small; or
    that its buffers together are more than the memory there is, where that is known.
    """
    for kernel in program.kernels:
        for feature in kernel.features:
            if feature not in features:
                return f"needs {feature}, which this adapter does not have"
    for name, value in needed([program]).items():
        if name in granted and value > granted[name]:
            return f"needs {name} {value}, the device has {granted[name]}"
    total = sum(buffer.size_bytes for buffer in program.buffers)
    if memory_bytes is not None and total > memory_bytes:
        return f"needs {total:,} bytes of memory, there are {memory_bytes:,}"
    return ""


def memory_bytes(adapter: Adapter, host: HostState) -> int | None:
    """Memory that buffers may take: the host's free one where the CPU computes, that of the only NVIDIA GPU; else
    unknown.
    """
    if adapter.is_fallback:
        return host.memory_free_bytes
    known = [gpu for gpu in host.gpus if gpu.memory_total_bytes is not None and gpu.memory_used_bytes is not None]
    if adapter.vendor != "nvidia" or len(known) != 1:
        return None
    return (known[0].memory_total_bytes or 0) - (known[0].memory_used_bytes or 0)
