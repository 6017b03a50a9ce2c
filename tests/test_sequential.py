"""The experiment `sequential`: figures from samples whose truth is planted, and verdicts from figures."""

from __future__ import annotations

import pytest

from rig import analysis
from rig.experiments.sequential import claim_naive, claim_tens
from rig.records import Metric, MetricOutcome, Outcome, Policy, VerdictOutcome
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor, fault_at

LADDER = [1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000, 1400, 2000]


def figures(run_it: RunIt, model: Model, counts: list[int] = LADDER) -> dict[str, Metric]:
    profile = small_profile(sequential={"blocks": 3, "counts": counts}, launches={"looks": [5]})
    _, _, run = run_it(ScriptedExecutor(model=model), profile)
    return {m.key: m for m in analysis.summarise(run).metrics}


def test_b27_b28_the_slope_is_the_cost_and_the_wait_is_the_fixed_part(run_it: RunIt) -> None:
    found = figures(run_it, Model(fixed_us=1700))
    slope = found["sequential.per_dispatch_us{clock=wall,policy=submit_each}"]
    fixed = found["sequential.fixed_us{policy=submit_each}"]
    assert slope.outcome is MetricOutcome.ok
    assert slope.value == pytest.approx(40, rel=0.03)
    assert fixed.value == pytest.approx(1700, rel=0.15)
    naive = found["sequential.naive_over_true{policy=submit_each}"]
    assert naive.value == pytest.approx((1700 + 40) / 40, rel=0.05)
    published = found["sequential.total_over_n_us{n=100,policy=submit_each}"]
    assert published.value == pytest.approx((1700 + 4000) / 100, rel=0.03)


def test_counts_below_the_knee_are_not_used(run_it: RunIt) -> None:
    found = figures(run_it, Model(floor_us=2500, noise=0.005))
    slope = found["sequential.per_dispatch_us{clock=wall,policy=one_pass}"]
    assert slope.outcome is MetricOutcome.ok
    assert slope.value == pytest.approx(6, rel=0.03)
    knee = found["sequential.knee_n{clock=wall,policy=one_pass}"]
    assert (knee.ci_low, knee.ci_high) == (300, 500)


def test_a_ladder_that_never_leaves_the_polling_floor_is_unresolved_with_the_reason(run_it: RunIt) -> None:
    found = figures(run_it, Model(floor_us=2500, noise=0.001), counts=[1, 2, 5, 10, 20, 50])
    slope = found.get("sequential.per_dispatch_us{clock=wall,policy=one_pass}")
    assert slope is not None
    assert slope.outcome is not MetricOutcome.ok
    assert slope.reason


class Bent(Model):
    """Above 300 dispatches all cost 3 % more: too little to leave the linear range, too much for one slope."""

    def span_us(self, policy: Policy, n: int) -> float:
        return super().span_us(policy, n) * (1.03 if n > 300 else 1.0)


def test_halves_of_the_ladder_that_disagree_make_the_slope_unresolved_and_say_by_how_much(run_it: RunIt) -> None:
    found = figures(run_it, Bent(noise=0.0002))
    slope = found["sequential.per_dispatch_us{clock=span,policy=one_pass}"]
    assert slope.outcome is MetricOutcome.unresolved
    assert "the two halves of the ladder disagree: 6" in slope.reason
    assert found["sequential.naive_over_true{policy=one_pass}"].outcome is MetricOutcome.unresolved


class Stalled(Model):
    """Above 50 dispatches each costs three times as much, and nothing in the encoding shows it."""

    def span_us(self, policy: Policy, n: int) -> float:
        return super().span_us(policy, n) + 2 * self.per_dispatch_us[policy.name] * max(0, n - 50)


def test_the_cost_under_back_pressure_is_not_taken_for_the_cost_of_a_dispatch(run_it: RunIt) -> None:
    found = figures(run_it, Stalled(noise=0.01))
    for policy in ("submit_each", "one_pass"):
        slope = found[f"sequential.per_dispatch_us{{clock=span,policy={policy}}}"]
        right = slope.value == pytest.approx(Model().per_dispatch_us[policy], rel=0.05)
        assert right or slope.outcome is MetricOutcome.unresolved


def test_where_the_ladder_is_not_straight_claims_are_settled_by_its_flattest_and_its_steepest_part(
    run_it: RunIt,
) -> None:
    profile = small_profile(sequential={"blocks": 3, "counts": LADDER}, launches={"looks": [5]})
    _, _, run = run_it(ScriptedExecutor(model=Bent(noise=0.0002)), profile)
    summary = analysis.summarise(run)
    found = {m.key: m for m in summary.metrics}
    assert found["sequential.part_us{part=flattest,policy=submit_each}"].value == pytest.approx(40, rel=0.01)
    assert found["sequential.part_us{part=steepest,policy=submit_each}"].value == pytest.approx(43, rel=0.05)
    told = {v.claim: v for v in summary.verdicts}
    assert found["sequential.naive_over_true{policy=submit_each}"].outcome is MetricOutcome.unresolved
    assert told["C1"].outcome is VerdictOutcome.holds
    assert told["C2"].outcome is VerdictOutcome.holds
    assert "steepest part" in told["C1"].statement


def test_a_part_of_the_ladder_beyond_the_claim_leaves_it_unresolved() -> None:
    doubtful = metric("sequential.per_dispatch_us", 60, 50, 70, "bent", policy="submit_each", clock="span")
    flat = metric("sequential.part_us", 45, 40, 50, policy="submit_each", part="flattest")
    steep = metric("sequential.part_us", 120, 110, 130, policy="submit_each", part="steepest")
    assert claim_tens(doubtful, [flat, steep]).outcome is VerdictOutcome.unresolved
    naive = metric("sequential.naive_over_true", 5, 4, 6, "bent", policy="submit_each")
    least = metric("sequential.naive_over_steepest", 1.1, 0.9, 1.3, policy="submit_each")
    assert claim_naive(naive, least).outcome is VerdictOutcome.unresolved


@pytest.mark.parametrize("scale", [1 / 83, 1 / 52.08])
def test_b25_a_span_far_below_the_wall_is_no_figure_to_rely_on(run_it: RunIt, scale: float) -> None:
    profile = small_profile(sequential={"blocks": 3, "counts": LADDER}, launches={"looks": [5]})
    _, _, run = run_it(ScriptedExecutor(model=Model(span_scale=scale)), profile)
    summary = analysis.summarise(run)
    found = {m.key: m for m in summary.metrics}
    assert {v.outcome for v in summary.verdicts if v.claim in ("C1", "C2")} == {VerdictOutcome.unresolved}
    for key in ("per_dispatch_us{clock=span,policy=one_pass}", "naive_over_true{policy=one_pass}"):
        assert found[f"sequential.{key}"].outcome is MetricOutcome.unresolved
        assert "the cross-check fails" in found[f"sequential.{key}"].reason


class Quantised(Model):
    """GPU timestamps in steps of 65,536 ns."""

    def span_us(self, policy: Policy, n: int) -> float:
        return super().span_us(policy, n) // 65.536 * 65.536


def test_b22_timestamps_in_coarse_steps_give_the_cost_or_none_but_never_a_tie(run_it: RunIt) -> None:
    found = figures(run_it, Quantised(noise=0.0))
    for policy, cost in Model().per_dispatch_us.items():
        span = found[f"sequential.per_dispatch_us{{clock=span,policy={policy}}}"]
        assert span.outcome is not MetricOutcome.ok or span.value == pytest.approx(cost, rel=0.05)
    lost = found["sequential.per_dispatch_us{clock=span,policy=one_pass}"]
    assert (lost.outcome, lost.value) == (MetricOutcome.not_supported, None)


def test_b31_what_a_launch_does_first_is_a_figure_of_its_own_and_part_of_no_other(run_it: RunIt) -> None:
    class Cold(Model):
        calls = 0

        def wall_us(self, policy: Policy, n: int) -> float:
            self.calls += 1
            return super().wall_us(policy, n) + (50_000 if self.calls == 1 else 0)

    _, _, run = run_it(ScriptedExecutor(model=Cold(noise=0.0)), small_profile(launches={"looks": [3]}))
    found = {m.key: m for m in analysis.summarise(run).metrics}
    assert found["single_op.latency_us{waiter=work_done}"].value == pytest.approx(340)
    first = found["single_op.first_us{waiter=work_done}"]
    assert max(first.per_launch.values()) > 50_000


def test_a_count_that_few_launches_have_does_not_leave_out_the_others(run_it: RunIt) -> None:
    profile = small_profile(sequential={"blocks": 3, "counts": LADDER}, launches={"looks": [5]})
    _, _, run = run_it(ScriptedExecutor(fault=fault_at(Outcome.validation_error, n=2000, launches=4)), profile)
    slope = {m.key: m for m in analysis.summarise(run).metrics}[
        "sequential.per_dispatch_us{clock=span,policy=one_pass}"
    ]
    assert (slope.outcome, slope.n_launches) == (MetricOutcome.ok, 5)


def metric(name: str, value: float, low: float, high: float, doubt: str = "", **variant: str) -> Metric:
    return Metric(
        experiment="sequential",
        metric=name,
        variant=dict(variant),
        unit="us",
        outcome=MetricOutcome.unresolved if doubt else MetricOutcome.ok,
        value=value,
        ci_low=low,
        ci_high=high,
        n_samples=30,
        n_launches=5,
        reason=doubt,
    )


@pytest.mark.parametrize(
    ("interval", "doubt", "outcome"),
    [
        ((20, 15, 26), "", VerdictOutcome.holds),
        ((1.1, 0.9, 1.3), "", VerdictOutcome.unresolved),
        ((0.8, 0.7, 0.9), "", VerdictOutcome.does_not_hold),
        ((20, 15, 26), "halves disagree", VerdictOutcome.unresolved),
    ],
)
def test_claim_c1_follows_its_interval(
    interval: tuple[float, float, float], doubt: str, outcome: VerdictOutcome
) -> None:
    verdict = claim_naive(metric("sequential.naive_over_true", *interval, doubt, policy="submit_each"))
    assert verdict.outcome is outcome
    assert verdict.evidence == ("sequential.naive_over_true{policy=submit_each}",)


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [
        ((33, 30, 36), VerdictOutcome.holds),
        ((9, 8, 11), VerdictOutcome.unresolved),
        ((5, 4, 6), VerdictOutcome.does_not_hold),
        ((300, 200, 400), VerdictOutcome.does_not_hold),
        ((95, 80, 120), VerdictOutcome.unresolved),
    ],
)
def test_claim_c2_follows_its_interval(interval: tuple[float, float, float], outcome: VerdictOutcome) -> None:
    slope = metric("sequential.per_dispatch_us", *interval, policy="submit_each", clock="span")
    assert claim_tens(slope).outcome is outcome


def test_a_claim_without_a_figure_is_not_tested_and_says_why() -> None:
    for verdict in (claim_naive(None), claim_tens(None)):
        assert verdict.outcome is VerdictOutcome.not_tested
        assert verdict.statement
