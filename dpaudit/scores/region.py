"""The (epsilon, delta) region in the square of error rates (Kairouz, Oh & Viswanath 2015, theorem 2.1)."""

import math


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
