"""First contents of buffers: the same numbers as pages/fill.js makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rig.records import Buffer, ConstantFill, Dtype, WeightFill

Array = npt.NDArray[Any]

NUMPY: dict[Dtype, type[np.generic]] = {
    Dtype.f32: np.float32,
    Dtype.f16: np.float16,
    Dtype.i32: np.int32,
    Dtype.u32: np.uint32,
    Dtype.u8x4: np.uint8,
}


_AT_ONCE = 1 << 20
"""Weights made in one go: their temporaries stay in the processor's cache."""


def hash32(x: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """A 32-bit integer hash with full avalanche, elementwise. Constants: "lowbias32", C. Wellons, 2018."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def contents(buffer: Buffer) -> Array:
    """First contents of `buffer`, shape (elements,)."""
    dtype = NUMPY[buffer.dtype]
    if isinstance(buffer.fill, ConstantFill):
        return np.full(buffer.elements, buffer.fill.value, dtype=dtype)
    if isinstance(buffer.fill, WeightFill):
        return weights(buffer.fill, buffer.elements).astype(dtype)
    index = np.arange(buffer.elements, dtype=np.uint32) + np.uint32(buffer.fill.seed % 2**32)
    return (hash32(index) % np.uint32(buffer.fill.below)).astype(dtype)


def weights(fill: WeightFill, elements: int) -> npt.NDArray[np.float32]:
    """Shape (elements,), as wgsl/decode/weights.wgsl makes them."""
    made = np.empty(elements, dtype=np.float32)
    for start in range(0, elements, _AT_ONCE):
        part = made[start : start + _AT_ONCE]
        index = np.arange(start, start + part.size, dtype=np.uint32) + np.uint32(fill.seed % 2**32)
        whole = (hash32(index) % np.uint32(2048)).astype(np.int32) - np.int32(1024)
        part[:] = np.float32(fill.offset) + np.float32(fill.scale) * (whole.astype(np.float32) / np.float32(1024))
    return made
