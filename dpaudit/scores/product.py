"""What one run shows if the canaries are answered independently: the product form (Xiang, Wang, Wang & Liu 2025).

Suppose that each canary has a score of its own, drawn independently of all others, and that no score tells its coin
better than N(mu, 1) against N(0, 1). Then every attack is one on m such normal scores (Blackwell; Dong, Roth & Su 2022,
theorem 2.10), and none makes fewer mistakes in r guesses than the one that guesses the r scores furthest from
the middle. Given the distance z of the next one, those r are independent, and each is wrong with the odds of the two
normal tails beyond z. The part beyond z is Beta(r + 1, m - r) distributed, so

    Pr(at most x mistakes) <= E Pr(Bin(r, wrong(z)) <= x);    r = m: Pr(Bin(m, Phi(-mu/2)) <= x).

It is no certificate: a mechanism within 1-GDP that answers all canaries, or none, with one coin of its own is put
above mu = 1 in up to 84 % of runs at a stated 5 % (`benchmarks one_run`).
"""

from __future__ import annotations

from dpaudit.certify.binomial import SLACK
from dpaudit.scores.gaussian import wrong_beyond
from dpaudit.scores.one_run import Guesses

CELLS = 256  # of equal probability, for the part beyond z; each takes its most favourable end
MOST_MU = 40.0
SHARE = 0.65  # of the canaries guessed: near the best for every mu from .1 to 3


def largest_chance(guesses: Guesses, mu: float) -> float:
    """The probability of so few mistakes if all canaries are independent and within mu-GDP, rounded up.

    >>> round(largest_chance(Guesses(right=8, made=10, canaries=10, fixed=True), 0.0), 4)  # 56 / 1024
    0.0547
    """
    import numpy as np
    from scipy.special import bdtr, betaincinv, ndtr

    r, m, wrong = guesses.made, guesses.canaries, guesses.made - guesses.right
    if wrong == r:
        return 1.0
    if r == m:
        return min(1.0, float(bdtr(wrong, r, ndtr(-mu / 2.0))) * (1.0 + SLACK))
    beyond = betaincinv(r + 1.0, float(m - r), np.arange(1, CELLS + 1) / CELLS)
    # the further out, the surer the guess: each cell at its least part beyond, the first at the far end of the tails
    beyond = np.concatenate([[betaincinv(r + 1.0, float(m - r), 1e-6 / CELLS)], beyond[:-1]])
    return min(1.0, (float(bdtr(wrong, r, wrong_beyond(mu, beyond)).mean()) + 1e-6 / CELLS) * (1.0 + SLACK))


def mu_lower(guesses: Guesses, alpha: float) -> float:
    """The largest mu that is refuted at `alpha` if the canaries are independent; 0.0 where there is none.

    >>> round(mu_lower(Guesses(right=841, made=1000, canaries=1000, fixed=True), 0.05), 2)
    1.84
    """
    if largest_chance(guesses, 0.0) > alpha:
        return 0.0
    low, high = 0.0, MOST_MU
    while high - low > 1e-5:
        middle = (low + high) / 2.0
        low, high = (middle, high) if largest_chance(guesses, middle) <= alpha else (low, middle)
    return low
