"""The embedded schedule search: no key, no network.

What it does: starts from the plan's roofline-seeded default, tries each structural alternative, then improves by evolution over
the knobs. Each generation drafts many mutants, ranks them by the cost model relative to their measured parent, and has
only the most promising few (and one chosen blindly) evaluated by the Lab. Ends with the budget, with patience, or with
Ctrl-C; the best so far is always kept.
What it does not do: compile, check or time (the Lab does), or judge the finalists (`optimize` does).

Determinism: proposals are a function of the seed and of the evaluations so far. Since the archive answers for candidates that
it has seen, running again with the same seed replays the earlier course for nothing and goes on from there: that is what
--resume does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelwright.ir.schedule import Knob, Schedule, Value
from kernelwright.proposers.space import Draft, Space, try_build
from kernelwright.records import Candidate, Evaluation, Verdict

STRUCTURAL = ("fuse", "leaf", "split", "pack_m", "pack_n", "vector", "parallel")
SEED_BATCHES = 6  # of structural alternatives, the cheapest by the model
MATING = 0.2  # share of mutants that take half of another parent's decisions first
BARREN = 3  # generations without a new draft after which the space counts as tried


@dataclass(frozen=True)
class SearchSettings:
    """How the search spends its budget. `patience`: evaluations without a gain of `least_gain` after which it ends."""

    seed: int = 0
    batch: int = 4
    mutants: int = 16
    parents: int = 6
    patience: int = 48
    least_gain: float = 0.005


@dataclass(frozen=True)
class Measured:
    """A candidate that the Lab found correct, with its screening time."""

    candidate: Candidate
    schedule: Schedule
    modelled_seconds: float
    median_ns: float


Evaluate = Callable[[Sequence[Candidate]], Sequence[Evaluation]]


def search(
    space: Space, evaluate: Evaluate, exhausted: Callable[[], bool], settings: SearchSettings, on_stop: Callable[[str], None]
) -> list[Measured]:
    """The correct candidates found, fastest first. `evaluate` is the Lab's; `exhausted` tells when the budget is spent.

    `on_stop` hears in one line why the search ended. KeyboardInterrupt ends it like a spent budget.
    """
    course = _Course(space, evaluate, exhausted, settings)
    try:
        course.seed()
        reason = course.evolve()
    except KeyboardInterrupt:
        reason = "interrupted: the best so far is kept"
    on_stop(reason)
    return course.best()


class _Course:
    """One search: what was tried, what was correct, and the generator that draws the next proposals."""

    def __init__(self, space: Space, evaluate: Evaluate, exhausted: Callable[[], bool], settings: SearchSettings) -> None:
        self._space = space
        self._evaluate = evaluate
        self._exhausted = exhausted
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._seen: set[str] = set()  # schedule digests, drafted or refused
        self._sources: set[str] = set()  # candidate digests
        self._measured: list[Measured] = []
        self._evaluations = 0
        self._last_gain = 0
        self._best_ns: float | None = None

    def best(self) -> list[Measured]:
        """What was correct, fastest first."""
        return sorted(self._measured, key=lambda m: m.median_ns)

    def seed(self) -> None:
        """Evaluate the default, then each structural alternative to it, cheapest by the model first."""
        first = self._draft(Schedule())
        if first is not None:
            self._run([first], "the plan's default", ())
        alternatives: list[Draft] = []
        for knob in self._space.knobs(Schedule()):
            if _kind(knob) in STRUCTURAL:
                drafts = (self._draft(Schedule.of({knob.name: v})) for v in knob.options if v != knob.default)
                alternatives += [d for d in drafts if d is not None]
        alternatives.sort(key=lambda draft: draft.modelled_seconds)
        batch = self._settings.batch
        parents = tuple(m.candidate.digest for m in self._measured[:1])
        for start in range(0, min(len(alternatives), SEED_BATCHES * batch), batch):
            if self._exhausted():
                return
            self._run(alternatives[start : start + batch], "structural alternative", parents)

    def evolve(self) -> str:
        """Generation after generation until something ends it; what did."""
        settings = self._settings
        barren = 0
        while not self._exhausted():
            if self._evaluations - self._last_gain >= settings.patience:
                return f"no gain in the last {settings.patience} evaluations"
            parents = self.best()[: settings.parents]
            ranked = self._mutants(parents)
            barren = 0 if ranked else barren + 1
            if barren >= BARREN:
                return "every schedule in reach has been tried"
            chosen = ranked[: settings.batch - 1]
            rest = ranked[settings.batch - 1 :]
            if rest:
                chosen.append(self._random.choice(rest))
            self._run(chosen, "evolution", tuple(p.candidate.digest for p in parents[:1]))
        return "budget spent"

    def _mutants(self, parents: Sequence[Measured]) -> list[Draft]:
        """New drafts, the most promising first: each parent's measured time scaled by the model's ratio to its mutant."""
        source = self._random
        ranked: list[tuple[float, Draft]] = []
        for _ in range(self._settings.mutants):
            parent = _pick(parents, source)
            mate = _pick(parents, source) if source.random() < MATING else None
            base = parent.schedule if parent is not None else Schedule()
            draft = self._draft(_mutate(self._space, base, mate.schedule if mate is not None else None, source))
            if draft is None:
                continue
            scale = parent.median_ns / parent.modelled_seconds if parent is not None and parent.modelled_seconds > 0 else 1e9
            ranked.append((draft.modelled_seconds * scale, draft))
        ranked.sort(key=lambda pair: pair[0])
        return [draft for _, draft in ranked]

    def _draft(self, schedule: Schedule) -> Draft | None:
        digest = schedule.digest()
        if digest in self._seen:
            return None
        self._seen.add(digest)
        draft = self._space.draft(schedule)
        if draft is None or draft.schedule.digest() == digest:
            return draft
        known = draft.schedule.digest() in self._seen
        self._seen.add(draft.schedule.digest())
        return None if known else draft

    def _run(self, drafts: Sequence[Draft], note: str, parents: tuple[str, ...]) -> None:
        """Print, deduplicate by source, evaluate, and remember what was correct."""
        batch: list[tuple[Draft, Candidate]] = []
        for draft in drafts:
            candidate = try_build(draft, note, parents)
            if candidate is not None and candidate.digest not in self._sources:
                self._sources.add(candidate.digest)
                batch.append((draft, candidate))
        evaluations = {e.candidate: e for e in self._evaluate([c for _, c in batch])} if batch else {}
        for draft, candidate in batch:
            evaluation = evaluations.get(candidate.digest)
            if evaluation is None:
                continue
            self._evaluations += 1
            if evaluation.verdict is not Verdict.CORRECT or evaluation.median_ns is None:
                continue
            self._measured.append(Measured(candidate, draft.schedule, draft.modelled_seconds, evaluation.median_ns))
            if self._best_ns is None or evaluation.median_ns < self._best_ns * (1.0 - self._settings.least_gain):
                self._best_ns, self._last_gain = evaluation.median_ns, self._evaluations


def _pick(parents: Sequence[Measured], source: random.Random) -> Measured | None:
    """A parent, the faster the likelier (the better of two drawn)."""
    return parents[min(source.randrange(len(parents)), source.randrange(len(parents)))] if parents else None


def _mutate(space: Space, base: Schedule, other: Schedule | None, source: random.Random) -> Schedule:
    """One to three decisions of `base` changed; with `other`, half of its decisions taken over first."""
    values = base.as_dict()
    if other is not None:
        values |= {k: v for k, v in other.as_dict().items() if source.random() < 0.5}
    open_knobs = [k for k in space.knobs(base) if len(k.options) > 1]
    for _ in range(source.choice((1, 1, 1, 2, 2, 3)) if open_knobs else 0):
        structural = [k for k in open_knobs if _kind(k) in STRUCTURAL]
        numeric = [k for k in open_knobs if _kind(k) not in STRUCTURAL]
        pool = structural if structural and (not numeric or source.random() < 0.25) else numeric
        knob = source.choice(pool)
        values[knob.name] = _other_option(knob, values.get(knob.name, knob.default), source)
    return Schedule.of(values)


def _other_option(knob: Knob, current: Value, source: random.Random) -> Value:
    """A neighbour of the current option mostly, any other one at times."""
    options = list(knob.options)
    if current in options and isinstance(current, int) and source.random() < 0.7:
        at = options.index(current)
        near = [options[i] for i in (at - 1, at + 1) if 0 <= i < len(options)]
        return source.choice(near)
    return source.choice([o for o in options if o != current] or options)


def _kind(knob: Knob) -> str:
    return knob.name.split(".", 1)[0]
