"""One subprocess with limits: output, time, memory, and what it leaves behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kernelwright.sandbox.process import OUTPUT_BYTES, run


def test_output_input_and_exit_code(tmp_path: Path) -> None:
    done = run(["sh", "-c", "cat; pwd >&2; echo $X; exit 3"], timeout=20, stdin=b"a" * 300_000, cwd=tmp_path, env={"X": "y"})
    assert done.returncode == 3
    assert not done.ok
    assert done.stdout == "a" * 300_000 + "y\n"
    assert done.stderr.strip() == str(tmp_path)
    assert not done.timed_out


def test_time_is_up_and_children_go_too(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    done = run(["sh", "-c", f"(sleep 1.5; touch {mark}) & sleep 100"], timeout=0.3)
    assert done.timed_out
    assert done.returncode is None
    time.sleep(1.6)
    assert not mark.exists()


def test_a_child_that_keeps_the_pipes_open_does_not_hold_us() -> None:
    done = run(["sh", "-c", "sleep 100 & echo done"], timeout=30)
    assert done.stdout == "done\n"
    assert done.seconds < 30


def test_output_is_bounded() -> None:
    done = run(["sh", "-c", f"head -c {3 * OUTPUT_BYTES} /dev/zero; echo end >&2"], timeout=30)
    assert done.ok
    assert len(done.stdout) == OUTPUT_BYTES
    assert done.stderr == "end\n"


def test_cpu_and_memory_limits() -> None:
    assert run(["sh", "-c", "while :; do :; done"], timeout=60, cpu_seconds=1).returncode in (-24, -9)
    greedy = "import time; time.sleep(0.1); bytearray(1 << 30)"
    assert run(["python3", "-S", "-c", greedy], timeout=60, memory_bytes=400 << 20).returncode == 1


def test_a_missing_command_is_an_oserror() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        run(["/no/such/program"], timeout=5)
    assert len(os.listdir("/proc/self/fd")) == before
