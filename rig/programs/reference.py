"""What a program must compute: every kernel once more, in numpy, and an interpreter that runs a program with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rig.programs.fill import Array, contents
from rig.records import Program

Constants = Mapping[str, float]
KernelReference = Callable[[list[Array], Constants], None]


def increment(buffers: list[Array], constants: Constants) -> None:
    """wgsl/increment_*.wgsl: data += STEP, in place, in the type of data."""
    (data,) = buffers
    data += data.dtype.type(constants.get("STEP", 1))


KERNELS: dict[str, KernelReference] = {
    "increment_f32": increment,
    "increment_i32": increment,
    "increment_u32": increment,
}
"""Reference of each kernel in wgsl/, by its name: changes the bound arrays in place, in binding order."""


def run(program: Program, n: int) -> dict[str, Array]:
    """Outputs after the first n dispatches, from first contents. KeyError: a kernel without a reference."""
    arrays = {buffer.name: contents(buffer) for buffer in program.buffers}
    constants = {kernel.name: kernel.constants for kernel in program.kernels}
    for i in range(n):
        dispatch = program.dispatches[i % len(program.dispatches)]
        KERNELS[dispatch.kernel]([arrays[name] for name in dispatch.bindings], constants[dispatch.kernel])
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
        allowed = program.relative_tolerance * np.abs(want.astype(np.float64))
        wrong = ~(error <= allowed)
        if wrong.any():
            at = int(np.argmax(wrong))
            return f"{name}[{at}] is {have[at]}, expected {want[at]} ({int(wrong.sum())} of {want.size} wrong)"
    return ""
