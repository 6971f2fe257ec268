"""The laws of outputs with several numbers: by another method, and against runs of the mechanisms themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from audits.literature.laws import Curve, curves, released, sums
from audits.literature.laws.sums import tails
from audits.literature.rows import row
from dpaudit import AdjacentPair
from dpaudit.catalogue import find
from tests.cases import for_each

Floats = npt.NDArray[np.float64]

ROWS = ("SVT3", "PrefixSum", "LaplaceParallel", "SVT34Parallel", "NumericalSVT")
RUNS = 8_000  # a side
SHARES = (0.001, 0.1, 0.4, 0.8)
CHANCE = 1e-6 / (len(ROWS) * 2 * 2 * len(SHARES) * 2 * 2)  # of each count: of a false alarm in all of them, 1e-6


APART = 1e-6  # of two log ratios, for a set to end between them


def assert_hits(curves: Iterable[Curve], ratios: Sequence[Floats], shares: Iterable[float], chance: float) -> None:
    """Sets that hold these shares are hit as often as the curve says; each count is wrong with at most `chance`.

    `ratios` are ln(dP/dQ) of the outputs of either dataset, and the curves those of both directions.
    """
    for curve, sign in zip(curves, (1, -1), strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            levels = np.log(np.diff(curve.p, prepend=0.0)) - np.log(np.diff(curve.q, prepend=0.0))
        for share in shares:
            place = int(np.searchsorted(curve.p, share))
            while place < len(levels) - 1 and not levels[place] - levels[place + 1] > APART:
                place += 1
            if place == len(levels) - 1:
                continue  # all outputs: nothing to count
            split = levels[place + 1] + min(1.0, levels[place] - levels[place + 1]) / 2.0
            expected = (curve.p[place], curve.q[place])[::sign]  # of the first dataset's runs, of the second's
            for runs, likely in zip(ratios, expected, strict=True):
                hits = int(np.sum(sign * runs > split))
                assert binom.cdf(hits, len(runs), likely) > chance / 2.0
                assert binom.sf(hits - 1, len(runs), likely) > chance / 2.0


# --- log ratios by the trapezoid rule ----------------------------------------------------------------------------

LEVELS = np.arange(-320.0, 480.0, 0.5)  # of the noisy threshold; the answers are nodes


def below(x: Floats, scale: float) -> Floats:
    return np.where(x < 0.0, np.exp(-np.abs(x) / scale) / 2.0, 1.0 - np.exp(-np.abs(x) / scale) / 2.0)


def log_reached(answers: Floats, is_top: Floats, is_bottom: Floats, scales: tuple[float, float]) -> Floats:
    """ln of the chance of these tops and bottoms and a noisy threshold below each level; the threshold is 1."""
    values = np.exp(-np.abs(LEVELS - 1.0) / scales[0]) / (2.0 * scales[0])
    for answer, top, bottom in zip(answers, is_top, is_bottom, strict=True):
        values = values * (below(answer - LEVELS, scales[1]) if top else 1.0)
        values = values * (below(LEVELS - answer, scales[1]) if bottom else 1.0)
    return np.log(np.concatenate([[1e-300], np.cumsum((values[1:] + values[:-1]) / 4.0)]))


def moves(values: Floats, pair: AdjacentPair, scale: float) -> Floats:
    """The log ratios of Laplace noise on every answer."""
    first, second = np.asarray(pair.first, float), np.asarray(pair.second, float)
    return np.asarray((np.abs(values - second) - np.abs(values - first)) / scale)


def seen(is_top: npt.NDArray[np.bool_], most: int) -> npt.NDArray[np.bool_]:
    """The answers that were compared, given the tops."""
    return np.cumsum(is_top, axis=1) - is_top < most


def by_pattern(
    is_top: npt.NDArray[np.bool_],
    most: int,
    pair: AdjacentPair,
    scales: tuple[float, float],
    cuts: Floats | None,
) -> Floats:
    """The log ratio of tops and bottoms; with cuts that of the bottoms alone and a threshold below the cut."""
    found = np.empty(len(is_top))
    patterns, place = np.unique(is_top, axis=0, return_inverse=True)
    for index, tops in enumerate(patterns):
        bottoms = seen(tops[None], most)[0] & ~tops
        counted = tops if cuts is None else np.zeros(len(tops), np.bool_)
        ratio = np.subtract(
            *(log_reached(np.asarray(data, float), counted, bottoms, scales) for data in (pair.first, pair.second))
        )
        mine = place.ravel() == index
        found[mine] = ratio[-1] if cuts is None else np.interp(cuts[mine], LEVELS, ratio)
    return found


def compared(y: np.ma.MaskedArray, most: int, pair: AdjacentPair) -> Floats:
    """Algorithm 3: the bottoms with the threshold below the least value, and the values."""
    given = ~np.ma.getmaskarray(y)
    cuts = np.where(given, y.data, LEVELS[-1]).min(axis=1)
    ratio = by_pattern(given, most, pair, (20.0, 20.0 * most), cuts)
    return np.asarray(ratio + np.where(given, moves(y.data, pair, 20.0 * most), 0.0).sum(axis=1))


def scored(name: str, y: np.ma.MaskedArray, pair: AdjacentPair) -> Floats:
    """ln(dP/dQ) of outputs, as the sampler gives them."""
    if name == "LaplaceParallel":
        return np.asarray(moves(np.asarray(y), pair, 200.0).sum(axis=1))
    if name == "PrefixSum":
        return np.asarray(moves(np.diff(np.asarray(y), axis=1, prepend=0.0), pair, 10.0).sum(axis=1))
    if name == "SVT3":
        return compared(y, 1, pair)
    if name == "SVT34Parallel":
        bits = by_pattern(y[:, 10:].filled(0) == 1, 2, pair, (40.0, 40.0 / 3.0), None)
        return compared(y[:, :10], 2, pair) + bits
    is_top = y.filled(0.0) != 0.0
    values = np.where(is_top, moves(y.data, pair, 60.0), 0.0).sum(axis=1)
    return np.asarray(values + by_pattern(is_top, 2, pair, (30.0, 120.0), None))


@cache
def both(name: str, place: int) -> tuple[AdjacentPair, Curve, Curve]:
    found = row(name)
    pair = found.pairs[place]
    return pair, *curves(name, found.entry, pair)


PAIRS = [(name, place) for name in ROWS for place in sorted({0, len(row(name).pairs) - 1})]


@for_each(("name", "place"), PAIRS)
def test_runs_hit_the_nested_sets_of_values_as_often_as_the_law_says(name: str, place: int) -> None:
    pair, *found = both(name, place)
    entry, rng = row(name).entry, np.random.default_rng(11)
    ratios = [
        scored(name, entry.sampler(data, RUNS, rng, **entry.values()), pair) for data in (pair.first, pair.second)
    ]
    assert_hits(found, ratios, SHARES, CHANCE)


@for_each(("name", "place"), PAIRS)
def test_no_event_of_values_tells_more_than_the_loss(name: str, place: int) -> None:
    pair, *found = both(name, place)
    for curve in found:
        assert np.all(np.diff(curve.p) >= -1e-12)
        assert np.all(np.diff(curve.q) >= -1e-12)
        assert (curve.p[-1], curve.q[-1]) == pytest.approx((1.0, 1.0), abs=1e-11)
        assert 0.0 < curve.error < 2e-4
        largest = float(np.max(np.log(curve.p / curve.q)))
        assert curve.loss - 2e-4 < largest < curve.loss + 1e-7
    assert max(curve.loss for curve in found) == pytest.approx(row(name).entry.true_epsilon(pair.first, pair.second))


@pytest.mark.parametrize(("tops", "among", "beyond"), [(1, 8, 40), (2, 6, 30)])
def test_coarse_cells_say_how_far_below_the_best_event_they_are(
    tops: int, among: int, beyond: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = row("SVT3").entry.with_parameters({"c": tops})
    pair = AdjacentPair([1] * 6, [2] * 3 + [0] * 3)
    fine = released.curves(entry, pair)
    monkeypatch.setitem(released.AMONG, tops, among)
    monkeypatch.setitem(released.BEYOND, tops, beyond)
    for best, curve in zip(fine, released.curves(entry, pair), strict=True):
        best_p = np.interp(curve.q, np.append(0.0, best.q), np.append(0.0, best.p))
        assert 3.0 * best.error < curve.error < 0.05
        assert np.all(best_p <= curve.p * (1.0 + curve.error))
        assert np.all(curve.p <= best_p * (1.0 + best.error))


# --- sums of clipped terms, on a grid that rounds them up and down -------------------------------------------------


def summed(terms: int, step: float, cells: int, up: bool) -> tuple[Floats, Floats]:
    """The values of the sum and their probabilities, each term rounded to a grid."""
    edges = np.linspace(-step, step, cells + 1)
    inside = -np.exp(-step) / 2.0 + np.exp((edges - step) / 2.0) / 2.0  # P(-step < term <= edge)
    one = np.zeros(cells + 1)
    one[int(up) : cells + int(up)] += np.diff(inside)
    one[0] += math.exp(-step) / 2.0
    one[-1] += 0.5
    size = terms * cells + 1
    return np.linspace(-terms * step, terms * step, size), np.fft.irfft(np.fft.rfft(one, 2 * size) ** terms, 2 * size)[
        :size
    ]


@pytest.mark.parametrize(("terms", "step"), [(1, 0.1), (2, 0.5), (10, 0.1), (20, 0.005)])
def test_tails_of_sums_lie_between_those_of_rounded_ones(terms: int, step: float) -> None:
    levels = step * np.array([0.97, 0.71, 0.33, 0.012, -0.41, -0.83]) * terms
    p, q = tails(terms, step, levels)
    chances = []
    for up in (False, True):
        values, masses = summed(terms, step, 4000, up)
        chances.append([masses[values >= level].sum() for level in levels])
    assert np.all(np.array(chances[0]) <= p + 1e-13)
    assert np.all(p <= np.array(chances[1]) + 1e-13)
    assert p == pytest.approx(np.mean(chances, axis=0), rel=0.01, abs=1e-9)
    assert 1.0 - tails(terms, step, -levels)[0] == pytest.approx(q, abs=1e-13)  # Q is P turned round


def test_ten_answers_beyond_their_own() -> None:
    """The event of the largest ratio of PrefixSum: every noisy answer on the far side."""
    curve = curves("PrefixSum", row("PrefixSum").entry, AdjacentPair([1] * 10, [2] * 10))[0]
    assert curve.p[0] == pytest.approx(2.0**-10, rel=1e-12)
    assert curve.q[0] == pytest.approx(2.0**-10 / math.e, rel=1e-12)


def test_sums_refuse_moves_by_different_steps() -> None:
    with pytest.raises(ValueError, match=r"by the same, got moves by \[1.0, 2.0\]"):
        sums.curves(find("composed_counts"), AdjacentPair([0, 0], [1, 2]))
