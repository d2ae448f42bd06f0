"""The inputs of a case: the same values in every process for the same case.

What it does: the case plans (what the search checks on, what finalists are checked on), and the fills that rewrite the floating
point inputs which the task's own get_inputs made. Shapes, dtypes and strides stay as get_inputs gives them; integer and boolean
inputs are always get_inputs' own, because their range means something (indices, labels, masks).
What it does not do: call get_inputs (`task.reference`) or judge. Called by the Lab (plans) and its reference worker (fills).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernelwright.records import Case, CaseRole, Fill

if TYPE_CHECKING:
    import torch

CHECK_SEEDS = (1, 2)
THOROUGH_SEEDS = (3, 5, 8, 13)
FAMILIES = (Fill.NORMAL, Fill.UNIFORM, Fill.SHIFTED, Fill.TINY, Fill.LARGE, Fill.MIXED, Fill.INTEGERS, Fill.SPECIAL)
FAMILY_SEED = 21
LARGE_SCALE = 64.0
TINY_SCALE = 1e-3
SHIFT = 5.0


def quick_cases() -> tuple[Case, ...]:
    """What every candidate is checked on during a search: the task's own inputs under two seeds."""
    return tuple(Case(f"seed{s}", CaseRole.CHECK, Fill.REFERENCE, s) for s in CHECK_SEEDS)


def thorough_cases(private_seed: int) -> tuple[Case, ...]:
    """What finalists are checked on: more seeds, one of them private to this grading, and the families of inputs."""
    own = (*(Case(f"seed{s}", CaseRole.CHECK, Fill.REFERENCE, s) for s in THOROUGH_SEEDS),)
    private = Case("private", CaseRole.CHECK, Fill.REFERENCE, private_seed)
    families = tuple(Case(f.value, CaseRole.CHECK, f, FAMILY_SEED + i) for i, f in enumerate(FAMILIES))
    return (*own, private, *families)


def seed_everything(seed: int) -> None:
    """Seed every generator that a get_inputs may use: random, numpy, torch."""
    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def fill_inputs(made: Sequence[Any], case: Case) -> list[Any]:
    """`made` (what get_inputs returned under the case's seed) with its floating tensors refilled by the case's family."""
    import torch

    if case.fill is Fill.REFERENCE:
        return list(made)
    return [
        _refill(value, case, position) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for position, value in enumerate(made)
    ]


def _refill(template: torch.Tensor, case: Case, position: int) -> torch.Tensor:
    import torch

    generator = torch.Generator().manual_seed((case.seed * 1_000_003 + position * 7919) % 2**63)
    values = _values(case.fill, tuple(template.shape), generator)
    with torch.no_grad():
        out = torch.empty_strided(template.shape, template.stride(), dtype=template.dtype)
        if 0 in template.stride():  # expanded: writing each element would overlap, so keep the dense form
            out = torch.empty(template.shape, dtype=template.dtype)
        return out.copy_(values)


def _values(fill: Fill, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """float32 values of the family, in row-major order."""
    import torch

    if fill is Fill.UNIFORM:
        return torch.rand(shape, generator=generator)
    if fill is Fill.INTEGERS:
        return torch.randint(-3, 4, shape, generator=generator).to(torch.float32)
    values = torch.randn(shape, generator=generator)
    if fill is Fill.SHIFTED:
        return values.add_(SHIFT)
    if fill is Fill.TINY:
        return values.mul_(TINY_SCALE)
    if fill is Fill.LARGE:
        return values.mul_(LARGE_SCALE)
    if fill is Fill.MIXED:
        flat = values.view(-1)
        flat[: flat.numel() // 2].mul_(TINY_SCALE)
        flat[flat.numel() // 2 :].mul_(LARGE_SCALE)
        return values
    if fill is Fill.SPECIAL:
        return _sprinkle(values, generator)
    return values


def _sprinkle(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """NaN, Inf, zeros of both signs, denormals and ties among normal values: about one in 997 of each, at least one."""
    import torch

    specials = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40, -1e-40, 1.0, 1.0)
    flat = values.view(-1)
    if flat.numel() == 0:
        return values
    each = max(1, flat.numel() // 997)
    for special in specials:
        at = torch.randint(0, flat.numel(), (each,), generator=generator)
        flat[at] = special
    return values
