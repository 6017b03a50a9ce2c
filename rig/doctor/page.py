"""What does the browser say once it runs: its flags, the page's surroundings, the API, the adapter?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rig.browsers import flags as browser_flags
from rig.browsers.flags import AdapterAsked
from rig.doctor.finding import Finding, State
from rig.executors.base import ExecutorFault
from rig.executors.chromium import ChromiumSession
from rig.records import Adapter, Build, Clock

ISOLATED_TICK_US = 20
"""An isolated page's clock ticks in 5 µs; one without isolation in 100."""

FIRST_WITH_WEBGPU = 113


@dataclass(frozen=True)
class Probe:
    """One browser, looked at once. `refusal`: why it gave no adapter."""

    build: Build
    clock: Clock
    has_api: bool
    adapter: Adapter | None
    refusal: str = ""


def probe(session: ChromiumSession) -> Probe:
    """Asks a running browser for its adapter."""
    refusal = ""
    if session.has_api:
        try:
            session.open({})
        except ExecutorFault as fault:
            refusal = fault.detail
    adapter = session.adapter if session.has_api and not refusal else None
    return Probe(session.build, session.clock, session.has_api, adapter, refusal)


def findings(seen: Probe, asked: AdapterAsked) -> Iterator[Finding]:
    """The links from the browser's start to its features, in their order; none behind a missing API or adapter."""
    yield Finding("start", State.fine, f"{seen.build.flavour} {seen.build.version} runs")
    yield _flags(seen)
    yield _secure(seen.clock)
    yield _visible(seen.clock)
    yield _timer(seen.clock)
    yield _api(seen)
    if not seen.has_api:
        return
    yield _adapter(seen, asked)
    if seen.adapter is not None:
        yield _timestamps(seen.clock)
        yield _f16(seen.adapter)


def _flags(seen: Probe) -> Finding:
    wanted, count = browser_flags.UNSAFE_WEBGPU, len(seen.build.flags)
    if wanted in seen.build.flags:
        return Finding("flags", State.fine, f"{count} in force, {wanted} among them")
    # without an API or on an insecure page the flag would change nothing
    matters = seen.has_api and seen.clock.secure and seen.adapter is None
    text = f"{wanted} is missing; in force: {' '.join(seen.build.flags)}"
    return Finding("flags", State.wrong if matters else State.note, text, f"start the browser with {wanted}")


def _secure(clock: Clock) -> Finding:
    if clock.secure:
        return Finding("secure context", State.fine, "the page is secure")
    mend = "serve it from localhost or by https; the GPU and its driver are not the cause"
    return Finding("secure context", State.wrong, "the page is not secure, so it has no WebGPU", mend)


def _visible(clock: Clock) -> Finding:
    if clock.visibility == "visible":
        return Finding("visibility", State.fine, "the page is visible")
    mend = "bring the page to the front: a hidden page is throttled"
    return Finding("visibility", State.wrong, f"the page is {clock.visibility}", mend)


def _timer(clock: Clock) -> Finding:
    if clock.isolated and clock.tick_us <= ISOLATED_TICK_US:
        return Finding("timer", State.fine, f"ticks in {clock.tick_us:.3g} µs, cross-origin isolated")
    isolated = "isolated" if clock.isolated else "not cross-origin isolated"
    mend = "serve the page with COOP same-origin and COEP require-corp, from a secure origin"
    return Finding("timer", State.wrong, f"ticks in {clock.tick_us:.3g} µs, {isolated}", mend)


def _api(seen: Probe) -> Finding:
    if seen.has_api:
        return Finding("WebGPU API", State.fine, "navigator.gpu is there")
    if not seen.clock.secure:
        mend = "make the page secure first"
    elif int(seen.build.version.split(".")[0] or 0) < FIRST_WITH_WEBGPU:
        mend = f"use Chromium {FIRST_WITH_WEBGPU} or newer"
    else:
        mend = f"start it without flags that switch WebGPU off; in force: {' '.join(seen.build.flags)}"
    return Finding("WebGPU API", State.wrong, f"navigator.gpu is missing in {seen.build.version}", mend)


def _adapter(seen: Probe, asked: AdapterAsked) -> Finding:
    if seen.adapter is None:
        mend = "mend what is wrong before it in the chain; else try --adapter software"
        return Finding("adapter", State.wrong, f"asked for {asked}, got none: {seen.refusal}", mend)
    software = seen.adapter.is_fallback
    kind = "software adapter" if software else "hardware adapter"
    text = f"asked for {asked}, got the {kind} {seen.adapter.label}"
    if not fits(seen.adapter, asked):
        mend = "install the GPU's Vulkan driver, or ask for --adapter any" if software else "ask for --adapter any"
        return Finding("adapter", State.wrong, text, mend)
    return Finding("adapter", State.note if software else State.fine, text)


def fits(adapter: Adapter, asked: AdapterAsked) -> bool:
    """Whether an adapter is one that was asked for."""
    return asked is AdapterAsked.any or adapter.is_fallback is (asked is AdapterAsked.software)


def _timestamps(clock: Clock) -> Finding:
    if clock.has_span:
        return Finding("GPU timestamps", State.fine, "timestamp-query is there")
    text = "no timestamp-query: spans are not measured, the wall's slope is used"
    return Finding("GPU timestamps", State.note, text)


def _f16(adapter: Adapter) -> Finding:
    if "shader-f16" in adapter.features:
        return Finding("16-bit floats", State.fine, "shader-f16 is there")
    nvidia = "nvidia" in f"{adapter.vendor} {adapter.renderer}".lower()
    mend = "--flag --enable-dawn-features=vulkan_enable_f16_on_nvidia" if nvidia else ""
    return Finding("16-bit floats", State.note, "no shader-f16: f16 is not measured", mend)
