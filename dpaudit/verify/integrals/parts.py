"""Events of comparison programs as data, and the range of their outer draw cut into parts.

Given one outer draw t (such as the noise of a threshold), the other draws are independent, and each must fall between
limits that are straight lines in t. So the probability of an event is one integral of a product of probabilities.

Draws have centre 0 (an exponential draw starts at 0) and a positive scale, the standard deviation where the law is
normal. A draw of law None is no draw: it is the number 0, for comparisons that carry no noise. All numbers are exact.
Limits are open; that matters only where there is no noise at all (law None at both places).

The range of t is cut where anything changes its form, in whole numbers, so that no decision is rounded. On one part the
larger of two lines stays the larger, and every line stays on one side of 0. So each term has one form there, and what
cannot happen is known for certain: a part where some factor is impossible is left out.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.nodes import Law


@dataclass(frozen=True, slots=True)
class Line:
    """The number slope * t + at, where t is the outer draw; slope is -1, 0 or 1."""

    slope: int
    at: Fraction

    def __post_init__(self) -> None:
        if self.slope not in (-1, 0, 1):
            raise InvalidSpec(f"slope of a line must be -1, 0 or 1, got {self.slope!r}")


@dataclass(frozen=True, slots=True)
class Between:
    """P(max of the lower lines < X < min of the upper lines) for a fresh draw X; an empty tuple is no limit.

    >>> Between("laplace", Fraction(4), lower=(Line(1, Fraction(0)),), upper=()).upper
    ()
    """

    law: Law | None
    scale: Fraction
    lower: tuple[Line, ...]
    upper: tuple[Line, ...]

    def __post_init__(self) -> None:
        _positive_scale(self.law, self.scale)


@dataclass(frozen=True, slots=True)
class Density:
    """The density of a fresh draw X at a line: stands where a released value is one exact number.

    An event with densities has no probability but a density; the ratio of two such, over the same released values,
    is the likelihood ratio there.
    """

    law: Law
    scale: Fraction
    at: Line

    def __post_init__(self) -> None:
        _positive_scale(self.law, self.scale)


Term = Between | Density
Factor = tuple[tuple[Term, ...], ...]  # alternatives that exclude one another, each a product of independent draws


@dataclass(frozen=True, slots=True)
class Slice:
    """An outer draw t between constant limits (None: no limit), and what must hold given t: every factor.

    Law None is no outer draw: t is 0, nothing is integrated, and the limits must hold of 0.
    """

    law: Law | None
    scale: Fraction
    lower: Fraction | None
    upper: Fraction | None
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        _positive_scale(self.law, self.scale)


Event = tuple[tuple[Slice, ...], ...]  # a sum of products of independent slices; () has probability 0, ((),) has 1


def _positive_scale(law: str | None, scale: Fraction) -> None:
    if law not in (None, "laplace", "exponential", "gumbel", "normal"):
        raise InvalidSpec(f"law must be laplace, exponential, gumbel, normal or None, got {law!r}")
    if law is not None and not scale > 0:
        raise InvalidSpec(f"scale of a {law} draw must be positive, got {scale}")


Whole = tuple[int, int]  # a line: slope, and where it starts
BENT = ("laplace", "exponential", None)  # laws whose form changes at 0


class Gap(NamedTuple):
    """The probability that a draw falls between two lines; None is no limit."""

    law: Law
    scale: int
    lower: Whole | None
    upper: Whole | None


CERTAIN = Gap("laplace", 1, None, None)


class DensityAt(NamedTuple):
    """The density of a draw at a line."""

    law: Law
    scale: int
    at: Whole


Certain = tuple[tuple[Gap | DensityAt, ...], ...]  # a factor on one part, what is impossible left out


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the outer draw's range (None: no end), a number inside it, and the factors, each with its power."""

    left: int | None
    right: int | None
    inside: int
    factors: tuple[tuple[Certain, int], ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """A slice cut into parts. All numbers are multiples of 1 / `unit`; without an outer draw the one part is 0."""

    law: Law | None
    scale: int
    unit: int
    parts: tuple[Part, ...]

    @property
    def terms(self) -> Iterator[Gap | DensityAt]:
        """Every term of every part."""
        return (term for part in self.parts for factor, _ in part.factors for product in factor for term in product)


class _Term(NamedTuple):
    """A term in whole numbers; a density has one lower line and no upper ones."""

    law: Law | None
    scale: int
    lower: tuple[Whole, ...]
    upper: tuple[Whole, ...]
    density: bool


def parts(outer: Slice) -> Parts:
    """The parts of a slice on which something is possible.

    >>> from dpaudit.verify.integrals.parts import Between, Line
    >>> half = Between("laplace", Fraction(1), (Line(1, Fraction(0)),), ())
    >>> [(part.left, part.right) for part in parts(Slice("laplace", Fraction(2), None, None, (((half,),),))).parts]
    [(None, 0), (0, None)]
    """
    unit = 4 * lcm(*(number.denominator for number in _numbers(outer)))  # 4: halves of crossings are whole, too
    factors = Counter(
        tuple(tuple(_whole(term, unit) for term in product) for product in factor) for factor in outer.factors
    )
    lower, upper = (None if limit is None else int(limit * unit) for limit in (outer.lower, outer.upper))
    if outer.law == "exponential":
        lower = 0 if lower is None else max(0, lower)
    if outer.law is None:
        allowed = (lower is None or lower < 0) and (upper is None or upper > 0)
        part = _part(0, 0, 0, factors) if allowed else None
        return Parts(None, 0, unit, () if part is None else (part,))
    cuts = {cut for factor in factors for product in factor for term in product for cut in _cuts(term)} | {0}
    inner = [cut for cut in sorted(cuts) if (lower is None or lower < cut) and (upper is None or cut < upper)]
    ends = [lower, *inner, upper]
    possible = []
    for left, right in pairwise(ends):
        if left is not None and right is not None and left >= right:
            continue
        if left is None:
            inside = 0 if right is None else right - unit
        else:
            inside = left + unit if right is None else (left + right) // 2
        part = _part(left, right, inside, factors)
        if part is not None:
            possible.append(part)
    return Parts(outer.law, int(outer.scale * unit), unit, tuple(possible))


def _numbers(outer: Slice) -> Iterator[Fraction]:
    yield outer.scale if outer.law is not None else Fraction(1)
    yield from (limit for limit in (outer.lower, outer.upper) if limit is not None)
    for factor in outer.factors:
        for product in factor:
            for term in product:
                yield term.scale if term.law is not None else Fraction(1)
                yield from (line.at for line in ((term.at,) if isinstance(term, Density) else term.lower + term.upper))


def _whole(term: Term, unit: int) -> _Term:
    scale = int(term.scale * unit) if term.law is not None else 0
    if isinstance(term, Density):
        return _Term(term.law, scale, ((term.at.slope, int(term.at.at * unit)),), (), True)
    lower, upper = (
        tuple(dict.fromkeys((line.slope, int(line.at * unit)) for line in lines)) for lines in (term.lower, term.upper)
    )
    return _Term(term.law, scale, lower, upper, False)


def _cuts(term: _Term) -> Iterator[int]:
    """Where the largest lower or the smallest upper line changes, where they meet, and where a bent law bends."""
    lines = term.lower + term.upper
    for place, (slope, at) in enumerate(lines):
        if slope and term.law in BENT:
            yield -slope * at
        for other, start in lines[:place]:
            if slope != other:
                yield (start - at) // (slope - other)


def _part(
    left: int | None, right: int | None, inside: int, factors: Counter[tuple[tuple[_Term, ...], ...]]
) -> Part | None:
    """The part with the form of every factor at a number inside; None where a factor is impossible."""
    certain: Counter[Certain] = Counter()
    for factor, power in factors.items():
        possible = tuple(terms for product in factor if (terms := _product(product, inside)) is not None)
        if not possible:
            return None
        certain[possible] += power
    certain.pop(((),), None)  # what is certain is a factor of 1
    return Part(left, right, inside, tuple(certain.items()))


def _product(product: tuple[_Term, ...], inside: int) -> tuple[Gap | DensityAt, ...] | None:
    forms: list[Gap | DensityAt] = []
    for term in product:
        if term.density:
            ((slope, at),) = term.lower
            if term.law is None or (term.law == "exponential" and slope * inside + at < 0):
                return None
            forms.append(DensityAt(term.law, term.scale, (slope, at)))
            continue
        gap = _gap(term, inside)
        if gap is None:
            return None
        if gap.lower is not None or gap.upper is not None:
            forms.append(gap)
    return tuple(forms)


def _gap(term: _Term, inside: int) -> Gap | None:
    """The form of a term at a number inside a part; None where it is impossible."""
    lower = max(((slope * inside + at, (slope, at)) for slope, at in term.lower), default=None)
    upper = min(((slope * inside + at, (slope, at)) for slope, at in term.upper), default=None)
    if lower is not None and upper is not None and lower[0] >= upper[0]:
        return None
    if term.law in ("exponential", None):
        if upper is not None and upper[0] <= 0:
            return None
        if term.law is None and lower is not None and lower[0] >= 0:
            return None
        if lower is not None and lower[0] <= 0:
            lower = None
    if term.law is None:
        return CERTAIN
    return Gap(term.law, term.scale, None if lower is None else lower[1], None if upper is None else upper[1])


# --- terms of Laplace and exponential draws as sums of exponentials ------------------------------------------------

HALF, ONE = Fraction(1, 2), Fraction(1)


class Wave(NamedTuple):
    """weight * e^((rate * t + at) / scale); rate is -1, 0 or 1."""

    weight: Fraction
    rate: int
    at: int
    scale: int


CONSTANT = Wave(ONE, 0, 0, 1)


def waves(term: Gap | DensityAt, inside: int, unit: int) -> tuple[Wave, ...]:
    """A term of a Laplace or exponential draw, on the part that holds `inside`.

    >>> waves(Gap("laplace", 4, (1, 0), None), inside=2, unit=1)  # the upper tail, e^(-t/4) / 2
    (Wave(weight=Fraction(1, 2), rate=-1, at=0, scale=4),)
    """
    half = HALF if term.law == "laplace" else ONE
    if isinstance(term, DensityAt):
        sign = -1 if _side(term.at, inside) > 0 or term.law == "exponential" else 1
        return (_tail(term.at, sign, Fraction(unit, term.scale) * half, term.scale),)
    lower, upper = (None if line is None else _side(line, inside) for line in (term.lower, term.upper))
    tails = (term.lower, 1, -half), (term.upper, -1, -half)
    if upper is not None and upper < 0:  # both below 0: a difference of lower tails
        tails = (term.upper, 1, half), (term.lower, 1, -half)
    elif lower is not None and lower > 0:  # both above: of upper tails
        tails = (term.lower, -1, half), (term.upper, -1, -half)
    tail_waves = [_tail(line, sign, weight, term.scale) for line, sign, weight in tails if line is not None]
    return tuple(tail_waves) if tails[0][2] == half else (CONSTANT, *tail_waves)


def _side(line: Whole, inside: int) -> int:
    return line[0] * inside + line[1]


def _tail(line: Whole, sign: int, weight: Fraction, scale: int) -> Wave:
    return Wave(weight, sign * line[0], sign * line[1], scale)
