"""Steps between builds: planted ones come out, those of chance do not, and the causes are told apart."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from rig import config, store
from rig.browsers import find
from rig.browsers.flags import AdapterAsked
from rig.browsers.names import Wanted
from rig.config import Profile
from rig.matrix import chart, page, records, steps, traces
from rig.matrix.records import Build, Change, Changes, Matrix, Rounds, Stage, Summary
from rig.matrix.rounds import Measuring, stored_runs
from rig.matrix.steps import Values
from rig.publish import MOST_BYTES_OF_MATRIX
from rig.records import Metric, MetricOutcome, Rig
from rig.runner import NoResult

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = sorted(path.parent for path in (ROOT / "reports").glob("*/matrix.json"))
KEY = "policy.per_dispatch_us{clock=wall,policy=submit_each}"
SUBMIT = "anatomy.layer_us{layer=submit,policy=submit_each}"


def metric(name: str, **variant: str) -> Metric:
    return Metric(
        experiment=name.partition(".")[0],
        metric=name,
        variant=dict(variant),
        unit="us",
        outcome=MetricOutcome.ok,
        value=1.0,
        ci_low=0.9,
        ci_high=1.1,
    )


METRICS = {
    one.key: one
    for one in (
        metric("policy.per_dispatch_us", clock="wall", policy="submit_each"),
        metric("policy.per_dispatch_us", clock="wall", policy="one_pass"),
        metric("anatomy.layer_us", layer="submit", policy="submit_each"),
    )
}


def matrix(*names: str, rounds: int = 6, confirm: tuple[str, ...] = (), swap: tuple[str, ...] = ()) -> Matrix:
    """Builds 100, 101, ... by these names, the last one the control, with the stages that are asked for."""
    stages = [Rounds(stage=Stage.search, first=0, last=rounds - 1, builds=names)]
    if confirm:
        stages.append(Rounds(stage=Stage.confirm, first=rounds, last=2 * rounds - 1, builds=confirm))
    if swap:
        stages.append(Rounds(stage=Stage.swap, first=2 * rounds, last=3 * rounds - 1, builds=swap))
    mixed = [name for name in swap if "@" in name]
    builds = [
        Build(name=n, run=n, version=f"{100 + i}.0.0.0", driver_sha256=n, control=n == names[-1])
        for i, n in enumerate(names)
    ]
    return Matrix(
        schema=1,
        rig=Rig(version="0", source_hash="0"),
        command=("rig", "matrix"),
        started="2026-12-03T00:00:00.000Z",
        ended="2026-12-03T01:00:00.000Z",
        finished=True,
        why="rounds",
        builds=(*builds, *(Build(name=name, run=name, swapped=True) for name in mixed)),
        rounds=tuple(stages),
    )


def values(made: Matrix, factors: dict[str, dict[str, float]], seed: int = 1, noise: float = 0.1) -> Values:
    """Costs of 20 µs times a build's factor on a figure, times what a round does to all builds, times scatter."""
    rng = np.random.default_rng(seed)
    found = Values(metrics=dict(METRICS))
    for stage in made.rounds:
        for number in range(stage.first, stage.last + 1):
            host = {key: rng.normal(0, 0.3) for key in METRICS}
            for build in stage.builds:
                for key in METRICS:
                    value = 20 * factors.get(build, {}).get(key, 1.0) * np.exp(host[key] + rng.normal(0, noise))
                    found.by_build.setdefault(build, {}).setdefault(key, {})[number] = float(value)
    return found


def found(made: Matrix, known: Values) -> list[Change]:
    return list(steps.changes(made, known).changes)


def test_b53_a_slow_build_is_a_confirmed_step_and_its_equals_are_none() -> None:
    made = matrix("a", "b", "c", "d", confirm=("b", "c"))
    (change,) = found(made, values(made, {name: {KEY: 1.5} for name in ("c", "d")}))
    assert (change.build_before, change.build_after, change.confirmed) == ("b", "c", True)
    assert change.ratio.ci_low < 1.5 < change.ratio.ci_high
    assert change.metric == "policy.per_dispatch_us"
    assert change.variant == {"clock": "wall", "policy": "submit_each"}


def test_what_the_machine_does_to_a_whole_round_is_no_step() -> None:
    made = matrix("a", "b", "c")
    known = values(made, {})
    spread = np.ptp(np.log(known.row("a", KEY, range(6))))
    assert spread > 0.5  # rounds differ by more than half, builds within one by a tenth
    assert found(made, known) == []


def test_builds_all_alike_give_a_step_in_no_more_matrices_than_is_said() -> None:
    made = matrix(*"abcdefgh", confirm=tuple("abcdefgh"))
    any_found = any_confirmed = 0
    for seed in range(400):
        changes = found(made, values(made, {}, seed))
        any_found += bool(changes)
        any_confirmed += any(change.confirmed for change in changes)
    assert any_found <= 0.05 * 400 + 2 * np.sqrt(0.05 * 0.95 * 400)
    assert any_confirmed <= 4


def test_b46_a_step_that_does_not_come_out_again_is_told_and_not_confirmed() -> None:
    made = matrix("a", "b", "c", confirm=("a", "b"))
    known = values(made, {"b": {KEY: 1.6}})
    for number in range(6, 12):  # in the second set of rounds both are alike
        known.by_build["b"][KEY][number] = known.by_build["a"][KEY][number] * (1.02 if number % 2 else 0.98)
    changes = {(change.build_before, change.build_after): change for change in found(made, known)}
    assert not changes["a", "b"].confirmed
    assert changes["a", "b"].p_confirmed is not None
    assert "not confirmed" in changes["a", "b"].cause.told


def test_a_step_that_nobody_looked_at_again_is_not_confirmed() -> None:
    made = matrix("a", "b")
    (change,) = found(made, values(made, {"b": {KEY: 2.0}}))
    assert (change.confirmed, change.p_confirmed) == (False, None)


def test_a_change_smaller_than_the_margin_is_not_worth_mentioning() -> None:
    made = matrix("a", "b", confirm=("a", "b"))
    assert found(made, values(made, {"b": {KEY: 1.03}}, noise=0.001)) == []


def test_a_build_that_died_hides_no_step_between_those_around_it() -> None:
    made = matrix("a", "b", "c", "d", confirm=("a", "c", "d"))
    known = values(made, {name: {KEY: 3.0} for name in ("c", "d")}, noise=0.03)
    for at in known.by_build["b"].values():
        for number in range(1, 6):
            del at[number]
    (change,) = found(made, known)
    assert (change.build_before, change.build_after, change.confirmed) == ("a", "c", True)
    known = values(made, {name: {KEY: 3.0} for name in ("c", "d")}, noise=0.03)
    del known.by_build["b"][KEY]
    assert ("a", "c") in {(one.build_before, one.build_after) for one in found(made, known)}


def test_nothing_is_set_against_a_control_that_no_round_of_the_search_has() -> None:
    made = matrix("a", "b", "c", confirm=("a", "b", "c"))
    known = values(made, {})
    for at in known.by_build["c"].values():
        for number in range(6):
            del at[number]
    assert all(one.to_control is None for one in steps.summary(made, known).figures)


def test_what_is_told_beside_a_step_is_of_the_same_rounds_as_its_ratio() -> None:
    made = matrix("a", "b", confirm=("a", "b"))
    known = values(made, {"b": {KEY: 1.6, SUBMIT: 1.5}}, noise=0.02)
    del known.by_build["a"][SUBMIT][7]
    known.by_build["b"][SUBMIT][7] *= 50
    change = next(one for one in found(made, known) if one.metric == "policy.per_dispatch_us")
    (moved,) = [one for one in change.moved if one.metric == SUBMIT]
    assert moved.ratio is not None
    assert moved.after / moved.before == pytest.approx(moved.ratio.value)


def test_a_step_tells_what_is_to_be_doubted_of_both_its_sides() -> None:
    made = matrix("a", "b", confirm=("a", "b"))
    known = values(made, {"b": {KEY: 1.6}})
    (change,) = steps.changes(made, known, (), {"a": {KEY: "bent"}, "b": {SUBMIT: "other"}}).changes
    assert change.doubts == ("a: bent",)


@pytest.mark.parametrize(
    ("factors", "told"),
    [
        ({"b": 1.6, "b@a": 1.6}, "the browser"),
        ({"b": 1.6, "a@b": 1.6}, "the software driver"),
        ({"b": 2.25, "a@b": 1.5, "b@a": 1.5}, "the browser and the software driver"),
    ],
)
def test_swapped_drivers_tell_the_browser_from_the_driver(factors: dict[str, float], told: str) -> None:
    made = matrix("a", "b", confirm=("a", "b"), swap=("a", "b", "a@b", "b@a"))
    (change,) = found(made, values(made, {name: {KEY: factor} for name, factor in factors.items()}, noise=0.05))
    assert change.cause.told == told
    assert change.cause.browser is not None
    assert change.cause.driver is not None


def test_one_swapped_driver_that_loads_is_enough_to_tell() -> None:
    made = matrix("a", "b", confirm=("a", "b"), swap=("a", "b", "a@b"))
    (change,) = found(made, values(made, {"b": {KEY: 1.6}}, noise=0.05))
    assert change.cause.told == "the browser"


def test_without_swapped_drivers_no_cause_is_told() -> None:
    made = matrix("a", "b", confirm=("a", "b"))
    (change,) = found(made, values(made, {"b": {KEY: 1.6}}, noise=0.05))
    assert change.cause.told == "not looked for (no drivers were swapped)"


def test_a_figure_over_the_controls_has_an_interval_that_holds_the_planted_ratio() -> None:
    made = matrix("a", "b", "c")
    summary = steps.summary(made, values(made, {"a": {KEY: 1.3}}))
    (figure,) = [one for one in summary.figures if (one.build, one.metric) == ("a", KEY)]
    assert figure.to_control is not None
    assert figure.to_control.ci_low < 1.3 < figure.to_control.ci_high
    assert all(one.to_control is None for one in summary.figures if one.build == "c")


def test_b52_a_build_that_cannot_run_stays_a_row_with_its_reason(tmp_path: Path) -> None:
    measuring = Measuring(tmp_path / "m", _profile(), AdapterAsked.software, ("rig", "matrix"))
    with_path = Wanted("path", str(tmp_path / "missing"))
    result = measuring.run([with_path], None)
    assert not result.finished
    assert result.builds[0].why.startswith("no browser at ")
    assert "not, or not to the end" in page.render(tmp_path / "m")[1]
    assert (tmp_path / "m" / records.PAGE).is_file()


def test_b52_without_its_control_no_matrix_is_measured(tmp_path: Path) -> None:
    measuring = Measuring(tmp_path / "m", _profile(), AdapterAsked.software, ("rig", "matrix"))
    with pytest.raises(NoResult, match="the control can't be had: no browser at "):
        measuring.run([Wanted("system")], Wanted("path", str(tmp_path / "missing")))
    made = store.read(tmp_path / "m" / records.MATRIX, Matrix)
    assert (made.finished, made.rounds, len(made.builds)) == (False, (), 1)


def test_b48_a_matrix_of_which_no_launch_ended_well_is_none(tmp_path: Path) -> None:
    fake = tmp_path / "fake"
    fake.write_text('#!/bin/sh\ncase "$*" in *--version*) echo Chromium 156.0.0.0 ;; *) exit 1 ;; esac\n')
    fake.chmod(0o755)
    measuring = Measuring(tmp_path / "m", _profile("launches.looks=[2]"), AdapterAsked.software, ("rig", "matrix"))
    result = measuring.run([Wanted("path", str(fake))], None)
    assert (result.finished, result.why) == (False, "no build could be measured")
    assert result.builds[0].why == "no launch of it ended well"


def test_a_matrix_that_lacks_the_run_of_a_build_is_not_whole(tmp_path: Path) -> None:
    place = tmp_path / "m"
    shutil.copytree(PUBLISHED[0], place)
    shutil.rmtree(next((place / records.BUILDS).iterdir()))
    with pytest.raises(store.StoreError, match="there is no run of"):
        page.render(place)


@pytest.mark.browser
def test_b53_a_slow_build_among_real_ones_comes_out_as_a_confirmed_step(tmp_path: Path) -> None:
    browser = find.find().path
    plain, slow = _wrapper(tmp_path / "a", browser), _wrapper(tmp_path / "b", browser, SLOW)
    profile = _profile("launches.looks=[4]", "budget_s=240", 'experiments=["policy"]')
    measuring = Measuring(tmp_path / "m", profile, AdapterAsked.software, ("rig", "matrix"), explain=False)
    result = measuring.run([Wanted("path", str(path)) for path in (plain, slow)], None)
    page.render(tmp_path / "m")
    changes = store.read(tmp_path / "m" / records.CHANGES, Changes).changes
    confirmed = [one for one in changes if one.confirmed]
    assert confirmed, (result.why, changes)
    assert all(one.ratio.ci_low > 1 and one.build_after == f"path:{slow}" for one in confirmed)


@pytest.mark.browser
def test_an_identical_pair_under_two_names_is_no_step_and_makes_a_page(tmp_path: Path) -> None:
    browser = find.find().path
    pair = [_wrapper(tmp_path / name, browser) for name in ("first", "second")]
    measuring = Measuring(tmp_path / "m", _profile(), AdapterAsked.software, ("rig", "matrix"), explain=False)
    result = measuring.run([Wanted("path", str(path)) for path in pair], None)
    assert result.finished, result.why
    assert [build.why for build in result.builds] == ["", ""]
    assert "No step found" in page.render(tmp_path / "m")[0]
    assert "<title>path:" in (tmp_path / "m" / records.PAGE).read_text(encoding="utf-8")


# --- published ---------------------------------------------------------------------------------------------------


def test_there_is_a_published_matrix_of_sixteen_builds_from_113_on() -> None:
    made = store.read(ROOT / "reports" / "chromium-versions" / records.MATRIX, Matrix)
    measured = [build for build in made.builds if not build.why and not build.swapped]
    assert len(measured) >= 16
    assert {"113", "156"} <= {build.version.partition(".")[0] for build in measured}


@pytest.mark.parametrize("place", PUBLISHED, ids=lambda path: path.name)
def test_every_number_of_a_published_matrix_is_computed_again_from_its_runs(place: Path) -> None:
    made = store.read(place / records.MATRIX, Matrix)
    runs = stored_runs(place, made)
    summary, changes = page.computed(made, runs, traces.stored(place))
    stored = store.read(place / records.SUMMARY, Summary)
    assert [(f.build, f.metric, f.n_launches) for f in stored.figures] == [
        (f.build, f.metric, f.n_launches) for f in summary.figures
    ]
    for old, new in zip(stored.figures, summary.figures, strict=True):
        assert [old.value, old.ci_low, old.ci_high] == pytest.approx([new.value, new.ci_low, new.ci_high], rel=1e-9)
    was = store.read(place / records.CHANGES, Changes)
    assert [_told(one) for one in was.changes] == [_told(one) for one in changes.changes]
    notes = place / page.NOTES
    said = notes.read_text(encoding="utf-8") if notes.is_file() else ""
    html = (place / records.PAGE).read_text(encoding="utf-8")
    assert html == page.html(made, runs, summary, changes, said)
    assert sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) <= MOST_BYTES_OF_MATRIX


def _told(change: Change) -> tuple[object, ...]:
    ends = (change.before, change.after, change.ratio.value, change.ratio.ci_low, change.ratio.ci_high)
    return change.metric, change.build_before, change.build_after, change.confirmed, *(f"{end:.9g}" for end in ends)


def test_a_mark_of_the_chart_says_its_build_under_the_pointer() -> None:
    svg = chart.hoverable('<g><path aria-label="npm:131 &lt;b&gt;" d="M0,0"/><path d="M1,1"/></g>')
    assert svg == '<g><path d="M0,0"><title>npm:131 &lt;b&gt;</title></path><path d="M1,1"/></g>'


def test_a_page_asks_for_nothing() -> None:
    made = matrix("a", "b", confirm=("a", "b"))
    known = values(made, {"b": {KEY: 1.6, SUBMIT: 1.5}})
    html = page.html(made, {}, steps.summary(made, known), steps.changes(made, known), "# A title\nSome text.\n")
    assert not re.search(r'(?:src|href)="(?!data:|#)', html)
    assert "Some text." in html
    assert "×1." in html


# --- small parts -------------------------------------------------------------------------------------------------


SLOW = """\
case "$*" in *--version*) ;; *)
  taskset -pc $(taskset -pc $$ | sed 's/.*: //; s/[-,].*//') $$ >/dev/null
  (while kill -0 $$; do n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done; done) >/dev/null 2>&1 &
esac
"""
"""Shell that holds the browser on one core, and keeps that busy for as long as it runs."""


def _profile(*more: str) -> Profile:
    sets = ["launches.looks=[3]", "budget_s=60", "single_op.blocks=4", "policy.blocks=1", "anatomy.blocks=1", *more]
    sets += ['policy.policies=["submit_each","one_pass"]', "gates.full=note", "gates.busy=note"]
    return config.load("matrix", (), sets)


def _wrapper(path: Path, browser: Path, first: str = "") -> Path:
    path.write_text(f'#!/bin/sh\n{first}exec {browser} "$@"\n')
    path.chmod(0o755)
    return path
