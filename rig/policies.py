"""The policies by name: how many dispatches share a pass, a command buffer and a submit."""

from __future__ import annotations

import re

from rig.records import Policy, Waiter

_GROUPS: dict[str, tuple[int | None, int | None, int | None]] = {
    "submit_each": (1, 1, 1),
    "command_buffers": (1, 1, None),
    "pass_each": (1, None, None),
    "one_pass": (None, None, None),
}


def policy(name: str, waiter: Waiter = Waiter.work_done) -> Policy:
    """The policy `name`: submit_each, command_buffers, pass_each, one_pass, or every_K or every_K_pass_P.

    every_16 submits after each 16 dispatches, in one pass; every_16_pass_4 with a pass around each 4 of them.
    ValueError on any other name.
    """
    if name in _GROUPS:
        per_pass, per_buffer, per_submit = _GROUPS[name]
        return make(name, per_pass, per_buffer, per_submit, waiter)
    match = re.fullmatch(r"every_([1-9]\d*)(?:_pass_([1-9]\d*))?", name)
    if match is None:
        raise ValueError(f"unknown policy '{name}': {', '.join(_GROUPS)}, every_K or every_K_pass_P")
    k = int(match[1])
    return make(name, int(match[2] or k), k, k, waiter)


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


def structure(policy: Policy, n: int) -> dict[str, int]:
    """How many submits, command buffers and passes n dispatches take under `policy`: what an executor must count."""
    counts = {"submits": 0, "command_buffers": 0, "passes": 0, "dispatches": n}
    for submit in _parts(n, policy.dispatches_per_submit):
        counts["submits"] += 1
        for buffer in _parts(submit, policy.dispatches_per_command_buffer):
            counts["command_buffers"] += 1
            counts["passes"] += len(_parts(buffer, policy.dispatches_per_pass))
    return counts


def _parts(n: int, size: int | None) -> list[int]:
    size = size or max(n, 1)
    return [min(size, n - start) for start in range(0, n, size)]
