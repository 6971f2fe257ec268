"""Additive noise: one number or a vector of numbers, and noise that does not depend on the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit import validate
from dpaudit.catalogue.entry import Entry, Parameter, Source, Twin
from dpaudit.catalogue.exact.normal import gaussian_epsilon
from dpaudit.catalogue.noise import laplace as laplace_noise
from dpaudit.claims import ApproximateDP, PureDP

Rng = np.random.Generator
Floats = npt.NDArray[np.float64]

EPSILON = Parameter("epsilon", 1.0, "nats", "the claim", validate.positive)
SENSITIVITY = Parameter(
    "sensitivity", 1.0, "units of the answer", "how far one person moves the answer", validate.positive
)
ROOM = "dpaudit.catalogue.additive"
BASSI, CHEEMA, SARKAR = "Bassi 2019, notes 001", "Cheema & Huszár, notes 004", "Sarkar, notes 003"
DMNS = "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis"


def _pure(epsilon: float, **_: Any) -> PureDP:
    return PureDP(epsilon)


# --- Laplace noise on one number ------------------------------------------------------------------------------


def _laplace(data: float, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return data + rng.laplace(scale=sensitivity / epsilon)


def _laplace_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Floats:
    noisy = laplace_noise(rng, sensitivity / epsilon, runs)
    noisy += data
    return noisy


def _laplace_loss(first: float, second: float, epsilon: float, sensitivity: float) -> float:
    return epsilon * abs(first - second) / sensitivity


def _half_noise(data: float, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return data + rng.laplace(scale=sensitivity / (2.0 * epsilon))


def _half_noise_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Floats:
    return _laplace_runs(data, runs, rng, 2.0 * epsilon, sensitivity)


def _half_noise_loss(first: float, second: float, epsilon: float, sensitivity: float) -> float:
    return _laplace_loss(first, second, 2.0 * epsilon, sensitivity)


def _uniform(data: float, rng: Rng, epsilon: float, sensitivity: float, width: float) -> float:
    return data + rng.uniform(0.0, width)


def _uniform_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float, width: float) -> Floats:
    noisy = rng.random(runs)
    noisy *= width
    noisy += data
    return noisy


def _unbounded_loss(first: float, second: float, **_: Any) -> float:
    return math.inf if first != second else 0.0


laplace = Entry(
    module=ROOM,
    name="laplace",
    title="Laplace noise on a number",
    source=Source(f"{BASSI}, 'Laplace mechanism'; {SARKAR}, 'Simple example' (a count)", DMNS),
    formula="the answer plus one draw of Lap(sensitivity / epsilon)",
    neighbours="answers at most `sensitivity` apart",
    program=_laplace,
    sampler=_laplace_runs,
    parameters=(EPSILON, SENSITIVITY),
    promise=_pure,
    loss=_laplace_loss,
    default_pair=(10, 9),
).with_twins(
    Twin(
        name="half_noise",
        title="Laplace noise of half the scale",
        reason="Lap(sensitivity / (2 epsilon)) has a density that falls by e^(2 epsilon) over one sensitivity",
        formula="the answer plus one draw of Lap(sensitivity / (2 epsilon))",
        program=_half_noise,
        sampler=_half_noise_runs,
        loss=_half_noise_loss,
    ),
    Twin(
        name="uniform_noise",
        title="Uniform noise on [0, width]",
        reason="the noise ends: the smallest answers of one dataset cannot come from the other",
        formula="the answer plus one draw from the uniform distribution on [0, width]",
        program=_uniform,
        sampler=_uniform_runs,
        loss=_unbounded_loss,
        parameters=(Parameter("width", 5.0, "units of the answer", "the length of the interval", validate.positive),),
    ),
)


# --- Laplace noise on a vector --------------------------------------------------------------------------------


def _laplace_vector(data: list[float], rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    return tuple(answer + rng.laplace(scale=sensitivity / epsilon) for answer in data)


def _laplace_vector_runs(data: list[float], runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Floats:
    answers = np.asarray(data, float)
    noisy = laplace_noise(rng, sensitivity / epsilon, len(answers) * runs).reshape(len(answers), runs)
    noisy += answers[:, None]
    return noisy.T


def _laplace_vector_loss(first: list[float], second: list[float], epsilon: float, sensitivity: float) -> float:
    return epsilon * float(np.abs(np.subtract(first, second)).sum()) / sensitivity


laplace_vector = Entry(
    module=ROOM,
    name="laplace_vector",
    title="Laplace noise on each of m answers",
    source=Source(f"{BASSI}, 'Laplace mechanism (cont.)'", DMNS),
    formula="every answer plus its own draw of Lap(sensitivity / epsilon)",
    neighbours="vectors at most `sensitivity` apart in the sum of absolute differences",
    program=_laplace_vector,
    sampler=_laplace_vector_runs,
    parameters=(
        EPSILON,
        Parameter(
            "sensitivity",
            10.0,
            "units of the answers",
            "how far one person moves all answers together",
            validate.positive,
        ),
    ),
    promise=_pure,
    loss=_laplace_vector_loss,
    default_pair=([0] * 10, [1] * 10),
)


# --- geometric noise on an integer ----------------------------------------------------------------------------


def _geometric(data: int, rng: Rng, epsilon: float, sensitivity: float) -> int:
    stop = -math.expm1(-epsilon / sensitivity)
    return data + int(rng.geometric(stop)) - int(rng.geometric(stop))


def _geometric_runs(data: int, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> npt.NDArray[np.int64]:
    stop = -math.expm1(-epsilon / sensitivity)
    noisy = rng.geometric(stop, runs)
    noisy -= rng.geometric(stop, runs)
    noisy += data
    return noisy


def _geometric_loss(first: int, second: int, epsilon: float, sensitivity: float) -> float:
    return epsilon * abs(first - second) / sensitivity


geometric = Entry(
    module=ROOM,
    name="geometric",
    title="Two-sided geometric noise on an integer",
    source=Source(None, "Ghosh, Roughgarden & Sundararajan 2009, Universally utility-maximizing privacy mechanisms"),
    formula="the answer plus z with probability proportional to e^(-epsilon |z| / sensitivity), z an integer",
    neighbours="integers at most `sensitivity` apart",
    program=_geometric,
    sampler=_geometric_runs,
    parameters=(EPSILON, SENSITIVITY),
    promise=_pure,
    loss=_geometric_loss,
    default_pair=(10, 9),
)


# --- Gaussian noise on one number -----------------------------------------------------------------------------


def _sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def _gaussian(data: float, rng: Rng, epsilon: float, delta: float, sensitivity: float) -> float:
    sigma = sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    return data + rng.normal(scale=sigma)


def _gaussian_runs(data: float, runs: int, rng: Rng, epsilon: float, delta: float, sensitivity: float) -> Floats:
    noisy = rng.standard_normal(runs)
    noisy *= _sigma(epsilon, delta, sensitivity)
    noisy += data
    return noisy


def _approximate(epsilon: float, delta: float, **_: Any) -> ApproximateDP:
    return ApproximateDP(epsilon, delta)


def _gaussian_loss(first: float, second: float, epsilon: float, delta: float, sensitivity: float) -> float:
    return gaussian_epsilon(delta, abs(first - second) / _sigma(epsilon, delta, sensitivity))


gaussian = Entry(
    module=ROOM,
    name="gaussian",
    title="Gaussian noise on a number, the classic calibration",
    source=Source(
        f"{CHEEMA}, 'Gaussian mechanism version 1'", "Dwork & Roth 2014, The algorithmic foundations, theorem A.1"
    ),
    formula="the answer plus one draw of N(0, sigma^2), sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon",
    neighbours="answers at most `sensitivity` apart",
    program=_gaussian,
    sampler=_gaussian_runs,
    parameters=(
        Parameter("epsilon", 0.5, "nats", "the claim; stated for epsilon < 1", validate.positive),
        Parameter("delta", 0.01, "probability", "the additive part of the claim", validate.open_probability),
        SENSITIVITY,
    ),
    promise=_approximate,
    loss=_gaussian_loss,
    default_pair=(10, 9),
)

ENTRIES = (laplace, laplace_vector, geometric, gaussian)
