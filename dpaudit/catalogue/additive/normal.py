"""Normal noise on one number, by four calibrations to one (epsilon, delta)-DP claim, and for claims that are exact.

Those that describe it exactly are zero-concentrated DP and Gaussian DP. And noise on vectors that fits a norm: the norm
mechanism of the notes, the same without its 2, and normal noise.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.additive.single import SENSITIVITY, in_room, of_number
from dpaudit.catalogue.entry import Code, Entry, Harmless, Parameter, Program, Source, Twin, remade
from dpaudit.catalogue.noise import Rng, around_each, normal_each
from dpaudit.catalogue.promises import CHEEMA, CS208, DELTA, EPSILON, also, approximate, pure, unbounded
from dpaudit.claims import GaussianDP, ZeroConcentratedDP
from dpaudit.losses.distribution import gaussian_epsilon, gaussian_mu, gaussian_mu_of_tail

Width = Callable[..., float]  # sigma from the parameters of an entry

# where the rule of the notes is true: it is stated for epsilon < 1, and fails from about 6.8 on
_STATED = also(validate.positive, lambda x: x <= 1.0, "be at most 1", "; the rule is not stated for a larger one")
SMALL_EPSILON = Parameter("epsilon", 0.5, "nats", "the claim; the rule is stated for epsilon < 1", _STATED)
_BELOW_A_HALF = also(validate.open_probability, lambda x: x < 0.5, "lie below 0.5")
SMALL_DELTA = Parameter("delta", 0.01, "probability", "the additive part of the claim, below 1/2", _BELOW_A_HALF)


def _around(data: float, rng: Rng, sigma: float) -> float:
    return data + rng.normal(scale=sigma)


def normal(width: Width, program: Program | None = None) -> Code:
    """Normal noise around one number: sigma is made from the parameters."""
    run = remade(_around, lambda **given: {"sigma": width(**given)})

    def sampler(data: float, runs: int, rng: Rng, **parameters: float) -> Reals:
        noisy = rng.standard_normal(runs)
        noisy *= width(**parameters)
        noisy += data
        return noisy

    def exact(first: float, second: float, **parameters: float) -> float:
        """The exact epsilon at the claim's delta, or rho, or mu."""
        if "rho" in parameters:
            return (first - second) ** 2 / (2.0 * width(**parameters) ** 2)
        mu = abs(first - second) / width(**parameters)
        return gaussian_epsilon(parameters["delta"], mu) if "delta" in parameters else mu

    return Code(program or run, sampler, exact)


def classic_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Version 1 of the notes: sensitivity sqrt(2 ln(1.25 / delta)) / epsilon.

    >>> round(classic_sigma(1.0, 1e-5, 1.0), 3)
    4.845
    """
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def _laplace_scale(data: float, rng: Rng, epsilon: float, delta: float, sensitivity: float) -> float:
    return data + rng.normal(scale=sensitivity / epsilon)


gaussian = of_number(
    name="gaussian",
    title="Gaussian noise on a number, the classic calibration",
    source=Source(
        f"{CHEEMA}, 'Gaussian mechanism version 1'", "Dwork & Roth 2014, The algorithmic foundations, theorem A.1"
    ),
    formula="the answer plus one draw of N(0, sigma^2), sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon",
    code=normal(classic_sigma),
    parameters=(SMALL_EPSILON, DELTA, SENSITIVITY),
    promise=approximate,
).with_twins(
    """sigma_as_variance: Gaussian noise whose variance is what sigma should be
        the standard deviation is sqrt(sigma), and sigma is above 1: too little noise
        the answer plus one draw of N(0, sigma), sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon
    laplace_scale: Gaussian noise with the scale of Laplace noise
        normal tails fall faster than those of Lap(b), so sigma = b leaves more than delta beyond epsilon
        the answer plus one draw of N(0, (sensitivity / epsilon)^2)
    without_delta: Gaussian noise claimed as pure DP
        the log ratio of two normal densities grows in the tails without bound: delta is not to be left out""",
    sigma_as_variance=Twin(
        code=normal(lambda epsilon, delta, sensitivity: math.sqrt(classic_sigma(epsilon, delta, sensitivity)))
    ),
    laplace_scale=Twin(code=normal(lambda epsilon, delta, sensitivity: sensitivity / epsilon, _laplace_scale)),
    without_delta=Twin(code=Code(loss=unbounded), promise=pure),
)


def printed_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Version 2 as the notes print it, the formula of `gaussian_version_2`.

    >>> round(printed_sigma(1.0, 1e-5, 1.0), 3)
    6.442
    """
    c = math.sqrt(2.0 * math.log(2.0 / (math.sqrt(16.0 * delta + 1.0) - 1.0)))
    return sensitivity * (c + math.sqrt(c * c + epsilon)) / (epsilon * math.sqrt(2.0))


def halved_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The same with c^2 half as large.

    >>> round(halved_sigma(1.0, 1e-5, 1.0), 3)
    4.609
    """
    c = math.sqrt(math.log(2.0 / (math.sqrt(16.0 * delta + 1.0) - 1.0)))
    return sensitivity * (c + math.sqrt(c * c + epsilon)) / (epsilon * math.sqrt(2.0))


gaussian_version_2 = of_number(
    name="gaussian_version_2",
    title="Gaussian noise on a number, the notes' second calibration as printed",
    source=Source(
        f"{CHEEMA}, 'Gaussian mechanism version 2'",
        "after Zhao et al. 2019, Reviewing and improving the Gaussian mechanism",
    ),
    formula="the answer plus one draw of N(0, sigma^2), "
    "sigma = sensitivity (c + sqrt(c^2 + epsilon)) / (epsilon sqrt(2)), c^2 = 2 ln(2 / (sqrt(16 delta + 1) - 1))",
    code=normal(printed_sigma),
    parameters=(EPSILON, SMALL_DELTA, SENSITIVITY),
    promise=approximate,
)

gaussian_version_2_corrected = replace(
    gaussian_version_2,
    name="gaussian_version_2_corrected",
    title="Gaussian noise on a number, the second calibration without its extra factor 2",
    source=Source(
        f"{CHEEMA}, 'Gaussian mechanism version 2', with c^2 halved",
        "after Zhao et al. 2019, Reviewing and improving the Gaussian mechanism",
    ),
    formula="the answer plus one draw of N(0, sigma^2), "
    "sigma = sensitivity (c + sqrt(c^2 + epsilon)) / (epsilon sqrt(2)), c^2 = ln(2 / (sqrt(16 delta + 1) - 1))",
    code=normal(halved_sigma),
)


def analytic_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The least sigma that is (epsilon, delta)-DP.

    >>> round(analytic_sigma(1.0, 1e-5, 1.0), 3)
    3.731
    """
    return sensitivity / gaussian_mu(epsilon, delta)


def tail_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The least sigma at which the privacy loss exceeds epsilon with probability at most delta.

    >>> round(tail_sigma(1.0, 1e-5, 1.0), 3)
    4.379
    """
    return sensitivity / gaussian_mu_of_tail(epsilon, delta)


gaussian_analytic = of_number(
    name="gaussian_analytic",
    title="Gaussian noise on a number, the analytic calibration",
    source=Source(None, "Balle & Wang 2018, Improving the Gaussian mechanism for differential privacy"),
    formula="the answer plus one draw of N(0, sigma^2), sigma the least for which, with D the sensitivity, "
    "Phi(D / (2 sigma) - epsilon sigma / D) - e^epsilon Phi(-D / (2 sigma) - epsilon sigma / D) <= delta",
    code=normal(analytic_sigma),
    parameters=(EPSILON, DELTA, SENSITIVITY),
    promise=approximate,
).with_twins(
    """tail_only: Calibrated so that the privacy loss exceeds epsilon with probability delta
        notes 004 define delta-approximate DP by this tail, which is more than (epsilon, delta)-DP asks for
        the answer plus one draw of N(0, sigma^2), sigma the least for which, with D the sensitivity, Phi(D / (2 \
            sigma) - epsilon sigma / D) <= delta""",
    tail_only=Harmless(code=normal(tail_sigma)),
)


RHO = Parameter("rho", 1.0, "nats", "the claim: the Rényi divergence of order a is at most rho a")


gaussian_zcdp = of_number(
    name="gaussian_zcdp",
    title="Gaussian noise on a number, as zero-concentrated DP",
    source=Source(
        f"{CHEEMA}, 'Zero concentrated DP'",
        "Bun & Steinke 2016, Concentrated differential privacy: simplifications, extensions, and lower bounds",
    ),
    formula="the answer plus one draw of N(0, sigma^2), sigma^2 = sensitivity^2 / (2 rho)",
    code=normal(lambda rho, sensitivity: sensitivity / math.sqrt(2.0 * rho)),
    parameters=(RHO, SENSITIVITY),
    promise=lambda rho, **_: ZeroConcentratedDP(rho),
).with_twins(
    """variance_as_sigma: Gaussian noise with sigma^2 passed as the standard deviation
        the variance is below 1 here, and its square far below: rho is 1 / sigma^2 times too large
        the answer plus one draw of N(0, sigma^4), sigma^2 = sensitivity^2 / (2 rho)""",
    variance_as_sigma=Twin(code=normal(lambda rho, sensitivity: sensitivity * sensitivity / (2.0 * rho))),
)


def _gdp(data: float, rng: Rng, mu: float, sensitivity: float) -> float:
    return data + rng.normal(scale=sensitivity / mu)


gaussian_gdp = of_number(
    name="gaussian_gdp",
    title="Gaussian noise on a number, as Gaussian DP",
    source=Source(None, "Dong, Roth & Su 2022, Gaussian differential privacy, theorem 2.7"),
    formula="the answer plus one draw of N(0, (sensitivity / mu)^2)",
    code=normal(lambda mu, sensitivity: sensitivity / mu, _gdp),
    parameters=(Parameter("mu", 1.0, "standard deviations", "the claim"), SENSITIVITY),
    promise=lambda mu, **_: GaussianDP(mu),
)


Vector = list[float]
Norm = Literal["l1", "l2", "linf"]
Noise = Callable[[int, float, int, Rng], Reals]  # (dimensions, scale, runs, rng) -> (run, coordinate)

ORDERS: dict[Norm, float] = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
WORDS: dict[Norm, str] = {"l1": "sum of absolute differences", "l2": "Euclidean distance", "linf": "largest difference"}
HARDT_TALWAR = "Hardt & Talwar 2010, On the geometry of differential privacy"
NORM = Parameter("sensitivity", 1.0, "units of the answers", "how far one person moves them, in the norm")


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


def _directions(dimensions: int, runs: int, rng: Rng) -> Reals:
    """Uniform points of the Euclidean unit sphere (coordinate, run)."""
    points = rng.standard_normal((dimensions, runs))
    points /= np.sqrt(np.einsum("ij,ij->j", points, points))
    return points


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
NOISES: dict[str, Noise] = {
    # e^(-|z| / scale) is a product over the coordinates: independent Laplace noise
    "l1": lambda dimensions, scale, runs, rng: around_each(np.zeros(dimensions), scale, runs, rng),
    # the length of z has the density r^(d-1) e^(-r / scale), and its direction is uniform
    "l2": lambda dimensions, scale, runs, rng: (
        (_directions(dimensions, runs, rng) * rng.standard_gamma(dimensions, runs) * scale).T
    ),
    "linf": lambda dimensions, scale, runs, rng: (
        ((rng.random((dimensions, runs)) * 2.0 - 1.0) * rng.standard_gamma(dimensions + 1, runs) * scale).T
    ),
}


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
    factor = 1.0 if tight else 2.0
    form = "without the factor 2" if tight else "as the notes print it"
    return in_room(
        name=f"{'k_' if tight else ''}norm_{norm}",
        title=f"The norm mechanism for the {norm} norm, {form}",
        source=Source(section, HARDT_TALWAR),
        formula=f"the vector plus z of density proportional to {formula}",
        neighbours=f"vectors at most `sensitivity` apart in the {norm} norm, the {WORDS[norm]}",
        code=Code(
            partial(_run, ball=BALLS[norm], factor=factor),
            partial(_runs, noise=NOISES[norm], factor=factor),
            partial(_loss, norm=norm, factor=factor),
        ),
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


gaussian_vector = in_room(
    name="gaussian_vector",
    title="Gaussian noise on each of m answers, for their Euclidean distance",
    source=Source(f"{CS208}, claim 5.5", "Dwork & Roth 2014, The algorithmic foundations, theorem A.1"),
    formula="every answer plus its own draw of N(0, sigma^2), sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon",
    neighbours="vectors at most `sensitivity` apart in Euclidean distance",
    code=normal_each(lambda data, **_: data, lambda data, **given: classic_sigma(**given), _gaussian_vector),
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
