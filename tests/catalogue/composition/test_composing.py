"""The exact maths of transcripts and the losses of the room against enumeration, quadrature, densities on grids.

Simulations have fixed seeds, and fail with probability below 1e-8 (six standard errors).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.integrate import quad

from dpaudit.catalogue import find
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
LEVEL, RUNS = 1e-9, 50_000


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


def test_laplace_delta_of_eight_counts_by_simulation() -> None:
    noise = np.random.default_rng(1).laplace(scale=1.0 / 0.35, size=(200_000, 8))
    loss = 0.35 * (np.abs(noise - 1.0) - np.abs(noise)).sum(axis=1)
    for at in (0.0, 0.5, 1.5, 2.4):
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


# --- losses of the room -------------------------------------------------------------------------------------------


@for_each(
    ("first", "second"),
    [([0, 0, 7, 7], [0, 0, 0, 7, 7]), ([3, 4], [0, 3, 4]), ([], [5]), ([1, 2, 6], [1, 6]), ([3], [3, 3])],
)
@for_each("by_truth", [False, True])
def test_bisection_by_a_grid_of_transcripts(first: list[int], second: list[int], by_truth: bool) -> None:
    """The log ratio is piecewise linear with kinks at whole numbers, and constant far out."""
    grid = [-40.0, *range(-6, 1), 1e-12, *range(1, 7), 40.0]

    def log_density(data: list[int], answers: tuple[float, ...]) -> float:
        low, high, total = 0, 8, 0.0
        for answer in answers:
            middle = (low + high) // 2
            lead = sum(1 if value < middle else -1 for value in data)
            total -= abs(answer - lead) / 3.0
            down = (lead if by_truth else answer) > 0
            low, high = (low, middle) if down else (middle, high)
        return total

    worst = max(
        abs(log_density(first, answers) - log_density(second, answers)) for answers in itertools.product(grid, repeat=3)
    )
    entry = find("noisy_bisection.turn_by_truth" if by_truth else "noisy_bisection")
    assert entry.true_epsilon(first, second) == pytest.approx(worst, abs=1e-9)


def test_sampled_counts_by_the_densities_of_mixtures() -> None:
    grid = np.arange(-6.0, 12.0, 0.5)
    for people, rate, epsilon in ((0, 0.1, 2.0), (2, 0.3, 1.0), (5, 0.5, 0.5)):

        def log_density(n: int, z: Any, rate: float = rate, epsilon: float = epsilon) -> Any:
            sizes = np.arange(n + 1)
            noise = np.exp(-epsilon * np.abs(z - sizes[:, None, None]).sum(axis=2))
            return np.log(stats.binom(n, rate).pmf(sizes) @ noise)

        single, both = grid[:, None], np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        entry = find("sampled_counts").with_parameters({"epsilon": epsilon, "rate": rate, "k": 2})
        for each, z, copies in ((entry, single, 2), (entry.one_sample, both, 1)):
            worst = copies * float(np.abs(log_density(people + 1, z) - log_density(people, z)).max())
            assert each.true_epsilon(people + 1, people) == pytest.approx(worst, rel=1e-9)


def test_the_loss_of_a_mean_is_that_of_its_far_tail() -> None:
    """The sum of two draws of Lap(1) has the density (1 + |s|) e^-|s| / 4; moved by 2, as the mean is by 1."""
    s = np.linspace(0.0, 2_000.0, 50_001)
    ratio = 2.0 + np.log1p(s) - np.log1p(s + 2.0)
    loss = find("averaged_count.each_at_full_budget").true_epsilon(10, 9)
    assert np.all(np.diff(ratio) > 0.0)
    assert ratio.max() < loss == pytest.approx(ratio.max(), abs=1e-2)


@for_each("bound", ["basic", "advanced", "sharper", "optimal"])
@for_each(("epsilon", "k", "delta"), [(0.25, 10, 0.2), (0.1, 100, 1e-6), (2.0, 3, 0.01)])
def test_every_bound_on_responses_is_kept(bound: str, epsilon: float, k: int, delta: float) -> None:
    given = {"epsilon": epsilon, "k": k, "delta": delta, "bound": bound}
    entry = find("repeated_response").with_parameters(given)
    claim, loss = entry.claim(), entry.true_epsilon(0, 1)
    assert loss is not None
    assert loss <= claim.promised(claim.delta) * (1 + 1e-12)
    if bound in ("basic", "optimal"):
        assert loss == pytest.approx(claim.promised(claim.delta), rel=1e-8)
