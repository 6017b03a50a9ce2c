"""The native process on CUDA, through PyTorch:  python -m rig.native.on_cuda

Each dispatch of the chain is one small kernel that depends on the last; launched one by one, or captured in a graph
once and replayed.
"""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from rig.executors.base import ExecutorFault
from rig.native import door
from rig.native.door import now_us
from rig.policies import structure
from rig.programs.fill import contents
from rig.records import Outcome, Policy, Program

WARM_UP = 3
"""Launches before a capture, as PyTorch asks for."""


class Chain:
    """A program of increments on the GPU. `issued`: dispatches since the last reset."""

    def __init__(self, program: Program) -> None:
        self.program = program
        (self._buffer,) = program.buffers
        self._step = program.kernels[0].constants["STEP"]
        self._first = torch.from_numpy(contents(self._buffer)).cuda()
        self.data = self._first.clone()
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.issued = 0

    def reset(self) -> None:
        self.data.copy_(self._first)
        torch.cuda.synchronize()
        self.issued = 0

    def outputs(self) -> dict[str, bytes]:
        return {self._buffer.name: self.data.cpu().numpy().tobytes()}

    def eager(self, n: int) -> None:
        """One kernel launch a dispatch."""
        data, step = self.data, self._step
        for _ in range(n):
            data.add_(step)

    def graph(self, n: int) -> torch.cuda.CUDAGraph:
        """n dispatches, captured once; capturing runs none of them."""
        if n not in self._graphs:
            kept = self.data.clone()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.eager(WARM_UP)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.eager(n)
            # the first replay uploads the graph
            graph.replay()
            self.data.copy_(kept)
            torch.cuda.synchronize()
            self._graphs[n] = graph
        return self._graphs[n]


class Realm(door.Realm[Chain]):
    """The operations on one device."""

    def __init__(self) -> None:
        super().__init__()
        self._begin: Any = None
        self._end: Any = None

    def open(self, _: dict[str, Any]) -> dict[str, Any]:
        if not torch.cuda.is_available():
            raise ExecutorFault(Outcome.not_supported, "no adapter: PyTorch finds no CUDA device")
        self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        major, minor = torch.cuda.get_device_capability()
        return {
            "adapter": {
                "vendor": "nvidia",
                "architecture": f"sm_{major}{minor}",
                "device": torch.cuda.get_device_name(),
                "description": f"CUDA {torch.version.cuda}, PyTorch {torch.__version__}",
                "is_fallback": False,
                "features": ["timestamp-query"],
                "limits": {},
                "enabled": ["timestamp-query"],
                "granted": {},
            },
            "has_span": True,
        }

    def loaded(self, program: Program) -> Chain:
        return Chain(program)

    def validates(self, _: dict[str, Any]) -> dict[str, Any]:
        """Whether it says so when it is used wrongly."""
        try:
            torch.zeros(2, device="cuda").add_(torch.zeros(3, device="cuda"))
        except RuntimeError:
            return {"validates": True}
        return {"validates": False}

    def time(self, request: dict[str, Any]) -> dict[str, Any]:
        """One sample: the clock before the first call, at the return of the last, and when the wait has answered."""
        chain, n = self.programs[request["program"]], request["n"]
        policy = msgspec.convert(request["policy"], Policy)
        graph = chain.graph(n) if policy.replayed else None
        torch.cuda.synchronize()
        t0 = now_us()
        self._begin.record()
        if graph is not None:
            graph.replay()
        else:
            chain.eager(n)
        self._end.record()
        t1 = now_us()
        torch.cuda.synchronize()
        t2 = now_us()
        chain.issued += n
        span_ns = round(self._begin.elapsed_time(self._end) * 1e6)
        return {
            "issued": structure(policy, n),
            "wall_us": t2 - t0,
            "encode_us": t1 - t0,
            "calls_us": None,
            "stamps_ns": ("0", str(span_ns)),
        }

    def outcome_of(self, error: Exception) -> Outcome:
        """What an exception of PyTorch's stands for: after one of CUDA's own the process can't be trusted any more."""
        if isinstance(error, torch.cuda.OutOfMemoryError):
            return Outcome.out_of_memory
        return Outcome.device_lost if "CUDA error" in str(error) else Outcome.validation_error


if __name__ == "__main__":
    door.serve(Realm())
