"""Loads one built trial kernel, calls it on 0..63 and writes the 64 numbers it gives. Run as a program by `targets.cpu`."""

import ctypes
import sys

if __name__ == "__main__":
    kernel = ctypes.CDLL(sys.argv[1])
    given = (ctypes.c_float * 64)(*range(64))
    result = (ctypes.c_float * 64)(*[float("nan")] * 64)
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(given), ctypes.addressof(result))
    kernel.kw_run_0(pointers, None, None, None)
    sys.stdout.write(" ".join(map(repr, result)))
