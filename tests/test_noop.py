"""The experiment `noop`: the empty program in every block, and the cells that can't be told from it."""

from __future__ import annotations

import pytest

from rig import analysis, config
from rig.experiments.noop import marks
from rig.records import Metric, MetricOutcome
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor


def found(run_it: RunIt, empty_us: float) -> list[Metric]:
    profile = small_profile(experiments=["sequential", "noop"], single_op={})
    _, _, run = run_it(ScriptedExecutor(model=Model(empty_us=empty_us, noise=0.001)), profile)
    return list(analysis.summarise(run).metrics)


def test_a_cell_that_takes_as_long_as_nothing_is_marked_and_the_others_are_not(run_it: RunIt) -> None:
    # one dispatch takes 306 µs in one pass and 340 on its own, two 312 and 380
    marked = marks(found(run_it, 311.0))
    assert {(m.variant["policy"], m.variant["n"]) for m in marked} == {("one_pass", 1)}
    assert all("can't be told" in m.reason for m in marked)


def test_the_empty_program_has_a_time_of_its_own(run_it: RunIt) -> None:
    own = next(m for m in found(run_it, 250.0) if m.metric == "noop.wall_us")
    assert own.outcome is MetricOutcome.ok
    assert own.n_samples >= 9


def test_it_can_not_run_alone_since_it_lives_in_the_blocks_of_others() -> None:
    with pytest.raises(config.ProfileError, match="noop has no blocks of its own"):
        small_profile(experiments=["noop"], single_op={}, sequential={})
