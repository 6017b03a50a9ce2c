"""What is wrong with this machine, and what mends it: the chain from the browser to the timer, link by link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rig.browsers import find
from rig.browsers import flags as browser_flags
from rig.browsers.flags import AdapterAsked
from rig.executors.base import ExecutorFault
from rig.executors.chromium import ChromiumExecutor, ChromiumSession

ISOLATED_TICK_US = 20
"""An isolated page's clock ticks in 5 µs; one without isolation in 100."""


class State(StrEnum):
    fine = "fine"
    note = "note"
    wrong = "wrong"


@dataclass(frozen=True)
class Finding:
    """One link of the chain: what was found, and for a wrong one what mends it."""

    link: str
    state: State
    found: str
    mend: str = ""


def examine(browser: str, asked: AdapterAsked, extra_flags: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Findings in the order of the chain; it ends where a link is so broken that nothing behind it can be looked at."""
    try:
        build = find.find(browser)
    except find.BrowserMissing as error:
        yield Finding("browser", State.wrong, str(error), "apt-get install chromium-headless-shell")
        return
    yield Finding("browser", State.fine, f"{build.path}, version {build.version}, sha256 {build.sha256[:16]}")
    in_sandbox, why = browser_flags.sandbox()
    yield Finding("sandbox", State.fine if in_sandbox else State.note, why)
    executor = ChromiumExecutor(build, browser_flags.flags(asked, extra_flags))
    try:
        session = executor.browse()
    except ExecutorFault as fault:
        mend = f"try {build.path} --headless --no-sandbox --dump-dom about:blank, and install what it says is missing"
        yield Finding("start", State.wrong, f"{fault.outcome}: {fault.detail}", mend)
        executor.close()
        return
    try:
        yield from page_findings(session)
        yield from adapter_findings(session, asked)
    finally:
        session.close()
        executor.close()


def page_findings(session: ChromiumSession) -> Iterator[Finding]:
    """The browser as it runs, and the page's surroundings."""
    clock = session.clock
    yield Finding("start", State.fine, f"{session.build.flavour} {session.build.version} runs")
    flags = session.build.flags
    if browser_flags.UNSAFE_WEBGPU in flags:
        yield Finding("flags", State.fine, f"{len(flags)} in force, {browser_flags.UNSAFE_WEBGPU} among them")
    else:
        wanted = f"start the browser with {browser_flags.UNSAFE_WEBGPU}"
        yield Finding("flags", State.note, f"{len(flags)} in force, none is {browser_flags.UNSAFE_WEBGPU}", wanted)
    if clock.secure:
        yield Finding("secure context", State.fine, "the page is secure")
    else:
        mend = "serve it from localhost or by https; GPU and driver are not the cause"
        yield Finding("secure context", State.wrong, "the page is not secure, so it has no WebGPU", mend)
    if clock.isolated and clock.tick_us <= ISOLATED_TICK_US:
        yield Finding("timer", State.fine, f"ticks in {clock.tick_us:.3g} µs, cross-origin isolated")
    else:
        isolated = "isolated" if clock.isolated else "not cross-origin isolated"
        mend = "serve the page with COOP same-origin and COEP require-corp"
        yield Finding("timer", State.wrong, f"ticks in {clock.tick_us:.3g} µs, {isolated}", mend)
    if clock.visibility != "visible":
        mend = "bring the page to the front: a hidden page is throttled"
        yield Finding("visibility", State.wrong, f"the page is {clock.visibility}", mend)


def adapter_findings(session: ChromiumSession, asked: AdapterAsked) -> Iterator[Finding]:
    """The WebGPU API, and the adapter obtained against the one asked for."""
    if not session.has_api:
        mend = "use Chromium 113 or newer" if session.clock.secure else "make the page secure first"
        yield Finding("WebGPU API", State.wrong, "navigator.gpu is missing", mend)
        return
    yield Finding("WebGPU API", State.fine, "navigator.gpu is there")
    try:
        session.open({})
    except ExecutorFault as fault:
        without = browser_flags.UNSAFE_WEBGPU not in session.build.flags
        mend = f"start it with {browser_flags.UNSAFE_WEBGPU}" if without else "rig doctor --adapter software"
        yield Finding("adapter", State.wrong, fault.detail, mend)
        return
    adapter = session.adapter
    kind = "software adapter" if adapter.is_fallback else "hardware adapter"
    text = f"asked for {asked}, got the {kind} {adapter.label}"
    if asked is not AdapterAsked.any and adapter.is_fallback is not (asked is AdapterAsked.software):
        mend = "install the GPU's Vulkan driver, or ask for --adapter any"
        yield Finding("adapter", State.wrong, text, mend)
    else:
        yield Finding("adapter", State.note if adapter.is_fallback else State.fine, text)
    if session.clock.has_span:
        yield Finding("GPU timestamps", State.fine, "timestamp-query is there")
    else:
        yield Finding(
            "GPU timestamps", State.note, "no timestamp-query: spans are not measured, the wall's slope is used"
        )
