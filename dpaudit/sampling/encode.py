"""From what a mechanism returned to the canonical form: whole columns at once, whatever the outputs are.

Objects are grouped by type, containers by their shape, and each group becomes columns in a few passes of
C code. `wanted` names the paths that will be looked at, so that certification touches nothing else.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.errors import UnsoundAudit
from dpaudit.sampling.outputs import (
    ABSENT,
    LENGTH,
    NONE,
    OVERSIZE,
    TYPE,
    Codes,
    Column,
    Numbers,
    Outputs,
    Path,
    Token,
    token,
)

DEEPEST, WIDEST = 6, 512  # nesting, and entries of one sequence, that are looked at
MOST_KEYS = 2048  # different keys or elements of a batch that have a column
Wanted = frozenset[Path] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Stands where an output would: the run raised, or ran out of time."""

    token: Token


def encode_objects(objects: list[Any], wanted: Wanted = None) -> Outputs:
    """The canonical form of a list of outputs, one object a run.

    >>> encode_objects([(1, "a"), (2, None)]).column((0,)).values
    array([1., 2.])
    """
    quick = _quick(objects, wanted)
    if quick is not None:
        return quick
    builder = _Builder(len(objects), wanted)
    builder.add(objects, None, (), DEEPEST)
    return builder.outputs()


def encode_batch(raw: Any, runs: int, wanted: Wanted = None) -> Outputs:
    """The canonical form of what a batched mechanism returned for `runs` runs.

    Raises `UnsoundAudit` where the result does not have the run as first axis.
    """
    if isinstance(raw, list):
        _check_length(len(raw), runs)
        return encode_objects(raw, wanted)
    if isinstance(raw, np.ndarray) and raw.ndim == 1 and raw.dtype.kind in "fiub" and type(raw) is np.ndarray:
        _check_length(len(raw), runs)
        return Outputs(runs, {(): Column(raw)})
    builder = _Builder(runs, wanted)
    if isinstance(raw, tuple):
        for position, part in enumerate(raw):
            builder.add_array(part, (position,))
    elif isinstance(raw, dict):
        for key, part in raw.items():
            builder.add_array(part, (_step(key),))
    else:
        builder.add_array(raw, ())
    return builder.outputs()


def _check_length(got: int, runs: int) -> None:
    if got != runs:
        raise UnsoundAudit(
            f"a batched mechanism was asked for {runs} runs and returned {got} outputs; "
            "its result must have the run as first axis"
        )


def _quick(objects: list[Any], wanted: Wanted) -> Outputs | None:
    """Plain numbers, or single coordinates of plain tuples; None where anything is out of the ordinary."""
    if not objects or (wanted is not None and (TYPE,) in wanted):
        return None
    kind = type(objects[0])
    try:
        if kind in (float, int, bool) or issubclass(kind, np.number):
            return Outputs(len(objects), {(): Column(np.frombuffer(array("d", objects)))})
        if kind is tuple and wanted is not None and all(len(path) == 1 and isinstance(path[0], int) for path in wanted):
            if operator.countOf(map(type, objects), tuple) != len(objects):
                return None
            found = {path: list(map(operator.itemgetter(path[0]), objects)) for path in wanted}
            columns = {path: Column(np.frombuffer(array("d", cells))) for path, cells in found.items()}
            return Outputs(len(objects), columns)
        if kind is np.ndarray:
            return _quick_arrays(objects, wanted)
    except (TypeError, IndexError, OverflowError, ValueError):
        return None
    return None


def _quick_arrays(objects: list[Any], wanted: Wanted) -> Outputs | None:
    if not 0 < objects[0].size <= WIDEST or operator.countOf(map(type, objects), np.ndarray) != len(objects):
        return None
    together = np.array(objects)  # a ValueError where shapes differ
    if together.dtype.kind not in "fiub":
        return None
    shape, flat = together.shape[1:], together.reshape(len(objects), -1)
    places = enumerate(_positions(shape))
    columns: dict[Path, Column] = {path: Column(flat[:, j]) for j, path in places if wanted is None or path in wanted}
    if shape and (wanted is None or (LENGTH,) in wanted):
        columns[(LENGTH,)] = Column(np.broadcast_to(np.float64(shape[0]), (len(objects),)))
    return Outputs(len(objects), columns)


def _positions(shape: Sequence[int]) -> list[Path]:
    return [tuple(int(i) for i in index) for index in np.ndindex(*shape)]


def _step(key: Any) -> int | str:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, int) or (isinstance(key, float) and key.is_integer()):
        return int(key)  # equal keys are one step
    return repr(key)[:LONGEST_STEP]


LONGEST_STEP = 80


class _Builder:
    """Gathers the columns of one batch; cells that nobody filled are absent."""

    def __init__(self, runs: int, wanted: Wanted) -> None:
        self.runs = runs
        self.wanted = wanted
        self.columns: dict[Path, tuple[npt.NDArray[np.float64], Codes]] = {}
        self.whole: dict[Path, Column] = {}
        self.labels: dict[int, str] = {}
        self.complete = True

    def outputs(self) -> Outputs:
        partial = {path: Column(values, codes) for path, (values, codes) in self.columns.items()}
        return Outputs(self.runs, {**self.whole, **partial}, self.labels, self.complete)

    def chosen(self, steps: Iterable[Any], path: Path) -> list[Any]:
        """The keys or elements of a batch that have a column, each once."""
        found = [each for each in dict.fromkeys(steps) if self.needs((*path, _step(each)))]
        self.complete = self.complete and len(found) <= MOST_KEYS
        return found[:MOST_KEYS]

    def needs(self, path: Path) -> bool:
        """Whether the path, or one that leads through it, will be looked at."""
        return self.wanted is None or any(want[: len(path)] == path for want in self.wanted)

    def put(self, path: Path, rows: npt.NDArray[np.intp] | None, values: Any, codes: Any = 0) -> None:
        """Fills cells: all rows of a batch at once where `rows` is None."""
        if not self.needs(path):
            return
        if path not in self.columns:
            if rows is None and isinstance(codes, int) and codes == 0 and path not in self.whole:
                self.whole[path] = Column(np.broadcast_to(np.asarray(values), (self.runs,)))
                return
            self.columns[path] = (np.full(self.runs, np.nan), np.full(self.runs, ABSENT.code, np.uint64))
            self.labels[ABSENT.code] = ABSENT.label
        target_values, target_codes = self.columns[path]
        where = slice(None) if rows is None else rows
        target_values[where] = values
        target_codes[where] = codes

    def put_token(self, path: Path, rows: npt.NDArray[np.intp] | None, found: Token) -> None:
        self.labels[found.code] = found.label
        self.put(path, rows, np.nan, np.uint64(found.code))

    def put_tokens(self, path: Path, rows: npt.NDArray[np.intp] | None, found: Iterable[Token], count: int) -> None:
        tokens = list(found)
        for each in set(tokens):
            self.labels[each.code] = each.label
        self.put(path, rows, np.nan, np.fromiter((each.code for each in tokens), np.uint64, count))

    # --- objects, one a run -------------------------------------------------------------------------------

    def add(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path, depth: int) -> None:
        """Adds the objects found at a path in the given rows."""
        if not objects or not self.needs(path):
            return
        if depth == 0:
            return self.put_token(path, rows, OVERSIZE)
        kinds = set(map(type, objects))
        if kinds <= {float, int, bool}:
            return self._add_numbers(objects, rows, path)
        if path == () and rows is None and self.needs((TYPE,)):
            if len(kinds) == 1:
                self.put_token((TYPE,), None, _type_token(next(iter(kinds))))
            else:
                self.put_tokens((TYPE,), None, map(_type_token, map(type, objects)), len(objects))
        if len(kinds) > 1:
            for _, members, there in _groups(objects, rows, self.runs, type):
                self.add(members, there, path, depth)
            return
        self._handler(next(iter(kinds)))(objects, rows, path, depth)

    def _handler(self, kind: type) -> Callable[[list[Any], npt.NDArray[np.intp] | None, Path, int], None]:
        if kind is Failure:
            return lambda objects, rows, path, depth: self.put_tokens(
                path, rows, (o.token for o in objects), len(objects)
            )
        if kind is type(None) or kind is type(np.ma.masked):
            found = NONE if kind is type(None) else ABSENT
            return lambda objects, rows, path, depth: self.put_token(path, rows, found)
        if issubclass(kind, enum.Enum) and not issubclass(kind, int | float | str):
            return lambda objects, rows, path, depth: self._add_text([str(o) for o in objects], rows, path)
        if issubclass(kind, str):
            return lambda objects, rows, path, depth: self._add_text(objects, rows, path)
        if issubclass(kind, bytes | bytearray | memoryview):
            return lambda objects, rows, path, depth: self.put_tokens(
                path, rows, (token("bytes", bytes(o).hex()) for o in objects), len(objects)
            )
        if issubclass(kind, complex | np.complexfloating):
            return self._add_complex
        if issubclass(kind, np.ma.MaskedArray):
            return lambda objects, rows, path, depth: self._add_sequences(
                [o.tolist() for o in objects], rows, path, depth
            )
        if issubclass(kind, np.ndarray):
            return self._add_arrays
        if issubclass(kind, list | tuple):
            return self._add_sequences
        if issubclass(kind, dict):
            return self._add_mappings
        if issubclass(kind, set | frozenset):
            return self._add_sets
        if dataclasses.is_dataclass(kind):
            names = [f.name for f in dataclasses.fields(kind)]
            return lambda objects, rows, path, depth: self._add_fields(objects, names, rows, path, depth)
        if hasattr(kind, "__array__") and not issubclass(kind, np.generic):
            return lambda objects, rows, path, depth: self._add_arrays(
                [np.asarray(o) for o in objects], rows, path, depth
            )
        if hasattr(kind, "__float__") or hasattr(kind, "__index__"):
            return lambda objects, rows, path, depth: self._add_numbers(objects, rows, path)
        if kind.__module__ in ("datetime", "uuid", "pathlib", "ipaddress"):
            return lambda objects, rows, path, depth: self._add_text([str(o) for o in objects], rows, path)
        return lambda objects, rows, path, depth: self.put_token(path, rows, token("object", _type_name(kind)))

    def _add_numbers(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path) -> None:
        try:
            return self.put(path, rows, np.frombuffer(array("d", objects)))
        except (TypeError, ValueError, OverflowError):
            pass  # an integer beyond the range of floats, or an object whose float() fails
        for position, item in enumerate(objects):
            there = np.array([position if rows is None else rows[position]], np.intp)
            try:
                self.put(path, there, float(item))
            except OverflowError:
                self.put_token(path, there, token("integer", hex(item)))
            except Exception:
                self.put_token(path, there, token("object", _type_name(type(item))))

    def _add_text(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path) -> None:
        self.put_tokens(path, rows, (token("text", str(o)) for o in objects), len(objects))

    def _add_complex(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path, depth: int) -> None:
        for whole, members, there in _groups(objects, rows, self.runs, lambda o: o.imag == 0.0):
            if whole:  # equal to a real number, so it is one
                self._add_numbers([o.real for o in members], there, path)
                continue
            self.put((*path, "real"), there, np.array([o.real for o in members]))
            self.put((*path, "imag"), there, np.array([o.imag for o in members]))

    def _add_arrays(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path, depth: int) -> None:
        if objects[0].ndim == 0 and all(o.ndim == 0 for o in objects):
            return self.add([o.item() for o in objects], rows, path, depth)
        for (shape, kind), members, there in _groups(objects, rows, self.runs, lambda o: (o.shape, o.dtype.kind)):
            self.put((*path, LENGTH), there, float(shape[0]) if shape else 0.0)
            if kind not in "fiub" or int(np.prod(shape)) > WIDEST:
                self._add_sequences([o.tolist() for o in members], there, path, depth)
                continue
            flat = np.stack(members).reshape(len(members), -1)
            for j, position in enumerate(_positions(shape)):
                self.put((*path, *position), there, flat[:, j])

    def _add_sequences(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path, depth: int) -> None:
        self.put((*path, LENGTH), rows, np.fromiter(map(len, objects), np.float64, len(objects)))
        for length, members, there in _groups(objects, rows, self.runs, len):
            for j in range(min(length, WIDEST)):
                if self.needs((*path, j)):
                    self.add(list(map(operator.itemgetter(j), members)), there, (*path, j), depth - 1)

    def _add_mappings(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path, depth: int) -> None:
        self.put((*path, LENGTH), rows, np.fromiter(map(len, objects), np.float64, len(objects)))
        for key in self.chosen((key for o in objects for key in o), path):
            held = [j for j, o in enumerate(objects) if key in o]
            there = np.array(held, np.intp) if rows is None else rows[held]
            place = None if len(held) == self.runs else there
            self.add([objects[j][key] for j in held], place, (*path, _step(key)), depth - 1)

    def _add_sets(self, objects: list[Any], rows: npt.NDArray[np.intp] | None, path: Path, depth: int) -> None:
        self.put((*path, LENGTH), rows, np.fromiter(map(len, objects), np.float64, len(objects)))
        names = {element: _has(element) for o in objects for element in o}  # equal elements share a name
        for name in self.chosen(sorted(set(names.values())), path):
            held = [j for j, o in enumerate(objects) if any(names[element] == name for element in o)]
            there = np.array(held, np.intp) if rows is None else rows[held]
            self.put((*path, name), there, 1.0)  # a set that lacks the element has no such entry

    def _add_fields(
        self, objects: list[Any], names: list[str], rows: npt.NDArray[np.intp] | None, path: Path, depth: int
    ) -> None:
        for name in names:
            self.add([getattr(o, name, None) for o in objects], rows, (*path, name), depth - 1)

    # --- arrays, the run as first axis ----------------------------------------------------------------------

    def add_array(self, part: Any, path: Path) -> None:
        """Adds one array of a batched result, or a list of objects."""
        if isinstance(part, list | tuple):
            _check_length(len(part), self.runs)
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
        _check_length(len(values), self.runs)
        if values.dtype.names:
            for name in values.dtype.names:
                self.add_array(
                    values[name] if mask is None else np.ma.array(values[name], mask=np.asarray(mask)[name]),
                    (*path, name),
                )
            return
        if int(np.prod(values.shape[1:])) > WIDEST:
            self.put_token((*path, "rest"), None, OVERSIZE)
        flat = values.reshape(self.runs, -1)
        hidden = None if mask is None else mask.reshape(self.runs, -1)
        for j, position in enumerate(_positions(values.shape[1:])[:WIDEST]):
            there = (*path, *position)
            if self.needs(there):
                self._add_cells(flat[:, j], None if hidden is None else hidden[:, j], there)

    def _add_cells(self, cells: Numbers, hidden: npt.NDArray[np.bool_] | None, path: Path) -> None:
        if cells.dtype.kind not in "fiub":
            objects = [
                ABSENT_MARK if hidden is not None and hidden[i] else item for i, item in enumerate(cells.tolist())
            ]
            return self.add(objects, None, path, DEEPEST)
        if hidden is None or not hidden.any():
            return self.put(path, None, cells)
        self.labels[ABSENT.code] = ABSENT.label
        codes = np.where(hidden, np.uint64(ABSENT.code), np.uint64(0))
        self.columns[path] = (np.where(hidden, np.nan, cells), codes)


ABSENT_MARK = np.ma.masked


def _groups(
    objects: list[Any], rows: npt.NDArray[np.intp] | None, runs: int, key: Callable[[Any], Any]
) -> Iterable[tuple[Any, list[Any], npt.NDArray[np.intp] | None]]:
    """The objects by key, in order of first appearance, each group with its rows (None: all rows)."""
    keys = list(map(key, objects))
    if keys.count(keys[0]) == len(keys):
        return [(keys[0], objects, rows)]
    positions: dict[Any, list[int]] = {}
    for position, each in enumerate(keys):
        positions.setdefault(each, []).append(position)
    whole = np.arange(runs, dtype=np.intp) if rows is None else rows
    return [(each, [objects[j] for j in there], whole[there]) for each, there in positions.items()]


def _type_token(kind: type) -> Token:
    """The type of an output; plain numbers have none, so that the quick way to read them may leave it out."""
    return ABSENT if kind in (float, int, bool, Failure) else token("type", _type_name(kind))


def _has(element: Any) -> str:
    return f"has({_step(element)!r})"


def _type_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
