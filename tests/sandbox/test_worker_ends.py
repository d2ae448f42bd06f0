"""Every way in which a hostile worker can end: each is one typed failure, in time, with nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import HANDLERS

from kernelwright.sandbox.failures import Died, Garbled, HandlerRaised, OutOfMemory, TimedOut, WorkerFailed
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.worker import Worker
from kernelwright.sandbox.zygote import Zygote

SMALL = Limits(memory_bytes=256 << 20)


def run(zygote: Zygote, source: str, limits: Limits = SMALL, timeout: float = 20.0) -> object:
    with zygote.worker(HANDLERS, limits) as worker:
        return worker.call("run", source, timeout=timeout).decode(object)


def still_works(zygote: Zygote) -> None:
    assert run(zygote, "result = 6 * 7") == 42


def processes_with(mark: str) -> list[int]:
    """Host processes whose command line or name holds `mark` (a survivor would keep the name that it gave itself)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "comm").read_text()
            except OSError:
                continue
            if mark in text:
                found.append(int(entry.name))
    return found


NAME_SELF = "import ctypes; ctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\n"


def test_death_by_signal(zygote: Zygote) -> None:
    for source, number in (("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL),
                           ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
                           ("import os; os.abort()", signal.SIGABRT)):  # fmt: skip
        with pytest.raises(Died, match=signal.Signals(number).name) as failure:
            run(zygote, source)
        assert failure.value.signal == number
        assert failure.value.exit_code is None
    still_works(zygote)


@pytest.mark.parametrize(
    ("source", "code"),
    [("import os; os._exit(0)", 0), ("raise SystemExit", 0), ("import sys; sys.exit(3)", 3), ("raise KeyboardInterrupt", 1)],
)
def test_an_early_exit_is_a_death(zygote: Zygote, source: str, code: int) -> None:
    with pytest.raises(Died, match="ended by itself") as failure:
        run(zygote, source)
    assert failure.value.exit_code == code
    assert failure.value.signal is None


def test_an_answer_before_death_counts_and_the_next_call_does_not(zygote: Zygote) -> None:
    with zygote.worker(HANDLERS, SMALL) as worker:
        source = "import os, threading; threading.Timer(0.2, os._exit, (5,)).start(); result = 1"
        assert worker.call("run", source).decode(int) == 1
        time.sleep(0.6)
        assert not worker.alive
        with pytest.raises(Died) as failure:
            worker.call("run", "result = 2")
        assert failure.value.exit_code == 5
        with pytest.raises(Died):
            worker.call("run", "result = 3")


def test_wall_time(zygote: Zygote) -> None:
    start = time.monotonic()
    with pytest.raises(TimedOut) as failure:
        run(zygote, "while True: pass", timeout=0.5)
    assert failure.value.clock == "wall"
    assert failure.value.usage is not None
    assert failure.value.usage.cpu_seconds > 0
    with pytest.raises(TimedOut):
        run(zygote, "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(100)", timeout=0.3)
    assert time.monotonic() - start < 60
    still_works(zygote)


def test_cpu_time_of_all_threads(zygote: Zygote) -> None:
    source = """
import threading, signal, hashlib
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
def burn():
    while True: hashlib.sha256(bytes(1 << 20))
for _ in range(2): threading.Thread(target=burn).start()
burn()
"""
    with pytest.raises(TimedOut) as failure:
        run(zygote, source, Limits(memory_bytes=None, cpu_seconds=1), timeout=60)
    assert failure.value.clock == "CPU"


def test_memory_asked_for_at_once_fails_inside(zygote: Zygote) -> None:
    with zygote.worker(HANDLERS, SMALL) as worker:
        with pytest.raises(OutOfMemory) as failure:
            worker.call("run", "import torch; torch.ones(1 << 31)")
        assert failure.value.alive
        with pytest.raises(OutOfMemory):
            worker.call("run", "x = bytearray(4 << 30)")
        assert worker.call("run", "result = 1").decode(int) == 1


def test_memory_that_grows_is_stopped(zygote: Zygote) -> None:
    source = "import ctypes\nkeep = []\nwhile True: keep.append(bytearray(1 << 20))"
    with pytest.raises(OutOfMemory):
        run(zygote, source, timeout=60)
    hidden = """
import os, mmap
while True:
    fd = os.memfd_create("x")
    os.ftruncate(fd, 1 << 24)
    mmap.mmap(fd, 1 << 24).write(b"x" * (1 << 24))
    globals().setdefault("k", []).append(fd)
"""
    with pytest.raises(WorkerFailed):
        run(zygote, hidden, Limits(memory_bytes=256 << 20, open_files=64), timeout=60)
    still_works(zygote)


def test_garbage_on_the_channel(zygote: Zygote) -> None:
    for source in (
        "import os; os.write(3, b'HTTP/1.1 200 OK' * 100)",
        "import os, struct; os.write(3, struct.pack('!4sI', b'KWF1', 1 << 31))",
        "import os, struct; os.write(3, struct.pack('!4sI', b'KWF1', 4) + b'junk')",
        "import os, struct, time; os.write(3, struct.pack('!4sI', b'KWF1', 40) + b'half'); os.close(3); time.sleep(100)",
        "import os, time; os.close(3); time.sleep(100)",
    ):
        with pytest.raises(Garbled):
            run(zygote, source)
    still_works(zygote)


def test_a_closed_channel_and_an_exit_is_a_death(zygote: Zygote) -> None:
    with pytest.raises(Died) as failure:
        run(zygote, "import os; os.close(3); os._exit(7)")
    assert failure.value.exit_code == 7


def test_an_endless_frame_ends_at_the_deadline(zygote: Zygote) -> None:
    source = """
import os, struct
os.write(3, struct.pack('!4sI', b'KWF1', 60 << 20))
import time
while True:
    os.write(3, b'x'); time.sleep(0.01)
"""
    with pytest.raises(TimedOut):
        run(zygote, source, timeout=0.7)


def test_a_flood_of_descriptors(zygote: Zygote) -> None:
    before = len(os.listdir("/proc/self/fd"))
    source = """
import socket, array, os
s = socket.socket(fileno=os.dup(3)); s.setblocking(True)
fds = array.array('i', [0] * 200)
for _ in range(10): s.sendmsg([b'K'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
"""
    with pytest.raises(Garbled):
        run(zygote, source)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_an_answer_that_is_not_what_was_asked_for(zygote: Zygote) -> None:
    import msgspec

    with zygote.worker(HANDLERS, SMALL) as worker:
        reply = worker.call("run", "result = 'text'")
        with pytest.raises(msgspec.ValidationError):
            reply.decode(int)


def test_exceptions_are_answers(zygote: Zygote) -> None:
    with zygote.worker(HANDLERS, SMALL) as worker:
        with pytest.raises(HandlerRaised, match="ZeroDivisionError: division by zero") as failure:
            worker.call("run", "1 / 0")
        assert failure.value.kind == "ZeroDivisionError"
        assert "run" in failure.value.traceback or "<string>" in failure.value.traceback
        with pytest.raises(HandlerRaised, match="no_such_handler"):
            worker.call("no_such_handler")
        with pytest.raises(HandlerRaised, match="ValidationError"):
            worker.call("run", 5)
        rude = "class E(Exception):\n  def __str__(self): raise ValueError\nraise E"
        with pytest.raises(HandlerRaised, match="its text can't be made"):
            worker.call("run", rude)
        with pytest.raises(HandlerRaised, match="Exotic"):
            worker.call("run", "class Exotic(Exception): pass\nraise Exotic('x' * 10**7)")
        assert worker.call("run", "result = 1").decode(int) == 1


def test_a_module_that_does_not_load(zygote: Zygote) -> None:
    with pytest.raises(HandlerRaised, match="ModuleNotFoundError"):
        zygote.worker("no_such_module")
    still_works(zygote)


def test_output_is_bounded_and_comes_with_the_failure(zygote: Zygote) -> None:
    source = "import os\nfor i in range(5000): print('line', i, 'x' * 100)\nprint('the end', flush=True)\nos._exit(1)"
    with pytest.raises(Died) as failure:
        run(zygote, source)
    assert failure.value.output.rstrip().endswith("the end")
    assert len(failure.value.output) <= 64 << 10
    with pytest.raises(TimedOut):
        run(zygote, "while True: print('x' * 1000)", timeout=0.5)


@pytest.mark.parametrize("end", ["result = 1", "os._exit(0)", "time.sleep(100)"])
def test_nothing_survives_its_worker(zygote: Zygote, end: str) -> None:
    mark = f"kwleft{os.getpid() % 10000}"
    source = NAME_SELF.format(mark=mark) + f"""
import os, signal, time
for ignored in (signal.SIGTERM, signal.SIGHUP): signal.signal(ignored, signal.SIG_IGN)
if os.fork() == 0:                      # a child that leaves the session, and its own child; both hold all descriptors
    os.setsid()
    if os.fork() == 0:
        os.setsid()
    while True: time.sleep(1)
time.sleep(0.3)
{end}
"""
    start = time.monotonic()
    with contextlib.suppress(WorkerFailed):
        run(zygote, source, timeout=2.0)
    assert processes_with(mark) == []
    assert time.monotonic() - start < 60
    still_works(zygote)


def test_a_fork_bomb_is_bounded_and_swept(zygote: Zygote) -> None:
    mark = f"kwbomb{os.getpid() % 10000}"
    source = NAME_SELF.format(mark=mark) + """
import os, time
for _ in range(12):
    try:
        os.fork()
    except OSError:
        break
time.sleep(100)
"""
    with pytest.raises(WorkerFailed):
        run(zygote, source, Limits(memory_bytes=256 << 20, processes=20), timeout=1.5)
    time.sleep(0.2)
    assert processes_with(mark) == []
    still_works(zygote)


def test_processes_can_be_forbidden_while_threads_stay(zygote: Zygote) -> None:
    source = """
import os, threading, subprocess
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
import torch
result = [float(torch.ones(1000000).sum())]
for attempt in (os.fork, lambda: subprocess.run(["/bin/true"])):
    try:
        attempt()
        result.append("allowed")
    except OSError:
        result.append("refused")
"""
    limits = Limits(memory_bytes=256 << 20, may_fork=False)
    assert run(zygote, source, limits) == [1e6, "refused", "refused"]


def test_killing_the_zygote_harms_nobody_else(zygote: Zygote) -> None:
    """Where the kernel confines signals it can't; elsewhere the worker fails and the zygote comes back."""
    restarts = zygote.restarts
    source = """
import os, signal, time
for target in (1, os.getppid(), -1):
    try:
        os.kill(target, signal.SIGKILL)
    except OSError:
        pass
time.sleep(0.2)
result = "alive"
"""
    with zygote.worker(HANDLERS, SMALL) as bystander:
        with contextlib.suppress(WorkerFailed):
            run(zygote, source, timeout=5.0)
        if zygote.restarts == restarts and bystander.alive:
            assert bystander.call("run", "result = 1").decode(int) == 1
    still_works(zygote)


def test_a_dead_zygote_is_a_typed_failure_and_comes_back(zygote: Zygote) -> None:
    restarts = zygote.restarts
    assert zygote._running is not None
    with zygote.worker(HANDLERS, SMALL) as worker:
        threading.Timer(0.3, zygote._running.kill).start()
        with pytest.raises(WorkerFailed):
            worker.call("run", "import time; time.sleep(100)", timeout=30.0)
    still_works(zygote)
    assert zygote.restarts == restarts + 1


def test_several_workers_at_once(zygote: Zygote) -> None:
    answers: dict[int, object] = {}

    def one(number: int) -> None:
        for _ in range(5):
            answers[number] = run(zygote, f"import time; time.sleep(0.01); result = {number}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: number for number in range(4)}


def test_kill_and_usage(zygote: Zygote) -> None:
    worker: Worker = zygote.worker(HANDLERS, SMALL)
    worker.call("run", "x = bytearray(100 << 20)\nfor _ in range(3000000): pass")
    during = worker.usage()
    worker.kill()
    after = worker.usage()
    assert after.cpu_seconds >= during.cpu_seconds > 0
    assert after.max_rss_bytes > 100 << 20
    with pytest.raises(Died, match="SIGKILL"):
        worker.call("run", "result = 1")
    worker.close()


def test_no_descriptor_leaks(zygote: Zygote) -> None:
    still_works(zygote)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        still_works(zygote)
        with pytest.raises(WorkerFailed):
            run(zygote, "import os; os._exit(0)")
    assert len(os.listdir("/proc/self/fd")) == before
