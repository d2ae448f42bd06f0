"""One ordinary subprocess with limits: compilers, tools.

What it does: runs a command in its own session with wall clock, CPU and memory limits and bounded output, and kills
everything that it started when it ends or its time is up. What it does not do: isolate (zygote does); the commands are the
user's own compilers. Called by targets; the one place for subprocesses besides zygote and isolation.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OUTPUT_BYTES = 4 << 20
READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Completed:
    """How a command ended. `returncode` is negative for a signal; None where it was killed because its time was up."""

    returncode: int | None
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool

    @property
    def ok(self) -> bool:
        return self.returncode == 0


def run(
    command: Sequence[str | Path],
    *,
    timeout: float,
    cpu_seconds: int | None = None,
    memory_bytes: int | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Completed:
    """Run `command` to its end or to `timeout`. `env` None inherits ours. Raises OSError where it can't be started.

    Output beyond 4 MiB a stream is dropped (its beginning is kept: the first error counts).
    """
    start = time.monotonic()
    process = subprocess.Popen(
        [os.fspath(part) for part in command], cwd=cwd, env=None if env is None else dict(env), start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _limit(process.pid, cpu_seconds, memory_bytes)
        stdout, stderr, in_time = _converse(process, stdin, start + timeout)
        returncode = process.wait() if in_time else None
    finally:
        _kill_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
    seconds = time.monotonic() - start
    return Completed(returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace"), seconds, not in_time)


def _limit(pid: int, cpu_seconds: int | None, memory_bytes: int | None) -> None:
    """Limits of a process that has just started: code between fork and exec (preexec_fn) may deadlock a threaded parent."""
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        if cpu_seconds is not None:
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        if memory_bytes is not None:
            resource.prlimit(pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _converse(process: subprocess.Popen[bytes], stdin: bytes, deadline: float) -> tuple[bytes, bytes, bool]:
    """Feed and drain it until its process has ended (not until its pipes have: a child may hold them). False: out of time."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    pidfd = os.pidfd_open(process.pid)
    outputs = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    feed, left = process.stdin.fileno(), memoryview(stdin)
    for fd in (*outputs, feed):
        os.set_blocking(fd, False)
    poller = select.poll()
    for fd in (pidfd, *outputs):
        poller.register(fd, select.POLLIN)
    if left:
        poller.register(feed, select.POLLOUT)
    else:
        process.stdin.close()
    try:
        ended = False
        while not ended:
            wait = deadline - time.monotonic()
            if wait <= 0:
                break
            for fd, _ in poller.poll(wait * 1000):
                if fd == pidfd:
                    ended = True
                elif fd in outputs:
                    if not _drain(fd, outputs[fd]):
                        poller.unregister(fd)
                else:
                    left = _feed(fd, left)
                    if not left:
                        poller.unregister(fd)
                        process.stdin.close()
        for fd, output in outputs.items():
            while _drain(fd, output, at_end=True):
                continue
    finally:
        os.close(pidfd)
    return bytes(outputs[process.stdout.fileno()]), bytes(outputs[process.stderr.fileno()]), ended


def _drain(fd: int, output: bytearray, at_end: bool = False) -> bool:
    """Take one piece; False at the end of the stream (or, `at_end`, when nothing more is there)."""
    try:
        data = os.read(fd, READ_BYTES)
    except BlockingIOError:
        return not at_end
    output += data[: OUTPUT_BYTES - len(output)]
    return bool(data) and not (at_end and len(output) >= OUTPUT_BYTES)


def _feed(fd: int, left: memoryview) -> memoryview:
    try:
        return left[os.write(fd, left) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[:0]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill its session's first group: a compiler driver's children stay in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
