"""Writes a result folder: module.py, kernel.cpp, reference.py, manifest.json, certificate.json, report.html.

What it does: renders module.py so that it needs torch and a compiler alone, copies the reference with its own modules, hashes
what it wrote into the certificate, has the report rendered, and puts the whole folder in place at once. An older result of the
same name is kept beside it with a number.
What it does not do: judge or measure. Called by optimize.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright import __version__
from kernelwright.errors import UserError
from kernelwright.records import Candidate, GeneratedStep, Manifest, Task, TensorSpec, to_json
from kernelwright.result import certificate as certificates
from kernelwright.result.certificate import Certificate

_HERE = Path(__file__).parent
_RUNNER = _HERE.parent / "runtime" / "runner.py"
_HELPERS = ("get_inputs", "get_init_inputs")
_TORCH = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32", "i16": "int16",
    "i8": "int8", "u8": "uint8", "bool": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class Product:
    """What is packaged. `constants`: raw little-endian data by the manifest's constant names (or their keys).

    `keywords` names the last inputs, in order, that the captured call gave by name.
    """

    task: Task
    candidate: Candidate
    constants: Mapping[str, bytes]
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultFolder:
    """What was written. `kept` is where an older result of the same name went."""

    path: Path
    certificate: Certificate
    kept: Path | None

    @property
    def module(self) -> Path:
        return self.path / "module.py"

    @property
    def report(self) -> Path:
        return self.path / "report.html"


def write_result(folder: Path, product: Product, draft: Certificate, render: Callable[[Certificate], str]) -> ResultFolder:
    """Write everything and put it in place at `folder`. `draft` is sealed with the files' hashes; `render` makes the report.

    Raises UserError where the folder can't be written or holds something else, ValueError for a program without generated code.
    """
    manifest = product.candidate.manifest
    if manifest is None or not any(isinstance(step, GeneratedStep) for step in manifest.steps):
        raise ValueError("a program of library calls alone is no result of ours")
    folder = folder.absolute()
    check_place(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}", "name another folder with --out") from error
    try:
        partial.chmod(0o755)
        _write_files(partial, product, manifest, draft)
        sealed = certificates.seal(replace(draft, files=_hashes(partial)))
        certificates.write_certificate(sealed, partial / certificates.FILE)
        (partial / "report.html").write_text(render(sealed), encoding="utf-8")
        kept = _put_in_place(partial, folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}", "free some space, or name another folder") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # gone already where all went well
    return ResultFolder(folder, sealed, kept)


def check_place(folder: Path) -> None:
    """Raise UserError where `folder` holds something that is not a result: it would be lost."""
    if folder.is_dir() and ((folder / certificates.FILE).is_file() or not any(folder.iterdir())):
        return
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder} is there already and is not a result of Kernelwright", "name another folder with --out")


def _write_files(folder: Path, product: Product, manifest: Manifest, draft: Certificate) -> None:
    reference = Path(product.task.path).read_bytes()
    (folder / "reference.py").write_bytes(reference)
    _copy_own_modules(Path(product.task.path), folder / "reference_imports")
    (folder / "kernel.cpp").write_text(product.candidate.source, encoding="utf-8")
    places, data = _constants(manifest, product.constants)
    if data:
        (folder / "constants.bin").write_bytes(data)
    (folder / "manifest.json").write_text(_about(product, manifest, places), encoding="utf-8")
    text = module_text(product, manifest, reference.decode("utf-8", errors="replace"), draft)
    compile(text, str(folder / "module.py"), "exec")  # a template that makes no Python is our own bug
    (folder / "module.py").write_text(text, encoding="utf-8")


def _about(product: Product, manifest: Manifest, places: Mapping[str, tuple[int, int]]) -> str:
    """manifest.json: what module.py must know. `constants`: offset and size in constants.bin by name."""
    task = product.task
    about = {
        "entry": task.entry, "training": task.training, "keywords": product.keywords, "flags": product.candidate.flags,
        "constants": places, "manifest": manifest,
    }  # fmt: skip
    return to_json(about, indent=1) + "\n"


def _constants(manifest: Manifest, given: Mapping[str, bytes]) -> tuple[dict[str, tuple[int, int]], bytes]:
    places: dict[str, tuple[int, int]] = {}
    data = bytearray()
    for spec in manifest.constants:
        content = given[spec.name] if spec.name in given else given[spec.key or spec.name]
        data.extend(b"\0" * (-len(data) % 64))
        places[spec.name] = (len(data), len(content))
        data.extend(content)
    return places, bytes(data)


def module_text(product: Product, manifest: Manifest, reference: str, draft: Certificate) -> str:
    """The text of module.py."""
    import jinja2

    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    template = environment.from_string((_HERE / "module.py.jinja").read_text(encoding="utf-8"))
    task = product.task
    own = sorted({path.parts[0].removesuffix(".py") for path in _own_modules(Path(task.path))})
    text = template.render(
        title=_line(task.name), entry=task.entry, version=__version__, claim=_claim(draft), training=task.training,
        kind=entry_kind(reference, task), inputs=[_words(spec) for spec in manifest.inputs],
        digest=_own_digest(Path(task.path), reference), own=own,
        helpers=[name for name in _HELPERS if name != task.entry and name in _bound(reference)],
        dropin=_embedded(_HERE / "dropin.py"), runner=_embedded(_RUNNER),
    )  # fmt: skip
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip() + "\n"


def entry_kind(reference: str, task: Task) -> str:
    """How module.py offers the entry: "class", "function", or "object" (an nn.Module that the file made itself)."""
    for node in reversed(ast.parse(reference).body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == task.entry:
            return "function" if isinstance(node, ast.FunctionDef) else "class"
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == task.entry for t in node.targets):
            return "object" if isinstance(node.value, ast.Call) else "function" if task.is_function else "class"
    return "function" if task.is_function else "class"


def _bound(reference: str) -> set[str]:
    return {node.name for node in ast.parse(reference).body if isinstance(node, ast.FunctionDef)}


def _embedded(path: Path) -> str:
    """A module's text without what only a file of its own has: its __future__ line and its imports from this package."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("from __future__", "from kernelwright"))).strip()


def _claim(draft: Certificate) -> str:
    """The headline as two lines of the docstring."""
    claim, measured = draft.claim, draft.measurements[0]
    interval = f"95% interval {claim.speedup.low:.2f} to {claim.speedup.high:.2f}"
    return (
        f"{claim.speedup.estimate:.2f}x as fast as {claim.baseline}, the best of {', '.join(certificates.bases(measured))}\n"
        f"({interval}), contract "
        f"{draft.task.precision.value},\non {_line(draft.machine.cpu)}, {draft.machine.isa}, {measured.threads} threads, torch "
        f"{draft.versions.torch}. All samples and how to replay them: certificate.json."
    )


def _words(spec: TensorSpec) -> str:
    return f"{spec.name}: torch.{_TORCH[spec.dtype]} {list(spec.shape)}"


def _line(text: str) -> str:
    return re.sub(r'[\\"\s]+', " ", text)


def _own_digest(path: Path, reference: str) -> str:
    """Names the reference with its own modules: two results with equal ones may share them in one process."""
    parts = [reference.encode(), *((path.parent / own).read_bytes() for own in _own_modules(path))]
    return hashlib.sha256(b"\x00".join(parts)).hexdigest()[:24]


def _copy_own_modules(reference: Path, folder: Path) -> None:
    for own in _own_modules(reference):
        target = folder / own
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(reference.parent / own, target)


def _own_modules(reference: Path) -> list[Path]:
    """The modules beside the reference that it imports, and those that these import; relative to its folder, in order."""
    waiting, done = [reference], {reference}
    while waiting:
        for name in _imported(waiting.pop()):
            module, package = reference.parent / f"{name}.py", reference.parent / name
            if module.is_file():
                found = [module]
            elif (package / "__init__.py").is_file():
                found = sorted(package.rglob("*.py"))
            else:
                continue  # installed, or of the standard library
            for path in found:
                if path not in done:
                    done.add(path)
                    waiting.append(path)
    return sorted(path.relative_to(reference.parent) for path in done - {reference})


def _imported(path: Path) -> Iterator[str]:
    """Top-level names that a file imports. What inside a package is relative is copied with the package."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        return  # a module that is never reached
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): certificates.file_hash(path) for path in files}


def _put_in_place(partial: Path, folder: Path) -> Path | None:
    """Rename the new folder to its name; an older result of that name goes to the next free number."""
    kept = None
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    elif folder.is_dir():
        numbered = (folder.with_name(f"{folder.name}.{number}") for number in itertools.count(1))
        kept = next(path for path in numbered if not path.exists())
        os.rename(folder, kept)
    os.rename(partial, folder)
    return kept
