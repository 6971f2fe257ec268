"""What an expression of the language is at a state: a ratio, a symbol of the output, or a fact.

Every product has at most one factor that is not public, and no divisor is private: the value is then an affine
function of what is private, with coefficients that both runs share on the same path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.verify.checker.formulas import ProofRejected, Ratio, Unknown, compared
from dpaudit.verify.language import nodes
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Truth

PUBLIC = frozenset({"parameter", "length", "index", "counter", "opaque"})
LENGTH = Unknown("length", "n", whole=True)
INDEX = Unknown("index", "index", whole=True)
ANSWER = Unknown("answer", "answer")


@dataclass(frozen=True, slots=True)
class OutputSymbol:
    """A symbol of the output: None, True, False or a text."""

    name: str


Value = Ratio | OutputSymbol | Formula


@dataclass(frozen=True, slots=True)
class Division:
    """What an opaque symbol stands for: left // right, or left % right."""

    operation: str
    left: Ratio
    right: Ratio


@dataclass(slots=True)
class Public:
    """What is public: the parameters (with the values that are fixed), and the whole divisions met so far."""

    whole: frozenset[str]
    fixed: Mapping[str, Fraction]
    divisions: dict[Unknown, Division] = field(default_factory=dict)

    def parameter(self, name: str) -> Ratio:
        """A parameter: its value where it is fixed, a symbol where it is not."""
        if name in self.fixed:
            return Ratio.number(self.fixed[name])
        return Ratio.of(Unknown("parameter", name, whole=name in self.whole))

    def division(self, operation: str, left: Ratio, right: Ratio) -> Ratio:
        """left // right or left % right as a symbol of its own: the same in both runs, whatever it is."""
        known = divided(operation, left, right)
        if known is not None:
            return Ratio.number(known)
        if not (left.whole and right.whole and is_public(left) and is_public(right)):
            raise ProofRejected(f"{operation} of numbers that are not public and whole: {left} {operation} {right}")
        meant = Division(operation, left, right)
        known_as = {division: symbol for symbol, division in self.divisions.items()}
        if meant not in known_as:
            name = f"division {len(self.divisions)}: ({left}) {operation} ({right})"
            known_as[meant] = Unknown("opaque", name, whole=True)
            self.divisions[known_as[meant]] = meant
        return Ratio.of(known_as[meant])


@dataclass(frozen=True, slots=True)
class State:
    """The values of the variables, of the index and of the current answer, where they exist."""

    variables: Mapping[str, Value]
    index: Ratio | None = None
    answer: Ratio | None = None


def divided(operation: str, left: Ratio, right: Ratio) -> Fraction | None:
    """left // right or left % right where both are numbers."""
    a, b = left.constant, right.constant
    if a is None or b is None or b == 0:
        return None
    return Fraction(a // b) if operation == "//" else a % b


def is_public(value: Ratio) -> bool:
    """Whether the value is a function of what is public."""
    return all(symbol.kind in PUBLIC for symbol in value.symbols)


def value_of(expression: nodes.Expression, state: State, public: Public) -> Value:
    """What an expression is at a state. Raises `ProofRejected` where it has no value that the checker knows."""
    match expression:
        case nodes.Number(value):
            return Ratio.number(value)
        case nodes.Symbol(name):
            return OutputSymbol(name)
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
        case nodes.Compared(order, left, right):
            return _comparison(order, value_of(left, state, public), value_of(right, state, public))
        case nodes.All(parts):
            return Both(tuple(condition(part, state, public) for part in parts))
        case nodes.Any(parts):
            return Either(tuple(condition(part, state, public) for part in parts))
        case nodes.Not(part):
            return Opposite(condition(part, state, public))
        case nodes.Emitted():
            raise ProofRejected("the list of outputs is used as a value")


def number(expression: nodes.Expression, state: State, public: Public) -> Ratio:
    """The number that an expression is."""
    found = value_of(expression, state, public)
    if not isinstance(found, Ratio):
        raise ProofRejected("a number is wanted where the program has a symbol or a comparison")
    return found


def condition(expression: nodes.Expression, state: State, public: Public) -> Formula:
    """The fact that a condition is."""
    found = value_of(expression, state, public)
    if isinstance(found, OutputSymbol) and found.name in ("True", "False"):
        return Truth(found.name == "True")
    if isinstance(found, OutputSymbol | Ratio):
        raise ProofRejected("a condition is not a comparison")
    return found


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


def _comparison(order: nodes.Order, left: Value, right: Value) -> Formula:
    if isinstance(left, Ratio) and isinstance(right, Ratio):
        return compared(order, left, right)
    if isinstance(left, OutputSymbol) and isinstance(right, OutputSymbol) and order in ("==", "!="):
        return Truth((left == right) == (order == "=="))
    raise ProofRejected("a comparison of things that are not both numbers")
