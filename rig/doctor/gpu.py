"""Is a GPU there, may this container use it for graphics, and who else does?"""

from __future__ import annotations

from collections.abc import Iterator

from rig.doctor.around import Around
from rig.doctor.finding import Finding, State, wrong_if

NOBODY = ("", "void", "none")
"""Values of NVIDIA_VISIBLE_DEVICES that give a container no GPU."""


def devices(around: Around, needed: bool) -> Finding:
    """The device files that a GPU has."""
    found = [str(path) for path in sorted(around.path("/dev").glob("nvidia[0-9]*"))]
    found += [str(path) for path in sorted(around.path("/dev/dri").glob("renderD*"))]
    found += [str(path) for path in (around.path("/dev/dxg"),) if path.exists()]
    named = f"{', '.join(around.gpus)} by nvidia-smi" if around.gpus else ""
    if found or named:
        return Finding("GPU", State.fine, "; ".join(filter(None, (", ".join(found), named))))
    mend = "in a container: docker run --gpus all (NVIDIA), --device /dev/dri (others); else install the GPU's driver"
    text = "none: no /dev/dri/renderD*, no /dev/nvidia*, no nvidia-smi that works"
    return wrong_if(needed, "GPU", text, mend if needed else "")


def capabilities(around: Around) -> Iterator[Finding]:
    """What an NVIDIA container may use its GPU for: unless told otherwise, not for graphics, which Vulkan is."""
    visible = around.environ.get("NVIDIA_VISIBLE_DEVICES", "")
    given = around.environ.get("NVIDIA_DRIVER_CAPABILITIES", "")
    if visible in NOBODY and not given:
        return
    smi = "nvidia-smi works" if around.gpus is not None else "nvidia-smi does not work"
    text = f"NVIDIA_VISIBLE_DEVICES={visible}, NVIDIA_DRIVER_CAPABILITIES={given}, {smi}"
    if visible in NOBODY:
        mend = "docker run --gpus all, or -e NVIDIA_VISIBLE_DEVICES=all with the NVIDIA runtime"
        yield Finding("GPU in the container", State.note, f"{text}: no GPU is given to it", mend)
    elif {"all", "graphics"} & {word.strip() for word in given.split(",")}:
        yield Finding("GPU in the container", State.fine, text)
    else:
        mend = "docker run -e NVIDIA_DRIVER_CAPABILITIES=all, or add graphics to it"
        yield Finding("GPU in the container", State.wrong, f"{text}: graphics is missing, so Vulkan has no GPU", mend)


def display(around: Around, nvidia: bool, needed: bool) -> Finding:
    """Whether there is an X server: headless Chromium needs none, but NVIDIA's Vulkan driver has no other surface."""
    shown = around.environ.get("DISPLAY", "")
    if shown:
        return Finding("display", State.fine, f"DISPLAY={shown}")
    has_own = around.has("Xvfb")
    if not nvidia:
        virtual = "Xvfb is there" if has_own else "Xvfb is not installed"
        return Finding("display", State.fine, f"none, and headless Chromium needs none; {virtual}")
    if has_own:
        return Finding("display", State.fine, "none; the rig starts Xvfb, which NVIDIA's Vulkan driver needs")
    text = "none, and Xvfb is not installed: NVIDIA's Vulkan driver has no surface without an X server"
    return wrong_if(needed, "display", text, "apt-get install xvfb")


def users(around: Around) -> Iterator[Finding]:
    """Who else computes on the GPU."""
    if around.gpus is None:
        return
    said = around.said(("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"))
    if said is None:
        yield Finding("GPU users", State.note, "nvidia-smi does not tell who uses the GPU")
        return
    count = sum(line.strip().isdigit() for line in said.splitlines())
    if count:
        text = f"{count} other {'process computes' if count == 1 else 'processes compute'} on the GPU"
        yield Finding("GPU users", State.note, text, "wait until it is free, or name another GPU")
    else:
        yield Finding("GPU users", State.fine, "nobody else computes on the GPU")
