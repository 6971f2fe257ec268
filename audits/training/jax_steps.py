"""jax_privacy 2.0.0 on scikit-learn's digits: its clipped_grad and its privatizer run, with canaries beside its sums

The rows are those of `opacus_steps`, with a training by jax_privacy: its own Poisson sampling draws the batches, padded
to one size as its guide says. The last rows are an execution plan that the library has calibrated itself, and a clip
norm that the noise does not know of.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from audits.training.opacus_steps import DELTA, Train, over, same_rows, spread, verdicts
from audits.training.table import Row
from dpaudit import ApproximateDP, GaussianDP
from dpaudit.training.jax import JaxCanaries

ENVIRONMENT = "jax"
RATE = 0.5
PROMISED = ApproximateDP(2.0, DELTA)  # what the plan is asked for


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return (images / 16.0).astype(np.float32), labels


def loss(weights: Any, batch: Any) -> Any:
    """The softmax loss of a linear model."""
    import jax

    images, labels = batch
    logits = images @ weights["matrix"] + weights["offset"]
    chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -chosen.mean()


def training(steps: int, noise: float, rate: float, clip_norm: float = 1.0) -> Train:
    """A user's training by jax_privacy, with the hook: the lines that it adds or changes end in a mark."""

    def train(included: Any, rng: np.random.Generator) -> Any:
        import jax
        from jax_privacy.batch_selection import CyclicPoissonSampling, pad_to_multiple_of
        from jax_privacy.noise_addition import gaussian_privatizer

        images, labels = digits()
        canaries = JaxCanaries(included, rng, sample_rate=rate, noise_multiplier=noise)  # <
        gradient = canaries.clipped_grad(loss, l2_clip_norm=clip_norm)  # <
        privatizer = gaussian_privatizer(stddev=noise, prng_key=int(rng.integers(2**31)))
        privatizer = canaries.privatizer(privatizer)  # <
        weights = {"matrix": jax.numpy.zeros((64, 10)), "offset": jax.numpy.zeros(10)}

        @jax.jit
        def step(weights: Any, state: Any, batch: Any, padding: Any) -> Any:
            released, state = privatizer.update(gradient(weights, batch, is_padding_example=padding), state)
            return jax.tree.map(lambda w, g: w - RATE * g / (rate * len(labels)), weights, released), state

        state, size = privatizer.init(weights), min(len(labels), round(1.5 * rate * len(labels)))
        for chosen in CyclicPoissonSampling(rate, steps).batch_iterator(len(labels), rng=rng):
            batch = pad_to_multiple_of(chosen, size)
            weights, state = step(weights, state, (images[batch], labels[batch]), batch == -1)
        return canaries.scores()  # <

    return train


def planned(included: Any, rng: np.random.Generator) -> Any:
    """Training by an execution plan, which calibrates its noise to `PROMISED` and keeps it to itself."""
    import jax

    plan, images, labels = plan_of_100(), *digits()
    canaries = JaxCanaries(included, rng, sample_rate=1.0)  # <
    gradient = canaries.clipped_grad(loss, using=plan.clipped_grad)  # <
    privatizer = canaries.privatizer(plan.noise_addition_transform)  # <
    weights = {"matrix": jax.numpy.zeros((64, 10)), "offset": jax.numpy.zeros(10)}

    @jax.jit
    def step(weights: Any, state: Any) -> Any:
        released, state = privatizer.update(gradient(weights, (images, labels)), state)
        return jax.tree.map(lambda w, g: w - RATE * g / len(labels), weights, released), state

    key = jax.random.key(int(rng.integers(2**31)))  # the plan has one seed: another for each training
    state = (key, *privatizer.init(weights)[1:])
    for _ in range(100):
        weights, state = step(weights, state)
    return canaries.scores()  # <


@functools.cache
def plan_of_100() -> Any:
    from dp_accounting import NeighboringRelation, pld
    from jax_privacy.batch_selection import PartitionType
    from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig

    return BandMFExecutionPlanConfig(
        iterations=100,
        strategy=np.ones(1),
        epsilon=PROMISED.epsilon,
        delta=PROMISED.delta,
        partition_type=PartitionType.INDEPENDENT,
        accountant=pld.PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE),
    ).plan


def rows() -> Iterator[Row]:
    import jax_privacy  # noqa: F401  its loading is not the audit's

    yield from same_rows(training)
    results, cpu = over(range(3), planned, canaries=5_000, claim=PROMISED)
    low, middle, high = spread(result.epsilon_lower for result in results)
    fine = low > 0.0 and high <= PROMISED.epsilon
    found = f"certified {middle:.2f} ({low:.2f} to {high:.2f})"
    yield Row("an execution plan made for epsilon 2; 5,000 canaries", "above 0, at most 2", found, fine, cpu)
    twice = training(steps=100, noise=5.0, rate=1.0, clip_norm=2.0)
    name = "clip norm 2, and noise for 1; 2,000 canaries"
    yield verdicts(
        name, "refuted in at least 19 of 20 seeds", range(19, 21), train=twice, canaries=2_000, claim=GaussianDP(2.0)
    )
