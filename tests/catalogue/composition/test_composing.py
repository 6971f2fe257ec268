"""The exact maths of transcripts against enumeration, quadrature and simulation.

One test depends on chance, with a fixed seed: it fails with probability below 1e-8 (six standard errors).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import quad

from dpaudit.claims import ApproximateDP, PureDP, compose_optimal
from dpaudit.losses.composing import (
    advanced,
    advanced_sharper,
    laplace_delta,
    laplace_epsilon,
    responses,
    responses_delta,
    responses_epsilon,
)
from dpaudit.losses.distribution import delta_of, epsilon_of
from tests.cases import for_each

Floats = npt.NDArray[np.float64]


def enumerated(k: int, epsilon: float, delta: float) -> tuple[Floats, Floats]:
    """Every transcript of k responses, one by one: 1, 0, a sure 1, a sure 0."""
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    of_one = [(1 - delta) * keep, (1 - delta) * (1 - keep), delta, 0.0]
    of_zero = [(1 - delta) * (1 - keep), (1 - delta) * keep, 0.0, delta]
    transcripts = list(itertools.product(range(4), repeat=k))
    return tuple(  # type: ignore[return-value]
        np.array([math.prod(law[symbol] for symbol in transcript) for transcript in transcripts])
        for law in (of_one, of_zero)
    )


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_responses_are_all_transcripts_taken_together(k: int, delta: float) -> None:
    one_by_one, together = enumerated(k, 0.7, delta), responses(k, 0.7, delta)
    assert together[0].sum() == pytest.approx(1.0, abs=1e-12)
    for at in np.linspace(0.0, 0.7 * k + 0.5, 13):
        assert delta_of(*together, at) == pytest.approx(delta_of(*one_by_one, at), abs=1e-13)
    for at in (0.2, 0.3, 0.5):
        assert epsilon_of(*together, at) == pytest.approx(epsilon_of(*one_by_one, at), abs=1e-10)


@pytest.mark.parametrize(
    ("k", "epsilon", "delta"), [(1, 2.0, 0.1), (10, 0.25, 0.2), (100, 0.1, 1e-6), (1_000, 0.03, 1e-9)]
)
def test_the_responses_are_the_optimal_composition(k: int, epsilon: float, delta: float) -> None:
    promised = compose_optimal(PureDP(epsilon), k).epsilon_at(delta)
    assert responses_epsilon(k, epsilon, delta) == pytest.approx(promised, rel=1e-8)
    assert responses_delta(k, epsilon, promised) <= delta * (1 + 1e-9)


def test_approximate_responses_are_the_optimal_composition_too() -> None:
    promised = compose_optimal(ApproximateDP(0.5, 0.0125), 4).epsilon_at(0.05)
    assert epsilon_of(*responses(4, 0.5, 0.0125), 0.05) == pytest.approx(promised, rel=1e-9)


def one_count(epsilon: float, at: float) -> float:
    """The least delta of one noisy count at any epsilon, below 0 too."""
    if at >= epsilon:
        return 0.0
    return -math.expm1((at - epsilon) / 2.0) if at > -epsilon else -math.expm1(at)


@for_each("epsilon", [0.1, 1.0, 3.0])
@for_each("share", [0.0, 0.3, 0.8, 0.999])
def test_laplace_delta_of_one_and_two_counts(epsilon: float, share: float) -> None:
    assert laplace_delta(1, epsilon, share * epsilon) == pytest.approx(one_count(epsilon, share * epsilon), abs=1e-12)

    def integrand(noise: float) -> float:
        loss = epsilon * (abs(noise - 1.0) - abs(noise))
        return epsilon / 2.0 * math.exp(-epsilon * abs(noise)) * one_count(epsilon, 2 * share * epsilon - loss)

    middle = quad(integrand, 0.0, 1.0, points=[1.0 - share], epsabs=1e-13, epsrel=1e-13)[0]
    tails = one_count(epsilon, 2 * share * epsilon - epsilon) / 2.0 + math.exp(-epsilon) / 2.0 * one_count(
        epsilon, 2 * share * epsilon + epsilon
    )
    assert laplace_delta(2, epsilon, 2 * share * epsilon) == pytest.approx(middle + tails, abs=1e-8)


@pytest.mark.parametrize("at", [0.0, 0.5, 1.5, 2.4])
def test_laplace_delta_of_eight_counts_by_simulation(at: float) -> None:
    noise = np.random.default_rng(1).laplace(scale=1.0 / 0.35, size=(400_000, 8))
    loss = 0.35 * (np.abs(noise - 1.0) - np.abs(noise)).sum(axis=1)
    seen = np.maximum(0.0, -np.expm1(at - loss))
    exact = laplace_delta(8, 0.35, at)
    assert abs(seen.mean() - exact) < 6.0 * seen.std() / math.sqrt(len(seen))
    assert exact <= responses_delta(8, 0.35, at)  # nothing tells more than responses


def test_laplace_epsilon_inverts_its_delta() -> None:
    for k, epsilon, delta in ((1, 1.0, 0.1), (8, 0.1165, 0.01), (20, 0.3, 1e-5), (30, 0.2, 1e-6)):
        assert laplace_delta(k, epsilon, laplace_epsilon(k, epsilon, delta)) == pytest.approx(delta, rel=1e-8)
    assert laplace_epsilon(3, 0.1, 0.5) == 0.0
    assert laplace_delta(3, 0.125, 0.375) == 0.0


def test_the_formulas_of_the_notes_hold_and_one_is_sharper() -> None:
    for k, epsilon, slack in itertools.product((1, 10, 100), (0.01, 0.1, 1.0), (0.1, 1e-6)):
        assert advanced_sharper(k, epsilon, slack) < advanced(k, epsilon, slack)
        assert responses_delta(k, epsilon, advanced_sharper(k, epsilon, slack)) <= slack
