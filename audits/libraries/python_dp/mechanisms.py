"""A count and a bounded sum of python-dp, as its users call them. The library owns its randomness."""

from __future__ import annotations

from collections.abc import Callable

from pydp.algorithms.laplacian import BoundedSum, Count

import dpaudit


def _make_count(epsilon: float) -> Callable[[list[int]], int]:
    return Count(epsilon=epsilon, dtype="int").quick_result


def _make_bounded_sum(epsilon: float, lower_bound: int, upper_bound: int) -> Callable[[list[int]], int]:
    return BoundedSum(epsilon=epsilon, lower_bound=lower_bound, upper_bound=upper_bound, dtype="int").quick_result


count = dpaudit.built_by(_make_count)
bounded_sum = dpaudit.built_by(_make_bounded_sum)
