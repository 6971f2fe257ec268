"""Normal noise on one number for the claims that describe it exactly: zero-concentrated DP and Gaussian DP."""

from __future__ import annotations

import math
from functools import partial

from dpaudit import validate
from dpaudit.catalogue.additive.normal import Width, normal, normal_runs
from dpaudit.catalogue.additive.shared import CHEEMA, SENSITIVITY, in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.claims import GaussianDP, ZeroConcentratedDP

RHO = Parameter("rho", 1.0, "nats", "the claim: the Rényi divergence of order a is at most rho a", validate.positive)
MU = Parameter("mu", 1.0, "standard deviations", "the claim", validate.positive)


# --- zero-concentrated DP ---


def _zcdp_sigma(rho: float, sensitivity: float) -> float:
    return sensitivity / math.sqrt(2.0 * rho)


def _zcdp_variance(rho: float, sensitivity: float) -> float:
    return sensitivity * sensitivity / (2.0 * rho)


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
    neighbours="answers at most `sensitivity` apart",
    code=normal(_zcdp_sigma, loss=_rho_loss),
    parameters=(RHO, SENSITIVITY),
    promise=lambda rho, **_: ZeroConcentratedDP(rho),
    default_pair=(10, 9),
).with_twins(
    variance_as_sigma=Twin(
        title="Gaussian noise with sigma^2 passed as the standard deviation",
        reason="the variance is below 1 here, and its square far below: rho is 1 / sigma^2 times too large",
        formula="the answer plus one draw of N(0, sigma^4), sigma^2 = sensitivity^2 / (2 rho)",
        code=normal(_zcdp_variance, loss=_rho_loss),
    ),
)


def _gdp_sigma(mu: float, sensitivity: float) -> float:
    return sensitivity / mu


def _gdp(data: float, rng: Rng, mu: float, sensitivity: float) -> float:
    return data + rng.normal(scale=sensitivity / mu)


def _mu_loss(first: float, second: float, mu: float, sensitivity: float) -> float:
    return mu * abs(first - second) / sensitivity


gaussian_gdp = in_room(
    name="gaussian_gdp",
    title="Gaussian noise on a number, as Gaussian DP",
    source=Source(None, "Dong, Roth & Su 2022, Gaussian differential privacy, theorem 2.7"),
    formula="the answer plus one draw of N(0, (sensitivity / mu)^2)",
    neighbours="answers at most `sensitivity` apart",
    code=Code(_gdp, partial(normal_runs, width=_gdp_sigma), _mu_loss),
    parameters=(MU, SENSITIVITY),
    promise=lambda mu, **_: GaussianDP(mu),
    default_pair=(10, 9),
)
