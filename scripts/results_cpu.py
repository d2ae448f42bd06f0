"""Makes docs/results-cpu.md: every example through `kernelwright optimize`, one after the other, on an otherwise idle machine.

    .venv/bin/python scripts/results_cpu.py [--budget 60] [--only softmax,mlp]

What is kept of each example stands in docs/results-cpu.json, so that --only refreshes some rows and leaves the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
TABLE = ROOT / "docs" / "results-cpu.md"
KEPT = ROOT / "docs" / "results-cpu.json"
BASELINES = ("eager_default_allocator", "eager", "compile", "compile_max_autotune")

HEAD = """# Results on the examples (CPU)

Made by `make results` (`scripts/results_cpu.py`), {when}: one run of `kernelwright optimize` an example, budget {budget:.0f} s,
seed 0, on {cpu}, {isa}, {threads} threads, PyTorch {torch}, {compiler}.

Times are medians in milliseconds over interleaved rounds in fresh processes. *warm* is malloc told to keep freed pages (both
sides run so for the claim); *default* is malloc's default, where a large output is mapped and zeroed anew at each call. The
speed-up is against the best of eager (warm), torch.compile and its max-autotune, with its 95% interval; contract strict.
Errors (ours / PyTorch's) are RMS relative to the float64 answer, the worst case of the thorough
check. The limit is the longer of compulsory bytes
over the measured bandwidth and flops over the measured multiply-add peak; above 100% means that the data was partly in cache,
or that the bandwidth moved between the two measurements. Load average when the first example started: {load:.2f}.

| example | eager, default | eager, warm | compile | max-autotune | Kernelwright | speed-up [95%] | error | of limit | tried |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    wanted = [n for n in options.only.split(",") if n] or sorted(p.stem for p in EXAMPLES.glob("*.py"))
    load = os.getloadavg()[0]
    for name in wanted:
        print(f"{name} ...", file=sys.stderr, flush=True)
        kept[name] = run(name, options.budget)
        KEPT.write_text(json.dumps({k: kept[k] for k in sorted(kept)}, indent=1) + "\n")
        print(row(name, kept[name]), file=sys.stderr, flush=True)
    write(kept, options.budget, load)


def run(name: str, budget: float) -> dict[str, Any]:
    """One example; what the table needs of its outcome."""
    out = ROOT / "kernelwright-results" / name
    command = [
        sys.executable, "-m", "kernelwright", "optimize", str(EXAMPLES / f"{name}.py"), "--json", "--budget", str(budget),
        "--out", str(out),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name} failed: {done.stderr[-2000:]}")
    outcome = json.loads(done.stdout)
    measurement = outcome["measurement"] or {}
    certificate = outcome["certificate"] or {}
    found = {k: outcome[k] for k in ("better", "reason", "evaluated", "seconds")}
    found |= {k: measurement.get(k) for k in ("median_ns", "contestants", "threads", "noise_floor", "speedup")}
    return found | {k: certificate.get(k) for k in ("claim", "cases", "roofline", "machine", "versions", "issued")}


def row(name: str, result: dict[str, Any]) -> str:
    """One line of the table."""
    medians = result["median_ns"] or {}
    cells = [ms(medians.get(b)) for b in BASELINES]
    cells.append(ms(medians.get(result["contestants"][0])) if result["contestants"] else "n/a")
    if result["better"]:
        speed = result["claim"]["speedup"]
        cells.append(f"**{speed['estimate']:.2f}x** [{speed['low']:.2f}, {speed['high']:.2f}]")
        cells += [errors(result["cases"]), f"{result['roofline']['fraction']:.0%}"]
    else:
        cells += [f"baseline kept: {result['reason']}", "", ""]
    return f"| {name} | {' | '.join(cells)} | {result['evaluated']} |"


def ms(ns: float | None) -> str:
    return "n/a" if ns is None else f"{ns / 1e6:.3g}"


def errors(cases: list[dict[str, Any]]) -> str:
    judged = [c for c in cases if c["error"] is not None]
    if not judged:
        return "exact"
    worst = max(judged, key=lambda c: c["error"])
    return f"{worst['error']:.1e} / {worst['reference_error']:.1e}"


def write(kept: dict[str, Any], budget: float, load: float) -> None:
    """The page."""
    first = next((r for r in kept.values() if r["better"]), None)
    if first is None:
        raise SystemExit("no example was made faster: no page is written")
    machine, versions = first["machine"], first["versions"]
    head = HEAD.format(
        when=first["issued"][:10],
        budget=budget,
        cpu=machine["cpu"],
        isa=machine["isa"],
        threads=first["threads"],
        torch=versions["torch"],
        compiler=machine["compiler"].split("(", 1)[-1].rstrip(")"),
        load=load,
    )
    TABLE.write_text(head + "\n".join(row(n, kept[n]) for n in sorted(kept)) + "\n")


if __name__ == "__main__":
    main()
