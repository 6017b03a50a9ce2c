"""Figures and verdicts of `fusion` from samples in which the cause is planted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pytest

from rig import figures, stats
from rig.experiments.base import Point
from rig.experiments.fusion.cells import FUSED, UNFUSED, FusionOptions, points
from rig.experiments.fusion.figures import compute
from rig.experiments.fusion.verdicts import verdicts
from rig.frames import Run
from rig.records import Metric, MetricOutcome, VerdictOutcome, plain
from tests.conftest import RunIt, small_profile
from tests.scripted import ADAPTER, ScriptedExecutor

OPTIONS = FusionOptions(
    stages=("unfused", "rmsnorm", "kv", "fewest"),
    policies=("submit_each", "one_pass"),
    shares=(0.5, 1.0),
    splits=(1, 16, 64),
    qualities=("thread", "vec4"),
    batches=(2,),
    copy_mib=1,
)
HARDWARE = msgspec.structs.replace(ADAPTER, is_fallback=False)
LAUNCHES, BLOCKS = 6, 2
Times = Callable[[Point], float]


def by_count(**per_dispatch_us: float) -> Times:
    """Every dispatch costs the same, whatever it is; a copy of the copy program almost nothing."""

    def time(point: Point) -> float:
        return point.n * (0.5 if point.program.name.startswith("copy") else per_dispatch_us[point.policy.name[:8]])

    return time


COUNT_ALONE = by_count(submit_e=40.0, one_pass=6.0, pass_eac=6.0)


class Planted:
    """Runs `compute` and `verdicts` on six launches of two blocks whose times are planted, with little noise."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __call__(self, times: Times, *, hardware: bool = True, noise: float = 0.003) -> Found:
        return self.of(samples(times, noise), hardware=hardware)

    def of(self, frame: pd.DataFrame, *, hardware: bool = True, options: FusionOptions = OPTIONS) -> Found:
        adapter = HARDWARE if hardware else ADAPTER
        launches = tuple(msgspec.structs.replace(launch, adapter=adapter) for launch in self.run.launches)
        return Found(compute(replace(self.run, launches=launches, samples=frame), options))


class Found:
    def __init__(self, metrics: list[Metric]) -> None:
        self.metrics = metrics
        self.verdicts = {verdict.claim: verdict for verdict in verdicts(metrics)}

    def __getitem__(self, claim: str) -> VerdictOutcome:
        return self.verdicts[claim].outcome

    def at_look(self) -> Found:
        """As a run's verdicts are passed, after the first of two looks."""
        return Found([figures.at_look(metric, (LAUNCHES, 9)) for metric in self.metrics])

    def one(self, name: str, **variant: str | int | float) -> Metric:
        return next(m for m in self.metrics if m.metric == f"fusion.{name}" and m.variant == variant)

    def value(self, name: str, **variant: str | int | float) -> float:
        value = self.one(name, **variant).value
        assert value is not None
        return value


def samples(times: Times, noise: float) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = []
    for point in points(OPTIONS):
        for launch in range(LAUNCHES):
            for block in range(1, BLOCKS + 1):
                us = times(point) * float(np.exp(rng.normal(0, noise)))
                rows.append(
                    {
                        "experiment": "fusion",
                        "program": point.program.name,
                        "policy": point.policy.name,
                        "n": point.n,
                        "launch": launch,
                        "block": block,
                        "void": "",
                        "detail": "",
                        "wall_us": us,
                        "span_us": us,
                        "busy_us": us,
                        "cpu_us": {"gpu_main": 0.1 * us},
                    }
                )
    return pd.DataFrame(rows)


@pytest.fixture
def planted(run_it: RunIt) -> Planted:
    return Planted(run_it(ScriptedExecutor(), small_profile(experiments=["single_op"]))[2])


def stage_of(point: Point) -> str:
    return point.program.name.removeprefix("tiny_")


def test_where_only_the_count_costs_it_is_the_cause(planted: Planted) -> None:
    found = planted(COUNT_ALONE)
    assert {found[claim] for claim in ("C4", "C5", "C6", "C7", "C10")} == {VerdictOutcome.holds}
    assert found.value("explained_fraction", padding="empty", policy="submit_each") == pytest.approx(1, rel=0.02)
    assert found.value("marginal_us", padding="copy", policy="one_pass") == pytest.approx(6, rel=0.05)
    assert found.value("dispatches", shape="tiny", stage=UNFUSED) == 876
    assert found["tiny_dispatch_bound"] is VerdictOutcome.holds


def test_where_only_the_removed_kernels_work_costs_the_count_is_not_the_cause(planted: Planted) -> None:
    def work(point: Point) -> float:
        return (
            COUNT_ALONE(point)
            if point.program.model is None
            else 2 * (32_000 if stage_of(point) == UNFUSED else 20_000)
        )

    found = planted(work)
    assert found["C4"] is VerdictOutcome.holds
    assert found["C5"] is VerdictOutcome.does_not_hold
    assert found.value("explained_fraction", padding="empty", policy="submit_each") == pytest.approx(0, abs=0.05)
    assert found["tiny_dispatch_bound"] is VerdictOutcome.does_not_hold


def test_where_half_of_the_saving_is_work_the_count_alone_is_not_the_cause(planted: Planted) -> None:
    def mixed(point: Point) -> float:
        return COUNT_ALONE(point) + (2 * 312 * 40.0 if stage_of(point) == UNFUSED else 0.0)

    found = planted(mixed)
    assert found["C5"] is VerdictOutcome.does_not_hold
    assert found.value("explained_fraction", padding="empty", policy="submit_each") == pytest.approx(0.5, abs=0.03)


def test_where_padding_costs_more_than_what_it_stands_for_nothing_is_settled(planted: Planted) -> None:
    def dear(point: Point) -> float:
        return COUNT_ALONE(point) * (2.0 if "_empty_" in point.program.name else 1.0)

    assert planted(dear)["C5"] is VerdictOutcome.unresolved


def test_b37_a_saving_that_other_work_hides_is_told_as_no_gain(planted: Planted) -> None:
    def hidden(point: Point) -> float:
        return COUNT_ALONE(point) if point.program.model is None else max(2 * 60_000, COUNT_ALONE(point))

    found = planted(hidden)
    assert found["C4"] is not VerdictOutcome.holds
    assert found.one("gain", stage=FUSED, policy="submit_each").value == pytest.approx(1, abs=0.01)
    assert found["C5"] in (VerdictOutcome.unresolved, VerdictOutcome.not_tested)
    fraction = found.one("explained_fraction", padding="empty", policy="submit_each")
    assert fraction.outcome is MetricOutcome.unresolved
    assert "is not surely 3 %" in fraction.reason
    assert fraction.ci_low is not None
    assert fraction.ci_high is not None
    assert fraction.ci_low <= fraction.value <= fraction.ci_high  # type: ignore[operator]


def test_where_fusing_makes_it_slower_there_is_no_cause_to_look_for(planted: Planted) -> None:
    def slower(point: Point) -> float:
        return COUNT_ALONE(point) * (2.0 if FUSED in point.program.name else 1.0)

    found = planted(slower)
    assert found["C4"] is VerdictOutcome.does_not_hold
    assert found["C5"] is VerdictOutcome.not_tested
    assert "gains nothing" in found.verdicts["C5"].statement


def test_traffic_is_a_cause_where_the_spared_bytes_take_long(planted: Planted) -> None:
    def slow_memory(point: Point) -> float:
        return point.n * 60_000.0 if point.program.name.startswith("copy") else COUNT_ALONE(point)

    found = planted(slow_memory)
    assert found["C6"] is VerdictOutcome.does_not_hold
    assert found.value("bandwidth_gb_per_s") == pytest.approx(2 * 2**20 / (2 * 60_000) * 1e-3, rel=0.02)
    assert planted(COUNT_ALONE)["C6"] is VerdictOutcome.holds


def test_traffic_is_decided_at_the_level_that_the_look_leaves(planted: Planted) -> None:
    def copies(us: float) -> Times:
        return lambda point: point.n * us if point.program.name.startswith("copy") else COUNT_ALONE(point)

    # so long that the plain interval ends just below what a cause is, and the wider one above
    end = planted(copies(1_000.0), noise=0.03).one("traffic_fraction", policy="submit_each").ci_high
    assert end is not None
    found = planted(copies(1_000.0 * 0.0999 / end), noise=0.03)
    assert found["C6"] is VerdictOutcome.holds
    assert found.at_look()["C6"] is VerdictOutcome.unresolved


@pytest.mark.parametrize(
    ("claim", "metric", "variant"),
    [
        ("C5", "explained_fraction", {"padding": "empty", "policy": "submit_each"}),
        ("C5", "explained_fraction", {"padding": "copy", "policy": "submit_each"}),
        ("C6", "traffic_fraction", {"policy": "submit_each"}),
    ],
)
def test_a_fraction_is_told_with_the_interval_that_decides(
    planted: Planted, claim: str, metric: str, variant: dict[str, str]
) -> None:
    found = planted(COUNT_ALONE, noise=0.03)
    plain = found.one(metric, **variant)
    told = re.search(
        rf"{plain.value:.3g} of \S+(?: saving)? \((\S+) to (\S+) at 98 %\)", found.at_look().verdicts[claim].statement
    )
    assert told is not None
    assert plain.ci_low is not None
    assert plain.ci_high is not None
    assert float(told[1]) < plain.ci_low < plain.ci_high < float(told[2])


def test_a_fraction_without_ends_at_the_deciding_level_says_so_and_is_unresolved(planted: Planted) -> None:
    metrics = planted(COUNT_ALONE).metrics
    base = {"policy": "submit_each"}

    def scattered(metric: Metric) -> Metric:
        if metric.metric != "fusion.saved_us" or metric.variant != {"stage": FUSED, **base}:
            return metric
        return msgspec.structs.replace(metric, per_launch={str(n): (-1.0) ** n for n in range(LAUNCHES)})

    verdicts = Found([scattered(metric) for metric in metrics]).at_look().verdicts
    for claim in ("C5", "C6"):
        assert verdicts[claim].outcome is VerdictOutcome.unresolved
        assert verdicts[claim].statement.endswith("; at 98 % the mean that is divided by can't be told from zero")


def test_kernel_quality_is_a_bottleneck_where_a_better_kernel_is_faster(planted: Planted) -> None:
    def better(point: Point) -> float:
        return COUNT_ALONE(point) * (0.5 if point.program.name.endswith("_vec4") else 1.0)

    def worse(point: Point) -> float:
        return COUNT_ALONE(point) * (3.0 if point.program.name.endswith("_thread") else 1.0)

    assert planted(better)["C7"] is VerdictOutcome.does_not_hold
    # that a worse kernel is slower says nothing of a bottleneck
    assert planted(worse)["C7"] is VerdictOutcome.holds


@pytest.mark.parametrize("claim", ["C5", "C6", "C7"])
def test_a_statement_of_a_cause_says_under_which_policy_it_is_one(planted: Planted, claim: str) -> None:
    assert planted(COUNT_ALONE).verdicts[claim].statement.startswith("with one submit each, ")


def test_the_largest_gain_of_a_kernel_under_another_policy_stands_beside(planted: Planted) -> None:
    def better_in_one_pass(point: Point) -> float:
        quicker = point.program.name.endswith("_vec4") and point.policy.name == "one_pass"
        return COUNT_ALONE(point) * (0.5 if quicker else 1.0)

    verdict = planted(better_in_one_pass).verdicts["C7"]
    assert verdict.outcome is VerdictOutcome.holds
    told = re.search(
        r"; the most under another policy: (\S+) times \(.*\) with vec4 under one_pass$", verdict.statement
    )
    assert told is not None
    assert float(told[1]) == pytest.approx(2, rel=0.02)
    assert verdict.evidence[-1] == "fusion.quality_gain{policy=one_pass,quality=vec4}"


def test_batching_is_worth_more_than_fusing_only_where_it_gains_more(planted: Planted) -> None:
    assert planted(COUNT_ALONE)["batching_over_fusing"] is VerdictOutcome.holds
    found = planted(by_count(submit_e=40.0, one_pass=35.0, pass_eac=35.0))
    assert found["batching_over_fusing"] is VerdictOutcome.does_not_hold
    assert found["C10"] is VerdictOutcome.holds


@pytest.mark.parametrize("claim", ["C5", "C6", "C7", "batching_over_fusing", "tiny_dispatch_bound"])
def test_on_a_software_adapter_causes_are_not_told_apart_and_figures_stand(planted: Planted, claim: str) -> None:
    found = planted(COUNT_ALONE, hardware=False)
    assert found[claim] is VerdictOutcome.not_tested
    assert "is itself the adapter" in found.verdicts[claim].statement
    assert found["C4"] is VerdictOutcome.holds
    assert found.value("explained_fraction", padding="empty", policy="submit_each") == pytest.approx(1, rel=0.02)


def test_on_a_software_adapter_without_cpu_times_causes_are_not_told_apart_either(planted: Planted) -> None:
    frame = samples(COUNT_ALONE, 0.003)
    frame["cpu_us"] = None
    found = planted.of(frame, hardware=False)
    for claim in ("C5", "C6", "C7", "batching_over_fusing", "tiny_dispatch_bound"):
        assert found[claim] is VerdictOutcome.not_tested
        assert "whose time is not told" in found.verdicts[claim].statement


def test_a_saving_of_exactly_nothing_has_no_fraction_and_a_summary_that_can_be_stored(planted: Planted) -> None:
    def alike(point: Point) -> float:
        return COUNT_ALONE(point) if point.program.model is None else 120_000.0

    found = planted(alike, noise=0.0)
    fraction = found.one("explained_fraction", padding="empty", policy="submit_each")
    assert (fraction.outcome, fraction.value) == (MetricOutcome.not_supported, None)
    assert "is nothing at all" in fraction.reason
    assert found["C5"] is VerdictOutcome.not_tested
    assert plain(found.metrics)


def test_a_stage_that_could_not_run_is_missing_and_the_others_stand(planted: Planted) -> None:
    frame = samples(COUNT_ALONE, 0.003)
    lost = frame["program"] == "tiny_fewest"
    frame.loc[lost, ["void", "detail"]] = ["not_supported", "needs maxStorageBuffersPerShaderStage 9, the device has 8"]
    found = planted.of(frame)
    step = found.one("step_us", stage="fewest", policy="one_pass")
    assert (step.outcome, step.value) == (MetricOutcome.not_supported, None)
    assert "maxStorageBuffersPerShaderStage" in step.reason
    assert found["C4"] is VerdictOutcome.holds


@pytest.mark.parametrize(
    ("claim", "program", "policy"),
    [
        ("C4", "tiny_kv", "submit_each"),
        ("C5", "tiny_kv_empty_1", "submit_each"),
        ("C5", "tiny_unfused", "submit_each"),
        ("C6", "copy_1_mib", "one_pass"),
        ("C6", "tiny_kv", "submit_each"),
        ("C7", "tiny_rmsnorm_workgroup", "submit_each"),
        ("C10", "tiny_unfused", "one_pass"),
        ("batching_over_fusing", "tiny_unfused", "one_pass"),
        ("tiny_dispatch_bound", "tiny_kv_empty_0.5", "submit_each"),
    ],
)
def test_a_claim_whose_cell_has_no_time_tells_why_it_has_none(
    planted: Planted, claim: str, program: str, policy: str
) -> None:
    frame = samples(COUNT_ALONE, 0.003)
    lost = (frame["program"] == program) & (frame["policy"] == policy)
    assert lost.any()
    frame.loc[lost, ["void", "detail"]] = ["wrong_output", "sight[3] is 7"]
    verdict = planted.of(frame).verdicts[claim]
    assert (verdict.outcome, verdict.statement) == (
        VerdictOutcome.not_tested,
        "no figure: wrong_output: sight[3] is 7",
    )


def test_kernel_quality_is_not_settled_while_one_kernel_has_no_time(planted: Planted) -> None:
    frame = samples(COUNT_ALONE, 0.003)
    lost = frame["program"] == "tiny_rmsnorm_thread"
    frame.loc[lost, ["void", "detail"]] = ["wrong_output", "logits[3] is 7"]
    assert planted.of(frame)["C7"] is VerdictOutcome.unresolved
    frame.loc[lost, ["void", "detail"]] = ["not_supported", "the adapter has no subgroups"]
    assert planted.of(frame)["C7"] is VerdictOutcome.holds


def test_a_copy_that_takes_no_time_gives_no_bandwidth_and_says_so(planted: Planted) -> None:
    found = planted(lambda point: 100.0 if point.program.name.startswith("copy") else COUNT_ALONE(point), noise=0.0)
    assert "no figure: in some block a copy took no time" in found.verdicts["C6"].statement


def test_what_others_are_compared_with_is_one_submit_each_wherever_it_is_named(planted: Planted) -> None:
    options = msgspec.structs.replace(OPTIONS, policies=("one_pass", "submit_each"))
    found = planted.of(samples(COUNT_ALONE, 0.003), options=options)
    assert found["C10"] is VerdictOutcome.holds
    assert found["batching_over_fusing"] is VerdictOutcome.holds
    assert {m.variant["over"] for m in found.metrics if "over" in m.variant} == {"submit_each"}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"shape": "gpt"}, "unknown shape 'gpt'"),
        ({"weights": "f64"}, "weights: unknown 'f64': f32, f16"),
        ({"weights": "i32"}, "weights: unknown 'i32': f32, f16"),
        ({"stages": ("unfused", "rmsnorm")}, "stages: unfused, rmsnorm lack unfused or kv"),
        ({"stages": ("all",)}, "stages: unknown 'all': unfused, rmsnorm, "),
        ({"qualities": ("best",)}, "unknown 'best'"),
        ({"paddings": ("sleep",)}, "unknown 'sleep'"),
        ({"policies": ("each",)}, "unknown policy 'each': submit_each, "),
        ({"arm_policies": ("pass_each",)}, "arm_policies: unknown 'pass_each': submit_each, one_pass"),
        ({"splits": (1, 3)}, "can't be cut"),
        ({"batches": (2, 2)}, "names one twice"),
    ],
)
def test_options_that_can_not_be_are_refused_with_the_reason(change: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        points(msgspec.structs.replace(OPTIONS, **change))


def test_fiellers_interval_holds_the_ratio_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        shared = rng.normal(0, 1, 6)
        found = stats.fieller(20 + shared + rng.normal(0, 1, 6), 10 + shared)
        hits += found.low <= 2 <= found.high
    assert 0.93 <= hits / 2000 <= 0.97


def test_fiellers_interval_has_no_ends_where_the_divisor_may_be_nothing() -> None:
    with pytest.raises(ValueError, match="can't be told from zero"):
        stats.fieller(np.array([1.0, 2.0, 3.0]), np.array([-1.0, 1.0, 0.5]))
    with pytest.raises(ValueError, match="needs 2 launches"):
        stats.fieller(np.array([1.0]), np.array([1.0]))


def test_fiellers_interval_of_exact_pairs_is_a_point() -> None:
    found = stats.fieller(np.array([200.0, 202.0, 204.0]), np.array([100.0, 101.0, 102.0]))
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))
