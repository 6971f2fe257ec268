"""The exact losses: published values, independent quadrature, and brute force over all outputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.losses.comparisons import halting, winning
from dpaudit.losses.distribution import gaussian_delta
from tests.cases import for_each


def witness(answers: int) -> tuple[list[int], list[int]]:
    """All answers but the last go up from 1 to 2, the last goes down from -1 to -2."""
    return [1] * (answers - 1) + [-1], [2] * (answers - 1) + [-2]


# Lyu, Su & Li's algorithm 1 at c = 1, and the same with both noises halved: rigorous arithmetic, four digits
@pytest.mark.parametrize(
    ("answers", "right", "half"),
    [(1, 0.1979, 0.4320), (2, 0.4567, 0.9595), (4, 0.8072, 1.7023), (8, 0.9900, 1.9950), (16, 1.0000, 2.0000)],
)
def test_above_threshold_has_the_published_losses(answers: int, right: float, half: float) -> None:
    entry = find("above_threshold")
    assert entry.true_epsilon(*witness(answers)) == pytest.approx(right, abs=5.1e-5)
    assert entry.half_noise.true_epsilon(*witness(answers)) == pytest.approx(half, abs=5.1e-5)
    assert find("sparse").true_epsilon(*witness(answers), {"c": 1}) == pytest.approx(right, abs=5.1e-5)


@pytest.mark.parametrize(
    ("epsilon", "losses"),
    [(0.5, (0.0923, 0.2175, 0.3857, 0.4895, 0.5000)), (2.0, (0.4320, 0.9595, 1.7023, 1.9950, 2.0000))],
)
def test_above_threshold_at_other_claims(epsilon: float, losses: Sequence[float]) -> None:
    found = [find("above_threshold").true_epsilon(*witness(n), {"epsilon": epsilon}) for n in (1, 2, 4, 8, 16)]
    assert found == pytest.approx(losses, abs=5.1e-5)


@pytest.mark.parametrize(("answers", "loss"), [(2, 0.1846), (4, 0.4351), (8, 0.7713), (16, 0.9789), (32, 0.9999)])
def test_sparse_has_the_published_losses(answers: int, loss: float) -> None:
    """c = 2 with the threshold redrawn: two equal epochs."""
    first, second = witness(answers // 2)
    assert find("sparse").true_epsilon(first * 2, second * 2) == pytest.approx(loss, abs=5.1e-5)


def test_the_twins_of_above_threshold_have_the_published_losses() -> None:
    entry = find("above_threshold")
    assert entry.no_threshold_noise.true_epsilon([0] * 9 + [1], [1] * 9 + [0]) == pytest.approx(2.4498, abs=5.1e-5)
    assert entry.no_threshold_noise.true_epsilon([0] * 32, [1] * 32) == pytest.approx(8.0)
    assert entry.no_query_noise.true_epsilon([0, 1], [1, 0]) == math.inf
    assert entry.no_query_noise.true_epsilon([-1], [0]) == pytest.approx(0.5)
    assert halting(np.array([0.0, 1.0]), 0.0, 2.0, 0.0)[1] == pytest.approx(0.196735, abs=1e-6)


@pytest.mark.parametrize("answers", [1, 2, 4, 8, 16])
def test_releasing_the_compared_value_costs_a_quarter_an_answer(answers: int) -> None:
    """Query noise of scale 4 c / epsilon: n / 4 at c = 1 (n / 2 with the scale 2 of Lyu et al.'s algorithm 3)."""
    released = find("sparse").value_released
    assert released.true_epsilon([0] * answers, [1] * answers, {"c": 1}) == pytest.approx(answers / 4, rel=1e-9)
    assert released.true_epsilon([0] * answers, [1] * answers, {"c": 1, "epsilon": 2.0}) == pytest.approx(answers / 2)


@pytest.mark.parametrize(("answers", "loss"), [(2, 0.5477), (2, 1.3069), (10, 1.6072)])
def test_noisy_max_on_general_queries_has_the_published_losses(answers: int, loss: float) -> None:
    """From (0, ..., 0) to (1, -1, ..., -1) with Lap(1): above the claim, so the entry is for counts only."""
    before, after = (winning(np.array(data), 1.0) for data in ([0.0] * answers, [1.0] + [-1.0] * (answers - 1)))
    assert min(abs(np.abs(np.log(before / after)) - loss)) < 5.1e-5


@pytest.mark.parametrize(("answers", "loss"), [(2, 0.9765), (3, 1.0000), (5, 1.0000)])
def test_noisy_max_on_counts_has_the_published_losses(answers: int, loss: float) -> None:
    """The largest over one answer ahead or behind by up to 40, and all the others rising together."""
    entry = find("report_noisy_max")
    found = max(
        entry.true_epsilon(first, second) or 0.0
        for gap in range(-40, 41)
        for first in [[0] + [gap] * (answers - 1)]
        for second in ([1, *first[1:]], [0] + [gap + 1] * (answers - 1))
    )
    assert found == pytest.approx(loss, abs=5.1e-5)


# --- independent computations -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_the_plain_formulas_are_those_of_scipy(scale: float) -> None:
    law, at = Laplace(scale), np.linspace(-50.0, 50.0, 101)
    for name in ("pdf", "cdf", "sf"):
        found = [getattr(law, name)(float(x)) for x in at]
        assert found == pytest.approx(getattr(stats.laplace(scale=scale), name)(at), rel=1e-12)


def quad_over_noise(function: object, knots: Sequence[float], scale: float) -> float:
    """The mean of a function of Lap(scale) noise, by adaptive quadrature between the knots."""
    law = Laplace(scale)
    edges = sorted({-60 * scale, 0.0, *knots, 60 * scale})
    pieces = (
        integrate.quad(lambda t: law.pdf(t) * function(t), low, high, epsabs=0, epsrel=1e-11, limit=200)[0]  # type: ignore[operator]
        for low, high in itertools.pairwise(edges)
    )
    return float(sum(pieces))


def quad_halting(answers: Sequence[float], threshold: float, threshold_scale: float, query_scale: float) -> list[float]:
    law = Laplace(query_scale)

    def first_top_at(place: int, noise: float) -> float:
        gaps = [threshold + noise - answer for answer in answers]
        before = math.prod(law.cdf(gap) for gap in gaps[:place])
        return before * (law.sf(gaps[place]) if place < len(answers) else 1.0)

    knots = [answer - threshold for answer in answers]
    places = range(len(answers) + 1)
    return [quad_over_noise(lambda t, place=place: first_top_at(place, t), knots, threshold_scale) for place in places]


@pytest.mark.parametrize(
    ("answers", "threshold", "scales"),
    [([1, 1, 1, -1], 0.0, (2, 4)), ([2, -2, 0.5], 1.0, (4, 8)), ([0, 3], -2.0, (1, 0.5)), ([-3, 7], 0.0, (2, 2))],
)
def test_halting_agrees_with_adaptive_quadrature(
    answers: list[float], threshold: float, scales: tuple[float, float]
) -> None:
    found = halting(np.array(answers, float), threshold, *scales)
    assert found == pytest.approx(quad_halting(answers, threshold, *scales), rel=1e-8)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)


@for_each("answers", [[0.0, 0.0, 1.0], [5.0, -5.0], [1.0, 1.0, 1.0, 1.0, 0.0]])
@for_each("scale", [0.5, 1.0, 3.0])
def test_winning_agrees_with_adaptive_quadrature(answers: list[float], scale: float) -> None:
    law = Laplace(scale)

    def wins(index: int) -> float:
        gaps = [answers[index] - other for j, other in enumerate(answers) if j != index]
        return quad_over_noise(lambda t: math.prod(law.cdf(t + gap) for gap in gaps), [-gap for gap in gaps], scale)

    assert winning(np.array(answers), scale) == pytest.approx([wins(j) for j in range(len(answers))], rel=1e-8)


@pytest.mark.parametrize("c", [1, 2, 3])
def test_the_loss_of_sparse_is_the_largest_over_all_outputs(c: int) -> None:
    """Brute force: every output is a list of places of tops, each epoch by adaptive quadrature."""
    first, second = [1, -1, 0, 1], [2, -2, 1, 0]
    scales = (0.0, 2.0 * c, 4.0 * c)

    def epochs(answers: list[int]) -> list[list[float]]:
        return [quad_halting(answers[start:], *scales) for start in range(len(answers))]

    laws = [epochs(first), epochs(second)]
    losses = []
    for count in range(c + 1):
        for tops in itertools.combinations(range(4), count):
            starts = [0, *(top + 1 for top in tops)]
            steps = [(start, top - start) for start, top in zip(starts, tops, strict=False)]
            if count < c and starts[-1] < 4:
                steps.append((starts[-1], 4 - starts[-1]))
            losses.append(sum(math.log(laws[0][start][place] / laws[1][start][place]) for start, place in steps))
    assert find("sparse").true_epsilon(first, second, {"c": c}) == pytest.approx(max(map(abs, losses)), rel=1e-8)


def test_the_loss_of_the_released_value_bounds_every_density_ratio() -> None:
    """The density of (bottom, bottom, value) by adaptive quadrature: never above the loss, and close to it."""
    pair, law = ([0, 0, 1], [1, 1, 0]), Laplace(4.0)
    loss = find("sparse").value_released.true_epsilon(*pair, {"c": 1})
    assert loss is not None

    def density(answers: list[int], value: float) -> float:
        def bottoms(noise: float) -> float:
            return math.prod(law.cdf(noise - answer) for answer in answers[:2]) if noise <= value else 0.0

        return quad_over_noise(bottoms, [*answers, value], 2.0) * law.pdf(value - answers[2])

    ratios = [abs(math.log(density(pair[0], s) / density(pair[1], s))) for s in np.arange(-3.0, 6.01, 0.25)]
    assert max(ratios) <= loss * (1 + 1e-9)
    assert max(ratios) > 0.99 * loss


@for_each("epsilon", [0.0, 0.3, 1.0, 4.0])
@for_each("mu", [0.2, 1.0, 3.0])
def test_the_delta_of_normal_noise_is_the_integral_of_the_excess(epsilon: float, mu: float) -> None:
    cross = epsilon / mu + mu / 2  # where the density moved by mu is e^epsilon times the other

    def excess(x: float) -> float:
        return float(stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x))

    integral = integrate.quad(excess, cross, cross + 40, epsabs=0, epsrel=1e-10, points=[cross + 1, cross + 5])[0]
    assert gaussian_delta(epsilon, mu) == pytest.approx(integral, rel=1e-7)


def test_the_classic_gaussian_is_loose() -> None:
    """At epsilon = 1, delta = 1e-5 the classic sigma is 4.845 and its true delta 4.1e-8."""
    sigma = math.sqrt(2 * math.log(1.25e5))
    assert sigma == pytest.approx(4.845, abs=5e-4)
    assert gaussian_delta(1.0, 1 / sigma) == pytest.approx(4.1e-8, rel=0.02)
    entry = find("gaussian").with_parameters({"epsilon": 1.0, "delta": 1e-5})
    loss = entry.true_epsilon(0, 1)
    assert loss is not None
    assert gaussian_delta(loss, 1 / sigma) == pytest.approx(1e-5, rel=1e-9)
    assert entry.true_epsilon(0.0, 1e-6) == 0.0
