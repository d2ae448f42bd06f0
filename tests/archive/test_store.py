"""The archive: append-only, told apart by content, safe against kills, two writers, full disks and foreign files."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kernelwright.archive.store import Archive
from kernelwright.errors import UserError
from kernelwright.records import (
    Candidate,
    Evaluation,
    Evidence,
    EvidenceKind,
    GeneratedStep,
    Interval,
    LibraryStep,
    Manifest,
    Measurement,
    Precision,
    Sample,
    Status,
    Task,
    TensorSpec,
    Verdict,
)  # fmt: skip

TASK = Task("Soft Max!", "softmax.py", "Model", False, None, False, Precision.STRICT, (), "task0")
SPEC = TensorSpec("x", (2, 3), "f32")
MANIFEST = Manifest(
    (SPEC,), (), (), (SPEC,), (), ("x",), ("x",), "tensor",
    (GeneratedStep("kw_run_0"), LibraryStep("aten.mm.default", "[]", ("y", None))), 64, 0, 0,
)  # fmt: skip


def candidate(n: int) -> Candidate:
    return Candidate("cpu", f"// source {n}\n", MANIFEST, ("-O3",), note="first")


def evaluation(of: Candidate, median_ns: float | None = 100.0, verdict: Verdict = Verdict.CORRECT) -> Evaluation:
    seen = Evidence(EvidenceKind.TIMED, Status.PASS, "cpu", "timed", numbers={"median_ns": 1.5})
    return Evaluation(of.digest, verdict, (seen,), median_ns, 1e-7)


def begin(archive: Archive) -> str:
    return archive.begin_run(TASK, "cpu", {"threads": 2}, 7, ["optimize", "softmax.py"])


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "deep" / "archive.sqlite")


def test_a_run_is_kept_with_all_it_saw(archive: Archive) -> None:
    run = begin(archive)
    assert run == "soft_max-1"
    one, two = candidate(1), candidate(2)
    archive.put_evaluation(run, one, evaluation(one, 200.0), "task0", "zen")
    archive.put_evaluation(run, two, evaluation(two, None, Verdict.WRONG), "task0", "zen")
    measured = Measurement(
        ("ours", "eager"), (Sample(0, (1.0, 2.0)),), {"ours": 1.0, "eager": 2.0}, {"eager": Interval(2.0, 1.9, 2.1)}, 0.01, 2,
        "warm", 0.1, {"compile": "no triton"},
    )  # fmt: skip
    archive.put_measurement(run, one.digest, measured, "task0", "zen")
    archive.end_run(run, "done", {"speedup": 2.0})
    history = archive.run("last")
    assert [(s.candidate, s.evaluation, s.known) for s in history.seen] == [
        (one, evaluation(one, 200.0), False), (two, evaluation(two, None, Verdict.WRONG), False),
    ]  # fmt: skip
    assert history.measurements == ((one.digest, measured),)
    record = archive.runs()[0]
    assert (record.status, record.summary, record.evaluations, record.best_ns) == ("done", {"speedup": 2.0}, 2, 200.0)
    assert (record.settings, record.seed, record.argv) == ({"threads": 2}, 7, ("optimize", "softmax.py"))
    kinds = [next(iter(json.loads(line))) for line in archive.export(run)]
    assert kinds == ["run", "event", "candidate", "evaluation", "candidate", "evaluation", "measurement"]


def test_a_candidate_seen_before_is_found_again_on_the_same_task_and_machine_only(archive: Archive) -> None:
    first, second, one = begin(archive), begin(archive), candidate(1)
    archive.put_evaluation(first, one, evaluation(one, 200.0), "task0", "zen")
    assert archive.find_evaluation(one.digest, "task1", "zen") is None
    assert archive.find_evaluation(one.digest, "task0", "other") is None
    assert archive.reuse(second, "nothing", "task0", "zen") is None
    assert archive.reuse(second, one.digest, "task0", "zen") == evaluation(one, 200.0)
    assert [seen.known for seen in archive.run(second).seen] == [True]
    archive.put_evaluation(second, one, evaluation(one, 150.0), "task0", "zen")
    assert archive.find_evaluation(one.digest, "task0", "zen") == evaluation(one, 150.0)


def test_best_is_the_fastest_correct_one_by_its_newest_evaluation(archive: Archive) -> None:
    run = begin(archive)
    assert archive.best("task0", "zen") is None
    for n, verdicts in enumerate([[(300.0, Verdict.CORRECT)], [(100.0, Verdict.CORRECT), (None, Verdict.WRONG)]]):
        for ns, verdict in verdicts:
            archive.put_evaluation(run, candidate(n), evaluation(candidate(n), ns, verdict), "task0", "zen")
    best = archive.best("task0", "zen")
    assert best is not None
    assert best.candidate == candidate(0)


def test_numbers_that_json_lacks_do_not_spoil_a_record(archive: Archive) -> None:
    run, one = begin(archive), candidate(1)
    seen = Evidence(EvidenceKind.CHECKED, Status.FAIL, "cpu", "", numbers={"rms": float("nan"), "max": float("inf"), "k": 3.0})
    archive.put_evaluation(run, one, Evaluation(one.digest, Verdict.WRONG, (seen,), None, float("nan")), "task0", "zen")
    found = archive.find_evaluation(one.digest, "task0", "zen")
    assert found is not None
    assert (found.evidence[0].numbers, found.relative_error) == ({"k": 3.0}, None)


def test_nothing_is_changed_or_deleted_by_anyone(archive: Archive) -> None:
    run, one = begin(archive), candidate(1)
    archive.put_evaluation(run, one, evaluation(one), "task0", "zen")
    with sqlite3.connect(archive.path) as other:
        for table in ("runs", "run_evaluations", "candidates", "evaluations"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                other.execute(f"DELETE FROM {table}")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute("UPDATE evaluations SET verdict = 'correct'")


def test_an_unknown_run_names_the_known_ones(archive: Archive) -> None:
    with pytest.raises(UserError, match="kernelwright optimize"):
        archive.run("last")
    begin(archive)
    with pytest.raises(UserError, match="the latest are: soft_max-1"):
        archive.run("softmax-9")


def test_newer_damaged_and_foreign_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    Archive(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="newer Kernelwright"):
        Archive(path)
    (tmp_path / "text").write_text("not a database at all, " * 100)
    with pytest.raises(UserError, match="damaged or is not an archive"):
        Archive(tmp_path / "text")
    with sqlite3.connect(tmp_path / "foreign") as db:
        db.execute("CREATE TABLE bookmarks (x)")
    with pytest.raises(UserError, match="another program"):
        Archive(tmp_path / "foreign")
    with pytest.raises(UserError, match="cannot write the archive"):
        Archive(Path("/proc/nowhere/archive.sqlite"))


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    with Archive(path) as archive:
        run = begin(archive)
        for n in range(50):
            archive.put_evaluation(run, candidate(n), evaluation(candidate(n)), "task0", "zen")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(UserError, match="damaged"), Archive(path) as archive:
        archive.run("last")


def test_a_full_disk_is_told_and_what_was_written_stays(archive: Archive) -> None:
    run = begin(archive)
    pages = archive._db.execute("PRAGMA page_count").fetchone()[0]
    archive._db.execute(f"PRAGMA max_page_count = {pages + 4}")
    big = [Candidate("cpu", f"{n}" * 2000, None) for n in range(20)]
    with pytest.raises(UserError, match="full"):
        any(archive.put_evaluation(run, one, evaluation(one), "task0", "zen") for one in big)
    written = len(archive.run(run).seen)
    assert 0 < written < len(big)
    archive._db.execute("PRAGMA max_page_count = 1000000")
    archive.put_evaluation(run, candidate(0), evaluation(candidate(0)), "task0", "zen")
    assert len(archive.run(run).seen) == written + 1
    assert archive.check() == []


def test_a_held_lock_is_told(archive: Archive) -> None:
    run = begin(archive)
    with Archive(archive.path, busy_seconds=0.1) as hasty:
        archive._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="another process has held it"):
            hasty.put_event(run, "note", {})
        archive._db.execute("ROLLBACK")


_CHILD = """
import os, sys
sys.path.insert(0, {tests!r})
import test_store as t
from pathlib import Path
{body}
"""


def child(body: str, *arguments: str) -> subprocess.Popen[str]:
    code = _CHILD.format(tests=str(Path(__file__).parent), body=textwrap.dedent(body))
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


WRITER = """
archive = t.Archive(Path(sys.argv[1])); run = t.begin(archive); first, count = int(sys.argv[2]), int(sys.argv[3])
print(run, flush=True)
for n in range(first, first + count):
    archive.put_evaluation(run, t.candidate(n), t.evaluation(t.candidate(n)), "task0", "zen")
    print(n, flush=True)
"""


def test_killed_in_mid_write_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    for attempt in range(6):
        writer = child(WRITER, str(path), str(attempt * 10**6), str(10**6))
        assert writer.stdout is not None
        run = writer.stdout.readline().strip()
        writer.stdout.readline()
        time.sleep(0.01 + 0.03 * attempt)
        writer.send_signal(signal.SIGKILL)
        said = 1 + len(writer.stdout.read().split())  # each said after its commit
        writer.communicate()
        with Archive(path) as archive:
            assert archive.check() == []
            history = archive.run(run)
            assert said <= len(history.seen) <= said + 1
            assert history.run.status is None


def test_two_processes_write_500_evaluations_each(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    writers = [child(WRITER, str(path), str(first), "500") for first in (0, 250)]  # half of the candidates are shared
    runs = []
    for writer in writers:
        out, err = writer.communicate(timeout=60)
        assert writer.returncode == 0, err
        runs.append(out.split()[0])
    assert len(set(runs)) == 2
    with Archive(path) as archive:
        assert archive.check() == []
        assert [len(archive.run(run).seen) for run in runs] == [500, 500]
        assert archive._db.execute("SELECT count(*) FROM candidates").fetchone()[0] == 750


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
def test_a_folder_that_one_may_not_write_is_told(tmp_path: Path) -> None:
    path = tmp_path / "shut" / "archive.sqlite"
    Archive(path).close()
    for one in (path, path.parent):
        one.chmod(0o555)
    for one in list(tmp_path.parents)[:-1]:
        one.chmod(one.stat().st_mode | 0o111)  # pytest's folders are for their owner alone
    reader = child(
        """
        if os.getuid() == 0: os.setuid(65534)
        for path in (sys.argv[1], sys.argv[1] + "-new"):
            try: t.begin(t.Archive(Path(path)))
            except t.UserError as error: print(error)
        """, str(path),
    )  # fmt: skip
    out, err = reader.communicate(timeout=30)
    path.parent.chmod(0o755)
    assert out.count("writable") + out.count("may write") == 2, out + err
