"""How does a matrix become one page? Prepares every string, then fills the template, which only places them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from rig import store
from rig.frames import Run
from rig.matrix import chart, records, steps, traces
from rig.matrix.records import Change, Changes, Event, Matrix, Moved, Ratio, Stage, Summary, Traced
from rig.matrix.rounds import stored_runs
from rig.report import findings, words
from rig.report import page as report_page
from rig.report.environment import Table

NOTES = "notes.txt"
"""What people wrote about a matrix, beside it: a line that begins with # is a title, an empty one ends a paragraph."""


@dataclass(frozen=True)
class Step:
    """One step as the page tells it."""

    title: str
    told: str
    cause: str
    beside: str
    moved: Table
    seen: str
    traced: Table


@dataclass(frozen=True)
class Note:
    title: str
    paragraphs: tuple[str, ...]


def render(place: Path) -> list[str]:
    """Computes summary.json, changes.json and index.html of a stored matrix again; returns what they say, in lines.

    StoreError where it is not whole.
    """
    matrix = store.read(place / records.MATRIX, Matrix)
    runs = stored_runs(place, matrix)
    if lost := [
        one.name for one in matrix.builds if not one.why and not store.is_run(place / records.BUILDS / one.run)
    ]:
        raise store.StoreError(f"{place} is not whole: there is no run of {words.listed(lost)}")
    summary, changes = computed(matrix, runs, traces.stored(place))
    store.write_json(place / records.SUMMARY, summary)
    store.write_json(place / records.CHANGES, changes)
    notes = place / NOTES
    said = notes.read_text(encoding="utf-8") if notes.is_file() else ""
    store.write_text(place / records.PAGE, html(matrix, runs, summary, changes, said))
    return [*_unfinished(matrix), *headline(matrix, changes)]


def computed(matrix: Matrix, runs: Mapping[str, Run], traced: Sequence[records.Trace] = ()) -> tuple[Summary, Changes]:
    """Figures and steps, from what is stored alone."""
    known, doubted = steps.values(runs), steps.doubts(runs)
    return steps.summary(matrix, known, doubted), steps.changes(matrix, known, traced, doubted)


def html(matrix: Matrix, runs: Mapping[str, Run], summary: Summary, changes: Changes, notes: str = "") -> str:
    """The page: one file that asks for nothing, the same for the same matrix."""
    template = report_page.templates(Path(__file__).parent).get_template("page.html.j2")
    return template.render(
        title="What a WebGPU dispatch costs, Chromium by Chromium",
        style=Markup(f"{report_page.style()}\n{chart.style()}\n.panel {{ max-width: none; }}"),
        banners=_banners(matrix, runs),
        headline=headline(matrix, changes),
        about=_about(matrix, runs),
        figures=chart.figures(summary, changes),
        method=changes.method,
        error=changes.error,
        steps=[_step(change) for change in changes.changes],
        notes=_notes(notes),
        figures_table=_figures(summary),
        builds=_builds(matrix, runs),
    )


def headline(matrix: Matrix, changes: Changes) -> list[str]:
    """How many builds, and every confirmed step, each in a sentence."""
    measured = [build for build in matrix.builds if not build.swapped and not build.why]
    lacking = [build for build in matrix.builds if not build.swapped and build.why]
    told = f"{words.counted(len(measured), 'build')} measured in {words.counted(changes.rounds, 'round')} of the search"
    if lacking:
        told += f"; {len(lacking)} not, or not to the end: {words.listed(build.name for build in lacking)}"
    confirmed = [change for change in changes.changes if change.confirmed]
    rest = len(changes.changes) - len(confirmed)
    told += f". {words.counted(len(confirmed), 'step')} confirmed" if changes.changes else ". No step found"
    told += f", {rest} seen once and not confirmed." if rest else "."
    return [told, *(sentence(change) for change in confirmed)]


def sentence(change: Change) -> str:
    """A step in one line."""
    return (
        f"From {change.version_before} to {change.version_after}, {_what(change)} goes from "
        f"{words.quantity(change.before, change.unit)} to {words.quantity(change.after, change.unit)}: "
        f"{times(change.ratio)}; its cause: {change.cause.told}."
    )


def _what(change: Change) -> str:
    if change.metric == "anatomy.layer_us":
        return "a bare submit"
    if change.metric == "single_op.latency_us":
        return "one waited dispatch"
    return f"a dispatch {words.policy(str(change.variant.get('policy', '')))}"


def times(ratio: Ratio | None) -> str:
    """A ratio with its interval; nothing where there is none."""
    return words.ranged(ratio.value, ratio.ci_low, ratio.ci_high, "ratio") if ratio is not None else ""


def _banners(matrix: Matrix, runs: Mapping[str, Run]) -> list[str]:
    cores = max((run.manifest.host.cores for run in runs.values()), default=0)
    software = any(
        launch.adapter.is_fallback for run in runs.values() for launch in run.launches if launch.adapter is not None
    )
    made = []
    if software:
        made.append(
            f"A software adapter on {words.counted(cores, 'core')}: page, GPU process and the adapter's own threads "
            "share them. What is told here is how the way from the page to the adapter changed, and the adapter that "
            "each build brings with it. It can't tell what a GPU's driver costs, nor how much of a change overlaps "
            "with a GPU's work; absolute times are this machine's."
        )
    return [*made, *_unfinished(matrix)]


def _unfinished(matrix: Matrix) -> list[str]:
    return [] if matrix.finished else [f"This matrix did not finish: {matrix.why}."]


def _about(matrix: Matrix, runs: Mapping[str, Run]) -> list[tuple[str, str]]:
    run = next(iter(runs.values()), None)
    rounds = ", ".join(
        f"{stage} {sum(one.last - one.first + 1 for one in matrix.of(stage))}" for stage in Stage if matrix.of(stage)
    )
    about = [("Control", matrix.control.name if matrix.control else "none"), ("Rounds", rounds or "none")]
    if run is not None:
        host = run.manifest.host
        about.append(("Adapter", findings.adapter_line(run)))
        about.append(
            ("Host", f"{words.given(host.cpu)}, {words.counted(host.cores, 'core')}; {words.given(host.system)}")
        )
    about.append(("Measured", f"{matrix.started} to {matrix.ended or 'now'}; {matrix.why}"))
    about.append(("Command", " ".join(matrix.command)))
    return about


def _step(change: Change) -> Step:
    told = (
        f"{words.quantity(change.before, change.unit)} to {words.quantity(change.after, change.unit)}, "
        f"{times(change.ratio)}. The search gave {times(change.found)}, p {words.number(change.p)} by Holm. "
    )
    if change.p_confirmed is None:
        told += "It was not looked at again."
    else:
        outcome = "and confirmed" if change.confirmed else "and not confirmed"
        told += f"Looked at again {outcome}, p {words.number(change.p_confirmed)}."
    if change.doubts:
        told += f" To be doubted: {'; '.join(change.doubts)}."
    cause = f"Cause: {change.cause.told}."
    for part, ratio in (
        ("the browser", change.cause.browser),
        ("the software driver", change.cause.driver),
    ):
        if ratio is not None:
            cause += f" With {part} alone changed, {times(ratio)}."
    return Step(
        title=f"{change.build_before} to {change.build_after}: {_what(change)}",
        told=told,
        cause=cause,
        beside="These were not tested together, and are told to explain.",
        moved=Table("moved", ("Figure", "Before", "After", "Times"), tuple(_moved(one) for one in change.moved)),
        seen=_seen(change.traced),
        traced=_traced(change.traced),
    )


def _moved(one: Moved) -> tuple[str, ...]:
    return one.metric, words.quantity(one.before, one.unit), words.quantity(one.after, one.unit), times(one.ratio)


def _seen(traced: Traced | None) -> str:
    """What was looked at under DevTools' tracing, in a line; nothing where it was not."""
    if traced is None:
        return ""
    if traced.why:
        return f"Traces of both sides could not be had: {traced.why}."
    told = (
        f"Traced by DevTools, which costs time of its own ({words.quantity(traced.us_before, 'us')} a dispatch before, "
        f"{words.quantity(traced.us_after, 'us')} after), in {words.counted(traced.launches, 'launch', 'launches')} of "
        "each"
    )
    if not traced.events:
        return f"{told}: no event tells all launches of one side from all of the other."
    return (
        f"{told}. What tells all launches of one side from all of the other: how often an event comes for each "
        "dispatch, and its own time by wall and by CPU, without the events inside it."
    )


def _traced(traced: Traced | None) -> Table:
    head = ("Process, thread", "Event", "Times", "Wall", "CPU")
    return Table("traced", head, tuple(_event(one) for one in traced.events) if traced is not None else ())


def _event(one: Event) -> tuple[str, ...]:
    return (
        f"{one.process}, {one.thread}",
        one.event,
        f"{words.number(one.times_before)} → {words.number(one.times_after)}",
        f"{words.quantity(one.own_us_before, 'us')} → {words.quantity(one.own_us_after, 'us')}",
        f"{words.quantity(one.own_cpu_us_before, 'us')} → {words.quantity(one.own_cpu_us_after, 'us')}",
    )


def _notes(text: str) -> list[Note]:
    notes: list[Note] = []
    for part in text.split("\n\n"):
        if part.startswith("# "):
            title, _, part = part.removeprefix("# ").partition("\n")
            notes.append(Note(title, ()))
        if part.strip() and notes:
            notes[-1] = Note(notes[-1].title, (*notes[-1].paragraphs, " ".join(part.split())))
    return notes


def _figures(summary: Summary) -> Table:
    """A row a build and figure."""
    rows = []
    for build in summary.builds:
        for figure in (one for one in summary.figures if one.build == build.name):
            rows.append(
                (
                    build.name,
                    figure.metric,
                    words.quantity(figure.value, figure.unit),
                    words.interval(figure.ci_low, figure.ci_high, figure.unit, figure.value),
                    times(figure.to_control),
                    f"{figure.n_launches}",
                    figure.doubt,
                )
            )
    beside = f"Times {summary.control}'s" if summary.control else "Times the control's"
    return Table("figures", ("Build", "Figure", "Value", "95 % interval", beside, "Launches", "Doubt"), tuple(rows))


def _builds(matrix: Matrix, runs: Mapping[str, Run]) -> Table:
    rows: Sequence[tuple[str, ...]] = [
        (
            build.name + (" (control)" if build.control else ""),
            f"{build.flavour} {build.version}" if build.sha256 else "",
            build.sha256[:16],
            build.driver_sha256[:16] or ("none of its own" if build.sha256 else ""),
            f"{len(runs[build.name].launches) if build.name in runs else 0}",
            build.why or "measured",
        )
        for build in matrix.builds
    ]
    return Table("builds", ("Build", "Reports", "Executable", "Driver", "Launches", "State"), tuple(rows))
