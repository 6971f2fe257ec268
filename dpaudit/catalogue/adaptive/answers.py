"""The Laplace mechanism for queries that an analyst chooses one by one, by the noisy answers so far."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from dpaudit.arrays import Masked, Places, Reals
from dpaudit.catalogue.adaptive.analysts import ANALYST, Query, Readings, Records, average, in_room, named
from dpaudit.catalogue.adaptive.asked import Both, Chain, Posed, Rules, interact, shown, worst
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import EPSILON

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
