"""Records of two values, whose they are and a cost, in everything that holds records: each with what says the user."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpaudit import Relation
from dpaudit.data import pairs_of_data

Rows = Sequence[tuple[Any, Any]]


@dataclass(frozen=True)
class Visit:
    """A record as people write them."""

    id: Any
    cost: Any


class Stay(NamedTuple):
    id: Any
    cost: Any


def structured(rows: Rows) -> Any:
    return np.array([tuple(row) for row in rows], dtype=[("id", "i8"), ("cost", "f8")])


def frame(rows: Rows, labels: Any = None) -> Any:
    return pytest.importorskip("pandas").DataFrame(list(rows), columns=["id", "cost"], index=labels)


# holders of any values, and of numbers
HOLDERS: dict[str, tuple[Callable[[Rows], Any], str | int]] = {
    "tuples": (lambda rows: [tuple(row) for row in rows], 0),
    "tuples, from the end": (lambda rows: [tuple(row) for row in rows], -2),
    "lists": (lambda rows: tuple(list(row) for row in rows), 0),
    "dictionaries": (lambda rows: [{"cost": cost, "id": who} for who, cost in rows], "id"),
    "keys that are numbers": (lambda rows: [{0: who, "cost": cost} for who, cost in rows], 0),
    "dataclasses": (lambda rows: [Visit(*row) for row in rows], "id"),
    "named tuples": (lambda rows: deque(Stay(*row) for row in rows), "id"),
    "objects": (lambda rows: [SimpleNamespace(id=who, cost=cost) for who, cost in rows], "id"),
    "columns": (lambda rows: {"cost": [cost for _, cost in rows], "id": tuple(who for who, _ in rows)}, "id"),
}
NUMBERS: dict[str, tuple[Callable[[Rows], Any], str | int]] = {
    "matrix": (lambda rows: np.array(rows, float).reshape(len(rows), 2), 0),
    "matrix, from the end": (lambda rows: np.array(rows, np.int16).reshape(len(rows), 2), -2),
    "structures": (structured, "id"),
    "record array": (lambda rows: structured(rows).view(np.recarray), "id"),
    "masked": (lambda rows: np.ma.masked_array(np.array(rows, float).reshape(len(rows), 2)), 0),
    "columns of arrays": (
        lambda rows: {"id": np.array([r[0] for r in rows]), "c": np.array([r[1] for r in rows])},
        "id",
    ),
    "arrays in a list": (lambda rows: [np.array(row) for row in rows], 0),
}


def check_pairs(data: Any, relation: Relation, wanted: set[str], user: str | int | None = None) -> tuple[Any, ...]:
    """The pairs made of data: neighbours that are shown to be, of its types, different, and of the kinds wanted."""
    pairs = pairs_of_data(data, relation, user=user)
    for pair in pairs:
        pair.check(relation)
        shown = pair.adjacency()[relation]
        assert shown is not None if user is None else shown == "users", pair.name
        assert pair.user == user, pair.name
        assert type(pair.first) is type(pair.second) is type(data), pair.name
        for value in pair.open() if hasattr(data, "dtypes") else ():  # no other row is another for one value
            assert list(types(value)) == list(types(data)), pair.name
    kinds = {pair.reason.partition(": ")[0] for pair in pairs}
    assert kinds >= wanted, wanted - kinds
    assert len({(repr(pair.first), repr(pair.second)) for pair in pairs}) == len(pairs)
    assert len({pair.name for pair in pairs}) == len(pairs)
    return pairs


def types(table: Any) -> Any:
    return table.dtypes if hasattr(table, "columns") else [table.dtype]
