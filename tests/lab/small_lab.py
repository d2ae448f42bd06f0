"""A Lab on a small reference, with a target whose limits are given instead of measured."""

from __future__ import annotations

import time
from pathlib import Path

from kernelwright.archive.store import Archive
from kernelwright.events import Event
from kernelwright.lab.budget import Budget
from kernelwright.lab.lab import Lab, LabSettings
from kernelwright.records import Bandwidth, Candidate, GeneratedStep, Machine, Manifest, TensorSpec
from kernelwright.sandbox.isolation import detect
from kernelwright.sandbox.limits import Limits
from kernelwright.targets.cpu import CpuTarget
from kernelwright.targets.machine import host_isa
from kernelwright.task.load import load_task

ROWS, COLUMNS = 48, 70

REFERENCE = f"""
import torch

class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return torch.relu(x * self.weight) + 0.5

def get_inputs():
    return [torch.randn({ROWS}, {COLUMNS})]

def get_init_inputs():
    return [{COLUMNS}]
"""

KERNEL = f"""
struct kw_pool {{ void (*parallel)(void (*)(void*), void*, unsigned, unsigned); int (*thread_num)(void); int threads; }};
static int calls = 0;
extern "C" void kw_run_0(void* const* t, char*, char*, const kw_pool*) {{
    float* x = (float*)t[0]; const float* w = (const float*)t[1]; float* y = (float*)t[2];
    const int rows = {ROWS}, columns = {COLUMNS};
    calls++;
    /*BEFORE*/
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {{
            float v = x[i * columns + j] * w[j];
            v = (v > 0.0f || v != v ? v : 0.0f) + 0.5f;
            /*EACH*/
            y[i * columns + j] = v;
        }}
    /*AFTER*/
}}
"""


class GivenTarget(CpuTarget):
    """The cpu target with limits that nobody measured."""

    def machine(self, again: bool = False) -> Machine:
        return Machine(
            cpu="test", isa=host_isa(), vector_bytes=32, threads=1, l1_bytes=32 << 10, l2_bytes=512 << 10, l3_bytes=1 << 20,
            fma_gflops=10.0, fma_gflops_core=10.0, amx_bf16_gflops=None, bandwidth=(Bandwidth(1 << 20, 10.0, 10.0, 10.0),),
            fork_join_us=1.0, compiler="test", measured_at="",
        )  # fmt: skip


def kernel(before: str = "", each: str = "", after: str = "", source: str = KERNEL, **changes: object) -> Candidate:
    """The right kernel with something put into it."""
    text = source.replace("/*BEFORE*/", before).replace("/*EACH*/", each).replace("/*AFTER*/", after)
    x = TensorSpec("x", (ROWS, COLUMNS), "f32")
    w = TensorSpec("w", (COLUMNS,), "f32", key="weight")
    y = TensorSpec("y", (ROWS, COLUMNS), "f32")
    manifest = Manifest(
        inputs=(x,), weights=(w,), constants=(), outputs=(y,), temporaries=(), slots=("x", "w", "y"), returns=("y",),
        output_tree="tensor", steps=(GeneratedStep("kw_run_0"),), workspace_bytes=0, local_bytes=0, packed_bytes=0,
    )  # fmt: skip
    values: dict[str, object] = {"target": "cpu", "source": text, "manifest": manifest} | changes
    return Candidate(**values)  # type: ignore[arg-type]


def make_lab(folder: Path, reference: str, events: list[Event] | None = None, memory: int = 8 << 30) -> Lab:
    """A Lab in `folder` on the reference whose text is given."""
    file = folder / "reference.py"
    file.write_text(reference)
    task = load_task(str(file))
    archive = Archive(folder / "archive.sqlite")
    settings = LabSettings(
        folder=folder / "objects", threads=1, rounds=16, least_rounds=12, race_seconds=5.0, limits=Limits(memory_bytes=memory)
    )
    run = archive.begin_run(task, "cpu", {}, 0, [])
    heard = events if events is not None else []
    return Lab(
        task, GivenTarget(folder / "cache", 1), archive, detect(), settings, run=run,
        budget=Budget(600.0, None, time.monotonic), on_event=heard.append,
    )  # fmt: skip
