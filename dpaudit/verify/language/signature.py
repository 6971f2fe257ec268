"""The signature of a mechanism: its data, its source of randomness, its public parameters."""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.verify.language.outside import OutsideLanguage

LONGEST = 100  # digits above and below the line of a number
PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr, ast.Load)
RESERVED = frozenset({"index", "n", "answer", "output"})  # words of the texts of a proof


@dataclass(frozen=True, slots=True)
class Signature:
    """f(data, rng, parameters): `wholes` are annotated int, `reals` float; the others are not annotated so."""

    data: str
    rng: str
    parameters: tuple[str, ...]
    wholes: frozenset[str]
    reals: frozenset[str]
    defaults: Mapping[str, Fraction]


def signature_of(function: ast.FunctionDef) -> Signature:
    """The signature of a function. Raises `OutsideLanguage`.

    >>> found = signature_of(ast.parse("def f(q, rng, eps, N: int = 2): pass").body[0])
    >>> found.parameters, found.wholes, found.defaults
    (('eps', 'N'), frozenset({'N'}), {'N': Fraction(2, 1)})
    """
    arguments = function.args
    inside = [part.annotation for part in ast.walk(function) if isinstance(part, ast.arg | ast.AnnAssign)]
    notes = [function.returns, *inside, *getattr(function, "type_params", ())]
    for note in (note for note in notes if note is not None):
        if not all(isinstance(part, PLAIN) for part in ast.walk(note)):
            cure = "what Python does there is not read: write the name of a type, or nothing"
            raise OutsideLanguage(function.name, note.lineno, f"the annotation `{ast.unparse(note)}`", cure)
    if arguments.vararg or arguments.kwarg:
        raise OutsideLanguage(function.name, 1, "an open list of parameters", "name each parameter")
    plain = [*arguments.posonlyargs, *arguments.args]
    if len(plain) < 2:
        raise OutsideLanguage(function.name, 1, "a signature without rng", "write f(data, rng, parameters)")
    data, rng, *public = plain
    given: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(plain, [*[None] * (len(plain) - len(arguments.defaults)), *arguments.defaults], strict=True)
    )
    given += list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    defaults: dict[str, Fraction] = {}
    for argument, value in given:
        if value is None:
            continue
        number = number_in(value)
        if number is None or argument in (data, rng):
            cure = "only a public parameter has a default, and it is a number"
            raise OutsideLanguage(function.name, argument.lineno, f"the default of {argument.arg}", cure)
        defaults[argument.arg] = number
    names = tuple(argument.arg for argument in (*public, *arguments.kwonlyargs))
    for name in names:
        if name in RESERVED:
            raise OutsideLanguage(function.name, 1, f"a parameter named {name}", "give it another name")
    kinds = {argument.arg: _note(argument.annotation) for argument in (*public, *arguments.kwonlyargs)}
    return Signature(
        data.arg,
        rng.arg,
        names,
        frozenset(name for name in names if kinds[name] == "int"),
        frozenset(name for name in names if kinds[name] == "float"),
        defaults,
    )


def literal(node: ast.Constant) -> Fraction | None:
    """A number exactly as Python holds it, in a double where it has a point; None for other constants.

    >>> literal(ast.parse("0.1", mode="eval").body) == Fraction(0.1) > Fraction(1, 10)
    True
    """
    if type(node.value) is not int and not (type(node.value) is float and math.isfinite(node.value)):
        return None
    exact = Fraction(node.value)
    return exact if max(abs(exact.numerator), exact.denominator) < 10**LONGEST else None


def number_in(node: ast.expr) -> Fraction | None:
    """A number with or without a minus; None for anything else."""
    match node:
        case ast.Constant():
            return literal(node)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as inner):
            number = literal(inner)
            return None if number is None or is_real(node) and number == 0 else -number  # -0.0 is another output
    return None


def is_real(node: ast.expr) -> bool:
    """Whether a number is a double, not a whole number of Python's."""
    return any(isinstance(part, ast.Constant) and type(part.value) is float for part in ast.walk(node))


def _note(annotation: ast.expr | None) -> str | None:
    match annotation:
        case ast.Name(id=name) | ast.Constant(value=str(name)):
            return name
    return None
