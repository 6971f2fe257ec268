"""One run in progress at concrete answers: numbers with noise, what names stand for, outputs; and a running maximum."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import in_short
from dpaudit.verify.language import nodes
from dpaudit.verify.language.doubles import NEAR, WIDEST, near, size_of
from dpaudit.verify.language.facts import OPERATIONS, ORDERS, reads, statements, targets, used


class OutsideIntegrals(InvalidSpec):
    """The program's outputs are no events that the integrals can express: no number is given, and none is guessed."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


MOST_OUTPUTS = 4096  # that are all computed


class TooMany(OutsideIntegrals):
    """The program has more outputs, or paths to them, than are computed one by one."""


def too_many_outputs(program: str) -> TooMany:
    """The refusal of a program with more different outputs than that."""
    return TooMany(f"{program} has more than {MOST_OUTPUTS} outputs here; give those of interest")


@dataclass(frozen=True, slots=True)
class Noise:
    """A draw of a run: its law, its scale, and the line of the source that makes it."""

    law: nodes.Law
    scale: Fraction
    line: int


@dataclass(frozen=True, slots=True)
class NoisySum:
    """constant + the sum of coefficient * draw, over draws by number; without draws it is a number.

    `double` is what Python's doubles make of such a number where they part from the real one; NaN where noise cancels.
    `python` is the number as Python holds it, or words that are the same for one type and sign; None: unknown.

    >>> total = NoisySum.draw(0) + NoisySum(Fraction(1)) - NoisySum.draw(0)
    >>> total.is_number, total.constant
    (True, Fraction(1, 1))
    """

    constant: Fraction
    terms: tuple[tuple[int, Fraction], ...] = ()  # by number of the draw, ascending; no coefficient is 0
    double: float | None = field(default=None, compare=False)
    python: int | float | str | None = field(default=None, compare=False)

    @classmethod
    def draw(cls, number: int) -> "NoisySum":
        """The draw itself."""
        return cls(Fraction(0), ((number, Fraction(1)),))

    @property
    def is_number(self) -> bool:
        """Whether no draw is in it."""
        return not self.terms

    def __add__(self, other: "NoisySum") -> "NoisySum":
        sums = dict(self.terms)
        for draw, factor in other.terms:
            sums[draw] = sums.get(draw, Fraction(0)) + factor
        terms = tuple(sorted((draw, factor) for draw, factor in sums.items() if factor))
        return NoisySum(self.constant + other.constant, terms)

    def __neg__(self) -> "NoisySum":
        return NoisySum(-self.constant, tuple((draw, -factor) for draw, factor in self.terms))

    def __sub__(self, other: "NoisySum") -> "NoisySum":
        return self + (-other)

    def times(self, factor: Fraction) -> "NoisySum":
        """The value multiplied by a number."""
        if factor == 0:
            return NoisySum(Fraction(0))
        return NoisySum(self.constant * factor, tuple((draw, each * factor) for draw, each in self.terms))


Value = NoisySum | nodes.Symbol


Released = Value | tuple["Released", ...]  # what a path gives out: values, nested as the program nests them


WRAPS = 2**63


@dataclass(slots=True)
class ConcreteRun:
    """Where a run is. `constraints` are positive: together they are what makes the run take its path."""

    answers: tuple[Fraction, ...]
    parameters: Mapping[str, Fraction]
    names: dict[str, NoisySum] = field(default_factory=dict)
    index: int | None = None
    draws: tuple[Noise, ...] = ()
    constraints: tuple[NoisySum, ...] = ()
    outputs: tuple[Released, ...] = ()
    offers: tuple[tuple[NoisySum, Mapping[str, NoisySum]], ...] = ()  # to a running maximum, and what each would assign
    scales: dict[int, NoisySum] = field(default_factory=dict)  # those that are fixed, by the id of their expression

    def copy(self) -> "ConcreteRun":
        """The same run, to go on by itself."""
        return replace(self, names=dict(self.names))


def given_out(expression: nodes.Expression, state: ConcreteRun, line: int | None) -> Value:
    """What an output is: a symbol, or a number that Python has too."""
    return expression if isinstance(expression, nodes.Symbol) else exact(number(expression, state, line), line)


def number(expression: nodes.Expression, state: ConcreteRun, line: int | None) -> NoisySum:
    """The value of an expression that is a number. Raises `OutsideIntegrals` for anything else."""
    match expression:
        case nodes.Number(value, real):
            return NoisySum(value, python=float(value) if real else int(value) if value.denominator == 1 else None)
        case nodes.ProgramParameter(name):
            return NoisySum(state.parameters[name], python=name)
        case nodes.Variable(name):
            if name not in state.names:
                raise OutsideIntegrals(f"{name} has no value here", line)
            return state.names[name]
        case nodes.Answer():
            return NoisySum(state.answers[0 if state.index is None else state.index])
        case nodes.Index():
            return NoisySum(Fraction(_index(state, line)), python=_index(state, line))
        case nodes.Length():
            return NoisySum(Fraction(len(state.answers)), python=len(state.answers))
        case nodes.Arithmetical(operation, left, right):
            return computed(operation, number(left, state, line), number(right, state, line), state.draws, line)
    raise OutsideIntegrals(f"a {type(expression).__name__} cannot stand here", line)


def computed(
    operation: nodes.Operation, left: NoisySum, right: NoisySum, draws: Sequence[Noise], line: int | None
) -> NoisySum:
    """What Python makes of two numbers. Raises `OutsideIntegrals` where rounding may decide what that is."""
    result = _computed(operation, left, right, line)
    if result.is_number:
        kinds = [type(side.python) for side in (left, right)]
        most = max(abs(each.constant) for each in (result, left, right))
        if type(None) in kinds and float not in kinds and most >= WRAPS:
            raise OutsideIntegrals("a number of the answers beyond 64 bits, where numpy's integers wrap", line)
        double = _in_doubles(operation, left, right, result.constant)
        return replace(result, double=double, python=_typed(operation, left, right, result.constant))
    _check_rounding(result, (left, right), line)
    widest = max(abs(factor) * draws[number].scale for number, factor in result.terms)
    if abs(result.constant) * NEAR > widest:
        raise OutsideIntegrals("noise beside so large a number that rounding may decide", line)
    return result


def exact(value: NoisySum, line: int | None) -> NoisySum:
    """The value, where Python has the same one. Raises `OutsideIntegrals` where its doubles part from real numbers."""
    if value.double is None:
        return value
    python = "the noise in it" if math.isnan(value.double) else f"{value.double!r}, not {in_short(value.constant)}"
    raise OutsideIntegrals(f"a number that rounding may decide: Python has {python}", line)


def near_enough(value: NoisySum, line: int | None) -> NoisySum:
    """The same of a scale or a divisor, whose last bits do not matter."""
    return value if value.double is not None and near(value.double, value.constant) else exact(value, line)


def _check_rounding(result: NoisySum, sides: tuple[NoisySum, NoisySum], line: int | None) -> None:
    """What becomes part of a noisy value must be in doubles what it is in real numbers, except for the last bits."""
    for side in sides:
        near_enough(side, line)
    left, right = (dict(side.terms).keys() for side in sides)
    if left & right - dict(result.terms).keys():
        raise OutsideIntegrals("noise that cancels beside other noise: rounding may decide what is left", line)
    if any(size_of(factor) > WIDEST for _, factor in result.terms):
        raise OutsideIntegrals("noise times a factor beyond doubles", line)


def _in_doubles(operation: nodes.Operation, left: NoisySum, right: NoisySum, real: Fraction) -> float | None:
    """What Python makes of two numbers, where that is not the real number."""
    if left.terms or right.terms:
        return math.nan
    try:
        value = OPERATIONS[operation](_python(left), _python(right))
        return None if Fraction(value) == real else float(value)
    except (ArithmeticError, ValueError):
        return math.nan


def _typed(operation: nodes.Operation, left: NoisySum, right: NoisySum, real: Fraction) -> int | float | str | None:
    """The result as Python holds it, where the types of both numbers are known; else words for it, except for 0."""
    sides = left.python, right.python
    if None in sides or real == 0 and (operation == "-" or str in map(type, sides)):
        return 0 if real == 0 and sides[0].__class__ is sides[1].__class__ is int else None  # -x is read as 0 - x
    if str in map(type, sides):
        left_words, right_words = (side if isinstance(side, str) else repr(side) for side in sides)
        return f"({left_words} {operation} {right_words})"
    try:
        return OPERATIONS[operation](*sides)  # type: ignore[no-any-return]
    except ArithmeticError:
        return None


def _python(value: NoisySum) -> float | Fraction:
    """A number as Python holds it: a double where it is one; otherwise it was given as a fraction."""
    if value.double is not None:
        return value.double
    try:
        return double if (double := float(value.constant)) == value.constant else value.constant
    except OverflowError:
        return value.constant


def _index(state: ConcreteRun, line: int | None) -> int:
    if state.index is None:
        raise OutsideIntegrals("the index of the loop is used outside it", line)
    return state.index


def _computed(operation: nodes.Operation, left: NoisySum, right: NoisySum, line: int | None) -> NoisySum:
    if operation == "+":
        return left + right
    if operation == "-":
        return left - right
    if operation == "*":
        if left.is_number:
            return right.times(left.constant)
        if right.is_number:
            return left.times(right.constant)
        raise OutsideIntegrals("a product of two draws is outside the integrals", line)
    if not right.is_number:
        raise OutsideIntegrals("a division by a draw is outside the integrals", line)
    if right.constant == 0:
        raise OutsideIntegrals("a division by 0", line)
    if operation == "/":
        return left.times(1 / right.constant)
    if not left.is_number:
        raise OutsideIntegrals(f"{operation} of a draw is outside the integrals", line)
    quotient = Fraction(math.floor(left.constant / right.constant))
    return NoisySum(quotient if operation == "//" else left.constant - quotient * right.constant)


Split = tuple[bool, tuple[NoisySum, ...]]  # whether a condition is true, and what must be positive for it


def splits(condition: nodes.Expression, state: ConcreteRun, line: int | None) -> list[Split]:
    """How a condition can come out: cases that exclude one another and leave out only probability 0."""
    match condition:
        case nodes.Compared(order, left, right):
            return compared(order, number(left, state, line), number(right, state, line), line)
        case nodes.Not(part):
            return [(not truth, needs) for truth, needs in splits(part, state, line)]
        case nodes.All(parts) | nodes.Any(parts):
            return _in_order(parts, state, line, ends=isinstance(condition, nodes.Any))
    raise OutsideIntegrals("a condition must be a comparison", line)


def _in_order(parts: tuple[nodes.Expression, ...], state: ConcreteRun, line: int | None, *, ends: bool) -> list[Split]:
    """`and` (the first False ends it) and `or` (the first True does), read from the left."""
    outcomes: list[Split] = []
    reached: list[tuple[NoisySum, ...]] = [()]
    for part in parts:
        if not reached:
            break
        cases = splits(part, state, line)
        outcomes += [(ends, before + needs) for before in reached for truth, needs in cases if truth is ends]
        reached = [before + needs for before in reached for truth, needs in cases if truth is not ends]
    return outcomes + [(not ends, needs) for needs in reached]


def compared(order: nodes.Order, left: NoisySum, right: NoisySum, line: int | None) -> list[Split]:
    """How a comparison can come out; see `splits`."""
    difference = left - right
    if difference.is_number:
        truth = ORDERS[order](difference.constant, 0)
        cancelled = left.terms or right.terms or any(math.isnan(each.double or 0.0) for each in (left, right))
        if cancelled or ORDERS[order](_python(left), _python(right)) is not truth:
            raise OutsideIntegrals("a comparison that rounding decides: doubles are not the real numbers here", line)
        return [(truth, ())]
    _check_rounding(difference, (left, right), line)
    if order in ("==", "!="):  # a sum of draws has no atoms
        return [(order == "!=", ())]
    above = order in (">", ">=")
    return [(above, (difference,)), (not above, (-difference,))]


@dataclass(frozen=True, slots=True)
class Maximum:
    """The branch that raises `name` to `value`; `sign` is -1 for a minimum, `strict` says that equals do not raise it.

    `opening` are the other parts of the condition, true of the first value only, such as index == 0.
    """

    branch: nodes.Branch
    name: str
    value: nodes.Expression
    sign: int
    strict: bool
    opening: tuple[nodes.Expression, ...]
    assigned: frozenset[str]


def winners(numbers: Sequence[NoisySum], sign: int, strict: bool) -> dict[int, list[NoisySum]]:
    """Which of some numbers can be the largest, and what must be positive for that; the smallest where `sign` is -1.

    Of equal ones the first wins where `strict`, else the last.
    """
    near, order, can = NEAR * (1 + max(abs(each.constant) for each in numbers)), 1 if strict else -1, {}
    for here, one in enumerate(numbers):
        apart = [one - other if sign == 1 else other - one for other in numbers]
        if any(each.is_number and 0 < abs(each.constant) <= near for each in apart):
            raise OutsideIntegrals("numbers so close that only rounding may part them decide")
        known = ((each.constant, order * (there - here)) for there, each in enumerate(apart) if each.is_number)
        if min(known) >= (0, 0):
            can[here] = [each for each in apart if each.terms]
    return can


def maximum(program: nodes.Program) -> Maximum | None:
    """The running maximum of a program; None where it has none that can be read as one."""
    maxima = [each for each in map(_read, program.loop or ()) if each is not None]
    if len(maxima) != 1:
        return None
    # the rest of the loop must neither read nor change what the branch assigns, nor end the loop
    branch, assigned = maxima[0].branch, maxima[0].assigned
    others = tuple(statement for statement in program.loop or () if statement is not branch)
    every = [expression for statement in (*branch.then, *statements(others)) for expression in used(statement)]
    return None if (reads(*every) | targets(others)) & assigned else maxima[0]


def _read(statement: nodes.Statement) -> Maximum | None:
    if not isinstance(statement, nodes.Branch) or statement.otherwise:
        return None
    condition = statement.condition
    *opening, compared = condition.parts if isinstance(condition, nodes.Any) else (condition,)
    if not isinstance(compared, nodes.Compared) or compared.order not in ("<", "<=", ">", ">="):
        return None
    if not all(isinstance(each, nodes.Assign) for each in statement.then) or not all(map(_first, opening)):
        return None
    assigned = {each.target: each.value for each in statement.then if isinstance(each, nodes.Assign)}
    if len(assigned) != len(statement.then):
        return None
    for value, best, sign in ((compared.left, compared.right, 1), (compared.right, compared.left, -1)):
        if not isinstance(best, nodes.Variable) or assigned.get(best.name) != value or set(assigned) & reads(value):
            continue
        upwards, strict = compared.order in (">", ">="), compared.order in ("<", ">")
        side = sign if upwards else -sign
        return Maximum(statement, best.name, value, side, strict, tuple(opening), frozenset(assigned))
    return None


def _first(part: nodes.Expression) -> bool:
    """Whether a condition is `index == 0`: true of the first answer alone."""
    zero = nodes.Number(Fraction(0))
    return part in (nodes.Compared("==", nodes.Index(), zero), nodes.Compared("==", zero, nodes.Index()))
