"""What the Lab and its workers say to each other: requests and answers, as msgspec-able records.

What it does: types for the calls of `reference_worker` and `candidate_worker`. Tensors travel beside them as memfds, in the
order that each record names. What it does not do: carry verdicts or times: nobody but the Lab states those.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kernelwright.records import Case, Task
from kernelwright.sandbox.tensors import ArraySpec


class Baseline(Enum):
    """The ways to run the reference that a candidate is measured against."""

    EAGER = "eager"
    EAGER_DEFAULT = "eager_default_allocator"  # the same under malloc's defaults: large outputs are mapped anew each call
    COMPILE = "compile"
    COMPILE_AUTOTUNE = "compile_max_autotune"


class Allocator(Enum):
    """How malloc treats large blocks in a worker (docs/adr/0003-timing.md)."""

    WARM = "warm"  # freed memory is kept and used again
    DEFAULT = "default"


@dataclass(frozen=True)
class AdmitRequest:
    """Load the reference, build it, run it twice on `case`."""

    task: Task
    case: Case
    allocator: Allocator


@dataclass(frozen=True)
class Weight:
    """A parameter or buffer by its name in the module."""

    key: str
    spec: ArraySpec


@dataclass(frozen=True)
class Admitted:
    """What the reference is. `seconds` is the second of two calls, in the reference's own process: for time limits only."""

    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    weights: tuple[Weight, ...]
    seconds: float
    torch_version: str
    keywords: tuple[str, ...] = ()  # names of the last inputs, which the reference takes by keyword


@dataclass(frozen=True)
class TruthRequest:
    """Inputs and right answers of `case`. `moved`: also the oracle at inputs and weights moved by half an ulp."""

    case: Case
    moved: bool = True


@dataclass(frozen=True)
class TruthReply:
    """Descriptors: inputs, outputs, then of each float output the float64 oracle, then (if `moved`) the oracle at moved inputs.

    `oracle_error` says why there is no oracle; the outputs then stand for it.
    """

    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    oracle: bool
    moved: bool
    oracle_error: str
    seconds: float


@dataclass(frozen=True)
class WeightsRequest:
    """The values of these parameters and buffers; descriptors in this order."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class CaptureRequest:
    """Capture the reference as a Graph. The answer is one descriptor (a u8 array) with `ir.codec` bytes."""

    name: str


@dataclass(frozen=True)
class Shape:
    """Specs of the descriptors that come with an answer."""

    arrays: tuple[ArraySpec, ...]


@dataclass(frozen=True)
class ContendRequest:
    """Prepare the reference for timing: inputs of `cases` in turn, `copies` in all."""

    baseline: Baseline
    cases: tuple[Case, ...]
    copies: int


@dataclass(frozen=True)
class TimeRequest:
    """Run `calls` times, going round the prepared inputs; keep the outputs of call `keep`. `spoil`: new outputs are NaN (never
    asked for on the clock), so that what a call leaves unwritten shows.
    """

    calls: int
    keep: int = 0
    spoil: bool = False


@dataclass(frozen=True)
class WarmRequest:
    """Set the worker up before a candidate is loaded into it."""

    threads: int
    allocator: Allocator


@dataclass(frozen=True)
class LoadRequest:
    """Load a candidate. Descriptors: the shared object, then manifest.weights, then manifest.constants, all read-only.

    `manifest` is the JSON of the candidate's Manifest (a manifest mixes kinds of steps, which only records.from_json reads).
    """

    manifest: str


@dataclass(frozen=True)
class RunRequest:
    """Run once. Descriptors: inputs, then outputs, both in the manifest's order (outputs: one for each of `returns`)."""

    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]


@dataclass(frozen=True)
class PrepareRequest:
    """Prepare a candidate for timing. Descriptors: the inputs of `sets` cases; `copies` sets are made of them in turn."""

    inputs: tuple[ArraySpec, ...]
    sets: int
    copies: int


@dataclass(frozen=True)
class RenewRequest:
    """New values in the prepared sets, in place. Descriptors: the inputs of `sets` cases. With `exact` the sets hold them as
    they are in turn, else variants of them, different ones for each `variant`.
    """

    inputs: tuple[ArraySpec, ...]
    sets: int
    variant: int
    exact: bool


@dataclass(frozen=True)
class KeptRequest:
    """Write the outputs that the last TimeRequest kept into these descriptors."""

    outputs: tuple[ArraySpec, ...]


@dataclass(frozen=True)
class Kept:
    """From which prepared set of inputs the kept outputs came (`set` indexes the cases, not the copies)."""

    index: int
