"""A stored proof, doubted from end to end: what it shows, or which obligation fails.

Everything is derived again from the source: paths, what is public, how far each value of the second run is from that
of the first. Of the proof only its data is used, and every fact in it is shown first.
With the search it shares the reader of the language, exact arithmetic and logic (`language`), and no judgement.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.errors import InvalidSpec
from dpaudit.verify.alethe.obligations import Bases
from dpaudit.verify.checker.costs import check_costs
from dpaudit.verify.checker.formulas import ProofRejected as ProofRejected
from dpaudit.verify.checker.formulas import Unknown, compared, decided, put
from dpaudit.verify.checker.lockstep import Coupled, check_names
from dpaudit.verify.checker.paths import Start, all_paths, starts_of
from dpaudit.verify.checker.values import LENGTH, Public, Scope, State, condition, fixed_values, scope_of
from dpaudit.verify.language import read, rounded, text
from dpaudit.verify.language.algebra import Ratio, TooLarge
from dpaudit.verify.proof import ADJACENCIES, SYMMETRIC, Proof


@dataclass(frozen=True, slots=True)
class Checked:
    """A proof that was accepted: what it shows, for which inputs, and the obligations that were discharged.

    `keeps_claim` says whether the cost is at most the claim for all parameters of the scope; None where none is made.
    A proof whose cost is above its claim is a proof all the same, of its cost.
    """

    function: str
    statement: str
    scope: str
    assumptions: tuple[str, ...]
    obligations: tuple[str, ...]
    cost: str
    claim: str | None
    keeps_claim: bool | None


def check(proof: Proof, bases: Bases) -> Checked:
    """What the proof shows, with lemmas from these bases; `check` of the package says when it raises.

    The method is that of CheckDP (Wang, Ding, Kifer & Zhang 2020); the obligations are derived in `lockstep` and
    `costs`, each with the argument why they are enough.
    """
    with _doubting():
        scope, starts = _scope(proof, bases)
        done = [f"the preconditions can be met, for {_given(scope)}"]
        cost = scope.ratio(proof.cost, "the cost")
        check_names(proof.alignment, starts, scope.program, proof.adjacency)
        for start in starts:
            both = Coupled(scope, proof.alignment, start, done)
            both.check_entry()
            for path in start.loop:
                both.check_turn(path)
            for way_out in start.exits:
                both.check_exit(way_out)
            check_costs(both, cost)
        keeps = None
        if proof.claim is not None:
            keeps = scope.facts.holds(compared("<=", cost, scope.ratio(proof.claim, "the claim")))
            if keeps is None:
                raise ProofRejected(f"not shown whether the cost {cost} is at most the claim {proof.claim}")
        way = "" if proof.adjacency in SYMMETRIC else " (one way: from the first dataset to the second)"
        return Checked(
            function=proof.function,
            statement=f"the privacy loss of {proof.function} is at most {proof.cost}{way}",
            scope=_given(scope),
            assumptions=_assumptions(scope),
            obligations=tuple(dict.fromkeys(done)),
            cost=proof.cost,
            claim=proof.claim,
            keeps_claim=keeps,
        )


def epsilon(proof: Proof, parameters: Mapping[str, Fraction | int], bases: Bases) -> Fraction:
    """The cost of a proof at parameter values, as `epsilon` of the package says."""
    try:
        with _doubting():
            scope, _ = _scope(proof, bases)
            cost = scope.ratio(proof.cost, "the cost")
            values = _values(scope, proof, parameters)
            total = cost.put(values)
            unsure = rounded(scope.program, {**proof.fixed, **{n: Fraction(v) for n, v in parameters.items()}})
    except ProofRejected as error:
        raise InvalidSpec(f"the proof for {proof.function}: {error}") from None
    missing = sorted(symbol.name for symbol in total.symbols)
    if missing:
        raise InvalidSpec(f"the cost {proof.cost} needs a value of {', '.join(missing)}")
    if unsure is not None:
        raise unsure
    assert total.constant is not None
    return total.constant


def _scope(proof: Proof, bases: Bases) -> tuple[Scope, tuple[Start, ...]]:
    try:
        program = read(proof.source, name=proof.function)
    except InvalidSpec as error:
        raise ProofRejected(f"the source cannot be read: {error}") from None
    if program.name != proof.function:
        raise ProofRejected(f"the source is that of {program.name}, not of {proof.function}")
    if program.source.strip() != proof.source.strip():
        raise ProofRejected("the source must hold the function, then the constants it uses, and nothing else")
    unsure = rounded(program, proof.fixed)
    if unsure is not None:
        raise ProofRejected(str(unsure))
    fixed_values(program, proof)
    public = Public(program.integers, proof.fixed)
    starts = starts_of(program, public)
    scales = [drawn.scale for start in starts for path in all_paths(start) for drawn in path.draws]
    return scope_of(program, proof, scales, public, bases), starts


@contextmanager
def _doubting() -> Iterator[None]:
    """What the arithmetic refuses is a rejection too."""
    try:
        yield
    except TooLarge as error:
        what = f"the program or the proof makes {error}, more than the checker computes with; simplify it"
        raise ProofRejected(what) from None
    except ZeroDivisionError:
        raise ProofRejected("a division by 0") from None
    except RecursionError:
        raise ProofRejected("the program or an expression of the proof is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise ProofRejected("the program or the proof has numbers that are too long") from None


def _given(scope: Scope) -> str:
    """For which inputs, in words."""
    proof = scope.proof
    many = "one answer" if scope.program.loop is None else "any number of answers"
    words = [f"all real query answers, {many}", ADJACENCIES[proof.adjacency]]
    if proof.fixed:
        words.append(", ".join(f"{name} = {value}" for name, value in proof.fixed.items()))
    free = [name for name in scope.program.parameters if name not in proof.fixed]
    if free:
        words.append(f"any {', '.join(free)} as assumed")
    return "; ".join(words)


def _assumptions(scope: Scope) -> tuple[str, ...]:
    asserted = [text(precondition) for precondition in scope.program.preconditions]
    whole = sorted(scope.program.integers - set(scope.proof.fixed))
    kinds = [f"{name} is whole" for name in whole]
    return (*dict.fromkeys([*scope.granted, *asserted, *kinds]), "arithmetic of real numbers, not of floats")


def _values(scope: Scope, proof: Proof, parameters: Mapping[str, Fraction | int]) -> dict[Unknown, Ratio]:
    """The symbols' values, each checked against the scope."""
    values: dict[Unknown, Ratio] = {}
    given = dict(proof.fixed)
    for name, value in parameters.items():
        number = Fraction(value)
        if name == LENGTH.name and name not in scope.program.parameters:
            if number.denominator != 1 or number < 1:
                raise InvalidSpec(f"n = {number}: the proof is for {_given(scope)}")
            values[LENGTH] = Ratio.number(number)
            continue
        if name not in scope.program.parameters:
            raise InvalidSpec(f"{proof.function} has no parameter {name!r}")
        if name in proof.fixed and proof.fixed[name] != number:
            raise InvalidSpec(f"{name} = {number}: the proof is for {name} = {proof.fixed[name]}")
        if name in scope.program.integers and number.denominator != 1:
            raise InvalidSpec(f"{name} must be whole, got {number}")
        given[name] = number
        values[Unknown("parameter", name, whole=name in scope.program.integers)] = Ratio.number(number)
    public = Public(scope.program.integers, given)
    conditions = [scope.formula(text, State({}), "an assumption") for text in scope.granted]
    conditions += [condition(each, State({}), public) for each in scope.program.preconditions]
    if any(decided(put(each, values)) is False for each in conditions):
        at = ", ".join(f"{name} = {value}" for name, value in given.items())
        raise InvalidSpec(f"the parameters {at} are outside the proof's scope: {', '.join(_assumptions(scope))}")
    return values
