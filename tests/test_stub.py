"""The experiment `stub`: the caller's own language, apart from any device."""

from __future__ import annotations

import pytest

from rig import analysis
from rig.policies import conflict, policy, reaches, structure
from rig.programs.micro import increment_chain
from tests.conftest import RunIt, small_profile
from tests.scripted import ScriptedExecutor

COUNTS = [100, 200, 300, 400]


def test_the_slope_of_encoding_is_the_figure(run_it: RunIt) -> None:
    profile = small_profile(
        experiments=["stub", "noop"], stub={"blocks": 3, "counts": COUNTS}, single_op={}, sequential={}
    )
    _, _, run = run_it(ScriptedExecutor(), profile)
    found = {m.key: m for m in analysis.summarise(run).metrics}
    assert found["stub.encode_us{policy=one_pass}"].value == pytest.approx(0.3)  # as the scripted session has it
    assert not [key for key in found if key.startswith("noop.difference_us")], "it is no cell of the device's"


def test_dispatches_to_a_stub_are_counted_and_never_reach_the_device() -> None:
    chosen = policy("every_16+stub")
    assert structure(chosen, 40)["dispatches"] == 40
    assert reaches(chosen, 40) == 0
    assert reaches(policy("every_16"), 40) == 40


def test_a_stub_takes_plain_policies_only() -> None:
    chain = increment_chain()
    assert conflict(chain, policy("pass_each+stub"), 10) == ""
    for name in ("one_pass+created+stub", "one_pass+map+stub", "submit_each+staged+stub"):
        assert conflict(chain, policy(name), 10) == "a stub is issued to by plain policies only"


def test_webgpu_has_nothing_to_replay() -> None:
    assert structure(policy("replayed"), 10)["submits"] == 1
    assert conflict(increment_chain(), policy("replayed"), 10) == "WebGPU can't record compute work and replay it"
