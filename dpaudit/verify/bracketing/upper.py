"""From above: a mechanism is read, proved where it can be, replayed where a domain is given, and its pair computed.

A method that cannot say anything becomes a reason. A proof counts only once the independent checker has accepted it.
"""

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, product
from typing import Any

from dpaudit.account.bracketed import upper_text
from dpaudit.auditing.known import known_upper
from dpaudit.base.strict import stored
from dpaudit.claims import ApproximateDP, Claim, PureDP, Relation
from dpaudit.claims.rounding import above
from dpaudit.data import AdjacentPair
from dpaudit.data.data import digest
from dpaudit.errors import DpAuditError, InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.results.bounds import EXACT, Arithmetic, Bracket, Label, UpperBound, hair_above
from dpaudit.verify.alignment import Unproved, prove
from dpaudit.verify.bracketing.coupling import (
    COUPLING,
    bound_of_derivations,
    bounds_of,
    check_about,
    dearest,
    most_spent,
    proposed,
    small_pairs,
)
from dpaudit.verify.bracketing.targets import (
    RECORDS,
    WAYS,
    Target,
    answers_of_pair,
    check_adjacent,
    check_form,
    check_relation,
    check_unit,
    many_answers,
    words_of,
)
from dpaudit.verify.checker import certified, check, epsilon
from dpaudit.verify.coupled import MOST_ANSWERS, Derivation, derive, names_of
from dpaudit.verify.coupled.cases import NeighbourCase
from dpaudit.verify.coupled.tape import check_reading
from dpaudit.verify.coupled.ways import NotShown
from dpaudit.verify.deadline import left_s, within
from dpaudit.verify.enclosure import Enclosure, check_wide, named, rational
from dpaudit.verify.language import expression, read_source
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.language.source import source_of
from dpaudit.verify.proof import REACH, SYMMETRIC, Proof
from dpaudit.verify.replay import outside, replay
from dpaudit.verify.witnesses import (
    OutsideIntegrals,
    PairLoss,
    pair_delta,
    pair_loss,
    worst_pair,
)
from dpaudit.verify.witnesses.followed import CLOSE, followed
from dpaudit.verify.witnesses.losses import delta_between, loss_between
from dpaudit.verify.witnesses.outputs import in_words

MOST_EPSILON = 64.0  # that is looked for at a delta
WITHIN = 1e-6  # relative: how exact that epsilon is
PART = 0.5  # of the time that is left, for each method: the steps after it get the rest
MOST_TIME_S = 1e6  # for one method, where nothing limits it
BESIDE = 1e-3  # the delta at which the loss of a pair is compared with a claim of another form
ANSWERS = 5  # of the pair that is looked for, where nothing says how many
LENGTHS = (10, 20, 40, 80)  # numbers of answers where few refute nothing: a top costs most after many bottoms
GAIN = 1.01  # more answers that lose less than 1 % more end the search
MOST_EFFORT = 3_000  # paths followed and integrals asked for at each number, then its search ends
READING, ALIGNMENT, FOLLOWED = "reading the source", "proof by alignment", "the code followed on the pair"
PAIRS_S = 2.0  # for the small pairs that what is shown is held against
Costed = tuple[Proof, Fraction]  # a proof and the loss that it shows at the parameters


class NotAligned(InvalidSpec):
    """No alignment was found: the line, what is in the way, and what to change or to state."""

    def __init__(self, found: Unproved) -> None:
        cure = "give `answers`, or stop after a public number of outputs"
        growing = "" if found.growing is None else f", and the cost grows as {found.growing}: {cure}"
        super().__init__(f"{'' if found.line is None else f'line {found.line}: '}{found.reason}{growing}")
        self.line = found.line


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a target: the program, its parameters, and the claim as a text that its proofs can say."""

    program: Program
    parameters: Mapping[str, Fraction]
    claim: str | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known from above; results of several methods are joined by `+`.

    A method gives its bounds one by one, so that those before an error count. `answers` says how many a bound that is
    computed here is about (None: any number), `behind` by which proofs, `parameters` those of the program, `pair` which
    pair was looked at, `lines` where the methods whose reasons these are came to, `notes` what explains more.
    """

    uppers: tuple[UpperBound, ...] = ()
    answers: Mapping[UpperBound, int | None] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    behind: Mapping[UpperBound, tuple[Proof | Derivation, ...]] = field(default_factory=dict)
    parameters: Mapping[str, Fraction] = field(default_factory=dict)
    reading: Reading | None = None
    pair: AdjacentPair | None = None

    def __add__(self, more: "Bounds") -> "Bounds":
        return Bounds(
            self.uppers + more.uppers,
            {**self.answers, **more.answers},
            self.reasons + more.reasons,
            {**self.lines, **more.lines},
            self.notes + more.notes,
            {**self.behind, **more.behind},
            more.parameters or self.parameters,
            more.reading or self.reading,
            more.pair or self.pair,
        )

    def set_aside(self, which: Callable[[UpperBound], bool], why: str) -> "Bounds":
        """Without some of the bounds; each becomes a reason."""
        kept = tuple(each for each in self.uppers if not which(each))
        reasons = (f"set aside, {why}: {upper_text(each)}" for each in self.uppers if which(each))
        return replace(self, uppers=kept, reasons=(*self.reasons, *reasons))

    def attempt(self, method: str, bounds: Iterable["Bounds"], part: float = 1.0) -> "Bounds":
        """These and what a method adds in a part of the time left; what it refuses, or breaks on, becomes a reason.

        Of a method that is tried again the last reason counts.
        """
        known = replace(self, reasons=tuple(each for each in self.reasons if not each.startswith(f"{method}: ")))
        try:
            with within(part * left_s(MOST_TIME_S)):
                for more in bounds:
                    known += more
        except DpAuditError as error:
            if any(str(error) in reason for reason in known.reasons):
                return known
            reason, line = f"{method}: {error}", getattr(error, "line", None)
            return known + Bounds(reasons=(reason,), lines={} if line is None else {reason: line})
        except (OverflowError, RecursionError):
            why = "a number beyond doubles, or what is nested too deeply: give parameters of common size"
            return known + Bounds(reasons=(f"{method}: {why}",))
        except Exception as error:  # the steps after it do not depend on it
            broken = f"{method}: it broke, please report it: {type(error).__name__}: {error}"
            return known + Bounds(reasons=(broken,))
        return known

    def told(self, done: bool, made_up: bool) -> tuple[str, ...]:
        """The reasons, first that of the method that came furthest.

        What the first reader does not read is left out where another came as far, has a bound for any number of
        answers, or where all is `done`; then what no alignment shows as well, and no pair that was `made_up`.
        """
        others = (self.lines.get(reason, 0) for reason in self.reasons if not reason.startswith(READING))
        far = math.inf if done or None in map(self.answers.get, self.behind) else max(others, default=0)
        left = (each for each in self.reasons if not each.startswith(READING) or self.lines.get(each, math.inf) > far)
        no_more = (ALIGNMENT, FOLLOWED) if made_up else (ALIGNMENT,)
        left = (each for each in left if not (done and each.startswith(no_more)))
        return tuple(sorted(left, key=lambda each: -self.lines.get(each, 0)))


def readings(
    target: Target, claim: Claim | str | None, pairs: Sequence[AdjacentPair] = (), answers: int | None = None
) -> Iterator[Bounds]:
    """The parameters, the program, and the claim that is read; `pairs` and `answers` must be of the program's form."""
    if target.source is None:
        raise InvalidSpec(target.unread)
    source, program = read_source(target.source, name=target.function)
    if target.check is not None:
        target.check()
    data, rng = names_of(source.definition, target.parameters)
    given = {**program.defaults, **target.parameters}
    floats = [name for name in sorted(program.integers) if isinstance(given[name], float)]
    if floats:
        raise InvalidSpec(f"{floats[0]} is counted with, and what is computed of a float rounds: give an int")
    check_form(program, pairs, answers)
    parameters = {name: rational(f"the parameter {name}", given[name]) for name in program.parameters}
    yield Bounds(parameters=parameters)
    for pair in pairs:
        answers_of_pair(pair)  # raises for numbers that round otherwise than doubles
    check_reading(source, program, data, rng or "rng", parameters)
    yield Bounds(reading=Reading(program, parameters))
    if isinstance(claim, str):
        expression(claim, program)  # raises for what this program's proofs cannot say
        yield Bounds(reading=Reading(program, parameters, claim))


def proofs_of(reading: Reading, claim: Claim | None, adjacency: str) -> Iterator[Bounds]:
    """Bounds by alignment: for all parameters, and where that leaves the claim open, at the whole ones."""
    refused: list[Unproved] = []
    least = math.inf  # of the bounds so far
    program = reading.program
    whole = {name: reading.parameters[name] for name in program.parameters if name in program.integers}
    for fixed in (None, whole) if whole else (None,):
        result = _proofs(reading, adjacency, fixed)
        if isinstance(result, Unproved):
            refused.append(result)
            continue
        bound = proved_bound(reading, adjacency, result, "randomness alignment")
        if least <= bound.epsilon_upper:
            continue  # holds for fewer inputs, and says no more
        least = bound.epsilon_upper
        yield Bounds((bound,), {bound: None}, behind={bound: tuple(proof for proof, _ in result)})
        if claim is None or Bracket("", claim, None, (bound,)).proving is not None:
            return
    if refused and least == math.inf:
        raise NotAligned(max(refused, key=lambda each: (each.line or 0, each is refused[-1])))


def derived(
    target: Target,
    claim: Claim | None,
    pair: AdjacentPair | None,
    adjacency: str,
    data: str | None,
    answers: int | None,
) -> Iterator[Bounds]:
    """The bounds by coupling, for all datasets that differ as an adjacency says; first a pair of the dearest case."""
    if target.source is None:
        raise InvalidSpec(target.unread)
    source = source_of(target.source, target.function)
    if target.check is not None:
        target.check()
    for name, value in target.parameters.items():
        check_wide(f"the parameter {name}", value)
    heard, found = list[NeighbourCase](), list[Derivation]()
    try:
        for way in WAYS.get(adjacency, (adjacency,)):
            one = derive(source, way, target.parameters, data=data, answers=answers, heard=heard)
            found.append(replace(one, claim=stored(claim)))
    except NotShown:
        if heard:
            note = f"{COUPLING}, which stops in the case: {heard[-1].words}"
            yield Bounds(notes=(note,), pair=proposed(heard[-1], adjacency))
        raise
    for each in found:
        if pair is not None:
            check_about(each, pair)
    case = next((each for each in heard if each.words == dearest(found[-1]).case), heard[-1])
    yield Bounds(pair=proposed(case, adjacency))
    bounds = tuple(bounds_of(found, claim))
    if claim is not None and Bracket("", claim, None, bounds).proving is None:
        bounds = tuple(bounds_of(found, claim, f"{COUPLING}{most_spent(found)}"))
    for bound in bounds:
        yield Bounds((bound,), {bound: answers}, behind={bound: tuple(found)})
    if adjacency in SYMMETRIC or adjacency not in REACH:  # the loss of a pair is that of both ways
        yield _contradiction(bounds, target, claim, adjacency, chain(*(small_pairs(one, heard) for one in found)))


def _proofs(reading: Reading, adjacency: str, fixed: Mapping[str, Fraction] | None) -> list[Costed] | Unproved:
    """The accepted proofs of all ways of an adjacency with their costs, or the first that failed."""
    costed: list[Costed] = []
    for way in WAYS[adjacency]:
        proof = prove(reading.program, way, claim=reading.claim, fixed=fixed)
        if isinstance(proof, Unproved):
            return proof
        proof = certified(proof)
        costed.append((proof, epsilon(proof, reading.parameters)))
    return costed


def proved_bound(reading: Reading, adjacency: str, proofs: Sequence[Costed], source: str) -> UpperBound:
    """What proofs of all ways of an adjacency show together, and for which inputs."""
    number = "the data one number" if reading.program.loop is None else many_answers(None)
    at = f"; at {named(reading.parameters)}" if reading.parameters else ""
    scope = f"all inputs ({words_of(adjacency)}; {number}{at})"
    return UpperBound(above(max(cost for _, cost in proofs)), 0.0, Label.PROVED, scope, Arithmetic.REALS, source)


def replayed(
    target: Target, claim: Claim | None, domain: tuple[Any, ...], neighbours: Any, most_paths: int
) -> Iterator[Bounds]:
    """The exact loss over all neighbours of the domain, and at the delta of the claim, with the worst pair."""
    if not callable(target.source):
        raise InvalidSpec("only a function of one run can be replayed")
    losses = replay(target.source, domain, neighbours, parameters=dict(target.parameters), most_paths=most_paths)
    yield Bounds((losses.upper_bound(),))
    delta = 0.0 if claim is None else claim.delta
    if 0.0 < delta < 1.0:  # the next double above it: 1/6 as a double is below 1/6
        yield Bounds((losses.upper_bound(min(1.0, hair_above(delta))),))
    first, second = domain[losses.worst.first], domain[losses.worst.second]
    if digest(first) != digest(second):  # not two equal datasets that were called neighbours
        yield Bounds(pair=AdjacentPair(first, second, "the worst of the domain"))


def with_exact_loss(
    known: Bounds,
    target: Target,
    claim: Claim | None,
    pair: AdjacentPair | None,
    adjacency: str | None,
    answers: int | None,
) -> Bounds:
    """With the exact loss of the pair; where none is given, of the worst that a search finds: that is the pair then."""
    reading = known.reading
    if reading is not None and pair is not None:
        relation = None if claim is None or adjacency in WAYS else claim.relation
        known = known.attempt("exact loss", _loss_of(reading, claim, pair, relation, known.reasons), PART)
    elif reading is not None and adjacency is not None:
        known = _with_search(known, reading, claim, adjacency, answers)
    if pair is not None and not any(each.label in EXACT for each in known.uppers):
        known = known.attempt(FOLLOWED, _followed(target, claim, pair, adjacency), PART)
    computed = (each for each in known.uppers if each.label is Label.EXACT_PAIR)
    if pair is not None and all(each.epsilon_upper == math.inf != each.epsilon_lower for each in computed):
        offered = known_upper(target.mechanism, pair, 0.0 if claim is None else claim.delta)
        known += Bounds() if offered is None else Bounds((offered,))
    return known


def _loss_of(
    reading: Reading, claim: Claim | None, pair: AdjacentPair, relation: Relation | None, reasons: tuple[str, ...]
) -> Iterator[Bounds]:
    """The loss of a pair, and at the delta of the claim; `reasons` are those before, which are not said twice."""
    pair.check(relation)
    first, second = answers_of_pair(pair)
    loss = pair_loss(reading.program, first, second, reading.parameters)
    bound = loss.upper_bound()
    bound = replace(bound, scope=f'the pair "{pair.name}", {bound.scope}')
    yield Bounds((bound,), {bound: len(first)}, notes=(_event(loss),))
    least_delta = functools.partial(pair_delta, reading.program, first, second, reading.parameters)
    at_delta = (Bounds((each,)) for each in _at_delta(least_delta, claim, bound))
    more = Bounds(reasons=reasons).attempt("exact loss at delta", at_delta)
    yield replace(more, reasons=more.reasons[len(reasons) :])


def _followed(target: Target, claim: Claim | None, pair: AdjacentPair, adjacency: str | None) -> Iterator[Bounds]:
    """The loss of a pair by the code itself, run on both datasets with draws that stay open."""
    if not callable(target.source):
        return
    relation = Relation(adjacency) if adjacency in RECORDS else None if claim is None else claim.relation
    users = relation is Relation.ADD_OR_REMOVE_USER and isinstance(pair.first, Mapping)  # from each user to the rows
    pair.check(Relation.ADD_OR_REMOVE_ONE if users else relation)
    ours, theirs = followed(target.source, *pair.open(), target.parameters, target.name)
    found = loss_between(ours, theirs)
    unseen = ", ".join(sorted(outside(target.source)))
    scope = f'the pair "{pair.name}"; {found.over}{f", if nothing is kept or told by {unseen}" if unseen else ""}'
    pure = replace(found.upper_bound(), scope=scope, source=f"{target.name} followed on the pair")
    told = [pure] if pure.epsilon_lower != math.inf or isinstance(claim, PureDP | None) else []  # as of normal noise
    for each in chain(told, _at_delta(lambda epsilon: delta_between(ours, theirs, epsilon), claim, pure)):
        low, high = (each.epsilon_lower or 0.0) * (1.0 - CLOSE) - CLOSE, each.epsilon_upper * (1.0 + CLOSE) + CLOSE
        sure = replace(each, epsilon_lower=max(0.0, low), epsilon_upper=high)  # the code's own doubles round
        yield Bounds((sure,), {sure: None})


def _event(loss: PairLoss) -> str:
    """The event that shows the loss of a pair, with its probabilities."""
    way, order = loss.worst, "" if loss.worst is loss.forward else ", the second over the first"
    chances = f"{way.likelier.middle:.6g} and {way.rarer.middle:.6g}"
    return f"answers {loss.words}{order}: the output {in_words(way.event)} has the probabilities {chances}"


def _at_delta(least_delta: Callable[[float], Enclosure], claim: Claim | None, pure: UpperBound) -> Iterator[UpperBound]:
    """The epsilon of the pair at the delta of the claim, or one beside it: from bisection, one end on either side."""
    delta = 0.0 if claim is None else claim.delta if isinstance(claim, PureDP | ApproximateDP) else BESIDE
    if not 0.0 < delta < 1.0:
        return

    def side(epsilon: float) -> int:
        """Above 0 where the loss at delta is certainly larger, below 0 where it is at most this, 0 where unknown."""
        mass = least_delta(epsilon)
        return 1 if mass.lower > delta else -1 if mass.upper <= delta else 0

    low, high = 0.0, 0.0 if side(0.0) < 0 else min(pure.epsilon_upper, 1.0)
    while high and high < pure.epsilon_upper and (where := side(high)) >= 0:
        if high >= MOST_EPSILON and where > 0:
            yield replace(pure, epsilon_lower=high, delta=delta)
            return
        if high >= MOST_EPSILON:
            raise InvalidSpec(f"the epsilon at delta {delta:g} cannot be told")
        high = min(2.0 * high, pure.epsilon_upper)
    while high - low > WITHIN * high:
        middle = (low + high) / 2.0
        where = side(middle)
        if where == 0:
            break
        low, high = (middle, high) if where > 0 else (low, middle)
    yield replace(pure, epsilon_upper=high, epsilon_lower=low, delta=delta)


def _with_search(known: Bounds, reading: Reading, claim: Claim | None, adjacency: str, answers: int | None) -> Bounds:
    """With the worst pair of a search and its loss; one that refutes the claim if there is one; else a plain one."""
    program = reading.program
    number = 1 if program.loop is None else answers or ANSWERS

    def worst(sizes: Sequence[int], claimed: float, effort: float) -> Iterator[Bounds]:
        """The worst pair of the first number of answers where it loses more than is claimed."""
        way, lost = "up" if adjacency == "monotone" else adjacency, 0.0  # both orders of a pair are compared
        for size in sizes:
            if size > MOST_ANSWERS:
                raise InvalidSpec(f"no pair of more than {MOST_ANSWERS} answers is looked for: give one, or fewer")
            best = worst_pair(program, way, size, reading.parameters, effort=effort)
            if best.loss.lower > claimed:
                break
            if size > ANSWERS and best.loss.lower < GAIN * lost:
                return
            lost = best.loss.lower
        else:
            return
        bound, event = best.upper_bound(), Bounds(notes=(_event(best),))
        # all events: long, and no news
        many = size > ANSWERS and Bracket("", claim, None, (bound,)).refuting
        if bound.epsilon_upper == math.inf != bound.epsilon_lower and not many:  # only some events were looked at
            with contextlib.suppress(OutsideIntegrals):
                bound = pair_loss(program, best.first, best.second, reading.parameters).upper_bound()
        pair = _pair(program, best.first, best.second, "the worst pair found")
        yield Bounds((bound,), {bound: len(best.first)}, pair=pair) + event

    found = known.attempt("exact loss", worst((number,), -math.inf, math.inf), PART)
    if isinstance(claim, PureDP) and not Bracket("", claim, None, found.uppers).settled:
        sizes = (1, 2, 3, 4, *(() if answers else LENGTHS)) if program.loop is not None else ()
        other = replace(known, reasons=found.reasons)
        other = other.attempt("search for a refutation", worst(sizes, claim.epsilon, MOST_EFFORT), PART)
        found = other if other.pair is not None else replace(found, reasons=other.reasons)
    if found.pair is None:
        first, second = _plain(reading, adjacency, number)
        return replace(found, pair=_pair(program, first, second, "a plain pair, as none was found"))
    length = found.answers[found.uppers[-1]]
    for bound in found.uppers:  # a bracket is about one number of answers, and a refutation may be about another
        if found.answers.get(bound) not in (None, length):
            found = found.set_aside(
                functools.partial(operator.eq, bound), f"as it is about {found.answers[bound]} answers"
            )
    return found


def _plain(reading: Reading, adjacency: str, number: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Answers on either side of where doubles round next to the largest parameter; of 0 where none is large."""
    far = max((abs(value) for value in reading.parameters.values()), default=Fraction(0))
    middle = Fraction(math.ulp(float(far))) / 2 if 2**53 < far < 2**104 else Fraction(1, 2)
    high, low = middle + Fraction(1, 2), middle - Fraction(1, 2)
    moves = 1 if adjacency == "one-differs" else number
    return (high,) * moves + (low,) * (number - moves), (low,) * number


def _pair(program: Program, first: tuple[Fraction, ...], second: tuple[Fraction, ...], name: str) -> AdjacentPair:
    ours, theirs = ([int(one) if one.denominator == 1 else float(one) for one in each] for each in (first, second))
    return AdjacentPair(ours, theirs, name) if program.loop is not None else AdjacentPair(ours[0], theirs[0], name)


def _contradiction(
    bounds: tuple[UpperBound, ...], target: Target, claim: Claim | None, adjacency: str, pairs: Iterable[AdjacentPair]
) -> Bounds:
    """What contradicts the bounds of derivations: losses of a pair by the code followed on it, as far as that goes."""
    with contextlib.suppress(OutOfTime), within(PAIRS_S):
        for pair in pairs:
            losses = Bounds().attempt(FOLLOWED, _followed(target, claim, pair, adjacency)).uppers
            try:
                check_together(Bounds((*bounds, *losses), dict.fromkeys((*bounds, *losses))))
            except UnsoundAudit:
                return Bounds(losses, dict.fromkeys(losses))
    return Bounds()


def check_together(known: Bounds) -> None:
    """Raises `UnsoundAudit` where an enclosed loss of a pair is above a proof: one of the two must be wrong."""
    own = [each for each in known.uppers if each in known.answers]
    proved = [each for each in own if each.label is Label.PROVED]
    for each, bound in product((each for each in own if each.label is Label.EXACT_PAIR), proved):
        most = bound.epsilon_upper if each.delta >= bound.delta else math.inf  # else they do not meet
        most = most if bound.shows is None else min(most, hair_above(bound.shows.epsilon_at(each.delta)))
        if each.epsilon_lower is not None and each.epsilon_lower > most:
            raise UnsoundAudit(
                f"the exact loss {each.epsilon_lower!r} of {each.scope} is above the proved {most!r} "
                f"for {bound.scope}: one of the two is wrong; please report it, there is no verdict"
            )


def bound_of_proofs(
    proofs: Sequence[Proof | Derivation],
    target: Target,
    pairs: Sequence[AdjacentPair] = (),
    *,
    claim: Claim | None = None,
    source: str,
) -> UpperBound:
    """What proofs show of a mechanism at its parameters; those of "up" and "down" together are one of neighbours.

    `pairs` are those of the audit, `claim` its own: derivations show more at its delta, or in its form. Raises
    `InvalidSpec` where a proof is of another program, of other parameters, of one way alone, or not about one of the
    pairs, and `ProofRejected` where the checker rejects it.
    """
    words = {**WAYS, **{word: (word,) for word in RECORDS}}
    ways = sorted(proof.adjacency for proof in proofs)
    adjacency = next((word for word, both in words.items() if sorted(both) == ways), None)
    if adjacency in ("up", "down"):
        raise InvalidSpec(f"a proof for {adjacency!r} is one way; give the proof of the other way beside it")
    if adjacency is None:
        raise InvalidSpec(f"give one proof, or one of 'up' and one of 'down'; got {', '.join(ways) or 'none'}")
    check_relation(claim, adjacency)
    if adjacency in WAYS:
        check_unit(target)
    for pair in pairs:
        if pair.distance > 1:
            raise InvalidSpec(
                f'the proof is about neighbours, and the pair "{pair.name}" is {pair.distance} steps apart'
            )
        if adjacency in WAYS:
            check_adjacent(*answers_of_pair(pair), adjacency)
    aligned = [proof for proof in proofs if isinstance(proof, Proof)]
    if len(aligned) == len(proofs):
        return _bound_by_alignment(aligned, target, pairs, adjacency, source)
    if aligned:
        raise InvalidSpec("the proofs of the two ways must be of one kind: both by alignment, or both by coupling")
    found = [proof for proof in proofs if isinstance(proof, Derivation)]
    return bound_of_derivations(found, target, claim, pairs, source)


def _bound_by_alignment(
    proofs: Sequence[Proof], target: Target, pairs: Sequence[AdjacentPair], adjacency: str, source: str
) -> UpperBound:
    *_, last = readings(target, None, pairs)
    reading = last.reading
    assert reading is not None
    costed: list[Costed] = []
    for proof in proofs:
        if proof.source != reading.program.source:
            raise InvalidSpec(f"the proof is of another program than {target.name}, as its source now reads; prove it")
        check(proof)
        for name, value in proof.fixed.items():
            if (own := reading.parameters[name]) != value:
                raise InvalidSpec(f"the proof is for {name} = {value}, and {target.name} has {own}; prove it for this")
        costed.append((proof, epsilon(proof, reading.parameters)))
    return proved_bound(reading, adjacency, costed, source)
