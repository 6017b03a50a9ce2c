"""Taking up a run that ended early, and running a program of one's own."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rig import config, frames, store
from rig.executors.base import ExecutorFault
from rig.measure import Exit, measure, resume
from rig.records import Outcome
from tests.conftest import RunIt, small_profile
from tests.scripted import ADAPTER, ScriptedExecutor, ScriptedSession


@pytest.fixture
def cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of three launches that was killed in its second, in the middle of a line."""
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005

    def interrupt(session: ScriptedSession, policy: object, n: int) -> None:  # noqa: ARG001
        if session.number == 2 and session.executions == 30:
            raise KeyboardInterrupt

    place = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        measure(small_profile(), ScriptedExecutor(fault=interrupt), place, ("rig",))
    with (place / "samples.jsonl").open("ab") as file:
        file.write(b'{"experiment":"single_')
    return place


def test_a_run_that_was_killed_is_finished_with_the_launches_that_are_missing(cut_short: Path) -> None:
    code, why = resume(cut_short, ScriptedExecutor())
    run = frames.read(cut_short)
    assert (code, why) == (Exit.fine, "last look, 3 launches")
    assert run.manifest.finished
    assert len(run.manifest.resumed) == 1
    # the launch that was cut short keeps its samples, which don't count, and its number
    assert [launch.launch for launch in run.launches] == [0, 2, 3]
    assert set(run.samples.loc[run.samples["launch"] == 1, "void"]) == {"launch without an end"}


def test_a_finished_run_is_not_taken_up(cut_short: Path) -> None:
    resume(cut_short, ScriptedExecutor())
    with pytest.raises(store.StoreError, match="is finished"):
        resume(cut_short, ScriptedExecutor())


def test_a_precision_that_was_demanded_is_still_demanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005

    def interrupt(session: ScriptedSession, policy: object, n: int) -> None:  # noqa: ARG001
        if session.number == 2 and session.executions == 30:
            raise KeyboardInterrupt

    command = ("rig", "run", "--precision", "0.0000001")
    with pytest.raises(KeyboardInterrupt):
        measure(small_profile(precision=1e-7), ScriptedExecutor(fault=interrupt), tmp_path / "run", command)
    assert resume(tmp_path / "run", ScriptedExecutor())[0] is Exit.imprecise


def test_b55_another_build_does_not_go_on_with_a_run(cut_short: Path) -> None:
    with pytest.raises(store.StoreError, match="another build or other flags"):
        resume(cut_short, ScriptedExecutor(build_id="scripted 1.2.3.5"))


def test_another_gpu_or_driver_does_not_go_on_with_a_run(cut_short: Path) -> None:
    other = msgspec.structs.replace(ADAPTER, driver="scripted 2.0")
    code, why = resume(cut_short, ScriptedExecutor(adapter=other))
    assert code is Exit.software_refused
    assert "the run was begun on scripted paper (scripted 1.0)" in why


def test_another_machine_does_not_go_on_with_a_run(cut_short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = store.read_manifest(cut_short).host
    monkeypatch.setattr("rig.measure.host.describe", lambda: msgspec.structs.replace(here, cpu="another"))
    with pytest.raises(store.StoreError, match="another machine"):
        resume(cut_short, ScriptedExecutor())


def test_a_run_whose_launches_all_failed_is_taken_up_with_numbers_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005
    broken = ScriptedExecutor(start_fault=ExecutorFault(Outcome.crashed, "no start"))
    measure(small_profile(), broken, tmp_path / "run", ("rig",))
    assert resume(tmp_path / "run", ScriptedExecutor())[0] is Exit.fine
    numbers = [launch.launch for launch in frames.read(tmp_path / "run").launches]
    assert len(set(numbers)) == len(numbers)


PROGRAM = """{"name": "twice", "hazard": "chained", "outputs": ["y"],
  "buffers": [{"name": "y", "dtype": "f32", "elements": 64, "fill": {"kind": "constant", "value": 1}}],
  "kernels": [{"name": "twice", "wgsl_file": "twice.wgsl"}],
  "dispatches": [{"kernel": "twice", "bindings": ["y"], "workgroups": [1, 1, 1]}]}"""


def written(tmp_path: Path, text: str = PROGRAM) -> Path:
    (tmp_path / "twice.wgsl").write_text("@compute @workgroup_size(64) fn main() {}", encoding="utf-8")
    (tmp_path / "twice.json").write_text(text, encoding="utf-8")
    return tmp_path / "twice.json"


def test_a_program_from_a_file_is_spelled_out_in_the_profile(tmp_path: Path) -> None:
    profile = config.load("quick", ["program"], program=written(tmp_path))
    program = profile.options["program"].program
    assert (program.name, program.kernels[0].wgsl[:8]) == ("twice", "@compute")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PROGRAM.replace('"outputs": ["y"]', '"outputs": ["z"]'), "twice: z"),
        (PROGRAM.replace('"bindings": ["y"]', '"bindings": ["x"]'), "no such buffer or kernel: x"),
        (PROGRAM.replace("twice.wgsl", "gone.wgsl"), "No such file"),
        (PROGRAM.replace('"f32"', '"f64"'), "Invalid enum value 'f64'"),
        ("{", "truncated"),
    ],
)
def test_a_program_that_is_wrong_gets_one_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(config.ProfileError, match=said):
        config.load("quick", ["program"], program=written(tmp_path, text))


def test_a_program_without_a_reference_is_held_against_itself(run_it: RunIt, tmp_path: Path) -> None:
    program = config.load("quick", ["program"], program=written(tmp_path)).options["program"].program
    options = {"program": msgspec.to_builtins(program), "blocks": 2, "counts": [50, 100, 200, 400]}
    profile = small_profile(experiments=["program"], program=options, single_op={}, sequential={})

    class Drifting(ScriptedExecutor):
        """Other outputs at each look."""

        def launch(self, limits: dict[str, int], extra_flags: tuple[str, ...] = ()) -> ScriptedSession:
            session, looks = super().launch(limits, extra_flags), itertools.count()
            session.outputs = lambda of: (session.issued[of.name], {"y": np.full(64, next(looks))})  # type: ignore[method-assign,assignment]
            return session

    _, _, run = run_it(Drifting(), profile)
    wrong = [check for launch in run.launches for check in launch.checks if check.outcome is Outcome.mismatch]
    assert wrong
