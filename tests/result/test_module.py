"""module.py as a user meets it: the kernel answers what it was written for, the reference everything else, with one warning."""

from __future__ import annotations

import copy
import inspect
import io
import os
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import packaged
import pytest
import torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packaged.write_affine(tmp_path_factory.mktemp("results") / "affine").path


@pytest.fixture
def module(folder: Path) -> ModuleType:
    module = packaged.load(folder)
    module.reference.CALLS.clear()
    return module


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(3, 4)


def expected(model: Any, x: torch.Tensor) -> torch.Tensor:
    return x * model.weight + model.bias


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal but for the rounding of a fused multiply-add."""
    return torch.allclose(one, other, rtol=1e-5, atol=1e-5)


def by_kernel(module: ModuleType, call: Any) -> Any:
    """What `call` returns; it must be the kernel that answers, without a warning."""
    module.reference.CALLS.clear()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        value = call()
    assert module.reference.CALLS == []
    return value


def by_reference(module: ModuleType, reason: str, call: Any) -> Any:
    """What `call` returns; it must be the reference that answers, with exactly one warning in two calls."""
    module.reference.CALLS.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
        value = call()
    assert len(module.reference.CALLS) == 2
    told = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    assert len(told) == 1, told
    assert reason in told[0]
    return value


def test_the_kernel_answers(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    assert same(by_kernel(module, lambda: model(x)), expected(model, x))
    with torch.inference_mode():
        assert same(by_kernel(module, lambda: model(x=x)), expected(model, x))


def test_it_is_the_reference_to_all_who_look(module: ModuleType) -> None:
    model = module.Affine(width=4)
    assert isinstance(model, module.reference.Affine)
    for name in ("__init__", "forward"):
        ours, theirs = getattr(module.Affine, name), getattr(module.reference.Affine, name)
        assert inspect.signature(ours) == inspect.signature(theirs)
    assert list(model.state_dict()) == list(module.reference.Affine(4).state_dict())
    assert len(list(model.parameters())) == 1
    assert [tuple(t.shape) for t in module.get_inputs()] == [(3, 4)]
    assert module.get_init_inputs() == [4]


def test_other_inputs_go_to_the_reference(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    deep = torch.randn(2, 3, 4)
    with torch.no_grad():
        assert same(by_reference(module, "has the shape", lambda: model(deep)), expected(model, deep))
        out = by_reference(module, "torch.float64", lambda: model(x.double()))
        assert same(out, expected(model, x.double()))
        assert type(by_reference(module, "not a plain tensor", lambda: model(x.as_subclass(Subclass)))) is Subclass
        with pytest.raises(TypeError), pytest.warns(RuntimeWarning, match="2 arguments were given"):
            model(x, x)


class Subclass(torch.Tensor):
    pass


def test_other_devices_go_to_the_reference(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    with pytest.warns(RuntimeWarning, match="is on meta"), torch.no_grad():
        assert model.to("meta")(x.to("meta")).device.type == "meta"
    model = module.Affine(4)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        assert model.to(torch.bfloat16)(x.bfloat16()).dtype is torch.bfloat16
        assert model.double()(x.double()).dtype is torch.float64
    model.float()
    assert same(by_kernel(module, lambda: model(x)), expected(model, x))


def test_sparse_inputs_are_not_the_kernels(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    with torch.no_grad(), pytest.warns(RuntimeWarning, match="layout"), pytest.raises(RuntimeError, match="add"):
        model(x.to_sparse())  # the reference answers, and does not take it either


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.t().contiguous().t(),
        lambda x: torch.stack([x, x], -1)[..., 0],
        lambda x: x[:1].expand(3, 4),
        lambda x: torch.cat([torch.zeros(1), x.flatten()])[1:].view(3, 4),
        lambda x: x.flip(0).requires_grad_(),
    ],
    ids=["transposed", "strided", "expanded", "misaligned", "leaf"],
)
def test_other_strides_are_copied(module: ModuleType, x: torch.Tensor, make: Any) -> None:
    model, given = module.Affine(4), make(x)
    assert same(by_kernel(module, lambda: model(given)), expected(model, given).detach())


def test_gradients_go_to_the_reference(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    out = by_reference(module, "gradients are enabled", lambda: model(x))
    out.sum().backward()
    assert torch.allclose(model.weight.grad, x.sum(0))
    model.requires_grad_(False)
    assert not by_kernel_with_gradients(module, model, x).requires_grad


def by_kernel_with_gradients(module: ModuleType, model: Any, x: torch.Tensor) -> torch.Tensor:
    module.reference.CALLS.clear()
    out: torch.Tensor = model(x)
    assert module.reference.CALLS == []
    return out


def test_autocast_and_transforms_go_to_the_reference(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4).requires_grad_(False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        by_reference(module, "autocast", lambda: model(x))
    batch = torch.randn(5, 3, 4)
    out = by_reference(module, "transform", lambda: torch.vmap(model)(batch))
    assert same(out, expected(model, batch))


def test_new_weights_are_noticed(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)

    def check() -> None:
        assert same(by_kernel(module, lambda: model(x)), expected(model, x).detach())

    check()
    with torch.no_grad():
        model.weight.add_(1)
    check()
    model.weight.data.copy_(torch.randn(4))
    check()
    model.load_state_dict({"weight": torch.randn(4), "bias": torch.randn(4)})
    check()
    model.load_state_dict({"weight": torch.randn(4), "bias": torch.randn(4)}, assign=True)
    check()
    model.weight = torch.nn.Parameter(torch.randn(4))
    check()
    model.weight.data = torch.randn(4)
    check()
    model.bias.data = torch.randn(8)[::2]
    check()
    model.bias.data[1] = 5
    check()
    with torch.inference_mode():
        model.bias = torch.randn(4)
        model.bias.mul_(2)
    check()


def test_other_weights_go_to_the_reference(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    model.bias = torch.zeros(3, 1)
    with torch.no_grad():
        by_reference(module, "bias has the shape", lambda: model(x))
    del model.bias
    with torch.no_grad(), pytest.raises(AttributeError), pytest.warns(RuntimeWarning, match="the model has no bias"):
        model(x)


def test_another_construction_goes_to_the_reference(module: ModuleType, x: torch.Tensor) -> None:
    alike = module.Affine(4, start=1.0)
    assert same(by_kernel(module, lambda: alike(x)), expected(alike, x))
    with torch.no_grad():
        by_reference(module, "other arguments", lambda: module.Affine(4, 2.0)(x))


def test_hooks_and_replaced_modules(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    seen: list[int] = []
    model.register_forward_hook(lambda *_: seen.append(1))
    by_kernel(module, lambda: model(x))
    assert seen == [1]
    handle = model.inner.register_forward_hook(lambda *_: seen.append(2))
    with torch.no_grad():
        by_reference(module, "hooks", lambda: model(x))
    assert seen == [1, 2, 1, 2, 1]
    handle.remove()
    by_kernel(module, lambda: model(x))


def test_the_mode_matters_where_code_reads_it(tmp_path: Path, x: torch.Tensor) -> None:
    text = packaged.AFFINE_REFERENCE.replace("self.inner = torch.nn.Identity()", "self.inner = torch.nn.Dropout(0.0)")
    module = packaged.load(packaged.write_affine(tmp_path / "dropout", reference=text))
    model = module.Affine(4)
    with torch.no_grad():
        by_reference(module, "Dropout is in training mode", lambda: model(x))
    model.eval()
    by_kernel(module, lambda: model(x))


def test_the_mode_does_not_matter_elsewhere(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    for training in (True, False):
        by_kernel(module, lambda training=training: model.train(training)(x))


def test_copies_are_their_own(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4)
    by_kernel(module, lambda: model(x))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.weight.mul_(3)
    assert same(by_kernel(module, lambda: other(x)), expected(other, x))
    assert same(by_kernel(module, lambda: model(x)), expected(model, x))
    wrong = copy.deepcopy(module.Affine(4, 2.0))
    with torch.no_grad():
        by_reference(module, "other arguments", lambda: wrong(x))


def test_pickles(folder: Path, x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "module", raising=False)
    import module  # as in the docstring

    model = module.Affine(4)
    by_kernel(module, lambda: model(x))
    saved = io.BytesIO()
    torch.save(model.state_dict(), saved)
    saved.seek(0)
    other = pickle.loads(pickle.dumps(model))
    other.load_state_dict(torch.load(saved))
    assert same(by_kernel(module, lambda: other(x)), expected(model, x))
    sys.modules.pop("module")


def test_two_threads(module: ModuleType) -> None:
    model = module.Affine(4)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(200):
            x = torch.randn(3, 4)
            with torch.inference_mode():
                if not same(model(x), expected(model, x)):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert module.reference.CALLS == []


def test_tracing_sees_the_reference(module: ModuleType, x: torch.Tensor) -> None:
    model = module.Affine(4).requires_grad_(False)
    exported = torch.export.export(model, (x,))
    assert any("mul" in str(node.target) for node in exported.graph.nodes)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert same(compiled(x), expected(model, x))


def test_functions_constants_and_keywords(tmp_path: Path) -> None:
    module = packaged.load(packaged.write_difference(tmp_path / "difference"))
    a, b = torch.randn(3), torch.randn(3)
    want = a - b + torch.tensor([1.0, 2.0, 3.0])
    for call in (lambda: module.difference(a, b), lambda: module.difference(a, b=b), lambda: module.difference(b=b, a=a)):
        assert same(by_kernel(module, call), want)
    assert same(by_reference(module, "arguments were given", lambda: module.difference(a, b, 2)), 2 * want)
    assert str(inspect.signature(module.difference)) == "(a, b, scale=None)"
    named = packaged.load(packaged.write_difference(tmp_path / "named", keywords=("b", "a")))
    got = by_kernel(named, lambda: named.difference(a=a, b=b))  # the kernel's first input is then what was called b
    assert same(got, b - a + torch.tensor([1.0, 2.0, 3.0]))


def test_objects(tmp_path: Path, x: torch.Tensor) -> None:
    text = packaged.AFFINE_REFERENCE + "\nAffine = Affine(4)\n"
    module = packaged.load(packaged.write_affine(tmp_path / "object", reference=text))
    assert same(by_kernel(module, lambda: module.Affine(x)), expected(module.Affine, x))
    assert list(module.Affine.state_dict()) == ["weight", "bias"]


def test_two_results_at_once(folder: Path, tmp_path: Path, x: torch.Tensor) -> None:
    other_kernel = packaged.AFFINE.replace(") / 2;", ") / 2 + 1;")
    one, two = packaged.load(folder), packaged.load(packaged.write_affine(tmp_path / "other", kernel=other_kernel))
    a, b = one.Affine(4), two.Affine(4)
    assert same(by_kernel(two, lambda: b(x)), by_kernel(one, lambda: a(x)) + 1)


CHILD = """
import sys, warnings, torch
sys.path.insert(0, sys.argv[1])
import module
model, x = module.Affine(4), torch.randn(3, 4)
with torch.no_grad(): right = torch.allclose(model(x), x * model.weight + model.bias)
import ctypes
library = model._kernel._result._library
isa = ctypes.string_at(ctypes.CDLL(str(library)).kw_isa).decode() if library else "none"
print(right, len(module.reference.CALLS), isa, library, "kernelwright" in sys.modules)
"""


def in_child(folder: Path, **environment: str) -> tuple[list[str], str]:
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)], cwd="/", env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_from_any_folder_without_kernelwright_on_the_portable_path(folder: Path) -> None:
    out, err = in_child(folder, KERNELWRIGHT_ISA="portable")
    assert out[:3] == ["True", "0", "portable"], err
    assert out[3].startswith(str(folder / "build"))
    assert out[4] == "False"


def test_without_a_compiler_the_reference_answers(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "moved"
    packaged.write_affine(other)
    out, err = in_child(other, PATH="/nonexistent", CXX="", KERNELWRIGHT_CXX="")
    assert out[:3] == ["True", "1", "none"]
    assert err.count("RuntimeWarning") == 1
    assert "no C++ compiler was found" in err


def test_a_kernel_that_does_not_compile_is_told(tmp_path: Path, x: torch.Tensor) -> None:
    module = packaged.load(packaged.write_affine(tmp_path / "broken", kernel="this is no C++"))
    model = module.Affine(4)
    with torch.no_grad():
        by_reference(module, "not compiled", lambda: model(x))


def test_a_folder_that_one_may_not_write(tmp_path: Path) -> None:
    result = packaged.write_affine(tmp_path / "shut")
    (result.path / "build").write_text("a file in the way of the folder")
    out, err = in_child(result.path, KERNELWRIGHT_HOME=str(tmp_path / "home"))
    assert out[:2] == ["True", "0"], err
    assert out[3].startswith(str(tmp_path / "home" / "objects"))
