"""Charts of figures with intervals: what is there is drawn, what is not is named, and nothing ever breaks the page."""

from __future__ import annotations

import pytest

from rig.frames import Run
from rig.records import Metric, MetricOutcome
from rig.report import chart_intervals, charts
from rig.report.chart_intervals import CHARTS, Scale, panel

RUN: Run = None  # type: ignore[assignment]
"""These charts look at figures alone."""


def metric(name: str, value: float | None, half: float = 0.1, reason: str = "", **variant: str | int) -> Metric:
    outcome = MetricOutcome.ok if not reason else MetricOutcome.unresolved
    if value is None:
        outcome = MetricOutcome.not_supported
    return Metric(
        experiment=name.split(".")[0],
        metric=name,
        variant=dict(variant),
        unit="us",
        outcome=outcome,
        value=value,
        ci_low=None if value is None else value - half,
        ci_high=None if value is None else value + half,
        n_samples=10,
        n_launches=5,
        reason=reason,
    )


EVERY = {
    "policy": [
        metric("policy.per_dispatch_us", 40.0, clock="span", policy="submit_each"),
        metric("policy.per_dispatch_us", 41.0, clock="wall", policy="submit_each"),
        metric("policy.stage_share", 0.4, policy="submit_each", stage="caller"),
    ],
    "modifier": [
        metric("modifier.cost_us", -0.05, modifier="map", policy="one_pass"),
        metric("modifier.cost_us", None, reason="no such thing", modifier="write_buffer", policy="one_pass"),
    ],
    "dtype": [metric("dtype.ratio_to_f32", 1.1, dtype="i32", held="elements", policy="one_pass")],
    "wait": [metric("wait.latency_us", 2500.0, waiter="work_done", n=1)],
    "anatomy": [
        metric("anatomy.call_us", 5.0, call="submit"),
        metric("anatomy.marginal_us", 15.0, layer="submit", policy="submit_each"),
        metric("anatomy.remainder_us", -2.0, policy="submit_each"),
    ],
    "validation": [
        metric("validation.ratio", 1.02, ablation="skip_validation", of="wall", policy="one_pass"),
    ],
}


@pytest.mark.parametrize("experiment", list(CHARTS))
def test_every_experiment_shows_its_figures_with_their_values_in_words(experiment: str) -> None:
    figures = CHARTS[experiment](RUN, EVERY[experiment])
    assert figures
    for figure in figures:
        for one in figure.panels:
            assert one.alt
            assert "<svg" in one.svg


@pytest.mark.parametrize("experiment", list(CHARTS))
def test_an_experiment_without_figures_has_no_chart(experiment: str) -> None:
    assert CHARTS[experiment](RUN, []) == []
    absent = [metric(m.metric, None, reason="broken", **m.variant) for m in EVERY[experiment]]  # type: ignore[arg-type]
    assert CHARTS[experiment](RUN, absent) == []


def test_what_has_no_value_is_named_with_its_reason() -> None:
    (figure,) = CHARTS["modifier"](RUN, EVERY["modifier"])
    assert "Not shown: write_buffer one_pass (not supported here: no such thing)" in figure.note


def test_an_interval_that_reaches_zero_is_named_where_the_axis_is_logarithmic() -> None:
    rows = [("a", metric("x.y", 1.0)), ("b", metric("x.y", 1.0, half=2.0))]
    assert "b" not in panel("t", rows, Scale("µs", log=True))[0].alt
    assert "b 1.00 µs" in panel("t", rows, Scale("µs"))[0].alt


def test_unresolved_figures_are_hollow() -> None:
    sure = panel("t", [("a", metric("x.y", 1.0))], Scale("µs"))[0].svg
    unsure = panel("t", [("a", metric("x.y", 1.0, reason="why"))], Scale("µs"))[0].svg
    assert f'fill="{charts.PAGE}"' in unsure
    assert f'fill="{charts.PAGE}"' not in sure


def test_names_have_room() -> None:
    long = panel("t", [("a name that is rather long", metric("x.y", 1.0))], Scale("µs"))[0].svg
    assert "a name that is rather long" in long
    assert chart_intervals.MOST_ROOM >= 24 * chart_intervals.LETTER
