"""All paths through a block, followed by symbols in both runs at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.verify.alignment import forms
from dpaudit.verify.alignment.forms import (
    ONE,
    ZERO,
    Atom,
    Form,
    Leaf,
    NoProof,
    add,
    at,
    cost_text,
    number,
    one,
    variable,
)
from dpaudit.verify.language import nodes
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Ratio, Truth
from dpaudit.verify.language.facts import ORDERS, Walk, walks

MOST_PATHS = 500  # through one block


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number: its form in the first run, by how much the second run's differs, and, if public, what it is exactly."""

    form: Form
    moved: Form
    exact: Ratio | None

    @staticmethod
    def of(atom: Atom, moved: Atom | None = None) -> "Quantity":
        """An atom as a number: public, or moved by another atom."""
        if moved is not None:
            return Quantity(one(atom), one(moved), None)
        return Quantity(one(atom), {}, variable(atom) if isinstance(atom, str) else None)


Environment = Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Decision:
    """A condition on a path, and whether it is true."""

    condition: Formula
    truth: bool
    line: int


@dataclass(frozen=True, slots=True)
class PairedDraw:
    """A draw on a path; `weight` is 1 / scale."""

    name: str
    law: nodes.Law
    weight: Ratio
    line: int


@dataclass(frozen=True, slots=True)
class PairedPath:
    """One way through a block."""

    part: nodes.Part
    decisions: tuple[Decision, ...] = ()
    draws: tuple[PairedDraw, ...] = ()
    outputs: tuple[Quantity | nodes.Symbol, ...] = ()
    after: Environment = field(default_factory=dict)
    ends: bool = False

    @property
    def name(self) -> str:
        """Its name in a proof."""
        return nodes.path_name(self.part, "".join("T" if met.truth else "F" for met in self.decisions))

    def number(self, name: str, less: Form | None = None) -> Fraction | None:
        """The number that a variable is at its end, or is more than a form; None where that is no number."""
        value = self.after.get(name)
        return None if value is None else forms.number_of(add(value.form, less or {}, -1))

    def cost(self, shifts: Mapping[str, Form], moves: Mapping[Atom, Fraction]) -> Ratio:
        """What its shifts cost where atoms have these values."""
        sizes = ((draw.weight, at(shifts.get(draw.name, {}), moves)) for draw in self.draws)
        return sum((weight * number(abs(size)) for weight, size in sizes), ZERO)

    @property
    def taken(self) -> list[Formula]:
        """What holds on it, in the first run."""
        return [met.condition if met.truth else Opposite(met.condition) for met in self.decisions]

    @property
    def line(self) -> int | None:
        """The line to name where this path is at fault."""
        lines = [met.line for met in self.decisions] + [draw.line for draw in self.draws]
        return lines[-1] if lines else None


def quantity(exact: Ratio) -> Quantity:
    """A public number.

    >>> quantity(number(2)).form
    {'': Fraction(2, 1)}
    """
    return Quantity(_linear(exact), {}, exact)


class Follower:
    """Follows blocks of one program; `fixed` are the parameters with a value."""

    def __init__(self, fixed: Mapping[str, Fraction]) -> None:
        self._fixed = fixed

    def paths(self, part: nodes.Part, block: nodes.Block, start: Environment) -> list[PairedPath]:
        """Every path through the block. Raises `NoProof` for what the search does not read."""
        paths: list[PairedPath] = []
        for walk in walks(block):
            paths.append(self._followed(part, walk, start))
            if len(paths) > MOST_PATHS:
                raise NoProof(f"more than {MOST_PATHS} paths through one block: decide less in one turn")
        return paths

    def _followed(self, part: nodes.Part, walk: Walk, start: Environment) -> PairedPath:
        known, ends = dict(start), False
        decisions: list[Decision] = []
        draws: list[PairedDraw] = []
        outputs: list[Quantity | nodes.Symbol] = []
        for step in walk:
            match step:
                case nodes.Assign(target, value, line):
                    known[target] = self.value(value, known, line)
                case nodes.Draw(target, law, scale, line):
                    if law not in ("laplace", "exponential"):
                        raise NoProof(f"{law} noise has no alignment of finite cost: use Laplace noise", line)
                    if any(draw.name == target for draw in draws):
                        raise NoProof("one draw is made twice in one turn: write a draw of its own for each", line)
                    draws.append(PairedDraw(target, law, self._weight(scale, known, line), line))
                    known[target] = Quantity.of(forms.drawn(target), forms.shift_of(target))
                case nodes.Emit(value, line=line):  # at a place that is public
                    outputs.append(self.given_out(value, known, line))
                case nodes.Stop():
                    ends = True
                case (nodes.Branch(condition, line=line), truth):
                    decisions.append(Decision(self.condition(condition, known, line), truth, line))
        return PairedPath(part, tuple(decisions), tuple(draws), tuple(outputs), known, ends)

    def _weight(self, scale: nodes.Expression, known: Environment, line: int) -> Ratio:
        width = self.value(scale, known, line).exact
        if width is None or width == ZERO:
            raise NoProof("the scale of this noise is not public, or 0: give a public one above 0", line)
        return number(1) / width

    def condition(self, expression: nodes.Expression, known: Environment, line: int) -> Formula:
        """A condition as a formula."""
        match expression:
            case nodes.Compared(order, left, right):
                ours, theirs = self.value(left, known, line), self.value(right, known, line)
                leaf = Leaf(order, add(ours.form, theirs.form, -1), add(ours.moved, theirs.moved, -1))
                if not leaf.moved and set(leaf.value) <= {ONE}:
                    return Truth(bool(ORDERS[order](leaf.value.get(ONE, 0), 0)))
                return leaf
            case nodes.All(parts) | nodes.Any(parts):
                formulas = tuple(self.condition(part, known, line) for part in parts)
                return Both(formulas) if isinstance(expression, nodes.All) else Either(formulas)
            case nodes.Not(part):
                return Opposite(self.condition(part, known, line))
        raise NoProof("a number stands where a condition should be: compare it", line)

    def given_out(self, expression: nodes.Expression, known: Environment, line: int) -> Quantity | nodes.Symbol:
        """What an output is in both runs."""
        return expression if isinstance(expression, nodes.Symbol) else self.value(expression, known, line)

    def value(self, expression: nodes.Expression, known: Environment, line: int) -> Quantity:
        """What a number is in both runs."""
        match expression:
            case nodes.Number(value):
                return quantity(number(value))
            case nodes.ProgramParameter(name):
                return quantity(number(self._fixed[name]) if name in self._fixed else variable(name))
            case nodes.Variable(name):
                if name not in known:
                    raise NoProof(f"{name} has no value here on every path: give it one before", line)
                return known[name]
            case nodes.Answer():
                return Quantity.of(forms.ANSWER, forms.MOVED)
            case nodes.Index():
                return Quantity.of(forms.INDEX)
            case nodes.Length():
                return Quantity.of(forms.LENGTH)
            case nodes.Arithmetical(operation, left, right):
                return _combined(operation, self.value(left, known, line), self.value(right, known, line), line)
        raise NoProof("arithmetic with something that is no number: use numbers", line)


def _combined(operation: nodes.Operation, left: Quantity, right: Quantity, line: int) -> Quantity:
    if operation in ("+", "-"):
        sign = 1 if operation == "+" else -1
        exact = None
        if left.exact is not None and right.exact is not None:
            exact = left.exact + right.exact * number(sign)
        return Quantity(add(left.form, right.form, sign), add(left.moved, right.moved, sign), exact)
    if operation != "*" and right.exact == ZERO:
        raise NoProof("a division by 0: divide by something else", line)
    if operation == "/" and right.exact is not None:
        return _combined("*", left, quantity(number(1) / right.exact), line)
    if operation == "*":
        for factor, other in ((left, right), (right, left)):
            size = None if factor.exact is None else factor.exact.constant
            if size is not None:
                exact = None if other.exact is None else other.exact * number(size)
                return Quantity(forms.scaled(other.form, size), forms.scaled(other.moved, size), exact)
    if left.exact is not None and right.exact is not None:
        return quantity(left.exact * right.exact) if operation == "*" else _whole(operation, left.exact, right.exact)
    raise NoProof("a parameter times an answer or a noise: give the parameter a value", line)


def _whole(operation: nodes.Operation, left: Ratio, right: Ratio) -> Quantity:
    above, below = left.constant, right.constant
    if above is not None and below is not None:
        return quantity(number(above // below if operation == "//" else above % below))
    atom = (operation, *(tuple(sorted(_linear(part).items(), key=repr)) for part in (left, right)))
    return Quantity(one(atom), {}, variable(f"({cost_text(left)}) {operation} ({cost_text(right)})"))


def _linear(exact: Ratio) -> Form:
    """The form of a public number: linear in its names where it is, one atom of its own where not."""
    size = exact.constant
    if size is not None:
        return forms.constant(size)
    if exact.below or any(sum(power for _, power in monomial) > 1 for monomial, _ in exact.above.terms):
        return one(("rational", exact))
    return {(monomial[0][0] if monomial else ONE): value for monomial, value in exact.above.terms}
