"""Rational functions: exact, cancelled, and said in the words of the language."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from dpaudit.verify.alignment.rational import Rational, number, total, variable
from tests.cases import for_each

EPS, N, M = variable("eps"), variable("N"), variable("M")
VALUES = {"eps": Fraction(17, 13), "N": Fraction(11, 3), "M": Fraction(29, 7)}


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (EPS / number(2), "eps/2"),
        ((number(1) + number(6) * N) * EPS / number(4), "(6*N*eps + eps)/4"),
        (EPS / (number(2) * N) + (N - number(1)) * EPS / N + EPS / (number(2) * N), "eps"),
        (number(1) / (EPS * (N + number(1))) * (N * N - number(1)), "(N*N - 1)/(N*eps + eps)"),
        (number(Fraction(-3, 2)) * EPS / (number(4) * N - number(2)), "-3*eps/(8*N - 4)"),
        (number(0), "0"),
    ],
)
def test_texts(function: Rational, text: str) -> None:
    assert str(function) == text


def drawn(rng: random.Random, depth: int) -> Rational:
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
    return part if other.zero else part / other


@for_each("seed", range(40))
def test_arithmetic_against_values(seed: int) -> None:
    rng = random.Random(seed)
    left, right = drawn(rng, 3), drawn(rng, 3)
    assert (left + right).at(VALUES) == left.at(VALUES) + right.at(VALUES)
    assert (left * right).at(VALUES) == left.at(VALUES) * right.at(VALUES)
    assert (left - left).zero
    assert left.same(left + right - right)
    assert total([left, right]).same(left + right)
    if not right.zero:
        assert (left / right).at(VALUES) == left.at(VALUES) / right.at(VALUES)
        assert (right / right).constant == 1


def test_division_by_zero_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        EPS / (N - N)
