"""Gradient canaries: a row each where it is in, what a step releases along it, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, audit_training
from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.training.canaries import GradientCanaries, log_ratio, margins, own_features
from dpaudit.training.opacus import OTHERS, Canaries
from tests.cases import for_each
from tests.training.opacus_fake import DPOptimizer, Parameter

RNG = np.random.default_rng(0)


def of(included: object, **given: float) -> GradientCanaries:
    return GradientCanaries(included, np.random.default_rng(1), **({"clip_norm": 2.0, "sample_rate": 1.0} | given))


def test_a_matrix_and_a_mapping_hold_the_same_rows_each_canary_once() -> None:
    gradients = RNG.normal(size=(3, 2)).astype(np.float32)
    canaries = of([True, False, True])
    wide, apart = canaries.beside(gradients), of([True, False, True]).beside({"w": gradients})
    assert wide.dtype == np.float32
    assert np.array_equal(wide, np.hstack([apart["w"], apart["canaries"]]))
    assert np.array_equal(wide[3:, 2:], [[20.0, 0.0, 0.0], [0.0, 0.0, 20.0]])
    assert not wide[:3, 2:].any()
    assert not wide[3:, :2].any()
    assert canaries.beside(gradients).shape == (3, 5)  # of gradients that come in pieces, the second


def test_what_is_released_is_scored_in_units_of_the_clip_norm_and_the_training_gets_its_own() -> None:
    canaries = of([True, False])
    canaries.beside({"w": np.zeros((1, 3))})
    rest = canaries.read({"w": np.ones(3), "canaries": np.array([0.5, 0.0])}, divided_by=4.0)
    assert list(rest) == ["w"]
    assert np.array_equal(canaries.scores(), [1.0, 0.0])


def test_a_canary_that_is_out_never_takes_part_and_one_that_is_in_does_at_the_rate() -> None:
    steps, rate, canaries = 2_000, 0.3, of([True, False], sample_rate=0.3)
    seen = np.zeros(2)
    for _ in range(steps):
        seen[canaries.drawn()] += 1
        canaries.record(np.zeros(2))
    assert seen[1] == 0
    # six standard deviations: by chance in 2e-9 of seeds, and this seed is fixed
    assert abs(seen[0] - rate * steps) < 6 * math.sqrt(steps * rate * (1 - rate))


def test_each_step_has_the_coins_of_its_own_row() -> None:
    coins = RNG.random((5, 7)) < 0.5
    canaries = of(coins)
    for _ in coins:
        canaries.read(canaries.beside(np.zeros((2, 3))).sum(axis=0))
    assert np.array_equal(canaries.scores(), np.where(coins, 10.0, 0.0))  # nothing was clipped
    with pytest.raises(InvalidSpec, match="more steps than there are coins for, 5"):
        canaries.beside(np.zeros((2, 3)))


def test_the_score_with_noise_known_is_the_log_likelihood_ratio() -> None:
    x, rate, noise = np.linspace(-3, 4, 9), 0.2, 0.7
    out, met = (np.exp(-((x - middle) ** 2) / (2 * noise**2)) for middle in (0.0, 1.0))
    np.testing.assert_allclose(log_ratio(x, rate, noise), np.log(((1 - rate) * out + rate * met) / out), atol=1e-12)
    assert not log_ratio(x, 0.0, noise).any()
    assert log_ratio(np.array([1e6]), 0.5, 1e-3)[0] > 1e11  # no overflow


def test_a_training_that_broke_is_no_verdict_in_one_line() -> None:
    canaries = of([True, True])
    with pytest.raises(UnsoundAudit, match="no step was taken with the canaries"):
        canaries.scores()
    with pytest.raises(UnsoundAudit, match="step 1 was read before"):
        canaries.record(np.zeros(2))
    canaries.beside(np.zeros((1, 1)))
    with pytest.raises(UnsoundAudit, match="step 1 released nan along canary 1"):
        canaries.record(np.array([0.0, np.nan]))
    with pytest.raises(UnsoundAudit, match="step 1 released 3 numbers for 2 canaries"):
        canaries.record(np.zeros(3))
    each = of(np.ones((2, 2)))
    each.read(each.beside(np.zeros((1, 1))).sum(axis=0))
    with pytest.raises(UnsoundAudit, match="took 1 steps, and has coins for 2"):
        each.scores()


def trained(optimizer: DPOptimizer, canaries: Canaries, steps: int = 1, pieces: int = 0) -> None:
    weights = optimizer.params[0]
    for _ in range(steps):
        gradients = [RNG.normal(size=(3, *weights.shape)) for _ in range(max(1, pieces))]
        weights.grad_sample = gradients if pieces else gradients[0]
        optimizer.step()


@for_each("reduction, pieces", [("mean", 0), ("sum", 0), ("mean", 2)])
def test_the_hook_reads_what_the_optimizer_released_for_each_canary(reduction: str, pieces: int) -> None:
    optimizer = DPOptimizer([Parameter(np.zeros((2, 2)))], noise=0.0, reduction=reduction)
    included = np.array([True, False, True])
    canaries = Canaries(optimizer, included, RNG, sample_rate=1.0)
    trained(optimizer, canaries, steps=4, pieces=pieces)
    np.testing.assert_allclose(canaries.scores(), np.where(included, 4.0, 0.0), rtol=1e-6)  # clipped: 1 a step
    assert np.array_equal(canaries.final_scores() > 0.0, included)


def test_a_batch_that_is_split_is_one_step_and_an_optimizer_that_does_not_clip_is_seen() -> None:
    class Forgot(DPOptimizer):
        def clipped(self, norms: np.ndarray) -> np.ndarray:
            return np.ones_like(norms)

    split, forgot = (kind([Parameter(np.zeros(2))], noise=0.0) for kind in (DPOptimizer, Forgot))
    split.skipped = [True, True, False]
    for optimizer, coins, steps, scores in (
        (split, [[True, False]], 3, [[1.0, 0.0]]),
        (forgot, [True, False], 1, [10.0, 0.0]),
    ):
        canaries = Canaries(optimizer, np.array(coins), RNG, sample_rate=1.0)
        trained(optimizer, canaries, steps=steps)
        np.testing.assert_allclose(canaries.scores(), scores, rtol=1e-6)


def test_optimizers_that_step_in_another_way_are_refused_in_one_line() -> None:
    for name, cure in OTHERS.items():
        other = type(name, (DPOptimizer,), {})([Parameter(np.zeros(2))], noise=1.0)
        with pytest.raises(InvalidSpec, match=f"{name}: {cure}"):
            Canaries(other, [True], RNG, sample_rate=1.0)
    with pytest.raises(InvalidSpec, match="that make_private returns, got object"):
        Canaries(object(), [True], RNG, sample_rate=1.0)


def test_input_canaries_touch_nobody_else_and_margins_are_the_log_odds_of_the_label() -> None:
    data = RNG.normal(size=(4, 3)).astype(np.float32)
    wide, canaries = own_features(data, 2, 7.0)
    assert wide.dtype == canaries.dtype == np.float32
    assert np.array_equal(wide[:, :3], data)
    assert np.array_equal(canaries @ canaries.T, 49.0 * np.eye(2))
    assert not (wide @ canaries.T).any()
    logits, labels = RNG.normal(size=(6, 4)), RNG.integers(4, size=6)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    own = chances[range(6), labels]
    np.testing.assert_allclose(margins(logits, labels), np.log(own / (1.0 - own)), atol=1e-12)
    assert margins(logits * 1e5, labels).max() < math.inf  # no overflow


@for_each("rate, told", [(1.0, 0.5), (0.5, 1.0)])
def test_one_rate_is_said_to_the_canaries_and_to_the_audit_of_a_step(rate: float, told: float) -> None:
    def train(included: Any, rng: Any) -> Any:
        return GradientCanaries(included, rng, clip_norm=1.0, sample_rate=rate).scores()

    with pytest.raises(InvalidSpec, match="give both the same"):
        audit_training(train, canaries=200, steps=3, sample_rate=told, claim=GaussianDP(1.0))
    assert GradientCanaries([True], np.random.default_rng(0), clip_norm=1.0, sample_rate=rate).count == 1
