"""fusion: a decode step in fewer and fewer dispatches. Is it their count, and nothing else, that fusing gains by?"""

from __future__ import annotations

from rig.experiments.base import Experiment
from rig.experiments.fusion.cells import ID, FusionOptions, points
from rig.experiments.fusion.figures import compute
from rig.experiments.fusion.verdicts import verdicts

EXPERIMENT = Experiment(
    id=ID,
    line="one decode step of a transformer, fused stage by stage, padded, split and submitted in every way",
    options=FusionOptions,
    cells=points,
    figures=compute,
    verdicts=verdicts,
)
