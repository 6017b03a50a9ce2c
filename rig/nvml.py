"""What do the NVIDIA GPUs do just now? Asks NVML, and sets nothing.

Without its library (`pynvml`, of nvidia-ml-py), a driver or a GPU there is nothing to tell; what a GPU, its driver or
an old library does not tell is None. UUIDs, serial numbers and names of processes are nobody's business: not asked for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import psutil

from rig.records import GpuState

REASONS = (
    "gpu_idle",
    "applications_clocks",
    "power_cap",
    "hardware_slowdown",
    "sync_boost",
    "thermal_software",
    "thermal_hardware",
    "power_brake",
    "display_clocks",
    "board_limit",
    "reliability",
)
"""Why a GPU does not run at its highest clock, by the bits of nvml.h from the lowest on."""


def read(*, all_seen: bool = True) -> tuple[GpuState, ...]:
    """Every GPU that the driver shows. `all_seen`: no process can hide from us, as one outside our container does."""
    nvml = _opened()
    if nvml is None:
        return ()
    try:
        driver = _text(_ask(nvml, "nvmlSystemGetDriverVersion"))
        devices = [_ask(nvml, "nvmlDeviceGetHandleByIndex", i) for i in range(_ask(nvml, "nvmlDeviceGetCount") or 0)]
        return tuple(_state(nvml, device, driver, all_seen) for device in devices)
    finally:
        # opened anew for each reading: one held open would keep an idle GPU awake, and the measured machine is another
        _ask(nvml, "nvmlShutdown")


def _opened() -> Any:  # noqa: ANN401
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return None
    return pynvml


def _state(nvml: Any, device: Any, driver: str | None, all_seen: bool) -> GpuState:  # noqa: ANN401
    if device is None:  # it fell off its bus: a GPU all the same
        return GpuState(driver_version=driver)

    def get(name: str, *arguments: int) -> Any:  # noqa: ANN401
        return _ask(nvml, f"nvmlDeviceGet{name}", device, *arguments)

    rates, memory = get("UtilizationRates"), get("MemoryInfo")
    temperature_c = get("Temperature", nvml.NVML_TEMPERATURE_GPU)
    reasons = get("CurrentClocksEventReasons")
    return GpuState(
        name=_text(get("Name")),
        driver_version=driver,
        sm_clock_mhz=get("ClockInfo", nvml.NVML_CLOCK_SM),
        max_sm_clock_mhz=get("MaxClockInfo", nvml.NVML_CLOCK_SM),
        memory_clock_mhz=get("ClockInfo", nvml.NVML_CLOCK_MEM),
        # each of these two has an older and a newer name
        temperature_c=get("TemperatureV", nvml.NVML_TEMPERATURE_GPU) if temperature_c is None else temperature_c,
        throttle_reasons=_words(get("CurrentClocksThrottleReasons") if reasons is None else reasons),
        power_w=_watts(get("PowerUsage")),
        power_limit_w=_watts(get("EnforcedPowerLimit")),
        performance_state=_performance_state(get("PerformanceState")),
        utilization_fraction=None if rates is None else rates.gpu / 100,
        memory_used_bytes=None if memory is None else memory.used,
        memory_total_bytes=None if memory is None else memory.total,
        other_processes=_others([get("ComputeRunningProcesses"), get("GraphicsRunningProcesses")], all_seen=all_seen),
    )


def _ask(nvml: Any, name: str, *arguments: Any) -> Any:  # noqa: ANN401
    """What a function of the library answers; None where it refuses, or where a library or driver of this age lacks it.

    Whatever it raises: not all is an NVMLError, and no reading is worth a launch.
    """
    try:
        return getattr(nvml, name)(*arguments)
    except UnicodeDecodeError as error:
        # the library decodes strictly: these are the bytes that it stumbled over
        return error.object
    except Exception:
        return None


def _others(lists: Sequence[Sequence[Any] | None], *, all_seen: bool) -> int | None:
    """How many processes of others are in the lists. Where some may be hidden: so many at least, None if none is seen.

    A process id that is nobody's here is a host's, seen from a container: it may be our own browser's.
    """
    listed = {process.pid for found in lists for process in found or ()}
    here = {pid for pid in listed if psutil.pid_exists(pid)}
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))} if here else set()
    whole = all_seen and here == listed and None not in lists
    return len(here - ours) or (0 if whole else None)


def _words(reasons: int | None) -> tuple[str, ...] | None:
    if reasons is None:
        return None
    bits = [bit for bit in range(reasons.bit_length()) if reasons >> bit & 1]
    return tuple(REASONS[bit] if bit < len(REASONS) else f"bit_{bit}" for bit in bits)


def _performance_state(number: int | None) -> int | None:
    """P0 to P15; NVML has 32 for one that is not known."""
    return number if number is not None and 0 <= number <= 15 else None


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else round(milliwatts / 1000, 1)


def _text(text: bytes | str | None) -> str | None:
    """A name may be of any bytes; what is no UTF-8 in it is replaced."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return None if raw is None else raw.decode("utf-8", "replace")
