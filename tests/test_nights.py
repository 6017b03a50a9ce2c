"""Nights: worse than the last good one or not, with which exit code, and what the index says of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from msgspec import structs

from rig.config import ProfileError
from rig.matrix.records import Matrix, Ratio
from rig.matrix.steps import Values
from rig.measure import Exit
from rig.nights import judge, night, page, records
from rig.nights.records import Night, Shift, Slot, State
from rig.records import SCHEMA, Outcome, encode
from rig.store import StoreError
from tests.test_matrix import KEY, matrix, values
from tests.test_report import a_run

BUILDS = ("a", "b", "control")


def tonight(*, confirm: bool = False) -> Matrix:
    return matrix(*BUILDS, confirm=BUILDS if confirm else ())


def shifts(factors: dict[str, dict[str, float]], seed: int = 1) -> list[Shift]:
    old, new = tonight(), tonight(confirm=True)
    return judge.shifts((old, values(old, {}, seed, 0.05)), (new, values(new, factors, seed + 1000, 0.05)))


def test_b53_a_build_that_got_slower_overnight_is_worse_and_the_others_are_not() -> None:
    found = shifts({"b": {KEY: 1.5}})
    assert [(one.build, one.metric) for one in found if one.worse] == [("b", KEY)]
    assert not any(one.better for one in found)
    (worse,) = [one for one in found if one.worse]
    assert worse.ratio.ci_low < 1.5 < worse.ratio.ci_high
    assert worse.p_confirmed is not None


def test_a_night_on_a_slower_machine_is_not_worse_where_the_control_is_as_much_slower() -> None:
    everything = {name: {KEY: 1.6} for name in BUILDS}
    assert not any(one.worse or one.better for one in shifts(everything))


def test_b46_nights_alike_give_an_alarm_in_no_more_than_is_said() -> None:
    assert sum(any(one.worse for one in shifts({}, seed)) for seed in range(200)) <= 4


def test_b46_what_does_not_come_out_again_the_same_night_is_no_alarm() -> None:
    old, new = tonight(), tonight(confirm=True)
    now = values(new, {"b": {KEY: 1.5}}, 2, 0.05)
    rounds = range(6, 12)
    now.by_build["b"][KEY] |= {number: now.by_build["control"][KEY][number] for number in rounds}
    found = judge.shifts((old, values(old, {}, 1, 0.05)), (new, now))
    assert judge.suspects(found) == {"b"}
    assert not any(one.worse for one in found)


def test_what_is_told_of_a_worse_build_is_of_the_rounds_that_looked_again() -> None:
    old, new = tonight(), tonight(confirm=True)
    now = values(new, {"b": {KEY: 2.0}}, 2, 0.02)
    for number in range(6, 12):
        now.by_build["b"][KEY][number] *= 0.75
    (worse,) = [one for one in judge.shifts((old, values(old, {}, 1, 0.02)), (new, now)) if one.worse]
    assert worse.found.ci_low < 2.0 < worse.found.ci_high
    assert worse.ratio.ci_low < 1.5 < worse.ratio.ci_high
    for number in range(6, 12):
        now.by_build["b"][KEY][number] *= 1.02 / 1.5
    again = judge.shifts((old, values(old, {}, 1, 0.02)), (new, now))
    assert not any(one.worse for one in again), "the second look finds less than is worth mentioning"


def test_a_build_that_a_patch_release_renamed_is_compared_and_a_control_under_another_name_too() -> None:
    old = renamed(tonight(), {"a": ("npm:150.0.1", "150.0.1"), "control": ("npm:143", "143.0.4")})
    new = renamed(tonight(confirm=True), {"a": ("npm:150.0.2", "150.0.2"), "control": ("npm:143.0.4", "143.0.4")})
    was, now = values(old, {}, 1, 0.05), values(new, {"npm:150.0.2": {KEY: 1.5}}, 2, 0.05)
    found = judge.shifts((old, was), (new, now))
    assert [one.build for one in found if one.worse] == ["npm:150.0.2"]
    assert {one.build for one in found} == {"npm:150.0.2", "b"}


def renamed(made: Matrix, names: dict[str, tuple[str, str]]) -> Matrix:
    new = {old: name for old, (name, _) in names.items()}
    builds = tuple(
        structs.replace(one, name=new[one.name], version=names[one.name][1]) if one.name in new else one
        for one in made.builds
    )
    rounds = tuple(structs.replace(r, builds=tuple(new.get(name, name) for name in r.builds)) for r in made.rounds)
    return structs.replace(made, builds=builds, rounds=rounds)


def test_b48_a_night_that_was_broken_off_is_invalid_however_much_it_has() -> None:
    made = tonight()
    broken = structs.replace(made, finished=False, why="interrupted")
    assert judge.invalid(broken, values(made, {})) == "it did not finish: interrupted"


def test_b48_a_night_whose_control_died_early_is_invalid() -> None:
    made = tonight()
    known = values(made, {})
    for at in known.by_build["control"].values():
        for number in range(2, 6):
            del at[number]
    assert "its control control has figures in fewer than 3 rounds" in judge.invalid(made, known)


def test_b48_a_night_of_which__most_builds_have_no_figures_is_invalid() -> None:
    made = tonight()
    known = values(made, {})
    assert judge.invalid(made, known) == ""
    for name in ("a", "b"):
        del known.by_build[name]
    broken = structs.replace(made, builds=tuple(structs.replace(one, why="crashed") for one in made.builds))
    assert judge.invalid(broken, known).startswith("2 of its 3 builds have no figures, the first: crashed")
    assert "its control" in judge.invalid(made, Values(by_build={"a": {}, "b": {}}))


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.fine, Exit.fine),
        (State.first, Exit.fine),
        (State.apart, Exit.fine),
        (State.worse, Exit.worse),
        (State.lost, Exit.no_result),
        (State.invalid, Exit.no_result),
    ],
)
def test_b49_a_night_ends_with_the_exit_code_of_the_contract(state: State, code: Exit) -> None:
    assert night.exit_of(state) is code


def a_night(id_: str, state: State, started: str) -> Night:
    shift = Shift(
        build="b",
        metric=KEY,
        unit="us",
        before=20.0,
        after=30.0,
        ratio=Ratio(value=1.5, ci_low=1.4, ci_high=1.6),
        found=Ratio(value=1.6, ci_low=1.5, ci_high=1.7),
        p=0.001,
        worse=True,
        p_confirmed=0.01,
    )
    return Night(
        schema=SCHEMA,
        id=id_,
        started=started,
        ended=started,
        state=state,
        exit=night.exit_of(state),
        why="because",
        compared_with="",
        error="",
        environment=(),
        builds=(Slot(name="b", version="156.0.0.0", sha256="0"),),
        lost=(),
        shifts=(shift,) if state is State.worse else (),
        steps=0,
    )


@pytest.mark.parametrize(
    ("state", "good"),
    [(State.fine, True), (State.first, True), (State.apart, True), (State.worse, False), (State.lost, False)],
)
def test_b53_a_worse_night_is_no_measure_for_the_next_unless_it_is_accepted(state: State, good: bool) -> None:
    one = a_night("20261201T010000Z", state, "2026-12-01T01:00:00.000Z")
    assert one.good is good
    assert structs.replace(one, accepted=True).good


def test_b49_a_lost_build_is_told_in_every_state_and_nothing_in_common_is_not_fine() -> None:
    (worse,) = a_night("n", State.worse, "").shifts
    state, why = night._state([], [worse], ["c"])
    assert (state, "1 cost worse" in why, "have none: c" in why) == (State.worse, True, True)
    assert night._state([], [structs.replace(worse, worse=False)], ["c"])[0] is State.lost
    assert night._state(["no cost is known of both"], [], ["c"])[0] is State.lost
    assert night._state(["no cost is known of both"], [], [])[0] is State.apart


def test_b10_a_lost_build_is_told_with_both_versions_and_the_flags_it_ran_with() -> None:
    last = a_night("n", State.first, "")
    now = Slot(name="b", version="157.0.0.0", sha256="1", why="no adapter")
    said = "not_supported: no adapter; flags in force: --headless"
    whole = a_run(samples=[])
    broken = structs.replace(whole.launches[0], outcome=Outcome.not_supported, detail=said)
    run = dataclasses.replace(whole, launches=(broken,))
    assert night._gone("b", last, [now], run) == f"b (156.0.0.0 then, 157.0.0.0 now: {said})"
    assert night._gone("b", last, [now], None) == "b (156.0.0.0 then, 157.0.0.0 now: no adapter)"


def test_a_fine_night_says_what_it_could_have_missed() -> None:
    (one,) = a_night("n", State.worse, "").shifts
    wide = structs.replace(one, worse=False, ratio=Ratio(value=1.1, ci_low=0.4, ci_high=3.0))
    _, why = night._state([], [wide, wide, structs.replace(one, worse=False)], [])
    assert why.startswith("none of 3 costs is worse; by their intervals half could be up to 3.00 times what they were")


def test_a_night_after_one_of_the_future_is_refused(tmp_path: Path) -> None:
    place = tmp_path / records.FOLDER / "20990101T000000Z"
    place.mkdir(parents=True)
    (place / records.NIGHT).write_bytes(encode(a_night(place.name, State.first, "2099-01-01T00:00:00.000Z")))
    plan = records.Config(builds=("npm:131",), folder="n", budget_min=1)
    with pytest.raises(StoreError, match="is of the future"):
        night.measure(plan, tmp_path, [], None, ())


def test_b51_the_index_tells_gaps_the_last_good_night_and_no_data_apart_from_slower(tmp_path: Path) -> None:
    nights = [
        a_night("20261201T010000Z", State.first, "2026-12-01T01:00:00.000Z"),
        a_night("20261202T010000Z", State.worse, "2026-12-02T01:00:00.000Z"),
        a_night("20261206T010000Z", State.invalid, "2026-12-06T01:00:00.000Z"),
    ]
    for one in nights:
        place = tmp_path / records.FOLDER / one.id
        place.mkdir(parents=True)
        (place / records.NIGHT).write_bytes(encode(one))
    page.render(tmp_path)
    html = (tmp_path / records.PAGE).read_text(encoding="utf-8")
    assert "The last good night, with which the next is compared, is 20261201T010000Z." in html
    assert "no night for 4 days" in html
    assert "no valid data" in html
    assert 'href="nights/20261202T010000Z/index.html"' in html
    told = json.loads((tmp_path / records.NIGHTS).read_text(encoding="utf-8"))
    assert (told["latest"], told["last_good"], told["exit"]) == ("20261206T010000Z", "20261201T010000Z", 3)
    page.render(tmp_path, ["20261202T010000Z", "20261206T010000Z"])
    told = json.loads((tmp_path / records.NIGHTS).read_text(encoding="utf-8"))
    assert told["last_good"] == "20261202T010000Z"
    assert "What changed in the latest night" not in html
    assert "What changed in the latest night" in page.html(nights[:2])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('builds = []\nfolder = "n"\nbudget_min = 5', "builds"),
        ('builds = ["npm:131"]\nfolder = "n"\nbudget_min = 0', "budget_min"),
        ('builds = ["npm:131"]\nbudget_min = 5', "folder"),
        ("builds = [", "toml"),
        (
            'builds = ["npm:131"]\nfolder = "n"\nbudget = 5',
            r"unknown field `budget` \(there are builds, folder, budget_min",
        ),
    ],
)
def test_a_plan_of_a_night_that_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "night.toml"
    path.write_text(text)
    with pytest.raises(ProfileError, match=told) as caught:
        records.load(path)
    assert "\n" not in str(caught.value)


def test_b06_another_adapter_or_control_is_a_change_of_surroundings_and_no_regression() -> None:
    made = tonight()
    other = structs.replace(
        made, builds=tuple(structs.replace(one, sha256="1" * 64) if one.control else one for one in made.builds)
    )
    assert judge.apart((made, {}), (made, {})) == []
    (told,) = judge.apart((made, {}), (other, {}))
    assert told.startswith("control: ")
