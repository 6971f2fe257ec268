"""Clients of multi-freq-ldpy, called as in its README. Values are 0 to k - 1; the library owns its randomness."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xxhash
from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Client
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client
from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client
from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_SS_Client
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client


def subset(value: int, *, k: int, epsilon: float) -> np.ndarray:
    return SS_Client(value, k, epsilon)


def subset_sorted(value: int, *, k: int, epsilon: float) -> np.ndarray:
    """The same set with its order taken away, which is all that the estimator needs."""
    return np.sort(SS_Client(value, k, epsilon))


def sampled_subset(users: list[Sequence[int]], *, k: int, epsilon: float) -> tuple[int, np.ndarray]:
    """What the one user of a dataset sends for a tuple of values."""
    (values,) = users
    return SMP_SS_Client(list(values), [k] * len(values), len(values), epsilon)


def direct(value: int, *, k: int, epsilon: float) -> int:
    return int(GRR_Client(value, k, epsilon))


def unary(value: int | None, *, k: int, epsilon: float, optimal: bool) -> np.ndarray:
    return UE_Client(value, k, epsilon, optimal)


def hashed(value: int, *, k: int, epsilon: float) -> list[bool]:
    """For each value whether its hash is the report, which is what the aggregator makes of report and seed."""
    report, seed = LH_Client(value, k, epsilon)
    cells = round(math.exp(epsilon)) + 1
    return [xxhash.xxh32(str(each), seed=int(seed)).intdigest() % cells == report for each in range(k)]


def sampled_and_fake(users: list[Sequence[int]], *, k: int, epsilon: float) -> list[int]:
    """The same for random sampling plus fake data."""
    (values,) = users
    return [int(value) for value in RSpFD_GRR_Client(list(values), [k] * len(values), len(values), epsilon)]


def buckets(value: int, *, k: int, epsilon: float) -> np.ndarray:
    return dBitFlipPM_Client(value, k, 5, 3, epsilon)


def reports(value: int, *, k: int, eps_perm: float, eps_1: float, times: int) -> np.ndarray:
    """The sum of the reports on one value that does not change, as the aggregator adds them up."""
    return np.sum([L_SUE_Client(value, k, eps_perm, eps_1) for _ in range(times)], axis=0)


def starts_with_zero(output: np.ndarray) -> bool:
    """The first value of the subset is 0."""
    return bool(output[0] == 0)


def sampled_starts_with_zero(output: tuple[int, np.ndarray]) -> bool:
    """The first value of the subset is 0, whichever attribute was sampled."""
    return bool(output[1][0] == 0)


def both_zero(output: list[int]) -> bool:
    """Both values sent are 0."""
    return output == [0, 0]


def more_ones_than(output: np.ndarray) -> bool:
    """Value 0 was reported at least 4 times more often than value 1."""
    return bool(output[0] - output[1] >= 4)
