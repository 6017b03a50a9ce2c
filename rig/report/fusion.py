"""How is the fused decode step told? Sentences, two pictures, the published ladder, a small table for each cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from rig.experiments.fusion.cells import BASE, BUSY, FUSED, OTHER, QUALITY_STAGE, UNFUSED
from rig.experiments.fusion.verdicts import Found
from rig.programs.decode.passes import PUBLISHED
from rig.published.rows import Row, read
from rig.records import Metric
from rig.report import chart_fusion, words
from rig.report.chart_fusion import Axes
from rig.report.charts import Figure
from rig.report.environment import Table

TITLE = "A decode step, fused"
BESIDE = ("torch_webgpu", BASE, OTHER)
"""Policies whose tokens a second stand beside the published ladder: the engine's own first."""

PAPER, MODEL, SHAPE = "arXiv:2604.02344", "Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b"
PLAIN = "workgroup"
"""The quality of kernel that the others are compared with."""

_READING = (
    "In brackets: 95 % intervals over launches. A dash: no figure; where a reason is known, the table of all figures "
    "has it. A step's time, tokens a second and a gain are geometric means over launches, of each launch the median "
    "over its blocks, for a gain of ratios paired within a block: it need not be the ratio of the two steps shown."
)
_BASE = "the base"


@dataclass(frozen=True)
class Part:
    """A small table under its name, with what to know of it."""

    table: Table
    note: str


@dataclass(frozen=True)
class Section:
    """`sentences`: what was found; `reading`: how to read it; `parts`: the ladder, then a table for each cause."""

    title: str
    sentences: tuple[str, ...]
    reading: str
    figures: tuple[Figure, ...]
    parts: tuple[Part, ...]


def section(metrics: Sequence[Metric]) -> Section:
    """All of it, from the figures of the browser."""
    found = Found(metrics)
    known = chart_fusion.axes(found)
    parts = [
        _ladder(found),
        _causes(found, known),
        _splitting(found, known),
        _qualities(found, known),
        _traffic(found, known),
        _batches(found, known),
        _readback(found, known),
    ]
    return Section(
        title=TITLE,
        sentences=tuple(sentences(found, known)),
        reading=_READING,
        figures=tuple(chart_fusion.figures(found)),
        parts=tuple(part for part in parts if part.table.rows),
    )


# --- sentences ---------------------------------------------------------------------------------------------------


def sentences(found: Found, known: Axes) -> list[str]:
    """What fusing gains, what submitting otherwise gains, what accounts for it; nothing of what has no figure."""
    told = [_gain(found, policy) for policy in known.arms]
    told += [_batching(found, policy) for policy in known.arms if policy != BASE]
    told += [_explained(found, policy) for policy in known.arms]
    return [sentence for sentence in (*told, _cores(found, known)) if sentence]


def _gain(found: Found, policy: str) -> str:
    steps = [found.one("step_us", stage=stage, policy=policy) for stage in (UNFUSED, FUSED)]
    counts = [chart_fusion.dispatches(found, stage) for stage in (UNFUSED, FUSED)]
    gain = found.one("gain", stage=FUSED, policy=policy)
    if not _all(*steps, gain) or None in counts:
        return ""
    unfused, fused = (f"{words.cell(step)} in {words.exact(n)}" for step, n in zip(steps, counts, strict=True))
    how = words.sentence(words.policy(policy))
    return f"{how} a step takes {unfused} dispatches and {fused}: it is {words.cell(gain)} as fast."


def _batching(found: Found, policy: str) -> str:
    gain = found.one("submission_gain", stage=UNFUSED, policy=policy, over=BASE)
    worth = found.one("batching_over_fusing", policy=policy, over=BASE)
    if not _all(gain):
        return ""
    base, other = words.policy(BASE), words.policy(policy)
    more = f", and {words.cell(worth)} as fast as the fused one {base}" if _all(worth) else ""
    return f"The unfused step is {words.cell(gain)} as fast {other} as {base}{more}."


def _explained(found: Found, policy: str) -> str:
    told = [
        f"{what} {words.cell(part)}"
        for kind, what in (("empty", "empty ones cost"), ("copy", "copies cost"))
        if _all(part := found.one("explained_fraction", padding=kind, policy=policy))
    ]
    if not told:
        return ""
    how = words.sentence(words.policy(policy))
    return f"{how}, as many dispatches put back as fusing removes: {words.listed(told)} of what it saves."


def _cores(found: Found, known: Axes) -> str:
    shares = {policy: found.one("cores_share", policy=policy) for policy in known.arms}
    used = [f"{words.cell(share)} {words.policy(policy)}" for policy, share in shares.items() if _all(share)]
    if not used:
        return ""
    told = f"Of the host's cores the unfused step keeps busy {words.listed(used)}"
    if not found.all("cpu_saturated"):
        return f"{told}."
    return f"{told}: what issues has no time to spare or is itself the adapter, so causes can't be told apart."


def _all(*metrics: Metric | None) -> bool:
    return all(metric is not None and words.has_value(metric) for metric in metrics)


# --- the published ladder ----------------------------------------------------------------------------------------


@cache
def published() -> tuple[tuple[Row, ...], Row]:
    """The paper's tokens a second, most dispatches first, and its gain of fusing."""
    rows = [row for row in read() if row.source_path.startswith(PAPER) and row.model == MODEL]
    ladder = [row for row in rows if row.experiment == "e2e_decode" and row.n_dispatches]
    gain = next(row for row in rows if row.experiment == "fusion_throughput_gain")
    return tuple(sorted(ladder, key=lambda row: -(row.n_dispatches or 0))), gain


def _ladder(found: Found) -> Part:
    ladder, gain = published()
    rows = [
        (
            stage,
            words.exact(row.n_dispatches),
            words.exact(row.value),
            _count(found, stage),
            *(words.cell(found.one("tokens_per_s", stage=stage, policy=policy), bare=True) for policy in BESIDE),
            words.cell(found.one("submission_gain", stage=stage, policy=OTHER, over=BASE)),
        )
        for stage, row in zip(PUBLISHED, ladder, strict=True)
    ]
    fusing = (words.cell(found.one("gain", stage=FUSED, policy=policy)) for policy in BESIDE)
    both = words.cell(found.one("batching_over_fusing", policy=OTHER, over=BASE))
    told = words.quantity(1 + gain.value / 100, "ratio")
    rows.append((f"gain of {FUSED} over {UNFUSED}", "", told, "", *fusing, f"over fusing {both}"))
    head = (
        "stage",
        "published: dispatches",
        "published: tokens a second",
        "ours: dispatches",
        *(f"ours: {policy}" for policy in BESIDE),
        f"ours: {OTHER} over {BASE}",
    )
    return Part(Table("The published ladder beside ours, tokens a second", head, tuple(rows)), _ladder_note(found))


def _ladder_note(found: Found) -> str:
    first = published()[0][0]
    caveat = words.sentence(first.note.partition("; ")[2])
    shapes = dict.fromkeys(str(m.variant["shape"]) for m in found.all("dispatches"))
    here = f"Ours: shape {words.listed(shapes)}." if shapes else "Ours: a shape that is not known."
    if list(shapes) != [SHAPE]:
        here += " It is not that model's: dispatches and gains can be compared, tokens a second can't."
    return (
        f"Published: {first.source_path}, {first.implementation} on Dawn, {first.gpu}, {first.dtype}, {first.model}. "
        f"{caveat}. {here}"
    )


def _count(found: Found, stage: str) -> str:
    n = chart_fusion.dispatches(found, stage)
    return words.DASH if n is None else words.exact(n)


# --- a table for each cause --------------------------------------------------------------------------------------


def _causes(found: Found, known: Axes) -> Part:
    kinds = dict.fromkeys(str(m.variant["padding"]) for m in found.all("step_us") if "padding" in m.variant)
    rows = [
        (
            policy,
            kind,
            words.cell(found.one("padding_us", padding=kind, policy=policy)),
            words.cell(found.one("saved_us", stage=FUSED, policy=policy)),
            words.cell(found.one("explained_fraction", padding=kind, policy=policy)),
            words.cell(found.one("marginal_us", padding=kind, policy=policy)),
            words.cell(found.one("dispatch_share", padding=kind, policy=policy)),
        )
        for policy, kind in product(known.arms, kinds)
    ]
    head = (
        "policy",
        "put back",
        "they cost",
        "fusing saves",
        "explained: their cost over the saving",
        "each one more",
        "all of the step's at that price",
    )
    note = (
        f"As many dispatches as {FUSED} has fewer than {UNFUSED}, put back into it where they were. Where they cost "
        "what fusing saves, their count is the cause."
    )
    return Part(Table("How much of the saving is the dispatches' own", head, tuple(rows)), note)


def _splitting(found: Found, known: Axes) -> Part:
    pieces = dict.fromkeys(m.variant["dispatches"] for m in (*found.all("split_us"), *found.all("split_busy_us")))
    rows = [
        (
            words.exact(float(n)),
            *(words.cell(found.one("split_us", dispatches=n, policy=policy)) for policy in known.arms),
            words.cell(found.one("split_busy_us", dispatches=n)),
        )
        for n in pieces
    ]
    if rows:
        slopes = (words.cell(found.one("split_dispatch_us", policy=policy)) for policy in known.arms)
        rows.append(("each one more", *slopes, ""))
    head = ("dispatches", *(f"wall time, {policy}" for policy in known.arms), f"GPU busy, {BUSY.partition('+')[0]}")
    note = "The same steps of one loop, cut into so many dispatches: what grows is the dispatches' and not the work's."
    return Part(Table("A fixed piece of work, split", head, tuple(rows)), note)


def _qualities(found: Found, known: Axes) -> Part:
    names = dict.fromkeys(str(m.variant["quality"]) for m in found.all("step_us", stage=QUALITY_STAGE) if _has(m))
    rows = [
        (
            policy,
            name,
            words.cell(found.one("step_us", stage=QUALITY_STAGE, quality=name, policy=policy)),
            words.cell(found.one("tokens_per_s", stage=QUALITY_STAGE, quality=name, policy=policy), bare=True),
            _BASE if name == PLAIN else words.cell(found.one("quality_gain", quality=name, policy=policy)),
        )
        for policy, name in product(known.arms, names)
        if set(names) != {PLAIN}
    ]
    head = ("policy", "matrix-vector kernel", "a step", "tokens a second", f"gain over {PLAIN}")
    note = f"Other kernels at one count of dispatches, that of the stage {QUALITY_STAGE}."
    return Part(Table("Better kernels, as many dispatches", head, tuple(rows)), note)


def _has(metric: Metric) -> bool:
    return "quality" in metric.variant


def _traffic(found: Found, known: Axes) -> Part:
    has = found.all("traffic_us") or found.all("traffic_bytes")
    rows = [
        (
            stage,
            _count(found, stage),
            words.cell(next(iter(found.all("traffic_bytes", stage=stage)), None)),
            words.cell(found.one("traffic_us", stage=stage)),
        )
        for stage in known.stages
        if has
    ]
    bandwidth = found.one("bandwidth_gb_per_s")
    notes = ["The copy's bandwidth has no figure."]
    if _all(bandwidth):
        notes = [
            f"A large copy moves {words.cell(bandwidth)}. This is somewhat low, and times at it somewhat long: the "
            "fixed cost of two dispatches is in each copy's time."
        ]
    for policy in known.arms:
        share = found.one("traffic_fraction", policy=policy)
        if _all(share):
            how = words.policy(policy)
            notes.append(
                f"At that bandwidth the bytes that {FUSED} spares take {words.cell(share)} of its saving {how}."
            )
    head = ("stage", "dispatches", "read and written", "time at that bandwidth")
    return Part(Table("Memory traffic of a step", head, tuple(rows)), " ".join(notes))


def _batches(found: Found, known: Axes) -> Part:
    sizes = dict.fromkeys(m.variant["batch"] for m in found.all("step_us") if "batch" in m.variant)
    rows = [
        (
            policy,
            words.exact(float(size)),
            *(words.cell(found.one("tokens_per_s", stage=stage, **own), bare=True) for stage in (UNFUSED, FUSED)),
            words.cell(found.one("gain", stage=FUSED, **own)),
            _BASE if size == 1 else words.cell(found.one("batch_slowdown", stage=UNFUSED, **own)),
        )
        for policy in known.arms
        if sizes
        for size, own in _sized(policy, (1, *sizes))
    ]
    head = (
        "policy",
        "sequences",
        f"tokens a second, {UNFUSED}",
        f"tokens a second, {FUSED}",
        "gain of fusing",
        f"{UNFUSED} step over that of one sequence",
    )
    note = "Several sequences in one step: as many dispatches, each with more work. Tokens of all sequences together."
    return Part(Table("Batches", head, tuple(rows)), note)


Variant = dict[str, str | int | float]


def _sized(policy: str, sizes: Sequence[str | int | float]) -> list[tuple[str | int | float, Variant]]:
    """Each size with its variant, in which one sequence goes unsaid."""
    return [(size, {"policy": policy} if size == 1 else {"policy": policy, "batch": size}) for size in sizes]


def _readback(found: Found, known: Axes) -> Part:
    stages = dict.fromkeys(str(m.variant["stage"]) for m in found.all("step_readback_us"))
    rows = [
        (
            policy,
            stage,
            *(words.cell(found.one(name, stage=stage, policy=policy)) for name in _READBACKS),
        )
        for policy, stage in product(known.arms, stages)
    ]
    head = ("policy", "stage", *_READBACKS.values())
    note = "A step is timed with tokens chained and one wait behind the last; here it is also waited for after each."
    return Part(Table("Reading back each token", head, tuple(rows)), note)


_READBACKS = {
    "step_us": "a step, one wait at the end",
    "step_readback_us": "a step, a wait after each",
    "first_token_us": "one step and its wait",
}
