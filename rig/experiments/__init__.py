"""The experiments, one module each, and the registry that everything else goes through."""

from __future__ import annotations

from rig.experiments import dtype, policy, sequential, single_op, wait
from rig.experiments.base import Experiment

REGISTRY: dict[str, Experiment] = {
    e.id: e for e in (single_op.EXPERIMENT, sequential.EXPERIMENT, policy.EXPERIMENT, dtype.EXPERIMENT, wait.EXPERIMENT)
}
