"""Where does the doctor look? One object, so that a test can plant another machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

LIMIT_S = 20.0

_OPEN = """
import ctypes, sys
try:
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    sys.exit(str(error))
maps = open("/proc/self/maps", errors="replace") if sys.platform == "linux" else ()
lines = (line.split(maxsplit=5)[-1].strip() for line in maps)
stem = sys.argv[1].rsplit("/", 1)[-1].split(".so")[0] + ".so"
print(next((line for line in lines if line.rsplit("/", 1)[-1].startswith(stem)), sys.argv[1]))
"""


@dataclass(frozen=True)
class Library:
    """A shared library that was opened: where it lies, or why it could not be."""

    path: str
    error: str = ""


@dataclass(frozen=True)
class Around:
    """A file system and an environment, and what can be asked of programs in it."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def path(self, absolute: str) -> Path:
        """The place of an absolute path in this file system."""
        return self.root / absolute.lstrip("/")

    def said(self, command: Sequence[str]) -> str | None:
        """What a program on the PATH prints, whatever its bytes; None where it is missing, fails or does not end."""
        program = shutil.which(command[0], path=self.environ.get("PATH", ""))
        if program is None:
            return None
        try:
            done = subprocess.run(
                [program, *command[1:]], capture_output=True, timeout=LIMIT_S, check=False, env=dict(self.environ)
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

    def has(self, program: str) -> bool:
        return shutil.which(program, path=self.environ.get("PATH", "")) is not None

    def opened(self, library: str) -> Library:
        """Opens a shared library, in a process of its own: a driver's may do anything there."""
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _OPEN, library],
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
                env=dict(self.environ),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Library("", str(error))
        if done.returncode == 0:
            return Library(done.stdout.decode("utf-8", "replace").strip())
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Library("", said[-1] if said else f"opening it ends the process ({done.returncode})")

    @cached_property
    def gpus(self) -> tuple[str, ...] | None:
        """NVIDIA GPUs by name, as nvidia-smi lists them; None where it is missing or does not work."""
        said = self.said(("nvidia-smi", "-L"))
        if said is None:
            return None
        # GPU 0: NVIDIA H200 (UUID: ...): the identifier is nobody's business
        return tuple(line.partition(": ")[2].partition(" (UUID")[0] for line in said.splitlines() if ": " in line)

    @cached_property
    def has_nvidia(self) -> bool:
        """Whether an NVIDIA GPU is there, by its tool, its device files or its kernel module."""
        marks = ("/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia/version")
        return self.gpus is not None or any(self.path(mark).exists() for mark in marks)
