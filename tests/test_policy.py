"""The experiment `policy`: gains and CPU time from planted samples, and the verdict on amortising."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from rig import analysis, cpu
from rig.executors.base import Timing
from rig.experiments.policy import STAGES, claim_amortise
from rig.host import describe
from rig.records import Metric, MetricOutcome, Policy, Program, VerdictOutcome
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor, ScriptedSession

COSTS = {"submit_each": 40.0, "every_16": 10.0, "one_pass": 8.0}


def figures(run_it: RunIt, **executor: object) -> dict[str, Metric]:
    policy = {"blocks": 3, "policies": list(COSTS), "busy": ["submit_each"], "counts": [100, 200, 400, 800]}
    profile = small_profile(experiments=["policy"], policy=policy, single_op={}, sequential={})
    model = Model(per_dispatch_us=COSTS, noise=0.005)
    _, _, run = run_it(ScriptedExecutor(model=model, **executor), profile)  # type: ignore[arg-type]
    return {m.key: m for m in analysis.summarise(run).metrics}


def test_b32_each_policy_has_its_cost_and_its_gain_over_one_submit_each(run_it: RunIt) -> None:
    found = figures(run_it)
    for name, cost in COSTS.items():
        assert found[f"policy.per_dispatch_us{{clock=span,policy={name}}}"].value == pytest.approx(cost, rel=0.02)
        assert found[f"policy.encode_us{{policy={name}}}"].value == pytest.approx(0.3, rel=0.01)
    assert found["policy.gain{policy=every_16}"].value == pytest.approx(4, rel=0.03)
    assert found["policy.gain{policy=one_pass}"].value == pytest.approx(5, rel=0.03)


def test_cpu_time_a_dispatch_leaves_out_what_every_call_costs(run_it: RunIt) -> None:
    found = figures(run_it, cpu_us=lambda n: {"gpu_main": 900 + 12.0 * n, "renderer_main": 500 + 3.0 * n})
    assert found["policy.cpu_us{policy=one_pass,thread=gpu_main}"].value == pytest.approx(12, rel=0.01)
    assert found["policy.cpu_us{policy=one_pass,thread=all}"].value == pytest.approx(15, rel=0.01)


def test_b34_the_stage_that_takes_most_of_a_dispatch_is_named(run_it: RunIt) -> None:
    found = figures(run_it, cpu_us=lambda n: {"gpu_main": 900 + 12.0 * n, "renderer_main": 500 + 3.0 * n})
    # of 40 µs a dispatch the caller has 0.3, the GPU process's main thread 12, the GPU all of it
    shares = {stage: found[f"policy.stage_share{{policy=submit_each,stage={stage}}}"].value for stage in STAGES}
    assert shares == pytest.approx({"caller": 0.0075, "gpu_process": 0.3, "gpu": 1.0}, rel=0.01)
    binding = found["policy.binding_share{policy=submit_each,stage=gpu}"]
    assert binding.outcome is MetricOutcome.ok


def test_a_caller_that_is_held_up_by_back_pressure_is_not_said_to_bind(
    run_it: RunIt, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ScriptedSession.time

    def held_up(session: ScriptedSession, program: Program, policy: Policy, n: int) -> Timing:
        """The queue holds 150 dispatches; then the caller waits for the GPU."""
        timing = whole(session, program, policy, n)
        return msgspec.structs.replace(timing, encode_us=5.0 * min(n, 150) + 40.0 * max(0, n - 150))

    monkeypatch.setattr(ScriptedSession, "time", held_up)
    found = figures(run_it, cpu_us=lambda n: {"gpu_main": 30.0 * n})
    for key in ("encode_us{policy=submit_each}", "stage_share{policy=submit_each,stage=caller}"):
        assert found[f"policy.{key}"].outcome is MetricOutcome.unresolved
        assert "held up by back-pressure" in found[f"policy.{key}"].reason


def test_without_the_gpus_own_time_no_stage_is_said_to_bind(run_it: RunIt) -> None:
    found = figures(run_it, cpu_us=lambda n: {"gpu_main": 5.0 * n})
    binding = found["policy.binding_share{policy=every_16,stage=gpu_process}"]
    assert binding.outcome is MetricOutcome.unresolved
    assert "was not measured under this policy" in binding.reason


@pytest.mark.parametrize(("cores_used", "saturated"), [(0.5, False), (0.9, True)])
def test_a_machine_without_cpu_to_spare_is_said_to_be_saturated(
    run_it: RunIt, monkeypatch: pytest.MonkeyPatch, cores_used: float, saturated: bool
) -> None:
    here = describe()
    monkeypatch.setattr("rig.measure.host.describe", lambda: msgspec.structs.replace(here, cores=2))
    found = figures(run_it, cpu_us=lambda n: {"gpu_other": cores_used * 2 * 40.0 * n})
    assert found["policy.cores_share{policy=submit_each}"].value == pytest.approx(cores_used, rel=0.02)
    assert ("policy.cpu_saturated{policy=submit_each}" in found) is saturated


def test_b26_what_stamping_every_pass_adds_is_told(run_it: RunIt) -> None:
    found = figures(run_it)
    assert found["policy.stamping_us{policy=submit_each}"].value == pytest.approx(0, abs=0.5)
    assert found["policy.busy_us{policy=submit_each}"].value == pytest.approx(40, rel=0.02)


def test_where_the_system_does_not_tell_cpu_time_it_is_not_supported_and_not_zero(run_it: RunIt) -> None:
    told = figures(run_it)["policy.cpu_us{policy=one_pass,thread=all}"]
    assert (told.outcome, told.value) == (MetricOutcome.not_supported, None)


def gain(low: float, value: float, high: float, outcome: MetricOutcome = MetricOutcome.ok) -> Metric:
    variant: dict[str, str | int | float] = {"policy": "one_pass"}
    return Metric(
        experiment="policy",
        metric="policy.gain",
        variant=variant,
        unit="ratio",
        outcome=outcome,
        value=value,
        ci_low=low,
        ci_high=high,
        n_samples=9,
        n_launches=5,
        reason="" if outcome is MetricOutcome.ok else "halves disagree",
    )


@pytest.mark.parametrize(
    ("metric", "outcome"),
    [
        (gain(1.5, 1.8, 2.1), VerdictOutcome.holds),
        (gain(0.9, 1.1, 1.3), VerdictOutcome.unresolved),
        (gain(0.5, 0.6, 0.7), VerdictOutcome.does_not_hold),
        (gain(1.5, 1.8, 2.1, MetricOutcome.unresolved), VerdictOutcome.unresolved),
        (None, VerdictOutcome.not_tested),
    ],
)
def test_claim_c10_follows_its_interval(metric: Metric | None, outcome: VerdictOutcome) -> None:
    assert claim_amortise(metric).outcome is outcome


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not tell CPU time by thread")
def test_cpu_time_of_a_busy_process_grows_and_that_of_its_main_thread_is_told_apart() -> None:
    before = cpu.spent([("self", os.getpid())])
    total = sum(i * i for i in range(2_000_000))
    used = cpu.between(before, cpu.spent([("self", os.getpid())]))
    assert total
    assert used is not None
    assert used.cpu_us["self_main"] > 10_000


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not tell CPU time by thread")
def test_context_switches_are_counted_by_thread() -> None:
    before = cpu.spent([("self", os.getpid())])
    for _ in range(50):
        time.sleep(0.001)
    used = cpu.between(before, cpu.spent([("self", os.getpid())]))
    assert used is not None
    assert used.switches["self_main"] >= 40


def test_cpu_time_of_a_process_that_is_not_there_is_not_told() -> None:
    assert cpu.spent([("gone", 2**22 + 1)]) is None
    assert cpu.between(None, cpu.Spent({"x": 1.0}, {"x": 1.0})) is None
