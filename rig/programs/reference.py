"""What a program must compute: every kernel once more, in numpy, and an interpreter that runs a program with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rig.programs.decode import reference as decode
from rig.programs.fill import Array, contents
from rig.records import Program

Constants = Mapping[str, float]
Values = tuple[float, ...]
KernelReference = Callable[[list[Array], Constants, Values], None]


def increment(buffers: list[Array], constants: Constants, values: Values) -> None:  # noqa: ARG001
    """wgsl/increment_{f32,i32,u32,u8x4}.wgsl: data += STEP, in place, in the type of data."""
    (data,) = buffers
    data += data.dtype.type(constants.get("STEP", 1))


def increment_f16(buffers: list[Array], constants: Constants, values: Values) -> None:
    """wgsl/increment_f16.wgsl: as increment, modulo 1024."""
    increment(buffers, constants, values)
    (data,) = buffers
    data[data >= 1024] -= data.dtype.type(1024)


def increment_by_value(buffers: list[Array], constants: Constants, values: Values) -> None:  # noqa: ARG001
    """wgsl/increment_{uniform,immediate}_f32.wgsl: data += the dispatch's first value, in place."""
    (data,) = buffers
    data += data.dtype.type(values[0])


def empty(buffers: list[Array], constants: Constants, values: Values) -> None:
    """wgsl/empty.wgsl: nothing."""


def iterate(buffers: list[Array], constants: Constants, values: Values) -> None:  # noqa: ARG001
    """wgsl/decode/iterate.wgsl: STEPS steps of a linear congruential generator, all at once: x → ax + c, modulo 2³²."""
    (data,) = buffers
    a, c, steps = 1664525, 1013904223, int(constants["STEPS"])
    power, total = 1, 0
    while steps:
        if steps & 1:
            power, total = power * a % 2**32, (total * a + c) % 2**32
        a, c, steps = a * a % 2**32, (c * a + c) % 2**32, steps // 2
    data *= np.uint32(power)
    data += np.uint32(total)


def copy(buffers: list[Array], constants: Constants, values: Values) -> None:  # noqa: ARG001
    """wgsl/decode/copy.wgsl: the first buffer's contents in the second one."""
    source, out = buffers
    out[:] = source[: out.size]


KERNELS: dict[str, KernelReference] = {
    "increment_f32": increment,
    "increment_f16": increment_f16,
    "increment_i32": increment,
    "increment_u32": increment,
    "increment_u8x4": increment,
    "increment_uniform_f32": increment_by_value,
    "increment_immediate_f32": increment_by_value,
    "empty": empty,
    "decode/iterate": iterate,
    "decode/copy": copy,
}
"""Reference of each kernel, by its name: changes the bound arrays in place, in binding order."""


def known(program: Program) -> bool:
    """Whether every kernel of `program` has a reference; one of somebody else's has none."""
    return program.model is not None or all((kernel.reference or kernel.name) in KERNELS for kernel in program.kernels)


def run(program: Program, *counts: int) -> dict[str, Array]:
    """Outputs after the first n dispatches, for each n of `counts` in turn, from first contents.

    Each n begins the program's list again. KeyError: a kernel without a reference. ValueError: of a decode step, a
    part.
    """
    if program.model is not None:
        steps, part = divmod(sum(counts), len(program.dispatches))
        if part:
            raise ValueError(f"{sum(counts)} dispatches are no whole number of steps of {len(program.dispatches)}")
        return decode.outputs(program.model, steps)
    arrays = {buffer.name: contents(buffer) for buffer in program.buffers}
    kernels = {kernel.name: kernel for kernel in program.kernels}
    for i in (i for n in counts for i in range(n)):
        dispatch = program.dispatches[i % len(program.dispatches)]
        if 0 not in dispatch.workgroups:
            kernel = kernels[dispatch.kernel]
            bound = [arrays[name] for name in dispatch.bindings]
            KERNELS[kernel.reference or kernel.name](bound, kernel.constants, dispatch.values)
    return {name: arrays[name] for name in program.outputs}


def compare(program: Program, expected: Mapping[str, Array], got: Mapping[str, Array]) -> str:
    """Empty where `got` equals `expected` within the program's tolerance, else what is wrong, with the first place.

    A NaN never passes: it equals nothing, itself included.
    """
    for name, want in expected.items():
        have = got.get(name)
        if have is None or have.shape != want.shape:
            return f"{name}: {'missing' if have is None else have.shape}, expected {want.shape}"
        error = np.abs(have.astype(np.float64) - want.astype(np.float64))
        floats = np.issubdtype(want.dtype, np.floating)
        allowed = program.relative_tolerance * np.abs(want.astype(np.float64)).max() if floats else 0.0
        wrong = ~(error <= allowed)
        if wrong.any():
            at = int(np.argmax(wrong))
            return f"{name}[{at}] is {have[at]}, expected {want[at]} ({int(wrong.sum())} of {want.size} wrong)"
    return ""
