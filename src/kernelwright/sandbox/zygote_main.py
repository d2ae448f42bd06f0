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
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Collection
from pathlib import Path

import msgspec

from kernelwright.sandbox import lockdown, worker_main
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.wire import Channel, ChannelClosedError, ChannelGarbledError, Exited, Hello, Spawn, Spawned, close_all

SWEEP_SECONDS = 10.0  # within the parent's patience (zygote.EXIT_SECONDS)
SWEEP_PAUSE = 0.002
WATCH_MILLISECONDS = 100
MANY = 100


class Configuration(msgspec.Struct, frozen=True):
    """`become`: leave root for this uid. `landlock`: confine files (no namespaces here). `confine`: restrict the workers."""

    control_fd: int
    preload: tuple[str, ...]
    confine: bool
    landlock: bool
    become: int | None
    read_only: tuple[str, ...]
    writable: tuple[str, ...]
    scratch: str  # the sandbox's own folder for temporary files
    other_processes: int
    count_processes: bool  # RLIMIT_NPROC does not hold here: watch their number


class UncleanError(Exception):
    """Processes that a worker left behind outran the sweep: the whole sandbox has to go."""


def main() -> None:
    """Run until the control channel ends. Exits without Python's own cleanup."""
    configuration = msgspec.json.decode(sys.argv[1].encode(), type=Configuration)
    control = Channel(socket.socket(fileno=configuration.control_fd))
    start = time.monotonic()
    problem = _prepare(configuration)
    hello = Hello(os.getuid(), len(os.listdir("/proc/self/task")), time.monotonic() - start, problem)
    control.send(msgspec.msgpack.encode(hello), (os.pidfd_open(os.getpid()),))
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
            lockdown.die_with_parent()  # a change of user has cleared it
        elif configuration.landlock and os.geteuid() == 0:
            lockdown.drop_capabilities()
        if configuration.landlock:
            lockdown.confine_files(map(Path, configuration.read_only), map(Path, configuration.writable))
        lockdown.close_to_debuggers()
        lockdown.seccomp_problem()  # loads the library now, once for all workers
        _make_folders()
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
        self.limits: dict[int, Limits] = {}

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
            watching = self.configuration.count_processes and self.workers
            ready = dict(poller.poll(WATCH_MILLISECONDS if watching else None))
            if watching:
                self._watch()
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
        self.workers[pid], self.limits[pid] = spawn.number, spawn.limits
        close_all(fds)
        pidfd = os.pidfd_open(pid)
        self.control.send(msgspec.msgpack.encode(Spawned(spawn.number)), (pidfd,))
        os.close(pidfd)

    def _reap(self) -> None:
        """Collect what ended; for each worker among it, kill what it left and tell the parent."""
        while (ended := _wait_any()) is not None:
            pid, status, usage = ended
            number = self.workers.pop(pid, None)
            self.limits.pop(pid, None)
            if number is not None:
                _kill_group(pid)
                swept = self._sweep()
                if not self.workers:
                    self._wipe()
                cpu = usage.ru_utime + usage.ru_stime
                self.control.send(msgspec.msgpack.encode(Exited(number, status, cpu, usage.ru_maxrss * 1024, swept)))

    def _sweep(self) -> int:
        """Kill all our descendants but the living workers and theirs, until none is left. Raises UncleanError."""
        swept = 0
        deadline = time.monotonic() + SWEEP_SECONDS
        while left := _below(os.getpid(), self.workers):
            if time.monotonic() > deadline:
                raise UncleanError
            if len(left) > MANY and os.getpid() == 1:
                os.kill(-1, signal.SIGKILL)  # in one stroke, other workers too: a bomb grows faster than a list of it is read
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(SWEEP_PAUSE)
            for pid in left:  # by number: a worker that ends meanwhile is for `_reap`
                with contextlib.suppress(ChildProcessError):  # not our child yet
                    swept += os.waitpid(pid, os.WNOHANG)[0] == pid
        return swept

    def _wipe(self) -> None:
        """Empty the sandbox's scratch folders, never a mount of the host: the next worker finds nothing of the last one's."""
        mounts = [Path(name) for name in (*self.configuration.read_only, *self.configuration.writable)]
        folders = [Path(self.configuration.scratch)] + ([] if self.configuration.landlock else [Path("/dev/shm")])
        for folder in folders if self.configuration.confine else ():
            for path in folder.iterdir() if folder.is_dir() else ():
                if any(mount.is_relative_to(path) for mount in mounts) or os.path.ismount(path):
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        _make_folders()

    def _watch(self) -> None:
        """Kill workers that hold too many processes, where the kernel does not count them (root behind a user namespace)."""
        for pid, limits in list(self.limits.items()):
            if pid in self.workers and len(_below(pid, ())) > limits.processes:
                _kill_group(pid)


def _make_folders() -> None:
    for name in ("HOME", "TORCHINDUCTOR_CACHE_DIR"):
        Path(os.environ[name]).mkdir(parents=True, exist_ok=True)


def _kill_group(pid: int) -> None:
    """Kill a worker with all that stayed in its process group, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _wait_any() -> tuple[int, int, resource.struct_rusage] | None:
    try:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status, usage) if pid else None


def _below(root: int, spared: Collection[int]) -> list[int]:
    """The descendants of `root`, dead or alive, without those in `spared` and what is below them."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            children.setdefault(_parent(int(name)), []).append(int(name))
    found: list[int] = []
    stack = [root]
    while stack:
        below = [pid for pid in children.get(stack.pop(), ()) if pid not in spared]
        found += below
        stack += below
    return found


def _parent(pid: int) -> int:
    """The parent of a process; 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
