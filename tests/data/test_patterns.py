"""Stock patterns: every pair is one of its relation, at the distance it says; anything else is refused in one line."""

from __future__ import annotations

import math
import random
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, Relation
from dpaudit.api.audits import pose
from dpaudit.data import PATTERNS, SealedPair, pairs_of_data, stock_pairs
from dpaudit.data.patterns import PAIRS, _draws, drawn_pairs, is_strategy
from tests.cases import for_each
from tests.data.holders import Visit, frame, structured

USER = Relation.ADD_OR_REMOVE_USER
QUERIES = ("one_differs", "all_differ", "half_up_half_down", "far_from_threshold")


class Person(NamedTuple):
    age: int
    name: str


DATASETS: dict[str, Any] = {
    "numbers": [3.0, 1.0, 2.0, 5.0],
    "tuple": (3, 1, 2, 5),
    "rows": [(1, 2.0, "a"), (3, 4.0, "b"), (5, 0.0, "c")],
    "dictionaries": [{"age": 3, "name": "x"}, {"age": 4, "name": "y"}, {"age": 1, "name": "z"}],
    "named": [Person(3, "x"), Person(4, "y"), Person(1, "z")],
    "array": np.array([3.0, 1.0, 2.0, 5.0]),
    "matrix": np.arange(8.0).reshape(4, 2),
}
ADDING = ("drop_one", "add_one", "add_outlier", "add_nan", "add_infinity", "empty")
REPLACING = ("replace_one", "replace_by_outlier", "replace_by_nan", "replace_by_infinity")


@for_each("distance", [1, 3])
@for_each("queries", [2, 3, 10])
@for_each("name", QUERIES)
def test_query_answers_move_by_at_most_the_sensitivity(name: str, queries: int, distance: int) -> None:
    for relation in (None, *Relation):
        pairs = stock_pairs(name, relation=relation, queries=queries, sensitivity=0.5, distance=distance)
        for pair in pairs:
            moved = np.abs(np.subtract(pair.first, pair.second))
            assert len(pair.first) == len(pair.second) == queries
            assert 0.0 < moved.max() <= 0.5 * distance
            assert pair.distance == distance
    assert len({pair.name for pair in pairs}) == len(pairs)
    both_ways = {(str(pair.first), str(pair.second)) for pair in pairs}
    assert not any((second, first) in both_ways for first, second in both_ways), "both orders are free in search"
    assert len(both_ways) == len(pairs)


ROWS = [(7, 34.0, "n"), (3, 71.0, "n"), (7, 22.0, "s"), (9, 71.0, "n"), (7, 5.0, "n")]
TABLE = [{"id": 1, "cost": 2}, {"id": 2, "cost": 2}]
NAMES: dict[str, Any] = {
    **{each.__name__: each for each in (stock_pairs, pairs_of_data, AdjacentPair, Relation, Visit, structured)},
    "np": np,
    "math": math,
    "ROWS": ROWS,
    "TABLE": TABLE,
    "COLUMNS": {"id": [1, 2], "cost": [2, 2]},
    "ADD": Relation.ADD_OR_REMOVE_ONE,
    "REPLACE": Relation.REPLACE_ONE,
    "LOCAL": Relation.LOCAL,
    "USER": USER,
    "BOTH": [("a", 1, "x"), ("b", 2, "x"), ("b", 3, "y"), ("c", 4, "y"), ("d", 5, "x")],
    "SMALL": np.array([1, 2], np.int8),
    "USERS": {"relation": "add_or_remove_user", "user": 0},
    "FRAME": frame([(1, 5), (2, 5)]),
    "TWICE": frame([(1, 5), (2, 5)]).set_axis(["id", "id"], axis=1),
}


def unnamed(first: Any, second: Any, user: Any = None) -> None:
    """Datasets that say nothing of users: nothing shows that they are neighbours, and only that relation refuses."""
    pair = AdjacentPair(first, second, user=user)
    assert pair.adjacency()[USER] is None
    pair.check(None)
    pair.check(USER)


def spelled(pair: AdjacentPair) -> str:
    first, second = (repr(each.tolist() if isinstance(each, np.ndarray) else each) for each in pair.open())
    text = f"    {pair.name}: {first} -> {second}".replace(f"{ROWS!r}"[:-1], "[*ROWS").replace("[*ROWS]", "ROWS")
    user = "" if pair.user is None else f" of user {pair.user}"
    return text + ("" if pair.distance == 1 else f" at {pair.distance}") + user


def answers(line: str) -> list[str]:
    """What the call on a line comes to: its pairs, or why it is refused."""
    if not line[:1].isalpha():
        return []
    try:
        return [spelled(pair) for pair in eval(line, {**NAMES, "unnamed": unnamed})]
    except InvalidSpec as error:
        return ["    " + re.sub(r"(?<=one_differs)(, (?!got)\w+)+", ", ...", str(error))]  # of many names the first


@for_each("name", ["pairs.txt", "refusals.txt"])
def test_pairs_and_refusals_are_those_that_are_written_down(name: str) -> None:
    """What each name says of queries, records and users; those of StatDP are the published ones."""
    written = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    calls = [line for line in written if not line.startswith("    ")]
    assert [each for line in calls for each in (line, *answers(line))] == written


def test_the_published_patterns_move_each_answer_by_one() -> None:
    for queries in (2, 3, 4, 10):
        pairs = stock_pairs("statdp_all_differ", relation="replace_one", queries=queries)
        seen = {(str(pair.first), str(pair.second)) for pair in pairs}
        assert len(seen) == len({pair.name for pair in pairs}) == len(pairs) == (8 if queries > 3 else 7)
        assert not any((second, first) in seen for first, second in seen)
        for pair in pairs:
            assert np.abs(np.subtract(pair.first, pair.second)).max() == 1
            assert {type(answer) for answer in (*pair.first, *pair.second)} == {int}


def test_whole_numbers_stay_whole() -> None:
    """Mechanisms on integers get integers."""
    for name in QUERIES:
        for pair in stock_pairs(name, queries=4, distance=2):
            assert {type(answer) for answer in (*pair.first, *pair.second)} == {int}


@for_each("distance", [1, 2])
@for_each("kind", DATASETS)
@for_each("name", [*ADDING, *REPLACING])
def test_datasets_are_neighbours_under_their_relation(name: str, kind: str, distance: int) -> None:
    data = DATASETS[kind]
    relation = Relation.ADD_OR_REMOVE_ONE if name in ADDING else Relation.REPLACE_ONE
    pairs = stock_pairs(name, relation=relation, data=data, distance=distance)
    assert pairs
    for pair in pairs:
        assert pair.distance == distance
        assert type(pair.first) is type(pair.second)
        if distance == 2:  # no pair is nearer than it says
            with pytest.raises(InvalidSpec, match="not at distance 1"):
                AdjacentPair(pair.first, pair.second).check(relation)
    assert len({pair.name for pair in pairs}) == len(pairs)
    if name in REPLACING:
        assert all(len(pair.first) == len(pair.second) for pair in pairs)


@for_each("name, relation", [("drop_one", "replace_one"), ("replace_one", "add_or_remove_one")])
def test_a_pattern_of_another_relation_makes_no_neighbours_under_it(name: str, relation: str) -> None:
    for pair in stock_pairs(name, data=[1, 2]):
        with pytest.raises(InvalidSpec, match=r"not at distance 1 under .*records leave"):
            pair.check(Relation(relation))


def test_the_data_given_stays_as_it_was() -> None:
    data = np.array([3.0, 1.0, 2.0])
    for name in (*ADDING, *REPLACING):
        stock_pairs(name, data=data)
    assert data.tolist() == [3.0, 1.0, 2.0]


def test_patterns_know_their_parameters() -> None:
    assert PATTERNS["one_differs"].required == ("queries",)
    assert PATTERNS["replace_one"].keywords == ("data", "value", "distance")


def test_query_answers_within_their_sensitivity_are_neighbours() -> None:
    good = AdjacentPair([0.0, 0.0], [0.3, -0.3], distance=3, sensitivity=0.1)
    good.check(Relation.ADD_OR_REMOVE_ONE)
    good.check(None)
    assert SealedPair.seal(good).open() == (good.first, good.second)


# --- pairs from Hypothesis strategies: a fixed number, always the same, and nothing else touched ---------------------

LISTS = st.lists(st.integers(), min_size=1, max_size=6)
LEAVES = LISTS.map(lambda rows: (rows, rows[:-1]))


def pairs_of(strategy: Any, seed: int = 0) -> list[tuple[Any, Any]]:
    return [pair.open() for pair in drawn_pairs(strategy, seed)]


def test_a_fixed_number_of_different_pairs() -> None:
    pairs = drawn_pairs(LEAVES, 1)
    assert [pair.name for pair in pairs] == [f"drawn pair {number}" for number in range(1, PAIRS + 1)]
    assert len({repr(pair.open()) for pair in pairs}) == PAIRS
    assert max(len(pair.first) for pair in pairs) > 1  # not the simplest only


def test_the_same_from_a_seed_and_others_from_another() -> None:
    assert pairs_of(LEAVES, 3) == pairs_of(LEAVES, 3) != pairs_of(LEAVES, 4)


def test_what_else_is_loaded_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Hypothesis likes to draw constants that stand in the modules of a project; a test alone would draw others."""
    before = _draws(st.integers(), 5, 120)
    source = tmp_path / "of_the_project.py"
    source.write_text(f"CONSTANTS = {[7_000_001 + 13 * step for step in range(400)]}\n")
    module = ModuleType("of_the_project")
    module.__file__ = str(source)
    exec(source.read_text(), module.__dict__)
    monkeypatch.setitem(sys.modules, "of_the_project", module)
    assert _draws(st.integers(), 5, 120) == before


def test_nothing_random_is_touched_and_no_file_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    before = random.getstate(), np.random.get_state()[1].tolist()
    drawn_pairs(LEAVES, 0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert not (tmp_path / ".hypothesis" / "examples").exists()


def test_few_pairs_and_pairs_of_equal_datasets() -> None:
    assert sorted(pairs_of(st.tuples(st.booleans(), st.booleans()))) == [(False, True), (True, False)]
    pairs = drawn_pairs(st.builds(AdjacentPair, st.just(1), st.just(2), distance=st.just(4)), 0)
    assert [(pair.distance, pair.open()) for pair in pairs] == [(4, (1, 2))]


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (st.just(([1], [1])), "drew none of two different datasets"),
        (st.integers(), "must draw .first, second. or dpaudit.AdjacentPair, it drew 0"),
        (st.nothing(), "cannot be drawn from .Unsatisfiable"),
        (st.integers().map(lambda number: number / 0), "raised ZeroDivisionError: division by zero; its example"),
    ],
)
def test_what_is_no_strategy_of_pairs(strategy: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        drawn_pairs(strategy, 0)


def test_the_door_takes_a_strategy() -> None:
    assert is_strategy(LEAVES)
    assert not is_strategy([([1], [])])
    others = dict.fromkeys(("pair", "claim", "parameters", "max_time_s", "upper"))
    keywords = {**others, "pairs": LEAVES, "epsilon": 1.0, "delta": 0.0, "relation": "add_or_remove_one", "seed": 3}
    question = pose(lambda rows, rng: len(rows), **keywords)
    assert [pair.open() for pair in question.pairs] == pairs_of(LEAVES, 3)
    with pytest.raises(InvalidSpec, match="'drawn pair 1' are not at distance 1 under replace_one"):
        pose(lambda rows, rng: len(rows), **{**keywords, "relation": "replace_one"})
