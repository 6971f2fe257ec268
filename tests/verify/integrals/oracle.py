"""A naive oracle: the same events by floating-point quadrature, straight from the definitions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise

from scipy import integrate

from dpaudit.verify.enclosure import Enclosure
from dpaudit.verify.integrals import Between, Density, Event, Line, Slice, log_ratio, probability

REACH = {"laplace": 45.0, "exponential": 45.0, "gumbel": 45.0, "normal": 11.0}


def pdf(law: str, x: float) -> float:
    """The density of a draw of scale 1."""
    if law == "normal":
        return math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
    if law == "gumbel":
        return math.exp(-x - math.exp(-x)) if x > -700.0 else 0.0
    if law == "exponential":
        return math.exp(-x) if x >= 0.0 else 0.0
    return math.exp(-abs(x)) / 2.0


def cdf(law: str, x: float) -> float:
    """P(X <= x) of a draw of scale 1."""
    if law == "normal":
        return math.erfc(-x / math.sqrt(2.0)) / 2.0
    if law == "gumbel":
        return math.exp(-math.exp(-x)) if x > -700.0 else 0.0
    if law == "exponential":
        return -math.expm1(-x) if x > 0.0 else 0.0
    return math.exp(x) / 2.0 if x < 0.0 else 1.0 - math.exp(-x) / 2.0


def by_quadrature(each: Slice) -> float:
    """The probability of a slice, to about 1e-9."""
    low, high = (
        (-math.inf if each.lower is None else float(each.lower)),
        (math.inf if each.upper is None else float(each.upper)),
    )
    if each.law is None:
        return _given(each, 0.0) if low < 0.0 < high else 0.0
    law, scale = each.law, float(each.scale)
    reach = REACH[law] * scale
    low, high = max(low, -reach, 0.0 if each.law == "exponential" else -reach), min(high, reach)
    cuts = sorted({low, high, *(cut for cut in _cuts(each) if low < cut < high)}) if low < high else []
    return sum(
        integrate.quad(
            lambda t: pdf(law, t / scale) / scale * _given(each, t), a, b, limit=200, epsabs=1e-13, epsrel=1e-11
        )[0]
        for a, b in pairwise(cuts)
    )


def above(scale: Fraction | int, query: Fraction | int, law: str = "laplace") -> Between:
    """A noisy answer above the noise t of a threshold 0."""
    return Between(law, Fraction(scale), (Line(1, -Fraction(query)),), ())


def below(scale: Fraction | int, query: Fraction | int, law: str = "laplace") -> Between:
    """A noisy answer below it."""
    return Between(law, Fraction(scale), (), (Line(1, -Fraction(query)),))


def sparse(queries, tops, threshold, scale, law: str = "laplace") -> Event:
    """Sparse vector without redraw: which of the answers are above, all of them read."""
    factors = tuple(
        (((above if top else below)(scale, query, law),),) for query, top in zip(queries, tops, strict=True)
    )
    return ((Slice(law, Fraction(threshold), None, None, factors),),)


def noisy_max(queries, winner, scale, law: str = "laplace") -> Event:
    """The noisy answer of the winner is the largest; its noise is the outer draw."""
    factors = tuple(
        ((Between(law, Fraction(scale), (), (Line(1, Fraction(queries[winner] - query)),)),),)
        for place, query in enumerate(queries)
        if place != winner
    )
    return ((Slice(law, Fraction(scale), None, None, factors),),)


def loss_of(first: Event, second: Event) -> Enclosure:
    """ln(P(first) / P(second)), enclosed."""
    return log_ratio(probability(first), probability(second))


def _given(each: Slice, t: float) -> float:
    return math.prod(
        sum(math.prod(_term(term, t) for term in product) for product in factor) for factor in each.factors
    )


def _term(term, t: float) -> float:
    if isinstance(term, Density):
        return pdf(term.law, _at(term.at, t) / float(term.scale)) / float(term.scale)
    low = max((_at(line, t) for line in term.lower), default=-math.inf)
    high = min((_at(line, t) for line in term.upper), default=math.inf)
    if term.law is None:
        return float(low < 0.0 < high)
    scale = float(term.scale)
    return max(0.0, cdf(term.law, high / scale) - cdf(term.law, low / scale))


def _at(line: Line, t):
    return line.slope * t + float(line.at)


def _cuts(each: Slice) -> set[float]:
    cuts = {0.0}
    for factor in each.factors:
        for term in (term for product in factor for term in product):
            lines = (term.at,) if isinstance(term, Density) else term.lower + term.upper
            cuts |= {-float(line.at) / line.slope for line in lines if line.slope}
            cuts |= {float(b.at - a.at) / (a.slope - b.slope) for a, b in combinations(lines, 2) if a.slope != b.slope}
    return cuts
