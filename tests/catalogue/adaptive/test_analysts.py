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
from tests.catalogue.laws import transcripts
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
        largest, at_most = 0.0, 0.0
        for bits in itertools.product((0, 1), repeat=analyst.many(FIRST)):
            if sum(bits) > c or (sum(bits) == c and bits[-1] == 0):
                continue  # such a run has halted before
            whole = [sums(data, analyst, bits) for data in (FIRST, SECOND)]
            p, q = (transcripts(answers, c, 2.0, 2.0 * c, 4.0 * c)[bits] for answers in whole)
            largest = max(largest, abs(math.log(p / q)))
            at_most = max(at_most, of("sparse", threshold=2.0, c=c).true_epsilon(*whole) or 0.0)
        found = of("adaptive_sparse", threshold=2.0, c=c, analyst=name).true_epsilon(FIRST, SECOND)
        if name == "follows" or c == 1:
            assert found == pytest.approx(largest, rel=1e-6)
        assert found is not None
        assert largest - 1e-9 <= found <= at_most + 1e-9


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


def test_an_analyst_of_ones_own_is_named_by_its_module() -> None:
    assert of("thresholdout", analyst=f"{HERE}:two_steps").describe().parameters["analyst"] == f"{HERE}:two_steps"


def test_what_a_value_shows_depends_on_how_it_is_read() -> None:
    """Averages 0.4 and 0.5 with Lap(0.1): the whole ratio beyond both, and 1 - 2 x between them."""
    from dpaudit.catalogue.adaptive import Posed, Rules

    def costs(*cuts: float) -> list[float]:
        rules = Rules(Analyst(two_steps.asks, 2, cuts), lambda query, data: Posed(0, 0), 0.0, (1.0, 1.0), 2, 1)
        return [cost for _, cost in shown(rules, (Posed(0.0, 0.4), Posed(0.0, 0.5)), 0.1)]

    assert costs() == pytest.approx([1.0])
    assert costs(0.4, 0.5) == pytest.approx([1.0, 1.0, -1.0])
    assert costs(0.45) == pytest.approx([1.0, 0.0])


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


def test_it_halts_when_the_budget_is_used() -> None:
    data = [[1.0] * 6] * 10
    rng = np.random.Generator(np.random.SFC64(5))
    counted = find("thresholdout").open().call(data, 20_000, rng)
    free = find("thresholdout.budget_not_counted").open().call(data, 20_000, rng)
    assert np.ma.count(counted, axis=1).max() == 2
    assert np.ma.count(free, axis=1).max() == 6
