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

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from math import lcm
from typing import NamedTuple

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.nodes import Law

ZERO, ONE = Fraction(0), Fraction(1)


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
class Slice:
    """An outer draw t between constant limits (None: no limit), and what must hold given t: every factor.

    Law None is no outer draw: t is 0, nothing is integrated, and the limits must hold of 0. `shift` changes nothing: in
    t + shift, slices may look alike whose outer draws are different ones.
    """

    law: Law | None
    scale: Fraction
    lower: Fraction | None
    upper: Fraction | None
    factors: tuple[Between, ...]
    shift: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        _positive_scale(self.law, self.scale)

    @property
    def laws(self) -> frozenset[Law | None]:
        """The laws of all draws in it."""
        return frozenset((self.law, *(factor.law for factor in self.factors)))


Event = tuple[tuple[Slice, ...], ...]  # a sum of products of independent slices; () has probability 0, ((),) has 1


def _positive_scale(law: str | None, scale: Fraction) -> None:
    if law not in (None, "laplace", "exponential", "gumbel", "normal"):
        raise InvalidSpec(f"law must be laplace, exponential, gumbel, normal or None, got {law!r}")
    if law is not None and not scale > 0:
        raise InvalidSpec(f"scale of a {law} draw must be positive, got {scale}")


Whole = tuple[int, int]  # a line: slope, and where it starts
BENT = ("laplace", "exponential", None)  # laws whose form changes at 0


class Gap(NamedTuple):
    """The probability that a draw falls between two lines; None is no limit. Or the density of the outer draw."""

    law: Law
    scale: int
    lower: Whole | None
    upper: Whole | None
    density: bool = False


CERTAIN = Gap("laplace", 1, None, None)


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What a factor comes to wherever it has one form, and a number inside there."""

    gap: Gap
    inside: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the range of t (None: no end), a number inside it, and the form of each factor; None: impossible."""

    left: int | None
    right: int | None
    inside: int
    forms: tuple[Form | None, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """Products of factors, each by the numbers of its factors with their powers, and the range of t cut into parts.

    All numbers are multiples of 1 / `unit`. Of a single product only the parts are there on which it is possible.
    """

    products: tuple[Counter[int], ...]
    unit: int
    parts: tuple[Part, ...]


class Exact(NamedTuple):
    """A factor in whole numbers; the density of the outer draw t has one lower line, t, and no upper ones."""

    law: Law | None
    scale: int
    lower: tuple[Whole, ...]
    upper: tuple[Whole, ...]
    density: bool = False


def unit_of(slices: Iterable[Slice]) -> int:
    """In multiples of 1 over this, all numbers of some slices are whole, and so are halves of their crossings."""
    return 4 * lcm(*(number.denominator for each in slices for number in _numbers(each)))


def factors_of(outer: Slice, unit: int, shift: int = 0) -> tuple[Exact, ...]:
    """What is integrated over t + shift: the density of the outer draw, its limits, then what must hold given t."""
    own = [] if outer.lower is None else [Between(None, ONE, (Line(-1, outer.lower),), ())]
    own += [] if outer.upper is None else [Between(None, ONE, (Line(1, -outer.upper),), ())]
    density = () if outer.law is None else (Exact(outer.law, int(outer.scale * unit), ((1, -shift),), (), True),)
    return (*density, *(_whole(factor, unit, shift) for factor in (*own, *outer.factors)))


def cut(outer: Slice) -> Parts:
    """A slice cut into the parts on which something is possible.

    >>> half = Between("laplace", Fraction(1), (Line(1, Fraction(0)),), ())
    >>> [(part.left, part.right) for part in cut(Slice("laplace", Fraction(2), None, None, (half,))).parts]
    [(None, 0), (0, None)]
    """
    unit = unit_of([outer])
    return parts([factors_of(outer, unit)], unit, at_0=outer.law is None)


def parts(products: Sequence[Sequence[Exact]], unit: int, *, at_0: bool = False) -> Parts:
    """The parts of the range on which every factor of the products has one form; with `at_0` the one part is 0."""
    numbers: dict[Exact, int] = {}
    numbered = tuple(Counter(numbers.setdefault(each, len(numbers)) for each in product) for product in products)
    cuts = [sorted({*_cuts(each)}) for each in numbers]
    known: dict[tuple[int, int], Form | None] = {}

    def form(number: int, factor: Exact, inside: int) -> Form | None:
        where = number, bisect(cuts[number], inside)
        if where not in known:
            gap = _gap(factor, inside)
            known[where] = None if gap is None else Form(gap, inside)
        return known[where]

    ends = [0, 0] if at_0 else [None, *sorted({0, *chain.from_iterable(cuts)}), None]
    found = []
    for left, right in pairwise(ends):
        if left is None:
            inside = 0 if right is None else right - unit
        else:
            inside = left + unit if right is None else (left + right) // 2
        forms = tuple(form(number, factor, inside) for factor, number in numbers.items())
        if len(products) > 1 or None not in forms:
            found.append(Part(left, right, inside, forms))
    return Parts(numbered, unit, tuple(found))


def _numbers(outer: Slice) -> Iterator[Fraction]:
    yield outer.scale if outer.law is not None else ONE
    yield from (limit for limit in (outer.lower, outer.upper, outer.shift) if limit is not None)
    for factor in outer.factors:
        yield factor.scale if factor.law is not None else ONE
        yield from (line.at for line in factor.lower + factor.upper)


def _whole(factor: Between, unit: int, shift: int) -> Exact:
    lower, upper = (
        tuple(dict.fromkeys((line.slope, int(line.at * unit) - line.slope * shift) for line in lines))
        for lines in (factor.lower, factor.upper)
    )
    return Exact(factor.law, int(factor.scale * unit) if factor.law is not None else 0, lower, upper)


def _cuts(term: Exact) -> Iterator[int]:
    """Where the largest lower or the smallest upper line changes, where they meet, and where a bent law bends."""
    lines = term.lower + term.upper
    for place, (slope, at) in enumerate(lines):
        if slope and term.law in BENT:
            yield -slope * at
        for other, start in lines[:place]:
            if slope != other:
                yield (start - at) // (slope - other)


def _gap(term: Exact, inside: int) -> Gap | None:
    """The form of a factor at a number inside a part; None where it is impossible."""
    lower = max(((slope * inside + at, (slope, at)) for slope, at in term.lower), default=None)
    upper = min(((slope * inside + at, (slope, at)) for slope, at in term.upper), default=None)
    if lower is not None and upper is not None and lower[0] >= upper[0]:
        return None
    if term.density and term.law is not None and lower is not None:
        return None if term.law == "exponential" and lower[0] < 0 else Gap(term.law, term.scale, lower[1], None, True)
    if term.law in ("exponential", None):
        if upper is not None and upper[0] <= 0:
            return None
        if term.law is None and lower is not None and lower[0] >= 0:
            return None
        if lower is not None and lower[0] <= 0:
            lower = None
    if term.law is None or lower is upper is None:
        return CERTAIN
    return Gap(term.law, term.scale, None if lower is None else lower[1], None if upper is None else upper[1])


# --- terms of Laplace and exponential draws as sums of exponentials ------------------------------------------------

HALF = Fraction(1, 2)


class Wave(NamedTuple):
    """weight * e^((rate * t + at) / scale); rate is -1, 0 or 1."""

    weight: Fraction
    rate: int
    at: int
    scale: int


def waves(term: Gap, inside: int, unit: int) -> tuple[Wave, ...]:
    """The factor of a Laplace or exponential draw, on the part that holds `inside`; 1 where it has no limits.

    >>> waves(Gap("laplace", 4, (1, 0), None), inside=2, unit=1)  # the upper tail, e^(-t/4) / 2
    (Wave(weight=Fraction(1, 2), rate=-1, at=0, scale=4),)
    """
    half = HALF if term.law == "laplace" else ONE
    first, second = term.lower, term.upper
    lower, upper = (None if line is None else line[0] * inside + line[1] for line in (first, second))
    tails: tuple[tuple[Whole | None, int, Fraction], ...]
    if term.density:
        tails = ((first, 1 if term.law == "laplace" and (lower or 0) <= 0 else -1, Fraction(unit, term.scale) * half),)
    elif upper is not None and upper < 0:  # both below 0: a difference of lower tails
        tails = (second, 1, half), (first, 1, -half)
    elif lower is not None and lower > 0:  # both above: of upper tails
        tails = (first, -1, half), (second, -1, -half)
    else:
        tails = ((0, 0), 1, ONE), (first, 1, -half), (second, -1, -half)
    return tuple([Wave(weight, sign * line[0], sign * line[1], term.scale) for line, sign, weight in tails if line])
