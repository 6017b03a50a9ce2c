"""The executors without a browser: wgpu from Python, Dawn from JavaScript in Node; and CUDA from Python, for scale."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rig import assets, policies
from rig.browsers.flags import DAWN, F16_ON_NVIDIA, AdapterAsked
from rig.executors import vulkan
from rig.executors.child import ChildSession
from rig.records import Build, Caller, Policy, Program, Realm

NODE_LIMIT_S = 20.0

DAWN_OPTIONS = (f"{DAWN.lstrip('-')}{F16_ON_NVIDIA}", "disable-dawn-features=timestamp_quantization")
"""As npm's "webgpu" takes them. It rounds timestamps to 65,536 ns unless told not to."""


class NativeMissing(Exception):
    """Something that a native executor needs is not installed; one line says what, and how to get it."""


Takes = Callable[[Program, Policy], bool]


class NativeExecutor:
    """Starts one command again and again. `library`: the implementation that it loads, by whose hash a build is known.

    `driver_version`: the language that calls it. `takes`: which cells are for it.
    """

    def __init__(
        self,
        name: str,
        version: str,
        command: tuple[str, ...],
        library: Path,
        *,
        driver_version: str,
        environ: Mapping[str, str],
        flags: tuple[str, ...] = (),
        takes: Takes,
        session: type[ChildSession] = ChildSession,
    ) -> None:
        with library.open("rb") as file:
            self._sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self.name = name
        self.build_id = f"{name} {version} sha256:{self._sha256[:16]}"
        self.flags = (*flags, *vulkan.told(environ))
        self._version, self._command, self._library = version, (*command, *flags), library
        self._driver_version, self._environ, self._takes, self._session = driver_version, environ, takes, session

    def takes(self, program: Program, policy: Policy) -> bool:
        return self._takes(program, policy)

    def launch(self, limits: dict[str, int], extra_flags: tuple[str, ...] = ()) -> ChildSession:
        """ExecutorFault: it does not start, or has no device."""
        build = Build(
            flavour=self.name,
            version=self._version,
            sha256=self._sha256,
            executable=self._library.name,
            flags=(*self.flags, *extra_flags),
            driver_version=self._driver_version,
        )
        session = self._session((*self._command, *extra_flags), os.environ | self._environ, build)
        return session.opened(limits)

    def close(self) -> None:
        """Nothing outlives a session."""


def executor(name: str, asked: AdapterAsked, browser: Path | None = None) -> NativeExecutor:
    """The native executor `name`. `browser`: whose software driver is used where there is no GPU.

    NativeMissing: something of it is not installed. KeyError: no such executor.
    """
    return EXECUTORS[name](vulkan.environ(asked, browser.parent if browser else None))


def _wgpu(environ: Mapping[str, str]) -> NativeExecutor:
    folder = _package("wgpu", "wgpu is not installed: pip install 'webgpu-dispatch-rig[native]'")
    library = _library(folder, "resources/*wgpu_native*", "wgpu is installed without its native library")
    return _in_python("wgpu", "wgpu", library, environ, takes=_from_python)


def _package(name: str, missing: str) -> Path:
    """The folder of a Python package, which is not imported. NativeMissing with `missing` where there is none."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise NativeMissing(missing)
    return Path(spec.origin).parent


def _library(folder: Path, pattern: str, missing: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise NativeMissing(missing)
    return found[0]


def _in_python(
    name: str,
    package: str,
    library: Path,
    environ: Mapping[str, str],
    *,
    takes: Takes,
    session: type[ChildSession] = ChildSession,
) -> NativeExecutor:
    return NativeExecutor(
        name,
        importlib.metadata.version(package),
        (sys.executable, "-P", "-m", f"rig.native.on_{name}"),
        library,
        driver_version=f"Python {platform.python_version()}",
        environ=_with_ours(environ),
        takes=takes,
        session=session,
    )


def _with_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """So that the process finds this very package, whatever lies in the folder that it is started from."""
    ours = str(Path(__file__).resolve().parents[2])
    return {**environ, "PYTHONPATH": os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH", ""))))}


_MACHINES = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}
_NODE_PLATFORM = (
    "darwin-universal"
    if sys.platform == "darwin"
    else f"{sys.platform}-{_MACHINES.get(platform.machine(), platform.machine())}"
)


def _dawn(environ: Mapping[str, str]) -> NativeExecutor:
    package = _dawn_package()
    node = _node()
    try:
        said = subprocess.run([node, "--version"], capture_output=True, timeout=NODE_LIMIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NativeMissing(f"{node} does not start: {error}") from None
    missing = f"{package} has no Dawn for {_NODE_PLATFORM}"
    library = _library(package, f"dist/{_NODE_PLATFORM}/dawn.node", missing)
    return NativeExecutor(
        "dawn",
        _version(package),
        (str(node), str(assets.folder("pages") / "node.js"), str(package)),
        library,
        driver_version=f"Node {said.stdout.decode().strip().lstrip('v')}",
        environ=environ,
        flags=DAWN_OPTIONS,
        takes=_without_browser,
    )


def _version(package: Path) -> str:
    try:
        return str(json.loads((package / "package.json").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NativeMissing(f"{package / 'package.json'} names no version: {error!r}") from None


def _dawn_package() -> Path:
    """The folder of npm's "webgpu": where RIG_DAWN says, or in the checkout's node_modules."""
    said = os.environ.get("RIG_DAWN", "")
    place = Path(said) if said else assets.folder("pages").parent / "node_modules" / "webgpu"
    if not (place / "package.json").is_file():
        raise NativeMissing(f"Dawn is not at {place}: npm install webgpu, and its folder in RIG_DAWN")
    return place


def driver_node(environ: Mapping[str, str]) -> Path | None:
    """The Node that Playwright starts."""
    if own := environ.get("PLAYWRIGHT_NODEJS_PATH"):
        return Path(own)
    spec = importlib.util.find_spec("playwright")
    return Path(spec.origin).parent / "driver" / "node" if spec is not None and spec.origin else None


def _node() -> Path:
    """The Node that Playwright brings, or one on the PATH."""
    own = driver_node(os.environ)
    if own is not None and own.is_file():
        return own
    found = shutil.which("node")
    if found is None:
        raise NativeMissing("no Node: neither the one that Playwright brings nor one on the PATH")
    return Path(found)


def _without_browser(program: Program, policy: Policy) -> bool:
    """Not what only a browser has, a worker's realm; and not what no WebGPU has."""
    return program.realm is Realm.main and not policy.replayed


def _from_python(program: Program, policy: Policy) -> bool:
    return _without_browser(program, policy) and policy.caller is Caller.js


# --- CUDA --------------------------------------------------------------------------------------------------------


class CudaSession(ChildSession):
    """CUDA can record and replay."""

    def conflict(self, program: Program, policy: Policy, n: int) -> str:  # noqa: ARG002
        return ""


def _cuda(environ: Mapping[str, str]) -> NativeExecutor:
    folder = _package("torch", "PyTorch is not installed: pip install torch")
    library = _library(folder, "lib/*c10_cuda*", "this PyTorch is one without CUDA")
    return _in_python("cuda", "torch", library, environ, takes=chained, session=CudaSession)


CHAINED = ("increment_f32", "increment_i32")
"""Kernels that PyTorch has as one small kernel of its own."""

WAYS = (policies.policy("submit_each"), policies.policy(policies.REPLAYED))
"""One launch each, or all of them replayed."""


def chained(program: Program, policy: Policy) -> bool:
    """Whether CUDA takes it: a chain of such kernels on one buffer."""
    kernels = [kernel.name for kernel in program.kernels]
    chain = program.realm is Realm.main and len(program.dispatches) == len(kernels) == 1 and kernels[0] in CHAINED
    return chain and 0 not in program.dispatches[0].workgroups and policy in WAYS


EXECUTORS: dict[str, Callable[[Mapping[str, str]], NativeExecutor]] = {"wgpu": _wgpu, "dawn": _dawn, "cuda": _cuda}
