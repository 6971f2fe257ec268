"""Error rates as an epsilon (Kairouz, Oh & Viswanath 2015, theorem 2.1) or a mu, and a mu as an epsilon at delta.

Mu is that of the Gaussian model (Nasr et al. 2023, section 5). A bound on mu is model-free; reading an epsilon at a
small delta off it says that the mechanism's curve is Gaussian.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.claims import GaussianDP


def epsilon_of(fpr: float, fnr: float, delta: float = 0.0) -> float:
    """The least epsilon at `delta` that allows an attack with these two error rates; 0.0 where every one does.

    The rates themselves, not limits of them: those of an attack that is worse than guessing are turned round.

    >>> round(epsilon_of(0.1, 0.6), 4)  # 0.4 of the members against 0.1 of the others
    1.3863
    >>> epsilon_of(0.0, 0.6), epsilon_of(0.0, 1.0)
    (inf, 0.0)
    """
    if fpr + fnr > 1.0:  # the attack that says the opposite
        fpr, fnr = 1.0 - fpr, 1.0 - fnr
    small, large = min(fpr, fnr), max(fpr, fnr)
    gap = 1.0 - delta - large
    if gap <= small:
        return 0.0
    return math.inf if small <= 0.0 else math.log(gap / small)


def mu_of(fpr: float, fnr: float) -> float:
    """The least mu whose Gaussian trade-off curve allows error rates as small as these; 0.0 where every one does.

    >>> round(mu_of(0.05, 0.1), 4)
    2.9264
    """
    from scipy.special import ndtri

    if fpr + fnr >= 1.0:
        return 0.0
    if fpr <= 0.0 or fnr <= 0.0:
        return math.inf
    return max(0.0, float(-ndtri(fpr) - ndtri(fnr)))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The least epsilon at `delta` that mu-GDP implies; infinite at delta = 0.

    >>> round(epsilon_of_mu(1.0, 1e-5), 4)
    4.3772
    """
    if mu == math.inf:
        return math.inf
    return GaussianDP(max(0.0, mu)).epsilon_at(delta)


def tail_share(mu: float, z: float) -> tuple[float, float]:
    """(Part of the canaries whose score is at least z from the middle, part that is and is guessed right).

    Half the scores from N(mu/2, 1), half from N(-mu/2, 1); guessed by the side.
    """
    right, wrong = (0.5 * math.erfc((z + side * mu / 2.0) / math.sqrt(2.0)) for side in (-1.0, 1.0))
    return right + wrong, right


def wrong_beyond(mu: Any, share: Any) -> Any:
    """The chance that a guess about one of the `share` most extreme scores is wrong; arrays that go together."""
    from scipy.special import ndtr, ndtri

    low, high = np.maximum(0.0, mu / 2.0 - ndtri(share)), np.asarray(mu / 2.0 - ndtri(share / 2.0))
    for _ in range(32):
        z = (low + high) / 2.0
        inside = ndtr(mu / 2.0 - z) + ndtr(-mu / 2.0 - z) > share
        low, high = np.where(inside, z, low), np.where(inside, high, z)
    return ndtr(-mu / 2.0 - high) / share


def mu_that_wins(accuracy: float, share: float) -> float:
    """The least mu at which so large a part of guesses about the `share` most extreme canaries is right on average."""
    return float(np.interp(accuracy, *_accuracies(share), right=math.inf))


@lru_cache(maxsize=1024)
def _accuracies(share: float) -> tuple[Any, Any]:
    mus = np.concatenate([[0.0], np.geomspace(1e-3, 30.0, 400)])
    return 1.0 - wrong_beyond(mus, share), mus


def fitted(inside: Any, outside: Any) -> tuple[float, float]:
    """(The distance of the two means in pooled standard deviations, its standard error); 0 and infinity for no spread.

    >>> import numpy as np
    >>> [round(each, 3) for each in fitted(np.array([2.0, 4.0]), np.array([0.0, 2.0]))]
    [1.414, 1.118]
    """
    n, k = inside.size, outside.size
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (inside, outside))
    variance = squares / max(1, n + k - 2)
    if variance <= 0.0:
        return 0.0, math.inf
    mu = float(inside.mean() - outside.mean()) / math.sqrt(variance)
    return mu, math.sqrt(1.0 / n + 1.0 / k + mu * mu / (2.0 * (n + k)))
