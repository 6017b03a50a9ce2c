"""Records: strict JSON both ways, and the identity of cells."""

from __future__ import annotations

import msgspec
import pytest

from rig.policies import policy
from rig.programs.micro import increment_chain
from rig.records import Cell, Metric, MetricOutcome, Sample, canonical, decode, encode


def cell(n: int = 1, build: str = "b") -> Cell:
    return Cell(program=increment_chain(), policy=policy("one_pass"), n=n, executor="x", build=build, flags=())


def metric(value: float) -> Metric:
    return Metric(experiment="e", metric="m", variant={"q": 0.5}, unit="us", outcome=MetricOutcome.ok, value=value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_b43_a_number_that_json_cannot_hold_is_refused_not_written_as_null(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        encode(metric(value))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_b43_a_number_that_json_cannot_hold_is_refused_when_read(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(encode(metric(1.0)).replace(b"1.0", text.encode()), Metric)


def test_b41_a_missing_or_unknown_field_is_an_error() -> None:
    whole = encode(metric(1.0))
    with pytest.raises(msgspec.ValidationError, match="unit"):
        decode(whole.replace(b'"unit":"us",', b""), Metric)
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        decode(whole.replace(b'"unit"', b'"units"'), Metric)


def test_equal_cells_have_one_key_and_any_difference_another() -> None:
    keys = {cell().key, cell().key, cell(n=2).key, cell(build="c").key}
    assert len(keys) == 3
    assert all(len(key) == 16 for key in keys)


def test_a_cell_survives_the_way_through_json_with_its_key() -> None:
    again = decode(canonical(cell()), Cell)
    assert again.key == cell().key


def test_a_metric_key_sorts_its_variant() -> None:
    m = Metric(experiment="e", metric="m", variant={"b": 2, "a": "x"}, unit="us", outcome=MetricOutcome.ok)
    assert m.key == "m{a=x,b=2}"


def test_an_unknown_outcome_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(
            b'{"experiment":"e","cell":"c","launch":0,"block":1,"order":0,"n":1,"outcome":"fine"}',
            Sample,
        )
