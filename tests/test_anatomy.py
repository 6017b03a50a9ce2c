"""The experiment `anatomy`: calls and layers from planted times, their remainders, and the verdict on the submit."""

from __future__ import annotations

import itertools

import pytest

from rig import analysis
from rig.experiments.anatomy import IN_ONE_PASS, LAYERS, claim_submit, layer_point
from rig.policies import structure
from rig.records import Depth, Metric, MetricOutcome, VerdictOutcome
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor

CALLS = {"createBindGroup": 2.0, "createCommandEncoder": 0.5, "finish": 0.6, "submit": 3.0, "setPipeline": 0.2}
COSTS = {
    **{"submit_each": 40.0, "one_pass": 20.0},
    **{f"submit_each@{depth}": 10.0 * (i + 1) for i, depth in enumerate(list(Depth)[:4])},
    "one_pass@state": 2.0,
}


def figures(run_it: RunIt, factor: dict[str, float] | None = None) -> dict[str, Metric]:
    counts = {"submit_each": [100, 200, 300, 400], "one_pass": [400, 600, 800, 1000]}
    anatomy = {"blocks": 3, "counts": counts, "calls_n": 100}
    profile = small_profile(experiments=["anatomy"], anatomy=anatomy, single_op={}, sequential={})
    model = Model(per_dispatch_us=COSTS, noise=0.001, calls_us=CALLS, factor=factor or {})
    _, _, run = run_it(ScriptedExecutor(model=model), profile)
    return {m.key: m for m in analysis.summarise(run).metrics}


def test_each_call_has_its_time_and_the_loop_leaves_a_remainder(run_it: RunIt) -> None:
    found = figures(run_it)
    for call, us in CALLS.items():
        assert found[f"anatomy.call_us{{call={call}}}"].value == pytest.approx(us)
    # the scripted loop encodes in 0.3 µs a dispatch, far less than its calls one by one
    assert found["anatomy.call_remainder_us{}"].value == pytest.approx(0.3 - sum(CALLS.values()))
    published = sum(us for call, us in CALLS.items() if call != "createBindGroup")
    assert found["anatomy.call_share{call=submit}"].value == pytest.approx(3 / published)
    assert found["anatomy.submit_over_next{next=finish}"].value == pytest.approx(5)


def test_each_layer_adds_what_it_has_more_than_the_one_under_it(run_it: RunIt) -> None:
    found = figures(run_it)
    for layer in ("submit", "command_buffer", "compute_pass", "state"):
        marginal = found[f"anatomy.marginal_us{{layer={layer},policy=submit_each}}"]
        assert marginal.value == pytest.approx(10, abs=0.5)
    assert found["anatomy.marginal_us{layer=state,policy=one_pass}"].value == pytest.approx(2, abs=0.2)
    assert found["anatomy.marginal_us{layer=zero_sized,policy=one_pass}"].value == pytest.approx(18, abs=0.5)


def test_what_the_ladder_leaves_unexplained_of_the_whole_is_told(run_it: RunIt) -> None:
    found = figures(run_it, {"whole_layer_64": 1.2})
    assert found["anatomy.remainder_us{policy=submit_each}"].value == pytest.approx(8, rel=0.1)


def test_the_layers_are_nested() -> None:
    issued = [structure(layer_point("submit_each", name, 64, 10).policy, 10) for name in LAYERS]
    for under, over in itertools.pairwise(issued):
        assert all(over[name] >= under[name] for name in over)
    assert [tuple(counts.values()) for counts in issued[:5]] == [
        (10, 0, 0, 0),
        (10, 10, 0, 0),
        (10, 10, 10, 0),
        (10, 10, 10, 0),
        (10, 10, 10, 10),
    ]
    assert structure(layer_point("one_pass", IN_ONE_PASS[0], 64, 10).policy, 10)["passes"] == 1


def over(low: float, value: float, high: float, outcome: MetricOutcome = MetricOutcome.ok) -> Metric:
    return Metric(
        experiment="anatomy",
        metric="anatomy.submit_over_next",
        variant={"next": "finish"},
        unit="ratio",
        outcome=outcome,
        value=value,
        ci_low=low,
        ci_high=high,
        n_samples=9,
        n_launches=5,
        reason="" if outcome is MetricOutcome.ok else "why",
    )


@pytest.mark.parametrize(
    ("metric", "outcome"),
    [
        (over(2, 3, 4), VerdictOutcome.holds),
        (over(0.8, 1.1, 1.4), VerdictOutcome.unresolved),
        (over(0.2, 0.3, 0.4), VerdictOutcome.does_not_hold),
        (over(2, 3, 4, MetricOutcome.unresolved), VerdictOutcome.unresolved),
        (None, VerdictOutcome.not_tested),
    ],
)
def test_claim_c8_follows_its_interval(metric: Metric | None, outcome: VerdictOutcome) -> None:
    assert claim_submit(metric, None).outcome is outcome
