"""Normal noise on one number, by four calibrations to one (epsilon, delta)-DP claim, and for claims that are exact.

Those that describe it exactly are zero-concentrated DP and Gaussian DP.
"""

import math
from collections.abc import Callable
from functools import partial

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.additive.single import CHEEMA, SENSITIVITY, in_room
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Program, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, also, approximate, pure, unbounded
from dpaudit.claims import GaussianDP, ZeroConcentratedDP
from dpaudit.losses.normal import gaussian_epsilon, gaussian_mu, gaussian_mu_of_tail

Width = Callable[..., float]  # sigma from the parameters of an entry


# where the rule of the notes is true: it is stated for epsilon < 1, and fails from about 6.8 on
_STATED = also(validate.positive, lambda x: x <= 1.0, "be at most 1", "; the rule is not stated for a larger one")
SMALL_EPSILON = Parameter("epsilon", 0.5, "nats", "the claim; the rule is stated for epsilon < 1", _STATED)
DELTA = Parameter("delta", 0.01, "probability", "the additive part of the claim", validate.open_probability)


_BELOW_A_HALF = also(validate.open_probability, lambda x: x < 0.5, "lie below 0.5")
SMALL_DELTA = Parameter("delta", 0.01, "probability", "the additive part of the claim, below 1/2", _BELOW_A_HALF)


def normal_runs(data: float, runs: int, rng: Rng, *, width: Width, **parameters: float) -> Reals:
    """Normal draws around one number."""
    noisy = rng.standard_normal(runs)
    noisy *= width(**parameters)
    noisy += data
    return noisy


def _epsilon_loss(first: float, second: float, *, width: Width, **parameters: float) -> float:
    """The exact epsilon at the claim's delta, or mu where it has none."""
    mu = abs(first - second) / width(**parameters)
    return gaussian_epsilon(parameters["delta"], mu) if "delta" in parameters else mu


def normal(width: Width, program: Program | None = None, loss: Callable[..., float] = _epsilon_loss) -> Code:
    """Normal noise around one number: sigma is made from the parameters."""

    def run(data: float, rng: Rng, **parameters: float) -> float:
        return data + rng.normal(scale=width(**parameters))

    return Code(program or run, partial(normal_runs, width=width), partial(loss, width=width))


def classic_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Version 1 of the notes: sensitivity sqrt(2 ln(1.25 / delta)) / epsilon.

    >>> round(classic_sigma(1.0, 1e-5, 1.0), 3)
    4.845
    """
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def _laplace_scale(data: float, rng: Rng, epsilon: float, delta: float, sensitivity: float) -> float:
    return data + rng.normal(scale=sensitivity / epsilon)


gaussian = in_room(
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


gaussian_version_2 = in_room(
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

gaussian_version_2_corrected = in_room(
    name="gaussian_version_2_corrected",
    title="Gaussian noise on a number, the second calibration without its extra factor 2",
    source=Source(
        f"{CHEEMA}, 'Gaussian mechanism version 2', with c^2 halved",
        "after Zhao et al. 2019, Reviewing and improving the Gaussian mechanism",
    ),
    formula="the answer plus one draw of N(0, sigma^2), "
    "sigma = sensitivity (c + sqrt(c^2 + epsilon)) / (epsilon sqrt(2)), c^2 = ln(2 / (sqrt(16 delta + 1) - 1))",
    code=normal(halved_sigma),
    parameters=(EPSILON, SMALL_DELTA, SENSITIVITY),
    promise=approximate,
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


gaussian_analytic = in_room(
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


RHO = Parameter("rho", 1.0, "nats", "the claim: the Rényi divergence of order a is at most rho a", validate.positive)


def _rho_loss(first: float, second: float, *, width: Width, **parameters: float) -> float:
    return (first - second) ** 2 / (2.0 * width(**parameters) ** 2)


gaussian_zcdp = in_room(
    name="gaussian_zcdp",
    title="Gaussian noise on a number, as zero-concentrated DP",
    source=Source(
        f"{CHEEMA}, 'Zero concentrated DP'",
        "Bun & Steinke 2016, Concentrated differential privacy: simplifications, extensions, and lower bounds",
    ),
    formula="the answer plus one draw of N(0, sigma^2), sigma^2 = sensitivity^2 / (2 rho)",
    code=normal(lambda rho, sensitivity: sensitivity / math.sqrt(2.0 * rho), loss=_rho_loss),
    parameters=(RHO, SENSITIVITY),
    promise=lambda rho, **_: ZeroConcentratedDP(rho),
).with_twins(
    """variance_as_sigma: Gaussian noise with sigma^2 passed as the standard deviation
        the variance is below 1 here, and its square far below: rho is 1 / sigma^2 times too large
        the answer plus one draw of N(0, sigma^4), sigma^2 = sensitivity^2 / (2 rho)""",
    variance_as_sigma=Twin(
        code=normal(lambda rho, sensitivity: sensitivity * sensitivity / (2.0 * rho), loss=_rho_loss)
    ),
)


def _gdp(data: float, rng: Rng, mu: float, sensitivity: float) -> float:
    return data + rng.normal(scale=sensitivity / mu)


gaussian_gdp = in_room(
    name="gaussian_gdp",
    title="Gaussian noise on a number, as Gaussian DP",
    source=Source(None, "Dong, Roth & Su 2022, Gaussian differential privacy, theorem 2.7"),
    formula="the answer plus one draw of N(0, (sensitivity / mu)^2)",
    code=normal(lambda mu, sensitivity: sensitivity / mu, _gdp),
    parameters=(Parameter("mu", 1.0, "standard deviations", "the claim", validate.positive), SENSITIVITY),
    promise=lambda mu, **_: GaussianDP(mu),
)
