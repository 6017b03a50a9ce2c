"""First contents of buffers: the same numbers as pages/fill.js makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rig.records import Buffer, ConstantFill, Dtype

Array = npt.NDArray[Any]

NUMPY: dict[Dtype, type[np.generic]] = {
    Dtype.f32: np.float32,
    Dtype.f16: np.float16,
    Dtype.i32: np.int32,
    Dtype.u32: np.uint32,
    Dtype.u8x4: np.uint8,
}


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
    index = np.arange(buffer.elements, dtype=np.uint32) + np.uint32(buffer.fill.seed % 2**32)
    return (hash32(index) % np.uint32(buffer.fill.below)).astype(dtype)
