"""How dispatches reach the GPU from Python: the hot loop that every figure of wgpu comes from, as pages/policy.js."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rig.native.door import now_us
from rig.records import Depth

Gpu = Any
"""An object of wgpu's, or of a stub's."""

_COMMAND_BUFFER, _PASS, _STATE, _DISPATCH = (
    list(Depth).index(depth) for depth in (Depth.command_buffer, Depth.compute_pass, Depth.state, Depth.dispatch)
)


@dataclass(frozen=True)
class Delivery:
    """How the values of dispatches reach their kernels, in the hooks of the hot loop.

    `fill(i, end)`: before the first command buffer of dispatches i to end. `copy(encoder, i, end)`: in its first
    encoder, before any pass. `bind(compute_pass, i)`: right before dispatch i. `ready()`: before a timed section.
    """

    fill: Callable[[int, int], None]
    copy: Callable[[Gpu, int, int], None]
    bind: Callable[[Gpu, int], None]
    ready: Callable[[], None]


@dataclass(frozen=True)
class Stamps:
    """Timestamp writes of the first, the last and the only pass; or of each."""

    first: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    only: dict[str, Any] | None = None
    each: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Batch:
    """n dispatches under a policy, in flat lists of length n. `bind` instead of a cached bind group, `go` instead of a
    direct dispatch.
    """

    n: int
    pipelines: list[Gpu]
    bind_groups: list[Gpu]
    workgroups: list[tuple[int, int, int]]
    per_pass: int
    per_command_buffer: int
    per_submit: int
    depth: int
    bind: Callable[[Gpu, int], None] | None
    go: Callable[[Gpu, int], None] | None
    deliver: Delivery | None


def issue(  # noqa: C901  the loop is one, as in the page
    device: Gpu, batch: Batch, stamps: Stamps, tail: Callable[[Gpu], None] | None
) -> dict[str, int]:
    """Issues the whole batch; returns what was counted while issuing. Nothing here waits.

    `tail` encodes into the last command buffer, after its passes.
    """
    n, depth, bind, go, deliver = batch.n, batch.depth, batch.bind, batch.go, batch.deliver
    pipelines, bind_groups, workgroups = batch.pipelines, batch.bind_groups, batch.workgroups
    queue = device.queue
    submits = command_buffers = passes = dispatches = i = 0
    while i < n:
        submit_end = min(n, i + batch.per_submit)
        held: list[Gpu] = []
        if depth < _COMMAND_BUFFER:
            i = submit_end
        if deliver is not None:
            deliver.fill(i, submit_end)
        while i < submit_end:
            buffer_end = min(submit_end, i + batch.per_command_buffer)
            encoder = device.create_command_encoder()
            if deliver is not None and not held:
                deliver.copy(encoder, i, submit_end)
            if depth < _PASS:
                i = buffer_end
            while i < buffer_end:
                pass_end = min(buffer_end, i + batch.per_pass)
                writes: dict[str, Any] | None
                if stamps.each:
                    writes = stamps.each[passes]
                elif pass_end == n:
                    writes = stamps.only if i == 0 else stamps.last
                else:
                    writes = stamps.first if i == 0 else None
                compute_pass = encoder.begin_compute_pass(timestamp_writes=writes)
                if depth < _STATE:
                    i = pass_end
                while i < pass_end:
                    compute_pass.set_pipeline(pipelines[i])
                    if bind is None:
                        compute_pass.set_bind_group(0, bind_groups[i])
                    else:
                        bind(compute_pass, i)
                    if deliver is not None:
                        deliver.bind(compute_pass, i)
                    if depth >= _DISPATCH:
                        if go is None:
                            compute_pass.dispatch_workgroups(*workgroups[i])
                        else:
                            go(compute_pass, i)
                        dispatches += 1
                    i += 1
                compute_pass.end()
                passes += 1
            if tail is not None and i == n:
                tail(encoder)
            held.append(encoder.finish())
        queue.submit(held)
        command_buffers += len(held)
        submits += 1
    return {"submits": submits, "command_buffers": command_buffers, "passes": passes, "dispatches": dispatches}


def issue_staged(device: Gpu, batch: Batch, make: Callable[[int], Gpu]) -> tuple[dict[str, int], dict[str, float]]:
    """The calls of one submit for each dispatch, but stage by stage over all of them; counts, and the time of each
    stage in µs. `make`: a new bind group for dispatch i.
    """
    n, calls_us = batch.n, {}
    queue, pipelines, workgroups = device.queue, batch.pipelines, batch.workgroups
    before = now_us()

    def stage(call: str, work: Callable[[int], Gpu]) -> list[Gpu]:
        nonlocal before
        made = [work(i) for i in range(n)]
        after = now_us()
        calls_us[call], before = after - before, after
        return made

    groups = stage("createBindGroup", make)
    encoders = stage("createCommandEncoder", lambda _: device.create_command_encoder())
    passes = stage("beginComputePass", lambda i: encoders[i].begin_compute_pass())
    stage("setPipeline", lambda i: passes[i].set_pipeline(pipelines[i]))
    stage("setBindGroup", lambda i: passes[i].set_bind_group(0, groups[i]))
    stage("dispatchWorkgroups", lambda i: passes[i].dispatch_workgroups(*workgroups[i]))
    stage("end", lambda i: passes[i].end())
    buffers = stage("finish", lambda i: [encoders[i].finish()])
    stage("submit", lambda i: queue.submit(buffers[i]))
    return {"submits": n, "command_buffers": n, "passes": n, "dispatches": n}, calls_us


# --- a device whose calls do nothing -----------------------------------------------------------------------------


class _StubPass:
    def set_pipeline(self, pipeline: Gpu) -> None: ...
    def set_bind_group(self, index: int, group: Gpu) -> None: ...
    def dispatch_workgroups(self, x: int, y: int = 1, z: int = 1) -> None: ...
    def end(self) -> None: ...


class _StubEncoder:
    def begin_compute_pass(self, *, timestamp_writes: Gpu = None) -> _StubPass:  # noqa: ARG002
        return _StubPass()

    def finish(self) -> None: ...


class StubDevice:
    """Issuing to it takes what the caller's own language takes."""

    @property
    def queue(self) -> StubDevice:
        return self

    def create_command_encoder(self) -> _StubEncoder:
        return _StubEncoder()

    def submit(self, command_buffers: list[Gpu]) -> None: ...
