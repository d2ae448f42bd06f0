"""The zygote's own side: the process in the sandbox that imports torch once and forks workers.

What it does: confines itself, imports, then forks on request, reaps, and after each worker kills whatever that worker left
behind. It stays single-threaded, so that its forks are whole. It ends when its control channel does.
What it does not do: run anything of a candidate's itself. Started by `zygote.Zygote`, configuration as JSON in argv[1].
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

import msgspec

from kernelwright.sandbox import lockdown, worker_main
from kernelwright.sandbox.wire import Channel, ChannelClosedError, ChannelGarbledError, Exited, Hello, Spawn, Spawned, close_all

SWEEP_SECONDS = 3.0
SWEEP_PAUSE = 0.002


class Configuration(msgspec.Struct, frozen=True):
    """`become`: leave root for this uid. `landlock`: confine files (no namespaces here). `confine`: restrict the workers."""

    control_fd: int
    preload: tuple[str, ...]
    confine: bool
    landlock: bool
    become: int | None
    read_only: tuple[str, ...]
    writable: tuple[str, ...]
    other_processes: int


class UncleanError(Exception):
    """Processes that a worker left behind outran the sweep: the whole sandbox has to go."""


def main() -> None:
    """Run until the control channel ends. Exits without Python's own cleanup."""
    configuration = msgspec.json.decode(sys.argv[1].encode(), type=Configuration)
    control = Channel(socket.socket(fileno=configuration.control_fd))
    start = time.monotonic()
    problem = _prepare(configuration)
    hello = Hello(os.getuid(), len(os.listdir("/proc/self/task")), time.monotonic() - start, problem)
    control.send(msgspec.msgpack.encode(hello))
    if not problem:
        with contextlib.suppress(ChannelClosedError, ChannelGarbledError, UncleanError):
            _Forker(control, configuration).serve()
    os._exit(0)


def _prepare(configuration: Configuration) -> str:
    """Confine this process, then import. Returns what went wrong, or the empty string."""
    try:
        lockdown.adopt_orphans()
        lockdown.forbid_new_privileges()
        if configuration.become is not None:
            lockdown.become(configuration.become)
        elif configuration.landlock and os.geteuid() == 0:
            lockdown.drop_capabilities()
        if configuration.landlock:
            lockdown.confine_files(map(Path, configuration.read_only), map(Path, configuration.writable))
        lockdown.close_to_debuggers()
        lockdown.seccomp_problem()  # loads the library now, once for all workers
        for folder in ("HOME", "TORCHINDUCTOR_CACHE_DIR"):
            Path(os.environ[folder]).mkdir(parents=True, exist_ok=True)
        for module in configuration.preload:
            importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - an import may raise anything; the parent is told
        return f"{type(error).__name__}: {error}"
    return ""


class _Forker:
    """Serves the control channel."""

    def __init__(self, control: Channel, configuration: Configuration) -> None:
        self.control = control
        self.configuration = configuration
        self.workers: dict[int, int] = {}  # pid -> number

    def serve(self) -> None:
        """Fork, reap and sweep until the parent goes away. Raises ChannelClosedError then."""
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        poller.register(wake, select.POLLIN)
        while True:
            ready = dict(poller.poll())
            if wake in ready:
                os.read(wake, 4096)
                self._reap()
            if self.control.fileno() in ready and self.control.fill():
                while (frame := self.control.take()) is not None:
                    self._fork(msgspec.msgpack.decode(frame.payload, type=Spawn), frame.fds)

    def _fork(self, spawn: Spawn, fds: tuple[int, ...]) -> None:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                setting = self.configuration
                own_network, others = not setting.landlock, setting.other_processes
                sock = worker_main.enter(spawn, fds, confine=setting.confine, unix_sockets=own_network, others=others)
                worker_main.serve(sock, spawn.handlers, spawn.threads)
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(code)  # never back into the zygote's loop
        self.workers[pid] = spawn.number
        close_all(fds)
        pidfd = os.pidfd_open(pid)
        self.control.send(msgspec.msgpack.encode(Spawned(spawn.number)), (pidfd,))
        os.close(pidfd)

    def _reap(self) -> None:
        """Collect what ended; for each worker among it, kill what it left and tell the parent."""
        while (ended := _wait_any()) is not None:
            pid, status, usage = ended
            number = self.workers.pop(pid, None)
            if number is not None:
                swept = self._sweep()
                cpu = usage.ru_utime + usage.ru_stime
                self.control.send(msgspec.msgpack.encode(Exited(number, status, cpu, usage.ru_maxrss * 1024, swept)))

    def _sweep(self) -> int:
        """Kill our children that are no workers (orphans that we adopted) until none is left. Raises UncleanError."""
        swept = 0
        deadline = time.monotonic() + SWEEP_SECONDS
        while orphans := _children() - self.workers.keys():
            if time.monotonic() > deadline:
                raise UncleanError
            for pid in orphans:
                try:
                    os.kill(pid, signal.SIGKILL)
                    ended, _ = os.waitpid(pid, 0 if _is_dead(pid) else os.WNOHANG)
                    swept += ended == pid
                except (ProcessLookupError, ChildProcessError):
                    continue
            time.sleep(SWEEP_PAUSE)
        return swept


def _wait_any() -> tuple[int, int, resource.struct_rusage] | None:
    try:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status, usage) if pid else None


def _children() -> set[int]:
    """Our children, dead or alive, from /proc (its `children` file is not in every kernel)."""
    me = os.getpid()
    return {int(name) for name in os.listdir("/proc") if name.isdigit() and _stat(int(name))[1] == me}


def _is_dead(pid: int) -> bool:
    return _stat(pid)[0] == "Z"


def _stat(pid: int) -> tuple[str, int]:
    """State letter and parent of a process; ("", 0) where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return "", 0
    return state, int(parent)
