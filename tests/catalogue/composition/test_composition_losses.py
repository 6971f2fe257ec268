"""The exact losses of the room against oracles of their own: densities on grids, cells, enumeration. No chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

LEFT, RIGHT = 1, 0


def largest(ratio: Callable[[Any], Any], points: Any) -> float:
    return float(np.max(np.abs(ratio(points))))


@for_each(
    ("name", "loss"),
    [
        ("composed_counts.noise_reused", math.inf),
        ("halving_budget.harmonic_shares", sum(1 / i for i in range(2, 10))),
        ("averaged_count.each_at_full_budget", 2.0),
        ("noisy_bisection.turn_by_truth", 7 / 3),
        ("repeated_response.delta_forgotten", 2.5),
        ("nonnegative_count.drawn_again", 1.0 + math.log(2.0 - math.exp(-1.0))),
        ("rounded_count.rounded_to_truth", 1.0 + math.log(2.0)),
        ("sampled_counts.one_sample", math.log(0.9 + 0.1 * math.exp(4.0))),
        ("group_count.size_not_enforced", 7 / 3),
        ("replaced_histogram.noise_for_removal", 2.0),
    ],
)
def test_closed_forms_on_the_default_pairs(name: str, loss: float) -> None:
    entry = find(name)
    assert entry.true_epsilon(*entry.default_pair) == pytest.approx(loss, rel=1e-12)


@for_each("epsilon", [0.5, 1.0, 2.0])
@for_each(("first", "second"), [(1, 0), (0, 2), (3, 4), (20, 21)])
def test_counts_drawn_again_have_the_densities_of_a_cut_laplace(epsilon: float, first: int, second: int) -> None:
    laws = [stats.laplace(count, 1.0 / epsilon) for count in (first, second)]
    z = np.arange(0.0, 60.0, 0.25)
    cut = [law.logpdf(z) - law.logsf(0.0) for law in laws]
    entry = find("nonnegative_count").with_parameters({"epsilon": epsilon})
    assert entry.drawn_again.true_epsilon(first, second) == pytest.approx(
        float(np.abs(cut[0] - cut[1]).max()), abs=1e-9
    )
    plain = [np.append(law.logpdf(z[1:]), law.logcdf(0.0)) for law in laws]
    assert entry.true_epsilon(first, second) == pytest.approx(float(np.abs(plain[0] - plain[1]).max()), abs=1e-9)


def cells(count: int, epsilon: float, least: int, cut: bool) -> Any:
    """The law of the published number, by the edges of its cells."""
    noise = stats.laplace(0.0, 1.0 / epsilon)
    published = np.arange(least, least + 40)
    moved = published - count
    if cut:
        low, high = np.where(moved <= 0, moved - 1.0, moved), np.where(moved >= 0, moved + 1.0, moved)
    else:
        low, high = moved - 0.5, moved + 0.5
    upper, lower = noise.sf(low) - noise.sf(high), noise.cdf(high) - noise.cdf(low)
    inner = np.where(low > 0, upper, lower)  # from the nearer tail, so that small ones keep their digits
    return np.append(inner, noise.cdf(low[0]))


@for_each("epsilon", [0.3, 1.0, 2.0])
@for_each(("first", "second"), [(10, 9), (5, 4), (3, 2), (1, 4), (6, 5)])
def test_rounded_counts_by_their_cells(epsilon: float, first: int, second: int) -> None:
    entry = find("rounded_count").with_parameters({"epsilon": epsilon, "least": 5})
    for each, cut in ((entry, False), (entry.rounded_to_truth, True)):
        laws = [cells(count, epsilon, 5, cut) for count in (first, second)]
        worst = float(np.max(np.abs(np.log(laws[0] / laws[1]))))
        assert each.true_epsilon(first, second) == pytest.approx(worst, abs=1e-7)


@for_each(
    ("first", "second"),
    [([0, 0, 7, 7], [0, 0, 0, 7, 7]), ([3, 4], [0, 3, 4]), ([], [5]), ([1, 2, 6], [1, 6]), ([3], [3, 3])],
)
@for_each("by_truth", [False, True])
def test_bisection_by_a_grid_of_transcripts(first: list[int], second: list[int], by_truth: bool) -> None:
    """The log ratio is piecewise linear with kinks at whole numbers, and constant far out."""
    grid = [-40.0, *range(-6, 1), 1e-12, *range(1, 7), 40.0]

    def log_density(data: list[int], answers: tuple[float, ...]) -> float:
        low, high, total = 0, 8, 0.0
        for answer in answers:
            middle = (low + high) // 2
            lead = sum(1 if value < middle else -1 for value in data)
            total -= abs(answer - lead) / 3.0
            down = (lead if by_truth else answer) > 0
            low, high = (low, middle) if down else (middle, high)
        return total

    worst = max(
        abs(log_density(first, answers) - log_density(second, answers)) for answers in itertools.product(grid, repeat=3)
    )
    entry = find("noisy_bisection.turn_by_truth" if by_truth else "noisy_bisection")
    assert entry.true_epsilon(first, second) == pytest.approx(worst, abs=1e-9)


def test_bisection_that_stops_is_infinite_only_where_it_stops_on_one_side() -> None:
    stops = find("noisy_bisection.stop_by_truth")
    assert stops.true_epsilon([0, 0, 7, 7], [0, 0, 0, 7, 7]) == math.inf
    assert stops.true_epsilon([0, 0, 0, 0], [0, 0, 0, 0, 0]) == pytest.approx(1.0)  # nowhere balanced
    assert stops.true_loss([], [0], {"steps": 1}) == pytest.approx(1.0)  # it ends after the last question anyway


def test_sampled_counts_by_the_densities_of_mixtures() -> None:
    grid = np.arange(-6.0, 12.0, 0.5)
    for people, rate, epsilon in ((0, 0.1, 2.0), (2, 0.3, 1.0), (5, 0.5, 0.5)):

        def log_density(n: int, z: Any, rate: float = rate, epsilon: float = epsilon) -> Any:
            sizes = np.arange(n + 1)
            noise = np.exp(-epsilon * np.abs(z - sizes[:, None, None]).sum(axis=2))
            return np.log(stats.binom(n, rate).pmf(sizes) @ noise)

        single, both = grid[:, None], np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        entry = find("sampled_counts").with_parameters({"epsilon": epsilon, "rate": rate, "k": 2})
        for each, z, copies in ((entry, single, 2), (entry.one_sample, both, 1)):
            worst = copies * float(np.abs(log_density(people + 1, z) - log_density(people, z)).max())
            assert each.true_epsilon(people + 1, people) == pytest.approx(worst, rel=1e-9)


def test_the_loss_of_a_mean_is_that_of_its_far_tail() -> None:
    """The sum of two draws of Lap(1) has the density (1 + |s|) e^-|s| / 4; moved by 2, as the mean is by 1."""
    s = np.linspace(0.0, 2_000.0, 50_001)
    ratio = 2.0 + np.log1p(s) - np.log1p(s + 2.0)
    loss = find("averaged_count.each_at_full_budget").true_epsilon(10, 9)
    assert np.all(np.diff(ratio) > 0.0)
    assert ratio.max() < loss == pytest.approx(ratio.max(), abs=1e-2)


def test_four_normal_releases_are_one_along_their_line() -> None:
    entry = find("composed_gaussians")
    moved = np.array([1.0, -1.0, 0.5, 0.0])
    sigma = 2.0  # sqrt(4) / mu
    exact = float(np.linalg.norm(moved)) / sigma
    assert entry.true_loss([0, 0, 0, 0], moved.tolist()) == pytest.approx(exact, rel=1e-12)
    assert entry.true_epsilon([0, 0, 0, 0], moved.tolist()) is None


def test_counts_that_move_differently_have_no_closed_form() -> None:
    entry = find("advanced_counts")
    assert entry.true_epsilon([1, 1, 1], [1, 1, 1]) == 0.0
    assert entry.true_epsilon([1, 1, 1], [2, 1, 1]) == pytest.approx(entry.true_epsilon([1, 1, 1], [1, 0, 1]))
    with pytest.raises(InvalidSpec, match=r"must move by the same, got moves by \[1, 2\]"):
        entry.true_epsilon([1, 1, 1], [2, 3, 1])


@pytest.mark.parametrize("given", [{"epsilon": 5.5}, {"delta": 0.2}])
def test_the_rule_of_the_notes_is_refused_where_it_may_fail(given: dict[str, float]) -> None:
    with pytest.raises(InvalidSpec, match="beyond it the rule of the notes may fail"):
        find("advanced_counts").with_parameters(given)


@for_each("bound", ["basic", "advanced", "sharper", "optimal"])
@for_each(("epsilon", "k", "delta"), [(0.25, 10, 0.2), (0.1, 100, 1e-6), (2.0, 3, 0.01)])
def test_every_bound_on_responses_is_kept(bound: str, epsilon: float, k: int, delta: float) -> None:
    given = {"epsilon": epsilon, "k": k, "delta": delta, "bound": bound}
    entry = find("repeated_response").with_parameters(given)
    claim, loss = entry.claim(), entry.true_epsilon(0, 1)
    assert loss is not None
    assert loss <= claim.promised(claim.delta) * (1 + 1e-12)
    assert claim.relation is Relation.LOCAL
    if bound in ("basic", "optimal"):
        assert loss == pytest.approx(claim.promised(claim.delta), rel=1e-8)


def test_claims_by_name() -> None:
    response = find("repeated_response")
    assert response.claim() == PureDP(2.5, Relation.LOCAL)
    assert isinstance(response.claim({"bound": "sharper"}), ApproximateDP)
    assert isinstance(response.delta_forgotten.claim(), PureDP)
    with pytest.raises(InvalidSpec, match="bound must be one of basic, advanced, sharper, optimal"):
        response.with_parameters({"bound": "best"})
    assert find("replaced_histogram").claim().relation is Relation.REPLACE_ONE
    assert find("group_count").claim().relation is Relation.ADD_OR_REMOVE_ONE
