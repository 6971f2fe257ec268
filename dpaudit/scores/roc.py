"""Every threshold at once: the ROC counts, their hull, and and what a page shows of the scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.results.observations import BINS, Histogram, counts_on, grid


@dataclass(frozen=True, slots=True)
class Roc:
    """Counts at every threshold, from the highest (nobody is guessed in) to the lowest (everybody is).

    `thresholds`, `tp` and `fp` are arrays of shape (thresholds,), the counts whole numbers that never fall.
    """

    thresholds: Any
    tp: Any
    fp: Any

    @property
    def members(self) -> int:
        """The number of members' scores."""
        return int(self.tp[-1])

    @property
    def others(self) -> int:
        """The number of non-members' scores."""
        return int(self.fp[-1])


def roc(in_scores: Any, out_scores: Any) -> Roc:
    """The counts of every rule "in where the score is at least a threshold".

    >>> import numpy as np
    >>> r = roc(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    >>> r.tp.tolist(), r.fp.tolist(), r.thresholds.tolist()
    ([0, 1, 2, 2], [0, 0, 1, 2], [inf, 1.5, 0.5, -inf])
    """
    values = np.union1d(in_scores, out_scores)
    low, high = values[:-1], values[1:]
    middle = low / 2.0 + high / 2.0
    between = np.where((low < middle) & (middle <= high), middle, high)  # neighbours without a float between them
    thresholds = np.concatenate([[np.inf], between[::-1], [-np.inf]])
    inside, outside = np.sort(in_scores), np.sort(out_scores)
    tp = inside.size - np.searchsorted(inside, thresholds, side="left")
    fp = outside.size - np.searchsorted(outside, thresholds, side="left")
    return Roc(thresholds, tp, fp)


def hull(curve: Roc) -> Any:
    """The places of the corners of the upper concave hull of the ROC, in order (Andrew 1979).

    >>> import numpy as np
    >>> hull(roc(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.5, 2.5]))).tolist()
    [0, 1, 5, 6]
    """
    kept: list[int] = []
    tp, fp = curve.tp.tolist(), curve.fp.tolist()
    for place in range(len(tp)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (tp[b] - tp[a]) * (fp[place] - fp[b]) > (tp[place] - tp[b]) * (fp[b] - fp[a]):
                break
            kept.pop()
        kept.append(place)
    return np.array(kept)


def tpr_at(in_scores: Any, out_scores: Any, fpr: float) -> float:
    """The largest true positive rate at this false positive rate, mixing two thresholds where none meets it.

    >>> import numpy as np
    >>> round(tpr_at(np.arange(100) + 9.5, np.arange(100), 0.01), 4)
    0.11
    """
    target = validate.probability("fpr", fpr)
    curve = roc(in_scores, out_scores)
    corners = hull(curve)
    x, y = curve.fp[corners] / curve.others, curve.tp[corners] / curve.members
    return float(y[-1]) if target >= x[-1] else _on_hull(x, y, target)


def auroc(in_scores: Any, out_scores: Any) -> float:
    """The area under the ROC: the chance that a member's score is above another's, ties counted half (Mann-Whitney).

    >>> import numpy as np
    >>> auroc(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    0.875
    """
    curve = roc(in_scores, out_scores)
    area = np.sum((curve.tp[1:] + curve.tp[:-1]).astype(float) * np.diff(curve.fp))
    return float(area / (2.0 * curve.members * curve.others))


def hull_area(in_scores: Any, out_scores: Any) -> float:
    """The area under the hull of the ROC: the AUROC of an attack that may mix thresholds; never below `auroc`."""
    curve = roc(in_scores, out_scores)
    corners = hull(curve)
    x, y = curve.fp[corners] / curve.others, curve.tp[corners] / curve.members
    return float(np.sum((y[1:] + y[:-1]) * np.diff(x)) / 2.0)


def best_accuracy(in_scores: Any, out_scores: Any, prevalence: float | None = None) -> float:
    """The largest accuracy of a threshold on these scores, where a part `prevalence` of the examples are members.

    Without `prevalence`, it is the part of the scores that are members'.

    >>> import numpy as np
    >>> best_accuracy(np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    0.75
    """
    curve = roc(in_scores, out_scores)
    share = curve.members / (curve.members + curve.others)
    if prevalence is not None:
        share = validate.probability("prevalence", prevalence)
    right = share * curve.tp / curve.members + (1.0 - share) * (1.0 - curve.fp / curve.others)
    return float(right.max())


def raw_epsilon(in_scores: Any, out_scores: Any, delta: float = 0.0, min_count: int = 50) -> float:
    """The largest ln((tpr - delta) / fpr) over the hull where at least `min_count` others are guessed in.

    A point estimate: it has been chosen as the largest, and comes with no guarantee. Both the rule and its opposite
    (low scores of non-members) are looked at. 0.0 where no threshold has that many.

    >>> import numpy as np
    >>> round(raw_epsilon(np.arange(100) + 9.5, np.arange(100), min_count=10), 4)
    0.6931
    """
    least = validate.whole("min_count", min_count, least=1)
    best = 0.0
    curve = roc(in_scores, out_scores)
    for hits, false in ((curve.tp, curve.fp), ((curve.others - curve.fp)[::-1], (curve.members - curve.tp)[::-1])):
        if least >= false[-1]:
            continue
        turned = Roc(curve.thresholds, hits, false)
        corners = hull(turned)
        x, y = false[corners] / false[-1], hits[corners] / hits[-1]
        x, y = np.append(x, least / false[-1]), np.append(y, _on_hull(x, y, least / false[-1]))
        seen = (x >= least / false[-1]) & (y > delta)
        if seen.any():
            best = max(best, float(np.max(np.log(y[seen] - delta) - np.log(x[seen]))))
    return best


def _on_hull(x: Any, y: Any, at: float) -> float:
    first = int(np.searchsorted(x, at, side="right")) - 1  # the last corner there: the hull may rise straight up
    part = (at - x[first]) / (x[first + 1] - x[first])
    return float(y[first] + part * (y[first + 1] - y[first]))


FEWEST_BINS = 12


def histogram(inside: Any, outside: Any, feature: str = "score") -> Histogram:
    """How the finite scores of both groups lie, `first` those that were in; arrays of any shape, at least one score.

    >>> import numpy as np
    >>> seen = histogram(np.array([1.0, 1.0, 0.0]), np.array([0.0]))
    >>> seen.values, seen.first, seen.second
    ((0.0, 1.0), (1, 2), (1, 0))
    """
    sides = np.sort(np.ravel(inside)), np.sort(np.ravel(outside))
    every = np.concatenate(sides)
    edges, values = grid(every, min(BINS, max(FEWEST_BINS, int(2.0 * every.size ** (1.0 / 3.0)))))
    if len(values) > max(2, every.size // 2):  # few scores, no two alike
        edges, values = tuple(np.linspace(every.min(), every.max(), FEWEST_BINS + 1).tolist()), ()
    first, second = (counts_on(side, edges, values) for side in sides)
    return Histogram(feature, edges, values, first, second, (), (), (), sides[0].size, sides[1].size)


def corners(inside: Any, outside: Any) -> tuple[tuple[float, float], ...]:
    """(fpr, fnr) at the corners of the upper hull of the empirical ROC: an estimate that was chosen on these scores."""
    curve = roc(inside, outside)
    places = hull(curve)
    x, y = curve.fp[places] / curve.others, 1.0 - curve.tp[places] / curve.members
    return tuple(zip(x.tolist(), y.tolist(), strict=True))
