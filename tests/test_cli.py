"""The command line: one clear line for each way to fail, and the contract's exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rig import analysis, frames, store
from rig.browsers.find import Browser

pytestmark = pytest.mark.browser

SMALL = (
    "single_op.blocks=3",
    "sequential.blocks=2",
    "sequential.counts=[1,5,20,100]",
    "launches.looks=[2]",
    "budget_s=30",
    "gates.full=note",
)

WITHOUT_UNSAFE = """
args=()
for a in "$@"; do [ "$a" = --enable-unsafe-webgpu ] || args+=("$a"); done
exec REAL "${args[@]}"
"""


ROOT = Path(__file__).resolve().parents[1]


def rig(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from rig.cli import main; main()", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | environment,
        timeout=120,
        check=False,
    )


def small(out: Path, *words: str | Path) -> list[str | Path]:
    return ["run", *words, *(word for assignment in SMALL for word in ("--set", assignment)), "--out", out]


def failed(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one line that says why; any other line on stderr tells progress."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("rig: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def wrapper(tmp_path: Path, browser: Browser, script: str) -> Path:
    path = tmp_path / "browser"
    path.write_text(f"#!/bin/bash\n{script}\n".replace("REAL", str(browser.path)))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_unknown_experiment_is_usage_and_names_those_there_are(tmp_path: Path) -> None:
    line = failed(rig(*small(tmp_path / "run", "sequentail")), 2)
    assert "unknown experiment 'sequentail' (there are single_op, sequential, " in line
    assert not (tmp_path / "run").exists()


def test_an_unknown_executor_is_usage_and_names_those_there_are(tmp_path: Path) -> None:
    line = failed(rig(*small(tmp_path / "run", "--also", "wgpu,vulkan")), 2)
    assert "--also vulkan: there are wgpu, dawn, cuda" in line
    assert not (tmp_path / "run").exists()


def test_an_executor_that_is_not_installed_is_no_result_at_once_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIG_DAWN", str(tmp_path))
    line = failed(rig(*small(tmp_path / "run", "--also", "dawn")), 3)
    assert f"Dawn is not at {tmp_path}: npm install webgpu" in line


def test_what_was_asked_for_wrongly_moves_no_earlier_run(tmp_path: Path) -> None:
    kept = (tmp_path / "run", tmp_path / "run.previous")
    for place in kept:
        place.mkdir()
        (place / store.MANIFEST).write_text(place.name)
    failed(rig(*small(tmp_path / "run", "--replace", "--also", "wgpuu")), 2)
    failed(rig(*small(tmp_path / "run", "--replace", "--also", "dawn"), RIG_DAWN="/not/there"), 3)
    assert [(place / store.MANIFEST).read_text() for place in kept] == ["run", "run.previous"]


def test_a_run_that_is_not_whole_is_not_taken_up_and_says_so_at_once(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "reports" / "first-light", tmp_path / "run")
    manifest = tmp_path / "run" / store.MANIFEST
    manifest.write_text(manifest.read_text().replace('"finished": true', '"finished": false'))
    (tmp_path / "run" / store.CELLS).unlink()
    assert rig("run", "--resume", tmp_path / "run").returncode == 2


def test_a_broken_profile_is_usage_and_names_the_place(tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(
        'name = "p"\nseed = 1\nbudget_s = "long"\nlaunches = { looks = [2] }\nexperiments = ["single_op"]\n'
    )
    line = failed(rig("run", "--profile", profile, "--out", tmp_path / "run"), 2)
    assert "budget_s: Expected `float`, got `str`" in line


def test_an_unwritable_folder_is_usage_before_anything_is_measured(browser: Browser) -> None:  # noqa: ARG001
    line = failed(rig(*small(Path("/dev/null/run"))), 2)
    assert "can't write to /dev/null/run" in line


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    assert "is not empty" in failed(rig(*small(tmp_path, "--replace")), 2)
    assert (tmp_path / "mine").read_text() == "precious"


def test_b56_a_missing_browser_is_no_result_with_the_option_to_set(tmp_path: Path) -> None:
    line = failed(rig(*small(tmp_path / "run", "--browser", "/no/such/browser")), 3)
    assert "no browser at /no/such/browser (a path" in line


def test_b01_no_webgpu_is_no_result_and_names_the_missing_flag(tmp_path: Path, browser: Browser) -> None:
    path = wrapper(tmp_path, browser, WITHOUT_UNSAFE)
    line = failed(rig(*small(tmp_path / "run", "--browser", path)), 3)
    assert "no adapter" in line
    assert "runs without --enable-unsafe-webgpu" in line
    assert store.read_samples(tmp_path / "run") == []
    assert store.read_launches(tmp_path / "run")[0].outcome == "not_supported"


def test_require_hardware_on_a_software_adapter_exits_5_and_the_doctor_agrees(tmp_path: Path) -> None:
    done = rig(*small(tmp_path / "run", "--require-hardware"))
    if done.returncode == 0:
        assert not store.read_launches(tmp_path / "run")[0].adapter.is_fallback  # type: ignore[union-attr]
        return
    assert "asked for hardware, got the software adapter" in failed(done, 5)
    assert "no hardware adapter" in failed(rig("doctor", "--require-hardware"), 5)


def test_a_small_run_is_fine_names_its_adapter_and_can_be_reported_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = rig(*small(out))
    assert done.returncode == 0, done.stderr
    adapter = store.read_launches(out)[0].adapter
    assert adapter is not None
    assert ("software adapter" in done.stdout) is adapter.is_fallback
    before = (out / store.SUMMARY).read_bytes()
    again = rig("report", out, RIG_BROWSER="/no/such/browser")
    assert again.returncode == 0, again.stderr
    assert (out / store.SUMMARY).read_bytes() == before


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_b59_a_run_that_is_told_to_stop_stores_what_it_has_and_leaves_no_browser(tmp_path: Path, stop: int) -> None:
    out = tmp_path / "run"
    words = [str(word) for word in small(out, "--set", "launches.looks=[50]", "--set", "budget_s=100")]
    process = subprocess.Popen(
        [sys.executable, "-c", "from rig.cli import main; main()", *words],
        stderr=subprocess.PIPE,
        text=True,
        # a shell's background job, which these tests may be, ignores SIGINT, and so would its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (store.is_run(out) and len(store.read_samples(out)) > 30):
        time.sleep(0.1)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(stop)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert f"rig: interrupted; what was measured is in {out}" in said
    assert not store.read_manifest(out).finished
    assert (out / store.REPORT).is_file()
    gone, left = psutil.wait_procs(children, timeout=10)
    assert gone
    assert not left


def test_replace_keeps_the_earlier_run_beside_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for _ in range(2):
        assert rig(*small(out, "single_op", "--replace")).returncode == 0
    assert store.is_run(tmp_path / "run.previous")
    started = [store.read_manifest(path).started for path in (tmp_path / "run.previous", out)]
    assert started[0] < started[1]


@pytest.mark.parametrize("verb", ["report", "publish"])
def test_a_folder_that_is_no_run_is_usage(tmp_path: Path, verb: str) -> None:
    failed(rig(verb, tmp_path, *(["x"] if verb == "publish" else [])), 2)


def test_the_lists_name_what_there_is() -> None:
    assert "sequential" in rig("experiments").stdout
    assert "quick" in rig("profiles").stdout


def test_a_program_of_ones_own_runs_under_each_policy_and_its_run_can_not_be_resumed_once_finished(
    tmp_path: Path,
) -> None:
    wgsl = """override A: f32;
      @group(0) @binding(0) var<storage, read> x: array<f32>;
      @group(0) @binding(1) var<storage, read_write> y: array<f32>;
      @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] += A * x[id.x]; }"""
    buffers = [
        {"name": name, "dtype": "f32", "elements": 64, "fill": {"kind": "hash", "seed": seed, "below": 9}}
        for seed, name in enumerate("xy")
    ]
    program = {
        **{"name": "axpy", "hazard": "chained", "buffers": buffers, "outputs": ["y"]},
        "kernels": [{"name": "axpy", "wgsl": wgsl, "constants": {"A": 0.5}}],
        "dispatches": [{"kernel": "axpy", "bindings": ["x", "y"], "workgroups": [1, 1, 1]}],
    }
    (tmp_path / "axpy.json").write_text(json.dumps(program), encoding="utf-8")
    sets = ("launches.looks=[2]", "budget_s=2", "program.blocks=2", "program.counts=[20,40,80,160]")
    words = [word for assignment in sets for word in ("--set", assignment)]
    done = rig("run", "--program", tmp_path / "axpy.json", *words, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    run = frames.read(tmp_path / "run")
    assert {m.variant["policy"] for m in analysis.summarise(run).metrics} == {"submit_each", "one_pass"}
    hashes = {check.detail for launch in run.launches for check in launch.checks if check.program == "axpy"}
    assert len([detail for detail in hashes if "no reference; outputs agree" in detail]) == 1
    assert "is finished" in failed(rig("run", "--resume", tmp_path / "run"), 2)
