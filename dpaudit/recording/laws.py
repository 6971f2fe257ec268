"""The laws of draws, by their names here, as scipy has them."""

from typing import Any

import numpy as np

ORDER, CHOICE = "order", "choice"  # laws without a scale: of permutations, and of one of several
LOCATED = {"normal": "norm", "gumbel": "gumbel_r", "-gumbel": "gumbel_l", "exponential": "expon"}
LOCATED |= {each: each for each in ("laplace", "logistic", "cauchy", "uniform", "t", "gamma")}
COUNTED = {"binomial": "binom", "geometric": "geom", "poisson": "poisson", "integers": "randint"}
RARE, REACH = 1e-300, 1e12  # the probability beyond an end of a law; scales that it may lie out
MOST_BITS = 53  # of a number that doubles hold


def law_named(name: str, loc: Any, scale: Any, more: tuple[Any, ...]) -> Any:
    """The law, frozen at its parameters, which may be arrays; None where scipy has none of that name.

    >>> float(law_named("laplace", 1.0, 2.0, ()).cdf(1.0))
    0.5
    """
    from scipy import stats

    if name in LOCATED:
        return getattr(stats, LOCATED[name])(*more, loc=loc, scale=scale)
    if name == CHOICE and more:
        return stats.rv_discrete(values=(range(len(more[-1])), more[-1]))
    if name == "discrete_laplace":  # P(k) = tanh(r / 2) e^(-r |k|), of the difference of two geometric numbers
        return stats.dlaplace(-np.log1p(-more[0]), loc=loc)
    if name == "integers" and len(more) != 2 or name not in COUNTED:
        return None
    return getattr(stats, COUNTED[name])(*((1, *more) if name == "binomial" and len(more) == 1 else more))


def extreme(name: str, loc: Any, scale: Any, more: tuple[Any, ...], signs: Any) -> Any:
    """Numbers at an end of a law, the lower where a sign is negative; None where it has none that is known."""
    if name == "integers" and more and len(more) < 2:  # bits, or a byte each
        return np.where(np.less(signs, 0.0), 0, 2 ** more[0] - 1) if more[0] <= MOST_BITS else None
    law = law_named(name, 0.0, 1.0, more)
    if law is None:
        return None
    with np.errstate(all="ignore"):
        highest = 1.0 - 2.0**-53 if name == "uniform" else REACH  # which is below 1, as it is drawn
        ends = np.where(np.less(signs, 0.0), np.maximum(law.ppf(RARE), -REACH), np.minimum(law.isf(RARE), highest))
        return ends if name in COUNTED or name == CHOICE else np.add(loc, np.multiply(scale, ends))
