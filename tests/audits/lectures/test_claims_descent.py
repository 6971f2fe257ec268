"""The statements on gradient descent: their numbers are those of other ways."""

from __future__ import annotations

import math

import pytest
from matplotlib.figure import Figure as Canvas

from audits.lectures.claims.batches import (
    DELTA,
    DRAWN,
    EPSILON,
    STEPS,
    advanced_epsilon,
    epsilon_of_steps,
    fixed_epsilon,
    noise_for,
    reached_epsilon,
    replaced_epsilon,
)
from audits.lectures.claims.convexity import distances, largest_excess, predicted
from dpaudit.claims import GaussianDP, PureDP, compose_optimal
from tests.audits.lectures.statements import STATEMENTS, truth
from tests.catalogue.between import between_epsilons


def test_the_noise_of_full_batches_is_that_of_gaussian_dp() -> None:
    mu = GaussianDP(1.0).lower(EPSILON, DELTA)
    assert noise_for(EPSILON, 1.0, STEPS) == pytest.approx(math.sqrt(STEPS) / mu, rel=3e-4)
    numbers = truth("dp-gd-noise-on-the-average").numbers
    assert numbers["sigma / Delta, replaced"] == 2.0 * numbers["sigma / Delta, added or removed"]


def test_the_noise_of_small_batches_keeps_epsilon() -> None:
    """The two-sided bracket at a finer grid, for the batches of 100 of 1,000."""
    low, high = between_epsilons(DELTA, noise_for(EPSILON, 0.1, STEPS), 0.1, STEPS, 2.5e-4)
    assert low <= EPSILON * 1.003
    assert high >= EPSILON * 0.997


def test_what_is_said_to_be_reached_is_reached() -> None:
    """Losses of dense outputs, rounded to a grid and added up, and the two-sided bracket at a width of 3e-4."""
    drawn, fixed = truth("dp-sgd-as-drawn").numbers, truth("dp-sgd-fixed-size-batches").numbers
    assert 0.7176 < drawn["reached"] <= 0.71804
    assert 0.76800 <= drawn["holds"] < 0.76805
    assert 1.1524 < fixed["Poisson, replaced"] <= 1.1531
    assert 8.69 < fixed["batches of B, reached"] <= 8.7014
    assert f"{drawn['reached']:.3f}" in truth("dp-sgd-as-drawn").text


def test_the_figure_keeps_its_order() -> None:
    """Exact is least, advanced composition is no better than the optimal composition of what it composes."""
    for steps in DRAWN:
        assert epsilon_of_steps(1.0, 0.05, steps) < min(advanced_epsilon(steps), epsilon_of_steps(1.0, 1.0, steps))
    whole = GaussianDP(1.0).epsilon_at(DELTA / (2.0 * 8 * 0.05))
    each = math.log1p(0.05 * math.expm1(whole))
    assert compose_optimal(PureDP(each), 8).epsilon_at(DELTA / 2.0) <= advanced_epsilon(8)
    axes = Canvas().subplots()
    figure = STATEMENTS["dp-sgd-batch-size"].figure
    assert figure is not None
    figure.draw(axes)
    assert len(axes.lines) == 3
    assert axes.get_xlabel() == "steps"


def test_the_kinds_of_batches_keep_their_order() -> None:
    """Replaced is at most twice as far as added or removed; a full batch tells more than a Poisson one does."""
    for steps in (1, 4):
        one, two = epsilon_of_steps(8.0, 0.5, steps), replaced_epsilon(8.0, 0.5, steps)
        assert one < two < reached_epsilon(8.0, 0.5, steps) <= fixed_epsilon(8.0, 0.5, steps) * (1.0 + 1e-5)
    assert reached_epsilon(8.0, 1.0, 4) == pytest.approx(GaussianDP(0.5).epsilon_at(DELTA), rel=1e-4)


def test_gradient_descent_is_as_far_as_its_eigenvalues_say() -> None:
    for rate in (0.5, 1.0, 1.9):
        assert predicted(5.0, rate, 20) == pytest.approx(distances(5.0, rate, 20), rel=1e-9, abs=1e-12)
    assert largest_excess(lambda x: x**2, (-1.0, 1.0)) <= 1e-12 < largest_excess(lambda x: -(x**2), (-1.0, 1.0))
