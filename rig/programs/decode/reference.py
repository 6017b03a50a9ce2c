"""What a decode step computes, in numpy, from the model alone: it knows neither operators nor stages."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rig.programs.decode.lower import Sizes, weight_fill
from rig.programs.fill import Array, weights
from rig.records import Model, WeightFill

F32 = npt.NDArray[np.float32]


class Decoder:
    """A model with its weights and caches, one token after another."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sizes = Sizes(model)
        shape = (model.layers, model.batch, model.context, model.kv_heads, model.head_dim)
        self._keys, self._values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.logits = np.zeros((model.batch, model.vocabulary), np.float32)
        self.tokens = np.zeros((model.batch, model.context), np.uint32)
        self.position = model.context - 1

    def step(self) -> None:
        """One token of every sequence: from the last logits to the next."""
        model = self.model
        self.position = (self.position + 1) % model.context
        first = (7 * np.arange(model.batch) + 1) % model.vocabulary
        token = first if self.position == 0 else self.logits.argmax(axis=1)
        self.tokens[:, self.position] = token
        x = self._weight("embedding.weight")[token]
        for layer in range(model.layers):
            x = x + self._attention(layer, self._norm(x, f"layers.{layer}.attention_norm.weight"))
            x = x + self._mlp(layer, self._norm(x, f"layers.{layer}.mlp_norm.weight"))
        self.logits = self._norm(x, "final_norm.weight") @ self._weight("embedding.weight").T

    def _weight(self, name: str) -> F32:
        return _made(weight_fill(self.model, name), *self.sizes.weight(name))

    def _norm(self, x: F32, weight: str) -> F32:
        size = np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(self.model.eps))
        return np.asarray(x / size * self._weight(weight), np.float32)

    def _attention(self, layer: int, x: F32) -> F32:
        model, sizes, batch = self.model, self.sizes, self.model.batch
        qkv = x @ self._weight(f"layers.{layer}.qkv.weight").T + self._weight(f"layers.{layer}.qkv.bias")
        q, k, v = np.split(qkv, [sizes.q, sizes.q + sizes.kv], axis=1)
        q = self._rope(q.reshape(batch, model.heads, model.head_dim))
        now = self.position
        self._keys[layer][:, now] = self._rope(k.reshape(batch, model.kv_heads, model.head_dim))
        self._values[layer][:, now] = v.reshape(batch, model.kv_heads, model.head_dim)
        shared_by = model.heads // model.kv_heads
        keys = self._keys[layer][:, : now + 1].repeat(shared_by, axis=2)
        values = self._values[layer][:, : now + 1].repeat(shared_by, axis=2)
        scores = np.einsum("bhd,bthd->bht", q, keys) / np.sqrt(np.float32(model.head_dim))
        share = np.exp(scores - scores.max(axis=2, keepdims=True))
        share /= share.sum(axis=2, keepdims=True)
        attended = np.einsum("bht,bthd->bhd", share, values).reshape(batch, sizes.q)
        return np.asarray(attended @ self._weight(f"layers.{layer}.o.weight").T)

    def _rope(self, x: F32) -> F32:
        half = self.model.head_dim // 2
        angles = self.position * self.model.rope_theta ** (-np.arange(half) / half)
        cosines, sines = (np.tile(f(angles), 2).astype(np.float32) for f in (np.cos, np.sin))
        return np.asarray(x * cosines + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sines, np.float32)

    def _mlp(self, layer: int, x: F32) -> F32:
        both = x @ self._weight(f"layers.{layer}.gate_up.weight").T
        gate, up = np.split(both, 2, axis=1)
        return np.asarray((gate / (1 + np.exp(-gate)) * up) @ self._weight(f"layers.{layer}.down.weight").T)


@lru_cache(maxsize=512)
def _made(fill: WeightFill, rows: int, columns: int) -> F32:
    """The weights of one model at a time: whatever its batch and context, they are the same."""
    made = weights(fill, rows * columns)
    return made.reshape(rows, columns) if rows > 1 else made


@lru_cache(maxsize=16)
def _decoded(model: Model) -> tuple[Decoder, list[dict[str, Array]]]:
    """A decoder and what it had made after each token so far, the first contents first."""
    return Decoder(model), []


def outputs(model: Model, tokens: int) -> dict[str, Array]:
    """What stands in `tokens`, shape (batch × context,), and `logits`, (batch × vocabulary,), after so many tokens of
    every sequence from first contents.
    """
    decoder, made = _decoded(model)
    if not made:
        made.append(_copied(decoder))
    # a sequence that begins again makes the same again
    while len(made) <= min(tokens, model.context):
        decoder.step()
        made.append(_copied(decoder))
    whole = tokens > model.context
    last = made[(tokens - 1) % model.context + 1] if whole else made[tokens]
    return {"tokens": (made[model.context] if whole else last)["tokens"], "logits": last["logits"]}


def _copied(decoder: Decoder) -> dict[str, Array]:
    return {"tokens": decoder.tokens.ravel().copy(), "logits": decoder.logits.ravel().copy()}
