"""Profiles: every bad value gets one line with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig import config
from rig.experiments.sequential import SequentialOptions

HEAD = 'name = "p"\nseed = 1\nbudget_s = 10\nlaunches = { looks = [2] }\nexperiments = ["sequential"]\n'


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", config.names())
def test_every_profile_that_comes_with_the_rig_is_valid(name: str) -> None:
    assert config.load(name).name == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD.replace("budget_s = 10", 'budget_s = "long"'), "budget_s: Expected `float`, got `str`"),
        (HEAD.replace("[2]", "[0]"), "launches.looks"),
        (HEAD.replace("[2]", "[5, 2]"), "does not rise"),
        (HEAD + "speed = 3\n", "unknown field `speed`"),
        (HEAD + "[sequential]\ncounts = [1, 2]\n", "sequential: counts: Expected `array` of length >= 4"),
        (HEAD + "[sequential]\ncounts = [1, 2, 2, 3]\n", "does not rise"),
        (HEAD + '[sequential]\npolicies = ["all_at_once"]\n', "unknown policy 'all_at_once'"),
        (HEAD.replace("sequential", "sequentail"), "unknown experiment 'sequentail'"),
        (HEAD + "[single_op\n", "p.toml"),
        ("", "missing required field"),
        (HEAD.replace("budget_s = 10", "budget_s = inf"), "budget_s"),
        (HEAD + 'also = ["wgpu", "wgpu"]\n', "also: ['wgpu', 'wgpu'] names one twice"),
        (HEAD + 'also_experiments = ["sequentail"]\n', "unknown experiment 'sequentail'"),
        (HEAD + "options = 3\n", "options: not a table"),
        (HEAD + '[sequential]\npolicies = ["one_pass", "one_pass"]\n', "names one twice"),
    ],
)
def test_a_bad_value_gets_one_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(config.ProfileError) as caught:
        config.load(write(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_set_reaches_into_tables_and_takes_toml_values(tmp_path: Path) -> None:
    profile = config.load(
        write(tmp_path, HEAD), (), ["seed=7", "sequential.blocks=3", "launches.looks=[4]", "name=mine"]
    )
    options = config.options(profile, "sequential")
    assert isinstance(options, SequentialOptions)
    assert (profile.seed, options.blocks, profile.launches.looks, profile.name) == (7, 3, (4,), "mine")


def test_set_without_a_value_is_refused() -> None:
    with pytest.raises(config.ProfileError, match="not of the form key=value"):
        config.load("quick", (), ["seed"])


def test_a_resolved_profile_spells_out_every_option_and_resolves_to_itself() -> None:
    from rig.records import plain

    profile = config.load("quick")
    data = plain(profile)
    assert data["options"]["sequential"]["counts"]
    assert config.resolve(data, "again") == profile
