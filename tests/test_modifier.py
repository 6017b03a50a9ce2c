"""The experiment `modifier`: what one thing changed adds, and combinations that would change the result."""

from __future__ import annotations

import pytest

from rig import analysis, config
from rig.experiments.modifier import MODIFIERS, ModifierOptions, cells
from rig.policies import conflict, policy
from rig.programs import micro
from rig.records import BindGroups, Metric, MetricOutcome, Parameters, Uniforms
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor

COSTS = {"submit_each": 40.0, "one_pass": 6.0, "one_pass+created": 16.0, "one_pass+write_slots": 9.0}
COUNTS = {"submit_each": [100, 200, 300, 400], "one_pass": [400, 600, 800, 1000]}


def figures(run_it: RunIt, **options: object) -> dict[str, Metric]:
    modifier = {"blocks": 3, "counts": COUNTS, **options}
    profile = small_profile(experiments=["modifier"], modifier=modifier, single_op={}, sequential={})
    _, _, run = run_it(ScriptedExecutor(model=Model(per_dispatch_us=COSTS, noise=0.002)), profile)
    return {m.key: m for m in analysis.summarise(run).metrics}


def test_b32_a_modifier_costs_what_it_adds_to_its_base(run_it: RunIt) -> None:
    found = figures(run_it, modifiers=["created", "map"])
    assert found["modifier.cost_us{modifier=created,policy=one_pass}"].value == pytest.approx(10, rel=0.05)
    for name in ("map", "created"):
        nothing = found[f"modifier.cost_us{{modifier={name},policy=submit_each}}"]
        assert nothing.value == pytest.approx(0, abs=0.5)


def test_delivering_values_is_compared_with_the_same_kernel_undelivered(run_it: RunIt) -> None:
    found = figures(run_it, modifiers=["write_slots"])
    cost = found["modifier.cost_us{modifier=write_slots,policy=one_pass}"]
    assert cost.value == pytest.approx(3, rel=0.1)
    assert "modifier.cost_us{modifier=values,policy=one_pass}" in found


def test_a_combination_that_would_change_the_result_is_not_supported_with_its_reason(run_it: RunIt) -> None:
    found = figures(run_it, modifiers=["write_buffer"])
    told = found["modifier.cost_us{modifier=write_buffer,policy=one_pass}"]
    assert (told.outcome, told.value) == (MetricOutcome.not_supported, None)
    assert "all of them would see the last value" in told.reason
    assert found["modifier.cost_us{modifier=write_buffer,policy=submit_each}"].value is not None


def test_one_thing_is_changed_at_a_time() -> None:
    options = ModifierOptions()
    series = {(p.program.name, p.policy) for p in cells(options)}
    assert len(series) == 2 * (1 + len(MODIFIERS))
    by_key = [(p.program.name, p.policy.name, p.n) for p in cells(options)]
    assert len(set(by_key)) == len(by_key)


def test_an_unknown_modifier_is_named() -> None:
    with pytest.raises(config.ProfileError, match="unknown 'fast'"):
        small_profile(experiments=["modifier"], modifier={"modifiers": ["fast"]}, single_op={}, sequential={})


def test_a_policys_name_spells_out_its_modifiers_and_a_preset_stands_for_some() -> None:
    made = policy("onnxruntime_web")
    assert (made.dispatches_per_submit, made.bind_groups, made.uniforms) == (
        16,
        BindGroups.created,
        Uniforms.write_slots,
    )
    with pytest.raises(ValueError, match="unknown modifier 'fast'"):
        policy("one_pass+fast")


CHAIN, UNIFORM = micro.increment_chain(), micro.carrying(64, Parameters.uniform)


@pytest.mark.parametrize(
    ("program", "name", "n", "said"),
    [
        (UNIFORM, "every_16+write_buffer", 10, "see the last value"),
        (UNIFORM, "submit_each+immediates", 10, "read immediate data"),
        (micro.carrying(64, Parameters.immediate), "one_pass", 10, "by no other way"),
        (CHAIN, "one_pass+write_slots", 10, "read a uniform buffer"),
        (CHAIN, "one_pass+wasm+indirect", 10, "plain policies only"),
        (CHAIN, "one_pass+staged", 10, "one submit for each"),
        (CHAIN, "submit_each+staged+map", 10, "nothing copied behind them"),
        (CHAIN, "submit_each+staged+indirect", 10, "direct dispatches"),
        (CHAIN, "pass_each+busy", 2049, "4098 timestamps, a query set holds 4096"),
        (CHAIN, "pass_each+busy", 2048, ""),
        (UNIFORM, "submit_each+write_buffer", 10, ""),
    ],
)
def test_what_can_not_be_run_unchanged_says_why(program: object, name: str, n: int, said: str) -> None:
    told = conflict(program, policy(name), n)  # type: ignore[arg-type]
    assert said in told
    assert bool(said) == bool(told)
