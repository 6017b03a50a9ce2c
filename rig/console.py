"""What is said to people, where, and with which exit code."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.markup import escape

from rig.measure import Exit

out = Console(highlight=False, soft_wrap=True)
err = Console(highlight=False, soft_wrap=True, stderr=True)


def progress(text: str) -> None:
    err.print(escape(text))


def fail(code: Exit, why: str) -> typer.Exit:
    """To be raised: says why on stderr, in one line."""
    err.print(escape(f"rig: {why}"))
    return typer.Exit(code)
