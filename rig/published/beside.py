"""Which published figures are by the same estimator as one of ours, of the same implementation?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from rig.figures import PUBLISHED_N, Variant
from rig.frames import Run
from rig.published import rows
from rig.published.rows import Row
from rig.records import EXECUTOR, Metric, MetricOutcome, Summary

IMPLEMENTATIONS = {"": "chrome", "wgpu": "wgpu-native", "dawn": "dawn"}
"""An executor, empty for the browser, and what the papers call the same."""

BACKENDS = {"Linux": "vulkan", "Darwin": "metal", "Windows": "d3d12"}
"""A system, as a manifest names it, and the backend that implementations take there unless told otherwise."""

FLOAT32 = ("", "float32")
"""Types that are ours. Where a micro-benchmark's is blank, the papers' text tells of files that have float32."""


class Timed(StrEnum):
    """What a sample holds, in the published figure and in ours."""

    waited = "waited"
    encoded = "encoded"
    call = "call"


@dataclass(frozen=True)
class Estimator:
    """A published experiment, and our figure by the same estimator.

    `n`: dispatches in a sample. `implementation`: the only one that measured so, empty where all did.
    """

    published: str
    metric: str
    variant: Variant
    timed: Timed = Timed.waited
    n: int = 1
    implementation: str = ""


_SEQUENTIAL = (
    *("sequential", "sequential_vulkan_low", "sequential_vulkan_high"),
    *("sequential_metal_low", "sequential_metal_high"),
)
"""The one figure, and the ends of its range that the abstracts give without an implementation."""

_CALLS = {
    "encoder_create": "createCommandEncoder",
    "pass_begin": "beginComputePass",
    "set_pipeline": "setPipeline",
    "set_bind_group": "setBindGroup",
    "dispatch": "dispatchWorkgroups",
    "pass_end": "end",
    "encoder_finish": "finish",
    "submit": "submit",
}

# Dawn was measured by reading a value back, as our waiter `map` does; wgpu's span ends before any wait.
ESTIMATORS = (
    Estimator("single_op", "single_op.latency_us", {"waiter": "work_done"}, implementation="chrome"),
    Estimator("single_op", "single_op.latency_us", {"waiter": "map"}, implementation="dawn"),
    Estimator("single_op_median", "single_op.latency_quantile_us", {"waiter": "map", "q": 0.5}, implementation="dawn"),
    Estimator("single_op_p95", "single_op.latency_quantile_us", {"waiter": "map", "q": 0.95}, implementation="dawn"),
    Estimator("single_op", "single_op.encode_us", {"waiter": "work_done"}, Timed.encoded, implementation="wgpu-native"),
    *(
        Estimator(name, "sequential.total_over_n_us", {"policy": "submit_each", "n": PUBLISHED_N}, n=PUBLISHED_N)
        for name in _SEQUENTIAL
    ),
    Estimator(
        published="batched_one_submit",
        metric="policy.total_over_n_us",
        variant={"policy": "pass_each", "n": PUBLISHED_N},
        n=PUBLISHED_N,
    ),
    *(
        Estimator(f"cpu_call_{name}", "anatomy.call_us", {"call": call}, Timed.call, n=PUBLISHED_N)
        for name, call in _CALLS.items()
    ),
)


@dataclass(frozen=True)
class Beside:
    """A published figure and ours by the same estimator. `near`: it is of our backend, or none of this figure is."""

    row: Row
    ours: Metric
    estimator: Estimator
    near: bool

    @property
    def ours_us(self) -> float:
        assert self.ours.value is not None
        return self.ours.value

    @property
    def ratio(self) -> float:
        """Ours over the published one."""
        return self.ours_us / self.row.value


def beside(run: Run, summary: Summary, published: Iterable[Row] | None = None) -> list[Beside]:
    """Every published figure that a figure of the run stands beside, one of ours after the other."""
    chosen = rows.read() if published is None else tuple(published)
    found = []
    for ours in summary.metrics:
        if ours.outcome is MetricOutcome.ok and (ours.value or 0) > 0:
            pairs = [(row, by) for by in ESTIMATORS if _is(ours, by) for row in chosen if _same(row, by, ours)]
            near = {row for row, _ in pairs if row.implementation and row.backend == backend(run)}
            found += [Beside(row, ours, by, near=not near or row in near) for row, by in pairs]
    return found


def bare(variant: Variant) -> dict[str, str | int | float]:
    """A variant without its executor."""
    return {key: value for key, value in variant.items() if key != EXECUTOR}


def backend(run: Run) -> str:
    """What the adapter is reached through; empty where the system is not known."""
    return next((name for system, name in BACKENDS.items() if system in run.manifest.host.system), "")


def _is(ours: Metric, by: Estimator) -> bool:
    implementation = IMPLEMENTATIONS.get(ours.executor)
    return (
        implementation is not None
        and by.implementation in ("", implementation)
        and (ours.metric, bare(ours.variant)) == (by.metric, by.variant)
    )


def _same(row: Row, by: Estimator, ours: Metric) -> bool:
    """Whether the row was got by `by`, of our implementation or of none that is named."""
    return (
        row.experiment == by.published
        and row.unit == ours.unit
        and row.implementation in ("", IMPLEMENTATIONS[ours.executor])
        and row.n_dispatches in (None, by.n)
        and row.dtype in FLOAT32
        and not row.model
        and row.value > 0
    )
