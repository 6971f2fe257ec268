"""DP gradient descent and DP-SGD: exact losses against other ways to them, and samplers against exact laws.

Random tests have fixed seeds, and fail by chance with probability at most 1e-8 each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import ndtr

from dpaudit.catalogue.entry import Entry
from dpaudit.catalogue.learning.descent import (
    dp_gradient_descent,
    dp_gradient_descent_iterates,
    dp_sgd,
    dp_sgd_iterates,
    gradient_descent,
)
from dpaudit.catalogue.learning.descent.losses import canary
from dpaudit.catalogue.learning.descent.programs import clipped, linear_gradient
from dpaudit.catalogue.learning.descent.runs import bounded, linear_pull, logistic_pull, shortened
from dpaudit.claims import ApproximateDP, GaussianDP, Relation
from tests.cases import for_each
from tests.catalogue.between import between_epsilons

LEVEL = 1e-8
RUNS = 60_000


def runs_of(entry: Entry, side: int, seed: int, runs: int = RUNS) -> np.ndarray[Any, Any]:
    return np.asarray(entry.open().call(entry.default_pair[side], runs, np.random.Generator(np.random.SFC64(seed))))


def loss(entry: Entry) -> float:
    found = entry.true_loss(*entry.default_pair)
    assert found is not None
    return found


# --- claims -------------------------------------------------------------------------------------------------------


def test_poisson_batches_are_claimed_by_the_privacy_loss() -> None:
    claim = dp_sgd_iterates.claim()
    low, high = between_epsilons(0.01, 1.0, 0.5, 4)
    assert isinstance(claim, ApproximateDP)
    assert (claim.delta, claim.relation) == (0.01, Relation.ADD_OR_REMOVE_ONE)
    assert low < claim.epsilon <= high < low + 5e-6
    assert dp_sgd.claim() == claim
    full = dp_sgd_iterates.claim({"rate": 1.0, "noise_multiplier": 4.0}).promised(0.01)
    assert full == pytest.approx(GaussianDP(0.5).epsilon_at(0.01), rel=1e-5)


# --- exact losses -------------------------------------------------------------------------------------------------


def mixture_delta(epsilon: float, centres: list[float], weights: list[float]) -> float:
    """A mixture of normal distributions against N(0, 1), by quadrature on a fine grid; the larger of the two orders."""
    x = np.linspace(-10.0, max(centres) + 10.0, 40_001)
    q = stats.norm.pdf(x)
    p = sum(weight * stats.norm.pdf(x - centre) for centre, weight in zip(centres, weights, strict=True))
    over, under = np.maximum(p - math.exp(epsilon) * q, 0.0), np.maximum(q - math.exp(epsilon) * p, 0.0)
    return float(max(over.sum(), under.sum()) * (x[1] - x[0]))


def mixture_epsilon(centres: list[float], weights: list[float]) -> float:
    return float(optimize.brentq(lambda epsilon: mixture_delta(epsilon, centres, weights) - 0.01, 0.0, 20.0))


def test_the_last_model_alone_tells_a_binomial_mixture() -> None:
    weights = stats.binom.pmf(np.arange(5), 4, 0.5).tolist()
    assert loss(dp_sgd) == pytest.approx(mixture_epsilon([k / 2.0 for k in range(5)], weights), rel=1e-5)
    assert loss(dp_sgd) < loss(dp_sgd_iterates)
    assert loss(dp_sgd.one_batch) == pytest.approx(mixture_epsilon([0.0, 2.0], [0.5, 0.5]), rel=1e-5)


def step_ratios(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """ln(p / q) of each transcript (run, step), outputs in clip norms, noise 1, written out case by case."""
    one = np.exp(x - 0.5)  # of a shift by 1
    two = np.exp(2.0 * x - 2.0)
    if name == "all":
        return np.log(0.5 + 0.5 * one).sum(axis=1)
    if name == "clipping_per_batch":
        return np.log(0.5 + 0.5 * two).sum(axis=1)
    if name == "realised_batch_size":
        third = np.exp(2.0 / 3.0 * x - 2.0 / 9.0)
        return np.log(0.5 + 0.5 * (0.25 * two + 0.5 * one + 0.25 * third)).sum(axis=1)
    if name == "shuffled_batches":
        return np.log(0.2 + 0.4 * (two[:, 0::2] + two[:, 1::2])).sum(axis=1)
    weight = np.zeros(len(x))
    total = np.zeros(len(x))
    for step in range(x.shape[1]):  # no clipping: the shift depends on the model
        shift = 3.0 / (1.0 + np.exp(0.3 * weight))
        total += np.log(0.5 + 0.5 * np.exp(shift * x[:, step] - shift**2 / 2.0))
        weight += 0.05 * x[:, step]
    return total


@pytest.mark.parametrize(
    "name", ["all", "clipping_per_batch", "realised_batch_size", "shuffled_batches", "no_clipping"]
)
def test_a_transcripts_loss_is_the_mean_over_its_law(name: str) -> None:
    """Simulated without the record: the mean of max(0, ratio - e^epsilon) is delta at the exact epsilon.

    Outputs are drawn from a wider distribution and weighted, so that the rare ones are seen; the error is below six
    of its own deviations with probability 1 - 2e-9.
    """
    entry = dp_sgd_iterates if name == "all" else getattr(dp_sgd_iterates, name)
    rng = np.random.Generator(np.random.SFC64(31))
    wide = rng.standard_normal((250_000, 4)) * 1.6 + 0.6
    weights = np.exp(-(wide**2).sum(axis=1) / 2.0 + (((wide - 0.6) / 1.6) ** 2).sum(axis=1) / 2.0) * 1.6**4
    ratios = step_ratios(name, wide)
    level = math.exp(loss(entry))
    over = weights * np.maximum(np.exp(ratios) - level, 0.0)
    under = weights * np.maximum(1.0 - level * np.exp(ratios), 0.0)
    assert abs(over.mean() - 0.01) <= 6.0 * over.std() / math.sqrt(len(over))
    assert over.std() / math.sqrt(len(over)) < 3e-4
    assert under.mean() <= 0.01 + 6.0 * under.std() / math.sqrt(len(under))


MEASURED = [
    dp_gradient_descent,
    dp_gradient_descent.clipping_after_averaging.with_parameters({"noise_multiplier": 8.0}),
    dp_gradient_descent.noise_at_the_end,
    dp_gradient_descent.no_clipping.with_parameters({"steps": 1}),
    dp_gradient_descent.replace_one,
    dp_gradient_descent.averaged,
]
PATHS = [
    dp_gradient_descent_iterates,
    dp_gradient_descent_iterates.noise_unscaled,
    dp_gradient_descent_iterates.noise_divided_twice,
    dp_gradient_descent_iterates.update_clipped,
    dp_gradient_descent_iterates.clipping_per_coordinate,
    dp_gradient_descent_iterates.regularised,
    dp_gradient_descent_iterates.momentum,
]


@for_each("entry", [*MEASURED, *PATHS], ids=lambda entry: entry.name)
def test_the_models_are_as_far_apart_as_mu_says(entry: Entry) -> None:
    """Normal outputs of one covariance: mu is the Mahalanobis distance of the means, which samples show to 2 %.

    For paths the steps are taken out of the models first, as they are independent given the past.
    """
    first, second = (steps_of(entry, runs_of(entry, side, seed=21 + side)) for side in (0, 1))
    apart = first.mean(axis=0) - second.mean(axis=0)
    together = np.atleast_2d(np.cov(first - first.mean(axis=0), rowvar=False))
    expected = loss(entry)
    assert math.sqrt(apart @ np.linalg.solve(together, apart)) == pytest.approx(expected, abs=0.02 * expected + 0.02)


def steps_of(entry: Entry, outputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The noisy gradients behind a path of the two weights, without what the other records pulled; a model as it is."""
    if outputs.shape[1] == 2:
        return outputs
    values = entry.values()
    models = outputs.reshape(len(outputs), 2, 4)
    before = np.concatenate([np.zeros((len(outputs), 2, 1)), models[:, :, :-1]], axis=2)
    steps = models - before
    if "momentum" in values:
        steps[:, :, 1:] -= values["momentum"] * steps[:, :, :-1].copy()
    if "penalty" in values:
        steps += values["learning_rate"] * values["penalty"] * before
    for record in entry.default_pair[1]:
        weight = before[:, 1]
        pull = (record[1] - record[0][1] * weight) * record[0][1]
        scale = 1.0 / values["learning_rate"] if entry.name.endswith("update_clipped") else 1.0
        clip = values["clip"] * scale
        steps[:, 1] -= values["learning_rate"] / values["size"] * np.clip(pull, -clip, clip)
    return steps.reshape(len(outputs), 8)


def test_gradient_descent_converges() -> None:
    """On one record the error shrinks by 1 - learning_rate (|x|^2 + penalty) in each step: by half, four times."""
    for given in ({}, {"penalty": 0.5, "learning_rate": 1.0 / 3.0}):
        model = gradient_descent.with_parameters(given).run([[[1.0, 0.0], 1.0]], np.random.default_rng(0))
        assert model == pytest.approx(((1.0 - 0.5**4) / (1.0 + given.get("penalty", 0.0)), 0.0))


# --- laws ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [0, 1], ids=["with", "without"])
def test_a_step_of_dp_sgd_has_the_law_of_its_claim(side: int) -> None:
    """The first weight after one step, in clip norms: N(0, 1), or N(1, 1) with probability 1/2."""
    first = runs_of(dp_sgd_iterates, side, seed=51)[:, 0] / 0.05

    def law(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray((ndtr(x) + ndtr(x - 1.0)) / 2.0 if side == 0 else ndtr(x))

    assert stats.kstest(first, law).pvalue > LEVEL


@pytest.mark.parametrize("side", [0, 1], ids=["with", "without"])
def test_shuffled_batches_are_full(side: int) -> None:
    """An epoch's two sums, in clip norms: -2 each without the record; with it one of them is 0, four times in five."""
    weights = runs_of(dp_sgd_iterates.shuffled_batches.with_parameters({"noise_multiplier": 0.05}), side, seed=52)
    steps = np.diff(weights[:, :4], axis=1, prepend=0.0) / 0.05
    assert np.all(np.minimum(np.abs(steps), np.abs(steps + 2.0)) < 0.5)
    higher = (steps > -1.0).reshape(-1, 2, 2).sum(axis=2)
    assert set(np.unique(higher).tolist()) == ({0, 1} if side == 0 else {0})
    if side == 0:
        assert stats.binomtest(int(higher.sum()), higher.size, 0.8).pvalue > LEVEL


# --- parts --------------------------------------------------------------------------------------------------------


def test_clipping_a_pull_is_clipping_the_gradient() -> None:
    record = [[3.0, -4.0], 2.0]
    for weights in ((0.0, 0.0), (1.0, 1.0), (0.6, 0.0)):
        model = [np.array([weight]) for weight in weights]
        pull = bounded(model, record, linear_pull, 2.5)
        gradient = clipped(linear_gradient(np.array(weights), record), 2.5)
        assert np.allclose(pull * np.array(record[0]), -gradient)
    others, canary_record = dp_sgd.default_pair[1], dp_sgd.default_pair[0][-1]
    assert canary([*others, canary_record], others) == canary(others, [*others, canary_record]) == canary_record
    assert logistic_pull([np.array([0.0]), np.array([0.0])], [[0.0, 0.0], 1.0])[0] == 0.5
    parts = shortened([np.array([3.0]), np.array([-4.0])], 2.5)
    assert np.allclose(np.concatenate(parts), clipped(np.array([3.0, -4.0]), 2.5))
