"""Laplace noise by adaptive quadrature: an oracle of its own for choices among noisy answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from scipy import integrate

Function = Callable[[float], float]


class Laplace:
    """The law in plain formulas: those of scipy, one number at a time, take most of the time of a quadrature."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def pdf(self, x: float) -> float:
        return math.exp(-abs(x) / self.scale) / (2.0 * self.scale)

    def cdf(self, x: float) -> float:
        return 0.5 * math.exp(x / self.scale) if x < 0.0 else 1.0 - 0.5 * math.exp(-x / self.scale)

    def sf(self, x: float) -> float:
        return self.cdf(-x)


def integral(function: Function, knots: Sequence[float], far: float) -> float:
    """The integral between the knots and far beyond them."""
    edges = sorted({min(knots) - far, *map(float, knots), max(knots) + far})
    return sum(
        float(integrate.quad(function, low, high, epsabs=1e-14, epsrel=1e-10, limit=200)[0])
        for low, high in itertools.pairwise(edges)
    )


def over_noise(function: Function, knots: Sequence[float], scale: float) -> float:
    """The mean of a function of Lap(scale) noise."""
    law = Laplace(scale)
    return integral(lambda noise: law.pdf(noise) * function(noise), [0.0, *knots], 60.0 * scale)


def halts(answers: Sequence[float], threshold: float, threshold_scale: float, query_scale: float) -> list[float]:
    """The chances that each answer is the first at or above a noisy threshold, and that none is."""
    law = Laplace(query_scale)

    def first_top_at(place: int, noise: float) -> float:
        gaps = [threshold + noise - answer for answer in answers]
        before = math.prod(law.cdf(gap) for gap in gaps[:place])
        return before * (law.sf(gaps[place]) if place < len(answers) else 1.0)

    knots = [answer - threshold for answer in answers]
    places = range(len(answers) + 1)
    return [over_noise(lambda t, place=place: first_top_at(place, t), knots, threshold_scale) for place in places]  # type: ignore[misc]


def wins(answers: Sequence[float], scale: float) -> list[float]:
    """The chances that each answer plus Lap(scale) of its own is the largest."""
    return races(answers, Laplace(scale).pdf, Laplace(scale).cdf, [0.0], 40.0 * scale)


def races(
    answers: Sequence[float], pdf: Function, cdf: Function, knots: Sequence[float] = (0.0,), far: float = 60.0
) -> list[float]:
    """The same with noise of another density, whose knots these are."""

    def height(place: int, value: float) -> float:
        others = (cdf(value - answer) for each, answer in enumerate(answers) if each != place)
        return pdf(value - answers[place]) * math.prod(others)

    ends = [answer + knot for answer in answers for knot in knots]
    return [integral(lambda value, j=j: height(j, value), ends, far) for j in range(len(answers))]  # type: ignore[misc]
