"""The host's C++ compilers: which is there, what flags each instruction set takes, and one compilation.

What it does: finds the newest usable g++ or clang++, compiles one translation unit with limits, and cuts the first error out of
the compiler's output. What it does not do: know candidates or evidence (see `targets.cpu`), or run what it built.
Called by `targets.cpu` and `targets.machine`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernelwright.errors import UserError
from kernelwright.sandbox.isolation import Isolation, Strength, mapped_user
from kernelwright.sandbox.layout import SYSTEM
from kernelwright.sandbox.process import Completed, run

# No -ffast-math: besides changing results, g++ before 13 then links crtfastmath.o into the shared object, which turns denormals
# off for the whole process that loads it, the reference included.
FLAGS = ("-std=gnu++17", "-O3", "-shared", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")

ISA_FLAGS: dict[str, tuple[str, ...]] = {
    "avx512": ("-march=x86-64-v4", "-DKW_ISA_AVX512"),
    "avx2": ("-march=x86-64-v3", "-DKW_ISA_AVX2"),
    "portable": ("-DKW_ISA_PORTABLE",),
}

INSTALL_HINT = (
    "install one with `sudo apt-get install g++` (Debian, Ubuntu), `sudo dnf install gcc-c++` (Fedora, RHEL) "
    "or `conda install -c conda-forge gxx`"
)

COMPILE_BYTES = 4 << 30
_LEAST_VERSION = {"g++": 11, "clang++": 12}  # the first that know -march=x86-64-v3 and -v4
_NAME = re.compile(r"(g\+\+|clang\+\+)(-\d+)?")
_ERROR = re.compile(r"(fatal error|error|undefined reference|undefined symbol|internal compiler error)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Compiler:
    """A compiler that was tried and works. `version` is the whole first line of --version."""

    path: str
    family: str  # "g++" or "clang++"
    major: int
    version: str

    def text(self) -> str:
        """Path and version, as records keep it."""
        return f"{self.path} ({self.version})"


def find_compiler(override: str | None = None) -> Compiler:
    """The compiler named by `override`, else the newest usable g++, else the newest usable clang++ on PATH.

    Usable means that it builds a shared object from one line of C++. Raises UserError, with the line that installs one.
    """
    if override:
        path = shutil.which(override)
        found = _identify(path) if path else None
        if found is None or not _works(found):
            raise UserError(f"the compiler {override!r} was asked for but does not work here", f"unset it, or {INSTALL_HINT}")
        return found
    for compiler in _on_path():
        if _works(compiler):
            return compiler
    raise UserError(
        "no working C++ compiler: neither g++ (11 or newer) nor clang++ (12 or newer) was found on PATH", INSTALL_HINT
    )


def compile_file(
    compiler: Compiler,
    source: Path,
    output: Path,
    flags: tuple[str, ...],
    *,
    seconds: float,
    inside: tuple[str, ...] = (),
) -> tuple[Completed, str]:
    """Run one compilation of `source` into `output`; give what it said, and the command for people to read.

    `inside` is a command that runs another in a sandbox (see `confined`).
    """
    command = [compiler.path, *flags, *_plain(compiler), str(source), "-o", str(output)]
    completed = run([*inside, *command], timeout=seconds, cwd=output.parent, memory_bytes=COMPILE_BYTES)
    return completed, " ".join(command)


def confined(isolation: Isolation, compiler: Compiler, folder: Path) -> tuple[str, ...]:
    """The start of a command that sees the system's and the compiler's files and may write `folder` alone.

    For foreign sources: `#include` and `.incbin` read whatever the compiler can read. Empty where there is no bubblewrap.
    """
    if isolation.strength is not Strength.BUBBLEWRAP:
        return ()
    arguments = ["--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    own = str(Path(compiler.path).resolve().parent.parent)
    for name in dict.fromkeys((*SYSTEM, "/etc/alternatives", own)):
        arguments += ["--symlink", os.readlink(name), name] if os.path.islink(name) else ["--ro-bind-try", name, name]
    return (*mapped_user(isolation).bwrap, *arguments, "--bind", str(folder), str(folder), "--chdir", str(folder), "--")


def first_error(output: str, source: Path | None = None, limit: int = 4000) -> str:
    """The compiler's output with the first error first, its source line and caret after it; then the rest, cut to `limit`.

    `source`'s folder is cut off the names, so that a log does not change with where a candidate was compiled.
    """
    text = output.replace(f"{source.parent}{os.sep}", "") if source else output
    lines = text.strip().splitlines()
    at = next((number for number, line in enumerate(lines) if _ERROR.search(line)), 0)
    return "\n".join(lines[at:])[:limit]


def _plain(compiler: Compiler) -> tuple[str, ...]:
    limit = "-fmax-errors=5" if compiler.family == "g++" else "-ferror-limit=5"
    return ("-w", "-fno-diagnostics-color" if compiler.family == "clang++" else "-fdiagnostics-color=never", limit)


def _on_path() -> list[Compiler]:
    """g++ before clang++, newest first; a file that several names lead to counts once."""
    found: dict[str, Compiler] = {}
    for folder in os.get_exec_path():
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if _NAME.fullmatch(name) and os.access(path, os.X_OK) and os.path.realpath(path) not in found:
                compiler = _identify(path)
                if compiler is not None and compiler.major >= _LEAST_VERSION[compiler.family]:
                    found[os.path.realpath(path)] = compiler
    return sorted(found.values(), key=lambda c: (c.family != "g++", -c.major, c.path))


def _identify(path: str) -> Compiler | None:
    completed = run([path, "--version"], timeout=10)
    line = completed.stdout.partition("\n")[0].strip()
    number = re.search(r"(\d+)\.\d+", re.sub(r"\(.*?\)", "", line))
    if completed.returncode != 0 or number is None:
        return None
    family = "clang++" if "clang" in line.lower() else "g++"
    return Compiler(path=path, family=family, major=int(number.group(1)), version=line)


def _works(compiler: Compiler) -> bool:
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
        source = Path(folder) / "one.cpp"
        source.write_text('extern "C" float kw_one(float x) { return x + 1.0f; }\n')
        completed, _ = compile_file(compiler, source, Path(folder) / "one.so", FLAGS, seconds=20.0)
        return completed.returncode == 0 and (Path(folder) / "one.so").exists()
