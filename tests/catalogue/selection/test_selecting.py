"""The exact laws of a choice: against brute force over orders and coins, adaptive quadrature, and closed forms.

No test here depends on chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.losses import released
from tests.cases import for_each

UTILITIES = ([0.0, 0.0, 0.0], [1.0, -1.0, 0.5, 0.5], [3.0, 0.0], [-2.0, -2.0, 0.0, -7.0, 1.0])


def by_all_orders(utilities: Sequence[float], rate: float) -> list[float]:
    """Permute-and-flip, summed over all orders of the candidates."""
    heads = [math.exp(rate * (utility - max(utilities))) for utility in utilities]
    law = [0.0] * len(utilities)
    for order in itertools.permutations(range(len(utilities))):
        left = 1.0 / math.factorial(len(utilities))
        for candidate in order:
            law[candidate] += left * heads[candidate]
            left *= 1.0 - heads[candidate]
    return law


@for_each("utilities", UTILITIES)
@for_each("rate", [0.5, 1.0, 3.0])
def test_permute_and_flip_over_all_orders(utilities: list[float], rate: float) -> None:
    found = released.permute_and_flip(np.array(utilities), rate)
    assert found == pytest.approx(by_all_orders(utilities, rate), rel=1e-12)


@for_each("utilities", UTILITIES)
@for_each("rate", [0.5, 2.0])
def test_one_coin_over_all_subsets(utilities: list[float], rate: float) -> None:
    """The coin lies between two of the chances, and one of the candidates above it is uniform."""
    heads = np.exp(rate * (np.array(utilities) - max(utilities)))
    law = np.zeros(len(heads))
    for low, high in itertools.pairwise(sorted({0.0, *heads})):
        law[heads >= high] += (high - low) / np.count_nonzero(heads >= high)
    assert released.flip_one_coin(np.array(utilities), rate) == pytest.approx(law, rel=1e-12)


@pytest.mark.parametrize("utilities", UTILITIES)
def test_flips_in_order(utilities: list[float]) -> None:
    heads = [math.exp(0.5 * (utility - max(utilities))) for utility in utilities]
    by_hand = [head * math.prod(1.0 - one for one in heads[:place]) for place, head in enumerate(heads)]
    assert released.flip_in_order(np.array(utilities), 0.5) == pytest.approx(by_hand)


def by_quadrature(
    answers: Sequence[float], pdf: Callable[[float], float], cdf: Callable[[float], float]
) -> list[float]:
    """The probabilities that each answer plus its own noise is the largest."""

    def wins(j: int, value: float) -> float:
        others = math.prod(cdf(value - answer) for i, answer in enumerate(answers) if i != j)
        return pdf(value - answers[j]) * others

    edges = sorted({min(answers) - 60.0, *answers, *(answer + 4.0 for answer in answers), max(answers) + 60.0})
    return [
        sum(
            integrate.quad(lambda v, j=j: wins(j, v), low, high, epsabs=1e-13, epsrel=1e-11, limit=200)[0]
            for low, high in itertools.pairwise(edges)
        )
        for j in range(len(answers))
    ]


@pytest.mark.parametrize("answers", UTILITIES)
def test_exponential_noise_is_permute_and_flip(answers: list[float]) -> None:
    """Ding et al. 2021, at a mean of 2."""
    quad = by_quadrature(
        answers,
        lambda x: math.exp(-x / 2.0) / 2.0 if x >= 0.0 else 0.0,
        lambda x: -math.expm1(-max(x, 0.0) / 2.0),
    )
    assert released.permute_and_flip(np.array(answers), 0.5) == pytest.approx(quad, abs=1e-9)


@pytest.mark.parametrize("answers", UTILITIES)
def test_gumbel_noise_is_the_exponential_mechanism_and_its_mirror_the_last_clock(answers: list[float]) -> None:
    def density(x: float) -> float:
        return math.exp(-x / 2.0 - math.exp(-x / 2.0)) / 2.0 if x > -80.0 else 0.0

    def below(x: float) -> float:
        return math.exp(-math.exp(-x / 2.0)) if x > -80.0 else 0.0

    upright = by_quadrature(answers, density, below)
    mirrored = by_quadrature(answers, lambda x: density(-x), lambda x: -math.expm1(-math.exp(min(x, 80.0) / 2.0)))
    assert released.exponential(np.array(answers), 0.5) == pytest.approx(upright, abs=1e-8)
    assert released.last_clock(np.array(answers), 0.5) == pytest.approx(mirrored, abs=1e-8)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_two_largest_of_three(scale: float) -> None:
    """Every row adds up to the probability of its winner, and one entry by a double integral."""
    answers = np.array([0.0, 1.0, -0.5])
    law, noise = released.top_two(answers, scale), stats.laplace(scale=scale)
    assert law.sum() == pytest.approx(1.0)
    assert law.sum(axis=1) == pytest.approx(selecting_by_winning(answers, scale))
    levels = np.linspace(-40.0 * scale, 40.0 * scale, 400_001)
    rest = noise.pdf(levels - answers[1]) * noise.cdf(levels - answers[2]) * noise.sf(levels - answers[0])
    assert law[0, 1] == pytest.approx(float(integrate.simpson(rest, x=levels)), abs=1e-8)


def selecting_by_winning(answers: np.ndarray, scale: float) -> list[float]:
    def below(x: float) -> float:
        return 0.5 * math.exp(x / scale) if x < 0.0 else 1.0 - 0.5 * math.exp(-x / scale)

    return by_quadrature(answers.tolist(), lambda x: math.exp(-abs(x) / scale) / (2.0 * scale), below)


@for_each("index", [True, False])
@for_each(("first", "second"), [([0, 0, 0], [1, 1, 1]), ([0, 1], [1, 0]), ([3, 0, 0], [2, 1, 1]), ([0, 5], [0.5, 4.5])])
def test_what_a_released_value_costs(first: list[float], second: list[float], index: bool) -> None:
    """The densities of scipy, on a fine grid."""
    values = np.union1d(np.linspace(-20.0, 60.0, 40_001), [*first, *second])

    def logs(answers: list[float]) -> np.ndarray:
        laws = [stats.laplace(answer, 2.0) for answer in answers]
        places = range(len(laws))
        each = [sum(laws[i].logpdf(values) if i == j else laws[i].logcdf(values) for i in places) for j in places]
        return np.array(each if index else [np.logaddexp.reduce(each)])

    largest = float(np.max(np.abs(logs(first) - logs(second))))
    found = released.releasing(np.array(first, float), np.array(second, float), 2.0, index=index)
    assert found == pytest.approx(largest, abs=1e-5)
    assert found >= largest - 1e-9


def test_what_a_released_value_costs_with_one_sided_noise() -> None:
    both = released.releasing_one_sided
    assert both(np.array([0.0, 0.0]), np.array([1.0, 1.0]), 2.0) == math.inf
    assert both(np.array([1.0, 0.0]), np.array([1.0, 1.0]), 2.0) == math.inf
    assert both(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 2.0) == math.inf
    assert both(np.array([3.0, 3.0]), np.array([3.0, 3.0]), 2.0) == 0.0
    values = np.linspace(5.0, 90.0, 200_001)
    noises = [[stats.expon(answer, 2.0) for answer in answers] for answers in ([5.0, 0.0, 1.0], [5.0, 1.0, 0.0])]
    logs = [
        np.array([sum(a.logpdf(values) if i == j else a.logcdf(values) for i, a in enumerate(side)) for j in range(3)])[
            :, 1:
        ]
        for side in noises
    ]
    assert both(np.array([5.0, 0.0, 1.0]), np.array([5.0, 1.0, 0.0]), 2.0) == pytest.approx(
        float(np.max(np.abs(logs[0] - logs[1]))), abs=1e-3
    )


# --- what theory says of the entries ------------------------------------------------------------------------------


@pytest.mark.parametrize(("answers", "general"), [(2, 0.5477), (10, 1.6072)])
def test_the_published_losses_of_general_queries(answers: int, general: float) -> None:
    """Report Noisy Max with Lap(1 / epsilon), from equal answers: the one that goes up against all that go down."""
    twin = find("report_noisy_max_general.counts_noise")
    found = twin.true_epsilon([0] * answers, [1] + [-1] * (answers - 1))
    assert found is not None
    assert found >= general - 5.1e-5
    before, after = ([0.0] * answers, [1.0] + [-1.0] * (answers - 1))
    winner = [selecting_by_winning(np.array(side), 1.0)[0] for side in (before, after)]
    assert abs(math.log(winner[1] / winner[0])) == pytest.approx(general, abs=5.1e-5)


@pytest.mark.parametrize(
    ("entry", "limit"),
    [("report_noisy_max_general", 1.0), ("report_noisy_max_exponential", 1.0), ("permute_and_flip", 1.0)],
)
def test_sound_selection_reaches_its_claim_and_stays_below(entry: str, limit: float) -> None:
    mechanism = find(entry)
    losses = [mechanism.true_epsilon([-gap, 0, 0], [-gap + 1, -1, -1]) or 0.0 for gap in range(-8, 30, 2)]
    assert max(losses) == pytest.approx(limit, abs=1e-3)
    assert max(losses) <= limit + 1e-9
    scaled = mechanism.true_epsilon([-12, 0, 0], [-9, -3, -3], {"sensitivity": 3.0})
    assert scaled == pytest.approx(mechanism.true_epsilon([-4, 0, 0], [-3, -1, -1]))


def test_the_worst_five_records_have_the_published_loss() -> None:
    learning = find("exponential_mechanism_learning")
    found = max(
        learning.true_epsilon([one, *rest], [other, *rest]) or 0.0
        for rest in itertools.combinations_with_replacement(range(5), 4)
        for one, other in itertools.combinations(range(5), 2)
    )
    assert found == pytest.approx(0.934453610, abs=1e-9)


def test_the_losses_of_ties_and_of_equal_data() -> None:
    released = find("exponential_mechanism_learning.loss_released")
    assert released.true_epsilon([0, 1], [1, 0]) == 0.0
    assert released.true_epsilon([0, 1], [0, 0]) == math.inf
    assert find("exponential_mechanism_learning.minimiser").true_epsilon([0, 0, 1], [0, 1, 0]) == 0.0
    gumbel = find("report_noisy_max_gumbel.value_released")
    assert gumbel.true_epsilon([0, 1], [1, 0]) == pytest.approx(0.5)
    assert gumbel.true_epsilon([0, 1], [0, 1.5]) == math.inf
    assert find("private_median.unmixed_chain").true_epsilon([3, 4], [3, 4, 9], {"steps": 4000}) == pytest.approx(
        find("private_median").true_epsilon([3, 4], [3, 4, 9]), abs=1e-6
    )
