"""The section of the fused decode step: what it shows is what was measured, and what is absent is a dash."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from rig.experiments.fusion.verdicts import Found
from rig.records import Metric, MetricOutcome, Summary
from rig.report import chart_fusion, charts, findings, fusion, page, words
from rig.report.fusion import Part, Section
from tests.test_report import a_run, assert_honest, text_of

UNITS = {
    "dispatches": "dispatches",
    "tokens_per_s": "tokens/s",
    "traffic_bytes": "bytes",
    "bandwidth_gb_per_s": "GB/s",
    **dict.fromkeys(("gain", "submission_gain", "batching_over_fusing", "quality_gain", "batch_slowdown"), "ratio"),
    **dict.fromkeys(("explained_fraction", "dispatch_share", "traffic_fraction", "cores_share"), "fraction"),
}
COUNTS = {"unfused": 876, "rmsnorm": 636, "mlp": 588, "kv": 564}
POLICIES = ("submit_each", "one_pass", "torch_webgpu")
ARMS = POLICIES[:2]


def a_figure(name: str, value: float | None, **variant: str | int | float) -> Metric:
    """A figure with an interval of a tenth to both sides; a count has none."""
    counted = name in ("dispatches", "traffic_bytes")
    return Metric(
        experiment="fusion",
        metric=f"fusion.{name}",
        variant=dict(variant),
        unit=UNITS.get(name, "us"),
        outcome=MetricOutcome.failed if value is None else MetricOutcome.ok,
        value=value,
        ci_low=None if value is None else value if counted else value * 0.9,
        ci_high=None if value is None else value if counted else value * 1.1,
        ci_level=1.0 if counted else 0.95,
        n_samples=20,
        n_launches=5,
        reason="no launch got so far" if value is None else "",
    )


def everything() -> list[Metric]:
    """Each with a value of its own, so that a number on the page tells where it is from."""
    found: list[Metric] = []

    def add(name: str, **variant: str | int | float) -> None:
        found.append(
            a_figure(name, 1.01 + 0.0307 * len(found) if name in UNITS else 10_100 + 307 * len(found), **variant)
        )

    for stage, count in COUNTS.items():
        found.append(a_figure("dispatches", count, shape="tiny", stage=stage))
        add("traffic_bytes", shape="tiny", stage=stage)
        for policy in POLICIES:
            add("step_us", stage=stage, policy=policy)
            add("tokens_per_s", stage=stage, policy=policy)
            add("gain", stage=stage, policy=policy)
            add("saved_us", stage=stage, policy=policy)
            add("submission_gain", stage=stage, policy=policy, over="submit_each")
        add("traffic_us", stage=stage)
    add("bandwidth_gb_per_s")
    add("batching_over_fusing", policy="one_pass", over="submit_each")
    for policy in ARMS:
        for kind in ("empty", "copy"):
            add("step_us", padding=kind, share=0.5, policy=policy)
            add("step_us", padding=kind, share=1.0, policy=policy)
            for name in ("padding_us", "explained_fraction", "marginal_us", "dispatch_share"):
                add(name, padding=kind, policy=policy)
        for quality in ("workgroup", "vec4"):
            add("step_us", stage="rmsnorm", quality=quality, policy=policy)
            add("tokens_per_s", stage="rmsnorm", quality=quality, policy=policy)
        add("quality_gain", quality="vec4", policy=policy)
        for stage in ("unfused", "kv"):
            add("step_us", stage=stage, policy=policy, batch=4)
            add("tokens_per_s", stage=stage, policy=policy, batch=4)
            add("step_readback_us", stage=stage, policy=policy)
            add("first_token_us", stage=stage, policy=policy)
        add("gain", stage="kv", policy=policy, batch=4)
        add("batch_slowdown", stage="unfused", policy=policy, batch=4)
        for pieces in (1, 64):
            add("split_us", dispatches=pieces, policy=policy)
        add("split_dispatch_us", policy=policy)
        add("traffic_fraction", policy=policy)
        add("cores_share", policy=policy)
    add("split_busy_us", dispatches=1)
    add("split_busy_us", dispatches=64)
    return found


EVERYTHING = everything()


def value_of(name: str, **variant: str | int | float) -> str:
    (one,) = (m for m in EVERYTHING if m.metric == f"fusion.{name}" and m.variant == variant)
    return words.cell(one, bare=name == "tokens_per_s")


def part_of(section: Section, start: str) -> Part:
    return next(part for part in section.parts if part.table.name.startswith(start))


def row_of(part: Part, *first: str) -> tuple[str, ...]:
    return next(row for row in part.table.rows if row[: len(first)] == first)


def changed(name: str, variant: dict[str, str | int | float], **fields: object) -> list[Metric]:
    is_it = [m.metric == f"fusion.{name}" and m.variant == variant for m in EVERYTHING]
    assert sum(is_it) == 1
    return [replace(m, **fields) if it else m for m, it in zip(EVERYTHING, is_it, strict=True)]


def without(*names: str) -> list[Metric]:
    return [m for m in EVERYTHING if m.metric.removeprefix("fusion.") not in names]


def page_of(metrics: list[Metric]) -> str:
    return page.render(a_run(samples=[]), Summary(schema=1, metrics=tuple(metrics), verdicts=()))


@pytest.fixture(scope="module")
def whole() -> Section:
    return fusion.section(EVERYTHING)


@pytest.fixture(scope="module")
def html() -> str:
    return page_of(EVERYTHING)


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_section_is_there_only_with_the_experiment(html: str) -> None:
    assert html.count(f"<h2>{fusion.TITLE}</h2>") == 1
    assert fusion.TITLE not in page_of([])


def test_its_figures_stand_in_one_place_and_all_of_them_are_folded(html: str) -> None:
    assert "<h2>Experiment <code>fusion</code></h2>" not in html
    assert f"<details><summary>All {len(EVERYTHING)} figures</summary>" in html


def test_how_steps_and_gains_are_estimated_stands_with_them(html: str) -> None:
    text = text_of(html)
    said = "for a gain of ratios paired within a block: it need not be the ratio of the two steps shown."
    assert 0 < text.find(said) < text.index("The published ladder beside ours")


def test_few_figures_are_folded_as_well() -> None:
    few = page_of([a_figure("step_us", 5.0, stage="kv", policy="one_pass"), a_figure("split_us", None, dispatches=1)])
    assert "<details><summary>All 2 figures</summary>" in few
    assert_honest(few)


def test_the_page_is_honest_and_its_pictures_are_named_once_each(html: str) -> None:
    assert_honest(html)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert html.count('class="chart"') == 2


# --- sentences ---------------------------------------------------------------------------------------------------


def test_the_sentences_say_what_fusing_and_batching_gain(whole: Section) -> None:
    step = value_of("step_us", stage="unfused", policy="submit_each")
    fused = value_of("step_us", stage="kv", policy="submit_each")
    gain = value_of("gain", stage="kv", policy="submit_each")
    assert whole.sentences[0] == (
        f"With one submit each a step takes {step} in 876 dispatches and {fused} in 564: it is {gain} as fast."
    )
    batching = value_of("submission_gain", stage="unfused", policy="one_pass", over="submit_each")
    assert any(f"The unfused step is {batching} as fast in one pass" in sentence for sentence in whole.sentences)
    explained = value_of("explained_fraction", padding="empty", policy="one_pass")
    assert any(f"empty ones cost {explained}" in sentence for sentence in whole.sentences)


def test_a_sentence_without_its_figure_is_not_said() -> None:
    section = fusion.section(without("gain", "submission_gain", "explained_fraction", "cores_share"))
    assert section.sentences == ()


def test_a_saturated_cpu_is_said_only_where_there_is_one(whole: Section) -> None:
    told = "causes can't be told apart"
    assert told not in " ".join(whole.sentences)
    saturated = fusion.section([*EVERYTHING, a_figure("cpu_saturated", 0.96, policy="submit_each")])
    assert told in saturated.sentences[-1]
    assert value_of("cores_share", policy="submit_each") in saturated.sentences[-1]


# --- the published ladder ----------------------------------------------------------------------------------------


def test_the_published_ladder_stands_beside_ours(whole: Section) -> None:
    part = part_of(whole, "The published ladder")
    assert [row[:4] for row in part.table.rows[:4]] == [
        ("unfused", "876", "13.5", "876"),
        ("rmsnorm", "636", "19.4", "636"),
        ("mlp", "588", "20.5", "588"),
        ("kv", "564", "20.6", "564"),
    ]
    for stage in COUNTS:
        ours = [value_of("tokens_per_s", stage=stage, policy=p) for p in ("torch_webgpu", "submit_each", "one_pass")]
        gain = value_of("submission_gain", stage=stage, policy="one_pass", over="submit_each")
        assert row_of(part, stage)[4:] == (*ours, gain)
    gains = [value_of("gain", stage="kv", policy=p) for p in ("torch_webgpu", "submit_each", "one_pass")]
    both = value_of("batching_over_fusing", policy="one_pass", over="submit_each")
    assert part.table.rows[-1] == ("gain of kv over unfused", "", "1.53 times", "", *gains, f"over fusing {both}")


def test_the_ladder_says_whose_it_is_and_that_our_shape_is_another(whole: Section) -> None:
    note = part_of(whole, "The published ladder").note
    for said in ("arXiv:2604.02344", "torch-webgpu on Dawn", "RTX 5090", "float32", "Qwen2.5-0.5B", "shape tiny"):
        assert said in note
    assert "tokens a second can't" in note
    same = [replace(m, variant={**m.variant, "shape": fusion.SHAPE}) if "shape" in m.variant else m for m in EVERYTHING]
    assert "tokens a second can't" not in part_of(fusion.section(same), "The published ladder").note


def test_the_ladder_is_there_without_ours_as_dashes() -> None:
    part = part_of(fusion.section(without("tokens_per_s", "dispatches", "submission_gain")), "The published ladder")
    assert row_of(part, "mlp") == ("mlp", "588", "20.5", *("–",) * 5)


# --- a table for each cause --------------------------------------------------------------------------------------


def test_each_table_has_the_figures_of_its_cause(whole: Section) -> None:
    arm: dict[str, str] = {"policy": "one_pass"}
    causes = row_of(part_of(whole, "How much"), "one_pass", "copy")
    assert causes[2:] == (
        value_of("padding_us", padding="copy", **arm),
        value_of("saved_us", stage="kv", **arm),
        *(value_of(n, padding="copy", **arm) for n in ("explained_fraction", "marginal_us", "dispatch_share")),
    )
    split = part_of(whole, "A fixed piece")
    walls = [value_of("split_us", dispatches=64, policy=policy) for policy in ARMS]
    assert row_of(split, "64") == ("64", *walls, value_of("split_busy_us", dispatches=64))
    slopes = [value_of("split_dispatch_us", policy=policy) for policy in ARMS]
    assert split.table.rows[-1] == ("each one more", *slopes, "")
    quality = row_of(part_of(whole, "Better kernels"), "one_pass", "vec4")
    of = {"stage": "rmsnorm", "quality": "vec4", **arm}
    gain = value_of("quality_gain", quality="vec4", **arm)
    assert quality[2:] == (value_of("step_us", **of), value_of("tokens_per_s", **of), gain)
    traffic = part_of(whole, "Memory traffic")
    moved, took = value_of("traffic_bytes", shape="tiny", stage="mlp"), value_of("traffic_us", stage="mlp")
    assert row_of(traffic, "mlp") == ("mlp", "588", moved, took)
    assert f"{value_of('bandwidth_gb_per_s')}. This is somewhat low, and times at it somewhat long" in traffic.note
    assert value_of("traffic_fraction", **arm) in traffic.note
    batch = row_of(part_of(whole, "Batches"), "one_pass", "4")
    assert batch[2:] == (
        value_of("tokens_per_s", stage="unfused", policy="one_pass", batch=4),
        value_of("tokens_per_s", stage="kv", policy="one_pass", batch=4),
        value_of("gain", stage="kv", policy="one_pass", batch=4),
        value_of("batch_slowdown", stage="unfused", policy="one_pass", batch=4),
    )
    back = row_of(part_of(whole, "Reading back"), "one_pass", "kv")
    names = ("step_us", "step_readback_us", "first_token_us")
    assert back[2:] == tuple(value_of(name, stage="kv", **arm) for name in names)


def test_every_figure_of_a_table_is_on_the_page(html: str, whole: Section) -> None:
    text = text_of(html)
    for part in whole.parts:
        for row in part.table.rows:
            assert " ".join(cell for cell in row if cell).replace(words.UNBROKEN, " ") in text


def test_a_missing_figure_leaves_a_dash_and_an_unresolved_one_is_marked() -> None:
    variant: dict[str, str | int | float] = {"padding": "empty", "policy": "one_pass"}
    doubt = changed("explained_fraction", variant, outcome=MetricOutcome.unresolved, reason="too little is saved")
    cell = row_of(part_of(fusion.section(doubt), "How much"), "one_pass", "empty")[4]
    assert cell.endswith(") ? unresolved")
    gone = changed("explained_fraction", variant, outcome=MetricOutcome.failed, value=None, reason="broken")
    assert row_of(part_of(fusion.section(gone), "How much"), "one_pass", "empty")[4] == "–"


def test_a_table_without_any_figure_is_left_out() -> None:
    names = {part.table.name for part in fusion.section(without("split_us", "split_busy_us")).parts}
    assert not any(name.startswith("A fixed piece") for name in names)


def test_better_kernels_are_left_out_where_there_is_only_the_plain_one() -> None:
    plain = [m for m in EVERYTHING if m.variant.get("quality") != "vec4"]
    assert not any(part.table.name.startswith("Better kernels") for part in fusion.section(plain).parts)


def test_times_of_the_split_work_are_headed_by_their_policies(whole: Section) -> None:
    head = part_of(whole, "A fixed piece").table.head
    assert head == ("dispatches", "wall time, submit_each", "wall time, one_pass", "GPU busy, pass_each")


# --- pictures ----------------------------------------------------------------------------------------------------


def test_the_map_has_a_number_for_each_stage_under_each_policy(whole: Section) -> None:
    _, heat = whole.figures[0].panels
    for metric in EVERYTHING:
        if metric.metric == "fusion.step_us" and metric.variant.keys() == {"stage", "policy"}:
            number = words.number((metric.value or 0) / 1e3)
            stage, policy = str(metric.variant["stage"]), metric.variant["policy"]
            assert f"{stage}, {COUNTS[stage]}, {policy}: {number}" in heat.alt
            assert f">{number}</text>" in heat.svg


def test_a_cell_of_the_map_is_marked_where_it_is_unresolved_and_a_dash_where_there_is_none() -> None:
    variant: dict[str, str | int | float] = {"stage": "mlp", "policy": "torch_webgpu"}
    doubt = changed("step_us", variant, outcome=MetricOutcome.unresolved, reason="why")
    assert re.search(r"mlp, 588, torch_webgpu: [\d.]+ \?", fusion.section(doubt).figures[0].panels[1].alt)
    gone = changed("step_us", variant, outcome=MetricOutcome.failed, value=None, reason="broken")
    assert "mlp, 588, torch_webgpu: –" in fusion.section(gone).figures[0].panels[1].alt


def test_presets_are_said_to_be_without_their_uniform_writes_where_there_are_any(whole: Section) -> None:
    assert "torch_webgpu is here without the uniform writes" in whole.figures[0].note
    plain = [m for m in EVERYTHING if m.variant.get("policy") != "torch_webgpu"]
    assert "uniform" not in fusion.section(plain).figures[0].note


def test_the_padded_steps_are_other_marks_at_the_dispatches_that_they_have(whole: Section) -> None:
    found = Found(EVERYTHING)
    padded = chart_fusion.padded(found, "submit_each")
    assert [(row["kind"], row["n"]) for row in padded] == [
        ("empty", 720),
        ("empty", 876),
        ("copy", 720),
        ("copy", 876),
    ]
    assert [key[1] for key in whole.figures[0].keys] == ["▬", "▬", "●", "▲", "■"]


def test_unresolved_points_are_hollow(whole: Section) -> None:
    variant: dict[str, str | int | float] = {"stage": "mlp", "policy": "one_pass"}
    doubt = fusion.section(changed("step_us", variant, outcome=MetricOutcome.unresolved, reason="why")).figures[0]
    hollow = f'fill="{charts.PAGE}" stroke="{charts.COLOURS["span"]}"'
    assert hollow in doubt.panels[0].svg
    assert hollow not in whole.figures[0].panels[0].svg
    assert doubt.keys[-1][1] == "○"


def test_without_times_there_is_no_picture() -> None:
    assert fusion.section(without("step_us")).figures == ()


def test_the_first_lines_say_what_the_count_explains_only_where_that_can_be_told() -> None:
    back = a_figure("explained_fraction", 0.99, padding="empty", policy="submit_each")
    told = "empty dispatches put back where fusing took some away cost 99.0 % (89.1 to 109) of what it saved."

    def lines(*metrics: Metric) -> str:
        return " ".join(findings.headline(Summary(schema=1, metrics=metrics, verdicts=())))

    assert told in lines(back)
    assert told not in lines(back, a_figure("cpu_saturated", 0.96, policy="submit_each"))
    assert told not in lines(replace(back, outcome=MetricOutcome.unresolved, reason="wide"))
