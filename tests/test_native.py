"""Executors without a browser, on the software driver that lies beside it: the same programs, policies and outputs."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig import analysis, frames
from rig.browsers.find import Browser
from rig.browsers.flags import AdapterAsked
from rig.executors import child as module
from rig.executors import native, vulkan, wire
from rig.executors.base import ExecutorFault
from rig.executors.child import ChildSession
from rig.executors.chromium import ChromiumExecutor
from rig.executors.native import CudaSession, NativeExecutor, NativeMissing
from rig.measure import Exit, measure
from rig.policies import MODIFIERS, policy, reaches, runs, structure
from rig.programs import limits, reference
from rig.programs.micro import carrying, empty_kernels, increment_chain, independent, switching, zero_sized
from rig.records import Build, Dtype, Kernel, Outcome, Parameters, Policy, Program
from tests.conftest import small_profile

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[1]

GROUPS = ("submit_each", "command_buffers", "pass_each", "one_pass", "every_16", "every_16_pass_4")
PLAIN = tuple(name for name in MODIFIERS if name not in ("wasm", "immediates"))
PROGRAMS = (independent(), switching(), empty_kernels(), zero_sized())


@pytest.fixture(params=("wgpu", "dawn"), scope="module")
def executor(request: pytest.FixtureRequest, browser: Browser) -> NativeExecutor:
    return native.executor(request.param, AdapterAsked.software, browser.path)


@pytest.fixture
def session(executor: NativeExecutor) -> Iterator[ChildSession]:
    opened = executor.launch(limits.needed([increment_chain()]))
    yield opened
    opened.close()


def ran_right(session: ChildSession, program: Program, chosen: Policy, n: int = 50) -> None:
    """Runs it twice, and compares everything that is told with what it must be."""
    session.reset(program)
    for _ in range(2):
        timing = session.time(program, chosen, n)
        assert timing.issued == structure(chosen, n)
        assert 0 < timing.encode_us <= timing.wall_us
    issued, got = session.outputs(program)
    ran = [reaches(chosen, n)] * 2 * runs(chosen)
    assert issued == sum(ran)
    assert reference.compare(program, reference.run(program, *ran), got) == ""


def test_a_launch_says_which_build_ran_on_which_adapter(executor: NativeExecutor, session: ChildSession) -> None:
    assert session.build.flavour == executor.name
    assert executor.build_id == f"{executor.name} {session.build.version} sha256:{session.build.sha256[:16]}"
    assert any("swiftshader" in flag for flag in session.build.flags)
    assert session.adapter.is_fallback
    assert (session.adapter.vendor, session.clock.has_span) == ("google", True)
    assert session.clock.tick_us < 5
    assert session.validates()


@pytest.mark.parametrize("name", [*GROUPS, *(f"submit_each+{name}" for name in PLAIN if name.startswith("write"))])
def test_every_policy_runs_every_dispatch_once_and_is_counted_as_it_says(session: ChildSession, name: str) -> None:
    program = carrying(64, Parameters.uniform) if "+" in name else increment_chain()
    session.load(program)
    ran_right(session, program, policy(name))


def test_every_modifier_runs_and_computes_the_same(session: ChildSession) -> None:
    plain, carried = increment_chain(), carrying(64, Parameters.uniform)
    session.load(plain)
    session.load(carried)
    for name in PLAIN:
        delivers = name in ("write_slots", "dynamic_offset", "mapped_ring")
        if name == "write_buffer":
            continue
        base = "submit_each" if name == "staged" else "every_16"
        ran_right(session, carried if delivers else plain, policy(f"{base}+{name}"))


@pytest.mark.parametrize("program", [*PROGRAMS, *(increment_chain(100, d) for d in Dtype)], ids=lambda p: p.name)
def test_every_program_computes_what_its_reference_does(session: ChildSession, program: Program) -> None:
    if limits.shortfall(program, session.adapter.granted_limits, session.adapter.enabled_features):
        pytest.skip("this adapter has no 16-bit floats")
    session.load(program)
    ran_right(session, program, policy("one_pass"))


def test_timestamps_are_nanoseconds_and_within_the_wall(session: ChildSession) -> None:
    program = increment_chain()
    session.load(program)
    session.reset(program)
    timing = session.time(program, policy("pass_each+busy"), 40)
    assert timing.stamps_ns is not None
    stamps = [int(stamp) for stamp in timing.stamps_ns]
    assert len(stamps) == 80
    assert 0 < stamps[-1] - stamps[0] < timing.wall_us * 1000
    assert any(stamp % 65536 for stamp in stamps)  # Dawn rounds to that unless told not to


def test_a_stub_is_issued_to_without_a_device(session: ChildSession) -> None:
    program = increment_chain()
    session.load(program)
    ran_right(session, program, policy("one_pass+stub"))
    assert session.time(program, policy("one_pass+stub"), 1000).stamps_ns is None


def test_an_error_in_a_kernel_is_an_outcome_and_the_process_goes_on(session: ChildSession) -> None:
    program = increment_chain()
    broken = Program(
        name="broken",
        hazard=program.hazard,
        buffers=program.buffers,
        kernels=(Kernel(name="increment_f32", wgsl="fn main( {"),),
        dispatches=program.dispatches,
        outputs=program.outputs,
    )
    with pytest.raises(ExecutorFault) as fault:
        session.load(broken)
    assert fault.value.outcome is Outcome.validation_error
    session.load(program)
    ran_right(session, program, policy("one_pass"))


def test_a_process_that_is_killed_ends_the_session_with_its_reason(session: ChildSession) -> None:
    os.kill(session._process.pid, signal.SIGKILL)
    with pytest.raises(ExecutorFault, match=r"the process ended \(-9\)") as fault:
        session.load(increment_chain())
    assert fault.value.outcome is Outcome.crashed


# --- processes of other kinds ---

BUILD = Build(flavour="x", version="1", sha256="0", executable="x", flags=(), driver_version="x")


def test_a_process_that_does_not_answer_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_LIMIT_S", 0.2)
    session = ChildSession((sys.executable, "-c", "import time; time.sleep(60)"), os.environ, BUILD)
    with pytest.raises(ExecutorFault) as fault:
        session.validates()
    session.close()
    assert fault.value.outcome is Outcome.timeout


def test_what_a_library_prints_is_no_answer_and_its_last_words_are_kept() -> None:
    lines = "print('warning: odd', end=''); print(); print('{\"ok\": {\"validates\": true}}', flush=True); input()"
    session = ChildSession((sys.executable, "-c", f"{lines}; raise SystemExit('gone for good')"), os.environ, BUILD)
    assert session.validates()
    with pytest.raises(ExecutorFault, match="gone for good"):
        session.validates()
    session.close()


def test_a_program_that_is_not_there_is_a_crash_with_its_name() -> None:
    with pytest.raises(ExecutorFault, match="/not/there does not start"):
        ChildSession(("/not/there",), os.environ, BUILD)


def test_what_is_not_installed_is_said_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RIG_DAWN", str(tmp_path))
    with pytest.raises(NativeMissing, match="npm install webgpu"):
        native.executor("dawn", AdapterAsked.any)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for name, remedy in (("wgpu", r"pip install 'webgpu-dispatch-rig\[native\]'"), ("cuda", "pip install torch")):
        with pytest.raises(NativeMissing, match=remedy):
            native.executor(name, AdapterAsked.any)


def test_the_software_driver_is_the_browsers_own_and_hardware_is_left_to_the_loader(tmp_path: Path) -> None:
    (tmp_path / "vk_swiftshader_icd.json").touch()
    assert vulkan.environ(AdapterAsked.software, tmp_path)["VK_DRIVER_FILES"].startswith(str(tmp_path))
    assert "VK_DRIVER_FILES" not in vulkan.environ(AdapterAsked.hardware, tmp_path)


def test_b45_an_adapter_whose_fields_are_swapped_is_known_by_its_vendors_number(session: ChildSession) -> None:
    assert session.adapter.vendor == "google"  # wgpu has "SwiftShader driver" there
    assert "SwiftShader" in session.adapter.driver
    assert wire.FEATURES[0] in session.adapter.enabled_features


# --- CUDA, on a PyTorch of ours ---


@pytest.fixture
def cuda() -> Iterator[CudaSession]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("", "tests/planted"))}
    session = CudaSession((sys.executable, "-P", "-m", "rig.native.on_cuda"), environ, BUILD)
    session.open({})
    yield session
    session.close()


@pytest.mark.parametrize("dtype", [Dtype.f32, Dtype.i32])
@pytest.mark.parametrize("name", ["submit_each", "replayed"])
def test_a_chain_of_kernels_is_launched_or_replayed_and_each_ran_once(
    cuda: CudaSession, name: str, dtype: Dtype
) -> None:
    program = increment_chain(64, dtype)
    cuda.load(program)
    ran_right(cuda, program, policy(name))
    timing = cuda.time(program, policy(name), 20)
    assert timing.stamps_ns is not None
    assert 0 < int(timing.stamps_ns[1]) <= timing.wall_us * 1000
    assert cuda.conflict(program, policy(name), 20) == ""


def test_cuda_takes_chains_alone_and_says_where_it_computes(cuda: CudaSession) -> None:
    for program, chosen in (
        (increment_chain(), "one_pass"),
        (independent(), "submit_each"),
        (zero_sized(), "replayed"),
    ):
        assert not native.chained(program, policy(chosen))
    assert native.chained(increment_chain(), policy("replayed"))
    assert (cuda.adapter.vendor, cuda.adapter.is_fallback, cuda.validates()) == ("nvidia", False, True)


# --- together ---

SAXPY = {
    "name": "saxpy",
    "hazard": "chained",
    "buffers": [
        {"name": "x", "dtype": "f32", "elements": 256, "fill": {"kind": "hash", "seed": 1, "below": 100}},
        {"name": "y", "dtype": "f32", "elements": 256, "fill": {"kind": "constant", "value": 1}},
    ],
    "kernels": [
        {
            "name": "saxpy",
            "wgsl": (
                "override A: f32 = 1.0;"
                "@group(0) @binding(0) var<storage, read_write> x: array<f32>;"
                "@group(0) @binding(1) var<storage, read_write> y: array<f32>;"
                "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u)"
                "{ y[id.x] = A * x[id.x] + y[id.x]; }"
            ),
            "constants": {"A": 0.5},
        }
    ],
    "dispatches": [{"kernel": "saxpy", "bindings": ["x", "y"], "workgroups": [4, 1, 1]}],
    "outputs": ["y"],
}


def test_a_program_file_runs_in_all_three_executors_and_gives_the_same_output(
    chromium: ChromiumExecutor, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005
    (tmp_path / "saxpy.json").write_text(json.dumps(SAXPY))
    profile = small_profile(
        experiments=["program"],
        program={"program": SAXPY, "blocks": 2, "counts": [20, 40, 60, 80], "policies": ["submit_each", "one_pass"]},
        launches={"looks": [2]},
        also=["wgpu", "dawn"],
        single_op={},
        sequential={},
    )
    beside = [native.executor(name, AdapterAsked.software, browser.path) for name in profile.also]
    code, why = measure(profile, chromium, tmp_path / "run", ("rig",), beside=beside)
    assert (code, why) == (Exit.fine, "last look, 2 launches")
    run = frames.read(tmp_path / "run")
    assert sorted(launch.executor for launch in run.launches) == ["chromium"] * 2 + ["dawn"] * 2 + ["wgpu"] * 2
    hashes = {c.detail for x in run.launches for c in x.checks if c.stage == "opening" and "sha256" in c.detail}
    assert len(hashes) == 1
    figures = {m.key for m in analysis.summarise(run).metrics if m.value is not None}
    for executor in ("", "executor=wgpu,", "executor=dawn,"):
        assert f"program.per_dispatch_us{{clock=wall,{executor}policy=one_pass}}" in figures
