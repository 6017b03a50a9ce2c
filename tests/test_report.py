"""Does the report say what a run found, and what it did not find, whatever the run holds?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from rig import analysis, config, frames, plan
from rig.claims import CLAIMS
from rig.experiments.base import MAIN
from rig.frames import Run
from rig.records import (
    Adapter,
    Build,
    Cell,
    Check,
    Clock,
    GpuState,
    Host,
    HostState,
    Launch,
    Manifest,
    Metric,
    MetricOutcome,
    Outcome,
    Plan,
    Rig,
    Sample,
    Summary,
)
from rig.report import environment, page, words
from tests.scripted import ScriptedExecutor

COUNTS = [1, 10, 50, 100, 200, 500]
GPU = Adapter(
    vendor="acme",
    architecture="rocket",
    device="",
    description="",
    is_fallback=False,
    features=("timestamp-query",),
    limits={"maxBufferSize": 1 << 28},
    driver="acme 1.2",
    renderer="Rocket",
    enabled_features=("timestamp-query",),
    granted_limits={"maxBufferSize": 1 << 28},
)
SOFTWARE = replace(GPU, vendor="google", architecture="swiftshader", is_fallback=True)
BUILD = Build(
    flavour="chromium", version="1.2.3.4", sha256="ab" * 32, executable="chromium", flags=("--x",), driver_version="d"
)
CLOCK = Clock(tick_us=5.0, isolated=True, secure=True, visibility="visible", has_span=True)
QUIET = HostState(load_1min=0.1, cpu_busy_fraction=0.02, steal_fraction=0.0, memory_free_bytes=1 << 33)
EVERYTHING = ("single_op", "sequential")


# --- synthetic runs ----------------------------------------------------------------------------------------------


def a_launch(number: int) -> Launch:
    return Launch(
        launch=number,
        executor="chromium",
        build=BUILD,
        adapter=GPU,
        clock=CLOCK,
        host_before=QUIET,
        host_after=QUIET,
        began="2026-01-01T00:00:00.000Z",
        ended="2026-01-01T00:00:09.000Z",
        outcome=Outcome.ok,
        blocks=8,
        checks=tuple(
            Check(stage=stage, program="increment_chain_64", cell=None, outcome=Outcome.ok)
            for stage in ("opening", "closing")
        ),
    )


def some_launches(count: int) -> list[Launch]:
    return [a_launch(number) for number in range(count)]


def cells_of(experiments: Iterable[str], policies: Iterable[str]) -> dict[str, tuple[Cell, ...]]:
    profile = config.resolve(a_profile(experiments, policies), "test")
    return plan.cells(profile, MAIN, ScriptedExecutor(name="chromium", build_id=BUILD.version, flags=BUILD.flags))


def a_profile(experiments: Iterable[str], policies: Iterable[str]) -> dict[str, object]:
    data: dict[str, object] = {"name": "test", "seed": 1, "budget_s": 1, "launches": {"looks": [3]}}
    data["experiments"] = list(experiments)
    if "sequential" in data["experiments"]:  # type: ignore[operator]
        data["sequential"] = {"counts": COUNTS, "policies": list(policies), "blocks": 4}
    return data


def some_samples(launches: Iterable[Launch], cells: dict[str, tuple[Cell, ...]], *, stamped: bool) -> list[Sample]:
    """Block 0 and four warm ones: 20 µs (submit_each) or 2 µs a dispatch, and a wait of 300 µs or one of 2,600 µs."""
    rng = np.random.default_rng(7)
    samples = []
    for launch in launches:
        for experiment, members in cells.items():
            for block in range(5):
                for order, cell in enumerate(members):
                    work_us = (20 if cell.policy.name == "submit_each" else 2) * cell.n * float(rng.lognormal(0, 0.01))
                    wait_us = 2600 if experiment == "single_op" and block % 2 else 300
                    samples.append(
                        Sample(
                            experiment=experiment,
                            cell=cell.key,
                            launch=launch.launch,
                            block=block,
                            order=order,
                            n=cell.n,
                            outcome=Outcome.ok,
                            wall_us=work_us + wait_us * float(rng.lognormal(0, 0.02)),
                            encode_us=work_us / 2,
                            span_us=work_us if stamped else None,
                        )
                    )
    return samples


def a_run(
    launches: list[Launch] | None = None,
    *,
    experiments: Iterable[str] = ("single_op",),
    policies: Iterable[str] = ("submit_each",),
    stamped: bool = True,
    samples: list[Sample] | None = None,
    **manifest: object,
) -> Run:
    launches = some_launches(3) if launches is None else launches
    cells = cells_of(experiments, policies)
    if samples is None:
        samples = some_samples(launches, cells, stamped=stamped)
    made = Manifest(
        schema=1,
        rig=Rig(version="0", source_hash="0"),
        plan=Plan(profile=a_profile(experiments, policies), seed=1, adapter_asked="hardware"),
        command=("rig", "run", "--profile", "test me"),
        host=Host(system="Linux", cpu="cpu", cores=2, memory_bytes=1 << 34, python="3", container=False, root=False),
        started="2026-01-01T00:00:00Z",
        ended="2026-01-01T00:01:00Z",
        finished=True,
        why="last look, 3 launches",
    )
    known = {cell.key: cell for members in cells.values() for cell in members}
    return frames.assemble(replace(made, **manifest), known, launches, samples)


def html_of(run: Run) -> str:
    return page.render(run, analysis.summarise(run))


def text_of(html: str) -> str:
    """What a reader sees, on one line."""
    bare = re.sub(r"<style>.*?</style>|<title>.*?</title>|<svg.*?</svg>", " ", html, flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", bare)))


def lede_of(html: str) -> str:
    return text_of(html.split('<div class="lede">')[1].split("</div>")[0])


def assert_honest(html: str) -> None:
    """Nothing that looks like a figure that went wrong, and nothing to fetch."""
    assert not re.search(r"(?<![\w.])(NaN|nan|undefined|None|Infinity|inf)(?!\w)", text_of(html))
    assert "NaN" not in html
    assert "<script" not in html.lower()
    assert not re.search(r"<[^>]+\b(?:src|srcset|href|data|poster)\s*=\s*[\"']?\s*(?:https?:)?//", html, re.I)
    assert "url(http" not in html
    assert "@import" not in html


@pytest.fixture(scope="module")
def whole() -> str:
    """The page of a run of everything, on a software adapter."""
    launches = [replace(launch, adapter=SOFTWARE) for launch in some_launches(3)]
    return html_of(a_run(launches, experiments=EVERYTHING, policies=("submit_each", "one_pass")))


# --- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (5.7756, "5.78"),
        (35.768, "35.8"),
        (9.996, "10.0"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1430.63, "1,431"),
        (1234567.8, "1,234,568"),
        (0.00512, "0.00512"),
        (-9043.2, "−9,043"),
        (-0.5, "−0.500"),
        (1e-12, "1.00e−12"),
        (math.nan, "not measured"),
        (math.inf, "not measured"),
        (None, "not measured"),
    ],
)
def test_a_number_has_three_digits_and_an_absent_one_is_said(value: float | None, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1430.63, "us", "1,431 µs"),
        (71234.0, "us", "71.2 ms"),
        (2.5e7, "us", "25.0 s"),
        (-16313.0, "us", "−16.3 ms"),
        (0.4262, "fraction", "42.6 %"),
        (33.6, "ratio", "33.6 times"),
        (876, "dispatches", "876 dispatches"),
        (math.nan, "us", "not measured"),
    ],
)
def test_a_quantity_is_told_in_the_unit_that_suits_it(value: float, unit: str, text: str) -> None:
    assert words.quantity(value, unit) == text


def test_an_interval_is_told_in_the_unit_of_the_value_beside_it() -> None:
    assert words.interval(36.41, 41.82, "us", 39.0) == "36.4 to 41.8"
    assert words.interval(9_500, 12_000, "us", 10_500) == "9.50 to 12.0"
    assert words.interval(math.nan, 1.0, "us", 1.0) == ""


def test_a_bracket_is_not_called_an_interval() -> None:
    knee = a_metric(metric="sequential.knee_n", unit="dispatches", value=3.16, ci_low=2, ci_high=5, ci_level=1.0)
    assert words.shown(knee) == words.Shown("n = 2 to 5", "bracket", "", "")


# --- first lines -------------------------------------------------------------------------------------------------


def a_metric(**fields: object) -> Metric:
    made = Metric(
        experiment="sequential",
        metric="sequential.per_dispatch_us",
        variant={"policy": "submit_each", "clock": "span"},
        unit="us",
        outcome=MetricOutcome.ok,
        value=39.0,
        ci_low=36.0,
        ci_high=42.0,
        n_samples=100,
        n_launches=7,
    )
    return replace(made, **fields)


def page_with(*metrics: Metric) -> str:
    return page.render(a_run(samples=[]), Summary(schema=1, metrics=metrics, verdicts=()))


def test_the_first_lines_say_the_cost_its_interval_the_clock_and_the_launches(whole: str) -> None:
    assert re.search(
        r"A dispatch costs (?:19|20)\.\d µs \(95 % interval [\d.]+ to [\d.]+\) with one submit each and "
        r"(?:1\.9|2\.0)\d µs "
        r"\([\d.]+ to [\d.]+\) in one pass, by GPU span, over 3 launches\.",
        lede_of(whole),
    )
    assert re.search(r"one waited dispatch is [\d.]+ times \([\d.]+ to [\d.]+\)", lede_of(whole))


def test_an_unresolved_cost_is_called_so_and_its_number_kept_out_of_the_first_lines() -> None:
    html = page_with(a_metric(outcome=MetricOutcome.unresolved, reason="the two halves disagree"))
    assert "unresolved: the two halves disagree" in lede_of(html)
    assert "39" not in lede_of(html)
    assert "39.0 µs" in text_of(html)  # the table has it, marked
    assert "? unresolved" in text_of(html)


def test_a_failed_cost_is_said_with_its_reason() -> None:
    failed = a_metric(outcome=MetricOutcome.failed, value=None, ci_low=None, ci_high=None, reason="crashed: gone")
    assert "not measured: crashed: gone" in lede_of(page_with(failed))


def test_a_run_without_the_ladder_says_that_it_has_no_cost_and_what_it_has() -> None:
    lede = lede_of(html_of(a_run()))
    assert "no figure of what a dispatch costs" in lede
    assert "Timing one dispatch with its wait says" in lede


def test_b02_software_adapter_is_named_in_plain_sight(whole: str) -> None:
    assert text_of(whole).index("This is a software adapter: google swiftshader") < text_of(whole).index(
        "A dispatch costs"
    )
    assert "nothing about a GPU" in text_of(whole)
    assert "software adapter" not in text_of(html_of(a_run()))


def test_the_adapter_asked_for_stands_beside_the_one_obtained(whole: str) -> None:
    assert "google swiftshader (acme 1.2); asked for: hardware" in text_of(whole)


def test_b23_absent_timestamps_are_said_and_never_become_zero() -> None:
    html = html_of(a_run(experiments=["sequential"], stamped=False))
    assert "not supported here: no GPU timestamps" in lede_of(html)
    assert "by wall time" in lede_of(html)
    assert "– not supported here" in text_of(html)
    assert not re.search(r"(?<![\d.,])0 µs", text_of(html))
    assert_honest(html)


# --- banners -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clock": replace(CLOCK, tick_us=100.0)}, "moves in steps of 100 µs"),
        ({"clock": replace(CLOCK, isolated=False)}, "not cross-origin isolated in 1 launch"),
        ({"clock": replace(CLOCK, visibility="hidden")}, "not visible in 1 launch"),
        ({"adapter": replace(GPU, driver="acme 1.3")}, "2 different adapters"),
        ({"build": replace(BUILD, sha256="cd" * 32)}, "2 different browser builds"),
    ],
)
def test_what_makes_launches_doubtful_is_said_above_the_figures(change: dict[str, object], said: str) -> None:
    launches = some_launches(3)
    launches[1] = replace(launches[1], **change)
    text = text_of(html_of(a_run(launches, samples=[])))
    assert said in text
    assert text.index(said) < text.index("The published claims")


def test_a_run_that_did_not_finish_says_why() -> None:
    html = html_of(a_run(samples=[], finished=False, why="interrupted"))
    assert "This run did not finish: interrupted." in text_of(html)


def test_a_sound_run_has_no_banner() -> None:
    assert 'class="banner"' not in html_of(a_run())


# --- what does not count, what is absent -------------------------------------------------------------------------


def test_samples_that_do_not_count_are_counted_by_reason() -> None:
    launches = some_launches(3)
    samples = some_samples(launches, cells_of(["single_op"], []), stamped=True)
    samples[7] = replace(samples[7], outcome=Outcome.mismatch, wall_us=None, detail="element 3 is NaN, not 4")
    html = html_of(a_run(launches, samples=samples))
    assert "1 sample of 30 set aside" in text_of(html)
    assert "single_op mismatch 1 3.33 % element 3 is not a number, not 4" in text_of(html)
    assert_honest(html)


def test_a_run_in_which_every_launch_failed_is_reported() -> None:
    dead = {"adapter": None, "build": None, "clock": None, "outcome": Outcome.crashed, "detail": "no adapter"}
    launches = [replace(launch, checks=(), **dead) for launch in some_launches(3)]
    html = html_of(a_run(launches, experiments=EVERYTHING, samples=[], finished=False, why="3 launches failed"))
    assert "No launch counts, of 3 launches; the last one ended with crashed: no adapter." in text_of(html)
    assert "not measured" in lede_of(html)
    assert_honest(html)


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_of_too_few_launches_is_reported_without_figures(count: int) -> None:
    html = html_of(a_run(some_launches(count), experiments=EVERYTHING))
    assert "not measured" in lede_of(html)
    assert "µs" not in lede_of(html)
    assert_honest(html)


def test_b43_no_figure_is_ever_shown_as_nan_and_an_absent_one_is_called_not_measured() -> None:
    broken = [
        a_metric(value=math.nan, ci_low=math.nan, ci_high=math.nan),
        a_metric(variant={"policy": "one_pass", "clock": "wall"}, value=math.inf),
        a_metric(metric="sequential.fixed_us", value=0.0, ci_low=-math.inf, ci_high=math.inf),
        a_metric(metric="sequential.naive_over_true", variant={"policy": "submit_each"}, unit="ratio", value=None),
    ]
    html = page_with(*broken)
    assert_honest(html)
    assert html.count('class="instead">not measured</td>') == 3
    assert "✗ failed" in text_of(html)


def test_the_template_can_place_nothing_but_strings() -> None:
    for wrong in (None, math.nan, 1.5):
        with pytest.raises(TypeError):
            page._placed(wrong)


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", 'x\' onload="y" src=//evil', "🚀/..//\\&amp;", "NaN", ""]
)
def test_b44_any_adapter_name_survives_as_text(name: str) -> None:
    odd = replace(GPU, vendor=name, architecture=name, description=f"\x00\u202e{name}", driver=name, renderer=name)
    launches = [replace(launch, adapter=odd, detail=name) for launch in some_launches(2)]
    html = html_of(a_run(launches, samples=[]))
    assert_honest(html)
    assert "\x00" not in html
    assert "\u202e" not in html
    if name not in ("", "NaN"):
        assert re.sub(r"\s+", " ", name) in text_of(html)


# --- GPUs --------------------------------------------------------------------------------------------------------


def test_each_gpu_is_told_before_and_after_each_launch_and_what_it_does_not_tell_has_no_column() -> None:
    idle = GpuState(
        name="NVIDIA H200",
        sm_clock_mhz=345,
        max_sm_clock_mhz=1980,
        temperature_c=31,
        power_w=76.5,
        power_limit_w=700.0,
        performance_state=0,
        throttle_reasons=("gpu_idle",),
    )
    hot = replace(idle, sm_clock_mhz=1500, temperature_c=84, power_w=None, throttle_reasons=())
    launch = replace(a_launch(0), host_before=replace(QUIET, gpus=(idle, idle)), host_after=replace(QUIET, gpus=(hot,)))
    run = a_run([launch, *some_launches(3)[1:]])
    table = environment.gpu_table(run)
    first, second = (dict(zip(table.head, row, strict=True)) for row in table.rows)
    assert first == {
        "launch": "0",
        "GPU": "NVIDIA H200",
        "SM clock, MHz": "345 of 1,980 → 1,500 of 1,980",
        "temperature, °C": "31 → 84",
        "power, W": "76.5 of 700 → not measured",
        "state": "P0 → P0",
        "not at its highest clock for": "gpu idle → no reason",
    }
    assert second["temperature, °C"] == "31 → not measured"
    assert "345 of 1,980 → 1,500 of 1,980" in text_of(html_of(run))
    assert_honest(html_of(run))


def test_a_run_without_gpus_has_no_table_of_them(whole: str) -> None:
    assert "NVIDIA GPUs" not in text_of(whole)


# --- the page ----------------------------------------------------------------------------------------------------


def test_every_claim_has_a_verdict_in_words(whole: str) -> None:
    text = text_of(whole)
    assert all(f"{claim} {said}" in text for claim, said in CLAIMS.items())
    assert "✓ holds" in text
    assert "– not tested no experiment of this run tests it" in text
    assert "holds for this adapter, browser and host only" in text


def test_each_experiment_has_its_charts_and_they_are_named_for_those_who_cannot_see_them(whole: str) -> None:
    assert whole.count('<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="') == 6
    assert "The wait ends in one of two modes" in whole
    assert "lower mode" in whole
    ids = re.findall(r'\bid="([^"]+)"', whole)
    assert len(ids) == len(set(ids))


def test_an_experiment_without_a_chart_still_has_its_table() -> None:
    html = page_with(a_metric(experiment="novel", metric="novel.step_us", variant={"what": "<b>"}, value=12.0))
    assert "Experiment novel" in text_of(html)
    assert "Step novel.step_us what = <b> 12.0 µs" in text_of(html)


def test_the_page_tells_how_to_make_the_run_again(whole: str) -> None:
    assert "rig run --profile 'test me'" in text_of(whole)


def test_the_page_asks_for_nothing_and_is_the_same_each_time(whole: str) -> None:
    assert_honest(whole)
    assert html_of(a_run()) == html_of(a_run())


@pytest.mark.browser
def test_the_page_opens_offline_and_fits_narrow_and_wide(whole: str, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    from rig.browsers import find

    (tmp_path / "report.html").write_text(whole, encoding="utf-8")
    asked: list[str] = []
    errors: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find.find().path, args=["--no-sandbox"])
        try:
            for width in (400, 1000):
                tab = browser.new_page(viewport={"width": width, "height": 800})
                tab.on("request", lambda request: asked.append(request.url))
                tab.on("console", lambda message: errors.append(message.text))
                tab.on("pageerror", lambda error: errors.append(str(error)))
                tab.goto((tmp_path / "report.html").as_uri())
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                assert tab.locator("svg.chart").count() == 6
        finally:
            browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert errors == []
