"""A program made real on a device of wgpu's: buffers, pipelines, bind groups; and its batches, compiled once each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import wgpu

from rig.native.deliver import VALUE_BYTES, Carried, delivery
from rig.native.issue import Batch, Delivery, Gpu
from rig.native.span import StampClock
from rig.policies import structure
from rig.programs.fill import contents
from rig.records import BindGroups, Depth, Kernel, Parameters, Policy, Program, Stamps, Uniforms, Workgroups

_SHIFTING = (Uniforms.dynamic_offset, Uniforms.mapped_ring)
"""Ways of delivery that bind at an offset which each dispatch brings."""


@dataclass
class Compiled:
    """A batch with what a sample of it needs. `settled`: what it is made of has reached the GPU."""

    batch: Batch
    passes: StampClock | None
    make: Callable[[int], Gpu]
    settled: bool = False


class LoadedProgram:
    """`issued`: dispatches since the last reset."""

    def __init__(self, device: Gpu, program: Program) -> None:
        self.device = device
        self.program = program
        self.issued = 0
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        # a write is of whole words, so a buffer of odd 16-bit floats has one more
        self._buffers = {
            b.name: device.create_buffer(size=-(-b.size_bytes // 4) * 4, usage=usage) for b in program.buffers
        }
        self._pipelines: dict[tuple[str, bool], Gpu] = {}
        for kernel in program.kernels:
            for shifting in (False, True) if kernel.parameters is Parameters.uniform else (False,):
                self._pipelines[kernel.name, shifting] = self._compile(kernel, shifting)
        self._described = [self._describe(k) for k in range(len(program.dispatches))]
        self._bind_groups = [device.create_bind_group(**descriptor) for descriptor in self._described]
        self._values = [np.resize([*d.values, 0, 0, 0, 0], 4).astype(np.float32) for d in program.dispatches]
        self._batches: dict[tuple[Policy, int], Compiled] = {}
        # The map waiter copies the first word of the first output behind the last dispatch, and maps that.
        self.probe = device.create_buffer(size=4, usage=wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.MAP_READ)

    def reset(self) -> None:
        """Writes every buffer's first contents again."""
        for buffer in self.program.buffers:
            data = contents(buffer).tobytes()
            self.device.queue.write_buffer(self._buffers[buffer.name], 0, data + bytes(-len(data) % 4))
        self.issued = 0

    def outputs(self) -> dict[str, bytes]:
        """What stands in every output."""
        found = {}
        for buffer in self.program.buffers:
            if buffer.name in self.program.outputs:
                raw = self.device.queue.read_buffer(self._buffers[buffer.name])
                found[buffer.name] = bytes(raw)[: buffer.size_bytes]
        return found

    def encode_probe(self, encoder: Gpu) -> None:
        encoder.copy_buffer_to_buffer(self._buffers[self.program.outputs[0]], 0, self.probe, 0, 4)

    def batch(self, policy: Policy, n: int) -> Compiled:
        """The first n dispatches of the program, its list begun again as often as it takes."""
        if (policy, n) not in self._batches:
            self._batches[policy, n] = self._compile_batch(policy, n)
        return self._batches[policy, n]

    # --- small parts ---

    def _compile_batch(self, policy: Policy, n: int) -> Compiled:
        dispatches = self.program.dispatches
        at = [i % len(dispatches) for i in range(n)]
        shifting = policy.uniforms in _SHIFTING
        created = policy.bind_groups is BindGroups.created

        def make(i: int) -> Gpu:
            return self.device.create_bind_group(**self._described[at[i]])

        carries = any(kernel.parameters is not Parameters.none for kernel in self.program.kernels)
        batch = Batch(
            n=n,
            pipelines=[self._pipelines[dispatches[k].kernel, shifting] for k in at],
            bind_groups=[self._bind_groups[k] for k in at],
            workgroups=[dispatches[k].workgroups for k in at],
            per_pass=policy.dispatches_per_pass or n,
            per_command_buffer=policy.dispatches_per_command_buffer or n,
            per_submit=policy.dispatches_per_submit or n,
            depth=list(Depth).index(policy.depth),
            bind=(lambda compute_pass, i: compute_pass.set_bind_group(0, make(i))) if created else None,
            go=self._indirect(at) if policy.workgroups is Workgroups.indirect else None,
            deliver=self._delivery(policy, at, shifting) if carries and n > 0 else None,
        )
        stamped = policy.stamps is Stamps.passes and "timestamp-query" in self.device.features
        passes = StampClock(self.device, 2 * structure(policy, n)["passes"]) if stamped else None
        return Compiled(batch, passes, make)

    def _indirect(self, at: list[int]) -> Callable[[Gpu, int], None]:
        sizes = np.array([dispatch.workgroups for dispatch in self.program.dispatches], dtype=np.uint32)
        usage = wgpu.BufferUsage.INDIRECT | wgpu.BufferUsage.COPY_DST
        buffer = self.device.create_buffer(size=sizes.nbytes, usage=usage)
        self.device.queue.write_buffer(buffer, 0, sizes)
        return lambda compute_pass, i: compute_pass.dispatch_workgroups_indirect(buffer, 12 * at[i])

    def _delivery(self, policy: Policy, at: list[int], shifting: bool) -> Delivery:
        kernel = self.program.dispatches[0].kernel

        def group(buffer: Gpu) -> Gpu:
            layout = self._pipelines[kernel, shifting].get_bind_group_layout(1)
            resource = {"buffer": buffer, "offset": 0, "size": VALUE_BYTES}
            return self.device.create_bind_group(layout=layout, entries=[{"binding": 0, "resource": resource}])

        per_submit = policy.dispatches_per_submit or len(at)
        created = policy.bind_groups is BindGroups.created
        values = [self._values[k] for k in at]
        return delivery(policy.uniforms, Carried(self.device, values, per_submit, group, created))

    def _describe(self, k: int) -> dict[str, Any]:
        """Group 0 of the k-th dispatch of the list."""
        dispatch = self.program.dispatches[k]
        resources = [
            {"buffer": self._buffers[name], "offset": 0, "size": self._buffers[name].size} for name in dispatch.bindings
        ]
        return {
            "layout": self._pipelines[dispatch.kernel, False].get_bind_group_layout(0),
            "entries": [{"binding": binding, "resource": resource} for binding, resource in enumerate(resources)],
        }

    def _compile(self, kernel: Kernel, shifting: bool) -> Gpu:
        return self.device.create_compute_pipeline(
            layout=self._layout(kernel, shifting) if kernel.parameters is Parameters.uniform else "auto",
            compute={
                "module": self.device.create_shader_module(label=kernel.name, code=kernel.wgsl),
                "entry_point": "main",
                "constants": kernel.constants,
            },
        )

    def _layout(self, kernel: Kernel, shifting: bool) -> Gpu:
        """Spelled out where values come by a uniform buffer: no other layout can have a dynamic offset."""
        bindings = next(len(d.bindings) for d in self.program.dispatches if d.kernel == kernel.name)
        visibility = wgpu.ShaderStage.COMPUTE
        access = ["read-only-storage" if b in kernel.read_only else "storage" for b in range(bindings)]
        storage = [{"binding": b, "visibility": visibility, "buffer": {"type": kind}} for b, kind in enumerate(access)]
        uniform = {"type": "uniform", "has_dynamic_offset": shifting}
        values = [{"binding": 0, "visibility": visibility, "buffer": uniform}]
        layouts = [self.device.create_bind_group_layout(entries=entries) for entries in (storage, values)]
        return self.device.create_pipeline_layout(bind_group_layouts=layouts)
