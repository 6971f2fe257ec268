"""The samplers of additive noise against exact laws. All seeds are fixed; each test fails by chance with at most "
"1e-9."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from tests.cases import for_each

LEVEL = 1e-9
RUNS = 100_000
GRADES = [70.0, 80.0, 55.0, 95.0, 0.0]  # their average is 60


def drawn(name: str, data: Any, runs: int = RUNS, **parameters: Any) -> Any:
    return find(name).with_parameters(parameters).open().call(data, runs, np.random.Generator(np.random.SFC64(3)))


@pytest.mark.parametrize(("name", "where"), [("laplace.clipped_noise", 11.0), ("laplace.clamped_output", 10.0)])
def test_what_is_cut_off_lies_at_the_end(name: str, where: float) -> None:
    outputs = drawn(name, 10)
    share = stats.laplace(10, 1).sf(where)
    assert outputs.max() == where
    assert stats.binomtest(int(np.count_nonzero(outputs == where)), RUNS, share).pvalue > LEVEL


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


def test_noise_in_proportion_to_the_answer() -> None:
    assert stats.kstest(drawn("laplace.relative_noise", 4), stats.laplace(4, 4).cdf).pvalue > LEVEL


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
