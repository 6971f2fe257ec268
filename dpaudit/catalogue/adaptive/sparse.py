"""Sparse on counts that an analyst chooses one by one, by the tops and bottoms so far."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.arrays import Masked
from dpaudit.catalogue.adaptive.analysts import ANALYST, Query, Readings, Records, in_room, named
from dpaudit.catalogue.adaptive.asked import Posed, Rules, interact, worst
from dpaudit.catalogue.entry import Code, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON
from dpaudit.catalogue.sparse.restarted import NO_CUT_OFF, NO_THRESHOLD_NOISE, RIGHT
from dpaudit.catalogue.sparse.runs import BOTTOM, THRESHOLD, TOP, TOPS, Rule


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


def _told(query: Query, data: Records) -> Posed:
    return Posed(sum(map(query, data)), TOP, BOTTOM)


def _rules(data: Records, epsilon: float, threshold: float, c: int, analyst: str, rule: Rule) -> Rules:
    asking = named(analyst)
    return Rules(asking, _told, threshold, rule.noises(epsilon, c), asking.many(data), c if rule.halts else None)


def _runs(data: Records, runs: int, rng: Rng, rule: Rule, **given: Any) -> Masked:
    rules = _rules(data, **given, rule=rule)
    return interact(rules, data, runs, rng, lambda place, asked, noisy, tops: np.full(len(tops), TOP), bits=True)


def _loss(first: Records, second: Records, rule: Rule, **given: Any) -> float:
    """What is asked follows from the tops and bottoms, so it shows no more than they do."""
    rules = _rules(first, **given, rule=rule)
    return worst(rules, first, second, lambda both, tops: [(rules.analyst.read(True, TOP)[1], 0.0)])


def _by(rule: Rule) -> Code:
    return Code(_adaptive_sparse, _runs, _loss).given(rule=rule)


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
    code=_by(RIGHT),
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
    no_threshold_noise=Twin(code=_by(NO_THRESHOLD_NOISE)),
    no_cut_off=Twin(
        code=_by(NO_CUT_OFF),
        default_pair=([*[AGREES] * 3, [0, 0, 1, 0, 0, 1, 1]], [*[AGREES] * 3, [1, 1, 0, 1, 1, 0, 1]]),
    ),
)
