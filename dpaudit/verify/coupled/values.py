"""What a value of a program may be when two runs on neighbouring datasets are followed at once.

A plain Python value is one that both runs have, and that is known. Everything else is an `UnknownValue`: `same` says
that both runs have the same one, whatever it is. A `PairedNumber` says besides where it lies and how far the second
run's is from the first's. All bounds are of real numbers.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

Bound = Fraction | float  # a float where it is infinite


def words(text: str) -> frozenset[str]:
    """The names in a text.

    >>> sorted(words("sum min"))
    ['min', 'sum']
    """
    return frozenset(text.split())


class Span(NamedTuple):
    """The real numbers between two bounds.

    >>> Span(Fraction(1), Fraction(2)) + Span(Fraction(0), math.inf)
    Span(low=Fraction(1, 1), high=inf)
    """

    low: Bound
    high: Bound

    def __add__(self, other: Span) -> Span:  # type: ignore[override]
        return Span(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Span:
        return Span(-self.high, -self.low)

    def __mul__(self, other: Span) -> Span:  # type: ignore[override]
        ends = [_product(one, two) for one in self for two in other]
        return Span(min(ends), max(ends))

    def __or__(self, other: Span) -> Span:
        return Span(min(self.low, other.low), max(self.high, other.high))

    def __and__(self, other: Span) -> Span:
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high) if low <= high else self

    def inverse(self) -> Span:
        """1 / x; the span does not hold 0."""
        return Span(*sorted(Fraction(0) if math.isinf(end) else 1 / Fraction(end) for end in self))

    @property
    def most(self) -> Bound:
        """The largest size."""
        return max(-self.low, self.high)

    @property
    def width(self) -> Bound:
        """How far two of its numbers may be apart."""
        return Fraction(0) if self.low == self.high else self.high - self.low


def _product(one: Bound, two: Bound) -> Bound:
    return Fraction(0) if one == 0 or two == 0 else one * two


CLOCK = itertools.count(1)  # of numbers: which of two was there first
STILL = Span(Fraction(0), Fraction(0))
ALL = Span(-math.inf, math.inf)
AT_LEAST_0 = Span(Fraction(0), math.inf)


@dataclass(frozen=True, eq=False)
class UnknownValue:
    """A value of any type; `same`: both runs have the same one."""

    same: bool = True


@dataclass(frozen=True, eq=False)
class Unlisted(UnknownValue):
    """A container of the program of which nothing is known, but that no other name means it."""


class OpaqueValue:
    """What is no value but can be called: it may hold data or noise."""

    same = False


@dataclass(frozen=True)
class Function(OpaqueValue):
    """A helper, a lambda, or a function of Python's, numpy's or math's by its name; `owner`: what a method is of."""

    name: str
    node: ast.FunctionDef | ast.Lambda | ast.ClassDef | None = None
    frame: dict[str, Any] | None = None
    owner: Any = None

    @property
    def same(self) -> bool:  # type: ignore[override]
        """Python's own are; another may hold data."""
        return self.node is None and self.owner is None


@dataclass(frozen=True, eq=False)
class Instance:
    """An object of a class of the module: its attributes."""

    kind: ast.ClassDef
    attributes: dict[str, Any]


@dataclass(frozen=True, eq=False)
class PairedNumber(UnknownValue):
    """A real number in `span`, that of the second run `moved` from that of the first.

    `same`: nothing that differs is in it; one that does not move may still be 0 in one run, 0.0 or -0.0 in the other.
    `whole`: an integer. `start` and `offset`: the number is the one that a variable had where a record was about to be
    read, plus the offset. `less`: a multiple of a number of both runs was taken from it, without which it moves by
    `alone`. `log`: it is e to this number, over the sum of such that `over` is; `summed`: it is the sum of these,
    `along` the axis of a vector that they are the entries of.
    `axis`: it is the number n of entries in step with it; `count`: the axis, a power of its n, and the number that the
    power is multiplied by. `size_of`: it is the size of this part of a record. `entry_of`: the vector that it is an
    entry of, or what it has the value of; `top`: no entry of this vector, or none of these numbers, is larger.
    """

    span: Span = ALL
    moved: Span = STILL
    whole: bool = False
    start: object = None
    offset: Span = STILL
    less: tuple[PairedNumber, Fraction] | None = None
    alone: Span = STILL
    log: PairedNumber | None = None
    over: object = None
    summed: tuple[Any, ...] = ()
    along: object = None
    axis: EntryAxis | None = None
    born: int = 0
    entry_of: object = None
    top: tuple[object, ...] = ()
    count: tuple[object, int, PairedNumber] | None = None
    size_of: Record | None = None

    def __post_init__(self) -> None:
        apart = Span(self.span.low - self.span.high, self.span.high - self.span.low) if _finite(self.span) else ALL
        object.__setattr__(self, "same", self.same and self.moved == STILL)
        object.__setattr__(self, "moved", self.moved & apart)
        object.__setattr__(self, "born", next(CLOCK))


def _finite(span: Span) -> bool:
    return not (math.isinf(span.low) or math.isinf(span.high))


@dataclass(frozen=True, eq=False)
class PairedTruth(UnknownValue):
    """True or False; `chance`: with which a coin of this entry alone says True."""

    chance: Fraction | None = None


@dataclass(eq=False)
class FreshNoise:
    """Fresh noise of a law with centre 0 (exponential, geometric: from 0 and 1 upwards), in no value yet.

    `scale` is that of numpy's Generator; of geometric noise the ratio 1 - p of its probabilities. `spent` says by what
    it was used. `axis`: one draw for each entry of a normed vector with this axis.
    """

    law: str
    scale: Fraction
    line: int
    spent: Any = None
    count: Any = None  # as of a `PairedNumber`: its scale is times this power of the number of entries
    axis: EntryAxis | None = None


@dataclass(eq=False)
class Noisy:
    """A number or normed vector with noise that nothing has looked at yet: base + the sum of factor times draw."""

    base: Any
    terms: tuple[tuple[Fraction, FreshNoise], ...]
    value: Any = None  # once it was looked at


@dataclass(frozen=True, eq=False)
class Record(UnknownValue):
    """One record, or a part of it: all that is known is that it is in a region of all records.

    `path` leads to the part; `region` says for each path what is known there, None for a record of both runs.
    """

    path: tuple[Any, ...] = ()
    region: Mapping[tuple[Any, ...], Place] | None = None


@dataclass(frozen=True, eq=False)
class AnyRow(UnknownValue):
    """A row of the user whom one run alone has: it may be any of these records."""

    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of a record lies: at one of the values it is compared with, between two, or elsewhere."""

    exactly: bool
    value: Any = None
    span: Span = ALL


@dataclass(eq=False)
class EntryAxis:
    """What entries are in step with: the places of a dataset, the `keys` of a dictionary, the columns of a table.

    `changed`: how many of the entries differ; `extras`: of each that one run alone has, whether it is the second;
    `filled`: there is at least one entry; `number`: of columns, once it is known.
    """

    changed: int = 0
    extras: tuple[bool, ...] = ()
    filled: bool = False
    keys: bool = False
    number: int | None = None


@dataclass(frozen=True, eq=False)
class Vector(UnknownValue):
    """As many entries as a dataset has, or a selection of them: `usual` ones, which both runs have in equal number.

    `changed` holds the entries where the runs differ, `extras` those that only one run has, in it. `axis` names what
    the entries are in step with, and says which run has each of the extras. `array`: of numpy's, whose operators act
    entry by entry; None: or a list.
    """

    usual: Any = None
    changed: tuple[Any, ...] = ()
    extras: tuple[Any, ...] = ()
    axis: EntryAxis = field(default_factory=EntryAxis)
    array: bool | None = False
    ordered: bool = True  # alike in both runs: the keys of a dictionary come in the order of the data

    def __post_init__(self) -> None:
        assert (len(self.changed), len(self.extras)) == (self.axis.changed, len(self.axis.extras))
        object.__setattr__(self, "same", not self.extras and all(map(is_same, (self.usual, *self.changed))))


@dataclass(frozen=True, eq=False)
class EntryIndex(PairedNumber):
    """A place in what is in step with `axis`: of a usual entry, or of a changed one; of a mapping, its key there."""

    of_changed: int | None = None  # which of the changed ones


@dataclass(frozen=True, eq=False)
class Keyed(UnknownValue):
    """A mapping from public keys, as many as are not known, to the entries of a vector."""

    vector: Vector = field(default_factory=Vector)

    def __post_init__(self) -> None:
        object.__setattr__(self, "same", self.vector.same)


@dataclass(frozen=True, eq=False)
class UserRows(UnknownValue):
    """Rows of users in any order; those of one user, as many as they are, only the first or the second run has."""

    same: bool = False
    second: bool = False
    regions: tuple[Mapping[tuple[Any, ...], Place], ...] = ()


@dataclass(frozen=True, eq=False)
class Only(UnknownValue):
    """In a dictionary: the value of a key that one run alone has; `second`: the second."""

    same: bool = False
    second: bool = False
    value: Any = None


@dataclass(frozen=True, eq=False)
class Rest(UnknownValue):
    """In a list: any number of entries that both runs have."""


@dataclass(frozen=True, eq=False)
class Replaced(UnknownValue):
    """What stands in the place of one another in the two runs."""

    same: bool = False
    first: Any = None
    second: Any = None


@dataclass(eq=False)
class KnownArray:
    """A one-dimensional array of numpy's with a known number of entries.

    `shared`: there is another array that shares them, so that neither is written to. `kind`: "f" for doubles, "i" for
    whole numbers, "" where that is not known, "O" for others, "L" where it may as well be a list.
    """

    items: list[Any]
    shared: bool = False
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.kind is None:
            kinds = {_kind(each) for each in self.items} or {"f"}
            self.kind = "O" if "O" in kinds else "f" if "f" in kinds else "" if "" in kinds else "i"
            if all(isinstance(each, int | float | np.generic) for each in self.items):
                self.items = [*np.array(self.items)]
            elif not all(isinstance(each, bool | np.bool_ | PairedTruth) for each in self.items):
                to = np.float64 if self.kind == "f" else number_of  # what type numpy makes of it is not known
                self.items = [to(each) if is_number(each) else each for each in self.items]
            if self.kind in ("", "O") and not all(map(_of_one_type, self.items)):
                self.items = [*map(_of_either_type, self.items)]


@dataclass(frozen=True, eq=False)
class NormedVector(UnknownValue):
    """A vector of numbers: how large it is, and how far apart those of the two runs are, in roots of sums of squares.

    Both are those of `number`: what rules say of the size of sums and multiples of numbers holds of norms as well.
    `axis`: what names its length.
    """

    number: PairedNumber = field(default_factory=PairedNumber)
    axis: EntryAxis | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "same", self.same and self.number.same and self.number.start is None)


@dataclass(frozen=True, eq=False)
class Norm(PairedNumber):
    """A number at least `factor` times the norm of a vector; `inverse`: from 0 to factor over that norm.

    `column`: of the rows of a table, in a shape that meets each row.
    """

    of: Any = None
    factor: Fraction = Fraction(1)
    inverse: bool = False
    column: bool = True
    kept: bool = False  # above 0, or at most a positive number: no division by 0 comes of it


@dataclass(eq=False)
class Order:
    """The places of some entries in their order, of which nothing is known yet."""

    entries: list[Any]
    down: bool = False


@dataclass(frozen=True, order=True)
class Own:
    """The user whose rows one run alone has (`ME`), or a value of its records that is no public one."""

    name: str


ME = Own("the user")
USER = ((0,), ("user",), (".user",))  # where a row may name its user


def _kind(value: Any) -> str:
    """What numpy makes of an array with this entry alone."""
    if isinstance(value, np.generic):
        return value.dtype.kind if value.dtype in (np.float64, np.int64) else "O"
    if isinstance(value, FreshNoise | Noisy):
        draws = [value] if isinstance(value, FreshNoise) else [drawn for _, drawn in value.terms]
        laws = {drawn.law if drawn.axis is None else "" for drawn in draws}
        return "O" if "" in laws else "" if laws <= {"geometric"} else "f"
    if isinstance(value, PairedNumber) or type(value) is UnknownValue:
        return "" if getattr(value, "log", None) is None else "f"
    return "f" if isinstance(value, float) else "i" if isinstance(value, int) and not isinstance(value, bool) else "O"


def _of_one_type(value: Any) -> bool:
    """Whether a value is of the same type of number in both runs."""
    base = value.base if isinstance(value, Noisy) else value
    return isinstance(base, FreshNoise | PairedTruth | Record | tuple) or is_same(base) or getattr(base, "whole", False)


def _of_either_type(value: Any) -> Any:
    """A value in an array of whole numbers in one run, of doubles in the other: a public one may be 1 or 1.0."""
    if isinstance(value, Record) or getattr(value, "moved", STILL) != STILL:
        return value
    of = getattr(value, "entry_of", None) or value
    return UnknownValue(False) if number_of(value) is None else PairedNumber(False, entry_of=of)


ABSTRACT = (UnknownValue, FreshNoise, Noisy, KnownArray, Order)


def form_of(value: Any) -> str:
    """Whether operators act entry by entry on a value: an "array", a "vector", a "list or array", or "other"."""
    if isinstance(value, KnownArray):
        return "array" if value.kind != "L" else "list or array"
    if isinstance(value, Vector):
        return "list or array" if value.array is None else "array" if value.array else "vector"
    return "other"


def is_number(value: Any) -> bool:
    """Whether a plain value is a finite number, or True or False."""
    return isinstance(value, int) or isinstance(value, Real | np.bool_) and math.isfinite(value)


def fraction_of(value: Any) -> Fraction:
    """A plain number, of numpy's integers too, whose own arithmetic would overflow."""
    return Fraction(
        int(value)
        if isinstance(value, np.integer | np.bool_)
        else float(value)
        if isinstance(value, np.floating)
        else value
    )


def number_of(value: Any) -> PairedNumber | None:
    """A plain or unknown number as a `PairedNumber`; None for anything else."""
    if isinstance(value, PairedNumber):
        return value
    if isinstance(value, PairedTruth):
        return PairedNumber(
            value.same, Span(Fraction(0), Fraction(1)), STILL if value.same else Span(Fraction(-1), Fraction(1)), True
        )
    if is_number(value):
        number = fraction_of(value)
        return PairedNumber(True, Span(number, number), whole=not isinstance(value, float | np.floating))
    return None


def parts(value: Any) -> Iterable[Any]:
    """The values inside a container."""
    match value:
        case list() | tuple():
            return value
        case dict():
            return [*value.keys(), *value.values()]
        case KnownArray():
            return value.items
        case Vector():
            return (value.usual, *value.changed, *value.extras)
        case Only():
            return (value.value,)
        case Instance():
            return (value.attributes,)
        case slice():
            return (value.start, value.stop, value.step)
    return ()


def copied(value: Any, records: dict[int, Any] | None = None) -> Any:
    """An entry that stands for many, as the one that is looked at now; norms are of the record beside them."""
    records = {} if records is None else records
    match value:
        case tuple():
            for each in value:
                if isinstance(each, Record):
                    records[id(each)] = replace(each)
            return tuple(records.get(id(each)) or copied(each, records) for each in value)
        case Norm():
            return replace(value, of=records.get(id(value.of), value.of))
        case PairedNumber() | Record():
            return replace(value)
    return value


def holds(value: Any) -> bool:
    """Whether there is a container inside that can be changed."""
    return any(isinstance(each, list | dict | KnownArray) or holds(each) for each in parts(value))


def has_inside(value: Any, kinds: Any) -> bool:
    """Whether a value, or something inside it, is of some types."""
    return isinstance(value, kinds) or any(has_inside(each, kinds) for each in parts(value))


def unchanged(one: Any, two: Any) -> bool:
    """Whether two values are the very same, or two that Python tells apart in nothing."""
    plain = type(one) is type(two) and isinstance(one, int | float | str | bool | np.generic)
    return one is two or plain and bool(one == two) and repr(one) == repr(two)


def is_plain(value: Any) -> bool:
    """Whether nothing in a value is unknown."""
    return not isinstance(value, ABSTRACT) and all(map(is_plain, parts(value)))


def is_known(value: Any) -> bool:
    """The same, of arrays too."""
    return (isinstance(value, KnownArray) or not isinstance(value, ABSTRACT)) and all(map(is_known, parts(value)))


def is_same(value: Any) -> bool:
    """Whether both runs have the same value; noise that nothing has looked at is not yet."""
    if isinstance(value, UnknownValue | OpaqueValue):
        return value.same
    if isinstance(value, Noisy):
        return value.value is not None
    return not isinstance(value, FreshNoise | Order) and all(map(is_same, parts(value)))
