"""A display of our own, for a browser that must have a window where there is none to show it on."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess

START_LIMIT_S = 15.0
SIZE = "1280x1024x24"


class DisplayMissing(Exception):
    """No display could be had; one line says why, and what to do."""


class VirtualDisplay:
    """Xvfb on a free display number, from construction until `close`. DisplayMissing where it does not start."""

    def __init__(self) -> None:
        told, tell = os.pipe()
        command = ("Xvfb", "-displayfd", str(tell), "-screen", "0", SIZE, "-nolisten", "tcp")
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=(tell,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            os.close(told)
            raise DisplayMissing(f"Xvfb does not start ({error.strerror}); install it (Debian: xvfb)") from None
        finally:
            os.close(tell)
        with os.fdopen(told, "rb") as numbers:
            ready, _, _ = select.select([numbers], [], [], START_LIMIT_S)
            number = numbers.readline().strip().decode() if ready else ""
        if not number:
            self.close()
            raise DisplayMissing(f"Xvfb gave no display in {START_LIMIT_S:g} s")
        self.name = f":{number}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(START_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
