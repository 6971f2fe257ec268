"""From what a mechanism returned to the canonical form: the quick ways for plain outputs, columns for the rest.

What a run prints through `sys.stdout` and `sys.stderr`, or warns of, joins that; both go on to where they went.

`wanted` names the paths that will be looked at, so that certification touches nothing else. Every way gives an
output the same cells, for an event must be a function of one output, and not of what stands beside it.
"""

import math
import operator
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools
from dpaudit.base.values import type_name
from dpaudit.errors import DpAuditError, Interrupted, UnsoundAudit
from dpaudit.outputs.canonical import (
    ABSENT,
    CLASS,
    DTYPE,
    EXACT,
    NARROW,
    ORDER,
    REST,
    STATE,
    TYPE,
    WIDEST,
    Column,
    Numbers,
    Outputs,
    Path,
    Wanted,
    concatenate,
    in_pieces,
    is_metadata,
    positions,
    reals,
    token,
)
from dpaudit.outputs.columns import Builder
from dpaudit.outputs.exact import (
    ABSENT_ENTRY,
    DEEPEST,
    NUMBERS,
    Encoded,
    around,
    gaps,
    is_plain,
    kind_of_array,
)
from dpaudit.outputs.sheet import Sheet, beside_entries, beyond_singles, order_of
from dpaudit.outputs.spelled import state_of, step

LONGEST_PRINTED = 1 << 12  # characters of a run that are compared
FLOATS = {each for each in NUMBERS if issubclass(each, float | np.floating)}
DOUBLES, PLAIN_KEYS = np.dtype(np.float64), frozenset({str, int})
READ = frozenset({float, int, bool, np.float64, np.int64})  # numbers that are read as they come
FITS: dict[Any, Any] = dict.fromkeys((tuple, list)) | {  # and what they are read of: no part of it hides another
    dict: lambda output: PLAIN_KEYS.issuperset(map(type, output)),
    np.ndarray: lambda output: output.dtype is DOUBLES,
}


def encode_objects(objects: list[Any], wanted: Wanted = None) -> Outputs:
    """The canonical form of a list of outputs, one object a run; of each, a function of that output alone.

    Raises `UnsoundAudit` where an output cannot be read.

    >>> encode_objects([(1, "a"), (2, None)]).column((0,)).values
    array([1., 2.])
    """
    if Encoded in set(map(type, objects)):
        each = [o.outputs if type(o) is Encoded else encode_objects([o], wanted) for o in objects]
        return concatenate(each)
    with readable():
        quick = _quick(objects, wanted)
        if quick is not None:
            return quick
        builder = Builder(len(objects), wanted)
        builder.add(objects, None, (), DEEPEST)
        return builder.outputs()


@dataclass(frozen=True, slots=True)
class Lookup:
    """Where outputs of a type have the one number that is wanted of them, so that none is kept after its run."""

    kind: Any
    dtype: Any = np.float64  # of the numbers
    path: Path = ()
    fits: Callable[[Any], bool] | None = None  # what this denies of an output is to be encoded


def lookup_of(output: Any, wanted: Wanted) -> Lookup | None:
    """How outputs like this one are read; None where more than one number is wanted of them."""
    kind, path = type(output), next(iter(wanted or ()), ())
    if not wanted or _asks_beside(wanted):
        return None
    if kind in READ:
        return Lookup(kind, object if kind is int else kind)
    if kind not in FITS or len(wanted) > 1 or len(path) != 1 or step(path[0]) != path[0]:
        return None
    return Lookup(kind, path=path, fits=FITS[kind]) if kind is dict or _is_entry(path) else None


def _is_entry(path: Path) -> bool:
    """Whether it leads to one of the entries that are looked at."""
    return len(path) == 1 and isinstance(path[0], int) and 0 <= path[0] < WIDEST


def encode_batch(raw: Any, runs: int, wanted: Wanted = None) -> Outputs:
    """The canonical form of what a batched mechanism returned for `runs` runs.

    Raises `UnsoundAudit` where the result does not have the run as first axis.
    """
    if isinstance(raw, list):
        raw = [each.copy() if type(each) is np.ndarray else each for each in list.__iter__(raw)]  # rows of one matrix
        _check_length(len(raw), runs)
        return encode_objects(raw, wanted)
    if type(raw) is np.ndarray and raw.ndim == 1 and raw.dtype.kind in "fiub" and not _asks_beside(wanted):
        _check_length(len(raw), runs)
        if wanted is not None or _are_plain(raw):
            return Outputs(runs, {(): Column(raw.astype(reals(raw[:0]).dtype))})  # the next call may fill it again
    builder = Builder(runs, wanted)
    with readable():
        if isinstance(raw, tuple):
            builder.say((), CLASS, None, token("type", f"batch in a {type_name(type(raw))}"))
            for position, part in enumerate(tuple.__iter__(raw)):
                _add_array(builder, part, (position,))
        elif isinstance(raw, dict):
            builder.say((), CLASS, None, token("type", f"batch in a {type_name(type(raw))}"))
            builder.say((), ORDER, None, order_of(tuple(map(step, dict.keys(raw)))))
            for key, part in dict.items(raw):
                _add_array(builder, part, (step(key),))
        else:
            _add_array(builder, raw, ())
    return builder.outputs()


def _are_plain(numbers: Numbers) -> bool:
    """Whether these are doubles that float32 holds, without zeros and NaN, so that nothing is beside them."""
    with np.errstate(all="ignore"):
        plain = numbers.dtype == np.float64 and bool(numbers.all()) and not np.isnan(np.sum(numbers))
    return plain and not beyond_singles(numbers).any()


@contextmanager
def readable() -> Iterator[None]:
    """Whatever an output's own methods raise while it is read is no verdict, and never leaves the worker."""
    try:
        yield
    except (DpAuditError, Interrupted):
        raise
    except BaseException as error:
        raise UnsoundAudit(
            f"an output could not be read: one of its own methods raised {type(error).__name__}; return plain values"
        ) from None


def _asks_beside(wanted: Wanted) -> bool:
    return wanted is not None and any(map(is_metadata, wanted))


def _quick(objects: list[Any], wanted: Wanted) -> Outputs | None:
    """Plain numbers, single coordinates of plain tuples, or arrays; None where anything is out of the ordinary."""
    if not objects or _asks_beside(wanted):
        return None
    kind = type(objects[0])
    with suppress(TypeError, IndexError, OverflowError, ValueError):
        if kind in NUMBERS and wanted is None:
            return _with_types(objects)
        if kind in NUMBERS:
            return Outputs(len(objects), {(): Column(reals(_together(objects)))})
        if kind is tuple and wanted and set(map(type, objects)) == {tuple} and all(map(_is_entry, wanted)):
            cells = {path: list(map(operator.itemgetter(path[0]), objects)) for path in wanted}
            return Outputs(len(objects), {path: Column(reals(_together(cells[path]))) for path in cells})
        if kind is np.ndarray:
            return _quick_arrays(objects, wanted)
    return None


def _together(cells: list[Any]) -> Numbers:
    """The cells as numpy finds them; raises `TypeError` where it finds others than numbers among them."""
    numbers = np.array(cells) if NUMBERS.issuperset(map(type, cells)) else np.empty(0, object)
    if numbers.ndim != 1 or numbers.dtype.kind not in "fiub" or numbers.dtype.itemsize > 8:
        raise TypeError
    return numbers


def _with_types(objects: list[Any]) -> Outputs | None:
    """Plain numbers with what is beside them; None where numpy has rounded integers beside floats."""
    numbers, kinds = _together(objects), set(map(type, objects))
    if numbers.dtype.kind == "f" and not kinds <= FLOATS and (np.abs(numbers) >= EXACT).any():
        return None
    builder = Builder(len(objects), None)
    builder.put((), None, numbers)
    for kind in kinds - {float}:
        there = None if len(kinds) == 1 else np.flatnonzero([type(each) is kind for each in objects])
        builder.say((), CLASS if kind in (int, bool) else TYPE, there, token("type", type_name(kind)))
    beside_entries(builder, numbers[:, None], None, {(): 0})
    return builder.outputs()


def _quick_arrays(objects: list[Any], wanted: Wanted) -> Outputs | None:
    if not 0 < objects[0].size <= WIDEST or operator.countOf(map(type, objects), np.ndarray) != len(objects):
        return None
    if wanted is None and not all(map(is_plain, objects)):
        return None
    one = objects[0].ndim == 1 and len(set(map(id, map(operator.attrgetter("dtype"), objects)))) == 1
    kinds = {""} if wanted is not None else set(map(kind_of_array, objects[:1] if one else objects))
    if len(kinds) > 1:
        return None
    shape, pieces = objects[0].shape, [objects]
    if one and objects[0].size > NARROW and {shape} == set(map(operator.attrgetter("shape"), objects)):
        pieces = in_pieces(objects, objects[0].size)  # an array of all may be too large
    first = np.array(pieces[0])  # a ValueError where shapes differ
    if first.dtype.kind not in "fiub":
        return None
    builder = Builder(len(objects), wanted)
    builder.add_matrix(shape, chain([first], map(np.array, pieces[1:])), kinds.pop())
    return builder.outputs()


def _add_array(builder: Builder, part: Any, path: Path) -> None:
    if isinstance(part, list | tuple):
        _check_length(len(part), builder.runs)
        return builder.add(list(part), None, path, DEEPEST)
    mask = np.ma.getmaskarray(part) if isinstance(part, np.ma.MaskedArray) else None
    try:
        values = np.ma.getdata(part) if mask is not None else np.asarray(part)
    except Exception as error:
        raise UnsoundAudit(f"a batched mechanism returned {type(part).__name__}, which is no array ({error})") from None
    if values.ndim == 0:
        raise UnsoundAudit(
            f"a batched mechanism returned a single {type(part).__name__} for {builder.runs} runs; "
            "its result must have the run as first axis"
        )
    _check_length(len(values), builder.runs)
    if values.dtype.names:
        if gaps(values.dtype).size:
            builder.left_out(path, None, [around(row) for row in values], "memory")
        for name in values.dtype.names:
            field = values[name] if mask is None else np.ma.array(values[name], mask=np.asarray(mask)[name])
            _add_array(builder, field, (*path, name))
        return
    if math.prod(values.shape[1:]) > WIDEST:
        builder.leave(None, math.prod(values.shape[1:]) - WIDEST)
        builder.left_out(path, None, list(values.reshape(builder.runs, -1)[:, WIDEST:]), "entries")
    if builder.besides and type(part) is not np.ndarray:
        _say_holder(builder, part, path, mask)
    if kind := kind_of_array(values):
        builder.say(path, DTYPE, None, token("dtype", kind))
    if values.dtype.kind in "fiub" and mask is None:
        shape = values.shape[1:]
        return builder.put_entries(shape, in_pieces(values, math.prod(shape)), None, path)
    flat = values.reshape(builder.runs, math.prod(values.shape[1:]))
    hidden = None if mask is None else mask.reshape(flat.shape)
    for position, j in positions(values.shape[1:], path, builder.sought).items():
        _add_cells(builder, flat[:, j], None if hidden is None else hidden[:, j], position)


def _add_cells(builder: Builder, cells: Numbers, hidden: Bools | None, path: Path) -> None:
    if cells.dtype.kind not in "fiub":
        objects = [ABSENT_ENTRY if hidden is not None and hidden[i] else item for i, item in enumerate(cells.tolist())]
        return builder.add(objects, None, path, DEEPEST)
    if builder.besides and hidden is not None:
        beside_entries(builder, np.where(hidden, cells.dtype.type(0), cells)[:, None], None, {path: 0})
        under = hidden & ((cells != 0) | np.signbit(cells))  # of 0, as most have it, absence tells all
        builder.mark(under[:, None], cells[:, None], None, {path: 0}, REST)
    if hidden is None or not hidden.any():
        return builder.put(path, None, cells)
    builder.labels[ABSENT.code] = ABSENT.label
    codes = np.where(hidden, np.uint64(ABSENT.code), np.uint64(0))
    builder.columns[path] = (np.where(hidden, np.nan, cells), codes)


def _say_holder(builder: Builder, part: Any, path: Path, mask: Bools | None) -> None:
    """What holds the outputs of a batch where that is no plain array: a table has labels, a masked array a filling."""
    state = {} if isinstance(part, np.ndarray) else state_of(part) or {}
    index = state.pop("index", None)
    if index is not None and len(index) == builder.runs:
        builder.add(index, None, (*path, STATE, "index"), DEEPEST)
    filled = f" filled with {part.fill_value!r}" if isinstance(part, np.ma.MaskedArray) else ""
    label = f"batch in a {type_name(type(part))}{filled}{state or ''}"
    builder.say(path, CLASS, None, token("type", label))


def _check_length(got: int, runs: int) -> None:
    if got != runs:
        raise UnsoundAudit(
            f"a batched mechanism was asked for {runs} runs and returned {got} outputs; "
            "its result must have the run as first axis"
        )


class Printed(threading.local):
    """What was printed in this thread since it was last taken."""

    text = ""

    def take(self) -> str:
        """The text, which is none from then on."""
        text, self.text = self.text, ""
        return text


PRINTED = Printed()
_LOCK = threading.Lock()
_BEFORE: list[Any] = []  # what was there before the threads that listen began, one entry for each of them
_SHOWN: set[tuple[Any, ...]] = set()  # warnings that were shown while somebody listened


class _Stream:
    """A stream that keeps what goes through it: text, and the bytes that are written past its text."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: Any) -> Any:
        with suppress(TypeError, ValueError):  # what is neither is left to the stream
            _heard("".join(("", text)) if isinstance(text, str) else bytes(memoryview(text)).decode("latin-1"))
        return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        return _Stream(self._stream.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _heard(text: str) -> None:
    whole = "".join((PRINTED.text, text))
    if len(whole) > LONGEST_PRINTED:  # a digest stands for the rest, and for what it stood for before
        whole = whole[: LONGEST_PRINTED - 64] + sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    PRINTED.text = whole


@contextmanager
def listening(wanted: Wanted) -> Iterator[bool]:
    """Keeps what is printed in `PRINTED` where the rest of outputs is asked for; whether it does."""
    if wanted is not None and (REST,) not in wanted:
        yield False
        return
    with _LOCK:
        if not _BEFORE:
            _BEFORE.append((sys.stdout, sys.stderr, filters := warnings.catch_warnings()))
            filters.__enter__()
            warnings.simplefilter("always", append=True)  # else Python shows a warning once, so in one run only
            warnings.showwarning = partial(_warned, warnings.showwarning)
            # a closed stream is None, which print passes over in silence
            sys.stdout, sys.stderr = (each and _Stream(each) for each in (sys.stdout, sys.stderr))
        else:
            _BEFORE.append(_BEFORE[0])
    PRINTED.take()
    try:
        yield True
    finally:
        with _LOCK:
            out, err, filters = _BEFORE.pop()
            if not _BEFORE:
                filters.__exit__(None, None, None)
                sys.stdout = out if isinstance(sys.stdout, _Stream) else sys.stdout
                sys.stderr = err if isinstance(sys.stderr, _Stream) else sys.stderr


def _warned(show: Any, message: Any, category: Any, filename: str, lineno: int, *more: Any, **named: Any) -> None:
    before, text = PRINTED.take(), f"{category.__name__}: {message}"
    if (text, filename, lineno) not in _SHOWN:
        _SHOWN.add((text, filename, lineno))
        show(message, category, filename, lineno, *more, **named)
    PRINTED.text = before
    _heard(text)  # and not as it is shown


def with_printed(outputs: Outputs, text: str) -> Outputs:
    """The outputs of a call that printed this: it joins what has no column."""
    sheet = Sheet(outputs.runs, frozenset({(REST,)}))
    sheet.add_rest((), None, outputs.column((REST,)).tokens ^ np.uint64(token("printed", text).code), "print")
    rest, notes = sheet.outputs(), {f"{REST} print": "what a run prints or warns of"}
    columns = {**{path: outputs.columns[path] for path in outputs.columns}, (REST,): rest.column((REST,))}
    labels = {**outputs.labels, **rest.labels}
    return Outputs(outputs.runs, columns, labels, outputs.complete, outputs.unseen, {**outputs.notes, **notes})
