"""What is wrong with this machine, and what mends it: the chain from Python to the GPU's timer, link by link."""

from rig.doctor.chain import Diagnosis, examine
from rig.doctor.finding import Finding, State

__all__ = ["Diagnosis", "Finding", "State", "examine"]
