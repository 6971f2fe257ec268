"""The interpreter: exact numbers, and parameters that must fit."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import read
from tests.cases import for_each
from tests.verify.interpreter import run

PROGRAM = read(
    """
def f(q, rng, eps, N: int = 1):
    assert eps > 0
    assert N >= 1
    out = []
    for x in q:
        y = x + rng.laplace(scale=1 / eps)
        out.append(y / 3)
        if len(out) >= N:
            break
    return out
"""
)


def nothing(law: str, scale: Any) -> Fraction:
    return Fraction(0)


def test_fractions_stay_exact_and_floats_stay_floats() -> None:
    assert run(PROGRAM, [1, 2], {"eps": 1, "N": 2}, nothing) == (Fraction(1, 3), Fraction(2, 3))
    assert run(PROGRAM, [Fraction(1, 7)], {"eps": Fraction(1)}, nothing) == (Fraction(1, 21),)
    (found,) = run(PROGRAM, [0.5], {"eps": 2.0}, lambda law, scale: scale)
    assert (type(found), found) == (float, (0.5 + 0.5) / 3)


def test_scales_and_laws_reach_the_draws() -> None:
    asked = []
    text = "def f(q, rng, b):\n    return q + rng.normal(1, b) - rng.exponential(b / 2) + rng.gumbel(scale=3)"
    assert run(read(text), 0, {"b": 4}, lambda *asked_for: asked.append(asked_for) or Fraction(1)) == 2
    assert asked == [("normal", 4), ("exponential", 2), ("gumbel", 3)]


@for_each(
    ("answers", "parameters", "words"),
    [
        ([1], {}, "f needs a value of its parameter eps"),
        ([1], {"eps": 1, "c": 2}, "f has no parameter c: it has eps, N"),
        ([1], {"eps": 1, "N": Fraction(3, 2)}, "N of f must be a whole number, got 3/2"),
        ([1], {"eps": 1, "N": 0}, "must keep what f asserts"),
        ([1], {"eps": -1}, "must keep what f asserts"),
        ([], {"eps": 1}, "needs at least one answer"),
        (1, {"eps": 1}, "takes a list of answers, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(answers: Any, parameters: Mapping[str, Any], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        run(PROGRAM, answers, parameters, nothing)


def test_a_scale_must_be_above_0_and_a_single_answer_is_a_number() -> None:
    program = read("def f(q, rng, b):\n    return q + rng.laplace(scale=b)")
    with pytest.raises(InvalidSpec, match="the scale in line 2 must be above 0, got -1"):
        run(program, 1, {"b": -1}, nothing)
    with pytest.raises(InvalidSpec, match="takes one number"):
        run(program, [1], {"b": 1}, nothing)


def test_symbols_are_what_python_writes() -> None:
    program = read("def f(q, rng):\n    return None, True, False, 'it\\'s', \"None\"")
    assert run(program, 0, {}, nothing) == (None, True, False, "it's", "None")
