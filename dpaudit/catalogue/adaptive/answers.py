"""Queries that an analyst chooses one by one, by the answers so far: noisy averages, and Sparse on counts."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Masked, Places, Reals
from dpaudit.catalogue.adaptive.analysts import ANALYST, Query, Readings, Records, average, in_room, named
from dpaudit.catalogue.adaptive.asked import Both, Chain, Posed, Rules, interact, shown, worst
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON
from dpaudit.catalogue.sparse.restarted import NO_CUT_OFF, NO_THRESHOLD_NOISE, RIGHT
from dpaudit.catalogue.sparse.runs import BOTTOM, THRESHOLD, TOP, TOPS, Rule

Share = Callable[[int, int], float]  # of a query, by its place and the number of all: its noise, over 1 / (n epsilon)
RECORDS = [[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 0]]


def _adaptive_laplace(data: Records, rng: Rng, epsilon: float, analyst: str, *, share: Share) -> tuple[float, ...]:
    asking, readings = named(analyst), Readings()
    queries, answers = asking.many(data), list[float]()
    for place in range(queries):
        noise = rng.laplace(scale=share(place, queries) / (len(data) * epsilon))
        answers.append(average(asking.asks(readings), data) + noise)
        readings = (*readings, asking.read(True, answers[-1]))
    return tuple(answers)


def _told(query: Query, data: Records) -> Posed:
    return Posed(0.0, average(query, data))


def _rules(data: Records, analyst: str) -> Rules:
    return Rules(named(analyst), _told, -math.inf, (0.0, 0.0), named(analyst).many(data), None)


def _runs(data: Records, runs: int, rng: Rng, epsilon: float, analyst: str, *, share: Share) -> Masked:
    rules = _rules(data, analyst)

    def show(place: int, asked: Posed, noisy: Reals, tops: Places) -> Reals:
        return asked.value + laplace(rng, share(place, rules.queries) / (len(data) * epsilon), len(tops))

    return interact(rules, data, runs, rng, show)


def _loss(first: Records, second: Records, epsilon: float, analyst: str, *, share: Share) -> float:
    rules = _rules(first, analyst)

    def costs(both: Both, tops: Chain) -> Iterable[tuple[int, float]]:
        return shown(rules, both, share(len(tops), rules.queries) / (len(first) * epsilon))

    return worst(rules, first, second, costs)


_CODE = Code(_adaptive_laplace, _runs, _loss)

adaptive_laplace = in_room(
    name="adaptive_laplace",
    title="Noisy averages of queries chosen by the answers so far",
    source=Source(
        "Bassi 2019, notes 001, 'Model description' (each step sees the data and the results before it)",
        "Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, Preserving statistical validity in adaptive data "
        "analysis",
    ),
    formula="with k queries into [0, 1] and n records: each answer is the query's average + Lap(k / (n epsilon))",
    neighbours="datasets of the same size that differ in one record",
    code=_CODE.given(share=lambda place, queries: queries),
    parameters=(replace(EPSILON, default=2.0), replace(ANALYST, default="follows")),
    default_pair=([*RECORDS, [1, 1, 1, 1]], [*RECORDS, [0, 0, 0, 1]]),
).with_twins(
    """columns_as_disjoint: Each answer at the noise of a single query
        the features are columns, not disjoint records: one record is in all answers, and the losses add up
        each answer is the query's average + Lap(1 / (n epsilon))
    choice_exact: All answers but the last without noise
        an average over n records, as it is, tells two neighbours apart, and so does what is chosen by it
        the last answer is the query's average + Lap(1 / (n epsilon)), the others are the averages themselves
    last_exact: The last answer without noise
        the vote's accuracy is a count of records over n: an exact count tells two neighbours apart
        with k queries: each answer + Lap((k - 1) / (n epsilon)), the last without noise""",
    columns_as_disjoint=Twin(code=_CODE.given(share=lambda place, queries: 1.0)),
    choice_exact=Twin(code=_CODE.given(share=lambda place, queries: float(place == queries - 1))),
    last_exact=Twin(code=_CODE.given(share=lambda place, queries: queries - 1.0 if place < queries - 1 else 0.0)),
)


def _adaptive_sparse(
    data: Records, rng: Rng, epsilon: float, threshold: float, c: int, analyst: str, *, rule: Rule
) -> tuple[int, ...]:
    (for_threshold, for_answers), asking = rule.noises(epsilon, c), named(analyst)
    readings, output = Readings(), list[int]()
    noisy_threshold = threshold + rng.laplace(scale=for_threshold)
    for _ in range(asking.many(data)):
        phi = asking.asks(readings)
        is_top = sum(map(phi, data)) + rng.laplace(scale=for_answers) >= noisy_threshold
        output.append(TOP if is_top else BOTTOM)
        readings = (*readings, asking.read(is_top, output[-1]))
        if is_top:
            noisy_threshold = threshold + rng.laplace(scale=for_threshold)
        if rule.halts and output.count(TOP) >= c:
            break
    return tuple(output)


def _counted(query: Query, data: Records) -> Posed:
    return Posed(sum(map(query, data)), TOP, BOTTOM)


def _sparse_rules(data: Records, epsilon: float, threshold: float, c: int, analyst: str, rule: Rule) -> Rules:
    asking = named(analyst)
    return Rules(asking, _counted, threshold, rule.noises(epsilon, c), asking.many(data), c if rule.halts else None)


def _sparse_runs(data: Records, runs: int, rng: Rng, rule: Rule, **given: Any) -> Masked:
    rules = _sparse_rules(data, **given, rule=rule)
    return interact(rules, data, runs, rng, lambda place, asked, noisy, tops: np.full(len(tops), TOP), bits=True)


def _sparse_loss(first: Records, second: Records, rule: Rule, **given: Any) -> float:
    """What is asked follows from the tops and bottoms, so it shows no more than they do."""
    rules = _sparse_rules(first, **given, rule=rule)
    return worst(rules, first, second, lambda both, tops: [(rules.analyst.read(True, TOP)[1], 0.0)])


_SPARSE = Code(_adaptive_sparse, _sparse_runs, _sparse_loss)
AGREES = [1] * 7  # six features and a label, which all of them are

adaptive_sparse = in_room(
    name="adaptive_sparse",
    title="Sparse on queries chosen by the tops and bottoms so far",
    source=Source(
        "Bassi 2019, notes 001, 'Sparse vector mechanism' (queries which may be chosen adaptively)",
        "Dwork & Roth 2014, algorithm 2",
    ),
    formula=(
        "with sigma = 2 c / epsilon: the threshold gets a draw of Lap(sigma), anew after each top; the analyst chooses "
        "a query, and its sum over the records gets Lap(2 sigma); halt at the c-th top"
    ),
    neighbours="datasets of n records, one of which is replaced",
    code=_SPARSE.given(rule=RIGHT),
    parameters=(
        EPSILON,
        replace(THRESHOLD, default=2.0),
        replace(TOPS, default=1),
        replace(ANALYST, default="follows"),
    ),
    default_pair=([*[AGREES] * 3, [0] * 6 + [1]], [AGREES] * 4),
).with_twins(
    """no_threshold_noise: Sparse on chosen queries, with an exact threshold
        nothing that the comparisons share is random: an analyst who repeats a query pays for each bottom
        as Sparse on chosen queries, but the threshold gets no noise
    no_cut_off: Sparse on chosen queries that never halts
        only c tops are paid for: an analyst who is told of more of them learns up to epsilon / c from each
        as Sparse on chosen queries, but every query is compared: there is no halt""",
    no_threshold_noise=Twin(code=_SPARSE.given(rule=NO_THRESHOLD_NOISE)),
    no_cut_off=Twin(
        code=_SPARSE.given(rule=NO_CUT_OFF),
        default_pair=([*[AGREES] * 3, [0, 0, 1, 0, 0, 1, 1]], [*[AGREES] * 3, [1, 1, 0, 1, 1, 0, 1]]),
    ),
)
