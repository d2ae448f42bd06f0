"""Tensors in shared memory: a memfd with a dtype and a shape, mapped by whoever holds its descriptor.

What it does: creates, maps, seals and copies arrays in anonymous memory files, so that megabytes cross a process border
without a copy and without a pickle. bf16 travels as 16-bit integers with its dtype named beside it. What it does not do:
send descriptors (worker.call) or trust the other side: `open` seals the size first, because a mapped file that is cut short
kills its reader with SIGBUS. Used by lab on both sides.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    import torch

SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
F_SEAL_FUTURE_WRITE = 0x0010  # Linux 5.1; fcntl does not name it
Array = numpy.ndarray[Any, numpy.dtype[Any]]

NUMPY_TYPES: dict[str, str] = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "uint16", "i64": "int64",
    "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool",
}  # fmt: skip
TORCH_TYPES: dict[str, str] = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64",
    "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype (the short names of ir.expr.DType) of a dense, row-major array. Travels in requests."""

    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in NUMPY_TYPES or any(extent < 0 for extent in self.shape):
            raise ValueError(f"no such array: {self.dtype}{list(self.shape)}")

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * numpy.dtype(NUMPY_TYPES[self.dtype]).itemsize


class SharedArray:
    """One mapped memfd. Owns its descriptor; `array` and `tensor` are views that keep the memory alive."""

    def __init__(self, fd: int, spec: ArraySpec, writable: bool) -> None:
        self.fd = fd
        self.spec = spec
        self.writable = writable
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._map: mmap.mmap | None = mmap.mmap(fd, max(1, spec.bytes), mmap.MAP_SHARED, access)

    @staticmethod
    def create(spec: ArraySpec) -> SharedArray:
        """A zeroed array of a fixed size, writable by all holders until `seal`."""
        fd = os.memfd_create("kernelwright", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, max(1, spec.bytes))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SIZE_SEALS)
            return SharedArray(fd, spec, writable=True)
        except BaseException:
            os.close(fd)
            raise

    @staticmethod
    def copy_of(array: Array, dtype: str) -> SharedArray:
        """A new shared array with the elements of `array` (for bf16: its 16-bit patterns as uint16)."""
        shared = SharedArray.create(ArraySpec(tuple(array.shape), dtype))
        shared.array[...] = array
        return shared

    @staticmethod
    def copy_of_tensor(tensor: torch.Tensor) -> SharedArray:
        """A new shared array with the elements of a CPU tensor of any strides."""
        shared = SharedArray.create(ArraySpec(tuple(tensor.shape), short_name(tensor.dtype)))
        shared.tensor.copy_(tensor.detach())
        return shared

    @staticmethod
    def open(fd: int, spec: ArraySpec, writable: bool = False) -> SharedArray:
        """Map a descriptor that came from elsewhere (it is duplicated). Raises ValueError where it is not such a memfd."""
        own = os.dup(fd)
        try:
            try:
                seals = fcntl.fcntl(own, fcntl.F_GET_SEALS)
                if seals & SIZE_SEALS != SIZE_SEALS:
                    fcntl.fcntl(own, fcntl.F_ADD_SEALS, SIZE_SEALS)
            except OSError as error:
                raise ValueError("the descriptor is not a memory file whose size can be fixed") from error
            if os.fstat(own).st_size < max(1, spec.bytes):
                raise ValueError(f"the memory file is smaller than {spec.dtype}{list(spec.shape)}")
            return SharedArray(own, spec, writable)
        except BaseException:
            os.close(own)
            raise

    @property
    def array(self) -> Array:
        """A numpy view (uint16 for bf16), read-only unless the mapping is writable."""
        kind = numpy.dtype(NUMPY_TYPES[self.spec.dtype])
        flat: Array = numpy.frombuffer(self._mapping(), kind, count=math.prod(self.spec.shape))
        return flat.reshape(self.spec.shape)

    @property
    def tensor(self) -> torch.Tensor:
        """A torch view. Torch knows no read-only memory: writing through a read-only mapping is a segmentation fault."""
        import warnings

        import torch

        kind = getattr(torch, TORCH_TYPES[self.spec.dtype])
        count = math.prod(self.spec.shape)
        if count == 0:
            return torch.empty(self.spec.shape, dtype=kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "the given buffer is not writable": that is the point
            return torch.frombuffer(self._mapping(), dtype=kind, count=count).reshape(self.spec.shape)

    def seal(self) -> None:
        """No new writer from here on, in any process: mappings made later are read-only. Ours stays as it is."""
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)

    def close(self) -> None:
        """Give up the descriptor. Views stay valid: each keeps the mapping, which goes with the last of them."""
        if self._map is not None:
            os.close(self.fd)
            self._map = None  # never closed by force: a torch view would be left on unmapped memory

    def _mapping(self) -> mmap.mmap:
        if self._map is None:
            raise ValueError("this array was closed")
        return self._map

    def __enter__(self) -> SharedArray:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def short_name(dtype: torch.dtype) -> str:
    """The short name of a torch dtype. Raises ValueError for one that has none (complex, float8)."""
    name = str(dtype).removeprefix("torch.")
    for short, long in TORCH_TYPES.items():
        if long == name:
            return short
    raise ValueError(f"tensors of {dtype} cannot be shared")
