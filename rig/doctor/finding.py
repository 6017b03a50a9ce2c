"""What does the doctor say about one link?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


def wrong_if(broken: bool, link: str, found: str, mend: str) -> Finding:
    """A finding on what breaks the chain in some machines and in others does not matter."""
    return Finding(link, State.wrong if broken else State.note, found, mend)
