"""The embedded schedule search: no key, no network.

What it does: starts from the plan's roofline-seeded default, tries each structural alternative, then improves by evolution over
the knobs. Each generation drafts many mutants, ranks them by the cost model relative to their measured parent, and has
only the most promising few (and one chosen blindly) evaluated by the Lab. Ends with the budget, with patience, or with Ctrl-C; the
best so far is always kept.
What it does not do: compile, check or time (the Lab does), or judge the finalists (`optimize` does).

Determinism: proposals are a function of the seed and of the evaluations so far. Since the archive answers for candidates that it has
seen, running again with the same seed replays the earlier course for nothing and goes on from there: that is what --resume does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kernelwright.ir.schedule import Knob, Schedule, Value
from kernelwright.proposers.space import Draft, Space, try_build
from kernelwright.records import Candidate, Evaluation, Verdict

STRUCTURAL = ("fuse", "leaf", "split", "pack_m", "pack_n", "vector", "parallel")


@dataclass(frozen=True)
class SearchSettings:
    """How the search spends its budget. `patience`: evaluations without a gain of `least_gain` after which it ends."""

    seed: int = 0
    batch: int = 4
    mutants: int = 24
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


@dataclass
class _State:
    seen: set[str] = field(default_factory=set)  # schedule digests drafted or refused
    sources: set[str] = field(default_factory=set)  # candidate digests
    measured: list[Measured] = field(default_factory=list)
    evaluations: int = 0
    last_gain: int = 0
    best_ns: float | None = None


Evaluate = Callable[[Sequence[Candidate]], Sequence[Evaluation]]


def search(
    space: Space, evaluate: Evaluate, exhausted: Callable[[], bool], settings: SearchSettings, on_stop: Callable[[str], None]
) -> list[Measured]:
    """The correct candidates found, fastest first. `evaluate` is the Lab's; `exhausted` tells when the budget is spent.

    `on_stop` hears in one line why the search ended. KeyboardInterrupt ends it like a spent budget.
    """
    random_source = random.Random(settings.seed)
    state = _State()
    try:
        _seed(space, evaluate, exhausted, settings, state)
        reason = _evolve(space, evaluate, exhausted, settings, state, random_source)
    except KeyboardInterrupt:
        reason = "interrupted: the best so far is kept"
    on_stop(reason)
    return sorted(state.measured, key=lambda m: m.median_ns)


def _seed(
    space: Space, evaluate: Evaluate, exhausted: Callable[[], bool], settings: SearchSettings, state: _State
) -> None:
    """Evaluate the default, then each structural alternative to it, cheapest by the model first."""
    first = _new_draft(space, Schedule(), state)
    if first is not None:
        _run([first], "the plan's default", (), evaluate, state, settings)
    alternatives: list[tuple[Draft, str]] = []
    for knob in space.knobs(Schedule()):
        if _kind(knob) in STRUCTURAL:
            for value in knob.options:
                draft = _new_draft(space, Schedule.of({knob.name: value}), state) if value != knob.default else None
                if draft is not None:
                    alternatives.append((draft, f"{knob.name} = {value}"))
    alternatives.sort(key=lambda pair: pair[0].modelled_seconds)
    alternatives = alternatives[: 6 * settings.batch]
    parents = tuple(m.candidate.digest for m in state.measured[:1])
    for start in range(0, len(alternatives), settings.batch):
        if exhausted():
            return
        chunk = alternatives[start : start + settings.batch]
        _run([d for d, _ in chunk], "structural alternative", parents, evaluate, state, settings)


def _evolve(
    space: Space,
    evaluate: Evaluate,
    exhausted: Callable[[], bool],
    settings: SearchSettings,
    state: _State,
    source: random.Random,
) -> str:
    barren = 0
    while not exhausted():
        if state.evaluations - state.last_gain >= settings.patience:
            return f"no gain in the last {settings.patience} evaluations"
        parents = sorted(state.measured, key=lambda m: m.median_ns)[: settings.parents]
        ranked = _mutants(space, parents, settings, state, source)
        if not ranked:
            barren += 1
            if barren >= 3:
                return "every schedule in reach has been tried"
            continue
        barren = 0
        chosen = [draft for _, draft in ranked[: settings.batch - 1]]
        rest = ranked[settings.batch - 1 :]
        if rest:
            chosen.append(source.choice(rest)[1])
        digests = tuple(p.candidate.digest for p in parents[:1])
        _run(chosen, "evolution", digests, evaluate, state, settings)
    return "budget spent"


def _mutants(
    space: Space, parents: Sequence[Measured], settings: SearchSettings, state: _State, source: random.Random
) -> list[tuple[float, Draft]]:
    """New drafts with the nanoseconds that they should take: the parent's time scaled by the model's ratio."""
    ranked: list[tuple[float, Draft]] = []
    for _ in range(settings.mutants):
        parent = _pick(parents, source)
        mate = _pick(parents, source) if source.random() < 0.2 else None
        base = parent.schedule if parent is not None else Schedule()
        draft = _new_draft(space, _mutate(space, base, mate.schedule if mate is not None else None, source), state)
        if draft is None:
            continue
        scale = parent.median_ns / parent.modelled_seconds if parent is not None and parent.modelled_seconds > 0 else 1e9
        ranked.append((draft.modelled_seconds * scale, draft))
    ranked.sort(key=lambda pair: pair[0])
    return ranked


def _pick(parents: Sequence[Measured], source: random.Random) -> Measured | None:
    """A parent, the faster the likelier (the better of two drawn)."""
    return parents[min(source.randrange(len(parents)), source.randrange(len(parents)))] if parents else None


def _mutate(space: Space, base: Schedule, other: Schedule | None, source: random.Random) -> Schedule:
    """One to three decisions of `base` changed; with `other`, half of its decisions taken over first."""
    values = base.as_dict()
    if other is not None:
        values |= {k: v for k, v in other.as_dict().items() if source.random() < 0.5}
    for _ in range(source.choice((1, 1, 1, 2, 2, 3))):
        open_knobs = [k for k in space.knobs(Schedule.of(values)) if len(k.options) > 1]
        if not open_knobs:
            break
        structural = [k for k in open_knobs if _kind(k) in STRUCTURAL]
        numeric = [k for k in open_knobs if _kind(k) not in STRUCTURAL]
        pool = structural if structural and (not numeric or source.random() < 0.25) else numeric
        knob = source.choice(pool)
        values[knob.name] = _other_option(knob, values.get(knob.name, knob.default), source)
    known = {k.name for k in space.knobs(Schedule.of(values))}
    return Schedule.of({k: v for k, v in values.items() if k in known})


def _other_option(knob: Knob, current: Value, source: random.Random) -> Value:
    """A neighbour of the current option mostly, any other one at times."""
    options = list(knob.options)
    if current in options and isinstance(current, int) and source.random() < 0.7:
        at = options.index(current)
        near = [options[i] for i in (at - 1, at + 1) if 0 <= i < len(options)]
        return source.choice(near)
    return source.choice([o for o in options if o != current] or options)


def _new_draft(space: Space, schedule: Schedule, state: _State) -> Draft | None:
    digest = schedule.digest()
    if digest in state.seen:
        return None
    state.seen.add(digest)
    return space.draft(schedule)


def _run(
    drafts: Sequence[Draft],
    note: str,
    parents: tuple[str, ...],
    evaluate: Evaluate,
    state: _State,
    settings: SearchSettings,
) -> None:
    """Print, deduplicate by source, evaluate, and remember what was correct."""
    batch: list[tuple[Draft, Candidate]] = []
    for draft in drafts:
        candidate = try_build(draft, note, parents)
        if candidate is not None and candidate.digest not in state.sources:
            state.sources.add(candidate.digest)
            batch.append((draft, candidate))
    by_digest = {e.candidate: e for e in evaluate([c for _, c in batch])} if batch else {}
    for draft, candidate in batch:
        evaluation = by_digest.get(candidate.digest)
        if evaluation is None:
            continue
        state.evaluations += 1
        if evaluation.verdict is not Verdict.CORRECT or evaluation.median_ns is None:
            continue
        state.measured.append(Measured(candidate, draft.schedule, draft.modelled_seconds, evaluation.median_ns))
        if state.best_ns is None or evaluation.median_ns < state.best_ns * (1.0 - settings.least_gain):
            state.best_ns, state.last_gain = evaluation.median_ns, state.evaluations


def _kind(knob: Knob) -> str:
    return knob.name.split(".", 1)[0]
