"""Shapes of models, as their published configurations have them, and one that is small in everything but its layers."""

from __future__ import annotations

import msgspec

from rig.records import Model

CONTEXT = 8
"""Tokens after which a sequence begins again, unless asked otherwise."""

SHAPES: dict[str, Model] = {
    model.name: model
    for model in (
        # huggingface.co/Qwen/Qwen2.5-0.5B, config.json
        Model(
            name="qwen2.5-0.5b",
            layers=24,
            hidden=896,
            heads=14,
            kv_heads=2,
            head_dim=64,
            mlp=4864,
            vocabulary=151936,
            context=CONTEXT,
        ),
        # huggingface.co/Qwen/Qwen2.5-1.5B, config.json
        Model(
            name="qwen2.5-1.5b",
            layers=28,
            hidden=1536,
            heads=12,
            kv_heads=2,
            head_dim=128,
            mlp=8960,
            vocabulary=151936,
            context=CONTEXT,
        ),
        Model(
            name="tiny",
            layers=24,
            hidden=64,
            heads=4,
            kv_heads=2,
            head_dim=16,
            mlp=192,
            vocabulary=512,
            context=CONTEXT,
        ),
    )
}


def shape(name: str, *, context: int = CONTEXT, batch: int = 1) -> Model:
    """The shape `name`. ValueError: there is none."""
    if name not in SHAPES:
        raise ValueError(f"unknown shape '{name}': {', '.join(SHAPES)}")
    return msgspec.structs.replace(SHAPES[name], context=context, batch=batch)
