"""What NVML tells of GPUs, by a planted library: each field, and that what is not told is None and never an error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from rig import host, nvml
from rig.records import GpuState, HostState, Launch, decode, encode
from rig.store import read_launches

NOBODY = 1 << 30
"""No process has this id: the kernel's highest is 1 << 22."""

PUBLISHED = Path(__file__).resolve().parents[1] / "reports"


class NVMLError(Exception):
    pass


class NVMLLibraryMismatchError(Exception):
    """What the real library raises where its driver is older than it is: no NVMLError."""


def refuse(*_: object) -> Any:  # noqa: ANN401
    raise NVMLError


def mismatch(*_: object) -> Any:  # noqa: ANN401
    raise NVMLLibraryMismatchError


def processes(*pids: int) -> list[SimpleNamespace]:
    return [SimpleNamespace(pid=pid, usedGpuMemory=1) for pid in pids]


class Library:
    """Stands in for pynvml: one function for each thing that is asked for, and `asked`, what was."""

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2

    def __init__(self, **changes: Callable[..., Any]) -> None:
        self.asked: list[str] = []
        self.open = 0
        device: dict[str, Callable[..., Any]] = {
            "Name": lambda _: "NVIDIA H200",
            "ClockInfo": lambda _, clock: {1: 345, 2: 3201}[clock],
            "MaxClockInfo": lambda _, clock: {1: 1980}[clock],
            "Temperature": lambda _, sensor: {0: 31}[sensor],
            "PowerUsage": lambda _: 76_543,
            "EnforcedPowerLimit": lambda _: 700_000,
            "PerformanceState": lambda _: 0,
            "UtilizationRates": lambda _: SimpleNamespace(gpu=7, memory=1),
            "MemoryInfo": lambda _: SimpleNamespace(total=1 << 37, used=1 << 20, free=1),
            "CurrentClocksEventReasons": lambda _: 0b101,
            "ComputeRunningProcesses": lambda _: [],
            "GraphicsRunningProcesses": lambda _: [],
        }
        self.functions: dict[str, Callable[..., Any]] = {
            "nvmlInit": lambda: self._count(1),
            "nvmlShutdown": lambda: self._count(-1),
            "nvmlSystemGetDriverVersion": lambda: "570.1",
            "nvmlDeviceGetCount": lambda: 1,
            "nvmlDeviceGetHandleByIndex": lambda index: f"GPU {index}",
            **{f"nvmlDeviceGet{name}": answer for name, answer in device.items()},
            **changes,
        }

    def _count(self, change: int) -> None:
        self.open += change

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("nvml"):  # Python itself asks for other things when a module is imported
            self.asked.append(name)
        if name not in self.functions:
            raise AttributeError(name)
        return self.functions[name]


Plant = Callable[..., Library]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    def planted(**changes: Callable[..., Any]) -> Library:
        library = Library(**changes)
        monkeypatch.setitem(sys.modules, "pynvml", library)
        return library

    return planted


WHOLE = GpuState(
    name="NVIDIA H200",
    driver_version="570.1",
    sm_clock_mhz=345,
    max_sm_clock_mhz=1980,
    memory_clock_mhz=3201,
    temperature_c=31,
    power_w=76.5,
    power_limit_w=700.0,
    performance_state=0,
    utilization_fraction=0.07,
    memory_used_bytes=1 << 20,
    memory_total_bytes=1 << 37,
    throttle_reasons=("gpu_idle", "power_cap"),
    other_processes=0,
)


def test_a_gpu_that_tells_everything_is_told_in_full_and_the_library_is_left_closed(plant: Plant) -> None:
    library = plant()
    assert nvml.read() == (WHOLE,)
    assert library.open == 0


def test_nothing_is_ever_set_and_no_identifier_asked_for(plant: Plant) -> None:
    library = plant()
    nvml.read()
    assert all(
        name.startswith(("nvmlDeviceGet", "nvmlSystemGet", "nvmlInit", "nvmlShutdown")) for name in library.asked
    )
    assert not [name for name in library.asked if "UUID" in name or "Serial" in name or "ProcessName" in name]


def test_the_real_library_has_all_that_is_asked_for(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = plant(nvmlDeviceGetTemperature=refuse, nvmlDeviceGetCurrentClocksEventReasons=refuse).asked
    nvml.read()
    monkeypatch.undo()
    real = pytest.importorskip("pynvml")
    names = [*asked, "NVML_TEMPERATURE_GPU", "NVML_CLOCK_SM", "NVML_CLOCK_MEM"]
    # TemperatureV is newer than the oldest library that will do
    assert [name for name in names if not hasattr(real, name)] in ([], ["nvmlDeviceGetTemperatureV"])
    assert (real.NVML_TEMPERATURE_GPU, real.NVML_CLOCK_SM, real.NVML_CLOCK_MEM) == (0, 1, 2)
    assert {"gpu_idle": real.nvmlClocksThrottleReasonGpuIdle, "power_brake": 0x80} == {
        nvml.REASONS[0]: 1,
        nvml.REASONS[7]: real.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    }


def test_without_the_library_or_a_driver_there_is_nothing(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    for fail in (refuse, mismatch):
        plant(nvmlInit=fail)
        assert nvml.read() == ()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml.read() == ()


def test_a_driver_that_does_not_count_its_gpus_shows_none_and_is_closed_again(plant: Plant) -> None:
    library = plant(nvmlDeviceGetCount=refuse)
    assert nvml.read() == ()
    assert library.open == 0


def test_a_gpu_that_tells_nothing_is_one_all_the_same(plant: Plant) -> None:
    silent = {name: refuse for name in Library().functions if name.startswith(("nvmlDeviceGet", "nvmlSystem"))}
    plant(**silent | {"nvmlDeviceGetCount": lambda: 2, "nvmlDeviceGetHandleByIndex": lambda index: index})
    assert nvml.read() == (GpuState(), GpuState())


def test_a_gpu_that_fell_off_its_bus_keeps_its_place(plant: Plant) -> None:
    plant(nvmlDeviceGetCount=lambda: 2, nvmlDeviceGetHandleByIndex=lambda index: index or refuse())
    assert nvml.read() == (GpuState(driver_version="570.1"), WHOLE)


FIELDS = {
    "Name": ["name"],
    "ClockInfo": ["sm_clock_mhz", "memory_clock_mhz"],
    "MaxClockInfo": ["max_sm_clock_mhz"],
    "Temperature": ["temperature_c"],
    "PowerUsage": ["power_w"],
    "EnforcedPowerLimit": ["power_limit_w"],
    "PerformanceState": ["performance_state"],
    "UtilizationRates": ["utilization_fraction"],
    "MemoryInfo": ["memory_used_bytes", "memory_total_bytes"],
    "CurrentClocksEventReasons": ["throttle_reasons"],
    "ComputeRunningProcesses": ["other_processes"],
    "GraphicsRunningProcesses": ["other_processes"],
}


@pytest.mark.parametrize("fail", [refuse, mismatch])
@pytest.mark.parametrize("name", FIELDS)
def test_what_a_gpu_does_not_tell_is_none_and_the_rest_stands(
    plant: Plant, name: str, fail: Callable[..., Any]
) -> None:
    plant(**{f"nvmlDeviceGet{name}": fail})
    assert nvml.read() == (replace(WHOLE, **dict.fromkeys(FIELDS[name])),)


def test_b44_any_name_survives_as_bytes_as_text_and_where_the_library_stumbles(plant: Plant) -> None:
    named = "Quadro \ufffd 中/x"
    raw = b"Quadro \xf8 \xe4\xb8\xad/x"
    for answer in (lambda _: raw, lambda _: named, lambda _: raw.decode()):
        plant(nvmlDeviceGetName=answer)
        (found,) = nvml.read()
        assert found.name == named
        assert decode(encode(found), GpuState) == found
    plant(nvmlDeviceGetName=lambda _: raw.decode("utf-8", "surrogateescape"))
    (found,) = nvml.read()
    assert decode(encode(found), GpuState).name == "Quadro \ufffd\ufffd\ufffd 中/x"


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (0, ()),
        (0x1, ("gpu_idle",)),
        (0x2, ("applications_clocks",)),
        (0x4, ("power_cap",)),
        (0x8 | 0x40, ("hardware_slowdown", "thermal_hardware")),
        (0x10, ("sync_boost",)),
        (0x20, ("thermal_software",)),
        (0x80, ("power_brake",)),
        (0x100, ("display_clocks",)),
        (1 << 40, ("bit_40",)),
    ],
)
def test_reasons_are_words_and_none_is_told_apart_from_no_reason(
    plant: Plant, mask: int, words: tuple[str, ...]
) -> None:
    plant(nvmlDeviceGetCurrentClocksEventReasons=lambda _: mask)
    assert nvml.read()[0].throttle_reasons == words


def test_older_and_newer_names_of_a_function_will_do(plant: Plant) -> None:
    library = plant(nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x4, nvmlDeviceGetTemperatureV=lambda *_: 44)
    del library.functions["nvmlDeviceGetCurrentClocksEventReasons"], library.functions["nvmlDeviceGetTemperature"]
    assert nvml.read() == (replace(WHOLE, throttle_reasons=("power_cap",), temperature_c=44),)


def test_a_state_that_is_not_known_is_none(plant: Plant) -> None:
    plant(nvmlDeviceGetPerformanceState=lambda _: 32)
    assert nvml.read()[0].performance_state is None


# --- processes ---


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n")


def test_processes_of_others_are_counted_once_and_our_own_and_our_childrens_are_not(plant: Plant, child: int) -> None:
    plant(
        nvmlDeviceGetComputeRunningProcesses=lambda _: processes(os.getpid(), child, os.getppid()),
        nvmlDeviceGetGraphicsRunningProcesses=lambda _: processes(os.getppid()),
    )
    assert nvml.read()[0].other_processes == 1


@pytest.mark.parametrize(
    ("pids", "all_seen", "count"),
    [
        ((), True, 0),
        ((), False, None),
        ((NOBODY,), True, None),
        ((NOBODY,), False, None),
        ((os.getpid(),), False, None),
        ((os.getppid(), NOBODY), False, 1),
    ],
)
def test_where_processes_may_be_hidden_those_seen_count_and_none_seen_is_not_zero(
    plant: Plant, pids: tuple[int, ...], all_seen: bool, count: int | None
) -> None:
    plant(nvmlDeviceGetComputeRunningProcesses=lambda _: processes(*pids))
    assert nvml.read(all_seen=all_seen)[0].other_processes == count


@pytest.mark.parametrize(
    ("namespace", "marked", "seen"),
    [
        ("pid:[4026531836]", False, True),
        ("pid:[4026532201]", False, False),
        ("pid:[4026531836]", True, False),
        ("", False, True),
    ],
)
def test_a_container_hides_processes_by_its_mark_or_by_its_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str, marked: bool, seen: bool
) -> None:
    monkeypatch.setattr(host, "in_container", lambda: marked)
    (tmp_path / "self" / "ns").mkdir(parents=True)
    if namespace:
        (tmp_path / "self" / "ns" / "pid").symlink_to(namespace)
    assert host.sees_all_processes(tmp_path) is seen


# --- records ---


def test_the_state_of_the_host_has_the_gpus_and_comes_back_whole(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "sees_all_processes", lambda: True)
    plant()
    state = host.state(0.01)
    assert state.gpus == (WHOLE,)
    assert decode(encode(state), HostState) == state


@pytest.mark.parametrize(
    "run", sorted(path.parent for path in PUBLISHED.glob("*/launches.jsonl")), ids=lambda p: p.name
)
def test_runs_stored_before_gpus_were_read_can_still_be_read(run: Path) -> None:
    lines = (run / "launches.jsonl").read_text(encoding="utf-8").splitlines()
    old = [decode(line, Launch) for line in lines if '"gpus"' not in line]
    assert all(launch.host_before.gpus == () for launch in old)
    assert len(read_launches(run)) == len(lines)


def test_a_state_without_gpus_is_one_where_none_was_read() -> None:
    old = b'{"load_1min":0.1,"cpu_busy_fraction":0.2,"steal_fraction":0.0,"memory_free_bytes":5}'
    assert decode(old, HostState).gpus == ()
