"""The canonical form of any output: columns named by path, each cell a real number or the code of a token.

A path leads into an output: () is the output itself, (3,) its fourth coordinate, ("name",) a key or field,
and the steps that start with @ name what is not a coordinate. A token is whatever is no number:
text, bytes, None, an exception by its type, a time-out, an absent entry. Its code is a hash, the same in
every worker; two tokens with one code would be one token, which costs power and never validity.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Integers, Places, Reals, Words
from dpaudit.errors import UnsoundAudit

Path = tuple[int | str, ...]
Numbers = npt.NDArray[np.generic]
Codes = npt.NDArray[np.uint64]

LENGTH, TYPE, PRINTED_AS = "@len", "@type", "@repr"
CLASS, DTYPE, ORDER, KEY, MESSAGE = "@class", "@dtype", "@order", "@key", "@message"  # words beside a value
SIGN, BEYOND, EXPONENT = "@sign", "@beyond", "@exponent"  # of a zero; what a double lacks of a number; of a decimal
STATE, REST = "@state", "@rest"  # what an object holds beside its value; a digest of all that has no column
METADATA = frozenset({TYPE, CLASS, DTYPE, ORDER, KEY, MESSAGE, SIGN, BEYOND, EXPONENT, STATE, REST})
READ_AS = "@as "  # how the steps begin that lead into what a text says, or that describe it and are no part of it
DESCRIBED_BY = frozenset(READ_AS + each for each in ("len", "prefix", "digits", "upper", "blanks", "repeats"))
NUMBERS_IN = frozenset(
    READ_AS + each for each in ("float", "json", "unpacked", "int16 little", "int16 big")
)  # a text that is made of numbers
MOST_HELD, MANY_HELD, MOST_CELLS = 1 << 18, 1 << 15, 1 << 24  # outputs that search holds: of a number, of any; cells
FEWEST_HELD = 1 << 8
LONGEST_LABEL = 120
MOST_PLACES = 4  # that are named of those that have no column
LONGEST_KEPT = 200  # characters of a text whose token is remembered


@dataclass(frozen=True, slots=True)
class Token:
    """A value that is no number: the label people read, and the code that stands for it in columns."""

    label: str
    code: int


def token(kind: str, text: str = "") -> Token:
    """The token of a kind ("text", "bytes", "raised", "object", ...) and its content.

    >>> token("raised", "ValueError").label
    'raised ValueError'
    """
    return _token(kind, text) if len(text) <= LONGEST_KEPT else _token.__wrapped__(kind, text)


@lru_cache(maxsize=1 << 15)
def _token(kind: str, text: str) -> Token:
    hashed = hashlib.blake2b(f"{kind}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    label = {"text": repr(text), "bytes": f"bytes {text}", "none": "None"}.get(kind, f"{kind} {text}".strip())
    return Token(label[:LONGEST_LABEL], int.from_bytes(hashed, "little") | 1)


ABSENT = token("absent")
NONE = token("none")
NOT_A_NUMBER = token("nan")
TIMED_OUT = token("timed out")
OVERSIZE = token("too large to look at")


@dataclass(frozen=True, slots=True)
class Failure:
    """Stands where an output would: the run raised, or ran out of time. `message` is without addresses.

    `note` is for people: message and line.
    """

    token: Token
    note: str = field(default="", compare=False)
    message: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """One cell a run: `values` holds the number, or NaN where `codes` holds a token; code 0 means a number.

    Without `codes` every cell is a number, and NaN among them is the token `NOT_A_NUMBER`.
    """

    values: Numbers
    codes: Codes | None = None
    _tokens: list[Codes] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def tokens(self) -> Codes:
        """The codes of all cells, NaN included; 0 where the cell is a number. Found once, then kept."""
        if not self._tokens:
            missing = np.isnan(self.values) if self.values.dtype.kind == "f" else np.zeros(len(self.values), bool)
            base = np.zeros(len(self.values), np.uint64) if self.codes is None else self.codes
            some = missing.any()
            self._tokens.append(np.where(missing & (base == 0), np.uint64(NOT_A_NUMBER.code), base) if some else base)
        return self._tokens[0]

    @property
    def only(self) -> int:
        """The one token of all runs, where it is held once; else 0."""
        once = self.codes is not None and self.codes.strides == self.values.strides == (0,) and len(self.codes) > 0
        return int(self.codes[0]) if once and self.codes is not None else 0

    def take(self, rows: npt.NDArray[np.generic]) -> "Column":
        """The cells of some rows, by their places."""
        if self.only and self.codes is not None:
            return Column(np.broadcast_to(self.values[:1], rows.shape), np.broadcast_to(self.codes[:1], rows.shape))
        return Column(self.values[rows], None if self.codes is None else self.codes[rows])


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs whose numbers lie in one matrix, number[places, runs]: those of `rows` in their order, None for all."""

    matrix: Numbers
    rows: Places | None = None

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.matrix.shape[1] if self.rows is None else len(self.rows)

    def column(self, place: int) -> Numbers:
        """The numbers of one place: number[runs]."""
        numbers: Numbers = self.matrix[place]
        return numbers if self.rows is None else numbers[self.rows]

    def part(self, places: Places | None, runs: slice) -> Numbers:
        """The numbers of some places (None: of all) and of a stretch of runs: number[places, runs]."""
        if self.rows is None:
            return self.matrix[:, runs] if places is None else self.matrix[places, runs]
        rows = self.rows[runs]
        return np.take(self.matrix, rows, axis=1) if places is None else self.matrix[places[:, None], rows]


class Columns(Mapping[Path, Column]):
    """Columns many of which hold numbers alone and lie in matrices, each of some runs, in the order of `places`.

    The others are `loose`. A column of the matrices is made when it is asked for: parts and joined parts of outputs
    share the matrices, for of many entries and runs there is no room for a second one.
    """

    __slots__ = ("blocks", "dtype", "loose", "places")

    def __init__(
        self,
        places: Mapping[Path, int],
        blocks: Sequence[Stretch],
        loose: Mapping[Path, Column],
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        self.places, self.blocks, self.loose = places, tuple(blocks), loose
        self.dtype = np.dtype(self.blocks[0].matrix.dtype if dtype is None else dtype)

    def __getitem__(self, path: Path) -> Column:
        place = self.places.get(path)
        if place is None:
            return self.loose[path]
        parts = [block.column(place) for block in self.blocks]
        return Column(
            parts[0].astype(self.dtype, copy=False) if len(parts) == 1 else np.concatenate(parts, dtype=self.dtype)
        )

    def __iter__(self) -> Iterator[Path]:
        return chain(self.places, self.loose)

    def __len__(self) -> int:
        return len(self.places) + len(self.loose)

    @property
    def matrix(self) -> Numbers:
        """All of the matrices as one: number[places, runs]."""
        return self.numbers(None, slice(None))

    def numbers(self, places: Sequence[int] | None, runs: slice) -> Numbers:
        """The numbers of some places (None: of all) and of a stretch of runs: number[places, runs]."""
        chosen = None if places is None or list(places) == list(range(len(self.places))) else np.array(places, np.intp)
        if len(self.blocks) == 1:
            return self.blocks[0].part(chosen, runs).astype(self.dtype, copy=False)
        start, stop, _ = runs.indices(sum(block.runs for block in self.blocks))
        numbers = np.empty((len(self.places) if chosen is None else len(chosen), max(0, stop - start)), self.dtype)
        before = 0
        for block in self.blocks:
            first, last = max(start, before), min(stop, before + block.runs)
            if first < last:
                numbers[:, first - start : last - start] = block.part(chosen, slice(first - before, last - before))
            before += block.runs
        return numbers

    def take(self, rows: Places, loose: Mapping[Path, Column]) -> "Columns":
        """The same matrices for some runs, by their places."""
        ends = np.cumsum([block.runs for block in self.blocks])
        homes = np.searchsorted(ends, rows, side="right")
        if (np.diff(homes) < 0).any():  # in another order than that of the matrices
            return Columns(self.places, [Stretch(self.matrix, rows)], loose)
        cuts = np.searchsorted(homes, np.arange(1, len(ends)))
        blocks = []
        for block, end, mine in zip(self.blocks, ends, np.split(rows, cuts), strict=True):
            mine = mine - (end - block.runs)
            blocks.append(Stretch(block.matrix, mine if block.rows is None else block.rows[mine]))
        return Columns(self.places, [each for each in blocks if each.runs] or blocks[:1], loose, self.dtype)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of `runs` runs as columns; a path that is not there is absent from every run.

    Not `complete` where there were more keys or elements than columns can be kept for. `unseen` entries of one of the
    outputs have no column, at the most, where all columns were asked for. `notes` has the message and line of the first
    exception of each label, and the places that `REST` is made of, for people: no event looks at them.
    """

    runs: int
    columns: Mapping[Path, Column]
    labels: Mapping[int, str] = field(default_factory=dict)
    complete: bool = True
    unseen: int = 0
    notes: Mapping[str, str] = field(default_factory=dict, compare=False)
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives of these outputs, which is kept until another key is asked for."""
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = make()
        return self._kept[key]

    def column(self, path: Path) -> Column:
        """The column at a path."""
        column = self.columns.get(path)
        return absent(self.runs) if column is None else column

    def numbers(self, paths: Sequence[Path], runs: slice = slice(None)) -> Reals:
        """The numbers at some paths of a stretch of runs, NaN where there is none: float64[paths, runs]."""
        columns = self.columns
        places = [columns.places.get(path, -1) for path in paths] if isinstance(columns, Columns) else [-1]
        if isinstance(columns, Columns) and min(places, default=-1) >= 0:
            return np.asarray(columns.numbers(places, runs), np.float64)
        start, stop, _ = runs.indices(self.runs)
        rows = np.empty((len(paths), max(0, stop - start)))
        for row, path in zip(rows, paths, strict=True):
            row[:] = self.column(path).values[runs]
        return rows

    def without(self, path: Path) -> "Outputs":
        """The outputs but for the column at a path that is in no matrix."""
        loose = {each: column for each, column in _loose(self).items() if each != path}
        columns = self.columns
        wide = Columns(columns.places, columns.blocks, loose, columns.dtype) if isinstance(columns, Columns) else loose
        return replace(self, columns=wide)

    def take(self, rows: npt.NDArray[np.generic]) -> "Outputs":
        """The outputs of some rows: an index array or a mask."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.intp, copy=False)
        columns: Mapping[Path, Column] = {path: column.take(places) for path, column in _loose(self).items()}
        if isinstance(self.columns, Columns):
            columns = self.columns.take(places, columns)
        return Outputs(len(places), columns, self.labels, self.complete, self.unseen, self.notes)


@dataclass(frozen=True, slots=True)
class Sample:
    """Outputs of one side, each counted `counts` times (once where None)."""

    outputs: Outputs
    counts: Integers | None = None

    @property
    def runs(self) -> int:
        """The number of runs behind the sample."""
        return self.outputs.runs if self.counts is None else int(self.counts.sum())

    def hits(self, inside: Bools) -> int:
        """The number of runs whose output is inside."""
        return int(np.count_nonzero(inside)) if self.counts is None else int(self.counts[inside].sum())


def derived(path: Path) -> bool:
    """Whether a path leads into what a text or bytes say: such columns add nothing to what an output is."""
    return any(isinstance(step, str) and step.startswith(READ_AS) for step in path)


def is_metadata(path: Path) -> bool:
    """Whether a path leads to what an output shows beside its values: types, signs of zeros, key order, messages.

    Each such cell is absent where the value tells it: no sign but of a negative zero, no type of a float.
    """
    return not METADATA.isdisjoint(path)


def is_entry(path: Path) -> bool:
    """Whether a path stands for an entry of the output: not for its length, its type, or what describes a text."""
    return bool(path) and path[-1] != LENGTH and not is_metadata(path) and DESCRIBED_BY.isdisjoint(path)


def room_for(outputs: Outputs) -> int:
    """How many outputs like these search holds at a time, so that their cells are bounded, and memory with them.

    Of a number as many as show what recurs rarely; of more entries fewer, as every feature of them is a sort of all.

    >>> [room_for(Outputs(1, {(j,): absent(1) for j in range(entries)})) for entries in (1, 4, 20, 4096)]
    [262144, 65536, 32768, 4096]
    """
    number = outputs.columns.get(())
    width = sum(not is_metadata(path) for path in outputs.columns)
    width = max(1, width + ((TYPE,) in outputs.columns and (number is None or number.codes is not None)))
    return max(FEWEST_HELD, min(max(MOST_HELD // width, MANY_HELD), MOST_CELLS // width))


def absent(runs: int) -> Column:
    """A column in which every entry is absent."""
    return Column(np.full(runs, np.nan), np.full(runs, ABSENT.code, np.uint64))


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """The outputs of several parts one after the other; raises `UnsoundAudit` when there is none."""
    if not parts:
        raise UnsoundAudit("there are no outputs to look at")
    labels = {code: label for part in parts for code, label in part.labels.items()}
    wide = _of_one_kind(parts)
    paths = dict.fromkeys(path for part in parts for path in (part.columns if wide is None else _loose(part)))
    if wide is not None:  # of parts without runs, which may have no matrix
        paths = dict.fromkeys(path for path in paths if path not in wide[0].places)
    columns: Mapping[Path, Column] = {path: _joined(parts, path) for path in paths}
    if wide is not None:
        columns = Columns(wide[0].places, [block for each in wide for block in each.blocks], columns, np.float64)
    complete, unseen = all(part.complete for part in parts), max(part.unseen for part in parts)
    notes = {label: note for part in reversed(parts) for label, note in part.notes.items()}  # the first of each
    return Outputs(sum(part.runs for part in parts), columns, labels, complete, unseen, notes)


def _loose(part: Outputs) -> Mapping[Path, Column]:
    return part.columns.loose if isinstance(part.columns, Columns) else part.columns


def _of_one_kind(parts: Sequence[Outputs]) -> list[Columns] | None:
    """The columns of several parts where all that have runs have matrices, of the same places."""
    columns = [part.columns for part in parts if part.runs]
    wide = [each for each in columns if isinstance(each, Columns)]
    alike = all(each.places is wide[0].places or each.places == wide[0].places for each in wide)
    return wide if wide and len(wide) == len(columns) and alike else None


def _joined(parts: Sequence[Outputs], path: Path) -> Column:
    columns = [part.column(path) for part in parts if part.runs] or [absent(0)]
    if columns[0].only and len({column.only for column in columns}) == 1:
        return columns[0].take(np.empty(sum(part.runs for part in parts), np.intp))
    values = np.concatenate([column.values.astype(np.float64, copy=False) for column in columns])
    if all(column.codes is None for column in columns):
        return Column(values)
    zeros = [np.zeros(len(column.values), np.uint64) if column.codes is None else column.codes for column in columns]
    return Column(values, np.concatenate(zeros))


@dataclass(frozen=True, slots=True)
class Pilot:
    """The outputs of shards as they are, in canonical form: only for searching, and only a bounded number.

    `sides` tells the side of each run in the order of the runs (True: second), so that outputs can be put back
    into that order; `sizes` are the runs of each shard. Both are empty where the order is not known.
    """

    first: Outputs
    second: Outputs
    sides: Bools = field(default_factory=lambda: np.zeros(0, np.bool_), compare=False)
    sizes: tuple[int, ...] = ()

    @property
    def runs(self) -> int:
        """The number of outputs of both sides."""
        return self.first.runs + self.second.runs

    @property
    def both(self) -> Outputs:
        """The outputs of the first side, then those of the second."""
        return concatenate([self.first, self.second])

    @property
    def unseen(self) -> int:
        """The entries of one output that were not looked at, at the most."""
        return max(self.first.unseen, self.second.unseen)

    @property
    def unread(self) -> str:
        """The places of outputs that have no column where outputs differ in them; empty where they do not."""
        sides = self.first, self.second
        tokens = np.concatenate([side.column((REST,)).tokens for side in sides])
        places = dict.fromkeys(note for side in sides for label, note in side.notes.items() if label.startswith(REST))
        return "" if len(tokens) == 0 or (tokens == tokens[0]).all() else ", ".join(list(places)[:MOST_PLACES])

    @classmethod
    def joined(cls, parts: "Sequence[Pilot]") -> "Pilot":
        """The outputs of several parts one after the other; raises `UnsoundAudit` when there is none."""
        return cls(
            concatenate([part.first for part in parts]),
            concatenate([part.second for part in parts]),
            np.concatenate([part.sides for part in parts]),
            tuple(chain.from_iterable(part.sizes for part in parts)),
        )


def mixed(words: Words) -> Words:
    """Words that are mixed: the finalizer of splitmix64 (Steele, Lea & Flood 2014): every bit depends on every bit."""
    words = words ^ (words >> np.uint64(30))
    words = words * np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


Wanted = frozenset[Path] | None
# --- many numbers of one output: the paths of their entries, and one matrix for all of them ---


WIDEST = 1 << 16  # entries of an array or list that are looked at; of lists in lists see `Builder._add_sequences`
NARROW = 64  # entries up to which each is a column of its own; more of them are a matrix
EXACT = 2.0**53  # doubles hold all integers up to here
PIECE = 1 << 9  # runs whose entries are put into a matrix at a time, so that these stay in cache while they are turned


def reals(numbers: Numbers) -> Numbers:
    """The numbers as floats, through doubles, so that an integer is rounded alike whatever stands beside it."""
    return numbers if numbers.dtype in (np.float64, np.float32) else numbers.astype(np.float64)


@lru_cache(maxsize=16)
def positions(shape: tuple[int, ...], path: Path = (), wanted: Wanted = None) -> Mapping[Path, int]:
    """The paths of the first entries of an array of this shape, those that are wanted, and their places in it."""
    first = itertools.islice(np.ndindex(*shape), WIDEST)
    every = {(*path, *map(int, index)): place for place, index in enumerate(first)}
    return every if wanted is None else {each: every[each] for each in every if each in prefixes(wanted)}


@lru_cache(maxsize=64)
def prefixes(wanted: frozenset[Path]) -> frozenset[Path]:
    """The wanted paths, and what leads to them."""
    return frozenset(want[:length] for want in wanted for length in range(len(want) + 1))


def in_pieces(arrays: Any, entries: int) -> list[Any]:
    """Arrays of so many entries, a run each, in stretches of runs: those of few entries as they are."""
    size = max(1, len(arrays)) if entries <= NARROW else PIECE
    return [arrays[start : start + size] for start in range(0, max(1, len(arrays)), size)]


def flat_lists(members: Sequence[Any]) -> tuple[Numbers, set[type]] | None:
    """Lists of one length as a matrix, where all entries are plain numbers that doubles hold, and their types."""
    kinds = set(map(type, itertools.chain.from_iterable(members)))
    if not kinds <= {float, int, bool}:
        return None
    try:
        matrix = np.array([list(map(float, each)) for each in members])
    except OverflowError:  # beyond the range of floats
        return None
    return None if int in kinds and (np.abs(matrix) >= EXACT).any() else (matrix, kinds)
