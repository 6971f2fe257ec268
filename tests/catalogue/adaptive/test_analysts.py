"""Analysts who choose each query by the answers so far: exact losses against enumeration, and samplers.

Random tests have fixed seeds, and fail by chance with probability at most 1e-8 each.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import Entry, find
from dpaudit.catalogue.adaptive import shown
from dpaudit.catalogue.adaptive.subsets import ANALYSTS, Analyst, Readings, average
from dpaudit.catalogue.sparse.values import listed
from dpaudit.errors import InvalidSpec
from tests.catalogue.test_samplers import LEVEL, programmed, same_law, sampled

HERE = "tests.catalogue.adaptive.test_analysts"
FIRST = [[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0]]
SECOND = [*FIRST[:-1], [0, 0, 1, 1]]

# asks for the first number, then for the second or the third: by who answered, and on which side of 0.6
two_steps = Analyst(lambda readings: lambda record: record[sum(sum(reading) for reading in readings)], 2, (0.6,))
in_order = Analyst(ANALYSTS["in order"].asks)


def of(name: str, **given: Any) -> Entry:
    return find(name).with_parameters(given)


def sums(data: list[list[int]], analyst: Analyst, bits: tuple[int, ...]) -> list[float]:
    """The answers to the fixed sequence of queries that these tops and bottoms lead to."""
    readings: Readings = ()
    answers = []
    for bit in bits:
        answers.append(float(sum(map(analyst.asks(readings), data))))
        readings = (*readings, analyst.read(bool(bit), bit))
    return answers


@pytest.mark.parametrize("c", [1, 2])
def test_the_loss_of_sparse_is_that_of_its_worst_transcript(c: int) -> None:
    """Every transcript is one of a fixed sequence of queries: its chance there, listed, and no more than its loss."""
    for name, analyst in (("follows", ANALYSTS["follows"]), ("repeats", ANALYSTS["repeats"])):
        queries, largest, at_most = analyst.many(FIRST), 0.0, 0.0
        for bits in itertools.product((0, 1), repeat=queries):
            if sum(bits) > c or (sum(bits) == c and bits[-1] == 0):
                continue  # such a run has halted before
            whole = [sums(data, analyst, bits) for data in (FIRST, SECOND)]
            at = places(queries, c).index(bits)
            p, q = (listed(np.array(answers), c, 2.0, 2.0 * c, 4.0 * c)[at] for answers in whole)
            largest = max(largest, abs(math.log(p / q)))
            at_most = max(at_most, of("sparse", threshold=2.0, c=c).true_epsilon(*whole) or 0.0)
        found = of("adaptive_sparse", threshold=2.0, c=c, analyst=name).true_epsilon(FIRST, SECOND)
        if name == "follows" or c == 1:
            assert found == pytest.approx(largest, rel=1e-6)
        assert found is not None
        assert largest - 1e-9 <= found <= at_most + 1e-9


def places(queries: int, c: int) -> list[tuple[int, ...]]:
    """The outputs of Sparse in the order of `listed`, with zeros after the halt."""

    def rest(left: int, tops: int) -> list[tuple[int, ...]]:
        if left == 0 or tops == 0:
            return [(0,) * left]
        after = [[(*(0,) * j, 1, *tail) for tail in rest(left - j - 1, tops - 1)] for j in range(left)]
        return [*itertools.chain(*after), (0,) * left]

    return rest(queries, c)


def test_the_loss_of_thresholdout_on_a_grid_of_values() -> None:
    """Two queries, the second chosen by the first answer: the joint density of the answers over a fine grid."""
    given = {"threshold": 0.2, "trained": [[0, 1, 0], [1, 0, 0]], "budget": 2, "analyst": f"{HERE}:two_steps"}
    entry, sigma = of("thresholdout", **given), 0.8
    values = np.array([*np.linspace(-0.5, 1.5, 9), 0.6 - 1e-9, 0.6 + 1e-9])
    trained = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]

    def logs(data: list[list[int]]) -> dict[tuple[int, ...], float]:
        """The log densities, by the places of the values on the grid; -1 where the training set answers."""
        found = {}
        for one, two in itertools.product((-1, *range(len(values))), repeat=2):
            readings: Readings = ()
            epochs: list[list[float]] = [[]]
            density = 0.0
            for at in (one, two):
                phi = two_steps.asks(readings)
                holdout, training = average(phi, data), average(phi, trained)
                epochs[-1].append(abs(holdout - training))
                if at >= 0:
                    density += float(stats.laplace.logpdf(values[at], holdout, sigma))
                    epochs.append([])
                readings = (*readings, two_steps.read(at >= 0, values[at] if at >= 0 else training))
            ended = len(epochs) - (not epochs[-1])
            for place, epoch in enumerate(epochs[:ended]):
                density += math.log(chances(tuple(epoch))[-1 if place == len(epochs) - 1 else len(epoch) - 1])
            found[one, two] = density
        return found

    known: dict[tuple[float, ...], Any] = {}

    def chances(epoch: tuple[float, ...]) -> Any:
        if epoch not in known:
            known[epoch] = listed(np.array(epoch), 1, 0.2, 2.0 * sigma, 4.0 * sigma)
        return known[epoch]

    p, q = logs(FIRST), logs(SECOND)
    expected = max(abs(p[at] - q[at]) for at in p)
    assert entry.true_epsilon(FIRST, SECOND) == pytest.approx(expected, rel=1e-6)


def test_samplers_have_the_law_of_their_programs() -> None:
    trained = [[0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
    for name, given in (
        ("thresholdout", {"trained": trained, "analyst": "follows", "budget": 2}),
        ("thresholdout", {"trained": trained, "analyst": "bisects", "budget": 2}),
        ("thresholdout.budget_not_counted", {"trained": 0.5, "analyst": f"{HERE}:two_steps"}),
        ("adaptive_sparse", {"analyst": "repeats", "c": 2}),
        ("adaptive_laplace", {"analyst": "bisects"}),
    ):
        entry = of(name, **given)
        assert same_law(sampled(entry, FIRST, 1), programmed(entry, FIRST, 2)) > LEVEL


def test_the_claims_are_kept_whoever_asks() -> None:
    rng = np.random.default_rng(5)
    for analyst, name in itertools.product(ANALYSTS, ("thresholdout", "adaptive_sparse", "adaptive_laplace")):
        data = rng.random((6, 8)) if analyst == "bisects" else rng.integers(0, 2, (6, 4 if analyst == "follows" else 8))
        other = data.copy()
        other[0] = rng.permutation(1 - other[0])
        entry = of(name, analyst=analyst, **({"trained": 0.4} if name == "thresholdout" else {"epsilon": 1.0}))
        found = entry.true_epsilon(data.tolist(), other.tolist())
        assert found is not None
        assert found <= 1.0 + 1e-9


def test_what_a_value_shows_depends_on_how_it_is_read() -> None:
    """Averages 0.4 and 0.5 with Lap(0.1): the whole ratio beyond both, and 1 - 2 x between them."""
    from dpaudit.catalogue.adaptive import Posed, Rules

    def costs(*cuts: float) -> list[float]:
        rules = Rules(Analyst(two_steps.asks, 2, cuts), lambda query, data: Posed(0, 0), 0.0, (1.0, 1.0), 2, 1)
        return [cost for _, cost in shown(rules, (Posed(0.0, 0.4), Posed(0.0, 0.5)), 0.1)]

    assert costs() == pytest.approx([1.0])
    assert costs(0.4, 0.5) == pytest.approx([1.0, 1.0, -1.0])
    assert costs(0.45) == pytest.approx([1.0, 0.0])


def test_losses_that_are_not_known_are_none() -> None:
    for name in ("threshold_kept", "one_noise", "comparison_noise_released"):
        assert of(f"thresholdout.{name}", analyst="bisects").true_epsilon(FIRST, SECOND) is None


def test_analysts_are_found_by_name() -> None:
    assert of("thresholdout", analyst=f"{HERE}:two_steps").describe().parameters["analyst"] == f"{HERE}:two_steps"
    for wrong in ("nobody", f"{HERE}:HERE", 3):
        with pytest.raises(InvalidSpec, match="analyst"):
            of("adaptive_sparse", analyst=wrong)
    for wrong in ([], [1.0], 1.5):
        with pytest.raises(InvalidSpec, match="trained"):
            of("thresholdout", trained=wrong)


def test_the_best_corner_of_the_vote_is_its_claim() -> None:
    """All features of one record turn from agreeing to disagreeing, and its vote with them: epsilon exactly."""
    pair = find("adaptive_laplace").default_pair
    assert of("adaptive_laplace").true_epsilon(*pair) == pytest.approx(2.0, rel=1e-12)
    assert of("adaptive_laplace.columns_as_disjoint").true_epsilon(*pair) == pytest.approx(8.0, rel=1e-12)


def test_the_order_of_tops_can_be_left_out_where_it_does_not_matter() -> None:
    """An analyst who asks in order, once as it is and once with every order of the readings told apart."""
    told_apart = f"{HERE}:in_order"
    for name, c in (
        ("thresholdout", {"budget": 2}),
        ("thresholdout.one_noise", {"budget": 2}),
        ("adaptive_sparse", {}),
    ):
        data = [[1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 1]]
        other = [data[0], [1 - number for number in data[1]]]
        quick = of(name, analyst="in order", **c).true_epsilon(data, other)
        assert quick == of(name, analyst=told_apart, **c).true_epsilon(data, other)
