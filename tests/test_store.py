"""The run directory: survives a kill, reads packed or plain, refuses what is not whole."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from rig import frames, store
from rig.measure import measure, render
from rig.publish import publish
from rig.records import Outcome, Sample
from tests.conftest import RunIt, small_profile
from tests.scripted import ADAPTER, ScriptedExecutor


def sample(n: int) -> Sample:
    return Sample(experiment="e", cell="c", launch=0, block=1, order=0, n=n, outcome=Outcome.ok, wall_us=1.0)


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    measure(small_profile(), ScriptedExecutor(), tmp_path / "run", ("rig",))
    return tmp_path / "run"


def test_a_line_cut_short_by_a_kill_is_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    with store.Writer(tmp_path / "run") as writer:
        writer.sample(sample(1))
        writer.sample(sample(2))
    path = tmp_path / "run" / store.SAMPLES
    path.write_bytes(path.read_bytes()[:-10])
    assert [s.n for s in store.read_samples(tmp_path / "run")] == [1]


def test_a_broken_line_in_the_middle_is_an_error_with_its_place(tmp_path: Path) -> None:
    with store.Writer(tmp_path / "run") as writer:
        for n in (1, 2, 3):
            writer.sample(sample(n))
    path = tmp_path / "run" / store.SAMPLES
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], b"{", lines[2], b""]))
    with pytest.raises(store.StoreError, match=r"samples\.jsonl:2: "):
        store.read_samples(tmp_path / "run")


def test_a_folder_with_something_in_it_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(store.StoreError, match="is not empty"):
        store.Writer(tmp_path)


def test_a_run_has_the_files_of_the_contract(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == {
        store.MANIFEST,
        store.CELLS,
        store.PROGRAMS,
        store.LAUNCHES,
        store.SAMPLES,
        store.SUMMARY,
        store.REPORT,
    }


def test_summary_and_report_are_made_again_from_the_other_four_alone(finished: Path) -> None:
    before = {name: (finished / name).read_bytes() for name in (store.SUMMARY, store.REPORT)}
    for name in before:
        (finished / name).unlink()
    render(finished)
    assert {name: (finished / name).read_bytes() for name in before} == before


def test_a_published_run_is_packed_and_says_the_same(finished: Path, tmp_path: Path) -> None:
    place = publish(finished, tmp_path / "reports" / "name")
    packed = gzip.decompress((place / "samples.jsonl.gz").read_bytes())
    assert sorted(packed.splitlines()) == sorted((finished / store.SAMPLES).read_bytes().splitlines())
    assert (place / store.SUMMARY).read_bytes() == (finished / store.SUMMARY).read_bytes()
    ours, theirs = (
        frames.read(run).samples.sort_values(["experiment", "cell", "launch", "block", "order"], ignore_index=True)
        for run in (place, finished)
    )
    assert ours.equals(theirs)


def test_publishing_does_not_overwrite_and_leaves_nothing_when_it_fails(finished: Path, tmp_path: Path) -> None:
    publish(finished, tmp_path / "reports" / "name")
    with pytest.raises(store.StoreError, match="already there"):
        publish(finished, tmp_path / "reports" / "name")
    for name in ("../evil", "Loud", "a b", ""):
        with pytest.raises(store.StoreError):
            publish(finished, tmp_path / "reports" / name)
    with pytest.raises(store.StoreError, match="is not a run"):
        publish(tmp_path, tmp_path / "reports" / "other")
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["name"]


def test_what_was_measured_before_a_kill_can_still_be_reported(tmp_path: Path) -> None:
    class Killed(BaseException):
        """Stands for SIGKILL: nothing after it is written by the rig."""

    place = tmp_path / "run"
    measure(small_profile(), ScriptedExecutor(), place, ("rig",))
    for name in (store.SUMMARY, store.REPORT):
        (place / name).unlink()
    launches = (place / store.LAUNCHES).read_bytes().splitlines(keepends=True)
    (place / store.LAUNCHES).write_bytes(b"".join(launches[:-1]))  # the last launch never ended
    summary = render(place)
    assert summary.metrics
    lost = frames.read(place).samples.query("launch == 2")
    assert set(lost["void"]) == {"launch without an end"}


def test_b44_a_run_is_read_and_written_whatever_the_locale(run_it: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setenv("LC_ALL", "C")
    named = msgspec.structs.replace(ADAPTER, device="显卡 🚀 <b>/../\\ \udcf8".encode("utf-8", "replace").decode())
    _, _, run = run_it(ScriptedExecutor(adapter=named))
    assert run.launches[0].adapter == named


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (store.SAMPLES, b'"n":200', b'"n":400', "its cell"),
        (store.MANIFEST, b'"schema": 1', b'"schema": 99', "schema 99"),
        (store.CELLS, b'"n": 200', b'"n": 400', "is not the key of its cell"),
        (store.LAUNCHES, b'"launch":1', b'"launch":0', "launch 0 is there 2 times"),
        (store.SAMPLES, b'"launch":1', b'"launch":0', "is there 2 times"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    finished: Path, name: str, old: bytes, new: bytes, said: str
) -> None:
    path = finished / name
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(store.StoreError, match=said):
        render(finished)


def test_a_packed_file_cut_short_is_an_error_that_names_it(finished: Path, tmp_path: Path) -> None:
    place = publish(finished, tmp_path / "reports" / "name")
    packed = place / "samples.jsonl.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(store.StoreError, match=r"samples\.jsonl\.gz"):
        store.read_samples(place)


def test_a_run_that_is_being_written_is_known_to_be(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with store.Writer(place):
        assert store.in_use(place)
    assert not store.in_use(place)
    assert not store.in_use(tmp_path / "nothing")


def test_a_figure_that_the_wall_or_the_checks_do_not_vouch_for_does_not_count(finished: Path) -> None:
    run = frames.read(finished)
    samples, launches = store.read_samples(finished), list(run.launches)
    samples[-1] = msgspec.structs.replace(samples[-1], span_us=(samples[-1].wall_us or 0) * 2)
    samples[-2] = msgspec.structs.replace(samples[-2], wall_us=-5.0)
    launches[0] = msgspec.structs.replace(launches[0], checks=())
    void = frames.assemble(run.manifest, run.cells, launches, samples).samples["void"]
    assert void.iloc[-1] == "a span that the wall does not hold"
    assert void.iloc[-2] == "no wall time"
    assert void.iloc[0] == "launch without a closing check"
