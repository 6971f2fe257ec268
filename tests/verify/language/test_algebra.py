"""The quotients of search and checker, against fractions; and as the search writes them into proofs."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from fractions import Fraction

import pytest

from dpaudit.verify.alignment.forms import ZERO, cost_text, number, variable
from dpaudit.verify.language.algebra import Ratio
from tests.cases import for_each

EPS, N, M = variable("eps"), variable("N"), variable("M")
ONE, TWO = number(1), number(2)
OPERATIONS: tuple[Callable[[Ratio, Ratio], Ratio], ...] = (operator.add, operator.sub, operator.mul, operator.truediv)


def grown(rng: random.Random, depth: int) -> tuple[Ratio, Callable[[Mapping[str, Fraction]], Fraction]]:
    """A random ratio, and the same built from fractions."""
    if depth == 0:
        if rng.random() < 0.5:
            name = rng.choice(("eps", "N", "M"))
            return variable(name), lambda at: at[name]
        value = Fraction(rng.randint(-3, 3), rng.randint(1, 3))
        return number(value), lambda at: value
    (left, left_at), (right, right_at) = grown(rng, depth - 1), grown(rng, depth - 1)
    operation = rng.choice(OPERATIONS)
    if operation is operator.truediv and right == ZERO:
        operation = operator.add
    return operation(left, right), lambda at: operation(left_at(at), right_at(at))  # type: ignore[arg-type,return-value]


@for_each("seed", range(60))
def test_ratios_and_their_texts_are_what_fractions_say(seed: int) -> None:
    rng = random.Random(seed)
    made, oracle = grown(rng, 3)
    assert made - made == ZERO
    assert made == ZERO or cost_text(made / made) == "1"
    for _ in range(3):
        at = {name: Fraction(rng.randint(1, 9), rng.randint(1, 5)) for name in ("eps", "N", "M")}
        try:
            expected = oracle(at)
            found = made.put({name: number(value) for name, value in at.items()})
        except ZeroDivisionError:
            continue  # at this point; a ratio may have cancelled the divisor
        assert found.constant == expected
        assert float(eval(cost_text(made), {}, at)) == pytest.approx(float(expected), rel=1e-9)


def test_equal_sums_are_equal() -> None:
    assert EPS / N + N / EPS - (EPS * EPS + N * N) / (EPS * N) == ZERO
    assert (EPS + N) * (EPS + N) - EPS * EPS - N * N == TWO * EPS * N
    assert number(Fraction(1, 2)) == (EPS + N) / (TWO * EPS + TWO * N)


def test_division_by_nothing_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        EPS / (N - N)


@for_each(
    ("cost", "text"),
    [
        (EPS / TWO, "eps/2"),
        ((ONE + number(6) * N) * EPS / number(4), "(6*N*eps + eps)/4"),
        (EPS / (TWO * N) + (N - ONE) * EPS / N + EPS / (TWO * N), "eps"),
        (ONE / (EPS * (N + ONE)) * (N * N - ONE), "(N - 1)/eps"),
        (number(Fraction(-3, 2)) * EPS / (number(4) * N - TWO), "-3*eps/(8*N - 4)"),
        ((EPS + EPS * N) / (N + ONE) / (M * M + TWO * M + ONE), "eps/(M*M + 2*M + 1)"),
        (ZERO, "0"),
    ],
)
def test_costs_are_written_in_lowest_terms(cost: Ratio, text: str) -> None:
    assert cost_text(cost) == text
