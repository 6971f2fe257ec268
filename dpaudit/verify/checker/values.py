"""What an expression of the language is at a state: a ratio, a symbol of the output, or a fact.

Every product has at most one factor that is not public, and no divisor is private: the value is then an affine
function of what is private, with coefficients that both runs share on the same path.

And for which inputs a proof speaks: the parameters, how many answers there are, how far they move. Taken for granted: a
parameter in the scale of a noise is positive (a whole one at least 1), what the source asserts, and that there is at
least one answer. Everything that a proof assumes beyond the fixed values must follow from these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.errors import InvalidSpec
from dpaudit.verify.alethe.obligations import Bases
from dpaudit.verify.checker.formulas import Facts, ProofRejected, Sign, Unknown, compared
from dpaudit.verify.language import expression, nodes, text
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Ratio, Truth
from dpaudit.verify.proof import ADJACENCIES, REACH, Adjacency, Proof

PUBLIC = frozenset({"parameter", "length", "index", "counter", "opaque"})
LENGTH = Unknown("length", "n", whole=True)
INDEX = Unknown("index", "index", whole=True)
ANSWER = Unknown("answer", "answer")


Division = tuple[str, Ratio, Ratio]  # "//" or "%", and its two sides


@dataclass(slots=True)
class Public:
    """What is public: the parameters (with the values that are fixed), and the whole divisions met so far."""

    whole: frozenset[str]
    fixed: Mapping[str, Fraction]
    divisions: dict[Division, Unknown] = field(default_factory=dict)

    def parameter(self, name: str) -> Ratio:
        """A parameter: its value where it is fixed, a symbol where it is not."""
        if name in self.fixed:
            return Ratio.number(self.fixed[name])
        return Ratio.of(Unknown("parameter", name, whole=name in self.whole))

    def division(self, operation: str, left: Ratio, right: Ratio) -> Ratio:
        """left // right or left % right as a symbol of its own: the same in both runs, whatever it is."""
        a, b = left.constant, right.constant
        if a is not None and b:
            return Ratio.number(a // b if operation == "//" else a % b)
        if not all(is_integer(side) and is_public(side) for side in (left, right)):
            raise ProofRejected(f"{operation} of numbers that are not public and whole: {left} {operation} {right}")
        if (meant := (operation, left, right)) not in self.divisions:
            name = f"division {len(self.divisions)}: ({left}) {operation} ({right})"
            self.divisions[meant] = Unknown("opaque", name, whole=True)
        return Ratio.of(self.divisions[meant])


@dataclass(frozen=True, slots=True)
class State:
    """The values of the variables, of the index and of the current answer, where they exist."""

    variables: Mapping[str, Ratio]
    index: Ratio | None = None
    answer: Ratio | None = None


def is_public(value: Ratio) -> bool:
    """Whether the value is a function of what is public."""
    return all(symbol.kind in PUBLIC for symbol in value.symbols)


def is_integer(value: Ratio) -> bool:
    """Whether the value is an integer for every state."""
    whole = all(c.denominator == 1 for _, c in value.above.terms) and all(symbol.whole for symbol in value.symbols)
    return whole and not value.below


def given_out(expression: nodes.Expression, state: State, public: Public) -> Ratio | nodes.Symbol:
    """What an output is: a symbol, or a number."""
    return expression if isinstance(expression, nodes.Symbol) else number(expression, state, public)


def number(expression: nodes.Expression, state: State, public: Public) -> Ratio:
    """The number that an expression is at a state. Raises `ProofRejected` where it is none that the checker knows."""
    match expression:
        case nodes.Number(value):
            return Ratio.number(value)
        case nodes.ProgramParameter(name):
            return public.parameter(name)
        case nodes.Variable(name):
            if name not in state.variables:
                raise ProofRejected(f"{name} has no value that is known where it is used")
            return state.variables[name]
        case nodes.Answer():
            return _present(state.answer, "the answer is used outside the loop over the answers")
        case nodes.Index():
            return _present(state.index, "the index is used outside the loop")
        case nodes.Length():
            return Ratio.of(LENGTH)
        case nodes.Arithmetical(operation, left, right):
            return _arithmetic(operation, number(left, state, public), number(right, state, public), public)
    raise ProofRejected("a number is wanted where the program has a symbol, a comparison or the list of outputs")


def condition(expression: nodes.Expression, state: State, public: Public) -> Formula:
    """The fact that a condition is."""
    match expression:
        case nodes.Compared(order, left, right):
            return compared(order, number(left, state, public), number(right, state, public))
        case nodes.All(parts) | nodes.Any(parts):
            conditions = tuple(condition(part, state, public) for part in parts)
            return Both(conditions) if isinstance(expression, nodes.All) else Either(conditions)
        case nodes.Not(part):
            return Opposite(condition(part, state, public))
    raise ProofRejected("a condition is not a comparison")


def _present(value: Ratio | None, otherwise: str) -> Ratio:
    if value is None:
        raise ProofRejected(otherwise)
    return value


def _arithmetic(operation: nodes.Operation, left: Ratio, right: Ratio, public: Public) -> Ratio:
    match operation:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            if not (is_public(left) or is_public(right)):
                raise ProofRejected("a product of two numbers that both depend on the data or on noise")
            return left * right
        case "/":
            if not is_public(right):
                raise ProofRejected("a division by a number that depends on the data or on noise")
            if not right.above.terms:
                raise ProofRejected("a division by 0")
            return left / right
        case "//" | "%":
            return public.division(operation, left, right)


MOVED = Unknown("moved", "d")
USED = Unknown("used", "used", whole=True)
USED_NEXT = Unknown("used", "used after it", whole=True)


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
            value = number(_read(text, self.program, what), State({}), self.public)
        except ProofRejected as error:
            raise ProofRejected(f"{what} {text!r}: {error}") from None
        if any(symbol.kind not in ("parameter", "length") for symbol in value.symbols):
            raise ProofRejected(f"{what} {text!r} must be a rational function of the parameters")
        return value


def scope_of(program: nodes.Program, proof: Proof, scales: Iterable[Ratio], public: Public, bases: Bases) -> Scope:
    """The scope that a proof claims. Raises `ProofRejected` where no parameters are in it, or it claims too much."""
    facts, granted = Facts(bases), []
    symbols = {symbol for scale in scales for symbol in scale.symbols if symbol.kind == "parameter"}
    for symbol in sorted(symbols):
        least: Formula = Sign(">", Ratio.of(symbol))
        granted.append(f"{symbol.name} >= 1" if symbol.whole else f"{symbol.name} > 0")
        facts = facts.assuming(least, *_at_least_one(symbol))
    facts = facts.assuming(Sign(">", Ratio.of(LENGTH)), *_at_least_one(LENGTH))
    for asserted in program.preconditions:
        facts = facts.assuming(condition(asserted, State({}), public))
    if facts.assuming(*division_facts(public)).holds(Truth(False)) is not False:
        raise ProofRejected("no parameters were found that meet the preconditions: it would be a proof of nothing")
    index = Ratio.of(INDEX)
    in_loop = facts.assuming(compared(">=", index, Ratio.number(0)))
    for divisor, line in program.divisors:  # used or not: an exception reveals where it was raised
        goal = compared("!=", number(divisor, State({}, index), public), Ratio.number(0))
        in_loop.must(goal, f"the divisor {text(divisor)} in line {line} is not 0")
    scope = Scope(program, proof, public, facts, tuple(granted))
    for words in proof.assumptions:
        facts.must(scope.formula(words, State({}), "an assumption"), f"the assumption {words!r} is taken for granted")
    return scope


def fixed_values(program: nodes.Program, proof: Proof) -> None:
    """Raises `ProofRejected` unless the fixed values belong to parameters, and whole ones to whole parameters."""
    for name, value in proof.fixed.items():
        if name not in program.parameters:
            raise ProofRejected(f"the fixed value of {name!r}: {program.name} has no such parameter")
        if name in program.integers and value.denominator != 1:
            raise ProofRejected(f"the fixed value of {name} must be whole, got {value}")
    if proof.adjacency not in ADJACENCIES:
        raise ProofRejected(f"the adjacency must be one of {', '.join(ADJACENCIES)}, got {proof.adjacency!r}")


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
    """What is known of `used` at the head of the loop."""
    if adjacency != "one-differs":
        return ()
    used = Ratio.of(USED)
    return (Either((compared("==", used, Ratio.number(0)), compared("==", used, Ratio.number(1)))),)


def division_facts(public: Public) -> tuple[Formula, ...]:
    """What whole divisions by a positive number mean: left = number * quotient + rest, 0 <= rest < number."""
    facts: list[Formula] = []
    for (operation, left, right), symbol in tuple(public.divisions.items()):
        by = right.constant
        if by is None or by <= 0:
            continue
        rest = left - right * public.division("//", left, right)
        facts.append(compared(">=", rest, Ratio.number(0)))
        facts.append(compared("<", rest, right))
        if operation == "%":
            facts.append(compared("==", Ratio.of(symbol), rest))
    return tuple(facts)


def _at_least_one(symbol: Unknown) -> tuple[Formula, ...]:
    return (compared(">=", Ratio.of(symbol), Ratio.number(1)),) if symbol.whole else ()


def _read(text: str, program: nodes.Program, what: str) -> nodes.Expression:
    try:
        return expression(text, program)
    except InvalidSpec as error:
        raise ProofRejected(f"{what} {text!r} cannot be read: {error}") from None
