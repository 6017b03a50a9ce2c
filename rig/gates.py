"""Was a launch disturbed, and what follows from that? Pure: from the host's state around it and the page's clock.

A gate that closes has one of three effects. `note`: a sentence in the table of launches. `mark`: also a banner at the
top of the report. `refuse`: nothing is measured; what is seen only after a launch can't be refused and marks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rig.records import Adapter, Clock, HostState, Launch, Record


class Effect(StrEnum):
    note = "note"
    mark = "mark"
    refuse = "refuse"


class Effects(Record, frozen=True):
    """What each gate does when it closes; a profile may say otherwise.

    busy, full: part of the CPU that others use before a launch, and before the first one. others: processes that do
    so. load: average load of the last minute. steal: time that a hypervisor gave to others. throttled: periods in which
    a quota stopped us. clock, hidden: the page's clock is coarse; the page is not visible. gpu_throttled: the GPU was
    held back. gpu_users: others use it before a launch.
    """

    busy: Effect = Effect.mark
    full: Effect = Effect.refuse
    others: Effect = Effect.note
    load: Effect = Effect.note
    steal: Effect = Effect.mark
    throttled: Effect = Effect.mark
    clock: Effect = Effect.mark
    hidden: Effect = Effect.refuse
    gpu_throttled: Effect = Effect.mark
    gpu_users: Effect = Effect.note


BUSY, FULL, STEAL, THROTTLED = 0.5, 0.9, 0.05, 0.01
"""Fractions, of all cores or of the quota's periods, above which the gate of that name closes."""

COARSE_TICK_US = 50.0
"""From here on the page's clock is one that a browser without cross-origin isolation gives."""

HELD_BACK = ("power_cap", "hardware_slowdown", "thermal_software", "thermal_hardware", "power_brake")
"""Reasons for a GPU's clock that say it can't do what it could; the others say that it is idle, or was set so."""


@dataclass(frozen=True)
class Closed:
    """A gate that closed: its effect, why in one sentence, and `cause`, the part of it that launches have in common."""

    gate: str
    effect: Effect
    cause: str
    found: str

    @property
    def sentence(self) -> str:
        return f"{self.cause}: {self.found}"

    @property
    def marks(self) -> bool:
        """A launch that was made could not be refused any more."""
        return self.effect is not Effect.note


def closed_before(state: HostState, cores: int, effects: Effects, *, first: bool) -> list[Closed]:
    """Gates that close on what the machine does before a launch. `first`: nothing of this run has been measured yet."""
    busy, others = state.cpu_busy_fraction, state.busy_processes or 0
    found = f"{busy:.0%} of it"
    looked_at = (
        (first and busy > FULL, "full", f"the CPU was over {FULL:.0%} busy before the run", found),
        (busy > BUSY, "busy", f"the CPU was over {BUSY:.0%} busy before the launch", found),
        (others > 0, "others", "other processes used the CPU before the launch", f"{others} of them"),
        (state.load_1min > cores, "load", "the load was above the cores", f"{state.load_1min:.3g} on {cores}"),
    )
    return _those_closed(looked_at, effects)


def closed_on_page(clock: Clock | None, effects: Effects) -> list[Closed]:
    """Gates that close on the page's surroundings."""
    if clock is None:
        return []
    coarse, hidden = clock.tick_us >= COARSE_TICK_US, clock.visibility != "visible"
    looked_at = (
        (coarse, "clock", "the page's clock is coarse", f"steps of {clock.tick_us:.3g} µs"),
        (hidden, "hidden", "the page was not visible", f"it was {clock.visibility}"),
    )
    return _those_closed(looked_at, effects)


def closed_on_gpu(
    adapter: Adapter | None, effects: Effects, before: HostState, after: HostState | None = None
) -> list[Closed]:
    """Gates that close on the state of NVIDIA GPUs, where the adapter is one. Which one is not told: any will do."""
    if adapter is None or adapter.is_fallback or adapter.vendor.lower() not in ("nvidia", ""):
        return []
    states = before.gpus + (after.gpus if after is not None else ())
    met = {reason for gpu in states for reason in gpu.throttle_reasons or ()}
    why = ", ".join(reason.replace("_", " ") for reason in HELD_BACK if reason in met)
    users = max((gpu.other_processes or 0 for gpu in before.gpus), default=0)
    looked_at = (
        (bool(why), "gpu_throttled", "the GPU was held back", why),
        (users > 0, "gpu_users", "other processes used the GPU before the launch", f"{users} of them"),
    )
    return _those_closed(looked_at, effects)


def closed(launch: Launch, cores: int, effects: Effects, *, first: bool) -> list[Closed]:
    """All gates that closed on a launch that was made."""
    before, after = launch.host_before, launch.host_after
    steal = max(before.steal_fraction, after.steal_fraction)
    throttled = throttled_fraction(before, after) or 0.0
    looked_at = (
        (steal > STEAL, "steal", "a hypervisor took CPU time away", f"{steal:.0%} of it"),
        (throttled > THROTTLED, "throttled", "a CPU quota stopped the launch", f"in {throttled:.0%} of its periods"),
    )
    return [
        *closed_before(before, cores, effects, first=first),
        *_those_closed(looked_at, effects),
        *closed_on_gpu(launch.adapter, effects, before, after),
        *closed_on_page(launch.clock, effects),
    ]


def _those_closed(looked_at: Iterable[tuple[bool, str, str, str]], effects: Effects) -> list[Closed]:
    return [Closed(gate, getattr(effects, gate), cause, found) for closes, gate, cause, found in looked_at if closes]


def throttled_fraction(before: HostState, after: HostState) -> float | None:
    """The share of the quota's periods from one state to the other in which it stopped us."""
    counts = (before.cpu_periods, after.cpu_periods, before.cpu_throttled_periods, after.cpu_throttled_periods)
    if any(count is None for count in counts):
        return None
    first, last, stopped_before, stopped = (count or 0 for count in counts)
    return max(0, stopped - stopped_before) / (last - first) if last > first else 0.0


def refusal(gates: list[Closed]) -> str:
    """Why nothing is to be measured, and how to do so all the same; nothing where no gate refuses."""
    refusing = next((gate for gate in gates if gate.effect is Effect.refuse), None)
    if refusing is None:
        return ""
    return f"{refusing.sentence} (gate '{refusing.gate}'; --set gates.{refusing.gate}=mark measures all the same)"


def marks(by_launch: Mapping[int, list[Closed]]) -> dict[str, int]:
    """Causes for which launches are marked, and of how many each is one."""
    counts: dict[str, int] = {}
    for gates in by_launch.values():
        for cause in dict.fromkeys(gate.cause for gate in gates if gate.marks):
            counts[cause] = counts.get(cause, 0) + 1
    return counts
