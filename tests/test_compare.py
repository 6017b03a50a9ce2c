"""Comparing two runs: what is worse, what is not, and what must not be compared at all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats as distributions
from typer.testing import CliRunner

from rig import analysis, cli, compare, frames, likeness, store
from rig.compare import Comparison, ComparisonVerdict, NothingToCompare, Report, Scale, Unlike
from rig.config import Profile
from rig.frames import Run
from rig.measure import measure
from rig.records import Adapter, HostState, Launch, MetricOutcome, Outcome, Policy, Sample
from rig.stats import Contrast, Floats
from tests.conftest import small_profile
from tests.scripted import ADAPTER, BUILD, Model, ScriptedExecutor, ScriptedSession, fault_at

QUIET = HostState(load_1min=0.1, cpu_busy_fraction=0.0, steal_fraction=0.0, memory_free_bytes=1 << 33)
UNNAMED = msgspec.structs.replace(ADAPTER, vendor="", architecture="", driver="")
SLOPE = "sequential.per_dispatch_us{clock=span,policy=submit_each}"


def tiny(launches: int) -> Profile:
    return small_profile(
        launches={"looks": [launches]},
        single_op={"blocks": 2},
        sequential={"blocks": 2, "counts": [1, 20, 50, 100, 200], "policies": ["submit_each"]},
    )


@dataclass
class Restless(ScriptedExecutor):
    """Every launch has a pace of its own, as fresh browsers have: `pace(number)`, on everything."""

    noise: float = 0.02
    pace: Callable[[int], float] = lambda number: math.exp(np.random.default_rng(number).normal(0, 0.05))

    def launch(self, limits: dict[str, int], extra_flags: tuple[str, ...] = ()) -> ScriptedSession:
        pace = self.pace(self.launches)
        rates = {"submit_each": 40 * pace, "one_pass": 6 * pace}
        self.model = Model(per_dispatch_us=rates, fixed_us=300 * pace, noise=self.noise)
        return super().launch(limits, extra_flags)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without charts, and without the pause in which the host's load is taken."""
    monkeypatch.setattr("rig.measure.page.render", lambda run, summary: "page")  # noqa: ARG005
    monkeypatch.setattr("rig.host.state", lambda *_: QUIET)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Runs a scripted executor into a folder of its own."""

    def make(name: str, executor: ScriptedExecutor | None = None, launches: int = 4, **changes: object) -> Path:
        profile = small_profile(**changes) if changes else tiny(launches)
        measure(profile, executor or ScriptedExecutor(launches=sum(map(ord, name)) * 100), tmp_path / name, ("rig",))
        return tmp_path / name

    return make


def pool(path: Path, executor: ScriptedExecutor, profile: Profile) -> tuple[Run, list[Launch], list[list[Sample]]]:
    """Many launches, to be dealt out as runs."""
    measure(profile, executor, path, ("rig",))
    samples: list[list[Sample]] = [[] for _ in range(profile.launches.looks[-1])]
    for sample in store.read_samples(path):
        samples[sample.launch].append(sample)
    return frames.read(path), store.read_launches(path), samples


def dealt(pooled: tuple[Run, list[Launch], list[list[Sample]]], numbers: Sequence[int]) -> Run:
    run, launches, samples = pooled
    chosen = [msgspec.structs.replace(launches[n], began=at(n), ended=at(n)) for n in numbers]
    return frames.assemble(run.manifest, run.cells, chosen, [s for n in numbers for s in samples[n]])


def at(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"


def of(report: Report, key: str) -> Comparison:
    return next(one for one in report.comparisons if one.key == key)


def one_worse(report: Report) -> bool:
    return bool(report.having(ComparisonVerdict.worse))


def said(*words: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli.app, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr


# --- false alarms and true ones ----------------------------------------------------------------------------------


def test_b46_of_200_pairs_of_runs_alike_no_more_than_stated_have_anything_worse(tmp_path: Path) -> None:
    """Taken alone, some cost is significant in far more than one pair in twenty."""
    profile = small_profile(launches={"looks": [1200]}, experiments=["single_op"], single_op={"blocks": 3})
    pooled = pool(tmp_path / "pool", Restless(noise=0.05), profile)

    def runs(first: int) -> tuple[Run, Run]:
        return dealt(pooled, range(first, first + 3)), dealt(pooled, range(first + 3, first + 6))

    # so narrow a margin leaves the decision to significance alone
    pairs = [compare.compare(*runs(6 * number), margin=0.001) for number in range(200)]
    stated = 200 * compare.ALPHA
    assert all(report.costs_compared >= 9 for report in pairs)
    assert sum(one_worse(report) for report in pairs) <= stated
    alone = sum(any(one.cost and (one.p or 1) <= compare.ALPHA for one in report.comparisons) for report in pairs)
    assert alone > 3 * stated


def test_a_planted_slowdown_of_20_percent_comes_out_worse_in_every_cost_it_touches(tmp_path: Path) -> None:
    def slower(number: int) -> float:
        return 1.2 * Restless().pace(number + 1000)

    pooled = pool(tmp_path / "pool", Restless(), tiny(12))
    slow = pool(tmp_path / "slow", Restless(pace=slower), tiny(12))
    report = compare.compare(dealt(pooled, range(12)), dealt(slow, range(12)))
    one = of(report, SLOPE)
    assert (one.verdict, one.significant, one.practical) == (ComparisonVerdict.worse, True, True)
    assert one.value is not None
    assert one.ci_low is not None
    assert 1.05 < one.ci_low < 1.2 < (one.ci_high or 0)
    assert report.comparisons[0].verdict is ComparisonVerdict.worse
    assert report.sentence.startswith(f"{len(report.having(ComparisonVerdict.worse))} of ")
    # the other way round the same is better, and no alarm
    back = compare.compare(dealt(slow, range(12)), dealt(pooled, range(12)))
    assert of(back, SLOPE).verdict is ComparisonVerdict.better
    assert not one_worse(back)


def test_a_change_below_the_margin_is_significant_and_yet_not_worse(made: Callable[..., Path]) -> None:
    a = made("a", ScriptedExecutor(model=Model(noise=0.0005)))
    b = made("b", ScriptedExecutor(model=Model(noise=0.0005, factor={"increment_f32_chain_64": 1.02}), launches=50))
    one = of(compare.compare(frames.read(a), frames.read(b)), SLOPE)
    assert (one.verdict, one.significant, one.practical) == (ComparisonVerdict.same, True, False)
    strict = of(compare.compare(frames.read(a), frames.read(b), margin=0.01), SLOPE)
    assert strict.verdict is ComparisonVerdict.worse


def test_what_is_beyond_the_margin_alone_but_not_among_all_is_unresolved() -> None:
    alone = Comparison(
        key="k{}", experiment="e", metric="k", variant={}, unit="us", cost=True, verdict=ComparisonVerdict.unresolved,
        baseline=10.0, candidate=12.0, scale=Scale.ratio, value=1.2, ci_low=1.06, ci_high=1.36, p=0.01, practical=True,
    )  # fmt: skip
    others = [msgspec.structs.replace(alone, key=f"k{{n={n}}}", p=0.5, practical=False) for n in range(9)]
    (found, *_) = compare.corrected([alone, *others])
    assert found.p_adjusted == pytest.approx(0.1)
    assert not found.significant


def test_p_values_are_those_of_holms_step_down() -> None:
    """The example of the method: 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02."""
    found = [
        Comparison(
            key=f"k{p}", experiment="e", metric="k", variant={}, unit="us", cost=True,
            verdict=ComparisonVerdict.unresolved, p=p,
        )
        for p in (0.01, 0.04, 0.03, 0.005)
    ]  # fmt: skip
    assert [one.p_adjusted for one in compare.corrected(found)] == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_welch_and_pairs_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(1, 1, 7), rng.normal(2, 3, 5)
    ours, theirs = compare.welch(x, y), distributions.ttest_ind(y, x, equal_var=False)
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.interval(0.95) == pytest.approx(tuple(theirs.confidence_interval(0.95)))
    assert compare.paired(x[:5], y).p == pytest.approx(distributions.ttest_rel(y, x[:5]).pvalue)


@pytest.mark.parametrize("shift", [compare.welch, compare.paired])
def test_values_without_scatter_give_numbers_and_no_nan(shift: Callable[[Floats, Floats], Contrast]) -> None:
    same, other = np.array([2.0, 2.0, 2.0]), np.array([3.0, 3.0, 3.0])
    assert (shift(same, same).p, shift(same, other).p) == (1.0, 0.0)
    assert shift(same, other).interval(0.95) == (1.0, 1.0)


def test_fewer_figures_chosen_beforehand_make_the_same_change_more_significant(made: Callable[..., Path]) -> None:
    a, b = made("a", Restless()), made("b", Restless(launches=30))
    every, few = (compare.compare(frames.read(a), frames.read(b), only=only) for only in ((), ("sequential.total",)))
    (one,) = few.comparisons
    before = of(every, one.key)
    assert (one.metric, one.p, few.costs_compared) == ("sequential.total_over_n_us", before.p, 1)
    assert (one.p_adjusted or 0) < (before.p_adjusted or 0)
    code, stdout, stderr = said("compare", a, b, "--only", "sequentail")
    assert (code, stdout, "no figure can be compared, of 0" in stderr) == (3, "", True)


# --- pairs -------------------------------------------------------------------------------------------------------


def test_b53_launches_made_in_turn_are_compared_in_pairs_and_a_common_drift_drops_out(tmp_path: Path) -> None:
    def drifting(number: int) -> float:
        return (1 + 0.05 * (number // 2)) * (1.1 if number % 2 else 1.0)

    pooled = pool(tmp_path / "pool", Restless(pace=drifting, noise=0.001), tiny(16))
    a, b = dealt(pooled, range(0, 16, 2)), dealt(pooled, range(1, 16, 2))
    one = of(compare.compare(a, b), SLOPE)
    assert one.paired
    assert one.verdict is ComparisonVerdict.worse
    # the same values, told apart only by when they were made
    apart = frames.assemble(
        b.manifest,
        b.cells,
        [msgspec.structs.replace(launch, began=at(100 + launch.launch)) for launch in b.launches],
        [sample for n in range(1, 16, 2) for sample in pooled[2][n]],
    )
    alone = of(compare.compare(a, apart), SLOPE)
    assert not alone.paired
    assert alone.verdict is ComparisonVerdict.unresolved


def test_a_pair_of_which_one_broke_is_left_out(tmp_path: Path) -> None:
    pooled = pool(tmp_path / "pool", Restless(), tiny(12))
    a, b = dealt(pooled, range(0, 12, 2)), dealt(pooled, range(1, 12, 2))
    broken = [
        msgspec.structs.replace(launch, outcome=Outcome.crashed) if launch.launch == 3 else launch
        for launch in b.launches
    ]
    b = frames.assemble(b.manifest, b.cells, broken, [s for n in range(1, 12, 2) for s in pooled[2][n]])
    assert "2" not in compare.alternating(a, b)
    one = of(compare.compare(a, b), SLOPE)
    assert (one.paired, one.baseline_launches, one.candidate_launches) == (True, 5, 5)


# --- over the same counts ----------------------------------------------------------------------------------------


class Bent(Model):
    """The first hundred dispatches cost 48 µs each, the others 40."""

    def span_us(self, policy: Policy, n: int) -> float:  # noqa: ARG002
        return 48.0 * min(n, 100) + 40.0 * max(n - 100, 0)


def test_b46_slopes_are_compared_over_the_same_counts_whatever_each_run_is_fitted_to(made: Callable[..., Path]) -> None:
    """The builds are alike; fitted to other counts their slopes are a sixth apart, each launch's as all the others'."""
    short = (1, 10, 20, 40, 60, 100)
    a, b = (
        frames.read(
            made(
                *(name, ScriptedExecutor(model=Bent(noise=0.002), launches=100 * len(counts))),
                experiments=["sequential"],
                sequential={"blocks": 3, "counts": counts, "policies": ["submit_each"]},
            )
        )
        for name, counts in (("a", short), ("b", (*short, 200, 300, 400, 500)))
    )
    ours, theirs = (next(m for m in analysis.summarise(run).metrics if m.key == SLOPE) for run in (a, b))
    assert [ours.value, theirs.value] == pytest.approx([48, 40], rel=0.02)
    assert compare.one_figure(ours, theirs).practical
    one = of(compare.compare(a, b), SLOPE)
    assert one.verdict is ComparisonVerdict.same
    assert one.candidate == pytest.approx(48, rel=0.02)


# --- figures that are not compared, or are no costs --------------------------------------------------------------


def test_what_may_be_zero_or_negative_is_compared_by_difference(made: Callable[..., Path]) -> None:
    run = frames.read(made("a"))
    fixed = next(metric for metric in analysis.summarise(run).metrics if metric.metric == "sequential.fixed_us")
    fixed = msgspec.structs.replace(fixed, outcome=MetricOutcome.ok, reason="")
    around_zero = msgspec.structs.replace(fixed, value=0.0, per_launch={"0": -1.0, "1": 1.0, "2": 0.0})
    ten = msgspec.structs.replace(fixed, value=10.0, per_launch={"0": 9.0, "1": 11.0, "2": 10.0})
    one = compare.one_figure(around_zero, ten)
    assert (one.scale, one.value, one.practical) == (Scale.difference, 10.0, True)
    assert compare.one_figure(ten, ten).scale is Scale.ratio


def test_ratios_and_brackets_are_shown_and_never_worse(made: Callable[..., Path]) -> None:
    a = made("a", experiments=["policy"], policy={"blocks": 3, "policies": ["submit_each", "one_pass"]})
    dear = Model(per_dispatch_us={"submit_each": 80.0, "one_pass": 6.0})
    b = made(
        *("b", ScriptedExecutor(model=dear, launches=70)),
        experiments=["policy"],
        policy={"blocks": 3, "policies": ["submit_each", "one_pass"]},
    )
    report = compare.compare(frames.read(a), frames.read(b))
    gain = of(report, "policy.gain{policy=one_pass}")
    assert (gain.verdict, gain.cost) == (ComparisonVerdict.differs, False)
    assert {one.metric.partition(".")[2] for one in report.having(ComparisonVerdict.worse)} <= {
        "per_dispatch_us",
        "busy_us",
    }


def test_a_figure_that_only_one_run_has_is_not_comparable_and_says_why(made: Callable[..., Path]) -> None:
    a, b = frames.read(made("a")), frames.read(made("b", experiments=["single_op"]))
    one = of(compare.compare(a, b), SLOPE)
    assert (one.verdict, one.reason) == (ComparisonVerdict.not_comparable, "B without such a figure")
    assert one.baseline is not None
    assert one.candidate is None


def test_b49_a_figure_that_failed_in_the_candidate_alone_is_no_pass(made: Callable[..., Path]) -> None:
    a = made("a", experiments=["sequential"])
    broken = ScriptedExecutor(fault=fault_at(Outcome.validation_error, policy="one_pass", n=1), launches=60)
    b = made("b", broken, experiments=["sequential"])
    code, stdout, stderr = said("compare", a, b)
    assert (code, stderr.count("rig: ")) == (3, 1)
    assert "failed in B alone: " in stderr
    assert ", first sequential." in stderr
    assert "failed: " in stdout


# --- runs that compare with nothing ------------------------------------------------------------------------------


def test_b48_a_run_most_of_whose_cells_failed_compares_with_nothing(made: Callable[..., Path]) -> None:
    def outage(session: ScriptedSession, policy: object, n: int) -> object:
        return fault_at(Outcome.validation_error, policy="submit_each", n=n)(session, policy, n)  # type: ignore[arg-type]

    a, b = made("a"), made("b", ScriptedExecutor(fault=outage, launches=60))  # type: ignore[arg-type]
    for pair in ((a, b), (b, a)):
        code, stdout, stderr = said("compare", *pair)
        assert (code, stdout, stderr.count("\n")) == (3, "", 1)
        assert f"{b} compares with nothing: " in stderr


def test_an_unfinished_run_and_one_without_a_valid_launch_compare_with_nothing(made: Callable[..., Path]) -> None:
    whole = made("a")
    unfinished = frames.read(whole)
    unfinished = replace(
        unfinished, manifest=msgspec.structs.replace(unfinished.manifest, finished=False, why="stopped")
    )
    with pytest.raises(NothingToCompare, match="B compares with nothing: it did not finish: stopped"):
        compare.compare(frames.read(whole), unfinished)
    dead = made("dead", ScriptedExecutor(fault=fault_at(Outcome.crashed, policy="submit_each", n=1)))
    assert said("compare", dead, whole)[0] == 3


# --- runs that are not alike -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "line"),
    [
        (ADAPTER, msgspec.structs.replace(ADAPTER, vendor="acme", is_fallback=False), "software against acme paper"),
        (ADAPTER, msgspec.structs.replace(ADAPTER, driver="scripted 2.0"), "(scripted 1.0), software against"),
        (
            UNNAMED,
            msgspec.structs.replace(UNNAMED, limits={"maxBufferSize": 1 << 29}),
            "maxBufferSize 268435456 against",
        ),
        (UNNAMED, ADAPTER, "unnamed adapter (driver unknown), software against scripted paper"),
    ],
)
def test_b02_b06_b45_other_adapters_are_refused_in_one_line_with_both(
    made: Callable[..., Path], ours: Adapter, theirs: Adapter, line: str
) -> None:
    a, b = made("a", ScriptedExecutor(adapter=ours)), made("b", ScriptedExecutor(adapter=theirs, launches=40))
    code, stdout, stderr = said("compare", a, b)
    assert (code, stdout, stderr.count("\n")) == (2, "", 1)
    assert line in stderr
    code, stdout, _ = said("compare", a, b, "--unlike")
    assert code in (0, 1)
    assert "not alike: adapters: " in stdout


def test_b45_two_unnamed_adapters_with_the_same_limits_are_alike(made: Callable[..., Path]) -> None:
    a, b = (frames.read(made(name, ScriptedExecutor(adapter=UNNAMED))) for name in "ab")
    assert likeness.unlike(a, b) == []


def test_another_machine_is_refused(made: Callable[..., Path]) -> None:
    a = frames.read(made("a"))
    host = msgspec.structs.replace(a.manifest.host, cores=a.manifest.host.cores + 1)
    b = replace(a, manifest=msgspec.structs.replace(a.manifest, host=host))
    with pytest.raises(Unlike, match=rf"{host.cores - 1} cores against .*, {host.cores} cores"):
        compare.compare(a, b)


def test_the_same_figure_of_another_program_is_refused(made: Callable[..., Path]) -> None:
    a, b = made("a"), made("b", experiments=["single_op"], single_op={"blocks": 3, "elements": 128})
    with pytest.raises(Unlike, match="program increment_f32_chain_64 against increment_f32_chain_128"):
        compare.compare(frames.read(a), frames.read(b))


def test_a_kernel_that_changed_under_its_name_is_refused(made: Callable[..., Path]) -> None:
    a = frames.read(made("a"))

    def changed(sample_cell: str) -> str:
        return new[sample_cell].key

    new = {
        key: msgspec.structs.replace(
            cell,
            program=msgspec.structs.replace(
                cell.program,
                kernels=tuple(msgspec.structs.replace(k, wgsl=k.wgsl + "\n") for k in cell.program.kernels),
            ),
        )
        for key, cell in a.cells.items()
    }
    b = replace(
        a,
        cells={cell.key: cell for cell in new.values()},
        samples=a.samples.assign(cell=a.samples["cell"].map(changed)),
    )
    assert "kernels differs" in likeness.unlike(a, b)[0]


def test_b55_a_run_that_mixes_builds_is_refused(made: Callable[..., Path]) -> None:
    a = frames.read(made("a"))
    other = msgspec.structs.replace(BUILD, version="1.2.3.5")
    mixed = replace(a, launches=(*a.launches[:-1], msgspec.structs.replace(a.launches[-1], build=other)))
    with pytest.raises(Unlike, match=r"B mixes builds: 1\.2\.3\.4, 0+ and 1\.2\.3\.5"):
        compare.compare(a, mixed)


# --- surroundings ------------------------------------------------------------------------------------------------


def test_b09_flags_added_and_removed_build_and_rig_are_listed_at_the_top(made: Callable[..., Path]) -> None:
    a = frames.read(made("a"))
    build = msgspec.structs.replace(
        BUILD, version="1.2.3.5", sha256="1" * 64, flags=("--disable-gpu", "--enable-features=A,B")
    )
    old = msgspec.structs.replace(BUILD, flags=("--scripted", "--enable-features=A"))
    b = replace(
        a,
        manifest=msgspec.structs.replace(
            a.manifest, rig=msgspec.structs.replace(a.manifest.rig, source_hash="another")
        ),
        launches=tuple(msgspec.structs.replace(launch, build=build) for launch in a.launches),
    )
    a = replace(a, launches=tuple(msgspec.structs.replace(launch, build=old) for launch in a.launches))
    lines = compare.told(compare.compare(a, b))
    top = lines[: next(i for i, line in enumerate(lines) if line.startswith("verdict"))]
    assert "flags removed: --scripted" in top
    assert "flags added: --disable-gpu --enable-features=B" in top
    assert "browser version: 1.2.3.4 in A, 1.2.3.5 in B" in top
    assert f"executable hash: {'0' * 64} in A, {'1' * 64} in B" in top
    assert any(line.startswith("rig source hash: ") and line.endswith(" in A, another in B") for line in top)


# --- the command -------------------------------------------------------------------------------------------------


def test_options_that_differ_are_listed_and_allowed(made: Callable[..., Path]) -> None:
    a, b = frames.read(made("a", experiments=["single_op"])), frames.read(made("b", single_op={"blocks": 9}))
    listed = {one.what: (one.baseline, one.candidate) for one in compare.compare(a, b).environment}
    assert listed["single_op.blocks"] == ("6", "9")
    assert listed["experiments"] == ('["single_op"]', '["single_op","sequential"]')


def test_the_command_tells_a_sentence_then_the_worst_and_exits_1(made: Callable[..., Path]) -> None:
    a = made("a")
    b = made("b", ScriptedExecutor(model=Model(factor={"increment_f32_chain_64": 1.5}), launches=50))
    code, stdout, stderr = said("compare", a, b)
    assert (code, stderr.count("\n")) == (1, 1)
    first, rows = stdout.splitlines()[0], stdout.split("verdict ")[1].splitlines()
    assert "are worse" in first
    assert rows[1].startswith("worse")
    ranks = [
        list(ComparisonVerdict).index(one.verdict)
        for one in compare.compare(frames.read(a), frames.read(b)).comparisons
    ]
    assert ranks == sorted(ranks)
    code, stdout, stderr = said("compare", a, made("c"))
    assert (code, stderr) == (0, "")
    assert stdout.startswith("None of ")


def test_b43_json_is_strict_and_alone_on_stdout(made: Callable[..., Path]) -> None:
    def never(name: str) -> None:
        raise AssertionError(name)

    _, stdout, _ = said("compare", made("a"), made("b", experiments=["single_op"]), "--json")
    report = json.loads(stdout, parse_constant=never)
    missing = next(one for one in report["comparisons"] if one["key"] == SLOPE)
    assert (missing["verdict"], missing["candidate"], missing["value"]) == ("not_comparable", None, None)
    assert report["costs_compared"] > 0
    assert msgspec.convert(report, Report).margin == compare.MARGIN


def test_summaries_are_computed_anew_whatever_is_stored(made: Callable[..., Path]) -> None:
    a, b = made("a"), made("b")
    before = said("compare", a, b)
    (b / store.SUMMARY).write_text("{}")
    assert said("compare", a, b) == before


@pytest.mark.parametrize("margin", ["0", "1", "-0.1", "nan"])
def test_a_margin_that_is_none_is_usage(made: Callable[..., Path], margin: str) -> None:
    a = made("a")
    code, _, stderr = said("compare", a, a, f"--margin={margin}")
    assert (code, "is not between 0 and 1" in stderr) == (2, True)


def test_a_folder_that_is_no_run_is_usage(made: Callable[..., Path], tmp_path: Path) -> None:
    code, stdout, stderr = said("compare", made("a"), tmp_path / "none")
    assert (code, stdout, stderr.count("\n")) == (2, "", 1)
