"""Single releases: closed forms against sums, quadrature, the claims of the project, and values that are known."""

import itertools
import math
from fractions import Fraction

import flint
import pytest
from scipy import integrate, stats

from dpaudit.claims import GaussianDP
from dpaudit.errors import InvalidSpec
from dpaudit.verify.integrals import gaussian_delta, laplace_delta
from tests.cases import for_each

EPSILONS = (-3.0, -0.5, 0.0, 0.25, 0.999, 1.0, 1.7, 4.0)


@for_each("epsilon", EPSILONS)
@for_each(("shift", "scale"), [(1, 1), (-2, 3), (1, Fraction(1, 4))])
def test_laplace_delta_is_the_integral_of_the_positive_part(shift: int, scale: Fraction, epsilon: float) -> None:
    first, second = stats.laplace(0, float(scale)), stats.laplace(shift, float(scale))
    loss = abs(shift) / float(scale)
    kink = math.copysign((loss - epsilon) * float(scale) / 2.0, shift) if -loss < epsilon < loss else 0.0
    edges = sorted({-40.0 * float(scale), 0.0, float(shift), kink, shift + 40.0 * float(scale), 40.0 * float(scale)})
    expected = sum(
        integrate.quad(lambda x: max(0.0, first.pdf(x) - math.exp(epsilon) * second.pdf(x)), a, b, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    )
    found = laplace_delta(shift / Fraction(scale), epsilon)
    assert found.middle == pytest.approx(expected, abs=1e-8)
    assert found.upper - found.lower <= 1e-15


@for_each("mu", [0.01, 0.3, 1.0, 5.0])
@for_each("epsilon", [-2.0, 0.0, 0.1, 1.0, 6.0])
def test_gaussian_delta_is_what_the_claim_says(mu: float, epsilon: float) -> None:
    found = gaussian_delta(mu, epsilon)
    assert found.lower <= GaussianDP(mu).delta_at(epsilon)
    assert found.middle == pytest.approx(GaussianDP(mu).delta_at(epsilon), rel=1e-9, abs=1e-290)
    assert found.upper - found.lower <= max(5e-324, 1e-15 * found.upper)


def test_known_gaussian_values() -> None:
    with flint.ctx.workprec(200):
        sigma = (2 * (flint.arb(125) * 1000).log()).sqrt()
        found = gaussian_delta(1 / sigma, 1)
    assert round(float(sigma), 3) == 4.845
    assert f"{found.middle:.1e}" == "4.1e-08"


def test_ends_of_the_gaussian_range() -> None:
    assert gaussian_delta(0, 1).upper == 0.0
    assert gaussian_delta(0, -1).middle == pytest.approx(1 - math.exp(-1), rel=1e-15)
    assert gaussian_delta(1e-200, 1e-3).upper <= 5e-324
    assert gaussian_delta(1e6, 1).middle == 1.0


@for_each(
    ("call", "message"),
    [
        (lambda: gaussian_delta(-1, 0), "mu must be at least 0, got -1"),
        (lambda: gaussian_delta(math.nan, 0), "a number must be finite, got nan"),
    ],
)
def test_wrong_numbers_are_refused(call, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        call()
