"""The plan: seeded, complete, in fresh random order; and when it stops."""

from __future__ import annotations

import pytest

from rig import plan
from rig.experiments.base import MAIN
from tests.conftest import small_profile
from tests.scripted import ScriptedExecutor


def cells_and_blocks(seed: int = 1, launch: int = 0) -> tuple[dict[str, tuple[object, ...]], list[plan.Block]]:
    profile = small_profile(seed=seed)
    cells = plan.cells(profile, MAIN, ScriptedExecutor())
    return dict(cells), plan.blocks(profile, cells, launch)


def test_a_block_visits_every_cell_of_its_experiment_once() -> None:
    cells, blocks = cells_and_blocks()
    for block in blocks:
        assert sorted(v.cell.key for v in block.visits) == sorted(c.key for c in cells[block.experiment])  # type: ignore[attr-defined]


def test_blocks_of_one_experiment_are_in_different_orders() -> None:
    _, blocks = cells_and_blocks()
    orders = {tuple(visit.cell.key for visit in block.visits) for block in blocks if block.experiment == "sequential"}
    assert len(orders) > 1


def test_the_same_seed_gives_the_same_plan_and_another_seed_or_launch_another() -> None:
    assert cells_and_blocks()[1] == cells_and_blocks()[1]
    assert cells_and_blocks(seed=2)[1] != cells_and_blocks()[1]
    assert cells_and_blocks(launch=1)[1] != cells_and_blocks()[1]


def test_experiments_are_spread_over_the_launch() -> None:
    _, blocks = cells_and_blocks()
    half = blocks[: len(blocks) // 2]
    assert {block.experiment for block in half} == {"single_op", "sequential"}


def test_blocks_are_numbered_from_one_since_block_zero_is_the_opening_check() -> None:
    _, blocks = cells_and_blocks()
    assert min(visit.block for block in blocks for visit in block.visits) == 1


ARMS = {"experiments": ["sequential", "validation", "noop"], "single_op": {}, "validation": {"blocks": 2}}


def test_the_empty_program_is_visited_once_in_every_block_of_every_arm() -> None:
    profile = small_profile(**ARMS)
    for arm in plan.arms(profile):
        blocks = plan.blocks(profile, plan.cells(profile, arm, ScriptedExecutor()), 0)
        guests = [[visit.block for visit in block.visits if visit.experiment == "noop"] for block in blocks]
        assert guests == [[number] for number in range(1, len(blocks) + 1)]


def test_an_arm_has_its_own_flags_and_only_the_experiments_that_want_it() -> None:
    profile = small_profile(**ARMS)
    main, *others = plan.arms(profile)
    assert set(plan.cells(profile, main, ScriptedExecutor())) == {"sequential", "noop"}
    assert [arm.name for arm in others] == ["checked", "skip_validation", "disable_robustness"]
    for arm in others:
        cells = plan.cells(profile, arm, ScriptedExecutor(flags=("--base",)))
        assert set(cells) == {"validation", "noop"}
        assert {cell.flags for cell in cells["validation"]} == {("--base", *arm.flags)}


def test_every_round_has_every_arm_once_in_an_order_that_changes() -> None:
    profile = small_profile(**ARMS)
    rounds = [[arm.name for arm in plan.round_order(profile, number)] for number in range(8)]
    assert all(sorted(names) == sorted(rounds[0]) for names in rounds)
    assert len({tuple(names) for names in rounds}) > 1
    assert plan.round_order(profile, 3) == plan.round_order(profile, 3)


def test_the_main_arm_gets_the_time_that_the_others_leave() -> None:
    profile = small_profile(**ARMS)
    shares = {arm.name: plan.launch_share(profile, arm) for arm in plan.arms(profile)}
    assert shares == {"": pytest.approx(0.7), "checked": 0.1, "skip_validation": 0.1, "disable_robustness": 0.1}


def test_it_stops_at_a_look_that_satisfies_at_the_last_look_or_at_the_budget() -> None:
    profile = small_profile(launches={"looks": [5, 8]}, precision=0.1, budget_s=100)
    assert plan.stop_because(profile, 10, 5, 2, satisfied=False) == ""
    assert "precision" in plan.stop_because(profile, 10, 5, 2, satisfied=True)
    assert plan.stop_because(profile, 10, 6, 2, satisfied=True) == ""
    assert "last look" in plan.stop_because(profile, 10, 8, 2, satisfied=False)
    assert "budget" in plan.stop_because(profile, 99, 5, 2, satisfied=False)


def test_the_budget_does_not_cut_off_the_first_look() -> None:
    assert plan.stop_because(small_profile(budget_s=1), 50, 2, 10, satisfied=False) == ""


def test_a_launch_gets_its_share_of_the_budget_that_is_left() -> None:
    profile = small_profile(launches={"looks": [5]}, budget_s=100)
    assert plan.share_s(profile, 0, 0) == 20
    assert plan.share_s(profile, 60, 3) == 20
    assert plan.share_s(profile, 200, 3) == 0
