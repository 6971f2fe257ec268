"""Expressions as text, and back: the words of a stored proof.

`index` is the loop's index, `n` the number of answers, `answer` the answer at the index, `output` the list of
outputs, `len(out)` how many there are; a prime, as in `best'`, means the variable of the second run. Numbers are
exact: 0.1 is one tenth here, and in a source the double that Python reads. Symbols are None, True, False and texts
in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import get_args

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import bindings

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>len\([^()]+\)'?|[^\W\d]\w*'?)"
    r"|(?P<symbol>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<sign>//|<=|>=|==|!=|[-+*/%<>()]))"
)
WORDS: dict[str, nodes.Expression] = {
    "index": nodes.Index(),
    "n": nodes.Length(),
    "answer": nodes.Answer(),
    "output": nodes.Emitted(),
    "None": nodes.Symbol("None"),
    "True": nodes.Symbol("True"),
    "False": nodes.Symbol("False"),
}
DEEPEST = 100  # of brackets within brackets, in a text from a file
DIGITS = 300  # of a number
LONGEST = 400  # words of such a text


def text(expression: nodes.Expression) -> str:
    """An expression in words; `expression` reads it back.

    >>> text(nodes.Arithmetical("*", nodes.Number(Fraction(1, 2)), nodes.ProgramParameter("eps")))
    '0.5*eps'
    """
    return _text(expression, 0)


def expression(words: str, program: nodes.Program) -> nodes.Expression:
    """The expression that a text says, in the names of a program. Raises `InvalidSpec` where it says none.

    >>> program = nodes.Program("f", "", "q", ("eps",), frozenset(), (), (), None, (), ())
    >>> expression("eps/2 <= 1", program).order
    '<='
    """
    reader = _Reader(words, list(_tokens(words)), frozenset(program.parameters), variables(program))
    if len(reader.tokens) > LONGEST:
        raise InvalidSpec(f"the text of an expression may have {LONGEST} words, this one has {len(reader.tokens):,}")
    found = reader.either()
    if reader.place != len(reader.tokens):
        raise reader.error(f"it goes on with {reader.tokens[reader.place][1]!r}")
    return found


def variables(program: nodes.Program) -> frozenset[str]:
    """The names of all variables of a program, its draws included."""
    return frozenset(name for name, _ in bindings(program.body))


# --- to text: levels are 0 or, 1 and, 2 not, 3 comparison, 4 sum, 5 product, 6 minus ----------------------------


def _text(expression: nodes.Expression, level: int) -> str:
    match expression:
        case nodes.Number(value=value):
            return _number(value, level)
        case nodes.Symbol(name=name) | nodes.ProgramParameter(name=name) | nodes.Variable(name=name):
            return name
        case nodes.Answer():
            return "answer"
        case nodes.Index():
            return "index"
        case nodes.Length():
            return "n"
        case nodes.Emitted():
            return "output"
        case nodes.Arithmetical(operation=operation, left=left, right=right):
            own = 4 if operation in "+-" else 5
            sign = f" {operation} " if own == 4 else operation
            return _bracketed(f"{_text(left, own)}{sign}{_text(right, own + 1)}", own < level)
        case nodes.Compared(order=order, left=left, right=right):
            return _bracketed(f"{_text(left, 4)} {order} {_text(right, 4)}", level > 3)
        case nodes.All(parts=parts):
            return _joined(" and ", parts, 1, level)
        case nodes.Any(parts=parts):
            return _joined(" or ", parts, 0, level)
        case nodes.Not(part=part):
            return _bracketed(f"not {_text(part, 2)}", level > 2)


def _joined(word: str, parts: tuple[nodes.Expression, ...], own: int, level: int) -> str:
    return _bracketed(word.join(_text(part, own + 1) for part in parts), own < level)


def _number(value: Fraction, level: int) -> str:
    written, rest = str(abs(value.numerator)), value.denominator
    if rest != 1:
        twos, fives = _power(rest, 2), _power(rest, 5)
        if 2**twos * 5**fives != rest:  # no finite decimal: a quotient, of the same value
            quotient = nodes.Arithmetical("/", nodes.Number(Fraction(value.numerator)), nodes.Number(Fraction(rest)))
            return _text(quotient, level)
        digits = max(twos, fives)
        whole = str(abs(value.numerator) * 10**digits // rest).rjust(digits + 1, "0")
        written = f"{whole[:-digits]}.{whole[-digits:]}"
    return _bracketed(f"-{written}", level > 4) if value < 0 else written


def _power(number: int, factor: int) -> int:
    power = 0
    while number % factor == 0:
        number, power = number // factor, power + 1
    return power


def _bracketed(words: str, needed: bool) -> str:
    return f"({words})" if needed else words


# --- from text ------------------------------------------------------------------------------------------------


def _tokens(words: str) -> Iterator[tuple[str, str]]:
    place = 0
    while words[place:].strip():
        found = TOKEN.match(words, place)
        if found is None or found.lastgroup is None:
            raise InvalidSpec(f"the text {words!r} says no expression: it holds {words[place:].strip()[0]!r}")
        yield found.lastgroup, found[found.lastgroup]
        place = found.end()


@dataclass(slots=True)
class _Reader:
    words: str
    tokens: list[tuple[str, str]]
    parameters: frozenset[str]
    variables: frozenset[str]
    place: int = field(default=0)
    depth: int = field(default=0)

    def error(self, reason: str) -> InvalidSpec:
        return InvalidSpec(f"the text {self.words!r} says no expression: {reason}")

    def takes(self, *signs: str) -> str | None:
        """The next token if it is one of these, and steps over it."""
        if self.place < len(self.tokens) and self.tokens[self.place][1] in signs:
            self.place += 1
            return self.tokens[self.place - 1][1]
        return None

    def either(self) -> nodes.Expression:
        parts = [self.both()]
        while self.takes("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else nodes.Any(tuple(map(self.truth, parts)))

    def both(self) -> nodes.Expression:
        parts = [self.negated()]
        while self.takes("and"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else nodes.All(tuple(map(self.truth, parts)))

    def negated(self) -> nodes.Expression:
        if self.takes("not"):
            self.deeper()
            return nodes.Not(self.truth(self.negated()))
        return self.compared()

    def compared(self) -> nodes.Expression:
        left = self.sum()
        for order in get_args(nodes.Order):
            if self.takes(order):
                return nodes.Compared(order, self.number(left), self.number(self.sum()))
        return left

    def sum(self) -> nodes.Expression:
        found = self.product()
        while operation := self.takes("+", "-"):
            found = self.arithmetical(operation, found, self.product())
        return found

    def product(self) -> nodes.Expression:
        found = self.signed()
        while operation := self.takes("*", "//", "/", "%"):
            found = self.arithmetical(operation, found, self.signed())
        return found

    def signed(self) -> nodes.Expression:
        if self.takes("-"):
            self.deeper()
            inner = self.number(self.signed())
            if isinstance(inner, nodes.Number):
                return nodes.Number(-inner.value)
            return nodes.Arithmetical("-", nodes.Number(Fraction(0)), inner)
        return self.atom()

    def atom(self) -> nodes.Expression:
        if self.takes("("):
            self.deeper()
            inner = self.either()
            if not self.takes(")"):
                raise self.error("a bracket is not closed")
            return inner
        if self.place == len(self.tokens):
            raise self.error("it ends too early")
        kind, token = self.tokens[self.place]
        self.place += 1
        if kind == "number":
            if len(token) > DIGITS:
                raise self.error(f"a number of it has more than {DIGITS} digits")
            return nodes.Number(Fraction(token))
        if kind == "symbol":
            return nodes.Symbol(token)
        if kind == "name" and token not in ("and", "or", "not"):
            return self.named(token)
        raise self.error(f"{token!r} stands in the place of a number")

    def named(self, token: str) -> nodes.Expression:
        if token in self.parameters:
            return nodes.ProgramParameter(token)
        if token.removesuffix("'") in self.variables:
            return nodes.Variable(token)
        if token in WORDS:
            return WORDS[token]
        raise self.error(f"the program has no {token}")

    def arithmetical(self, operation: str, left: nodes.Expression, right: nodes.Expression) -> nodes.Expression:
        known = next(known for known in get_args(nodes.Operation) if known == operation)
        return nodes.Arithmetical(known, self.number(left), self.number(right))

    def number(self, part: nodes.Expression) -> nodes.Expression:
        if isinstance(part, nodes.Compared | nodes.All | nodes.Any | nodes.Not | nodes.Symbol | nodes.Emitted):
            raise self.error(f"`{text(part)}` is no number")
        return part

    def truth(self, part: nodes.Expression) -> nodes.Expression:
        if not isinstance(part, nodes.Compared | nodes.All | nodes.Any | nodes.Not):
            raise self.error(f"`{text(part)}` is neither true nor false")
        return part

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("its brackets are too deep")
