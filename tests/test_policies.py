"""Policies: what each makes of n dispatches."""

from __future__ import annotations

import pytest

from rig.policies import policy, structure


@pytest.mark.parametrize(
    ("name", "submits", "command_buffers", "passes"),
    [
        ("submit_each", 10, 10, 10),
        ("command_buffers", 1, 10, 10),
        ("pass_each", 1, 1, 10),
        ("one_pass", 1, 1, 1),
        ("every_4", 3, 3, 3),
        ("every_4_pass_2", 3, 3, 5),
        ("every_4_pass_3", 3, 3, 5),
        ("every_64", 1, 1, 1),
    ],
)
def test_ten_dispatches_make_so_many_submits_buffers_and_passes(
    name: str, submits: int, command_buffers: int, passes: int
) -> None:
    assert structure(policy(name), 10) == {
        "submits": submits,
        "command_buffers": command_buffers,
        "passes": passes,
        "dispatches": 10,
    }


@pytest.mark.parametrize("name", ["submit_each", "command_buffers", "one_pass", "every_4"])
def test_nothing_issued_makes_no_submit(name: str) -> None:
    assert set(structure(policy(name), 0).values()) == {0}


@pytest.mark.parametrize("name", ["every_0", "every_", "every_4_pass_0", "each", ""])
def test_an_unknown_policy_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ValueError, match="submit_each, command_buffers, pass_each, one_pass"):
        policy(name)
