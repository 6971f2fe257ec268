"""For which inputs a proof speaks: the parameters, how many answers there are, how far they move.

Taken for granted: a parameter in the scale of a noise is positive (a whole one at least 1), what the source asserts,
and that there is at least one answer. Everything that a proof assumes beyond the fixed values must follow from these.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dpaudit.errors import InvalidSpec
from dpaudit.verify.checker.formulas import ProofRejected, Ratio, Sign, Unknown, compared
from dpaudit.verify.checker.solver import Facts
from dpaudit.verify.checker.values import INDEX, LENGTH, Public, State, condition, number
from dpaudit.verify.language import expression, nodes, text
from dpaudit.verify.language.algebra import Both, Either, Formula, Truth
from dpaudit.verify.proof import ADJACENCIES, REACH, Adjacency, Proof

MOVED = Unknown("moved", "d")
USED = Unknown("used", "used", whole=True)
USED_NEXT = Unknown("used", "used after it", whole=True)
MOST_ANSWERS = 10_000


@dataclass(frozen=True, slots=True)
class Scope:
    """The program, what is public of it, and the facts about its parameters."""

    program: nodes.Program
    proof: Proof
    public: Public
    facts: Facts
    granted: tuple[str, ...]

    def formula(self, text: str, state: State, what: str) -> Formula:
        """A fact of the proof at a state."""
        return condition(_read(text, self.program, what), state, self.public)

    def ratio(self, text: str, what: str) -> Ratio:
        """A rational function of the parameters (and of n) that the proof states."""
        try:
            found = number(_read(text, self.program, what), State({}), self.public)
        except ProofRejected as error:
            raise ProofRejected(f"{what} {text!r}: {error}") from None
        if any(symbol.kind not in ("parameter", "length") for symbol in found.symbols):
            raise ProofRejected(f"{what} {text!r} must be a rational function of the parameters")
        return found


def scope_of(program: nodes.Program, proof: Proof, scales: Iterable[Ratio], public: Public) -> Scope:
    """The scope that a proof claims. Raises `ProofRejected` where no parameters are in it, or it claims too much."""
    facts, granted = Facts(), []
    symbols = {symbol for scale in scales for symbol in scale.symbols if symbol.kind == "parameter"}
    for symbol in sorted(symbols):
        least: Formula = Sign(">", Ratio.of(symbol))
        granted.append(f"{symbol.name} >= 1" if symbol.whole else f"{symbol.name} > 0")
        facts = facts.assuming(least, *_at_least_one(symbol))
    facts = facts.assuming(Sign(">", Ratio.of(LENGTH)), *_at_least_one(LENGTH))
    if proof.answers is not None:
        facts = facts.assuming(compared("==", Ratio.of(LENGTH), Ratio.number(proof.answers)))
    for asserted in program.preconditions:
        facts = facts.assuming(condition(asserted, State({}), public))
    if facts.assuming(*division_facts(public)).holds(Truth(False)) is not False:
        raise ProofRejected("no parameters were found that meet the preconditions: it would be a proof of nothing")
    _check_divisors(program, facts, public)
    scope = Scope(program, proof, public, facts, tuple(granted))
    for words in proof.assumptions:
        facts.must(scope.formula(words, State({}), "an assumption"), f"the assumption {words!r} is taken for granted")
    return scope


def _check_divisors(program: nodes.Program, facts: Facts, public: Public) -> None:
    """Nothing that the source divides by is 0, used or not: a run that raises tells where it was."""
    index = Ratio.of(INDEX)
    facts = facts.assuming(compared(">=", index, Ratio.number(0)))
    for divisor, line in program.divisors:
        goal = compared("!=", number(divisor, State({}, index), public), Ratio.number(0))
        facts.must(goal, f"the divisor {text(divisor)} in line {line} is not 0")


def fixed_values(program: nodes.Program, proof: Proof) -> None:
    """Raises `ProofRejected` unless the fixed values belong to parameters, and whole ones to whole parameters."""
    for name, value in proof.fixed.items():
        if name not in program.parameters:
            raise ProofRejected(f"the fixed value of {name!r}: {program.name} has no such parameter")
        if name in program.integers and value.denominator != 1:
            raise ProofRejected(f"the fixed value of {name} must be whole, got {value}")
    if proof.adjacency not in ADJACENCIES:
        raise ProofRejected(f"the adjacency must be one of {', '.join(ADJACENCIES)}, got {proof.adjacency!r}")
    if proof.answers is not None and not 1 <= proof.answers <= MOST_ANSWERS:
        raise ProofRejected(f"the number of answers must be in 1..{MOST_ANSWERS}, got {proof.answers}")


def moves(adjacency: Adjacency) -> tuple[Formula, ...]:
    """What is known of d, how far the current answer moves; with one that differs, of `used` before and after it."""
    low, high = REACH[adjacency]
    moved = Ratio.of(MOVED)
    facts: list[Formula] = [compared(">=", moved, Ratio.number(low)), compared("<=", moved, Ratio.number(high))]
    if adjacency == "one-differs":
        used, after, zero, one = Ratio.of(USED), Ratio.of(USED_NEXT), Ratio.number(0), Ratio.number(1)
        still, differs = compared("==", moved, zero), compared("!=", moved, zero)
        facts.append(Either((still, compared("==", used, zero))))  # only one answer differs
        facts.append(Either((Both((still, compared("==", after, used))), Both((differs, compared("==", after, one))))))
    return tuple(facts)


def used_facts(adjacency: Adjacency) -> tuple[Formula, ...]:
    """What is known of `used` wherever the loop begins again."""
    if adjacency != "one-differs":
        return ()
    used = Ratio.of(USED)
    return (Either((compared("==", used, Ratio.number(0)), compared("==", used, Ratio.number(1)))),)


def division_facts(public: Public) -> tuple[Formula, ...]:
    """What whole divisions by a positive number mean: left = number * quotient + rest, 0 <= rest < number."""
    facts: list[Formula] = []
    for symbol, division in tuple(public.divisions.items()):
        by = division.right.constant
        if by is None or by <= 0:
            continue
        quotient = public.division("//", division.left, division.right)
        rest = division.left - division.right * quotient
        facts.append(compared(">=", rest, Ratio.number(0)))
        facts.append(compared("<", rest, division.right))
        if division.operation == "%":
            facts.append(compared("==", Ratio.of(symbol), rest))
    return tuple(facts)


def _at_least_one(symbol: Unknown) -> tuple[Formula, ...]:
    return (compared(">=", Ratio.of(symbol), Ratio.number(1)),) if symbol.whole else ()


def _read(text: str, program: nodes.Program, what: str) -> nodes.Expression:
    try:
        return expression(text, program)
    except InvalidSpec as error:
        raise ProofRejected(f"{what} {text!r} cannot be read: {error}") from None
