"""How the values of a dispatch reach its kernel, on wgpu: the same ways, and of the same names, as pages/deliver.js."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import wgpu

from rig.native.issue import Delivery, Gpu
from rig.records import Uniforms

VALUE_BYTES, SLOT_BYTES = 16, 256
"""Bytes of one dispatch's values, and the distance between two of them that any device takes."""

Values = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Carried:
    """What a batch's dispatches carry, `values` of dispatch i being four, and where it goes. `group`: group 1 with this
    buffer in it; `created`: bind groups are made anew at each dispatch.
    """

    device: Gpu
    values: list[Values]
    per_submit: int
    group: Callable[[Gpu], Gpu]
    created: bool


def delivery(uniforms: Uniforms, carried: Carried) -> Delivery:
    """The hooks of one way. This wgpu has no immediates: programs that need them are not supported on it."""
    return {
        Uniforms.none: _none,
        Uniforms.write_buffer: _slots,
        Uniforms.write_slots: _slots,
        Uniforms.dynamic_offset: _dynamic_offset,
        Uniforms.mapped_ring: _mapped_ring,
    }[uniforms](carried)


def _nothing(*_: object) -> None:
    pass


def _uniform(device: Gpu, size: int) -> Gpu:
    return device.create_buffer(size=size, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST)


def _none(carried: Carried) -> Delivery:
    """Nothing is written: each different value has a buffer of its own, filled here."""
    known: dict[bytes, tuple[Gpu, Gpu]] = {}
    for value in carried.values:
        if value.tobytes() not in known:
            buffer = _uniform(carried.device, VALUE_BYTES)
            carried.device.queue.write_buffer(buffer, 0, value)
            known[value.tobytes()] = (buffer, carried.group(buffer))
    at = [known[value.tobytes()] for value in carried.values]

    def bind(compute_pass: Gpu, i: int) -> None:
        buffer, shared = at[i]
        compute_pass.set_bind_group(1, carried.group(buffer) if carried.created else shared)

    return Delivery(_nothing, _nothing, bind, _nothing)


def _slots(carried: Carried) -> Delivery:
    """As many buffers as a submit has dispatches, each written before its dispatch."""
    count = min(carried.per_submit, len(carried.values))
    buffers = [_uniform(carried.device, VALUE_BYTES) for _ in range(count)]
    groups = [carried.group(buffer) for buffer in buffers]
    queue, values, per_submit = carried.device.queue, carried.values, carried.per_submit

    def bind(compute_pass: Gpu, i: int) -> None:
        slot = i % per_submit
        queue.write_buffer(buffers[slot], 0, values[i])
        compute_pass.set_bind_group(1, carried.group(buffers[slot]) if carried.created else groups[slot])

    return Delivery(_nothing, _nothing, bind, _nothing)


class _Slotted:
    """One buffer, bound by each dispatch at an offset: what the ways have in common that do so."""

    def __init__(self, carried: Carried) -> None:
        self.carried = carried
        self.size = min(carried.per_submit, len(carried.values)) * SLOT_BYTES
        self.buffer = _uniform(carried.device, self.size)
        self.shared = carried.group(self.buffer)

    def lay(self, words: npt.NDArray[np.float32], start: int, end: int) -> None:
        """Values of dispatches start to end into words as the buffer has them."""
        for i in range(start, end):
            words[i - start, : VALUE_BYTES // 4] = self.carried.values[i]

    def words(self) -> npt.NDArray[np.float32]:
        return np.zeros((self.size // SLOT_BYTES, SLOT_BYTES // 4), dtype=np.float32)

    def bind(self, compute_pass: Gpu, i: int) -> None:
        group = self.carried.group(self.buffer) if self.carried.created else self.shared
        compute_pass.set_bind_group(1, group, [(i % self.carried.per_submit) * SLOT_BYTES])


def _dynamic_offset(carried: Carried) -> Delivery:
    """One write a submit, an offset a dispatch."""
    slotted = _Slotted(carried)
    staged = slotted.words()

    def fill(start: int, end: int) -> None:
        slotted.lay(staged, start, end)
        carried.device.queue.write_buffer(slotted.buffer, 0, staged[: end - start])

    return Delivery(fill, _nothing, slotted.bind, _nothing)


def _mapped_ring(carried: Carried) -> Delivery:
    """Written into mapped memory, copied by the submit's own commands."""
    slotted = _Slotted(carried)
    staged = slotted.words()
    usage = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC
    ring = [
        carried.device.create_buffer(size=slotted.size, usage=usage, mapped_at_creation=True)
        for _ in range(-(-len(carried.values) // carried.per_submit))
    ]

    def fill(start: int, end: int) -> None:
        mapped = ring[start // carried.per_submit]
        slotted.lay(staged, start, end)
        mapped.write_mapped(staged[: end - start])
        mapped.unmap()

    def copy(encoder: Gpu, start: int, end: int) -> None:
        source = ring[start // carried.per_submit]
        encoder.copy_buffer_to_buffer(source, 0, slotted.buffer, 0, (end - start) * SLOT_BYTES)

    def ready() -> None:
        for mapped in ring:
            if mapped.map_state != "mapped":
                mapped.map_sync(wgpu.MapMode.WRITE)

    return Delivery(fill, copy, slotted.bind, ready)
