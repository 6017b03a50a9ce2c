"""The operator graph of one decode step, unfused: a list of operators in an order in which they may run.

Tensors are names. An activation's name is the same in all layers; weights and caches are of their layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rig.records import Model

LASTING = frozenset({"position", "tokens", "logits", "best_logit", "best_token", "x", "y"})
"""What is read beyond its neighbours: by the next token, or (the residual stream) by the next block. So are caches."""


@dataclass(frozen=True)
class Op:
    """One operator. `layer`: None outside the layers. `absorbed`: the operators that it does the work of, if fused."""

    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    layer: int | None = None
    absorbed: tuple[Op, ...] = field(default=(), compare=False)


Graph = tuple[Op, ...]


def lasts(tensor: str) -> bool:
    """Whether a tensor is read beyond the operators next to the one that writes it."""
    return tensor in LASTING or tensor.endswith("_cache")


def step(model: Model) -> Graph:
    """One token of every sequence, from the last one's logits to the next one's."""
    ops = [
        Op("embedding", ("embedding.weight", "logits"), ("position", "tokens", "x")),
        Op("angles", ("position",), ("angles",)),
        Op("cat_angles", ("angles", "angles"), ("angle_pairs",)),
        Op("cos", ("angle_pairs",), ("cosines",)),
        Op("sin", ("angle_pairs",), ("sines",)),
    ]
    for layer in range(model.layers):
        ops += _layer(layer)
    ops += [*_norm("x", "final_norm", None), Op("head", ("normed", "embedding.weight"), ("logits",))]
    return tuple(ops)


def _layer(layer: int) -> list[Op]:
    def of(name: str) -> str:
        return f"layers.{layer}.{name}"

    projections = [Op(kind, ("normed", of("qkv.weight"), of("qkv.bias")), (kind,), layer) for kind in ("q", "k", "v")]
    return [
        *_norm("x", of("attention_norm"), layer),
        *projections,
        *_rope("q", layer),
        *_rope("k", layer),
        Op("append", ("k_turned", "position"), (of("k_cache"),), layer),
        Op("append", ("v", "position"), (of("v_cache"),), layer),
        Op("attention", ("q_turned", of("k_cache"), of("v_cache"), "position"), ("attended",), layer),
        Op("o", ("attended", of("o.weight")), ("added",), layer),
        Op("add", ("x", "added"), ("y",), layer),
        *_norm("y", of("mlp_norm"), layer),
        Op("gate", ("normed", of("gate_up.weight")), ("gate",), layer),
        Op("up", ("normed", of("gate_up.weight")), ("up",), layer),
        Op("silu", ("gate",), ("silu",), layer),
        Op("mul", ("silu", "up"), ("gated",), layer),
        Op("down", ("gated", of("down.weight")), ("added",), layer),
        Op("add", ("y", "added"), ("x",), layer),
    ]


def _norm(x: str, weight: str, layer: int | None) -> list[Op]:
    return [
        Op("pow", (x,), ("squares",), layer),
        Op("mean", ("squares",), ("mean",), layer),
        Op("add_eps", ("mean",), ("variance",), layer),
        Op("rsqrt", ("variance",), ("scale",), layer),
        Op("mul_scale", (x, "scale"), ("scaled",), layer),
        Op("mul_weight", ("scaled", f"{weight}.weight"), ("normed",), layer),
    ]


def _rope(x: str, layer: int) -> list[Op]:
    """The head's halves turned: x × cos + cat(-second, first) × sin."""
    return [
        Op("mul_cos", (x, "cosines"), (f"{x}_cos",), layer),
        Op("neg", (x,), (f"{x}_neg",), layer),
        Op("cat", (f"{x}_neg", x), (f"{x}_halves",), layer),
        Op("mul_sin", (f"{x}_halves", "sines"), (f"{x}_sin",), layer),
        Op("add_rope", (f"{x}_cos", f"{x}_sin"), (f"{x}_turned",), layer),
    ]
