"""The cells of one batch while its outputs are looked at: columns by path, and one digest of all that has none."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Reals, Words
from dpaudit.outputs.canonical import (
    ABSENT,
    BEYOND,
    REST,
    SIGN,
    TYPE,
    Codes,
    Column,
    Columns,
    Numbers,
    Outputs,
    Path,
    Token,
    beside,
    derived,
    mixed,
    token,
)
from dpaudit.outputs.exact import Rows, around, is_plain
from dpaudit.outputs.matrix import Wanted, prefixes, reals
from dpaudit.outputs.spelled import Unspellable, spelled

MOST_KEYS = 1 << 13  # different keys or elements of a batch that have a column
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
        self.besides = wanted is None or any(map(beside, wanted))  # whether anything beside a value is asked for

    def outputs(self) -> Outputs:
        if self.rest.any():
            there = self.rest != 0
            codes = np.where(there, self.rest | np.uint64(1), np.uint64(ABSENT.code))
            self.labels |= {ABSENT.code: ABSENT.label, **{code: f"{code:016x}" for code in set(codes[there].tolist())}}
            self.columns[(REST,)] = (np.full(self.runs, np.nan), codes)
        partial = {path: Column(values, codes) for path, (values, codes) in self.columns.items()}
        unseen = int(self.cut.max(initial=0))
        columns: Mapping[Path, Column] = {**self.whole, **partial}
        columns = columns if self.wide is None else Columns(*self.wide, columns)
        return Outputs(self.runs, columns, self.labels, self.complete, unseen, self.notes)

    def leave(self, rows: Rows, entries: Any) -> None:
        """So many entries of these runs get no column."""
        if self.wanted is None:
            self.cut = self.cut if len(self.cut) else np.zeros(self.runs, np.int64)
            self.cut[slice(None) if rows is None else rows] += entries

    def chosen(self, named: Sequence[Iterable[int | str]], steps: Iterable[int | str], path: Path, rows: Rows) -> Any:
        """The keys or elements of a batch that have a column, each once; those of each output are `named`."""
        found = [each for each in dict.fromkeys(steps) if self.needs((*path, each))]
        if self.wanted is None and len(found) > MOST_KEYS:
            self.complete, left = self.complete and derived(path), set(found[MOST_KEYS:])
            self.leave(rows, [len(left.intersection(each)) for each in named])
            found = found[:MOST_KEYS]
        return found

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
                found = reals(np.array(values))  # a copy
                whole = found if found.shape == (self.runs,) else np.broadcast_to(found, (self.runs,))
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

    def put_token(self, path: Path, rows: Rows, found: Token) -> None:
        self.labels[found.code] = found.label
        self.put(path, rows, np.nan, np.uint64(found.code))

    def put_tokens(self, path: Path, rows: Rows, found: Iterable[Token], count: int) -> None:
        if not self.shows(path):
            return
        tokens = list(found)
        for each in set(tokens):
            self.labels[each.code] = each.label
        self.put(path, rows, np.nan, np.fromiter((each.code for each in tokens), np.uint64, count))

    # --- what is beside values, and what has no column ------------------------------------------------------

    def tells(self, path: Path, step: str) -> bool:
        """Whether what is beside the value at a path is asked for: by its name, or as a part of the digest."""
        return not derived(path) and self.shows((*path, step) if roomy(path) and step != REST else (REST,))

    def say(self, path: Path, step: str, rows: Rows, found: Token | Sequence[Token]) -> None:
        """Words beside the values at a path: one for all of these runs, or one each."""
        if not self.tells(path, step):
            return
        alike = found if isinstance(found, Token) else found[0] if found.count(found[0]) == len(found) else None
        if alike == ABSENT:
            return
        if alike is not None:
            if roomy(path):
                return self.put_token((*path, step), rows, alike)
            return self.add_rest(path, rows, np.array([alike.code], np.uint64), step)
        assert not isinstance(found, Token)
        if roomy(path):
            return self.put_tokens((*path, step), rows, found, len(found))
        there = np.array([place for place, each in enumerate(found) if each != ABSENT], np.intp)
        codes = np.array([found[place].code for place in there], np.uint64)
        self.add_rest(path, there if rows is None else rows[there], codes, step)

    def mark(self, there: Bools, values: Any, rows: Rows, places: Mapping[Path, int], step: str) -> None:
        """Numbers (or codes) beside those entries of [runs, entries] that are marked: of `values`, or one for all."""
        some = np.atleast_1d(there.any(axis=0))
        for path, j in places.items():
            if not some[j] or not self.tells(path, step):
                continue
            held = np.flatnonzero(there[:, j])
            mine = held if rows is None else rows[held]
            cells = np.broadcast_to(values, there.shape)[held, j]
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
            row = place if rows is None else int(rows[place])
            if self.lost[row] >= MOST_LOST:
                self.leave(np.array([row]), 1)
                continue
            try:
                words[place] = int.from_bytes(hashlib.blake2b(spelled(part), digest_size=8).digest(), "little")
            except Unspellable as error:
                self.lost[row] += 1
                self.unreadable(path, np.array([row]), str(error))
        self.add_rest(path, rows, words, what)

    def say_around(self, objects: Sequence[Any], rows: Rows, path: Path) -> None:
        """What arrays and records keep beyond their entries, of those that keep something."""
        whole = np.arange(self.runs, dtype=np.intp) if rows is None else rows
        for place, each in enumerate(objects if self.shows((REST,)) else ()):
            if not is_plain(each):
                kept = around(each)
                if kept is None:
                    self.unreadable(path, whole[place : place + 1], "memory behind a view")
                else:
                    self.left_out(path, whole[place : place + 1], [kept], "memory")

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
    return "output" + "".join(f"[{step!r}]" for step in path if not beside((step,)))
