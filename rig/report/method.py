"""By what method was this measured, and which samples counted?"""

from __future__ import annotations

import shlex

from rig import stats
from rig.frames import Run
from rig.records import Check, Outcome
from rig.report import environment, words

_TIMES = [
    ("Wall time (wall_us)", "From before the first call to after the wait, on the page's clock."),
    ("Encode time (encode_us)", "From before the first call to the return of the last submit."),
    (
        "GPU span (span_us)",
        "From the begin of the first pass to the end of the last one, on the GPU's clock: two timestamps, whatever the "
        "count.",
    ),
]
_FIGURES = [
    (
        "Estimand",
        "The geometric mean over launches (fresh browser processes) on this host; the arithmetic mean where a figure "
        "may be zero or negative (fixed parts, shares).",
    ),
    (
        "Interval",
        f"{words.level(0.95)}, Student's t over one value a launch, on logarithms where the mean is geometric. It "
        "covers the scatter from launch to launch on this host, not other hosts.",
    ),
    (
        "Linear range",
        f"Found from the top of the ladder down, on the means over all launches: at least {stats.LEAST_COUNTS} "
        f"counts within {words.level(stats.RANGE_TOLERANCE)} (or three standard errors) of one rising line whose "
        "fixed part can be a wait, and whose work is at least half that part. Each launch's slope is fitted to the "
        "same counts.",
    ),
    (
        "Doubts",
        "A slope is unresolved where its two halves differ by more than scatter, paired within each launch; where its "
        "fixed part is below zero; where counts below the range lie on another line; and where the slopes by wall and "
        "by span are clearly apart.",
    ),
    ("Order", "Each block visits every cell of an experiment once, in fresh random order from the seed."),
]


def counting(run: Run) -> str:
    """How many samples count, and how many were set aside."""
    void = int((run.samples["void"] != "").sum())
    opening = int(((run.samples["void"] == "") & (run.samples["block"] == 0)).sum())
    timed = len(run.samples) - void - opening
    aside = f"{words.counted(void, 'sample')} of {len(run.samples):,} set aside, never part of a figure"
    return (
        f"{words.counted(timed, 'sample')} in blocks count; {opening:,} more are of opening checks, timed but "
        f"not warm; {aside if void else 'none was set aside'}."
    )


def void_table(run: Run) -> environment.Table:
    """Samples that don't count, by experiment and reason."""
    rows = []
    void = run.samples[run.samples["void"] != ""]
    for experiment, of_one in void.groupby("experiment", sort=True):
        total = int((run.samples["experiment"] == experiment).sum())
        for reason, group in of_one.groupby("void", sort=True):
            detail = next((environment.first_line(str(d)) for d in group["detail"] if str(d).strip()), "no detail")
            share = words.percent(len(group) / total)
            rows.append((str(experiment), str(reason).replace("_", " "), f"{len(group):,}", share, detail))
    head = ("experiment", "why set aside", "samples", "of its samples", "detail of the first")
    return environment.Table("Samples that don't count", head, tuple(rows))


def method(run: Run) -> list[tuple[str, str]]:
    """How the figures came about, term by term."""
    words_of_waiters = "; ".join(f"{name}: {meaning}" for name, meaning in words.WAITERS.items())
    return [
        *_TIMES,
        ("Waiters", f"{words_of_waiters}."),
        *_FIGURES,
        ("Checks of outputs", _checks(run)),
        *_amounts(run),
    ]


def _checks(run: Run) -> str:
    checks = [(launch.launch, check) for launch in run.launches for check in launch.checks]
    failed = [(launch, check) for launch, check in checks if check.outcome is not Outcome.ok]
    against = "a reference or, where there is none, one another"
    text = f"Before the first timed sample and after the last, against {against}: {words.counted(len(checks), 'check')}"
    if not failed:
        return f"{text}, {'none failed' if checks else 'so nothing was compared'}."
    told = [_check(launch, check) for launch, check in failed[:5]]
    more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
    return f"{text}, {len(failed)} failed: {'; '.join(told)}{more}."


def _check(launch: int, check: Check) -> str:
    detail = environment.first_line(check.detail, 120) or "no detail"
    return f"launch {launch} {check.stage} {check.program}: {check.outcome}, {detail}"


def _amounts(run: Run) -> list[tuple[str, str]]:
    good = [launch for launch in run.launches if launch.outcome is Outcome.ok]
    timed = run.samples[(run.samples["block"] > 0) & (run.samples["void"] == "")]
    blocks = timed.drop_duplicates(["experiment", "launch", "block"]).groupby("experiment").size()
    told = [f"{words.counted(int(n), 'block')} of {name}" for name, n in blocks.items()]
    return [
        ("Launches", f"{len(good)} of {words.counted(len(run.launches), 'launch', 'launches')} ended well."),
        ("Blocks", f"{words.sentence(words.listed(told)) or 'No block'} counted."),
        ("Stopped because", f"{words.given(run.manifest.why)}."),
    ]


def command(run: Run) -> str:
    """The command line that made the run."""
    return shlex.join(run.manifest.command) or "not recorded"
