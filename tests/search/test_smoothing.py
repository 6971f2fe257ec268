"""Smoothed log ratios against the plain formulas, minimised by other means; mirrors, planes, and few hits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.optimize import minimize

from dpaudit.base.arrays import Reals
from dpaudit.search.learning import weights
from dpaudit.search.smoothing import BENDS, surface, trend

Rng = np.random.Generator


def second_difference(count: int) -> Reals:
    """Row by row: one value less twice the next plus the one after."""
    rows = np.zeros((count - 2, count))
    for j in range(count - 2):
        rows[j, j : j + 3] = 1.0, -2.0, 1.0
    return rows


def mode(x: Reals, y: Reals, penalty: Reals) -> Reals:
    """The log ratios that the binomial likelihood less the penalty is largest at."""

    def loss(c: Reals) -> float:
        return float(-(x * c - (x + y) * np.logaddexp(0.0, c)).sum() + c @ penalty @ c / 2.0)

    def slope(c: Reals) -> Reals:
        return np.asarray(-x + (x + y) / (1.0 + np.exp(-c)) + penalty @ c)

    def curve(c: Reals) -> Reals:
        share = 1.0 / (1.0 + np.exp(-c))
        return np.asarray(penalty + np.diag((x + y) * share * (1.0 - share)))

    start = np.full(len(x), np.log((x.sum() + 0.5) / (y.sum() + 0.5)))
    return np.asarray(minimize(loss, start, jac=slope, hess=curve, method="trust-exact", options={"gtol": 1e-9}).x)


def evidence(x: Reals, y: Reals, penalty: Reals, free: int) -> tuple[float, Reals, Reals]:
    """Laplace's approximation of what was seen under a penalty that leaves so many directions free: log, mode, cov."""
    centre = mode(x, y, penalty)
    share = 1.0 / (1.0 + np.exp(-centre))
    precision = penalty + np.diag((x + y) * share * (1.0 - share))
    fit = (x * centre - (x + y) * np.logaddexp(0.0, centre)).sum() - centre @ penalty @ centre / 2.0
    known = np.log(np.linalg.eigvalsh(penalty)[free:]).sum() / 2.0
    return fit + known - np.linalg.slogdet(precision)[1] / 2.0, centre, np.linalg.inv(precision)


LINES = [
    ([900, 610, 300, 160, 90, 50, 30, 18], [300, 240, 150, 90, 70, 40, 30, 10]),
    ([40, 22, 12, 9, 4, 3], [13, 7, 3, 4, 0, 1]),
    ([5000, 100, 5000, 100, 5000, 100], [100, 5000, 100, 5000, 100, 5000]),
    ([15, 30, 80, 120, 300], [0, 2, 9, 40, 110]),
]


@pytest.mark.parametrize(("first", "second"), LINES)
def test_a_trend_is_the_mode_at_the_bend_that_makes_the_hits_likeliest(
    first: Sequence[int], second: Sequence[int]
) -> None:
    x, y = np.array(first, float), np.array(second, float)
    rows = second_difference(len(x))
    plain = max((evidence(x, y, rows.T @ rows / bend**2, 2) for bend in BENDS), key=lambda each: each[0])
    centre, covariance = trend(x, y)
    assert centre == pytest.approx(plain[1], abs=1e-5)
    assert covariance == pytest.approx(plain[2], rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(("first", "second"), LINES)
def test_mirror_exchanging_the_sides_negates_a_trend(first: Sequence[int], second: Sequence[int]) -> None:
    x, y = np.array(first, float), np.array(second, float)
    assert trend(y, x)[0] == pytest.approx(-trend(x, y)[0], abs=1e-9)
    assert trend(y, x)[1] == pytest.approx(trend(x, y)[1], rel=1e-6)


def test_a_straight_line_is_reproduced() -> None:
    """It needs no bend: expected hits give it back, whatever the bend costs."""
    line, hits = np.linspace(-1.0, 2.0, 9), 2.0 ** np.arange(3.0, 12.0)
    x = hits / (1.0 + np.exp(-line))
    assert trend(x, hits - x)[0] == pytest.approx(line, abs=1e-6)


def test_a_rising_tail_with_few_hits_is_not_biased() -> None:
    """Log ratios rise to 3.2 where 15 hits are expected, against 0.6: the mean of 400 trends there is right.

    Their deviation is 0.2 to 0.27, so that of the mean at most 0.014, and means of 0.01 to 0.05 too much were seen: the
    limit is some eight deviations away.
    """
    truth = np.linspace(0.0, 3.2, 9)
    x = np.geomspace(4_000.0, 15.0, 9)
    rng = np.random.default_rng(31)
    found = [trend(*(rng.poisson(mean).astype(float) for mean in (x, x * np.exp(-truth))))[0][-1] for _ in range(400)]
    assert np.mean(found) == pytest.approx(3.2, abs=0.16)


def test_hits_of_one_side_alone_say_what_they_can() -> None:
    """15 against 0 at the end of a rise: no less than the cell before."""
    centre, covariance = trend(np.array([2000.0, 700.0, 240.0, 80.0, 15.0]), np.array([1500.0, 330.0, 75.0, 14.0, 0.0]))
    assert np.all(np.diff(centre) > 0.0)
    assert centre[-1] > 2.0
    assert np.all(np.diff(covariance.diagonal()) > 0.0)


# --- surfaces ---------------------------------------------------------------------------------------------------------


def some_surface(rng: Rng, lines: int = 3, cells: int = 5) -> tuple[Reals, Reals]:
    truth = np.linspace(-0.5, 0.8, cells) + np.linspace(0.0, 0.4, lines)[:, None] ** 2
    hits = np.geomspace(20.0, 900.0, cells)
    return tuple(rng.poisson(np.broadcast_to(each, truth.shape)).astype(float) for each in (hits * np.exp(truth), hits))  # type: ignore[return-value]


def test_a_surface_is_the_mode_of_the_dense_formula() -> None:
    """Every pair of bends by a dense solve: the likeliest of them, its mode and its variances."""
    x, y = some_surface(np.random.default_rng(32))
    x[1, 2] = y[1, 2] = 0.0
    lines, cells = x.shape
    along, across = (rows.T @ rows for rows in (second_difference(cells), second_difference(lines)))
    found = [
        evidence(x.ravel(), y.ravel(), np.kron(np.eye(lines), along / b**2) + np.kron(across / o**2, np.eye(cells)), 4)
        for b in BENDS
        for o in BENDS
    ]
    plain = max(found, key=lambda each: each[0])
    centre, variance = surface(x, y)
    assert centre.ravel() == pytest.approx(plain[1], abs=1e-4)
    assert variance.ravel() == pytest.approx(plain[2].diagonal(), rel=1e-3)


def test_mirror_exchanging_the_sides_negates_a_surface() -> None:
    x, y = some_surface(np.random.default_rng(33))
    (straight, one), (swapped, other) = surface(x, y), surface(y, x)
    assert swapped == pytest.approx(-straight, abs=1e-8)
    assert other == pytest.approx(one, rel=1e-6)


def test_cells_and_lines_without_hits_are_filled_in() -> None:
    """A plane needs no bend: it goes on through what was not seen, however much of it."""
    plane = 0.2 * np.arange(7.0) - 0.5 + 0.1 * np.arange(5.0)[:, None]
    hits = np.full(plane.shape, 400.0)
    hits[2] = 0.0
    hits[0, 3] = hits[4, 5] = hits[4, 6] = 0.0
    x = hits / (1.0 + np.exp(-plane))
    centre, variance = surface(x, hits - x)
    assert centre == pytest.approx(plane, abs=1e-4)
    assert variance[4, 6] > variance[4, 4]
    assert np.isfinite(variance).all()


def test_a_surface_of_nothing_is_nothing() -> None:
    centre, variance = surface(np.zeros((3, 5)), np.zeros((3, 5)))
    assert centre == pytest.approx(np.zeros((3, 5)))
    assert np.isfinite(variance).all()


# --- weights ----------------------------------------------------------------------------------------------------------

EDGES = 8  # cells of numbers; two more for a token and for what was never seen


def tables_of(logs: Reals, hits: float, rng: Rng) -> list[Reals]:
    """Counts (cell, side) of coordinates whose cells have these log ratios, rows; each fifth of its hits a token."""
    found = []
    for row in logs:
        q = np.append(np.full(EDGES, 0.8 / EDGES), [0.2, 0.0])
        p = np.append(q[:EDGES] * np.exp(row), [0.0, 0.0])
        p[EDGES] = 1.0 - p.sum()
        found.append(np.stack([rng.multinomial(int(hits), p), rng.multinomial(int(hits), q)], axis=1))
    return found


NUMBERS = np.ones(EDGES, np.bool_)


@pytest.mark.parametrize("count", [1, 4])
def test_mirror_exchanging_the_sides_negates_the_weights(count: int) -> None:
    """Of one coordinate along its trend, and of four on a surface."""
    tables = tables_of(np.tile(np.linspace(-0.3, 0.2, EDGES), (count, 1)), 3_000, np.random.default_rng(34))
    lines = [NUMBERS] * count
    for one, other in zip(weights(tables, lines), weights([t[:, ::-1] for t in tables], lines), strict=True):
        assert one == pytest.approx(-other, abs=1e-7)


@pytest.mark.parametrize("count", [1, 4])
def test_null_equal_laws_leave_next_to_nothing(count: int) -> None:
    """The energy kept is a small part of that of raw log ratios, which is one for each cell.

    0 to 0.045 of it in four seeds, the deviation of such a mean being 0.025 at the most: the limit is six of them away.
    """
    rng = np.random.default_rng(35)
    kept = []
    for _ in range(40 if count == 1 else 4):
        tables = tables_of(np.zeros((count, EDGES)), 2_000, rng)
        for table, each in zip(tables, weights(tables, [NUMBERS] * count), strict=True):
            inverse = 1.0 / (1.0 / (table[:, 0] + 0.5) + 1.0 / (table[:, 1] + 0.5))
            kept.append(float((each**2 * inverse).sum()) / EDGES)
    assert np.mean(kept) < 0.2


@pytest.mark.parametrize("count", [1, 4])
def test_tight_many_hits_give_the_true_log_ratios(count: int) -> None:
    """100,000 hits in a cell: six deviations of a log ratio are 0.03, and the normaliser cancels in none of it."""
    shape = np.linspace(-0.4, 0.4, EDGES) ** 2 * np.linspace(0.5, 1.0, count)[:, None] - 0.05
    tables = tables_of(shape, 1e6, np.random.default_rng(36))
    for row, table, found in zip(shape, tables, weights(tables, [NUMBERS] * count), strict=True):
        assert found[:EDGES] == pytest.approx(row, abs=0.03)
        assert found[EDGES] == pytest.approx(np.log(table[EDGES, 0] / table[EDGES, 1]), abs=0.01)
        assert found[EDGES + 1] == 0.0


def test_nothing_at_all_has_no_weight() -> None:
    empty = np.zeros((EDGES + 2, 2), np.int64)
    for found in (*weights([empty], [NUMBERS]), *weights([empty] * 4, [NUMBERS] * 4)):
        assert found.tolist() == [0.0] * (EDGES + 2)


@pytest.mark.parametrize("kind", ["one side alone", "huge", "every other cell", "one cell", "opposite ends"])
@pytest.mark.parametrize("count", [1, 4])
def test_hostile_counts_give_finite_weights(kind: str, count: int) -> None:
    table = np.zeros((EDGES + 2, 2), np.int64)
    if kind == "one side alone":
        table[:, 0] = 1_000
    elif kind == "huge":
        table[:EDGES] = 10**12
        table[:EDGES, 0] //= np.arange(1, EDGES + 1)
    elif kind == "every other cell":
        table[:EDGES:2, 0], table[1:EDGES:2, 1] = 10**6, 10**6
    elif kind == "one cell":
        table[3] = 900, 10
    else:
        table[0, 0], table[EDGES - 1, 1] = 10**8, 10**8
    for found in weights([table] * count, [NUMBERS] * count):
        assert np.isfinite(found).all()
        assert np.abs(found).max() < 60.0
