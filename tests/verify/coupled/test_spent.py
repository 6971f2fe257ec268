"""What follows from what a way spends: valid, tight, null and mirror, against laws that are known exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpaudit.verify.coupled.spent import Spending, at_most, by_sample, root_above, zcdp_delta
from dpaudit.verify.enclosure import ball, gaussian_delta
from tests.cases import for_each

GAUSSIAN = {0.5: (1.0, 1e-5), 1.0: (0.5, 1e-3), 2.0: (3.0, 1e-6)}


def exact_delta(mu: float, epsilon: float) -> float:
    """The delta of a Gaussian mechanism, integrated."""
    start = mu / 2 + epsilon / mu  # where the densities are e^epsilon apart
    found, _ = quad(lambda x: norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x), start, start + 14, epsabs=1e-16)
    return float(found)


@for_each("mu", GAUSSIAN)
def test_gaussian_noise(mu: float) -> None:
    epsilon, delta = GAUSSIAN[mu]
    found = float(gaussian_delta(ball(Fraction(mu)), ball(Fraction(epsilon))).mid())
    assert found == pytest.approx(exact_delta(mu, epsilon), rel=1e-6)
    least = Spending(gaussian=Fraction(mu) ** 2).epsilon_at(delta)
    assert exact_delta(mu, least) <= delta * (1 + 1e-6)  # valid
    assert exact_delta(mu, least * 0.999) > delta  # tight


def test_pure_steps_add_up() -> None:
    spent = Spending(Fraction(1, 3), squares=Fraction(1, 9)) + Spending(Fraction(2, 3), squares=Fraction(4, 9))
    assert spent.epsilon_at(0.0) == 1.0
    assert spent.epsilon_at(1e-6) <= 1.0
    assert spent.rho == pytest.approx(5 / 18)


def test_many_small_steps_are_less_by_concentration() -> None:
    steps = Spending(Fraction(10), squares=Fraction(1, 10) ** 2 * 100)
    assert steps.epsilon_at(0.0) == 10.0
    assert 4.0 < steps.epsilon_at(1e-5) < 6.0


@for_each("epsilon", [0.6, 1.5, 4.0])
def test_zcdp_is_no_tighter_than_gaussian_noise_which_has_it(epsilon: float) -> None:
    exact = float(gaussian_delta(ball(1), ball(Fraction(epsilon))).mid())
    assert exact <= zcdp_delta(Fraction(1, 2), epsilon)
    assert zcdp_delta(Fraction(1, 2), epsilon) <= 4 * exact or epsilon > 3  # valid, and not far


def test_pure_and_gaussian_steps_together() -> None:
    """Randomised response of epsilon 1/2 beside Gaussian noise of mu 1/2: the exact delta of the product is below."""
    spent, delta = Spending(Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), 1e-3
    found = spent.epsilon_at(delta)
    chances = {0.5: 1 / (1 + math.exp(-0.5)), -0.5: 1 / (1 + math.exp(0.5))}
    exact = sum(chance * exact_delta(0.5, found - loss) for loss, chance in chances.items())
    assert exact <= delta
    assert exact > delta / 20


def test_one_sided_steps_concentrate_nothing() -> None:
    """Exponential noise that an answer moves away from has the constant loss epsilon: no rho, no better epsilon."""
    spent = Spending(Fraction(10), squares=math.inf)
    assert spent.epsilon_at(1e-5) == 10.0
    assert spent.rho == math.inf


def test_a_choice_of_steps_costs_what_no_way_exceeds() -> None:
    """A way that spends pure epsilon and one that spends Gaussian noise: both totals count, for noise may choose."""
    both = at_most([Spending(Fraction(1), squares=Fraction(1)), Spending(gaussian=Fraction(1))])
    assert (both.pure, both.gaussian, both.squares) == (1, 1, 1)


@for_each("chance", [0.01, 0.5, 1.0])
def test_a_sample(chance: float) -> None:
    """A randomised bit of a record that takes part with a chance: the loss is known exactly."""
    epsilon = 1.0
    p = 1 / (1 + math.exp(-epsilon))
    with_it, without = chance * p + (1 - chance) * (1 - p), 1 - p  # the others answer as 0 does
    exact = math.log(with_it / without)
    found = by_sample(Spending(Fraction(epsilon)), Fraction(chance), 0.0)
    assert exact <= found * (1 + 1e-12)
    assert found <= exact * (1 + 1e-9)


def test_nothing_spent_is_nothing() -> None:
    assert Spending().epsilon_at(0.0) == 0.0
    assert by_sample(Spending(Fraction(3)), Fraction(0), 0.0) == 0.0


def test_deltas_beside_gaussian_noise() -> None:
    spent = Spending(gaussian=Fraction(1), delta=Fraction(1, 10**6))
    assert spent.epsilon_at(1e-5) > Spending(gaussian=Fraction(1)).epsilon_at(1e-5)
    assert spent.epsilon_at(1e-7) == math.inf


@for_each("square", [2, 3, Fraction(1, 7)])
def test_a_root_is_rounded_up(square: Fraction) -> None:
    assert (
        Fraction(root_above(Fraction(square))) ** 2
        >= square
        > Fraction(math.nextafter(root_above(Fraction(square)), 0)) ** 2
    )
