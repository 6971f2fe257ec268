"""What methods start from: scores without a NaN or an empty side, the four counts of a fixed rule, and the ROC.

The ROC has the counts of every threshold at once.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.quoting import clean
from dpaudit.base.strict import Written
from dpaudit.claims import GaussianDP
from dpaudit.errors import InvalidSpec
from dpaudit.results.observations import BINS, Histogram, counts_on, grid

NAMES = ("tp", "fp", "tn", "fn")
FEWEST_BINS = 12  # of a histogram of scores
MOST = 10**15  # of a count; sums over likely counts grow with its root


@dataclass(frozen=True, slots=True)
class AttackCounts(Written):
    """How often the attack guessed "in", on members (`tp`, `fn`) and on the others (`fp`, `tn`).

    `tp`, `fn` are the members guessed in and guessed out; `fp`, `tn` the non-members guessed in and guessed out.
    Raises `InvalidSpec` for a count that is no whole number, and where one of the two groups is empty.

    >>> AttackCounts(tp=30, fp=10, tn=90, fn=70).tpr
    0.3
    """

    tp: int
    fp: int
    tn: int
    fn: int

    def __post_init__(self) -> None:
        for name in NAMES:
            object.__setattr__(self, name, validate.whole(name, getattr(self, name), least=0))
            if getattr(self, name) > MOST:
                raise InvalidSpec(f"{name} must be at most {MOST:,}, got {getattr(self, name):,}")
        for words, size in (("members (tp + fn)", self.members), ("non-members (fp + tn)", self.others)):
            if size == 0:
                raise InvalidSpec(f"counts: there must be at least one of the {words}, got 0")

    @property
    def members(self) -> int:
        """How many scores of members were counted."""
        return self.tp + self.fn

    @property
    def others(self) -> int:
        """How many scores of non-members were counted."""
        return self.fp + self.tn

    @property
    def tpr(self) -> float:
        """The part of the members that was guessed in."""
        return self.tp / self.members

    @property
    def fpr(self) -> float:
        """The part of the non-members that was guessed in."""
        return self.fp / self.others

    @property
    def accuracy(self) -> float:
        """The part of all guesses that was right."""
        return (self.tp + self.tn) / (self.members + self.others)

    @property
    def advantage(self) -> float:
        """The membership advantage tpr - fpr (Yeom, Giacomelli, Fredrikson & Jha 2018)."""
        return self.tpr - self.fpr

    def reversed(self) -> "AttackCounts":
        """The counts of the attack that says the opposite."""
        return AttackCounts(tp=self.fn, fp=self.tn, tn=self.fp, fn=self.tp)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "AttackCounts":
        """The counts in a mapping with the keys tp, fp, tn, fn (capitals are accepted).

        >>> AttackCounts.from_dict({"TP": 3, "FP": 1, "TN": 4, "FN": 2})
        AttackCounts(tp=3, fp=1, tn=4, fn=2)
        """
        entries = {str(key).lower(): value for key, value in stored.items()}
        if set(entries) != set(NAMES) or len(stored) != len(NAMES):
            raise InvalidSpec(
                f"counts must have the keys tp, fp, tn, fn, got {clean(', '.join(map(str, stored)), 200) or 'none'}"
            )
        return cls(**entries)

    @classmethod
    def from_scores(cls, in_scores: Any, out_scores: Any, threshold: float) -> "AttackCounts":
        """The counts of the rule "in where the score is at least `threshold`": a tie with it is a guess "in".

        >>> AttackCounts.from_scores([1.0, 2.0], [0.0, 1.0], 1.0)
        AttackCounts(tp=2, fp=1, tn=1, fn=0)
        """
        inside, outside = np.asarray(in_scores, dtype=float), np.asarray(out_scores, dtype=float)
        tp, fp = int(np.sum(inside >= threshold)), int(np.sum(outside >= threshold))
        return cls(tp=tp, fp=fp, tn=int(outside.size) - fp, fn=int(inside.size) - tp)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the counts as JSON."""
        Path(path).write_text(json.dumps(self.to_dict()) + "\n", encoding="utf-8")
        return Path(path)


def checked(in_scores: Any, out_scores: Any) -> tuple[Any, Any]:
    """Both sides as one-dimensional arrays of finite floats.

    Raises `InvalidSpec` where a side is empty, not numbers, not one-dimensional, holds NaN or an infinity, and where
    all scores are the same value.
    """
    inside, outside = side("in_scores", in_scores), side("out_scores", out_scores)
    first = inside[0]
    if np.all(inside == first) and np.all(outside == first):
        raise InvalidSpec(
            f"in_scores and out_scores are all {first:g}: there is nothing to tell apart; give the scores"
        )
    return inside, outside


def coins_of(scores: Any, included: Any) -> tuple[Any, Any]:
    """Scores and coins of one training's canaries as floats and bools, both of shape (canaries,).

    Raises `InvalidSpec` for what `checked` refuses, and where there is not one coin for each score.
    """
    values, coins = side("scores", scores), np.asarray(included)
    if coins.dtype != bool or coins.shape != values.shape:
        got = f"{coins.dtype} of shape {coins.shape}"
        raise InvalidSpec(f"included must be bools, one for each of the {values.size} scores, got {got}")
    return values, coins


def side(name: str, scores: Any, least: int = 1) -> Any:
    """One side's scores as floats, shape (scores,); raises `InvalidSpec` where they are fewer than `least`, or none."""
    try:
        given = np.asarray(scores)
        if given.dtype.kind in "cSUmM":  # complex numbers, words and times would be made to fit
            raise TypeError
        values = given.astype(float)
    except (TypeError, ValueError):
        text = " ".join(repr(scores).split())
        got = text if len(text) <= 60 else text[:57] + "..."
        raise InvalidSpec(f"{name} must be real numbers, one for each example, got {got}") from None
    if values.ndim != 1:
        raise InvalidSpec(f"{name} must be one-dimensional, got shape {values.shape}; give one score for each example")
    if values.size < least:
        raise InvalidSpec(f"{name} must hold at least one score, got none")
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        place = int(wrong[0])
        raise InvalidSpec(
            f"{name}[{place}] must be finite, got {values[place]} ({wrong.size} such); "
            "give these examples the lowest score the attack can give, not a gap"
        )
    return values


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
    places: list[int] = []
    tp, fp = curve.tp.tolist(), curve.fp.tolist()
    for place in range(len(tp)):
        while len(places) > 1:
            a, b = places[-2], places[-1]
            if (tp[b] - tp[a]) * (fp[place] - fp[b]) > (tp[place] - tp[b]) * (fp[b] - fp[a]):
                break
            places.pop()
        places.append(place)
    return np.array(places)


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
    fpr, fnr = curve.fp[places] / curve.others, 1.0 - curve.tp[places] / curve.members
    return tuple(zip(fpr.tolist(), fnr.tolist(), strict=True))


# --- error rates as an epsilon (Kairouz, Oh & Viswanath 2015, theorem 2.1) or a mu, and a mu as an epsilon at delta ---

# Mu is that of the Gaussian model (Nasr et al. 2023, section 5). A bound on mu is model-free; reading an epsilon at a
# small delta off it says that the mechanism's curve is Gaussian.


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
