"""The policies by name: how many dispatches share a pass, a command buffer and a submit, and with which modifiers."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rig.records import (
    BindGroups,
    Caller,
    Depth,
    Lead,
    Parameters,
    Policy,
    Program,
    Stamps,
    Target,
    Uniforms,
    Waiter,
    Workgroups,
)

_GROUPS: dict[str, tuple[int | None, int | None, int | None]] = {
    "submit_each": (1, 1, 1),
    "command_buffers": (1, 1, None),
    "pass_each": (1, None, None),
    "one_pass": (None, None, None),
}

MODIFIERS: dict[str, dict[str, Any]] = {
    "map": {"waiter": Waiter.map},
    "created": {"bind_groups": BindGroups.created},
    **{str(way): {"uniforms": way} for way in Uniforms if way is not Uniforms.none},
    "indirect": {"workgroups": Workgroups.indirect},
    "idle": {"lead": Lead.idle},
    "sustained": {"lead": Lead.sustained},
    "wasm": {"caller": Caller.wasm},
    "busy": {"stamps": Stamps.passes},
    "staged": {"staged": True},
    "stub": {"target": Target.stub},
}
"""What may be added to a policy's name with a +, and what it changes."""

REPLAYED = "replayed"

PRESETS = {
    "torch_webgpu": "submit_each+created+write_slots",
    "onnxruntime_web": "every_16+created+write_slots",
    "tvm": "pass_each+write_slots",
}
"""How engines submit, in our terms; docs/method.md has the sources."""

MOST_STAMPS = 4096
"""A query set holds so many timestamps (WebGPU specification, section 20.1)."""


def policy(name: str, waiter: Waiter = Waiter.work_done) -> Policy:
    """The policy `name`: submit_each, command_buffers, pass_each, one_pass, every_K or every_K_pass_P; replayed; or a
    preset.

    every_16 submits after each 16 dispatches, in one pass; every_16_pass_4 with a pass around each 4 of them. Modifiers
    follow with a +: one_pass+created. ValueError on any other name.
    """
    if name == REPLAYED:
        return msgspec.structs.replace(make(name, None, None, None, waiter), replayed=True)
    groups, *modifiers = PRESETS.get(name, name).split("+")
    made = make(name, *_sizes(groups), waiter)
    for modifier in modifiers:
        if modifier not in MODIFIERS:
            raise ValueError(f"unknown modifier '{modifier}' of policy '{name}': {', '.join(MODIFIERS)}")
        made = msgspec.structs.replace(made, **MODIFIERS[modifier])
    return made


def _sizes(name: str) -> tuple[int | None, int | None, int | None]:
    if name in _GROUPS:
        return _GROUPS[name]
    match = re.fullmatch(r"every_([1-9]\d*)(?:_pass_([1-9]\d*))?", name)
    if match is None:
        known = ", ".join((*_GROUPS, *PRESETS))
        raise ValueError(f"unknown policy '{name}': {known}, every_K or every_K_pass_P")
    k = int(match[1])
    return int(match[2] or k), k, k


def make(
    name: str, per_pass: int | None, per_buffer: int | None, per_submit: int | None, waiter: Waiter = Waiter.work_done
) -> Policy:
    """A policy from its group sizes, in dispatches; None means all of them."""
    return Policy(
        name=name,
        dispatches_per_pass=per_pass,
        dispatches_per_command_buffer=per_buffer,
        dispatches_per_submit=per_submit,
        waiter=waiter,
    )


def waiting(policy: Policy, dispatches: int) -> Policy:
    """The policy with a wait after each so many dispatches, by mapAsync of the first word of the first output."""
    name = f"{policy.name}+map+wait_{dispatches}"
    return msgspec.structs.replace(policy, name=name, waiter=Waiter.map, dispatches_per_wait=dispatches)


def structure(policy: Policy, n: int) -> dict[str, int]:
    """How many submits, command buffers, passes and dispatches `policy` makes of n: what an executor must count."""
    counts = {"submits": 0, "command_buffers": 0, "passes": 0, "dispatches": n}
    waited = _parts(n, policy.dispatches_per_wait)
    for submit in (part for wait in waited for part in _parts(wait, policy.dispatches_per_submit)):
        counts["submits"] += 1
        for buffer in _parts(submit, policy.dispatches_per_command_buffer):
            counts["command_buffers"] += 1
            counts["passes"] += len(_parts(buffer, policy.dispatches_per_pass))
    # a shallower depth leaves out the layers below it
    issued = list(Depth).index(policy.depth)
    for layer, needed in (("command_buffers", 1), ("passes", 2), ("dispatches", 4)):
        if issued < needed:
            counts[layer] = 0
    return counts


def runs(policy: Policy) -> int:
    """How often one sample runs its dispatches: a sustained one a first time untimed."""
    return 2 if policy.lead is Lead.sustained else 1


def reaches(policy: Policy, n: int) -> int:
    """How many of n dispatches reach the device: what its outputs must tell."""
    return 0 if policy.target is Target.stub else structure(policy, n)["dispatches"]


def conflict(program: Program, policy: Policy, n: int) -> str:
    """Why `policy` can't run the first n dispatches of `program` without changing their result; empty where it can."""
    if why := _undelivered({kernel.parameters for kernel in program.kernels}, policy):
        return why
    if policy.replayed:
        return "WebGPU can't record compute work and replay it"
    if policy.target is Target.stub and _bare(policy) != msgspec.structs.replace(policy, target=Target.device):
        return "a stub is issued to by plain policies only"
    if policy.caller is Caller.wasm and _bare(policy) != msgspec.structs.replace(
        policy, caller=Caller.js, waiter=Waiter.work_done
    ):
        return "the WebAssembly caller issues plain policies only"
    if policy.staged and (policy.dispatches_per_submit != 1 or policy.uniforms is not Uniforms.none):
        return "stages are those of one submit for each dispatch, without uniforms"
    if policy.staged and (policy.waiter is Waiter.map or policy.workgroups is Workgroups.indirect):
        return "stages are direct dispatches, with nothing copied behind them for a map to wait for"
    if policy.dispatches_per_wait and (policy.staged or policy.stamps is Stamps.passes or not _issued_plainly(policy)):
        return "what waits in between is issued plainly, without timestamps"
    stamps = 2 * structure(policy, n)["passes"]
    if policy.stamps is Stamps.passes and stamps > MOST_STAMPS:
        return f"{stamps} timestamps, a query set holds {MOST_STAMPS}"
    return ""


def _undelivered(parameters: set[Parameters], policy: Policy) -> str:
    if policy.uniforms is Uniforms.immediates and parameters != {Parameters.immediate}:
        return "immediates reach only kernels that read immediate data"
    if policy.uniforms is not Uniforms.immediates and Parameters.immediate in parameters:
        return "a kernel that reads immediate data gets it by no other way"
    if policy.uniforms not in (Uniforms.none, Uniforms.immediates) and parameters != {Parameters.uniform}:
        return "uniforms reach only kernels that read a uniform buffer"
    if policy.uniforms is Uniforms.write_buffer and policy.dispatches_per_submit != 1:
        return "one buffer is written before each dispatch: in a shared submit all of them would see the last value"
    return ""


def _issued_plainly(policy: Policy) -> bool:
    return (policy.caller, policy.lead, policy.target) == (Caller.js, Lead.none, Target.device)


def _bare(policy: Policy) -> Policy:
    """The policy without any modifier."""
    return make(
        policy.name, policy.dispatches_per_pass, policy.dispatches_per_command_buffer, policy.dispatches_per_submit
    )


def _parts(n: int, size: int | None) -> list[int]:
    size = size or max(n, 1)
    return [min(size, n - start) for start in range(0, n, size)]
