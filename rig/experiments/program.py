"""program: a program of one's own, under each policy. What does a dispatch of it cost?"""

from __future__ import annotations

from collections.abc import Sequence

from rig import figures, stats
from rig.experiments.base import CountLadder, Experiment, Options, Point, PolicyNames, check_counts
from rig.frames import Run
from rig.ladder import Ladder, pair, ratio, slopes
from rig.policies import conflict, policy
from rig.programs import reference
from rig.records import Metric, Positive, Program, Verdict

ID = "program"
BASE = "submit_each"


class ProgramOptions(Options, frozen=True, kw_only=True):
    """`program`: what is to be run, see rig.records.Program; `counts`: of its dispatches, the list begun again."""

    blocks: Positive = 12
    program: Program | None = None
    counts: CountLadder = (1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000)
    policies: PolicyNames = ("submit_each", "one_pass")


def cells(options: ProgramOptions) -> list[Point]:
    """The program under every policy at every count. ValueError without a program, or where it can't be run so."""
    if options.program is None:
        raise ValueError("there is no program: give one with --program FILE.json")
    check_counts("counts", options.counts)
    known = {buffer.name for buffer in options.program.buffers}
    kernels = {kernel.name for kernel in options.program.kernels}
    for dispatch in options.program.dispatches:
        unknown = next((name for name in dispatch.bindings if name not in known), None)
        if unknown is not None or dispatch.kernel not in kernels:
            raise ValueError(f"program {options.program.name}: no such buffer or kernel: {unknown or dispatch.kernel}")
    missing = next((name for name in options.program.outputs if name not in known), None)
    if missing is not None or not options.program.dispatches or not options.program.outputs:
        raise ValueError(f"program {options.program.name}: {missing or 'no dispatches or outputs'}")
    if reference.known(options.program):
        try:
            reference.run(options.program, len(options.program.dispatches))
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"program {options.program.name}: a kernel has the name of one of the rig's: {error}"
            ) from None
    points = [Point(options.program, policy(name), n) for name in options.policies for n in options.counts]
    for point in points:
        impossible = conflict(point.program, point.policy, point.n)
        if impossible:
            raise ValueError(f"policies: {point.policy.name}: {impossible}")
    return points


def compute(run: Run, options: ProgramOptions) -> list[Metric]:
    """Of each policy: slopes by span and wall, the fixed part, encoding, and its gain over one submit each."""
    found: list[Metric] = []
    primary: dict[str, Ladder] = {}
    for name in options.policies:
        rows = run.rows(ID, policy=name)
        good = run.counted(rows)
        if reason := figures.no_slope(run, rows, ID):
            found.append(figures.missing(ID, "program.per_dispatch_us", {"policy": name}, "us", *reason))
            continue
        primary[name], by_span, by_wall = pair(ID, {"policy": name}, good)
        encode = slopes(good, good["encode_us"], "median")
        found += [by_span.per_dispatch(), by_wall.per_dispatch(), by_wall.fixed(), *by_wall.knee()]
        found.append(
            figures.over_launches(
                *(ID, "program.encode_us", {"policy": name}, "us", encode, len(good)), interval=stats.mean_interval
            )
        )
    if BASE in primary:
        others = ((name, own) for name, own in primary.items() if name != BASE)
        found += [ratio("program.gain", {"policy": name}, primary[BASE], own) for name, own in others]
    return found


def verdicts(metrics: Sequence[Metric]) -> list[Verdict]:  # noqa: ARG001
    """None: the claims are about the rig's own programs."""
    return []


EXPERIMENT = Experiment(
    id=ID,
    line="a program of your own, from a file (--program), under each policy",
    options=ProgramOptions,
    cells=cells,
    figures=compute,
    verdicts=verdicts,
)
