"""Bounds on what adaptive choices can do, as the notes state them: generalisation by privacy and by max-information.

`n` is the number of samples, `tau` a deviation of an average from its expectation, `beta` a probability; epsilon is
in nats and max-information in bits, as in the notes. Sources: Bassi 2019, notes 001, 'Generalization via differential
privacy' and what follows; Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, Preserving statistical validity in
adaptive data analysis, and Generalization in adaptive data analysis and holdout reuse.
"""

from __future__ import annotations

import math

BITS = math.log2(math.e)  # in one nat


# --- a query fixed in advance ---------------------------------------------------------------------------------


def hoeffding(n: int, tau: float) -> float:
    """How likely the average of n samples of a query with values in [0, 1] is more than tau off: 2 exp(-2 n tau^2).

    >>> round(hoeffding(400, 0.1), 6)
    0.000671
    """
    return 2.0 * math.exp(-2.0 * n * tau**2)


def mcdiarmid(n: int, tau: float, c: float) -> float:
    """The same for any function that one of the n samples moves by at most c: 2 exp(-2 tau^2 / (n c^2)).

    >>> mcdiarmid(400, 0.1, 1 / 400) == hoeffding(400, 0.1)
    True
    """
    return 2.0 * math.exp(-2.0 * tau**2 / (n * c**2))


# --- a query chosen by a private algorithm --------------------------------------------------------------------


def generalisation_epsilon(n: int, beta: float) -> float:
    """The largest epsilon that the theorem 'Generalization via DP' allows: sqrt(ln(1 / beta) / (2 n)).

    >>> round(generalisation_epsilon(100, 0.01), 4)
    0.1517
    """
    return math.sqrt(math.log(1.0 / beta) / (2.0 * n))


def generalisation_by_dp(beta: float) -> float:
    """What the theorem gives at that epsilon: an output that is bad with beta if fixed is bad with 3 sqrt(beta).

    >>> round(generalisation_by_dp(0.0001), 6)
    0.03
    """
    return 3.0 * math.sqrt(beta)


def statistical_query_epsilon(n: int, tau: float) -> float:
    """The largest epsilon that the corollary for statistical queries allows: sqrt(tau^2 - ln(2) / (2 n)).

    It is the epsilon of the theorem at Hoeffding's beta; 0 where that is 1 or more.

    >>> round(statistical_query_epsilon(400, 0.1), 4)
    0.0956
    """
    return math.sqrt(max(0.0, tau**2 - math.log(2.0) / (2.0 * n)))


def statistical_query(n: int, tau: float) -> float:
    """What the corollary gives there: the chosen query is more than tau off with 3 sqrt(2) exp(-n tau^2).

    >>> round(statistical_query(400, 0.1), 4)
    0.0777
    """
    return 3.0 * math.sqrt(2.0) * math.exp(-n * tau**2)


# --- max-information ------------------------------------------------------------------------------------------


def max_information_pure(epsilon: float, n: int) -> float:
    """The most max-information of an epsilon-DP algorithm, in bits, whatever the distribution: log2(e) epsilon n.

    >>> round(max_information_pure(0.1, 100), 2)
    14.43
    """
    return BITS * epsilon * n


def max_information_approximate(epsilon: float, n: int, beta: float) -> float:
    """The same but for an event of probability beta, in bits: for samples that are independent and of one law.

    log2(e) (epsilon^2 n / 2 + epsilon sqrt(n ln(2 / beta) / 2)).

    >>> round(max_information_approximate(0.1, 100, 0.01), 2)
    3.07
    """
    return BITS * (epsilon**2 * n / 2.0 + epsilon * math.sqrt(n * math.log(2.0 / beta) / 2.0))


def probability_bound(bits: float, independent: float, beta: float) -> float:
    """How likely an event of data and output is, from its chance with fresh data: 2^bits independent + beta.

    >>> probability_bound(3.0, 0.01, 0.005)
    0.085
    """
    return math.exp2(bits) * independent + beta


def affordable_information(n: int, tau: float, c: float) -> float:
    """The bits that 'Generalization via max-information' allows: log2(e) tau^2 / (n c^2).

    >>> round(affordable_information(400, 0.1, 1 / 400), 3)
    5.771
    """
    return BITS * tau**2 / (n * c**2)


def generalisation_by_information(n: int, tau: float, c: float, beta: float = 0.0) -> float:
    """What it gives for the function that was chosen: more than tau off with 2 exp(-tau^2 / (n c^2)) + beta.

    >>> round(generalisation_by_information(400, 0.1, 1 / 400), 4)
    0.0366
    """
    return 2.0 * math.exp(-(tau**2) / (n * c**2)) + beta


def pure_epsilon(n: int, tau: float, c: float) -> float:
    """The epsilon at which the pure bound affords it: tau^2 / (n c)^2, so tau^2 for a statistical query.

    >>> round(pure_epsilon(400, 0.1, 1 / 400), 6)
    0.01
    """
    return tau**2 / (n * c) ** 2


def approximate_epsilon(n: int, tau: float, c: float) -> float:
    """The epsilon of 'take 2': tau / (n c), so tau for a statistical query.

    >>> round(approximate_epsilon(400, 0.1, 1 / 400), 6)
    0.1
    """
    return tau / (n * c)


def generalisation_take_two(n: int, tau: float, c: float) -> float:
    """What take 2 gives before it is rounded: 2 exp((1 / sqrt(2) - 3 / 2) x) + 2 exp(-x) with x = tau^2 / (n c^2).

    >>> round(generalisation_take_two(400, 0.1, 1 / 400), 4)
    0.1205
    """
    x = tau**2 / (n * c**2)
    return 2.0 * math.exp((math.sqrt(0.5) - 1.5) * x) + 2.0 * math.exp(-x)


def generalisation_take_two_rounded(n: int, tau: float, c: float) -> float:
    """The rounded form of the notes: 2 exp(-(3 / 4) tau^2 / (n c^2)), for tau^2 / (n c^2) that is large enough.

    >>> round(generalisation_take_two_rounded(1000, 0.1, 1 / 1000), 6)
    0.001106
    """
    return 2.0 * math.exp(-0.75 * tau**2 / (n * c**2))


# --- the holdout that is used again ---------------------------------------------------------------------------


def thresholdout_failure(n: int, queries: int, budget: int, threshold: float, sigma: float, tau: float) -> float:
    """How likely at most some answer of Thresholdout is more than tau off, whoever asks the queries; 1 says nothing.

    The whole interaction is (2 B / (sigma n))-DP, so by the corollary each query is within t on the holdout set but for
    3 sqrt(2) exp(-n t^2). Then an answer of the training set is off by threshold + t and both noises, one of the
    holdout set by t and its noise. Laplace tails, and the best t of a grid. The theorem of Dwork et al. 2015,
    Generalization in adaptive data analysis and holdout reuse, has T = 3 tau / 4 and sigma = tau / (96 ln(4 m / beta)).

    >>> round(thresholdout_failure(48_000, 204, 4, 0.05, 0.0017, 0.25), 4)
    0.0115
    """
    found = 1.0
    for t in (tau * step / 40.0 for step in range(1, 40)):
        spare = tau - threshold - t
        if spare <= 0.0 or 2.0 * budget / (sigma * n) > statistical_query_epsilon(n, t):
            continue
        noises = (queries + budget + 1) * math.exp(-spare / (6.0 * sigma)) + budget * math.exp(-(tau - t) / sigma)
        found = min(found, noises + queries * statistical_query(n, t))
    return found
