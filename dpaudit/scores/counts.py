"""What methods start from, checked once: scores without a NaN or an empty side, or the four counts of a fixed rule."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec

NAMES = ("tp", "fp", "tn", "fn")
MOST = 10**15  # of a count; sums over likely counts grow with its root


@dataclass(frozen=True, slots=True)
class AttackCounts:
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

    def to_dict(self) -> dict[str, int]:
        """The counts as JSON holds them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "AttackCounts":
        """The counts in a mapping with the keys tp, fp, tn, fn (capitals are accepted).

        >>> AttackCounts.from_dict({"TP": 3, "FP": 1, "TN": 4, "FN": 2})
        AttackCounts(tp=3, fp=1, tn=4, fn=2)
        """
        found = {str(key).lower(): value for key, value in stored.items()}
        if set(found) != set(NAMES) or len(stored) != len(NAMES):
            raise InvalidSpec(
                f"counts must have the keys tp, fp, tn, fn, got {clean(', '.join(map(str, stored)), 200) or 'none'}"
            )
        return cls(**found)

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
    inside, outside = _side("in_scores", in_scores), _side("out_scores", out_scores)
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
    values, coins = _side("scores", scores), np.asarray(included)
    if coins.dtype != bool or coins.shape != values.shape:
        got = f"{coins.dtype} of shape {coins.shape}"
        raise InvalidSpec(f"included must be bools, one for each of the {values.size} scores, got {got}")
    return values, coins


def _side(name: str, scores: Any) -> Any:
    try:
        given = np.asarray(scores)
        if given.dtype.kind in "cSUmM":  # complex numbers, words and times would be made to fit
            raise TypeError
        values = given.astype(float)
    except (TypeError, ValueError):
        raise InvalidSpec(f"{name} must be real numbers, one for each example, got {_shown(scores)}") from None
    if values.ndim != 1:
        raise InvalidSpec(f"{name} must be one-dimensional, got shape {values.shape}; give one score for each example")
    if values.size == 0:
        raise InvalidSpec(f"{name} must hold at least one score, got none")
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        place = int(wrong[0])
        raise InvalidSpec(
            f"{name}[{place}] must be finite, got {values[place]} ({wrong.size} such); "
            "give these examples the lowest score the attack can give, not a gap"
        )
    return values


def _shown(scores: Any) -> str:
    text = " ".join(repr(scores).split())
    return text if len(text) <= 60 else text[:57] + "..."
