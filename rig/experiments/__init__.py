"""The experiments, one module each, and the registry that everything else goes through."""

from __future__ import annotations

from rig.experiments import (
    anatomy,
    dtype,
    fusion,
    modifier,
    noop,
    policy,
    program,
    sequential,
    single_op,
    stub,
    validation,
    wait,
)
from rig.experiments.base import Experiment

REGISTRY: dict[str, Experiment] = {
    module.EXPERIMENT.id: module.EXPERIMENT
    for module in (
        single_op,
        sequential,
        policy,
        modifier,
        dtype,
        anatomy,
        wait,
        validation,
        fusion,
        stub,
        noop,
        program,
    )
}
