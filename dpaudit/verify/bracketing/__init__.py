"""Brackets: a mechanism is bounded from above and audited from below, and all results are put into one bracket."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.auditing.clock import Clock
from dpaudit.auditing.probing import TooLittleTime, planned_runs
from dpaudit.auditing.question import Question
from dpaudit.auditing.runner import Runner
from dpaudit.base import validate
from dpaudit.claims import Claim, PureDP
from dpaudit.claims.rounding import above
from dpaudit.data import AdjacentPair
from dpaudit.data.data import digest
from dpaudit.errors import InvalidSpec, MissingRequirement, OutOfTime, UnsoundAudit, at
from dpaudit.execution.engine import Engine
from dpaudit.results.bounds import PROVES, Bracket, Label, UpperBound
from dpaudit.results.result import AuditResult
from dpaudit.running.progress import SILENT, Progress
from dpaudit.verify.bracketing.coupling import COUPLING, checked
from dpaudit.verify.bracketing.targets import (
    RECORDS,
    WAYS,
    Target,
    answers_of_pair,
    check_adjacent,
    check_relation,
    check_unit,
    form_of,
    length_of,
    stated,
    target_named,
    target_of,
    value_of,
    with_defaults,
)
from dpaudit.verify.bracketing.upper import (
    ALIGNMENT,
    PART,
    READING,
    Bounds,
    bound_of_proofs,
    check_together,
    derived,
    proofs_of,
    readings,
    replayed,
    with_exact_loss,
)
from dpaudit.verify.coupled import Derivation
from dpaudit.verify.deadline import left_s, within
from dpaudit.verify.enclosure import NarrowFloat
from dpaudit.verify.proof import Proof
from dpaudit.verify.replay.losses import adjacent

__all__ = [
    "WAYS",
    "Joined",
    "Target",
    "Wanted",
    "bound_of_proofs",
    "checked",
    "run_bracket",
    "target_named",
    "target_of",
]

ONE_WAY = ("up", "down")
SURELY_IN_TIME = 20_000  # runs: with more, a probe says how many fit


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a target; None leaves it to the target.

    `claim` is a claim, or a text in the program's parameters such as "2*eps". `answers` is the number of query
    answers of the pair to search, and of the proof if none holds for any number. `runs` 0 means no audit.
    """

    claim: Claim | str | None = None
    pair: AdjacentPair | None = None
    adjacency: str | None = None
    answers: int | None = None
    domain: Any = None
    neighbours: Any = None
    most_paths: int = 1_000_000
    runs: int = 1_000_000
    confidence: float = 0.999
    seed: int = 0
    uppers: tuple[UpperBound, ...] = ()
    max_time_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Joined:
    """The bracket, with the proofs and the audit that stand behind it; `notes` explain what methods met."""

    bracket: Bracket
    proofs: tuple[Proof | Derivation, ...] = ()
    audit: AuditResult | None = None
    notes: tuple[str, ...] = ()


def run_bracket(target: Target, wanted: Wanted, engine: Engine, *, progress: Progress = SILENT) -> Joined:
    """The bracket of a target. Raises `InvalidSpec` for a wrong question, `UnsoundAudit` for a contradiction in it."""
    clock = Clock(validate.positive("max_time_s", wanted.max_time_s))
    with within(clock.limit_s), clock.over(engine):
        return _joined(target, wanted, engine, clock, progress)


def _joined(target: Target, wanted: Wanted, engine: Engine, clock: Clock, progress: Progress) -> Joined:
    if isinstance(wanted.neighbours, Iterator):  # it is read more than once
        wanted = replace(wanted, neighbours=tuple(wanted.neighbours))
    domain = _domain(wanted)
    adjacency = _adjacency(target, wanted) if domain is None else None
    offered = target.pair if domain is None and wanted.answers is None and adjacency not in ONE_WAY else None
    pair = wanted.pair or offered
    if wanted.answers is not None:
        validate.whole("answers", wanted.answers, least=1)
        if adjacency in RECORDS:
            raise InvalidSpec(f"answers are those of queries, and {adjacency!r} is about records: leave it out")
    validate.open_probability("confidence", wanted.confidence)
    validate.whole("seed", wanted.seed, least=0)
    _check_pair(pair, wanted.pair, adjacency)
    if pair is not None and wanted.answers not in (None, own := length_of(pair.first)):
        raise InvalidSpec(f"answers must be those of the pair, {own}, got {wanted.answers}; leave it out")
    known = Bounds(wanted.uppers)
    of_answers = adjacency is not None or domain is None and _is_of_answers(pair)
    if adjacency not in RECORDS and (isinstance(wanted.claim, str) or of_answers):
        read = readings(target, wanted.claim, () if pair is None else (pair,), wanted.answers)
        known = known.attempt(READING, read)
    claim = wanted.claim if isinstance(wanted.claim, Claim) else target.claim
    if isinstance(wanted.claim, str):
        with at("claim"):
            claim = PureDP(above(value_of(wanted.claim, known.parameters or stated(with_defaults(target)))))
    check_relation(claim, adjacency)
    answers = wanted.answers or (None if pair is None else length_of(pair.first))
    if known.reading is not None and adjacency in WAYS:
        known = known.attempt(ALIGNMENT, proofs_of(known.reading, claim, adjacency), PART)
    elif adjacency is None and domain is None:
        words = f"give an adjacency, of query answers {', '.join(WAYS)}; of records {', '.join(RECORDS)}"
        known += Bounds(reasons=(f"proofs: {target.unread if target.source is None else words}",))
    if adjacency is not None and not _settles(known, claim):
        kind, number = form_of(pair, adjacency in RECORDS)
        kind = kind or (None if wanted.answers is None else "an array")
        number = wanted.answers or (number if kind == "an array" else None)
        for data, many in ((kind, None), *([] if number is None else [("an array", number)])):
            if not _settles(known, claim):
                known = known.attempt(COUPLING, derived(target, claim, pair, adjacency, data, many), PART)
    if domain is not None:
        part = PART if wanted.runs or known.reading is not None else 1.0  # all of it where nothing is to follow
        every = replayed(target, claim, domain, wanted.neighbours, wanted.most_paths)
        known = known.attempt("exact replay", every, part)
        pair = pair or known.pair
    made_up = pair is None and adjacency in RECORDS
    if adjacency not in ONE_WAY:
        looked_at = known.pair if made_up else pair
        known = with_exact_loss(known, target, claim, looked_at, adjacency, answers)
    pair = pair or known.pair

    def foreseen(bound: UpperBound, endings: list[str]) -> bool:
        """Whether a proof by coupling says that the program may raise so, on both datasets alike."""
        ways = [way for each in known.behind.get(bound, ()) if isinstance(each, Derivation) for way in each.ways]
        return set(endings) <= {f"raised {way.raised}" for way in ways}

    lower, audit = None, None
    if wanted.runs and pair is not None and adjacency not in ONE_WAY:
        try:
            audit = _audit(target, pair, claim, wanted, engine, clock, progress)
            lower = audit.lower_bound
            at_delta = audit.upper  # the loss that the mechanism offers at the delta of the audit
            if at_delta is not None and at_delta.delta > 0.0:
                below = [each.epsilon_upper for each in known.uppers if each.delta <= at_delta.delta]
                known += Bounds((at_delta,)) if min(below, default=math.inf) == math.inf else Bounds()
            raised = [each.what for each in audit.illustration.endings if each.what.startswith("raised ")]
            if raised:  # a replay counts exceptions among the outputs; a program that is read has those it says
                why = f"as some runs {raised[0]}, and what was proved never raises"
                known = known.set_aside(lambda each: each.label is Label.PROVED and not foreseen(each, raised), why)
        except UnsoundAudit as error:
            known += Bounds(reasons=(f"audit: {'give a pair of datasets; ' if made_up else ''}{error}",))
            if not isinstance(error, MissingRequirement | OutOfTime):
                known = known.set_aside(lambda each: each.label in PROVES, "as the audit of what runs broke")
    elif wanted.runs:
        why = "it looks at both ways" if adjacency in ONE_WAY else "give a pair of datasets"
        known += Bounds(reasons=(f"audit: {why}",))
    check_together(known)
    bracket = Bracket(
        target.name,
        claim,
        lower if lower is None or claim else replace(lower, refutes=False),  # there was no claim to refute
        known.uppers,
        known.told(bool(known.behind) and (claim is None or _settles(known, claim)), made_up),
        adjacency if adjacency in ONE_WAY else None,
    )
    best = bracket.proving or min(known.behind, key=lambda each: each.epsilon_upper, default=None)
    return Joined(bracket, known.behind.get(best, ()) if best else (), audit, known.notes)


def _settles(known: Bounds, claim: Claim | None) -> bool:
    """Whether the claim is proved already."""
    return Bracket("", claim, None, known.uppers).proving is not None


def _domain(wanted: Wanted) -> tuple[Any, ...] | None:
    """The datasets of the domain; a pair that is given must be one of its neighbours."""
    if wanted.domain is None and wanted.neighbours is None:
        return None
    if wanted.domain is None or wanted.neighbours is None:
        raise InvalidSpec('a replay needs both: domain, the datasets, and neighbours, a function, pairs or "all"')
    if wanted.adjacency is not None or wanted.answers is not None:
        raise InvalidSpec("domain and neighbours say who is compared; adjacency and answers are for query answers")
    if not isinstance(wanted.domain, Iterable):
        raise InvalidSpec(f"domain must be the datasets, such as a list of them, got {wanted.domain!r}")

    domain = tuple(wanted.domain)
    pairs = adjacent(domain, wanted.neighbours)
    if wanted.pair is not None:
        ours = {digest(wanted.pair.first), digest(wanted.pair.second)}
        if not any({digest(domain[i]), digest(domain[j])} == ours for i, j in pairs):
            raise InvalidSpec("the pair must be neighbours of the domain, for the bracket is about these")
    return domain


def _adjacency(target: Target, wanted: Wanted) -> str | None:
    if wanted.adjacency is None:
        return target.adjacency
    word = validate.one_of("adjacency", wanted.adjacency, (*WAYS, *RECORDS))
    if word in WAYS:
        check_unit(target)
    return word


def _check_pair(pair: AdjacentPair | None, given: AdjacentPair | None, adjacency: str | None) -> None:
    if pair is None:
        return
    if pair.distance > 1:
        raise InvalidSpec(f"a bracket is about neighbours: give a pair at distance 1, got {pair.distance}")
    if adjacency in ONE_WAY and given is not None:
        raise InvalidSpec(f"adjacency {adjacency!r} is one way, a pair is compared both ways: give 'monotone'")
    if adjacency is not None and adjacency not in RECORDS:
        try:
            check_adjacent(*answers_of_pair(pair), adjacency)
        except NarrowFloat:  # nothing is proved or computed of them, but an audit runs them as they are
            first, second = (np.asarray(each, np.float64).tolist() for each in (pair.first, pair.second))
            check_adjacent(*answers_of_pair(AdjacentPair(first, second)), adjacency)


def _is_of_answers(pair: AdjacentPair | None) -> bool:
    """Whether both datasets of a pair are query answers, as far as their form shows."""
    try:
        return pair is not None and all(answers_of_pair(pair))
    except InvalidSpec:
        return False


def _audit(
    target: Target,
    pair: AdjacentPair,
    claim: Claim | None,
    wanted: Wanted,
    engine: Engine,
    clock: Clock,
    progress: Progress,
) -> AuditResult:
    asked = claim or PureDP(0.0)
    pair.check(asked.relation)
    runner = Runner(engine, progress=progress)
    question = Question(
        asked,
        target.mechanism,
        (pair,),
        name=target.name,
        runs=wanted.runs,
        confidence=wanted.confidence,
        seed=wanted.seed,
    )
    description, pairs = runner.described(question)
    question = replace(question, description=description, pairs=pairs)
    clock = Clock(left_s(), clock.now)
    if wanted.runs > SURELY_IN_TIME:
        try:
            question = replace(question, runs=planned_runs(question, pairs, engine, clock))
        except TooLittleTime as error:
            raise OutOfTime(str(error)) from None
    clock.limits(engine)
    return runner.run(question, None if question.runs == wanted.runs else clock)
