"""The runner with a hand-written kernel: threads, packed weights, ATen steps, aliases, layouts and compilation."""

from __future__ import annotations

import ctypes
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.runtime import runner as runtime
from kernelwright.runtime.runner import CompileFailed, NoCompiler, Runner, compile_source, detect_isa, find_openmp

KERNEL = Path(__file__).parent / "kernel.cpp"
N = 64


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_source(KERNEL, tmp_path_factory.mktemp("objects"))


@pytest.fixture(autouse=True)
def two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def spec(name: str, shape: tuple[int, ...] = (N,), dtype: str = "f32") -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "dtype": dtype, "key": None}


def manifest(**changes: Any) -> dict[str, Any]:
    """y = 2 * relu(x + 3 * w), with relu as an ATen call between the two generated steps."""
    relu = json.dumps({"args": [{"tensor": "mid"}], "kwargs": {}})
    full: dict[str, Any] = {
        "inputs": [spec("x")], "weights": [spec("w")], "constants": [], "temporaries": [spec("mid"), spec("z")],
        "outputs": [spec("y"), spec("seen", (), "i32")], "slots": ["x", "w", "mid", "z", "y", "seen"],
        "returns": ["y", "seen"], "output_tree": "tuple",
        "steps": [
            {"symbol": "kw_run_0"},
            {"target": "aten.relu.default", "arguments": relu, "outputs": ["z"]},
            {"symbol": "kw_run_1"},
        ],
        "workspace_bytes": 0, "local_bytes": 64, "packed_bytes": 4 * N,
    }  # fmt: skip
    return full | changes


def test_steps_library_calls_and_packed_weights(library: Path) -> None:
    run = Runner(library, manifest())
    for seed in range(3):
        torch.manual_seed(seed)
        x, w = torch.randn(N), torch.randn(N)
        run.set_weights([w])
        y, seen = run([x])
        assert torch.equal(y, 2 * torch.relu(x + 3 * w))
        assert seen.dtype == torch.int32
        assert seen.shape == ()
        assert 1 <= int(seen) <= 2


def test_weights_are_packed_again_when_they_are_set_again(library: Path) -> None:
    run = Runner(library, manifest())
    x, w = torch.ones(N), torch.ones(N)
    run.set_weights([w])
    assert torch.equal(run([x])[0], torch.full((N,), 8.0))
    w.fill_(2.0)
    assert torch.equal(run([x])[0], torch.full((N,), 8.0))  # nobody said so: the packed form is used
    run.set_weights([w])
    assert torch.equal(run([x])[0], torch.full((N,), 14.0))


def test_weights_must_be_set_first(library: Path) -> None:
    with pytest.raises(RuntimeError, match="set_weights"):
        Runner(library, manifest())([torch.ones(N)])


def test_thread_count_is_followed(library: Path) -> None:
    single = manifest(
        inputs=[], weights=[], temporaries=[], outputs=[spec("out", (4,), "i64")], slots=["out"], returns=["out"],
        output_tree="tensor", steps=[{"symbol": "kw_run_address"}], packed_bytes=0, local_bytes=100,
    )  # fmt: skip
    run = Runner(library, single)
    for threads in (2, 1, 3, 1, 2):
        torch.set_num_threads(threads)
        assert run([]).tolist() == [0, 0, threads, int(threads > 1)]  # 64-byte aligned; serial without a pool


def test_the_openmp_found_is_torch_s_own() -> None:
    found = find_openmp()
    assert found is not None
    maps = Path("/proc/self/maps").read_text()
    places = [line for line in maps.splitlines() if "omp" in line]
    inside = [line for line in places if int(line.split("-")[0], 16) <= found[0] < int(line.split()[0].split("-")[1], 16)]
    assert inside, "the address lies in a loaded OpenMP runtime"
    function = ctypes.CFUNCTYPE(ctypes.c_int)(found[1])
    assert function() == 0


def test_results_do_not_alias_the_runner_s_buffers(library: Path) -> None:
    view = json.dumps({"args": [{"tensor": "mid"}, [8, 8]], "kwargs": {}})
    run = Runner(library, manifest(
        temporaries=[spec("mid")], outputs=[spec("v", (8, 8))], slots=["x", "w", "mid"], returns=["v"], output_tree="list",
        steps=[{"symbol": "kw_run_0"}, {"target": "aten.view.default", "arguments": view, "outputs": ["v"]}],
    ))  # fmt: skip
    run.set_weights([torch.zeros(N)])
    first = run([torch.ones(N)])
    run([torch.zeros(N)])
    assert isinstance(first, list)
    assert torch.equal(first[0], torch.ones(8, 8))


def test_inputs_and_weights_may_be_returned_and_repeated(library: Path) -> None:
    run = Runner(library, manifest(returns=["x", "y", "w", "y"]))
    x, w = torch.randn(N), torch.randn(N)
    run.set_weights([w])
    first, second, third, fourth = run([x])
    assert first is x
    assert third is w
    assert second is fourth


def test_library_arguments_of_every_kind(library: Path) -> None:
    def call(target: str, args: list[Any], kwargs: dict[str, Any], output: dict[str, Any]) -> torch.Tensor:
        text = json.dumps({"args": args, "kwargs": kwargs})
        inputs = [spec("a", (2, 3)), spec("b", (2, 3))]
        run = Runner(library, manifest(
            inputs=inputs, weights=[], temporaries=[], outputs=[output], slots=[], returns=["o"],
            steps=[{"target": target, "arguments": text, "outputs": ["o"]}], output_tree="tensor", packed_bytes=0,
        ))  # fmt: skip
        result: torch.Tensor = run([a, b])
        return result

    a, b = torch.randn(2, 3), torch.randn(2, 3)
    out = call("aten.sum.dim_IntList", [{"tensor": "a"}, [1], True], {"dtype": {"dtype": "f64"}}, spec("o", (2, 1), "f64"))
    assert torch.equal(out, a.sum(1, keepdim=True, dtype=torch.float64))
    joined = call("aten.cat.default", [[{"tensor": "a"}, {"tensor": "b"}], 1], {}, spec("o", (2, 6)))
    assert torch.equal(joined, torch.cat([a, b], 1))
    ceiling = call("aten.clamp.default", [{"tensor": "a"}, {"float": "-inf"}, {"float": "inf"}], {}, spec("o", (2, 3)))
    assert torch.equal(ceiling, a)
    clamped = call("aten.clamp.default", [{"tensor": "a"}, None, 0.5], {}, spec("o", (2, 3)))
    assert torch.equal(clamped, a.clamp(max=0.5))
    transposed = call("aten.t.default", [{"tensor": "a"}], {}, spec("o", (3, 2)))
    assert transposed.is_contiguous()
    assert torch.equal(transposed, a.t())


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
def test_scalars_and_empty_tensors(library: Path, shape: tuple[int, ...]) -> None:
    run = Runner(library, manifest(
        inputs=[spec("x", shape)], weights=[], temporaries=[], outputs=[spec("y", shape)], slots=["x", "y"], returns=["y"],
        steps=[{"symbol": "kw_run_nothing"}], output_tree="tensor", packed_bytes=0,
    ))  # fmt: skip
    assert run([torch.ones(shape)]).shape == shape


def test_outputs_come_from_the_given_allocator(library: Path) -> None:
    made: list[torch.Tensor] = []

    def empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        made.append(torch.full(shape, 7, dtype=dtype))
        return made[-1]

    run = Runner(library, manifest(), empty=empty)
    run.set_weights([torch.zeros(N)])
    y, seen = run([torch.zeros(N)])
    assert y is made[0]
    assert seen is made[1]


def test_constants_are_read_by_name(library: Path) -> None:
    run = Runner(library, manifest(weights=[], constants=[spec("w")]), {"w": torch.ones(N)})
    assert torch.equal(run([torch.ones(N)])[0], torch.full((N,), 8.0))


def test_calls_from_several_threads_take_turns(library: Path) -> None:
    run = Runner(library, manifest())
    w = torch.randn(N)
    run.set_weights([w])
    wrong: list[int] = []

    def call(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(50):
            x = torch.randn(N, generator=generator)
            if not torch.equal(run([x])[0], 2 * torch.relu(x + 3 * w)):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_call_overhead_is_recorded(library: Path, record_property: Any) -> None:
    run = Runner(library, manifest(
        weights=[], temporaries=[], outputs=[spec("y")], slots=["x", "y"], returns=["y"], output_tree="tensor",
        steps=[{"symbol": "kw_run_nothing"}], packed_bytes=0,
    ))  # fmt: skip
    x = torch.ones(N)
    run([x])
    start = time.thread_time_ns()
    for _ in range(2000):
        run([x])
    record_property("microseconds_a_call", (time.thread_time_ns() - start) / 2000 / 1000)


def test_compiled_objects_are_cached_by_content(tmp_path: Path) -> None:
    first = compile_source(KERNEL, tmp_path)
    stamp = first.stat().st_mtime_ns
    assert compile_source(KERNEL, tmp_path) == first
    assert first.stat().st_mtime_ns == stamp
    assert compile_source(KERNEL, tmp_path, ("-DKW_OTHER",)) != first
    assert compile_source(KERNEL, tmp_path, isa="portable") != first
    assert not list(tmp_path.glob("build-*"))


def test_a_kernel_that_does_not_compile_says_its_first_error(tmp_path: Path) -> None:
    source = tmp_path / "broken.cpp"
    source.write_text("int f() { return never_declared; }\n")
    with pytest.raises(CompileFailed, match="never_declared"):
        compile_source(source, tmp_path)
    assert not list(tmp_path.glob("*.so"))


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CXX", "KERNELWRIGHT_CXX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoCompiler, match="apt-get install"):
        compile_source(KERNEL, tmp_path)


def test_the_instruction_set_may_be_lowered_but_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELWRIGHT_ISA", raising=False)
    monkeypatch.setattr(runtime, "_cpu_flags", lambda: runtime.ISA_NEEDS["avx2"])
    assert detect_isa() == "avx2"
    monkeypatch.setenv("KERNELWRIGHT_ISA", "portable")
    assert detect_isa() == "portable"
    monkeypatch.setenv("KERNELWRIGHT_ISA", "avx512")
    assert detect_isa() == "avx2"
    monkeypatch.setattr(runtime, "_cpu_flags", set)
    assert detect_isa() == "portable"


def test_the_file_stands_alone() -> None:
    assert "kernelwright." not in Path(runtime.__file__).read_text().replace("KERNELWRIGHT", "")
