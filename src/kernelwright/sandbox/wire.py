"""The frames between the parent, a zygote and its workers: a length, bytes, and file descriptors beside them.

What it does: sends and receives length-prefixed frames with SCM_RIGHTS over a Unix stream socket, with deadlines, and never
trusts what the other side sends. Payloads are msgpack (msgspec), never pickles. Used by both sides of every channel.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelwright.sandbox.limits import Limits

MAGIC = b"KWF1"
HEADER = struct.Struct("!4sI")
MAX_FRAME = 64 << 20
MAX_FDS = 250  # the kernel's SCM_MAX_FD is 253
CHUNK = 1 << 18


class ChannelClosedError(Exception):
    """The other side closed its end."""


class ChannelGarbledError(Exception):
    """The other side sent something that is not a frame."""


class ChannelTimeoutError(Exception):
    """The other side did not take the bytes before the deadline."""


class Request(msgspec.Struct, frozen=True):
    """Parent to worker: call the handler `name`."""

    name: str
    payload: msgspec.Raw


class Response(msgspec.Struct, frozen=True):
    """Worker to parent. `error` is None for an answer; "memory", "exception" or "request" otherwise."""

    payload: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: str | None = None
    kind: str = ""
    message: str = ""
    traceback: str = ""


class Spawn(msgspec.Struct, frozen=True):
    """Parent to zygote: fork a worker that serves the module `handlers`. Beside it: its socket and its output pipe."""

    number: int
    handlers: str
    limits: Limits
    threads: int


class Spawned(msgspec.Struct, frozen=True, tag="spawned"):
    """Zygote to parent. Beside it: a pidfd of the worker."""

    number: int


class Exited(msgspec.Struct, frozen=True, tag="exited"):
    """Zygote to parent: a worker has ended and all that it left behind is dead. `status` as from wait()."""

    number: int
    status: int
    cpu_seconds: float
    max_rss_bytes: int
    swept: int


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Zygote to parent, once: it is ready, or `problem` says why not."""

    uid: int
    threads: int
    seconds: float
    problem: str = ""


ZygoteMessage = Hello | Spawned | Exited


@dataclass(frozen=True)
class Frame:
    payload: bytes
    fds: tuple[int, ...]


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors that came from elsewhere; a bad one is no error."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


class Channel:
    """One end of a connection. The parent's end never blocks without a deadline; the worker's end waits for ever."""

    def __init__(self, sock: socket.socket, max_frame: int = MAX_FRAME) -> None:
        self.sock = sock
        self.sock.setblocking(False)
        self.max_frame = max_frame
        self._buffer = bytearray()
        self._fds: list[int] = []

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, payload: bytes, fds: Sequence[int] = (), deadline: float | None = None) -> None:
        """Send one frame. Raises ChannelTimeoutError, ChannelClosedError, or ValueError for a frame that the limits forbid."""
        if len(payload) > self.max_frame or len(fds) > MAX_FDS:
            raise ValueError(f"a frame carries at most {self.max_frame} bytes and {MAX_FDS} descriptors")
        view = memoryview(HEADER.pack(MAGIC, len(payload)) + payload)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        while view:
            try:
                sent = self.sock.sendmsg([view], ancillary)
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
                continue
            except (BrokenPipeError, ConnectionResetError) as error:
                raise ChannelClosedError from error
            view, ancillary = view[sent:], []

    def receive(self, deadline: float | None = None) -> Frame:
        """Wait for one frame. Raises ChannelTimeoutError, ChannelClosedError or ChannelGarbledError."""
        while (frame := self.take()) is None:
            if not self.fill():
                self._wait(select.POLLIN, deadline)
        return frame

    def fill(self) -> bool:
        """Read what is there now; False if there was nothing. Raises ChannelClosedError at the end of the stream."""
        try:
            data, ancillary, flags, _ = self.sock.recvmsg(CHUNK, socket.CMSG_SPACE(MAX_FDS * 4), socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return False
        except ConnectionResetError as error:
            raise ChannelClosedError from error
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(content[: len(content) - len(content) % received.itemsize])
                self._fds.extend(received)
        if len(self._fds) > MAX_FDS or flags & socket.MSG_CTRUNC:
            raise ChannelGarbledError("sent too many descriptors")
        if not data:
            raise ChannelClosedError
        self._buffer += data
        return True

    def take(self) -> Frame | None:
        """The next complete frame that was read, if there is one. Raises ChannelGarbledError."""
        if self._buffer[: len(MAGIC)] != MAGIC[: len(self._buffer)]:
            raise ChannelGarbledError("wrote bytes that are not a frame")
        if len(self._buffer) < HEADER.size:
            return None
        _, length = HEADER.unpack_from(self._buffer)
        if length > self.max_frame:
            raise ChannelGarbledError(f"announced a frame of {length} bytes (at most {self.max_frame})")
        end = HEADER.size + length
        if len(self._buffer) < end:
            return None
        payload, fds = bytes(self._buffer[HEADER.size : end]), tuple(self._fds)
        del self._buffer[:end]
        self._fds.clear()
        return Frame(payload, fds)

    def close(self) -> None:
        close_all(self._fds)
        self._fds.clear()
        self.sock.close()

    def _wait(self, event: int, deadline: float | None) -> None:
        poller = select.poll()
        poller.register(self.sock, event)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not poller.poll(None if left is None else left * 1000):
            raise ChannelTimeoutError
