"""The way to a GPU: flags, a display where its driver wants one, a browser with a window, no untold fallback."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from rig import cli, host
from rig.browsers import display, find
from rig.browsers import flags as browser_flags
from rig.browsers.display import DisplayMissing, VirtualDisplay
from rig.browsers.find import BrowserMissing
from rig.browsers.flags import AdapterAsked
from rig.executors.base import ExecutorFault
from rig.executors.chromium import ChromiumExecutor
from rig.measure import Exit
from rig.records import Outcome
from tests.conftest import RunIt, small_profile
from tests.scripted import ScriptedExecutor

needs_xvfb = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed")


# --- what is asked for ---


def test_hardware_is_asked_for_in_a_window_on_nvidia_and_headless_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "has_nvidia", lambda: True)
    nvidia = browser_flags.flags(AdapterAsked.hardware)
    assert browser_flags.windowed(nvidia)
    assert "--enable-dawn-features=vulkan_enable_f16_on_nvidia" in nvidia
    monkeypatch.setattr(host, "has_nvidia", lambda: False)
    other = browser_flags.flags(AdapterAsked.hardware)
    assert not browser_flags.windowed(other)
    assert {"--ignore-gpu-blocklist", "--use-angle=vulkan"} < set(other)


def test_an_ablation_keeps_16_bit_floats_on_nvidia(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "has_nvidia", lambda: True)
    flags = (*browser_flags.flags(AdapterAsked.hardware), "--enable-dawn-features=skip_validation")
    both = "--enable-dawn-features=vulkan_enable_f16_on_nvidia,skip_validation"
    assert both in browser_flags.merged(flags)


def test_b02_where_a_gpu_is_there_nothing_falls_back_without_being_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, settled in ((True, AdapterAsked.hardware), (False, AdapterAsked.any)):
        monkeypatch.setattr(host, "has_gpu", lambda there=there: there)
        assert browser_flags.settled(AdapterAsked.any) is settled
        assert browser_flags.settled(AdapterAsked.software) is AdapterAsked.software


def test_a_render_node_is_a_gpu_only_with_a_driver_that_is_not_the_cpu(tmp_path: Path) -> None:
    dev, drivers = tmp_path / "dev", tmp_path / "icd.d"
    (dev / "dri").mkdir(parents=True)
    drivers.mkdir()
    assert not host.has_gpu(dev, [drivers])
    (dev / "dri" / "renderD128").touch()
    (drivers / "lvp_icd.x86_64.json").touch()
    assert not host.has_gpu(dev, [drivers])
    (drivers / "radeon_icd.x86_64.json").touch()
    assert host.has_gpu(dev, [drivers])


def test_an_nvidia_gpu_is_one_whose_device_files_are_there(tmp_path: Path) -> None:
    (tmp_path / "nvidiactl").touch()
    assert not host.has_nvidia(tmp_path)
    (tmp_path / "nvidia0").touch()
    assert host.has_nvidia(tmp_path)


# --- what is obtained ---


def test_b03_hardware_asked_for_and_not_obtained_is_refused_with_both_names(run_it: RunIt) -> None:
    code, why, _ = run_it(ScriptedExecutor(), asked=AdapterAsked.hardware)
    assert code is Exit.software_refused
    assert why == "asked for hardware, got the software adapter scripted paper (scripted 1.0)"


def test_no_adapter_at_all_where_hardware_was_asked_for_is_a_refusal_too(run_it: RunIt) -> None:
    fault = ExecutorFault(Outcome.not_supported, "no adapter: requestAdapter() gave null")
    code, why, _ = run_it(ScriptedExecutor(start_fault=fault), small_profile(), asked=AdapterAsked.hardware)
    assert (code, "requestAdapter() gave null" in why) == (Exit.software_refused, True)


@pytest.mark.browser
@pytest.mark.skipif(host.has_gpu(), reason="this machine has a GPU")
def test_b03_require_hardware_without_a_gpu_ends_with_5_and_the_doctors_reason(tmp_path: Path) -> None:
    words = ["run", "single_op", "--require-hardware", "--set", "gates.full=note", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == Exit.software_refused
    assert re.search(r"got the software adapter .*; the cause is GPU: none", done.output.replace("\n", " "))


# --- a display, and a browser to show on it ---


@needs_xvfb
def test_a_display_is_there_until_it_is_closed() -> None:
    own = VirtualDisplay()
    pid = own._process.pid
    assert re.fullmatch(r":\d+", own.name)
    assert psutil.Process(pid).name() == "Xvfb"
    own.close()
    assert not psutil.pid_exists(pid)


@needs_xvfb
def test_two_displays_have_two_numbers() -> None:
    first, second = VirtualDisplay(), VirtualDisplay()
    assert first.name != second.name
    first.close()
    second.close()


def test_a_display_that_can_not_be_had_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DisplayMissing, match="install it \\(Debian: xvfb\\)"):
        VirtualDisplay()
    silent = tmp_path / "Xvfb"
    silent.write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    silent.chmod(stat.S_IRWXU)
    monkeypatch.setattr(display, "START_LIMIT_S", 0.2)
    with pytest.raises(DisplayMissing, match="gave no display"):
        VirtualDisplay()


def test_a_window_is_asked_of_no_headless_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell, full = tmp_path / "chromium-headless-shell", tmp_path / "chromium"
    for path in (shell, full):
        path.write_text("#!/bin/sh\necho Chromium 156.0.1.2\n")
        path.chmod(stat.S_IRWXU)
    monkeypatch.setattr(find, "SYSTEM_PLACES", (str(shell), str(full)))
    monkeypatch.delenv("RIG_BROWSER", raising=False)
    assert find.find("system").path == shell
    assert find.find("system", windowed=True).path == full
    with pytest.raises(BrowserMissing, match="needs a browser with a window"):
        find.find(str(shell), windowed=True)


@pytest.mark.browser
@needs_xvfb
def test_a_browser_with_a_window_runs_on_a_display_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    try:
        full = find.find(windowed=True)
    except BrowserMissing:
        pytest.skip("no Chromium that can have a window")
    executor = ChromiumExecutor(full, browser_flags.flags(AdapterAsked.software, (browser_flags.WINDOWED,)))
    session = executor.launch({})
    try:
        assert not any(flag.startswith("--headless") for flag in session.build.flags)
        assert session.clock.visibility == "visible"
        assert "DISPLAY" not in os.environ
    finally:
        session.close()
        executor.close()
    assert executor._display is not None
    assert executor._display._process.poll() is not None
