"""Which tasks of a suite the default plan covers: capture, plan, print, compile, run, compare with eager against float64.

    python scripts/coverage.py suites/core [--only FAMILY_OR_NAME] [--seconds 90] [--json FILE]

What it does: a process a task with a time limit, one after the other; prints ok, wrong or failed with the reason, and the
library calls that were left. What it does not do: isolate (the suite is our own code), search, or time anything.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

RMS_FACTOR, MAX_FACTOR = 2.0, 4.0


def main() -> int:
    """The table; exit status 1 where a task is wrong or failed."""
    options = _options()
    suite = Path(options.suite)
    if options.task:
        print(json.dumps(check(suite / f"{options.task}.py", options.task)))
        return 0
    tasks = tomllib.loads((suite / "suite.toml").read_text())["task"]
    chosen = [t for t in tasks if options.only is None or options.only in (t["family"], t["name"])]
    found = []
    for task in chosen:
        row = _in_process(suite, task["name"], options.seconds)
        found.append({**task, **row})
        print(f"{row['state']:7s} {task['name']:42s} {' '.join(row['library']):50s} {row['reason']}", flush=True)
    print("\n" + ", ".join(f"{state} {n}" for state, n in Counter(r["state"] for r in found).most_common()))
    whole = [r for r in found if r["state"] == "ok" and not r["generated"]]
    print(f"ok with something generated: {sum(r['state'] == 'ok' and r['generated'] for r in found)} of {len(found)}")
    print("library calls as a whole: " + ", ".join(r["name"] for r in whole))
    calls = Counter(name for r in found for name in r["library"])
    print("library calls left: " + ", ".join(f"{name} {n}" for name, n in calls.most_common()))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    return 0 if all(r["state"] == "ok" for r in found) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--only", help="a family or a task's name")
    parser.add_argument("--seconds", type=float, default=90.0, help="time limit a task")
    parser.add_argument("--json", help="write the rows here")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_process(suite: Path, name: str, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-B", __file__, str(suite), "--task", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"state": "failed", "reason": f"took longer than {seconds:.0f} s", "library": [], "generated": 0}
    if done.returncode == 0:
        row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return row
    last = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
    return {"state": "failed", "reason": last[0][:300], "library": [], "generated": 0}


def check(path: Path, name: str) -> dict[str, Any]:
    """One task in this process: its state, the reason, the library calls left and the number of generated steps."""
    import torch

    from kernelwright import settings as configuration
    from kernelwright.capture.export import capture
    from kernelwright.codegen.cpp import print_program
    from kernelwright.ir.plan import plan
    from kernelwright.ir.schedule import Schedule
    from kernelwright.records import Candidate, GeneratedStep, LibraryStep, to_json
    from kernelwright.runtime.runner import Runner
    from kernelwright.targets.base import Compiled
    from kernelwright.targets.cpu import CpuTarget

    torch.set_num_threads(2)
    config = configuration.load()
    target = CpuTarget(config.home, 2, config.compiler)
    module, inputs = _task(path)
    with torch.no_grad():
        kept = [x.clone() for x in inputs]
        captured = capture(module, inputs, name.replace("/", "_"))
        printed = print_program(plan(captured.graph, Schedule.of({}), target.machine()))
        steps = printed.manifest.steps
        row: dict[str, Any] = {
            "state": "ok",
            "reason": "",
            "library": sorted({s.target.removeprefix("aten.") for s in steps if isinstance(s, LibraryStep)}),
            "generated": sum(isinstance(s, GeneratedStep) for s in steps),
            "reasons": [list(r) for r in captured.library_reasons],
        }
        with tempfile.TemporaryDirectory() as folder:
            built = target.compile(Candidate("cpu", printed.source, printed.manifest), Path(folder))
            if not isinstance(built, Compiled):
                return {**row, "state": "failed", "reason": "compiler: " + built.log[:200]}
            manifest = json.loads(to_json(printed.manifest))
            runner = Runner(built.so_path, manifest, _constants(captured.graph))
            state = module.state_dict(keep_vars=True)
            runner.set_weights([state[w["key"]].detach() for w in manifest["weights"]])
            ours = runner(inputs)
        eager = module(*inputs)
        exact = _double(module)(*(x.double() if x.is_floating_point() else x for x in inputs))
    if any(not torch.equal(a, b) and not torch.isnan(a).any() for a, b in zip(inputs, kept, strict=True)):
        return {**row, "state": "wrong", "reason": "an input was changed"}
    reasons = [r for r in map(_difference, _flat(ours), _flat(eager), _flat(exact)) if r]
    return {**row, "state": "wrong", "reason": "; ".join(reasons)} if reasons else row


def _task(path: Path) -> tuple[Any, list[Any]]:
    import torch

    space: dict[str, Any] = {"__name__": "task"}
    torch.manual_seed(0)
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space["Model"](*space["get_init_inputs"]()).eval(), space["get_inputs"]()


def _double(module: Any) -> Any:
    import copy

    return copy.deepcopy(module).double()


def _constants(graph: Any) -> dict[str, Any]:
    import torch

    from kernelwright.task.reference import TORCH_DTYPES

    found = {}
    for name, tensor in graph.tensors.items():
        if tensor.source in graph.constants:
            data = bytearray(graph.constants[tensor.source])
            value = torch.frombuffer(data, dtype=TORCH_DTYPES[tensor.dtype]) if data else torch.empty(0)
            found[name] = found[tensor.source] = value.reshape(tensor.shape)
    return found


def _flat(value: Any) -> list[Any]:
    import torch

    return [value] if isinstance(value, torch.Tensor) else list(value)


def _difference(ours: Any, eager: Any, exact: Any) -> str:
    """Why `ours` is not as near to `exact` as `eager` is (within the factors and a floor of rounding), or ""."""
    import torch

    if ours.shape != eager.shape or ours.dtype != eager.dtype:
        return f"{tuple(ours.shape)} {ours.dtype} instead of {tuple(eager.shape)} {eager.dtype}"
    if not eager.is_floating_point():
        differ = int((ours != eager).sum())
        return f"{differ} of {ours.numel()} differ" if differ else ""
    same = (ours == eager) | (torch.isnan(ours) & torch.isnan(eager))
    mine = torch.where(same, 0.0, (ours.double() - exact.double()).abs())
    scale = float(exact.double().nan_to_num(0.0, 0.0, 0.0).pow(2).mean().sqrt())
    floor = 8 * torch.finfo(eager.dtype).eps * max(scale, 1e-30)
    rms, rms_theirs = (
        float(mine.pow(2).mean().sqrt()),
        float((eager.double() - exact.double()).nan_to_num().pow(2).mean().sqrt()),
    )
    if not rms <= RMS_FACTOR * rms_theirs + floor:
        return f"rms error {rms:.1e}, eager's own {rms_theirs:.1e}, scale {scale:.1e}"
    worst, worst_theirs = float(mine.max()), float((eager.double() - exact.double()).nan_to_num().abs().max())
    return "" if worst <= MAX_FACTOR * worst_theirs + 8 * floor else f"max error {worst:.1e}, eager's own {worst_theirs:.1e}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    sys.exit(main())
