"""The experiment `validation`: launches in turn, the toggle proved, the smallest effect, the verdict on the price."""

from __future__ import annotations

import pytest

from rig import analysis, frames
from rig.executors.base import ExecutorFault
from rig.records import Metric, MetricOutcome, Outcome, Policy, Summary, VerdictOutcome
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor, ScriptedSession

COUNTS = {"submit_each": [100, 200, 300, 400], "one_pass": [400, 600, 800, 1000]}


def measured(run_it: RunIt, skipped: float, noise: float = 0.002, **executor: object) -> tuple[frames.Run, Summary]:
    validation = {"blocks": 3, "counts": COUNTS, "ablations": ["skip_validation"]}
    profile = small_profile(
        experiments=["validation"], validation=validation, single_op={}, sequential={}, launches={"looks": [5]}
    )
    model = Model(noise=noise, arms={"skip_validation": skipped})
    cpu = {"cpu_us": lambda n: {"gpu_main": 12.0 * n, "renderer_main": 3.0 * n}}
    _, _, run = run_it(ScriptedExecutor(model=model, **(cpu | executor)), profile)  # type: ignore[arg-type]
    return run, analysis.summarise(run)


def by_key(found: Summary) -> dict[str, Metric]:
    return {m.key: m for m in found.metrics}


def test_launches_with_and_without_alternate_and_each_proves_its_toggle(run_it: RunIt) -> None:
    run, _ = measured(run_it, 0.8)
    assert sorted(launch.arm for launch in run.launches) == ["checked"] * 5 + ["skip_validation"] * 5
    for number in range(5):
        assert {launch.arm for launch in run.launches if launch.round == number} == {"checked", "skip_validation"}
    proofs = {(x.arm, c.detail) for x in run.launches for c in x.checks if c.stage == "validation"}
    assert proofs == {
        ("checked", "an invalid call raises an error"),
        ("skip_validation", "an invalid call raises none"),
    }


def test_the_price_is_the_ratio_of_launches_of_one_round(run_it: RunIt) -> None:
    _, found = measured(run_it, 0.8)
    ratio = by_key(found)["validation.ratio{ablation=skip_validation,of=wall,policy=one_pass}"]
    assert ratio.value == pytest.approx(1.25, rel=0.02)
    assert set(ratio.per_launch) == {"0", "1", "2", "3", "4"}
    cpu = by_key(found)["validation.ratio{ablation=skip_validation,of=gpu_cpu,policy=one_pass}"]
    assert cpu.value == pytest.approx(1, rel=0.01)


def test_the_smallest_effect_that_could_be_seen_grows_with_the_noise(run_it: RunIt) -> None:
    key = "validation.smallest_effect{ablation=skip_validation,of=wall,policy=one_pass}"
    _, quiet = measured(run_it, 1.0)
    assert 0 < (by_key(quiet)[key].value or 0) < 0.02


def test_a_toggle_that_has_no_effect_voids_its_launches(run_it: RunIt) -> None:
    run, found = measured(run_it, 0.8, toggle_ignored=True)
    skipped = [launch for launch in run.launches if launch.arm == "skip_validation"]
    assert {launch.outcome for launch in skipped} == {Outcome.mismatch}
    missing = by_key(found)["validation.per_dispatch_us{arm=skip_validation,policy=one_pass}"]
    assert missing.outcome is MetricOutcome.failed
    assert "an invalid call raises an error, against this launch's flags" in missing.reason
    assert next(v for v in found.verdicts if v.claim == "C9").outcome is VerdictOutcome.not_tested


def test_claim_c9_is_not_denied_where_half_of_the_costs_could_not_be_measured(run_it: RunIt) -> None:
    def fault(session: ScriptedSession, policy: Policy, n: int) -> ExecutorFault | None:  # noqa: ARG001
        lost = session.extra_flags and policy.name == "submit_each"
        return ExecutorFault(Outcome.validation_error, "planted") if lost else None

    _, found = measured(run_it, 1.0, fault=fault)
    assert next(v for v in found.verdicts if v.claim == "C9").outcome is VerdictOutcome.unresolved


@pytest.mark.parametrize("used", [0.0, 1e-9])
def test_cpu_time_of_nothing_is_no_ratio_and_no_fault(run_it: RunIt, used: float) -> None:
    _, found = measured(run_it, 0.8, cpu_us=lambda n: {"gpu_main": used * n})
    ratio = by_key(found)["validation.ratio{ablation=skip_validation,of=wall,policy=one_pass}"]
    assert ratio.outcome is MetricOutcome.ok


@pytest.mark.parametrize(
    ("skipped", "noise", "outcome"),
    [
        (0.8, 0.002, VerdictOutcome.holds),
        (1.0, 0.002, VerdictOutcome.does_not_hold),
        (1 / 1.05, 0.01, VerdictOutcome.unresolved),
        (0.9, 0.3, VerdictOutcome.unresolved),
    ],
)
def test_claim_c9_follows_the_planted_truth(
    run_it: RunIt, skipped: float, noise: float, outcome: VerdictOutcome
) -> None:
    _, found = measured(run_it, skipped, noise)
    assert next(v for v in found.verdicts if v.claim == "C9").outcome is outcome
