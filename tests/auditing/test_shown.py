"""What a result shows beside its numbers: the histogram of search runs, the trail of counts, the fingerprint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import dpaudit
from dpaudit.auditing.shown import MOST_TOKENS, histogram, typical
from dpaudit.events import Event, event_from_dict
from dpaudit.outputs.canonical import Pilot
from dpaudit.outputs.encode import encode_objects
from dpaudit.results.certification import Witness
from dpaudit.results.observations import BINS, MOST_VALUES, Histogram
from dpaudit.results.result import event_class, fingerprint
from tests.cases import for_each
from tests.golden import example


def witness(**event: Any) -> Witness:
    written = {"feature": {"kind": "coordinate", "path": []}, "intervals": [], "tokens": [], **event}
    return replace(example.result().witness, event=event_from_dict(written))


def pilot(first: list[Any], second: list[Any]) -> Pilot:
    return Pilot(encode_objects(first), encode_objects(second))


def shown(first: list[Any], second: list[Any], **event: Any) -> Histogram:
    found = histogram(pilot(first, second), witness(**event))
    return found


def test_few_different_numbers_are_counted_each() -> None:
    found = shown([0, 1, 1, 2], [2, 2, 2, 5])
    assert (found.values, found.edges) == ((0.0, 1.0, 2.0, 5.0), ())
    assert (found.first, found.second) == ((1, 2, 1, 0), (0, 0, 3, 1))


def test_many_numbers_are_counted_in_bins_as_events_have_them() -> None:
    rng = np.random.default_rng(1)
    numbers = [rng.normal(size=4_000).astype(np.float32).astype(float) for _ in range(2)]
    found = shown(*(each.tolist() for each in numbers), intervals=[[0.25, "inf"]])
    assert 0.25 in found.edges
    assert abs(len(found.edges) - BINS) <= 3
    for counts, each in zip((found.first, found.second), numbers, strict=True):
        naive = [
            int(((each > low) & (each <= high)).sum())
            for low, high in zip((-np.inf, *found.edges), (*found.edges, np.inf), strict=True)
        ]
        assert list(counts) == naive
        assert sum(counts) == 4_000


def test_what_is_no_number_is_counted_by_its_label() -> None:
    found = shown(["a", "b", "b", 3, float("inf")], [None, "b", 3, 3, float("nan")])
    tokens = {
        label: (one, two) for label, one, two in zip(found.labels, found.tokens_first, found.tokens_second, strict=True)
    }
    assert tokens == {"'b'": (2, 1), "'a'": (1, 0), "None": (0, 1), "nan": (0, 1), "infinite": (1, 0)}
    assert (found.values, found.first, found.second) == ((3.0,), (1,), (2,))
    assert sum(found.first) + sum(found.tokens_first) == found.runs_first == 5


def test_whole_outputs_are_counted_by_what_they_are() -> None:
    found = shown([(1, None), (1, None), (0, "a")], [(0, "a")] * 3, feature={"kind": "whole"})
    assert dict(zip(found.labels, found.tokens_first, strict=True)) == {"(0, 'a')": 1, "(1, None)": 2}


def test_rare_labels_are_counted_together() -> None:
    found = shown([f"name {k}" for k in range(50)], ["name 0"] * 50)
    assert len(found.labels) == MOST_TOKENS
    assert found.labels[-1] == "others"
    assert sum(found.tokens_first) == sum(found.tokens_second) == 50


def test_values_up_to_a_limit_are_counted_each_and_beyond_it_in_bins_with_a_range() -> None:
    assert shown(list(range(MOST_VALUES)), [0]).edges == ()
    assert shown(list(range(MOST_VALUES + 1)), [0]).values == ()
    found = shown([0.0] * 100_000 + list(range(100)), [0.0] * 100)
    assert found.edges[0] < found.edges[-1]
    assert sum(found.first) == found.runs_first


def test_without_held_outputs_there_is_nothing_to_show() -> None:
    assert histogram(None, witness()) is None


@for_each("varied", [[-0.0, 0.0], [3, 3.0], [2**60 + 1, 2**60], [1.0, 1.0 + 1e-12]])
def test_one_answer_is_one_to_its_sign_type_and_last_digits(varied: list[Any]) -> None:
    seen = typical(pilot(varied * 20, varied[:1] * 40), witness())
    assert seen is not None
    assert seen.constant[0] is None
    assert seen.constant[1] is not None


def test_the_trail_grows_to_the_evidence_and_the_histogram_is_of_search_runs_alone() -> None:
    def noisy(rows: list[str], rng: np.random.Generator) -> float:
        return len(rows) + rng.laplace(scale=0.5)

    made = dpaudit.audit(noisy, pair=(["a"] * 3, ["a"] * 2), epsilon=1.0, runs=10_000, n_jobs=1)
    sizes = [each.runs for each in made.illustration.trail]
    assert made.illustration.trail[-1] == made.evidence
    assert sizes == sorted(set(sizes))
    assert len(sizes) >= 9  # the last of them from half of the runs on, where search took as many
    found = made.illustration.histogram
    assert found.runs_first + found.runs_second <= made.runs_used - made.evidence.runs


def test_a_fingerprint_keeps_through_seeds_runs_and_thresholds() -> None:
    made = example.result()
    other = replace(
        made,
        spec={**made.spec, "runs": 7_000, "seed": 9, "confidence": 0.9},
        witness=replace(made.witness, event=witness(intervals=[["-inf", 3.0]]).event, p_side="second", score=0.1),
    )
    assert fingerprint(other) == fingerprint(made)


@for_each(
    "change",
    [
        {"claim": {"form": "PureDP", "epsilon": 2.0, "relation": "add_or_remove_one"}},
        {"claim": {"form": "PureDP", "epsilon": 1.0, "relation": "replace_one"}},
        {"mechanism": {**example.result().spec["mechanism"], "reference": "counts:other"}},
        {"mechanism": {**example.result().spec["mechanism"], "parameters": {"scale": 2}}},
        {"pairs": [{**example.result().spec["pairs"][0], "distance": 2}]},
    ],
)
def test_another_claim_mechanism_or_distance_is_another_finding(change: dict[str, Any]) -> None:
    made = example.result()
    assert fingerprint(replace(made, spec={**made.spec, **change})) != fingerprint(made)


def test_failures_and_bits_are_findings_of_their_own() -> None:
    raised = [{"label": "raised ValueError", "code": 3}]
    text = [{"label": "'raised'", "code": 3}]
    kinds = {"failure": witness(tokens=raised), "calibration": witness(tokens=raised + text)}
    assert {event_class(each) for each in kinds.values()} == set(kinds)
    assert event_class(witness(tokens=raised, intervals=[[0.0, 1.0]])) == "calibration"
    made = example.result()
    assert isinstance(made.witness.event, Event)
    assert len({fingerprint(replace(made, witness=each)) for each in kinds.values()}) == 2
