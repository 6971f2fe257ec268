"""The plain measures, the region and its conversions, the Bayesian and the approximate intervals, the bootstrap."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import ApproximateDP, GaussianDP
from dpaudit.errors import InvalidSpec
from dpaudit.scores import (
    AttackCounts,
    Bootstrap,
    Posterior,
    counts,
    epsilon_of,
    intervals,
)
from tests.scores import naive
from tests.scores.oracle_values import scores

ORACLE = json.loads(Path(__file__).with_name("oracle_values.json").read_text())
CANARY = ORACLE["canary"]
INSIDE, OUTSIDE = scores()


def test_the_area_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = rng.integers(0, 6, 30) + 0.0, rng.integers(0, 5, 20) + 0.0
        assert counts.roc(a, b).area == pytest.approx(naive.auroc(a.tolist(), b.tolist()), abs=1e-12)
        assert counts.roc(a, b).hull_area >= counts.roc(a, b).area - 1e-12


def area(inside: Any, outside: Any) -> float:
    return counts.roc(inside, outside).area


def test_the_measures_equal_the_values_of_other_tools() -> None:
    curve = counts.roc(INSIDE, OUTSIDE)
    for fpr, expected in zip((0.0, 0.01, 0.1, 0.37, 1.0), CANARY["tpr"], strict=True):
        assert curve.tpr_at(fpr) == pytest.approx(expected, abs=1e-12)
    assert curve.hull_area == pytest.approx(CANARY["auroc_hull"], abs=1e-12)
    assert curve.best_accuracy(INSIDE.size / (INSIDE.size + OUTSIDE.size)) == pytest.approx(
        CANARY["max_accuracy"], abs=1e-12
    )
    for (least, delta), expected in zip(((5, 0.0), (50, 0.0), (50, 0.05)), CANARY["raw"], strict=True):
        assert curve.raw_epsilon(delta, least) >= expected - 1e-12  # the larger of two rules here
    assert curve.raw_epsilon(0.0, 50) == pytest.approx(CANARY["raw_two"], abs=1e-12)
    assert curve.raw_epsilon(0.0, 400) == 0.0


def test_equal_scores_are_never_told_apart() -> None:
    curve = counts.roc(np.array([1.0, 1.0, np.nextafter(1.0, 2.0)]), np.array([1.0, 1.0]))
    assert curve.tp.tolist() == [0, 1, 3]
    assert curve.fp.tolist() == [0, 0, 2]
    huge = counts.roc(np.array([1e308, -1e308]), np.array([1.5e308]))  # the middle does not overflow
    assert huge.tp.tolist() == [0, 0, 1, 2]


def test_the_least_epsilon_is_on_the_boundary_of_its_region() -> None:
    for fpr, fnr, delta in ((0.1, 0.5, 0.0), (0.3, 0.2, 0.05), (0.9, 0.7, 0.01), (0.02, 0.4, 0.1)):
        found = epsilon_of(fpr, fnr, delta)
        q, p = (fpr, 1.0 - fnr) if fpr + fnr < 1.0 else (1.0 - fpr, fnr)
        claim = ApproximateDP(found, delta)
        assert p == pytest.approx(claim.max_probability(q), abs=1e-9)
    assert epsilon_of(0.5, 0.5) == 0.0


@pytest.mark.parametrize("row", [r for r in ORACLE["estimates"] if "private" in r], ids=lambda r: str(r["counts"]))
def test_the_posterior_equals_the_values_of_other_tools(row: dict[str, list[float]]) -> None:
    tp, fp, tn, fn = row["counts"]
    law, delta = Posterior(AttackCounts(tp=tp, fp=fp, tn=tn, fn=fn)), row["delta"]
    for epsilon, expected in zip((0.5, 1.0, 1.5), row["private"], strict=True):
        assert law.probability_private(epsilon, delta) == pytest.approx(expected, abs=1e-6)  # type: ignore[arg-type]
    low, high = intervals.jeffreys(law.counts, delta, 0.1)  # type: ignore[arg-type]
    assert (low, high) == pytest.approx([float(v) for v in row["jeffreys"]], abs=1e-9)


def test_the_posterior_knows_a_perfect_attack() -> None:
    law = Posterior(AttackCounts(tp=50, fp=0, tn=50, fn=0))
    assert 2.0 < law.quantile(0.05, 0.0) < 6.0
    assert law.quantile(0.05, 0.0) < law.quantile(0.5, 0.0) < law.quantile(0.95, 0.0)


def test_a_dirichlet_prior_for_the_four_cells_gives_the_same_posterior() -> None:
    """200,000 draws: the share below the quantile is off by more than 6 standard deviations with chance below 1e-8."""
    counts = AttackCounts(tp=60, fp=20, tn=80, fn=40)
    cells = np.random.default_rng(1).dirichlet([60.5, 20.5, 80.5, 40.5], 200_000)
    fpr, fnr = cells[:, 1] / (cells[:, 1] + cells[:, 2]), cells[:, 3] / (cells[:, 3] + cells[:, 0])
    allowed = (1.0 - fnr <= math.e * fpr) & (1.0 - fpr <= math.e * fnr)
    allowed &= (fnr <= math.e * (1.0 - fpr)) & (fpr <= math.e * (1.0 - fnr))
    expected = Posterior(counts).probability_private(1.0, 0.0)
    assert abs(allowed.mean() - expected) < 6.0 * math.sqrt(0.25 / 200_000)


def test_the_approximate_ratios_are_those_of_their_papers() -> None:
    z = -1.6448536269514722
    plain = math.log(100 / 110) - math.log(10 / 80)
    spread = math.sqrt(1 / 100 - 1 / 110 + 1 / 10 - 1 / 80)
    assert intervals.log_ratio_limit("katz-log", 100, 110, 10, 80, z) == pytest.approx(plain + z * spread)
    assert intervals.log_ratio_limit("inverse-sinh", 100, 110, 10, 80, z) == pytest.approx(
        plain + 2.0 * math.asinh(z / 2.0 * spread)
    )
    half = math.log(100.5 / 110.5) - math.log(10.5 / 80.5)
    wide = math.sqrt(1 / 100.5 - 1 / 110.5 + 1 / 10.5 - 1 / 80.5)
    assert intervals.log_ratio_limit("adjusted-log", 100, 110, 10, 80, z) == pytest.approx(half + z * wide)
    for name, first, second in (("bailey", 4.61953896, 6.87647915), ("katz-log", 4.45958661, 6.39712581)):
        assert math.exp(intervals.log_ratio_limit(name, 100, 110, 10, 80, z)) == pytest.approx(first, abs=1e-8)
        assert math.exp(intervals.log_ratio_limit(name, 90, 110, 5, 80, z)) == pytest.approx(second, abs=1e-8)


@pytest.mark.parametrize("name", intervals.RATIOS)
def test_the_approximate_ratios_survive_every_small_table(name: str) -> None:
    for x in range(6):
        for y in range(5):
            table = AttackCounts(tp=x, fp=y, tn=4 - y, fn=5 - x)
            low, high = (intervals.epsilon_limit(name, table, z) for z in (-1.645, 1.645))
            assert 0.0 <= low <= high
            assert math.isfinite(low)


def test_the_gaussian_model_is_its_own_inverse() -> None:
    for mu in (0.1, 1.0, 4.0):
        for delta in (1e-12, 1e-5, 0.01):
            epsilon = counts.epsilon_of_mu(mu, delta)
            assert GaussianDP(mu).delta_at(epsilon) == pytest.approx(delta, rel=1e-6) or epsilon == 0.0
    assert counts.mu_of(0.6, 0.5) == 0.0  # not the absolute value: an attack worse than guessing shows nothing


@pytest.mark.parametrize("kind", ["percentile", "bc", "bca"])
def test_the_bootstrap_holds_the_estimate_and_repeats_itself(kind: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(1.0, 1.0, 60), rng.normal(0.0, 1.0, 50)
    one = Bootstrap(kind, 200).quantiles(area, a, b, [0.025, 0.975], seed=4)
    two = Bootstrap(kind, 200).quantiles(area, a, b, [0.025, 0.975], seed=4)
    assert one.tolist() == two.tolist()
    assert one[0] < counts.roc(a, b).area < one[1]
    assert 0.05 < one[1] - one[0] < 0.4


def test_the_bootstrap_of_a_constant_is_that_constant() -> None:
    found = Bootstrap("bca", 20).quantiles(lambda a, b: 3.0, np.array([1.0, 2.0]), np.array([0.0]), [0.1, 0.9], seed=0)
    assert found.tolist() == [3.0, 3.0]
    with pytest.raises(InvalidSpec, match="bootstrap must be one of percentile, bc, bca, got 'x'"):
        Bootstrap("x")
