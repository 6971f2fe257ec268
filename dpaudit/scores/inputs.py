"""Scores as they come: checked once, so that no method meets a NaN, an empty side or a table."""

from typing import Any

import numpy as np

from dpaudit.errors import InvalidSpec


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
