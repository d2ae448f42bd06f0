"""Printed programs under the address and undefined-behaviour sanitizers, with buffers of exactly the stated sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import native
import pytest

CASES = (
    "gelu", "softmax", "softmax_short", "rmsnorm_middle", "cumsum", "cumsum_reverse", "argmax", "argmax_short", "maxpool",
    "maxpool_small", "depthwise", "depthwise_small", "gather", "causal", "transpose",
    "total", "integers", "halves", "unary",
)  # fmt: skip

SCRIPT = """
import sys
from pathlib import Path
import native, test_print
native.aligned = native.exactly
for case in sys.argv[2:]:
    test_print.check(test_print.CASES[case](), Path(sys.argv[1]), "{isa}", extra=("-fsanitize=address,undefined", "-O1",
                     "-fno-sanitize-recover=all"))
"""


@pytest.mark.parametrize("isa", ["avx2", "portable"])
def test_sanitized(isa: str, tmp_path: Path) -> None:
    if not native.machine_has(isa):
        pytest.skip(f"this machine has no {isa}")
    preload = " ".join(
        subprocess.run(["g++", f"-print-file-name={name}.so"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan", "libubsan")
    )
    if not all(Path(part).is_absolute() for part in preload.split()):
        pytest.skip("g++ has no sanitizer runtime here")
    here = str(Path(__file__).parent)
    env = {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONPATH": here, "PYTHONMALLOC": "malloc"}
    command = [sys.executable, "-c", SCRIPT.format(isa=isa), str(tmp_path), *CASES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
