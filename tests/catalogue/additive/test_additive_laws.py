"""The samplers of additive noise against exact laws. All seeds are fixed; each test fails by chance with at most "
"1e-9."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.catalogue.additive.normal import analytic_sigma, halved_sigma, printed_sigma, tail_sigma
from tests.cases import for_each

LEVEL = 1e-9
RUNS = 100_000
GRADES = [70.0, 80.0, 55.0, 95.0, 0.0]  # their average is 60


def drawn(name: str, data: Any, runs: int = RUNS, **parameters: Any) -> Any:
    return find(name).with_parameters(parameters).open().call(data, runs, np.random.Generator(np.random.SFC64(3)))


@for_each(
    ("name", "data", "law"),
    [
        ("laplace.deviation_as_scale", 10, stats.laplace(10, math.sqrt(0.5))),
        ("laplace.relative_noise", 4, stats.laplace(4, 4)),
        ("laplace.rounded_first", 10, stats.laplace(9, 1)),
        ("laplace_average", GRADES, stats.laplace(60, 20)),
        ("laplace_average.divided_twice", GRADES, stats.laplace(60, 4)),
        ("laplace_average.observed_range", GRADES, stats.laplace(60, 19)),
        ("laplace_average.unclipped", [-50.0, 250.0], stats.laplace(100, 50)),
        ("laplace_average", [-50.0, 250.0], stats.laplace(50, 50)),
        ("laplace_sum", [1.0, -0.5, 9.0], stats.laplace(2.5, 2)),
        ("laplace_sum.inverted_scale", [1.0, -0.5, 9.0], stats.laplace(2.5, 0.5)),
        ("laplace_sum.observed_bound", [1.0, -0.5], stats.laplace(0.5, 1)),
        ("gaussian.laplace_scale", 10, stats.norm(10, 2)),
        ("gaussian.sigma_as_variance", 10, stats.norm(10, math.sqrt(math.sqrt(2 * math.log(125)) / 0.5))),
        ("gaussian_version_2", 10, stats.norm(10, printed_sigma(1.0, 0.01, 1.0))),
        ("gaussian_version_2_corrected", 10, stats.norm(10, halved_sigma(1.0, 0.01, 1.0))),
        ("gaussian_analytic", 10, stats.norm(10, analytic_sigma(1.0, 0.01, 1.0))),
        ("gaussian_analytic.tail_only", 10, stats.norm(10, tail_sigma(1.0, 0.01, 1.0))),
        ("gaussian_zcdp", 10, stats.norm(10, math.sqrt(0.5))),
        ("gaussian_zcdp.variance_as_sigma", 10, stats.norm(10, 0.5)),
        ("gaussian_gdp", 10, stats.norm(10, 1)),
    ],
)
def test_one_number(name: str, data: Any, law: Any) -> None:
    assert stats.kstest(drawn(name, data), law.cdf).pvalue > LEVEL


@pytest.mark.parametrize(("name", "where"), [("laplace.clipped_noise", 11.0), ("laplace.clamped_output", 10.0)])
def test_what_is_cut_off_lies_at_the_end(name: str, where: float) -> None:
    outputs = drawn(name, 10)
    share = stats.laplace(10, 1).sf(where)
    assert outputs.max() == where
    assert stats.binomtest(int(np.count_nonzero(outputs == where)), RUNS, share).pvalue > LEVEL


@for_each(
    ("name", "data", "law"),
    [
        ("laplace_vector.sensitivity_of_one", [0, 5], stats.laplace(0, 5)),
        ("counting_queries", [[1, 0], [1, 1]], stats.laplace(2, 2)),
        ("counting_queries.l2_sensitivity", [[1, 0], [1, 1]], stats.laplace(2, math.sqrt(2))),
        ("histogram", [0, 0, 1], stats.laplace(2, 1)),
        ("histogram.sensitivity_of_m", [0, 0, 1], stats.laplace(2, 2)),
        ("norm_l1", [1.0, 0.0], stats.laplace(1, 2)),
        ("gaussian_vector", [1.0, 0.0], stats.norm(1, math.sqrt(2 * math.log(125)) / 0.5)),
        ("gaussian_vector.sensitivity_of_one", [1.0, 0.0], stats.norm(1, math.sqrt(math.log(125)) / 0.5)),
    ],
)
def test_coordinates_have_their_law_and_are_independent(name: str, data: Any, law: Any) -> None:
    outputs = drawn(name, data)
    assert stats.kstest(outputs[:, 0], law.cdf).pvalue > LEVEL
    above = outputs > np.median(outputs, axis=0)
    table = np.array([[np.count_nonzero((above[:, 0] == i) & (above[:, 1] == j)) for i in (0, 1)] for j in (0, 1)])
    assert stats.chi2_contingency(table, correction=False).pvalue > LEVEL


@for_each(
    ("name", "order", "scale"),
    [
        ("norm_l1", 1, 2),
        ("norm_l2", 2, 2),
        ("norm_linf", math.inf, 2),
        ("k_norm_l2", 2, 1),
        ("k_norm_linf", math.inf, 1),
    ],
)
@for_each("by_program", [False, True], ids=["sampler", "program"])
def test_the_length_of_noise_in_its_norm_is_a_gamma_draw(
    name: str, order: float, scale: float, by_program: bool
) -> None:
    """The density e^(-|z| / scale) in three dimensions gives |z| the density r^2 e^(-r / scale)."""
    rng = np.random.Generator(np.random.SFC64(4))
    entry, zero = find(name), [0.0, 0.0, 0.0]
    noise = np.array([entry.run(zero, rng) for _ in range(4_000)]) if by_program else drawn(name, zero)
    lengths = np.linalg.norm(noise, order, axis=1)
    assert stats.kstest(lengths, stats.gamma(3, scale=scale).cdf).pvalue > LEVEL
    assert stats.binomtest(int(np.count_nonzero(noise[:, 0] > 0)), len(noise)).pvalue > LEVEL
    shape = noise / lengths[:, None]  # independent of the length
    half = lengths > np.median(lengths)
    assert stats.ks_2samp(shape[half, 0], shape[~half, 0]).pvalue > LEVEL


def test_the_radii_of_the_broken_norm_mechanisms() -> None:
    exponential = np.linalg.norm(drawn("k_norm_l2.exponential_radius", [0.0, 0.0]), axis=1)
    assert stats.kstest(exponential, stats.expon().cdf).pvalue > LEVEL
    constant = np.linalg.norm(drawn("k_norm_l2.constant_length", [0.0, 0.0], 1_000), axis=1)
    assert constant == pytest.approx(2.0)


@pytest.mark.parametrize("most", [1, 5])
def test_uniform_noise_on_integers_and_on_fractions(most: int) -> None:
    counts = np.bincount(drawn("geometric.uniform_noise", 3, width=most))[3:]
    assert stats.chisquare(counts).pvalue > LEVEL
    points = np.rint((drawn("laplace_average.uniform_noise", GRADES, reach=most) - 60.0) * 5.0).astype(int) + most
    assert stats.chisquare(np.bincount(points, minlength=2 * most + 1)).pvalue > LEVEL


def test_second_calibration_refuses_deltas_it_is_not_for() -> None:
    from dpaudit.errors import InvalidSpec

    with pytest.raises(InvalidSpec, match=r"delta must lie below 0\.5, got 0\.5"):
        find("gaussian_version_2").with_parameters({"delta": 0.5})
