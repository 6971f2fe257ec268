"""The hook of jax_privacy, on a fake of its shape; the library itself is audited by `make audit-training`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.training.jax import JaxCanaries, WithCanaries
from tests.cases import for_each
from tests.training import jax_fake

DATA = np.array([[3.0, 4.0], [0.3, 0.4]])  # one gradient is clipped, one is not


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in jax_fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("dpaudit.training.jax.AT_ONCE", 4)


def loss(weights: Any, batch: Any) -> float:
    return float(batch[0] @ weights)


def train(included: Any, steps: int = 3, noise: float = 0.0, rate: float = 1.0, **options: Any) -> Any:
    """What the privatizer released for the model in each step, and the scores."""
    canaries = JaxCanaries(included, np.random.default_rng(1), sample_rate=rate, noise_multiplier=noise or None)
    gradient = canaries.clipped_grad(loss, **{"l2_clip_norm": 1.0, **options})
    privatizer = canaries.privatizer(jax_fake.privatizer(noise, np.random.default_rng(2)))
    state, released = privatizer.init(np.zeros(2)), []
    for _ in range(steps):
        found = gradient(np.zeros(2), DATA)
        noisy, state = privatizer.update(found[0] if gradient.has_aux else found, state)
        released.append(noisy)
    assert state == steps
    return np.array(released), canaries.scores()


@for_each(
    "options", [{}, {"l2_clip_norm": 0.5}, {"normalize_by": 64.0}, {"rescale_to_unit_norm": True, "l2_clip_norm": 7}]
)
def test_a_canary_that_is_in_adds_the_whole_sensitivity_and_the_model_gets_what_it_got(options: dict[str, Any]) -> None:
    released, scores = train(np.array([True, False, True]), **options)
    assert np.allclose(scores, [3.0, 0.0, 3.0])
    alone = jax_fake.clipped_grad(loss, **{"l2_clip_norm": 1.0, **options})(np.zeros(2), DATA)
    assert np.array_equal(released, [alone] * 3)


def test_each_step_has_its_coins_and_a_canary_takes_part_at_the_rate() -> None:
    coins = np.random.default_rng(3).random((4, 10)) < 0.5  # more than are in memory together
    assert np.allclose(train(coins, steps=4)[1], coins)
    scores = train(np.ones((100, 8), bool), steps=100, rate=0.1)[1]
    # six standard deviations: by chance in 2e-9 of seeds, and this seed is fixed
    assert abs(scores.sum() - 80) < 6 * (800 * 0.1 * 0.9) ** 0.5


def test_what_else_a_gradient_returns_stays_beside_it() -> None:
    canaries = JaxCanaries(np.array([True]), np.random.default_rng(0), sample_rate=1.0)
    gradient = canaries.clipped_grad(loss, has_aux=True, l2_clip_norm=1.0)
    found, other = gradient(np.zeros(2), DATA)
    assert isinstance(found, WithCanaries)
    assert (other, gradient.l2_norm_bound) == ("values", 1.0)


def test_another_function_may_clip() -> None:
    asked: list[Any] = []

    def using(fun: Any, **options: Any) -> Any:
        asked.append(options)
        return jax_fake.clipped_grad(fun, l2_clip_norm=0.1, **options)

    canaries = JaxCanaries(np.array([True]), np.random.default_rng(0), sample_rate=1.0)
    found = canaries.clipped_grad(loss, using=using)(np.zeros(2), DATA)
    assert np.allclose(found.canaries, 0.1)
    assert [sorted(each) for each in asked] == [[], ["batch_argnums", "microbatch_size"]]


def test_errors_inside_a_step_come_out_at_the_end() -> None:
    with pytest.raises(UnsoundAudit, match="step 1 released nan along canary 0"):
        train(np.array([True]), noise=float("nan"))
    with pytest.raises(InvalidSpec, match="more steps than there are coins for, 2"):
        train(np.ones((2, 5), bool))
    with pytest.raises(UnsoundAudit, match="no step was taken"):
        train(np.array([True]), steps=0)


def test_a_sum_without_canaries_or_without_a_bound_is_refused() -> None:
    canaries = JaxCanaries(np.array([True]), np.random.default_rng(0), sample_rate=1.0)
    with pytest.raises(InvalidSpec, match="no canaries in them"):
        canaries.privatizer(jax_fake.privatizer(1.0, np.random.default_rng(0))).update(np.zeros(2), 0)
    with pytest.raises(InvalidSpec, match="sensitivity of clipped_grad must be finite"):
        canaries.clipped_grad(loss, l2_clip_norm=np.inf)
