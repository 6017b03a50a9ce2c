"""What every executor can do: start a process that runs programs under policies, and say what went wrong."""

from __future__ import annotations

from typing import Protocol

from rig.programs.fill import Array
from rig.records import Adapter, Build, Clock, Outcome, Policy, Program, Record


class ExecutorFault(Exception):
    """A call that gave no answer that counts. `detail` is never empty."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail or outcome.value


class Timing(Record, frozen=True):
    """One timed execution: microseconds by the page's clock, raw GPU timestamps, and what was counted while issuing.

    `stamps_ns`: begin and end of all passes together, or of each in turn. `cpu_us`, `switches`: CPU time and context
    switches by process and thread class, of the whole call, where the system tells. `calls_us`: of a staged policy.
    """

    wall_us: float
    encode_us: float
    stamps_ns: tuple[str, ...] | None
    issued: dict[str, int]
    cpu_us: dict[str, float] | None = None
    switches: dict[str, float] | None = None
    calls_us: dict[str, float] | None = None


class Session(Protocol):
    """One launch. Every call ends by itself, within a deadline; ExecutorFault where it has no answer that counts."""

    @property
    def build(self) -> Build: ...
    @property
    def adapter(self) -> Adapter: ...
    @property
    def clock(self) -> Clock: ...

    def load(self, program: Program) -> None:
        """Makes buffers, pipelines and bind groups, without contents."""

    def reset(self, program: Program) -> None:
        """Writes the first contents of every buffer."""

    def outputs(self, program: Program) -> tuple[int, dict[str, Array]]:
        """Dispatches issued since the last reset, and the outputs as they stand now."""

    def time(self, program: Program, policy: Policy, n: int) -> Timing:
        """Runs the first n dispatches of a loaded program under `policy`, once, and times it."""

    def conflict(self, program: Program, policy: Policy, n: int) -> str:
        """Why it can't run the first n dispatches so; empty where it can. Usually rig.policies.conflict."""

    def validates(self) -> bool:
        """Whether the device says so when it is used wrongly: with its validation switched off it does not."""

    def close(self) -> None:
        """Ends the process, by force if need be. Never raises."""


class Executor(Protocol):
    """Where launches come from."""

    name: str

    @property
    def build_id(self) -> str: ...
    @property
    def flags(self) -> tuple[str, ...]: ...

    def takes(self, program: Program, policy: Policy) -> bool:
        """Whether such cells are for this executor at all."""

    def launch(self, limits: dict[str, int], extra_flags: tuple[str, ...] = ()) -> Session:
        """Starts a fresh process whose device has at least `limits`, as far as the adapter goes."""

    def close(self) -> None: ...
