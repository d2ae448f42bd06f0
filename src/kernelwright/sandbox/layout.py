"""What a sandbox sees of the host, and the command that starts it.

What it does: lists the files that Python, torch and a compiler need, and turns an Isolation with Mounts into a bubblewrap
command line or into Landlock's lists, with a clean environment. What it does not do: start anything (zygote).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import kernelwright
from kernelwright.sandbox.isolation import Isolation, Mounts, Strength, mapped_user

SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin")
SYSTEM_FILES = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
    "/sys/devices/system/cpu", "/sys/devices/system/node",
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
START = (
    "import sys; sys.path[:0] = [{root!r}]; sys.path += {extra!r}; "
    "from kernelwright.sandbox.zygote_main import main; main()"
)


@dataclass(frozen=True)
class Interpreter:
    """The Python of a zygote. `search`: further folders of modules, mounted read-only; `preload`: imported before any fork."""

    python: Path
    preload: tuple[str, ...]
    threads: int
    environment: Mapping[str, str]
    search: tuple[Path, ...]


@dataclass(frozen=True)
class Layout:
    """Everything that the start of a zygote needs besides its configuration."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    read_only: tuple[Path, ...]
    writable: tuple[Path, ...]
    drops_root: bool


def lay_out(isolation: Isolation, mounts: Mounts, interpreter: Interpreter, scratch: Path) -> Layout:
    """The command up to `python -c ...`; the caller appends the configuration. `scratch` is /tmp under bubblewrap."""
    runtime = _runtime(interpreter.python)
    root = Path(kernelwright.__file__).parent
    read_only = _existing((*runtime, root, *interpreter.search, *mounts.read_only))
    writable = _existing(mounts.writable)
    clean = _environment(interpreter.threads, scratch) | dict(interpreter.environment)
    sites = [path for path in runtime if path.name.endswith("-packages")]
    code = START.format(root=str(root.parent), extra=[str(path) for path in (*sites, *interpreter.search)])
    start = (str(interpreter.python), "-I", "-c", code)
    if isolation.strength is not Strength.BUBBLEWRAP:
        # Landlock itself keeps the memory, files and environment of processes outside closed in /proc.
        system = _existing(Path(name) for name in (*SYSTEM, *SYSTEM_FILES, "/proc"))
        others = os.geteuid() == 0 and all(_open_to_others(path) for path in read_only)
        devices = tuple(Path(name) for name in DEVICES)
        return Layout(start, clean, (*system, *read_only), (*writable, scratch, *devices), others)
    if isolation.drops_root and not all(_open_to_others(path, parents=False) for path in (*read_only, *writable)):
        isolation = mapped_user(isolation)
    command = (*isolation.bwrap, *_binds(read_only, writable), "--", *start)
    return Layout(command, clean, read_only, writable, isolation.drops_root)


def _runtime(python: Path) -> tuple[Path, ...]:
    """The interpreter's own folders: its prefixes, where its links lead, and site folders outside of them."""
    prefixes = [Path(sys.prefix), Path(sys.base_prefix), python.parent.parent, python.resolve().parent.parent]
    sites = [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    found: list[Path] = []
    for path in (*prefixes, *sites):
        system = any(path.is_relative_to(name) for name in SYSTEM)
        if path.is_dir() and not system and not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return tuple(found)


def _binds(read_only: Sequence[Path], writable: Sequence[Path]) -> tuple[str, ...]:
    """bubblewrap's arguments for the file system, outer folders before inner ones."""
    arguments = ["--die-with-parent", "--new-session", "--as-pid-1"]
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), name]
        elif path.exists():
            arguments += ["--ro-bind", name, name]
    for name in SYSTEM_FILES:
        arguments += ["--ro-bind-try", name, name]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    binds = [("--ro-bind", path) for path in read_only] + [("--bind", path) for path in writable]
    made = {Path("/"), Path("/tmp"), *map(Path, SYSTEM)}
    for option, path in sorted(binds, key=lambda bind: len(bind[1].parts)):
        for parent in reversed(path.parents):  # bubblewrap itself would make them for its own user only
            if parent not in made and not any(parent.is_relative_to(bound) for _, bound in binds):
                arguments += ["--perms", "0755", "--dir", str(parent)]
                made.add(parent)
        arguments += [option, str(path), str(path)]
    return (*arguments, "--remount-ro", "/", "--chdir", "/tmp")


def _environment(threads: int, scratch: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "USER": "nobody",
        "LOGNAME": "nobody",
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",  # numpy's own pool starts at import; a fork must not lose threads
    }


def _existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path.absolute() for path in paths if path.exists()))


def _open_to_others(path: Path, parents: bool = True) -> bool:
    """Whether a user without rights may read it. `parents`: the folders above count too (no mount of its own)."""
    mode = path.stat().st_mode
    own = bool(mode & stat.S_IROTH) and (bool(mode & stat.S_IXOTH) or not path.is_dir())
    return own and (not parents or all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents))
