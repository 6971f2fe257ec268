"""From what a mechanism returned to the canonical form: the quick ways for plain outputs, columns for the rest.

`wanted` names the paths that will be looked at, so that certification touches nothing else. Every way gives an
output the same cells, for an event must be a function of one output, and not of what stands beside it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpaudit.errors import DpAuditError, UnsoundAudit
from dpaudit.outputs import LENGTH, TYPE, Column, Columns, Numbers, Outputs, Path, concatenate
from dpaudit.sampling.columns import Builder, check_length
from dpaudit.sampling.exact import DEEPEST, NUMBERS, Encoded
from dpaudit.sampling.guard import Interrupted
from dpaudit.sampling.matrix import NARROW, WIDEST, Wanted, as_matrix, positions, reals
from dpaudit.sampling.steps import step


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


def encode_batch(raw: Any, runs: int, wanted: Wanted = None) -> Outputs:
    """The canonical form of what a batched mechanism returned for `runs` runs.

    Raises `UnsoundAudit` where the result does not have the run as first axis.
    """
    if isinstance(raw, list):
        raw = list(list.__iter__(raw))
        check_length(len(raw), runs)
        return encode_objects(raw, wanted)
    if type(raw) is np.ndarray and raw.ndim == 1 and raw.dtype.kind in "fiub":
        check_length(len(raw), runs)
        return Outputs(runs, {(): Column(reals(raw.copy()))})  # it may be filled again in the next call
    builder = Builder(runs, wanted)
    with readable():
        if isinstance(raw, tuple):
            for position, part in enumerate(tuple.__iter__(raw)):
                builder.add_array(part, (position,))
        elif isinstance(raw, dict):
            for key, part in dict.items(raw):
                builder.add_array(part, (step(key),))
        else:
            builder.add_array(raw, ())
    return builder.outputs()


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


def _quick(objects: list[Any], wanted: Wanted) -> Outputs | None:
    """Plain numbers, single coordinates of plain tuples, or arrays; None where anything is out of the ordinary."""
    if not objects or (wanted is not None and (TYPE,) in wanted):
        return None
    kind = type(objects[0])
    try:
        if kind in NUMBERS:
            found = _together(objects)
            return None if found is None else Outputs(len(objects), {(): Column(found)})
        if kind is tuple and wanted is not None and all(len(path) == 1 and isinstance(path[0], int) for path in wanted):
            if operator.countOf(map(type, objects), tuple) != len(objects):
                return None
            columns = {path: _together(list(map(operator.itemgetter(path[0]), objects))) for path in wanted}
            if any(cells is None for cells in columns.values()):
                return None
            return Outputs(len(objects), {path: Column(cells) for path, cells in columns.items() if cells is not None})
        if kind is np.ndarray:
            return _quick_arrays(objects, wanted)
    except (TypeError, IndexError, OverflowError, ValueError):
        pass
    return None


def _together(cells: list[Any]) -> Numbers | None:
    """The cells as numbers where numpy finds nothing but numbers among them."""
    if not NUMBERS.issuperset(map(type, cells)):
        return None
    found = np.array(cells)
    if found.ndim != 1 or found.dtype.kind not in "fiub" or found.dtype.itemsize > 8:
        return None
    return reals(found)


def _quick_arrays(objects: list[Any], wanted: Wanted) -> Outputs | None:
    if not 0 < objects[0].size <= WIDEST or operator.countOf(map(type, objects), np.ndarray) != len(objects):
        return None
    together = np.array(objects)  # a ValueError where shapes differ
    if together.dtype.kind not in "fiub":
        return None
    shape, flat = together.shape[1:], reals(together.reshape(len(objects), -1))
    places = positions(shape, (), wanted)
    wide = as_matrix(flat, places) if len(places) > NARROW else None
    columns: dict[Path, Column] = {path: Column(flat[:, j]) for path, j in places.items()} if wide is None else {}
    if shape and (wanted is None or (LENGTH,) in wanted):
        columns[(LENGTH,)] = Column(np.broadcast_to(np.float64(shape[0]), (len(objects),)))
    return Outputs(len(objects), columns if wide is None else Columns(*wide, columns))
