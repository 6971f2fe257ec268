"""Columns from objects and arrays: each cell a function of its output alone, whatever else is in the batch.

Objects are grouped by type, containers by their shape, and each group becomes columns in a few passes of C code.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from dpaudit.arrays import Bools, Reals
from dpaudit.errors import UnsoundAudit
from dpaudit.outputs import (
    ABSENT,
    LENGTH,
    NONE,
    OVERSIZE,
    PRINTED_AS,
    TYPE,
    Codes,
    Column,
    Columns,
    Failure,
    Numbers,
    Outputs,
    Path,
    Token,
    derived,
    token,
)
from dpaudit.sampling.exact import DEEPEST, base, own_words, real, words_of
from dpaudit.sampling.matrix import NARROW, WIDEST, Wanted, as_matrix, flat_lists, positions, prefixes, reals
from dpaudit.sampling.objects import ABSENT_ENTRY, Absent, Rows, array_kind, cells_of, groups, hexed, item, type_token
from dpaudit.sampling.steps import PRINTED, has, step, type_name
from dpaudit.sampling.text import JSON, readings, text_of, unpacked

MOST_KEYS = 1 << 13  # different keys or elements of a batch that have a column
RAGGED, MOST_RAGGED = 1 << 8, 1 << 17  # entries of lists of many lengths that search looks at: of each at least, of all
READ = 1 << 4  # texts of a list that are read


class Builder:
    """Gathers the columns of one batch; cells that nobody filled are absent."""

    def __init__(self, runs: int, wanted: Wanted) -> None:
        self.runs = runs
        self.wanted = wanted
        self.prefixes = None if wanted is None else prefixes(wanted)
        self.wide: tuple[Mapping[Path, int], Numbers] | None = None
        self.columns: dict[Path, tuple[Reals, Codes]] = {}
        self.whole: dict[Path, Column] = {}
        self.labels: dict[int, str] = {}
        self.complete = True
        self.cut = np.zeros(runs if wanted is None else 0, np.int64)  # entries of each output that have no column
        self.notes: dict[str, str] = {}

    def outputs(self) -> Outputs:
        partial = {path: Column(values, codes) for path, (values, codes) in self.columns.items()}
        unseen = int(self.cut.max(initial=0))
        columns: Mapping[Path, Column] = {**self.whole, **partial}
        columns = columns if self.wide is None else Columns(*self.wide, columns)
        return Outputs(self.runs, columns, self.labels, self.complete, unseen, self.notes)

    def leave(self, rows: Rows, entries: Any) -> None:
        """So many entries of these runs get no column."""
        if self.wanted is None:
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
            if rows is None and isinstance(codes, int) and codes == 0 and path not in self.whole:
                self.whole[path] = Column(np.broadcast_to(reals(np.array(values)), (self.runs,)))  # a copy
                return
            self.columns[path] = (np.full(self.runs, np.nan), np.full(self.runs, ABSENT.code, np.uint64))
            self.labels[ABSENT.code] = ABSENT.label
            if path in self.whole:
                self.columns[path][0][:] = self.whole.pop(path).values
                self.columns[path][1][:] = 0
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

    # --- objects, one a run -------------------------------------------------------------------------------

    def add(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        """Adds the objects found at a path in the given rows."""
        if not objects or not self.needs(path):
            return
        if depth == 0:
            self.leave(rows, 1)
            return self.put_token(path, rows, OVERSIZE)
        kinds = set(map(type, objects))
        if kinds <= {float, int, bool}:
            return self._add_numbers(objects, rows, path)
        if path == () and rows is None and depth == DEEPEST and self.needs((TYPE,)):
            if len(kinds) == 1:
                self.put_token((TYPE,), None, type_token(next(iter(kinds))))
            else:
                self.put_tokens((TYPE,), None, map(type_token, map(type, objects)), len(objects))
        if len(kinds) > 1:
            for _, members, there in groups(objects, rows, self.runs, type):
                self.add(members, there, path, depth)
            return
        (kind,) = kinds
        add = self._handler(kind)
        add(objects, rows, path, depth)
        # an object that nothing looks into is no output of its own, and a part of one if it prints itself
        if own_words(kind) and (path or add != self._add_opaque) and self.needs((*path, PRINTED_AS)):
            said = (token("text", words_of(each)) for each in objects)
            self.put_tokens((*path, PRINTED_AS), rows, said, len(objects))

    def _handler(self, kind: Any) -> Callable[[list[Any], Rows, Path, int], None]:
        """What adds objects of one type; the order of the questions is the definition of the canonical form."""
        if kind is Failure:
            return self._add_failures
        if kind in (type(None), Absent, type(np.ma.masked)):
            found = NONE if kind is type(None) else ABSENT
            return lambda objects, rows, path, depth: self.put_token(path, rows, found)
        if issubclass(kind, str):
            return self._add_text
        if issubclass(kind, bytes | bytearray | memoryview):
            return self._add_bytes
        if issubclass(kind, np.datetime64 | np.timedelta64):
            return lambda objects, rows, path, depth: self._add_text([str(o) for o in objects], rows, path, depth)
        if issubclass(kind, complex | np.complexfloating):
            read = base(kind, "__complex__")
            return lambda objects, rows, path, depth: self._add_complex(
                [read.__complex__(o) for o in objects], rows, path
            )
        if issubclass(kind, numbers.Real | np.bool_ | Decimal):
            return self._add_numbers
        if issubclass(kind, enum.Enum) or kind.__module__ in PRINTED:
            return lambda objects, rows, path, depth: self._add_text([str(o) for o in objects], rows, path, depth)
        if issubclass(kind, np.ndarray):
            if kind is np.ndarray or issubclass(kind, np.ma.MaskedArray):
                return self._add_arrays
            return lambda objects, rows, path, depth: self._add_arrays(
                [np.ndarray.view(o, np.ndarray) for o in objects], rows, path, depth
            )
        if issubclass(kind, list | tuple):
            return self._add_sequences
        if issubclass(kind, dict):
            return self._add_mappings
        if issubclass(kind, set | frozenset):
            return self._add_sets
        if issubclass(kind, np.void):
            return self._add_records
        if dataclasses.is_dataclass(kind):
            names = [f.name for f in dataclasses.fields(kind)]
            return lambda objects, rows, path, depth: self._add_fields(objects, names, rows, path, depth)
        if hasattr(kind, "__array__"):
            return lambda objects, rows, path, depth: self._add_arrays(
                [np.asarray(o) for o in objects], rows, path, depth
            )
        return self._add_opaque

    def _add_opaque(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.put_token(path, rows, token("object", type_name(type(objects[0]))))

    def _add_failures(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.notes = {found.token.label: found.note for found in reversed(objects) if found.note} | self.notes
        self.put_tokens(path, rows, (found.token for found in objects), len(objects))

    def _add_numbers(self, objects: list[Any], rows: Rows, path: Path, depth: int = 0) -> None:
        self.put(path, rows, np.fromiter(map(real, objects), np.float64, len(objects)))

    def _add_text(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        texts = [str.__str__(o) for o in objects]
        self.put_tokens(path, rows, (token("text", each) for each in texts), len(objects))
        self._add_readings(texts, rows, path, depth)

    def _add_bytes(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        contents = [hexed(o) for o in objects]
        self.put_tokens(path, rows, (token("bytes", each) for each in contents), len(objects))
        if not self._reads(path):
            return
        found = [(text_of(content), content) for content in map(bytes.fromhex, contents)]
        for is_text, members, there in groups(found, rows, self.runs, lambda each: each[0] is not None):
            if is_text:
                self._add_readings([str(words) for words, _ in members], there, path, depth)
                continue
            for _, alike, place in groups([content for _, content in members], there, self.runs, len):
                for steps, found_in in unpacked(alike, lambda steps: self.shows((*path, *steps))):
                    self.put((*path, *steps), place, reals(found_in))

    def _add_readings(self, texts: list[str], rows: Rows, path: Path, depth: int) -> None:
        """Beside a text what it says, in columns that add nothing to what it is."""
        if not self._reads(path):
            return
        whole = np.arange(self.runs, dtype=np.intp) if rows is None else rows
        for steps, there, found in readings(texts, lambda step: self.needs((*path, step))):
            place = None if len(there) == self.runs else whole[there]
            self.add(found, place, (*path, *steps), depth - 1)

    def _reads(self, path: Path) -> bool:
        """Whether a text at this path is read: the first of many texts; of what a text says only texts in JSON."""
        first = math.prod(each + 1 for each in path if isinstance(each, int)) <= READ
        return first and [each for each in path if derived((each,))] in ([], [JSON])

    def _add_complex(self, objects: list[complex], rows: Rows, path: Path) -> None:
        for whole, members, there in groups(objects, rows, self.runs, lambda o: o.imag == 0.0):
            if whole:  # equal to a real number, so it is one
                self._add_numbers([o.real for o in members], there, path)
                continue
            self.put((*path, "@real"), there, np.array([o.real for o in members], np.float64))
            self.put((*path, "@imag"), there, np.array([o.imag for o in members], np.float64))

    def _add_arrays(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        for (shape, kind, masked), members, there in groups(objects, rows, self.runs, array_kind):
            if shape == ():
                inner = [
                    ABSENT_ENTRY if masked and np.ma.getmaskarray(o)[()] else np.ma.getdata(o)[()] for o in members
                ]
                self.add([item(o) for o in inner], there, path, depth - 1)
                continue
            self.put((*path, LENGTH), there, float(shape[0]))
            self.leave(there, max(0, math.prod(shape) - WIDEST))
            if kind in "fiub" and not masked:
                self._put_entries(np.stack(members), there, path)
                continue
            cells = [cells_of(o) for o in members]
            for position, j in positions(shape, path, self.wanted).items():
                self.add([row[j] for row in cells], there, position, depth - 1)

    def _put_entries(self, found: Numbers, rows: Rows, path: Path) -> None:
        """The entries of arrays of numbers that have one shape, the run first."""
        flat = found.reshape(len(found), math.prod(found.shape[1:]))
        places = positions(found.shape[1:], path, self.wanted)
        if rows is not None or self.wide is not None or len(places) <= NARROW:
            for position, j in places.items():
                self.put(position, rows, reals(flat[:, j]))
            return
        self.wide = as_matrix(flat, places)

    def _add_sequences(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        if type(objects[0]) not in (list, tuple):
            holder: Any = list if isinstance(objects[0], list) else tuple
            objects = [list(holder.__iter__(o)) for o in objects]
        self.put((*path, LENGTH), rows, np.fromiter(map(len, objects), np.float64, len(objects)))
        # of lists in lists an entry whose positions, counted from 1, have a product of at most WIDEST, less where they
        # are deeper: a rule about the entry alone, and the number of entries is bounded
        above = [position + 1 for position in path if isinstance(position, int)]
        reach = WIDEST // (math.prod(above) * 4 ** max(0, len(above) - 1))
        parts = list(groups(objects, rows, self.runs, len))
        if self.wanted is None and sum(min(length, reach) for length, *_ in parts) > MOST_RAGGED:
            # what an event asks for is looked at whatever is beside it
            reach = min(reach, max(RAGGED, MOST_RAGGED // len(parts)))
        for length, members, there in parts:
            self.leave(there, max(0, length - reach))
            flat = flat_lists(members) if there is None and depth > 1 and NARROW < length <= reach else None
            if flat is not None:
                self._put_entries(flat, None, path)
                continue
            for j in range(min(length, reach)):
                if self.needs((*path, j)):
                    self.add(list(map(operator.itemgetter(j), members)), there, (*path, j), depth - 1)

    def _add_mappings(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.put((*path, LENGTH), rows, np.fromiter(map(dict.__len__, objects), np.float64, len(objects)))
        named = [{step(key): value for key, value in dict.items(o)} for o in objects]
        for name in self.chosen(named, (name for o in named for name in o), path, rows):
            held = [j for j, o in enumerate(named) if name in o]
            there = np.array(held, np.intp) if rows is None else rows[held]
            place = None if len(held) == self.runs else there
            self.add([named[j][name] for j in held], place, (*path, name), depth - 1)

    def _add_sets(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        holder: Any = set if isinstance(objects[0], set) else frozenset
        self.put((*path, LENGTH), rows, np.fromiter(map(holder.__len__, objects), np.float64, len(objects)))
        named = [{has(element) for element in holder.__iter__(o)} for o in objects]
        for name in self.chosen(named, sorted(set().union(*named)), path, rows):
            held = [j for j, o in enumerate(named) if name in o]
            there = np.array(held, np.intp) if rows is None else rows[held]
            self.put((*path, name), there, 1.0)  # a set that lacks the element has no such entry

    def _add_records(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        for names, members, there in groups(objects, rows, self.runs, lambda o: o.dtype.names):
            if names is None:
                self.put_tokens(path, there, (token("bytes", o.tobytes().hex()) for o in members), len(members))
                continue
            for name in names:
                self.add([item(o[name]) for o in members], there, (*path, step(name)), depth - 1)

    def _add_fields(self, objects: list[Any], names: list[str], rows: Rows, path: Path, depth: int) -> None:
        for name in names:
            self.add([getattr(o, name, None) for o in objects], rows, (*path, name), depth - 1)

    # --- arrays, the run as first axis ----------------------------------------------------------------------

    def add_array(self, part: Any, path: Path) -> None:
        """Adds one array of a batched result, or a list of objects."""
        if isinstance(part, list | tuple):
            check_length(len(part), self.runs)
            return self.add(list(part), None, path, DEEPEST)
        mask = np.ma.getmaskarray(part) if isinstance(part, np.ma.MaskedArray) else None
        try:
            values = np.ma.getdata(part) if mask is not None else np.asarray(part)
        except Exception as error:
            raise UnsoundAudit(
                f"a batched mechanism returned {type(part).__name__}, which is no array ({error})"
            ) from None
        if values.ndim == 0:
            raise UnsoundAudit(
                f"a batched mechanism returned a single {type(part).__name__} for {self.runs} runs; "
                "its result must have the run as first axis"
            )
        check_length(len(values), self.runs)
        if values.dtype.names:
            for name in values.dtype.names:
                self.add_array(
                    values[name] if mask is None else np.ma.array(values[name], mask=np.asarray(mask)[name]),
                    (*path, name),
                )
            return
        self.leave(None, max(0, math.prod(values.shape[1:]) - WIDEST))
        if values.dtype.kind in "fiub" and mask is None:
            return self._put_entries(values, None, path)
        flat = values.reshape(self.runs, math.prod(values.shape[1:]))
        hidden = None if mask is None else mask.reshape(flat.shape)
        for position, j in positions(values.shape[1:], path, self.wanted).items():
            self._add_cells(flat[:, j], None if hidden is None else hidden[:, j], position)

    def _add_cells(self, cells: Numbers, hidden: Bools | None, path: Path) -> None:
        if cells.dtype.kind not in "fiub":
            objects = [
                ABSENT_ENTRY if hidden is not None and hidden[i] else item for i, item in enumerate(cells.tolist())
            ]
            return self.add(objects, None, path, DEEPEST)
        if hidden is None or not hidden.any():
            return self.put(path, None, cells)
        self.labels[ABSENT.code] = ABSENT.label
        codes = np.where(hidden, np.uint64(ABSENT.code), np.uint64(0))
        self.columns[path] = (np.where(hidden, np.nan, cells), codes)


def check_length(got: int, runs: int) -> None:
    if got != runs:
        raise UnsoundAudit(
            f"a batched mechanism was asked for {runs} runs and returned {got} outputs; "
            "its result must have the run as first axis"
        )
