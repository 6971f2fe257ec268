"""Smoothed log ratios against the plain formulas, minimised by other means; mirrors, planes, and few hits.

So for trends, surfaces, the weights of a score, tails of a law, and what is believed of cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

from dpaudit.base.arrays import Reals
from dpaudit.search.learning import weights
from dpaudit.search.smoothing import (
    BENDS,
    EM_STEPS,
    EVEN,
    FARTHEST,
    FOLDS,
    NEAREST,
    POINTS,
    SMOOTHED,
    believed,
    smoothed,
    surface,
    trends,
)
from tests.cases import for_each

Rng = np.random.Generator


def trend(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    return trends([np.stack([x, y], axis=1)])[0]


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


@for_each(("first", "second"), LINES)
def test_a_trend_is_the_mode_at_the_bend_that_makes_the_hits_likeliest(
    first: Sequence[int], second: Sequence[int]
) -> None:
    x, y = np.array(first, float), np.array(second, float)
    rows = second_difference(len(x))
    plain = max((evidence(x, y, rows.T @ rows / bend**2, 2) for bend in BENDS), key=lambda each: each[0])
    centre, covariance = trend(x, y)
    assert centre == pytest.approx(plain[1], abs=1e-5)
    assert covariance == pytest.approx(plain[2], rel=1e-3, abs=1e-7)


def test_a_straight_line_is_reproduced() -> None:
    """It needs no bend: expected hits give it back, whatever the bend costs."""
    line, hits = np.linspace(-1.0, 2.0, 9), 2.0 ** np.arange(3.0, 12.0)
    x = hits / (1.0 + np.exp(-line))
    assert trend(x, hits - x)[0] == pytest.approx(line, abs=1e-6)


def test_a_rising_tail_with_few_hits_is_not_biased() -> None:
    """Log ratios rise to 3.2 where 15 hits are expected, against 0.6: the mean of 200 trends there is right.

    Their deviation is 0.2 to 0.27, so that of the mean at most 0.02, and means of 0.01 to 0.05 too much were seen: the
    limit is more than five deviations away.
    """
    truth = np.linspace(0.0, 3.2, 9)
    x = np.geomspace(4_000.0, 15.0, 9)
    rng = np.random.default_rng(31)
    found = [trend(*(rng.poisson(mean).astype(float) for mean in (x, x * np.exp(-truth))))[0][-1] for _ in range(200)]
    assert np.mean(found) == pytest.approx(3.2, abs=0.16)


def test_hits_of_one_side_alone_say_what_they_can() -> None:
    """15 against 0 at the end of a rise: no less than the cell before."""
    centre, covariance = trend(np.array([2000.0, 700.0, 240.0, 80.0, 15.0]), np.array([1500.0, 330.0, 75.0, 14.0, 0.0]))
    assert np.all(np.diff(centre) > 0.0)
    assert centre[-1] > 2.0
    assert np.all(np.diff(covariance.diagonal()) > 0.0)


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


@for_each("count", [1, 4])
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


@for_each("count", [1, 4])
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
    centre, variance = surface(np.zeros((3, 5)), np.zeros((3, 5)))
    assert centre == pytest.approx(np.zeros((3, 5)))
    assert np.isfinite(variance).all()
    assert believed(np.zeros(3), np.zeros(3)).share == pytest.approx(np.full(3, 0.5))


def test_hostile_counts_give_finite_weights() -> None:
    tables = np.zeros((5, EDGES + 2, 2), np.int64)
    tables[0, :, 0] = 1_000  # one side alone
    tables[1, :EDGES] = 10**12
    tables[1, :EDGES, 0] //= np.arange(1, EDGES + 1)
    tables[2, :EDGES:2, 0], tables[2, 1:EDGES:2, 1] = 10**6, 10**6  # every other cell
    tables[3, 3] = 900, 10  # one cell
    tables[4, 0, 0], tables[4, EDGES - 1, 1] = 10**8, 10**8  # opposite ends
    for table in tables:
        for count in (1, 4):
            for found in weights([table] * count, [NUMBERS] * count):
                assert np.isfinite(found).all()
                assert np.abs(found).max() < 60.0


CELLS = 2_000


def nested(density: Reals, runs: int, rng: np.random.Generator) -> Reals:
    """Counts of the tails of a law over cells, the rarest tail first."""
    return np.cumsum(rng.multinomial(runs, density / density.sum()).astype(float))


def falling_tail() -> Reals:
    """Masses over many scales, so that thresholds far out are rare."""
    return np.exp(np.linspace(-14.0, 0.0, CELLS))


def test_rare_tails_are_seen_more_surely_and_no_less_rightly() -> None:
    """A constant ratio of e: over 100 samples the smoothed log ratios of the rarest tails err by less than the raw.

    Their mean square error is 0.24 to 0.30 of the raw one (three seeds), and 0.8 of their true deviation is what
    they say it is.
    """
    law = falling_tail()
    rng = np.random.default_rng(3)
    raw, smooth, said = [], [], []
    for _ in range(100):
        x, y = nested(law, 27_183, rng), nested(law, 10_000, rng)
        found = smoothed(x, y)
        place = int(np.searchsorted(found.x + found.y, 30.0))
        at = found.at[place]
        raw.append(np.log((x[at] + 0.5) / (y[at] + 0.5)) - 1.0)
        smooth.append(np.log(found.x[place] / found.y[place]) - 1.0)
        luck = found.spread(1.0)
        said.append(float(luck.p[place] + luck.q[place] - 2.0 * np.asarray(luck.both)[place]))
    error = np.mean(np.square(smooth))
    assert error < 0.5 * np.mean(np.square(raw))
    assert 0.5 < np.sqrt(np.mean(said) / error) < 2.0


def test_a_jump_is_not_smoothed_away() -> None:
    """The rarest thousandth of P's outputs never occurs on Q. Hits are kept, and only change sides."""
    law = np.append(np.zeros(200), np.full(CELLS, 1.0))
    leak = np.append(np.full(200, 0.01 * CELLS / 200), np.full(CELLS, 0.99))
    rng = np.random.default_rng(4)
    x, y = nested(leak, 100_000, rng), nested(law, 100_000, rng)
    found = smoothed(x, y)
    assert found.x + found.y == pytest.approx((x + y)[found.at])
    assert np.all(np.diff(found.at) > 0)
    assert np.all((x + y)[found.at] <= SMOOTHED * (x[-1] + y[-1]) * (1.0 + 1e-9))
    logs = np.log(found.x / found.y)
    assert np.all(logs[found.at < 190] > 2.0)
    assert np.all(np.abs(logs[found.at > 1_000]) < 0.3)
    for few in (np.empty(0), np.arange(10.0), np.array([0.0, 5_000.0])):
        assert smoothed(few, few) is None


def naive(x: Reals, y: Reals, alone: float) -> tuple[Reals, Reals]:
    """The same posterior cell by cell, with scipy's binomial law, of cells that the grid is fine enough for."""
    width = math.asinh(FARTHEST / NEAREST)
    grid = math.log((x.sum() + 1.0) / (y.sum() + 1.0)) + NEAREST * np.sinh(np.linspace(-width, width, POINTS))
    share = 1.0 / (1.0 + np.exp(-grid))
    found = []
    for cell in range(len(x)):
        others = [j for j in range(len(x)) if j % FOLDS != cell % FOLDS]
        law = np.full(POINTS, (1.0 - EVEN) / POINTS)
        law[POINTS // 2] += EVEN
        for _ in range(EM_STEPS):
            sums = np.full(POINTS, alone / POINTS)
            for j in others:
                part = law * binom.pmf(x[j], x[j] + y[j], share)
                sums += part / part.sum()
            law = sums / sums.sum()
        odds = law * binom.pmf(x[cell], x[cell] + y[cell], share)
        odds /= odds.sum()
        mean = odds @ share
        found.append((mean, odds @ (share - mean) ** 2))
    mean, variance = np.array(found).T
    hits = x + y
    up, down = (x.sum() + 0.5) / (hits @ mean + 0.5), (y.sum() + 0.5) / (hits @ (1.0 - mean) + 0.5)
    return mean * up / (mean * up + (1.0 - mean) * down), variance


@for_each("alone", [0.05, 1.0])
def test_the_posterior_is_that_of_the_naive_sum(alone: float) -> None:
    x, y = np.array([12.0, 3, 0, 5, 9, 7, 2, 30]), np.array([10.0, 4, 6, 6, 8, 9, 2, 4])
    made, (share, variance) = believed(x, y, alone), naive(x, y, alone)
    assert made.share == pytest.approx(share, rel=1e-9)
    assert made.variance == pytest.approx(variance, rel=1e-7, abs=1e-15)


def test_a_cell_with_many_hits_is_what_they_say() -> None:
    """Two cells: the log odds that were seen, and their binomial deviation, to a tenth of it."""
    for runs in (1_000.0, 100_000.0, 1e8):
        made = believed(np.array([0.73, 0.27]) * runs, np.array([0.27, 0.73]) * runs)
        luck = math.sqrt(0.73 * 0.27 / runs)
        assert abs(made.share[0] - 0.73) < 0.5 * luck
        assert math.sqrt(made.variance[0]) == pytest.approx(luck, rel=0.1)


def test_the_luckiest_of_equal_cells_is_one_of_them_and_one_too_far_out_is_not() -> None:
    """100 cells of 100 hits: the luckiest of equal ones keeps less than a tenth of its log odds on average.

    Over 30 seeded tables; one table keeps more than a quarter with probability of about 1 in 100. A cell of log odds 2
    keeps nine tenths.
    """
    rng = np.random.default_rng(1)
    lucky, planted = [], []
    for _ in range(30):
        x, y = rng.poisson(50.0, (2, 100)).astype(float)
        made = believed(x, y)
        seen, kept = np.log((x + 0.5) / (y + 0.5)), np.log(made.share / (1.0 - made.share))
        lucky.append(kept[np.argmax(seen)] / seen.max())
        x[3], y[3] = 88.0, 12.0
        made = believed(x, y)
        planted.append(math.log(made.share[3] / (1.0 - made.share[3])) / math.log(88.5 / 12.5))
    assert np.mean(lucky) < 0.1
    assert min(planted) > 0.9


def test_mirror_exchanging_the_sides_negates_trends_surfaces_and_weights() -> None:
    rng = np.random.default_rng(33)
    lines = [np.array(LINES[1], float), np.array(LINES[2], float)]
    for estimate, sides in ((trend, lines[0]), (trend, lines[1]), (surface, some_surface(rng))):
        (straight, one), (swapped, other) = estimate(*sides), estimate(*sides[::-1])
        assert swapped == pytest.approx(-straight, abs=1e-8)
        assert other == pytest.approx(one, rel=1e-6)
    for count in (1, 4):  # one coordinate along its trend, and four on a surface
        tables = tables_of(np.tile(np.linspace(-0.3, 0.2, EDGES), (count, 1)), 3_000, rng)
        turned = weights([table[:, ::-1] for table in tables], [NUMBERS] * count)
        for one, other in zip(weights(tables, [NUMBERS] * count), turned, strict=True):
            assert one == pytest.approx(-other, abs=1e-7)


def test_mirror_exchanging_the_sides_mirrors_tails_and_what_is_believed() -> None:
    rng, law = np.random.default_rng(2), falling_tail()
    x, y = nested(law * np.linspace(2.0, 1.0, CELLS), 50_000, rng), nested(law, 50_000, rng)
    straight, swapped = smoothed(x, y), smoothed(y, x)
    assert swapped.mirrored().x == pytest.approx(straight.x)
    assert swapped.mirrored().moved == pytest.approx(straight.moved)
    x, y = rng.poisson(40.0, (2, 300)).astype(float)
    x[:20] *= 3.0
    one, other = believed(x, y), believed(y, x)
    assert other.mirrored().share == pytest.approx(one.share, abs=1e-9)
    assert other.variance == pytest.approx(one.variance, abs=1e-12)
    assert one.mirrored().share == pytest.approx(1.0 - one.share)
