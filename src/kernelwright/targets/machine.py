"""The limits of this machine: cache sizes, peak arithmetic, bandwidth by size, the cost of a parallel region.

What it does: reads what the kernel tells, builds and runs `machine_probe.cpp`, reduces its samples to a `records.Machine`, and
keeps that as JSON. What it does not do: decide when to measure (see `targets.cpu`), or measure a candidate.

Reduction: rates take the upper quartile of their samples, times the lower one. A limit that was measured while others used the
cores would be too low, and a fraction of it above 1; a single best sample would be luck.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import msgspec

from kernelwright.errors import UserError
from kernelwright.records import Bandwidth, Machine, from_json, to_json
from kernelwright.sandbox.process import run
from kernelwright.targets.toolchain import ISA_FLAGS, Compiler, compile_file, first_error

PROBE = Path(__file__).with_name("machine_probe.cpp")
PROBE_FLAGS = ("-std=gnu++17", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-pthread")
PROBE_SECONDS = 3.0
LEAST_SHARE = 0.85  # of the cores, below which a measurement counts as disturbed
VECTOR_BYTES = {"avx512": 64, "avx2": 32, "portable": 16}

_MIB = 1 << 20
_AVX2 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@dataclass(frozen=True)
class Samples:
    """What the probe printed, in order."""

    rates: dict[str, list[float]]
    bandwidth: dict[int, list[tuple[float, float, float]]]


@dataclass(frozen=True)
class Measured:
    """A fresh measurement. `busy`: others used the cores meanwhile, so that the limits may be too low."""

    machine: Machine
    busy: bool


def host_isa() -> str:
    """The widest instruction set of this CPU that the printer knows: "avx512", "avx2" or "portable"."""
    flags = set(_cpuinfo().get("flags", "").split())
    if platform.machine() not in ("x86_64", "AMD64"):
        return "portable"
    return "avx512" if flags >= _AVX512 else "avx2" if flags >= _AVX2 else "portable"


def host_isas() -> tuple[str, ...]:
    """Every instruction set that this CPU runs, widest first."""
    names = tuple(ISA_FLAGS)
    return names[names.index(host_isa()) :]


def cpu_name() -> str:
    """The CPU's name with family, model and stepping: hypervisors often give unlike chips one name."""
    info = _cpuinfo()
    name = info.get("model name") or platform.processor() or platform.machine()
    numbers = [info.get(key) for key in ("cpu family", "model", "stepping")]
    return f"{name} (family {numbers[0]}, model {numbers[1]}, stepping {numbers[2]})" if all(numbers) else name


def stored_machine(folder: Path, compiler: Compiler, threads: int) -> Machine | None:
    """The machine kept in `folder` for this CPU, compiler and thread count; None where there is none that can be read.

    One that was measured while others used the cores serves only as long as the machine stays busy.
    """
    for busy in (False, True) if _is_busy() else (False,):
        try:
            return from_json(_file(folder, compiler, threads, busy).read_bytes(), Machine)
        except (OSError, msgspec.MsgspecError):
            continue
    return None


def keep_machine(folder: Path, compiler: Compiler, measured: Measured) -> Path:
    """Write the machine where `stored_machine` finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _file(folder, compiler, measured.machine.threads, measured.busy)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(to_json(measured.machine, indent=2) + "\n")
    partial.replace(path)
    return path


def measure(compiler: Compiler, threads: int) -> Measured:
    """Measure this machine with `threads` threads, about 6 s. Raises UserError where the probe does not build or run."""
    isa = host_isa()
    caches = cache_bytes()
    samples = _probe(compiler, isa, threads, _sizes(caches["L2"] * threads))
    amx = samples.rates.get("amx")
    machine = Machine(
        cpu=cpu_name(),
        isa=isa,
        vector_bytes=VECTOR_BYTES[isa],
        threads=threads,
        l1_bytes=caches["L1"],
        l2_bytes=caches["L2"],
        l3_bytes=caches["L3"],
        fma_gflops=_quartile(samples.rates["fma_all"], 0.75),
        fma_gflops_core=_quartile(samples.rates["fma_core"], 0.75),
        amx_bf16_gflops=_quartile(amx, 0.75) if amx else None,
        bandwidth=tuple(_bandwidth(size, rows) for size, rows in sorted(samples.bandwidth.items())),
        fork_join_us=_quartile(samples.rates["fork_join"], 0.25) if threads > 1 else 0.0,
        compiler=compiler.text(),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return Measured(machine, busy=_quartile(samples.rates["share"], 0.5) < LEAST_SHARE)


def cache_bytes() -> dict[str, int]:
    """Sizes of one core's L1 data and L2 cache and of the last level, in bytes.

    From sysfs, else from the C library; where neither tells (some containers), the sizes that every current server core has at
    least: 32 KiB, 512 KiB and, for the last level, 8 MiB.
    """
    sizes = {"L1": 32 << 10, "L2": 512 << 10, "L3": 8 * _MIB}
    names = {"L1": "SC_LEVEL1_DCACHE_SIZE", "L2": "SC_LEVEL2_CACHE_SIZE", "L3": "SC_LEVEL3_CACHE_SIZE"}
    for level, name in names.items():
        told = _sysfs_cache(level) or (os.sysconf(name) if name in os.sysconf_names else 0)
        if told > 0:
            sizes[level] = told
    return sizes


def _sysfs_cache(level: str) -> int:
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            number, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if f"L{number}" == level and kind != "Instruction":
            scale = {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 1)
            return int(size.rstrip("KM")) * scale
    return 0


def _cpuinfo() -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _sizes(l2_bytes: int) -> list[int]:
    """Buffer sizes: from what all L2 caches hold twice over up to 512 MiB, or an eighth of the free memory."""
    largest = min(512 * _MIB, max(8 * _MIB, _free_bytes() // 8))
    smallest = l2_bytes // 4
    steps = (size * _MIB for size in (1, 4, 8, 16, 32, 64, 128, 256, 512))
    return [smallest, *(size for size in steps if smallest < size <= largest)]


def _free_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 1 << 30
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 1 << 30)


def _probe(compiler: Compiler, isa: str, threads: int, sizes: list[int]) -> Samples:
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
        program = Path(folder) / "machine_probe"
        flags = (*PROBE_FLAGS, *ISA_FLAGS[isa], "-ldl")
        # An assembler that does not know AMX yet must not cost the rest of the measurement.
        for extra in (("-DKW_AMX",), ()):
            built, command = compile_file(compiler, PROBE, program, (*flags, *extra), seconds=60)
            if built.returncode == 0:
                break
        else:
            raise UserError(
                f"the probe of this machine does not compile: {first_error(built.stderr)}", f"the command was: {command}"
            )
        arguments = [str(program), str(threads), torch_openmp() or "-", str(PROBE_SECONDS), *map(str, sizes)]
        done = run(arguments, timeout=120)
        if done.returncode != 0:
            raise UserError(
                f"the probe of this machine failed with exit code {done.returncode}", done.stderr.strip()[:500] or None
            )
        return parse_samples(done.stdout)


def parse_samples(output: str) -> Samples:
    """The probe's lines."""
    rates: dict[str, list[float]] = defaultdict(list)
    bandwidth: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for name, *values in map(str.split, output.splitlines()):
        if name == "bandwidth":
            copied, streamed, was_read = map(float, values[1:])
            bandwidth[int(values[0])].append((copied, streamed, was_read))
        else:
            rates[name].append(float(values[0]))
    return Samples(dict(rates), dict(bandwidth))


def torch_openmp() -> str | None:
    """Path of the OpenMP runtime that torch brings along (torch is found, not imported); None where it brings none."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    found = sorted((package / "lib").glob("libgomp*")) + sorted(package.parent.glob("torch.libs/libgomp*"))
    return str(found[0]) if found else None


def _bandwidth(size: int, rows: list[tuple[float, float, float]]) -> Bandwidth:
    copied, streamed, was_read = (_quartile(column, 0.75) for column in map(list, zip(*rows, strict=True)))
    return Bandwidth(bytes=size, copy_gbps=copied, stream_gbps=streamed, read_gbps=was_read)


def _quartile(values: list[float], share: float) -> float:
    return round(sorted(values)[round(share * (len(values) - 1))], 3)


def _is_busy() -> bool:
    """Whether more than half of the cores were in use over the last minute."""
    return os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)


def _file(folder: Path, compiler: Compiler, threads: int, busy: bool) -> Path:
    key = "\x00".join((cpu_name(), str(threads), compiler.text(), PROBE.read_text()))
    return folder / f"machine-{hashlib.sha256(key.encode()).hexdigest()[:16]}{'-busy' if busy else ''}.json"
