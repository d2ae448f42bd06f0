"""A worker's own side: what runs in the process that `zygote_main` forked.

What it does: takes away what the worker must not have, loads the handler module and answers requests until its channel ends.
What it does not do: know what the handlers do. A handler's ordinary exception is an answer; anything else ends the process.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping

import msgspec

from kernelwright.sandbox import lockdown
from kernelwright.sandbox.handlers import Answer, Handler
from kernelwright.sandbox.wire import Channel, ChannelClosedError, Request, Response, Spawn, close_all

MESSAGE_CHARACTERS = 4000
HIGHEST_FD = 1 << 20


def enter(spawn: Spawn, fds: tuple[int, ...], *, confine: bool, unix_sockets: bool, others: int) -> socket.socket:
    """Turn a fresh fork into a worker: its own descriptors only, its limits, no way to the zygote. Returns its socket."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    channel_fd, output_fd = fds
    null = os.open("/dev/null", os.O_RDONLY)
    for source, target in ((channel_fd, 3), (null, 0), (output_fd, 1), (output_fd, 2)):
        os.dup2(source, target, inheritable=target < 3)
    os.closerange(4, HIGHEST_FD)
    os.setpgid(0, 0)
    lockdown.die_with_parent()
    lockdown.forbid_new_privileges()
    lockdown.set_limits(spawn.limits, others)
    if confine:
        signals_confined = lockdown.confine_signals()
        if lockdown.seccomp_problem() is None:
            lockdown.refuse_calls(unix_sockets, spawn.limits.may_fork, signals_confined)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return socket.socket(fileno=3)


def serve(sock: socket.socket, module: str, threads: int) -> None:
    """Answer requests until the parent closes the channel. The first frame says that the handlers are there, or why not."""
    channel = Channel(sock)
    try:
        _set_threads(threads)
        table: Mapping[str, Handler] = importlib.import_module(module).handlers()
    except Exception as error:  # noqa: BLE001 - whatever a handler module does while it loads is told to the parent
        channel.send(msgspec.msgpack.encode(_failure(error)))
        return
    channel.send(msgspec.msgpack.encode(Response()))
    while True:
        try:
            frame = channel.receive()
        except ChannelClosedError:
            return
        response, fds = _answer(table, frame.payload, frame.fds)
        _flush()
        channel.send(response, fds)
        close_all(fds)
        close_all(frame.fds)


def _set_threads(threads: int) -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


def _answer(table: Mapping[str, Handler], payload: bytes, fds: tuple[int, ...]) -> tuple[bytes, tuple[int, ...]]:
    try:
        request = msgspec.msgpack.decode(payload, type=Request)
        handler = table[request.name]
        result = handler.function(msgspec.msgpack.decode(request.payload, type=handler.kind), fds)
        answer = result if isinstance(result, Answer) else Answer(result)
        return msgspec.msgpack.encode(Response(msgspec.Raw(msgspec.msgpack.encode(answer.payload)))), answer.fds
    except Exception as error:  # noqa: BLE001 - foreign code runs in here: whatever it raises is an answer
        return msgspec.msgpack.encode(_failure(error)), ()


def _failure(error: Exception) -> Response:
    message = _text(error)
    memory = isinstance(error, MemoryError) or "can't allocate memory" in message or "bad_alloc" in message
    trace = "".join(traceback.format_tb(error.__traceback__))[-MESSAGE_CHARACTERS:]
    return Response(error="memory" if memory else "exception", kind=type(error).__name__, message=message, traceback=trace)


def _text(error: Exception) -> str:
    try:
        return str(error)[:MESSAGE_CHARACTERS]
    except Exception:  # noqa: BLE001 - an exception of foreign code may not even print
        return "(its text can't be made)"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed by the candidate
            stream.flush()
