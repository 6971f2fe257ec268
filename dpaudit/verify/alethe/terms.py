"""Terms of SMT-LIB and Alethe: written from inequalities, and read. All arithmetic is written in real numbers."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpaudit.verify.alethe.branches import Inequality
from dpaudit.verify.language.algebra import Both, Either, Formula, Polynomial, Truth
from dpaudit.verify.proof import ProofRejected

TOKEN = re.compile(r'\|[^|]*\||"[^"]*"|[()]|[^\s()|"]+')
NUMBER = re.compile(r"-?\d+(/\d+|\.\d+)?")
ODD = re.compile(r"[^\w .'()+*/^,%-]|[^\x20-\x7e]")  # what a name of SMT-LIB may not have, and "!"


def name_of(symbol: Any) -> str:
    """The name of a symbol, without the bars around it."""
    return ODD.sub(lambda odd: f"!{ord(odd[0]):x}!", f"{symbol.kind}.{symbol.name}")


def asserted(formula: Formula) -> str:
    """A formula without "not" as a term."""
    match formula:
        case Inequality(form, opposite, least, strict):
            sign = ("<" if opposite else ">") + "=" * (not strict)
            return f"({sign} {written(form)} {_numeral(-least if opposite else least)})"
        case Both(parts) | Either(parts) if parts:
            return f"({'and' if isinstance(formula, Both) else 'or'} {' '.join(map(asserted, parts))})"
    return "true" if formula in (Truth(True), Both(())) else "false"


def written(polynomial: Polynomial) -> str:
    """A polynomial as a term."""
    terms = []
    for monomial, value in polynomial.terms:
        symbols = [symbol for symbol, power in monomial for _ in range(power)]
        factors = [f"(to_real |{name_of(each)}|)" if each.whole else f"|{name_of(each)}|" for each in symbols]
        factors = factors if factors and value == 1 else [_numeral(value), *factors]
        terms.append(f"(* {' '.join(factors)})" if len(factors) > 1 else factors[0])
    return f"(+ {' '.join(terms)})" if len(terms) > 1 else "".join(terms) or "0.0"


def _numeral(value: Fraction) -> str:
    size = f"{abs(value.numerator)}.0"
    size = size if value.denominator == 1 else f"(/ {size} {value.denominator}.0)"
    return f"(- {size})" if value < 0 else size


def expressions(text: str) -> list[Any]:
    """S-expressions as lists of texts. Raises `ProofRejected`."""
    stack: list[list[Any]] = [[]]
    for token in TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")" and len(stack) > 1:
            stack[-2].append(stack.pop())
        else:
            stack[-1].append(token)
    if len(stack) > 1 or ")" in stack[0]:
        raise ProofRejected(f"brackets that do not match: {text[:80]}")
    return stack[0]


def read_polynomial(term: Any, symbols: Mapping[str, Any]) -> Polynomial:
    """The polynomial that a term is, over these symbols by name. Raises `ProofRejected`."""
    match term:
        case str() if term.strip("|") in symbols:
            return Polynomial.of(symbols[term.strip("|")])
        case str() if NUMBER.fullmatch(term):
            return Polynomial.number(Fraction(term))
        case ["to_real", part]:
            return read_polynomial(part, symbols)
        case ["+" | "-" | "*" | "/" as sign, first, *others]:
            total = read_polynomial(first, symbols)
            if sign == "-" and not others:
                return -total
            for other in others:
                if sign == "/":
                    total = total.times(1 / read_number(other))
                else:
                    value = read_polynomial(other, symbols)
                    total = total + value if sign == "+" else total - value if sign == "-" else total * value
            return total
    raise ProofRejected(f"not a term over the symbols of the obligation: {term}")


def read_number(term: Any) -> Fraction:
    """The number that a term is. Raises `ProofRejected`."""
    number = read_polynomial(term, {}).constant
    assert number is not None
    return number
