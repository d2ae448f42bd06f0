"""Why a reference could not be captured: a user's mistake with a kind that tests and the command line can tell apart."""

from __future__ import annotations

from enum import Enum

from kernelwright.errors import UserError


class CaptureErrorKind(Enum):
    """What stands in the way of a static, functional graph."""

    DATA_DEPENDENT = "data_dependent"  # shapes or branches that depend on tensor values
    INPUT_MUTATED = "input_mutated"
    STATE_MUTATED = "state_mutated"  # a buffer, parameter or attribute changes in forward
    OUTPUT = "output"  # the result is not a tensor or a flat tuple or list of tensors
    INPUT = "input"  # an input is neither a tensor nor a number
    DTYPE = "dtype"
    RAISED = "raised"  # the reference itself raised
    EXPORT = "export"


class CaptureError(UserError):
    """The reference can't be captured; `kind` says why, `hint` what to do."""

    def __init__(self, kind: CaptureErrorKind, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.kind = kind
