"""`kernelwright targets`: what this machine can truly do, and its measured limits.

What it does: asks each target for its capabilities (each proven by a good and a bad kernel) and prints them.
Called by `cli.main`.
"""

from __future__ import annotations

import click

from kernelwright import settings
from kernelwright.records import Machine, to_json
from kernelwright.sandbox.isolation import detect
from kernelwright.targets.cpu import CpuTarget


def show_targets(measure: bool, threads: int | None, as_json: bool) -> None:
    """Print the capabilities and limits of every target."""
    configured = settings.load()
    target = CpuTarget(configured.home, threads or configured.threads, configured.compiler)
    capabilities = target.capabilities()
    machine = target.machine(again=measure)
    isolation = detect()
    if as_json:
        click.echo(f'{{"cpu": {{"capabilities": {to_json(capabilities)}, "machine": {to_json(machine)}}}}}')
        return
    from kernelwright.cli.display import results, table

    out = results()
    rows = [(e.kind.value, e.subject, e.status.value, e.summary) for e in capabilities]
    out.print(table("cpu", ("capability", "subject", "status", "what was seen"), rows, prose=True))
    out.print()
    out.print(table("measured limits", ("limit", "value"), _limits(machine), prose=True))
    out.print()
    sizes = [
        (f"{b.bytes / 2**20:.3g} MiB", f"{b.read_gbps:.1f}", f"{b.copy_gbps:.1f}", f"{b.stream_gbps:.1f}")
        for b in machine.bandwidth
    ]
    out.print(table("bandwidth, GB/s, all threads", ("buffer", "read", "copy", "copy, non-temporal"), sizes))
    out.print(f"\nisolation: {isolation.statement}")


def _limits(machine: Machine) -> list[tuple[str, ...]]:
    amx = "not granted by this machine" if machine.amx_bf16_gflops is None else f"{machine.amx_bf16_gflops:.0f} GFLOP/s"
    return [
        ("cpu", machine.cpu),
        ("instruction set", f"{machine.isa}, {machine.vector_bytes} byte vectors, {machine.threads} threads"),
        ("f32 multiply-add", f"{machine.fma_gflops:.0f} GFLOP/s, one core {machine.fma_gflops_core:.0f}"),
        ("AMX bf16", amx),
        ("caches", f"L1 {machine.l1_bytes >> 10} KiB, L2 {machine.l2_bytes >> 10} KiB, L3 {machine.l3_bytes >> 20} MiB"),
        ("fork and join", f"{machine.fork_join_us:.1f} us"),
        ("compiler", machine.compiler),
        ("measured", machine.measured_at),
    ]
