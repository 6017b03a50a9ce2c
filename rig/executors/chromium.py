"""Runs programs in a Chromium, headless where its adapter allows that, through the harness page.

Playwright's `evaluate` has no timeout of its own, so every call runs on a private event loop under a deadline. When
that passes, or the page dies, the session is over, and closing it kills the browser's whole process tree.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import os
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
import psutil
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, Playwright, async_playwright

from rig import page as page_server
from rig.browsers import flags as browser_flags
from rig.browsers.display import DisplayMissing, VirtualDisplay
from rig.browsers.find import Browser, identify
from rig.executors.base import ExecutorFault
from rig.executors.wire import CALL_LIMIT_S, FEATURES, Opened, Surroundings, WireSession, adapter_record, clock_record
from rig.records import Adapter, Build, Clock, Outcome, Policy, Program

T = TypeVar("T")

LAUNCH_LIMIT_S = 60.0
TRACE_LIMIT_S = 60.0
CLOSE_LIMIT_S = 5.0
CLOSE_STEP_S = 0.01

WORKERS = ("renderer", "gpu")
"""The processes whose CPU time is measured: the page's, and the one that drives the GPU."""


FLAGS_TOLD = "flags in force: "


def without_flags(fault: Exception) -> str:
    """What a fault says, less the browser's flags, which are in its launch."""
    return str(fault).partition(f"; {FLAGS_TOLD}")[0]


class ChromiumExecutor:
    """Launches one build of Chromium, again and again, with the same flags.

    `isolated` and `host` are the page's surroundings; only a doctor or a test wants them otherwise.
    """

    name = "chromium"

    def __init__(
        self, browser: Browser, flags: tuple[str, ...], *, isolated: bool = True, host: str = page_server.LOOPBACK
    ) -> None:
        self.browser = browser
        self._flags = flags
        self._loop = asyncio.new_event_loop()
        # what becomes of a call that was given up is nobody's concern any more
        self._loop.set_exception_handler(lambda *_: None)
        self._driver: Playwright | None = None
        self._display: VirtualDisplay | None = None
        self._serving = contextlib.ExitStack()
        self._url = self._serving.enter_context(page_server.serve(isolated=isolated, host=host))

    @property
    def build_id(self) -> str:
        return self.browser.id

    @property
    def flags(self) -> tuple[str, ...]:
        return self._flags

    def takes(self, program: Program, policy: Policy) -> bool:  # noqa: ARG002
        return True

    def launch(self, limits: dict[str, int], extra_flags: tuple[str, ...] = ()) -> ChromiumSession:
        """ExecutorFault: the browser does not start, is not the build it was, or has no WebGPU device."""
        return self.browse(extra_flags).opened(limits)

    def browse(self, extra_flags: tuple[str, ...] = ()) -> ChromiumSession:
        """A browser with the harness page in it, before anything of WebGPU is asked for."""
        now = identify(self.browser.path) if self._changed() else self.browser
        if now.id != self.browser.id:
            raise ExecutorFault(Outcome.crashed, f"the browser changed during the run: {self.browser.id}, now {now.id}")
        if self._driver is None:
            self._driver = self._loop.run_until_complete(async_playwright().start())
        session = ChromiumSession(self._loop, self.browser, self._shown())
        try:
            session.start(self._driver, browser_flags.merged((*self._flags, *extra_flags)), self._url)
        except ExecutorFault:
            session.close()
            self._stop_driver()  # it may be the one that died
            raise
        except BaseException:
            session.close()
            raise
        return session

    def rest(self) -> None:
        """Ends Playwright's driver until the next launch: with many builds in turn, each would keep one."""
        self._stop_driver()

    def close(self) -> None:
        self._stop_driver()
        if self._display is not None:
            self._display.close()
        self._serving.close()
        self._loop.close()

    def _stop_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            with contextlib.suppress(PlaywrightError, OSError, TimeoutError):
                self._loop.run_until_complete(asyncio.wait_for(driver.stop(), CLOSE_LIMIT_S))

    def _shown(self) -> str | None:
        """The display that the browser's window is on; None where it has none. ExecutorFault where none can be had."""
        if not browser_flags.windowed(self._flags):
            return None
        if own := os.environ.get("DISPLAY"):
            return own
        try:
            self._display = self._display or VirtualDisplay()
        except DisplayMissing as error:
            raise ExecutorFault(Outcome.not_supported, f"no display: {error}") from None
        return self._display.name

    def _changed(self) -> bool:
        """A cheap look: hashing some 200 MB before every launch would disturb it."""
        stat = self.browser.path.stat()
        return (stat.st_size, stat.st_mtime_ns) != self.browser.stamp


class ChromiumSession(WireSession):
    """One browser process with the harness page open in it."""

    build: Build
    adapter: Adapter
    clock: Clock

    def __init__(self, loop: asyncio.AbstractEventLoop, browser: Browser, display: str | None) -> None:
        self._loop = loop
        self._browser = browser
        self._display = display
        self._process: PlaywrightBrowser | None = None
        self._page: Page | None = None
        self._renderer = self._driver_name = ""
        self.pid = 0
        self.has_api = False
        self._workers: list[tuple[str, int]] = []

    # --- start and end ---

    def start(self, driver: Playwright, flags: tuple[str, ...], url: str) -> None:
        """Starts the browser and loads the page; sets `build` and `clock`."""
        in_sandbox, _ = browser_flags.sandbox()
        self._process = self._run(
            driver.chromium.launch(
                executable_path=self._browser.path,
                headless=self._display is None,
                args=list(flags),
                chromium_sandbox=in_sandbox,
                env=None if self._display is None else {**os.environ, "DISPLAY": self._display},
            ),
            LAUNCH_LIMIT_S,
        )
        self._renderer, self._driver_name = self._run(self._system_info(self._process), CALL_LIMIT_S)
        self.build = Build(
            flavour=self._browser.flavour,
            version=self._process.version,
            sha256=self._browser.sha256,
            executable=str(self._browser.path),
            flags=self._effective_flags(),
            driver_version=f"playwright {importlib.metadata.version('playwright')}",
        )
        if self.build.version != self._browser.version:
            said, ran = self._browser.version, self.build.version
            raise ExecutorFault(Outcome.crashed, f"{self._browser.path} reports version {said} but {ran} runs")
        self._page = self._run(self._process.new_page(), CALL_LIMIT_S)
        self._run(self._page.goto(url), CALL_LIMIT_S)
        self._run(self._page.wait_for_function("globalThis.rig !== undefined"), CALL_LIMIT_S)
        around = self._call("surroundings", Surroundings)
        self.clock = clock_record(around, has_span=False)
        self.has_api = around.has_api
        self._workers = [(kind, pid) for kind, pid in self.processes().items() if kind in WORKERS]

    def open(self, limits: dict[str, int]) -> None:
        """Asks for the adapter and makes the device; sets `adapter`. ExecutorFault says what is missing, and why."""
        try:
            opened = self._call("open", Opened, features=FEATURES, limits=limits, power=None)
        except ExecutorFault as fault:
            raise ExecutorFault(fault.outcome, f"{fault.detail}; {self._advice()}") from None
        self.clock = msgspec.structs.replace(self.clock, has_span=opened.has_span)
        self.adapter = adapter_record(opened.adapter, self._renderer, self._driver_name)

    def close(self) -> None:
        tree = self._tree()
        if self._process is not None:
            with contextlib.suppress(ExecutorFault):
                self._run(self._process.close(), CLOSE_LIMIT_S)
        for process in tree:
            with contextlib.suppress(psutil.Error):
                process.kill()
        deadline = time.monotonic() + CLOSE_LIMIT_S
        while any(_lives(process) for process in tree) and time.monotonic() < deadline:
            time.sleep(CLOSE_STEP_S)

    def processes(self) -> dict[str, int]:
        """Process id by Chromium's name of the process type (browser, gpu, renderer, ...), in lower case."""

        async def ask() -> dict[str, int]:
            assert self._process is not None
            devtools = await self._process.new_browser_cdp_session()
            info = await devtools.send("SystemInfo.getProcessInfo")
            await devtools.detach()
            return {entry["type"].lower(): entry["id"] for entry in info["processInfo"]}

        return self._run(ask(), CALL_LIMIT_S)

    def start_trace(self, categories: Sequence[str]) -> None:
        """Has DevTools trace all processes of the browser, which costs them time."""
        assert self._process is not None
        self._run(self._process.start_tracing(categories=list(categories)), CALL_LIMIT_S)

    def end_trace(self) -> bytes:
        """The trace since start_trace, as JSON."""
        assert self._process is not None
        return self._run(self._process.stop_tracing(), TRACE_LIMIT_S)

    # --- one call ---

    def _ask(self, text: str) -> str:
        assert self._page is not None
        answer = self._run(self._page.evaluate("text => globalThis.rig.call(text)", text), CALL_LIMIT_S)
        assert isinstance(answer, str)
        return answer

    def _run(self, work: Coroutine[Any, Any, T], limit_s: float) -> T:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, limit_s))
        except TimeoutError:
            raise ExecutorFault(Outcome.timeout, f"no answer from the browser in {limit_s:g} s") from None
        except PlaywrightError as error:
            raise ExecutorFault(Outcome.crashed, _first_line(error)) from None

    async def _system_info(self, process: PlaywrightBrowser) -> tuple[str, str]:
        """GL renderer and driver as the browser itself names them; and, on the way, its process id."""
        devtools = await process.new_browser_cdp_session()
        processes = await devtools.send("SystemInfo.getProcessInfo")
        self.pid = next((entry["id"] for entry in processes["processInfo"] if entry["type"] == "browser"), 0)
        gpu = (await devtools.send("SystemInfo.getInfo"))["gpu"]
        await devtools.detach()
        device = gpu["devices"][0] if gpu["devices"] else {}
        driver = f"{device.get('driverVendor', '')} {device.get('driverVersion', '')}".strip()
        return device.get("deviceString", ""), driver or "unknown"

    def _advice(self) -> str:
        if not self.clock.secure:
            return "serve the page from localhost or by https; the GPU and its driver are not the cause"
        if browser_flags.UNSAFE_WEBGPU not in self.build.flags:
            return f"the browser runs without {browser_flags.UNSAFE_WEBGPU}; {FLAGS_TOLD}{' '.join(self.build.flags)}"
        return f"{FLAGS_TOLD}{' '.join(self.build.flags)}"

    def _effective_flags(self) -> tuple[str, ...]:
        """The command line that really runs: the driver adds its own, and the last switch of a name wins."""
        try:
            line = psutil.Process(self.pid).cmdline()[1:]
        except psutil.Error:
            return ("unknown",)
        return tuple("--user-data-dir=*" if flag.startswith("--user-data-dir=") else flag for flag in line)

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self.pid) if self.pid else None
            return [root, *root.children(recursive=True)] if root else []
        except psutil.Error:
            return []


def _lives(process: psutil.Process) -> bool:
    """Whether it can still do anything: one that only waits to be counted by its parent can't."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _first_line(error: PlaywrightError) -> str:
    lines = [line.strip("╔═╗║╚╝ ") for line in error.message.splitlines()]
    return next((line for line in lines if line), "the browser gave no reason")
