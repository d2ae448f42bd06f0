"""The parent's end of one forked worker: calls with a time limit, and how it ended.

What it does: sends a request, waits on the answer, the process and the clock at once, watches its memory, and turns every
other end into one `WorkerFailed`. What it does not do: start processes (zygote) or understand the requests (lab's handlers).
One worker serves one call at a time; it belongs to the thread that uses it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from kernelwright.sandbox.failures import Died, Garbled, HandlerRaised, OutOfMemory, TimedOut, WorkerFailed
from kernelwright.sandbox.limits import Limits, Usage
from kernelwright.sandbox.wire import (
    Channel,
    ChannelClosedError,
    ChannelGarbledError,
    ChannelTimeoutError,
    Exited,
    Frame,
    Request,
    Response,
    close_all,
)

T = TypeVar("T")
WATCH_SECONDS = 0.05  # how often memory is looked at during a call
GRACE_SECONDS = 2.0  # between the end of a channel and the end of its process
OUTPUT_BYTES = 64 << 10
DRAIN_BYTES = 1 << 20  # at most this much output is taken at one look, so that a flood can't hold up the clock
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Reply:
    """A handler's answer. `fds` belong to the caller."""

    payload: bytes
    fds: tuple[int, ...]
    seconds: float  # wall time of the call, seen from the parent: transport included, not a measurement of the candidate
    output: str  # tail of stdout and stderr so far

    def decode(self, kind: type[T]) -> T:
        """The answer as `kind`. Raises msgspec.ValidationError where it does not fit: what a worker says is not trusted."""
        return msgspec.msgpack.decode(self.payload, type=kind)

    def close(self) -> None:
        close_all(self.fds)


class Worker:
    """A forked process. Made by `Zygote.worker`; ended by `close`, which leaves nothing of it behind."""

    def __init__(
        self, wait_exit: Callable[[], Exited | None], channel: Channel, pidfd: int, output_fd: int, limits: Limits
    ) -> None:
        self._wait_exit = wait_exit
        self._channel = channel
        self._pidfd = pidfd
        self._output_fd = output_fd
        self._limits = limits
        self._tail = bytearray()
        self._end: WorkerFailed | None = None
        self._usage: Usage | None = None
        self.pid = _pid_of(pidfd)
        self._base_rss = _resident_bytes(self.pid)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """False once it was seen to have ended."""
        return self._end is None and not _readable(self._pidfd)

    @property
    def output(self) -> str:
        """The last 64 KiB of what it printed."""
        self._drain()
        return self._tail.decode(errors="replace")

    def call(self, name: str, payload: object = None, fds: Sequence[int] = (), timeout: float = 30.0) -> Reply:
        """Call handler `name` with a msgspec-able payload. `fds` stay the caller's. Raises WorkerFailed."""
        if self._end is not None:
            raise self._end
        raw = msgspec.Raw(msgspec.msgpack.encode(payload))
        return self._exchange(msgspec.msgpack.encode(Request(name, raw)), fds, timeout)

    def wait_ready(self, timeout: float) -> None:
        """Wait for the first frame: the handlers are loaded. Raises WorkerFailed (HandlerRaised: the module is broken)."""
        self._exchange(None, (), timeout)

    def kill(self) -> None:
        """End it at once, with everything it started. Calls after this raise Died."""
        if self._end is None:
            self._fail(Died(None, signal.SIGKILL))

    def close(self) -> None:
        """End it and free its descriptors. May be called twice."""
        self.kill()

    def usage(self) -> Usage:
        """What it used: exact after its end, from /proc before."""
        return self._usage if self._usage is not None else _usage_now(self.pid)

    def _exchange(self, request: bytes | None, fds: Sequence[int], timeout: float) -> Reply:
        start = time.monotonic()
        deadline = start + timeout
        try:
            if request is not None:
                self._channel.send(request, fds, deadline)
            frame = self._wait(deadline)
        except ChannelTimeoutError:
            raise self._fail(TimedOut(timeout, "wall")) from None
        except ChannelGarbledError as error:
            raise self._fail(Garbled(str(error))) from None
        except ChannelClosedError:
            raise self._fail(self._closed()) from None
        try:
            response = msgspec.msgpack.decode(frame.payload, type=Response)
        except msgspec.MsgspecError:
            close_all(frame.fds)
            raise self._fail(Garbled("wrote a frame that is not an answer")) from None
        if response.error is None:
            return Reply(bytes(response.payload), frame.fds, time.monotonic() - start, self.output)
        close_all(frame.fds)
        if response.error == "memory":
            raise OutOfMemory(self._limits.memory_bytes, self.output, self.usage(), alive=True)
        raise HandlerRaised(response.kind, response.message, response.traceback, self.output)

    def _wait(self, deadline: float) -> Frame:
        """Wait for a frame, the process's end, its memory limit or the deadline, whichever is first."""
        poller = select.poll()
        for fd in (self._channel.fileno(), self._pidfd, self._output_fd):
            poller.register(fd, select.POLLIN)
        next_watch = time.monotonic() + WATCH_SECONDS
        while True:
            now = time.monotonic()
            if now >= deadline:
                raise ChannelTimeoutError
            events = dict(poller.poll(max(1.0, min(deadline - now, WATCH_SECONDS) * 1000)))
            if self._output_fd in events:
                self._drain()
                if events[self._output_fd] & ~select.POLLIN:
                    poller.unregister(self._output_fd)  # every writer is gone: it would be ready for ever
            if self._channel.fileno() in events and self._channel.fill() and (frame := self._channel.take()) is not None:
                return frame
            if self._pidfd in events and self._channel.fileno() not in events:
                raise ChannelClosedError
            if time.monotonic() >= next_watch:
                self._watch_memory()
                next_watch = time.monotonic() + WATCH_SECONDS

    def _watch_memory(self) -> None:
        limit = self._limits.memory_bytes
        if limit is not None and _resident_bytes(self.pid) - self._base_rss > limit:
            raise self._fail(OutOfMemory(limit))

    def _closed(self) -> WorkerFailed:
        """Why its channel ended: it died, or closed it while living on."""
        if _readable(self._pidfd, GRACE_SECONDS):
            return Died(None, None)  # `_fail` asks the zygote how
        return Garbled("closed its channel without answering")

    def _fail(self, failure: WorkerFailed) -> WorkerFailed:
        """Kill and reap it, complete the failure with how it ended, its output and its usage, and remember it."""
        died_alone = isinstance(failure, Died) and failure.signal is None
        if not died_alone:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        exited = self._wait_exit()
        self._usage = Usage(0.0, 0) if exited is None else Usage(exited.cpu_seconds, exited.max_rss_bytes)
        if died_alone and exited is not None:
            failure = self._named(exited.status)
        failure.output, failure.usage = self.output, self._usage
        self._end = failure
        self._channel.close()
        os.close(self._pidfd)
        os.close(self._output_fd)
        return failure

    def _named(self, status: int) -> WorkerFailed:
        code = os.waitstatus_to_exitcode(status)
        limit = self._limits.cpu_seconds
        if code in (-signal.SIGXCPU, -signal.SIGKILL) and limit is not None and self.usage().cpu_seconds >= limit - 0.5:
            return TimedOut(limit, "CPU")
        return Died(None, -code) if code < 0 else Died(code, None)

    def _drain(self) -> None:
        """Take what it printed, keep the tail. Never waits: a grandchild may hold the pipe open for ever."""
        if self._end is not None:
            return
        taken = 0
        while taken < DRAIN_BYTES:
            try:
                data = os.read(self._output_fd, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                break
            taken += len(data)
            self._tail += data
            del self._tail[:-OUTPUT_BYTES]


def _readable(fd: int, seconds: float = 0.0) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _pid_of(pidfd: int) -> int:
    """The pid in our own namespace, read from the pidfd itself: the zygote's number means nothing here."""
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pid:"):
                return int(line.split()[1])
    raise OSError("the kernel does not tell a pidfd's pid")


def _resident_bytes(pid: int) -> int:
    """Resident memory, 0 once it has ended. With pid -1 or 0 (already reaped) also 0."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _usage_now(pid: int) -> Usage:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields: list[Any] = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            peak = next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return Usage(0.0, 0)
    return Usage((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak)
