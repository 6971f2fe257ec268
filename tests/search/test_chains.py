"""Scores of neighbours and of places that are all alike: against plain formulas, stored, mirrored, and of nothing."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dpaudit.base.arrays import Integers, Reals
from dpaudit.events import Event, event_from_dict
from dpaudit.events.joint import Product
from dpaudit.events.scores import LogRatio, Neighbours
from dpaudit.outputs.canonical import Outputs, Pilot, Sample, concatenate
from dpaudit.outputs.encode import encode_objects
from dpaudit.search.candidates import terms_of
from dpaudit.search.crossfit import Coded, cross_fitted
from dpaudit.search.learning import following, log_ratio, scores_of, ways
from tests.auditing.looks import vectors
from tests.cases import for_each

Rng = np.random.Generator


def bits(stays: float, runs: int, rng: Rng, count: int = 8) -> Outputs:
    """A chain of bits, each as the one before it with some probability."""
    first = rng.integers(0, 2, (runs, 1))
    changes = np.cumsum(rng.random((runs, count - 1)) >= stays, axis=1)
    return vectors(np.concatenate([first, (first + changes) % 2], axis=1).astype(float))


def lists(rate: float, runs: int, rng: Rng) -> Outputs:
    """Numbers in any order, and of any number, with words among them."""
    return encode_objects(
        [
            [float(each) if each < 2.0 else "much" for each in rng.exponential(rate, rng.poisson(3.0))]
            for _ in range(runs)
        ]
    )


def learned(first: Outputs, second: Outputs) -> list[LogRatio]:
    return [
        score
        for terms in terms_of(concatenate([first, second]))
        for score in scores_of(terms, terms(Sample(first), Sample(second)))
    ]


def test_a_chain_has_the_likelihood_ratio_of_a_chain() -> None:
    """Of 20,000 runs a side no weight is off by more than six of its deviations; 10^-6 for all of them."""
    rng = np.random.default_rng(1)
    first, second = bits(0.7, 20_000, rng), bits(0.5, 20_000, rng)
    score = next(each for each in learned(first, second) if each.pooled and str(each).count("neighbours"))
    fresh = bits(0.6, 500, rng)
    matrix = np.column_stack([fresh.column((j,)).values for j in range(8)])
    stays = (matrix[:, 1:] == matrix[:, :-1]).sum(axis=1)
    exact = stays * math.log(0.7 / 0.5) + (7 - stays) * math.log(0.3 / 0.5)
    deviation = 6.0 * 7 * math.sqrt(2.0 / (7 * 20_000 * 0.3)) + 6.0 * math.sqrt(4.0 / 20_000)
    assert np.abs(score.column(fresh).values - exact).max() < deviation


@for_each("make", [bits, lists])
def test_scores_come_back_from_json_and_exchanging_the_sides_negates_them(make: Any) -> None:
    rng = np.random.default_rng(2)
    first, second = make(0.7, 1_500, rng), make(0.5, 1_500, rng)
    both = concatenate([first, second])
    there, back = learned(first, second), learned(second, first)
    assert {each.pooled for each in there} == {False, True}
    assert any(isinstance(each.terms[-1].coordinate, Neighbours) for each in there) or make is lists
    for one, other in zip(there, back, strict=True):
        column = one.column(both).values
        # Newton's steps end within 1e-6 of the mode, on a surface a little apart where its hills are flat
        assert column == pytest.approx(-other.column(both).values, abs=1e-2)
        event = Event(one, ((0.25, np.inf),))
        again = event_from_dict(json.loads(json.dumps(event.to_dict())))
        assert again == event
        assert again.feature.column(both).values.tolist() == column.tolist()
        assert str(again) == str(event)
        assert ("all alike" in str(event)) == one.pooled


def test_pooled_places_have_the_weights_of_all_their_hits() -> None:
    rng = np.random.default_rng(3)
    first, second = bits(0.7, 2_000, rng), bits(0.5, 2_000, rng)
    terms = terms_of(concatenate([first, second]))[0]
    counts = terms(Sample(first), Sample(second))
    together = sum(terms.split(counts))
    spread = np.concatenate([together] * len(terms.features))
    one, same = log_ratio(terms, counts, pooled=True), log_ratio(terms, spread, pooled=True)
    assert len({each.weights for each in one.terms}) == 1
    # as many hits in all, but for the half that is added to each cell
    assert np.asarray(one.terms[0].weights) == pytest.approx(np.asarray(same.terms[0].weights), abs=1e-2)
    assert ways(terms) == (False, True)


def test_what_a_neighbour_adds_is_the_ratio_of_ratios() -> None:
    table: Integers = np.array([[9_000, 3_000], [1_000, 3_000], [400, 800], [600, 200], [0, 0]])
    plain: Reals = np.log([9_000 / 10_000 / 0.5, 1_000 / 10_000 / 0.5, 400 / 1_000 / 0.8, 600 / 1_000 / 0.2, 1.0])
    assert following(table) == pytest.approx(plain, abs=0.02)
    assert following(table[:, ::-1]) == pytest.approx(-following(table), abs=1e-12)
    assert not following(table * 0).any()
    even = np.array([[500, 500], [300, 300], [200, 200], [700, 700], [0, 0]])
    assert not following(even).any()


@for_each("draw", [bits, lists])
def test_null_folds_of_one_law_say_nothing_of_each_other(draw: Any) -> None:
    """Where both sides are one, held-out scores are on average as large on one as on the other: 5 deviations, 10^-6."""
    rng = np.random.default_rng(4)
    pilot = Pilot(draw(0.6, 3_000, rng), draw(0.6, 3_000, rng))
    for terms in terms_of(pilot.both):
        coded = Coded.of(terms, pilot)
        for folds in cross_fitted(coded):
            sides = [coded.scored(folds.halves[0], coded.part(1, 2))[side].astype(float) for side in (0, 1)]
            luck = math.sqrt(sum(side.var() / len(side) for side in sides))
            assert abs(sides[0].mean() - sides[1].mean()) <= 5.0 * luck + 1e-9


def test_a_product_of_coordinates_is_evaluated_printed_and_stored() -> None:
    outputs = encode_objects(
        [(3.0, 5.0), (math.inf, 1.0), ("a", 2.0), (1.0, -math.inf), (math.nan, 1.0), (1e300, 1e300)]
    )
    feature = Product((0,), (1,), (1.0, 0.0))
    column = feature.column(outputs)
    assert column.values.tolist()[:2] == [10.0, math.inf]
    assert column.tokens.astype(bool).tolist() == [False, False, True, True, True, False]
    assert column.values[5] == math.inf
    assert str(feature) == "(output[0] - 1) * output[1]"
    event = Event(feature, ((2.0, np.inf),))
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert event.contains(outputs).tolist() == [True, True, False, False, False, True]
