"""What the GPU's own clock says, on wgpu: two timestamps around all passes of a batch, or two around each."""

from __future__ import annotations

from typing import Any

import numpy as np
import wgpu
from wgpu.backends.wgpu_native._ffi import lib

from rig.native.issue import Gpu, Stamps


class StampClock:
    """So many timestamps of a device, and who writes them: the first pass's begin and the last one's end
    (`around_all`), or begin and end of every pass (`around_each`).
    """

    def __init__(self, device: Gpu, count: int) -> None:
        self.device = device
        self.count = count
        self._queries = device.create_query_set(type="timestamp", count=count)
        usage = wgpu.BufferUsage
        self._resolved = device.create_buffer(size=8 * count, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
        # wgpu gives raw ticks, and only its C interface says how many nanoseconds one is
        self._tick_ns = float(lib.wgpuQueueGetTimestampPeriod(device.queue._internal))
        self.around_all = Stamps(first=self._writes(begin=0), last=self._writes(end=1), only=self._writes(0, 1))
        self.around_each = Stamps(each=tuple(self._writes(at, at + 1) for at in range(0, count, 2)))

    def read(self) -> tuple[str, ...]:
        """Nanoseconds as decimal strings, begin and end in turn. Asked for outside any timed section."""
        encoder = self.device.create_command_encoder()
        encoder.resolve_query_set(self._queries, 0, self.count, self._resolved, 0)
        self.device.queue.submit([encoder.finish()])
        ticks = np.frombuffer(self.device.queue.read_buffer(self._resolved), dtype=np.uint64)
        return tuple(str(round(int(tick) * self._tick_ns) if self._tick_ns != 1 else int(tick)) for tick in ticks)

    def _writes(self, begin: int | None = None, end: int | None = None) -> dict[str, Any]:
        writes = {"query_set": self._queries}
        if begin is not None:
            writes["beginning_of_pass_write_index"] = begin
        if end is not None:
            writes["end_of_pass_write_index"] = end
        return writes
