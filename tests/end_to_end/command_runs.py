"""The real command as a process, in a home of its own whose machine record is given."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kernelwright.records import Bandwidth, Machine
from kernelwright.targets.machine import Measured, cpu_name, host_isa, keep_machine
from kernelwright.targets.toolchain import find_compiler

ROOT = Path(__file__).parents[2]
THREADS = 2


def keep_given_machine(home: Path) -> None:
    """Measuring a machine's limits takes seconds; none of these tests is about speed."""
    compiler = find_compiler()
    rates = tuple(Bandwidth(size << 20, 40.0, 30.0, 30.0) for size in (1, 32, 512))
    machine = Machine(
        cpu=cpu_name(), isa=host_isa(), vector_bytes=32, threads=THREADS, l1_bytes=32 << 10, l2_bytes=512 << 10,
        l3_bytes=32 << 20, fma_gflops=100.0, fma_gflops_core=50.0, amx_bf16_gflops=None, bandwidth=rates, fork_join_us=2.0,
        compiler=compiler.text(), measured_at="2000-01-01T00:00:00+00:00",
    )  # fmt: skip
    keep_machine(home, compiler, Measured(machine, busy=False))


def environment(home: Path) -> dict[str, str]:
    """Ours, with `home` in the place of the user's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KERNELWRIGHT_")}
    return kept | {"KERNELWRIGHT_HOME": str(home), "KERNELWRIGHT_THREADS": str(THREADS), "COLUMNS": "200"}


def kernelwright(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`kernelwright WORDS` to its end, in `home` as the working folder."""
    command = [sys.executable, "-m", "kernelwright", *words]
    return subprocess.run(
        command, env=environment(home), cwd=home, capture_output=True, text=True, check=False, timeout=280
    )


def started(home: Path, *words: str) -> subprocess.Popen[str]:
    """The same, still running; its progress can be read line by line from stderr."""
    command = [sys.executable, "-m", "kernelwright", *words]
    return subprocess.Popen(
        command, env=environment(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def smaller(example: str, folder: Path, sizes: dict[str, str]) -> Path:
    """A copy of an example in `folder` with `sizes` put in the place of its own (old text to new)."""
    text = (ROOT / "examples" / f"{example}.py").read_text()
    for old, new in sizes.items():
        assert len(re.findall(re.escape(old), text)) == 1, f"{example}.py no longer says {old}"
        text = text.replace(old, new)
    path = folder / f"{example}.py"
    path.write_text(text)
    return path
