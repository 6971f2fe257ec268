"""Users who own several records: grouped exactly, compared as an oracle does it, and refused where none is named."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from dpaudit import AdjacentPair, InvalidSpec, Relation
from dpaudit.data import SealedPair
from dpaudit.data.pair import compared_users
from tests.cases import for_each
from tests.data.holders import HOLDERS, NUMBERS, Rows, frame

USER = Relation.ADD_OR_REMOVE_USER
TABLE: list[tuple[Rows, Rows, int]] = [
    ([(1, 5), (1, 6), (2, 5)], [(2, 5)], 1),  # all records of one user leave
    ([(2, 5)], [(1, 5), (2, 5), (1, 6)], 1),
    ([(1, 5), (1, 6), (2, 5)], [(1, 5), (2, 5)], 2),  # one record leaves: the user has other records then
    ([(1, 5), (2, 6)], [(1, 6), (2, 5)], 4),
    ([(1, 5), (2, 5)], [(3, 5), (2, 5)], 2),
    ([(1, 5), (1, 5), (2, 5)], [(1, 5), (2, 5)], 2),  # a record twice is not a record once
    ([(1, 5), (2, 7), (1, 6)], [(2, 7), (1, 6), (1, 5), (3, 5), (3, 5)], 1),  # in any order
    ([(1, 5), (1, 6)], [], 1),
    ([(1, 5), (2, 6)], [], 2),
    ([], [(4, 1), (4, 1), (4, 1)], 1),
]


def oracle(first: Rows, second: Rows) -> int:
    """Steps between two datasets, by going through every user of either and sorting what they have, as text."""
    steps = 0
    spelled = [[(f"{type(who)} {who!r}", f"{type(cost)} {cost!r}") for who, cost in rows] for rows in (first, second)]
    for who in {who for rows in spelled for who, _ in rows}:
        before, after = (sorted(cost for owner, cost in rows if owner == who) for rows in spelled)
        if before != after:
            steps += bool(before) + bool(after)
    return steps


def check(first: Any, second: Any, user: str | int, steps: int) -> None:
    """What `check` and `adjacency` say at the distance of so many steps, and at one less."""
    for distance in {max(1, steps - 1), steps}:
        pair = AdjacentPair(first, second, "these", distance, user=user)
        how = pair.adjacency()[USER]
        if steps <= distance:
            pair.check(USER)
            assert how == "users"
        else:
            with pytest.raises(
                InvalidSpec, match=r"'these' are not at distance \d under add_or_remove_user: \d+ users"
            ):
                pair.check(USER)
            assert how is not None
            assert how.endswith(" come")
            assert sum(int(word) for word in how.split() if word.isdigit()) == steps


@for_each("name", HOLDERS | NUMBERS)
def test_every_holder_agrees_with_the_table_and_the_oracle(name: str) -> None:
    hold, user = (HOLDERS | NUMBERS)[name]
    for first, second, steps in TABLE:
        assert oracle(first, second) == steps
        check(hold(first), hold(second), user, steps)


def test_frames_agree_with_the_table() -> None:
    pytest.importorskip("pandas")
    for first, second, steps in TABLE:
        check(frame(first), frame(second), "id", steps)
        check(frame(first, [f"l{j}" for j in range(len(first))]), frame(second), "id", steps)
    labelled = frame([(1, 5), (2, 5)], ["a", "b"])
    check(labelled, labelled.iloc[1:], "id", 1)
    check(labelled, labelled.set_axis(["a", "c"], axis=0), "id", 2)  # a label is part of a row, and user 2 has another


OWNERS = st.sampled_from([1, 2, True, 1.0, "1", b"1", (1,), Decimal(1), date(2020, 1, 1), "", 0, False, -0.0, 0.0])
ROWS = st.lists(st.tuples(OWNERS, st.sampled_from([0, 1, 1.0, math.nan, None, "x"])), max_size=6)


def unlike(rows: list[Any]) -> bool:
    """Whether two users are equal for Python, and written in two ways."""
    both = ((one, other) for one, _ in rows for other, _ in rows)
    return any(one == other and (type(one), repr(one)) != (type(other), repr(other)) for one, other in both)


def steps_between(first: Any, second: Any, user: str | int) -> tuple[int, int]:
    """Users that leave, and that come."""
    found = compared_users(first, second, user)
    assert found is not None
    return found.gone, found.come


@settings(derandomize=True, deadline=None, max_examples=60)
@given(ROWS, ROWS)
def test_users_of_any_type_are_told_apart_as_the_oracle_does_or_refused(first: list[Any], second: list[Any]) -> None:
    for hold, user in HOLDERS.values():
        if unlike(first + second):
            with pytest.raises(
                InvalidSpec, match="are equal for Python and of different types, so a mechanism may take them for one"
            ):
                compared_users(hold(first), hold(second), user)
            continue
        found = compared_users(hold(first), hold(second), user)
        assert found is not None
        assert found.gone + found.come == oracle(first, second)
        assert found.sizes == tuple(len({(type(who), repr(who)) for who, _ in rows}) for rows in (first, second))


@settings(derandomize=True, deadline=None, max_examples=30)
@given(ROWS, st.randoms(use_true_random=False))
def test_order_and_a_copy_change_nothing_and_a_user_without_records_is_none(rows: list[Any], random: Any) -> None:
    assume(not unlike(rows))
    other = list(rows)
    random.shuffle(other)
    for hold, user in HOLDERS.values():
        assert steps_between(hold(rows), hold(other), user) == (0, 0)
        for who in {repr(owner): owner for owner, _ in rows}.values():
            left = [row for row in rows if (type(row[0]), repr(row[0])) != (type(who), repr(who))]
            assert steps_between(hold(rows), hold(left), user) == (1, 0)


def test_numbers_of_a_frame_are_what_they_count_as() -> None:
    pandas = pytest.importorskip("pandas")
    whole, parts = (pandas.DataFrame({"id": ids, "cost": [5, 6, 7]}) for ids in ([1, 1, 2], [1.0, 1.0, 2.0]))
    check(whole, parts.iloc[:2], "id", 1)
    check(whole.astype({"id": object}), parts.iloc[2:], "id", 1)
    mixed = pandas.DataFrame({"id": pandas.Series([1, 1.0, "1", "1"], dtype=object), "cost": [5, 5, 5, 5]})
    assert steps_between(mixed, mixed.iloc[[2, 3]], "id") == (1, 0)


def test_users_that_cannot_be_hashed_are_users() -> None:
    for owners in ([[1], [2]], [{"a": 1}, {"a": 2}], [{1, 2}, {3}], [np.arange(3), np.arange(4)], [1, [1]]):
        rows = [(owners[0], 5), (owners[1], 6), (owners[0], 7)]
        for hold, user in HOLDERS.values():
            for left, steps in ((rows[1:2], 1), (rows[:2], 2)):
                assert sum(steps_between(hold(rows), hold(left), user)) == steps


MISSING = [
    None,
    *map(np.float32, ("nan",)),
    math.nan,
    Decimal("nan"),
    Decimal("snan"),
    np.datetime64("NaT"),
    complex("nan"),
]


def test_a_record_without_a_user_is_refused() -> None:
    """Of whom nothing is known may be anybody's: neither one user together nor one each would be right."""
    for missing in MISSING:
        for hold, user in HOLDERS.values():
            pair = AdjacentPair(hold([(1, 5), (missing, 5)]), hold([(1, 5)]), "these", user=user)
            assert pair.adjacency()[USER] is None
            with pytest.raises(
                InvalidSpec, match=r"datasets of 'these': the first: record 2 has no user: .* give it one"
            ) as caught:
                pair.check(USER)
            assert "\n" not in str(caught.value)
    pandas = pytest.importorskip("pandas")
    for missing in (None, math.nan, pandas.NA, pandas.NaT):
        data = pandas.DataFrame({"id": pandas.Series([missing, "a"], dtype=object), "cost": [1, 2]})
        with pytest.raises(InvalidSpec, match=r"the second: record 1 has no user"):
            AdjacentPair(data.iloc[1:], data, user="id").check(USER)
    with pytest.raises(InvalidSpec, match="record 2 has no user: user = 0 is nan"):
        AdjacentPair(np.array([[1.0, 2.0], [np.nan, 2.0]]), np.array([[1.0, 2.0]]), user=0).check(USER)
    days = np.array(["2020-01-01", "NaT", "2020-01-01"], "M8[ns]")
    dated = np.array(list(zip(days, range(3), strict=True)), dtype=[("id", "M8[ns]"), ("cost", "i8")])
    for first, second in (({"id": days, "a": [1, 2, 3]}, {"id": days[:1], "a": [1]}), (dated, dated[:1])):
        with pytest.raises(InvalidSpec, match=r"record 2 has no user: user = 'id' is .*NaT.* there"):
            AdjacentPair(first, second, user="id").check(USER)
    check(dated[::2], dated[:0], "id", 1)
    masked = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[0, 0], [1, 0]])
    with pytest.raises(InvalidSpec, match="record 2 has no user: user = 0 is None"):
        AdjacentPair(masked, masked[:1], user=0).check(USER)


def test_positions_name_columns_of_a_frame_that_has_no_names() -> None:
    numbered = pytest.importorskip("pandas").DataFrame([[1, 5], [1, 6]])
    check(numbered, numbered.iloc[:0], 0, 1)


def test_dictionaries_are_tables_entries_or_unknown() -> None:
    check({"id": [1, 1], "cost": [5, 6]}, {}, "id", 1)
    check({"id": [1, 1], "cost": [5, 6]}, {"id": [1, 1]}, "id", 2)
    check({"ann": [5], "bob": [6, 7]}, {"bob": [6, 7]}, 0, 1)  # by name: an entry is a user's
    check({"ann": 5, "bob": 6}, {"bob": 6}, 0, 1)
    settings = AdjacentPair({"rows": [1, 2], "scale": 1.0}, {"rows": [1], "scale": 1.0}, user="id")
    settings.check(USER)
    assert settings.adjacency()[USER] is None


@for_each("user", [None, "id"])
def test_data_without_records_are_taken_as_under_other_relations(user: Any) -> None:
    for first, second in ((10, 9), ("abc", "ab"), (np.float64(1.0), np.float64(2.0))):
        pair = AdjacentPair(first, second, user=user)
        pair.check(USER)
        assert pair.adjacency()[USER] is None
    moved = AdjacentPair([0, 0], [1, 1], sensitivity=1, user=user)
    moved.check(USER)
    assert moved.adjacency()[USER] == "answers"


def test_the_field() -> None:
    assert AdjacentPair([(1, 2)], [], user=0).adjacency()[None] == "users"
    pair = AdjacentPair([(1, 2)], [], "mine", 2)
    assert "user" not in pair.record()
    assert pair.of_user(None) is pair
    other = pair.of_user("id")
    assert (other.user, other.name, other.distance, other.record()["user"]) == ("id", "mine", 2, "id")
    assert SealedPair.seal(other).adjacency() == other.adjacency()
    assert SealedPair.seal(other).record() == other.record()
    assert other.of_user("id") is other.of_user(None) is other
    assert pair.of_user(0).record()["user"] == 0
