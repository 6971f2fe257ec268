"""Columns from objects and arrays: each cell a function of its output alone, whatever else is in the batch."""

import dataclasses
import enum
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from dpaudit.base.values import type_name
from dpaudit.outputs import exact
from dpaudit.outputs.canonical import (
    ABSENT,
    CLASS,
    DTYPE,
    KEY,
    LENGTH,
    MESSAGE,
    NARROW,
    NONE,
    ORDER,
    OVERSIZE,
    PRINTED_AS,
    STATE,
    TYPE,
    WIDEST,
    Failure,
    Numbers,
    Path,
    Token,
    derived,
    flat_lists,
    in_pieces,
    positions,
    reals,
    token,
)
from dpaudit.outputs.exact import ABSENT_ENTRY, Rows, at, base, groups, item, own_words, words_of
from dpaudit.outputs.sheet import (
    MOST_KEYS,
    Sheet,
    beside_entries,
    beside_numbers,
    order_of,
    read_names,
    shows_everything,
    types_in,
)
from dpaudit.outputs.spelled import PRINTED, attached, has, state_of, step
from dpaudit.outputs.text import JSON, readings, text_of, unpacked

RAGGED, MOST_RAGGED = 1 << 8, 1 << 17  # entries of lists of many lengths that search looks at: of each at least, of all
MOST_STATES, MOST_OF_STATE = 2, 1 << 10  # objects in objects that are looked into, and entries of what they hold
READ = 1 << 4  # texts of a list that are read


class Builder(Sheet):
    """Gathers the columns of one batch from what a mechanism returned."""

    # --- objects, one a run -------------------------------------------------------------------------------

    def add(self, objects: list[Any], rows: Rows, path: Path, depth: int, *, typed: bool = False) -> None:
        """Adds the objects found at a path in the given rows; `typed` where their container implies their types."""
        if not objects or not self.needs(path):
            return
        if depth == 0:
            self.leave(rows, 1)
            self.left_out(path, rows, objects, "nested contents")
            return self.put_token(path, rows, OVERSIZE)
        if STATE in path and any(
            too_large := [path.count(STATE) > MOST_STATES or exact.size_of(o) > MOST_OF_STATE for o in objects]
        ):
            # an object may hold all of a library: of large parts there is only the digest
            parted = groups([*zip(objects, too_large, strict=True)], rows, itemgetter(1))
            for large, members, there in sorted(parted, key=itemgetter(0), reverse=True):
                parts = [part for part, _ in members]
                if large:
                    self.left_out(path, there, parts, "contents")
                    self.put_token(path, there, OVERSIZE)
                else:
                    self.add(parts, there, path, depth, typed=typed)
            return
        kinds = set(map(type, objects))
        if kinds <= {float, int, bool}:
            if kinds != {float} and not typed:
                self._say_types(objects, kinds, rows, path, CLASS if path == () else TYPE)
            return self._add_numbers(objects, rows, path)
        if len(kinds) > 1:
            for _, members, there in groups(objects, rows, type):
                self.add(members, there, path, depth, typed=typed)
            return
        (kind,) = kinds
        reader = reader_of(kind)
        if not typed and (path == () or not reader.implied):
            self._say_types(objects, kinds, rows, path, TYPE)
        reader.value(self, objects, rows, path, depth)
        if reader.words and (path or not reader.opaque) and self.needs((*path, PRINTED_AS)):
            words = (token("text", words_of(each)) for each in objects)
            self.put_tokens((*path, PRINTED_AS), rows, words, len(objects))
        if reader.state is not None and self.needs((*path, STATE)) and not derived(path):
            self._add_state(list(map(reader.state, objects)), objects, rows, path, depth)

    def _say_types(self, objects: list[Any], kinds: set[Any], rows: Rows, path: Path, step: str) -> None:
        if self.tells(path, step):
            named = {kind: ABSENT if kind in (float, Failure) else token("type", type_name(kind)) for kind in kinds}
            one = named[next(iter(kinds))] if len(kinds) == 1 else None
            self.say(path, step, rows, one or [named[type(each)] for each in objects])

    def _add_state(
        self, states: Sequence[dict[str, Any] | None], objects: list[Any], rows: Rows, path: Path, depth: int
    ) -> None:
        """What objects hold beside their value, as entries by name; what cannot be read is counted."""
        for name in dict.fromkeys(name for state in states if state for name in state):
            there = [place for place, state in enumerate(states) if state and name in state]
            parts = [(states[place] or {})[name] for place in there]
            self.add(parts, self.all_or(rows, there), (*path, STATE, step(name)), depth - 1)
        for place, state in enumerate(states):
            if state is None:
                self.unreadable(path, at(rows, [place]), f"contents of a {type_name(type(objects[place]))}")

    def _add_failures(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.notes = {failure.token.label: failure.note for failure in reversed(objects) if failure.note} | self.notes
        self.put_tokens(path, rows, (failure.token for failure in objects), len(objects))
        for speaks, members, there in groups(objects, rows, lambda failure: bool(failure.message)):
            if speaks and self.needs((*path, MESSAGE)):
                self._add_text([failure.message for failure in members], there, (*path, MESSAGE), depth)

    def _add_numbers(self, objects: list[Any], rows: Rows, path: Path, depth: int = 0) -> None:
        values = np.fromiter(map(exact.real, objects), np.float64, len(objects))
        self.put(path, rows, values)
        if self.besides:
            beside_numbers(self, objects, values, rows, path)

    def _add_text(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        texts = [str.__str__(o) for o in objects]
        self.put_tokens(path, rows, (token("text", each) for each in texts), len(objects))
        self._add_readings(texts, rows, path, depth)

    def _add_bytes(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        holder: Any = next(each for each in (bytes, bytearray, memoryview) if isinstance(objects[0], each))
        contents = [str(holder.hex(o)) for o in objects]
        if isinstance(objects[0], memoryview):
            shapes = [
                ABSENT if (o.format, o.ndim) == ("B", 1) else token("view", f"{o.format} {o.shape}") for o in objects
            ]
            self.say(path, DTYPE, rows, shapes)
        self.put_tokens(path, rows, (token("bytes", each) for each in contents), len(objects))
        if not self._reads(path):
            return
        pairs = [(text_of(content), content) for content in map(bytes.fromhex, contents)]
        for is_text, members, there in groups(pairs, rows, lambda each: each[0] is not None):
            if is_text:
                self._add_readings([str(words) for words, _ in members], there, path, depth)
                continue
            for _, alike, place in groups([content for _, content in members], there, len):
                for steps, found_in in unpacked(alike, lambda steps: self.shows((*path, *steps))):
                    self.put((*path, *steps), place, reals(found_in))

    def _add_readings(self, texts: list[str], rows: Rows, path: Path, depth: int) -> None:
        """Beside a text what it says, in columns that add nothing to what it is."""
        if not self._reads(path):
            return
        for steps, there, values in readings(texts, lambda step: self.needs((*path, step))):
            self.add(values, self.all_or(rows, there), (*path, *steps), depth - 1)

    def _reads(self, path: Path) -> bool:
        """Whether a text at this path is read: the first of many texts; of what a text says only texts in JSON."""
        first = math.prod(each + 1 for each in path if isinstance(each, int)) <= READ
        return first and [each for each in path if derived((each,))] in ([], [JSON])

    def _add_times(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.say(path, DTYPE, rows, [token("dtype", o.dtype.str) for o in objects])  # which its text need not tell
        kind: Any = type(objects[0])
        self._add_text([base(kind, "__str__").__str__(o) for o in objects], rows, path, depth)

    def _add_complex(self, numbers: list[Any], rows: Rows, path: Path, depth: int) -> None:
        kind: Any = type(numbers[0])
        objects: list[complex] = list(map(base(kind, "__complex__").__complex__, numbers))
        if issubclass(kind, np.clongdouble):
            low = [[float(part - float(part)) for part in (o.real, o.imag)] for o in numbers]
            self.left_out(path, rows, low, "bits")
        for whole, members, there in groups(objects, rows, lambda o: o.imag == 0.0):
            for part, floats in (("@real", [o.real for o in members]), ("@imag", [o.imag for o in members])):
                values = np.array(floats, np.float64)
                if not whole:
                    self.put((*path, part), there, values)
                elif part == "@real":  # equal to a real number, so it is one
                    self.put(path, there, values)
                if self.besides:
                    beside_entries(self, values[:, None], there, {(*path, part): 0})

    def _add_arrays(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.say_around(objects, rows, path)
        for (shape, kind, masked), members, there in groups(objects, rows, exact.array_kind):
            if kind:
                self.say(path, DTYPE, there, token("dtype", kind))
            if shape == ():
                inner = [
                    ABSENT_ENTRY if masked and np.ma.getmaskarray(o)[()] else np.ma.getdata(o)[()] for o in members
                ]
                self.add([item(o) for o in inner], there, path, depth - 1, typed=True)
                continue
            self.put((*path, LENGTH), there, float(shape[0]))
            if math.prod(shape) > WIDEST:
                self.leave(there, math.prod(shape) - WIDEST)
                self.left_out(path, there, [np.ma.getdata(o).reshape(-1)[WIDEST:] for o in members], "entries")
            if masked:
                self._say_masked(members, there, path)
            if members[0].dtype.kind in "fiub" and not masked:
                self.put_entries(shape, map(np.stack, in_pieces(members, math.prod(shape))), there, path)
                continue
            cells = [exact.cells_of(o) for o in members]
            for position, j in positions(shape, path, self.sought).items():
                self.add([row[j] for row in cells], there, position, depth - 1)

    def add_matrix(self, shape: tuple[int, ...], pieces: Iterable[Numbers], kind: str) -> None:
        """Adds arrays of one shape and kind, one a run, which come in stretches of runs."""
        self.say((), TYPE, None, token("type", "numpy.ndarray"))
        if kind:
            self.say((), DTYPE, None, token("dtype", kind))
        if shape:
            self.put((LENGTH,), None, float(shape[0]))
        self.put_entries(shape, pieces, None, ())

    def _say_masked(self, members: Sequence[Any], rows: Rows, path: Path) -> None:
        """What stands under a mask, and would stand for it."""
        filled = [np.asarray(o.fill_value) for o in members]
        under = [np.ma.getdata(o)[np.ma.getmaskarray(o)] if not o.dtype.names else np.ma.getdata(o) for o in members]
        hard = [o.hardmask for o in members]
        self.left_out(path, rows, [*zip(filled, under, hard, strict=True)], "masked entries")

    def put_entries(self, shape: tuple[int, ...], pieces: Iterable[Numbers], rows: Rows, path: Path) -> None:
        """The entries of arrays of numbers of this shape, which come in stretches of runs, or whole if they are few."""
        places = positions(shape, path, self.sought)
        chosen, entries, start = list(places.values()), math.prod(shape), 0
        runs, matrix = self.runs if rows is None else len(rows), np.empty(0)
        for piece in pieces:
            flat = piece.reshape(len(piece), entries)
            if self.besides:
                whole = len(flat) == runs
                here = rows if whole else np.arange(start, start + len(flat)) if rows is None else rows[start:]
                beside_entries(self, flat, here, places)
            if entries <= NARROW:
                for position, j in places.items():
                    self.put(position, rows, reals(flat[:, j]))
                return
            if not start:
                matrix = np.empty((len(chosen), runs), reals(flat[:0]).dtype)
            matrix[:, start : start + len(flat)] = (flat if len(chosen) == entries else flat[:, chosen]).T
            start += len(flat)
        if rows is None and self.wide is None and len(chosen) > NARROW:
            self.wide = places if len(chosen) == entries else {each: row for row, each in enumerate(places)}, matrix
            return
        for position, row in zip(places, matrix, strict=True):
            self.put(position, rows, row)

    def _add_sequences(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        objects_kind: Any = type(objects[0])
        if objects_kind not in (list, tuple):
            holder: Any = list if isinstance(objects[0], list) else tuple
            objects = [list(holder.__iter__(o)) for o in objects]
        self.put((*path, LENGTH), rows, np.fromiter(map(len, objects), np.float64, len(objects)))
        # of lists in lists an entry whose positions, counted from 1, have a product of at most WIDEST, less where they
        # are deeper: a rule about the entry alone, and the number of entries is bounded
        above = [abs(position) + 1 for position in path if isinstance(position, int)]
        rule = reach = WIDEST // (math.prod(above) * 4 ** max(0, len(above) - 1))
        if hasattr(objects_kind, "_fields"):
            self.say(path, DTYPE, rows, token("fields", ", ".join(map(str, objects_kind._fields))))
        parts = list(groups(objects, rows, len))
        if self.wanted is None and sum(min(length, reach) for length, *_ in parts) > MOST_RAGGED:
            # what an event asks for is looked at whatever is beside it
            reach = min(reach, max(RAGGED, MOST_RAGGED // len(parts)))
        for length, members, there in parts:
            self.leave(there, max(0, length - reach))
            if length > rule:
                self.left_out(path, there, [each[rule:] for each in members], "entries")
            flat = flat_lists(members) if there is None and depth > 1 and NARROW < length <= reach else None
            if flat is not None:
                self.put_entries((length,), in_pieces(flat[0], length), None, path)
                if flat[1] != {float} and self.besides:
                    self._say_of_lists(members, length, path)
                continue
            for j in range(min(length, reach)):
                if self.needs((*path, j)):
                    self.add(list(map(operator.itemgetter(j), members)), there, (*path, j), depth - 1)

    def _say_of_lists(self, members: list[Any], length: int, path: Path) -> None:
        """Beside the numbers of long lists of one length, their types."""
        each = list(map(type, chain.from_iterable(members)))
        for kind in set(each) - {float}:
            there = np.fromiter((one is kind for one in each), np.bool_, len(each)).reshape(len(members), length)
            for place, j in positions((length,), path, self.sought).items():
                if there[:, j].any():
                    self.say(place, TYPE, np.flatnonzero(there[:, j]), token("type", type_name(kind)))

    def _add_mappings(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.put((*path, LENGTH), rows, np.fromiter(map(dict.__len__, objects), np.float64, len(objects)))
        named = [{step(key): value for key, value in dict.items(o)} for o in objects]
        if self.besides:
            self._say_of_keys(objects, named, rows, path)
        for name in self.chosen(named, (name for o in named for name in o), path, rows):
            owners = [j for j, o in enumerate(named) if name in o]
            self.add([named[j][name] for j in owners], self.all_or(rows, owners), (*path, name), depth - 1)

    def _say_of_keys(self, objects: list[Any], named: list[dict[int | str, Any]], rows: Rows, path: Path) -> None:
        """The order of keys, the types of those that are not text or whole numbers, and keys that share a name."""
        if self.tells(path, ORDER):
            orders = {keys: order_of(keys) for keys in set(map(tuple, named))}
            self.say(path, ORDER, rows, [orders[tuple(o)] for o in named] if len(orders) > 1 else orders.popitem()[1])
        plain = {str, int}.issuperset(map(type, chain.from_iterable(map(dict.keys, objects))))
        if plain and list(map(dict.__len__, objects)) == (sizes := list(map(len, named))) and max(sizes) <= MOST_KEYS:
            return
        for place, o in enumerate(objects):
            for key in dict.keys(o) if not {str, int}.issuperset(map(type, dict.keys(o))) else ():
                if type(key) not in (str, int):
                    self.say((*path, step(key)), KEY, at(rows, [place]), token("type", types_in(key)))
            if len(named[place]) < dict.__len__(o) or len(named[place]) > MOST_KEYS:
                self.left_out(path, at(rows, [place]), [o], "keys")

    def _add_sets(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        holder: Any = set if isinstance(objects[0], set) else frozenset
        self.put((*path, LENGTH), rows, np.fromiter(map(holder.__len__, objects), np.float64, len(objects)))
        named = [{has(element) for element in holder.__iter__(o)} for o in objects]
        for place, o in enumerate(objects if self.besides else ()):
            for element in holder.__iter__(o):
                if type(element) not in (str, int):
                    self.say((*path, has(element)), KEY, at(rows, [place]), token("type", types_in(element)))
            if len(named[place]) < holder.__len__(o) or len(named[place]) > MOST_KEYS:
                self.left_out(path, at(rows, [place]), [o], "elements")
            if [*map(id, holder.__iter__(o))] != [*map(id, holder(sorted(holder.__iter__(o), key=has)))]:
                order = token("order", repr([*map(has, holder.__iter__(o))])).code  # which shows how the set was made
                self.add_rest(path, at(rows, [place]), np.array([order], np.uint64), "order of elements")
        for name in self.chosen(named, sorted(set().union(*named)), path, rows):
            owners = [j for j, o in enumerate(named) if name in o]
            self.put((*path, name), at(rows, owners), 1.0)  # a set that lacks the element has no such entry

    def _add_records(self, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
        self.say_around(objects, rows, path)
        for names, members, there in groups(objects, rows, lambda o: o.dtype.names):
            self.say(path, DTYPE, there, [token("dtype", str(o.dtype)) for o in members])
            if names is None:
                self.put_tokens(path, there, (token("bytes", o.tobytes().hex()) for o in members), len(members))
                continue
            for name in names:
                self.add([item(o[name]) for o in members], there, (*path, step(name)), depth - 1)


Read = Callable[[Builder, list[Any], Rows, Path, int], None]


@dataclass(frozen=True, slots=True)
class Reader:
    """How outputs of one type are read."""

    value: Read  # adds what they are
    implied: bool  # an entry's value tells its type
    opaque: bool  # nothing looks into it: it is no output of its own, and a part of one if it prints itself
    words: bool  # their class prints them in a way of its own
    state: Callable[[Any], dict[str, Any] | None] | None  # what they hold beside their value


def _constant(one: Token) -> Read:
    return lambda builder, objects, rows, path, depth: builder.put_token(path, rows, one)


def _each_as(read: Read, part: Callable[[Any], Any]) -> Read:
    return lambda builder, objects, rows, path, depth: read(builder, list(map(part, objects)), rows, path, depth)


def _fields(builder: Builder, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
    for each in dataclasses.fields(type(objects[0])):
        builder.add([getattr(o, each.name, None) for o in objects], rows, (*path, each.name), depth - 1)


def _opaque(builder: Builder, objects: list[Any], rows: Rows, path: Path, depth: int) -> None:
    builder.put_token(path, rows, token("object", type_name(type(objects[0]))))


def _name_of(member: enum.Enum) -> str:
    return f"{enum.Enum.__str__(member)} {words_of(member)}" if own_words(type(member)) else str(member)


_printed = _each_as(Builder._add_text, str)
_holding = _each_as(Builder._add_arrays, np.array)  # copies: what holds them is read by name
IMPLIED = frozenset({float, str, bytes, list, type(None)})  # types that a value of an entry tells by itself
ONE_TYPE: dict[Any, Read] = {
    Failure: Builder._add_failures,
    type(None): _constant(NONE),
    exact.Absent: _constant(ABSENT),
    type(np.ma.masked): _constant(ABSENT),
    np.ndarray: Builder._add_arrays,
}
OF_TYPES: tuple[tuple[Any, Read], ...] = (  # and their subclasses; the order is the definition of the canonical form
    (str, Builder._add_text),
    ((bytes, bytearray, memoryview), Builder._add_bytes),
    ((np.datetime64, np.timedelta64), Builder._add_times),
    ((complex, np.complexfloating), Builder._add_complex),
    ((numbers.Real, np.bool_, Decimal), Builder._add_numbers),
    (enum.Enum, _each_as(Builder._add_text, _name_of)),
    (np.ma.MaskedArray, Builder._add_arrays),
    (np.ndarray, _each_as(Builder._add_arrays, lambda array: np.ndarray.view(array, np.ndarray))),
    ((list, tuple), Builder._add_sequences),
    (dict, Builder._add_mappings),
    ((set, frozenset), Builder._add_sets),
    (np.void, Builder._add_records),
)


@lru_cache(maxsize=1 << 10)
def reader_of(kind: Any) -> Reader:
    """The reader of a type."""
    value = ONE_TYPE.get(kind) or next((each for types, each in OF_TYPES if issubclass(kind, types)), _opaque)
    if value is _opaque:
        others = {_printed: exact.module_of(kind) in PRINTED, _fields: dataclasses.is_dataclass(kind)}
        others[_holding] = hasattr(kind, "__array__")
        value = next((each for each, fits in others.items() if fits), _opaque)
    state: Any = None
    if value in (_opaque, _holding):
        state = state_of
    elif not shows_everything(kind):
        state = partial(attached, known=read_names(kind))
    return Reader(value, kind in IMPLIED, value is _opaque, own_words(kind), state)
