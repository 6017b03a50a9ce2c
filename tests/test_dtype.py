"""The experiment `dtype`: equivalence, difference, and what the run could have seen."""

from __future__ import annotations

import pytest

from rig import analysis
from rig.experiments.dtype import PLANTED
from rig.programs.micro import increment_chain
from rig.records import Dtype, Metric, Summary, VerdictOutcome
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor

I32 = increment_chain(64, Dtype.i32).name


def summary(run_it: RunIt, factor: float, noise: float = 0.003, planted: float = 1.0) -> Summary:
    options = {"blocks": 3, "counts": {"one_pass": [200, 400, 700, 1000]}}
    profile = small_profile(experiments=["dtype"], dtype=options, single_op={}, sequential={}, launches={"looks": [5]})
    model = Model(noise=noise, factor={I32: factor, PLANTED: planted})
    _, _, run = run_it(ScriptedExecutor(model=model), profile)
    return analysis.summarise(run)


def ratio(found: Summary, dtype: str) -> Metric:
    key = f"dtype.ratio_to_f32{{dtype={dtype},held=elements,policy=one_pass}}"
    return next(m for m in found.metrics if m.key == key)


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [
        (1.0, VerdictOutcome.holds),
        (1.2, VerdictOutcome.does_not_hold),
        (0.8, VerdictOutcome.does_not_hold),
        (1.05, VerdictOutcome.unresolved),
    ],
)
def test_claim_c3_follows_the_planted_truth(run_it: RunIt, factor: float, outcome: VerdictOutcome) -> None:
    found = summary(run_it, factor)
    assert ratio(found, "i32").value == pytest.approx(factor, rel=0.01)
    assert next(v for v in found.verdicts if v.claim == "C3").outcome is outcome


def test_the_planted_difference_is_ten_percent_whatever_the_adapter(run_it: RunIt) -> None:
    assert ratio(summary(run_it, 1.0), PLANTED).value == pytest.approx(1.1, rel=0.01)


@pytest.mark.parametrize(("noise", "planted"), [(0.4, 1.0), (0.003, 1 / 1.1)])
def test_a_run_that_does_not_see_the_planted_difference_says_nothing_of_the_types(
    run_it: RunIt, noise: float, planted: float
) -> None:
    found = summary(run_it, 1.0, noise, planted)
    assert next(v for v in found.verdicts if v.claim == "C3").outcome is VerdictOutcome.unresolved
