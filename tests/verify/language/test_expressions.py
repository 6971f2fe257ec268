"""Expressions as text, and back."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any, get_args

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import expression, nodes, read, text
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


@for_each(
    ("words", "tree"),
    [
        ("2*eps", nodes.Arithmetical("*", number(2), EPS)),
        ("0.1", number("1/10")),
        ("-3", number(-3)),
        ("-eps", nodes.Arithmetical("-", number(0), EPS)),
        ("1 - 2 - 3", nodes.Arithmetical("-", nodes.Arithmetical("-", number(1), number(2)), number(3))),
        ("1 - (2 - 3)", nodes.Arithmetical("-", number(1), nodes.Arithmetical("-", number(2), number(3)))),
        ("8/4/2", nodes.Arithmetical("/", nodes.Arithmetical("/", number(8), number(4)), number(2))),
        ("1 + 2*3", nodes.Arithmetical("+", number(1), nodes.Arithmetical("*", number(2), number(3)))),
        ("7//2 % 3", nodes.Arithmetical("%", nodes.Arithmetical("//", number(7), number(2)), number(3))),
        ("best' - best <= 1", nodes.Compared("<=", nodes.Arithmetical("-", nodes.Variable("best'"), BEST), number(1))),
        ("len(out) < N", nodes.Compared("<", nodes.Variable("len(out)"), nodes.ProgramParameter("N"))),
        ("len(out)' == n", nodes.Compared("==", nodes.Variable("len(out)'"), nodes.Length())),
        (
            "index == 0 or y > best and not best < 0",
            nodes.Any(
                (
                    nodes.Compared("==", nodes.Index(), number(0)),
                    nodes.All(
                        (
                            nodes.Compared(">", nodes.Variable("y"), BEST),
                            nodes.Not(nodes.Compared("<", BEST, number(0))),
                        )
                    ),
                )
            ),
        ),
        ("answer + draw_1", nodes.Arithmetical("+", nodes.Answer(), nodes.Variable("draw_1"))),
        ("None", nodes.Symbol("None")),
        ("'a b'", nodes.Symbol("'a b'")),
        ("output", nodes.Emitted()),
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
        ("1 +", "a number, a sign or a bracket is missing"),
        ("(1", "a number, a sign or a bracket is missing"),
        ("1)", "a number, a sign or a bracket is missing"),
        ("1 2", "a number, a sign or a bracket is missing"),
        ("M + 1", "the program has no M"),
        ("eps'", "the program has no eps'"),
        ("index'", "the program has no index'"),
        ("best''", ""),
        ("len(q)", r"the program has no len\(q\)"),
        ("1 < 2 < 3", "one comparison"),
        ("1 + (2 < 3)", "`2 < 3` is no number"),
        ("1 and 2 < 3", "`1` is neither true nor false"),
        ("not eps", "neither true nor false"),
        ("None + 1", "`None` is no number"),
        ("output < 1", "`output` is no number"),
        ("eps**2", "a number, a sign or a bracket is missing"),
        ("eps = 1", "it holds '='"),
        ("eps; 1", "it holds ';'"),
        ("__import__('os')", "the program has no __import__"),
        ("best.real", r"it holds '\.'"),
        ("and", "a number, a sign or a bracket is missing"),
        ("1e3", "the program has no e3"),
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
    atoms: list[Any] = [decimal, EPS, BEST, nodes.Index(), nodes.Length(), nodes.Answer(), nodes.Variable("y'")]
    return atoms[numbers.randrange(len(atoms))]


@for_each("seed", range(8))
def test_texts_of_random_expressions_read_back(seed: int) -> None:
    numbers = random.Random(seed)
    for _ in range(150):
        found = tree(numbers, 4, numbers.choice(["truth", "number"]))
        if len(text(found)) < 500:
            assert expression(text(found), PROGRAM) == found


def test_fractions_without_a_finite_decimal_are_quotients_of_the_same_value() -> None:
    third = nodes.Number(Fraction(-1, 3))
    assert text(third) == "(-1)/3"
    assert text(nodes.Arithmetical("*", EPS, nodes.Number(Fraction(2, 3)))) == "eps*(2/3)"
    assert expression("-1/3", PROGRAM) == nodes.Arithmetical("/", number(-1), number(3))


def test_sources_and_texts_write_numbers_alike() -> None:
    assert text(number("-1/8")) == "-0.125"
    assert text(number("12345/100")) == "123.45"
    assert text(nodes.Arithmetical("-", EPS, number(-2))) == "eps - (-2)"
