"""The fills: same values for the same case, shapes and dtypes as get_inputs gave them."""

from __future__ import annotations

import pytest
import torch

from kernelwright.records import Case, CaseRole, Fill
from kernelwright.task.cases import FAMILIES, fill_inputs, quick_cases, seed_everything, thorough_cases


def case(fill: Fill, seed: int = 3) -> Case:
    return Case(fill.value, CaseRole.CHECK, fill, seed)


@pytest.mark.parametrize("fill", FAMILIES)
def test_same_case_same_values_other_seed_others(fill: Fill) -> None:
    made = [torch.zeros(40, 50), torch.arange(7), torch.zeros(3, dtype=torch.float64)]
    a, b, c = fill_inputs(made, case(fill)), fill_inputs(made, case(fill)), fill_inputs(made, case(fill, 4))
    assert all(torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in zip(a, b, strict=True))
    assert not torch.equal(a[0].nan_to_num(), c[0].nan_to_num())
    assert a[1] is made[1]
    assert a[2].dtype is torch.float64
    assert torch.equal(made[0], torch.zeros(40, 50)), "the template stays as it was"


def test_strides_stay_and_expanded_becomes_dense() -> None:
    turned, spread = torch.zeros(4, 6).t(), torch.zeros(1, 5).expand(3, 5)
    a, b = fill_inputs([turned, spread], case(Fill.NORMAL))
    assert a.stride() == turned.stride()
    assert b.shape == (3, 5)
    assert b.is_contiguous()


def test_the_families_differ_as_they_say() -> None:
    big = [torch.zeros(64, 64)]
    value = {f: fill_inputs(big, case(f))[0] for f in FAMILIES}
    assert value[Fill.UNIFORM].min() >= 0
    assert value[Fill.UNIFORM].max() < 1
    assert abs(value[Fill.SHIFTED].mean() - 5) < 0.2
    assert value[Fill.TINY].abs().max() < 0.01
    assert value[Fill.LARGE].std() > 50
    assert value[Fill.MIXED][:32].abs().max() < 0.01
    assert value[Fill.MIXED][32:].abs().max() > 10
    assert torch.equal(value[Fill.INTEGERS], value[Fill.INTEGERS].round())
    special = value[Fill.SPECIAL]
    assert special.isnan().any()
    assert special.isposinf().any()
    assert special.isneginf().any()


def test_empty_and_scalar_tensors_and_plain_values() -> None:
    got = fill_inputs([torch.zeros(0, 3), torch.zeros(()), 2.5, None], case(Fill.SPECIAL))
    assert got[0].shape == (0, 3)
    assert got[1].shape == ()
    assert got[2:] == [2.5, None]


def test_plans() -> None:
    assert len(quick_cases()) == 2
    thorough = thorough_cases(private_seed=99)
    assert sum(c.fill is Fill.REFERENCE for c in thorough) >= 5
    assert {c.fill for c in thorough} >= set(FAMILIES)
    assert any(c.name == "private" and c.seed == 99 for c in thorough)
    assert len({c.name for c in thorough}) == len(thorough)


def test_seeding_covers_all_three_generators() -> None:
    import random

    import numpy as np

    seed_everything(7)
    first = (random.random(), np.random.rand(), torch.rand(1).item())
    seed_everything(7)
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == first
