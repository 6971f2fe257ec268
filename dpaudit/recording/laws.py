"""The laws of draws, by their names here, as scipy has them."""

from typing import Any

import numpy as np

ORDER, CHOICE = "order", "choice"  # laws without a scale: of permutations, and of one of several
LOCATED = {"normal": "norm", "gumbel": "gumbel_r", "-gumbel": "gumbel_l", "exponential": "expon"}
LOCATED |= {each: each for each in ("laplace", "logistic", "cauchy", "uniform", "t", "gamma")}
COUNTED = {"binomial": "binom", "geometric": "geom", "poisson": "poisson", "integers": "randint"}
FAR, MOST_BITS = 690.0, 53  # scales to an end of a law; bits of a number that doubles hold


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
    return getattr(stats, COUNTED[name])(*((1, *more) if name == "binomial" and len(more) == 1 else more), loc=loc)


def extreme(name: str, loc: Any, scale: Any, more: tuple[Any, ...], signs: Any, kind: Any = float) -> Any:
    """Numbers at an end of a law, the lower where a sign is negative; None where it has none that is known.

    `kind` is their type: what is uniform below 1 is so in single floats too. Without scipy's laws, which take longer to
    load than many replays.
    """
    low = np.less(signs, 0.0)
    if name in LOCATED:
        far = {"normal": 37.0, "cauchy": 1e12, "t": 1e12}.get(name, FAR)  # beyond which a probability is below 1e-298
        far = far + more[0] + 40.0 * np.sqrt(more[0]) if name == "gamma" else far
        least = {"uniform": 0.0, "exponential": 2.0**-1000, "gamma": 2.0**-1000, "gumbel": -6.5}.get(name, -far)
        most = 1.0 - (2.0**-24 if np.dtype(kind).itemsize < 8 else 2.0**-53) if name == "uniform" else far
        return np.add(loc, np.multiply(scale, np.where(low, least, most)))
    if name in ("geometric", "discrete_laplace"):
        far = np.ceil(FAR / -np.log1p(-np.minimum(more[0], 1.0 - 2.0**-53)))
        return np.where(low, 1.0, far) if name == "geometric" else np.add(loc, np.where(low, -far, far))
    if name == "integers":  # of bits, or of a byte each; or between two ends
        ends = more if len(more) == 2 else (0, 2 ** more[0])
        return np.where(low, ends[0], np.subtract(ends[1], 1)) if np.max(ends[1]) <= 2**MOST_BITS else None
    if name == "binomial":
        return np.where(low, 0, more[0] if len(more) > 1 else 1)
    if name == "poisson":
        return np.where(low, 0, np.ceil(more[0] + 40.0 * np.sqrt(more[0])) + FAR)
    if name == CHOICE and more:
        possible = np.flatnonzero(np.asarray(more[-1]) > 0.0)
        return np.where(low, possible[0], possible[-1])
    return None
