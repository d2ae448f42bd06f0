"""How malloc treats large blocks, set inside a worker before it allocates.

What it does: the warm setting keeps freed memory in the process, so that an output of 100 MB is not mapped, zeroed and
unmapped by the kernel at each call; both contestants get the same. What it does not do: change the Lab's own process.
Called by the two worker modules. See docs/adr/0003-timing.md.
"""

from __future__ import annotations

import ctypes

from kernelwright.lab.protocol import Allocator

# malloc.h of glibc
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4


def set_allocator(allocator: Allocator) -> bool:
    """Set this process's malloc. False where the C library has no mallopt (not glibc) or refused."""
    if allocator is Allocator.DEFAULT:
        return True
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return False
    # No block is mapped by itself, and the heap's top is never given back (-1 becomes the largest size_t).
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, -1))
