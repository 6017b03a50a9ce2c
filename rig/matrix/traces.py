"""What do DevTools' traces of both sides of a step show? Pure: from what was kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rig import store
from rig.matrix.records import TRACES, Event, Trace, Traced, Traces
from rig.trace import Activity

LAUNCHES = 4
"""Of each side: by chance alone all of one side lie above all of the other once in 35 times."""

APART_TIMES, APART_US = 0.1, 0.5
"""Events that differ by less a dispatch are not worth telling."""

MOST_EVENTS = 12


def stored(place: Path) -> tuple[Trace, ...]:
    """The traces of a stored matrix; none where none were taken. StoreError where the file is broken."""
    at = place / TRACES
    return store.read(at, Traces).traces if at.is_file() else ()


def between(traces: Sequence[Trace], metric: str, before: str, after: str) -> Traced | None:
    """What sets two builds apart in the traces of one figure; None where none were taken."""
    sides = [[one for one in traces if one.metric == metric and one.build == build] for build in (before, after)]
    if not all(sides):
        return None
    good = [[one for one in side if not one.why] for side in sides]
    if min(len(side) for side in good) < LAUNCHES:
        return Traced(why=next((one.why for side in sides for one in side if one.why), "not launched often enough"))
    us_before, us_after = (median(one.us / one.dispatches for one in side) for side in good)
    places = {_place(act): None for side in good for one in side for act in one.activities}
    events = [told for place in places if (told := _event(place, *good)) is not None]
    events.sort(key=lambda one: -abs(one.own_us_after - one.own_us_before))
    return Traced(min(len(side) for side in good), us_before, us_after, tuple(events[:MOST_EVENTS]))


Where = tuple[str, str, str]


def _place(act: Activity) -> Where:
    return act.process, act.thread, act.event


def _event(place: Where, before: Sequence[Trace], after: Sequence[Trace]) -> Event | None:
    """An event for each dispatch, medians over the launches; None where the sides overlap, or hardly differ."""
    (times_a, own_a, cpu_a), (times_b, own_b, cpu_b) = (
        list(zip(*(_for_each(place, one) for one in side), strict=True)) for side in (before, after)
    )
    if not (_apart(times_a, times_b, APART_TIMES) or _apart(own_a, own_b, APART_US)):
        return None
    return Event(*place, *(median(values) for values in (times_a, times_b, own_a, own_b, cpu_a, cpu_b)))


def _for_each(place: Where, one: Trace) -> tuple[float, float, float]:
    """How often, and how long by wall and CPU; nothing where the trace does not have it."""
    act = next((act for act in one.activities if _place(act) == place), None)
    if act is None:
        return 0.0, 0.0, 0.0
    return act.times / one.dispatches, act.own_us / one.dispatches, act.own_cpu_us / one.dispatches


def _apart(a: Sequence[float], b: Sequence[float], least: float) -> bool:
    """Whether all of one side lie beyond all of the other, and the middles at least so far apart."""
    return (max(a) < min(b) or max(b) < min(a)) and abs(median(a) - median(b)) >= least
