"""The browser beside other executors: launches in turn, figures by executor, ratios by round, the verdict on C11."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rig import analysis, config, frames, likeness, plan
from rig.executors.base import ExecutorFault
from rig.measure import Exit, measure, resume
from rig.records import Metric, MetricOutcome, Outcome, Summary, VerdictOutcome
from rig.report import environment, findings, natives
from tests.conftest import RunIt, small_profile
from tests.scripted import ADAPTER, Model, ScriptedExecutor, ScriptedSession

POLICY = {"blocks": 3, "counts": [400, 600, 800, 1000], "busy": []}


def measured(
    run_it: RunIt,
    costs: dict[str, dict[str, float]],
    policies: Sequence[str] = ("submit_each", "one_pass"),
    **changes: Any,  # noqa: ANN401
) -> tuple[frames.Run, Summary]:
    """A run of scripted executors, by name what a dispatch costs under each policy; "" is the browser."""
    also = [name for name in costs if name]
    profile = small_profile(
        experiments=["policy"],
        policy={**POLICY, "policies": policies},
        single_op={},
        sequential={},
        launches={"looks": [5]},
        also=also,
    )
    made = {
        name: ScriptedExecutor(
            model=Model(noise=0.005, per_dispatch_us=cost),
            name=name or "scripted",
            build_id=f"{name} 1",
            replays=name == "cuda",
            **changes.get(name, {}),
        )
        for name, cost in costs.items()
    }
    code, _, run = run_it(made[""], profile, beside=[made[name] for name in also])
    assert code in (Exit.fine, Exit.no_result)
    return run, analysis.summarise(run)


def by_key(found: Summary) -> dict[str, Metric]:
    return {m.key: m for m in found.metrics}


def c11(found: Summary) -> VerdictOutcome:
    return next(v.outcome for v in found.verdicts if v.claim == "C11")


FAST, SLOW = {"submit_each": 20.0, "one_pass": 3.0}, {"submit_each": 40.0, "one_pass": 6.0}


def test_each_round_launches_every_executor_once_in_random_order(run_it: RunIt) -> None:
    run, _ = measured(run_it, {"": SLOW, "wgpu": FAST, "dawn": FAST})
    orders = []
    for number in range(5):
        names = [launch.executor for launch in run.launches if launch.round == number]
        assert sorted(names) == ["dawn", "scripted", "wgpu"]
        orders.append(tuple(names))
    assert len(set(orders)) > 1


def test_figures_of_the_browser_are_of_its_launches_alone_and_the_others_name_their_executor(run_it: RunIt) -> None:
    _, found = measured(run_it, {"": SLOW, "wgpu": FAST})
    own = by_key(found)["policy.per_dispatch_us{clock=wall,policy=one_pass}"]
    other = by_key(found)["policy.per_dispatch_us{clock=wall,executor=wgpu,policy=one_pass}"]
    assert own.value == pytest.approx(6, rel=0.02)
    assert other.value == pytest.approx(3, rel=0.02)
    assert own.n_launches == other.n_launches == 5


def test_the_browsers_share_is_what_the_other_does_without(run_it: RunIt) -> None:
    _, found = measured(run_it, {"": SLOW, "wgpu": FAST})
    ratio = by_key(found)["native.ratio{executor=wgpu,policy=submit_each}"]
    share = by_key(found)["native.browser_share{executor=wgpu,policy=submit_each}"]
    assert ratio.value == pytest.approx(2, rel=0.02)
    assert share.value == pytest.approx(0.5, rel=0.05)
    assert ratio.ci_low is not None
    assert ratio.ci_low < 2 < (ratio.ci_high or 0)
    assert set(ratio.per_launch) == {"0", "1", "2", "3", "4"}


@pytest.mark.parametrize(
    ("costs", "outcome"),
    [
        ({"": SLOW, "wgpu": FAST, "dawn": FAST}, VerdictOutcome.holds),
        ({"": FAST, "wgpu": SLOW}, VerdictOutcome.does_not_hold),
        ({"": SLOW, "wgpu": {"submit_each": 20.0, "one_pass": 12.0}}, VerdictOutcome.does_not_hold),
        ({"": SLOW, "wgpu": SLOW}, VerdictOutcome.unresolved),
        ({"": SLOW, "cuda": FAST}, VerdictOutcome.not_tested),
        ({"": SLOW}, VerdictOutcome.not_tested),
    ],
)
def test_c11_follows_the_whole_intervals_of_all_native_webgpus(
    run_it: RunIt, costs: dict[str, dict[str, float]], outcome: VerdictOutcome
) -> None:
    _, found = measured(run_it, costs)
    assert c11(found) is outcome


def test_other_adapters_make_no_share_of_the_browsers(run_it: RunIt) -> None:
    gpu = msgspec.structs.replace(ADAPTER, vendor="acme", is_fallback=False)
    _, found = measured(run_it, {"": SLOW, "wgpu": FAST}, wgpu={"adapter": gpu})
    ratio = by_key(found)["native.ratio{executor=wgpu,policy=one_pass}"]
    assert ratio.outcome is MetricOutcome.unresolved
    assert ratio.reason.startswith("different adapters")
    assert c11(found) is VerdictOutcome.unresolved


def test_one_pass_stands_beside_a_replayed_graph(run_it: RunIt) -> None:
    cuda = {"submit_each": 10.0, "replayed": 1.0}
    _, found = measured(run_it, {"": SLOW, "cuda": cuda}, policies=["submit_each", "one_pass", "replayed"])
    figures = by_key(found)
    assert figures["native.ratio{executor=cuda,policy=submit_each}"].value == pytest.approx(4, rel=0.02)
    assert figures["native.ratio{executor=cuda,policy=one_pass}"].value == pytest.approx(6, rel=0.02)


def test_an_executor_that_never_starts_leaves_the_browsers_figures_and_is_told(run_it: RunIt) -> None:
    fault = ExecutorFault(Outcome.not_supported, "no adapter here")
    run, found = measured(run_it, {"": SLOW, "wgpu": FAST}, wgpu={"start_fault": fault})
    assert sum(launch.executor == "wgpu" for launch in run.launches) == 1
    figures = by_key(found)
    assert figures["policy.per_dispatch_us{clock=wall,policy=one_pass}"].value is not None
    other = figures["policy.per_dispatch_us{executor=wgpu,policy=one_pass}"]
    assert "no adapter here" in other.reason


def test_cells_that_an_executor_does_not_take_are_no_part_of_its_launches() -> None:
    profile = config.resolve(
        {
            "name": "x",
            "seed": 1,
            "budget_s": 60,
            "launches": {"looks": [2]},
            "experiments": ["policy", "validation"],
            "policy": {**POLICY, "policies": ["one_pass", "replayed"]},
            "also": ["wgpu"],
        },
        "test",
    )
    (wgpu,) = (arm for arm in plan.arms(profile) if arm.executor)
    cells = plan.cells(profile, wgpu, ScriptedExecutor(name="wgpu", replays=False))
    assert set(cells) == {"policy"}
    assert {cell.policy.name for cell in cells["policy"]} == {"one_pass"}


def test_the_report_sets_the_executors_side_by_side(run_it: RunIt) -> None:
    run, found = measured(run_it, {"": SLOW, "wgpu": FAST})
    (section,) = natives.section(run, found)
    assert section.costs.head == ("what", "policy", "Chromium", "wgpu, from Python")
    row = next(row for row in section.costs.rows if row[:2] == ("a dispatch, by wall time", "one_pass"))
    assert re.match(r"(5\.9|6\.0)\d µs \(", row[2])
    assert re.match(r"(2\.9|3\.0)\d µs \(", row[3])
    assert [panel.title for figure in section.figures for panel in figure.panels] == ["Chromium over wgpu"]


def test_the_table_of_launches_tells_which_were_not_the_browsers(run_it: RunIt) -> None:
    run, _ = measured(run_it, {"": SLOW, "wgpu": FAST})
    arms = {row[1] for row in environment.launch_table(run).rows}
    assert arms == {"main", "wgpu"}


def test_the_first_lines_are_about_the_browser_and_say_what_is_its_own(run_it: RunIt) -> None:
    run, found = measured(run_it, {"": SLOW, "wgpu": FAST})
    lines = findings.headline(found)
    assert lines[0].startswith("A dispatch costs 40")
    assert "a dispatch in the browser costs 2.0" in lines[-1]
    assert "different adapters" not in " ".join(findings.banners(run))


def test_runs_are_alike_executor_by_executor(run_it: RunIt) -> None:
    run, _ = measured(run_it, {"": SLOW, "wgpu": FAST})
    assert likeness.unlike(run, run) == []
    other = msgspec.structs.replace(ADAPTER, vendor="acme")
    launches = tuple(
        msgspec.structs.replace(one, adapter=other) if one.executor == "wgpu" else one for one in run.launches
    )
    (why,) = likeness.unlike(run, frames.Run(run.manifest, run.cells, launches, run.samples))
    assert why.startswith("adapters: scripted")


def test_the_time_of_a_round_is_shared_evenly_between_executors() -> None:
    profile = small_profile(also=["wgpu", "dawn"])
    shares = [plan.launch_share(profile, arm) for arm in plan.arms(profile)]
    assert shares == pytest.approx([1 / 3] * 3)


def test_a_run_of_several_executors_is_taken_up_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005
    profile = small_profile(also=["wgpu"])

    def executors(stop_at: int) -> list[ScriptedExecutor]:
        def fault(session: ScriptedSession, *_: object) -> None:
            if session.number == stop_at:
                raise KeyboardInterrupt

        return [ScriptedExecutor(fault=fault), ScriptedExecutor(name="wgpu", build_id="wgpu 1")]

    main, other = executors(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        measure(profile, main, tmp_path / "run", ("rig",), beside=[other])
    main, other = executors(stop_at=0)
    assert resume(tmp_path / "run", main, beside=[other])[0] is Exit.fine
    run = frames.read(tmp_path / "run")
    good = Counter(launch.executor for launch in run.launches if launch.outcome is Outcome.ok)
    assert min(good["scripted"], good["wgpu"]) == 3
    assert {launch.executor for launch in run.main.launches} == {"scripted"}
    assert set(run.of("wgpu").samples["executor"]) == {"wgpu"}
