"""What a caller gives for an axis of a grid: one value, or several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.sweeps.grid import LARGEST_GRID


def axis(value: Any) -> tuple[Any, ...]:
    """Several values as they are, a single one as an axis of one.

    >>> axis(1e6), axis([1, 2]), axis("fixed"), axis(None)
    ((1000000.0,), (1, 2), ('fixed',), (None,))
    """
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        return (value,)
    found = tuple(itertools.islice(value, LARGEST_GRID + 1))  # it may have no end
    if len(found) > LARGEST_GRID:
        raise InvalidSpec(f"a sweep has at most {LARGEST_GRID:,} points, got a list that is longer; give shorter lists")
    return found


def combinations(parameters: Any) -> tuple[dict[str, Any], ...]:
    """The combinations of parameters: every one of a mapping's lists, or those of a list as they stand.

    >>> combinations({"epsilon": [0.5, 1.0], "c": 2})
    ({'epsilon': 0.5, 'c': 2}, {'epsilon': 1.0, 'c': 2})
    """
    if parameters is None:
        return ({},)
    if isinstance(parameters, Mapping):
        for name in parameters:
            if not isinstance(name, str):
                raise InvalidSpec(f"parameters must be named by text, got {name!r}")
        axes = {name: axis(values) for name, values in parameters.items()}
        for name, values in axes.items():
            if not values:
                raise InvalidSpec(f"parameters.{name} must hold at least one value, got none")
        size = math.prod(map(len, axes.values()))
        if size > LARGEST_GRID:
            raise InvalidSpec(f"a sweep has at most {LARGEST_GRID:,} points, got {size:,}; give shorter lists")
        return tuple(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    if isinstance(parameters, Iterable) and not isinstance(parameters, str | bytes):
        found = axis(parameters)
        if all(isinstance(each, Mapping) for each in found):
            return tuple(dict(each) for each in found)
    raise InvalidSpec(f"parameters must be a mapping of names to values, or a list of such, got {parameters!r}")
