"""The exact laws of a choice: against brute force over orders and coins, adaptive quadrature, and closed forms.

One test draws, with fixed seeds: a comparison fails by chance with probability at most 1e-8.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.selection.races import chosen, race, with_values
from dpaudit.losses import released
from dpaudit.losses.released import geosample_law, geosample_steps, largest_one_sided
from tests.cases import for_each
from tests.catalogue.quadrature import races, wins

UTILITIES = ([0.0, 0.0, 0.0], [1.0, -1.0, 0.5, 0.5], [3.0, 0.0], [-2.0, -2.0, 0.0, -7.0, 1.0])


@for_each("utilities", UTILITIES)
@for_each("rate", [0.5, 1.0, 3.0])
def test_flips_over_all_orders_and_coins(utilities: list[float], rate: float) -> None:
    """One coin lies between two of the chances, and one of the candidates above it is uniform."""
    heads = np.exp(rate * (np.array(utilities) - max(utilities)))
    permuted, one_coin = np.zeros(len(heads)), np.zeros(len(heads))
    for order in itertools.permutations(range(len(utilities))):
        left = 1.0 / math.factorial(len(utilities))
        for candidate in order:
            permuted[candidate] += left * heads[candidate]
            left *= 1.0 - heads[candidate]
    for low, high in itertools.pairwise(sorted({0.0, *heads})):
        one_coin[heads >= high] += (high - low) / np.count_nonzero(heads >= high)
    in_order = heads * np.cumprod([1.0, *(1.0 - heads)])[:-1]
    assert released.permute_and_flip(np.array(utilities), rate) == pytest.approx(permuted, rel=1e-12)
    assert released.flip_one_coin(np.array(utilities), rate) == pytest.approx(one_coin, rel=1e-12)
    assert released.flip_in_order(np.array(utilities), rate) == pytest.approx(in_order)


@for_each("answers", UTILITIES)
def test_races_with_other_noise(answers: list[float]) -> None:
    """Exponential noise of mean 2 permutes and flips (Ding et al. 2021); Gumbel noise is the exponential mechanism.

    Its mirror image is the last clock.
    """

    def density(x: float) -> float:
        return math.exp(-x / 2.0 - math.exp(-x / 2.0)) / 2.0 if x > -80.0 else 0.0

    def below(x: float) -> float:
        return math.exp(-math.exp(-x / 2.0)) if x > -80.0 else 0.0

    def above(x: float) -> float:
        return -math.expm1(-math.exp(min(x, 80.0) / 2.0))

    exponential = races(
        answers, lambda x: math.exp(-x / 2.0) / 2.0 if x >= 0.0 else 0.0, lambda x: -math.expm1(-max(x, 0.0) / 2.0)
    )
    assert released.permute_and_flip(np.array(answers), 0.5) == pytest.approx(exponential, abs=1e-9)
    upright, mirrored = races(answers, density, below, [4.0]), races(answers, lambda x: density(-x), above, [-4.0])
    assert released.exponential(np.array(answers), 0.5) == pytest.approx(upright, abs=1e-8)
    assert released.last_clock(np.array(answers), 0.5) == pytest.approx(mirrored, abs=1e-8)


@for_each("scale", [1.0, 2.0])
def test_the_two_largest_of_three(scale: float) -> None:
    """Every row adds up to the probability of its winner, and one entry by a double integral."""
    answers = np.array([0.0, 1.0, -0.5])
    law, noise = released.top_two(answers, scale), stats.laplace(scale=scale)
    assert law.sum() == pytest.approx(1.0)
    assert law.sum(axis=1) == pytest.approx(wins(answers.tolist(), scale))
    levels = np.linspace(-40.0 * scale, 40.0 * scale, 80_001)
    rest = noise.pdf(levels - answers[1]) * noise.cdf(levels - answers[2]) * noise.sf(levels - answers[0])
    assert law[0, 1] == pytest.approx(float(integrate.simpson(rest, x=levels)), abs=1e-7)


@for_each("index", [True, False])
@for_each(("first", "second"), [([0, 0, 0], [1, 1, 1]), ([0, 1], [1, 0]), ([3, 0, 0], [2, 1, 1]), ([0, 5], [0.5, 4.5])])
def test_what_a_released_value_costs(first: list[float], second: list[float], index: bool) -> None:
    """The densities of scipy, on a fine grid."""
    values = np.union1d(np.linspace(-20.0, 60.0, 8_001), [*first, *second])

    def logs(answers: list[float]) -> np.ndarray:
        laws = [stats.laplace(answer, 2.0) for answer in answers]
        places = range(len(laws))
        each = [sum(laws[i].logpdf(values) if i == j else laws[i].logcdf(values) for i in places) for j in places]
        return np.array(each if index else [np.logaddexp.reduce(each)])

    largest = float(np.max(np.abs(logs(first) - logs(second))))
    found = released.releasing(np.array(first, float), np.array(second, float), 2.0, index=index)
    assert found == pytest.approx(largest, abs=2e-5)
    assert found >= largest - 1e-9


def test_what_a_released_value_costs_with_one_sided_noise() -> None:
    def loss(*pair: list[float]) -> float:
        return released.releasing_one_sided(*map(np.array, pair), 2.0)

    ended = [([0.0, 0.0], [1.0, 1.0]), ([1.0, 0.0], [1.0, 1.0]), ([1.0, 0.0], [0.0, 1.0]), ([3.0, 3.0], [3.0, 3.0])]
    assert [loss(*pair) for pair in ended] == [math.inf, math.inf, math.inf, 0.0]
    values = np.linspace(5.0, 90.0, 20_001)[1:]
    noises = [[stats.expon(answer, 2.0) for answer in answers] for answers in ([5.0, 0.0, 1.0], [5.0, 1.0, 0.0])]
    logs = [
        np.array([sum(a.logpdf(values) if i == j else a.logcdf(values) for i, a in enumerate(side)) for j in range(3)])
        for side in noises
    ]
    assert loss([5.0, 0.0, 1.0], [5.0, 1.0, 0.0]) == pytest.approx(np.max(np.abs(logs[0] - logs[1])), abs=5e-3)


@for_each(
    ("first", "second"),
    [([2.0, 0.0], [2.0, 1.0]), ([3.0, 3.0, 1.0, 0.0], [3.0, 3.0, 0.5, -1.0]), ([0.0, 5.0], [1.0, 5.0])],
)
@for_each("scale", [1.0, 20.0])
def test_the_loss_of_a_one_sided_maximum_bounds_its_cells_and_is_reached(
    first: list[float], second: list[float], scale: float
) -> None:
    edges = max(first) + scale * np.concatenate([np.geomspace(1e-4, 0.1, 400), np.linspace(0.1, 8.0, 3_000)[1:]])
    p, q = (
        np.diff(np.prod([-np.expm1(-np.maximum(edges - answer, 0.0) / scale) for answer in answers], axis=0))
        for answers in (first, second)
    )
    loss = largest_one_sided(np.array(first), np.array(second), scale)
    assert loss / 1.01 <= np.abs(np.log(p / q)).max() <= loss * (1 + 1e-6)


class Uniform:
    """In the place of a generator: its bytes spell one whole number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def bytes(self, size: int) -> bytes:
        return self.number.to_bytes(size, "little")


@for_each(("epsilon", "n"), [(0.9, 1), (0.9, 3), (0.25, 2)])
def test_the_law_of_geosample_by_every_uniform_number(epsilon: float, n: int) -> None:
    """The program, once for each number that it may draw."""
    entry, k = find("truncated_geometric").with_parameters({"epsilon": epsilon, "n": n}), geosample_steps(epsilon)
    outcomes = (2 ** (k + 1) + 1) * (2**k + 1) ** (n - 1)
    for count in range(n + 1):
        outputs = [entry.run(count, Uniform(number)) for number in range(outcomes)]
        assert np.bincount(outputs, minlength=n + 1) / outcomes == pytest.approx(geosample_law(k, n, count), rel=1e-14)


def test_draws_from_a_law_and_a_race_without_noise() -> None:
    rng = np.random.Generator(np.random.SFC64(26))
    seen = np.bincount(chosen(np.array([0.0, 0.25, 0.0, 0.75, 0.0]), 100_000, rng), minlength=5)
    assert seen[[0, 2, 4]].sum() == 0
    assert stats.binomtest(int(seen[1]), 100_000, 0.25).pvalue > 1e-8
    winner, best = race([2.0, 5.0, 5.0], 3, np.zeros)
    assert winner.tolist() == [1, 1, 1]
    assert best.tolist() == [5.0, 5.0, 5.0]
    filled = with_values(winner, best, 3)
    assert filled.mask.tolist() == [[True, False, True]] * 3
    assert filled.compressed().tolist() == [5.0] * 3
