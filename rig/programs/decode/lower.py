"""From a graph to a program: which kernel an operator is, with which constants, over how many workgroups.

Buffers are f32, but for positions and tokens. Bindings are what an operator reads, then what it writes, in its order.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log2

from rig import assets
from rig.programs.decode.graph import Graph, Op
from rig.records import Buffer, ConstantFill, Dispatch, Dtype, Hazard, Kernel, Model, Program, WeightFill

WORKGROUP = 64
MOST_WORKGROUPS = 32768
"""In x; more rows than that go on in y."""

BLOCK = 16
"""Rows of the head of which one workgroup finds the best."""

TOLERANCE = 1e-3
"""Largest error of a logit, relative to the largest logit: what the order of sums and a GPU's own sine and exponential
leave of 32-bit floats after so many layers."""

QUALITIES = {
    "thread": "matvec_thread",
    "workgroup": "matvec",
    "vec4": "matvec_vec4",
    "subgroups": "matvec_subgroups",
}
"""Kernels that multiply a matrix without bias with a vector: all of them but those of queries, keys and values."""

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Sizes:
    """Elements of a model's vectors."""

    model: Model

    @property
    def q(self) -> int:
        return self.model.heads * self.model.head_dim

    @property
    def kv(self) -> int:
        return self.model.kv_heads * self.model.head_dim

    def tensor(self, name: str) -> int:
        """Elements of the tensor `name`, of all sequences."""
        model, (last, head) = self.model, (name.rsplit(".", 1)[-1], name.split("_", 1)[0])
        alone = {"angles": model.head_dim // 2, "angle_pairs": model.head_dim}
        alone |= dict.fromkeys(("cosines", "sines"), model.head_dim)
        if name in alone:
            return alone[name]
        width = {"position": 1, "tokens": model.context, "logits": model.vocabulary, "attended": self.q}
        width |= dict.fromkeys(("mean", "variance", "scale"), 1)
        width |= dict.fromkeys(("best_logit", "best_token"), ceil(model.vocabulary / BLOCK))
        width |= dict.fromkeys(("gate", "up", "silu", "gated"), model.mlp)
        width |= dict.fromkeys(("k_cache", "v_cache"), model.context * self.kv)
        own = {"q": self.q, "k": self.kv, "v": self.kv}
        if last in width:
            return width[last] * model.batch
        if name.startswith("pad."):
            return max(model.hidden, model.mlp, self.q) * model.batch
        if head in own:
            return own[head] // (2 if name.endswith("_neg") else 1) * model.batch
        return model.hidden * model.batch

    def is_matrix(self, name: str) -> bool:
        return is_weight(name) and self.weight(name)[0] > 1

    def weight(self, name: str) -> tuple[int, int]:
        """Rows and columns of the weight `name`; a vector is one row."""
        model = self.model
        of = {
            "embedding.weight": (model.vocabulary, model.hidden),
            "qkv.weight": (self.q + 2 * self.kv, model.hidden),
            "qkv.bias": (1, self.q + 2 * self.kv),
            "o.weight": (model.hidden, self.q),
            "gate_up.weight": (2 * model.mlp, model.hidden),
            "down.weight": (model.hidden, model.mlp),
        }
        return of.get(".".join(name.rsplit(".", 2)[-2:]), (1, model.hidden))


def is_weight(tensor: str) -> bool:
    return tensor.endswith((".weight", ".bias"))


HALVED = frozenset({"embedding", "matvec", "matvec_bias", "kv", "gate_up_silu"})
"""Kernels that there are for matrices of 16-bit floats too: those of the published stages."""


def lower(model: Model, graph: Graph, name: str, quality: str = "workgroup", weights: Dtype = Dtype.f32) -> Program:
    """The program of `graph`, whose outputs are every sequence's tokens and the last token's logits. `weights`: type of
    its matrices; all else is f32. ValueError: a kernel that reads a matrix is not there for that type.
    """
    sizes = Sizes(model)
    kernels: dict[str, Kernel] = {}
    dispatches = []
    for op in graph:
        kernel, grid = _kernel(op, sizes, quality, weights)
        kernels.setdefault(kernel.name, kernel)
        dispatches.append(Dispatch(kernel=kernel.name, bindings=(*op.reads, *op.writes), workgroups=grid))
    tensors = dict.fromkeys(tensor for op in graph for tensor in (*op.reads, *op.writes))
    return Program(
        name=name,
        hazard=Hazard.chained,
        buffers=tuple(_buffer(tensor, sizes, weights) for tensor in tensors),
        kernels=tuple(kernels.values()),
        dispatches=tuple(dispatches),
        # the first word of the first one is what a wait by mapAsync copies
        outputs=("tokens", "logits"),
        relative_tolerance=TOLERANCE,
        model=model,
    )


def traffic_bytes(model: Model, graph: Graph, weights: Dtype = Dtype.f32) -> int:
    """Bytes that the operators of one step read and write, each once: what a kernel reads again comes from a cache."""
    sizes = Sizes(model)
    return round(
        sum(
            (weights.size_bytes if sizes.is_matrix(tensor) else 4) * _touched(op, tensor, sizes)
            for op in graph
            for tensor in (*op.reads, *op.writes)
        )
    )


def weight_fill(model: Model, name: str) -> WeightFill:
    """What a weight is filled with: of a spread that keeps vectors at their size, norms around one."""
    seed = zlib.crc32(f"{model.name} {name}".encode())
    if name.endswith("norm.weight"):
        return WeightFill(seed=seed, scale=0.25, offset=1.0)
    if name == "embedding.weight":
        return WeightFill(seed=seed, scale=1.0)
    _, columns = Sizes(model).weight(name)
    return WeightFill(seed=seed, scale=0.25 if name.endswith("bias") else 2.0 ** round(log2((3 / columns) ** 0.5)))


def _buffer(tensor: str, sizes: Sizes, weights: Dtype) -> Buffer:
    model = sizes.model
    if is_weight(tensor):
        rows, columns = sizes.weight(tensor)
        dtype = weights if rows > 1 else Dtype.f32
        return Buffer(name=tensor, dtype=dtype, elements=rows * columns, fill=weight_fill(model, tensor))
    whole = tensor in ("position", "tokens", "best_token")
    # the step begins by moving on: from the last position to the first
    first = ConstantFill(value=float(model.context - 1) if tensor == "position" else 0.0)
    return Buffer(name=tensor, dtype=Dtype.u32 if whole else Dtype.f32, elements=sizes.tensor(tensor), fill=first)


# --- kernels -----------------------------------------------------------------------------------------------------


def _kernel(op: Op, sizes: Sizes, quality: str, weights: Dtype) -> tuple[Kernel, Grid]:
    file, constants, grid = (pad if op.kind.startswith("pad_") else _KINDS[op.kind])(op, sizes)
    name = op.kind
    if file == QUALITIES["workgroup"]:
        file = QUALITIES[quality]
        if quality == "thread":
            grid = _rows(ceil(constants["ROWS"] / WORKGROUP), sizes.model)
    if weights is not Dtype.f32 and any(sizes.is_matrix(name) for name in op.reads):
        if weights is not Dtype.f16 or file not in HALVED:
            raise ValueError(f"there is no kernel {file} for matrices of {weights}")
        file = f"{file}_f16"
    features = ("subgroups",) if file == QUALITIES["subgroups"] else ()
    wgsl = assets.wgsl(f"decode/{file}")
    constants |= {name: value for name, value in _lanes(sizes.model).items() if f"override {name}:" in wgsl}
    return (
        Kernel(
            name=name,
            wgsl=wgsl,
            constants={key: float(value) for key, value in constants.items()},
            features=features,
            read_only=tuple(range(len(op.reads))),
        ),
        grid,
    )


def _lanes(model: Model) -> dict[str, int]:
    """Invocations that sum up a row, or look for the best logit: a power of two, some fourteen columns each."""
    lanes = min(WORKGROUP, max(4, 2 ** int(log2(model.hidden / 14))))
    return {"LANES": lanes, "SCAN": 4 * lanes}


Constants = dict[str, float]
Lowered = tuple[str, Constants, Grid]
Lowering = Callable[[Op, Sizes], Lowered]


def _rows(rows: int, model: Model) -> Grid:
    x = min(rows, MOST_WORKGROUPS)
    return x, ceil(rows / x), model.batch


def _each(elements: int) -> Grid:
    return ceil(elements / WORKGROUP), 1, 1


def pad(op: Op, sizes: Sizes) -> Lowered:
    """Padding: of a kind's arity, over as many elements as it writes."""
    kind, _, place = op.kind.partition("@")
    width = 1 if kind.startswith("pad_empty") else sizes.tensor(op.writes[0])
    return f"{kind}_{len(op.reads) + len(op.writes)}", {"PLACE": float(place)}, _each(width)


def _a_sequence(file: str, *names: str) -> Lowering:
    return lambda op, sizes: (file, _constants(sizes, names), (sizes.model.batch, 1, 1))  # noqa: ARG005


def _a_row(file: str, rows: Callable[[Sizes], int], *names: str, **more: Callable[[Sizes], float]) -> Lowering:
    def lowered(_: Op, sizes: Sizes) -> Lowered:
        constants = {**_constants(sizes, names), **{name: float(value(sizes)) for name, value in more.items()}}
        return file, constants, _rows(rows(sizes), sizes.model)

    return lowered


def _matvec(rows: Callable[[Sizes], int], columns: Callable[[Sizes], int]) -> Lowering:
    return _a_row("matvec", rows, ROWS=rows, COLS=columns)


def _constants(sizes: Sizes, names: Iterable[str]) -> Constants:
    model = sizes.model
    known: Constants = {
        "WIDTH": model.hidden,
        "COLS": model.hidden,
        "HIDDEN": model.hidden,
        "VOCABULARY": model.vocabulary,
        "CONTEXT": model.context,
        "HEADS": model.heads,
        "KV_HEADS": model.kv_heads,
        "DIM": model.head_dim,
        "HALF": model.head_dim // 2,
        "STRIDE": model.head_dim,
        "THETA": model.rope_theta,
        "EPS": model.eps,
        "MLP": model.mlp,
        "Q": sizes.q,
        "KV": sizes.kv,
        "REPEAT": model.hidden,
        "BLOCK": BLOCK,
        "ROWS": model.vocabulary,
    }
    return {name: known[name] for name in names}


def _over(file: str, *names: str) -> Lowering:
    return lambda op, sizes: (file, _constants(sizes, names), _each(sizes.tensor(op.writes[0])))


def _a_head(file: str, *more: str) -> Lowering:
    names = ("HEADS", "KV_HEADS", "DIM", "CONTEXT", *more)
    return lambda _, sizes: (file, _constants(sizes, names), (sizes.model.heads, sizes.model.batch, 1))


def _append(_: Op, sizes: Sizes) -> Lowered:
    constants = {**_constants(sizes, ("CONTEXT",)), "WIDTH": sizes.kv}
    return "append", constants, (ceil(sizes.kv / WORKGROUP), sizes.model.batch, 1)


def _projection(offset: Callable[[Sizes], int], rows: Callable[[Sizes], int]) -> Lowering:
    return _a_row("matvec_bias", rows, "COLS", ROWS=rows, ROW_OFFSET=offset)


def _blocks(file: str, *more: str) -> Lowering:
    names = ("ROWS", "COLS", "BLOCK", *more)
    return lambda _, sizes: (
        file,
        _constants(sizes, names),
        (ceil(sizes.model.vocabulary / BLOCK), 1, sizes.model.batch),
    )


_EMBEDDING = ("HIDDEN", "VOCABULARY", "CONTEXT")

_KINDS: dict[str, Lowering] = {
    "embedding": _a_sequence("embedding", *_EMBEDDING),
    "embedding_best": _a_sequence("embedding_best", *_EMBEDDING),
    "embedding_norm": _a_sequence("embedding_norm", *_EMBEDDING, "EPS"),
    "angles": _over("angles", "THETA", "HALF"),
    "cat_angles": _over("cat", "HALF", "STRIDE"),
    "cos": _over("cos"),
    "sin": _over("sin"),
    "rope_setup": _over("rope_setup", "THETA", "HALF"),
    "pow": _over("pow"),
    "mean": _a_sequence("mean", "WIDTH"),
    "add_eps": _over("add_eps", "EPS"),
    "rsqrt": _over("rsqrt"),
    "mul_scale": _over("mul", "REPEAT"),
    "mul_weight": _over("mul"),
    "rmsnorm": _a_sequence("rmsnorm", "WIDTH", "EPS"),
    "add_rmsnorm": _a_sequence("add_rmsnorm", "WIDTH", "EPS"),
    "q": _projection(lambda _: 0, lambda s: s.q),
    "k": _projection(lambda s: s.q, lambda s: s.kv),
    "v": _projection(lambda s: s.q + s.kv, lambda s: s.kv),
    "kv": _a_row("kv", lambda s: 2 * s.kv, "COLS", "KV", ROW_OFFSET=lambda s: s.q),
    "qkv": _a_row("qkv", lambda s: s.q + 2 * s.kv, "COLS", "Q", "KV"),
    "add_norm_qkv": _a_row("add_norm_qkv", lambda s: s.q + 2 * s.kv, "COLS", "Q", "KV", "EPS"),
    "mul_cos": _over("mul"),
    "neg": _over("neg", "HALF"),
    "cat": _over("cat", "HALF", "STRIDE"),
    "mul_sin": _over("mul"),
    "add_rope": _over("add"),
    "rope": _over("rope", "DIM"),
    "append": _append,
    "attention": _a_head("attention"),
    "attention_append": _a_head("attention_append"),
    "attention_rope": _a_head("attention_rope", "THETA"),
    "o": _matvec(lambda s: s.model.hidden, lambda s: s.q),
    "add": _over("add"),
    "gate": _matvec(lambda s: s.model.mlp, lambda s: s.model.hidden),
    "up": _a_row("matvec", lambda s: s.model.mlp, "COLS", ROWS=lambda s: s.model.mlp, ROW_OFFSET=lambda s: s.model.mlp),
    "silu": _over("silu"),
    "mul": _over("mul"),
    "gate_up_silu": _a_row("gate_up_silu", lambda s: s.model.mlp, "MLP", "COLS"),
    "gate_up": _a_row("gate_up", lambda s: s.model.mlp, "MLP", "COLS"),
    "add_norm_gate_up": _a_row("add_norm_gate_up", lambda s: s.model.mlp, "MLP", "COLS", "EPS"),
    "down": _matvec(lambda s: s.model.hidden, lambda s: s.model.mlp),
    "head": _matvec(lambda s: s.model.vocabulary, lambda s: s.model.hidden),
    "head_best": _blocks("head_best"),
    "add_norm_head_best": _blocks("add_norm_head_best", "EPS"),
}


# --- traffic -----------------------------------------------------------------------------------------------------

_ROWS_OF: dict[str, Callable[[Sizes], int]] = {
    "q": lambda s: s.q,
    "k": lambda s: s.kv,
    "v": lambda s: s.kv,
    "kv": lambda s: 2 * s.kv,
    "gate": lambda s: s.model.mlp,
    "up": lambda s: s.model.mlp,
}
"""Of a weight that several operators share, the rows that one of them reads."""


def _touched(op: Op, tensor: str, sizes: Sizes) -> float:
    """Elements of `tensor` that `op` reads or writes, over the tokens of a sequence on average."""
    model = sizes.model
    if tensor == "embedding.weight" and op.kind.startswith("embedding"):
        return model.hidden * model.batch
    if is_weight(tensor):
        rows, columns = sizes.weight(tensor)
        own = _ROWS_OF.get(op.kind)
        return own(sizes) * (columns if rows > 1 else 1) if own else rows * columns
    if tensor.endswith("_cache"):
        written = sizes.kv * model.batch
        earlier = (model.context - 1) / 2 * written
        return written if op.kind == "append" else earlier + written
    if tensor == "tokens":
        return model.batch
    return sizes.tensor(tensor)


# --- padding -----------------------------------------------------------------------------------------------------

PADDINGS = ("empty", "copy")


def put_back(removed: int, share: float) -> int:
    """How many dispatches are `share` of those removed: whole ones, a part of one left out."""
    return int(removed * share + 1e-9)


def padded(graph: Graph, share: float, kind: str) -> Graph:
    """The graph with `share` of the dispatches that fusing removed put back where they were, as dispatches that do
    nothing (`empty`) or copy (`copy`).

    Each has as many buffers as what it stands for and a pipeline of its own; the first of a place reads what the fused
    operator reads, each next one what the last one wrote, and the last one writes what the fused operator then writes
    again.
    """
    removed = [(op, one) for op in graph for one in op.absorbed[:-1]]
    at: dict[int, list[Op]] = {}
    for i, (op, one) in enumerate(removed):
        # evenly over all places
        at.setdefault(id(op), []).extend([one] * (put_back(i + 1, share) - put_back(i, share)))
    made: list[Op] = []
    for op in graph:
        made += [*_chain(op, at.get(id(op), []), kind), op]
    return tuple(made)


def _chain(op: Op, members: Sequence[Op], kind: str) -> list[Op]:
    before = next(name for name in op.reads if not is_weight(name))
    chain = []
    for i, one in enumerate(members):
        out = op.writes[0] if i == len(members) - 1 else f"pad.{i % 2}"
        others = (before,) * (len(one.reads) + len(one.writes) - 2)
        chain.append(Op(f"pad_{kind}@{_place(one.kind)}", (before, *others), (out,), op.layer))
        before = out
    return chain


def _place(kind: str) -> int:
    """A number of its own for each kind that padding stands for."""
    return sorted(_KINDS).index(kind)
