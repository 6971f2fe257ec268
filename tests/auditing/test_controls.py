"""Spiked controls: leaks of known size are caught when large, and not when there is none. All seeds are fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

import dpaudit
from dpaudit import InvalidSpec, UnsoundAudit, batched
from dpaudit.auditing.audit import run_stages
from dpaudit.auditing.controls import (
    BROKEN,
    EXCESS,
    MASSES,
    control_points,
    glanced,
    marks_of,
    most_runs,
    run_controls,
    spiked_with,
    with_controls,
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
from dpaudit.results.stored import loads
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
    spec = a_spec(mechanism=wrap(marked.number), runs=8_000)
    every, again = (controls(spec, repeats=1, sizes=(0.3,)) for _ in range(2))
    assert every == again, "the same seed gives the same controls"
    assert [found.place for found in every] == [FAR, INSIDE, NARROW]
    for found in every:
        assert (found.mass, found.caught, found.repeats, found.seen) == (0.3, 1, 1, True)
        assert found.loss == pytest.approx(1.0 + EXCESS)
        assert found.rarer == pytest.approx(0.3 * math.exp(-1.0 - EXCESS))


PLACES_OF: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "number": (marked.number, [FAR, INSIDE, NARROW]),
    "vector": (marked.vector, [FAR, INSIDE, NARROW, LATE]),
    "histogram": (marked.histogram, [FAR, RECURRING, LATE]),
    "JSON": (marked.json, [FAR, TEXT]),
    "words": (marked.words, [FAR, RECURRING]),
    "raises": (marked.raises, [FAR]),
}
BY_NIGHT: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "count": (marked.count, [FAR, RECURRING]),
    "letters": (marked.letters, [FAR, TEXT]),
    "two outcomes": (marked.two_outcomes, [FAR]),
    "a number and a text": (marked.named, [FAR, INSIDE, NARROW, LATE]),
}


@pytest.mark.long
@for_each("name", PLACES_OF, nightly=BY_NIGHT)
def test_each_place_that_outputs_have_is_caught_when_large_and_missed_when_rare(name: str) -> None:
    """One caught and one missed case for every place; only places that the outputs have are told."""
    function, places = (PLACES_OF | BY_NIGHT)[name]
    with Engine(n_jobs=1) as engine:
        spec = a_spec(mechanism=wrap(function), pairs=(AdjacentPair(10, 11),), runs=1_000)
        marks = marks_of(glanced(spec, engine))
        assert list(marks) == places
        for place in places if name == "number" else [places[-1]]:  # the others stand where a number has them
            for mass, rarer, verdict in ((0.4, 0.01, Verdict.REFUTED), (0.003, 1e-4, Verdict.NOT_REFUTED)):
                assert run_stages(spiked_with(spec, mass, rarer, marks[place]), engine).verdict is verdict, place


@pytest.mark.long
@for_each(
    ("claim", "function", "mass", "rarer", "audits"),
    [(PureDP(0.01), marked.vector, 0.2, 0.2, 2), (PureDP(1.0), marked.number, 0.3, 0.3 * math.exp(-1.0), 6)],
    ids=["a mark that tells nothing", "at the boundary"],
)
def test_no_leak_is_caught_no_more_often_than_the_confidence_allows(
    claim: Claim, function: Any, mass: float, rarer: float, audits: int
) -> None:
    """Each audit, in every place, is a false alarm with probability 0.05 at the most: beyond the quantile with 1e-6."""
    with Engine(n_jobs=1) as engine:
        spec = a_spec(claim, wrap(function), pairs=(AdjacentPair(10, 11),), runs=1_000)
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
    every = controls(spec, repeats=1, sizes=(0.4, 1e-4, 0.3))
    found = by_place(every)[FAR]
    assert [each.mass for each in found] == [1e-4, 0.3]
    assert smallest_seen(found) is found[1]
    assert smallest_seen(found[:1]) is None
    # what is missed in the easiest place is not tried in others
    assert [each.mass for each in every if each.place != FAR] == [0.3, 0.3]
    assert all(msgspec.convert(stored(each), Control, strict=False) == each for each in found)


@pytest.mark.long
def test_several_pairs_and_sealed_ones() -> None:
    pairs = tuple(SealedPair.seal(AdjacentPair(10, other)) for other in (9, 11))
    found = controls(a_spec(pairs=pairs, runs=8_000), repeats=1, sizes=(0.3,))
    assert found
    assert all(each.seen for each in found)


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


@for_each(
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


BATCHES = [marked.octets, marked.two_truths, marked.yes_or_no, marked.steps_and_digits, marked.records]
FURTHER = [marked.bits, marked.steps, marked.step_texts, marked.step_mapping]


@pytest.mark.long
@for_each("batch", BATCHES, nightly=FURTHER)
def test_controls_of_every_kind_of_batch_end(batch: Callable[..., Any]) -> None:
    """Of a mark in a fifth of the runs, wherever it stands; whether a second bound refutes too is not asked of them."""
    made: list[dpaudit.AuditResult] = []

    def audit(*given: Any) -> dpaudit.AuditResult:
        made.append(run_stages(*given))
        return made[-1]

    with Engine(n_jobs=1) as engine:
        spec = a_spec(mechanism=batched(batch), confidence=0.999)
        found = tuple(run_controls(spec, engine, audit, repeats=1, sizes=(0.2,)))
    assert found
    assert all(each.seen for each in found), found
    assert all(each.refuted and each.units is None for each in made)


def test_a_control_that_breaks_costs_only_that_control(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = with_controls, []

    def breaking(result: Any, spec: Any, engine: Any, audit: Callable[..., Any], **more: Any) -> Any:
        def sometimes(*given: Any, **named: Any) -> Any:
            calls.append(given)
            if len(calls) == 2:
                raise UnsoundAudit("serial dependence: of a control")
            if len(calls) > 12:
                raise InvalidSpec("a wrong question is no broken control")
            return audit(*given, **named)

        return whole(result, spec, engine, sometimes, **more)

    monkeypatch.setattr("dpaudit.auditing.audit.with_controls", breaking)

    def noisy(data: int, rng: np.random.Generator) -> int:
        return int(rng.random() < (0.73 if data == 10 else 0.27))

    found = dpaudit.audit(noisy, pair=(10, 9), epsilon=1.0, runs=2_000, controls=1, n_jobs=1, progress=False)
    (told,) = [entry for entry in found.explored if entry.what == "control"]
    assert told.name.endswith("probability 0.0003")
    assert told.status == f"{BROKEN}: serial dependence: of a control"
    assert [each.mass for each in found.controls][:2] == [1e-4, 1e-3]
    assert f"control {told.name}: {BROKEN}" in str(found.explain())
    assert loads(found.to_json()).explored == found.explored
