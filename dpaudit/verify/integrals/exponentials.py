"""Integrals of products of exponential sums, in closed form: Laplace and exponential noise.

On each part of the range of t a factor is a sum of terms c e^(k t / L), k whole, L the least common multiple of all
scales. So is a product of factors, and it is integrated term by term: no quadrature, and no tail is cut off.

Many products, such as all outputs of a run, are integrated together. The integrals of e^(k t / L) for all k are a
linear functional, and those of a factor times e^(k t / L) are another. What all products have in common is taken into
the functional once; then they are split in halves, each with a functional of its own, down to single products.
"""

import contextlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd, lcm
from operator import mul
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from dpaudit.base.installed import flint
from dpaudit.verify.deadline import left_s
from dpaudit.verify.enclosure import BITS
from dpaudit.verify.integrals.parts import Exact, Form, Part, Parts, Slice, Wave, factors_of, parts, unit_of, waves

DENSE = 20_000  # the longest polynomial, gaps included; beyond, terms are stored one by one
SPARSE = 5_000  # the most terms stored one by one
CLOSED = frozenset(("laplace", "exponential", None))  # laws of draws, and no draw
PRECISE = 150  # bits of relative accuracy of many at once; what is less precise is taken alone

K = TypeVar("K", bound=Hashable)
Sum = dict[int, Any]  # k -> c
Powers = tuple[tuple[Form, int], ...]


class TooManyTerms(Exception):
    """The scales have so little in common that the product has too many terms."""


class _Factor(NamedTuple):
    """The sum that a factor is, its least and its largest k, and what all k are multiples of, as far as they vary."""

    terms: Sum
    least: int
    most: int
    step: int


class _Shared(NamedTuple):
    """What some products have in common, by numbers and powers, and what is left in halves; of one product nothing."""

    common: Counter[int]
    halves: tuple["_Shared", ...]
    product: int


class _Possible(NamedTuple):
    """The same on a part, without what is impossible there: the degree in common, the exponents of whole products."""

    powers: Powers
    degree: int
    low: int
    high: int
    halves: list["_Possible"]
    product: int


def together(slices: Mapping[K, Slice]) -> dict[K, Any]:
    """The probabilities of slices that share most of their factors, as balls; those better taken alone are left out.

    What is computed for one serves the others, such as all outputs of a run.
    """
    closed = [(key, each) for key, each in slices.items() if each.law is not None and each.laws <= CLOSED]
    unit = unit_of(each for _, each in closed)
    groups: list[tuple[set[Exact], dict[K, tuple[Exact, ...]]]] = [(set(), {})]
    for key, each in sorted(closed, key=lambda item: len(item[1].factors)):
        product, known = factors_of(each, unit, int(each.shift * unit)), groups[-1][0]
        if not 2 * len(known.intersection(product)) >= len(set(product)) >= len(known) / 2:
            groups.append((set(), {}))
        groups[-1][0].update(product)
        groups[-1][1][key] = product
    found: dict[K, Any] = {}
    for products in (products for _, products in groups if len(products) > 1):
        with flint().ctx.workprec(BITS), contextlib.suppress(TooManyTerms):
            balls = zip(products, integrals(parts([*products.values()], unit)), strict=True)
            found |= {key: ball for key, ball in balls if ball.rel_accuracy_bits() >= PRECISE}
    return found


def integrals(cut: Parts) -> list[Any]:
    """The integrals of the products as balls, at the current precision. Raises `TooManyTerms`."""
    flint_ = flint()
    arb, fmpq = flint_.arb, flint_.fmpq
    forms = {form: number for part in cut.parts for number, form in enumerate(part.forms) if form is not None}
    unit = lcm(*{form.gap.scale for form in forms})
    products = [frozenset((n, time) for n, power in each.items() for time in range(power)) for each in cut.products]
    in_all = frozenset[tuple[int, int]].intersection(*products)
    varied = {number for each in products for number, _ in each - in_all}

    def of_wave(wave: Wave) -> tuple[int, Any]:
        weight = arb(fmpq(wave.weight.numerator, wave.weight.denominator))
        return wave.rate * (unit // wave.scale), weight * arb(fmpq(wave.at, wave.scale)).exp() if wave.at else weight

    factors: dict[Form, _Factor] = {}
    for form, number in forms.items():
        terms = _added(map(of_wave, waves(form.gap, form.inside, cut.unit)))
        least = min(terms)
        step = gcd(*(k - least for k in terms), least if number in varied else 0)
        factors[form] = _Factor(terms, least, max(terms), step)
    shared = _shared(sorted(enumerate(products), key=lambda each: sorted(each[1])))
    totals, known = [arb(0)] * len(products), dict[tuple[Powers, int], Any]()
    for part in cut.parts:
        left_s()
        stride = gcd(*(factors[form].step for form in part.forms if form is not None)) or 1
        for product, value in _OnPart(part, shared, factors, unit, stride, known, flint_).integrals():
            totals[product] += value
    return [total * fmpq(unit, cut.unit) for total in totals]


def _added(terms: Iterable[tuple[int, Any]]) -> Sum:
    whole: Sum = {}
    for place, value in terms:
        whole[place] = whole[place] + value if place in whole else value
    return whole


def _times(left: Sum, right: Sum) -> Sum:
    product = _added((one + two, value * other) for one, value in left.items() for two, other in right.items())
    if len(product) > SPARSE:
        raise TooManyTerms
    return product


def _shared(products: Sequence[tuple[int, frozenset[tuple[int, int]]]]) -> _Shared:
    common = frozenset.intersection(*(factors for _, factors in products))
    rest, half = [(number, factors - common) for number, factors in products], len(products) // 2
    halves = (_shared(rest[:half]), _shared(rest[half:])) if half else ()
    return _Shared(Counter(number for number, _ in common), halves, products[0][0])


@dataclass(frozen=True, slots=True)
class _OnPart:
    """A part of the range, where exponents are counted in strides; `known` are products of factors, by stride."""

    part: Part
    shared: _Shared
    factors: Mapping[Form, _Factor]
    unit: int
    stride: int
    known: dict[tuple[Powers, int], Any]
    flint: ModuleType

    def integrals(self) -> Iterator[tuple[int, Any]]:
        """Those of the products that are possible here, divided by `unit`."""
        whole = self.possible(self.shared)
        if whole is None:
            return
        first = sum(self.factors[form].least * power for form, power in whole.powers)
        if whole.high - whole.low <= DENSE:
            exponents = range(first + self.stride * whole.high, first + self.stride * whole.low - 1, -self.stride)
            yield from self.follow(whole, self.flint.arb_poly([self.integral(k) for k in exponents]), whole.high)
        elif whole.halves:
            raise TooManyTerms
        else:
            terms = [self.factors[form].terms for form, power in whole.powers for _ in range(power)]
            yield whole.product, sum(value * self.integral(k) for k, value in reduce(_times, terms).items())

    def possible(self, node: _Shared) -> _Possible | None:
        """What is possible of some products."""
        halves = [each for half in node.halves if (each := self.possible(half)) is not None]
        powers = tuple((form, power) for number, power in node.common.items() if (form := self.part.forms[number]))
        if len(powers) < len(node.common) or (node.halves and not halves):
            return None
        low = sum(self.factors[form].least * power for form, power in powers)
        degree = (sum(self.factors[form].most * power for form, power in powers) - low) // self.stride
        low = 0 if node is self.shared else low // self.stride
        least, most = min((each.low for each in halves), default=0), max((each.high for each in halves), default=0)
        return _Possible(powers, degree, low + least, low + degree + most, halves, node.product)

    def integral(self, k: int) -> Any:
        """That of e^(k t / unit)."""
        arb, fmpq, left, right = self.flint.arb, self.flint.fmpq, self.part.left, self.part.right
        if left is not None and right is not None:
            length = fmpq(right - left, self.unit)
            return arb(fmpq(k * left, self.unit)).exp() * arb(k * length).expm1() / k if k else arb(length)
        end, sign = (left, -1) if right is None else (right, 1)
        if end is None or sign * k <= 0:  # the outer density alone falls off, so this cannot be
            raise ArithmeticError("an exponential sum that does not fall off")
        return arb(fmpq(k * end, self.unit)).exp() / (sign * k)

    def follow(self, each: _Possible, functional: Any, high: int) -> Iterator[tuple[int, Any]]:
        """The integrals; coefficient i of the functional is that of the exponent high - i."""
        functional = functional.right_shift(high - each.high).truncate(each.high - each.low + 1)
        factor = self.product(each.powers)
        if not each.halves:
            reverse = (functional[place] for place in range(each.degree, -1, -1))
            yield each.product, sum(map(mul, factor.coeffs(), reverse))
            return
        functional = (factor * functional).truncate(each.high - each.low + 1).right_shift(each.degree)
        for half in each.halves:
            yield from self.follow(half, functional, max(other.high for other in each.halves))

    def product(self, powers: Powers) -> Any:
        """A product as a polynomial in e^(stride t / unit), from its least k on."""
        if (powers, self.stride) not in self.known:
            polynomials = [] if powers else [self.flint.arb_poly([1])]
            for form, power in powers:
                terms, least, most, _ = self.factors[form]
                polynomial = self.flint.arb_poly([terms.get(k, 0) for k in range(least, most + 1, self.stride)])
                polynomials.append(polynomial**power if power > 1 else polynomial)
            while len(polynomials) > 1:  # in pairs: factors of one length multiply fastest
                last = polynomials[-1:] if len(polynomials) % 2 else []
                polynomials = [a * b for a, b in zip(polynomials[::2], polynomials[1::2], strict=False)] + last
            self.known[powers, self.stride] = polynomials[0]
        return self.known[powers, self.stride]
