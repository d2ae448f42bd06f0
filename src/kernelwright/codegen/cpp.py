"""The C++ printer: a Program as one header-free translation unit with the native entry of docs/adr/0001-native-entry.md.

What it does: prints every nest, the `kw_run_<i>` functions between library steps and `kw_prepare`, pastes the prelude
snippets that are used, and states the Manifest.
What it does not do: choose anything (see `ir.plan`), compile (see `targets.cpu`). Called by proposers and the optimiser.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.codegen import cpp_contract
from kernelwright.codegen.cpp_context import Used
from kernelwright.codegen.cpp_nest import Layout, print_launch, print_nest, print_prepare
from kernelwright.codegen.cpp_prelude import paste
from kernelwright.codegen.cpp_text import braces
from kernelwright.codegen.manifest import library_step, make_manifest, slots_of
from kernelwright.ir.tile import Nest, Packing, Program
from kernelwright.records import GeneratedStep, LibraryStep, Manifest

ARGUMENTS = "void* const* t, char* workspace, char* packed, const kw_pool* pool"

FRAME = """\
// What the threads of a nest share.
struct kw_frame {
  void* const* t;
  char* workspace;
  char* packed;
  const kw_pool* pool;
  long next;    // the first tile that no thread has taken
  bool serial;  // no other thread takes part
};

static void kw_launch(void (*worker)(void*), kw_frame* frame, long chunks, int wanted) {
  const kw_pool* const pool = frame->pool;
  long threads = wanted > 0 && wanted < pool->threads ? wanted : pool->threads;
  if (threads > chunks) threads = chunks;
  frame->next = 0;
  frame->serial = threads <= 1 || !pool->parallel || !pool->thread_num;
  if (frame->serial) worker(frame);
  else pool->parallel(worker, frame, (unsigned)threads, 0);
}"""


@dataclass(frozen=True)
class Printed:
    """The source text of a program and what a runner must know to call it."""

    source: str
    manifest: Manifest


def print_program(program: Program) -> Printed:
    """Print `program`. The same text serves every instruction set (KW_ISA_AVX512, KW_ISA_AVX2, KW_ISA_PORTABLE)."""
    layout, packed_bytes = _layout(program)
    used = Used()
    nests: list[str] = []
    for step in program.steps:
        if isinstance(step, Nest):
            nests += print_nest(program, step, layout, used)
    workers, calls = print_prepare(program, layout, used)
    runs, steps = _runs(program)
    prepare: list[str] = []
    if packed_bytes:
        head = 'extern "C" void kw_prepare(void* const* t, char* packed, const kw_pool* pool)'
        prepare = braces(head, ["kw_frame frame = {t, nullptr, packed, pool, 0, true};", *calls])
    text = [*_title(program), paste(used.snippets), "", FRAME if runs else "", "", *nests, *workers, *prepare, *runs]
    manifest = make_manifest(program, steps, (layout.workspace_bytes, layout.local_bytes, packed_bytes))
    return Printed("\n".join(text).rstrip() + "\n", manifest)


def _layout(program: Program) -> tuple[Layout, int]:
    """Places AHEAD panels after the workspace, scratch after the local area, PREPARED panels in `packed`."""
    workspace, packed, scratch = _aligned(program.workspace_bytes), 0, 0
    panels: dict[tuple[str, int, str], int] = {}
    for nest in program.steps:
        if not isinstance(nest, Nest):
            continue
        for number, stage in enumerate(nest.stages):
            if stage.leaf is None:
                continue
            scratch = max(scratch, cpp_contract.scratch_bytes(stage, nest, program))
            for panel in cpp_contract.packed_layout(stage, nest, program):
                key = (nest.name, number, panel.side)
                if panel.packing is Packing.PREPARED:
                    panels[key], packed = packed, packed + _aligned(panel.bytes)
                else:
                    panels[key], workspace = workspace, workspace + _aligned(panel.bytes)
    start = _aligned(program.local_bytes)
    return Layout(slots_of(program), workspace, start + _aligned(scratch), start, panels), packed


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def _runs(program: Program) -> tuple[list[str], tuple[GeneratedStep | LibraryStep, ...]]:
    """The kw_run functions, one for each run of nests between library calls, and all steps in order."""
    lines: list[str] = []
    steps: list[GeneratedStep | LibraryStep] = []
    pending: list[str] = []

    def close() -> None:
        if pending:
            symbol = f"kw_run_{sum(isinstance(s, GeneratedStep) for s in steps)}"
            body = ["kw_frame frame = {t, workspace, packed, pool, 0, true};", *pending]
            lines.extend(["", *braces(f'extern "C" void {symbol}({ARGUMENTS})', body)])
            steps.append(GeneratedStep(symbol))
            pending.clear()

    for step in program.steps:
        if isinstance(step, Nest):
            pending.extend(print_launch(program, step))
        else:
            close()
            steps.append(library_step(step))
    close()
    return lines, tuple(steps)


def _title(program: Program) -> list[str]:
    lines = [f"// {program.graph.name}: printed by Kernelwright. Schedule:"]
    lines += [f"//   {line}" for line in program.schedule.text().splitlines()] or ["//   (all defaults)"]
    return [*lines, ""]
