"""Where the pages and kernels are: package data in a wheel, the top level in a checkout. The only place that knows."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def folder(name: str) -> Path:
    """The folder `pages` or `wgsl`. FileNotFoundError where the installation is incomplete."""
    for place in (_PACKAGE / "_assets" / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"the rig is installed without its {name}/ folder")


@cache
def wgsl(kernel: str) -> str:
    """WGSL of the kernel `kernel`, without the header that its file begins with."""
    _, _, code = source(kernel).partition("\n\n")
    return code


def source(kernel: str) -> str:
    """The whole file of the kernel `kernel`: its header is its contract."""
    return (folder("wgsl") / f"{kernel}.wgsl").read_text(encoding="utf-8")


def kernels() -> list[str]:
    """Names of all kernels, sorted."""
    base = folder("wgsl")
    return sorted(path.relative_to(base).with_suffix("").as_posix() for path in base.rglob("*.wgsl"))


@cache
def source_hash() -> str:
    """SHA-256 over everything that the rig consists of: Python, pages and WGSL. 16 hex digits."""
    digest = hashlib.sha256()
    for base, pattern in ((_PACKAGE, "**/*.py"), (folder("pages"), "*"), (folder("wgsl"), "**/*.wgsl")):
        for path in sorted(base.glob(pattern)):
            if path.is_file():
                digest.update(path.relative_to(base).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
