"""policy: the same dispatches, submitted in every way. What does a dispatch cost when submits and passes are shared?"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pandas as pd

from rig import figures, stats
from rig.claims import above_one, no_figure
from rig.experiments.base import CountLadder, Experiment, LadderOptions, Point, PolicyNames, ladder_cells, point
from rig.frames import Run
from rig.ladder import Ladder, back_pressure, by_thread, pair, ratio, slopes
from rig.policies import PRESETS, REPLAYED
from rig.records import Metric, MetricOutcome, Name, Positive, Verdict

ID = "policy"
BASE = "submit_each"
"""The policy that the others are compared with."""

PUBLISHED = "pass_each"
"""The way of sharing a submit that the papers have a figure of, by their own estimator."""

SATURATED = 0.8
"""From this share of the cores on, more of anything would only wait."""

STAGES = {"caller": "encode", "gpu_process": "gpu_main", "gpu": "busy"}
"""What may bind: the caller that encodes, the GPU process's main thread, the GPU itself (or what computes for it)."""


class PolicyOptions(LadderOptions, frozen=True, kw_only=True):
    """`policies`: by name, see rig.policies; `counts`: a short ladder, above the knee of a polled wait.

    `busy`: policies of which the GPU's busy time is measured too, in samples of their own that stamp every pass.
    """

    blocks: Positive = 6
    counts: CountLadder = (100, 300, 600, 1000)
    policies: PolicyNames = (
        *("submit_each", "command_buffers", "pass_each", "every_4", "every_16", "every_32", "every_64"),
        *("every_64_pass_1", "one_pass", *PRESETS, REPLAYED),
    )
    busy: tuple[Name, ...] = (
        *("submit_each", "command_buffers", "pass_each", "every_4", "every_16", "every_32", "every_64"),
        "every_64_pass_1",
    )


def cells(options: PolicyOptions) -> list[Point]:
    """Every policy at every count, and the stamped ones. ValueError as ladder_cells."""
    stamped = [point(f"{name}+busy", n, options.elements) for name in options.busy for n in options.counts]
    return [*ladder_cells(options), *stamped]


def compute(run: Run, options: PolicyOptions) -> list[Metric]:
    """Of each policy: slopes by span and wall, what each stage takes of a dispatch and which one binds, the CPU that
    all of it uses, and its gain over one submit each.
    """
    walls: dict[str, Ladder] = {}
    found: list[Metric] = []
    for name in options.policies:
        rows = run.rows(ID, policy=name)
        good = run.counted(rows)
        if reason := figures.no_slope(run, rows, ID):
            found += _nothing(name, *reason)
            continue
        _, by_span, by_wall = pair(ID, {"policy": name}, good)
        walls[name] = by_wall
        found += [by_span.per_dispatch(), by_wall.per_dispatch()]
        if name == PUBLISHED and figures.PUBLISHED_N in options.counts:
            found.append(figures.total_over_n(run, ID, name, good))
        stages = {"encode": slopes(good, good["encode_us"], "median"), **_busy(run, options, name, good)}
        stalls = back_pressure(ID, name, good)
        held_up = "encoding is held up by back-pressure inside the ladder" if stalls else ""
        found += [_mean("encode_us", {"policy": name}, stages["encode"], len(good), doubt=held_up)]
        found += [_mean("busy_us", {"policy": name}, stages["busy"], len(good))] if "busy" in stages else []
        found += [*_threads(run, name, good, by_wall, stages), *_binding(name, by_wall, stages, len(good), held_up)]
        found += [*_stamping(run, options, name, good), *stalls]
    if BASE in walls:
        # by wall: in one submit the GPU's clock does not see what the caller waits for
        found += [
            ratio("policy.gain", {"policy": name}, walls[BASE], own) for name, own in walls.items() if name != BASE
        ]
    return found


def _nothing(name: str, reason: str, outcome: MetricOutcome) -> list[Metric]:
    return [
        figures.missing(ID, f"policy.{metric}", {"policy": name}, "us", reason, outcome)
        for metric in ("per_dispatch_us", "encode_us", "cpu_us")
    ]


def _mean(
    metric: str, variant: figures.Variant, values: pd.Series[float], samples: int, unit: str = "us", doubt: str = ""
) -> Metric:
    """Arithmetic mean over launches: in one pass, encoding or a thread's time may be lost in the scatter."""
    return figures.over_launches(
        ID, f"policy.{metric}", variant, unit, values, samples, interval=stats.mean_interval, doubt=doubt
    )


def _busy(run: Run, options: PolicyOptions, name: str, good: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """The GPU's busy time a dispatch, by launch: from samples of their own, or of a single pass from any."""
    rows = run.counted(run.rows(ID, policy=f"{name}+busy")) if name in options.busy else good
    rows = rows.dropna(subset=["busy_us"])
    return {"busy": slopes(rows, rows["busy_us"], "mean")} if rows["n"].nunique() >= stats.LEAST_COUNTS else {}


def _stamping(run: Run, options: PolicyOptions, name: str, good: pd.DataFrame) -> list[Metric]:
    """What stamping every pass adds to the wall: the observer's own effect."""
    stamped = run.counted(run.rows(ID, policy=f"{name}+busy"))
    if name not in options.busy or stamped["n"].nunique() < stats.LEAST_COUNTS:
        return []
    added = slopes(stamped, stamped["wall_us"], "mean") - slopes(good, good["wall_us"], "mean")
    return [_mean("stamping_us", {"policy": name}, added.dropna(), len(stamped))]


def _threads(
    run: Run, name: str, good: pd.DataFrame, by_wall: Ladder, stages: dict[str, pd.Series[float]]
) -> list[Metric]:
    """CPU time and context switches a dispatch, in all and by class. And the share of the host's cores that they use
    while they last. Adds the GPU process's main thread to `stages`.
    """
    measured = good.dropna(subset=["cpu_us"])
    if measured.empty:
        reason, variant = "the kernel does not tell CPU time by thread", {"policy": name, "thread": "all"}
        return [figures.missing(ID, "policy.cpu_us", variant, "us", reason, MetricOutcome.not_supported)]
    found: list[Metric] = []
    for column, metric, unit in (("cpu_us", "cpu_us", "us"), ("switches", "switches", "switches")):
        for thread, own in by_thread(measured, column).items():
            samples = int(measured[column].notna().sum())
            found.append(_mean(metric, {"policy": name, "thread": thread}, own, samples, unit))
            if column == "cpu_us" and thread in ("all", "gpu_main"):
                stages[thread] = own
    share = (stages.pop("all") / by_wall.slopes() / run.manifest.host.usable_cores).dropna()
    cores = _mean("cores_share", {"policy": name}, share, len(measured), "fraction")
    saturated = cores.value is not None and cores.value >= SATURATED
    return [
        *found,
        cores,
        *([msgspec.structs.replace(cores, metric="policy.cpu_saturated")] if saturated else []),
    ]


def _binding(
    name: str, by_wall: Ladder, stages: dict[str, pd.Series[float]], samples: int, held_up: str
) -> list[Metric]:
    """Each stage's time over the wall's, both a dispatch, and once more the largest: the stage that binds. Unresolved
    where the next largest can't be told from it.
    """
    wall = by_wall.slopes()
    shares = {stage: (stages[of] / wall).dropna() for stage, of in STAGES.items() if of in stages}
    told = [
        _mean(
            *("stage_share", {"policy": name, "stage": s}, v, samples, "fraction"),
            doubt=held_up if s == "caller" else "",
        )
        for s, v in shares.items()
    ]
    known = sorted((m for m in told if m.value is not None), key=lambda m: m.value or 0, reverse=True)
    if not known:
        return told
    doubt = by_wall.doubt or held_up
    if not doubt and "gpu" not in shares:
        doubt = "the GPU's own time was not measured under this policy"
    if len(known) > 1 and not doubt:
        first, second = (shares[str(m.variant["stage"])] for m in known[:2])
        apart = (first - second).dropna()
        if len(apart) < 2 or stats.mean_interval(apart.to_list()).low <= 0:
            doubt = f"{known[1].variant['stage']} takes as much, as far as this run can tell"
    outcome = MetricOutcome.unresolved if doubt else MetricOutcome.ok
    return [*told, msgspec.structs.replace(known[0], metric="policy.binding_share", outcome=outcome, reason=doubt)]


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:
    """C10, from the gain of one pass."""
    gain = next((m for m in metrics if m.metric == "policy.gain" and m.variant["policy"] == "one_pass"), None)
    return [claim_amortise(gain)]


def claim_amortise(gain: Metric | None) -> Verdict:
    """C10, as far as batching goes: holds where a dispatch in one pass costs less, the whole interval above 1."""
    if gain is None or gain.value is None:
        return no_figure("C10", gain, "this run has not both submit_each and one_pass")
    told = figures.told(gain, "times")
    statement = f"one submit each costs {told} what one pass costs, a dispatch; published: 1.8 times; capture untested"
    return Verdict(claim="C10", outcome=above_one(gain), statement=statement, evidence=(gain.key,))


EXPERIMENT = Experiment(
    id=ID,
    line="the same dispatches in every way of submitting them, engines' among them; which stage binds, on which CPU?",
    options=PolicyOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
