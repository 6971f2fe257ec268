"""From above: a mechanism is read, proved where it can be, replayed where a domain is given, and its pair computed.

A method that cannot say anything becomes a reason. A proof counts only once the independent checker has accepted it.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any

from dpaudit.account.bracketed import upper_text
from dpaudit.auditing.known import known_upper
from dpaudit.claims import Claim, PureDP
from dpaudit.claims.rounding import above
from dpaudit.data import AdjacentPair
from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit
from dpaudit.results.bounds import Arithmetic, Bracket, Label, UpperBound, hair_above
from dpaudit.verify.alignment import Unproved, prove
from dpaudit.verify.bracketing.targets import WAYS, Target, answers_of_pair, check_adjacent, check_form, words_of
from dpaudit.verify.checker import check, epsilon
from dpaudit.verify.deadline import left_s, within
from dpaudit.verify.language import expression, read
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.proof import Proof
from dpaudit.verify.replay import replay
from dpaudit.verify.witnesses import OutsideIntegrals, pair_delta, pair_loss, refute, refute_at_length, worst_pair
from dpaudit.verify.witnesses.outputs import named, rational

MOST_EPSILON = 64.0  # that is looked for at a delta
WITHIN = 1e-6  # relative: how closely that epsilon is told
PART = 0.5  # of the time that is left, for each method: the steps after it get the rest
MOST_TIME_S = 1e6  # for one method, where nothing limits it
ANSWERS = 5  # of the pair that is looked for, where nothing says how many


@dataclass(slots=True)
class Found:
    """What the methods found so far."""

    uppers: list[UpperBound]
    numbers: dict[UpperBound, int | None] = field(default_factory=dict)  # of answers, of those found here; None: any
    reasons: list[str] = field(default_factory=list)
    proofs: tuple[Proof, ...] = ()
    program: Program | None = None
    parameters: dict[str, Fraction] = field(default_factory=dict)
    claim: Claim | None = None
    claim_text: str | None = None
    worst: tuple[int, int] | None = None  # places in the domain of the pair that loses most

    @property
    def read(self) -> Program:
        """The program, where it was read."""
        assert self.program is not None
        return self.program

    def set_aside(self, bound: UpperBound, why: str) -> None:
        """Takes a bound out; it becomes a reason."""
        self.uppers.remove(bound)
        self.reasons.append(f"set aside, {why}: {upper_text(bound)}")

    def attempt(self, method: str, step: Callable[[], None], part: float = 1.0) -> None:
        """Runs a method in a part of the time that is left; what it refuses, or breaks on, becomes a reason."""
        try:
            with within(part * left_s(MOST_TIME_S)):
                step()
        except DpAuditError as error:
            if not any(str(error) in reason for reason in self.reasons):
                self.reasons.append(f"{method}: {error}")
        except Exception as error:  # the steps after it are none the worse for it
            self.reasons.append(f"{method}: it broke, please report it: {type(error).__name__}: {error}")


def read_program(
    target: Target,
    claim: Claim | str | None,
    found: Found,
    pairs: Sequence[AdjacentPair] = (),
    answers: int | None = None,
) -> None:
    """The program and its parameters, and the claim where it is a text; `pairs` and `answers` must be of its form."""
    if target.source is None:
        raise InvalidSpec(target.unread)
    program = read(target.source, name=target.function)
    if target.check is not None:
        target.check()
    unknown = [name for name in target.parameters if name not in program.parameters]
    if unknown:
        known = ", ".join(program.parameters) or "none"
        raise InvalidSpec(f"{program.name} has no parameter {unknown[0]!r}; it has: {known}")
    given = {**program.defaults, **target.parameters}
    missing = [name for name in program.parameters if name not in given]
    if missing:
        raise InvalidSpec(f"{program.name} needs a value for {missing[0]!r}; give it in parameters")
    floats = [name for name in sorted(program.integers) if isinstance(given[name], float)]
    if floats:
        raise InvalidSpec(f"{floats[0]} is counted with, and what is computed of a float rounds: give an int")
    check_form(program, pairs, answers)
    found.parameters = {name: rational(f"the parameter {name}", given[name]) for name in program.parameters}
    for pair in pairs:
        answers_of_pair(pair)  # raises for numbers that round otherwise than doubles
    found.program = program
    if isinstance(claim, str):
        expression(claim, program)  # raises for what this program's proofs cannot say
        found.claim_text = claim


def add_proofs(adjacency: str, answers: int | None, found: Found) -> None:
    """The least bound by alignment: for any number of answers, and where that leaves the claim open, for this one."""
    check_unit(found)
    refused: list[str] = []
    for fixed, number in _attempts(found, answers):
        made = _proofs(adjacency, fixed, number, found)
        if isinstance(made, Unproved):
            refused.append(_refusal(made, number))
            continue
        proofs, cost = made
        bound = UpperBound(
            above(cost),
            0.0,
            Label.PROVED,
            proved_scope(adjacency, number, found),
            Arithmetic.REALS,
            "randomness alignment",
        )
        proved = [each.epsilon_upper for each in found.numbers if each.label is Label.PROVED]
        if found.proofs and min(proved) <= bound.epsilon_upper:
            continue  # holds for fewer inputs, and says no more
        found.uppers.append(bound)
        found.numbers[bound] = number
        found.proofs = proofs
        if found.claim is None or Bracket("", found.claim, None, (bound,)).proving is not None:
            return
    if refused and not found.proofs:
        raise InvalidSpec("; ".join(dict.fromkeys(refused)))


def check_unit(found: Found) -> None:
    """Raises `InvalidSpec` where answers are said to move by another amount than the 1 of every adjacency."""
    unit = found.parameters.get("sensitivity", Fraction(1))
    if unit != 1:
        raise InvalidSpec(f"an adjacency is about moves of at most 1, and the parameter sensitivity is {unit}")


def _attempts(found: Found, answers: int | None) -> Iterator[tuple[Mapping[str, Fraction] | None, int | None]]:
    whole = {name: found.parameters[name] for name in found.read.parameters if name in found.read.integers}
    yield None, None
    if whole:
        yield whole, None
    if answers is not None and found.read.loop is not None:
        yield whole or None, answers


def _proofs(
    adjacency: str, fixed: Mapping[str, Fraction] | None, answers: int | None, found: Found
) -> tuple[tuple[Proof, ...], Fraction] | Unproved:
    """The accepted proofs of all ways of an adjacency and the largest of their costs, or the first that failed."""
    proofs, costs = [], []
    for way in WAYS[adjacency]:
        proof = prove(found.read, way, claim=found.claim_text, fixed=fixed, answers=answers)
        if isinstance(proof, Unproved):
            return proof
        check(proof)
        proofs.append(proof)
        costs.append(epsilon(proof, found.parameters))
    return tuple(proofs), max(costs)


def _refusal(found: Unproved, answers: int | None) -> str:
    line = "" if found.line is None else f" (line {found.line})"
    growing = "" if found.growing is None else f"; the cost grows as {found.growing}"
    number = "any number of answers" if answers is None else f"{answers} answers"
    return f"{found.reason}{line}{growing}, for {number}"


def proved_scope(adjacency: str, answers: int | None, found: Found) -> str:
    """Which inputs a proof holds for, in words."""
    many = "any number of answers" if answers is None else f"{answers} answers"
    number = "the data one number" if found.read.loop is None else many
    at = f"; at {named(found.parameters)}" if found.parameters else ""
    return f"all inputs ({words_of(adjacency)}; {number}{at})"


def add_replay(target: Target, domain: tuple[Any, ...], neighbours: Any, most_paths: int, found: Found) -> None:
    """Adds the exact loss over all neighbours of the domain, and at the delta of the claim; keeps the worst pair."""
    if not callable(target.source):
        raise InvalidSpec("only a function of one run can be replayed")
    losses = replay(target.source, domain, neighbours, parameters=dict(target.parameters), most_paths=most_paths)
    found.uppers.append(losses.upper_bound())
    delta = 0.0 if found.claim is None else found.claim.delta
    if 0.0 < delta < 1.0:  # a hair above it: 1/6 as a double is below 1/6
        found.uppers.append(losses.upper_bound(min(1.0, hair_above(delta))))
    found.worst = losses.worst.first, losses.worst.second


def add_exact_loss(
    target: Target, pair: AdjacentPair | None, adjacency: str | None, answers: int | None, found: Found
) -> AdjacentPair | None:
    """Adds the exact loss of the pair; where none is given, of the worst that a search finds. Returns the pair."""
    looked_at = pair

    def compute(pair: AdjacentPair) -> None:
        first, second = answers_of_pair(pair)
        bound = pair_loss(found.read, first, second, found.parameters).upper_bound()
        bound = replace(bound, scope=f'the pair "{pair.name}", {bound.scope}')
        found.uppers.append(bound)
        found.numbers[bound] = len(first)
        if found.claim is not None and 0.0 < found.claim.delta < 1.0:
            found.attempt("exact loss at delta", lambda: _add_at_delta(first, second, bound, found))

    if found.program is not None and pair is not None:
        found.attempt("exact loss", lambda: compute(pair), PART)
    elif found.program is not None and adjacency is not None:
        looked_at = _searched(adjacency, answers, found)
    computed = (each for each in found.uppers if each.label is Label.EXACT_PAIR)
    if pair is not None and all(each.epsilon_upper == math.inf != each.epsilon_lower for each in computed):
        known = known_upper(target.mechanism, pair, 0.0 if found.claim is None else found.claim.delta)
        found.uppers += [known] if known is not None else []
    return looked_at


def _add_at_delta(first: tuple[Fraction, ...], second: tuple[Fraction, ...], pure: UpperBound, found: Found) -> None:
    """The epsilon of the pair at the claim's delta: between two that bisection found on either side of it."""
    assert found.claim is not None
    program, delta = found.read, found.claim.delta

    def side(epsilon: float) -> int:
        """Above 0 where the loss at delta is certainly larger, below 0 where it is at most this, 0 where unknown."""
        mass = pair_delta(program, first, second, found.parameters, epsilon)
        return 1 if mass.lower > delta else -1 if mass.upper <= delta else 0

    low, high = 0.0, 0.0 if side(0.0) < 0 else min(pure.epsilon_upper, 1.0)
    while high and high < pure.epsilon_upper and side(high) >= 0:
        if high >= MOST_EPSILON:
            raise InvalidSpec(f"the epsilon at delta {delta:g} is above {MOST_EPSILON:g}, or cannot be told")
        high = min(2.0 * high, pure.epsilon_upper)
    while high - low > WITHIN * high:
        middle = (low + high) / 2.0
        where = side(middle)
        if where > 0:
            low = middle
        elif where < 0:
            high = middle
        else:
            break
    found.uppers.append(replace(pure, epsilon_upper=high, epsilon_lower=low, delta=delta))


def _searched(adjacency: str, answers: int | None, found: Found) -> AdjacentPair:
    """The worst pair that is found, with its loss; one that refutes the claim where there is one; else a plain one."""
    number = 1 if found.read.loop is None else answers or ANSWERS
    seen: list[tuple[UpperBound, tuple[Fraction, ...], tuple[Fraction, ...]]] = []

    def worst() -> None:
        check_unit(found)
        way = "up" if adjacency == "monotone" else adjacency  # both orders of a pair are compared
        best = worst_pair(found.read, way, number, found.parameters)
        bound = best.upper_bound()
        many = number > ANSWERS and Bracket("", found.claim, None, (bound,)).refuting  # all events: long, and no news
        if bound.epsilon_upper == math.inf != bound.epsilon_lower and not many:  # only some events were looked at
            with contextlib.suppress(OutsideIntegrals):
                bound = pair_loss(found.read, best.first, best.second, found.parameters).upper_bound()
        seen.append((bound, best.first, best.second))

    def refutation(claim: PureDP) -> None:
        check_unit(found)
        for search, each in product((refute,) if answers else (refute, refute_at_length), WAYS[adjacency]):
            known = search(found.read, each, claim.epsilon, found.parameters)
            if known is not None:
                low, source = known.loss.lower, "refutation by integrals"
                bound = UpperBound(math.inf, 0.0, Label.EXACT_PAIR, known.words, Arithmetic.BALLS, source, low)
                seen.append((bound, known.first, known.second))
                return

    found.attempt("exact loss", worst, PART)
    claim, bounds = found.claim, (*found.uppers, *(bound for bound, _, _ in seen))
    if isinstance(claim, PureDP) and not Bracket("", claim, None, bounds).settled:
        found.attempt("search for a refutation", lambda: refutation(claim), PART)
    first, second = seen[-1][1:] if seen else _plain(adjacency, number, found)
    for bound, *_ in seen[-1:]:
        found.uppers.append(bound)
        found.numbers[bound] = len(first)
    for other in [one for one in found.uppers if seen and found.numbers.get(one) not in (None, len(first))]:
        # a bracket is of one number of answers, and a refutation may have found another
        found.set_aside(other, f"as it is about {found.numbers[other]} answers")
    data = [_number(each) for each in first], [_number(each) for each in second]
    name = "the worst pair found" if seen else "a plain pair, as none was found"
    if found.read.loop is None:
        return AdjacentPair(data[0][0], data[1][0], name)
    return AdjacentPair(*data, name=name)


def _plain(adjacency: str, number: int, found: Found) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Answers on either side of where doubles round beside the largest parameter; of 0 where none is large."""
    far = max((abs(value) for value in found.parameters.values()), default=Fraction(0))
    middle = Fraction(math.ulp(float(far))) / 2 if 2**53 < far < 2**104 else Fraction(1, 2)
    high, low = middle + Fraction(1, 2), middle - Fraction(1, 2)
    moves = 1 if adjacency == "one-differs" else number
    return (high,) * moves + (low,) * (number - moves), (low,) * number


def _number(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 else float(value)


def check_together(found: Found) -> None:
    """Raises `UnsoundAudit` where an enclosed loss of a pair is above a proof: one of the two must be wrong."""
    own = [each for each in found.uppers if each in found.numbers]
    proved = [each for each in own if each.label is Label.PROVED]
    for each in own:
        low = each.epsilon_lower
        if each.label is Label.EXACT_PAIR and low is not None:
            beaten = [bound for bound in proved if low > bound.epsilon_upper]
            if beaten:
                raise UnsoundAudit(
                    f"the exact loss {low!r} of {each.scope} is above the proved {beaten[0].epsilon_upper!r} for "
                    f"{beaten[0].scope}: one of the two is wrong; please report it, there is no verdict"
                )


def bound_of_proofs(
    proofs: Sequence[Proof], target: Target, pairs: Sequence[AdjacentPair] = (), *, source: str
) -> UpperBound:
    """What proofs show of a mechanism at its parameters; those of "up" and "down" together are one of neighbours.

    `pairs` are those that are audited beside it. Raises `InvalidSpec` where a proof is of another program, of other
    parameters, of one way alone, or not about one of the pairs, and `ProofRejected` where the checker rejects it.
    """
    ways = sorted(proof.adjacency for proof in proofs)
    adjacency = next((word for word, both in WAYS.items() if sorted(both) == ways), None)
    if adjacency in ("up", "down"):
        raise InvalidSpec(f"a proof for {adjacency!r} is one way; give the proof of the other way beside it")
    if adjacency is None:
        raise InvalidSpec(f"give one proof, or one of 'up' and one of 'down'; got {', '.join(ways) or 'none'}")
    found = Found([])
    read_program(target, None, found, pairs)
    check_unit(found)
    costs = []
    for proof in proofs:
        if proof.source != found.read.source:
            raise InvalidSpec(f"the proof is of another program than {target.name}, as its source now reads; prove it")
        check(proof)
        for name, value in proof.fixed.items():
            if found.parameters[name] != value:
                raise InvalidSpec(f"the proof is for {name} = {value}, and {target.name} has {found.parameters[name]}")
        costs.append(epsilon(proof, found.parameters))
    numbers = {proof.answers for proof in proofs}
    if len(numbers) > 1:
        raise InvalidSpec("the proofs of the two ways must be for the same number of answers")
    answers = numbers.pop()
    for pair in pairs:
        _check_in_scope(pair, adjacency, answers)
    scope = proved_scope(adjacency, answers, found)
    return UpperBound(above(max(costs)), 0.0, Label.PROVED, scope, Arithmetic.REALS, source)


def _check_in_scope(pair: AdjacentPair, adjacency: str, answers: int | None) -> None:
    if pair.distance > 1:
        raise InvalidSpec(f'the proof is about neighbours, and the pair "{pair.name}" is {pair.distance} steps apart')
    first, second = answers_of_pair(pair)
    check_adjacent(first, second, adjacency)
    if answers is not None and len(first) != answers:
        raise InvalidSpec(f'the proof is for {answers} answers, and the pair "{pair.name}" has {len(first)}')
