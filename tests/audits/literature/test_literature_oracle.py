"""The bound of the best event, and the ceiling of a rule that fixes the mass."""

from __future__ import annotations

import doctest
import itertools
import math
from typing import Any

import numpy as np
import pytest

from audits.literature import oracle
from audits.literature.laws import Curve, curves, largest, noised, numerical, sums
from audits.literature.laws.curve import nested
from audits.literature.oracle import GRID, ceiling, oracle_bound
from audits.literature.rows import row
from dpaudit import AdjacentPair
from dpaudit.catalogue import find
from dpaudit.certify import CoinFlip
from dpaudit.certify.coin_flip import epsilon_lower

TENTH = {"epsilon": 0.1}


def test_the_bound_of_a_half_line_under_laplace_noise() -> None:
    curve, _ = curves("Laplace", find("laplace").with_parameters(TENTH), AdjacentPair(1.0, 0.0))
    for alpha, runs in itertools.product((1e-4, 0.1), (10_000, 1_000_000, 25_000_000)):
        best = oracle_bound(curve, runs, alpha)
        alone = nested(np.array([0.5, 0.5]), np.array([math.exp(-0.1), 2.0 - math.exp(-0.1)]) / 2.0, 0.1, "")
        assert oracle_bound(alone, runs, alpha) <= best < curve.loss
    assert best > 0.0985


def test_a_set_that_the_other_dataset_never_hits() -> None:
    curve = Curve(np.array([5e-6, 0.5]), np.array([0.0, 0.4]), math.inf, 0.0, "closed form")
    hits, alpha = 60, 1e-4
    share = alpha ** (1.0 / hits)
    assert oracle_bound(curve, 24_000_000, alpha) == pytest.approx(math.log(share / (1.0 - share)), rel=1e-6)
    assert oracle_bound(curve, 1_000, alpha) == 0.0  # too few runs for either set


def test_no_set_of_outputs_does_better_than_the_nested_ones() -> None:
    entry = find("report_noisy_max_general").with_parameters(TENTH)
    pair = AdjacentPair([1, 1, 1, 1, 1], [0, 2, 2, 2, 2])
    for curve in curves("NoisyMax1", entry, pair):
        p, q = np.diff(curve.p, prepend=0.0), np.diff(curve.q, prepend=0.0)
        inside = np.array(list(itertools.product((0.0, 1.0), repeat=5)))
        every = Curve(inside @ p, inside @ q, curve.loss, 0.0, "every set of outputs")
        for runs in (100_000, 25_000_000):
            assert oracle_bound(every, runs, 1e-4) == pytest.approx(oracle_bound(curve, runs, 1e-4), rel=1e-6)


@pytest.mark.parametrize(("runs", "alpha"), [(1_000_000, 1e-4), (25_000_000, 1e-4), (25_000_000, 0.1)])
def test_no_event_of_a_fine_curve_is_missed(runs: int, alpha: float) -> None:
    row_of = find("report_noisy_max_exponential.value_only").with_parameters(TENTH)
    curve, _ = curves("NoisyMax4", row_of, AdjacentPair([1] * 5, [2] * 5))
    half = runs // 2
    hits, others = (np.rint(half * side).astype(int) for side in (curve.p[::5], curve.q[::5]))
    every = [
        epsilon_lower(CoinFlip(x, y, half, half), 0.0, alpha) for x, y in zip(hits, others, strict=True) if y < 999
    ]
    assert max(every) <= oracle_bound(curve, runs, alpha) <= 1.01 * max(every)


@pytest.mark.parametrize(
    ("name", "module", "cells"),
    [
        ("Laplace", noised, "STARTS"),
        ("NoisyHist2", noised, "STARTS"),
        ("NoisyMax3", largest, "CELLS"),
        ("NoisyMax4", largest, "CELLS"),
        ("PrefixSum", sums, "STEPS"),
        ("LaplaceParallel", sums, "STEPS"),
        ("NumericalSVT", numerical, "LEVELS"),
    ],
)
def test_finer_cells_add_no_more_to_the_best_bound_than_is_said(
    name: str, module: Any, cells: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, pair = row(name).entry, row(name).pairs[4 if len(row(name).pairs) > 4 else 1]
    fine: list[list[float]] = []
    for factor in (1, 8):
        monkeypatch.setattr(module, cells, factor * getattr(module, cells))
        curve, _ = curves(name, entry, pair)
        fine.append([oracle_bound(curve, runs, 1e-4) for runs in (60_000, 22_000_000)])
    for coarse, best in zip(*fine, strict=True):
        assert best <= coarse * (1.0 + GRID)


def test_the_ceiling_of_a_fixed_mass() -> None:
    narrow = find("laplace_vector.inverted_scale").with_parameters({**TENTH, "sensitivity": 1.0})
    curve, _ = curves("NoisyHist2", narrow, AdjacentPair([1, 1], [0, 1]))
    hit = 1.0 - math.exp(-10.0 - math.log(0.02)) / 2.0  # of the half-line of mass 0.01 under the other dataset
    assert ceiling(curve) == pytest.approx(math.log(hit / 0.01), abs=1e-4)
    wide, _ = curves("Laplace", find("laplace").with_parameters(TENTH), AdjacentPair(1.0, 0.0))
    assert ceiling(wide) == pytest.approx(0.1, rel=1e-9)
    assert ceiling(wide, mass=1.0) == pytest.approx(0.0, abs=1e-9)


def test_the_ceiling_where_one_dataset_alone_has_outputs() -> None:
    curve = Curve(np.array([0.4, 1.0]), np.array([0.0, 1.0]), math.inf, 0.0, "closed form")
    assert ceiling(curve, mass=0.5) == pytest.approx(math.log(0.7 / 0.5))
    assert ceiling(Curve(np.array([0.0, 1.0]), np.array([0.5, 1.0]), 0.7, 0.0, ""), mass=0.25) == -math.inf


def test_examples_of_the_oracle() -> None:
    assert doctest.testmod(oracle).failed == 0
