"""Every rule of the checker: what it shows exactly, and each wrong step beside it, which is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpaudit.verify.alethe.branches import Inequality, Unknown, contradictory, plain, positive
from dpaudit.verify.alethe.steps import contradicting, lemma
from dpaudit.verify.alethe.terms import asserted, expressions, name_of, read_number, read_polynomial, written
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Polynomial, Truth
from dpaudit.verify.proof import ProofRejected
from tests.cases import for_each

X, Y = Unknown("parameter", "x"), Unknown("parameter", "y")
M, N = Unknown("counter", "m", whole=True), Unknown("counter", "n", whole=True)
SYMBOLS = {name_of(symbol): symbol for symbol in (X, Y, M, N)}


def at_least(least: Any, *, strict: bool = False, **factors: Any) -> Inequality:
    """The sum of factors times x, y, m, n is at least a number, or above it."""
    terms = {"x": X, "y": Y, "m": M, "n": N}
    total = sum((Polynomial.of(terms[name]).times(factor) for name, factor in factors.items()), start=Polynomial())
    found = positive(total - Polynomial.number(Fraction(least)), strict=strict)
    assert isinstance(found, Inequality)
    return found


def step(rule: str, *literals: str, factors: str | None = None) -> str:
    """A step, where x, y, m, n stand for their names."""
    text = " ".join(literals)
    for short, name in (("x", X), ("y", Y), ("m", M), ("n", N)):
        text = " ".join(word.replace(f"<{short}>", f"|{name_of(name)}|") for word in text.split(" "))
    return f"(step t1 (cl {text}) :rule {rule}" + (f" :args ({factors}))" if factors is not None else ")")


# --- inequalities -----------------------------------------------------------------------------------------------


@for_each(
    ("polynomial", "strict", "expected"),
    [
        (Polynomial.of(X).times(4) - Polynomial.number(2), False, at_least(Fraction(1, 2), x=1)),
        (Polynomial.number(2) - Polynomial.of(X).times(4), True, at_least(Fraction(-1, 2), x=-1, strict=True)),
        (Polynomial.of(N).times(Fraction(2, 3)) - Polynomial.number(1), False, at_least(2, n=1)),  # n >= 3/2
        (Polynomial.of(N).times(2) - Polynomial.number(2), True, at_least(2, n=1)),  # n > 1
        (-Polynomial.of(N).times(2) - Polynomial.number(1), False, at_least(1, n=-1)),  # -n >= 1/2
        (
            Polynomial.of(N).times(2) - Polynomial.number(3),
            True,
            Inequality(Polynomial.of(N), False, Fraction(2), False),
        ),
        (
            Polynomial.of(N) + Polynomial.of(X) - Polynomial.number(Fraction(1, 2)),  # not all of it is whole
            True,
            Inequality(Polynomial.of(N) + Polynomial.of(X), False, Fraction(1, 2), True),
        ),
        (Polynomial.number(0), False, Truth(True)),
        (Polynomial.number(0), True, Truth(False)),
        (Polynomial.number(-1), False, Truth(False)),
        (Polynomial.number(Fraction(1, 9)), True, Truth(True)),
    ],
)
def test_inequalities_have_one_form(polynomial: Polynomial, strict: bool, expected: Formula) -> None:
    assert positive(polynomial, strict=strict) == expected


def test_the_opposite_of_an_inequality() -> None:
    assert plain(at_least(1, x=1), False) == at_least(-1, x=-1, strict=True)
    assert plain(at_least(1, n=1), False) == at_least(0, n=-1)
    both = Both((at_least(1, x=1), Opposite(at_least(2, y=1))))
    assert plain(Opposite(both)) == Either((at_least(-1, x=-1, strict=True), at_least(2, y=1)))
    assert plain(plain(both, False), False) == plain(both)


@for_each(
    ("formulas", "expected"),
    [
        ([at_least(1, x=1), at_least(0, x=-1)], True),  # x >= 1, x <= 0
        ([at_least(1, x=1), at_least(-1, x=-1)], False),  # x = 1
        ([at_least(1, x=1), at_least(-1, x=-1, strict=True)], True),
        ([at_least(0, x=1), at_least(1, x=1), at_least(-Fraction(1, 2), x=-1)], True),  # the larger of two counts
        ([Either((at_least(1, x=1), at_least(1, y=1))), at_least(0, x=-1)], False),
        ([Either((at_least(1, x=1), at_least(1, y=1))), at_least(0, x=-1), at_least(0, y=-1)], True),
        ([Either((Both((at_least(1, x=1), at_least(1, y=1))), at_least(2, y=1))), at_least(0, y=-1)], True),
        ([at_least(1, x=1), at_least(1, y=1), at_least(-1, x=-1, y=-1)], False),  # arithmetic is in lemmas
        ([at_least(1, m=1), at_least(-Fraction(3, 2), m=-1)], False),
        ([Truth(False)], True),
        ([Either(())], True),
        ([Both(())], False),
        ([], False),
    ],
)
def test_what_contradicts_without_arithmetic(formulas: list[Formula], expected: bool) -> None:
    assert contradictory(formulas) is expected


# --- la_generic -------------------------------------------------------------------------------------------------

SUM = ("(not (>= <x> 1.0))", "(not (>= <y> 1.0))", "(not (<= (+ <x> <y>) (/ 3.0 2.0)))")
GOOD: dict[str, tuple[str, Formula]] = {
    "a sum": (
        step("la_generic", *SUM, factors="1 1 1"),
        Opposite(Both((at_least(1, x=1), at_least(1, y=1), at_least(-Fraction(3, 2), x=-1, y=-1)))),
    ),
    "factors, scaled": (
        step("la_generic", "(not (>= (* 2.0 <x>) 2.0))", "(not (< <x> 1.0))", factors="(/ 1 2) 1/1"),
        Opposite(Both((at_least(1, x=1), at_least(-1, x=-1, strict=True)))),
    ),
    "literals without not": (
        step("la_generic", "(< <x> 1.0)", "(> <x> 0.0)", factors="1 1"),
        Opposite(Both((at_least(1, x=1), at_least(0, x=-1)))),
    ),
    "an equation, either way": (
        step("la_generic", "(not (= <x> <y>))", "(not (> <x> <y>))", factors="(- 1) 1"),
        Opposite(Both((at_least(0, x=-1, y=1), at_least(0, x=1, y=-1, strict=True)))),
    ),
    "whole limits": (
        step("la_generic", "(not (> (to_real <n>) 0.0))", "(not (< <n> 1))", factors="1 1"),
        Opposite(Both((at_least(1, n=1), at_least(0, n=-1)))),
    ),
    "a literal that is false": (
        step("la_generic", "(>= 0.0 1.0)", "(< <x> 1.0)", "(> <x> 0.0)", factors="3 1 1"),
        Opposite(Both((at_least(1, x=1), at_least(0, x=-1)))),
    ),
}
BAD: dict[str, str] = {
    "the sum is no number": step("la_generic", *SUM, factors="1 2 1"),
    "the sum is 0 and nothing strict": step("la_generic", "(not (>= <x> 1.0))", "(not (<= <x> 1.0))", factors="1 1"),
    "the sum is above 0": step("la_generic", "(not (>= <x> 0.0))", "(not (<= <x> 1.0))", factors="1 1"),
    "a literal left out": step("la_generic", *SUM[:2], factors="1 1"),
    "a factor of 0": step("la_generic", *SUM, factors="1 1 0"),
    "what is strict has the factor 0": step(
        "la_generic", "(not (> <y> 0.0))", "(not (>= <x> 1.0))", "(not (<= <x> 1.0))", factors="0 1 1"
    ),
    "an equation, the other way": step("la_generic", "(not (= <x> <y>))", "(not (> <x> <y>))", factors="1 1"),
    "the opposite of an equation": step("la_generic", "(= <x> <y>)", "(not (> <x> <y>))", factors="1 1"),
    "the opposite of what holds": step("la_generic", "(>= <x> 1.0)", *SUM[1:], factors="1 1 1"),
    "real numbers with whole limits": step("la_generic", "(not (> <x> 0.0))", "(not (< <x> 1.0))", factors="1 1"),
    "fewer factors": step("la_generic", *SUM, factors="1 1"),
    "more factors": step("la_generic", *SUM, factors="1 1 1 1"),
    "no literals": step("la_generic", factors=""),
    "a literal that is true": step("la_generic", "(>= 1.0 0.0)", factors="1"),
    "a word": step("la_generic", "false", *SUM, factors="1 1 1 1"),
    "a factor that is no number": step("la_generic", *SUM, factors="1 1 |parameter.x|"),
    "an unknown symbol": step(
        "la_generic", "(not (>= |parameter.z| 1.0))", "(not (< |parameter.z| 1.0))", factors="1 1"
    ),
    "another rule": step("hole", *SUM, factors="1 1 1"),
    "the rule of all": step("lia_generic", *SUM, factors="1 1 1"),
    "premises": step("la_generic", *SUM, factors="1 1 1")[:-1] + " :premises (t0))",
    "an assumption": "(assume a0 (>= |parameter.x| 1.0))",
    "two steps": step("la_generic", *SUM, factors="1 1 1") * 2,
    "nothing": "",
}


@for_each("what", GOOD)
def test_a_step_of_la_generic_shows_its_clause(what: str) -> None:
    text, clause = GOOD[what]
    assert lemma(text, SYMBOLS) == clause


@for_each("what", BAD)
def test_a_wrong_step_is_refused(what: str) -> None:
    with pytest.raises(ProofRejected):
        lemma(BAD[what], SYMBOLS)


def test_no_inequality_is_taken_less_than_no_times() -> None:
    with pytest.raises(ProofRejected):
        contradicting([(at_least(-1, x=1), Fraction(-1)), (at_least(1, x=1), Fraction(1))])


# --- la_mult_pos ------------------------------------------------------------------------------------------------

PRODUCT = "(=> (and (> <x> 0.0) (>= <y> 2.0)) (>= (* <x> <y>) (* <x> 2.0)))"
STRICT = "(=> (and (> <n> 0) (< <m> 3)) (< (* <n> <m>) (* <n> 3)))"


def test_a_product_with_what_is_positive() -> None:
    shown = lemma(step("la_mult_pos", PRODUCT), SYMBOLS)
    x, y = Polynomial.of(X), Polynomial.of(Y)
    product = positive(x * y - x.times(2), strict=False)
    assert shown == Either((Opposite(at_least(0, x=1, strict=True)), Opposite(at_least(2, y=1)), product))
    assert contradictory([shown, at_least(1, x=1), at_least(2, y=1), Opposite(product)])
    assert not contradictory([shown, at_least(0, x=1), at_least(2, y=1), Opposite(product)])
    lemma(step("la_mult_pos", STRICT), SYMBOLS)


@for_each(
    ("old", "new"),
    [
        ("(> <x> 0.0)", "(>= <x> 0.0)"),
        ("(> <x> 0.0)", "(< <x> 0.0)"),
        ("(> <x> 0.0)", "(> <y> 0.0)"),
        ("(> <x> 0.0)", "(> <x> 1.0)"),
        ("(>= (* <x> <y>)", "(> (* <x> <y>)"),
        ("(>= (* <x> <y>)", "(<= (* <x> <y>)"),
        ("(* <x> 2.0)", "(* <x> 1.0)"),
        ("(* <x> 2.0)", "2.0"),
        ("(>= <y> 2.0)", "(= <y> 2.0)"),
        ("and", "or"),
        ("=>", "="),
    ],
)
def test_a_wrong_product_is_refused(old: str, new: str) -> None:
    assert old in PRODUCT
    with pytest.raises(ProofRejected):
        lemma(step("la_mult_pos", PRODUCT.replace(old, new)), SYMBOLS)


# --- terms ------------------------------------------------------------------------------------------------------


def test_terms_are_read_as_they_are_written() -> None:
    odd = Unknown("size", "|1 - d'| \\ ü!", whole=True)
    symbols = {**SYMBOLS, name_of(odd): odd}
    x, n, o = (Polynomial.of(symbol) for symbol in (X, N, odd))
    for polynomial in (x, -x, x * x * n + o.times(Fraction(-2, 3)) + Polynomial.number(5), Polynomial()):
        text = written(polynomial)
        assert read_polynomial(expressions(text)[0], symbols) == polynomial
        assert text.isascii()
        assert "\\" not in text
    assert name_of(odd) != name_of(Unknown("size", "|1 - d'| ! u!", whole=True))
    assert asserted(at_least(1, x=-1, strict=True)) == "(< |parameter.x| (- 1.0))"
    assert asserted(Either((Truth(True), Both(()), Both((Either(()), at_least(1, n=1)))))) == (
        "(or true true (and false (>= (to_real |counter.n|) 1.0)))"
    )


@for_each(
    ("text", "value"),
    [
        ("3", 3),
        ("(- 3)", -3),
        ("-3/4", Fraction(-3, 4)),
        ("(/ 3 (- 4))", Fraction(-3, 4)),
        ("1.25", Fraction(5, 4)),
        ("(- 3 2 5)", -4),
        ("(+ 1 (* 2 3))", 7),
        ("(/ 12 2 3)", 2),
    ],
)
def test_numbers_are_read(text: str, value: Any) -> None:
    assert read_number(expressions(text)[0]) == value


@for_each("text", ["x", "1e3", "(+)", "()", "(^ 2 3)", "(+ 1 x)", '"1"', "1.", "(to_real)"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ProofRejected):
        read_number(expressions(text)[0])


@for_each("text", ["(", ")", "(()", "())", ")("])
def test_brackets_must_match(text: str) -> None:
    with pytest.raises(ProofRejected):
        expressions(text)
