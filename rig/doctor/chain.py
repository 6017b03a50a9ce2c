"""Which link is the first that is broken? Examines them all, in the order in which one rests on another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from rig import host
from rig.browsers import flags as browser_flags
from rig.browsers.find import Browser
from rig.browsers.flags import AdapterAsked
from rig.doctor import gpu, installed, page, quiet, vulkan
from rig.doctor.around import Around
from rig.doctor.finding import Finding, State
from rig.executors import native
from rig.executors.base import ExecutorFault
from rig.executors.chromium import ChromiumExecutor
from rig.records import SCHEMA, Adapter, encode

Start = Callable[[Browser, tuple[str, ...]], ChromiumExecutor]

TOWARDS_GPU = {
    "GPU",
    "GPU in the container",
    "Vulkan loader",
    "Vulkan variables",
    "Vulkan drivers",
    "driver's libraries",
    "display",
}
"""Links that only matter as long as the adapter is not the one that they lead to."""


@dataclass(frozen=True)
class Diagnosis:
    """All findings. `software_refused`: a GPU was asked for, and the CPU answered."""

    findings: tuple[Finding, ...]
    software_refused: bool = False

    @property
    def cause(self) -> Finding | None:
        """The first broken link: what is wrong behind it may only be its consequence."""
        return next((finding for finding in self.findings if finding.state is State.wrong), None)

    def json(self) -> bytes:
        """Strict JSON on one line."""
        cause = self.cause
        told = {"schema": SCHEMA, "ok": cause is None, "findings": self.findings, "cause": cause and cause.link}
        return encode(told)


def examine(
    browser: str,
    asked: AdapterAsked,
    extra_flags: tuple[str, ...] = (),
    *,
    around: Around | None = None,
    start: Start = ChromiumExecutor,
) -> Diagnosis:
    """Looks at every link that can be looked at. `start` makes the executor; a test may want another."""
    around = around or Around()
    flags = browser_flags.flags(asked, extra_flags)
    found: Browser | None = None
    first = [installed.python_here()]
    node = native.driver_node(around.environ)
    if node is not None and (told := installed.libraries("driver", node, around)):
        first.append(told)
    for part in installed.browser(browser, around, windowed=browser_flags.windowed(flags)):
        if isinstance(part, Browser):
            found = part
        else:
            first.append(part)
    first.append(installed.beside())
    state, machine = host.state(), host.describe()
    seen: page.Probe | None = None
    broken: Finding | None = None
    if found is not None and not any(finding.state is State.wrong for finding in first):
        seen, broken = _seen(found, flags, start)
    chain = [
        *first,
        _sandbox(),
        quiet.shared_memory(machine.shared_memory_bytes, seen.build.flags if seen else None),
        *_towards_gpu(around, found, asked),
        quiet.load(state, machine.cores),
        *quiet.speed(machine, state),
        *gpu.users(around),
        quiet.leftovers(),
        *([broken] if broken else []),
        *(page.findings(seen, asked) if seen else ()),
    ]
    adapter = seen.adapter if seen else None
    refused = asked is AdapterAsked.hardware and adapter is not None and adapter.is_fallback
    return Diagnosis(tuple(settled(chain, adapter, asked)), refused)


def settled(chain: Iterable[Finding], adapter: Adapter | None, asked: AdapterAsked) -> Iterator[Finding]:
    """What is wrong on the way to a GPU is only a note where one answered, or where the CPU was asked for and did."""
    arrived = adapter is not None and (not adapter.is_fallback or asked is AdapterAsked.software)
    for finding in chain:
        harmless = arrived and finding.link in TOWARDS_GPU and finding.state is State.wrong
        yield replace(finding, state=State.note) if harmless else finding


def _towards_gpu(around: Around, browser: Browser | None, asked: AdapterAsked) -> Iterator[Finding]:
    hardware = asked is AdapterAsked.hardware
    needed = hardware or (around.has_nvidia and asked is AdapterAsked.any)
    yield gpu.devices(around, needed)
    yield from gpu.capabilities(around)
    yield vulkan.loader(around, browser.path if browser else None, needed)
    yield from vulkan.variables(around)
    told, drivers = vulkan.files(around, needed)
    yield told
    nvidia = around.has_nvidia or any(driver.nvidia for driver in drivers)
    if nvidia or hardware:
        yield vulkan.opened_by_name(around, nvidia)
    yield gpu.display(around, nvidia, hardware)


def _sandbox() -> Finding:
    on, why = browser_flags.sandbox()
    return Finding("sandbox", State.fine if on else State.note, why)


def _seen(browser: Browser, flags: tuple[str, ...], start: Start) -> tuple[page.Probe | None, Finding | None]:
    """What the browser says once it runs, or why it does not."""
    executor = start(browser, flags)
    try:
        session = executor.browse()
        try:
            return page.probe(session), None
        finally:
            session.close()
    except ExecutorFault as fault:
        mend = f"try {browser.path} --headless --no-sandbox --dump-dom about:blank, and mend what it says"
        return None, Finding("start", State.wrong, f"{fault.outcome}: {fault.detail}", mend)
    finally:
        executor.close()
