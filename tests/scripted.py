"""A scripted executor: stands in for a browser, with times from a model and faults on demand, and no clock at all."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rig.executors.base import ExecutorFault, Timing
from rig.policies import conflict, reaches, runs, structure
from rig.programs import reference
from rig.programs.fill import Array
from rig.records import Adapter, Build, Clock, Outcome, Policy, Program, Stamps

ADAPTER = Adapter(
    vendor="scripted",
    architecture="paper",
    device="",
    description="",
    is_fallback=True,
    features=("timestamp-query",),
    limits={"maxBufferSize": 1 << 28, "maxComputeWorkgroupsPerDimension": 65535},
    driver="scripted 1.0",
    renderer="paper",
    enabled_features=("timestamp-query",),
    granted_limits={"maxBufferSize": 1 << 28, "maxComputeWorkgroupsPerDimension": 65535},
)

BUILD = Build(
    flavour="scripted",
    version="1.2.3.4",
    sha256="0" * 64,
    executable="scripted",
    flags=("--scripted",),
    driver_version="scripted",
)

CLOCK = Clock(tick_us=5.0, isolated=True, secure=True, visibility="visible", has_span=True)


@dataclass
class Model:
    """Time of n dispatches under a policy, in µs: a fixed part, a polled floor, and so much for each dispatch."""

    per_dispatch_us: dict[str, float] = field(default_factory=lambda: {"submit_each": 40.0, "one_pass": 6.0})
    fixed_us: float = 300.0
    floor_us: float = 0.0
    noise: float = 0.02
    span_scale: float = 1.0  # of the timestamps only: the wrong unit
    factor: dict[str, float] = field(default_factory=dict)  # by program name, on everything
    arms: dict[str, float] = field(default_factory=dict)  # by toggle, on everything
    empty_us: float = 0.0  # the least that n = 0 takes
    calls_us: dict[str, float] = field(default_factory=dict)  # of a staged policy, by call

    def span_us(self, policy: Policy, n: int) -> float:
        known = self.per_dispatch_us
        return known.get(policy.name, known.get(re.split("[+@]", policy.name)[0], 10.0)) * n

    def wall_us(self, policy: Policy, n: int) -> float:
        return max(self.fixed_us + self.span_us(policy, n), self.floor_us)


Fault = Callable[["ScriptedSession", Policy, int], ExecutorFault | None]


def no_fault(session: ScriptedSession, policy: Policy, n: int) -> None:
    """Nothing goes wrong."""


@dataclass
class ScriptedExecutor:
    """`fault` is asked before each execution; `wrong_after`: executions after which dispatches silently do nothing."""

    model: Model = field(default_factory=Model)
    fault: Fault = no_fault
    adapter: Adapter = ADAPTER
    clock: Clock = CLOCK
    start_fault: ExecutorFault | None = None
    load_fault: ExecutorFault | None = None
    wrong_after: int = 10**9
    cpu_us: Callable[[int], dict[str, float]] | None = None
    toggle_ignored: bool = False
    replays: bool = False
    name: str = "scripted"
    build_id: str = "scripted 1.2.3.4"
    flags: tuple[str, ...] = ("--scripted",)
    launches: int = 0
    open_sessions: int = 0

    def takes(self, program: Program, policy: Policy) -> bool:  # noqa: ARG002
        return not policy.replayed or self.replays or self.name == "scripted"

    def launch(self, limits: dict[str, int], extra_flags: tuple[str, ...] = ()) -> ScriptedSession:  # noqa: ARG002
        self.launches += 1
        if self.start_fault is not None:
            raise self.start_fault
        self.open_sessions += 1
        return ScriptedSession(self, np.random.default_rng(self.launches), extra_flags)

    def close(self) -> None:
        assert self.open_sessions == 0, "a session was left open"


class ScriptedSession:
    def __init__(self, executor: ScriptedExecutor, rng: np.random.Generator, extra_flags: tuple[str, ...] = ()) -> None:
        self.executor = executor
        self.extra_flags = extra_flags
        self.rng = rng
        self.build = BUILD
        self.adapter = executor.adapter
        self.clock = executor.clock
        self.number = executor.launches
        self.executions = 0
        self.issued: dict[str, int] = {}
        self.ran: dict[str, list[int]] = {}

    def load(self, program: Program) -> None:  # noqa: ARG002
        if self.executor.load_fault is not None:
            raise self.executor.load_fault

    def reset(self, program: Program) -> None:
        self.issued[program.name] = 0
        self.ran[program.name] = []

    def outputs(self, program: Program) -> tuple[int, dict[str, Array]]:
        return self.issued[program.name], reference.run(program, *self.ran[program.name])

    def time(self, program: Program, policy: Policy, n: int) -> Timing:
        self.executions += 1
        fault = self.executor.fault(self, policy, n)
        if fault is not None:
            raise fault
        issued = structure(policy, n)
        for _ in range(runs(policy)):
            self.issued[program.name] += reaches(policy, n)
            if self.executions <= self.executor.wrong_after:
                self.ran[program.name].append(reaches(policy, n))
        model = self.executor.model
        scatter = float(np.exp(self.rng.normal(0, model.noise))) * model.factor.get(program.name, 1.0)
        scatter *= model.arms.get("".join(self.extra_flags).removeprefix("--enable-dawn-features="), 1.0)
        if n == 0:
            scatter = max(scatter, model.empty_us / model.wall_us(policy, n))
        wall_us = model.wall_us(policy, n) * scatter
        span_ns = int(model.span_us(policy, n) * model.span_scale * scatter * 1000)
        stamped = self.clock.has_span and issued["passes"] > 0 and not policy.staged
        pairs = issued["passes"] if policy.stamps is Stamps.passes else 1
        edges = [1000 + span_ns * i // pairs for i in range(pairs + 1)]
        return Timing(
            wall_us=wall_us,
            encode_us=0.3 * n,
            stamps_ns=tuple(str(x) for pair in itertools.pairwise(edges) for x in pair) if stamped else None,
            issued=issued,
            cpu_us=self.executor.cpu_us(n) if self.executor.cpu_us else None,
            switches={"gpu_main": 2.0 * n, "renderer_main": 1.0 * n} if self.executor.cpu_us else None,
            calls_us={call: us * n for call, us in model.calls_us.items()} if policy.staged else None,
        )

    def conflict(self, program: Program, policy: Policy, n: int) -> str:
        return "" if policy.replayed and self.executor.replays else conflict(program, policy, n)

    def validates(self) -> bool:
        return "skip_validation" not in " ".join(self.extra_flags) or self.executor.toggle_ignored

    def close(self) -> None:
        self.executor.open_sessions -= 1


def fault_at(outcome: Outcome, *, policy: str = "one_pass", n: int = 50, launches: int = 10**9) -> Fault:
    """A fault whenever `policy` runs n dispatches, in the first `launches` launches."""

    def fault(session: ScriptedSession, at: Policy, count: int) -> ExecutorFault | None:
        hit = at.name == policy and count == n and session.number <= launches
        return ExecutorFault(outcome, f"planted {outcome}") if hit else None

    return fault
