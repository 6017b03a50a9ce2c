"""Figures of the papers beside ours: rows, which of them match, the estimators, and what accounts for a gap."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from typing import Any

import pytest
from msgspec.structs import replace

from rig import analysis
from rig.frames import Run
from rig.published import gaps, rows
from rig.published.beside import ESTIMATORS, IMPLEMENTATIONS, Beside, Timed, beside
from rig.published.rows import COLUMNS, Row
from rig.records import EXECUTOR, Metric, MetricOutcome, Summary
from rig.report import published
from rig.report.page import render
from tests import test_report
from tests.conftest import RunIt, small_profile
from tests.scripted import ADAPTER, CLOCK, Model, ScriptedExecutor

GPU = replace(ADAPTER, is_fallback=False)
COUNTS = [1, 10, 50, 100, 200, 300, 500, 700, 1000]
Variant = dict[str, str | int | float]
TOTAL: tuple[str, Variant] = ("sequential.total_over_n_us", {"policy": "submit_each", "n": 100})
WAITED: tuple[str, Variant] = ("single_op.latency_us", {"waiter": "work_done"})
CHROME_SEQUENTIAL_US = {20.4, 32.83333, 33.0}
"""On Vulkan: two files, and figure 1 of the later paper."""


def ran(
    run_it: RunIt,
    per_dispatch_us: float,
    fixed_us: float,
    *,
    floor_us: float = 0.0,
    **changes: Any,  # noqa: ANN401
) -> tuple[Run, Summary]:
    """A run of `sequential` whose costs are planted, on a GPU unless `changes` of the executor say otherwise."""
    model = Model({"submit_each": per_dispatch_us, "one_pass": 5.0}, fixed_us=fixed_us, floor_us=floor_us, noise=0.001)
    executor = ScriptedExecutor(**{"model": model, "adapter": GPU, **changes})
    sequential = {"blocks": 3, "counts": COUNTS}
    _, _, run = run_it(executor, small_profile(experiments=["sequential"], single_op={}, sequential=sequential))
    return run, analysis.summarise(run)


def a_metric(name: str, variant: Variant, value: float, executor: str = "") -> Metric:
    return Metric(
        experiment=name.partition(".")[0],
        metric=name,
        variant={**variant, EXECUTOR: executor} if executor else variant,
        unit="us",
        outcome=MetricOutcome.ok,
        value=value,
        ci_low=value * 0.9,
        ci_high=value * 1.1,
        n_launches=3,
    )


def with_metrics(*metrics: Metric) -> Summary:
    return Summary(schema=1, metrics=metrics, verdicts=())


def told(run: Run, summary: Summary) -> list[str]:
    """Sentences about the published figures of our own backend."""
    return gaps.sentences(run, summary, [pair for pair in beside(run, summary) if pair.near])


# --- rows --------------------------------------------------------------------------------------------------------


def test_every_row_parses_and_its_fields_are_sane() -> None:
    found = rows.read()
    assert len(found) == 614
    for row in found:
        assert math.isfinite(row.value)
        assert re.fullmatch(r"[a-z][a-zA-Z0-9_]*", row.experiment), row
        assert re.fullmatch(r"arXiv:\d{4}\.\d{5}v\d|[\w/.() -]+\.(json|md)", row.source_path), row
        assert re.fullmatch(r"[0-9a-f]{40}|", row.source_commit), row
        assert row.source_commit or row.source_path == "arXiv:2604.02344v1", row
        assert bool(row.spread_kind) == (row.spread is not None), row
        assert row.note == row.note.strip()


def a_line(**changes: str) -> str:
    fields = dict.fromkeys(COLUMNS, "") | {"experiment": "single_op", "value": "2", "unit": "us", "source_path": "x"}
    return ",".join((fields | changes).values())


def test_a_blank_field_is_absent_and_never_zero() -> None:
    (row,) = rows.parse(f"{','.join(COLUMNS)}\n{a_line()}\n")
    assert (row.value, row.spread, row.iterations, row.n_dispatches, row.gpu) == (2.0, None, None, None, "")


@pytest.mark.parametrize(
    "line",
    [
        a_line() + ",more",
        a_line().rpartition(",")[0],
        *(a_line(value=value) for value in ("", "fast", "nan", "inf")),
        a_line(unit="furlongs"),
        a_line(backend="glide"),
        a_line(n_dispatches="0"),
        a_line(n_dispatches="1.5"),
        a_line(spread="-1"),
        a_line(source_path=""),
        '"never closed',
    ],
)
def test_a_bad_row_is_an_error_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match="line 3"):
        rows.parse(f"{','.join(COLUMNS)}\n{a_line()}\n{line}\n")


def test_other_columns_are_an_error() -> None:
    with pytest.raises(ValueError, match="expected experiment"):
        rows.parse(a_line())


# --- matching ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def a_run() -> Run:
    """Three launches on a GPU, and no sample: what figures stand beside is up to the test."""
    return test_report.a_run(samples=[])


def matched(run: Run, *metrics: Metric) -> list[Beside]:
    return beside(run, with_metrics(*metrics))


@pytest.mark.parametrize(
    ("metric", "executor", "experiment"),
    [
        (WAITED, "", "single_op"),
        (TOTAL, "", "sequential"),
        (TOTAL, "wgpu", "sequential"),
        (TOTAL, "dawn", "sequential"),
        (("single_op.latency_us", {"waiter": "map"}), "dawn", "single_op"),
        (("single_op.latency_quantile_us", {"waiter": "map", "q": 0.95}), "dawn", "single_op_p95"),
        (("single_op.encode_us", {"waiter": "work_done"}), "wgpu", "single_op"),
        (("policy.total_over_n_us", {"policy": "pass_each", "n": 100}), "wgpu", "batched_one_submit"),
        (("anatomy.call_us", {"call": "submit"}), "wgpu", "cpu_call_submit"),
    ],
)
def test_a_figure_stands_beside_those_of_its_own_implementation(
    a_run: Run, metric: tuple[str, Variant], executor: str, experiment: str
) -> None:
    found = [pair.row for pair in matched(a_run, a_metric(*metric, 10.0, executor)) if pair.row.implementation]
    assert found
    assert {row.implementation for row in found} == {IMPLEMENTATIONS[executor]}
    assert {row.experiment for row in found} == {experiment}
    assert all(row.dtype in ("", "float32") and not row.model and row.unit == "us" for row in found)


@pytest.mark.parametrize(
    ("metric", "executor"),
    [
        (("single_op.latency_us", {"waiter": "work_done"}), "wgpu"),  # its published span holds no wait
        (("single_op.encode_us", {"waiter": "work_done"}), ""),
        (("single_op.latency_us", {"waiter": "map"}), ""),
        (("sequential.total_over_n_us", {"policy": "one_pass", "n": 100}), ""),
        (("anatomy.call_us", {"call": "submit"}), ""),  # of wgpu alone
        (TOTAL, "firefox"),
    ],
)
def test_another_estimator_or_implementation_is_no_match(
    a_run: Run, metric: tuple[str, Variant], executor: str
) -> None:
    assert matched(a_run, a_metric(*metric, 10.0, executor)) == []


def test_wgpu_is_matched_with_encoding_because_its_published_span_has_no_wait(a_run: Run) -> None:
    found = matched(a_run, a_metric("single_op.encode_us", {"waiter": "work_done"}, 30.0, "wgpu"))
    assert found
    assert all("no wait" in pair.row.note for pair in found)
    assert {pair.estimator.timed for pair in found} == {Timed.encoded}


@pytest.mark.parametrize("by", ESTIMATORS, ids=lambda by: f"{by.published}-{by.metric}")
def test_every_estimator_has_published_rows(a_run: Run, by: Any) -> None:  # noqa: ANN401
    found = [
        pair for executor in IMPLEMENTATIONS for pair in matched(a_run, a_metric(by.metric, by.variant, 9.0, executor))
    ]
    assert by in [pair.estimator for pair in found]


def test_a_figure_without_a_value_stands_beside_nothing(a_run: Run) -> None:
    ours = a_metric(*TOTAL, 10.0)
    for absent in (
        replace(ours, outcome=MetricOutcome.failed, value=None),
        replace(ours, outcome=MetricOutcome.unresolved, reason="lost"),
        replace(ours, value=0.0),
    ):
        assert matched(a_run, absent) == []


def test_our_backend_comes_first_and_the_others_are_shown_too(a_run: Run) -> None:
    pairs = matched(a_run, a_metric(*TOTAL, 27.0))
    assert {pair.row.value for pair in pairs if pair.near} == CHROME_SEQUENTIAL_US
    assert {pair.row.backend for pair in pairs if not pair.near and pair.row.implementation} == {"d3d12"}
    assert {pair.row.experiment for pair in pairs if not pair.row.implementation} == {
        f"sequential_{backend}_{end}" for backend in ("vulkan", "metal") for end in ("low", "high")
    }


@pytest.mark.parametrize(
    ("system", "backends"), [("Windows 11", {"d3d12"}), ("Darwin 25.2", {"vulkan", "d3d12"}), ("", {"vulkan", "d3d12"})]
)
def test_without_a_row_of_our_backend_all_are_as_near(a_run: Run, system: str, backends: set[str]) -> None:
    manifest = replace(a_run.manifest, host=replace(a_run.manifest.host, system=system))
    elsewhere = Run(manifest, a_run.cells, a_run.launches, a_run.samples)
    pairs = matched(elsewhere, a_metric(*WAITED, 2000.0))
    assert {pair.row.backend for pair in pairs if pair.near} == backends


# --- estimators --------------------------------------------------------------------------------------------------


def by_hand(run: Run, experiment: str, column: str, keep: Callable[[dict[Hashable, Any]], bool], n: int) -> float:
    """Geometric mean over launches of the mean over a launch's samples, over n."""
    means: list[float] = []
    for launch in run.launches:
        rows_of = run.samples[run.samples["launch"] == launch.launch].to_dict("records")
        values = [r[column] for r in rows_of if r["experiment"] == experiment and r["block"] > 0 and keep(r)]
        means.append(sum(values) / len(values) / n)
    return math.exp(math.fsum(map(math.log, means)) / len(means))


def test_our_estimators_are_those_published_computed_on_our_samples(run_it: RunIt) -> None:
    policy = {"blocks": 3, "counts": [100, 200, 300, 400], "policies": ["submit_each", "pass_each"], "busy": []}
    profile = small_profile(experiments=["single_op", "sequential", "policy"], policy=policy)
    _, _, run = run_it(ScriptedExecutor(model=Model(noise=0.2)), profile)
    found = {m.key: m for m in analysis.summarise(run).metrics}

    for column in ("wall_us", "encode_us"):
        name = f"single_op.{'latency_us' if column == 'wall_us' else column}{{waiter=work_done}}"
        hand = by_hand(run, "single_op", column, lambda r: r["waiter"] == "work_done", 1)
        assert found[name].value == pytest.approx(hand, rel=1e-9)
    for experiment, name in (("sequential", "submit_each"), ("policy", "pass_each")):
        hand = by_hand(run, experiment, "wall_us", lambda r, of=name: r["policy"] == of and r["n"] == 100, 100)  # type: ignore[misc]
        assert found[f"{experiment}.total_over_n_us{{n=100,policy={name}}}"].value == pytest.approx(hand, rel=1e-9)
    assert "policy.total_over_n_us{n=100,policy=submit_each}" not in found


# --- gaps --------------------------------------------------------------------------------------------------------


def test_a_figure_close_to_the_published_ones_has_no_sentence(run_it: RunIt) -> None:
    run, summary = ran(run_it, 27, 10)
    pairs = [pair for pair in beside(run, summary) if pair.near]
    assert {pair.row.value for pair in pairs} == CHROME_SEQUENTIAL_US
    assert all(pair.ratio == pytest.approx(27.1 / pair.row.value, rel=0.01) for pair in pairs)
    assert gaps.sentences(run, summary, pairs) == []


@pytest.mark.parametrize(("ratio", "wide"), [(1.49, False), (1.51, True), (0.67, False), (0.66, True)])
def test_a_gap_is_wide_from_one_and_a_half_times_either_way(a_run: Run, ratio: float, wide: bool) -> None:
    pairs = matched(a_run, a_metric(*TOTAL, 32.83333 * ratio))
    assert [gaps.is_wide(pair) for pair in pairs if pair.row.value == 32.83333] == [wide]


def test_a_large_share_of_the_wait_is_named_with_what_it_leaves(run_it: RunIt) -> None:
    sentences = told(*ran(run_it, 40, 2800))
    (sentence,) = [text for text in sentences if "32.8" in text]
    assert sentence.startswith("Published estimator, total over n (n 100, policy submit_each): 68.")
    assert "2.07 times 32.8 µs" in sentence
    assert re.search(
        r"the wait \(the fixed part of the ladder, 2,[78]\d\d µs a sample\) is 4[01]\.\d % of ours", sentence
    )
    assert re.search(r"without that 1\.2\d and 1\.2\d times would be left\.$", sentence)  # 40 over 32.8 and over 33
    (other,) = [text for text in sentences if "20.4" in text]
    assert other.endswith("without that 1.96 times would be left, and nothing measured here accounts for the rest.")
    assert "software" not in sentence


def test_the_wait_of_an_empty_queue_stands_in_where_there_is_no_fixed_part(a_run: Run) -> None:
    ours = a_metric(*TOTAL, 60.0)
    empty = a_metric("wait.latency_us", {"waiter": "work_done", "n": 0}, 3000.0)
    unresolved = replace(
        a_metric("sequential.fixed_us", {"policy": "submit_each"}, 10.0),
        outcome=MetricOutcome.unresolved,
        reason="bent",
    )
    (sentence,) = told(a_run, with_metrics(ours, unresolved, empty))
    assert "the wait (of an empty queue, 3,000 µs a sample) is 50.0 % of ours" in sentence
    (sentence,) = told(a_run, with_metrics(ours, unresolved, a_metric("noop.wall_us", {}, 3000.0)))
    assert "of an empty queue" in sentence


def test_a_wait_does_not_account_for_a_figure_that_is_smaller(a_run: Run) -> None:
    fixed = a_metric("sequential.fixed_us", {"policy": "submit_each"}, 500.0)
    (sentence,) = told(a_run, with_metrics(a_metric(*TOTAL, 10.0), fixed))
    assert sentence.endswith("as published; nothing measured here accounts for it.")


def test_the_polling_step_is_named_where_it_is_a_part_of_ours_or_all_of_the_gap(a_run: Run) -> None:
    step = a_metric("wait.polling_step_us", {"waiter": "work_done", "n": 1}, 2000.0)
    (part,) = told(a_run, with_metrics(a_metric(*TOTAL, 100.0), step))
    assert "the waiter polls in steps of 2,000 µs, up to 20.0 % of a sample of ours" in part
    assert part.endswith("nothing measured here accounts for the rest.")
    for ours_us in (4000.0, 500.0):  # more or less than the published 2,068 µs, by less than a step
        (whole,) = told(a_run, with_metrics(a_metric(*WAITED, ours_us), step))
        assert whole.endswith("the waiter polls in steps of 2,000 µs, and the two samples are not further apart.")


def test_a_coarse_clock_is_named_with_its_step(run_it: RunIt) -> None:
    coarse = replace(CLOCK, tick_us=100.0, isolated=False)
    (sentence,) = told(*ran(run_it, 100, 10, clock=coarse))
    assert (
        "our clock moves in steps of 100 µs, since its page is not cross-origin isolated, 0.999 % of a sample"
        in sentence
    )
    assert "nothing measured here accounts for the rest" in sentence


def test_a_gap_within_the_steps_of_the_published_clock_is_called_so(a_run: Run) -> None:
    row = replace(next(row for row in rows.read() if row.experiment == "single_op"), value=60.0)
    summary = with_metrics(a_metric(*WAITED, 120.0))
    (sentence,) = gaps.sentences(a_run, summary, beside(a_run, summary, [row]))
    assert "in steps of 5.00 µs, the published one in steps of 100 µs, and the two samples are not further" in sentence


def test_a_gap_that_nothing_accounts_for_is_said_to_be_one(run_it: RunIt) -> None:
    (sentence,) = told(*ran(run_it, 100, 10))
    assert sentence.endswith("times 33.0 µs as published; nothing measured here accounts for it.")


def test_a_software_adapter_is_said_before_anything_else(run_it: RunIt) -> None:
    (sentence,) = told(*ran(run_it, 100, 10, adapter=ADAPTER))
    said = "as published; ours is of a software adapter, whose absolute times do not compare with a GPU's; "
    assert f"{said}nothing else measured here accounts for it." in sentence


def test_another_way_to_submit_is_named_where_the_published_figure_was_measured_so(a_run: Run) -> None:
    ways = [
        a_metric("policy.per_dispatch_us", {"policy": name, "clock": "wall"}, us, "dawn")
        for name, us in (("submit_each", 10.0), ("torch_webgpu", 19.0))
    ]
    (sentence,) = told(a_run, with_metrics(a_metric(*TOTAL, 12.0, "dawn"), *ways))
    assert "to submit as it does (torch_webgpu) costs 19.0 µs a dispatch here, submit_each 10.0 µs" in sentence
    assert re.search(r"without that 0\.8\d+ and 0\.8\d+ times would be left\.$", sentence)
    (larger,) = told(a_run, with_metrics(a_metric(*TOTAL, 70.0, "dawn"), *ways))
    assert larger.endswith("nothing measured here accounts for it.")  # the dearer way can't make ours the larger one


def test_what_accounts_for_a_gap_is_of_the_same_executor(a_run: Run) -> None:
    fixed = a_metric("sequential.fixed_us", {"policy": "submit_each"}, 3000.0)
    (sentence,) = told(a_run, with_metrics(a_metric(*TOTAL, 60.0, "dawn"), fixed))
    assert sentence.endswith("nothing measured here accounts for it.")


# --- the report --------------------------------------------------------------------------------------------------


def section_of(html: str) -> str:
    return html.split("<h2>Published figures beside ours</h2>")[1].split("</section>")[0]


def test_the_report_has_one_section_with_our_backend_open_and_the_rest_folded(a_run: Run) -> None:
    summary = with_metrics(a_metric(*TOTAL, 60.0), a_metric(*WAITED, 2000.0))
    made = published.section(a_run, summary)
    html = render(a_run, summary)
    assert html.count("<h2>Published figures beside ours</h2>") == 1
    nearest, folded = section_of(html).split("<details>")
    assert [len(figure.rows) for figure in made.near.figures] == [3, 2]
    assert [figure.name for figure in made.near.figures] == ["sequential.total_over_n_us", "single_op.latency_us"]
    assert "60.0 µs (95 % interval 54.0 to 66.0)" in nearest
    assert '<tr class="wide">' in nearest
    assert "2.94 times" in nearest
    assert "exp1_browser_chrome_hardware.json, commit aa50a5b" in nearest
    assert "adapter_info is empty in the file" in nearest
    assert "nothing measured here accounts for it" in nearest
    assert "d3d12" in folded
    assert "d3d12" not in nearest
    assert "no implementation named, lowest" in folded


def test_a_run_that_stands_beside_nothing_says_so(a_run: Run) -> None:
    html = section_of(render(a_run, with_metrics()))
    assert "No figure of this run stands beside a published one" in html
    assert "<table" not in html


def test_what_a_row_says_is_text_and_never_markup(a_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = '<script>alert("1")</script>'
    row = Row(experiment="single_op", implementation="chrome", value=9.0, unit="us", source_path=odd)
    row = replace(row, version=odd, backend="vulkan", gpu=odd, os=odd, source_commit=odd, note=odd)
    monkeypatch.setattr("rig.published.rows.read", lambda: (row,))
    html = section_of(render(a_run, with_metrics(a_metric(*WAITED, 2000.0))))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4
