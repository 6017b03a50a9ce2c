"""Small programs: one tiny kernel, to be issued again and again."""

from __future__ import annotations

from rig import assets
from rig.records import Buffer, Dispatch, Dtype, HashFill, Hazard, Kernel, Program

WORKGROUP = 64


def increment_chain(elements: int = 64) -> Program:
    """Adds one to `elements` floats in place; each dispatch reads what the one before it wrote.

    The contents start as whole numbers below 256 and stay exact for 16 million dispatches, so the outputs tell how many
    of the issued dispatches ran.
    """
    return Program(
        name=f"increment_chain_{elements}",
        hazard=Hazard.chained,
        buffers=(Buffer(name="data", dtype=Dtype.f32, elements=elements, fill=HashFill(seed=1, below=256)),),
        kernels=(Kernel(name="increment_f32", wgsl=assets.wgsl("increment_f32"), constants={"STEP": 1.0}),),
        dispatches=(
            Dispatch(kernel="increment_f32", bindings=("data",), workgroups=(-(-elements // WORKGROUP), 1, 1)),
        ),
        outputs=("data",),
        accumulates=True,
    )
