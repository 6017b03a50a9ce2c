"""Small programs: one tiny kernel, to be issued again and again."""

from __future__ import annotations

from rig import assets
from rig.records import Buffer, Dispatch, Dtype, HashFill, Hazard, Kernel, Program

WORKGROUP = 64


def increment_chain(elements: int = 64, dtype: Dtype = Dtype.f32) -> Program:
    """Adds one to `elements` numbers in place; each dispatch reads what the one before it wrote.

    The contents start as whole numbers below 256 and stay exact for 16 million dispatches, in f32 too, so the outputs
    tell how many of the issued dispatches ran.
    """
    kernel = f"increment_{dtype}"
    return Program(
        name=f"{kernel}_chain_{elements}",
        hazard=Hazard.chained,
        buffers=(Buffer(name="data", dtype=dtype, elements=elements, fill=HashFill(seed=1, below=256)),),
        kernels=(Kernel(name=kernel, wgsl=assets.wgsl(kernel), constants={"STEP": 1.0}),),
        dispatches=(Dispatch(kernel=kernel, bindings=("data",), workgroups=(-(-elements // WORKGROUP), 1, 1)),),
        outputs=("data",),
        accumulates=True,
    )
