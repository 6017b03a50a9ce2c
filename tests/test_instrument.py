"""The cells of the experiments in the real browser: every modifier, layer and type computes what its reference does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from rig import assets
from rig.browsers.find import Browser
from rig.browsers.flags import AdapterAsked, flags, merged
from rig.executors.chromium import ChromiumExecutor, ChromiumSession
from rig.experiments import anatomy, dtype, modifier
from rig.experiments.base import Point
from rig.experiments.validation import ABLATIONS
from rig.launch import Visit
from rig.policies import PRESETS, policy, structure
from rig.programs import limits, micro, reference
from rig.records import Cell, Outcome, Parameters, Sample

pytestmark = pytest.mark.browser

FEW, TENS = (1, 3, 8, 17), (10, 20, 30, 300)
BOTH: dict[str, tuple[int, ...]] = {"submit_each": FEW, "one_pass": FEW}


def visited(chromium: ChromiumExecutor, points: Sequence[Point]) -> tuple[Visit, list[Sample]]:
    """One launch over these cells: opening checks, each cell once more, closing checks."""
    cells = tuple(Cell(program=p.program, policy=p.policy, n=p.n, executor="x", build="b", flags=()) for p in points)
    samples: list[Sample] = []
    session = chromium.launch(limits.needed([cell.program for cell in cells]))
    try:
        visit = Visit(0, session, {"e": cells}, samples.append)
        visit.open(skip=lambda _: False)
        for cell in cells:
            visit._timed(cell)
        visit.close()
        visit.vouch()
    finally:
        session.close()
    return visit, samples


def failed(visit: Visit) -> dict[tuple[str, str], str]:
    policies = {cell.key: cell.policy.name for cell in visit._all()}
    wrong = [check for check in visit.checks if check.outcome is not Outcome.ok]
    return {(check.program, policies.get(check.cell or "", "")): check.detail for check in wrong}


def test_every_modifier_runs_each_dispatch_once_with_its_own_values(chromium: ChromiumExecutor) -> None:
    options = modifier.ModifierOptions(counts=BOTH)
    visit, _ = visited(chromium, modifier.cells(options))
    wrong = failed(visit)
    assert {name for _, name in wrong} == {"one_pass+write_buffer"}, wrong
    assert all("see the last value" in detail for detail in wrong.values())


def test_every_layer_of_a_dispatch_runs_and_stages_time_every_call(chromium: ChromiumExecutor) -> None:
    options = anatomy.AnatomyOptions(calls_n=20, counts=BOTH)
    visit, samples = visited(chromium, anatomy.cells(options))
    assert failed(visit) == {}
    staged = [sample.calls_us for sample in samples if sample.calls_us is not None]
    assert staged
    assert all(set(calls) == set(anatomy._CALLS) and min(calls.values()) >= 0 for calls in staged)


def test_b18_every_type_counts_right_and_one_that_is_missing_says_so(chromium: ChromiumExecutor) -> None:
    options = dtype.DtypeOptions(counts={"one_pass": TENS})
    visit, _ = visited(chromium, dtype.cells(options))
    has_f16 = "shader-f16" in visit.session.adapter.enabled_features
    wrong = failed(visit)
    assert all("f16" in program and "needs shader-f16" in detail for (program, _), detail in wrong.items())
    assert bool(wrong) is not has_f16


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_submits_as_it_says(chromium: ChromiumExecutor, name: str) -> None:
    program = micro.carrying(64, Parameters.uniform)
    visit, samples = visited(chromium, [Point(program, policy(name), 50)])
    assert failed(visit) == {}
    assert {sample.outcome for sample in samples} == {Outcome.ok}


@pytest.mark.parametrize("name", ["submit_each", "pass_each", "every_16_pass_4"])
def test_busy_time_lies_within_the_span(session: ChromiumSession, name: str) -> None:
    program = micro.increment_chain()
    session.load(program)
    session.reset(program)
    timing = session.time(program, policy(f"{name}+busy"), 40)
    assert timing.stamps_ns is not None
    stamps = [int(stamp) for stamp in timing.stamps_ns]
    assert len(stamps) == 2 * structure(policy(name), 40)["passes"]
    busy = sum(end - begin for begin, end in zip(stamps[::2], stamps[1::2], strict=True))
    assert 0 < busy <= max(stamps) - min(stamps)


def test_b40_an_indirect_dispatch_runs_and_is_counted(session: ChromiumSession) -> None:
    program = micro.increment_chain()
    session.load(program)
    session.reset(program)
    timing = session.time(program, policy("one_pass+indirect"), 40)
    issued, got = session.outputs(program)
    assert (timing.issued["dispatches"], issued) == (40, 40)
    assert reference.compare(program, reference.run(program, 40), got) == ""


@pytest.mark.parametrize("ablation", [None, *ABLATIONS])
def test_an_invalid_call_shows_whether_validation_is_on(browser: Browser, ablation: str | None) -> None:
    toggle, validates = ABLATIONS[ablation] if ablation else ("", True)
    executor = ChromiumExecutor(browser, flags(AdapterAsked.any))
    session = executor.launch({}, (f"--enable-dawn-features={toggle}",) if toggle else ())
    try:
        assert session.validates() is validates
    finally:
        session.close()
        executor.close()


def test_toggles_of_several_flags_are_all_in_force() -> None:
    given = ("--a", "--enable-dawn-features=x", "--b", "--enable-dawn-features=y,z")
    assert merged(given) == ("--a", "--b", "--enable-dawn-features=x,y,z")
    assert merged(("--a",)) == ("--a",)


ASSEMBLE = """
import { readFileSync } from "node:fs";
import wabt from "wabt";
const module = (await wabt()).parseWat("issue.wat", readFileSync(process.argv[1], "utf8"));
process.stdout.write(Buffer.from(module.toBinary({}).buffer));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to assemble with")
def test_the_webassembly_that_is_served_is_the_one_that_can_be_read() -> None:
    pages = assets.folder("pages")
    command = ["node", "--input-type=module", "-e", ASSEMBLE, str(pages / "issue.wat")]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, check=True)
    assert done.stdout == (pages / "issue.wasm").read_bytes()
