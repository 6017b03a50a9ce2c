"""On what was this measured: adapter, build, clock, host, and what each launch met? Tables of plain strings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import msgspec

from rig.frames import Run
from rig.gates import Closed, throttled_fraction
from rig.records import Adapter, Build, GpuState, HostState, Launch, Outcome
from rig.report import findings, words


@dataclass(frozen=True)
class Table:
    """A table with a heading row; every row as long as it."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Facts:
    """Names and values, and long lists that stay folded until asked for."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    folded: tuple[tuple[str, str], ...] = ()


def first_line(text: str, limit: int = 240) -> str:
    """The first line with anything in it, cut where it is long."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return line if len(line) <= limit else f"{line[:limit]}…"


def facts(run: Run) -> list[Facts]:
    """Adapters, builds, clocks, host and rig."""
    found = [_adapter(adapter, run) for adapter in findings.adapters(run)]
    found += [_build(build, run) for build in findings.builds(run)]
    return [*found, _clock(run), _host(run), _rig(run)]


def _whose(what: str, launches: list[int], run: Run) -> str:
    if len(launches) == len(run.launches):
        return what
    return f"{what} of {'launch' if len(launches) == 1 else 'launches'} {words.listed(map(str, launches))}"


def _adapter(adapter: Adapter, run: Run) -> Facts:
    launches = [x.launch for x in run.launches if x.adapter is not None and x.adapter.itself == adapter.itself]
    named = ("vendor", "architecture", "device", "description", "driver", "renderer")
    pairs = [(name, words.given(getattr(adapter, name))) for name in named]
    kind = "yes, a software adapter: it computes on the CPU" if adapter.is_fallback else "no"
    pairs = [("asked for", words.given(run.manifest.plan.adapter_asked)), *pairs, ("fallback", kind)]
    folded = (
        ("features offered", _lines(adapter.features)),
        ("features enabled", _lines(adapter.enabled_features)),
        ("limits offered", _limits(adapter.limits)),
        ("limits granted", _limits(adapter.granted_limits)),
    )
    return Facts(_whose("Adapter", launches, run), tuple(pairs), folded)


def _build(build: Build, run: Run) -> Facts:
    launches = [launch.launch for launch in run.launches if launch.build == build]
    executors = dict.fromkeys(launch.executor for launch in run.launches if launch.build == build)
    pairs = (
        ("executor", words.listed(executors)),
        ("flavour", words.given(build.flavour)),
        ("version", words.given(build.version)),
        ("sha256", words.given(build.sha256)),
        ("executable", words.given(build.executable)),
        ("driven by", words.given(build.driver_version)),
    )
    return Facts(_whose("Browser build", launches, run), pairs, (("effective flags", _lines(build.flags)),))


def _clock(run: Run) -> Facts:
    clocks = [launch.clock for launch in run.launches if launch.clock is not None]
    ticks = [clock.tick_us for clock in clocks]
    step = f"{words.quantity(min(ticks), 'us')} to {words.quantity(max(ticks), 'us')}" if ticks else words.MISSING
    if len({words.number(tick) for tick in ticks}) == 1:
        step = words.quantity(ticks[0], "us")
    stamped = sum(clock.has_span for clock in clocks)
    isolated = sum(clock.isolated for clock in clocks)
    of = f"of {words.counted(len(clocks), 'launch', 'launches')}"
    return Facts("Clock", (
        ("smallest step seen", step),
        ("cross-origin isolated", f"{isolated} {of}"),
        ("secure context", f"{sum(clock.secure for clock in clocks)} {of}"),
        ("visibility", words.listed(dict.fromkeys(clock.visibility for clock in clocks)) or words.MISSING),
        ("GPU timestamps", f"{stamped} {of}"),
    ))  # fmt: skip


def _host(run: Run) -> Facts:
    host = run.manifest.host
    return Facts("Host", (
        ("system", words.given(host.system)),
        ("CPU", words.given(host.cpu)),
        ("cores", str(host.cores)),
        ("memory", _size(host.memory_bytes)),
        ("Python", words.given(host.python)),
        ("in a container", "yes" if host.container else "no"),
        ("as root", "yes" if host.root else "no"),
        ("CPU governor", words.given(host.governor or "")),
        ("CPU quota", words.exact(host.cpu_quota_cores, "cores") if host.cpu_quota_cores else "none seen"),
        ("shared memory", _size(host.shared_memory_bytes)),
    ))  # fmt: skip


def _rig(run: Run) -> Facts:
    made = run.manifest
    profile = msgspec.to_builtins(made.plan.profile)
    return Facts("Run", (
        ("rig version", words.given(made.rig.version)),
        ("source hash", words.given(made.rig.source_hash)),
        ("seed", str(made.plan.seed)),
        ("started", words.given(made.started)),
        ("ended", words.given(made.ended)),
    ), (("profile as resolved", json.dumps(profile, indent=1, ensure_ascii=False)),))  # fmt: skip


STATES: Mapping[str, Callable[[HostState], str]] = {
    "load, 1 min": lambda state: words.number(state.load_1min),
    "CPU busy": lambda state: words.percent(state.cpu_busy_fraction),
    "steal": lambda state: words.percent(state.steal_fraction),
    "busy processes": lambda state: words.exact(state.busy_processes),
    "waiting for a CPU": lambda state: words.percent(state.cpu_pressure_fraction),
    "CPU clock, MHz": lambda state: words.number(state.cpu_mhz),
    "temperature, °C": lambda state: words.number(state.temperature_c),
}
"""What the host was doing, by the column that tells it."""


def launch_table(run: Run) -> Table:
    """Every launch, what the host was doing before and after it, what disturbed it, and how it ended."""
    states = [name for name, told in STATES.items() if any(told(x.host_before) != words.MISSING for x in run.launches)]
    head = (
        "launch",
        "arm",
        "outcome",
        "blocks",
        *states,
        "stopped by a quota",
        "disturbed",
        "began",
        "ended",
        "detail",
    )
    disturbed = findings.disturbances(run)
    rows = (
        _launch(launch, launch.executor if launch.executor in run.also else "", states, disturbed[launch.launch])
        for launch in run.launches
    )
    return Table("Launches", head, tuple(rows))


def _launch(launch: Launch, executor: str, states: Sequence[str], disturbed: Sequence[Closed]) -> tuple[str, ...]:
    """`executor`: of a launch beside the main one's."""
    before, after = launch.host_before, launch.host_after
    outcome = "✓ ok" if launch.outcome is Outcome.ok else f"✗ {launch.outcome}".replace("_", " ")
    return (
        str(launch.launch),
        launch.arm or executor or "main",
        outcome,
        f"{launch.blocks:,}",
        *(f"{STATES[name](before)} → {STATES[name](after)}" for name in states),
        words.percent(throttled_fraction(before, after)),
        "; ".join(gate.sentence for gate in disturbed) or "no",
        _moment(launch.began),
        _moment(launch.ended),
        first_line(launch.detail) or "none",
    )


GPU_STATES: Mapping[str, Callable[[GpuState], str]] = {
    "SM clock, MHz": lambda gpu: _of(gpu.sm_clock_mhz, gpu.max_sm_clock_mhz),
    "memory clock, MHz": lambda gpu: words.exact(gpu.memory_clock_mhz),
    "temperature, °C": lambda gpu: words.exact(gpu.temperature_c),
    "power, W": lambda gpu: _of(gpu.power_w, gpu.power_limit_w),
    "state": lambda gpu: words.MISSING if gpu.performance_state is None else f"P{gpu.performance_state}",
    "not at its highest clock for": lambda gpu: _reasons(gpu.throttle_reasons),
    "other processes": lambda gpu: words.exact(gpu.other_processes),
}
"""What a GPU was doing, by the column that tells it."""


def gpu_table(run: Run) -> Table:
    """Every NVIDIA GPU before and after every launch; no rows where there is none."""
    met = [(launch, *pair) for launch in run.launches for pair in _gpus(launch)]
    states = [state for _, *pair in met for state in pair]
    told = [name for name, tell in GPU_STATES.items() if any(tell(state) != words.MISSING for state in states)]
    rows = (
        (
            str(launch.launch),
            words.given(before.name or after.name or ""),
            *(f"{GPU_STATES[name](before)} → {GPU_STATES[name](after)}" for name in told),
        )
        for launch, before, after in met
    )
    return Table("NVIDIA GPUs", ("launch", "GPU", *told), tuple(rows))


def _gpus(launch: Launch) -> Iterable[tuple[GpuState, GpuState]]:
    return zip_longest(launch.host_before.gpus, launch.host_after.gpus, fillvalue=GpuState())


def _of(value: float | None, most: float | None) -> str:
    """What is, and the most that could be."""
    return words.number(value) if value is None or most is None else f"{words.number(value)} of {words.number(most)}"


def _reasons(reasons: Sequence[str] | None) -> str:
    if reasons is None:
        return words.MISSING
    return ", ".join(reason.replace("_", " ") for reason in reasons) or "no reason"


def _moment(text: str) -> str:
    """A time to the second; anything that is none as it stands."""
    found = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)", text)
    return f"{found[1]} {found[2]}" if found else words.given(text)


def _size(size_bytes: int | None) -> str:
    return words.MISSING if size_bytes is None else f"{words.number(size_bytes / 2**30)} GiB"


def _lines(items: tuple[str, ...]) -> str:
    return "\n".join(items) or "none"


def _limits(limits: Mapping[str, int]) -> str:
    return "\n".join(f"{name}: {value:,}" for name, value in limits.items()) or "none"
