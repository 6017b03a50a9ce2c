"""The figures of `fusion`, launch by launch: each launch's value is the median over its blocks, of differences and
ratios that are paired within a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import msgspec
import numpy as np
import pandas as pd

from rig import figures, stats
from rig.experiments.fusion.cells import (
    BASE,
    BUSY,
    COPIES,
    FUSED,
    ID,
    QUALITY_STAGE,
    UNFUSED,
    FusionOptions,
    copied_bytes,
    copying,
    graph,
    padded_name,
    quality_name,
    removed,
    split,
    stage_name,
    way,
)
from rig.frames import Run
from rig.policies import waiting
from rig.programs.decode.lower import put_back, traffic_bytes
from rig.records import Dtype, Metric, MetricOutcome

LEAST_SAVED = 0.03
"""A saving whose lower bound is a smaller fraction of the step is too small to be told the cause of."""

SATURATED = 0.8
"""From this share of the cores on, the CPU that issues has no time to spare."""

Cell = tuple[str, str]
"""Names of its program and its policy."""

Why = tuple[str, MetricOutcome]
"""Why there is no figure, and which outcome that is."""


class Steps:
    """The times of a run's cells, by launch and block. `bytes`: what a step of each stage moves."""

    def __init__(self, run: Run, options: FusionOptions) -> None:
        self.run = run
        self.options = options
        good = run.good(ID)
        used = [sum(us.values()) if us else None for us in good["cpu_us"]]
        model = options.model()
        self.bytes = {
            stage: traffic_bytes(model, graph(model, stage), Dtype(options.weights)) for stage in options.stages
        }
        self._good = good.assign(cpu_us_all=pd.Series(used, index=good.index, dtype=float))

    def of(self, program: str, policy: str, n: int | None = None, column: str = "wall_us") -> pd.Series[float]:
        """Times of one cell; empty where it has none that count."""
        rows = self._good[(self._good["program"] == program) & (self._good["policy"] == policy)]
        if n is not None:
            rows = rows[rows["n"] == n]
        rows = rows.dropna(subset=[column])
        return rows.set_index(["launch", "block"])[column].astype(float).sort_index()

    def step(self, program: str, policy: str) -> pd.Series[float]:
        """Microseconds a token."""
        return self.of(program, policy) / self.options.tokens

    def cell(self, stage: str, policy: str, batch: int = 1) -> Cell:
        return stage_name(self.options, stage, batch), policy

    def stage(self, stage: str, policy: str) -> pd.Series[float]:
        return self.step(*self.cell(stage, policy))

    def why(self, program: str, policy: str) -> Why:
        """Why a cell has no time."""
        return figures.why_none(self.run, self.run.rows(ID, program=program, policy=policy), ID)

    def lack(self, *cells: Cell) -> Why | None:
        """Why the first of these cells that has no time has none; None where all have times."""
        return next((self.why(*cell) for cell in cells if self.of(*cell).empty), None)


def compute(run: Run, options: FusionOptions) -> list[Metric]:
    """Times of every stage under every policy, what fusing and batching gain, and what accounts for it."""
    steps = Steps(run, options)
    return [
        *_stages(steps),
        *_readback(steps),
        *_gains(steps),
        *_padding(steps),
        *_quality(steps),
        *_batch(steps),
        *_splitting(steps),
        *_traffic(steps),
        *_saturation(steps),
    ]


def by_launch(times: pd.Series[float]) -> pd.Series[float]:
    """The median over a launch's blocks."""
    return times.dropna().groupby(level="launch").median()


def _over(
    metric: str,
    variant: figures.Variant,
    unit: str,
    times: pd.Series[float],
    *,
    signed: bool = False,
    why: Why | None = None,
) -> Metric:
    """A figure over launches; none for the reason `why`."""
    if why is not None:
        return figures.missing(ID, f"fusion.{metric}", variant, unit, *why)
    interval = stats.mean_interval if signed else stats.geometric_interval
    return figures.over_launches(
        ID, f"fusion.{metric}", variant, unit, by_launch(times), len(times.dropna()), interval=interval
    )


def _ratio(steps: Steps, metric: str, variant: figures.Variant, over: Cell, under: Cell) -> Metric:
    """One cell's time a token over another's."""
    return _over(metric, variant, "ratio", steps.step(*over) / steps.step(*under), why=steps.lack(over, under))


def _of_interval(metric: str, variant: figures.Variant, unit: str, interval: stats.Interval, samples: int) -> Metric:
    return Metric(
        experiment=ID,
        metric=f"fusion.{metric}",
        variant=dict(variant),
        unit=unit,
        outcome=MetricOutcome.ok,
        value=interval.value,
        ci_low=interval.low,
        ci_high=interval.high,
        ci_level=interval.level,
        n_samples=samples,
        n_launches=interval.n,
    )


def _known(metric: str, variant: figures.Variant, unit: str, value: float, rows: pd.DataFrame) -> Metric:
    """What is counted or computed, and not measured: without an interval of its own. `rows`: the samples it is of."""
    launches = int(rows["launch"].nunique())
    return _of_interval(metric, variant, unit, stats.Interval(value, value, value, 1.0, launches), len(rows))


def _step(steps: Steps, program: str, variant: Mapping[str, str | int | float], batch: int = 1) -> list[Metric]:
    times = steps.step(program, str(variant["policy"]))
    if times.empty:
        return [figures.missing(ID, "fusion.step_us", variant, "us", *steps.why(program, str(variant["policy"])))]
    return [
        _over("step_us", variant, "us", times),
        _over("tokens_per_s", variant, "tokens/s", batch * 1e6 / times),
    ]


def _stages(steps: Steps) -> list[Metric]:
    options, found = steps.options, []
    for stage in options.stages:
        program, variant = stage_name(options, stage), {"shape": options.shape, "stage": stage}
        rows = steps.run.counted(steps.run.rows(ID, program=program))
        whole = rows[rows["policy"].isin(options.policies)]
        if whole.empty:
            reason = steps.why(program, options.policies[0])
            found.append(figures.missing(ID, "fusion.dispatches", variant, "dispatches", *reason))
        else:
            # n was compared with what the page counted while it issued
            count = float(whole["n"].iloc[0]) / options.tokens
            found.append(_known("dispatches", variant, "dispatches", count, whole))
            found.append(_known("traffic_bytes", variant, "bytes", float(steps.bytes[stage]), whole))
        for policy in options.policies:
            found += _step(steps, program, {"stage": stage, "policy": policy})
    return found


def _readback(steps: Steps) -> list[Metric]:
    options, found = steps.options, []
    for stage in options.readback:
        program, once = stage_name(options, stage), len(graph(options.model(), stage))
        for policy in options.arm_policies:
            name, variant = waiting(way(policy), once).name, {"stage": stage, "policy": policy}
            for metric, tokens in (("step_readback_us", options.tokens), ("first_token_us", 1)):
                times = steps.of(program, name, tokens * once) / tokens
                if times.empty:
                    found.append(figures.missing(ID, f"fusion.{metric}", variant, "us", *steps.why(program, name)))
                else:
                    found.append(_over(metric, variant, "us", times))
    return found


def _gains(steps: Steps) -> list[Metric]:
    """What fusing gains under each policy, and what submitting otherwise gains at each stage."""
    options, found = steps.options, []
    fusing = [stage for stage in options.stages if stage != UNFUSED]
    for policy, stage in product(options.policies, fusing):
        variant = {"stage": stage, "policy": policy}
        ends = steps.cell(UNFUSED, policy), steps.cell(stage, policy)
        saved, why = steps.step(*ends[0]) - steps.step(*ends[1]), steps.lack(*ends)
        found.append(_ratio(steps, "gain", variant, *ends))
        found.append(_over("saved_us", variant, "us", saved, signed=True, why=why))
    others = [policy for policy in options.policies if policy != BASE and BASE in options.policies]
    for stage, policy in product(options.stages, others):
        variant = {"stage": stage, "policy": policy, "over": BASE}
        found.append(_ratio(steps, "submission_gain", variant, steps.cell(stage, BASE), steps.cell(stage, policy)))
    for policy in others:
        # both start from the unfused step under the base policy: one is fused, the other submitted otherwise
        ends = steps.cell(FUSED, BASE), steps.cell(UNFUSED, policy)
        found.append(_ratio(steps, "batching_over_fusing", {"policy": policy, "over": BASE}, *ends))
    return found


def _padding(steps: Steps) -> list[Metric]:
    options, found = steps.options, []
    for kind in options.paddings:
        for policy in options.arm_policies:
            for share in options.shares:
                variant: figures.Variant = {"padding": kind, "share": share, "policy": policy}
                found += _step(steps, padded_name(options, kind, share), variant)
            found += [*_marginal(steps, kind, policy), *_explained(steps, kind, policy)]
    return found


def _marginal(steps: Steps, kind: str, policy: str) -> list[Metric]:
    """What one more dispatch costs in the midst of the step: the slope over all shares; and all of the unfused step's
    at that price, over the step.
    """
    options, fused, unfused = steps.options, steps.cell(FUSED, policy), steps.cell(UNFUSED, policy)
    if not options.shares:
        return []
    padded = {share: (padded_name(options, kind, share), policy) for share in options.shares}
    added = {share: steps.step(*cell) - steps.step(*fused) for share, cell in padded.items()}
    n = np.array([put_back(removed(options), share) for share in options.shares], dtype=float)
    table = pd.DataFrame(added).dropna()
    # through the fused step itself, which is without any
    slope = pd.Series((table.to_numpy() * n).sum(axis=1) / (n * n).sum(), index=table.index)
    variant, why = {"padding": kind, "policy": policy}, steps.lack(fused, *padded.values())
    share = slope * len(graph(options.model(), UNFUSED)) / steps.step(*unfused)
    return [
        _over("marginal_us", variant, "us", slope, signed=True, why=why),
        _over("dispatch_share", variant, "fraction", share, signed=True, why=why or steps.lack(unfused)),
    ]


def _explained(steps: Steps, kind: str, policy: str) -> list[Metric]:
    """What putting all removed dispatches back costs, and that over what removing them saved."""
    variant = {"padding": kind, "policy": policy}
    padded = padded_name(steps.options, kind, 1.0), policy
    back = steps.step(*padded) - steps.stage(FUSED, policy)
    return _of_saved(steps, ("padding_us", "explained_fraction"), variant, back, steps.lack(padded))


def _of_saved(
    steps: Steps, names: tuple[str, str], variant: Mapping[str, str], over: pd.Series[float], why: Why | None
) -> list[Metric]:
    """A time, and it over what fusing saves under the policy, with Fieller's interval. `names`: of the two; `why`: why
    there is no such time.
    """
    ends = [steps.cell(stage, variant["policy"]) for stage in (FUSED, UNFUSED)]
    fused, unfused = (steps.step(*end) for end in ends)
    pairs = pd.DataFrame({"over": over, "saved": unfused - fused, "unfused": unfused}).dropna()
    part = _over(names[0], variant, "us", pairs["over"], signed=True, why=why or steps.lack(*ends))
    metric = f"fusion.{names[1]}"
    if part.value is None:
        return [part, figures.missing(ID, metric, variant, "fraction", part.reason, part.outcome)]
    each = pd.DataFrame({name: by_launch(pairs[name]) for name in pairs})
    parts, under = each["over"].to_numpy(), each["saved"].to_numpy()
    saved, step_us = stats.mean_interval(under), float(each["unfused"].mean())
    told = f"what fusing saves, {saved.value:.4g} µs ({saved.low:.4g} to {saved.high:.4g})"
    doubt = f"{told}, is not surely {100 * LEAST_SAVED:g} % of the step's {step_us:.4g} µs"
    try:
        fraction = stats.fieller(parts, under)
    except ValueError:
        # Fieller's interval has no ends: the launches' own ratios stand in for it, where there are any
        if not under.mean() or not under.all():
            reason = f"{told}, is nothing at all in some launch"
            return [part, figures.missing(ID, metric, variant, "fraction", reason, MetricOutcome.not_supported)]
        value, own = float(parts.mean() / under.mean()), parts / under
        fraction = stats.Interval(value, min(value, float(own.min())), max(value, float(own.max())), 1.0, len(own))
    found = _of_interval(names[1], variant, "fraction", fraction, len(pairs))
    if saved.low < LEAST_SAVED * step_us:
        found = msgspec.structs.replace(found, outcome=MetricOutcome.unresolved, reason=doubt)
    return [part, found]


def _quality(steps: Steps) -> list[Metric]:
    """What the plain matrix-vector kernel takes over another quality of it, at one count of dispatches."""
    options, found = steps.options, []
    for policy in options.arm_policies:
        plain = quality_name(options, "workgroup"), policy
        for quality in ("workgroup", *options.qualities):
            program = quality_name(options, quality)
            found += _step(steps, program, {"stage": QUALITY_STAGE, "quality": quality, "policy": policy})
            if quality != "workgroup":
                variant = {"quality": quality, "policy": policy}
                found.append(_ratio(steps, "quality_gain", variant, plain, (program, policy)))
    return found


def _batch(steps: Steps) -> list[Metric]:
    """Steps of several sequences at once, and what fusing gains there."""
    options, found = steps.options, []
    for policy, batch in product(options.arm_policies, options.batches):
        if batch == 1:
            continue
        own: figures.Variant = {"policy": policy, "batch": batch}
        for stage in (UNFUSED, FUSED):
            found += _step(steps, stage_name(options, stage, batch), {"stage": stage, **own}, batch)
        unfused, fused = (steps.cell(stage, policy, batch) for stage in (UNFUSED, FUSED))
        alone = steps.cell(UNFUSED, policy)
        found.append(_ratio(steps, "gain", {"stage": FUSED, **own}, unfused, fused))
        found.append(_ratio(steps, "batch_slowdown", {"stage": UNFUSED, **own}, unfused, alone))
    return found


def _splitting(steps: Steps) -> list[Metric]:
    """The fixed piece of work by the number of its dispatches: the wall, the GPU's own time, and the slope."""
    options, found = steps.options, []
    programs = {pieces: split(pieces, options.split_steps).name for pieces in options.splits}
    for policy in options.arm_policies:
        walls = {pieces: steps.of(name, policy) for pieces, name in programs.items()}
        for pieces, wall in walls.items():
            why = steps.lack((programs[pieces], policy))
            found.append(_over("split_us", {"dispatches": pieces, "policy": policy}, "us", wall, why=why))
        table = pd.DataFrame(walls).dropna()
        if table.shape[1] >= 2:
            n = np.array(table.columns, dtype=float)
            # least squares, and every count's deviation alike: the work itself is in all of them
            slope = pd.Series(
                (table.to_numpy() * (n - n.mean())).sum(axis=1) / ((n - n.mean()) ** 2).sum(), table.index
            )
            why = steps.lack(*((name, policy) for name in programs.values()))
            found.append(_over("split_dispatch_us", {"policy": policy}, "us", slope, signed=True, why=why))
    for pieces, name in programs.items():
        busy = steps.of(name, BUSY, column="busy_us")
        if not busy.empty:
            found.append(_over("split_busy_us", {"dispatches": pieces}, "us", busy))
    return found


def _traffic(steps: Steps) -> list[Metric]:
    """The time of each stage's bytes at the bandwidth of a copy, and what of the saving that is."""
    options, us_per_copy = steps.options, _copying(steps)
    why = steps.lack((copying(options.copy_mib).name, "one_pass"))
    if why is None and not (us_per_copy > 0).all():
        why = "in some block a copy took no time that could be told", MetricOutcome.not_supported
    us_per_byte = us_per_copy / copied_bytes(options)
    found = [_over("bandwidth_gb_per_s", {}, "GB/s", 1e-3 / us_per_byte, why=why)]
    for stage, n in steps.bytes.items():
        found.append(_over("traffic_us", {"stage": stage}, "us", n * us_per_byte, why=why))
    spared = (steps.bytes[UNFUSED] - steps.bytes[FUSED]) * us_per_byte
    for policy in options.arm_policies:
        found += _of_saved(steps, ("spared_us", "traffic_fraction"), {"policy": policy}, spared, why)
    return found


def _copying(steps: Steps) -> pd.Series[float]:
    """Microseconds a copy, by the GPU's clock where there is one: beside a wait's polling a copy is short.

    The slope has two dispatches for each copy, its own and the one that looks at it, so what they cost apart from bytes
    counts as copying: the bandwidth comes out low, the less so the larger the copy, and times at it come out long.
    """
    name = copying(steps.options.copy_mib).name
    for column in ("span_us", "wall_us"):
        once, often = (steps.of(name, "one_pass", 2 * times, column) for times in COPIES)
        slope = ((often - once) / (COPIES[1] - COPIES[0])).dropna()
        if not slope.empty:
            break
    return slope


def _saturation(steps: Steps) -> list[Metric]:
    """The share of the host's cores that the unfused step uses, and once more where none are to spare, or where what
    computes is the CPU itself.
    """
    options, found = steps.options, []
    software = any(launch.adapter is not None and launch.adapter.is_fallback for launch in steps.run.launches)
    for policy in options.arm_policies:
        program = stage_name(options, UNFUSED)
        used = steps.of(program, policy, column="cpu_us_all")
        if used.empty:
            if software:
                reason = "the adapter computes on the CPU, whose time is not told"
                unsupported = MetricOutcome.not_supported
                variant = {"policy": policy}
                found.append(figures.missing(ID, "fusion.cpu_saturated", variant, "fraction", reason, unsupported))
            continue
        share = used / steps.of(program, policy) / steps.run.manifest.host.usable_cores
        found.append(_over("cores_share", {"policy": policy}, "fraction", share))
        if software or (found[-1].value or 0) >= SATURATED:
            found.append(_over("cpu_saturated", {"policy": policy}, "fraction", share))
    return found
