"""Bootstrap intervals of a measure of the two samples of scores: approximate, and of the measure, not of epsilon.

Efron 1987 (JASA 82): percentile, bias-corrected (BC), and bias-corrected with acceleration (BCa, by the jackknife).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import validate

KINDS = ("percentile", "bc", "bca")


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How to resample: `kind` is "percentile", "bc" or "bca", `resamples` how often, both sides each time."""

    kind: str = "bc"
    resamples: int = 1000

    def __post_init__(self) -> None:
        validate.one_of("bootstrap", self.kind, KINDS)
        object.__setattr__(self, "resamples", validate.whole("resamples", self.resamples, least=2))

    def quantiles(
        self, measure: Callable[[Any, Any], float], in_scores: Any, out_scores: Any, shares: Any, seed: int
    ) -> Any:
        """The bootstrap quantiles of `measure(in_scores, out_scores)`, at `shares` strictly between 0 and 1.

        >>> import numpy as np
        >>> from dpaudit.scores.roc import auroc
        >>> a, b = np.arange(50) + 10.0, np.arange(50) + 0.0
        >>> low, high = Bootstrap("percentile", 200).quantiles(auroc, a, b, [0.05, 0.95], seed=0)
        >>> bool(low < auroc(a, b) < high)
        True
        """
        from scipy.special import ndtr, ndtri

        rng = np.random.default_rng(seed)
        values = np.array(
            [
                measure(rng.choice(in_scores, in_scores.size), rng.choice(out_scores, out_scores.size))
                for _ in range(self.resamples)
            ]
        )
        wanted = np.asarray(shares, dtype=float)
        if self.kind == "percentile":
            return np.quantile(values, wanted)
        below = np.sum(values < measure(in_scores, out_scores))
        shift = ndtri((below + 1.0) / (self.resamples + 2.0))  # one value more on each side: never an infinite shift
        speed = _acceleration(measure, in_scores, out_scores) if self.kind == "bca" else 0.0
        moved = shift + ndtri(wanted)
        return np.quantile(values, ndtr(shift + moved / (1.0 - speed * moved)))


def _acceleration(measure: Callable[[Any, Any], float], in_scores: Any, out_scores: Any) -> float:
    """A sixth of the skewness of the measure with one score left out at a time."""
    left = [measure(np.delete(in_scores, i), out_scores) for i in range(in_scores.size) if in_scores.size > 1]
    left += [measure(in_scores, np.delete(out_scores, i)) for i in range(out_scores.size) if out_scores.size > 1]
    away = np.mean(left) - np.array(left)
    spread = 6.0 * np.sum(away**2) ** 1.5
    return 0.0 if spread == 0.0 else float(np.sum(away**3) / spread)
