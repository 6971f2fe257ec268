"""Tests of independence: each p-value against all arrangements, counted one by one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from dpaudit.certify import independence as tests
from tests.cases import for_each


def exact_tail(hits: int, drawn: int, marked: int, total: int) -> Fraction:
    """Pr(X >= hits) in whole numbers."""
    ways = sum(
        math.comb(marked, x) * math.comb(total - marked, drawn - x)
        for x in range(max(0, hits), min(drawn, marked) + 1)
        if drawn >= x
    )
    return Fraction(ways, math.comb(total, drawn))


def p(log: float) -> float:
    return math.exp(float(log))


def test_the_tail_is_never_below_the_exact_one() -> None:
    cases = [
        (hits, drawn, marked, total)
        for total in range(1, 11)
        for drawn, marked in product(range(total + 1), repeat=2)
        for hits in range(total + 2)
    ]
    for case, value in zip(cases, tests.upper_tail(*np.array(cases).T).tolist(), strict=True):
        exact = exact_tail(*case)
        assert math.exp(value) >= float(exact) * (1.0 - 1e-12)
        assert value == -math.inf or exact > 0


@for_each(
    ("hits", "drawn", "marked", "total"),
    [(70, 100, 100, 200), (40, 1000, 60, 4000), (640, 1000, 1000, 2000), (12, 12, 300, 6000), (9, 400, 10, 8000)],
)
def test_the_tail_is_tight_where_it_matters(hits: int, drawn: int, marked: int, total: int) -> None:
    """Within a tenth of the exact tail, in tails far below every level."""
    exact = exact_tail(hits, drawn, marked, total)
    assert float(exact) < 1e-4
    log = math.log(exact.numerator) - math.log(exact.denominator)
    assert 0.0 <= float(tests.upper_tail(hits, drawn, marked, total)) - log < 0.1


def test_large_numbers_keep_the_tail_above() -> None:
    """A thousand million runs: above the logarithm of the first term, by no more than the sum of all is."""
    total, drawn, marked, hits = 10**9, 5 * 10**8, 2_000, 1_140
    term = math.comb(drawn, hits) * math.comb(total - drawn, marked - hits)
    log = math.log(term) - math.log(math.comb(total, marked))
    assert log < float(tests.upper_tail(hits, drawn, marked, total)) < log + 2.2


@for_each(("same", "differing", "others"), [(20, 3, 4), (8000, 2, 30), (5, 0, 4), (3, 4, 4)])
def test_strangers_are_a_choice_among_all(same: int, differing: int, others: int) -> None:
    exact = math.comb(others, differing) / math.comb(same + others, differing)
    assert exact <= p(tests.strangers(same, differing, others)) <= exact * 1.001


@for_each(("drawn", "total"), [(3, 7), (6, 12), (5, 20)])
def test_valid_no_level_is_exceeded(drawn: int, total: int) -> None:
    """Given any number of hits, the chance of a p-value of at most alpha is at most alpha, for every alpha."""
    for marked in range(total + 1):
        values = []
        for hits in range(max(0, drawn + marked - total), min(drawn, marked) + 1):
            chance = exact_tail(hits, drawn, marked, total) - exact_tail(hits + 1, drawn, marked, total)
            values.append((p(tests.contrast(hits, drawn, marked - hits, total - drawn)), chance))
        for alpha, _ in values:
            assert float(sum(chance for value, chance in values if value <= alpha)) <= alpha * (1.0 + 1e-9)


def test_drift_is_valid_for_every_arrangement_of_hits() -> None:
    """Twelve runs in four parts, any number of hits: every arrangement counted."""
    ways: dict[int, list[tuple[float, int]]] = {}
    for hits in product(range(4), repeat=4):
        value = p(tests.drift(np.array(hits)[:, None], np.full((4, 1), 3)))
        ways.setdefault(sum(hits), []).append((value, math.prod(math.comb(3, x) for x in hits)))
    for marked, cases in ways.items():
        for alpha, _ in cases:
            share = sum(count for value, count in cases if value <= alpha) / math.comb(12, marked)
            assert share <= alpha * (1.0 + 1e-9)


def test_null_equal_rates_say_nothing_and_a_change_of_three_tenths_is_seen() -> None:
    assert p(tests.contrast(400, 1000, 550, 1000)) < 1e-9
    assert p(tests.contrast(300, 1000, 300, 1000)) == 1.0
    equal = np.full((8, 2), 50), np.full((8, 2), 100)
    assert (tests.drift(*equal), tests.outlier(*equal)[0]) == (0.0, 0.0)
    pairings = tests.pairings(np.full(256, 10))
    assert (tests.after_hits(pairings), tests.after_sides(pairings)) == (0.0, 0.0)
    one = np.array([[3, 4]]), np.array([[10, 10]])  # nothing to differ from
    assert (tests.outlier(*one), tests.drift(*one)) == ((0.0, 0), 0.0)
    for hits in (np.zeros((0, 2), np.int64), np.array([[3, 5]]), np.array([[0, 0], [4, 0]])):
        assert tests.spread(hits, 2 * hits) == 0.0
    assert p(tests.least(np.log([0.2, 0.001, 0.5]))) == pytest.approx(0.003)  # several tests share the level
    assert (tests.least([]), tests.least([0.0, 0.0])) == (0.0, 0.0)


@for_each("x, n, y, m", [(9, 10, 1, 10), (40, 1000, 90, 1200), (0, 5, 7, 9)])
def test_mirror_the_groups_may_be_swapped(x: int, n: int, y: int, m: int) -> None:
    assert tests.contrast(x, n, y, m) == tests.contrast(y, m, x, n)
    assert float(tests.contrast(x, n, y, m)) == pytest.approx(float(tests.contrast(n - x, n, m - y, m)), abs=1e-9)


@for_each("side", [0, 1])
def test_drift_and_outliers_are_found_on_either_side(side: int) -> None:
    runs, rising, odd = np.full((16, 2), 500), np.full((16, 2), 100), np.full((16, 2), 100)
    rising[:, side] += np.arange(16) * 8
    assert tests.drift(rising, runs) < math.log(1e-9)
    odd[5, side] = 200
    log, part = tests.outlier(odd, runs)
    assert part == 5
    assert log < math.log(1e-7)


def quads(codes: np.ndarray) -> Any:
    """The counts of the patterns of four runs, a row each: hit + 2 side of a run."""
    return np.bincount((codes * [1, 4, 16, 64]).sum(axis=1), minlength=256)


def test_pairings_count_what_a_loop_counts() -> None:
    codes = np.random.default_rng(1).integers(4, size=(500, 4))
    places = [[(0, 1), (2, 3)], [(1, 2)], [(0, 2), (1, 3)], [(0, 3)]]
    for value, pairs in zip(tests.pairings(quads(codes)), places, strict=True):
        naive = np.zeros((4, 4), np.int64)
        for four in codes:
            for before, now in pairs:
                naive[four[before], four[now]] += 1
        assert (value == naive).all()


@for_each("lag", [1, 2, 3])
def test_a_hit_that_follows_hits_or_a_side_is_seen(lag: int) -> None:
    """At every lag; and what is independent is not: a chance of failing of 1e-6 each."""
    rng = np.random.default_rng(lag)
    hits, sides = rng.integers(2, size=(2, 2_000, 4))
    hits[:, lag] = np.where(rng.random(2_000) < 0.4, hits[:, 0], hits[:, lag])
    tables = tests.pairings(quads(hits + 2 * sides))
    assert tests.after_hits(tables) < math.log(1e-9)
    assert tests.after_sides(tables) > math.log(1e-6)
    sides = rng.integers(2, size=(4_000, 4))
    drawn = rng.random(sides.shape) < 0.3
    drawn[:, lag:] = rng.random((4_000, 4 - lag)) < 0.3 + 0.15 * sides[:, : 4 - lag]
    tables = tests.pairings(quads(drawn + 2 * sides))
    assert tests.after_sides(tables) < math.log(1e-9)
    assert tests.after_hits(tables) > math.log(1e-6)  # given the sides, hits are independent


def words(values: list[int], sides: list[int]) -> np.ndarray:
    return np.array([(value << 2) + 2 + side for value, side in zip(values, sides, strict=True)], np.uint64)


@for_each("values", [[0, 0, 1, 1, 1], [1, 2, 3, 4, 5], [7, 7, 7, 7, 7]])
def test_repeats_are_one_arrangement_of_a_side(values: list[int]) -> None:
    """Two shards with the same sides: the p-value is the share of the arrangements that agree."""
    sides = [0, 1, 0, 0, 1]
    first = words(values, sides)
    agree = arrangements = 0
    for order in permutations(range(5)):
        if [sides[k] for k in order] == sides:
            arrangements += 1
            agree += (words([values[k] for k in order], sides) == first).all()
    log, where = tests.repeats(np.stack([first, first]))
    assert p(log) == pytest.approx(agree / arrangements)
    assert where == (0, 1)


def test_repeats_compare_runs_of_one_side_and_known_shards_with_others_only() -> None:
    rng = np.random.default_rng(5)
    noise = rng.integers(1 << 40, size=64).tolist()
    one, other = (rng.integers(2, size=64).tolist() for _ in range(2))
    prints = [words([value + side for value, side in zip(noise, sides, strict=True)], sides) for sides in (one, other)]
    assert tests.repeats(np.stack(prints))[0] < math.log(1e-12)
    prints[1][next(k for k in range(64) if one[k] == other[k])] += 4
    assert tests.repeats(np.stack(prints))[0] == 0.0
    low, high = words(list(range(32)), [0] * 32), words(list(range(50, 82)), [0] * 32)
    assert tests.repeats(np.stack([low, low, high]), known=2)[0] == 0.0
    log, where = tests.repeats(np.stack([low, high, high, low]), known=2)
    assert log < math.log(1e-12)
    assert where in ((0, 3), (1, 2))
    for nothing in (
        np.stack([words([3] * 32, [0] * 32)] * 8),
        np.zeros((4, 16), np.uint64),
        np.zeros((0, 16), np.uint64),
    ):
        assert tests.repeats(nothing)[0] == 0.0


@pytest.mark.long
@for_each(
    "values",
    [(1, 1, 1, 2, 2, 3, 4, 4), (1, 1, 1, 1, 2, 2, 3, 3)],
    nightly=[(1, 1, 2, 2, 3, 4, 5, 5), (1, 2, 3, 4, 5, 6, 7, 7)],
)
def test_recurrences_have_expectation_one_over_all_orders(values: tuple[int, ...], monkeypatch: Any) -> None:
    """Whatever the window and the odds, so that no level is exceeded however often values recur (Markov)."""
    monkeypatch.setattr(tests, "RARE", 1.0)
    orders = [np.array(order, np.uint64) for order in set(permutations(values))]
    evalues = np.exp([tests.recurrences(order) for order in orders])
    assert evalues.shape[1:] == (1, len(tests.ODDS))
    assert np.ptp(evalues, axis=0).min() > 0.0
    assert evalues.mean(axis=0) == pytest.approx(np.ones(evalues.shape[1:]), abs=1e-12)


def test_recurrences_count_what_a_loop_counts() -> None:
    values = np.random.default_rng(8).integers(40, size=300).astype(np.uint64)
    often = {value: int((values == value).sum()) for value in values.tolist()}
    few = [value for value in values.tolist() if often[value] <= tests.RARE * len(values)]
    for row, table in enumerate(tests.recurrences(values)):
        window, logs = 4 ** (row + 1), np.zeros(len(tests.ODDS))
        for now, value in enumerate(few):
            before = set(few[max(0, now - window) : now])
            share = sum(each in before for each in few[now:]) / (len(few) - now)
            logs += (value in before) * np.log(tests.ODDS) - np.log1p(share * (np.array(tests.ODDS) - 1.0))
        assert table == pytest.approx(logs)


def parts_of(rates: Any, runs: int, seed: int) -> tuple[Any, Any]:
    """Hits and runs of parts whose two sides have these rates."""
    rates = np.asarray(rates, np.float64)
    return np.random.default_rng(seed).binomial(runs, rates), np.full(rates.shape, runs)


def test_valid_the_e_value_of_a_side_is_one_on_average_at_the_most() -> None:
    """Every outcome of parts of unlike sizes, at every rate: the mean is at most 1, so no level is exceeded."""
    for runs in ([2, 3, 4, 3], [1, 1, 5], [6, 0, 2, 4], [9, 9], [1] * 8):
        outcomes = np.array(list(product(*(range(n + 1) for n in runs))))
        e = np.exp([tests._likelier(hits, np.array(runs)) for hits in outcomes])
        ways = np.array([math.prod(map(math.comb, runs, hits)) for hits in outcomes.tolist()])
        for rate in np.linspace(0.0, 1.0, 41):
            total = outcomes.sum(axis=1)
            assert float((ways * rate**total * (1.0 - rate) ** (sum(runs) - total) * e).sum()) <= 1.0


def test_tight_a_spread_is_seen_soon_after_the_best_test_could() -> None:
    """Half of the log likelihood ratio of the law itself, whose number of parts would be half as large."""
    from scipy.stats import betabinom, binom

    for excess in (1.0, 3.0, 10.0):
        runs, parts, size = 200, 400, 200 / excess
        hits = betabinom(runs, 0.3 * size, 0.7 * size).rvs(parts, random_state=1)
        law, rate = betabinom(runs, 0.3 * size, 0.7 * size), binom(runs, hits.mean() / runs)
        best = law.logpmf(hits).sum() - rate.logpmf(hits).sum()
        assert 0.5 * best < tests._likelier(hits, np.full(parts, runs)) <= best + 5.0


def test_null_rates_that_do_not_move_never_alarm() -> None:
    """240 sets of parts at a level of 1e-3: more than 5 in less than a case of 10^6, and none is at 1e-6."""
    rates = [np.full((parts, 2), (rate, rate / 3.0)) for parts in (8, 60) for rate in (0.5, 0.05, 0.001)]
    values = [tests.spread(*parts_of(each, runs, seed)) for each in rates for runs in (20, 500) for seed in range(20)]
    assert sum(log < math.log(1e-3) for log in values) <= 5
    assert min(values) > math.log(1e-6)


def test_mirror_sides_and_misses_say_the_same() -> None:
    hits, runs = parts_of(0.4 + 0.1 * np.tile([[-1, 1], [1, 1], [1, -1]], (20, 1)), 100, 2)
    value = tests.spread(hits, runs)
    assert value < math.log(1e-6)
    assert tests.spread(hits[:, ::-1], runs) == pytest.approx(value)
    assert tests.spread(runs - hits, runs) == pytest.approx(value, rel=1e-6)


@for_each(("parts", "runs", "by"), [(24, 128, 0.06), (16, 4_096, 0.03), (112, 128, 0.06)])
def test_a_rate_that_moves_from_call_to_call_is_seen(parts: int, runs: int, by: float) -> None:
    """At the level of the check within an audit: one thirtieth of a millionth."""
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (parts, 2))
    assert tests.spread(*parts_of([0.25, 0.75] + by * signs, runs, 4)) < math.log(1e-6 / 30)
