"""Datasets are opaque: they are compared and recorded by digest, and by value only when small and plain."""

from __future__ import annotations

import copy
import math
from typing import Any

from dpaudit.errors import InvalidSpec

LONGEST_NUMBER = 1_000  # bits of an integer; Python refuses to write much longer ones
LARGEST_RECORDED_VALUE = 2_000  # characters; a larger dataset is recorded by digest alone


def digest(data: Any) -> str:
    """A hash of the contents of a dataset (32 hex digits); equal contents give equal digests.

    Raises `InvalidSpec` where the dataset cannot be pickled.
    """
    import joblib

    try:
        return str(joblib.hash(_unshared(data)))
    except Exception as error:  # whatever an object's own way to be pickled raises
        raise InvalidSpec(
            f"a dataset must be picklable, got {type(data).__name__} ({error}); "
            "pass plain data, or make it inside the mechanism"
        ) from None


def _unshared(data: Any) -> Any:
    """The data with no part held twice, and arrays in one order: equal contents are hashed alike."""
    kind = type(data)
    if kind in (list, tuple):
        return kind(map(_unshared, data))
    if kind is dict:
        return {key: _unshared(value) for key, value in data.items()}
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return data.copy(order="C")
    return data


def private_copy(data: Any) -> Any:
    """A copy that a mechanism may spoil without spoiling the caller's; the object itself if it cannot be copied."""
    try:
        return copy.deepcopy(data)
    except Exception:
        return data


def plain_value(data: Any) -> Any:
    """The dataset as JSON-ready values when it is small and plain, otherwise None."""
    import numpy as np

    if isinstance(data, np.ndarray):
        data = data.tolist() if data.size <= LARGEST_RECORDED_VALUE else None
    if isinstance(data, np.generic):
        data = data.item()
    if not _is_plain(data):
        return None
    return data if len(repr(data)) <= LARGEST_RECORDED_VALUE else None


def restored(value: Any, recorded: str) -> Any:
    """The dataset behind a recorded value: the list, tuple or array of that content whose digest is the recorded one.

    Raises `InvalidSpec` where there is none; a dataset recorded by digest alone cannot be made again.
    """
    import numpy as np

    makers = (lambda: value, lambda: _tuples(value), lambda: tuple(value), lambda: np.array(value))
    more = (lambda: np.array(value, np.float64), lambda: np.array(value, np.int64), lambda: np.float64(value))
    for make in (*makers, *more):
        try:
            made = make()
            if value is not None and digest(made) == recorded:
                return made
        except (TypeError, ValueError, OverflowError):
            continue
    raise InvalidSpec("the result holds its datasets by digest only; run the audit again with another seed")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _is_plain(data: Any, depth: int = 6) -> bool:
    kind = type(data)  # exactly: a subclass would need its own module where the record is read
    if kind is float:
        return math.isfinite(data)  # JSON has no other floats; such a dataset is recorded by its digest
    if kind is int:
        return data.bit_length() < LONGEST_NUMBER  # type: ignore[no-any-return]
    if data is None or kind in (bool, str):
        return True
    if depth == 0:
        return False
    if kind in (list, tuple):
        return len(data) <= LARGEST_RECORDED_VALUE and all(_is_plain(item, depth - 1) for item in data)
    if kind is dict:
        return len(data) <= LARGEST_RECORDED_VALUE and all(
            type(key) is str and _is_plain(item, depth - 1) for key, item in data.items()
        )
    return False
