"""The laws of the published rows: by another method than theirs, and against runs of those whose outputs are values.

A curve is checked through delta(epsilon) = max P(S) - e^epsilon Q(S) over its sets: a law is known by that function.
"""

from __future__ import annotations

import doctest
import importlib
import itertools
import math
import pkgutil
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import quad
from scipy.stats import binom

import audits.literature.laws
from audits.literature.laws import Curve, bits, curves, largest, noised, released, sums, thresholds
from audits.literature.laws.ratios import log_ratio
from audits.literature.laws.sums import tails
from audits.literature.rows import row
from benchmarks.classics import weighed
from dpaudit import AdjacentPair
from dpaudit.catalogue import find
from dpaudit.catalogue.local.filters import filter_of
from dpaudit.events.event import Event
from dpaudit.events.features import Coordinate
from tests.cases import for_each
from tests.catalogue.laws import law_of

Floats = npt.NDArray[np.float64]

ROWS = (
    *("Laplace", "TruncGeo", "NoisyHist1", "NoisyHist2", "NoisySum", "Snapping"),
    *("NoisyMax1", "NoisyMax2", "NoisyMax3", "NoisyMax4"),
    *("SVT1", "SVT2", "SVT4", "SVT5", "SVT6", "OneTimeRAPPOR", "RAPPOR"),
)
OF_VALUES = ("SVT3", "PrefixSum", "LaplaceParallel", "SVT34Parallel", "NumericalSVT")
WITH_RATIOS = (*OF_VALUES, "SVT1", "SVT4", "SVT6", "NoisyHist2")
NOISES = {  # scales for the threshold and for the answers, as published; whether the first top ends the run
    "SVT1": (20.0, 40.0, True),
    "SVT2": (20.0, 40.0, True),
    "SVT4": (40.0, 40.0 / 3.0, True),
    "SVT5": (20.0, 0.0, False),
    "SVT6": (20.0, 20.0, False),
}
NODES = 12_000  # of the midpoint rule that the quadratures are compared with


# --- the same laws, by the plainest method ---------------------------------------------------------------------


def laplace_below(x: Floats) -> Floats:
    return np.where(x < 0.0, np.exp(-np.abs(x)) / 2.0, 1.0 - np.exp(-np.abs(x)) / 2.0)


def exponential_below(x: Floats) -> Floats:
    return -np.expm1(-np.maximum(x, 0.0))


def winners(answers: Floats, values: Floats, one_sided: bool) -> Floats:
    """The density of the largest of the noisy answers, by its index (index, value); the noise has scale 20."""
    gaps = (values - answers[:, None]) / 20.0
    under = exponential_below(gaps) if one_sided else laplace_below(gaps)
    alone = np.where(gaps > 0.0, np.exp(-np.maximum(gaps, 0.0)), 0.0) if one_sided else np.exp(-np.abs(gaps)) / 2.0
    others = [np.prod(np.delete(under, each, axis=0), axis=0) for each in range(len(answers))]
    return np.asarray(alone * others / 20.0)


def midpoints(low: float, high: float, knots: Any) -> tuple[Floats, Floats]:
    """Nodes and weights of the midpoint rule between the knots."""
    edges = np.unique(np.concatenate([np.linspace(low, high, NODES), np.asarray(knots, float).ravel()]))
    return (edges[1:] + edges[:-1]) / 2.0, np.diff(edges)


def noisy_max(name: str, pair: AdjacentPair) -> tuple[Floats, Floats]:
    one_sided = name in ("NoisyMax2", "NoisyMax4")
    nodes, weights = midpoints(-400.0, 600.0, [pair.first, pair.second])
    sides = [winners(np.asarray(data, float), nodes, one_sided) * weights for data in (pair.first, pair.second)]
    axis = 1 if name in ("NoisyMax1", "NoisyMax2") else 0
    return sides[0].sum(axis=axis), sides[1].sum(axis=axis)


@cache
def patterns() -> npt.NDArray[np.bool_]:
    return np.array(list(itertools.product((False, True), repeat=10)))


def crossings(name: str, data: list[float]) -> Floats:
    """The probability of each output of tops and bottoms, all 1,024 of them or the 11 of a run that halts."""
    of_threshold, of_answers, halts = NOISES[name]
    nodes, weights = midpoints(-700.0, 700.0, data)
    level = 0.5 if name == "SVT1" else 1.0
    mass = weights * np.exp(-np.abs(nodes - level) / of_threshold) / (2.0 * of_threshold)
    gaps = np.asarray(data, float)[:, None] - nodes
    top = laplace_below(gaps / of_answers) if of_answers else (gaps > 0.0).astype(float)
    if halts:
        before = np.vstack([np.ones(len(nodes)), np.cumprod(1.0 - top, axis=0)])
        return np.asarray(before * np.vstack([top, np.ones(len(nodes))]) @ mass)
    halves = [
        np.array([np.prod(np.where(pattern[:, None], each, 1.0 - each), axis=0) for pattern in patterns()[:32, 5:]])
        for each in (top[:5], top[5:])
    ]
    return np.asarray(((halves[0] * mass) @ halves[1].T).ravel())


def plainly(name: str, pair: AdjacentPair) -> tuple[Floats, Floats]:
    """The law of a row in pieces, by enumeration or the midpoint rule."""
    if name in NOISES:
        return crossings(name, pair.first), crossings(name, pair.second)
    if name.startswith("NoisyMax"):
        return noisy_max(name, pair)
    if name in ("TruncGeo", "Snapping"):
        laws = [law_of(row(name).entry, data) for data in (pair.first, pair.second)]
        first, second = (np.array([law[outcome] for outcome in sorted(laws[0])]) for law in laws)
        return first, second
    if "RAPPOR" in name:
        one = 0.525 if name == "OneTimeRAPPOR" else 0.625 * 0.55 + 0.375 * 0.45
        sides = []
        for value in (pair.first, pair.second):
            law = np.ones(1)
            for bit, other in zip(filter_of(value, 20, 4), filter_of(other_of(value, pair), 20, 4), strict=True):
                chance = one if bit else 1.0 - one
                law = np.outer(law, [chance, 1.0 - chance]).ravel() if bit != other else law
            sides.append(law)
        return sides[0], sides[1]
    raise AssertionError(name)


def other_of(value: int, pair: AdjacentPair) -> int:
    return int(pair.second if value == pair.first else pair.first)


def logs(p: Floats, q: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(p) - np.log(q))


def delta(curve: Curve, epsilon: float) -> float:
    return max(0.0, float(np.max(curve.p - math.exp(epsilon) * curve.q)))


@pytest.mark.parametrize("name", ["Laplace", "NoisyHist1", "NoisyHist2", "NoisySum"])
def test_one_moved_answer_with_laplace_noise(name: str) -> None:
    entry, pairs = row(name).entry, row(name).pairs
    sup = 10.0 if name == "NoisyHist2" else 0.1
    for curve in itertools.chain.from_iterable(curves(name, entry, pair) for pair in pairs):
        assert curve.loss == pytest.approx(sup, rel=1e-12)
        for epsilon in (0.0, 0.3 * sup, 0.9 * sup, 1.1 * sup):
            assert delta(curve, epsilon) == pytest.approx(max(0.0, -math.expm1((epsilon - sup) / 2.0)), abs=1e-7)


@for_each("name", [name for name in ROWS if name not in ("Laplace", "NoisySum") and "Hist" not in name])
def test_laws_by_another_method(name: str) -> None:
    entry, pairs = row(name).entry, row(name).pairs
    for pair in pairs:
        p, q = plainly(name, pair)
        assert p.sum() == pytest.approx(1.0, abs=1e-5)
        for curve, one, other in zip(curves(name, entry, pair), (p, q), (q, p), strict=True):
            for epsilon in (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 2.0):
                expected = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
                assert delta(curve, epsilon) == pytest.approx(expected, rel=2e-3, abs=2e-7)


@for_each("name", [*ROWS, *(name for name in OF_VALUES if name != "SVT34Parallel")], nightly=["SVT34Parallel"])
def test_no_event_tells_more_than_the_loss(name: str) -> None:
    last = len(row(name).pairs) - 1
    for place in range(last + 1) if name in ROWS else sorted({0, last}):
        pair, *found = both(name, place)
        for curve in found:
            assert np.diff(curve.p).min(initial=0.0) >= -1e-12 <= np.diff(curve.q).min(initial=0.0)
            assert (curve.p[-1], curve.q[-1]) == pytest.approx((1.0, 1.0), rel=max(curve.error, 1e-11))
            seen = (curve.p > 0.0) & (curve.q > 0.0)
            largest = np.max(np.log(curve.p[seen] / curve.q[seen]))
            assert largest <= curve.loss + 2.0 * curve.error + 1e-7
            if name in OF_VALUES:
                assert 0.0 < curve.error < 2e-4
                assert curve.loss - 2e-4 < largest
                continue
            masses = np.diff(curve.p, prepend=0.0)
            pieces = logs(masses, np.diff(curve.q, prepend=0.0))
            assert np.nanmax(pieces) > (5.0 if curve.loss == math.inf else 0.99 * curve.loss - 1e-9)
            assert np.max(pieces[masses > 1e-6]) <= curve.loss + 1e-6  # differences of sums that are rounded
        exact = row(name).entry.true_epsilon(pair.first, pair.second)
        assert max(curve.loss for curve in found) == pytest.approx(exact, rel=1e-6)


def integral(function: Callable[[float], float], knots: list[float]) -> float:
    """Adaptive quadrature between the knots and far beyond them."""
    edges = sorted(
        {
            *knots,
            *(end + step for end in (min(knots), max(knots)) for step in (-2500.0, -500.0, -90.0, 90.0, 500.0, 2500.0)),
        }
    )
    return sum(quad(function, low, high, epsabs=0.0, epsrel=1e-12)[0] for low, high in itertools.pairwise(edges))


@pytest.mark.parametrize("tops", [(), (0,), (3,), (0, 1, 2, 3)])
def test_quadrature_over_a_noisy_threshold_is_as_good_as_stated(tops: tuple[int, ...]) -> None:
    answers, name = [2.0, 0.0, 2.0, 0.0], "sparse_lyu_1.lyu_6" if len(tops) > 1 else "sparse_lyu_1.lyu_4"
    entry = find(name).with_parameters({"epsilon": 0.1, "c": 1, "threshold": 1.0})
    of_threshold, of_answers, _ = NOISES["SVT6" if len(tops) > 1 else "SVT4"]
    seen = answers[: tops[0] + 1] if len(tops) == 1 else answers

    def mass(level: float) -> float:
        gaps = (np.array(seen) - level) / of_answers
        chances = laplace_below(np.where(np.isin(np.arange(len(seen)), tops), gaps, -gaps))
        return float(np.prod(chances)) * math.exp(-abs(level - 1.0) / of_threshold) / (2.0 * of_threshold)

    p, _ = thresholds.laws(entry, AdjacentPair(answers, [-9.0, -7.0, -5.0, -3.0]))  # each answer is of its own kind
    expected = integral(mass, [0.0, 1.0, 2.0])
    assert np.min(np.abs(p / expected - 1.0)) < thresholds.ERROR / 10.0


def test_quadrature_of_a_race_is_as_good_as_stated() -> None:
    answers = np.array([2.0, 0.0, 1.0])
    curve, _ = curves("NoisyMax1", row("NoisyMax1").entry, AdjacentPair(answers.tolist(), [0, 0, 5]))

    def mass(index: int, value: float) -> float:
        return float(winners(answers, np.array([value]), False)[index, 0])

    for index in range(3):
        expected = integral(partial(mass, index), [0.0, 1.0, 2.0])
        found = np.diff(curve.p, prepend=0.0)
        assert np.min(np.abs(found / expected - 1.0)) < curve.error


# --- what has no law here, and the examples in the words of the modules --------------------------------------------


def test_laws_refuse_what_they_do_not_hold() -> None:
    pair = AdjacentPair([0, 0], [1, 1])
    with pytest.raises(ValueError, match="one answer moves"):
        noised.curves(find("laplace_vector"), pair)
    with pytest.raises(ValueError, match="drawn again"):
        thresholds.curves(find("sparse"), pair)
    with pytest.raises(ValueError, match="one report"):
        bits.curves(find("rappor"), AdjacentPair(0, 3))


def test_equal_answers_tell_nothing() -> None:
    for curve in curves("NoisySum", find("laplace_sum"), AdjacentPair([0.5, 1.0], [1.0, 0.5])):
        assert (curve.p.tolist(), curve.q.tolist(), curve.loss) == ([1.0], [1.0], 0.0)


@for_each("module", [each.name for each in pkgutil.iter_modules(audits.literature.laws.__path__)])
def test_examples_of_the_laws(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"audits.literature.laws.{module}")).failed == 0


# --- outputs with several numbers ------------------------------------------------------------------------------------


RUNS = 8_000  # a side
SHARES = (0.001, 0.1, 0.4, 0.8)
CHANCE = 1e-6 / (len(WITH_RATIOS) * 2 * 2 * len(SHARES) * 2 * 2)  # of each count: of a false alarm in all of them, 1e-6


APART = 1e-6  # of two log ratios, for a set to end between them


@cache
def both(name: str, place: int) -> tuple[AdjacentPair, Curve, Curve]:
    found = row(name)
    pair = found.pairs[place]
    return pair, *curves(name, found.entry, pair)


@for_each(
    ("name", "place"),
    [(name, len(row(name).pairs) - 1) for name in WITH_RATIOS],
    nightly=[(name, 0) for name in WITH_RATIOS],
)
def test_runs_hit_the_nested_sets_of_values_as_often_as_the_law_says(name: str, place: int) -> None:
    """Of sets that hold some shares; each count is wrong with a probability of at most `CHANCE`."""
    pair, *found = both(name, place)
    entry, rng = row(name).entry, np.random.default_rng(11)
    ratio = log_ratio(name, entry, pair)
    assert ratio is not None
    ratios = [ratio(entry.sampler(data, RUNS, rng, **entry.values())) for data in (pair.first, pair.second)]
    for (curve, sign), share in itertools.product(zip(found, (1, -1), strict=True), SHARES):
        levels = logs(np.diff(curve.p, prepend=0.0), np.diff(curve.q, prepend=0.0))
        place = int(np.searchsorted(curve.p, share))
        while place < len(levels) - 1 and not levels[place] - levels[place + 1] > APART:
            place += 1
        if place == len(levels) - 1:
            continue  # all outputs: nothing to count
        split = levels[place + 1] + min(1.0, levels[place] - levels[place + 1]) / 2.0
        expected = (curve.p[place], curve.q[place])[::sign]  # of the first dataset's runs, of the second's
        for runs, likely in zip(ratios, expected, strict=True):
            hits = int(np.sum(sign * runs > split))
            assert min(binom.cdf(hits, RUNS, likely), binom.sf(hits - 1, RUNS, likely)) > CHANCE / 2.0


@for_each("name", ["NoisyMax3", "NoisyMax4"])
def test_an_interval_of_the_largest_answer_is_weighed_as_its_cell_says(name: str) -> None:
    """The quotient within 6.5 of its standard errors, and the mass of 2^21 runs within 3 %: 4e-10 by chance."""
    of = row(name)
    pair, ratio = of.pairs[-1], log_ratio(name, of.entry, of.pairs[-1])
    assert ratio is not None
    scale, one_sided = largest.noise(of.entry)
    ends = np.array([-np.inf, 20.0])
    sides = [np.asarray(data, float) for data in (pair.first, pair.second)]
    first, second = (float(largest.between(side, ends, scale, one_sided=one_sided)[0]) for side in sides)
    p, q, error = weighed(Event(Coordinate(), ((-math.inf, 20.0),)), ratio, of.entry, pair)
    assert abs(math.log(p / q) - math.log(first / second)) < 6.5 * error < 1e-3
    assert p == pytest.approx(first, rel=0.03)


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
