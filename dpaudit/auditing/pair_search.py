"""Search for a bad pair: candidates from a generator or a parametrised pair, scored on search runs, the best audited.

Many more are asked by two runs each with recorded noise, and the worst of these are tried first. What the search sees
never certifies. All runs are counted and capped together.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.auditing.probing import probe
from dpaudit.auditing.question import Plan, Question
from dpaudit.auditing.runner import Runner
from dpaudit.auditing.search_stage import cautious, goal_at
from dpaudit.base import validate
from dpaudit.base.strict import by_fields
from dpaudit.claims import Claim, check_claim
from dpaudit.data import AdjacentPair, digest
from dpaudit.errors import DpAuditError, InvalidSpec, at
from dpaudit.execution.engine import Engine, Session
from dpaudit.mechanisms import Mechanism, wrap
from dpaudit.processes.tasks import FreshTask
from dpaudit.recording.pairs import asked_alone, recording
from dpaudit.recording.replays import glanced
from dpaudit.results.result import AuditResult
from dpaudit.running.streams import apart
from dpaudit.running.worker import BatchFailed, Job
from dpaudit.search.look import SEARCH_SHARE, Look, excess

Parameters = dict[str, Any]
Score = Callable[[Parameters], float]  # larger is better; -inf for nothing seen
Bounds = Mapping[str, Sequence[Any]]
NOTHING = 1e9  # what a minimiser is told where nothing was seen
FIRST_PART = 0.4  # of the tries are spread evenly, the rest follows the best
ASTRAY = 1_000  # moves in a row to points tried before, after which the moves end


class Spent(Exception):
    """Raised by a score when there are no tries left; ends the moves."""


def check_bounds(bounds: object) -> Bounds:
    """The bounds, each (low, high) for any number between, a `range` of whole numbers or a list of choices.

    Raises `InvalidSpec` that names the parameter.
    """
    if not isinstance(bounds, Mapping) or not bounds:
        raise InvalidSpec(f"bounds must be a dictionary like {{'value': (0.0, 1.0), 'rows': [1, 10]}}, got {bounds!r}")
    for name, given in bounds.items():
        if isinstance(given, tuple) and len(given) == 2:
            low, high = (validate.real(f"bounds[{name!r}]", end) for end in given)
            if not (low < high and math.isfinite(high - low)):
                raise InvalidSpec(f"bounds[{name!r}] must be (low, high), finite and low below high, got {given!r}")
        elif not isinstance(given, list | range) or len(given) == 0:
            raise InvalidSpec(f"bounds[{name!r}] must be (low, high), a range or a list of choices, got {given!r}")
    return bounds


def move(bounds: Bounds, tries: int, score: Score, rng: np.random.Generator) -> None:
    """Calls `score` for different parameters, until it raises `Spent` or there is nothing left to try.

    Where the choices have no more combinations than there are tries, every one is tried. Lists of choices alone are
    searched by coordinate moves with restarts, anything else by `scipy.optimize.differential_evolution`, in which a
    list counts by its order.
    """
    finite = all(not isinstance(given, tuple) for given in bounds.values())
    known: dict[tuple[str, ...], float] = {}
    repeats = 0  # in a row

    def seen(parameters: Parameters) -> float:
        nonlocal repeats
        key = tuple(map(repr, parameters.values()))
        repeats = repeats + 1 if key in known else 0
        if repeats > ASTRAY:
            raise Spent
        if key not in known:
            known[key] = score(parameters)
        return known[key]

    try:
        if finite and math.prod(len(given) for given in bounds.values()) <= tries:
            for values in itertools.product(*bounds.values()):
                seen(dict(zip(bounds, values, strict=True)))
        elif all(isinstance(given, list) for given in bounds.values()):
            _coordinate_moves(bounds, tries, seen, rng)
        else:
            _evolution(bounds, tries, seen, rng)
    except Spent:
        return


def _coordinate_moves(bounds: Bounds, tries: int, score: Score, rng: np.random.Generator) -> None:
    """One parameter after the other to its best choice; from a new random point when nothing gets better."""
    most = max(2, tries // (2 * len(bounds)))  # choices of one parameter in a sweep

    def anywhere() -> Parameters:
        return {name: given[int(rng.integers(len(given)))] for name, given in bounds.items()}

    while True:
        here = anywhere()
        best, better = score(here), True
        while better:
            better = False
            for place in rng.permutation(len(bounds)):
                name = list(bounds)[place]
                for choice in rng.permutation(len(bounds[name]))[:most]:
                    there = {**here, name: bounds[name][int(choice)]}
                    worth = score(there)
                    if worth > best:
                        here, best, better = there, worth, True


def _evolution(bounds: Bounds, tries: int, score: Score, rng: np.random.Generator) -> None:
    """Differential evolution (Storn & Price 1997) from points that are spread evenly over every parameter."""
    from scipy.optimize import Bounds as Box
    from scipy.optimize import differential_evolution

    ends = [given if isinstance(given, tuple) else (0, len(given) - 1) for given in bounds.values()]
    whole = np.array([not isinstance(given, tuple) for given in bounds.values()])
    low, high = np.array(ends, float).T
    size = max(5, int(FIRST_PART * tries))
    spread = np.stack([rng.permutation(size) for _ in ends], axis=1) + rng.random((size, len(ends)))
    first = low - 0.5 * whole + spread / size * (high - low + whole)
    first = np.clip(np.where(whole, np.round(first), first), low, high)
    failed: list[DpAuditError | Spent] = []

    def worth(point: Any) -> float:
        values = (
            given[round(float(x))] if integral else float(x)
            for x, given, integral in zip(point, bounds.values(), whole, strict=True)
        )
        try:
            value = score(dict(zip(bounds, values, strict=True)))
        except (DpAuditError, Spent) as error:
            failed.append(error)
            raise
        return -value if value > -math.inf else NOTHING

    try:
        # a list of one choice is widened: scipy divides by the distance of the bounds
        box = Box(low, np.where(high > low, high, low + 0.25))
        differential_evolution(
            worth, box, maxiter=tries, tol=0.0, polish=False, init=first, integrality=whole, seed=rng
        )
    except Exception:
        if failed:  # scipy reports errors of some kinds as its own
            raise failed[0] from None
        raise


FEWEST_RUNS = 100  # of a try: with fewer, luck is all that is seen
PROBE_RUNS = 8  # of a try, which look whether a batched call works
SHARDS = 1 << 20  # numbers of shards that belong to one try; the first of them to the audit at the end
MAKING, MOVING, SPREAD = 1 << 16, (1 << 16) + 1, (1 << 16) + 2  # keys of the streams of pairs and parameters
GLANCED = 8  # pairs that are asked by two runs, for each that is tried
SHOWN = 10  # tries that the text lists


@dataclass(frozen=True, slots=True)
class Tried:
    """One pair that was tried, and what its search runs promised; nothing here is certified.

    `score` is the predicted lower bound in the claim's parameter, `excess` how far it goes beyond what the claim
    allows, per step of distance; None where too little was seen. `parameters` is empty for pairs of a generator.
    """

    number: int
    name: str
    parameters: Parameters
    distance: int
    runs: int
    score: float | None
    excess: float | None

    def to_dict(self) -> dict[str, Any]:
        """The try as plain values, its parameters by `repr` where they are neither numbers nor text."""
        plain = {
            key: value if isinstance(value, bool | int | float | str) else repr(value)
            for key, value in self.parameters.items()
        }
        return {**by_fields(replace(self, parameters={})), "parameters": plain}


@dataclass(frozen=True, slots=True)
class PairSearch:
    """Every pair tried, the one that was certified, its audit, and all runs spent, the audit's included."""

    tried: tuple[Tried, ...]
    best: AdjacentPair
    result: AuditResult
    runs_used: int

    def to_dict(self) -> dict[str, Any]:
        """The search as plain values."""
        return {
            "tried": [each.to_dict() for each in self.tried],
            "best": self.best.record(),
            "result": self.result.to_dict(),
            "runs_used": self.runs_used,
        }

    def __repr__(self) -> str:
        return f"<PairSearch {len(self.tried)} pairs tried; the best: {self.result!r}>"

    def __str__(self) -> str:
        ranked = sorted(self.tried, key=_rank)[:SHOWN]
        lines = [f"{len(self.tried)} pairs tried; {self.runs_used:,} runs in all. Uncertified scores, the best first:"]
        for each in ranked:
            seen = "too little seen" if each.score is None else f"{each.score:.4g}"
            name = "" if each.name == f"try {each.number}" else f": {each.name}"
            lines.append(f"  try {each.number}{name}  {seen}")
        return "\n".join([*lines, "", str(self.result)])


def search_pairs(
    mechanism: Any,
    generate: Callable[..., Any] | Iterable[Any],
    *,
    claim: Claim,
    bounds: Bounds | None = None,
    runs: int = 1_000_000,
    tries: int = 64,
    share: float = 0.5,
    finalists: int = 4,
    confidence: float = 0.999,
    seed: int = 0,
    certifier: str | None = None,
    run_timeout_s: float | None = None,
    user: str | int | None = None,
    n_jobs: int | None = None,
    backend: str | None = None,
) -> PairSearch:
    """Looks for the pair that refutes the claim, and audits the best one on fresh runs.

    `generate` makes pairs (an `AdjacentPair` or (first, second)): a function of a generator `rng`, called once for
    each try; an iterable of pairs; or, with `bounds`, a function of keywords that are moved within them, each
    `(low, high)` for any number between, a `range` or a list of choices. At most `tries` pairs are tried, with equal
    runs, which together are a part `share` of `runs`; what `generate` makes is asked first, eight times as many, by two
    runs each with recorded noise, and the worst of these are half of the tries. The best `finalists` are screened again
    in the audit at the end, which has all runs that are left and certifies one.

    Raises `InvalidSpec` for what `generate` makes that is no pair, or no pair of the claim's relation, with the
    number of the try and its parameters; else as `dpaudit.audit`.

    >>> from dpaudit.claims import PureDP
    >>> def clipped_sum(rows, rng):  # clips at 1, but not below 0
    ...     return sum(min(row, 1.0) for row in rows) + rng.laplace(scale=1.0)
    >>> def one_more(value):
    ...     return [0.5], [0.5, value]
    >>> found = search_pairs(clipped_sum, one_more, bounds={"value": (-2.0, 2.0)}, claim=PureDP(1.0),
    ...                      runs=40_000, tries=20)
    >>> found.result.verdict.value, found.best.second[1] < -1.0, found.runs_used <= 40_000
    ('REFUTED', True, True)
    """
    limit = validate.whole("runs", runs, least=1)
    most = validate.whole("tries", tries, least=1)
    number = validate.whole("finalists", finalists, least=1)
    each = int(validate.open_probability("share", share) * limit) // most
    if each < FEWEST_RUNS:
        raise InvalidSpec(
            f"runs = {limit:,} leave {each} for each of {most} tries, and a try needs {FEWEST_RUNS}; "
            "give more runs or fewer tries"
        )
    if bounds is not None:
        check_bounds(bounds)
    check_claim(claim)

    def spec(pairs: tuple[AdjacentPair, ...], left: int) -> Question:
        return Question(
            claim=claim,
            mechanism=wrapped,
            pairs=pairs,
            runs=left,
            confidence=confidence,
            seed=seed,
            certifier=certifier,
            run_timeout_s=run_timeout_s,
            user=user,
        )

    wrapped: Mechanism = wrap(mechanism)
    with Engine(n_jobs, backend) as engine:
        search = _Search(engine, claim, spec, seed, user, tries=most, each=each, end=limit - most * each)
        if callable(generate):
            search.glance(wrapped, generate, bounds)
        search.over(generate, bounds)
        best = search.best(number)
        result = Runner(engine).run(spec(best, limit - search.runs))
    return PairSearch(tuple(search.tried), best[result.witness.pair], result, search.runs + result.runs_used)


def glanced_here(
    makers: Sequence[Callable[[], Any]], user: str | int | None, job: Job, task: FreshTask
) -> dict[str, str]:
    """How far apart outputs are on the pairs that are made, per step of distance, where the mechanism runs."""
    with recording(job) as call:
        pairs = (AdjacentPair.of(make()).of_user(user) for make in makers)
        seed = job.seed % 2**31
        return {"apart": json.dumps([glanced(call, *pair.open(), seed=seed) / pair.distance for pair in pairs])}


@dataclass(slots=True)
class _Search:
    """The tries so far."""

    engine: Engine
    claim: Claim
    spec: Callable[[tuple[AdjacentPair, ...], int], Question]
    seed: int
    user: str | int | None
    tries: int
    each: int
    end: int
    tried: list[Tried] = field(default_factory=list)
    pairs: list[AdjacentPair] = field(default_factory=list)
    runs: int = 0
    asked: Plan | None = None
    alone: bool = False  # a batched call has raised

    def glance(self, mechanism: Mechanism, generate: Callable[..., Any], bounds: Bounds | None) -> None:
        """Tries the pairs of many whose outputs are furthest apart; none where they are as far apart on all of them."""
        many, rng = range(self.tries, (1 + GLANCED) * self.tries), self._rng(SPREAD)
        makers = [partial(generate, self._rng(MAKING, number)) for number in many]
        if bounds is not None:
            points = [{name: _drawn(given, rng) for name, given in bounds.items()} for _ in many]
            makers = [partial(generate, **point) for point in {repr(each): each for each in points}.values()]
        if len(makers) > self.tries:
            work = partial(glanced_here, makers, self.user)
            apart = json.loads((asked_alone(self.engine, mechanism, self.seed, work) or {"apart": "[]"})["apart"])
            self.runs += 2 * len(apart)
            order = sorted(range(len(makers)), key=lambda place: -apart[place]) if len(set(apart)) > 1 else []
            for place in order[: self.tries // 2]:
                self.add(makers[place], makers[place].keywords)

    def over(self, generate: Any, bounds: Bounds | None) -> None:
        """Tries the pairs of a generator, an iterable, or a function of parameters."""
        if bounds is not None:
            if not callable(generate):
                raise InvalidSpec(f"with bounds, generate must be a function of {', '.join(bounds)}, got {generate!r}")
            move(
                bounds,
                self.tries - len(self.tried),
                lambda given: self.add(lambda: generate(**given), given),
                self._rng(MOVING),
            )
        elif callable(generate):
            for number in range(self.tries - len(self.tried)):
                self.add(lambda number=number: generate(self._rng(MAKING, number)), {})  # type: ignore[misc]
        else:
            self._over_iterable(generate)
        if not self.tried:
            raise InvalidSpec("pair search: generate gave no pair; give at least one")

    def _over_iterable(self, generate: Any) -> None:
        try:
            given = iter(generate)
        except TypeError:
            what = type(generate).__name__
            raise InvalidSpec(f"generate must be a function or an iterable of pairs, got {what}") from None
        missing = object()
        for _ in range(self.tries):
            pair = self._made(lambda: next(given, missing), {})
            if pair is missing:
                return
            self.add(lambda pair=pair: pair, {})  # type: ignore[misc]

    def add(self, make: Callable[[], Any], parameters: Parameters) -> float:
        """Tries one pair; its excess, -inf where too little was seen. Raises `Spent` when all tries are made."""
        if len(self.tried) == self.tries:
            raise Spent
        number = len(self.tried)
        pair = self._pair(self._made(make, parameters), number, parameters)
        before = self.runs
        if self.asked is None:  # the audit at the end, on this pair alone: checks what was asked before anything runs
            self.asked = self.spec((pair,), self.end).resolved()
        with self.engine.session(self.asked.mechanism, (pair,), self.seed, self.asked.run_timeout_s) as session:
            if self.alone:
                session.begin_alone(apart(self.seed))
            try:
                look = self._look(self.asked, pair, session, number)
            except BatchFailed:  # from here on one run a call, where what raises is an output
                if self.alone:
                    raise
                self.alone, gone = True, session.asked_for
                session.begin_alone(apart(self.seed))
                look = self._look(self.asked, pair, session, number)
                self.runs += gone
        proposal = look.proposal()
        over = excess(self.claim, pair.distance, proposal)
        unseen = proposal is None or over == -math.inf
        self.tried.append(
            Tried(
                number=number,
                name=pair.name,
                parameters=dict(parameters),
                distance=pair.distance,
                runs=self.runs - before,
                score=None if proposal is None else round(proposal.score, 6),
                excess=None if unseen else round(over, 6),
            )
        )
        self.pairs.append(pair)
        return over

    def best(self, most: int) -> tuple[AdjacentPair, ...]:
        """The best different pairs, in order."""
        chosen: dict[tuple[str, str], AdjacentPair] = {}
        for each in sorted(self.tried, key=_rank):
            pair = self.pairs[each.number]
            chosen.setdefault((digest(pair.first), digest(pair.second)), pair)
        return tuple(chosen.values())[:most]

    def _look(self, asked: Plan, pair: AdjacentPair, session: Session, number: int) -> Look:
        first = probe(asked, session, PROBE_RUNS)
        certifying = self.end - int((asked.search_share or SEARCH_SHARE) * self.end)
        end = goal_at(asked, pair.distance, certifying)
        look = Look(session, 0, end, shard_runs=asked.shard_runs, start=(number + 1) * SHARDS)
        self.runs += first.runs + look.hold(self.each - first.runs)
        look.aim(cautious(end, look.now.runs, self.tries))
        return look

    def _made(self, make: Callable[[], Any], parameters: Parameters) -> Any:
        try:
            return make()
        except DpAuditError as error:
            raise InvalidSpec(f"{self._place(parameters)}: {error}") from None
        except Exception as error:
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            raise InvalidSpec(f"{self._place(parameters)}: making the pair failed with {what}") from None

    def _pair(self, given: Any, number: int, parameters: Parameters) -> AdjacentPair:
        name = _words(parameters) or f"try {number}"
        with at(self._place(parameters)):
            pair = AdjacentPair.of(given, name).of_user(self.user)
            pair.check(self.claim.relation)
        return replace(pair, name=name) if pair.name == "pair" else pair

    def _place(self, parameters: Parameters) -> str:
        words = _words(parameters)
        return f"pair search, try {len(self.tried)}" + (f" ({words})" if words else "")

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=key)))


def _drawn(given: Sequence[Any], rng: np.random.Generator) -> Any:
    return rng.uniform(*given) if isinstance(given, tuple) else given[int(rng.integers(len(given)))]


def _rank(each: Tried) -> tuple[float, int]:
    return (math.inf if each.excess is None else -each.excess, each.number)


def _words(parameters: Parameters) -> str:
    return ", ".join(
        f"{key} = {value:.6g}" if isinstance(value, float) else f"{key} = {value!r}"[:60]
        for key, value in parameters.items()
    )
