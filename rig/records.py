"""The types that cross a boundary: what is written to disk, sent to an executor, or read from either.

They validate themselves while they are decoded (`decode`), and nowhere deeper. Everything is strict JSON: a NaN or an
infinity never gets in or out. The shapes on disk are the results contract, docs/results.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec

SCHEMA = 1

T = TypeVar("T")
Positive = Annotated[int, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all records: frozen, keyword only, and an unknown field is an error."""


class Dtype(StrEnum):
    """Type of a buffer's elements. `u8x4`: bytes, four of them packed in each word that a kernel sees."""

    f32 = "f32"
    f16 = "f16"
    i32 = "i32"
    u32 = "u32"
    u8x4 = "u8x4"

    @property
    def size_bytes(self) -> int:
        """Of one element."""
        return {Dtype.f16: 2, Dtype.u8x4: 1}.get(self, 4)


class Hazard(StrEnum):
    """Whether each dispatch depends on the one before it."""

    chained = "chained"
    independent = "independent"


class Waiter(StrEnum):
    """How the end of the work is awaited: `queue.onSubmittedWorkDone()`, or `mapAsync` of a word copied behind it."""

    work_done = "work_done"
    map = "map"


class BindGroups(StrEnum):
    """Whether bind groups are made once, when the program is loaded, or anew for each dispatch."""

    cached = "cached"
    created = "created"


class Uniforms(StrEnum):
    """How the values of a dispatch reach its kernel.

    none: nothing is delivered; what a program's dispatches carry was written once, when it was loaded.
    write_buffer: `queue.writeBuffer` into one buffer before each dispatch, as only a submit of its own allows.
    write_slots: `queue.writeBuffer` into a buffer of the dispatch's own, before each.
    dynamic_offset: one `queue.writeBuffer` a submit, each dispatch bound at its own offset.
    mapped_ring: written into a mapped buffer, copied by the submit's own commands, bound at an offset.
    immediates: `setImmediates` in the pass.
    """

    none = "none"
    write_buffer = "write_buffer"
    write_slots = "write_slots"
    dynamic_offset = "dynamic_offset"
    mapped_ring = "mapped_ring"
    immediates = "immediates"


class Workgroups(StrEnum):
    """Whether a dispatch's size is an argument of the call, or lies in a buffer (`dispatchWorkgroupsIndirect`)."""

    direct = "direct"
    indirect = "indirect"


class Caller(StrEnum):
    """What runs the loop that issues: JavaScript, or WebAssembly that calls it through imports, as engines do."""

    js = "js"
    wasm = "wasm"


class Lead(StrEnum):
    """What comes before the first call: nothing; a pause, for a burst after idle; or the same batch, untimed."""

    none = "none"
    idle = "idle"
    sustained = "sustained"


class Target(StrEnum):
    """What the calls reach: the device, or objects that do nothing, so that only the caller's own language costs."""

    device = "device"
    stub = "stub"


class Stamps(StrEnum):
    """Which timestamps are taken: two around all passes (`span_us`), or two around each pass (`busy_us` too)."""

    span = "span"
    passes = "passes"


class Depth(StrEnum):
    """How much of each dispatch is issued, one layer more each: what a nested ladder of costs is made of."""

    submit = "submit"
    command_buffer = "command_buffer"
    compute_pass = "compute_pass"
    state = "state"
    dispatch = "dispatch"


class Realm(StrEnum):
    """Whose device a program is loaded on, and whose thread issues it: the page's own, or a dedicated worker's."""

    main = "main"
    worker = "worker"


class Parameters(StrEnum):
    """Where a kernel reads the values of its dispatch: nowhere, a uniform buffer (group 1), or immediate data."""

    none = "none"
    uniform = "uniform"
    immediate = "immediate"


class Outcome(StrEnum):
    """What became of a sample or a launch. Only `ok` ever becomes a figure."""

    ok = "ok"
    validation_error = "validation_error"
    mismatch = "mismatch"
    device_lost = "device_lost"
    out_of_memory = "out_of_memory"
    timeout = "timeout"
    crashed = "crashed"
    not_supported = "not_supported"

    @property
    def ends_launch(self) -> bool:
        """True where the process that had it can't be trusted with another sample."""
        return self in (Outcome.device_lost, Outcome.timeout, Outcome.crashed)


class MetricOutcome(StrEnum):
    ok = "ok"
    unresolved = "unresolved"
    not_supported = "not_supported"
    failed = "failed"


class VerdictOutcome(StrEnum):
    holds = "holds"
    does_not_hold = "does_not_hold"
    unresolved = "unresolved"
    not_tested = "not_tested"


# --- programs and policies ---------------------------------------------------------------------------------------


class ConstantFill(Record, frozen=True, tag="constant", tag_field="kind"):
    value: float = 0.0


class HashFill(Record, frozen=True, tag="hash", tag_field="kind"):
    """Element i is hash32(seed + i) modulo `below`: whole numbers, the same in the page and in numpy."""

    seed: int
    below: Positive


class WeightFill(Record, frozen=True, tag="weights", tag_field="kind"):
    """Element i of 32-bit floats is offset + scale × (hash32(seed + i) modulo 2048 - 1024) / 1024, made on the device.

    Exact, hence the same in numpy, where the scale is a power of two not far below the offset.
    """

    seed: int
    scale: float
    offset: float = 0.0


class Buffer(Record, frozen=True):
    name: Name
    dtype: Dtype
    elements: Positive
    fill: ConstantFill | HashFill | WeightFill

    @property
    def size_bytes(self) -> int:
        return self.dtype.size_bytes * self.elements


class Kernel(Record, frozen=True, omit_defaults=True):
    """WGSL with an entry point `main`, and the values of its override constants.

    `features`: of the device, without which it does not compile. `read_only`: indices of the bindings that it declares
    as `read`. `parameters`: where it reads the values of a dispatch. `reference`: what it must compute, by its name in
    rig.programs.reference; its own name if empty.
    """

    name: Name
    wgsl: str
    constants: dict[str, float] = {}
    features: tuple[Name, ...] = ()
    read_only: tuple[Count, ...] = ()
    parameters: Parameters = Parameters.none
    reference: str = ""


class Dispatch(Record, frozen=True, omit_defaults=True):
    """One dispatch: binding i of group 0 is the i-th named buffer. `values`: up to four, for the kernel's parameters.

    With a size of zero workgroups nothing runs, and its reference does nothing.
    """

    kernel: Name
    bindings: tuple[Name, ...]
    workgroups: tuple[Count, Count, Count]
    values: Annotated[tuple[float, ...], msgspec.Meta(max_length=4)] = ()


class Model(Record, frozen=True):
    """Shape of a decoder-only transformer whose decode step a program is, in the terms of the Qwen2 architecture.

    `head_dim`: elements of a head; `heads` of them are for queries, `kv_heads` for keys and for values. `context`:
    tokens that a sequence has before it begins again. `batch`: sequences at once.
    """

    name: Name
    layers: Positive
    hidden: Positive
    heads: Positive
    kv_heads: Positive
    head_dim: Positive
    mlp: Positive
    vocabulary: Positive
    context: Positive
    batch: Positive = 1
    rope_theta: float = 1e6
    eps: float = 1e-6


class Program(Record, frozen=True, omit_defaults=True):
    """What the GPU is to do, as data. A cell's n dispatches are this list, begun again as often as it takes.

    `accumulates`: running it again goes on from where the last run ended, so that what stands in the outputs tells
    how many dispatches really ran. Otherwise the outputs are the same after each run. `relative_tolerance`: of floats,
    relative to the largest magnitude in their buffer. `model`: what the list computes once through, where it is a
    decode step; its reference is then the model's, not its kernels'.
    """

    name: Name
    hazard: Hazard
    buffers: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    dispatches: tuple[Dispatch, ...]
    outputs: tuple[Name, ...]
    accumulates: bool = False
    relative_tolerance: float = 0.0
    realm: Realm = Realm.main
    model: Model | None = None


class Policy(Record, frozen=True, omit_defaults=True):
    """How dispatches reach the GPU: the sizes of three nested groups, in dispatches; None means all of them.

    The rest are modifiers, each at its default the plainest way there is. `staged`: the calls of all dispatches are
    made stage by stage (all encoders, all passes, ...), each stage timed. `replayed`: the dispatches were recorded once
    before, and one call submits them all again, as a CUDA graph does. `dispatches_per_wait`: a fourth group around the
    three: after so many dispatches their end is awaited before the next are issued; without timestamps.
    """

    name: Name
    dispatches_per_pass: Positive | None
    dispatches_per_command_buffer: Positive | None
    dispatches_per_submit: Positive | None
    waiter: Waiter = Waiter.work_done
    bind_groups: BindGroups = BindGroups.cached
    uniforms: Uniforms = Uniforms.none
    workgroups: Workgroups = Workgroups.direct
    caller: Caller = Caller.js
    lead: Lead = Lead.none
    stamps: Stamps = Stamps.span
    depth: Depth = Depth.dispatch
    staged: bool = False
    target: Target = Target.device
    replayed: bool = False
    dispatches_per_wait: Positive | None = None


# --- cells and samples -------------------------------------------------------------------------------------------


class Cell(Record, frozen=True):
    """program × policy × n × executor × build × flags. `build` is the executable's version and hash.

    n = 0 issues nothing: what is timed is the wait for an empty queue.
    """

    program: Program
    policy: Policy
    n: Count
    executor: Name
    build: str
    flags: tuple[str, ...]

    @property
    def key(self) -> str:
        """The first 16 hex digits of SHA-256 over the canonical JSON of the cell."""
        return hashlib.sha256(canonical(self)).hexdigest()[:16]


class Sample(Record, frozen=True):
    """One timed execution of a cell. Block 0 is the opening check: it is timed too, and never counts as warm.

    `cpu_us` and `switches`: CPU time and context switches by process and thread class, of the whole call. `calls_us`:
    time in each call, over all n, of a staged policy.
    """

    experiment: Name
    cell: str
    launch: int
    block: int
    order: int
    n: int
    outcome: Outcome
    wall_us: float | None = None
    encode_us: float | None = None
    span_us: float | None = None
    busy_us: float | None = None
    cpu_us: dict[str, float] | None = None
    switches: dict[str, float] | None = None
    calls_us: dict[str, float] | None = None
    detail: str = ""


# --- launches ----------------------------------------------------------------------------------------------------


class Adapter(Record, frozen=True):
    """What the browser gave. `is_fallback`: it computes on the CPU."""

    vendor: str
    architecture: str
    device: str
    description: str
    is_fallback: bool
    features: tuple[str, ...]
    limits: dict[str, int]
    driver: str
    renderer: str
    enabled_features: tuple[str, ...]
    granted_limits: dict[str, int]

    @property
    def label(self) -> str:
        """Vendor, architecture and driver in one line, for people."""
        words = [w for w in (self.vendor, self.architecture, self.device or self.description) if w]
        return f"{' '.join(words) or 'unnamed adapter'} ({self.driver or 'driver unknown'})"

    @property
    def itself(self) -> Adapter:
        """The adapter without what a launch asked of its device, which depends on the programs it runs."""
        return msgspec.structs.replace(self, granted_limits={})


class Build(Record, frozen=True):
    """Which executable ran. `flags`: the effective command line, as the operating system tells it."""

    flavour: str
    version: str
    sha256: str
    executable: str
    flags: tuple[str, ...]
    driver_version: str


class Clock(Record, frozen=True):
    """The page's clock and surroundings: the smallest step seen, and what they depend on."""

    tick_us: float
    isolated: bool
    secure: bool
    visibility: str
    has_span: bool


class Check(Record, frozen=True):
    """Outputs compared with the reference, before the first timed sample (`opening`) or after the last (`closing`)."""

    stage: str
    program: str
    cell: str | None
    outcome: Outcome
    detail: str = ""


class GpuState(Record, frozen=True):
    """What an NVIDIA GPU was doing. None where it, its driver or the library does not tell.

    `power_limit_w`: the one in force. `performance_state`: 0 (P0, the fastest) to 15. `throttle_reasons`: why its clock
    was not the highest (rig.nvml.REASONS); not all of them are bad. `other_processes`: those not ours that compute or
    draw on it; where some may be hidden, as from a container, at least so many, and None if none is seen.
    """

    name: str | None = None
    driver_version: str | None = None
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    performance_state: int | None = None
    utilization_fraction: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    other_processes: int | None = None


class HostState(Record, frozen=True):
    """What else the machine was doing. None where the system does not tell.

    `cpu_periods`, `cpu_throttled_periods`: of the CPU quota this process is under, since it exists; without a quota
    both stand still. `busy_processes`: those not ours that used more than a fifth of a core. `cpu_pressure_fraction`:
    time in which something waited for a CPU, over the last 10 s. `gpus`: all that NVIDIA's driver shows, in its order.
    """

    load_1min: float
    cpu_busy_fraction: float
    steal_fraction: float
    memory_free_bytes: int
    cpu_periods: int | None = None
    cpu_throttled_periods: int | None = None
    cpu_mhz: float | None = None
    busy_processes: int | None = None
    cpu_pressure_fraction: float | None = None
    temperature_c: float | None = None
    gpus: tuple[GpuState, ...] = ()


class Host(Record, frozen=True):
    """`governor`: how the system chooses the CPU's clock. `cpu_quota_cores`: the most that a container may use."""

    system: str
    cpu: str
    cores: int
    memory_bytes: int
    python: str
    container: bool
    root: bool
    governor: str | None = None
    cpu_quota_cores: float | None = None
    shared_memory_bytes: int | None = None

    @property
    def usable_cores(self) -> float:
        """As many as may be busy at once: a quota may allow fewer than there are."""
        return min(self.cores, self.cpu_quota_cores or self.cores)


class Launch(Record, frozen=True, kw_only=True):
    """One process of an executor. `arm`: which of the plan's arms, each with flags of its own; empty for the main one.

    `round`: each round launches every arm once, in random order.
    """

    launch: int
    executor: str
    arm: str = ""
    round: int = 0
    build: Build | None
    adapter: Adapter | None
    clock: Clock | None
    host_before: HostState
    host_after: HostState
    began: str
    ended: str
    outcome: Outcome
    detail: str = ""
    blocks: int = 0
    checks: tuple[Check, ...] = ()


# --- a run -------------------------------------------------------------------------------------------------------


class Rig(Record, frozen=True):
    version: str
    source_hash: str


class Plan(Record, frozen=True):
    """The profile as resolved, options of every experiment spelled out, and the adapter that was asked for."""

    profile: dict[str, Any]
    seed: int
    adapter_asked: str


class Manifest(Record, frozen=True):
    """`resumed`: when a run that had ended early was taken up again. `joined`: commands of the runs merged into it."""

    schema: int
    rig: Rig
    plan: Plan
    command: tuple[str, ...]
    host: Host
    started: str
    ended: str
    finished: bool
    why: str
    resumed: tuple[str, ...] = ()
    joined: tuple[tuple[str, ...], ...] = ()


EXECUTOR = "executor"
"""Key of a metric's variant that names what ran it; absent where that was the run's main executor, the browser."""


def key_of(metric: str, variant: Mapping[str, str | int | float]) -> str:
    """`metric{k=v,...}`, keys sorted: by which a figure is named."""
    return f"{metric}{{{','.join(f'{k}={variant[k]}' for k in sorted(variant))}}}"


class Metric(Record, frozen=True):
    """A figure with its interval. `variant` tells which; `reason` is never empty unless the outcome is ok.

    `per_launch`: the values that the interval is over, by launch number, where it is over launches.
    """

    experiment: Name
    metric: Name
    variant: dict[str, str | int | float]
    unit: str
    outcome: MetricOutcome
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float = 0.95
    n_samples: int = 0
    n_launches: int = 0
    reason: str = ""
    per_launch: dict[str, float] = {}

    @property
    def key(self) -> str:
        """`metric{k=v,...}`, keys sorted."""
        return key_of(self.metric, self.variant)

    @property
    def executor(self) -> str:
        """What ran it; empty for the browser."""
        return str(self.variant.get(EXECUTOR, ""))

    @property
    def half_width(self) -> float | None:
        """Relative half-interval, or None without a value."""
        if self.value is None or self.ci_low is None or self.ci_high is None or self.value == 0:
            return None
        return (self.ci_high - self.ci_low) / 2 / abs(self.value)


class Verdict(Record, frozen=True):
    claim: Name
    outcome: VerdictOutcome
    statement: Name
    evidence: tuple[str, ...] = ()


class Summary(Record, frozen=True):
    schema: int
    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...]


# --- strict JSON -------------------------------------------------------------------------------------------------


def refuse_nonfinite(value: object) -> None:
    """Raises ValueError where a NaN or an infinity hides anywhere in plain data (msgspec would write null)."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    if isinstance(value, dict):
        for item in value.values():
            refuse_nonfinite(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            refuse_nonfinite(item)


def plain(record: object) -> Any:  # noqa: ANN401
    """Records as dicts, lists, strings and numbers. ValueError on a number that JSON can't hold."""
    data = msgspec.to_builtins(record)
    refuse_nonfinite(data)
    return data


def encode(record: object) -> bytes:
    """Strict JSON on one line."""
    return msgspec.json.encode(plain(record))


def canonical(record: object) -> bytes:
    """Strict JSON with sorted keys: equal records give equal bytes."""
    return msgspec.json.encode(plain(record), order="sorted")


def decode(data: bytes | str, kind: type[T]) -> T:
    """Validated record from JSON. msgspec.ValidationError names the place of what is wrong."""
    return msgspec.json.decode(data, type=kind)
