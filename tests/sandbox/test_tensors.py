"""Shared tensors: every dtype and shape, seals that hold, and descriptors that are not what they claim."""

from __future__ import annotations

import gc
import mmap
import os
import tempfile

import numpy
import pytest
import torch

from kernelwright.sandbox.tensors import TORCH_TYPES, ArraySpec, SharedArray, short_name


@pytest.mark.parametrize("dtype", TORCH_TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3, 5), (7, 1, 2)])
def test_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    tensor = (torch.rand(shape) * 9).to(getattr(torch, TORCH_TYPES[dtype]))
    with SharedArray.copy_of_tensor(tensor) as shared, SharedArray.open(shared.fd, shared.spec) as other:
        assert shared.spec == ArraySpec(shape, dtype)
        assert torch.equal(other.tensor, tensor)
        assert other.tensor.dtype == tensor.dtype
        assert other.array.shape == shape
        with SharedArray.copy_of(other.array, dtype) as again:
            assert torch.equal(again.tensor, tensor)


def test_strided_tensors_arrive_dense() -> None:
    tensor = torch.arange(12.0).reshape(3, 4).t()
    with SharedArray.copy_of_tensor(tensor) as shared:
        assert torch.equal(shared.tensor, tensor)
        assert shared.tensor.is_contiguous()


def test_both_sides_see_writes_until_sealed() -> None:
    shared = SharedArray.create(ArraySpec((4,), "f32"))
    other = SharedArray.open(shared.fd, shared.spec, writable=True)
    other.tensor.fill_(2.0)
    assert shared.array.tolist() == [2.0] * 4
    shared.seal()
    with pytest.raises(PermissionError):
        SharedArray.open(shared.fd, shared.spec, writable=True)
    with pytest.raises(PermissionError):
        os.write(shared.fd, b"x")
    with pytest.raises(PermissionError):
        mmap.mmap(os.open(f"/proc/self/fd/{shared.fd}", os.O_RDWR), 16)
    reader = SharedArray.open(shared.fd, shared.spec)
    assert not reader.array.flags.writeable
    with pytest.raises(PermissionError):
        os.ftruncate(shared.fd, 0)


def test_views_outlive_the_array() -> None:
    shared = SharedArray.copy_of(numpy.arange(1000, dtype=numpy.float32), "f32")
    tensor, array = shared.tensor, shared.array
    shared.close()
    shared.close()
    del shared
    gc.collect()
    assert float(tensor.sum()) == float(array.sum()) == 499500.0


def test_what_is_not_such_a_file_is_refused() -> None:
    spec = ArraySpec((4,), "f32")
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as file:
        file.truncate(100)
        for fd in (reading, writing, file.fileno()):
            with pytest.raises(ValueError, match="not a memory file"):
                SharedArray.open(fd, spec)
    with SharedArray.create(spec) as small, pytest.raises(ValueError, match="smaller"):
        SharedArray.open(small.fd, ArraySpec((5,), "f32"))
    with pytest.raises(ValueError, match="no such array"):
        ArraySpec((2,), "f99")
    with pytest.raises(ValueError, match="no such array"):
        ArraySpec((-1,), "f32")
    with pytest.raises(ValueError, match="cannot be shared"):
        short_name(torch.complex64)


def test_a_foreign_file_cannot_be_cut_short_once_open() -> None:
    fd = os.memfd_create("foreign", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 4096)
    opened = SharedArray.open(fd, ArraySpec((1024,), "f32"))
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)
    assert float(opened.array.sum()) == 0.0
