"""The archive: every run, candidate, evaluation and measurement, append-only, in one SQLite file.

What it does: keeps records by content hash, so that a candidate seen before costs nothing, and answers what was seen. Each call
is one transaction: a kill -9 at any moment loses at most the record being written. Several processes and threads may write at
once (write-ahead log, BEGIN IMMEDIATE, a busy timeout).
What it does not do: decide what may be reused (the Lab does), or change or delete anything, ever.
Called by lab, optimize, cli. The only package that speaks SQL.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from kernelwright.archive.schema import MIGRATIONS
from kernelwright.errors import UserError
from kernelwright.records import Candidate, Evaluation, Measurement, Task, Verdict, from_json, to_json

BUSY_SECONDS = 60.0  # how long a writer waits for another process's transaction, which takes milliseconds
APPLICATION = 0x4B574152  # "KWAR", in the file's header
Plain = str | int | float | bool | None | Sequence["Plain"] | Mapping[str, "Plain"]  # what settings and summaries may hold


@dataclass(frozen=True)
class RunRecord:
    """One run. `status` and `summary` come from its end; None where it has not ended (it goes on, or was killed)."""

    id: str
    started: str
    task_digest: str
    task_name: str
    task_path: str
    target: str
    settings: dict[str, Plain]
    seed: int
    argv: tuple[str, ...]
    process: int
    ended: str | None
    status: str | None
    summary: dict[str, Plain]
    evaluations: int
    best_ns: float | None


@dataclass(frozen=True)
class Seen:
    """An evaluation as a run saw it. `known`: it was found in the archive, not made by this run."""

    candidate: Candidate
    evaluation: Evaluation
    known: bool
    at: str


@dataclass(frozen=True)
class RunHistory:
    """A run with all that it saw, in order."""

    run: RunRecord
    seen: tuple[Seen, ...]
    measurements: tuple[tuple[str, Measurement], ...]  # candidate digest, measurement
    events: tuple[tuple[str, str, dict[str, Plain]], ...]  # at, kind, data


class Archive:
    """One open archive file. Close it, or use it in a with statement."""

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._lock = threading.RLock()
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        owner = int(self._db.execute("PRAGMA application_id").fetchone()[0])
        if owner != APPLICATION and self._db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise UserError(f"{self.path} is another program's database", "set KERNELWRIGHT_ARCHIVE to another file")
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "recursive_triggers = ON"):
            self._db.execute(f"PRAGMA {pragma}")
        if self._version() > len(MIGRATIONS):
            raise UserError(
                f"the archive {self.path} was written by a newer Kernelwright (schema {self._version()}, this one "
                f"knows {len(MIGRATIONS)})",
                "upgrade Kernelwright, or set KERNELWRIGHT_ARCHIVE to another file",
            )
        if self._version() < len(MIGRATIONS):
            with self._transaction():
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                for version in range(self._version(), len(MIGRATIONS)):  # asked again: another process may have been first
                    for statement in _statements(MIGRATIONS[version]):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version = {version + 1}")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. IMMEDIATE: the write lock is taken at once, so that a reader never has to turn into a writer."""
        with self._lock, _told(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has rolled back by itself
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, *values: str | int) -> list[sqlite3.Row]:
        with self._lock, _told(self.path):
            cursor = self._db.cursor()
            cursor.row_factory = sqlite3.Row
            return cursor.execute(sql, values).fetchall()

    # Writing

    def begin_run(self, task: Task, target: str, settings: Mapping[str, Plain], seed: int, argv: Sequence[str]) -> str:
        """Record that a run begins; its id is the task's name and a count, like softmax-3."""
        stem = re.sub(r"[^a-z0-9]+", "_", task.name.lower()).strip("_") or "task"
        with self._transaction() as db:
            taken = {row[0] for row in db.execute("SELECT id FROM runs WHERE id GLOB ?", (f"{stem}-*",))}
            count = len(taken) + 1
            while f"{stem}-{count}" in taken:
                count += 1
            run = f"{stem}-{count}"
            db.execute(
                "INSERT INTO runs (id, started, task_digest, task_name, task_path, target, settings, seed, argv, process)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run, _now(), task.digest, task.name, task.path, target, json.dumps(dict(settings)), seed,
                 json.dumps(list(argv)), os.getpid()),
            )  # fmt: skip
        return run

    def put_event(self, run: str, kind: str, data: Mapping[str, Plain]) -> None:
        """Append one event of a run."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO run_events (run, at, kind, data) VALUES (?, ?, ?, ?)", (run, _now(), kind, json.dumps(dict(data)))
            )

    def end_run(self, run: str, status: str, summary: Mapping[str, Plain]) -> None:
        """Record that a run ended: `status` is done, nothing_better, interrupted or failed; `summary` is what `runs` shows."""
        self.put_event(run, "end", {"status": status, "summary": dict(summary)})

    def put_candidate(self, run: str, candidate: Candidate) -> str:
        """Keep a candidate (once: the first proposer of a content is remembered); its digest."""
        with self._transaction() as db:
            _insert_candidate(db, run, candidate)
        return candidate.digest

    def put_evaluation(
        self, run: str, candidate: Candidate, evaluation: Evaluation, task_digest: str, machine_key: str
    ) -> None:
        """Keep a candidate with its evaluation, in one transaction. The newest of a candidate's evaluations counts."""
        if evaluation.candidate != candidate.digest:
            raise ValueError(f"the evaluation is of {evaluation.candidate}, not of {candidate.digest}")
        with self._transaction() as db:
            _insert_candidate(db, run, candidate)
            cursor = db.execute(
                "INSERT INTO evaluations (run, candidate, task_digest, machine_key, verdict, median_ns, record, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (run, candidate.digest, task_digest, machine_key, evaluation.verdict.value, evaluation.median_ns,
                 to_json(_finite(evaluation)), _now()),
            )  # fmt: skip
            db.execute(
                "INSERT INTO run_evaluations (run, evaluation, known, at) VALUES (?, ?, 0, ?)", (run, cursor.lastrowid, _now())
            )

    def put_measurement(self, run: str, candidate: str, measurement: Measurement, task_digest: str, machine_key: str) -> None:
        """Keep a comparison against the baselines of a candidate that was put before."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO measurements (run, candidate, task_digest, machine_key, record, at) VALUES (?, ?, ?, ?, ?, ?)",
                (run, candidate, task_digest, machine_key, to_json(measurement), _now()),
            )

    # Asking

    def find_evaluation(self, candidate: str, task_digest: str, machine_key: str) -> Evaluation | None:
        """The newest evaluation of a candidate for this task on this machine."""
        found = self._find(candidate, task_digest, machine_key)
        return None if found is None else from_json(found["record"], Evaluation)

    def reuse(self, run: str, candidate: str, task_digest: str, machine_key: str) -> Evaluation | None:
        """As find_evaluation, and `run` is recorded to have seen it."""
        found = self._find(candidate, task_digest, machine_key)
        if found is None:
            return None
        with self._transaction() as db:
            db.execute(
                "INSERT INTO run_evaluations (run, evaluation, known, at) VALUES (?, ?, 1, ?)", (run, found["number"], _now())
            )
        return from_json(found["record"], Evaluation)

    def _find(self, candidate: str, task_digest: str, machine_key: str) -> sqlite3.Row | None:
        rows = self._rows(
            "SELECT number, record FROM evaluations WHERE candidate = ? AND task_digest = ? AND machine_key = ?"
            " ORDER BY number DESC LIMIT 1",
            candidate, task_digest, machine_key,
        )  # fmt: skip
        return rows[0] if rows else None

    def candidate(self, digest: str) -> Candidate | None:
        """The candidate of this digest."""
        rows = self._rows("SELECT record, source FROM candidates WHERE digest = ?", digest)
        return _candidate(rows[0]) if rows else None

    def best(self, task_digest: str, machine_key: str) -> Seen | None:
        """The correct candidate with the least screening time of all runs, by each candidate's newest evaluation.

        Screening times of different runs were taken under different loads: a hint where to begin, not a claim.
        """
        rows = self._rows(
            "SELECT c.record AS record, c.source AS source, e.record AS evaluation, e.at AS at FROM evaluations e"
            " JOIN candidates c ON c.digest = e.candidate WHERE e.number IN"
            "  (SELECT max(number) FROM evaluations WHERE task_digest = ? AND machine_key = ? GROUP BY candidate)"
            " AND e.verdict = ? AND e.median_ns IS NOT NULL ORDER BY e.median_ns, e.number LIMIT 1",
            task_digest, machine_key, Verdict.CORRECT.value,
        )  # fmt: skip
        return _seen(rows[0], known=True) if rows else None

    def runs(self, limit: int = 1000) -> tuple[RunRecord, ...]:
        """The latest runs, newest first."""
        return tuple(map(_run, self._rows(f"{_RUNS} ORDER BY r.number DESC LIMIT ?", limit)))

    def find_run(self, name: str) -> RunRecord:
        """The run called `name`; "last" is the newest. Raises UserError where there is none."""
        where = "ORDER BY r.number DESC LIMIT 1" if name == "last" else "WHERE r.id = ?"
        rows = self._rows(f"{_RUNS} {where}", *(() if name == "last" else (name,)))
        if not rows:
            latest = ", ".join(run.id for run in self.runs(5))
            raise UserError(
                f"no run is called {name}" if name != "last" else "the archive holds no runs",
                f"the latest are: {latest}" if latest else "start one with: kernelwright optimize FILE",
            )
        return _run(rows[0])

    def run(self, name: str) -> RunHistory:
        """The run called `name` (or "last") with its evaluations, measurements and events, in order."""
        record = self.find_run(name)
        seen = self._rows(
            "SELECT c.record AS record, c.source AS source, e.record AS evaluation, s.known AS known, s.at AS at"
            " FROM run_evaluations s JOIN evaluations e ON e.number = s.evaluation JOIN candidates c ON c.digest = e.candidate"
            " WHERE s.run = ? ORDER BY s.number",
            record.id,
        )
        measured = self._rows("SELECT candidate, record FROM measurements WHERE run = ? ORDER BY number", record.id)
        events = self._rows("SELECT at, kind, data FROM run_events WHERE run = ? ORDER BY number", record.id)
        return RunHistory(
            run=record,
            seen=tuple(_seen(row, bool(row["known"])) for row in seen),
            measurements=tuple((row["candidate"], from_json(row["record"], Measurement)) for row in measured),
            events=tuple((row["at"], row["kind"], json.loads(row["data"])) for row in events),
        )

    def export(self, name: str) -> Iterator[str]:
        """A run as JSON lines, each an object with one key that says what it is."""
        history = self.run(name)
        yield f'{{"run":{to_json(history.run)}}}'
        for at, kind, data in history.events:
            yield json.dumps({"event": {"at": at, "kind": kind, "data": data}})
        told: set[str] = set()
        for seen in history.seen:
            digest = seen.evaluation.candidate
            if digest not in told:
                told.add(digest)
                yield f'{{"candidate":{to_json(seen.candidate)},"digest":"{digest}"}}'
            yield f'{{"evaluation":{to_json(seen.evaluation)},"known":{json.dumps(seen.known)},"at":"{seen.at}"}}'
        for digest, measurement in history.measurements:
            yield f'{{"measurement":{to_json(measurement)},"candidate":"{digest}"}}'

    def check(self) -> list[str]:
        """SQLite's own integrity check: problems, none where the file is whole."""
        rows = [str(row[0]) for row in self._rows("PRAGMA integrity_check")]
        return [] if rows == ["ok"] else rows


_RUNS = """
SELECT r.*, e.at AS ended, e.data AS end_data,
  (SELECT count(*) FROM run_evaluations s WHERE s.run = r.id) AS evaluations,
  (SELECT min(v.median_ns) FROM run_evaluations s JOIN evaluations v ON v.number = s.evaluation WHERE s.run = r.id) AS best_ns
FROM runs r LEFT JOIN run_events e
  ON e.number = (SELECT max(x.number) FROM run_events x WHERE x.run = r.id AND x.kind = 'end')
"""


def _insert_candidate(db: sqlite3.Connection, run: str, candidate: Candidate) -> None:
    db.execute(
        "INSERT INTO candidates (digest, record, source, first_run, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (candidate.digest, to_json(replace(candidate, source="")), candidate.source, run, _now()),
    )


def _finite(evaluation: Evaluation) -> Evaluation:
    """Without evidence numbers that JSON has no form for (a NaN error of a wrong candidate): they would not be read again."""
    evidence = tuple(
        replace(one, numbers={name: value for name, value in one.numbers.items() if math.isfinite(value)})
        for one in evaluation.evidence
    )
    return replace(evaluation, evidence=evidence)


def _candidate(row: sqlite3.Row) -> Candidate:
    return replace(from_json(row["record"], Candidate), source=row["source"])


def _seen(row: sqlite3.Row, known: bool) -> Seen:
    return Seen(_candidate(row), from_json(row["evaluation"], Evaluation), known, row["at"])


def _run(row: sqlite3.Row) -> RunRecord:
    end = json.loads(row["end_data"]) if row["end_data"] else {"status": None, "summary": {}}
    return RunRecord(
        id=row["id"], started=row["started"], task_digest=row["task_digest"], task_name=row["task_name"],
        task_path=row["task_path"], target=row["target"], settings=json.loads(row["settings"]), seed=row["seed"],
        argv=tuple(json.loads(row["argv"])), process=row["process"], ended=row["ended"], status=end["status"],
        summary=end["summary"], evaluations=row["evaluations"], best_ns=row["best_ns"],
    )  # fmt: skip


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one, since executescript would commit the transaction around it."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what the file system and SQLite report into a user's error that says what to do."""
    elsewhere = "or set KERNELWRIGHT_ARCHIVE to another file"
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write the archive {path}: {error.strerror}", f"make {path.parent} a folder that you may write, {elsewhere}"
        ) from error
    except sqlite3.OperationalError as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            hint = f"free some space on its disk, {elsewhere}; what was written before is safe"
        elif "locked" in text or "busy" in text:
            hint = f"another process has held it for long: wait for it, {elsewhere}"
        elif "readonly" in text or "read-only" in text or "unable to open" in text:
            hint = f"make it and its folder writable, {elsewhere}"
        else:
            raise  # our own bug in SQL
        raise UserError(f"cannot use the archive {path}: {text}", hint) from error
    except sqlite3.DatabaseError as error:
        text = str(error)
        if not any(word in text for word in ("not a database", "malformed", "corrupt", "encrypted")):
            raise
        raise UserError(
            f"the archive {path} is damaged or is not an archive: {text}", f"move it away to begin a new one, {elsewhere}"
        ) from error
