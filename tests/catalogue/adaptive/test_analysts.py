"""Analysts who choose queries by the answers so far, and statistics chosen by the data: enumeration and quadrature.

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
from dpaudit.catalogue.adaptive import select_and_average, select_subsets, shown
from dpaudit.catalogue.adaptive.subsets import ANALYSTS, Analyst, Readings, average, price, split
from dpaudit.catalogue.sparse.values import listed
from tests.catalogue.laws import transcripts
from tests.catalogue.quadrature import wins
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


# --- statistics chosen by the data -----------------------------------------------------------------------------------


RUNS = 50_000


def scale_of(entry: Entry, sensitivity: float) -> float:
    return sensitivity / price(entry.values()["beta"], entry.values()["size"])


@pytest.mark.parametrize(
    ("name", "means", "sensitivity"),
    [
        ("select_subsets", ([0, 3, 1.5], [-3, 3, 1.5]), 3.0),
        ("select_subsets.half_sensitivity", ([0, 3, 1.5], [-3, 3, 1.5]), 1.5),
        ("select_subsets.not_clipped", ([3, 3, 1.5], [-6, 3, 1.5]), 3.0),
        ("select_subsets.sensitivity_of_all", ([0.75, 0, 0], [-0.75, 0, 0]), 0.5),
        ("select_subsets.small_subset", ([0.5, 0.5, 0, 3], [0.5, 0.5, 0, -3]), 3.0),
    ],
)
def test_the_loss_of_one_group(name: str, means: tuple[list[float], list[float]], sensitivity: float) -> None:
    """The group that moves, its means by hand; the other one is the same on both sides."""
    entry = select_subsets.twins.get(name.partition(".")[2], select_subsets)
    assert entry.name == name
    scale = scale_of(entry, sensitivity)
    first, second = (wins(each, scale) for each in means)
    expected = max(abs(math.log(p / q)) for p, q in zip(first, second, strict=True))
    assert entry.true_epsilon(*entry.default_pair) == pytest.approx(expected, rel=1e-7)


def test_overlapping_groups_add_up() -> None:
    entry = select_subsets.groups_overlap
    scale = scale_of(entry, 3.0)
    one, two = ([math.log(wins([mean, 0, 0], scale)[0]) for mean in means] for means in ([0.0], [-3.0]))
    assert entry.true_epsilon(*entry.default_pair) == pytest.approx(3 * (one[0] - two[0]), rel=1e-7)


def test_the_claim_is_reached_by_a_mean_far_below_the_others() -> None:
    """A bound on the sensitivity that is used up: the loss tends to epsilon where the others are far above."""
    sample = [3.0, -3.0, *[30.0] * 10]
    other = [-3.0, *sample[1:]]
    near, far = (select_subsets.true_epsilon(sample, other, {"bound": bound}) for bound in (3.0, 30.0))
    claimed = select_subsets.claim().promised(0.0)
    assert near is not None
    assert far is not None
    assert 0.9 * claimed < near < claimed
    # with a wider bound the same move is a tenth of the sensitivity
    assert far < 0.11 * claimed


def test_the_released_value_is_harmless_on_a_grid() -> None:
    """The joint density of index and value over two datasets, on a fine grid: at most epsilon, and epsilon reached."""
    entry = select_subsets.noisy_value
    scale = scale_of(entry, 3.0)
    law, values = stats.laplace(scale=scale), np.linspace(-40, 40, 4001)
    heights = [
        [
            law.logpdf(values - means[j]) + sum(law.logcdf(values - x) for i, x in enumerate(means) if i != j)
            for j in range(3)
        ]
        for means in ([0.0, 3.0, 1.5], [-3.0, 3.0, 1.5])
    ]
    largest = float(np.max(np.abs(np.subtract(*heights))))
    assert largest == pytest.approx(entry.claim().promised(0.0), rel=1e-9)
    assert entry.true_epsilon(*entry.default_pair) == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize(
    "name", ["select_and_average", "budget_spent_twice", "average_of_all", "final_answer_unclipped"]
)
def test_the_loss_of_choice_and_average(name: str) -> None:
    """By brute force: the ratio of the joint densities of choice and answer, over all choices and a grid of answers."""
    entry = select_and_average if name == "select_and_average" else select_and_average.twins[name]
    share = 1.0 if name == "budget_spent_twice" else 0.5
    choice, last = 3.0 / share, (0.5 if name == "average_of_all" else 1.5) / share
    groups = [split(data, 2, 3, 3.0) for data in entry.default_pair]
    answers = [split(data, 2, 3, math.inf if name == "final_answer_unclipped" else 3.0) for data in entry.default_pair]
    values, law, best = np.linspace(-60, 60, 1201), stats.laplace(scale=last), 0.0
    chances = [[wins(g, choice) for g in side] for side in groups]
    for i, j in itertools.product(range(3), repeat=2):
        logs = [
            math.log(p[0][i] * p[1][j]) + law.logpdf(values - (a[0][i] + a[1][j]) / 2)
            for p, a in zip(chances, answers, strict=True)
        ]
        best = max(best, float(np.max(np.abs(logs[0] - logs[1]))))
    assert entry.true_epsilon(*entry.default_pair) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("side", [0, 1])
def test_the_choices_follow_the_exact_law(side: int) -> None:
    data = select_subsets.default_pair[side]
    picks = select_subsets.open().call(data, RUNS, np.random.default_rng(1))
    scale = scale_of(select_subsets, 3.0)
    for group, means in enumerate(split(data, 2, 3, 3.0)):
        for place, chance in enumerate(wins(means.tolist(), scale)):
            seen = int(np.count_nonzero(picks[:, group] == place))
            assert stats.binomtest(seen, RUNS, chance).pvalue > LEVEL


def test_the_average_is_over_the_subsets_that_were_chosen() -> None:
    entry = select_and_average.final_answer_exact
    data = entry.default_pair[0]
    released = entry.open().call(data, 1_000, np.random.default_rng(3))
    groups = split(data, 2, 3, 3.0)
    for one, two, answer in released:
        assert answer == pytest.approx((groups[0][int(one)] + groups[1][int(two)]) / 2)
