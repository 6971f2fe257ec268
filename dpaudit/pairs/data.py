"""Datasets are opaque: they are compared and recorded by digest, and by value only when small and plain."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

from dpaudit.errors import InvalidSpec

LARGEST_RECORDED_VALUE = 2_000  # characters; a larger dataset is recorded by digest alone


def digest(data: Any) -> str:
    """A hash of the contents of a dataset (32 hex digits); equal contents give equal digests.

    Raises `InvalidSpec` where the dataset cannot be pickled.
    """
    import joblib

    try:
        return str(joblib.hash(data))
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        raise InvalidSpec(
            f"a dataset must be picklable, got {type(data).__name__} ({error}); "
            "pass plain data, or make it inside the mechanism"
        ) from None


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


def _is_plain(data: Any, depth: int = 6) -> bool:
    kind = type(data)  # exactly: a subclass would need its own module where the record is read
    if kind is float:
        return math.isfinite(data)  # JSON has no other floats; such a dataset is recorded by its digest
    if data is None or kind in (bool, int, str):
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
