"""Exact losses of the sparse vector family against enumeration and quadrature. All exact but two seeded tests.

These fail by chance with probability at most 1e-9. Published tables stand in `losses.txt`.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.losses.comparisons import chances, outputs
from dpaudit.losses.released import gap_ratio, largest, log_reached
from tests.catalogue.quadrature import Laplace, halts, over_noise

LEVEL = 1e-9
Answers = tuple[float, ...]


@pytest.mark.parametrize("c", [1, 2, 3])
def test_the_loss_of_sparse_is_the_largest_over_all_outputs(c: int) -> None:
    """Brute force: every output is a list of places of tops, each epoch by adaptive quadrature."""
    first, second = [1, -1, 0, 1], [2, -2, 1, 0]
    laws = [[halts(answers[start:], 0.0, 2.0 * c, 4.0 * c) for start in range(4)] for answers in (first, second)]
    losses = []
    for count in range(c + 1):
        for tops in itertools.combinations(range(4), count):
            starts = [0, *(top + 1 for top in tops)]
            steps = [(start, top - start) for start, top in zip(starts, tops, strict=False)]
            if count < c and starts[-1] < 4:
                steps.append((starts[-1], 4 - starts[-1]))
            losses.append(sum(math.log(laws[0][start][place] / laws[1][start][place]) for start, place in steps))
    assert find("sparse").true_epsilon(first, second, {"c": c}) == pytest.approx(max(map(abs, losses)), rel=1e-8)


def test_the_loss_of_the_released_value_bounds_every_density_ratio() -> None:
    """The density of (bottom, bottom, value) by adaptive quadrature: never above the loss, and close to it."""
    pair, law = ([0, 0, 1], [1, 1, 0]), Laplace(4.0)
    loss = find("sparse").value_released.true_epsilon(*pair, {"c": 1})
    assert loss is not None

    def density(answers: list[int], value: float) -> float:
        def bottoms(noise: float) -> float:
            return math.prod(law.cdf(noise - answer) for answer in answers[:2]) if noise <= value else 0.0

        return over_noise(bottoms, [*answers, value], 2.0) * law.pdf(value - answers[2])

    ratios = [abs(math.log(density(pair[0], s) / density(pair[1], s))) for s in np.arange(-3.0, 6.01, 0.5)]
    assert 0.99 * loss < max(ratios) <= loss * (1 + 1e-9)


@pytest.mark.parametrize("most", [None, 1, 2])
def test_classes_of_outputs_hold_every_output_once(most: int | None) -> None:
    """Brute force: all words of tops and bottoms, cut at the halt, by the trapezoid rule over the threshold."""
    answers, kinds = [0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]
    found = outputs(kinds, most)
    probabilities = chances(np.array([0.0, 1.0]), found, 0.5, 2.0, 3.0)
    words = set()
    for word in itertools.product((0, 1), repeat=4):
        halt = next((j + 1 for j in range(4) if sum(word[: j + 1]) == most), 4)
        words.add(word[:halt])
    assert found.size.sum() == len(words)
    assert found.size @ probabilities == pytest.approx(1.0, rel=1e-12)
    query = stats.laplace(scale=3.0)
    t = np.linspace(-60.0, 60.0, 24_001)
    weight = stats.laplace(0.5, 2.0).pdf(t)
    table = {
        (tuple(tops), tuple(bottoms)): p
        for tops, bottoms, p in zip(found.tops.tolist(), found.bottoms.tolist(), probabilities, strict=True)
    }
    over = [query.sf(t - answer) for answer in answers]
    for word in words:
        product = weight * np.prod([over[j] if bit else 1.0 - over[j] for j, bit in enumerate(word)], axis=0)
        key = tuple(
            tuple(sum(bit == value for bit, kind in zip(word, kinds, strict=False) if kind == k) for k in (0, 1))
            for value in (1, 0)
        )
        assert table[key] == pytest.approx(float(integrate.trapezoid(product, t)), rel=1e-5)  # type: ignore[index]


def test_the_gap_bounds_every_density_ratio() -> None:
    """The density of (bottom, bottom, gap) by a fine sum over the threshold: never above the loss, and close to it."""
    p, q = np.array([1.0, 1.0, -1.0]), np.array([2.0, 2.0, -2.0])
    t = np.linspace(-60.0, 60.0, 24_001)
    query, level = stats.laplace(scale=4.0), stats.laplace(scale=2.0).pdf(t)
    bottoms = {id(side): level * query.cdf(t - side[0]) * query.cdf(t - side[1]) for side in (p, q)}

    def density(answers: np.ndarray, gap: float) -> float:
        return float(integrate.trapezoid(bottoms[id(answers)] * query.pdf(t + gap - answers[2]), t))

    ratios = [math.log(density(p, gap) / density(q, gap)) for gap in np.arange(0.0, 30.0, 1.0)]
    found = gap_ratio(p, q, 0.0, 2.0, 4.0)
    assert found - 1e-3 < max(ratios) <= found + 1e-6


def test_reaching_is_a_distribution_function() -> None:
    cuts = np.array([-3.0, 0.0, 2.0, np.inf])
    assert np.exp(log_reached(np.array([]), cuts, 0.0, 2.0, 4.0)) == pytest.approx(stats.laplace(scale=2.0).cdf(cuts))


def test_the_search_finds_a_kink_between_grid_points() -> None:
    assert largest(lambda x: -np.abs(x - math.pi / 7), -3.0, 5.0) == pytest.approx(0.0, abs=1e-7)


# --- values beside tops, and two runs side by side ----------------------------------------------------------------


@cache
def reached(answers: Answers, tops: tuple[int | None, ...], most: float, scales: tuple[float, float]) -> float:
    """The probability that the answers compare like this (None: either way) with a noisy threshold of at most `most`.

    The threshold is 0; the scales are those of its noise and of the answers'.
    """
    threshold, noise = (stats.laplace(scale=scale) for scale in scales)
    far = 40.0 * scales[0]
    edges = np.unique([-far, *(x for x in (0.0, *answers) if x < most), min(most, far)])
    nodes, weights = np.polynomial.legendre.leggauss(60)
    widths = np.diff(edges)[:, None]
    levels = edges[:-1, None] + widths * (nodes + 1.0) / 2.0
    mass = widths * weights / 2.0 * threshold.pdf(levels)
    for answer, top in zip(answers, tops, strict=False):
        if top is not None:
            mass = mass * (noise.sf if top else noise.cdf)(levels - answer)
    return float(mass.sum())


def halted(places: int, most: int) -> list[tuple[int, ...]]:
    """All sequences of tops and bottoms that end at the top number `most`."""
    full = itertools.product((0, 1), repeat=places)
    return sorted({run[: [*itertools.accumulate(run), most].index(most) + 1] for run in full})


@pytest.mark.parametrize(("first", "second"), [((1, 1, -1), (2, 2, -2)), ((0, 1, 0), (1, 0, 1))])
def test_the_loss_of_a_list_with_zeros_by_all_its_outputs(first: Answers, second: Answers) -> None:
    """A top with a fresh value costs the move of its answer over the scale of that value, and a zero nothing."""
    runs, scales = halted(3, 2), (3.0, 12.0)
    p, q = (np.array([reached(side, run, math.inf, scales) for run in runs]) for side in (first, second))
    assert [p.sum(), q.sum()] == pytest.approx([1.0, 1.0], rel=1e-9)
    values = [sum(abs(x - y) / 6.0 for x, y, top in zip(first, second, run, strict=False) if top) for run in runs]
    assert find("numerical_sparse").true_epsilon(first, second) == pytest.approx(np.max(np.abs(np.log(p / q)) + values))


def test_the_values_of_a_list_with_zeros_have_fresh_noise() -> None:
    """Lap(3 c / epsilon) around the answer, whatever the comparison saw."""
    entry, answers = find("numerical_sparse").with_parameters({"epsilon": 2.0}), np.array([3.0, -1.0, 0.5])
    released = entry.open().call(answers.tolist(), 20_000, np.random.Generator(np.random.SFC64(3)))
    for place, answer in enumerate(answers):
        values = released[:, place].compressed()
        values = values[values != 0.0]
        assert len(values) > 4_000
        assert stats.kstest(values, stats.laplace(answer, 3.0).cdf).pvalue > LEVEL / 3


def test_two_runs_lose_at_most_the_sum_of_what_each_does() -> None:
    """And the sum where both lose most in one direction, as with bottoms at answers that rise."""
    each, both = find("sparse_lyu_1"), find("sparse_twice")
    pair = ([1, 1, 1, -1, -1], [2, 2, 2, -2, -2])
    assert both.true_epsilon(*pair) == pytest.approx(2.0 * each.true_epsilon(*pair))
    for pair in (([1, 1, -1, -1], [2, 2, -2, -2]), ([0, 0, 0], [1, 1, 1]), ([0, 1, 0], [1, 0, 1])):
        found = both.lyu_3_and_4.true_epsilon(*pair)
        alone = [each.lyu_3.true_epsilon(*pair), each.lyu_4.true_epsilon(*pair)]
        assert max(alone) <= found <= sum(alone) * (1 + 1e-12)


@pytest.mark.parametrize(("first", "second"), [((0, 0, 1), (1, 1, 0)), ((1, -1), (2, -2))])
def test_the_loss_of_two_wrong_runs_by_all_their_outputs(first: Answers, second: Answers) -> None:
    """Of the first run every output with values on a grid: the lowest bounds the noisy threshold."""
    grid, scales = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 60.0), (4.0, 4.0 / 3.0)

    def log_density(side: Answers, run: tuple[int, ...], values: tuple[float, ...]) -> float:
        tops = [x for x, top in zip(side, run, strict=False) if top]
        noises = sum(abs(value - x) / 4.0 for value, x in zip(values, tops, strict=True))
        held = tuple(None if top else 0 for top in run)
        return math.log(reached(side, held, min(values, default=math.inf), (2.0, 4.0))) - noises

    losses = []
    for one, other in ((first, second), (second, first)):
        runs = halted(len(one), 2)
        values = max(
            log_density(one, run, given) - log_density(other, run, given)
            for run in runs
            for given in itertools.product(grid, repeat=sum(run))
        )
        bits = max(
            math.log(reached(one, run, math.inf, scales) / reached(other, run, math.inf, scales)) for run in runs
        )
        losses.append(values + bits)
    found = find("sparse_twice.lyu_3_and_4").true_epsilon(first, second)
    assert found == pytest.approx(max(losses), rel=1e-6)


def test_more_tops_asked_for_than_there_are_answers() -> None:
    """No run halts, however large the number is; the noise of algorithm 4 does not depend on it."""
    entry = find("sparse_lyu_1.lyu_4")
    found = [entry.with_parameters({"c": c}).open().call([9] * 3, 50, np.random.default_rng(1)) for c in (5, 4, 40_000)]
    assert not any(outputs.mask.any() for outputs in found)
    assert all(np.array_equal(found[0].data, outputs.data) for outputs in found)


def test_the_two_runs_are_independent() -> None:
    """The outputs of both: each pair of them as often as independent runs have it."""
    found = find("sparse_twice.lyu_3_and_4").open().call([0, 1, 0], 100_000, np.random.Generator(np.random.SFC64(1)))
    one, other = (found.mask[:, half] @ [1, 2, 4] for half in (slice(0, 3), slice(3, 6)))
    tops = found.data[:, 3:] @ [1, 2, 4]
    table = np.histogram2d(one, other * 8 + tops, bins=(np.arange(9), np.arange(65)))[0]
    table = table[table.sum(axis=1) > 2_000][:, table.sum(axis=0) > 2_000]  # at least 40 expected in each cell
    assert min(table.shape) >= 4
    assert stats.chi2_contingency(table).pvalue > LEVEL
