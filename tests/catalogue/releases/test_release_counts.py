"""Counts: exact losses against enumeration, and the laws of the twins. Each fails by chance with <= 1e-8."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue.releases import noisy_counts, noisy_subset_counts
from dpaudit.catalogue.releases.counts import AREAS, CELLS
from dpaudit.catalogue.releases.tables import most_queries_of_one, subsets
from dpaudit.losses.released import random_rounding_loss, rounded_noise_loss

LEVEL = 1e-8
RNG = np.random.default_rng(0)


def rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def people(*sizes: int) -> list[tuple[str, str]]:
    return [cell for cell, size in zip(CELLS, sizes, strict=True) for _ in range(size)]


def rounding_law(count: int, base: int) -> dict[int, float]:
    """By the definition: unbiased, and only the two neighbouring multiples."""
    low = count - count % base
    return {value: 1.0 - abs(value - count) / base for value in (low, low + base) if abs(value - count) < base}


@pytest.mark.parametrize("base", [2, 3, 5])
def test_the_loss_of_random_rounding_by_enumeration(base: int) -> None:
    for p, q in itertools.product(range(12), repeat=2):
        one, other = rounding_law(p, base), rounding_law(q, base)
        same = one.keys() == other.keys()
        expected = max((abs(math.log(one[v] / other[v])) for v in one), default=0.0) if same else math.inf
        assert random_rounding_loss([p, 4], [q, 4], base) == pytest.approx(expected, abs=1e-9)


def test_losses_of_several_cells_add_up() -> None:
    """Neighbours move one cell; a group of people may move two, in one direction or in both."""
    assert random_rounding_loss([2, 2], [1, 1], 3) == pytest.approx(2 * math.log(2))
    assert random_rounding_loss([2, 1], [1, 2], 3) == pytest.approx(2 * math.log(2))
    assert rounded_noise_loss([3, 3], [2, 2], 1.0, 5) == pytest.approx(2.0)


@pytest.mark.parametrize(("p", "q", "base", "scale"), [(3, 2, 5, 1.0), (0, 1, 5, 2.0), (7, 5, 3, 0.5)])
def test_the_loss_of_noise_and_then_rounding_by_the_tails(p: int, q: int, base: int, scale: float) -> None:
    """Every published value by itself, its probability from scipy's tails; the last one stands for all beyond."""
    edges = base * (np.arange(40) + 0.5)
    law = [stats.laplace(loc=count, scale=scale) for count in (p, q)]
    first, second = (np.append(each.cdf(edges[0]), each.sf(edges[:-1]) - each.sf(edges[1:])) for each in law)
    kept = (first > 1e-12) & (second > 1e-12)
    expected = np.abs(np.log(first[kept] / second[kept])).max()
    assert rounded_noise_loss([p], [q], scale, base) == pytest.approx(expected, rel=1e-5)
    assert rounded_noise_loss([p], [q], scale, base) == pytest.approx(abs(p - q) / scale)


def test_random_rounding_is_unbiased_and_has_its_law() -> None:
    entry, data = noisy_counts.randomly_rounded, people(3, 1, 5, 4, 0, 2)
    outputs = entry.open().call(data, 30_000, rng(1))
    for place, count in enumerate((3, 1, 5, 4, 0, 2)):
        law = rounding_law(count, 3)
        seen = Counter(outputs[:, place].tolist())
        assert seen.keys() == {value for value, chance in law.items() if chance > 0}
        assert stats.binomtest(seen[min(law)], 30_000, law[min(law)]).pvalue > LEVEL


def test_bounded_noise_covers_a_fifth_that_the_other_world_cannot_give() -> None:
    outputs = noisy_counts.bounded_noise.open().call(people(3, 6, 5, 4, 1, 4), 30_000, rng(2))
    seen = Counter(outputs[:, 0].tolist())
    assert sorted(seen) == [1, 2, 3, 4, 5]
    assert stats.chisquare(list(seen.values())).pvalue > LEVEL
    assert outputs[:, 4].min() == -1, "counts below 0 are published as they are"


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.6, 1.0])
def test_swapping_keeps_both_totals(rate: float) -> None:
    entry, sizes = noisy_counts.swapped.with_parameters({"rate": rate}), (3, 6, 5, 4, 1, 4)
    outputs = entry.open().call(people(*sizes), 4_000, rng(3)).reshape(-1, len(AREAS), 2)
    exact = np.array(sizes).reshape(len(AREAS), 2)
    assert (outputs.sum(axis=2) == exact.sum(axis=1)).all()
    assert (outputs.sum(axis=1) == exact.sum(axis=0)).all()
    assert (outputs == exact).all(axis=(1, 2)).any()
    if rate == 0.0:
        assert (outputs == exact).all()


def test_swapping_everybody_is_a_random_order() -> None:
    """At rate 1 the ill of the north are drawn without replacement: hypergeometric."""
    entry = noisy_counts.swapped.with_parameters({"rate": 1.0})
    outputs = entry.open().call(people(3, 6, 5, 4, 1, 4), 20_000, rng(4))
    law = stats.hypergeom(23, 9, 9)
    seen = np.bincount(outputs[:, 0], minlength=10)
    expected = 20_000 * law.pmf(np.arange(10))
    common = expected > 5
    table = np.append(seen[common], seen[~common].sum()), np.append(expected[common], expected[~common].sum())
    assert stats.chisquare(*table).pvalue > LEVEL


def test_what_is_left_out() -> None:
    data = people(3, 6, 5, 4, 1, 4)
    assert noisy_counts.small_cells_left_out.run(data, RNG) == {1: 6.0, 2: 5.0}
    assert noisy_counts.small_groups_left_out.with_parameters({"least": 6}).run(data, RNG) == {
        place: float(size) for place, size in enumerate((3, 6, 5, 4))
    }
    assert noisy_counts.empty_left_out.run(people(3, 0, 5, 0, 1, 4), RNG).keys() == {0, 2, 4, 5}
    assert noisy_counts.rounded.run(people(2, 3, 7, 8, 12, 13), RNG) == (0, 5, 5, 10, 10, 15)


def test_a_person_in_a_cell_that_is_hidden_costs_nothing_and_any_other_everything() -> None:
    entry = noisy_counts.small_cells_left_out
    assert entry.true_epsilon(people(3, 6, 5, 4, 1, 4), people(2, 6, 5, 4, 1, 4)) == 0.0
    assert entry.true_epsilon(people(3, 6, 5, 4, 1, 4), people(3, 7, 5, 4, 1, 4)) == math.inf
    empty = noisy_counts.empty_left_out
    assert empty.true_epsilon(people(3, 6, 5, 4, 1, 4), people(2, 6, 5, 4, 1, 4)) == pytest.approx(1.0)


# --- counts over subsets --------------------------------------------------------------------------------------


def test_the_subsets_are_public_and_fixed() -> None:
    assert np.array_equal(subsets(8, 6), subsets.__wrapped__(8, 6))
    assert not subsets(8, 6).flags.writeable
    assert most_queries_of_one(8, 6) == max(sum(column) for column in zip(*subsets(8, 6).tolist(), strict=True)) == 5


def test_the_loss_over_all_replacements_is_at_most_the_claim() -> None:
    data = [0, 1, 1, 0, 1, 0, 0, 1]
    flips = [[1 - bit if j == i else bit for j, bit in enumerate(data)] for i in range(len(data))]
    losses = [noisy_subset_counts.true_epsilon(data, flip) for flip in flips]
    assert losses == pytest.approx([int(column.sum()) / 5 for column in subsets(8, 6).T])
    assert max(losses) == pytest.approx(1.0)  # type: ignore[type-var]
    assert max(noisy_subset_counts.noise_of_one_query.true_epsilon(data, flip) for flip in flips) == pytest.approx(5.0)  # type: ignore[type-var]
