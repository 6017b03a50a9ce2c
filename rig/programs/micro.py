"""Small programs: one tiny kernel, to be issued again and again.

All are chains of increments, or one of them with a single thing changed. The contents start as whole numbers below 256
and stay exact for 16 million dispatches in f32, so the outputs tell how many of the issued dispatches ran.
"""

from __future__ import annotations

from rig import assets
from rig.records import Buffer, Dispatch, Dtype, HashFill, Hazard, Kernel, Parameters, Program, Realm

WORKGROUP = 64
BUFFERS = 16
"""So many buffers take turns where dispatches are independent."""

GROUPS = 64
"""So many bind groups take turns where there are many."""

VALUES = 8
"""So many different values take turns where a dispatch carries one."""


def increment_chain(elements: int = 64, dtype: Dtype = Dtype.f32, realm: Realm = Realm.main) -> Program:
    """Adds one to `elements` numbers in place; each dispatch reads what the one before it wrote."""
    kernel = f"increment_{dtype}"
    features = ("shader-f16",) if dtype is Dtype.f16 else ()
    return Program(
        name=f"{kernel}_chain_{elements}{'' if realm is Realm.main else f'_in_{realm}'}",
        hazard=Hazard.chained,
        buffers=(_buffer("data", elements, dtype),),
        kernels=(Kernel(name=kernel, wgsl=assets.wgsl(kernel), constants={"STEP": 1.0}, features=features),),
        dispatches=(_dispatch(kernel, "data", elements, dtype),),
        outputs=("data",),
        accumulates=True,
        realm=realm,
    )


def independent(elements: int = 64) -> Program:
    """As the chain, but each dispatch has another buffer than those around it, so that none need wait for the last."""
    names = tuple(f"data_{i}" for i in range(BUFFERS))
    return Program(
        name=f"independent_{elements}",
        hazard=Hazard.independent,
        buffers=tuple(_buffer(name, elements) for name in names),
        kernels=(_increment(),),
        dispatches=tuple(_dispatch("increment_f32", name, elements) for name in names),
        outputs=names,
        accumulates=True,
    )


def many_groups(elements: int = 64) -> Program:
    """As the chain, on the same buffer, but each dispatch has another bind group than those around it."""
    return _chain("many_groups", elements, (_increment(),), (_dispatch("increment_f32", "data", elements),) * GROUPS)


def switching(elements: int = 64) -> Program:
    """As the chain, but of two kernels in turn, so that the pipeline changes at each dispatch."""
    kernels = tuple(_increment(f"increment_by_{step}", step) for step in (1, 2))
    dispatches = tuple(_dispatch(kernel.name, "data", elements) for kernel in kernels)
    return _chain("switching", elements, kernels, dispatches)


def carrying(elements: int, parameters: Parameters) -> Program:
    """As the chain, but each dispatch carries a value of its own, 1 to VALUES in turn, which its kernel adds."""
    name = f"increment_{parameters}_f32"
    features = ("immediate_address_space",) if parameters is Parameters.immediate else ()
    kernel = Kernel(name=name, wgsl=assets.wgsl(name), features=features, parameters=parameters)
    dispatches = tuple(_dispatch(name, "data", elements, values=(float(i + 1),)) for i in range(VALUES))
    return _chain(f"carrying_{parameters}", elements, (kernel,), dispatches)


def empty_kernels(elements: int = 64) -> Program:
    """Dispatches of a kernel that does nothing, with the chain's bind group."""
    kernel = Kernel(name="empty", wgsl=assets.wgsl("empty"))
    return _chain("empty_kernels", elements, (kernel,), (_dispatch("empty", "data", elements),))


def zero_sized(elements: int = 64) -> Program:
    """The chain with no workgroups at all: everything is set up and nothing runs."""
    dispatch = Dispatch(kernel="increment_f32", bindings=("data",), workgroups=(0, 1, 1))
    return _chain("zero_sized", elements, (_increment(),), (dispatch,))


def _chain(name: str, elements: int, kernels: tuple[Kernel, ...], dispatches: tuple[Dispatch, ...]) -> Program:
    return Program(
        name=f"{name}_{elements}",
        hazard=Hazard.chained,
        buffers=(_buffer("data", elements),),
        kernels=kernels,
        dispatches=dispatches,
        outputs=("data",),
        accumulates=True,
    )


def _buffer(name: str, elements: int, dtype: Dtype = Dtype.f32) -> Buffer:
    return Buffer(name=name, dtype=dtype, elements=elements, fill=HashFill(seed=1, below=256))


def _increment(name: str = "increment_f32", step: float = 1) -> Kernel:
    wgsl = assets.wgsl("increment_f32")
    return Kernel(name=name, wgsl=wgsl, constants={"STEP": float(step)}, reference="increment_f32")


def _dispatch(
    kernel: str, buffer: str, elements: int, dtype: Dtype = Dtype.f32, values: tuple[float, ...] = ()
) -> Dispatch:
    invocations = elements // 4 if dtype is Dtype.u8x4 else elements
    workgroups = (-(-invocations // WORKGROUP), 1, 1)
    return Dispatch(kernel=kernel, bindings=(buffer,), workgroups=workgroups, values=values)
