"""Max-information of two finite random variables, in bits, from their joint probabilities.

The joint probabilities are a table (x, y). Source: Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015,
Generalization in adaptive data analysis and holdout reuse, section 3.
"""

import math

import numpy as np
import numpy.typing as npt

from dpaudit.losses.distribution import one_way_epsilon

Reals = npt.NDArray[np.float64]


def max_divergence(first: Reals, second: Reals, delta: float = 0.0) -> float:
    """The delta-approximate max-divergence: log2 of the largest (P(O) - delta) / Q(O), over all sets O of outcomes.

    The outcomes are taken in the order of their ratios p / q as long as that raises the ratio of the sums.

    >>> round(max_divergence(np.array([0.75, 0.25]), np.array([0.25, 0.75])), 4)  # log2 of 3
    1.585
    >>> round(max_divergence(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 0.05), 4)  # log2 of 2.8
    1.4854
    """
    return one_way_epsilon(np.ravel(first), np.ravel(second), delta) / math.log(2.0)


def independent(joint: Reals) -> Reals:
    """The table of two independent variables with the margins of this one.

    >>> independent(np.array([[0.5, 0.0], [0.0, 0.5]]))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    return np.outer(joint.sum(axis=1), joint.sum(axis=0))


def max_information(joint: Reals, beta: float = 0.0) -> float:
    """The beta-approximate max-information: the max-divergence of the pair from an independent pair.

    >>> max_information(np.array([[0.5, 0.0], [0.0, 0.5]]))
    1.0
    """
    return max_divergence(joint, independent(joint), beta)
