"""Where a published figure and ours are far apart, what measured in this run accounts for it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rig import gates
from rig.frames import Run
from rig.published.beside import IMPLEMENTATIONS, Beside, Timed, bare
from rig.records import Launch, Metric, MetricOutcome, Outcome, Summary, Waiter
from rig.report import words

WIDE = 1.5
"""A published figure and ours further apart than this factor, either way, are told with what accounts for it."""

LEAST_SHARE = 0.1
"""A smaller part of our figure is not worth naming."""

PUBLISHED_TICK_US = {"chrome": 100.0}
"""Step of the clock that the published samples were read off, where it is known to be coarse."""

WAYS = {"dawn": "torch_webgpu"}
"""Implementations that were measured through an engine, and the policy that submits as it does."""


@dataclass(frozen=True)
class Cause:
    """Something measured here that a gap may come from. `left`: the ratio that would be left without it."""

    told: str
    left: float


@dataclass(frozen=True)
class Here:
    """What a run has of one executor: figures that count by key, its clock, and whether its adapter is software."""

    figures: Mapping[str, Metric]
    tick_us: float
    isolated: bool
    software: bool

    def us(self, metric: str, **variant: str | int) -> float | None:
        """A figure's value; None where there is none to rely on."""
        found = self.figures.get(_key(metric, variant))
        return found.value if found is not None and found.outcome is MetricOutcome.ok else None


def sentences(run: Run, summary: Summary, pairs: Sequence[Beside]) -> list[str]:
    """What accounts for each gap: one sentence for all of a figure's that the same accounts for."""
    here = {name: _here(run, summary, name) for name in {pair.ours.executor for pair in pairs}}
    groups: dict[object, list[tuple[Beside, list[Cause]]]] = {}
    for pair in pairs:
        if is_wide(pair):
            causes = _causes(pair, here[pair.ours.executor])
            kind = (pair.ours.key, pair.ratio > 1, *(c.told for c in causes), any(_settles(c) for c in causes))
            groups.setdefault(kind, []).append((pair, causes))
    return [_sentence(group, here[group[0][0].ours.executor]) for group in groups.values()]


def is_wide(pair: Beside) -> bool:
    """Whether the two are so far apart that it is asked why."""
    return not 1 / WIDE <= pair.ratio <= WIDE


# --- what may account for it ---------------------------------------------------------------------------------------


def _causes(pair: Beside, here: Here) -> list[Cause]:
    return [cause for look in _LOOKS[pair.estimator.timed] if (cause := look(pair, here)) is not None]


def _settles(cause: Cause) -> bool:
    return 1 / WIDE <= cause.left <= WIDE


def _wait(pair: Beside, here: Here) -> Cause | None:
    """The wait's share of ours: the ladder's fixed part, or the wait for an empty queue. It only makes ours larger."""
    fixed = here.us("sequential.fixed_us", policy=str(pair.ours.variant.get("policy", "")))
    wait_us, what = (fixed, "the fixed part of the ladder") if fixed else (_empty_us(pair, here), "of an empty queue")
    if wait_us is None or pair.ratio < 1 or not LEAST_SHARE <= (share := wait_us / _sample_us(pair)) <= 1:
        return None
    told = f"the wait ({what}, {words.quantity(wait_us, 'us')} a sample) is {words.percent(share)} of ours"
    return Cause(told, pair.ratio * (1 - share))


def _empty_us(pair: Beside, here: Here) -> float | None:
    """The wait for an empty queue, by its own experiment or by the empty program, which takes the first waiter."""
    own = here.us("wait.latency_us", waiter=_waiter(pair), n=0)
    return here.us("noop.wall_us") if own is None and _waiter(pair) == Waiter.work_done else own


def _polling(pair: Beside, here: Here) -> Cause | None:
    """The waiter's step: one look more makes a sample so much longer, here or there."""
    step_us = here.us("wait.polling_step_us", waiter=_waiter(pair), n=1)
    if step_us is None:
        return None
    step = f"the waiter polls in steps of {words.quantity(step_us, 'us')}"
    if step_us >= _apart_us(pair):
        return Cause(f"{step}, and the two samples are not further apart", 1.0)
    share = step_us / _sample_us(pair)
    if pair.ratio < 1 or share < LEAST_SHARE:
        return None
    return Cause(f"{step}, up to {words.percent(share)} of a sample of ours", pair.ratio * (1 - share))


def _clock(pair: Beside, here: Here) -> Cause | None:
    """The step of the clock that samples were read off: of ours where it is coarse, of either where it is all."""
    step_us = max(here.tick_us, PUBLISHED_TICK_US.get(pair.row.implementation, 0.0))
    ours = f"our clock moves in steps of {words.quantity(here.tick_us, 'us')}"
    if step_us >= _apart_us(pair):
        theirs = "" if step_us == here.tick_us else f", the published one in steps of {words.quantity(step_us, 'us')}"
        return Cause(f"{ours}{theirs}, and the two samples are not further apart", 1.0)
    if here.tick_us < gates.COARSE_TICK_US:
        return None
    share = min(here.tick_us / _sample_us(pair), 1.0)
    why = "" if here.isolated else ", since its page is not cross-origin isolated"
    told = f"{ours}{why}, {words.percent(share)} of a sample"
    return Cause(told, pair.ratio * (1 - share if pair.ratio > 1 else 1 + share))


def _way(pair: Beside, here: Here) -> Cause | None:
    """What it costs here to submit as the engine does that the published figure was measured through."""
    own, theirs = str(pair.ours.variant.get("policy", "submit_each")), WAYS.get(pair.row.implementation, "")
    costs = [_per_dispatch_us(here, name) for name in (own, theirs)]
    if costs[0] is None or costs[1] is None:
        return None
    more_us = (costs[1] - costs[0]) * pair.estimator.n
    if abs(more_us) < LEAST_SHARE * _sample_us(pair) or (more_us > 0) == (pair.ratio > 1):
        return None
    told = (
        f"the published figure was measured through an engine: to submit as it does ({theirs}) costs "
        f"{words.quantity(costs[1], 'us')} a dispatch here, {own} {words.quantity(costs[0], 'us')}"
    )
    return Cause(told, pair.ratio * (1 + more_us / _sample_us(pair)))


_LOOKS: dict[Timed, tuple[Callable[[Beside, Here], Cause | None], ...]] = {
    Timed.waited: (_wait, _polling, _clock, _way),
    Timed.encoded: (_clock,),
    Timed.call: (),
}
"""What is looked at, by what a sample holds."""


def _per_dispatch_us(here: Here, policy: str) -> float | None:
    by_span = here.us("policy.per_dispatch_us", policy=policy, clock="span")
    return by_span if by_span is not None else here.us("policy.per_dispatch_us", policy=policy, clock="wall")


def _waiter(pair: Beside) -> str:
    return str(pair.ours.variant.get("waiter", Waiter.work_done))


def _sample_us(pair: Beside) -> float:
    return pair.ours_us * pair.estimator.n


def _apart_us(pair: Beside) -> float:
    """By how much a whole sample of one is longer than one of the other."""
    return abs(pair.ours_us - pair.row.value) * pair.estimator.n


# --- the run, and the words ----------------------------------------------------------------------------------------


def _here(run: Run, summary: Summary, name: str) -> Here:
    launches = [launch for launch in run.launches if launch.outcome is Outcome.ok and _executor(launch) == name]
    clocks = [launch.clock for launch in launches if launch.clock is not None]
    return Here(
        figures={_key(m.metric, bare(m.variant)): m for m in summary.metrics if m.executor == name},
        tick_us=max((clock.tick_us for clock in clocks), default=0.0),
        isolated=all(clock.isolated for clock in clocks),
        software=any(launch.adapter is not None and launch.adapter.is_fallback for launch in launches),
    )


def _executor(launch: Launch) -> str:
    """As in a figure's variant: empty for any browser."""
    return launch.executor if launch.executor in IMPLEMENTATIONS else ""


def _key(metric: str, variant: Mapping[str, str | int | float]) -> str:
    return f"{metric}{sorted(variant.items())}"


def _sentence(group: Sequence[tuple[Beside, list[Cause]]], here: Here) -> str:
    pair, causes = group[0]
    of = ", ".join(f"{name} {value}" for name, value in sorted(bare(pair.ours.variant).items()))
    apart = (f"{words.number(p.ratio)} times {words.quantity(p.row.value, 'us')}" for p, _ in group)
    found = [
        f"{words.label(pair.ours.metric)} ({of}): {words.quantity(pair.ours_us, 'us')} here, "
        f"{words.listed(dict.fromkeys(apart))} as published",
        "ours is of a software adapter, whose absolute times do not compare with a GPU's" if here.software else "",
        *(cause.told for cause in causes),
        _left(group) if causes else f"nothing {'else ' if here.software else ''}measured here accounts for it",
    ]
    return f"{'; '.join(text for text in found if text)}."


def _left(group: Sequence[tuple[Beside, list[Cause]]]) -> str:
    """What the largest of the causes leaves; nothing to say where it may be all of the gap."""
    causes = group[0][1]
    nearest = [min((c.left for c in found), key=lambda left: max(left, 1 / left)) for _, found in group]
    if 1.0 in nearest:
        return ""
    without = "that" if len(causes) == 1 else "the largest of these"
    left = f"without {without} {words.listed(dict.fromkeys(map(words.number, nearest)))} times would be left"
    if any(_settles(cause) for cause in causes):
        return left
    return f"{left}, and nothing measured here accounts for the rest"
