"""The bench on a suite of two tasks with a stand-in for optimize: rows, resuming, statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.bench.run import BenchSettings, bench
from kernelwright.bench.statistics import Row, format_result, geomean, summarize
from kernelwright.bench.suite import read_suite
from kernelwright.errors import UserError
from kernelwright.events import OnEvent
from kernelwright.optimize import Outcome, Request
from kernelwright.records import Interval, Measurement, Precision, Sample, Task

ROOT = Path(__file__).resolve().parents[2]
TASK = Task("t", "t.py", "Model", False, None, False, Precision.STRICT, (), "0")


def row(name: str, speedup: float | None, family: str = "f") -> Row:
    against = {} if speedup is None else {"eager": speedup}
    return Row(name, family, "op", speedup is not None, (speedup or 0) > 1, "", speedup, None, against, 1.0)


def outcome() -> Outcome:
    speeds = {"eager": Interval(2.0, 1.9, 2.1), "compile": Interval(1.6, 1.5, 1.7)}
    times = {"0123": 1.0, "eager": 2.0, "compile": 1.6}
    measured = Measurement(tuple(times), (Sample(0, (1.0, 2.0, 1.6)),), times, speeds, 0.01, 2, "warm", 0.1)
    return Outcome("run", TASK, True, "", measured, None, None, 3, 1.0, ())


def write_suite(folder: Path) -> None:
    (folder / "a.py").write_text("")
    (folder / "b.py").write_text("")
    entries = "".join(f'[[task]]\nname = "{n}"\nfamily = "f"\nlevel = "op"\n' for n in "ab")
    (folder / "suite.toml").write_text(f'name = "two"\n{entries}')


def test_a_failing_task_is_a_row_and_a_second_run_runs_nothing(tmp_path: Path) -> None:
    write_suite(tmp_path)
    ran: list[str] = []

    def run(request: Request, on_event: OnEvent) -> Outcome:
        ran.append(Path(request.spec).stem)
        if ran[-1] == "b":
            raise UserError("no such thing")
        return outcome()

    settings = BenchSettings(out=tmp_path / "out")
    first = bench(tmp_path, settings, lambda _: None, run)
    assert ran == ["a", "b"]
    assert first.failures == {"b": "no such thing"}
    assert first.whole.success_rate == 0.5
    assert first.rows[0].speedup == 1.6
    assert first.rows[0].best_baseline == "compile"
    assert bench(tmp_path, settings, lambda _: None, run) == first
    assert ran == ["a", "b"]


def test_fast_p_counts_what_failed_as_not_fast() -> None:
    result = summarize("s", [row("a", 3.0), row("b", 0.75), row("c", None, "g"), row("d", 1.2)])
    assert result.whole.fast == {"0.8": 0.5, "1": 0.5, "1.5": 0.25, "2": 0.25}
    assert result.whole.counted == 3
    assert [s.group for s in result.families] == ["f", "g"]
    assert "failed: c" in format_result(result)


def test_geomean_of_equal_values_has_no_width() -> None:
    assert geomean([]) is None
    found = geomean([2.0, 2.0])
    assert found is not None
    assert (found.low, found.estimate, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_a_folder_without_an_index_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"suite\.toml"):
        read_suite(tmp_path)


def test_the_core_suite_names_every_file_once() -> None:
    suite = read_suite(ROOT / "suites" / "core")
    assert len(suite.tasks) >= 150
    assert {t.path for t in suite.tasks} == set((ROOT / "suites" / "core").rglob("*.py"))
