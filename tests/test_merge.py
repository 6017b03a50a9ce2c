"""Joining runs: launches numbered through, and nothing joined that was not made alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from rig import analysis, cli, frames, store
from rig.config import Profile
from rig.measure import measure, render
from rig.merge import merge
from tests.conftest import small_profile
from tests.scripted import ADAPTER, ScriptedExecutor
from tests.test_compare import QUIET

Make = Callable[..., Path]


def with_arms() -> Profile:
    """Each round launches every arm once."""
    return small_profile(
        launches={"looks": [2]},
        experiments=["single_op", "validation"],
        single_op={"blocks": 2},
        validation={"blocks": 2},
    )


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005
    monkeypatch.setattr("rig.host.state", lambda *_: QUIET)

    def make(name: str, profile: Profile | None = None, **options: object) -> Path:
        executor = ScriptedExecutor(launches=100 * ord(name[0]), **options)  # type: ignore[arg-type]
        measure(profile or small_profile(launches={"looks": [2]}), executor, tmp_path / name, ("rig", "run", name))
        return tmp_path / name

    return make


def edited(run: Path, file: str, change: Callable[[dict[str, object]], None]) -> Path:
    """The same run with one JSON file changed, each of its lines."""
    lines = (
        [json.loads(line) for line in (run / file).read_text().splitlines()]
        if file.endswith("l")
        else [json.loads((run / file).read_text())]
    )
    for line in lines:
        change(line)
    (run / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_launches_rounds_and_samples_are_numbered_through_and_stay_together(made: Make, tmp_path: Path) -> None:
    runs = [made(name, with_arms()) for name in ("a", "b")]
    merge(tmp_path / "joined", runs)
    joined, parts = frames.read(tmp_path / "joined"), [frames.read(run) for run in runs]
    assert [launch.launch for launch in joined.launches] == list(range(sum(len(part.launches) for part in parts)))
    rounds = {(launch.round, launch.arm) for launch in joined.launches}
    assert len(rounds) == len(joined.launches)
    assert max(number for number, _ in rounds) == 3
    for column in ("wall_us", "arm", "void", "block", "cell"):
        assert joined.samples[column].tolist() == [x for part in parts for x in part.samples[column]]
    first = len(parts[0].launches)
    assert set(joined.samples["launch"][len(parts[0].samples) :]) == set(range(first, len(joined.launches)))


def test_figures_are_over_all_launches_and_summary_and_report_are_computed_anew(made: Make, tmp_path: Path) -> None:
    runs = [made(name) for name in ("a", "b", "c")]
    merge(tmp_path / "joined", runs)
    stored = store.read_summary(tmp_path / "joined")
    store.write_summary(tmp_path / "again.json", analysis.summarise(frames.read(tmp_path / "joined")))
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "joined" / store.SUMMARY).read_bytes()
    latency = next(metric for metric in stored.metrics if metric.metric == "single_op.latency_us")
    assert latency.n_launches == 6
    values = [
        value
        for run in runs
        for metric in store.read_summary(run).metrics
        if metric.key == latency.key
        for value in metric.per_launch.values()
    ]
    assert list(latency.per_launch.values()) == values
    assert (tmp_path / "joined" / store.REPORT).is_file()
    render(tmp_path / "joined")
    assert store.read_summary(tmp_path / "joined") == stored


def test_the_manifest_keeps_every_command_and_says_what_was_joined(made: Make, tmp_path: Path) -> None:
    a, b, c = (made(name) for name in ("a", "b", "c"))
    merge(tmp_path / "ab", [a, b])
    manifest = merge(tmp_path / "abc", [tmp_path / "ab", c])
    assert manifest.joined == (("rig", "run", "a"), ("rig", "run", "b"), ("rig", "run", "c"))
    assert manifest == store.read_manifest(tmp_path / "abc")
    assert manifest.why.startswith("joined from 2 runs: joined from 2 runs: last look")
    assert (manifest.started, manifest.ended) == (store.read_manifest(a).started, store.read_manifest(c).ended)
    assert manifest.plan.profile["budget_s"] == 180
    assert manifest.finished


def test_other_budgets_and_seeds_are_joined(made: Make, tmp_path: Path) -> None:
    a = made("a")
    b = made("b", small_profile(launches={"looks": [2]}, seed=7, budget_s=30))
    assert merge(tmp_path / "joined", [a, b]).plan.profile["budget_s"] == 90


def test_a_run_with_one_that_did_not_finish_did_not_finish(made: Make, tmp_path: Path) -> None:
    def stop(manifest: dict[str, object]) -> None:
        manifest["finished"] = False

    assert not merge(tmp_path / "joined", [made("a"), edited(made("b"), store.MANIFEST, stop)]).finished


def machine(manifest: dict[str, object]) -> None:
    manifest["host"]["cores"] = 128  # type: ignore[index]


def rig(manifest: dict[str, object]) -> None:
    manifest["rig"]["source_hash"] = "another"  # type: ignore[index]


def build(launch: dict[str, object]) -> None:
    launch["build"]["sha256"] = "1" * 64  # type: ignore[index]


def flags(launch: dict[str, object]) -> None:
    launch["build"]["flags"].append("--x")  # type: ignore[index]


@pytest.mark.parametrize(
    ("file", "change", "line"),
    [
        (store.MANIFEST, machine, ", 128 cores"),
        (store.MANIFEST, rig, "against another"),
        (store.LAUNCHES, build, f"builds: sha256 {'0' * 64} against {'1' * 64}"),
        (store.LAUNCHES, flags, "builds: flags --scripted against --scripted --x"),
    ],
)
def test_b55_another_machine_rig_or_build_is_refused_in_one_line(
    made: Make, tmp_path: Path, file: str, change: Callable[[dict[str, object]], None], line: str
) -> None:
    refused(tmp_path, made("a"), edited(made("b"), file, change), line=line)


def test_b02_another_adapter_is_refused_in_one_line(made: Make, tmp_path: Path) -> None:
    hardware = msgspec.structs.replace(ADAPTER, is_fallback=False)
    refused(tmp_path, made("a"), made("b", adapter=hardware), line="adapters: is_fallback True against False")


def test_another_plan_is_refused_with_the_option_that_differs(made: Make, tmp_path: Path) -> None:
    other = small_profile(launches={"looks": [2]}, single_op={"blocks": 7})
    refused(tmp_path, made("a"), made("b", other), line="plans: single_op.blocks 6 against 7")


def test_other_cells_are_refused(made: Make, tmp_path: Path) -> None:
    b = made("b", build_id="scripted 1.2.3.5")
    refused(tmp_path, made("a"), b, line="cells are in one of them alone")


def test_a_launch_does_not_count_twice(made: Make, tmp_path: Path) -> None:
    a = made("a")
    refused(tmp_path, a, a, line="already")


def test_one_run_is_nothing_to_join(made: Make, tmp_path: Path) -> None:
    refused(tmp_path, made("a"), line="two runs or more")


def test_a_folder_with_something_in_it_is_left_alone(made: Make, tmp_path: Path) -> None:
    (tmp_path / "joined").mkdir()
    (tmp_path / "joined" / "mine").write_text("precious")
    done = CliRunner().invoke(cli.app, ["merge", str(tmp_path / "joined"), str(made("a")), str(made("b"))])
    assert (done.exit_code, "is not empty" in done.stderr) == (2, True)
    assert [path.name for path in (tmp_path / "joined").iterdir()] == ["mine"]


def refused(tmp_path: Path, *runs: Path, line: str) -> None:
    """Exit 2 with one line that says it, and nothing written."""
    done = CliRunner().invoke(cli.app, ["merge", str(tmp_path / "joined"), *map(str, runs)])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert line in done.stderr
    assert not (tmp_path / "joined").exists()
