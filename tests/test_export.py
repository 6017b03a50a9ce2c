"""A run as CSV: every number comes back as it was, and what is absent is an empty cell."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from typer.testing import CliRunner

from rig import analysis, cli, export, frames, store
from rig.measure import measure
from rig.records import Launch, Outcome
from tests.conftest import small_profile
from tests.scripted import CLOCK, ScriptedExecutor, fault_at
from tests.test_compare import QUIET


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two arms; some samples without a time, a launch that broke, and CPU time by thread."""
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005
    monkeypatch.setattr("rig.host.state", lambda *_: QUIET)
    executor = ScriptedExecutor(
        fault=fault_at(Outcome.validation_error, n=50, launches=3),
        cpu_us=lambda n: {"gpu_main": 3.1 * n, "renderer_main": 1.7 * n},
    )
    profile = small_profile(
        experiments=["sequential", "validation"],
        sequential={"blocks": 2, "counts": [1, 20, 50, 100, 200]},
        validation={"blocks": 2},
    )
    measure(profile, executor, tmp_path / "run", ("rig",))
    return tmp_path / "run"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def the_same(text: str, value: object) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return text == ""
    return float(text) == value if isinstance(value, (int, float)) else text == str(value)


def test_samples_come_back_as_they_were_with_the_columns_of_the_frames(run: Path) -> None:
    export.export(run)
    stored, got = frames.read(run), rows(run / "csv" / export.SAMPLES)
    assert len(got) == len(stored.samples)
    nested = ["cpu_us", "switches", "calls_us"]
    for column in stored.samples.columns.drop(nested):
        for row, value in zip(got, stored.samples[column].tolist(), strict=True):
            assert the_same(row[column], value), (column, row[column], value)
    for row, value in zip(got, stored.samples["cpu_us"], strict=True):
        assert the_same(row["cpu_us.gpu_main"], value["gpu_main"] if isinstance(value, dict) else None)
    assert {"program", "policy", "waiter", "arm", "round", "void"} <= got[0].keys()
    assert any(row["void"] == "validation_error" and row["wall_us"] == "" for row in got)
    assert any(row["arm"] for row in got)


def test_metrics_have_their_variant_in_columns_of_its_own_and_their_values_by_launch(run: Path) -> None:
    export.export(run)
    got = {row["key"]: row for row in rows(run / "csv" / export.METRICS)}
    for metric in analysis.summarise(frames.read(run)).metrics:
        row = got[metric.key]
        assert {name.partition(".")[2] for name, text in row.items() if name.startswith("variant.") and text} == set(
            metric.variant
        )
        for field in ("value", "ci_low", "ci_high", "ci_level", "n_launches", "unit", "outcome", "reason"):
            assert the_same(row[field], getattr(metric, field)), (metric.key, field)
        for launch, value in metric.per_launch.items():
            assert float(row[f"per_launch.{launch}"]) == value
    assert len(got) == len(store.read_summary(run).metrics)


def test_launches_have_build_adapter_clock_and_host_in_columns(run: Path) -> None:
    export.export(run)
    for row, launch in zip(rows(run / "csv" / export.LAUNCHES), store.read_launches(run), strict=True):
        assert (row["launch"], row["arm"], row["outcome"]) == (str(launch.launch), launch.arm, launch.outcome)
        assert row["build.version"] == "1.2.3.4"
        assert row["adapter.is_fallback"] == "true"
        assert float(row["clock.tick_us"]) == CLOCK.tick_us
        assert int(row["host_before.memory_free_bytes"]) == launch.host_before.memory_free_bytes


def test_what_one_launch_lacks_whole_is_empty_in_the_columns_of_the_others(run: Path) -> None:
    launches = store.read_launches(run)
    launches[0] = msgspec.structs.replace(launches[0], adapter=None)
    text = export.table(Launch.__struct_fields__, [msgspec.to_builtins(launch) for launch in launches])
    head, first, *_ = csv.reader(text.splitlines(keepends=True))
    assert "adapter" not in head
    assert {cell for name, cell in zip(head, first, strict=True) if name.startswith("adapter.")} == {""}


def test_b43_no_cell_says_nan_or_none(run: Path) -> None:
    for path in export.export(run):
        for row in rows(path):
            assert not {"nan", "NaN", "None", "null", "inf", "NaT"} & set(row.values())


def test_it_is_rfc_4180_in_utf_8_and_any_tool_reads_it(tmp_path: Path) -> None:
    text = export.table(
        "abc", [{"a": 'say "Grüße",\r\n', "b": 0.1 + 0.2, "c": None}, {"a": "", "b": 5e-324, "c": True}]
    )
    assert text == 'a,b,c\r\n"say ""Grüße"",\r\n",0.30000000000000004,\r\n,5e-324,true\r\n'
    (tmp_path / "t.csv").write_bytes(text.encode())
    frame = pd.read_csv(tmp_path / "t.csv")
    assert frame["b"].tolist() == [0.1 + 0.2, 5e-324]


def test_the_command_names_the_files_it_wrote(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["export", str(run), "--out", str(tmp_path / "there")])
    assert done.exit_code == 0
    names = [export.SAMPLES, export.METRICS, export.LAUNCHES]
    assert done.stdout.split() == [str(tmp_path / "there" / name) for name in names]
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == sorted(names)
    assert not (run / "csv").exists()


@pytest.mark.parametrize("words", [["none"], ["run", "--out", "/dev/null/there"]])
def test_what_can_not_be_read_or_written_is_usage_in_one_line(run: Path, words: list[str]) -> None:
    done = CliRunner().invoke(cli.app, ["export", str(run.parent / words[0]), *words[1:]])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


def test_a_run_without_samples_has_the_columns_that_there_are(run: Path) -> None:
    stored = frames.read(run)
    empty = frames.assemble(stored.manifest, stored.cells, stored.launches, [])
    text = export.table(empty.samples.columns, empty.samples.to_dict("records"))
    assert text == ",".join(stored.samples.columns) + "\r\n"
