"""A zygote: a sandboxed process with torch already loaded, which forks a worker in milliseconds.

What it does: starts the process under the given isolation, asks it for workers, and starts it again if it died. What it does
not do: talk to the workers (worker) or decide who may run (lab). Made by lab and optimize, one a role (reference,
candidate, comparator), because processes of one zygote share its namespaces.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from kernelwright.sandbox.failures import SandboxError
from kernelwright.sandbox.isolation import Isolation, Mounts, Strength
from kernelwright.sandbox.layout import Interpreter, Layout, lay_out
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.wire import (
    Channel,
    ChannelClosedError,
    ChannelGarbledError,
    ChannelTimeoutError,
    Exited,
    Frame,
    Hello,
    Spawn,
    Spawned,
    ZygoteMessage,
    close_all,
)
from kernelwright.sandbox.worker import Worker
from kernelwright.sandbox.zygote_main import Configuration

START_SECONDS = 120.0  # torch takes 2 s to import on an idle machine; this bound only ends a start that hangs
FORK_SECONDS = 30.0
EXIT_SECONDS = 15.0
GOODBYE_SECONDS = 5.0
MAX_CONTROL_FRAME = 1 << 16
UIDS = range(61184, 65280)  # one user a zygote, from the range that systemd keeps for passing users (DynamicUser=)
STDERR_CHARACTERS = 2000


class Zygote:
    """Owns the sandboxed process. Thread-safe; each Worker belongs to the thread that uses it."""

    def __init__(
        self,
        isolation: Isolation,
        mounts: Mounts | None = None,
        limits: Limits | None = None,
        *,
        preload: Sequence[str] = ("torch",),
        threads: int = 1,
        environment: Mapping[str, str] | None = None,
        search: Sequence[Path] = (),
        python: str | None = None,
    ) -> None:
        """`preload` is imported before any fork (torch, handler modules); `search` are further folders of modules."""
        self.isolation = isolation
        self.mounts = mounts or Mounts()
        self.limits = limits or Limits()
        self.interpreter = Interpreter(
            Path(python or sys.executable), tuple(preload), threads, dict(environment or {}), tuple(search)
        )
        self.restarts = 0
        self.hello: Hello | None = None
        self._lock = threading.RLock()
        self._running: _Running | None = None
        self._numbers = 0

    def __enter__(self) -> Zygote:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        """Start the process if it does not run. Raises SandboxError with what it said."""
        with self._lock:
            if self._running is not None and not self._running.ended:
                return
            if self._running is not None:
                self._running.close()
                self._running = None
                self.restarts += 1
            running = _Running(self.isolation, self.mounts, self.interpreter)
            try:
                self.hello = running.greet()
            except BaseException:
                running.close()
                raise
            self._running = running

    def worker(self, handlers: str, limits: Limits | None = None, timeout: float = 60.0) -> Worker:
        """Fork a worker that serves the module `handlers` (see handlers.py). A dead zygote is started again first.

        Raises SandboxError where no worker can be had, WorkerFailed where the module does not load.
        """
        chosen = limits or self.limits
        with self._lock:
            for _ in range(2):
                self.start()
                assert self._running is not None
                self._numbers += 1
                try:
                    worker = self._running.fork(self._numbers, handlers, chosen, self.interpreter.threads)
                except (ChannelClosedError, ChannelGarbledError, ChannelTimeoutError):  # killed since it was last seen
                    self._running.close()
                    continue
                break
            else:
                raise SandboxError("the sandbox's process dies as soon as it is started")
        try:
            worker.wait_ready(timeout)
        except BaseException:
            worker.close()
            raise
        return worker

    def close(self) -> None:
        """End the sandbox with everything in it."""
        with self._lock:
            if self._running is not None:
                self._running.close()
                self._running = None


class _Running:
    """One life of a zygote process."""

    def __init__(self, isolation: Isolation, mounts: Mounts, interpreter: Interpreter) -> None:
        bubblewrap = isolation.strength is Strength.BUBBLEWRAP
        self._scratch = None if bubblewrap else Path(tempfile.mkdtemp(prefix="kernelwright-"))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._lock = threading.Lock()
        self._exits: dict[int, Exited] = {}
        self._pidfds: tuple[int, ...] = ()
        scratch = self._scratch or Path("/tmp")
        layout = lay_out(isolation, mounts, interpreter, scratch)
        uid = random.SystemRandom().choice(UIDS) if layout.drops_root else None
        if uid is not None:
            for folder in (*layout.writable, *([self._scratch] if self._scratch else [])):
                if folder.is_dir():
                    os.chown(folder, uid, uid)
        ours, theirs = socket.socketpair()
        self._control = Channel(ours, MAX_CONTROL_FRAME)
        configuration = Configuration(
            control_fd=theirs.fileno(), preload=interpreter.preload,
            confine=isolation.strength is not Strength.NONE, landlock=isolation.strength is Strength.KERNEL_LIMITS, become=uid,
            read_only=tuple(map(str, layout.read_only)), writable=tuple(map(str, layout.writable)), scratch=str(scratch),
            other_processes=_other_processes(uid, bubblewrap), count_processes=uid is None and os.geteuid() == 0,
        )  # fmt: skip
        with theirs:
            self.process = _start((*layout.command, msgspec.json.encode(configuration).decode()), layout, theirs, self._errors)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def greet(self) -> Hello:
        """Wait until torch is loaded. Raises SandboxError."""
        try:
            frame = self._control.receive(time.monotonic() + START_SECONDS)
        except (ChannelClosedError, ChannelGarbledError, ChannelTimeoutError) as error:
            raise SandboxError(f"the sandbox did not start: {self._said() or type(error).__name__}") from None
        self._pidfds = frame.fds
        hello = msgspec.msgpack.decode(frame.payload, type=ZygoteMessage)
        if not isinstance(hello, Hello) or hello.problem:
            raise SandboxError(f"the sandbox did not start: {getattr(hello, 'problem', '') or self._said()}")
        return hello

    def fork(self, number: int, handlers: str, limits: Limits, threads: int) -> Worker:
        """Ask for a worker and wait for its pidfd. Raises the channel's errors where the zygote is gone."""
        ours, theirs = socket.socketpair()
        output, written = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(output, False)
        deadline = time.monotonic() + FORK_SECONDS
        request = msgspec.msgpack.encode(Spawn(number, handlers, limits, threads))
        try:
            with self._lock, theirs:
                self._control.send(request, (theirs.fileno(), written), deadline)
                while not self._is_spawned(frame := self._frame(deadline), number):
                    continue
        except BaseException:
            os.close(output)
            ours.close()
            raise
        finally:
            os.close(written)
        return Worker(lambda: self.wait_exit(number), Channel(ours), frame.fds[0], output, limits)

    def wait_exit(self, number: int) -> Exited | None:
        """How worker `number` ended; None where the zygote died or does not answer, which then is killed."""
        deadline = time.monotonic() + EXIT_SECONDS
        with self._lock:
            try:
                while number not in self._exits:
                    self._is_spawned(self._frame(deadline), -1)
                return self._exits.pop(number)
            except (ChannelClosedError, ChannelGarbledError, ChannelTimeoutError):
                pass
        self.kill()
        return None

    def close(self) -> None:
        """End everything: the zygote ends when its channel does, and its workers with it."""
        self._control.close()
        try:
            self.process.wait(GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        close_all(self._pidfds)
        self._pidfds = ()
        self._errors.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def kill(self) -> None:
        """End it by force: the zygote itself, with which its namespace goes, and what started it (bubblewrap)."""
        for pidfd in self._pidfds:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def _is_spawned(self, frame: Frame, number: int) -> bool:
        """True for the wanted answer to a fork; remembers the end of workers that is told in between."""
        message = msgspec.msgpack.decode(frame.payload, type=ZygoteMessage)
        if isinstance(message, Exited):
            self._exits[message.number] = message
        return isinstance(message, Spawned) and message.number == number

    def _frame(self, deadline: float) -> Frame:
        return self._control.receive(deadline)

    def _said(self) -> str:
        """The end of what the process wrote to stderr: bubblewrap's complaint or Python's."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()[-STDERR_CHARACTERS:]


def _start(command: tuple[str, ...], layout: Layout, control: socket.socket, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the process from a thread of its own: "die with the parent" means the thread that forked, which must live on."""
    started: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()

    def run() -> None:
        try:
            process = subprocess.Popen(
                command, env=dict(layout.environment), pass_fds=(control.fileno(),), cwd="/",
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            started.put(error)
            return
        started.put(process)
        process.wait()

    threading.Thread(target=run, name="kernelwright-zygote", daemon=True).start()
    outcome = started.get()
    if isinstance(outcome, OSError):
        raise SandboxError(f"the sandbox did not start: {outcome}")
    return outcome


def _other_processes(uid: int | None, bubblewrap: bool) -> int:
    """Threads that RLIMIT_NPROC counts besides the sandbox's: none of a fresh user's, nor outside its namespace."""
    own = os.getuid() if uid is None else uid
    if bubblewrap and uid is None and _kernel() >= (5, 14):  # counted by namespace since then
        return 0
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == own:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return count


def _kernel() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(itertools.takewhile(str.isdigit, minor)) or 0)
