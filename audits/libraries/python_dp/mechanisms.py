"""A count, sums, a mean and a maximum of python-dp, as its users call them. The library owns its randomness."""

from __future__ import annotations

from collections.abc import Callable

from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Max

import dpaudit


def _make_count(epsilon: float) -> Callable[[list[int]], int]:
    return Count(epsilon=epsilon, dtype="int").quick_result


def _make_bounded_sum(epsilon: float, lower_bound: int, upper_bound: int) -> Callable[[list[int]], int]:
    return BoundedSum(epsilon=epsilon, lower_bound=lower_bound, upper_bound=upper_bound, dtype="int").quick_result


def _make_bounded_mean(epsilon: float, lower_bound: int, upper_bound: int) -> Callable[[list[int]], float]:
    return BoundedMean(epsilon=epsilon, lower_bound=lower_bound, upper_bound=upper_bound, dtype="int").quick_result


def _make_bounded_sum_of_doubles(
    epsilon: float, lower_bound: float, upper_bound: float
) -> Callable[[list[float]], float]:
    return BoundedSum(epsilon=epsilon, lower_bound=lower_bound, upper_bound=upper_bound, dtype="float").quick_result


def _make_largest(epsilon: float, lower_bound: int, upper_bound: int) -> Callable[[list[int]], int]:
    return Max(epsilon=epsilon, lower_bound=lower_bound, upper_bound=upper_bound, dtype="int").quick_result


count = dpaudit.built_by(_make_count)
bounded_sum = dpaudit.built_by(_make_bounded_sum)
bounded_mean = dpaudit.built_by(_make_bounded_mean)
bounded_sum_of_doubles = dpaudit.built_by(_make_bounded_sum_of_doubles)
largest = dpaudit.built_by(_make_largest)


def exactly_the_middle(output: float) -> bool:
    """The mean is 2.5, the middle of the bounds."""
    return output == 2.5
