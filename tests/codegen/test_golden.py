"""Golden text of representative programs: a change of the printer shows as a diff of C++.

Refresh with `pytest tests/codegen --update-golden`. Each is compiled without warnings for all instruction sets.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import native
import programs as p
import pytest

from kernelwright.codegen.cpp import print_program
from kernelwright.ir.graph import Graph
from kernelwright.ir.plan import plan
from kernelwright.ir.schedule import Schedule

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS: dict[str, Callable[[], Graph]] = {
    "gelu": lambda: p.gelu(64, 1000),
    "softmax": lambda: p.softmax(64, 1024),
    "layernorm": lambda: p.layernorm(64, 1000),
    "rmsnorm_middle": lambda: p.rmsnorm_middle(4, 64, 196),
    "cumsum": lambda: p.cumsum(64, 4096),
    "cumsum_rows": lambda: p.cumsum_rows(64, 1000),
    "argmax": lambda: p.argmax(64, 4096),
    "maxpool": lambda: p.maxpool(16, 112),
    "depthwise": lambda: p.depthwise(16, 56),
    "gather": lambda: p.gather(100, 64, 200),
    "causal": lambda: p.causal(64, 100),
    "total": lambda: p.total(64, 1000),
    "halves": lambda: p.halves(16, 100),
    "long_sum": lambda: p.dot_rows(4, 100000),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    printed = print_program(plan(PROGRAMS[name](), Schedule(), p.MACHINE))
    path = GOLDEN / f"{name}.cpp"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(printed.source)
    assert printed.source == path.read_text(), "the printer's text changed: check it, then --update-golden"
    for isa in native.ISA:
        native.compile_printed(printed, tmp_path, isa)
