"""Integrals of products of exponential sums, in closed form: Laplace and exponential noise.

On each part of the outer draw's range the integrand is a sum of terms c e^(k t / L), k whole, L the least common
multiple of all scales, and it is integrated term by term: no quadrature, and no tail is cut off. Exponents are taken
from the part's own end, so that nothing grows huge and then cancels.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import cache, reduce
from math import gcd, lcm
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.verify.enclosure import ball
from dpaudit.verify.integrals.parts import Certain, Part, Parts, Wave, waves

DENSE = 20_000  # the longest polynomial, gaps included; beyond, terms are stored one by one
SPARSE = 5_000  # the most terms stored one by one

Sum = dict[int, Any]  # k -> c


class TooManyTerms(Exception):
    """The scales have so little in common that the product has too many terms."""


def applies(cut: Parts) -> bool:
    """Whether the closed form covers the laws of a slice."""
    closed = ("laplace", "exponential")
    return cut.law in closed and all(term.law in closed for term in cut.terms)


def integral(cut: Parts) -> Any:
    """The probability of a slice as a ball, at the current precision. Raises `TooManyTerms`."""
    arb, fmpq = flint().arb, flint().fmpq
    common = lcm(cut.scale, *{term.scale for term in cut.terms})
    weight_of, power_of = cache(ball), cache(lambda exponent, scale: arb(fmpq(exponent, scale)).exp())  # each once

    def exponential(wave: Wave, origin: int) -> tuple[int, Any]:
        """k and c of a wave in c e^(k (t - origin) / common)."""
        exponent, weight = wave.rate * origin + wave.at, weight_of(wave.weight)
        k = wave.rate * (common // wave.scale)
        return k, weight * power_of(exponent, wave.scale) if exponent else weight

    def expansion(factor: Certain, inside: int, origin: int) -> Sum:
        """The sum of the alternatives of a factor, each a product."""
        terms: list[tuple[int, Any]] = []
        for product in factor:
            sums = [_added(exponential(wave, origin) for wave in waves(term, inside, cut.unit)) for term in product]
            terms += (reduce(_times, sums) if sums else {0: arb(1)}).items()
        return _added(terms)

    total = arb(0)
    for part in cut.parts:
        origin = part.left if part.left is not None else part.right
        assert origin is not None
        sign = -1 if part.inside > 0 else 1
        density = Wave(Fraction(1, 2) if cut.law == "laplace" else Fraction(1), sign, 0, cut.scale)
        place, weight = exponential(density, origin)
        factors = [(expansion(each, part.inside, origin), power) for each, power in part.factors]
        low, stride, product = _multiplied(factors)
        total += weight * _integrated(product, place + low, stride, part, common)
    return total * arb(fmpq(common, cut.scale))


def _added(terms: Iterable[tuple[int, Any]]) -> Sum:
    whole: Sum = {}
    for place, value in terms:
        whole[place] = whole[place] + value if place in whole else value
    return whole


def _times(left: Sum, right: Sum) -> Sum:
    return _added((one + two, value * other) for one, value in left.items() for two, other in right.items())


def _multiplied(factors: list[tuple[Sum, int]]) -> tuple[int, int, dict[int, Any]]:
    """The product of the factors: the least k, the stride, and the values at k = least + stride * place."""
    flint_ = flint()
    low, weight, longer = 0, flint_.arb(1), []
    for factor, power in factors:
        least = min(factor)
        low += least * power
        if len(factor) == 1:
            weight *= factor[least] ** power
        else:
            longer.append(({place - least: value for place, value in factor.items()}, power))
    stride = gcd(*(place for factor, _ in longer for place in factor)) or 1
    length = sum(max(factor) // stride * power for factor, power in longer)
    if length > DENSE:
        return low, 1, _sparse(longer, weight)
    places = [range(0, max(factor) + 1, stride) for factor, _ in longer]
    polynomials = [
        flint_.arb_poly([factor.get(place, 0) for place in each]) ** power
        for each, (factor, power) in zip(places, longer, strict=True)
    ]
    while len(polynomials) > 1:  # in pairs: factors of one length multiply fastest
        last = polynomials[-1:] if len(polynomials) % 2 else []
        polynomials = [a * b for a, b in zip(polynomials[::2], polynomials[1::2], strict=False)] + last
    if not polynomials:
        return low, stride, {0: weight}
    return low, stride, {place: weight * value for place, value in enumerate(polynomials[0].coeffs())}


def _sparse(factors: list[tuple[Sum, int]], weight: Any) -> Sum:
    product: Sum = {0: weight}
    for factor, power in factors:
        for _ in range(power):
            product = _times(product, factor)
            if len(product) > SPARSE:
                raise TooManyTerms
    return product


def _integrated(terms: dict[int, Any], low: int, stride: int, part: Part, common: int) -> Any:
    """The integral of the sum of c e^(k (t - origin) / common) over a part, divided by `common`."""
    flint_ = flint()
    total = flint_.arb(0)
    if part.left is None or part.right is None:
        sign = 1 if part.left is None else -1
        for place, value in terms.items():
            k = sign * (low + stride * place)
            if k <= 0:  # the outer density alone falls off, so this cannot be
                raise ArithmeticError("an exponential sum that does not fall off")
            total += value / k
        return total
    length = part.right - part.left
    start = flint_.arb(flint_.fmpq(low * length, common)).exp()
    step = flint_.arb(flint_.fmpq(stride * length, common)).exp()
    reached, last = start, 0
    for place, value in terms.items():
        k = low + stride * place
        reached, last = (reached * step if place == last + 1 else start * step**place), place
        total += value * (reached - 1) / k if k else value * flint_.fmpq(length, common)
    return total
