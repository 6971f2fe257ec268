"""The cells of one batch while its outputs are looked at: columns by path, and one digest of all that has none.

What an output shows beside its values as doubles and tokens (exact numbers, signs of zeros, orders, labels) is a
function of that output, and absent where its value shows it already; so plain outputs have none.
"""

import dataclasses
import datetime
import enum
import hashlib
import math
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Places, Reals, Words
from dpaudit.base.values import Unreadable, spelled, type_name
from dpaudit.outputs.canonical import (
    ABSENT,
    BEYOND,
    EXACT,
    EXPONENT,
    REST,
    SIGN,
    TYPE,
    Codes,
    Column,
    Columns,
    Numbers,
    Outputs,
    Path,
    Stretch,
    Token,
    Wanted,
    derived,
    is_metadata,
    mixed,
    prefixes,
    reals,
    token,
)
from dpaudit.outputs.exact import FIXED, Rows, around, at, base, is_plain, module_of
from dpaudit.outputs.spelled import PRINTED, reduces, state_of

MOST_KEYS = 1 << 13  # different keys or elements of a batch that have a column
MOST_SPELLED = 1 << 16  # parts of what has no column
MOST_LOST = 8  # of an output, after which no more are tried
NAMED = {TYPE: "types", SIGN: "signs of zeros", BEYOND: "last digits", REST: "bits"}  # for people
ROOMY = 64  # entries of lists and arrays that have columns of their own for what is beside their values


class Sheet:
    """Gathers the columns of one batch; cells that nobody filled are absent."""

    def __init__(self, runs: int, wanted: Wanted) -> None:
        self.runs = runs
        self.wanted = wanted
        # the digest of what has no column is made of the whole output, whatever else is wanted
        self.sought = None if wanted is None or (REST,) in wanted else wanted
        self.prefixes = None if self.sought is None else prefixes(self.sought)
        self.wide: tuple[Mapping[Path, int], Numbers] | None = None
        self.columns: dict[Path, tuple[Reals, Codes]] = {}
        self.whole: dict[Path, Column] = {}
        self.labels: dict[int, str] = {}
        self.complete = True
        self.cut = np.zeros(0, np.int64)  # entries of each output that have no column, once there are any
        self.notes: dict[str, str] = {}
        self.rest = np.zeros(0, np.uint64)
        self.lost: Counter[int] = Counter()  # parts of each output that could not be read
        self.besides = wanted is None or any(map(is_metadata, wanted))  # whether anything beside a value is asked for

    def outputs(self) -> Outputs:
        if self.rest.any():
            there = self.rest != 0
            codes = np.where(there, self.rest | np.uint64(1), np.uint64(ABSENT.code))
            self.labels |= {ABSENT.code: ABSENT.label, **{code: f"{code:016x}" for code in set(codes[there].tolist())}}
            self.columns[(REST,)] = (np.full(self.runs, np.nan), codes)
        partial = {path: Column(values, codes) for path, (values, codes) in self.columns.items()}
        unseen = int(self.cut.max(initial=0))
        columns: Mapping[Path, Column] = {**self.whole, **partial}
        columns = columns if self.wide is None else Columns(self.wide[0], [Stretch(self.wide[1])], columns)
        return Outputs(self.runs, columns, self.labels, self.complete, unseen, self.notes)

    def leave(self, rows: Rows, entries: Any) -> None:
        """This many entries of these runs get no column."""
        if self.wanted is None:
            self.cut = self.cut if len(self.cut) else np.zeros(self.runs, np.int64)
            self.cut[slice(None) if rows is None else rows] += entries

    def chosen(self, named: Sequence[Iterable[int | str]], steps: Iterable[int | str], path: Path, rows: Rows) -> Any:
        """The keys or elements of a batch that have a column, each once; those of each output are `named`."""
        names = [each for each in dict.fromkeys(steps) if self.needs((*path, each))]
        if self.wanted is None and len(names) > MOST_KEYS:
            self.complete, left = self.complete and derived(path), set(names[MOST_KEYS:])
            self.leave(rows, [len(left.intersection(each)) for each in named])
            names = names[:MOST_KEYS]
        return names

    def all_or(self, rows: Rows, places: Sequence[int] | Places) -> Rows:
        """The rows of some of the objects in these rows, by their places; None where they are all runs."""
        return None if len(places) == self.runs else at(rows, places)

    def needs(self, path: Path) -> bool:
        """Whether the path, or one that leads through it, will be looked at."""
        return self.prefixes is None or path in self.prefixes

    def shows(self, path: Path) -> bool:
        """Whether the path itself will be looked at."""
        return self.wanted is None or path in self.wanted

    def put(self, path: Path, rows: Rows, values: Any, codes: Any = 0) -> None:
        """Fills cells: all rows of a batch at once where `rows` is None."""
        if not self.shows(path):
            return
        if path not in self.columns:
            if rows is None and np.ndim(codes) == 0 and path not in self.whole:
                alike = None if codes == 0 else np.broadcast_to(np.uint64(codes), (self.runs,))
                numbers = reals(np.array(values))  # a copy
                whole = numbers if numbers.shape == (self.runs,) else np.broadcast_to(numbers, (self.runs,))
                self.whole[path] = Column(whole, alike)
                return
            self.columns[path] = (np.full(self.runs, np.nan), np.full(self.runs, ABSENT.code, np.uint64))
            self.labels[ABSENT.code] = ABSENT.label
            if path in self.whole:
                same = self.whole.pop(path)
                self.columns[path][0][:] = same.values
                self.columns[path][1][:] = 0 if same.codes is None else same.codes
        target_values, target_codes = self.columns[path]
        where = slice(None) if rows is None else rows
        target_values[where] = values
        target_codes[where] = codes

    def put_token(self, path: Path, rows: Rows, one: Token) -> None:
        self.labels[one.code] = one.label
        self.put(path, rows, np.nan, np.uint64(one.code))

    def put_tokens(self, path: Path, rows: Rows, row_tokens: Iterable[Token], count: int) -> None:
        if not self.shows(path):
            return
        tokens = list(row_tokens)
        for each in set(tokens):
            self.labels[each.code] = each.label
        self.put(path, rows, np.nan, np.fromiter((each.code for each in tokens), np.uint64, count))

    # --- what is beside values, and what has no column ------------------------------------------------------

    def tells(self, path: Path, step: str) -> bool:
        """Whether what is beside the value at a path is asked for: by its name, or as a part of the digest."""
        return not derived(path) and self.shows((*path, step) if roomy(path) and step != REST else (REST,))

    def say(self, path: Path, step: str, rows: Rows, words: Token | Sequence[Token]) -> None:
        """Words beside the values at a path: one for all of these runs, or one each."""
        if not self.tells(path, step):
            return
        alike = words if isinstance(words, Token) else words[0] if words.count(words[0]) == len(words) else None
        if alike == ABSENT:
            return
        if alike is not None:
            if roomy(path):
                return self.put_token((*path, step), rows, alike)
            return self.add_rest(path, rows, np.array([alike.code], np.uint64), step)
        assert not isinstance(words, Token)
        if roomy(path):
            return self.put_tokens((*path, step), rows, words, len(words))
        there = [place for place, each in enumerate(words) if each != ABSENT]
        codes = np.array([words[place].code for place in there], np.uint64)
        self.add_rest(path, at(rows, there), codes, step)

    def mark(self, there: Bools, values: Any, rows: Rows, places: Mapping[Path, int], step: str) -> None:
        """Numbers (or codes) beside those entries of [runs, entries] that are marked: of `values`, or one for all."""
        some = np.atleast_1d(there.any(axis=0))
        for path, j in places.items():
            if not some[j] or not self.tells(path, step):
                continue
            marked = np.flatnonzero(there[:, j])
            mine = marked if rows is None else rows[marked]
            cells = np.broadcast_to(values, there.shape)[marked, j]
            if roomy(path) and step != REST:
                self.put((*path, step), mine, cells)
            else:
                self.add_rest(path, mine, cells.astype(np.float64).view(np.uint64), step)

    def left_out(self, path: Path, rows: Rows, parts: Sequence[Any], what: str) -> None:
        """Parts of these outputs that have no column join the digest; where they cannot be read, that is counted."""
        if not self.shows((REST,)):
            return
        words = np.zeros(len(parts), np.uint64)
        for place, part in enumerate(parts):
            here = at(rows, [place])
            if self.lost[int(here[0])] >= MOST_LOST:
                self.leave(here, 1)
                continue
            try:
                words[place] = int.from_bytes(
                    hashlib.blake2b(spelled(part, state_of, most=MOST_SPELLED), digest_size=8).digest(), "little"
                )
            except Unreadable as error:
                self.lost[int(here[0])] += 1
                self.unreadable(path, here, str(error))
        self.add_rest(path, rows, words, what)

    def say_around(self, objects: Sequence[Any], rows: Rows, path: Path) -> None:
        """What arrays and records keep beyond their entries, of those that keep something."""
        for place, each in enumerate(objects if self.shows((REST,)) else ()):
            if not is_plain(each):
                memory, here = around(each), at(rows, [place])
                if memory is None:
                    self.unreadable(path, here, "memory behind a view")
                else:
                    self.left_out(path, here, [memory], "memory")

    def unreadable(self, path: Path, rows: Rows, what: str) -> None:
        """Something that cannot be read at all."""
        self.leave(rows, 1)
        self.notes[f"{REST} {what} {path}"] = f"{what} at {place_of(path)}"

    def add_rest(self, path: Path, rows: Rows, words: Words, what: str) -> None:
        """Words of what has no column, of these runs, join the digest."""
        if not self.shows((REST,)):
            return
        if not len(self.rest):
            self.rest = np.zeros(self.runs, np.uint64)
        salt = np.uint64(token("path", repr((*path, what))).code)
        self.rest[slice(None) if rows is None else rows] += mixed(words ^ salt)
        entry = bool(path) and isinstance(path[-1], int) and what in NAMED
        above = path[:-1] if entry else path
        place = f"{NAMED.get(what, what.removeprefix('@'))} of {'entries of ' * entry}{place_of(above)}"
        self.notes[f"{REST} {place}"] = place


def roomy(path: Path) -> bool:
    """Whether there are columns for what is beside the value at this path: of the first entries of lists and arrays.

    >>> roomy((63,)), roomy((64,)), roomy((7, 7)), roomy(("total", 3))
    (True, False, True, True)
    """
    return math.prod(abs(each) + 1 for each in path if isinstance(each, int)) <= ROOMY


def place_of(path: Path) -> str:
    """A path for people.

    >>> place_of((0, "total"))
    "output[0]['total']"
    """
    return "output" + "".join(f"[{step!r}]" for step in path if not is_metadata((step,)))


SMALLEST = -400  # of the exponents of decimals whose digits are compared with those of a double
SINGLES = np.finfo(np.float32)
PLAIN_NAN = struct.unpack("<Q", struct.pack("<d", float("nan")))[0]


def beside_entries(into: Sheet, flat: Numbers, rows: Rows, places: Mapping[Path, int]) -> None:
    """Beside numbers, [runs, entries]: signs of zeros, sizes beyond float32, what doubles lack of integers, odd NaN."""
    if flat.dtype.kind == "f":
        beyond = beyond_singles(flat)
        if beyond.any():  # features round to float32, which would make them all 0 or infinite
            size = np.abs(np.where(beyond, flat, 1.0)).astype(np.float64)
            into.mark(beyond, np.log10(size), rows, places, EXPONENT)
            into.mark(beyond & np.signbit(flat), -1.0, rows, places, SIGN)
        if np.count_nonzero(flat) < flat.size and (minus := (flat == 0.0) & np.signbit(flat)).any():
            into.mark(minus, -1.0, rows, places, SIGN)
        with np.errstate(invalid="ignore", over="ignore"):
            odd = flat != flat if np.isnan(flat.sum()) else np.zeros(1, np.bool_)
        if odd.any():
            bits = np.asarray(flat, np.float64).view(np.uint64)
            into.mark(odd & (bits != PLAIN_NAN), bits.view(np.float64), rows, places, REST)
        if flat.dtype.itemsize > 8 and (lacking := (flat != flat.astype(np.float64)) & ~odd).any():
            low = flat - flat.astype(np.float64)
            into.mark(lacking, low.astype(np.float64), rows, places, REST)
    elif flat.dtype == np.bool_:
        octets = np.ascontiguousarray(flat).view(np.uint8)
        if octets.size and octets.max() > 1:
            into.mark(octets > 1, octets.astype(np.float64), rows, places, REST)
    elif flat.dtype.itemsize == 8 and flat.size and max(float(flat.max()), -float(flat.min())) >= EXACT:
        flat = flat.astype(flat.dtype.newbyteorder("="), copy=False)
        near = flat.astype(np.float64)
        top = 2.0**63 if flat.dtype.kind == "i" else 2.0**64
        inside = np.where(near >= top, 0.0, near)
        whole = np.where(near >= top, np.uint64(int(top) % 2**64), inside.astype(flat.dtype).view(np.uint64))
        lacks = (flat.view(np.uint64) - whole).view(np.int64)  # modulo 2^64
        into.mark(lacks != 0, lacks.astype(np.float64), rows, places, BEYOND)


def beyond_singles(numbers: Numbers) -> Bools:
    """Which doubles are finite and not 0, and smaller or larger than any normal float32."""
    if numbers.dtype.itemsize <= 4 or not numbers.size:
        return np.zeros(numbers.shape, np.bool_)
    with np.errstate(invalid="ignore"):
        size = np.abs(np.asarray(numbers, np.float64))
        beyond: Bools = ((size < SINGLES.tiny) & (size > 0.0)) | ((size > SINGLES.max) & (size < np.inf))
    return beyond


def beside_numbers(into: Sheet, objects: Sequence[Any], values: Numbers, rows: Rows, path: Path) -> None:
    """Beside numbers of one path that were objects: the same, and the exponents of decimals."""
    beside_entries(into, values[:, None], rows, {path: 0})
    kinds = set(map(type, objects))
    if kinds <= {float, bool, np.bool_, np.float64, np.float32, np.float16} or not any(
        into.tells(path, step) for step in (BEYOND, EXPONENT, REST)
    ):
        return
    if kinds <= {int, bool} and not (np.abs(values) >= EXACT).any():
        return
    for place, (number, value) in enumerate(zip(objects, values.tolist(), strict=True)):
        row = at(rows, [place])
        if isinstance(number, Decimal):
            exponent = Decimal.as_tuple(number).exponent
            if isinstance(exponent, int):
                into.mark(np.ones((1, 1), np.bool_), float(exponent), row, {path: 0}, EXPONENT)
            else:
                into.say(path, EXPONENT, row, token("number", Decimal.__str__(number)))
        if isinstance(number, np.longdouble) and number != value and np.isfinite(value):
            into.left_out(path, row, [float(number - np.longdouble(value))], "bits")
        lacks = _lacking(number, value)
        if isinstance(lacks, Token):
            into.say(path, BEYOND, row, lacks)
        elif lacks:
            into.mark(np.ones((1, 1), np.bool_), float(lacks), row, {path: 0}, BEYOND)
            if Fraction(float(lacks)) != lacks:
                into.left_out(path, row, [lacks], "digits")


def _lacking(number: Any, value: float) -> Fraction | Token:
    """What a double lacks of a number; a token of all its digits where it is beyond the range of doubles."""
    kind: Any = type(number)
    if isinstance(number, int):
        exact: Any = int.__int__(number)
    elif isinstance(number, np.integer):
        exact = base(kind, "__int__").__int__(number)
    elif isinstance(number, Decimal) and Decimal.is_finite(number):
        exact = Decimal(number)
    elif isinstance(number, Fraction):
        exact = Fraction(int(number.numerator), int(number.denominator))
    else:
        return Fraction(0)
    tiny = isinstance(exact, Decimal) and exact != 0 and exact.adjusted() < SMALLEST
    if not np.isfinite(value) or tiny:
        return token("number", hex(exact) if isinstance(exact, int) else str(exact))
    return Fraction(exact) - Fraction(value)


def order_of(keys: tuple[int | str, ...]) -> Token:
    """The order of the keys of a mapping; absent where they are sorted."""
    return (
        ABSENT
        if list(keys) == sorted(keys, key=lambda key: (isinstance(key, str), key))
        else token("order", ", ".join(map(str, keys)))
    )


def types_in(key: Any) -> str:
    """The type of a key or an element, and the types in it where it is a tuple.

    >>> types_in((1, True))
    'tuple[int, bool]'
    """
    if isinstance(key, tuple | frozenset):
        holder: Any = tuple if isinstance(key, tuple) else frozenset
        inner = map(types_in, holder.__iter__(key))
        return f"{type_name(type(key))}[{', '.join(inner if holder is tuple else sorted(inner))}]"
    if isinstance(key, float) and (key == 0.0 or key != key):  # all zeros have one step, and all NaN
        return f"{type_name(type(key))} {float.hex(key) if key == 0.0 else struct.pack('>d', key).hex()}"
    kind: Any = type(key)
    return type_name(kind) + (f" {key!r}" if kind in (Decimal, np.longdouble) else "")


@lru_cache(maxsize=1 << 10)
def shows_everything(kind: Any) -> bool:
    """Whether objects of a type have nothing attached to them that their value would not show."""
    if issubclass(kind, datetime.datetime | datetime.time | defaultdict):
        return False
    attributes = kind.__dictoffset__ != 0 or any(vars(each).get("__slots__") for each in kind.__mro__)
    ours = kind in FIXED or module_of(kind) in PRINTED or module_of(kind).startswith("numpy")
    return ours or issubclass(kind, enum.Enum) or not (attributes or reduces(kind))


@lru_cache(maxsize=1 << 10)
def read_names(kind: Any) -> frozenset[str]:
    """The attributes that are read as the fields of a dataclass."""
    return frozenset(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else frozenset()
