"""What a worker can reach: no network, only its own files, nothing of the environment, nothing of its predecessor."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import HANDLERS

from kernelwright.sandbox import isolation as isolations
from kernelwright.sandbox.isolation import Strength, detect, unconfined, without_bubblewrap
from kernelwright.sandbox.tensors import ArraySpec, SharedArray
from kernelwright.sandbox.zygote import Zygote


def run(zygote: Zygote, source: str, fds: tuple[int, ...] = ()) -> Any:
    with zygote.worker(HANDLERS) as worker:
        return worker.call("run", source, fds, timeout=20.0).decode(object)


def test_no_network(zygote: Zygote) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = f"""
import socket
result = []
for family, address in ((socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_INET6, ("::1", {port}))):
    try:
        socket.socket(family).connect(address)
        result.append("connected")
    except OSError as error:
        result.append("refused")
"""
        assert run(zygote, source) == ["refused", "refused"]


def test_files(zygote: Zygote) -> None:
    base: Path = zygote.test_folder  # type: ignore[attr-defined]
    source = f"""
import pathlib
base = pathlib.Path({str(base)!r})
def attempt(action):
    try:
        return action()
    except OSError:
        return "refused"
result = [
    attempt((base / "shared/file.txt").read_text),
    attempt(lambda: (base / "shared/file.txt").write_text("x")),
    attempt((base / "hidden/file.txt").read_text),
    attempt((base / "own/file.txt").read_text),
    attempt(lambda: (base / "own/new.txt").write_text("new")),
    attempt(lambda: pathlib.Path("/etc/passwd").read_text()),
    attempt(lambda: pathlib.Path("/etc/x").write_text("x")),
    attempt(lambda: pathlib.Path("/usr/x").write_text("x")),
    attempt(lambda: pathlib.Path({__file__!r}).with_name("x").write_text("x")),
    attempt(lambda: len([1 for _ in pathlib.Path("/home").iterdir()])),
]
import tempfile
with tempfile.NamedTemporaryFile("w") as file:
    result.append(file.write("scratch"))
"""
    no = "refused"
    assert run(zygote, source) == ["shared", no, no, "own", 3, no, no, no, no, no, 7]
    assert (base / "own" / "new.txt").read_text() == "new"


def test_the_environment_is_clean(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    names = set(run(zygote, "import os; result = sorted(os.environ)"))
    assert names <= {
        "PATH", "LANG", "LC_CTYPE", "USER", "LOGNAME", "HOME", "PWD", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR",
        "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    } | {name for name in names if name.startswith(("KMP_", "TORCH_", "__"))}  # fmt: skip
    home = run(zygote, "import os; result = [os.environ['HOME'], os.path.isdir(os.environ['HOME'])]")
    assert home[1]
    assert home[0] != os.environ.get("HOME")


def test_rights(zygote: Zygote) -> None:
    source = """
import ctypes, os
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
libc = ctypes.CDLL(None, use_errno=True)
result = [status["CapEff"].strip(), status["NoNewPrivs"], status["Seccomp"],
          libc.ptrace(16, os.getppid(), 0, 0), libc.unshare(0x10000000), libc.setuid(0) if os.getuid() else -1]
"""
    assert run(zygote, source) == ["0" * 16, "1", "2", -1, -1, -1]


def test_other_processes_memory_is_closed(zygote: Zygote) -> None:
    source = f"""
import os
result = []
for pid in (1, os.getppid(), {os.getpid()}):
    for name in ("mem", "environ"):
        try:
            open(f"/proc/{{pid}}/{{name}}", "rb").read(1)
            result.append("open")
        except OSError:
            pass
"""
    assert run(zygote, source) == []


def test_no_descriptor_of_anyone_else(zygote: Zygote) -> None:
    source = "import os; result = sorted(int(n) for n in os.listdir('/proc/self/fd'))"
    with zygote.worker(HANDLERS) as other:
        assert run(zygote, source)[:4] == [0, 1, 2, 3]
        assert len(run(zygote, source)) <= 5  # and the listing's own
        assert other.alive


def test_a_patched_torch_does_not_leak_into_the_next_fork(zygote: Zygote) -> None:
    run(zygote, "import torch; torch.allclose = lambda *a, **k: True; torch.Tensor.sum = None; torch.manual_seed = None")
    assert run(zygote, "import torch; result = torch.allclose(torch.ones(2), torch.zeros(2))") is False


def test_nothing_is_left_for_the_next_worker(zygote: Zygote) -> None:
    source = """
import os
result = []
for folder in (os.environ["TMPDIR"], os.environ["HOME"], "/dev/shm", "/"):
    try:
        open(folder + "/left", "x").close()
        result.append(folder)
    except FileExistsError:
        result.append("found")
    except OSError:
        result.append("refused")
"""
    first = run(zygote, source)
    assert first[-1] == "refused"
    assert "found" not in first
    assert run(zygote, source) == first


def test_threads_work_in_a_fork_and_the_zygote_has_none(zygote: Zygote) -> None:
    assert zygote.hello is not None
    assert zygote.hello.threads == 1
    source = """
import torch, os
x = torch.ones(4_000_000)
result = [float((x + x).sum()), torch.get_num_threads(), len(os.listdir("/proc/self/task")) >= 2]
"""
    assert run(zygote, source) == [8e6, 2, True]
    assert run(zygote, "import torch; result = float((torch.ones(512, 512) @ torch.ones(512, 512)).sum())") == 512.0**3


def test_a_fork_is_quick(zygote: Zygote, record_property: Any) -> None:
    seconds = []
    for _ in range(5):
        start = time.monotonic()
        with zygote.worker(HANDLERS):
            seconds.append(time.monotonic() - start)
    record_property("fork_milliseconds", 1000 * sorted(seconds)[2])


def test_native_code_is_loaded_from_a_descriptor(zygote: Zygote, tmp_path: Path) -> None:
    from kernelwright.runtime.runner import compile_source

    source = tmp_path / "one.cpp"
    source.write_text('extern "C" int answer() { return 42; }\n')
    code = SharedArray.create(ArraySpec((len(data := compile_source(source, tmp_path).read_bytes()),), "u8"))
    code.array[:] = list(data)
    text = "import ctypes; result = ctypes.CDLL(f'/proc/self/fd/{fds[0]}').answer()"
    assert run(zygote, text, (code.fd,)) == 42


def test_detection_states_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert detect() is detect()
    assert "\n" not in detect().statement
    assert without_bubblewrap().strength is not Strength.BUBBLEWRAP
    assert "--no-sandbox" in unconfined().statement
    detect.cache_clear()
    monkeypatch.setattr(isolations.shutil, "which", lambda _name: None)
    missing = detect()
    detect.cache_clear()
    assert missing.strength in (Strength.KERNEL_LIMITS, Strength.NONE)
    assert "apt-get install bubblewrap" in missing.statement


def test_without_any_isolation_workers_still_work() -> None:
    with Zygote(unconfined(), preload=(), search=(Path(__file__).parent,)) as zygote:
        assert run(zygote, "result = 1") == 1
