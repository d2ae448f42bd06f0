"""The archive's tables, one migration after the other.

What it does: `MIGRATIONS[n]` takes a database from schema version n to n + 1. A migration that was released is never edited: a
change is a new one. Every table refuses UPDATE and DELETE by trigger.
What it does not do: open files (see `store`).
"""

from __future__ import annotations

_TABLES_1 = (
    "runs", "run_events", "candidates", "evaluations", "run_evaluations", "measurements", "transcripts",
)  # fmt: skip

_CREATE_1 = """
CREATE TABLE runs (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,      -- the task's name and a count: softmax-3
    started     TEXT NOT NULL,             -- ISO 8601, UTC, as all times here
    task_digest TEXT NOT NULL,
    task_name   TEXT NOT NULL,
    task_path   TEXT NOT NULL,
    target      TEXT NOT NULL,
    settings    TEXT NOT NULL,             -- JSON
    seed        INTEGER NOT NULL,
    argv        TEXT NOT NULL,             -- JSON list
    process     INTEGER NOT NULL           -- process id, to tell a run that goes on from one that was killed
);
CREATE TABLE run_events (
    number INTEGER PRIMARY KEY,
    run    TEXT NOT NULL REFERENCES runs(id),
    at     TEXT NOT NULL,
    kind   TEXT NOT NULL,                  -- "end", or any word of the caller's
    data   TEXT NOT NULL                   -- JSON
);
CREATE TABLE candidates (
    digest    TEXT PRIMARY KEY,
    record    TEXT NOT NULL,               -- records.Candidate as JSON, its source left empty
    source    TEXT NOT NULL,
    first_run TEXT NOT NULL REFERENCES runs(id),
    at        TEXT NOT NULL
);
CREATE TABLE evaluations (
    number      INTEGER PRIMARY KEY,
    run         TEXT NOT NULL REFERENCES runs(id),
    candidate   TEXT NOT NULL REFERENCES candidates(digest),
    task_digest TEXT NOT NULL,
    machine_key TEXT NOT NULL,             -- what a verdict and a time depend on besides: chip, compiler, threads
    verdict     TEXT NOT NULL,
    median_ns   REAL,
    record      TEXT NOT NULL,             -- records.Evaluation as JSON
    at          TEXT NOT NULL
);
CREATE INDEX evaluations_by_candidate ON evaluations (candidate, task_digest, machine_key);
CREATE INDEX evaluations_by_time ON evaluations (task_digest, machine_key, median_ns);
CREATE TABLE run_evaluations (             -- the order in which a run saw evaluations; `known`: it found them in the archive
    number     INTEGER PRIMARY KEY,
    run        TEXT NOT NULL REFERENCES runs(id),
    evaluation INTEGER NOT NULL REFERENCES evaluations(number),
    known      INTEGER NOT NULL,
    at         TEXT NOT NULL
);
CREATE INDEX run_evaluations_by_run ON run_evaluations (run, number);
CREATE TABLE measurements (
    number      INTEGER PRIMARY KEY,
    run         TEXT NOT NULL REFERENCES runs(id),
    candidate   TEXT NOT NULL REFERENCES candidates(digest),
    task_digest TEXT NOT NULL,
    machine_key TEXT NOT NULL,
    record      TEXT NOT NULL,             -- records.Measurement as JSON
    at          TEXT NOT NULL
);
CREATE INDEX measurements_by_run ON measurements (run, number);
CREATE TABLE transcripts (                 -- what an agent and its model said to each other
    number INTEGER PRIMARY KEY,
    run    TEXT NOT NULL REFERENCES runs(id),
    at     TEXT NOT NULL,
    role   TEXT NOT NULL,
    text   TEXT NOT NULL
);
"""


def _append_only(tables: tuple[str, ...]) -> str:
    return "".join(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'the archive is append-only'); END;\n"
        for table in tables
        for verb in ("UPDATE", "DELETE")
    )


MIGRATIONS: tuple[str, ...] = (_CREATE_1 + _append_only(_TABLES_1),)
