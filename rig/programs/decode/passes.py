"""Fusion passes, each a pure function graph → graph, and the stages that they lead to one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rig.programs.decode.graph import Graph, Op, lasts, step
from rig.records import Model

Pass = Callable[[Graph], Graph]

_NORM = ("pow", "mean", "add_eps", "rsqrt", "mul_scale", "mul_weight")
_ROPE = ("mul_cos", "neg", "cat", "mul_sin", "add_rope")


@dataclass(frozen=True)
class Merge:
    """Operators of these kinds, one right after another, become one. `layers`: only within layers, or only outside.

    Of what they write, that which something else reads is still written; what `makes` itself is no longer read.
    """

    kinds: tuple[str, ...]
    into: str
    layers: bool | None = None
    makes: tuple[str, ...] = ()

    def __call__(self, graph: Graph) -> Graph:
        made: list[Op] = []
        at = 0
        while at < len(graph):
            members = graph[at : at + len(self.kinds)]
            if self._fits(members):
                made.append(self._fused(members, graph[at + len(members) :]))
                at += len(members)
            else:
                made.append(graph[at])
                at += 1
        return tuple(made)

    def _fits(self, members: Sequence[Op]) -> bool:
        if tuple(op.kind for op in members) != self.kinds:
            return False
        return self.layers is None or all((op.layer is not None) is self.layers for op in members)

    def _fused(self, members: Sequence[Op], later: Graph) -> Op:
        written: list[str] = []
        reads: list[str] = []
        for op in members:
            reads += [name for name in op.reads if name not in (*written, *reads, *self.makes)]
            written += [name for name in op.writes if name not in written]
        kept = tuple(name for name in written if lasts(name) or _read_next(name, later))
        absorbed = tuple(one for op in members for one in (op.absorbed or (op,)))
        return Op(self.into, tuple(name for name in reads if name not in kept), kept, members[-1].layer, absorbed)


def _read_next(tensor: str, later: Graph) -> bool:
    """Whether `tensor` is read before it is written again."""
    for op in later:
        if tensor in op.reads:
            return True
        if tensor in op.writes:
            return False
    return False


def best_in_head(graph: Graph) -> Graph:
    """The head finds the best logit of each block of rows, so that the embedding need not look at all of them."""
    best = ("best_logit", "best_token")
    changed = []
    for op in graph:
        if op.kind == "head":
            op = Op("head_best", op.reads, (*op.writes, *best), absorbed=(op,))
        if op.kind == "embedding":
            op = Op("embedding_best", (op.reads[0], *best), op.writes, absorbed=(op,))
        changed.append(op)
    return tuple(changed)


def without_dead(graph: Graph) -> Graph:
    """Without operators of which nothing that they write is ever read."""
    read = {name for op in graph for name in op.reads}
    kept = tuple(op for op in graph if any(lasts(name) or name in read for name in op.writes))
    return kept if len(kept) == len(graph) else without_dead(kept)


STAGES: dict[str, tuple[Pass, ...]] = {
    "unfused": (),
    "rmsnorm": (Merge(_NORM, "rmsnorm", layers=True),),
    "mlp": (Merge(("gate", "up", "silu"), "gate_up_silu"),),
    "kv": (Merge(("k", "v"), "kv"),),
    "final_norm": (Merge(_NORM, "rmsnorm", layers=False),),
    "gate_up": (Merge(("gate_up_silu", "mul"), "gate_up"),),
    "qkv": (Merge(("q", "kv"), "qkv"),),
    "rope": (Merge((*_ROPE, *_ROPE), "rope"), Merge(("angles", "cat_angles", "cos", "sin"), "rope_setup")),
    "residual_norm": (Merge(("add", "rmsnorm"), "add_rmsnorm"),),
    "append": (Merge(("append", "append", "attention"), "attention_append"),),
    "head": (best_in_head,),
    "fewest": (
        Merge(("rope", "attention_append"), "attention_rope", makes=("cosines", "sines")),
        Merge(("add_rmsnorm", "qkv"), "add_norm_qkv"),
        Merge(("add_rmsnorm", "gate_up"), "add_norm_gate_up"),
        Merge(("add_rmsnorm", "head_best"), "add_norm_head_best"),
        without_dead,
        Merge(("embedding_best", "rmsnorm"), "embedding_norm"),
    ),
}
"""Stage to the passes that lead to it from the one before. The first four are the published ones."""

PUBLISHED = ("unfused", "rmsnorm", "mlp", "kv")


def staged(model: Model, stage: str) -> Graph:
    """The graph of a stage. ValueError: there is none of that name."""
    if stage not in STAGES:
        raise ValueError(f"unknown stage '{stage}': {', '.join(STAGES)}")
    graph = step(model)
    for name, passes in STAGES.items():
        for one in passes:
            graph = one(graph)
        if name == stage:
            break
    return graph
