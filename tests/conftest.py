"""Fixtures that more than one test file needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rig import config, frames
from rig.browsers import find
from rig.browsers.find import Browser
from rig.browsers.flags import AdapterAsked, flags
from rig.config import Profile
from rig.executors.chromium import ChromiumExecutor, ChromiumSession
from rig.measure import Exit, measure
from tests.scripted import ScriptedExecutor

RunIt = Callable[..., tuple[Exit, str, frames.Run]]


def small_profile(**changes: Any) -> Profile:  # noqa: ANN401
    """A profile that a scripted executor runs in well under a second."""
    data: dict[str, Any] = {
        "name": "small",
        "seed": 1,
        "budget_s": 60,
        "launches": {"looks": [3]},
        "experiments": ["single_op", "sequential"],
        "single_op": {"blocks": 6},
        "sequential": {"blocks": 3, "counts": [1, 2, 5, 10, 20, 50, 100, 200]},
        "gates": {"full": "note"},  # what else the machine does is no matter to a scripted executor
    }
    return config.resolve(data | changes, "small")


@pytest.fixture
def run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunIt:
    """Runs a scripted executor through the whole of the rig, but for the page: charts take longer than all the rest."""
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005

    def run(executor: ScriptedExecutor, profile: Profile | None = None, **options: Any) -> tuple[Exit, str, frames.Run]:  # noqa: ANN401
        place = tmp_path / "run"
        code, why = measure(profile or small_profile(), executor, place, ("rig", "run"), **options)
        executor.close()
        return code, why, frames.read(place)

    return run


@pytest.fixture(scope="session")
def browser() -> Browser:
    return find.find()


@pytest.fixture
def chromium(browser: Browser) -> Iterator[ChromiumExecutor]:
    """The real browser, with whatever adapter it gives."""
    executor = ChromiumExecutor(browser, flags(AdapterAsked.any))
    yield executor
    executor.close()


@pytest.fixture
def session(chromium: ChromiumExecutor) -> Iterator[ChromiumSession]:
    """One launch of the real browser, with its device open."""
    opened = chromium.launch({})
    yield opened
    opened.close()
