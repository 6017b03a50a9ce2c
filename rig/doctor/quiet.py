"""Is the machine quiet, and is its CPU all ours and at one speed?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psutil

from rig import gates
from rig.doctor.finding import Finding, State
from rig.gates import Effects
from rig.records import Host, HostState

SHARED_MEMORY = "--disable-dev-shm-usage"
SMALL_BYTES = 256 << 20
"""Docker gives 64 MiB unless told otherwise; a browser under load wants more."""


def load(state: HostState, cores: int) -> Finding:
    """What else runs, by the gates of a run."""
    busy, steal = f"{state.cpu_busy_fraction:.0%}", f"{state.steal_fraction:.0%}"
    text = f"{busy} of {cores} cores busy, load {state.load_1min:g}, steal {steal}"
    found = gates.closed_before(state, cores, Effects(), first=True)
    stolen = state.steal_fraction > gates.STEAL
    if not found and not stolen:
        return Finding("load", State.fine, text)
    why = [gate.sentence for gate in found] + (["a hypervisor takes CPU time away"] if stolen else [])
    return Finding("load", State.note, f"{text}: {'; '.join(why)}", "end what else runs, or measure when it is quiet")


def speed(host: Host, state: HostState) -> Iterator[Finding]:
    """What holds the CPU back: its governor, a quota, and how often that stopped us."""
    if host.cpu_quota_cores is not None and host.cpu_quota_cores < host.cores:
        stopped = f", which stopped this group in {state.cpu_throttled_periods} of {state.cpu_periods} periods so far"
        text = f"a quota of {host.cpu_quota_cores:g} of {host.cores} cores{stopped if state.cpu_periods else ''}"
        yield Finding("CPU quota", State.note, text, "start the container without --cpus, or with --cpuset-cpus")
    else:
        yield Finding("CPU quota", State.fine, "none seen")
    if host.governor is None:
        yield Finding("CPU speed", State.fine, "the system does not say how it is chosen")
    elif host.governor == "performance":
        yield Finding("CPU speed", State.fine, "governor performance")
    else:
        mend = "cpupower frequency-set -g performance"
        yield Finding("CPU speed", State.note, f"governor {host.governor}: the clock moves with the load", mend)


def shared_memory(size_bytes: int | None, flags: Iterable[str] | None) -> Finding:
    """How much there is, and whether the browser was told to do without. `flags`: in force, None without a browser."""
    size = "no /dev/shm" if size_bytes is None else f"/dev/shm of {size_bytes / 2**20:,.0f} MiB"
    if flags is not None and SHARED_MEMORY in flags:
        return Finding("shared memory", State.fine, f"{size}; not used: {SHARED_MEMORY} is in force, files in /tmp are")
    text = f"{size}; {'used' if flags is not None else 'no browser ran'}, without {SHARED_MEMORY}"
    if size_bytes is None or size_bytes < SMALL_BYTES:
        mend = f"docker run --shm-size=1g, or --flag {SHARED_MEMORY}"
        return Finding("shared memory", State.note, text, mend)
    return Finding("shared memory", State.fine, text)


def leftovers(processes: Iterable[tuple[str, str]] | None = None) -> Finding:
    """Browsers that ended and that nobody took note of, from pairs of name and state; they pile up."""
    pairs = _running() if processes is None else processes
    dead = sum(state == psutil.STATUS_ZOMBIE and "chrom" in name.lower() for name, state in pairs)
    if dead:
        mend = "docker run --init, so that process 1 takes note of ended ones"
        return Finding("leftovers", State.note, f"{dead} ended browser processes are still in the table", mend)
    return Finding("leftovers", State.fine, "no ended browser is still in the table")


def _running() -> Iterator[tuple[str, str]]:
    for process in psutil.process_iter(["name", "status"]):
        yield process.info["name"] or "", process.info["status"] or ""
