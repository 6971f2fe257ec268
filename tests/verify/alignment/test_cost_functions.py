"""Costs: exact, cancelled, and said in the words of the language."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from dpaudit.verify.alignment.forms import ZERO, cost_text, number, variable
from dpaudit.verify.language.algebra import Ratio
from tests.cases import for_each

EPS, N, M = variable("eps"), variable("N"), variable("M")
VALUES = {"eps": Fraction(17, 13), "N": Fraction(11, 3), "M": Fraction(29, 7)}


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (EPS / number(2), "eps/2"),
        ((number(1) + number(6) * N) * EPS / number(4), "(6*N*eps + eps)/4"),
        (EPS / (number(2) * N) + (N - number(1)) * EPS / N + EPS / (number(2) * N), "eps"),
        (number(1) / (EPS * (N + number(1))) * (N * N - number(1)), "(N - 1)/eps"),
        (number(Fraction(-3, 2)) * EPS / (number(4) * N - number(2)), "-3*eps/(8*N - 4)"),
        ((EPS + EPS * N) / (N + number(1)) / (M * M + M + M + number(1)), "eps/(M*M + 2*M + 1)"),
        (number(0), "0"),
    ],
)
def test_texts(cost: Ratio, text: str) -> None:
    assert cost_text(cost) == text


def drawn(rng: random.Random, depth: int) -> Ratio:
    part = rng.choice([EPS, N, M, number(rng.randint(-3, 3)), number(Fraction(1, 3))])
    if not depth:
        return part
    other = drawn(rng, depth - 1)
    match rng.choice("+-*/"):
        case "+":
            return part + other
        case "-":
            return part - other
        case "*":
            return part * other
    return part if other == ZERO else part / other


def value(cost: Ratio) -> Fraction:
    """The value at one point; in the words of the cost it is the same."""
    at_once = cost.put({name: number(each) for name, each in VALUES.items()}).constant
    assert at_once is not None
    assert float(at_once) == pytest.approx(float(eval(cost_text(cost), {}, VALUES)), rel=1e-9)
    return at_once


@for_each("seed", range(40))
def test_arithmetic_against_values(seed: int) -> None:
    rng = random.Random(seed)
    left, right = drawn(rng, 3), drawn(rng, 3)
    assert value(left + right) == value(left) + value(right)
    assert value(left * right) == value(left) * value(right)
    assert left - left == left + right - right - left == ZERO
    if right != ZERO:
        assert value(left / right) == value(left) / value(right)
        assert cost_text(right / right) == "1"


def test_division_by_zero_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        EPS / (N - N)
