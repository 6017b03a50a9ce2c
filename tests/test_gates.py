"""Noise gates: each closes where it says, with the effect it says, and a profile may say otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rig import config, gates, host
from rig.config import ProfileError
from rig.gates import Effect, Effects
from rig.measure import Exit
from rig.records import Adapter, Clock, GpuState, HostState, Launch, Outcome
from rig.report import environment, findings
from tests.conftest import RunIt, small_profile
from tests.scripted import ADAPTER, CLOCK, ScriptedExecutor

QUIET = HostState(load_1min=0.1, cpu_busy_fraction=0.02, steal_fraction=0.0, memory_free_bytes=1 << 33)


NVIDIA = replace(ADAPTER, vendor="nvidia", is_fallback=False)


def a_launch(
    before: HostState = QUIET,
    after: HostState = QUIET,
    clock: Clock | None = CLOCK,
    adapter: Adapter | None = None,
) -> Launch:
    return Launch(
        launch=0,
        executor="scripted",
        build=None,
        adapter=adapter,
        clock=clock,
        host_before=before,
        host_after=after,
        began="",
        ended="",
        outcome=Outcome.ok,
    )


def closed(first: bool = False, effects: Effects | None = None, **launch: Any) -> dict[str, Effect]:  # noqa: ANN401
    found = gates.closed(a_launch(**launch), 4, effects or Effects(), first=first)
    return {gate.gate: gate.effect for gate in found}


def test_a_quiet_launch_closes_no_gate() -> None:
    assert closed(first=True) == {}


@pytest.mark.parametrize(
    ("change", "gate", "effect"),
    [
        ({"cpu_busy_fraction": 0.51}, "busy", Effect.mark),
        ({"busy_processes": 1}, "others", Effect.note),
        ({"load_1min": 4.1}, "load", Effect.note),
        ({"steal_fraction": 0.06}, "steal", Effect.mark),
    ],
)
def test_a_gate_closes_on_the_state_before_a_launch(change: dict[str, float], gate: str, effect: Effect) -> None:
    assert closed(before=replace(QUIET, **change)) == {gate: effect}


@pytest.mark.parametrize("change", [{"cpu_busy_fraction": 0.5}, {"load_1min": 4.0}, {"steal_fraction": 0.05}])
def test_a_gate_stays_open_at_its_threshold(change: dict[str, float]) -> None:
    assert closed(before=replace(QUIET, **change)) == {}


def test_a_full_cpu_refuses_the_first_launch_and_marks_a_later_one() -> None:
    full = replace(QUIET, cpu_busy_fraction=0.95)
    assert closed(before=full, first=True) == {"full": Effect.refuse, "busy": Effect.mark}
    assert closed(before=full) == {"busy": Effect.mark}


def test_what_the_launch_itself_does_to_the_cpu_closes_nothing() -> None:
    assert closed(after=replace(QUIET, cpu_busy_fraction=1.0, load_1min=9.0, busy_processes=3)) == {}


def test_time_stolen_is_seen_after_a_launch_too() -> None:
    assert closed(after=replace(QUIET, steal_fraction=0.2)) == {"steal": Effect.mark}


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [((100, 10), (200, 60), 0.5), ((0, 0), (0, 0), 0.0), ((None, None), (5, 5), None), ((5, 5), (None, None), None)],
)
def test_a_quotas_stops_are_a_share_of_its_periods_during_the_launch_and_unknown_is_not_zero(
    before: tuple[int, int], after: tuple[int, int], share: float | None
) -> None:
    first, last = (replace(QUIET, cpu_periods=p, cpu_throttled_periods=t) for p, t in (before, after))
    assert gates.throttled_fraction(first, last) == share
    assert closed(before=first, after=last) == ({"throttled": Effect.mark} if share else {})


@pytest.mark.parametrize(
    ("clock", "gates_closed"),
    [
        (replace(CLOCK, tick_us=100.0), {"clock": Effect.mark}),
        (replace(CLOCK, tick_us=49.9), {}),
        (replace(CLOCK, visibility="hidden"), {"hidden": Effect.refuse}),
        (None, {}),
    ],
)
def test_the_page_has_gates_of_its_own(clock: Clock | None, gates_closed: dict[str, Effect]) -> None:
    assert closed(clock=clock) == gates_closed


def with_gpus(*gpus: GpuState) -> HostState:
    return replace(QUIET, gpus=gpus)


def held(*reasons: str) -> HostState:
    return with_gpus(GpuState(throttle_reasons=reasons))


@pytest.mark.parametrize(
    "reason", ["power_cap", "thermal_software", "thermal_hardware", "hardware_slowdown", "power_brake"]
)
def test_a_gpu_held_back_before_or_after_marks_the_launch(reason: str) -> None:
    assert closed(adapter=NVIDIA, before=held("gpu_idle", reason)) == {"gpu_throttled": Effect.mark}
    assert closed(adapter=NVIDIA, after=held(reason)) == {"gpu_throttled": Effect.mark}


def test_a_gpu_that_idles_is_set_so_or_tells_nothing_closes_nothing() -> None:
    assert closed(adapter=NVIDIA, before=held("gpu_idle", "applications_clocks", "sync_boost")) == {}
    assert closed(adapter=NVIDIA, before=with_gpus(GpuState(other_processes=0)), after=with_gpus(GpuState())) == {}


def test_others_on_the_gpu_before_a_launch_are_a_note_and_after_it_nothing() -> None:
    used = with_gpus(GpuState(other_processes=2), GpuState(other_processes=1))
    assert closed(adapter=NVIDIA, before=used) == {"gpu_users": Effect.note}
    assert closed(adapter=NVIDIA, after=used) == {}


@pytest.mark.parametrize(
    ("adapter", "concerned"),
    [
        (NVIDIA, True),
        (replace(NVIDIA, vendor=""), True),
        (replace(NVIDIA, vendor="intel"), False),
        (replace(NVIDIA, is_fallback=True), False),
        (None, False),
    ],
)
def test_a_gpu_says_nothing_about_a_launch_on_another_adapter(adapter: Adapter | None, concerned: bool) -> None:
    state = with_gpus(GpuState(throttle_reasons=("power_cap",), other_processes=1))
    gates_closed = {"gpu_throttled": Effect.mark, "gpu_users": Effect.note} if concerned else {}
    assert closed(adapter=adapter, before=state) == gates_closed


def test_the_gates_of_the_gpu_say_what_was_found() -> None:
    state = with_gpus(GpuState(throttle_reasons=("power_cap", "thermal_hardware"), other_processes=2))
    assert [gate.sentence for gate in gates.closed_on_gpu(NVIDIA, Effects(), state)] == [
        "the GPU was held back: power cap, thermal hardware",
        "other processes used the GPU before the launch: 2 of them",
    ]


def test_a_gpu_refuses_nothing_before_the_adapter_is_known() -> None:
    refusing = Effects(gpu_throttled=Effect.refuse, gpu_users=Effect.refuse)
    state = with_gpus(GpuState(throttle_reasons=("power_cap",), other_processes=1))
    assert gates.closed_before(state, 4, refusing, first=True) == []
    assert gates.refusal(gates.closed_on_gpu(None, refusing, state)) == ""
    assert "--set gates.gpu_throttled=mark" in gates.refusal(gates.closed_on_gpu(NVIDIA, refusing, state))


def test_a_refusal_says_what_was_found_and_how_to_measure_all_the_same() -> None:
    found = gates.closed_before(replace(QUIET, cpu_busy_fraction=0.95), 4, Effects(), first=True)
    why = gates.refusal(found)
    assert "over 90% busy before the run: 95% of it" in why
    assert "--set gates.full=mark" in why
    assert gates.refusal([gate for gate in found if gate.gate != "full"]) == ""


# --- profiles ---


def test_a_profile_and_set_override_an_effect_and_the_rest_is_spelled_out() -> None:
    profile = config.load("quick", (), ["gates.busy=note"])
    assert (profile.gates.busy, profile.gates.full) == (Effect.note, Effect.refuse)
    assert closed(before=replace(QUIET, cpu_busy_fraction=0.6), effects=profile.gates) == {"busy": Effect.note}


@pytest.mark.parametrize(
    ("assignment", "said"), [("gates.busy=ignore", "Invalid enum value 'ignore'"), ("gates.noise=note", "`noise`")]
)
def test_an_unknown_gate_or_effect_is_refused_with_its_place(assignment: str, said: str) -> None:
    with pytest.raises(ProfileError, match="gates") as caught:
        config.load("quick", (), [assignment])
    assert said in str(caught.value)


# --- runs ---


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[HostState]:
    """What the next looks at the host see, in turn; then it is quiet."""
    planted: list[HostState] = []
    monkeypatch.setattr(host, "state", lambda _=0.1: planted.pop(0) if planted else QUIET)
    return planted


BUSY = replace(QUIET, cpu_busy_fraction=0.95)
REFUSING = small_profile(gates={})


def test_a_full_cpu_ends_the_run_with_3_before_anything_is_measured(run_it: RunIt, looks: list[HostState]) -> None:
    looks += [BUSY, BUSY]
    executor = ScriptedExecutor()
    code, why, run = run_it(executor, REFUSING)
    assert code is Exit.no_result
    assert "the CPU was over 90% busy before the run" in why
    assert executor.launches == 0
    assert run.launches == ()
    assert any(why in banner for banner in findings.banners(run))


def test_a_moments_work_is_no_reason_to_refuse(run_it: RunIt, looks: list[HostState]) -> None:
    looks += [BUSY]
    code, _, run = run_it(ScriptedExecutor(), REFUSING)
    assert code is Exit.fine
    assert run.launches[0].host_before == QUIET


def test_an_override_measures_all_the_same_and_the_banner_says_how_many_and_why(
    run_it: RunIt, looks: list[HostState]
) -> None:
    looks += [BUSY]
    code, _, run = run_it(ScriptedExecutor(), small_profile(gates={"full": "note"}))
    assert code is Exit.fine
    assert findings.banners(run)[-1] == (
        "Something disturbed 1 of 3 launches, and their figures may be off: "
        "the CPU was over 50% busy before the launch (1)."
    )
    table = environment.launch_table(run)
    told = [dict(zip(table.head, row, strict=True))["disturbed"] for row in table.rows]
    assert "the CPU was over 90% busy before the run: 95% of it" in told[0]
    assert told[1:] == ["no", "no"]


def test_a_note_makes_no_banner(run_it: RunIt, looks: list[HostState]) -> None:
    looks += [replace(QUIET, cpu_busy_fraction=0.6)]
    _, _, run = run_it(ScriptedExecutor(), small_profile(gates={"busy": "note"}))
    assert not [banner for banner in findings.banners(run) if "disturbed" in banner]


def test_a_hidden_page_is_refused_before_it_is_timed(run_it: RunIt, looks: list[HostState]) -> None:  # noqa: ARG001
    code, why, run = run_it(ScriptedExecutor(clock=replace(CLOCK, visibility="hidden")), REFUSING)
    assert code is Exit.no_result
    assert "the page was not visible: it was hidden" in why
    assert run.samples.empty
    assert {launch.outcome for launch in run.launches} == {Outcome.not_supported}


def test_others_on_the_gpu_are_refused_once_the_adapter_is_known_to_be_one(
    run_it: RunIt, looks: list[HostState]
) -> None:
    looks += [with_gpus(GpuState(other_processes=1))] * 9
    code, why, run = run_it(ScriptedExecutor(adapter=NVIDIA), small_profile(gates={"gpu_users": "refuse"}))
    assert code is Exit.no_result
    assert "other processes used the GPU before the launch: 1 of them" in why
    assert run.samples.empty
