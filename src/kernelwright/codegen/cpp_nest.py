"""A nest as one C++ function: tile loops, threads, pointers, and the stages inside.

What it does: prints the worker that takes chunks of tiles from a shared counter, and the call that launches it.
What it does not do: the loops inside a tile (`cpp_stage`, `cpp_contract`). Called by `cpp`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.codegen import cpp_contract
from kernelwright.codegen.cpp_context import C_TYPE, Context, Panel, Used, identifier
from kernelwright.codegen.cpp_stage import print_stage
from kernelwright.codegen.cpp_text import braces
from kernelwright.ir.tile import Loop, Nest, Packing, Place, Program, Stage, Store


@dataclass(frozen=True)
class Layout:
    """Where things lie: slots of arguments, where local areas and panels start, bytes of one local area."""

    slots: tuple[str, ...]
    workspace_bytes: int
    local_bytes: int
    scratch_offset: int  # of the leaf's scratch within a local area
    panels: dict[tuple[str, int, str], int]  # (nest, stage, side) -> offset in the workspace (AHEAD) or in `packed`


def tiles(loop: Loop) -> int:
    """The number of tiles of a loop."""
    return -(-loop.extent // loop.step)


def threads_wanted(nest: Nest) -> int:
    """0 = all, 1 = serial."""
    return nest.threads if nest.parallel else 1


def print_nest(program: Program, nest: Nest, layout: Layout, used: Used) -> list[str]:
    """The worker function of a nest, and of its AHEAD panels before it."""
    lines: list[str] = []
    inner: list[str] = []
    tensors = Used(used.snippets, {}, 0)
    for number, stage in enumerate(nest.stages):
        context = _context(program, nest, number, layout, tensors)
        if stage.contract is not None and stage.leaf is not None:
            for panel in cpp_contract.packed_layout(stage, nest, program):
                if panel.packing is Packing.AHEAD:
                    lines += _panel_worker(program, nest, number, panel, layout=layout, used=used)
            inner += braces("", cpp_contract.print_contract_stage(stage, nest, context))
        else:
            inner += print_stage(stage, nest, context)
    lines += _header(nest)
    lines += _worker(f"nest_{identifier(nest.name)}", program, nest, layout, used=tensors,
                     body=_tile_loops(nest, inner))  # fmt: skip
    return [*lines, ""]


def print_launch(program: Program, nest: Nest) -> list[str]:
    """The statements of kw_run that run a nest."""
    lines = []
    for number, stage in enumerate(nest.stages):
        if stage.leaf is not None:
            for panel in cpp_contract.packed_layout(stage, nest, program):
                if panel.packing is Packing.AHEAD:
                    name = _panel_name(nest, number, panel)
                    lines.append(f"kw_launch({name}, &frame, {panel.slices}, {nest.threads});")
    lines.append(f"kw_launch(nest_{identifier(nest.name)}, &frame, {_chunks(nest)}, {threads_wanted(nest)});")
    return lines


def print_prepare(program: Program, layout: Layout, used: Used) -> tuple[list[str], list[str]]:
    """The workers of PREPARED panels, and the statements of kw_prepare."""
    workers: list[str] = []
    calls: list[str] = []
    for nest in program.steps:
        for number, stage in enumerate(nest.stages if isinstance(nest, Nest) else ()):
            if stage.leaf is None or not isinstance(nest, Nest):
                continue
            for panel in cpp_contract.packed_layout(stage, nest, program):
                if panel.packing is Packing.PREPARED:
                    workers += _panel_worker(program, nest, number, panel, layout=layout, used=used)
                    calls.append(f"kw_launch({_panel_name(nest, number, panel)}, &frame, {panel.slices}, 0);")
    return workers, calls


def _context(program: Program, nest: Nest, number: int, layout: Layout, used: Used) -> Context:
    context = Context(program, nest, nest.stages[number], used)
    if nest.stages[number].leaf is not None:
        for panel in cpp_contract.packed_layout(nest.stages[number], nest, program):
            area = "packed" if panel.packing is Packing.PREPARED else "workspace"
            offset = layout.panels[nest.name, number, panel.side]
            context.panels[panel.side] = f"((float*)(frame.{area} + {offset}))"
    return context


def _panel_name(nest: Nest, number: int, panel: Panel) -> str:
    return f"pack_{identifier(nest.name)}_{number}_{panel.side}"


def _panel_worker(program: Program, nest: Nest, number: int, panel: Panel, *, layout: Layout, used: Used) -> list[str]:
    tensors = Used(used.snippets, {}, 0)
    context = _context(program, nest, number, layout, tensors)
    prepared = panel.packing is Packing.PREPARED
    printer = cpp_contract.print_prepare if prepared else cpp_contract.print_ahead
    body = printer(nest.stages[number], nest, context, panel)
    when = "once, when the weights are known" if prepared else "before the nest"
    lines = [f"// Packs the {panel.side} side of stage {number} of nest {nest.name}, {when}."]
    return [*lines, *_worker(_panel_name(nest, number, panel), program, nest, layout, used=tensors,
                             body=_counted(body, "slice", panel.slices, 1)), ""]  # fmt: skip


# -- the worker ---------------------------------------------------------------------------------------------------------


def _worker(name: str, program: Program, nest: Nest, layout: Layout, *, used: Used, body: list[str]) -> list[str]:
    text = "\n".join(body)
    lines = ["kw_frame& frame = *(kw_frame*)data;"]
    if re.search(r"\bpool\b", text):
        lines.append("const kw_pool* const pool = frame.pool;")
    local = any(program.buffers[t].place is Place.LOCAL for t in used.tensors) or re.search(r"\bscratch\b", text)
    if local or re.search(r"\bthread\b", text):
        lines.append("const int thread = frame.serial ? 0 : frame.pool->thread_num();")
    if local:
        lines.append(f"char* const local = frame.workspace + {layout.workspace_bytes} + thread * {layout.local_bytes}l;")
    if re.search(r"\bscratch\b", text):
        lines.append(f"char* const scratch = local + {layout.scratch_offset};")
    outputs = [op.output for stage in nest.stages for op in stage.ops]
    written = {program.buffers[o].alias or o for o in outputs}
    for tensor in used.tensors:
        lines.append(_pointer(program, layout, tensor, tensor in written))
    lines += body
    if any(stage.store is Store.STREAM for stage in nest.stages):
        lines.append("__builtin_ia32_sfence();")
    return braces(f"static void {name}(void* data)", lines)


def _pointer(program: Program, layout: Layout, tensor: str, written: bool) -> str:
    buffer = program.buffers[tensor]
    kind = f"{'' if written else 'const '}{C_TYPE[program.tensors[tensor].dtype]}*"
    source = {
        Place.ARGUMENT: lambda: f"frame.t[{layout.slots.index(tensor)}]",
        Place.WORKSPACE: lambda: f"(frame.workspace + {buffer.offset})",
        Place.LOCAL: lambda: f"(local + {buffer.offset})",
    }[buffer.place]()
    alone = " __restrict" if buffer.place is Place.ARGUMENT else ""  # planned memory is shared over time
    return f"{kind}{alone} const p_{identifier(tensor)} = ({kind}){source};"


def _chunks(nest: Nest) -> int:
    total = 1
    for loop in nest.loops[: nest.parallel]:
        total *= tiles(loop)
    return -(-total // max(nest.chunk, 1))


def _counted(body: list[str], name: str, total: int, chunk: int) -> list[str]:
    """A loop over [0, total) whose pieces threads take from the frame's counter."""
    take = f"for (long {name}_c; ({name}_c = __atomic_fetch_add(&frame.next, {chunk}, __ATOMIC_RELAXED)) < {total};)"
    if chunk == 1:
        return braces(take, [f"const long {name} = {name}_c;", *body])
    stop = f"{name}_c + {chunk}" if total % chunk == 0 else f"({name}_c + {chunk} < {total} ? {name}_c + {chunk} : {total})"
    return braces(take, braces(f"for (long {name} = {name}_c; {name} < {stop}; ++{name})", body))


def _tile_loops(nest: Nest, body: list[str]) -> list[str]:
    """The loops over tiles: the first `parallel` ones as one counted range, the others as they are."""
    for loop in reversed(nest.loops[nest.parallel :]):
        name = identifier(loop.axis)
        if loop.step >= loop.extent:
            body = [f"const long {name}_0 = 0, {name}_end = {loop.extent};", *body]
        else:
            head = f"for (long {name}_0 = 0; {name}_0 < {loop.extent}; {name}_0 += {loop.step})"
            body = braces(head, [f"const long {name}_end = {_end(loop)};", *body])
    if nest.parallel:
        heads, total = [], 1
        for loop in reversed(nest.loops[: nest.parallel]):
            name, count = identifier(loop.axis), tiles(loop)
            quotient = "tile" if total == 1 else f"tile / {total}"
            outermost = loop is nest.loops[0]
            index = "0" if count == 1 else quotient if outermost else f"{quotient} % {count}"
            base = index if loop.step == 1 or count == 1 else f"{index} * {loop.step}"
            heads.append(f"const long {name}_0 = {base}, {name}_end = {_end(loop)};")
            total *= count
        body = _counted([*reversed(heads), *body], "tile", total, max(nest.chunk, 1))
    return _without_unused(body, nest)


def _end(loop: Loop) -> str:
    name = identifier(loop.axis)
    if loop.step >= loop.extent:
        return str(loop.extent)
    if loop.extent % loop.step == 0:
        return f"{name}_0 + {loop.step}"
    return f"({name}_0 + {loop.step} < {loop.extent} ? {name}_0 + {loop.step} : {loop.extent})"


def _without_unused(body: list[str], nest: Nest) -> list[str]:
    """Drop tile variables that no statement uses."""
    text = "\n".join(body)
    for loop in nest.loops:
        name = identifier(loop.axis)
        uses_end = len(re.findall(rf"\b{name}_end\b", text)) > 1
        base = re.escape(f", {name}_end = ")
        if not uses_end:
            body = [re.sub(rf"{base}[^;]*;", ";", line) for line in body]
            body = [line for line in body if not re.match(rf"\s*const long {name}_end = [^;]*;$", line)]
            text = "\n".join(body)
        if len(re.findall(rf"\b{name}_0\b", text)) <= 1:
            body = [line for line in body if not re.match(rf"\s*const long {name}_0 = [^;,]*;$", line)]
            text = "\n".join(body)
    return body


def _header(nest: Nest) -> list[str]:
    loops = ", ".join(f"{loop.axis} 0..{loop.extent} by {loop.step}" for loop in nest.loops) or "none"
    lines = [f"// Nest {nest.name}. Tile loops: {loops}; the first {nest.parallel} in parallel, {nest.chunk} tiles a chunk."]
    return lines + [f"// Stage {number}: {_about(stage)}." for number, stage in enumerate(nest.stages)]


def _about(stage: Stage) -> str:
    if stage.leaf is not None:
        leaf = stage.leaf
        packing = f"{leaf.pack_m.value}/{leaf.pack_n.value} packing"
        return f"contraction, {leaf.mr} x {leaf.nr} vectors, K blocks of {leaf.kc}, {packing}"
    parts = [f"vectors along {stage.vector} by {stage.unroll}" if stage.vector else "scalar"]
    if stage.order:
        parts.append(f"loops {', '.join(stage.order)}")
    if stage.store is Store.STREAM:
        parts.append("non-temporal stores")
    return ", ".join(parts)
