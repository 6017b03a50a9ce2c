"""Stands in for PyTorch on a machine without CUDA: as much of it as rig/native/on_cuda.py calls, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda, version

__all__ = ["cuda", "version"]
__version__ = "0.0.planted"


class Tensor:
    def __init__(self, data: Any) -> None:  # noqa: ANN401
        self.data = data

    def cuda(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return Tensor(self.data.copy())

    def copy_(self, other: Tensor) -> None:
        self.data[:] = other.data

    def add_(self, other: Any) -> None:  # noqa: ANN401
        if isinstance(other, Tensor) and other.data.shape != self.data.shape:
            raise RuntimeError("shapes differ")
        cuda.do(lambda: self.data.__iadd__(self.data.dtype.type(other)))

    def numpy(self) -> Any:  # noqa: ANN401
        return self.data


def from_numpy(data: Any) -> Tensor:  # noqa: ANN401
    return Tensor(data.copy())


def zeros(n: int, device: str) -> Tensor:  # noqa: ARG001
    return Tensor(np.zeros(n, dtype=np.float32))
