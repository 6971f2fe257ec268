"""Gradient descent on a linear model, one run at a time, as the notes write it: DP-GD and the mistakes in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.catalogue.learning.descent.steps import Data, Record, Rng

Vector = npt.NDArray[np.float64]
Path = tuple[float, ...]


def linear_gradient(model: Vector, record: Record) -> Vector:
    """The gradient of half the squared error of a record.

    >>> linear_gradient(np.array([0.5, 0.0]), [[2.0, 1.0], 3.0])
    array([-4., -2.])
    """
    features = np.asarray(record[0], float)
    return np.asarray((features @ model - record[1]) * features)


def clipped(gradient: Vector, clip: float) -> Vector:
    """The vector, shortened to an l2 norm of `clip` where it is longer.

    >>> clipped(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    norm = float(np.linalg.norm(gradient))
    return gradient if norm <= clip else gradient * (clip / norm)


def flattened(models: list[Vector]) -> Path:
    """The models of a run as one tuple: all steps of the first coordinate, then those of the next.

    >>> flattened([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    (1.0, 3.0, 2.0, 4.0)
    """
    return tuple(float(weight) for coordinate in zip(*models, strict=True) for weight in coordinate)


def gradient_descent(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """Algorithm 1 of the notes."""
    model = np.zeros(len(data[0][0]))
    for _ in range(steps):
        total = sum(linear_gradient(model, record) for record in data)
        model = model - learning_rate * total / size
    return tuple(model.tolist())


def dp_gradient_descent(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """Algorithm 2 of the notes; the model after the last step."""
    model = np.zeros(len(data[0][0]))
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / size
    return tuple(model.tolist())


def dp_gradient_descent_iterates(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """Algorithm 2 of the notes; the models after every step."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / size
        models.append(model)
    return flattened(models)


# --- mistakes, the last model seen ----------------------------------------------------------------------------


def no_clipping(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """Gradients are not clipped."""
    model = np.zeros(len(data[0][0]))
    for _ in range(steps):
        total = sum(linear_gradient(model, record) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / size
    return tuple(model.tolist())


def clipping_after_averaging(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """The average gradient is clipped, not each record's."""
    model = np.zeros(len(data[0][0]))
    for _ in range(steps):
        average = np.sum([linear_gradient(model, record) for record in data], axis=0) / len(data)
        noise = rng.normal(scale=noise_multiplier * clip / size, size=len(model))
        model = model - learning_rate * (clipped(average, clip) + noise)
    return tuple(model.tolist())


def noise_at_the_end(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """The noise of one step, added to the last model."""
    model = np.zeros(len(data[0][0]))
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        model = model - learning_rate * total / size
    noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
    return tuple((model - learning_rate * noise / size).tolist())


def averaged(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """The mean of the models of all steps."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / size
        models.append(model)
    return tuple(np.mean(models, axis=0).tolist())


# --- mistakes, all models seen --------------------------------------------------------------------------------


def noise_unscaled(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """The noise does not know the clip norm."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier, size=len(model))
        model = model - learning_rate * (total + noise) / size
        models.append(model)
    return flattened(models)


def noise_divided_twice(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """The noise, scaled for an average, is averaged once more."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip / size, size=len(model))
        model = model - learning_rate * (total + noise) / size
        models.append(model)
    return flattened(models)


def noise_in_the_first_step(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """Noise in the first step, none later."""
    model, models = np.zeros(len(data[0][0])), []
    for step in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model)) if step == 0 else 0.0
        model = model - learning_rate * (total + noise) / size
        models.append(model)
    return flattened(models)


def one_noise(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """One draw of noise, used again in every step."""
    model, models = np.zeros(len(data[0][0])), []
    noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        model = model - learning_rate * (total + noise) / size
        models.append(model)
    return flattened(models)


def seeded_by_the_data(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    seeds: int,
) -> Path:
    """The generator of the noise is seeded with the number of records and the number of the experiment."""
    own = np.random.default_rng([len(data), int(rng.integers(seeds))])
    return dp_gradient_descent_iterates(data, own, noise_multiplier, clip, learning_rate, steps, size)


def update_clipped(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """Each record's step is clipped, and the noise is multiplied by the learning rate all the same."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(clipped(learning_rate * linear_gradient(model, record), clip) for record in data)
        noise = learning_rate * rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - (total + noise) / size
        models.append(model)
    return flattened(models)


def clipping_per_coordinate(
    data: Data, rng: Rng, noise_multiplier: float, clip: float, learning_rate: float, steps: int, size: float
) -> Path:
    """Every coordinate of a gradient is clipped by itself."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(np.clip(linear_gradient(model, record), -clip, clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / size
        models.append(model)
    return flattened(models)


def stopping(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    tolerance: float,
) -> dict[int, float]:
    """Ends as soon as the mean absolute error on the training data is small; each value by its place in the path."""
    model, output = np.zeros(len(data[0][0])), {}
    for step in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * (total + noise) / size
        output.update({coordinate * steps + step: float(weight) for coordinate, weight in enumerate(model)})
        errors = [abs(np.asarray(features, float) @ model - label) for features, label in data]
        if sum(errors) / len(data) < tolerance:
            break
    return dict(sorted(output.items()))


# --- harmless changes, all models seen ------------------------------------------------------------------------


def with_momentum(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    momentum: float,
) -> Path:
    """Each step goes along a fading sum of the noisy gradients."""
    model, velocity, models = np.zeros(len(data[0][0])), np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        velocity = momentum * velocity + (total + noise) / size
        model = model - learning_rate * velocity
        models.append(model)
    return flattened(models)


def regularised(
    data: Data,
    rng: Rng,
    noise_multiplier: float,
    clip: float,
    learning_rate: float,
    steps: int,
    size: float,
    penalty: float,
) -> Path:
    """The gradient of the regulariser joins after clipping and noise."""
    model, models = np.zeros(len(data[0][0])), []
    for _ in range(steps):
        total = sum(clipped(linear_gradient(model, record), clip) for record in data)
        noise = rng.normal(scale=noise_multiplier * clip, size=len(model))
        model = model - learning_rate * ((total + noise) / size + penalty * model)
        models.append(model)
    return flattened(models)
