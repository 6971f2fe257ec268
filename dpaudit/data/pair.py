"""A pair of adjacent datasets, and the check that it fits the relation a claim is stated for, by their records.

Records are compared exactly, whatever holds them: type and all, in any order; NaN equals NaN. In a frame a number is
what it counts as, for one missing entry makes floats of a whole column of integers. A user is compared as one record
that holds all of theirs.
"""

import math
import pickle
from array import array
from collections import Counter, deque
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import eq
from typing import Any

from dpaudit.base import validate
from dpaudit.claims.claim import Relation
from dpaudit.data.data import LONGEST_NUMBER, digest, home_of, plain_value, records_of, same, text_of
from dpaudit.data.owners import User, by_user, check_apart, owners_of, stated
from dpaudit.errors import InvalidSpec, at

VALUES = {bool, int, float, str, bytes, type(None)}  # one record as it is, whatever it says
ROUNDING = 1e-9  # of a sensitivity: answers are sums of decimal fractions
Keys = list[Hashable]


@dataclass(frozen=True, slots=True)
class AdjacentPair:
    """Two datasets `distance` steps apart; any picklable values. Raises `InvalidSpec` when they are equal.

    `sensitivity` is for datasets that are vectors of query answers: how far one step may move each of them, in
    units of the answers. It replaces the comparison of records in `check`; None: the datasets are no such vectors.
    `user` is for the relation add_or_remove_user: the column, key, field, attribute or position that says whose record
    each one is. `reason` says in a line why the pair is worth looking at; reports show it, and it is no part of the
    question.

    >>> AdjacentPair([1, 1], [1], name="one leaves").distance
    1
    """

    first: Any
    second: Any
    name: str = "pair"
    distance: int = 1
    sensitivity: float | None = None
    user: User | None = None
    reason: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        validate.whole("distance", self.distance, least=1)
        if self.sensitivity is not None:
            validate.positive("sensitivity", self.sensitivity)
        if self.user is not None:
            validate.column("user", self.user)
        if same(self.first, self.second):
            raise InvalidSpec(f"the datasets of {self.name!r} must differ, got the same value twice")

    @classmethod
    def of(cls, value: Any, name: str = "pair") -> "AdjacentPair":
        """A pair from itself or from any two-element sequence (first, second)."""
        if isinstance(value, AdjacentPair):
            return value
        if isinstance(value, list | tuple) and len(value) == 2:
            return cls(value[0], value[1], name)
        raise InvalidSpec(f"{name} must be two datasets (first, second), got {type(value).__name__}")

    def of_user(self, user: User | None) -> "AdjacentPair":
        """The pair with this `user`; itself for None. Raises `InvalidSpec` where it has another one already."""
        if user is None or self.user == user and type(self.user) is type(user):
            return self
        if self.user is not None:
            raise InvalidSpec(f"the pair {self.name!r} has user = {self.user!r} already, got user = {user!r}: give one")
        return replace(self, user=user)

    def open(self) -> tuple[Any, Any]:
        """The two datasets."""
        return self.first, self.second

    def record(self) -> dict[str, Any]:
        """The pair as results store it: digests always, values when small and plain, else what small ones print."""
        return {
            "name": self.name,
            "distance": self.distance,
            **({} if self.sensitivity is None else {"sensitivity": self.sensitivity}),
            **({} if self.user is None else {"user": self.user}),
            "first": _record(self.first),
            "second": _record(self.second),
        }

    def check(self, relation: Relation | None) -> None:
        """Raises `InvalidSpec` where the relation cannot connect the records of the datasets (see `compared`).

        Vectors of query answers are connected where no answer moves by more than `distance * sensitivity`, whatever
        the relation: the sensitivity is that of the queries under it. Under the local relation a dataset is the value
        of one person, whatever it is: a list is one value, and only tables of several rows are refused. A user of one
        side alone is one step, and one with other records on either side is two.

        >>> AdjacentPair([1, 1], [1]).check(Relation.ADD_OR_REMOVE_ONE)
        >>> AdjacentPair([0, 0], [1, 1], sensitivity=1.0).check(Relation.ADD_OR_REMOVE_ONE)
        >>> AdjacentPair([("a", 1), ("a", 2)], [], user=0).check(Relation.ADD_OR_REMOVE_USER)
        """
        with at(f"the datasets of {self.name!r}"):
            of_users = by_user(relation, self.user)
        if self.sensitivity is not None:
            self._check_answers(self.sensitivity)
            return
        if relation is None:
            return
        records = self._by_user() if of_users else compared(self.first, self.second)
        if records is None or records.connects(relation, self.distance):
            return
        if relation is Relation.LOCAL and records.how == "rows":
            raise InvalidSpec(
                f"the datasets of {self.name!r} have {records.sizes[0]} and {records.sizes[1]} rows, and under local a "
                "dataset is the value of one person: give a row each, or relation 'replace_one'"
            )
        if relation is not Relation.LOCAL:
            raise InvalidSpec(
                f"the datasets of {self.name!r} are not at distance {self.distance} under {relation.value}: "
                f"{records}; change the pair, its distance or the relation "
                "(left out, adjacency is taken on trust)"
            )

    def adjacency(self) -> dict[Relation | None, str | None]:
        """For each relation, what shows that it connects the datasets; None where that is taken on trust.

        It is what was compared ("records", "rows", "entries", "users"), or "any two" values: all that the local
        relation asks of two records. Part of it is on trust where it is "answers" (none moves by more than the
        sensitivity, if they are such), "neutral" (one is replaced, by the special one if it is that) or "one value"
        (of one person, if it is not several). Where no relation is stated, it is enough that records are added, removed
        or replaced; where it takes more steps than stated, it is how many, as it is where users are compared.

        >>> AdjacentPair([1, 1], [1]).adjacency()[None], AdjacentPair(10, 9).adjacency()[Relation.ADD_OR_REMOVE_ONE]
        ('records', None)
        """
        records, word, apart = compared(self.first, self.second), None, None
        if self.sensitivity is not None:
            with suppress(InvalidSpec):
                self._check_answers(self.sensitivity)
                word = "answers"
        elif records:
            apart = str(records)
        proof: dict[Relation | None, str | None] = {
            each: records.how if records and records.connects(each, self.distance) else word for each in Relation
        }
        if self.user is not None and self.sensitivity is None:
            with suppress(InvalidSpec):  # the data do not say whose each record is
                users = self._by_user()
                if users is not None:
                    shown = users.connects(Relation.ADD_OR_REMOVE_USER, self.distance)
                    proof[Relation.ADD_OR_REMOVE_USER] = users.how if shown else str(users)
        near = proof[Relation.ADD_OR_REMOVE_ONE], proof[Relation.REPLACE_ONE]
        if {type(self.first), type(self.second)} <= VALUES:
            proof[Relation.LOCAL] = "any two"
        proof[Relation.LOCAL] = proof[Relation.LOCAL] or (None if records and records.how == "rows" else "one value")
        if proof[Relation.REPLACE_SPECIAL] not in (None, "answers"):
            proof[Relation.REPLACE_SPECIAL] = "neutral"
        shown_by = next((how for how in near if how not in (None, word)), word) or apart
        of_users = self.user is not None and self.sensitivity is None
        return {**proof, None: proof[Relation.ADD_OR_REMOVE_USER] if of_users else shown_by}

    def _by_user(self) -> "ComparedRecords | None":
        with at(f"the datasets of {self.name!r}"):
            return compared_users(self.first, self.second, self.user)

    def _check_answers(self, sensitivity: float) -> None:
        import numpy as np

        try:
            before, after = (np.asarray(side, float) for side in (self.first, self.second))
        except (TypeError, ValueError):
            raise InvalidSpec(
                f"the query answers of {self.name!r} must be numbers; leave out the sensitivity"
            ) from None
        if before.shape != after.shape:
            raise InvalidSpec(f"the query answers of {self.name!r} must be of one length on both datasets")
        moved = float(np.max(np.abs(before - after), initial=0.0))
        if not moved <= self.distance * sensitivity * (1.0 + ROUNDING):
            raise InvalidSpec(
                f"a query answer of {self.name!r} moves by {moved:g}, and sensitivity {sensitivity:g} allows "
                f"{self.distance * sensitivity:g} at distance {self.distance}; change the pair, its distance or the "
                "sensitivity"
            )


def _record(data: Any) -> dict[str, Any]:
    value = plain_value(data)
    shown = text_of(data) if value is None else ""
    return {"digest": digest(data), "value": value, **({"shown": shown} if shown else {})}


@dataclass(frozen=True, slots=True)
class SealedPair:
    """A pair that only workers open: pickled data beside the record of it that a report may show.

    The command line keeps datasets made by a user's code in this form, so that its own process never runs it.
    """

    name: str
    distance: int
    payload: bytes
    record_: dict[str, Any]
    adjacency_: dict[Relation | None, str | None]
    reason: str = field(default="", compare=False)

    @classmethod
    def seal(cls, pair: AdjacentPair) -> "SealedPair":
        """The pair as bytes, with its record."""
        import cloudpickle

        data = cloudpickle.dumps((pair.first, pair.second))
        return cls(pair.name, pair.distance, data, pair.record(), pair.adjacency(), pair.reason)

    def open(self) -> tuple[Any, Any]:
        """The two datasets; runs the code that unpickling them needs."""
        first, second = pickle.loads(self.payload)
        return first, second

    def record(self) -> dict[str, Any]:
        """The pair as results store it."""
        return self.record_

    def adjacency(self) -> dict[Relation | None, str | None]:
        """As the pair's own."""
        return self.adjacency_


@dataclass(frozen=True, slots=True)
class ComparedRecords:
    """How the records of two datasets differ: what was compared (`how`), how many leave and come, and the sizes."""

    how: str
    gone: int
    come: int
    sizes: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.gone} {self.how} leave and {self.come} come"

    def connects(self, relation: Relation, distance: int) -> bool:
        """Whether the relation connects the datasets within `distance` steps."""
        return {
            Relation.ADD_OR_REMOVE_ONE: self.gone + self.come <= distance,
            Relation.REPLACE_ONE: self.gone == self.come <= distance,
            Relation.REPLACE_SPECIAL: self.gone == self.come <= distance,
            Relation.LOCAL: self.sizes == (1, 1),
            Relation.ADD_OR_REMOVE_USER: self.how == "users" and self.gone + self.come <= distance,
        }[relation]


def compared(first: Any, second: Any) -> ComparedRecords | None:
    """The comparison of two datasets by their records; None where they are not known to hold any.

    A dictionary is a table of columns where all its values are columns of one length. One whose keys stay the same
    may be records by name, counts, or settings beside data, so that nothing is known of it.

    >>> compared([1, 2, 3], [3, 2])
    ComparedRecords(how='records', gone=1, come=0, sizes=(3, 2))
    """
    tables = _keys_of(first, second)
    if tables is None:
        return None
    how, before, after = tables
    there = list(map(eq, before, after))  # most records stand where they stood, counted from one end or the other
    start = there.index(False) if False in there else len(there)
    there = list(map(eq, reversed(before), islice(reversed(after), len(there) - start)))
    end = there.index(False) if False in there else len(there)
    left, right = (Counter(keys[start : len(keys) - end]) for keys in (before, after))
    return ComparedRecords(how, (left - right).total(), (right - left).total(), (len(before), len(after)))


def compared_users(first: Any, second: Any, user: User | None) -> ComparedRecords | None:
    """As `compared`, of the users of two datasets: each is one record, of all that they have.

    Raises `InvalidSpec` where there are records and `user` does not say whose each one is.

    >>> compared_users([("a", 1), ("b", 1), ("a", 2)], [("b", 1)], 0)
    ComparedRecords(how='users', gone=1, come=0, sizes=(2, 1))
    """
    if user is None and _keys_of(first, second) is None:
        return None
    user = stated(user)
    tables = _tables_of(first, second, user)
    sides, everyone, every_key = [], [], []
    for word, (data, keys) in zip(("first", "second"), tables or (), strict=tables is not None):
        with at(f"the {word}"):
            owners = owners_of(data, user)
        sides.append(_grouped(own := owner_keys(data, owners), keys))
        everyone += owners
        every_key += own
    check_apart(everyone, every_key)
    if not sides:
        return None
    before, after = sides
    return ComparedRecords("users", len(before - after), len(after - before), (len(before), len(after)))


def _tables_of(first: Any, second: Any, user: User) -> list[tuple[Any, Keys]] | None:
    """What holds the records of either dataset, and their keys.

    Dictionaries with other keys are tables with other columns, whose rows are all different, where `user` is a column
    of one; else each entry is a record: (key, value).
    """
    both = [first, second]
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() != second.keys():
        rows = [records_of(data) if data else [] for data in both]
        if None not in rows and (user in first or user in second):
            sides = [_keys(sorted(row.items(), key=repr) for row in side) for side in rows]
            return list(zip(both, sides, strict=True))
        both = [list(data.items()) for data in both]
    tables = _keys_of(first, second)
    return tables and list(zip(both, tables[1:], strict=True))


def owner_keys(data: Any, owners: list[Any]) -> Keys:
    """What tells the users of a dataset apart; in a frame numbers are what they count as, as in its rows."""
    return _keys(map(_number, owners) if home_of(data) in ("pandas", "polars") else owners)


def _grouped(owners: Keys, records: Keys) -> set[Hashable]:
    """The users, each with how often they have each record."""
    of: dict[Hashable, Counter[Hashable]] = {}
    for owner, record in zip(owners, records, strict=True):
        of.setdefault(owner, Counter())[record] += 1
    return {(owner, frozenset(each.items())) for owner, each in of.items()}


def _keys_of(first: Any, second: Any) -> tuple[str, Keys, Keys] | None:
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() == second.keys():
            tables = [records_of(data) for data in (first, second)]
            sides = [_keys([row[key] for key in first] for row in rows or ()) for rows in tables]
            return None if None in tables else ("rows", sides[0], sides[1])
        return "entries", _keys(first.items()), _keys(second.items())
    if all(home_of(data) in ("pandas", "polars") for data in (first, second)):
        indexed = not any(type(getattr(data, "index", None)).__name__ == "RangeIndex" for data in (first, second))
        return "rows", _rows(first, indexed), _rows(second, indexed)
    if _is_collection(first) and _is_collection(second):
        return "records", _records(first), _records(second)
    return None


def _is_collection(data: Any) -> bool:
    kinds: Any = (list, tuple, set, frozenset, deque, range, array)
    return isinstance(data, kinds) or home_of(data) == "numpy" and data.ndim > 0


def _keys(records: Iterable[Any]) -> Keys:
    return [repr(record) if _is_plain(record) else digest(record) for record in records]


def _is_plain(record: Any) -> bool:
    """Whether `repr` tells the record whole, with its type."""
    if type(record) is int:
        return record.bit_length() < LONGEST_NUMBER
    return type(record) in VALUES or (type(record) in (tuple, list) and all(map(_is_plain, record)))


def _records(data: Any) -> Keys:
    if home_of(data) != "numpy":
        return _keys(data)
    if data.dtype.kind not in "fiub" or data.dtype.itemsize > 8 or hasattr(data, "mask"):
        return _keys(data.tolist())  # of objects, texts and structures: padding is no content, nor what a mask hides
    import numpy as np

    flat = np.array(data, order="C").reshape(len(data), math.prod(data.shape[1:]))
    if data.dtype.kind == "f":
        flat[np.isnan(flat)] = np.nan  # there are many NaNs
    return [(data.dtype.str, data.shape[1:], row.tobytes()) for row in flat]


def _rows(frame: Any, indexed: bool) -> Keys:
    """The rows with the names of their columns, so that frames of other columns have no row in common."""
    names = [str(name) for name in getattr(frame, "columns", ())]
    if hasattr(frame, "itertuples"):
        rows = frame.itertuples(index=indexed, name=None)
    elif hasattr(frame, "rows"):
        rows = frame.rows()
    else:
        rows = frame.items() if indexed and hasattr(frame, "items") else ((value,) for value in frame.to_list())
    return _keys((names, [_number(value) for value in row]) for row in rows)


def _number(value: Any) -> Any:
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    return int(value) if type(value) is float and value.is_integer() else value
