"""Pairs made of one dataset by its users: neighbours of every kind, whatever holds the records and names the users."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import dpaudit
from dpaudit import AdjacentPair, InvalidSpec, Relation
from dpaudit.account import account
from dpaudit.account.statements import kinds_tried
from dpaudit.data import PATTERNS, pairs_of_data, stock_pairs
from dpaudit.data.owners import owners_of
from dpaudit.data.patterns import UNASKED, kinds_of_pairs
from dpaudit.results.stored import loads
from tests.cases import for_each, some
from tests.data.holders import HOLDERS, NUMBERS, Stay, Visit, check_pairs

USER = Relation.ADD_OR_REMOVE_USER
ROWS = [(7, 34.0, "n"), (3, 71.0, "n"), (7, 22.0, "s"), (9, 71.0, "n"), (7, 5.0, "n")]
COSTS = [(who, age) for who, age, _ in ROWS]
OTHERWISE = {"named tuples", "objects", "masked", "matrix, from the end", "arrays in a list"}  # no data of a pattern
HELD: dict[str, tuple[Any, str | int]] = {
    "tuples of three": (ROWS, 0),
    "from the end": ([row[::-1] for row in ROWS], -1),
    "named tuples in a list": ([Stay(*row) for row in COSTS], "id"),
    "named tuples by position": ([Stay(*row) for row in COSTS], 0),
    "columns of small integers": ({"id": np.array([1, 127, 1], np.int8), "age": [1.0, 2.0, 3.0]}, "id"),
    **{name: (hold(COSTS), user) for name, (hold, user) in (HOLDERS | NUMBERS).items() if name not in OTHERWISE},
}
OF_USERS = {"a user less", "a copy of a user more", "a user with many records", "all users alike", "the empty dataset"}
KINDS = OF_USERS | {"far out of bounds", "zero", "NaN", "infinity", "another order"}


@for_each("name", HELD)
def test_every_holder_gives_neighbours_of_every_kind(name: str) -> None:
    data, user = HELD[name]
    before = repr(data)
    check_pairs(data, USER, KINDS, user)
    assert repr(data) == before


@pytest.mark.long
def test_frames_give_neighbours_of_every_kind_and_keep_their_types() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["id", "age", "ward"])
    kinds = pandas.Categorical(frame["id"], categories=[3, 7, 9, 11])
    texts = frame.assign(id=frame["id"].map(str))
    tables = [
        frame.set_index(pandas.Index([5, 3, 9, 1, 2], name="n")),
        frame.astype({"id": "Int64"}),
        frame.astype({"id": float}),
        frame,
        frame.set_index("ward"),
        texts,
        texts.astype({"id": "string"}),
        frame.assign(id=pandas.to_datetime(frame["id"], unit="D")),
    ]
    for data in some(tables, 4):
        check_pairs(data, USER, KINDS, "id")
    both = check_pairs(
        frame.assign(id=kinds), USER, KINDS - {"all users alike"}, "id"
    )  # 11 is the only user that can come
    assert {each for pair in both for each in pair.second["id"]} == {3, 7, 9, 11}
    used = frame.assign(id=kinds.remove_unused_categories())
    assert {pair.reason for pair in pairs_of_data(used, USER, user="id")} == {"a user less", "the empty dataset"}
    with pytest.raises(
        InvalidSpec, match="pattern 'add_one': no new user can be made beside 7, of type int, that 'id'"
    ):
        stock_pairs("add_one", relation=USER, data=used, user="id")
    last = stock_pairs("last_of_category", relation=USER, data=frame, user="id")
    assert [pair.name for pair in last] == ["drop one: last of its category 'ward'"]
    whole = frame.astype({"age": int})
    assert not {"NaN", "infinity"} & {pair.reason.partition(": ")[0] for pair in pairs_of_data(whole, USER, user="id")}


def test_two_users_at_a_distance_of_two() -> None:
    for name in ("drop_one", "add_one", "add_outlier", "add_zero", "empty", "alike", "many_records"):
        for data, user in HELD.values():
            if not isinstance(data, dict):
                for pair in stock_pairs(name, relation=USER, data=data, user=user, distance=2):
                    assert pair.distance == 2
                    with pytest.raises(InvalidSpec, match="not at distance 1"):
                        AdjacentPair(pair.first, pair.second, user=user).check(USER)


OWNERS: list[list[Any]] = [
    *(["ann", "bob"], ["", "a"], ["new user", "1"], [1, "1"], [b"ann", b"bob"]),
    *([1, 2], [0.5, 1.5], [math.inf, 1.0], [1e300, 2.0], [False], [np.int8(127), np.int8(-128)]),
    *([date(2020, 1, 1), date(2021, 1, 1)], [uuid.UUID(int=7), uuid.UUID(int=9)]),
    *([Decimal("0.5"), Decimal(7)], [Fraction(1, 2), Fraction(3)]),
]


@for_each("owners", OWNERS, ids=repr)
def test_a_new_user_is_of_the_type_of_the_others_and_none_of_them(owners: list[Any]) -> None:
    rows = [(owner, 1.0) for owner in owners]
    for data, user in (
        (rows, 0),
        ([Visit(*row) for row in rows], "id"),
        ({"id": owners, "a": [1.0] * len(rows)}, "id"),
    ):
        for pair in stock_pairs("add_one", relation=USER, data=data, user=user):
            new = owners_of(pair.second, user)[-1]
            assert all(new != owner for owner in owners)
            assert type(new) in set(map(type, owners))


def test_a_new_user_fits_the_array() -> None:
    for kind, owners in (
        ("U1", ["n", "a"]),
        ("S3", [b"ab", b"c"]),
        ("i1", [127, -128]),
        ("u1", [255, 0]),
        ("?", [True]),
    ):
        data = np.array([(owner, 1.0) for owner in owners], dtype=[("id", kind), ("age", "f4")])
        for pair in stock_pairs("add_one", relation=USER, data=data, user="id"):
            assert pair.second.dtype == data.dtype
            assert len(set(owners_of(pair.second, "id"))) == len(owners) + 1
    texts = np.array([["ann", "x"], ["bob", "y"]])
    assert stock_pairs("add_one", data=texts, user=0)[0].second.tolist()[-1] == ["a", "x"]
    both = np.array([(each, 1) for each in (True, False)], dtype=[("id", "?"), ("age", "i1")])
    for data, user in ((both, "id"), ([(SimpleNamespace(a=1), 5)], 0)):
        with pytest.raises(InvalidSpec, match=r"no new user can be made beside .* give pairs, or users that are"):
            stock_pairs("add_one", relation=USER, data=data, user=user)
        assert stock_pairs("drop_one", relation=USER, data=data, user=user)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", 1, 2, 1.5]), st.floats(), st.sampled_from(["x", "y"])),
        min_size=1,
        max_size=6,
    )
)
def test_pairs_of_any_rows_are_neighbours(rows: list[Any]) -> None:
    for pair in pairs_of_data(rows, USER, user=0):
        pair.check(USER)
        assert pair.adjacency()[USER] == "users"


def test_a_pair_of_users_says_whose_records_are_whose() -> None:
    assert [pair.user for pair in stock_pairs("drop_one", data=ROWS, user=0)] == [0, 0, 0]  # no relation stated


def test_kinds_are_counted_in_the_words_of_users() -> None:
    reasons = {pair.reason for pair in pairs_of_data(ROWS, USER, user=0)}
    tried, left = kinds_of_pairs(reasons, USER)
    assert set(tried) == KINDS
    assert left == ("None", "the last of its category")  # as the user who leaves then is one who leaves anyway
    of_records, _ = kinds_of_pairs({pair.reason for pair in pairs_of_data(ROWS, Relation.ADD_OR_REMOVE_ONE)}, USER)
    assert not {"a record less", "a duplicate more"} & {*of_records}
    assert all(USER not in PATTERNS[name].relations for name in PATTERNS if name.startswith(("replace", "change")))
    assert "add_none" in UNASKED


def _sum(rows: Any, rng: Any, most: int | None) -> float:
    """Each record is clipped at 1; of a user `most` records are summed, of None all."""
    counted: Counter[Any] = Counter()
    total = 0.0
    for who, value in rows:
        counted[who] += 1
        if most is None or counted[who] <= most:
            total += min(max(value, 0.0), 1.0) if value == value else 0.0
    return total + float(rng.laplace(scale=most or 1))


@pytest.mark.long
def test_a_contribution_that_nobody_bounds_is_found_and_a_bounded_one_is_not_accused() -> None:
    """The sum is right for a record that leaves, and wrong for a user with many. Chance of a false alarm: 1e-6."""
    data = [(f"user {place % 4}", 0.5) for place in range(8)]
    size: dict[str, Any] = {"epsilon": 1.0, "runs": 2_000, "n_jobs": 1, "confidence": 1 - 1e-6, "relation": USER.value}
    for most, verdict in ((None, dpaudit.Verdict.REFUTED), (2, dpaudit.Verdict.NOT_REFUTED)):
        pairs = pairs_of_data(data, USER, user=0)
        result = dpaudit.audit(_sum, pairs=pairs, parameters={"most": most}, **size)
        assert result.verdict is verdict, result
        assert result.shown == "users"
        assert not result.on_trust
        assert "a user with many records" in kinds_tried(result)
        assert "a user less" in str(result.explain())
        again = loads(result.to_json(), "")
        assert again.pair["user"] == 0
        assert again.to_json() == result.to_json()
        assert any("Compared user by user" in line for line in account(again)["datasets"].lines)
    apart = replace(result, adjacency=("2 users leave and 1 come",) * len(pairs))  # where no relation was stated
    assert loads(apart.to_json(), "").further_apart == "2 users leave and 1 come"
