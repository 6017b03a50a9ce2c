"""What does a build's name say? `debian:156.0.8078.114`, `npm:143`, `cft:131..140`, `npm:131@npm:133`, `path:/...`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

UNVERSIONED = ("system", "playwright")
"""Names of what this machine has, whichever version that is."""

_VERSION = re.compile(r"\d+(?:\.\d+)*")
_RANGE = re.compile(r"(?P<first>\d*)\.\.(?P<last>\d*)(?:/(?P<step>\d+))?")

Versions = Callable[[str], Sequence[str]]
"""The versions that a provider, by its name, can give."""


class UnknownBuild(Exception):
    """A name that names no build, in one line."""


@dataclass(frozen=True)
class Wanted:
    """One build. `version`: of a provider, whole or its beginning; of `path`, the path.

    `driver`: the build whose software driver it is to run with, instead of the one it brings.
    """

    provider: str
    version: str = ""
    driver: Wanted | None = None

    def __str__(self) -> str:
        own = f"{self.provider}:{self.version}" if self.version else self.provider
        return f"{own}@{self.driver}" if self.driver else own

    @property
    def folder(self) -> str:
        """Its name as that of a folder: a path's with a hash, since others may read alike."""
        name = str(self)
        plain = re.sub(r"[^A-Za-z0-9.@-]+", "-", name).strip("-")
        if self.provider != "path":
            return plain
        return f"{plain[-60:].strip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def is_named(text: str, providers: Sequence[str]) -> bool:
    """Whether `text` is a build's name and not a path or a command."""
    return text.partition(":")[0] in (*providers, "path")


def parse(text: str, providers: Sequence[str]) -> Wanted:
    """One build's name. UnknownBuild: no such provider, or no version."""
    if not text.isprintable():
        raise UnknownBuild(f"{text!a} names no build: it has signs that can't be printed")
    own, at, driver = text.partition("@")
    if own.startswith("path:"):
        own, at, driver = text, "", ""  # a path may hold any sign
    provider, _, version = own.partition(":")
    if provider in UNVERSIONED and not version:
        return Wanted(provider)
    if provider == "path" and version:
        return Wanted(provider, version)
    if provider not in providers:
        known = ", ".join([*(f"{name}:VERSION" for name in providers), "path:FILE", *UNVERSIONED])
        raise UnknownBuild(f"'{text}' names no build (there are {known})")
    if not _VERSION.fullmatch(version):
        if _RANGE.fullmatch(version):
            raise UnknownBuild(f"'{text}' is a range, and one build is wanted here")
        raise UnknownBuild(f"'{text}': '{version}' is no version (143, 131.0.6778.85, or a range 113..153, 120..)")
    return Wanted(provider, version, parse(driver, providers) if at else None)


def expand(texts: Sequence[str], providers: Sequence[str], versions: Versions) -> list[Wanted]:
    """Every build that `texts` name, in their order, each once: of a range the newest of every major version in it,
    with `/k` only each k-th of those, its first and last always. UnknownBuild: nothing is in a range.
    """
    found: list[Wanted] = []
    for text in texts:
        provider, _, rest = text.partition(":")
        span = _RANGE.fullmatch(rest)
        if span is None or provider not in providers:
            found.append(parse(text, providers))
            continue
        every = int(span["step"] or 1)
        if every < 1:
            raise UnknownBuild(f"'{text}': each 0th is none; /2 takes every second one")
        if span["first"] and span["last"] and int(span["first"]) > int(span["last"]):
            raise UnknownBuild(f"'{text}' begins after its end")
        chosen = _within(versions(provider), span["first"], span["last"])
        if not chosen:
            raise UnknownBuild(f"'{text}': {provider} has no version in it")
        found += [Wanted(provider, v) for i, v in enumerate(chosen) if i % every == 0 or i == len(chosen) - 1]
    return list(dict.fromkeys(found))


def newest(version: str, versions: Sequence[str]) -> str:
    """The newest of `versions` that `version` is, or is the beginning of; nothing where none is."""
    fitting = [one for one in versions if one == version or one.startswith(f"{version}.")]
    return max(fitting, key=order, default="")


def order(version: str) -> tuple[int, ...]:
    """By what versions are sorted."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def major(version: str) -> int:
    return order(version)[0] if order(version) else 0


def _within(versions: Sequence[str], first: str, last: str) -> list[str]:
    low, high = int(first or 0), int(last or 10**9)
    fitting = sorted((v for v in versions if low <= major(v) <= high), key=order)
    return [max(group, key=order) for _, group in groupby(fitting, key=major)]
