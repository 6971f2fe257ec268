"""Whose record each one is: the column, key, field, attribute or position that says it, whatever holds the records."""

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from dpaudit.base.validate import meant
from dpaudit.claims.claim import Relation
from dpaudit.data.data import home_of, records_of
from dpaudit.errors import InvalidSpec

User = str | int
MISSING = (
    "NaTType",
    "NAType",
    "MaskedConstant",
)  # types of missing values, which are not equal to themselves or say nothing of it
MOST_NAMES, MOST_CHARACTERS = 12, 60  # columns, and characters of a record, that a message has


def owners_of(data: Any, user: User) -> list[Any]:
    """The user of each record, in the order of the records.

    Raises `InvalidSpec` where a record has no such column, key, field, attribute or position, or no user in it.

    >>> owners_of([("ann", 3), ("bob", 4)], 0), owners_of({"id": [7, 7], "age": [3, 4]}, "id")
    (['ann', 'bob'], [7, 7])
    """
    owners = _owners(data, user)
    for number, owner in enumerate(owners, start=1):
        if is_missing(owner):
            raise InvalidSpec(
                f"record {number} has no user: user = {user!r} is {owner!r} there; give it one, or leave the record out"
            )
    return owners


def by_user(relation: Relation | None, user: User | None) -> bool:
    """Whether records are taken by their users. Raises `InvalidSpec` for a `user` beside another relation."""
    if user is not None and relation not in (None, Relation.ADD_OR_REMOVE_USER):
        raise InvalidSpec(
            f"user = {user!r} is for relation 'add_or_remove_user', and the claim is stated for "
            f"{Relation.word(relation)}; leave out user, or state that relation"
        )
    return user is not None or relation is Relation.ADD_OR_REMOVE_USER


def stated(user: User | None) -> User:
    """What says whose record each one is. Raises `InvalidSpec` where nothing does."""
    if user is None:
        raise InvalidSpec(
            "under add_or_remove_user it must be known whose record each one is; give user = 'id', the name of the "
            "column, key or field, or the position that says it"
        )
    return user


def is_missing(owner: Any) -> bool:
    """Whether it stands for no user at all: None, NaN, NaT or NA."""
    if owner is None or type(owner).__name__ in MISSING:
        return True
    try:
        return bool(owner != owner)
    except Exception:  # arrays, and whatever a class raises; a signalling NaN is one too
        return isinstance(owner, Decimal)


def check_apart(owners: Iterable[Any], keys: Iterable[Hashable]) -> None:
    """Raises `InvalidSpec` for two users who are equal and have different keys: a mechanism may take them for one.

    >>> check_apart([1, True], ["1", "True"])
    Traceback (most recent call last):
    dpaudit.errors.InvalidSpec: users 1 and True are equal for Python and of different types, so a ...
    """
    known: dict[Any, tuple[Any, Hashable]] = {}
    for owner, key in zip(owners, keys, strict=True):
        with suppress(TypeError):  # what cannot be hashed is no key of a mechanism's either
            other, same = known.setdefault((list, *owner) if isinstance(owner, list) else owner, (owner, key))
            if same != key:
                raise InvalidSpec(
                    f"users {other!r} and {owner!r} are equal for Python and of different types, so a mechanism may "
                    "take them for one; write each user in one way"
                )


def _owners(data: Any, user: User) -> list[Any]:
    home = home_of(data)
    if home in ("pandas", "polars"):
        if not hasattr(data, "columns"):
            raise InvalidSpec(f"a {type(data).__name__} has no columns to find user = {user!r} in; give a frame")
        if not len(data):
            return []
        place = _place(user, list(data.columns), "column")
        column = data.iloc[:, place] if home == "pandas" else data.get_columns()[place]
        return list(column.to_list())
    if home == "numpy" and (data.dtype.names or data.dtype.kind != "O"):
        if not len(data):
            return []
        if data.ndim != (1 if data.dtype.names else 2):
            raise InvalidSpec(
                f"an array of shape {data.shape} has no place for user = {user!r}; give each record a row, or fields"
            )
        if data.dtype.names:
            return _values(data[data.dtype.names[_place(user, data.dtype.names, "field")]])
        return _values(data[:, _position(user, data.shape[1])])
    if isinstance(data, dict):
        if (rows := records_of(data)) is not None or not data:
            return _column(data, user) if rows else []
        data = data.items()
    return [_owner(record, user, number) for number, record in enumerate(data, start=1)]


def _column(data: dict[Any, Any], user: User) -> list[Any]:
    column = [*data.values()][_place(user, data, "column")]
    return _values(column) if home_of(column) == "numpy" else [*(records_of(column) or ())]


def _values(column: Any) -> list[Any]:
    """Of an array as Python has them, but for dates: of these it would make numbers, and one of NaT."""
    values: list[Any] = list(column) if column.dtype.kind in "mM" else column.tolist()
    return values


def _owner(record: Any, user: User, number: int) -> Any:
    """What the record says there; `number` is its own, from 1 on, for a message."""
    if isinstance(record, dict):
        names: Sequence[Any] = [*record]
    elif isinstance(user, int):
        if not isinstance(record, list | tuple) and not getattr(record, "ndim", 0) and not hasattr(record, "dtype"):
            said = " ".join(repr(record)[:MOST_CHARACTERS].split())
            raise InvalidSpec(f"record {number}: no position {user} for user in {said}; give rows")
        return record[_position(user, len(record), f"record {number}: ")]
    else:
        names = names_of(record)
    if not any(name == user and type(name) is type(user) for name in names):
        raise _unknown(user, names, "key" if isinstance(record, dict) else "attribute", f"record {number}: ")
    return record[user] if isinstance(record, dict) or hasattr(record, "dtype") else getattr(record, str(user))


def names_of(record: Any) -> list[str]:
    """The fields of a dataclass or a named tuple, or the attributes of another object."""
    if is_dataclass(record):
        return [each.name for each in fields(record)]
    named: Any = getattr(record, "_fields", None) or getattr(getattr(record, "dtype", None), "names", None)
    return [str(name) for name in named or getattr(record, "__dict__", ())]


def _place(user: User, names: Iterable[Any], kind: str) -> int:
    known = list(names)
    places = [place for place, name in enumerate(known) if name == user and type(name) is type(user)]
    if not places:
        raise _unknown(user, known, kind)
    if len(places) > 1:
        raise InvalidSpec(f"user = {user!r} is the name of {len(places)} columns; give each a name of its own")
    return places[0]


def _position(user: User, size: int, where: str = "") -> int:
    if not isinstance(user, int) or not -size <= user < size:
        raise InvalidSpec(f"{where}no position {user!r} for user; it has 0 to {size - 1}, give one of these")
    return user


def _unknown(user: User, known: Sequence[Any], kind: str, where: str = "") -> InvalidSpec:
    names = ", ".join(map(repr, known[:MOST_NAMES])) + (", ..." if len(known) > MOST_NAMES else "")
    cure = "; give one of these" if known else "; give each record one"
    hint = meant(str(user), (name for name in known if isinstance(name, str)), cure)
    return InvalidSpec(f"{where}no {kind} {user!r} for user; it has {names or 'none'}{hint}")
