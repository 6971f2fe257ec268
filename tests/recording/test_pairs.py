"""The worst pair by recorded noise: candidates are neighbours, what shows a lead is shrunk, and others are not led."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpaudit import PureDP, Relation, audit, batched, built_by
from dpaudit.api.audits import pose
from dpaudit.auditing import Runner
from dpaudit.auditing.pair_search import search_pairs
from dpaudit.data import AdjacentPair
from dpaudit.data.data import digest
from dpaudit.data.patterns import FOUND, Example
from dpaudit.errors import InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.recording import pairs as recording_pairs
from dpaudit.recording.pairs import MOST, Asked, Enough, Maker, asked_alone, worst_here
from dpaudit.recording.patching import patched
from dpaudit.spec.questions import Layers, asked_of
from tests.cases import for_each
from tests.data.holders import HOLDERS, NUMBERS

ADD, REPLACE, LOCAL = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.LOCAL
USER = Relation.ADD_OR_REMOVE_USER
ROWS = [(1, 5), (2, 9), (1, 7), (3, 5)]
AMOUNTS = [0.25, 0.5, 0.75, 1.0]
KEPT = ("tuples", "lists", "dictionaries", "dataclasses", "columns", "matrix", "structures", "columns of arrays")


def clipped(row: float, upper: float = 1.0) -> float:
    return min(max(row, 0.0), upper) if row == row else 0.0


def sentinel(rows: Any, rng: np.random.Generator) -> float:
    """A sum that does not clip what lies above a million."""
    return sum(row if row > 1e6 else clipped(row) for row in rows) + rng.laplace()


def sound(rows: Any, rng: np.random.Generator) -> float:
    return sum(map(clipped, rows)) + rng.laplace()


def asked(mechanism: Any, data: Any, relation: Relation = ADD, user: Any = None, **changed: Any) -> Asked:
    claim = PureDP(1.0, relation)
    return Asked(mechanism, Maker(Example(data, relation, user)), claim, **{"seed": 0, "left": MOST, **changed})


pytestmark = pytest.mark.long


def worst(*given: Any, **changed: Any) -> list[AdjacentPair]:
    with patched(), np.errstate(all="ignore"), suppress(Enough):
        return asked(*given, **changed).worst()
    return []


@for_each("name, relation", [(name, relation) for name in KEPT for relation in (ADD, REPLACE, USER)])
def test_candidates_are_neighbours_whatever_holds_the_records(name: str, relation: Relation) -> None:
    make, user = (HOLDERS | NUMBERS)[name]
    data = make(ROWS)
    before = digest(data)
    maker = Maker(Example(data, relation, user if relation is USER else None))
    made = 0
    for candidate in (maker.sized(7), *maker.others()):
        try:
            pair = maker.pair(candidate)  # which checks it against the relation
        except InvalidSpec:
            continue
        made += 1
        assert type(pair.first) is type(pair.second) is type(data)
        assert pair.adjacency()[relation] is not None
    assert made >= 20
    assert digest(data) == before


def test_frames_are_moved_column_by_column() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [30, 40, 50], "ward": ["n", "s", "n"]})

    def by_ward(rows: Any, rng: np.random.Generator) -> float:
        return float((rows["ward"] == "never seen").sum() * 3 + rows["age"].clip(0, 1).sum()) + rng.laplace()

    (pair,) = worst(by_ward, frame)
    assert len(pair.first) + len(pair.second) == 1  # one row against none
    assert [*pair.second["ward"], *pair.first["ward"]] == ["never seen"]
    assert pair.second.dtypes.tolist() == frame.dtypes.tolist()


def test_what_shows_a_lead_is_shrunk_to_the_least_that_does() -> None:
    pairs = worst(sentinel, AMOUNTS)
    (shift,) = (pair for pair in pairs if "shift" in pair.reason)
    assert (shift.first, shift.second) == ([], [1_000_001.0])
    assert shift.reason.startswith(f"{FOUND}: shift of output, 0 + laplace")
    assert shift.name.startswith("lead ")
    assert worst(sound, AMOUNTS) == []
    assert [(pair.name, pair.open()) for pair in worst(sentinel, AMOUNTS)] == [(p.name, p.open()) for p in pairs]


def test_a_loss_beyond_doubt_is_kept_and_a_small_one_does_not_become_smaller() -> None:
    """Five times the claim, where the value would have 10^16 times; 1.5 times, where no value has more."""
    (far,) = (pair for pair in worst(lambda rows, rng: sum(rows) + rng.laplace(), [1, 2, 3]) if "shift" in pair.reason)
    assert [abs(row) for row in [*far.first, *far.second]] == [5]
    (near,) = worst(lambda rows, rng: sum(clipped(row, 1.5) for row in rows) + rng.laplace(), AMOUNTS)
    assert len(near.first) + len(near.second) == 1
    assert clipped([*near.first, *near.second][0], 1.5) == 1.5


def test_a_threshold_on_the_size_is_found_by_halving() -> None:
    """Twenty records are asked at 10, 19, 20, 21, 40 and 60: only between these does the mechanism become another."""

    def crowded(rows: Any, rng: np.random.Generator) -> float:
        return len(rows) + rng.laplace(scale=1.0 if len(rows) < 37 else 0.2)

    pairs = worst(crowded, list(range(20)))
    assert any(max(len(pair.first), len(pair.second)) in (37, 38) for pair in pairs)


def test_users_of_many_rows_and_values_on_either_side_of_a_replacement() -> None:
    (many,) = worst(lambda rows, rng: len(rows) + rng.laplace(), [("ann", 1), ("bob", 2)], USER, 0)
    assert len(many.first) + len(many.second) == 5
    assert len({user for user, _ in [*many.first, *many.second]}) == 1

    def width(rows: Any, rng: np.random.Generator) -> float:
        return sum(clipped(row + 1e6, 2e6) - 1e6 for row in rows) + rng.laplace(scale=1.5e6)

    (pair,) = worst(width, AMOUNTS, REPLACE)  # either end alone keeps the claim
    assert sorted(np.sign([pair.first[0], pair.second[0]])) == [-1.0, 1.0]


def test_values_of_the_local_relation_are_moved_where_one_is_given_alone() -> None:
    far = worst(lambda value, rng: value + rng.laplace(), 0.5, LOCAL)
    assert {type(pair.first) for pair in far} == {float}
    with pytest.raises(InvalidSpec, match="others are no candidates"):
        Maker(Example([0, 1, 2], LOCAL))


def refuses(rows: Any, rng: np.random.Generator) -> float:
    return sum({"a": 0.0, "b": 1.0}[row] for row in rows) + rng.laplace()


def seeds_itself(rows: Any, rng: np.random.Generator) -> float:
    return len(rows) * 9.0 + np.random.Generator(np.random.PCG64(time.time_ns())).laplace()


def dense(rows: Any, rng: np.random.Generator) -> Any:
    return np.bincount(np.clip(np.array(rows, int), 0, None))[:2] + rng.laplace(size=2)


@for_each("mechanism, data", [(refuses, ["a", "b"]), (seeds_itself, AMOUNTS), (lambda rows, rng: 1.0, AMOUNTS)])
def test_what_is_refused_drawn_elsewhere_or_constant_is_no_lead(mechanism: Callable[..., Any], data: Any) -> None:
    assert worst(mechanism, data) == []


def test_a_candidate_that_hangs_or_wants_all_memory_is_dropped() -> None:
    def slow(rows: Any, rng: np.random.Generator) -> float:
        return sum(1 for row in rows for _ in range(10**10 if row > 1e8 else 1)) + rng.laplace()

    for mechanism, data in ((slow, AMOUNTS), (dense, [1, 0, 1])):
        with Engine(1) as engine:
            start, work = time.monotonic(), partial(worst_here, Example(data, ADD), PureDP(1.0, ADD), 2_000)
            answer = asked_alone(engine, wrap(mechanism), 0, work)
        assert time.monotonic() - start < 60.0
        assert answer is not None
        assert all(max(abs(row) for row in [0, *pair.open()[1]]) <= 1e8 for pair in answer[1])


def test_recorded_runs_are_bounded() -> None:
    for left in (300, 1_000):
        with patched(), np.errstate(all="ignore"):
            search = asked(sentinel, AMOUNTS, left=left)
            search.worst()
        assert -recording_pairs.ANALYSED <= search.left < left - 100


def test_without_hypothesis_the_pair_is_as_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_pairs, "find_spec", lambda name: None)
    pairs = worst(sentinel, AMOUNTS)
    assert any(len(pair.second) > 1 for pair in pairs)
    assert all(re.search(r"; python3 -m pip install .*\[search\]\S* has it shrunk$", pair.reason) for pair in pairs)


def test_an_audit_of_data_is_given_the_leads_first() -> None:
    def unbounded(rows: Any, rng: np.random.Generator) -> float:  # in here, so that processes need not load this file
        return sum(row if row > 1e6 else min(max(row, 0.0), 1.0) for row in rows) + rng.laplace()

    result = audit(unbounded, data=AMOUNTS, epsilon=1.0, runs=10_000, n_jobs=1)
    first = result.spec["pairs"][0]["name"]
    assert result.provenance["reasons"][first].startswith(FOUND)
    assert result.refuted
    assert pose(sentinel, data=AMOUNTS, epsilon=1.0, pairs=["drop_one"]).example is None


@for_each("mechanism", [sound, batched(lambda rows, runs, rng: sum(map(clipped, rows)) + rng.laplace(size=runs))])
def test_where_nothing_is_led_an_audit_is_what_it_was(mechanism: Any) -> None:
    question = pose(mechanism, data=AMOUNTS, epsilon=1.0, runs=4_000)
    with Engine(1) as engine:
        assert Runner(engine).plan(question).pairs == question.pairs


def many(rows: Any, runs: int, rng: np.random.Generator) -> Any:
    return sum(row if row > 1e6 else clipped(row) for row in rows) + rng.laplace(size=runs)


@for_each("mechanism", [batched(many), built_by(lambda: sentinel)])
def test_batched_and_built_mechanisms_are_asked_run_by_run(mechanism: Any) -> None:
    question = pose(mechanism, data=AMOUNTS, epsilon=1.0, runs=4_000)
    with Engine(1) as engine:
        planned, again = Runner(engine).plan(question), Runner(engine).plan(question)
    assert planned.pairs[0].reason.startswith(FOUND)
    assert planned.hash == again.hash  # an audit that goes on after an interruption asks the same


def test_what_the_patterns_show_as_much_is_handed_on_by_none() -> None:
    question = pose(lambda rows, rng: 3.0 * len(rows) + rng.laplace(), data=AMOUNTS, epsilon=1.0, runs=4_000)
    with Engine(1) as engine:
        assert Runner(engine).plan(question).pairs == question.pairs


def test_a_mechanism_that_ends_its_process_leaves_the_pairs_as_they_are() -> None:
    def ends(rows: Any, rng: np.random.Generator) -> float:
        if any(row > 1e8 for row in rows):
            os._exit(1)
        return 3.0 * sum(map(clipped, rows)) + rng.laplace()

    question = pose(ends, data=AMOUNTS, epsilon=1.0, runs=4_000)
    with Engine(1) as engine:
        assert Runner(engine).plan(question).pairs == question.pairs


def test_specs_name_their_data_and_have_leads_too() -> None:
    raw = {"name": "sum", "mechanism": f"{__name__}:sentinel", "relation": "add_or_remove_one", "runs": 4_000}
    for data in (AMOUNTS, f"{__name__}:AMOUNTS"):
        question = asked_of({**raw, "data": data, "claim": {"epsilon": 1.0}}, "here", Layers())
        with Engine(1, supervised=True) as engine:
            planned = Runner(engine).plan(question)
        assert planned.pairs[0].reason.startswith(FOUND)
        assert len(planned.pairs) > 10


def test_a_search_asks_many_pairs_and_tries_the_worst() -> None:
    """One value in five is bad: of 192 fewer than 12 are with probability 1e-7, twelve in a row unasked with 4e-9."""

    def narrow(rows: Any, rng: np.random.Generator) -> float:
        return sum(5.0 if 0.5 < row < 0.7 else clipped(row) for row in rows) + rng.laplace()

    asked_of_many: dict[str, Any] = {"claim": PureDP(1.0, ADD), "runs": 40_000, "tries": 24, "n_jobs": 1}
    search = search_pairs(narrow, lambda rng: ([], [rng.random()]), **asked_of_many)
    assert all(each.score is not None and each.score > 2.0 for each in search.tried[:12])
    assert len(search.tried) == 24
    moved = search_pairs(narrow, lambda value: ([], [value]), bounds={"value": (0.0, 1.0)}, **asked_of_many)
    assert all(0.5 < each.parameters["value"] < 0.7 for each in moved.tried[:12])
