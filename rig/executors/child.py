"""Runs programs without a browser, in a process of ours: requests are lines on its stdin, answers lines on its stdout.

As with a browser, every call has a deadline; when that passes, or the process dies, the session is over, and closing it
kills the process with all that it started.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from rig.executors.base import ExecutorFault
from rig.executors.wire import CALL_LIMIT_S, FEATURES, Opened, Surroundings, WireSession, adapter_record, clock_record
from rig.records import Build, Outcome

START_LIMIT_S = 60.0
CLOSE_LIMIT_S = 5.0

_MOST_SAID = 2000


class ChildSession(WireSession):
    """One process of `command`. A line on its stdout that is no answer is somebody else's, a driver's for instance."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], build: Build) -> None:
        """ExecutorFault where it does not start."""
        self.build = build
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the session
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=dict(environ),
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise ExecutorFault(Outcome.crashed, f"{command[0]} does not start: {error}") from None
        self._workers = [("native", self._process.pid)]
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def open(self, limits: dict[str, int]) -> None:
        """Asks for the adapter and makes the device; sets `adapter` and `clock`. ExecutorFault: there is none."""
        around = self._call("surroundings", Surroundings)
        opened = self._call("open", Opened, features=FEATURES, limits=limits, power="high-performance")
        driver = opened.driver or opened.adapter.description or "unknown"
        self.adapter = adapter_record(opened.adapter, opened.adapter.device, driver)
        self.clock = clock_record(around, has_span=opened.has_span)

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_LIMIT_S)
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()

    def _ask(self, text: str) -> str:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=CALL_LIMIT_S)
        except OSError:
            answer = None
        except queue.Empty:
            raise ExecutorFault(Outcome.timeout, f"no answer from the process in {CALL_LIMIT_S:g} s") from None
        if answer is None:
            raise ExecutorFault(Outcome.crashed, self._last_words())
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith((b'{"ok"', b'{"fault"')):
                    self._answers.put(line.decode())
        self._answers.put(None)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_LIMIT_S)
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace").strip()[-_MOST_SAID:]
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
        return f"the process ended ({self._process.poll()}): {last}"
