"""Expressions as text, and back; and the quotients of search and checker, against fractions."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, get_args

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment.forms import ZERO, cost_text, variable
from dpaudit.verify.alignment.forms import number as ratio
from dpaudit.verify.language import expression, nodes, read, text
from dpaudit.verify.language.algebra import Ratio
from tests.cases import for_each

PROGRAM = read(
    """
def f(q, rng, eps, N: int, T):
    best = 0
    out = []
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=1 / eps)
        if i == 0 or y > best:
            best = y
        out.append(y)
        if len(out) >= N:
            break
    return out
"""
)
EPS, BEST = nodes.ProgramParameter("eps"), nodes.Variable("best")


def number(value: int | str) -> nodes.Number:
    return nodes.Number(Fraction(value))


FIRST, HIGHER = nodes.Compared("==", nodes.Index(), number(0)), nodes.Compared(">", nodes.Variable("y"), BEST)
NEGATIVE = nodes.Compared("<", BEST, number(0))


@for_each(
    ("words", "tree"),
    [
        ("0.1", number("1/10")),
        ("-eps", nodes.Arithmetical("-", number(0), EPS)),
        ("1 - (2 - 3)", nodes.Arithmetical("-", number(1), nodes.Arithmetical("-", number(2), number(3)))),
        ("1 + 2*3", nodes.Arithmetical("+", number(1), nodes.Arithmetical("*", number(2), number(3)))),
        ("7//2 % 3", nodes.Arithmetical("%", nodes.Arithmetical("//", number(7), number(2)), number(3))),
        (
            "best - draw_1 <= 1",
            nodes.Compared("<=", nodes.Arithmetical("-", BEST, nodes.Variable("draw_1")), number(1)),
        ),
        ("len(out) < N", nodes.Compared("<", nodes.Variable("len(out)"), nodes.ProgramParameter("N"))),
        ("len(out) == n", nodes.Compared("==", nodes.Variable("len(out)"), nodes.Length())),
        ("index == 0 or y > best and not best < 0", nodes.Any((FIRST, nodes.All((HIGHER, nodes.Not(NEGATIVE)))))),
    ],
)
def test_texts_mean_what_they_say(words: str, tree: nodes.Expression) -> None:
    assert expression(words, PROGRAM) == tree
    assert expression(text(tree), PROGRAM) == tree
    assert expression(f"  {words} ", PROGRAM) == tree


@for_each(
    ("words", "reason"),
    [
        ("", "a number, a sign or a bracket is missing"),
        ("(1", "a number, a sign or a bracket is missing"),
        ("1 2", "a number, a sign or a bracket is missing"),
        ("M + 1", "the program has no M"),
        ("best'", 'it holds "\'"'),
        ("len(q)", r"the program has no len\(q\)"),
        ("1 < 2 < 3", "one comparison"),
        ("1 + (2 < 3)", "`2 < 3` is no number"),
        ("1 and 2 < 3", "`1` is neither true nor false"),
        ("not eps", "neither true nor false"),
        ("None + 1", "the program has no None"),
        ("output < 1", "the program has no output"),
        ("eps**2", "a number, a sign or a bracket is missing"),
        ("eps = 1", "it holds '='"),
        ("__import__(os)", "the program has no __import__"),
        ("best.real", r"it holds '\.'"),
        ("(" * 200 + "1" + ")" * 200, ""),
        ("-" * 300 + "1", "too deep"),
        ("+".join(["1"] * 300), "400 words"),
        ("1" * 5000, "more than 300 digits"),
    ],
)
def test_texts_that_say_nothing_are_refused_in_one_line(words: str, reason: str) -> None:
    with pytest.raises(InvalidSpec, match=reason or None) as caught:
        expression(words, PROGRAM)
    assert "\n" not in str(caught.value)


def tree(numbers: random.Random, depth: int, kind: str) -> nodes.Expression:
    """A random expression: a number or a condition."""
    if kind == "truth":
        choice = numbers.randrange(4) if depth else 3
        if choice == 0:
            return nodes.Not(tree(numbers, depth - 1, "truth"))
        if choice in (1, 2):
            parts = tuple(tree(numbers, depth - 1, "truth") for _ in range(numbers.randint(2, 3)))
            return nodes.All(parts) if choice == 1 else nodes.Any(parts)
        sides = [tree(numbers, max(depth - 1, 0), "number") for _ in range(2)]
        return nodes.Compared(numbers.choice(get_args(nodes.Order)), *sides)
    if depth and numbers.random() < 0.7:
        sides = [tree(numbers, depth - 1, "number") for _ in range(2)]
        return nodes.Arithmetical(numbers.choice(get_args(nodes.Operation)), *sides)
    decimal = nodes.Number(Fraction(numbers.randint(-300, 300), numbers.choice([1, 2, 5, 8, 20, 1000])))
    atoms: list[Any] = [decimal, EPS, BEST, nodes.Index(), nodes.Length(), nodes.Variable("y")]
    return atoms[numbers.randrange(len(atoms))]


@for_each("seed", range(8))
def test_texts_of_random_expressions_read_back(seed: int) -> None:
    numbers = random.Random(seed)
    for _ in range(150):
        found = tree(numbers, 4, numbers.choice(["truth", "number"]))
        if len(text(found)) < 500:
            assert expression(text(found), PROGRAM) == found


def test_numbers_are_written_as_sources_write_them_or_as_quotients() -> None:
    third = nodes.Number(Fraction(-1, 3))
    assert text(third) == "(-1)/3"
    assert text(nodes.Arithmetical("*", EPS, nodes.Number(Fraction(2, 3)))) == "eps*(2/3)"
    assert expression("-1/3", PROGRAM) == nodes.Arithmetical("/", number(-1), number(3))
    assert [text(number(each)) for each in ("-1/8", "12345/100")] == ["-0.125", "123.45"]
    assert text(nodes.Arithmetical("-", EPS, number(-2))) == "eps - (-2)"


# --- quotients of polynomials, as the search writes them into proofs -------------------------------------------------


RATIO, N, M = variable("eps"), variable("N"), variable("M")
ONE, TWO = ratio(1), ratio(2)
OPERATIONS: tuple[Callable[[Ratio, Ratio], Ratio], ...] = (operator.add, operator.sub, operator.mul, operator.truediv)


def grown(rng: random.Random, depth: int) -> tuple[Ratio, Callable[[Mapping[str, Fraction]], Fraction]]:
    """A random ratio, and the same built from fractions."""
    if depth == 0:
        if rng.random() < 0.5:
            name = rng.choice(("eps", "N", "M"))
            return variable(name), lambda at: at[name]
        value = Fraction(rng.randint(-3, 3), rng.randint(1, 3))
        return ratio(value), lambda at: value
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
            found = made.put({name: ratio(value) for name, value in at.items()})
        except ZeroDivisionError:
            continue  # at this point; a ratio may have cancelled the divisor
        assert found.constant == expected
        assert float(eval(cost_text(made), {}, at)) == pytest.approx(float(expected), rel=1e-9)


def test_equal_sums_are_equal() -> None:
    assert RATIO / N + N / RATIO - (RATIO * RATIO + N * N) / (RATIO * N) == ZERO
    assert (RATIO + N) * (RATIO + N) - RATIO * RATIO - N * N == TWO * RATIO * N
    assert ratio(Fraction(1, 2)) == (RATIO + N) / (TWO * RATIO + TWO * N)
    with pytest.raises(ZeroDivisionError):
        RATIO / (N - N)


@for_each(
    ("cost", "text"),
    [
        (RATIO / TWO, "eps/2"),
        ((ONE + ratio(6) * N) * RATIO / ratio(4), "(6*N*eps + eps)/4"),
        (RATIO / (TWO * N) + (N - ONE) * RATIO / N + RATIO / (TWO * N), "eps"),
        (ONE / (RATIO * (N + ONE)) * (N * N - ONE), "(N - 1)/eps"),
        (ratio(Fraction(-3, 2)) * RATIO / (ratio(4) * N - TWO), "-3*eps/(8*N - 4)"),
        ((RATIO + RATIO * N) / (N + ONE) / (M * M + TWO * M + ONE), "eps/(M*M + 2*M + 1)"),
        (ZERO, "0"),
    ],
)
def test_costs_are_written_in_lowest_terms(cost: Ratio, text: str) -> None:
    assert cost_text(cost) == text
