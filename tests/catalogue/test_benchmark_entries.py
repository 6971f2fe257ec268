"""Mechanisms that came with the published benchmark: their laws and losses by listing, by densities, by their parts.

No test here depends on chance, but for those of fresh noise and of independence: seeded, each fails with probability
at most 1e-9.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.losses.released import geosample_law, geosample_steps, largest_one_sided

LEVEL = 1e-9
Answers = tuple[float, ...]
PAIRS = [([2.0, 0.0], [2.0, 1.0]), ([3.0, 3.0, 1.0, 0.0], [3.0, 3.0, 0.5, -1.0]), ([0.0, 5.0], [1.0, 5.0])]


# --- truncated geometric noise in whole numbers -------------------------------------------------------------------


class Uniform:
    """In the place of a generator: its bytes spell one whole number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def bytes(self, size: int) -> bytes:
        return self.number.to_bytes(size, "little")


@pytest.mark.parametrize(("epsilon", "n"), [(0.9, 1), (0.9, 3), (0.25, 2)])
def test_the_law_of_geosample_by_every_uniform_number(epsilon: float, n: int) -> None:
    """The program, once for each number that it may draw."""
    entry, k = find("truncated_geometric").with_parameters({"epsilon": epsilon, "n": n}), geosample_steps(epsilon)
    outcomes = (2 ** (k + 1) + 1) * (2**k + 1) ** (n - 1)
    for count in range(n + 1):
        outputs = [entry.run(count, Uniform(number)) for number in range(outcomes)]
        assert np.bincount(outputs, minlength=n + 1) / outcomes == pytest.approx(geosample_law(k, n, count), rel=1e-14)


@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 5), (6, 12)])
def test_geosample_is_geometric_noise_clamped(k: int, n: int) -> None:
    a = 2.0**k / (2.0**k + 1.0)
    for count in range(n + 1):
        noise = np.arange(-count, n - count + 1)
        law = (1.0 - a) / (1.0 + a) * a ** np.abs(noise.astype(float))
        law[0], law[-1] = a**count / (1.0 + a), a ** (n - count) / (1.0 + a)
        assert geosample_law(k, n, count) == pytest.approx(law, rel=1e-12)


def test_geosample_keeps_the_claim_of_its_k_and_not_the_epsilon_that_k_was_made_from() -> None:
    entry = find("truncated_geometric").with_parameters({"epsilon": 0.1})
    assert entry.claim().promised(0.0) == pytest.approx(math.log(1.125))
    assert [entry.true_epsilon(1, other) for other in (0, 2)] == pytest.approx([math.log(1.125)] * 2)
    assert entry.claimed_as_epsilon.claim().promised(0.0) == 0.1


# --- the largest of noisy answers, without its index --------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_loss_of_a_one_sided_maximum_bounds_its_cells_and_is_reached(
    first: list[float], second: list[float], scale: float
) -> None:
    def cells(answers: list[float], edges: Any) -> Any:
        cdf = np.prod([-np.expm1(-np.maximum(edges - answer, 0.0) / scale) for answer in answers], axis=0)
        return np.diff(cdf)

    edges = max(first) + scale * np.concatenate([np.geomspace(1e-4, 0.1, 400), np.linspace(0.1, 8.0, 3_000)[1:]])
    ratios = np.abs(np.log(cells(first, edges) / cells(second, edges)))
    loss = largest_one_sided(np.array(first), np.array(second), scale)
    assert ratios.max() <= loss * (1 + 1e-6)
    assert loss <= ratios.max() * 1.01


def test_a_one_sided_maximum_has_no_epsilon_where_its_start_moves() -> None:
    """The largest answer, or how many answers are the largest."""
    entry = find("report_noisy_max_exponential.value_only")
    assert entry.true_epsilon([1, 1, 1], [2, 1, 1]) == math.inf
    assert entry.true_epsilon([1, 1, 1], [0, 1, 1]) == math.inf
    assert entry.true_epsilon([1, 1, 0], [0, 1, 1]) == pytest.approx(0.0, abs=1e-12)


# --- sums, and outputs side by side -------------------------------------------------------------------------------


def test_running_totals_lose_what_the_noisy_answers_do() -> None:
    """Every move costs its size over the scale, 1 / epsilon."""
    moves = [([1, 1, 1], [2, 1, 1], 1.0), ([1, 1, 1], [0, 2, 0.5], 2.5), ([2, 1, 1], [0, 2, 0.5], 3.5)]
    for name, (first, second, moved) in itertools.product(("prefix_sums", "prefix_sums.all_answers_move"), moves):
        entry = find(name).with_parameters({"epsilon": 0.3})
        assert entry.true_epsilon(first, second) == pytest.approx(0.3 * moved)


def test_noise_of_the_inverse_scale() -> None:
    entry = find("laplace_vector.inverted_scale").with_parameters({"epsilon": 0.1, "sensitivity": 1.0})
    assert entry.true_epsilon([1] * 5, [0] + [1] * 4) == pytest.approx(10.0)  # 1 / epsilon


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
    outputs = entry.open().call(answers.tolist(), 50_000, np.random.Generator(np.random.SFC64(3)))
    for place, answer in enumerate(answers):
        values = outputs[:, place].compressed()
        values = values[values != 0.0]
        assert len(values) > 10_000
        assert stats.kstest(values, stats.laplace(answer, 3.0).cdf).pvalue > LEVEL / 3


def test_two_runs_lose_at_most_the_sum_of_what_each_does() -> None:
    """And the sum where both lose most in one direction, as with bottoms at answers that rise."""
    each, twice = find("sparse_lyu_1"), find("sparse_twice")
    pair = ([1, 1, 1, -1, -1], [2, 2, 2, -2, -2])
    assert twice.true_epsilon(*pair) == pytest.approx(2.0 * each.true_epsilon(*pair))
    for pair in (([1, 1, -1, -1], [2, 2, -2, -2]), ([0, 0, 0], [1, 1, 1]), ([0, 1, 0], [1, 0, 1])):
        found = twice.lyu_3_and_4.true_epsilon(*pair)
        alone = [each.lyu_3.true_epsilon(*pair), each.lyu_4.true_epsilon(*pair)]
        assert max(alone) <= found <= sum(alone) * (1 + 1e-12)
    assert twice.claim().promised(0.0) == 2.0


@pytest.mark.parametrize(("first", "second"), [((0, 0, 1), (1, 1, 0)), ((1, -1), (2, -2))])
def test_the_loss_of_two_wrong_runs_by_all_their_outputs(first: Answers, second: Answers) -> None:
    """Of the first run every output with values on a grid: the lowest bounds the noisy threshold."""
    grid = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 60.0)

    def log_density(side: Answers, run: tuple[int, ...], values: tuple[float, ...]) -> float:
        tops = [x for x, top in zip(side, run, strict=False) if top]
        noises = sum(abs(value - x) / 4.0 for value, x in zip(values, tops, strict=True))
        held = tuple(None if top else 0 for top in run)
        return float(np.log(reached(side, held, min(values, default=math.inf), (2.0, 4.0)))) - noises

    losses = []
    for one, other in ((first, second), (second, first)):
        runs = halted(len(one), 2)
        values = max(
            log_density(one, run, given) - log_density(other, run, given)
            for run in runs
            for given in itertools.product(grid, repeat=sum(run))
        )
        bits = max(
            float(
                np.log(reached(one, run, math.inf, (4.0, 4.0 / 3.0)) / reached(other, run, math.inf, (4.0, 4.0 / 3.0)))
            )
            for run in runs
        )
        losses.append(values + bits)
    found = find("sparse_twice.lyu_3_and_4").true_epsilon(first, second)
    assert found == pytest.approx(max(losses), rel=1e-6)


@pytest.mark.parametrize("c", [4, 40_000])
def test_more_tops_asked_for_than_there_are_answers(c: int) -> None:
    """No run halts, however large the number is; the noise of algorithm 4 does not depend on it."""
    outputs = find("sparse_lyu_1.lyu_4").with_parameters({"c": c}).open().call([9] * 3, 50, np.random.default_rng(1))
    assert not outputs.mask.any()
    same = find("sparse_lyu_1.lyu_4").with_parameters({"c": 5}).open().call([9] * 3, 50, np.random.default_rng(1))
    assert np.array_equal(outputs.data, same.data)


def test_the_two_runs_are_independent() -> None:
    """The outputs of both: each pair of them as often as independent runs have it."""
    outputs = find("sparse_twice.lyu_3_and_4").open().call([0, 1, 0], 100_000, np.random.Generator(np.random.SFC64(1)))
    one, other = (outputs.mask[:, half] @ [1, 2, 4] for half in (slice(0, 3), slice(3, 6)))
    tops = outputs.data[:, 3:] @ [1, 2, 4]
    table = np.histogram2d(one, other * 8 + tops, bins=(np.arange(9), np.arange(65)))[0]
    table = table[table.sum(axis=1) > 2_000][:, table.sum(axis=0) > 2_000]  # at least 40 expected in each cell
    assert min(table.shape) >= 4
    assert stats.chi2_contingency(table).pvalue > LEVEL
