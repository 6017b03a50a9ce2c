"""How is a decode step told in tables? The published ladder beside ours, and each arm that varies one cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rig.experiments.fusion.cells import FUSED, UNFUSED
from rig.records import Metric
from rig.report import words
from rig.report.environment import Table

LADDER = {"unfused": (876, 13.5), "rmsnorm": (636, 19.4), "mlp": (588, 20.5), "kv": (564, 20.6)}
"""Published dispatches and tokens a second by stage: arXiv:2604.02344, torch-webgpu on Dawn, RTX 5090, float32."""


@dataclass(frozen=True)
class Titled:
    """A table under a title, with a note."""

    title: str
    note: str
    table: Table


def tables(metrics: Sequence[Metric]) -> tuple[Titled, ...]:
    """The tables of the section, those that have a row."""
    found = _Figures(metrics)
    made = (_ladder(found), _explained(found), _splitting(found), _quality(found), _traffic(found), _batch(found))
    return tuple(one for one in (*made, _readback(found)) if one.table.rows)


class _Figures:
    """Figures by name and variant, as cells of a table."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def variants(self, name: str, *keys: str) -> list[Mapping[str, str | int | float]]:
        """Variants of a figure that have exactly these keys, in the run's order."""
        return [m.variant for m in self._metrics if m.metric == f"fusion.{name}" and set(m.variant) == set(keys)]

    def of(self, name: str, key: str, *keys: str) -> list[str | int | float]:
        """The different values of `key` among those variants."""
        return list(dict.fromkeys(variant[key] for variant in self.variants(name, key, *keys)))

    def cell(self, name: str, **variant: str | int | float) -> str:
        """The value with its interval, a mark where it is not to be relied on, and a dash where there is none."""
        metric = next((m for m in self._metrics if m.metric == f"fusion.{name}" and m.variant == variant), None)
        if metric is None or not words.has_value(metric):
            return "–"
        ends = words.interval(metric.ci_low, metric.ci_high, metric.unit, metric.value)
        shown = words.quantity(metric.value, metric.unit)
        doubt = f" {words.MARKS[metric.outcome]}" if metric.reason else ""
        return f"{shown}{f' ({ends})' if metric.ci_low != metric.ci_high else ''}{doubt}"


def _ladder(found: _Figures) -> Titled:
    policies = [str(policy) for policy in found.of("tokens_per_s", "policy", "stage")]
    known = found.of("tokens_per_s", "stage", "policy")
    first = LADDER[UNFUSED][1]
    rows = [
        (
            stage,
            f"{count}",
            f"{rate:g}",
            f"{rate / first:.3g}",
            *(found.cell("tokens_per_s", stage=stage, policy=policy) for policy in policies),
            *(found.cell("gain", stage=stage, policy=policy) for policy in policies[:1]),
        )
        for stage, (count, rate) in LADDER.items()
        if stage in known
    ]
    head = ("stage", "dispatches", "published tokens/s", "published gain", *policies)
    head += tuple(f"gain, {policy}" for policy in policies[:1])
    note = (
        "Published: torch-webgpu on Dawn, RTX 5090, float32, Qwen2.5-0.5B (arXiv:2604.02344); the first figures are "
        "counts of graph nodes. Ours: tokens a second under each policy."
    )
    return Titled("The published ladder, and ours", note, Table("ladder", head, tuple(rows)))


def _explained(found: _Figures) -> Titled:
    rows = [
        (
            str(variant["padding"]),
            str(variant["policy"]),
            found.cell("explained_fraction", **variant),
            found.cell("padding_us", **variant),
            found.cell("saved_us", stage=FUSED, policy=variant["policy"]),
            found.cell("marginal_us", **variant),
            found.cell("dispatch_share", **variant),
        )
        for variant in found.variants("explained_fraction", "padding", "policy")
    ]
    head = (
        "put back",
        "policy",
        "of the saving",
        "what they cost",
        "what fusing saves",
        "one more dispatch",
        "all, of the step",
    )
    note = "All the dispatches that fusing removed, put back where they were without their work."
    return Titled("Is it the count?", note, Table("explained", head, tuple(rows)))


def _splitting(found: _Figures) -> Titled:
    policies = [str(policy) for policy in found.of("split_us", "policy", "dispatches")]
    rows = [
        (
            f"{pieces:,}",
            *(found.cell("split_us", dispatches=pieces, policy=policy) for policy in policies),
            found.cell("split_busy_us", dispatches=pieces),
        )
        for pieces in found.of("split_us", "dispatches", "policy")
    ]
    slopes = [found.cell("split_dispatch_us", policy=policy) for policy in policies]
    rows += [("a dispatch more", *slopes, "–")] if rows else []
    head = ("dispatches", *policies, "GPU busy")
    return Titled("One piece of work, cut", "The same steps, the same output.", Table("split", head, tuple(rows)))


def _quality(found: _Figures) -> Titled:
    policies = [str(policy) for policy in found.of("step_us", "policy", "stage", "quality")]
    stage = next(iter(found.of("step_us", "stage", "policy", "quality")), "")
    rows = [
        (
            str(quality),
            *(found.cell("step_us", stage=stage, quality=quality, policy=policy) for policy in policies),
            *(found.cell("quality_gain", quality=quality, policy=policy) for policy in policies),
        )
        for quality in found.of("step_us", "quality", "stage", "policy")
    ]
    head = ("matrix-vector kernel", *policies, *(f"gain, {policy}" for policy in policies))
    note = f"At one count, that of the stage {stage}; gain over the plain kernel, a workgroup a row."
    return Titled("Kernels of other qualities", note, Table("quality", head, tuple(rows)))


def _traffic(found: _Figures) -> Titled:
    rows = [
        (
            str(variant["stage"]),
            found.cell("traffic_bytes", **variant),
            found.cell("traffic_us", stage=variant["stage"]),
        )
        for variant in found.variants("traffic_bytes", "shape", "stage")
    ]
    shares = [
        f"{found.cell('traffic_fraction', **variant)} under {variant['policy']}"
        for variant in found.variants("traffic_fraction", "policy")
    ]
    note = f"At {found.cell('bandwidth_gb_per_s')}, the bandwidth of a copy."
    if shares:
        note += f" Of what fusing saves, the bytes it spares are {words.listed(shares)}."
    return Titled("Bytes that a step moves", note, Table("traffic", ("stage", "bytes", "time"), tuple(rows)))


def _batch(found: _Figures) -> Titled:
    policies = [str(policy) for policy in found.of("step_us", "policy", "stage", "batch")]
    rows = [
        (
            f"{batch:,}",
            *(
                found.cell("step_us", stage=stage, policy=policy, batch=batch)
                for policy in policies
                for stage in (UNFUSED, FUSED)
            ),
            *(found.cell("gain", stage=FUSED, policy=policy, batch=batch) for policy in policies),
        )
        for batch in found.of("step_us", "batch", "stage", "policy")
    ]
    head = ("sequences", *(f"{stage}, {policy}" for policy in policies for stage in (UNFUSED, FUSED)))
    head += tuple(f"gain, {policy}" for policy in policies)
    return Titled("Several sequences at once", "Milliseconds a step of all.", Table("batch", head, tuple(rows)))


def _readback(found: _Figures) -> Titled:
    rows = [
        (
            str(variant["stage"]),
            str(variant["policy"]),
            found.cell("step_us", **variant),
            found.cell("step_readback_us", **variant),
            found.cell("first_token_us", **variant),
        )
        for variant in found.variants("step_readback_us", "stage", "policy")
    ]
    head = ("stage", "policy", "tokens chained on the device", "read back each token", "one token alone")
    return Titled("Reading each token back", "A wait after each token.", Table("readback", head, tuple(rows)))
