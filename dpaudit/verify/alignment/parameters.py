"""What is known of the public parameters, and which of two costs is never the larger one."""

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import z3
from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment.forms import ONE, Leaf
from dpaudit.verify.alignment.paths import Follower, PairedDraw, Quantity
from dpaudit.verify.alignment.rational import Rational, number
from dpaudit.verify.language import nodes, text
from dpaudit.verify.language.algebra import Both, Formula, Polynomial, Truth
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.proof import NoProof

REFERENCE = (Fraction(1), Fraction(3), Fraction(5, 2), Fraction(7, 3), Fraction(11, 5))
MILLISECONDS = 300  # for one comparison of costs; undecided counts as not comparable


class Parameters:
    """The parameters of a program: those that are `fixed`, and what holds of the others (`preconditions`).

    A parameter in the scale of a noise is taken for positive, a whole one for at least 1: `granted` says so in words.
    """

    def __init__(self, program: nodes.Program, fixed: Mapping[str, Fraction], granted: tuple[str, ...] = ()) -> None:
        self.fixed = {name: Fraction(value) for name, value in fixed.items()}
        self.integers = frozenset(program.integers) - set(self.fixed)
        self.free = tuple(name for name in program.parameters if name not in self.fixed)
        follower = Follower(self.fixed)
        self._asserted = tuple(
            part for each in program.preconditions for part in _parts(follower.condition(each, {}, 1))
        )
        if any(isinstance(part, Truth) and not part.holds for part in self._asserted):
            given = ", ".join(f"{name} = {value}" for name, value in self.fixed.items())
            values = f"the values {given} break" if given else "no values keep"
            raise InvalidSpec(f"{values} what {program.name} asserts of its parameters")
        self._beyond = granted
        self._grant(granted)

    def learn(self, draws: Iterable[PairedDraw]) -> None:
        """Take in the draws: parameters in their scales are positive. Raises `NoProof` where a scale may not be."""
        scales = {draw: number(1) / draw.weight for draw in draws}
        in_scales = {name for scale in scales.values() for name in scale.names}
        self._grant(
            (*(f"{n} >= 1" if n in self.integers else f"{n} > 0" for n in self.free if n in in_scales), *self._beyond)
        )
        for draw, scale in scales.items():
            if not self._positive(scale):
                raise NoProof(f"nothing says that the scale {scale} of this noise is positive: assert it", draw.line)

    def check_divisors(self, program: nodes.Program) -> None:
        """Raises `NoProof` where a divisor of the source may be 0, used or not: to raise is to tell."""
        for divisor, line in program.divisors:
            value = Follower(self.fixed).value(divisor, {}, line)
            exact = value.exact if isinstance(value, Quantity) else None
            if exact is None or exact.zero or not (self._positive(exact) or self._positive(number(0) - exact)):
                raise NoProof(f"nothing says that the divisor {text(divisor)} is not 0: assert it is above 0", line)

    def _grant(self, texts: tuple[str, ...]) -> None:
        self.granted = texts
        self.preconditions: tuple[Formula, ...] = (*self._asserted, *map(_fact, texts))
        self._least = self._lower_bounds()
        self._known: dict[tuple[Rational, Rational], bool] = {}

    @property
    def reference(self) -> dict[str, Fraction]:
        """A point to order costs at where neither is always the smaller one."""
        return {
            name: self._least.get(name, Fraction(0)) + REFERENCE[place % len(REFERENCE)]
            for place, name in enumerate(self.free)
        }

    def at_most(self, smaller: Rational, larger: Rational) -> bool:
        """Whether `smaller` <= `larger` for all values that the parameters may have (False where that is not known)."""
        gap = larger - smaller
        size = gap.constant
        if size is not None:
            return size >= 0
        key = (smaller, larger)
        if key not in self._known:
            self._known[key] = self._spread(gap) > 0 or (gap.at(self.reference) >= 0 and self._never(gap, strict=True))
        return self._known[key]

    def largest(self, costs: Iterable[Rational]) -> Rational | None:
        """The one that is never below another (0 of none); None where there is no such one."""
        best: Rational | None = None
        rest: list[Rational] = []
        for cost in costs:
            if best is None or self.at_most(best, cost):
                best = cost
            elif not self.at_most(cost, best):
                rest.append(cost)
        if best is None:
            return number(0)
        return best if all(self.at_most(cost, best) for cost in rest) else None

    # --- signs --------------------------------------------------------------------------------------------------

    def _positive(self, scale: Rational) -> bool:
        size = scale.constant
        if size is not None:
            return size > 0
        return self._spread(scale) > 0 and not scale.names & self._reached or self._never(scale, strict=False)

    def _spread(self, function: Rational) -> int:
        """1 where every term is positive once each name is written as its least value and more; -1; or 0."""
        if not function.names <= set(self._least):
            return 0
        values = {name: Polynomial.of(name) + Polynomial.number(self._least[name]) for name in function.names}
        signs = 1
        for side in (function.numerator, function.denominator):
            products = (
                math.prod((values[name] ** power for name, power in monomial), start=Polynomial.number(value))
                for monomial, value in side.terms
            )
            terms = [value for _, value in sum(products, start=Polynomial()).terms]
            signs *= 1 if all(v > 0 for v in terms) else -1 if all(v < 0 for v in terms) else 0
        return signs

    def _lower_bounds(self) -> dict[str, Fraction]:
        bounds: dict[str, Fraction] = {}
        self._reached = frozenset[str]()  # the names whose least value they may have
        for formula in self.preconditions:
            if isinstance(formula, Leaf) and len(names := [atom for atom in formula.value if atom != ONE]) == 1:
                name, factor = str(names[0]), formula.value[names[0]]
                if name in self.free and formula.order in ((">", ">=") if factor > 0 else ("<", "<=")):
                    least = -formula.value.get(ONE, Fraction(0)) / factor
                    if least >= bounds.get(name, least):
                        bounds[name] = least
                        self._reached = self._reached - {name} if formula.order in "<>" else self._reached | {name}
        return bounds

    def _never(self, function: Rational, *, strict: bool) -> bool:
        """Whether no values make the function negative (or, not `strict`, 0), as z3 finds."""
        module = z3()
        names = {name: module.Real(name) for name in self.free}
        if not function.names <= set(names):
            return False
        solver = module.Solver()
        solver.set("timeout", MILLISECONDS)
        for formula in self.preconditions:
            if isinstance(formula, Leaf) and all(atom == ONE or atom in names for atom in formula.value):
                powers = (((() if atom == ONE else ((str(atom), 1),)), each) for atom, each in formula.value.items())
                value = Polynomial(tuple(powers))
                solver.add(ORDERS[formula.order](_term(module, value, names), 0))
        above, below = (_term(module, side, names) for side in (function.numerator, function.denominator))
        solver.add(above * below < 0 if strict else above * below <= 0)
        return bool(solver.check() == module.unsat)


def _parts(formula: Formula) -> Iterator[Formula]:
    """The conditions that are joined by `and`."""
    if isinstance(formula, Both):
        for part in formula.parts:
            yield from _parts(part)
    else:
        yield formula


def _fact(text: str) -> Formula:
    """What is granted of a parameter: "eps > 0" or "N >= 1"."""
    name, order, _ = text.split()
    if order == ">":
        return Leaf(">", {name: Fraction(1)}, {})
    return Leaf(">=", {name: Fraction(1), ONE: Fraction(-1)}, {})


def _term(module: Any, polynomial: Polynomial, names: Mapping[str, Any]) -> Any:
    result = module.RealVal(0)
    for monomial, value in polynomial.terms:
        part = module.RealVal(str(value))
        for name, power in monomial:
            for _ in range(power):
                part = part * names[name]
        result = result + part
    return result
