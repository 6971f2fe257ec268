"""Spiked controls: leaks of known size are caught when large, and not when there is none. All seeds are fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from dpaudit import InvalidSpec, batched
from dpaudit.auditing.audit import run_stages
from dpaudit.auditing.controls import (
    EXCESS,
    MASSES,
    control_points,
    glanced,
    marks_of,
    most_runs,
    run_controls,
    spiked_with,
)
from dpaudit.auditing.question import Plan, Question
from dpaudit.base.strict import stored, value_of
from dpaudit.catalogue import find
from dpaudit.claims import ApproximateDP, Claim, PureDP
from dpaudit.data import AdjacentPair, SealedPair
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import Mechanism, wrap
from dpaudit.results.display import Verdict
from dpaudit.results.observations import FAR, INSIDE, LATE, NARROW, RECURRING, TEXT, Control, by_place, smallest_seen
from dpaudit.results.stored.models import model_of
from tests.auditing import marked
from tests.cases import for_each
from tests.statistics.rates import CONFIDENCE, refuted_too_often

RUNS = 4_000


def a_spec(claim: Claim | None = None, mechanism: Mechanism | None = None, **changes: Any) -> Plan:
    fields: dict[str, Any] = {"runs": RUNS, "confidence": CONFIDENCE, **changes}
    pairs = fields.pop("pairs", (AdjacentPair(10, 9),))
    return Question(claim or PureDP(1.0), mechanism or find("laplace"), pairs, **fields).resolved()


def controls(spec: Plan, **settings: Any) -> tuple[Control, ...]:
    with Engine(n_jobs=1) as engine:
        return tuple(run_controls(spec, engine, run_stages, **settings))


@pytest.mark.long
def test_a_big_leak_is_always_caught_in_every_place() -> None:
    every = controls(a_spec(mechanism=wrap(marked.number), runs=8_000), repeats=2, sizes=(0.3,))
    assert [found.place for found in every] == [FAR, INSIDE, NARROW]
    for found in every:
        assert (found.mass, found.caught, found.repeats, found.seen) == (0.3, 2, 2, True)
        assert found.loss == pytest.approx(1.0 + EXCESS)
        assert found.rarer == pytest.approx(0.3 * math.exp(-1.0 - EXCESS))


PLACES_OF: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "number": (marked.number, [FAR, INSIDE, NARROW]),
    "count": (marked.count, [FAR, RECURRING]),
    "vector": (marked.vector, [FAR, INSIDE, NARROW, LATE]),
    "pair": (marked.pair, [FAR, INSIDE, NARROW, LATE]),
    "histogram": (marked.histogram, [FAR, RECURRING, LATE]),
    "JSON": (marked.json, [FAR, TEXT]),
    "letters": (marked.letters, [FAR, TEXT]),
    "words": (marked.words, [FAR, RECURRING]),
    "two outcomes": (marked.two_outcomes, [FAR]),
    "raises": (marked.raises, [FAR]),
}


@pytest.mark.long
@for_each("name", PLACES_OF)
def test_each_place_that_outputs_have_is_caught_when_large_and_missed_when_rare(name: str) -> None:
    """One caught and one missed case for every place; only places that the outputs have are told."""
    function, places = PLACES_OF[name]
    with Engine(n_jobs=1) as engine:
        spec = a_spec(mechanism=wrap(function), pairs=(AdjacentPair(10, 11),), runs=2_000)
        marks = marks_of(glanced(spec, engine))
        assert list(marks) == places
        for place, mark in marks.items():
            if name != "number" and place not in (FAR, places[-1]):
                continue  # the place of a number, once more
            for mass, rarer, verdict in ((0.4, 0.01, Verdict.REFUTED), (0.003, 1e-4, Verdict.NOT_REFUTED)):
                if verdict is Verdict.NOT_REFUTED and place != places[-1] and name != "number":
                    continue  # one rare mark of each kind of output
                made = run_stages(spiked_with(spec, mass, rarer, mark), engine)
                assert made.verdict is verdict, place


@pytest.mark.long
@for_each(
    ("claim", "name", "mass", "rarer", "audits"),
    [(PureDP(0.01), "pair", 0.2, 0.2, 4), (PureDP(1.0), "number", 0.3, 0.3 * math.exp(-1.0), 10)],
    ids=["a mark that tells nothing", "at the boundary"],
)
def test_no_leak_is_caught_no_more_often_than_the_confidence_allows(
    claim: Claim, name: str, mass: float, rarer: float, audits: int
) -> None:
    """Each audit, in every place, is a false alarm with probability 0.05 at the most: beyond the quantile with 1e-6."""
    with Engine(n_jobs=1) as engine:
        spec = a_spec(claim, wrap(PLACES_OF[name][0]), pairs=(AdjacentPair(10, 11),), runs=1_000)
        marks = list(marks_of(glanced(spec, engine)).values())

        def refuted(seed: int) -> bool:
            spiked = replace(spiked_with(spec, mass, rarer, marks[seed % len(marks)]), seed=seed)
            return run_stages(spiked, engine).verdict is Verdict.REFUTED

        assert not refuted_too_often(refuted, audits * len(marks))


@pytest.mark.long
def test_sizes_grow_until_one_is_caught_and_lost_ones_are_given_up() -> None:
    spec = a_spec(PureDP(1.0), find("laplace").with_parameters({"epsilon": 0.5}))
    every = controls(spec, repeats=20, sizes=(1e-4,))
    assert [each.place for each in every] == [FAR, INSIDE, NARROW]
    for lost in every:  # two of twenty are too many
        assert lost == Control(1e-4, lost.rarer, lost.loss, 0, 2, 19, lost.place)
    every = controls(spec, repeats=2, sizes=(0.4, 1e-4, 0.3))
    found = by_place(every)[FAR]
    assert [each.mass for each in found] == [1e-4, 0.3]
    assert smallest_seen(found) is found[1]
    assert smallest_seen(found[:1]) is None
    # what is missed in the easiest place is not tried in others
    assert [each.mass for each in every if each.place != FAR] == [0.3, 0.3]
    assert all(msgspec.convert(stored(each), Control, strict=False) == each for each in found)


@pytest.mark.long
def test_the_same_seed_gives_the_same_controls() -> None:
    spec = a_spec(seed=5)
    one, again = (controls(spec, repeats=8, sizes=(0.02, 0.05)) for _ in range(2))
    assert one == again


@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism",
    [
        wrap(marked.answer),
        wrap(marked.named),
        batched(marked.two_truths),
    ],
    ids=["text", "tuples", "arrays of bools"],
)
def test_any_output_can_be_marked(mechanism: Mechanism) -> None:
    found = controls(a_spec(mechanism=mechanism), repeats=3, sizes=(0.3,))
    # of these few runs a report states power at this mass from a loss of 1.8 on, and the leak's is 1.69
    assert all(each.seen for each in found if each.place != "a narrow range inside")


@pytest.mark.long
def test_several_pairs_and_sealed_ones() -> None:
    pairs = tuple(SealedPair.seal(AdjacentPair(10, other)) for other in (9, 11))
    assert all(found.seen for found in controls(a_spec(pairs=pairs, runs=8_000), repeats=2, sizes=(0.3,)))


def test_masses_that_delta_allows_are_left_out() -> None:
    points = control_points(a_spec(ApproximateDP(1.0, 0.005)))
    assert [mass for mass, _, _ in points] == [mass for mass in MASSES if mass > 0.005]
    for mass, rarer, loss in points:
        assert math.log((mass - 0.005) / rarer) == pytest.approx(1.0 + EXCESS)
        assert loss == pytest.approx(1.0 + EXCESS)


def test_points_lie_beyond_the_region_of_the_nearest_pair() -> None:
    spec = a_spec(pairs=(AdjacentPair(10, 7, distance=3), AdjacentPair(10, 8, distance=2)))
    assert [loss for _, _, loss in control_points(spec)] == pytest.approx([2.0 + EXCESS] * len(MASSES))


def test_the_cost_is_told_beforehand() -> None:
    spec = a_spec()
    assert most_runs(spec, 20) == 20 * (1 + 4 * len(MASSES)) * RUNS + 264
    assert most_runs(spec, 5, (0.1,)) == 5 * 5 * RUNS + 264
    assert most_runs(a_spec(ApproximateDP(1.0, 0.5)), 20) == 264


def test_controls_of_an_older_result_stood_far_outside() -> None:
    old = {"mass": 0.01, "rarer": 0.001, "loss": 1.7, "caught": 20, "repeats": 20, "needed": 19}
    msgspec.convert(old, model_of(Control))
    assert value_of(Control, old, {}).place == FAR
    with pytest.raises(msgspec.ValidationError, match="place"):
        msgspec.convert({**old, "place": "elsewhere"}, model_of(Control))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"sizes": (0.0,)}, "sizes must lie above 0 and be at most 0.5, got 0"),
        ({"sizes": (0.1, 0.6)}, "sizes must lie above 0 and be at most 0.5, got 0.6"),
        ({"sizes": ("x",)}, "sizes must be a number"),
        ({"repeats": 0}, "controls must be at least 1"),
        ({"excess": -1.0}, "excess must be finite and at least 0"),
        ({"excess": np.nan}, "excess must be a number"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidSpec, match=why):
        controls(a_spec(), **settings)
