"""A dataset as its users, each with all of their records: patterns take users out and add them as they do records."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice, product
from numbers import Integral, Real
from string import ascii_lowercase, digits
from typing import Any

from dpaudit.data.data import home_of
from dpaudit.data.data_records import DataRecords, cell, filled, joined, put, short, taken
from dpaudit.data.owners import User, check_apart, is_missing, owners_of, stated
from dpaudit.data.pair import owner_keys
from dpaudit.errors import InvalidSpec, at

NEW = "new user"


@dataclass(frozen=True, slots=True)
class Users:
    """A dataset whose records are taken by their `user`, for a pattern."""

    data: Any
    user: User


def opened(data: Any, distance: int, *, least: int = 0) -> DataRecords:
    """The records of a dataset, or its users where it is `Users`. Raises `InvalidSpec` as they do."""
    return (UserRecords if isinstance(data, Users) else DataRecords)(data, distance, least=least)


class UserRecords(DataRecords):
    """Users as `records`, in the order of their first row: a record is the list of all `rows` of one user.

    A user who is taken twice, or added, has an identity of the column's own type that nobody has in the data. Raises
    `InvalidSpec` for data without users.
    """

    words: Mapping[str, str] = {
        "first": "first user",
        "last": "last user",
        "least": "user of fewest records",
        "greatest": "user of most records",
    }
    unit = "users"

    def __init__(self, data: Users, distance: int, *, least: int = 0) -> None:
        super().__init__(data.data, distance)
        if not len(self.rows):
            raise InvalidSpec("data hold no records, so no user: give a dataset of at least one user")
        with at("data"):
            owners = owners_of(self.data, data.user)
        of: dict[Any, list[int]] = {}
        keys = owner_keys(self.data, owners)
        with at("data"):
            check_apart(owners, keys)
        for place, key in enumerate(keys):
            of.setdefault(key, []).append(place)
        self.owned = list(of.values())
        self.owners = [owners[places[0]] for places in self.owned]
        names = self.data.dtype.names if home_of(self.data) == "numpy" else None
        self.user = data.user
        self.place: Any = names.index(data.user) if names else data.user  # in a row
        self.records = [[self.rows[place] for place in places] for places in self.owned]
        self.need(least)

    def take(self, places: list[int]) -> Any:
        """The users at these places: where they follow each other in their order, rows keep theirs."""
        again = len(places) - len(set(places))
        names = iter(self.new(again) if again else ())
        chosen: list[int] = []
        copies: list[Any] = []
        seen: set[int] = set()
        for run in _ascending(places):
            renamed = {place: next(names) for place in run if place in seen}
            for row, owner in sorted((row, place) for place in run for row in self.owned[place]):
                chosen.append(len(self.rows) + len(copies) if owner in renamed else row)
                copies += [self.named(self.rows[row], renamed[owner])] if owner in renamed else []
            seen.update(run)
        return taken(joined(self.data, copies) if copies else self.data, chosen)

    def more(self, records: list[Any]) -> Any:
        """The dataset with these users after its own, under new identities."""
        rows = []
        for block, name in zip(records, self.new(len(records)), strict=True):
            if not isinstance(block, list) or not block:
                raise InvalidSpec(f"a user is a list of all of their records, got {short(block)}")
            try:
                rows += [self.named(row, name) for row in block]
            except (TypeError, AttributeError, LookupError):
                raise InvalidSpec(f"a user is a list of records with {self.user!r}, got {short(block)}") from None
        return joined(self.data, rows)

    def numbers(self, record: Any) -> Iterator[float]:
        """The numbers in all rows of a user, without the identity."""
        for row in record:
            if getattr(row, "ndim", 0):
                yield from super().numbers([each for place, each in enumerate(row) if place != self.place % len(row)])
            elif not hasattr(row, "dtype"):
                yield from super().numbers(self.named(row, None))

    def size(self, record: Any) -> float:
        """How many rows a user has."""
        return len(record)

    def texts(self) -> list[Any]:
        """The columns, or positions in a row, that hold texts, without that of the identity."""
        first = self.named(self.rows[0], None)
        cells = (
            enumerate(first) if isinstance(first, list | tuple) else first.items() if isinstance(first, dict) else ()
        )
        return [place for place, value in cells if isinstance(value, str)]

    def cells(self, record: Any, place: Any) -> list[Any]:
        """What the rows of a user have at a place; for None, the rows without the identity."""
        return [self.named(row, self.owners[0]) if place is None else cell(row, place) for row in record]

    def filled(self, record: Any, number: float | None, typed: bool) -> Any:
        """All rows of a user, with the number in place of each of their numbers; the identity stays."""
        return [self.named(filled(row, number, typed), self._name_of(row)) for row in record]

    def named(self, row: Any, name: Any) -> Any:
        """The row as one of the user with this identity."""
        return put(row, self.place, name)

    def _name_of(self, row: Any) -> Any:
        keyed = isinstance(row, dict) or hasattr(row, "dtype") or isinstance(self.place, int)
        return row[self.place] if keyed else getattr(row, str(self.place))

    def new(self, number: int) -> list[Any]:
        """So many identities of the column's own type, which nobody has. Raises `InvalidSpec` where there are none."""
        names: list[Any] = []
        known = {each for each in self.owners if _is_hashable(each)}
        others = [each for each in self.owners if not _is_hashable(each)]
        for candidates in _candidates(self.owners, self._categories()):
            width = -1
            with suppress(Exception):  # of types that do not add up, or whose end is reached
                for name in islice(candidates, number + len(self.owners)):
                    if name in known or any(_same(name, each) for each in others):
                        continue
                    if len(str(name)) != width and not self._holds(name):
                        break
                    width = len(str(name))  # one of as many characters is held as this one is, or refused with its rows
                    known.add(name)
                    names.append(name)
                    if len(names) == number:
                        return names
        raise InvalidSpec(
            f"no new user can be made beside {short(self.owners[0])}, of type {type(self.owners[0]).__name__}, that "
            f"{self.user!r} can hold; give pairs, or users that are numbers or texts"
        )

    def _categories(self) -> list[Any]:
        frame = home_of(self.data) in ("pandas", "polars")
        return list(getattr(self.data[self.user].dtype, "categories", ())) if frame else []

    def _holds(self, name: Any) -> bool:
        row = self.named(self.rows[0], name)
        after = owners_of(joined(taken(self.data, [0]), [row]), stated(self.user))[-1]
        return not is_missing(after) and bool(after == name)


def _ascending(places: list[int]) -> list[list[int]]:
    """The places in runs, each longer as long as they ascend.

    >>> _ascending([2, 0, 1, 2, 2])
    [[2], [0, 1, 2], [2]]
    """
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] < place:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _same(one: Any, other: Any) -> bool:
    """Whether a mechanism may take one identity for the other: 1 for True, too."""
    try:
        return bool(one == other)
    except Exception:  # arrays, and whatever a class raises
        return False


def _is_hashable(owner: Any) -> bool:
    with suppress(Exception):  # a tuple of a list has a hash by its class alone
        hash(owner)
        return True
    return False


def _candidates(owners: list[Any], categories: list[Any]) -> Iterator[Iterable[Any]]:
    """Series of identities of the type of these, each given up where the column cannot hold one of it."""
    yield categories
    longest = max((len(each) for each in owners if isinstance(each, str | bytes)), default=0)
    texts = [(f"{NEW} {number}" if number > 1 else NEW for number in count(1)), _words(longest)]
    if any(isinstance(each, str) for each in owners):
        yield from texts
    elif any(isinstance(each, bytes) for each in owners):
        yield from ((each.encode() for each in series) for series in texts)
    elif numbers := [each for each in owners if _is_number(each)]:
        top, low, kind = max(numbers), min(numbers), type(max(numbers))
        whole = isinstance(top, Integral)
        yield (kind(int(top) + step) if whole else top + step for step in count(1))
        yield (kind(int(low) - step) if whole else low - step for step in count(1))
        yield (kind(step) for step in count())
    elif all(isinstance(each, bool) for each in owners):
        yield (False, True)
    else:
        yield (max(owners) + 1 * step for step in count(1))
        yield (max(owners) + timedelta(days=step) for step in count(1))
        yield (type(max(owners))(int=max(owners).int + step) for step in count(1))  # UUID


def _is_number(owner: Any) -> bool:
    return isinstance(owner, Real) and not isinstance(owner, bool)


def _words(longest: int) -> Iterator[str]:
    """Words of up to so many characters."""
    for size in range(1, longest + 1):
        yield from map("".join, product(ascii_lowercase + digits, repeat=size))
