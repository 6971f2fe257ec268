"""Noise on vectors that fits a norm: the norm mechanism of the notes, the same without its 2, and normal noise."""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.additive.normal import DELTA, SMALL_EPSILON, classic_sigma
from dpaudit.catalogue.additive.single import CS208, in_room
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around_each, normal_each
from dpaudit.catalogue.promises import EPSILON, approximate, unbounded

Vector = list[float]
Norm = Literal["l1", "l2", "linf"]
Noise = Callable[[int, float, int, Rng], Reals]  # (dimensions, scale, runs, rng) -> (run, coordinate)

ORDERS: dict[Norm, float] = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
WORDS: dict[Norm, str] = {"l1": "sum of absolute differences", "l2": "Euclidean distance", "linf": "largest difference"}
HARDT_TALWAR = "Hardt & Talwar 2010, On the geometry of differential privacy"
NORM = Parameter(
    "sensitivity", 1.0, "units of the answers", "how far one person moves them, in the norm", validate.positive
)


def _in_l1_ball(dimensions: int, rng: Rng) -> list[float]:
    parts = rng.exponential(size=dimensions + 1)
    return [rng.choice([-1.0, 1.0]) * part / parts.sum() for part in parts[:dimensions]]


def _in_l2_ball(dimensions: int, rng: Rng) -> list[float]:
    direction = rng.normal(size=dimensions)
    length = rng.random() ** (1.0 / dimensions)
    return [float(length * x) for x in direction / math.hypot(*direction)]


def _in_linf_ball(dimensions: int, rng: Rng) -> list[float]:
    return [rng.uniform(-1.0, 1.0) for _ in range(dimensions)]


def _run(
    data: Vector,
    rng: Rng,
    epsilon: float,
    sensitivity: float,
    *,
    ball: Callable[[int, Rng], list[float]],
    factor: float,
) -> tuple[float, ...]:
    radius = rng.gamma(len(data) + 1, factor * sensitivity / epsilon)
    return tuple(answer + radius * z for answer, z in zip(data, ball(len(data), rng), strict=True))


def _code(norm: Norm, factor: float) -> Code:
    return Code(
        partial(_run, ball=BALLS[norm], factor=factor),
        partial(_runs, noise=NOISES[norm], factor=factor),
        partial(_loss, norm=norm, factor=factor),
    )


def _l1_noise(dimensions: int, scale: float, runs: int, rng: Rng) -> Reals:
    """In the l1 norm e^(-|z| / scale) is a product over the coordinates: independent Laplace noise."""
    return around_each(np.zeros(dimensions), scale, runs, rng)


def _directions(dimensions: int, runs: int, rng: Rng) -> Reals:
    """Uniform points of the Euclidean unit sphere (coordinate, run)."""
    points = rng.standard_normal((dimensions, runs))
    points /= np.sqrt(np.einsum("ij,ij->j", points, points))
    return points


def _l2_noise(dimensions: int, scale: float, runs: int, rng: Rng) -> Reals:
    """The length of z has the density r^(d-1) e^(-r / scale), and its direction is uniform."""
    return (_directions(dimensions, runs, rng) * rng.standard_gamma(dimensions, runs) * scale).T


def _linf_noise(dimensions: int, scale: float, runs: int, rng: Rng) -> Reals:
    points = rng.random((dimensions, runs)) * 2.0 - 1.0
    return (points * rng.standard_gamma(dimensions + 1, runs) * scale).T


def _exponential_noise(dimensions: int, scale: float, runs: int, rng: Rng) -> Reals:
    return (_directions(dimensions, runs, rng) * rng.standard_exponential(runs) * scale).T


def _shell_noise(dimensions: int, scale: float, runs: int, rng: Rng) -> Reals:
    return (_directions(dimensions, runs, rng) * (dimensions * scale)).T


def _runs(
    data: Vector, runs: int, rng: Rng, epsilon: float, sensitivity: float, *, noise: Noise, factor: float
) -> Reals:
    noisy = noise(len(data), factor * sensitivity / epsilon, runs, rng)
    noisy += np.asarray(data, float)
    return noisy


def _loss(first: Vector, second: Vector, epsilon: float, sensitivity: float, *, norm: Norm, factor: float) -> float:
    """The log ratio is (|z - x| - |z - y|) / scale, and largest where z lies beyond both on the line through them."""
    move = float(np.linalg.norm(np.subtract(first, second), ORDERS[norm]))
    return epsilon * move / (factor * sensitivity)


BALLS = {"l1": _in_l1_ball, "l2": _in_l2_ball, "linf": _in_linf_ball}
NOISES: dict[str, Noise] = {"l1": _l1_noise, "l2": _l2_noise, "linf": _linf_noise}


def _norm(norm: Norm, first: Vector, second: Vector, *, tight: bool) -> Entry:
    """As the notes print it, or `tight`: without their factor 2."""
    if tight:
        formula = (
            f"e^(-epsilon |z| / sensitivity), |z| the {norm} norm: a radius of Gamma(m + 1, sensitivity / epsilon) "
            "times a uniform point of the unit ball"
        )
    else:
        formula = f"e^(-epsilon |z| / (2 sensitivity)), |z| the {norm} norm; the true loss is epsilon / 2"
    section = f"{CS208}, section 5.2 (the norm mechanism){', with the 2 left out' if tight else ''}"
    form = "without the factor 2" if tight else "as the notes print it"
    return in_room(
        name=f"{'k_' if tight else ''}norm_{norm}",
        title=f"The norm mechanism for the {norm} norm, {form}",
        source=Source(section, HARDT_TALWAR),
        formula=f"the vector plus z of density proportional to {formula}",
        neighbours=f"vectors at most `sensitivity` apart in the {norm} norm, the {WORDS[norm]}",
        code=_code(norm, 1.0 if tight else 2.0),
        parameters=(EPSILON, NORM),
        default_pair=(first, second),
    )


def _outwards(data: Vector, rng: Rng, radius: float) -> tuple[float, ...]:
    direction = rng.normal(size=len(data))
    return tuple(answer + radius * z / math.hypot(*direction) for answer, z in zip(data, direction, strict=True))


def _exponential_radius(data: Vector, rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    return _outwards(data, rng, rng.exponential(sensitivity / epsilon))


def _constant_length(data: Vector, rng: Rng, epsilon: float, sensitivity: float) -> tuple[float, ...]:
    return _outwards(data, rng, len(data) * sensitivity / epsilon)


def _exponential_loss(first: Vector, second: Vector, epsilon: float, sensitivity: float) -> float:
    """The density is e^(-r / scale) / r^(m - 1) up to a factor: with m = 1 it is Laplace noise, else infinite at 0."""
    if len(first) > 1:
        return math.inf if list(first) != list(second) else 0.0
    return epsilon * abs(first[0] - second[0]) / sensitivity


norm_l1 = _norm("l1", [0.0, 0.0], [0.75, 0.25], tight=False)
norm_l2 = _norm("l2", [0.0, 0.0], [0.6, 0.8], tight=False)
norm_linf = _norm("linf", [0.0, 0.0], [1.0, 1.0], tight=False)
k_norm_l2 = _norm("l2", [0.0, 0.0], [0.6, 0.8], tight=True).with_twins(
    """exponential_radius: A random direction with a length from the exponential law
        in m dimensions the length must be Gamma(m): here outputs crowd at the answer, and at no other place
        the vector plus a uniform direction times a draw of Exp(sensitivity / epsilon)
    constant_length: A random direction with the expected length
        outputs lie on a sphere around the answer, and two spheres have next to no points in common
        the vector plus a uniform direction times m sensitivity / epsilon
    largest_difference: Noise for the Euclidean norm, claimed for the largest difference
        vectors whose m coordinates all move by the sensitivity are sqrt(m) sensitivities apart
        the vector plus z of density proportional to e^(-epsilon |z| / sensitivity), |z| the l2 norm""",
    exponential_radius=Twin(
        code=Code(_exponential_radius, partial(_runs, noise=_exponential_noise, factor=1.0), _exponential_loss)
    ),
    constant_length=Twin(
        code=Code(_constant_length, partial(_runs, noise=_shell_noise, factor=1.0), unbounded),
        default_pair=([0.0, 0.0], [1.0, 0.0]),
    ),
    largest_difference=Twin(
        neighbours="vectors whose coordinates each move by at most `sensitivity`",
        default_pair=([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
    ),
)
k_norm_linf = _norm("linf", [0.0, 0.0], [1.0, 1.0], tight=True)


def _gaussian_vector(data: Vector, rng: Rng, epsilon: float, delta: float, sensitivity: float) -> tuple[float, ...]:
    sigma = sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    return tuple(answer + rng.normal(scale=sigma) for answer in data)


def _sigma(data: Vector, epsilon: float, delta: float, sensitivity: float) -> float:
    return classic_sigma(epsilon, delta, sensitivity)


gaussian_vector = in_room(
    name="gaussian_vector",
    title="Gaussian noise on each of m answers, for their Euclidean distance",
    source=Source(f"{CS208}, claim 5.5", "Dwork & Roth 2014, The algorithmic foundations, theorem A.1"),
    formula="every answer plus its own draw of N(0, sigma^2), sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon",
    neighbours="vectors at most `sensitivity` apart in Euclidean distance",
    code=normal_each(lambda data, **_: data, _sigma, _gaussian_vector),
    parameters=(SMALL_EPSILON, DELTA, NORM),
    promise=approximate,
    default_pair=([0.0, 0.0], [0.6, 0.8]),
).with_twins(
    """sensitivity_of_one: m answers with the sigma that one of them would need
        m answers that all move together are sqrt(m) times as far apart as one of them
        every answer plus its own draw of N(0, sigma^2), sigma made with sensitivity / sqrt(m)""",
    sensitivity_of_one=Twin(
        at=lambda data, sensitivity, **_: {"sensitivity": sensitivity / math.sqrt(len(data))},
        default_pair=([0.0] * 16, [0.25] * 16),
    ),
)
