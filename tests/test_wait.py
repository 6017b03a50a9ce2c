"""The experiment `wait`: latency without the encoding, and the polling step."""

from __future__ import annotations

import pytest

from rig import analysis
from rig.executors.base import ExecutorFault
from rig.records import Metric, Policy
from tests.conftest import RunIt, small_profile
from tests.scripted import Model, ScriptedExecutor, ScriptedSession


class Polled(Model):
    """Answered at once in every other execution, else at the next poll, 2,000 µs later."""

    late = False

    def wall_us(self, policy: Policy, n: int) -> float:
        return 300 + self.span_us(policy, n) + (2000 if self.late else 0)


def figures(run_it: RunIt, model: Polled) -> dict[str, Metric]:
    def alternate(session: ScriptedSession, policy: Policy, n: int) -> ExecutorFault | None:  # noqa: ARG001
        model.late = session.rng.random() < 0.5
        return None

    profile = small_profile(experiments=["wait"], wait={"blocks": 30, "counts": [0, 1]}, single_op={}, sequential={})
    _, _, run = run_it(ScriptedExecutor(model=model, fault=alternate), profile)
    return {m.key: m for m in analysis.summarise(run).metrics}


def test_b27_the_wait_is_told_without_the_encoding_for_an_empty_queue_too(run_it: RunIt) -> None:
    found = figures(run_it, Polled(noise=0.01))
    for n, expected in ((0, 1300), (1, 1300 + 6 - 0.3)):
        assert found[f"wait.latency_us{{n={n},waiter=map}}"].value == pytest.approx(expected, rel=0.2)


def test_the_polling_step_lies_between_the_two_modes(run_it: RunIt) -> None:
    found = figures(run_it, Polled(noise=0.01))
    assert found["wait.polling_step_us{n=1,waiter=work_done}"].value == pytest.approx(2000, rel=0.02)
    assert found["wait.mode_us{mode=lower,n=1,waiter=work_done}"].value == pytest.approx(306, rel=0.02)
