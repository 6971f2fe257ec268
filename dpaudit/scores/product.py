"""What one run shows if the canaries are answered independently: the product form (Xiang, Wang, Wang & Liu 2025).

It is no certificate: mechanisms that answer all canaries, or none, are put above their claim (`benchmarks one_run`;
the proof: docs/statistics/training.md).
"""

import numpy as np

from dpaudit.certify.binomial import SLACK
from dpaudit.scores.gaussian import wrong_beyond
from dpaudit.scores.halving import narrowed
from dpaudit.scores.one_run import Guesses

CELLS = 256  # of equal probability, for the part beyond z; each takes its most favourable end
MOST_MU = 40.0
SHARE = 0.65  # of the canaries guessed: near the best for every mu from .1 to 3


def largest_chance(guesses: Guesses, mu: float) -> float:
    """The probability of so few mistakes if all canaries are independent and within mu-GDP, rounded up."""
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
    """The largest mu that is refuted at `alpha` if the canaries are independent; 0.0 where there is none."""
    if largest_chance(guesses, 0.0) > alpha:
        return 0.0
    return narrowed(lambda mu: largest_chance(guesses, mu) <= alpha, 0.0, MOST_MU, 1e-5)[0]
