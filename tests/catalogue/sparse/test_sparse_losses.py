"""Exact losses of the sparse vector family: published tables, closed forms, brute force. All exact."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.sparse.values import listed
from dpaudit.errors import InvalidSpec
from dpaudit.losses.comparisons import chances, outputs
from dpaudit.losses.released import gap_ratio, largest, log_reached
from tests.cases import for_each


def moved(bottoms: int, tops: int) -> tuple[list[float], list[float]]:
    return [1.0] * bottoms + [-1.0] * tops, [2.0] * bottoms + [-2.0] * tops


def worst(name: str, answers: int, c: int, most: int) -> float:
    entry = find(name)
    return max(entry.true_epsilon(*moved(answers - m, m), {"c": c}) or 0.0 for m in range(most + 1))


# rigorous arithmetic over vectors within [-2, 2], four digits, at claim 1
@pytest.mark.parametrize(
    ("name", "c", "losses"),
    [
        ("sparse_lyu_1", 1, (0.4567, 0.8072, 0.9900)),
        ("sparse_lyu_1", 2, (0.2336, 0.4698, 0.8344)),
        ("sparse_lyu_1.lyu_4", 1, (1.2997, 1.7374, 1.7500)),
        ("sparse_lyu_1.lyu_4", 2, (1.2997, 2.7282, 3.2493)),
        ("sparse_lyu_1.query_noise_not_scaled", 2, (0.4567, 0.9268, 1.4399)),
    ],
)
def test_variants_have_the_published_losses(name: str, c: int, losses: tuple[float, ...]) -> None:
    assert [worst(name, n, c, c) for n in (2, 4, 8)] == pytest.approx(losses, abs=5.1e-5)


@pytest.mark.parametrize(
    ("name", "losses"),
    [("sparse_lyu_1.lyu_6", (0.9050, 1.8556, 3.8000)), ("above_threshold.no_halt", (0.4567, 0.9268, 1.8859))],
)
def test_without_a_cut_off_the_published_losses_have_no_bound(name: str, losses: tuple[float, ...]) -> None:
    entry = find(name)
    found = [max(entry.true_epsilon(*moved(n - m, m)) or 0.0 for m in range(n + 1)) for n in (2, 4, 8)]
    assert found == pytest.approx(losses, abs=5.1e-5)


@pytest.mark.parametrize("c", [1, 2])
def test_the_value_of_algorithm_3_costs_one_half_an_answer(c: int) -> None:
    lyu_3 = find("sparse_lyu_1").lyu_3
    found = [lyu_3.true_epsilon([0.0] * n, [1.0] * n, {"c": c}) for n in (1, 4)]
    assert found == pytest.approx([1 / (2 * c), 4 / (2 * c)])


def test_algorithm_5_has_no_epsilon() -> None:
    lyu_5 = find("sparse_lyu_1").lyu_5
    assert lyu_5.true_epsilon([0, 1], [1, 0]) == math.inf
    assert lyu_5.true_epsilon([-1], [0]) == pytest.approx(0.5)


@pytest.mark.parametrize(("answers", "loss"), [(1, 0.25), (2, 0.5), (4, 0.9588), (8, 1.0)])
def test_gaps_have_the_published_losses(answers: int, loss: float) -> None:
    pair = [20.0] * (answers - 1) + [-20.0], [21.0] * (answers - 1) + [-21.0]
    assert find("gap_sparse").true_epsilon(*pair, {"c": 1}) == pytest.approx(loss, abs=5.1e-5)


@for_each("name", ["sparse_lyu_1", "sparse_lyu_7", "numeric_sparse", "sparse_monotone"])
@for_each("c", [1, 2])
def test_a_sound_member_keeps_its_claim_on_many_pairs(name: str, c: int) -> None:
    entry, rng = find(name), np.random.default_rng(5)
    for _ in range(12):
        first = rng.integers(-6, 7, 5) / 2
        move = rng.choice([0.0, 0.5, 1.0], 5) if name == "sparse_monotone" else rng.choice([-1.0, 0.0, 1.0], 5)
        assert (entry.true_epsilon(first, first + move, {"c": c}) or 0.0) <= 1.0 + 1e-9


@pytest.mark.parametrize("most", [None, 1, 2])
def test_classes_of_outputs_hold_every_output_once(most: int | None) -> None:
    """Brute force: all words of tops and bottoms, cut at the halt, by adaptive quadrature over the threshold."""
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
    t = np.linspace(-60.0, 60.0, 240_001)
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
        assert table[key] == pytest.approx(float(integrate.trapezoid(product, t)), rel=1e-6)  # type: ignore[index]


def test_all_outputs_are_listed_with_the_largest_log_ratio_of_the_epochs() -> None:
    first, second = [1.0, -1.0, 0.0, 1.0, -1.0], [2.0, -2.0, 1.0, 0.0, -2.0]
    p, q = (listed(np.array(side), 2, 0.0, 4.0, 8.0) for side in (first, second))
    assert p.sum() == pytest.approx(1.0)
    assert np.abs(np.log(p / q)).max() == pytest.approx(find("sparse").true_epsilon(first, second))


def test_the_gap_bounds_every_density_ratio() -> None:
    """The density of (bottom, bottom, gap) by a fine sum over the threshold: never above the loss, and close to it."""
    p, q = np.array([1.0, 1.0, -1.0]), np.array([2.0, 2.0, -2.0])
    t = np.linspace(-60.0, 60.0, 120_001)
    query, level = stats.laplace(scale=4.0), stats.laplace(scale=2.0).pdf(t)

    def density(answers: np.ndarray, gap: float) -> float:  # type: ignore[type-arg]
        bottoms = query.cdf(t - answers[0]) * query.cdf(t - answers[1])
        return float(integrate.trapezoid(level * bottoms * query.pdf(t + gap - answers[2]), t))

    ratios = [math.log(density(p, g) / density(q, g)) for g in np.arange(0.0, 30.0, 0.5)]
    found = gap_ratio(p, q, 0.0, 2.0, 4.0)
    assert max(ratios) <= found + 1e-6
    assert max(ratios) > found - 1e-3


def test_reaching_is_a_distribution_function() -> None:
    cuts = np.array([-3.0, 0.0, 2.0, np.inf])
    assert np.exp(log_reached(np.array([]), cuts, 0.0, 2.0, 4.0)) == pytest.approx(stats.laplace(scale=2.0).cdf(cuts))


def test_the_search_finds_a_kink_between_grid_points() -> None:
    assert largest(lambda x: -np.abs(x - math.pi / 7), -3.0, 5.0) == pytest.approx(0.0, abs=1e-7)


def test_closed_forms_of_twins() -> None:
    at, gap, numeric = find("above_threshold"), find("gap_sparse"), find("numeric_sparse")
    assert at.threshold_released.true_epsilon([0] * 12, [1] * 12) == pytest.approx(3.0)  # 12 bottoms, 1/4 each
    assert gap.value_beside_gap.true_epsilon([0] * 9, [1] * 9, {"c": 1}) == pytest.approx(9 / 4)
    assert gap.exact_gap.true_epsilon([0] * 3 + [9], [1] * 3 + [8], {"c": 1}) == pytest.approx(
        3 * 2 / 4 + 1 / 2, abs=1e-6
    )
    bits = find("sparse_lyu_1").true_epsilon([1, -1], [2, -2], {"c": 2, "epsilon": 2 / 3})
    assert bits is not None
    value = numeric.true_epsilon([1, -1], [2, -2], {"c": 2})
    assert value is not None
    assert value <= bits + 2 * (1 / 6) + 1e-9  # each of two tops moves by 1, with Lap(3 c)


def test_one_threshold_is_harmless_with_this_noise() -> None:
    """Alignments: the threshold costs 1 / (2 c), each top 1 / (2 c), so c tops (1 + c) / (2 c) at most."""
    kept = find("sparse").threshold_kept
    for c in (2, 3, 4):
        assert (kept.true_epsilon(*moved(8, c), {"c": c}) or 0.0) <= (1 + c) / (2 * c) + 1e-9


def test_approximate_sparse_is_below_what_its_epochs_allow() -> None:
    from dpaudit.claims import PureDP, compose_optimal

    entry = find("sparse_approximate")
    given = {"epsilon": 2.0, "c": 3, "delta": 1e-3}
    each = 2.0 / math.sqrt(2 * 3 * math.log(1e3))
    loss = entry.true_epsilon([0.0, -1.0] * 3, [1.0, -2.0] * 3, given)
    assert loss is not None
    assert 0.0 < loss <= compose_optimal(PureDP(each), 3).epsilon_at(1e-3)


def test_answers_less_their_thresholds_meet_nought() -> None:
    entry, thresholds = find("sparse_thresholds"), [0.0, 5.0, -2.0, 1.0]
    first, second = [1.0, 6.0, -1.0, 0.0], [2.0, 7.0, 0.0, -1.0]
    less = [1.0, 1.0, 1.0, -1.0], [2.0, 2.0, 2.0, -2.0]
    for c in (1, 2):
        loss = entry.true_epsilon(first, second, {"thresholds": thresholds, "c": c})
        assert loss == find("sparse").true_epsilon(*less, {"c": c})
    own = entry.noise_of_its_own.true_epsilon(first, second, {"thresholds": thresholds, "c": 4})
    laws = [np.array([listed(np.array([x]), 1, 0.0, 8.0, 16.0) for x in side]) for side in less]  # top, bottom
    assert own == pytest.approx(
        np.abs(np.log(laws[0] / laws[1])).max(axis=1).sum()
    )  # four tops: no halt before the end
    with pytest.raises(InvalidSpec, match="one for each answer"):
        entry.with_parameters({"thresholds": 1.0})
