"""Pairs made of one example dataset, whatever holds its records: neighbours of every kind, which find mistakes."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import InvalidSpec, Relation, Verdict
from dpaudit.account import account
from dpaudit.account.statements import headline, kinds_tried, without
from dpaudit.data import PATTERNS, pairs_of_data, stock_pairs
from dpaudit.data.data import records_of
from tests.cases import for_each, some
from tests.data.holders import HOLDERS, NUMBERS, check_pairs

ADD, REPLACE, LOCAL = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.LOCAL
AGES, WARDS = [34, 71, 22, 71], ["n", "n", "s", "n"]


RECORDS = list(zip(AGES, WARDS, strict=True))
STRUCTURES = NUMBERS["structures"][0]([(age, float(age)) for age in AGES])
HELD: dict[str, Any] = {
    "list": AGES,
    "tuple": tuple(AGES),
    "array": np.array(AGES, float),
    "matrix": np.array([AGES, AGES]).T,
    "structures": STRUCTURES,
    "record array": STRUCTURES.view(np.recarray),
    "columns": {"age": np.array(AGES, float), "ward": WARDS},
    **{name: HOLDERS[name][0](RECORDS) for name in ("tuples", "lists", "dictionaries", "dataclasses")},
}
OF_RECORDS = {"a record less", "a duplicate more", "all records of one value", "the empty dataset", "another order"}
FLOATS = {"NaN", "infinity"}  # which whole numbers cannot hold


def check(data: Any, floats: bool) -> None:
    for relation, wanted in ((ADD, OF_RECORDS), (REPLACE, {"a record by another", "another order"})):
        check_pairs(data, relation, wanted | {"far out of bounds"} | (FLOATS if floats else set()))


@for_each("name", HELD)
def test_every_holder_of_records_gives_neighbours_of_every_kind(name: str) -> None:
    before = repr(HELD[name])
    check(HELD[name], floats=name != "matrix")
    assert repr(HELD[name]) == before


def test_frames_give_neighbours_of_every_kind() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": AGES, "ward": WARDS})
    kinds = pandas.Categorical(WARDS, categories=["s", "n", "none"])
    labelled = frame.set_index(pandas.Index([5, 3, 9, 1], name="id"))
    tables = [labelled, frame["age"], frame.assign(ward=kinds), frame, frame.set_index("ward"), labelled["age"]]
    for data in some(tables, 3):
        check(data, floats=False)
        with pytest.raises(InvalidSpec, match="cannot hold"):
            pairs_of_data(data, ADD, ["add_nan"])
        assert not any(FLOATS & {pair.reason.partition(": ")[0]} for pair in pairs_of_data(data, ADD))
    both = frame.assign(weight=[0.5, 1.0, 2.0, 4.0])
    check(both, floats=True)
    last = pairs_of_data(both, ADD, ["add_infinity"])[0].second.iloc[-1]
    assert (last["age"], last["weight"]) == (34, float("inf"))
    added = {pair.name: pair.second for pair in pairs_of_data(frame.assign(ward=kinds), ADD)}
    assert str(added["add one: outlier 71000"].dtypes.tolist()) == "[dtype('int64'), " + repr(kinds.dtype) + "]"
    assert added["add one: outlier 71000"].index.tolist() == [0, 1, 2, 3, 4]
    assert pairs_of_data(labelled, ADD, ["add_one"])[0].second.index.tolist() == [5, 3, 9, 1, 10]
    zero = pairs_of_data(labelled, REPLACE, ["replace_by_zero"])[0]
    assert zero.second.index.tolist() == [5, 3, 9, 1]
    assert {pair.name for pair in pairs_of_data(frame, ADD, ["last_of_category"])} == {
        "drop one: last of its category 'ward'"
    }


def test_values_of_the_local_relation_are_those_that_were_given() -> None:
    """No value is made up where several were given: what a mechanism refuses as no value of its domain is no leak."""
    pairs = pairs_of_data([5, 2, 9, 2], LOCAL)
    assert {value for pair in pairs for value in pair.open()} == {5, 2, 9}
    assert [pair.open() for pair in pairs_of_data(["yes", "no"], LOCAL)] == [("yes", "no")]
    alone = pairs_of_data(3.0, LOCAL)
    assert {repr(pair.second) for pair in alone} == {"3000.0", "-3000.0", "0.0", "nan", "inf", "-inf"}
    assert all(pair.adjacency()[LOCAL] == "any two" for pair in (*pairs, *alone))
    with pytest.raises(InvalidSpec, match="no pair can be made of data = <object"):
        pairs_of_data(object(), ADD)


def test_records_are_those_that_each_kind_holds() -> None:
    assert records_of({"a": [1, 2], "b": np.array([3, 4])}) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert records_of(STRUCTURES)[0] == (34, 34.0)
    for data in ({"a": [1], "b": [1, 2]}, {"a": 1}, {"a": {"b": [1]}}, {}, 3, np.float64(3.0), np.array(3.0), {1, 2}):
        assert records_of(data) is None, data


def unclipped(rows: Any, rng: Any) -> float:
    return float(sum(row for row in rows if row == row) + rng.laplace(scale=100.0))


def clipped(rows: Any, rng: Any) -> float:
    return float(sum(min(max(row, 0.0), 100.0) for row in rows if row == row) + rng.laplace(scale=100.0))


def test_an_audit_needs_one_dataset_and_says_which_kinds_of_pairs_it_tried() -> None:
    """Chance of a false alarm: 0.001 at the most each; the seed is fixed."""
    asked: dict[str, Any] = {"data": AGES, "epsilon": 1.0, "runs": 2_000, "n_jobs": 1}
    broken = dpaudit.audit(unclipped, **asked)
    assert broken.verdict is Verdict.REFUTED
    assert broken.pair["name"] in ("add one: outlier 71000", "add one: outlier -71000", "add one: inf", "add one: -inf")
    assert headline(broken).endswith("; relation add_or_remove_one assumed")
    assert not broken.on_trust
    left_out = "If infinity cannot occur in the data, audit without it: let pairs = [...] name the patterns to try."
    for name, told in (("add one: inf", [left_out]), ("add one: outlier 71000", [])):
        assert without(SimpleNamespace(provenance=broken.provenance, pair={"name": name})) == told  # type: ignore[arg-type]
    sound = dpaudit.audit(clipped, **asked)
    assert sound.verdict is Verdict.NOT_REFUTED
    every = {each.kind for each in PATTERNS.values() if ADD in each.relations and each.kind}
    left = {"None", "the last of its category"}
    words = kinds_tried(sound)
    tried, _, missing = words.removesuffix(".").partition("; not tried: ")
    missing, _, why = missing.partition(" (")
    assert why.endswith("as NaN among whole numbers)")
    assert set(missing.split(", ")) == left
    assert set(tried.split(", ")) == every - left
    assert words in account(sound)["before you rely on it"].lines[1]
    few = dpaudit.audit(clipped, **asked | {"pairs": ["drop_one"], "relation": "add_or_remove_one", "runs": 400})
    assert "assumed" not in headline(few)
    assert kinds_tried(few).startswith("a record less; not tried: a duplicate more,")
    assert kinds_tried(dpaudit.audit(clipped, pair=([1], [1, 2]), epsilon=1.0, runs=400, n_jobs=1)) == ""
    with pytest.raises(InvalidSpec, match="data makes the pairs: leave out pair"):
        dpaudit.audit(clipped, **asked | {"pair": ([1], [])})


# --- each pattern that found something finds a small mechanism with that mistake -------------------------------------

LOWER, UPPER = 10.0, 11.0
SIZE: Any = {"runs": 2_000, "confidence": 1 - 1e-7, "epsilon": 1.0, "n_jobs": 1}  # seven sound twins: 7e-7 in all


def _by_label(rows: Any, rng: Any, moves: float) -> list[float]:
    sums = [sum(x for x, label in rows if label == each) for each in (0, 1)]
    return [float(each + rng.laplace(scale=2 * moves)) for each in sums]


def _sum(values: Any, rng: Any, moves: float) -> float:
    return float(sum(x for x in values if x == x) + rng.laplace(scale=moves))


def _counts(words: Any, rng: Any, known: Any) -> dict[str, float]:
    return {each: float(list(words).count(each) + rng.laplace()) for each in known or sorted(set(words))}


def _clipped(updates: Any, rng: Any, bound: float | None) -> float:
    norm = max(map(abs, updates)) if bound is None else bound
    return float(sum(min(each, norm) for each in updates) + rng.laplace(scale=2 * norm))


def _values(words: Any, rng: Any, order: Any) -> list[Any]:
    return [*order(dict.fromkeys(words)), float(len(words) + rng.laplace())]


def _total(values: Any, rng: Any, unread: Any) -> float:
    return float(sum(0.0 if each is unread else each for each in values) + rng.laplace(scale=2.0))


# by pattern: its keywords, its relation, the mechanism, what is wrong in it, what is right
LABELLED = [(10.0, 0), (11.0, 1), (11.0, 1), (10.0, 0)]
FOUND: dict[str, tuple[dict[str, Any], str, Any, Any, Any]] = {
    "change_label": ({"data": LABELLED}, "replace_one", _by_label, UPPER - LOWER, UPPER),
    "far_from_zero": ({"lower": LOWER, "upper": UPPER}, "add_or_remove_one", _sum, UPPER - LOWER, UPPER),
    "replace_by_nan": ({"data": [10.5] * 4}, "replace_one", _sum, UPPER - LOWER, UPPER),
    "last_of_category": ({"data": ["a", "b", "a"]}, "add_or_remove_one", _counts, None, ("a", "b")),
    "replace_by_zero": ({"data": [3.0]}, "replace_one", _clipped, None, 1.0),
    "replace_in_front": ({"data": ["a", "b"]}, "replace_one", _values, list, sorted),
    "replace_by_none": ({"data": [0.5, 1.0]}, "replace_one", _total, math.nan, None),
}


@pytest.mark.long
@for_each("name", FOUND)
def test_each_pattern_finds_its_mistake_and_accuses_no_sound_twin(name: str) -> None:
    """By day the twins of three of them."""
    keywords, relation, mechanism, wrong, right = FOUND[name]
    pairs = stock_pairs(name, relation=relation, **keywords)
    keyword = mechanism.__code__.co_varnames[2]
    for part, refuted in ((wrong, True), *([(right, False)] if name in some(FOUND, 3) else [])):
        result = dpaudit.audit(mechanism, pairs=pairs, relation=relation, parameters={keyword: part}, **SIZE)
        assert (result.verdict is dpaudit.Verdict.REFUTED) is refuted, f"{name}: {result}"
        assert set(result.provenance["reasons"]) == {pair.name for pair in pairs}
