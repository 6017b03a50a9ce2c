"""One launch's small parts: GPU timestamps, and samples from results."""

from __future__ import annotations

import pytest

from rig.executors.base import ExecutorFault, Timing
from rig.launch import on_gpu, sample, timed
from rig.policies import policy, structure
from rig.programs.micro import increment_chain
from rig.records import Cell, Outcome
from tests.scripted import ScriptedExecutor

CELL = Cell(program=increment_chain(), policy=policy("one_pass"), n=10, executor="x", build="b", flags=())


def timing(begin: int, end: int, wall_us: float = 100.0) -> Timing:
    stamps = (str(begin), str(end))
    return Timing(wall_us=wall_us, encode_us=1.0, stamps_ns=stamps, issued=structure(CELL.policy, CELL.n))


@pytest.mark.parametrize(("begin", "end"), [(2000, 1000), (1000, 1000), (2**64 - 1, 5)])
def test_b24_a_bad_pair_of_timestamps_is_no_span_and_says_so(begin: int, end: int) -> None:
    span_us, busy_us, doubt = on_gpu(timing(begin, end))
    assert busy_us is None
    assert span_us is None
    assert "not after begin" in doubt


def test_b24_timestamps_above_2_to_the_53_keep_their_nanoseconds() -> None:
    assert on_gpu(timing(2**60 + 1, 2**60 + 50_001)) == (50.0, 50.0, "")


def test_b25_ticks_taken_for_nanoseconds_are_caught_by_the_wall() -> None:
    assert on_gpu(timing(0, 90_000)) == (90.0, 90.0, "")
    span_us, _, doubt = on_gpu(timing(0, int(90_000 * 52.08)))
    assert span_us is None
    assert "unit?" in doubt


def test_b29_a_wait_that_returns_before_the_work_is_done_is_caught_by_the_span() -> None:
    # 100 dispatches that take 25 ms on the GPU, "timed" in 30 µs by a wait that does not wait
    span_us, _, doubt = on_gpu(timing(0, 25_000_000, wall_us=30.0))
    assert span_us is None
    assert "above the wall" in doubt


def passes(*stamps: int) -> Timing:
    issued = structure(policy("pass_each"), len(stamps) // 2)
    return Timing(wall_us=100.0, encode_us=1.0, stamps_ns=tuple(str(stamp) for stamp in stamps), issued=issued)


def test_busy_time_is_the_sum_over_passes_and_the_span_goes_from_the_first_to_the_last() -> None:
    assert on_gpu(passes(0, 10_000, 30_000, 45_000)) == (45.0, 25.0, "")


def test_b24_one_pass_that_ends_before_it_begins_voids_span_and_busy_time() -> None:
    span_us, busy_us, doubt = on_gpu(passes(0, 10_000, 30_000, 20_000, 50_000, 60_000))
    assert (span_us, busy_us) == (None, None)
    assert "end 20000 is not after begin 30000" in doubt


def test_two_stamps_around_several_passes_say_nothing_of_busy_time() -> None:
    issued = structure(policy("pass_each"), 3)
    assert on_gpu(Timing(wall_us=100.0, encode_us=1.0, stamps_ns=("0", "9000"), issued=issued)) == (9.0, None, "")


def test_a_fault_has_an_outcome_and_no_figure_at_all() -> None:
    row = sample("e", CELL, 0, 1, 2, ExecutorFault(Outcome.timeout, "late"))
    assert (row.outcome, row.detail, row.wall_us, row.encode_us, row.span_us) == ("timeout", "late", None, None, None)


def test_b15_b26_what_was_issued_must_be_what_the_policy_says() -> None:
    session = ScriptedExecutor().launch({})
    session.reset(CELL.program)
    assert isinstance(timed(session, CELL), Timing)
    good = session.time

    def short(*args: object) -> Timing:
        result = good(*args)  # type: ignore[arg-type]
        return Timing(wall_us=1, encode_us=1, stamps_ns=None, issued=result.issued | {"passes": 2})

    session.time = short  # type: ignore[method-assign,assignment]
    fault = timed(session, CELL)
    assert isinstance(fault, ExecutorFault)
    assert fault.outcome is Outcome.mismatch
