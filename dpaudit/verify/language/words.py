"""Expressions as text, and back: the words of a stored proof.

`index` is the loop's index, `n` the number of answers, `len(out)` how many outputs there are. Numbers are exact: 0.1
is one tenth here, and in a source the double that Python reads. What is no number is written, and not read back.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import count

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import OPERATION_SIGNS, ORDER_SIGNS, targets
from dpaudit.verify.language.values import negative

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>len\([^()]+\)|[^\W\d]\w*)|(?P<sign>//|<=|>=|==|!=|[-+*/%<>()]))"
)
WORDS: dict[str, nodes.Expression] = {"index": nodes.Index(), "n": nodes.Length()}
DEEPEST = 100  # of brackets within brackets, in a text from a file
DIGITS = 300  # of a number
LONGEST = 400  # words of such a text


def expression(words: str, program: nodes.Program) -> nodes.Expression:
    """The expression that a text says, in the names of a program. Raises `InvalidSpec` where it says none.

    >>> program = nodes.Program("f", "", "q", ("eps",), frozenset(), (), (), None, (), ())
    >>> expression("eps/2 <= 1", program).order
    '<='
    """
    tokens = list(_tokens(words))
    if len(tokens) > LONGEST:
        raise InvalidSpec(f"the text of an expression may have {LONGEST} words, this one has {len(tokens):,}")
    leaves: dict[str, nodes.Expression] = {}  # by the names that stand for them in what Python reads
    signs = []
    for kind, token in tokens:
        plain = kind == "sign" or token in ("and", "or", "not")
        signs.append(token if plain else f"_{len(leaves)}")
        if not plain:
            leaves[signs[-1]] = _leaf(words, kind, token, program)
    try:
        tree = ast.parse(" ".join(signs), mode="eval").body
    except SyntaxError:
        raise _error(words, "a number, a sign or a bracket is missing in it, or there is one too many") from None
    if signs.count("(") + sum(isinstance(part, ast.UnaryOp) for part in ast.walk(tree)) > DEEPEST:
        raise _error(words, "its brackets are too deep")
    return _built(words, tree, leaves)


def text(expression: nodes.Expression, level: int = 0) -> str:
    """An expression in words; `expression` reads it back. It gets brackets where its own level is below this one.

    Levels are 0 or, 1 and, 2 not, 3 comparison, 4 sum, 5 product, 6 minus.

    >>> text(nodes.Arithmetical("*", nodes.Number(Fraction(1, 2)), nodes.ProgramParameter("eps")))
    '0.5*eps'
    """
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
            return _bracketed(f"{text(left, own)}{sign}{text(right, own + 1)}", own < level)
        case nodes.Compared(order=order, left=left, right=right):
            return _bracketed(f"{text(left, 4)} {order} {text(right, 4)}", level > 3)
        case nodes.All(parts=parts):
            return _joined(" and ", parts, 1, level)
        case nodes.Any(parts=parts):
            return _joined(" or ", parts, 0, level)
        case nodes.Not(part=part):
            return _bracketed(f"not {text(part, 2)}", level > 2)


def _joined(word: str, parts: tuple[nodes.Expression, ...], own: int, level: int) -> str:
    return _bracketed(word.join(text(part, own + 1) for part in parts), own < level)


def _number(value: Fraction, level: int) -> str:
    written, rest = str(abs(value.numerator)), value.denominator
    if rest != 1:
        if pow(10, rest.bit_length(), rest):  # no finite decimal: a quotient, of the same value
            quotient = nodes.Arithmetical("/", nodes.Number(Fraction(value.numerator)), nodes.Number(Fraction(rest)))
            return text(quotient, level)
        digits = next(digits for digits in count(1) if 10**digits % rest == 0)
        whole = str(abs(value.numerator) * 10**digits // rest).rjust(digits + 1, "0")
        written = f"{whole[:-digits]}.{whole[-digits:]}"
    return _bracketed(f"-{written}", level > 4) if value < 0 else written


def _bracketed(words: str, needed: bool) -> str:
    return f"({words})" if needed else words


def _error(words: str, reason: str) -> InvalidSpec:
    return InvalidSpec(f"the text {words!r} says no expression: {reason}")


def _tokens(words: str) -> Iterator[tuple[str, str]]:
    place = 0
    while words[place:].strip():
        match = TOKEN.match(words, place)
        if match is None or match.lastgroup is None:
            raise _error(words, f"it holds {words[place:].strip()[0]!r}")
        yield match.lastgroup, match[match.lastgroup]
        place = match.end()


def _leaf(words: str, kind: str, token: str, program: nodes.Program) -> nodes.Expression:
    if kind == "number" and len(token) > DIGITS:
        raise _error(words, f"a number of it has more than {DIGITS} digits")
    if kind == "number":
        return nodes.Number(Fraction(token))
    if token in program.parameters:
        return nodes.ProgramParameter(token)
    if token in targets(program.body):
        return nodes.Variable(token)
    if token in WORDS:
        return WORDS[token]
    raise _error(words, f"the program has no {token}; known are {', '.join(program.parameters) or 'none'}")


def _built(words: str, node: ast.expr, leaves: Mapping[str, nodes.Expression]) -> nodes.Expression:
    def inner(part: ast.expr, true: bool = False) -> nodes.Expression:
        result = _built(words, part, leaves)
        if isinstance(result, nodes.Compared | nodes.All | nodes.Any | nodes.Not) != true:
            raise _error(words, f"`{text(result)}` is {'neither true nor false' if true else 'no number'}")
        return result

    match node:
        case ast.Name(name):
            return leaves[name]
        case ast.BoolOp(joined, values):
            parts = tuple(inner(value, True) for value in values)
            return nodes.All(parts) if isinstance(joined, ast.And) else nodes.Any(parts)
        case ast.UnaryOp(ast.Not(), part):
            return nodes.Not(inner(part, True))
        case ast.UnaryOp(ast.USub(), part):
            return negative(inner(part))
        case ast.Compare(left, [order], [right]):
            return nodes.Compared(ORDER_SIGNS[type(order)], inner(left), inner(right))
        case ast.BinOp(left, operation, right):
            return nodes.Arithmetical(OPERATION_SIGNS[type(operation)], inner(left), inner(right))
    raise _error(words, "it holds more than and, or, not, one comparison, + - * / // % and brackets")
