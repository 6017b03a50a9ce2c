"""The runner: every fault is an outcome, nothing measured is lost, and no bad sample becomes a figure."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rig import analysis, frames
from rig.browsers.flags import AdapterAsked
from rig.executors.base import ExecutorFault
from rig.measure import Exit
from rig.records import MetricOutcome, Outcome
from tests.conftest import RunIt, small_profile
from tests.scripted import ADAPTER, CLOCK, Model, ScriptedExecutor, ScriptedSession, fault_at


def outcomes(run: frames.Run) -> dict[str, int]:
    return {str(outcome): int(count) for outcome, count in run.samples["outcome"].value_counts().items()}


def test_a_run_without_faults_is_fine_and_its_figures_are_those_of_the_model(run_it: RunIt) -> None:
    code, why, run = run_it(ScriptedExecutor())
    assert (code, why) == (Exit.fine, "last look, 3 launches")
    figures = {m.key: m for m in analysis.summarise(run).metrics}
    for policy, cost in (("submit_each", 40), ("one_pass", 6)):
        slope = figures[f"sequential.per_dispatch_us{{clock=span,policy={policy}}}"]
        assert slope.value == pytest.approx(cost, rel=0.03)


def test_every_sample_is_on_disk_when_the_next_one_runs(tmp_path: Path) -> None:
    from rig.runner import Runner
    from rig.store import Writer, read_samples

    seen: list[tuple[int, int]] = []

    def watch(session: ScriptedSession, policy: object, n: int) -> None:  # noqa: ARG001
        seen.append((session.executions - 1, len(read_samples(tmp_path / "run"))))

    with Writer(tmp_path / "run") as writer:
        Runner(small_profile(launches={"looks": [1]}), ScriptedExecutor(fault=watch), writer).run()
    assert all(executed == stored for executed, stored in seen)


@pytest.mark.parametrize("outcome", [Outcome.validation_error, Outcome.out_of_memory])
def test_b14_b15_b17_a_fault_of_one_cell_voids_that_cell_and_no_other(run_it: RunIt, outcome: Outcome) -> None:
    code, _, run = run_it(ScriptedExecutor(fault=fault_at(outcome)))
    bad = run.samples[run.samples["outcome"] == outcome]
    assert set(zip(bad["policy"], bad["n"], strict=True)) == {("one_pass", 50)}
    assert bad["wall_us"].isna().all()
    assert len(bad) == 3  # its opening check, in each launch; it is not timed again
    assert code is Exit.fine


@pytest.mark.parametrize("outcome", [Outcome.device_lost, Outcome.timeout, Outcome.crashed])
def test_b11_b13_b20_a_fault_that_ends_the_launch_is_retried_in_a_fresh_one(run_it: RunIt, outcome: Outcome) -> None:
    executor = ScriptedExecutor(fault=fault_at(outcome, launches=1))
    code, _, run = run_it(executor)
    assert code is Exit.fine
    assert [launch.outcome for launch in run.launches] == [outcome, Outcome.ok, Outcome.ok, Outcome.ok]
    broken = run.samples[run.samples["launch"] == 0]
    assert len(broken) > 1
    assert (broken["void"] != "").all()


def test_b50_a_cell_that_ends_two_launches_is_left_out_and_the_others_go_on(run_it: RunIt) -> None:
    code, _, run = run_it(ScriptedExecutor(fault=fault_at(Outcome.timeout, n=200)))
    assert [launch.outcome for launch in run.launches] == [Outcome.timeout] * 2 + [Outcome.ok] * 3
    assert code is Exit.fine
    assert not run.good("single_op").empty
    assert 200 not in set(run.good("sequential").query("policy == 'one_pass'")["n"])


def test_b15_dispatches_that_silently_do_nothing_void_the_launch(run_it: RunIt) -> None:
    code, why, run = run_it(ScriptedExecutor(wrong_after=60))
    assert all(
        check.outcome is Outcome.mismatch for x in run.launches for check in x.checks if check.stage == "closing"
    )
    assert run.good("sequential").empty
    assert code is Exit.no_result
    assert "closing check of increment_f32_chain_64: data[0] is" in why
    assert {launch.outcome for launch in run.launches} == {Outcome.mismatch}


def test_an_output_that_is_wrong_from_the_start_is_never_timed(run_it: RunIt) -> None:
    code, _, run = run_it(ScriptedExecutor(wrong_after=0))
    assert set(run.samples["block"]) == {0}
    assert outcomes(run) == {"mismatch": len(run.samples)}
    assert code is Exit.no_result


def test_b16_a_program_beyond_the_device_is_not_supported_with_the_limit_named(run_it: RunIt) -> None:
    small = msgspec.structs.replace(ADAPTER, granted_limits={"maxBufferSize": 128})
    code, _, run = run_it(ScriptedExecutor(adapter=small))
    assert outcomes(run) == {"not_supported": len(run.samples)}
    figures = analysis.summarise(run).metrics
    assert {m.outcome for m in figures} == {MetricOutcome.not_supported}
    assert all("needs maxBufferSize 256, the device has 128" in m.reason for m in figures)
    assert code is Exit.no_result  # what is not supported is not missing, but then there is nothing else


def test_b49_a_run_in_which_nothing_has_a_figure_exits_3(run_it: RunIt) -> None:
    broken = ScriptedExecutor(load_fault=ExecutorFault(Outcome.validation_error, "planted"))
    code, why, _ = run_it(broken)
    assert code is Exit.no_result
    assert "nothing could be measured: validation_error: planted" in why


def test_b49_one_experiment_without_a_figure_exits_3_and_keeps_the_other(run_it: RunIt) -> None:
    def fault(session: ScriptedSession, policy: object, n: int) -> ExecutorFault | None:  # noqa: ARG001
        return ExecutorFault(Outcome.validation_error, "planted") if n == 1 else None

    code, why, run = run_it(ScriptedExecutor(fault=fault))
    assert code is Exit.no_result
    assert "single_op" in why
    assert not run.good("sequential").empty


def test_launch_after_launch_that_fails_ends_the_run_with_the_reason(run_it: RunIt) -> None:
    code, why, run = run_it(ScriptedExecutor(start_fault=ExecutorFault(Outcome.crashed, "no display")))
    assert code is Exit.no_result
    assert "no display" in why
    assert len(run.launches) == 3
    assert not run.manifest.finished


def test_b01_no_adapter_is_asked_for_once_and_says_what_is_missing(run_it: RunIt) -> None:
    code, why, run = run_it(ScriptedExecutor(start_fault=ExecutorFault(Outcome.not_supported, "no adapter: null")))
    assert code is Exit.no_result
    assert "no adapter" in why
    assert len(run.launches) == 1


def test_b03_a_software_adapter_is_refused_where_hardware_was_asked_for(run_it: RunIt) -> None:
    code, why, run = run_it(ScriptedExecutor(), asked=AdapterAsked.hardware)
    assert code is Exit.software_refused
    assert "asked for hardware, got the software adapter scripted paper" in why
    assert run.samples.empty
    assert run.launches[0].adapter is not None


def test_precision_that_was_demanded_and_missed_exits_4(run_it: RunIt) -> None:
    noisy = ScriptedExecutor(model=Model(noise=0.5))
    code, why, _ = run_it(noisy, small_profile(precision=0.001), demand_precision=True)
    assert code is Exit.imprecise
    assert "demanded" in why


def test_precision_that_was_demanded_of_no_figure_exits_4(run_it: RunIt) -> None:
    profile = small_profile(experiments=["single_op"], sequential={}, precision=0.5)
    code, why, _ = run_it(ScriptedExecutor(), profile, demand_precision=True)
    assert code is Exit.imprecise
    assert "no per-dispatch figure" in why


def test_launches_that_fail_in_a_row_end_the_run_unfinished_and_keep_what_was_good(run_it: RunIt) -> None:
    def fault(session: ScriptedSession, policy: object, n: int) -> ExecutorFault | None:  # noqa: ARG001
        return ExecutorFault(Outcome.crashed, "driver gone") if session.number > 1 else None

    code, why, run = run_it(ScriptedExecutor(fault=fault))
    assert code is Exit.no_result
    assert "driver gone" in why
    assert not run.manifest.finished
    assert not run.good("single_op").empty


def test_a_precise_run_stops_at_the_look_that_satisfies_it(run_it: RunIt) -> None:
    _, why, run = run_it(ScriptedExecutor(), small_profile(launches={"looks": [3, 30]}, precision=0.2))
    assert why == "precision reached at 3 launches"
    assert len(run.launches) == 3


def test_an_interrupted_run_keeps_what_it_has_and_its_report(tmp_path: Path) -> None:
    from rig.measure import measure

    def interrupt(session: ScriptedSession, policy: object, n: int) -> None:  # noqa: ARG001
        if session.number == 3:
            raise KeyboardInterrupt

    place = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        measure(small_profile(), ScriptedExecutor(fault=interrupt), place, ("rig",))
    run = frames.read(place)
    assert (run.manifest.finished, run.manifest.why) == (False, "interrupted")
    assert len(run.launches) == 2
    assert (place / "report.html").stat().st_size > 0


def test_b21_samples_too_short_for_the_clock_do_not_count(run_it: RunIt) -> None:
    coarse = msgspec.structs.replace(CLOCK, tick_us=100.0, isolated=False)
    _, _, run = run_it(ScriptedExecutor(clock=coarse))
    short = run.samples[run.samples["wall_us"] < 1000]
    assert not short.empty
    assert set(short["void"]) == {"shorter than 10 ticks of the clock"}


def test_b23_without_timestamps_the_slope_is_that_of_the_wall_and_the_span_is_said_to_be_absent(run_it: RunIt) -> None:
    _, _, run = run_it(ScriptedExecutor(clock=msgspec.structs.replace(CLOCK, has_span=False)))
    figures = {m.key: m for m in analysis.summarise(run).metrics}
    span = figures["sequential.per_dispatch_us{clock=span,policy=one_pass}"]
    assert (span.outcome, span.value) == (MetricOutcome.not_supported, None)
    assert "no GPU timestamps" in span.reason
    wall = figures["sequential.per_dispatch_us{clock=wall,policy=one_pass}"]
    assert wall.value == pytest.approx(6, rel=0.05)
