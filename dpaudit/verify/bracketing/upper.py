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
from dpaudit.verify.enclosure import named, rational
from dpaudit.verify.language import expression, read
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.proof import Proof
from dpaudit.verify.replay import replay
from dpaudit.verify.witnesses import OutsideIntegrals, pair_delta, pair_loss, refute, refute_at_length, worst_pair

MOST_EPSILON = 64.0  # that is looked for at a delta
WITHIN = 1e-6  # relative: how exact that epsilon is
PART = 0.5  # of the time that is left, for each method: the steps after it get the rest
MOST_TIME_S = 1e6  # for one method, where nothing limits it
ANSWERS = 5  # of the pair that is looked for, where nothing says how many


@dataclass(slots=True)
class Findings:
    """The results of the methods so far."""

    uppers: list[UpperBound]
    numbers: dict[UpperBound, int | None] = field(
        default_factory=dict
    )  # of answers, of the bounds computed here; None: any
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
        except Exception as error:  # the steps after it do not depend on it
            self.reasons.append(f"{method}: it broke, please report it: {type(error).__name__}: {error}")


def read_program(
    target: Target,
    claim: Claim | str | None,
    findings: Findings,
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
    findings.parameters = {name: rational(f"the parameter {name}", given[name]) for name in program.parameters}
    for pair in pairs:
        answers_of_pair(pair)  # raises for numbers that round otherwise than doubles
    findings.program = program
    if isinstance(claim, str):
        expression(claim, program)  # raises for what this program's proofs cannot say
        findings.claim_text = claim


def add_proofs(adjacency: str, answers: int | None, findings: Findings) -> None:
    """The least bound by alignment: for any number of answers, and where that leaves the claim open, for this one."""
    check_unit(findings)
    refused: list[str] = []
    for fixed, number in _attempts(findings, answers):
        result = _proofs(adjacency, fixed, number, findings)
        if isinstance(result, Unproved):
            line = "" if result.line is None else f" (line {result.line})"
            growing = "" if result.growing is None else f"; the cost grows as {result.growing}"
            refused.append(f"{result.reason}{line}{growing}, for {many_answers(number)}")
            continue
        proofs, cost = result
        bound = UpperBound(
            above(cost),
            0.0,
            Label.PROVED,
            proved_scope(adjacency, number, findings),
            Arithmetic.REALS,
            "randomness alignment",
        )
        proved = [each.epsilon_upper for each in findings.numbers if each.label is Label.PROVED]
        if findings.proofs and min(proved) <= bound.epsilon_upper:
            continue  # holds for fewer inputs, and says no more
        findings.uppers.append(bound)
        findings.numbers[bound] = number
        findings.proofs = proofs
        if findings.claim is None or Bracket("", findings.claim, None, (bound,)).proving is not None:
            return
    if refused and not findings.proofs:
        raise InvalidSpec("; ".join(dict.fromkeys(refused)))


def check_unit(findings: Findings) -> None:
    """Raises `InvalidSpec` where answers move by another amount than the 1 of every adjacency."""
    unit = findings.parameters.get("sensitivity", Fraction(1))
    if unit != 1:
        raise InvalidSpec(f"an adjacency is about moves of at most 1, and the parameter sensitivity is {unit}")


def _attempts(findings: Findings, answers: int | None) -> Iterator[tuple[Mapping[str, Fraction] | None, int | None]]:
    whole = {name: findings.parameters[name] for name in findings.read.parameters if name in findings.read.integers}
    yield None, None
    if whole:
        yield whole, None
    if answers is not None and findings.read.loop is not None:
        yield whole or None, answers


def _proofs(
    adjacency: str, fixed: Mapping[str, Fraction] | None, answers: int | None, findings: Findings
) -> tuple[tuple[Proof, ...], Fraction] | Unproved:
    """The accepted proofs of all ways of an adjacency and the largest of their costs, or the first that failed."""
    proofs, costs = [], []
    for way in WAYS[adjacency]:
        proof = prove(findings.read, way, claim=findings.claim_text, fixed=fixed, answers=answers)
        if isinstance(proof, Unproved):
            return proof
        check(proof)
        proofs.append(proof)
        costs.append(epsilon(proof, findings.parameters))
    return tuple(proofs), max(costs)


def many_answers(answers: int | None) -> str:
    """How many answers a proof is about, in words."""
    return "any number of answers" if answers is None else f"{answers} answers"


def proved_scope(adjacency: str, answers: int | None, findings: Findings) -> str:
    """Which inputs a proof holds for, in words."""
    number = "the data one number" if findings.read.loop is None else many_answers(answers)
    at = f"; at {named(findings.parameters)}" if findings.parameters else ""
    return f"all inputs ({words_of(adjacency)}; {number}{at})"


def add_replay(target: Target, domain: tuple[Any, ...], neighbours: Any, most_paths: int, findings: Findings) -> None:
    """Adds the exact loss over all neighbours of the domain, and at the delta of the claim; keeps the worst pair."""
    if not callable(target.source):
        raise InvalidSpec("only a function of one run can be replayed")
    losses = replay(target.source, domain, neighbours, parameters=dict(target.parameters), most_paths=most_paths)
    findings.uppers.append(losses.upper_bound())
    delta = 0.0 if findings.claim is None else findings.claim.delta
    if 0.0 < delta < 1.0:  # the next double above it: 1/6 as a double is below 1/6
        findings.uppers.append(losses.upper_bound(min(1.0, hair_above(delta))))
    findings.worst = losses.worst.first, losses.worst.second


def add_exact_loss(
    target: Target, pair: AdjacentPair | None, adjacency: str | None, answers: int | None, findings: Findings
) -> AdjacentPair | None:
    """Adds the exact loss of the pair; where none is given, of the worst that a search finds. Returns the pair."""
    final_pair = pair

    def compute(pair: AdjacentPair) -> None:
        first, second = answers_of_pair(pair)
        bound = pair_loss(findings.read, first, second, findings.parameters).upper_bound()
        bound = replace(bound, scope=f'the pair "{pair.name}", {bound.scope}')
        findings.uppers.append(bound)
        findings.numbers[bound] = len(first)
        if findings.claim is not None and 0.0 < findings.claim.delta < 1.0:
            findings.attempt("exact loss at delta", lambda: _add_at_delta(first, second, bound, findings))

    if findings.program is not None and pair is not None:
        findings.attempt("exact loss", lambda: compute(pair), PART)
    elif findings.program is not None and adjacency is not None:
        final_pair = _searched(adjacency, answers, findings)
    computed = (each for each in findings.uppers if each.label is Label.EXACT_PAIR)
    if pair is not None and all(each.epsilon_upper == math.inf != each.epsilon_lower for each in computed):
        known = known_upper(target.mechanism, pair, 0.0 if findings.claim is None else findings.claim.delta)
        findings.uppers += [known] if known is not None else []
    return final_pair


def _add_at_delta(
    first: tuple[Fraction, ...], second: tuple[Fraction, ...], pure: UpperBound, findings: Findings
) -> None:
    """The epsilon of the pair at the claim's delta: between two values from bisection, one on either side."""
    assert findings.claim is not None
    program, delta = findings.read, findings.claim.delta

    def side(epsilon: float) -> int:
        """Above 0 where the loss at delta is certainly larger, below 0 where it is at most this, 0 where unknown."""
        mass = pair_delta(program, first, second, findings.parameters, epsilon)
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
    findings.uppers.append(replace(pure, epsilon_upper=high, epsilon_lower=low, delta=delta))


def _searched(adjacency: str, answers: int | None, findings: Findings) -> AdjacentPair:
    """The worst pair of a search, with its loss; one that refutes the claim if there is one; else a plain one."""
    number = 1 if findings.read.loop is None else answers or ANSWERS
    seen: list[tuple[UpperBound, tuple[Fraction, ...], tuple[Fraction, ...]]] = []

    def worst() -> None:
        check_unit(findings)
        way = "up" if adjacency == "monotone" else adjacency  # both orders of a pair are compared
        best = worst_pair(findings.read, way, number, findings.parameters)
        bound = best.upper_bound()
        many = (
            number > ANSWERS and Bracket("", findings.claim, None, (bound,)).refuting
        )  # all events: long, and no news
        if bound.epsilon_upper == math.inf != bound.epsilon_lower and not many:  # only some events were looked at
            with contextlib.suppress(OutsideIntegrals):
                bound = pair_loss(findings.read, best.first, best.second, findings.parameters).upper_bound()
        seen.append((bound, best.first, best.second))

    def refutation(claim: PureDP) -> None:
        check_unit(findings)
        for search, each in product((refute,) if answers else (refute, refute_at_length), WAYS[adjacency]):
            known = search(findings.read, each, claim.epsilon, findings.parameters)
            if known is not None:
                low, source = known.loss.lower, "refutation by integrals"
                bound = UpperBound(math.inf, 0.0, Label.EXACT_PAIR, known.words, Arithmetic.BALLS, source, low)
                seen.append((bound, known.first, known.second))
                return

    findings.attempt("exact loss", worst, PART)
    claim, bounds = findings.claim, (*findings.uppers, *(bound for bound, _, _ in seen))
    if isinstance(claim, PureDP) and not Bracket("", claim, None, bounds).settled:
        findings.attempt("search for a refutation", lambda: refutation(claim), PART)
    first, second = seen[-1][1:] if seen else _plain(adjacency, number, findings)
    for bound, *_ in seen[-1:]:
        findings.uppers.append(bound)
        findings.numbers[bound] = len(first)
    for other in [one for one in findings.uppers if seen and findings.numbers.get(one) not in (None, len(first))]:
        # a bracket is about one number of answers, and a refutation may be about another
        findings.set_aside(other, f"as it is about {findings.numbers[other]} answers")
    data = [_number(each) for each in first], [_number(each) for each in second]
    name = "the worst pair found" if seen else "a plain pair, as none was found"
    if findings.read.loop is None:
        return AdjacentPair(data[0][0], data[1][0], name)
    return AdjacentPair(*data, name=name)


def _plain(adjacency: str, number: int, findings: Findings) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Answers on either side of where doubles round next to the largest parameter; of 0 where none is large."""
    far = max((abs(value) for value in findings.parameters.values()), default=Fraction(0))
    middle = Fraction(math.ulp(float(far))) / 2 if 2**53 < far < 2**104 else Fraction(1, 2)
    high, low = middle + Fraction(1, 2), middle - Fraction(1, 2)
    moves = 1 if adjacency == "one-differs" else number
    return (high,) * moves + (low,) * (number - moves), (low,) * number


def _number(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 else float(value)


def check_together(findings: Findings) -> None:
    """Raises `UnsoundAudit` where an enclosed loss of a pair is above a proof: one of the two must be wrong."""
    own = [each for each in findings.uppers if each in findings.numbers]
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

    `pairs` are those of the audit. Raises `InvalidSpec` where a proof is of another program, of other
    parameters, of one way alone, or not about one of the pairs, and `ProofRejected` where the checker rejects it.
    """
    ways = sorted(proof.adjacency for proof in proofs)
    adjacency = next((word for word, both in WAYS.items() if sorted(both) == ways), None)
    if adjacency in ("up", "down"):
        raise InvalidSpec(f"a proof for {adjacency!r} is one way; give the proof of the other way beside it")
    if adjacency is None:
        raise InvalidSpec(f"give one proof, or one of 'up' and one of 'down'; got {', '.join(ways) or 'none'}")
    findings = Findings([])
    read_program(target, None, findings, pairs)
    check_unit(findings)
    costs = []
    for proof in proofs:
        if proof.source != findings.read.source:
            raise InvalidSpec(f"the proof is of another program than {target.name}, as its source now reads; prove it")
        check(proof)
        for name, value in proof.fixed.items():
            if findings.parameters[name] != value:
                raise InvalidSpec(
                    f"the proof is for {name} = {value}, and {target.name} has {findings.parameters[name]}"
                )
        costs.append(epsilon(proof, findings.parameters))
    numbers = {proof.answers for proof in proofs}
    if len(numbers) > 1:
        raise InvalidSpec("the proofs of the two ways must be for the same number of answers")
    answers = numbers.pop()
    for pair in pairs:
        if pair.distance > 1:
            raise InvalidSpec(
                f'the proof is about neighbours, and the pair "{pair.name}" is {pair.distance} steps apart'
            )
        first, second = answers_of_pair(pair)
        check_adjacent(first, second, adjacency)
        if answers is not None and len(first) != answers:
            raise InvalidSpec(f'the proof is for {answers} answers, and the pair "{pair.name}" has {len(first)}')
    scope = proved_scope(adjacency, answers, findings)
    return UpperBound(above(max(costs)), 0.0, Label.PROVED, scope, Arithmetic.REALS, source)
