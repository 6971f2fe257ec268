"""Queries of diffpriv-pure, called as in its README. Records are numbers; the library owns its randomness."""

from __future__ import annotations

from diffpriv_pure import private_count, private_mean, private_sum


def count(records: list[int], *, epsilon: float) -> int:
    return private_count(condition_count=len(records), epsilon=epsilon)


def count_as_sum(records: list[int], *, epsilon: float) -> float:
    """The same count, as a sum of ones that may be anything from 0 to 1."""
    return private_sum(values=[1.0] * len(records), bounds=(0.0, 1.0), epsilon=epsilon)


def total(records: list[float], *, upper: float, epsilon: float, delta: float = 0.0) -> float:
    return private_sum(values=records, bounds=(0.0, upper), epsilon=epsilon, delta=delta)


def mean(records: list[float], *, upper: float, epsilon: float) -> float:
    return private_mean(values=records, bounds=(0.0, upper), epsilon=epsilon)


def below_five(output: int) -> bool:
    """The noisy count is below 5."""
    return output < 5


def far_below(output: float) -> bool:
    """The noisy sum is below -0.2."""
    return output < -0.2


def beside_the_grid(output: float) -> bool:
    """The output is not a multiple of 2^-53."""
    return output * 2.0**53 % 1.0 != 0.0
