"""The page and the Chromium executor, in the real browser on whatever adapter it gives (SwiftShader is enough)."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from rig.browsers import find
from rig.browsers import flags as browser_flags
from rig.browsers.find import Browser, BrowserMissing
from rig.executors import chromium as module
from rig.executors import wire
from rig.executors.base import ExecutorFault
from rig.executors.chromium import ChromiumExecutor, ChromiumSession
from rig.executors.wire import Opened
from rig.policies import policy, structure
from rig.programs import fill, reference
from rig.programs.micro import increment_chain
from rig.records import Buffer, Dispatch, Dtype, HashFill, Hazard, Kernel, Outcome, Program, Waiter

pytestmark = pytest.mark.browser

SPIN = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n"


def program(wgsl: str, *, elements: int = 64, workgroups: tuple[int, int, int] = (1, 1, 1), times: int = 1) -> Program:
    """A program of one kernel of our own on one buffer."""
    return Program(
        name="own",
        hazard=Hazard.chained,
        buffers=(Buffer(name="data", dtype=Dtype.u32, elements=elements, fill=HashFill(seed=5, below=9)),),
        kernels=(Kernel(name="own", wgsl=SPIN + wgsl),),
        dispatches=(Dispatch(kernel="own", bindings=("data",), workgroups=workgroups),) * times,
        outputs=("data",),
    )


TRIVIAL = "@compute @workgroup_size(1) fn main() { data[0] += 1u; }"


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def page_run(session: ChromiumSession, script: str) -> object:
    assert session._page is not None
    return session._run(session._page.evaluate(script), 10)


# --- what runs, runs right ---


@pytest.mark.parametrize("waiter", list(Waiter))
@pytest.mark.parametrize(
    "name", ["submit_each", "command_buffers", "pass_each", "one_pass", "every_16", "every_16_pass_4"]
)
def test_every_policy_runs_every_dispatch_once_and_is_counted_as_it_says(
    session: ChromiumSession, name: str, waiter: Waiter
) -> None:
    chain = increment_chain()
    session.load(chain)
    session.reset(chain)
    timing = session.time(chain, policy(name, waiter), 50)
    assert timing.issued == structure(policy(name), 50)
    issued, got = session.outputs(chain)
    assert issued == 50
    assert reference.compare(chain, reference.run(chain, 50), got) == ""
    assert 0 < timing.encode_us <= timing.wall_us


@pytest.mark.parametrize("dtype", list(Dtype))
def test_the_chain_computes_what_its_reference_does_in_every_type(session: ChromiumSession, dtype: Dtype) -> None:
    if dtype is Dtype.f16 and "shader-f16" not in session.adapter.enabled_features:
        pytest.skip("this adapter has no 16-bit floats")
    chain = increment_chain(100, dtype)
    session.load(chain)
    session.reset(chain)
    session.time(chain, policy("pass_each"), 30)
    _, got = session.outputs(chain)
    assert got["data"].dtype == fill.NUMPY[dtype]
    assert reference.compare(chain, reference.run(chain, 30), got) == ""


@pytest.mark.parametrize("waiter", list(Waiter))
def test_an_empty_queue_is_waited_for_and_has_no_span_of_an_earlier_sample(
    session: ChromiumSession, waiter: Waiter
) -> None:
    chain = increment_chain()
    session.load(chain)
    session.reset(chain)
    session.time(chain, policy("one_pass", waiter), 10)
    empty = session.time(chain, policy("one_pass", waiter), 0)
    assert empty.stamps_ns is None
    assert set(empty.issued.values()) == {0}
    assert session.outputs(chain)[0] == 10


@pytest.mark.parametrize("dtype", list(Dtype))
def test_first_contents_are_those_of_numpy(session: ChromiumSession, dtype: Dtype) -> None:
    buffer = Buffer(name="data", dtype=dtype, elements=1000, fill=HashFill(seed=77, below=1000))
    own = program(TRIVIAL)
    own = Program(
        name="own",
        hazard=own.hazard,
        buffers=(buffer,),
        kernels=own.kernels,
        dispatches=own.dispatches,
        outputs=("data",),
    )
    session.load(own)
    session.reset(own)
    _, got = session.outputs(own)
    assert np.array_equal(got["data"], fill.contents(buffer))


def test_b27_the_wait_is_there_with_both_waiters_and_time_grows_with_the_work(session: ChromiumSession) -> None:
    chain = increment_chain()
    session.load(chain)
    session.reset(chain)
    for waiter in Waiter:
        few, many = (
            min(session.time(chain, policy("one_pass", waiter), n).wall_us for _ in range(3)) for n in (1, 5000)
        )
        assert many > 3 * few


def test_the_span_lies_within_the_wall(session: ChromiumSession) -> None:
    if not session.clock.has_span:
        pytest.fail("this adapter has no timestamps; SwiftShader has")
    chain = increment_chain()
    session.load(chain)
    session.reset(chain)
    timing = session.time(chain, policy("one_pass"), 500)
    assert timing.stamps_ns is not None
    begin, end = map(int, timing.stamps_ns)
    assert 0 < (end - begin) / 1000 < timing.wall_us


def test_b23_without_the_timestamp_feature_there_is_no_span_and_the_run_goes_on(chromium: ChromiumExecutor) -> None:
    session = chromium.browse()
    opened = session._call("open", Opened, features=[], limits={}, power=None)
    assert not opened.has_span
    chain = increment_chain()
    session.load(chain)
    session.reset(chain)
    assert session.time(chain, policy("one_pass"), 10).stamps_ns is None
    session.close()


# --- invalid work is an outcome ---


def test_b15_an_invalid_dispatch_is_a_validation_error_and_not_a_fast_time(session: ChromiumSession) -> None:
    bad = program(TRIVIAL, workgroups=(65536, 1, 1))
    session.load(bad)
    session.reset(bad)
    with pytest.raises(ExecutorFault, match="65535") as caught:
        session.time(bad, policy("one_pass"), 100)
    assert caught.value.outcome is Outcome.validation_error


def test_b15_one_bad_dispatch_voids_the_good_ones_of_its_pass(session: ChromiumSession) -> None:
    good, bad = program(TRIVIAL).dispatches[0], program(TRIVIAL, workgroups=(65536, 1, 1)).dispatches[0]
    base = program(TRIVIAL)
    mixed = Program(
        name="mixed",
        hazard=base.hazard,
        buffers=base.buffers,
        kernels=base.kernels,
        dispatches=(*(good,) * 10, bad),
        outputs=("data",),
    )
    session.load(mixed)
    session.reset(mixed)
    with pytest.raises(ExecutorFault) as caught:
        session.time(mixed, policy("one_pass"), 11)
    assert caught.value.outcome is Outcome.validation_error
    _, got = session.outputs(mixed)
    assert np.array_equal(got["data"], fill.contents(mixed.buffers[0]))


@pytest.mark.parametrize(
    ("wgsl", "said"),
    [
        ("@compute @workgroup_size(512) fn main() { data[0] = 1u; }", "512"),
        ("@compute @workgroup_size(1) fn main() { data[0] = 1.5; }", "2:51 error: cannot convert"),
        ("@compute @workgroup_size(1) fn another() { data[0] = 1u; }", "main"),
    ],
)
def test_b19_a_kernel_that_cannot_be_compiled_says_why_and_never_runs(
    session: ChromiumSession, wgsl: str, said: str
) -> None:
    with pytest.raises(ExecutorFault, match=said) as caught:
        session.load(program(wgsl))
    assert caught.value.outcome is Outcome.validation_error


def test_b14_b17_a_buffer_beyond_the_device_is_an_error_with_the_limit(session: ChromiumSession) -> None:
    with pytest.raises(ExecutorFault, match="max buffer size") as caught:
        session.load(program(TRIVIAL, elements=(1 << 28) // 4 + 64))
    assert caught.value.outcome in (Outcome.validation_error, Outcome.out_of_memory)


def test_after_a_validation_error_the_next_sample_is_clean(session: ChromiumSession) -> None:
    bad, chain = program(TRIVIAL, workgroups=(65536, 1, 1)), increment_chain()
    for each in (bad, chain):
        session.load(each)
        session.reset(each)
    with pytest.raises(ExecutorFault):
        session.time(bad, policy("one_pass"), 1)
    assert session.time(chain, policy("one_pass"), 1).wall_us > 0


# --- deadlines, crashes, losses ---


@pytest.mark.parametrize("body", ["new Promise(() => {})", "(() => { for (;;); })()"])
def test_b11_a_page_that_never_answers_is_a_timeout_and_is_gone_soon_after(
    chromium: ChromiumExecutor, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    session = chromium.launch({})
    page_run(session, f"void (globalThis.rig.call = () => {body})")
    monkeypatch.setattr(module, "CALL_LIMIT_S", 1.0)
    began = time.monotonic()
    with pytest.raises(ExecutorFault, match="no answer") as caught:
        session.time(increment_chain(), policy("one_pass"), 1)
    assert caught.value.outcome is Outcome.timeout
    pid = session.pid
    session.close()
    assert time.monotonic() - began < 15
    assert not alive(pid)


def test_b12_a_gpu_that_stays_busy_is_a_timeout_that_says_the_device_is_not_lost(
    chromium: ChromiumExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "GPU_LIMIT_S", 1.0)
    forever = "@compute @workgroup_size(1) fn main() { for (var i = 0u; i < 4000000000u; i++) { data[i % 64u] += i; } }"
    session = chromium.launch({})
    try:
        session.load(program(forever))
        session.reset(program(forever))
        with pytest.raises(ExecutorFault, match="GPU still busy after 1 s, device not lost") as caught:
            session.time(program(forever), policy("one_pass"), 1)
        assert caught.value.outcome is Outcome.timeout
    finally:
        session.close()


def test_b13_a_renderer_that_dies_is_a_crash(session: ChromiumSession) -> None:
    psutil.Process(session.processes()["renderer"]).kill()
    with pytest.raises(ExecutorFault) as caught:
        session.load(increment_chain())
    assert caught.value.outcome is Outcome.crashed


def test_b20_a_gpu_process_that_dies_is_a_lost_device(session: ChromiumSession) -> None:
    chain = increment_chain()
    session.load(chain)
    session.reset(chain)
    psutil.Process(session.processes()["gpu"]).kill()

    def until_lost() -> None:
        for _ in range(50):
            session.time(chain, policy("one_pass"), 10)

    with pytest.raises(ExecutorFault) as caught:
        until_lost()
    assert caught.value.outcome is Outcome.device_lost


def test_b59_nothing_is_left_of_a_browser_that_was_closed(chromium: ChromiumExecutor) -> None:
    session = chromium.launch({})
    pids = [process.pid for process in psutil.Process(session.pid).children(recursive=True)] + [session.pid]
    session.close()
    assert len(pids) > 2
    assert not [pid for pid in pids if alive(pid)]


# --- which adapter, which page, which build ---


def test_b02_b41_the_adapter_arrives_with_every_field_it_has(session: ChromiumSession) -> None:
    adapter = session.adapter
    assert adapter.vendor
    assert adapter.driver
    assert adapter.features
    assert adapter.limits["maxComputeWorkgroupsPerDimension"] >= 65535
    if adapter.architecture == "swiftshader":
        assert adapter.is_fallback


def test_b01_no_adapter_is_told_apart_and_names_the_missing_flag(browser: Browser) -> None:
    executor = ChromiumExecutor(browser, browser_flags.QUIET)
    with pytest.raises(
        ExecutorFault, match=r"no adapter.*runs without --enable-unsafe-webgpu; flags in force: --"
    ) as caught:
        executor.launch({})
    assert caught.value.outcome is Outcome.not_supported
    executor.close()


@pytest.mark.parametrize("host", ["bench.test", "0.0.0.0"])
def test_b07_b08_an_insecure_page_is_named_as_the_cause_and_the_gpu_is_not_blamed(browser: Browser, host: str) -> None:
    rule = "--host-resolver-rules=MAP bench.test 127.0.0.1"
    executor = ChromiumExecutor(browser, (*browser_flags.flags(browser_flags.AdapterAsked.any), rule), host=host)
    with pytest.raises(ExecutorFault, match=r"insecure context.*localhost or by https; the GPU and its driver are not"):
        executor.launch({})
    executor.close()


@pytest.mark.parametrize(("isolated", "low", "high"), [(True, 1, 20), (False, 50, 200)])
def test_b21_the_tick_is_measured_and_is_fine_only_on_an_isolated_page(
    browser: Browser, isolated: bool, low: float, high: float
) -> None:
    executor = ChromiumExecutor(browser, browser_flags.flags(browser_flags.AdapterAsked.any), isolated=isolated)
    session = executor.launch({})
    assert session.clock.isolated is isolated
    assert low < session.clock.tick_us < high
    session.close()
    executor.close()


def test_b09_the_command_line_that_really_runs_is_kept(browser: Browser) -> None:
    seen = []
    for extra in ((), ("--disable-gpu",)):
        executor = ChromiumExecutor(browser, browser_flags.flags(browser_flags.AdapterAsked.any, extra))
        session = executor.launch({})
        seen.append(set(session.build.flags))
        assert session.build.driver_version.startswith("playwright ")
        session.close()
        executor.close()
    assert seen[1] - seen[0] == {"--disable-gpu"}
    assert seen[0] - seen[1] == set()


def test_b54_without_adapter_info_a_field_is_lost_and_not_the_run(chromium: ChromiumExecutor) -> None:
    session = chromium.browse()
    page_run(session, "delete GPUAdapter.prototype.info")
    session.open({})
    assert session.adapter.vendor == "unknown"
    assert session.adapter.is_fallback is ("swiftshader" in session.adapter.renderer.lower())
    session.close()


def test_b57_the_sandbox_is_decided_and_says_why(session: ChromiumSession) -> None:
    on, why = browser_flags.sandbox()
    assert why
    assert ("--no-sandbox" in session.build.flags) is not on


@pytest.fixture
def wrapper(tmp_path: Path, browser: Browser) -> Callable[[str, str], Path]:
    """Writes a script that stands for the browser: what it does for --version, and otherwise."""

    def write(version: str, otherwise: str) -> Path:
        path = tmp_path / "browser"
        path.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then {version}; exit; fi\n{otherwise}\n'.replace(
                "REAL", str(browser.path)
            )
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


def test_b55_a_build_that_is_not_what_it_says_is_refused(wrapper: Callable[[str, str], Path]) -> None:
    path = wrapper("echo Chromium 1.2.3.4", 'exec REAL "$@"')
    executor = ChromiumExecutor(find.find(str(path)), browser_flags.flags(browser_flags.AdapterAsked.any))
    with pytest.raises(ExecutorFault, match=r"reports version 1\.2\.3\.4 but \d+"):
        executor.launch({})
    executor.close()


def test_b55_a_build_that_changes_between_two_launches_is_refused(wrapper: Callable[[str, str], Path]) -> None:
    path = wrapper("exec REAL --version", 'exec REAL "$@"')
    executor = ChromiumExecutor(find.find(str(path)), browser_flags.flags(browser_flags.AdapterAsked.any))
    executor.launch({}).close()
    wrapper("echo Chromium 9.9.9.9", 'exec REAL "$@"')
    with pytest.raises(ExecutorFault, match="the browser changed during the run"):
        executor.launch({})
    executor.close()


def test_b56_a_browser_that_is_not_there_is_one_line_with_the_path_and_the_option() -> None:
    with pytest.raises(BrowserMissing, match=r"^no browser at /no/such/browser \(a path"):
        find.find("/no/such/browser")


def test_b56_a_program_that_is_no_browser_is_one_line_with_its_exit(wrapper: Callable[[str, str], Path]) -> None:
    with pytest.raises(BrowserMissing, match=r"--version: exit 3, no display") as caught:
        find.find(str(wrapper("echo no display; exit 3", "exit 3")))
    assert "\n" not in str(caught.value)


def test_an_old_shell_that_knows_no_version_option_is_asked_by_its_devtools(
    wrapper: Callable[[str, str], Path], browser: Browser
) -> None:
    assert find.find(str(wrapper("exit 1", 'exec REAL "$@"'))).version == browser.version


def test_b56_a_browser_that_exits_at_once_is_a_crash_with_one_line(wrapper: Callable[[str, str], Path]) -> None:
    path = wrapper("echo Chromium 1.2.3.4", "exit 3")
    executor = ChromiumExecutor(find.find(str(path)), ())
    with pytest.raises(ExecutorFault) as caught:
        executor.launch({})
    assert caught.value.outcome is Outcome.crashed
    assert "\n" not in caught.value.detail
    executor.close()


def test_b42_a_large_output_comes_back_whole_and_in_time(session: ChromiumSession) -> None:
    big = program(TRIVIAL, elements=1_000_000)
    session.load(big)
    session.reset(big)
    began = time.monotonic()
    _, got = session.outputs(big)
    assert np.array_equal(got["data"], fill.contents(big.buffers[0]))
    assert time.monotonic() - began < 10
