"""The records that every layer speaks: task, case, contract, candidate, evidence, evaluation, measurement, machine.

What it does: frozen dataclasses that refuse impossible states, and their JSON form (msgspec).
What it does not do: load, run or judge anything. Imports only errors and the standard library at import time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar


class Precision(Enum):
    """The numeric contract that the user allows; every speed claim carries it."""

    STRICT = "strict"  # error against float64 no worse than the reference's own (RMS x2, max x4)
    SPLIT6 = "split6"
    SPLIT3 = "split3"
    BF16 = "bf16"


class Fill(Enum):
    """How the tensors of a case are filled. REFERENCE calls the task's own get_inputs under the case's seed."""

    REFERENCE = "reference"
    NORMAL = "normal"  # N(0,1)
    UNIFORM = "uniform"  # U[0,1)
    SHIFTED = "shifted"  # N(5,1)
    TINY = "tiny"  # N(0,1) * 1e-3
    LARGE = "large"  # N(0,1) * 64
    MIXED = "mixed"  # halves of amplitude 1e-3 and 64
    INTEGERS = "integers"  # small integers, exact in f32
    SPECIAL = "special"  # NaN, Inf, -0, denormals sprinkled in


class CaseRole(Enum):
    CHECK = "check"
    TIME = "time"


@dataclass(frozen=True)
class TensorSpec:
    """Shape and dtype (ir.expr.DType value) of one tensor at the program's border. `key`: state_dict key of a weight."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    key: str | None = None


@dataclass(frozen=True)
class Case:
    """One set of inputs. `seed` seeds the generator that fills them."""

    name: str
    role: CaseRole
    fill: Fill
    seed: int


@dataclass(frozen=True)
class Task:
    """A reference, the cases it is judged on, and the contract. `path` is the user's file; it is never edited.

    `entry` is the class or function name ("Model" by default). `inputs` are specs given on the command line (--input), or
    None where the file's get_inputs makes them. `digest` is over the file's bytes, the entry, the inputs, mode and contract.
    """

    name: str
    path: str
    entry: str
    is_function: bool
    inputs: tuple[TensorSpec, ...] | None
    training: bool
    precision: Precision
    cases: tuple[Case, ...]
    digest: str


class Origin(Enum):
    """Who wrote a candidate's source. OURS may run under weaker isolation where bubblewrap is missing; FOREIGN may not."""

    OURS = "ours"
    FOREIGN = "foreign"


class _Step:
    """Base of the two kinds of step: msgspec decodes no union of dataclasses, so `from_json` tells them apart by their keys."""


@dataclass(frozen=True)
class GeneratedStep(_Step):
    """One call into the compiled candidate: `symbol` is an extern "C" function (see docs/adr/0001-native-entry.md)."""

    symbol: str


@dataclass(frozen=True)
class LibraryStep(_Step):
    """One ATen call between generated steps. `arguments` is the JSON form of LibraryCall.args (see codegen.manifest)."""

    target: str
    arguments: str
    outputs: tuple[str | None, ...]


if TYPE_CHECKING:
    Step = GeneratedStep | LibraryStep
else:
    Step = _Step


@dataclass(frozen=True)
class Manifest:
    """What a runner must know to run a native candidate. Pointers are passed in the order of `slots`.

    `slots` lists every tensor with place ARGUMENT: inputs, weights, constants, outputs, and temporaries that library steps
    touch. Bytes of workspace needed with n threads: workspace_bytes + n * local_bytes. `packed_bytes`: filled once by
    `kw_prepare` (absent when 0) and again whenever the weights change.
    """

    inputs: tuple[TensorSpec, ...]
    weights: tuple[TensorSpec, ...]
    constants: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    temporaries: tuple[TensorSpec, ...]
    slots: tuple[str, ...]
    returns: tuple[str, ...]  # output names in the reference's order; may name an input or a weight
    output_tree: str
    steps: tuple[Step, ...]
    workspace_bytes: int
    local_bytes: int
    packed_bytes: int


@dataclass(frozen=True)
class Candidate:
    """Source text for one target, with all that is needed to build, run and trace it. Its content hash is its name."""

    target: str
    source: str
    manifest: Manifest | None  # None: not our native entry (a ModelNew file)
    flags: tuple[str, ...] = ()
    origin: Origin = Origin.OURS
    proposer: str = "search"
    schedule: str = ""  # Schedule.text()
    parents: tuple[str, ...] = ()
    note: str = ""  # why it was proposed

    @property
    def digest(self) -> str:
        """SHA-256 over target, source, manifest and flags (not over who proposed it), 16 hex digits."""
        content = "\x00".join((self.target, self.source, to_json(self.manifest), *self.flags))
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class EvidenceKind(Enum):
    COMPILED = "compiled"
    RESOURCE_CHECKED = "resource_checked"
    EMULATED = "emulated"
    SANITIZED = "sanitized"
    RAN = "ran"
    CHECKED = "checked"
    TIMED = "timed"
    MODELLED = "modelled"


class Status(Enum):
    """Unavailable and unsupported never become pass."""

    PASS = "pass"
    FAIL = "fail"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class Evidence:
    """One thing that was seen about a candidate."""

    kind: EvidenceKind
    status: Status
    subject: str  # arch, device or engine
    summary: str  # one line for people
    tool: str = ""  # name and version
    command: str = ""
    seconds: float = 0.0
    log: str = ""  # first error first, cut to 4,000 characters
    uncovered: str = ""  # what this evidence does not say
    numbers: dict[str, float] = field(default_factory=dict)


class Verdict(Enum):
    CORRECT = "correct"
    WRONG = "wrong"  # ran, but the outputs differ, alias, mutate inputs, have the wrong shape...
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    NOT_COMPILED = "not_compiled"
    REFUSED = "refused"  # the screen refused it before it was built (policy, capability)


@dataclass(frozen=True)
class Evaluation:
    """A candidate's verdict with its evidence. `median_ns` is the Lab's own screening time, None where it was not timed."""

    candidate: str  # digest
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    median_ns: float | None = None
    relative_error: float | None = None  # worst over cases: RMS(error) / RMS(float64 answer)

    def __post_init__(self) -> None:
        if self.median_ns is not None and self.verdict is not Verdict.CORRECT:
            raise ValueError("only a correct candidate has a time")


@dataclass(frozen=True)
class CheckedCase:
    """One case on which the outputs were compared with the float64 oracle; errors are RMS(error) / RMS(float64 answer)."""

    case: str
    fill: str
    seed: int
    passed: bool
    error: float | None  # ours; None for outputs that must be equal bit by bit
    reference_error: float | None  # the reference's own
    budget: float | None  # what the contract allows ours


@dataclass(frozen=True)
class Sample:
    """One interleaved round: nanoseconds a call of each contestant, in the order of Measurement.contestants."""

    round: int
    ns: tuple[float, ...]


@dataclass(frozen=True)
class Interval:
    """A point estimate with its 95% bootstrap interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Measurement:
    """An interleaved comparison of several contestants in fresh processes. `contestants[0]` is the candidate."""

    contestants: tuple[str, ...]
    samples: tuple[Sample, ...]
    median_ns: dict[str, float]
    speedup: dict[str, Interval]  # candidate against each baseline: > 1 means that the candidate is faster
    noise_floor: float  # A/A: |ratio - 1| that this machine shows without any difference
    threads: int
    allocator: str  # "warm" or "default"; see docs/adr/0003-timing.md
    load_before: float
    unavailable: dict[str, str] = field(default_factory=dict)  # baseline -> why it could not be measured


@dataclass(frozen=True)
class Bandwidth:
    """Measured with all threads on buffers of `bytes` (source and destination each)."""

    bytes: int
    copy_gbps: float  # read + write traffic, ordinary stores
    stream_gbps: float  # read + write traffic, non-temporal stores
    read_gbps: float


@dataclass(frozen=True)
class Machine:
    """The limits of this machine, measured once and kept. Rates are for all `threads` unless they say otherwise."""

    cpu: str
    isa: str  # "avx512" | "avx2" | "portable"
    vector_bytes: int
    threads: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    fma_gflops: float  # f32, all threads
    fma_gflops_core: float
    amx_bf16_gflops: float | None
    bandwidth: tuple[Bandwidth, ...]
    fork_join_us: float
    compiler: str  # path and version
    measured_at: str


_T = TypeVar("_T")


def to_json(record: Any, indent: int = 0) -> str:
    """JSON text of a record, keys in definition order."""
    import msgspec

    data = msgspec.json.encode(record)
    return (msgspec.json.format(data, indent=indent) if indent else data).decode()


def from_json(text: str | bytes, kind: type[_T]) -> _T:
    """The record of type `kind` in `text`. Raises msgspec.ValidationError where it does not fit."""
    import msgspec

    return msgspec.json.decode(text, type=kind, dec_hook=_decode_step)


def _decode_step(kind: type[Any], data: Any) -> Any:
    import msgspec

    if kind is _Step and isinstance(data, dict):
        return msgspec.convert(data, GeneratedStep if "symbol" in data else LibraryStep)
    raise TypeError(f"{kind} is not a record")
