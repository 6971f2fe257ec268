"""The outline of a mechanism: its signature, the code before its one loop over the answers, the loop, what follows it.

Comprehensions over the answers become the loop they abbreviate, so that the next steps meet loops only. Anything that
the language does not hold is one error, `OutsideLanguage`.
"""

import ast
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from keyword import iskeyword
from typing import TypeVar

from dpaudit.errors import InvalidSpec

WORDS: dict[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dictionary comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.YieldFrom: "yield from",
    ast.NamedExpr: "an assignment inside an expression",
    ast.JoinedStr: "a formatted text",
    ast.Starred: "a starred expression",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.Slice: "a slice",
    ast.IfExp: "a conditional expression inside another expression",
    ast.Attribute: "an attribute",
    ast.FunctionDef: "a function in a function",
    ast.AsyncFunctionDef: "an asynchronous function",
    ast.ClassDef: "a class",
    ast.Return: "return before the end",
    ast.Delete: "del",
    ast.For: "a loop in this place",
    ast.AsyncFor: "an asynchronous loop",
    ast.While: "a loop in this place",
    ast.AsyncWith: "with",
    ast.TryStar: "try",
    ast.Assert: "assert after the first lines",
    ast.ImportFrom: "import",
    ast.Match: "match",
}
CURES: dict[type[ast.AST], str] = {
    ast.Return: "return after the loop, or numbers and symbols in each place",
    ast.IfExp: "give the part a name first",
    ast.Assert: "put it first in the function",
    ast.Raise: "say what holds of the parameters by assert, first in the function",
    ast.For: "there may be one loop, over the answers, not inside another statement",
    ast.While: "there may be one loop, over the answers, not inside another statement",
}


class OutsideLanguage(InvalidSpec):
    """A mechanism holds something that the language of the proofs does not: nothing is proved or refuted then.

    `line` counts from the line of `def`, which is 1.

    >>> OutsideLanguage("f", 3, "import", "do without it").line
    3
    """

    def __init__(self, function: str, line: int, construct: str, cure: str) -> None:
        super().__init__(f"line {line} of {function}: {construct} is outside the language of proofs: {cure}")
        self.line = line


DRAWS = ("laplace", "exponential", "gumbel", "normal", "standard_normal", "geometric", "random", "integers", "choice")
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
    given, plain = parameters_of(function), [*arguments.posonlyargs, *arguments.args]
    rng = generator_of(function, given)
    if rng is None or plain in ([], [rng]):
        raise OutsideLanguage(function.name, 1, "a signature without rng", "write f(data, rng, parameters)")
    data = next(argument for argument in plain if argument is not rng)
    public = [argument for argument, _ in given if argument not in (data, rng)]
    defaults: dict[str, Fraction] = {}
    for argument, value in given:
        if value is None or argument is rng:
            continue
        number = number_in(value)
        if number is None or argument is data:
            cure = "only a public parameter has a default, and it is a number"
            raise OutsideLanguage(function.name, argument.lineno, f"the default of {argument.arg}", cure)
        defaults[argument.arg] = number
    names = tuple(argument.arg for argument in public)
    for name in names:
        if name in RESERVED:
            raise OutsideLanguage(function.name, 1, f"a parameter named {name}", "give it another name")
    kinds = {argument.arg: _note(argument.annotation) for argument in public}
    return Signature(
        data.arg,
        rng.arg,
        names,
        frozenset(name for name in names if kinds[name] == "int"),
        frozenset(name for name in names if kinds[name] == "float"),
        defaults,
    )


def parameters_of(function: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """Every parameter with its default."""
    plain, by_name = [*function.args.posonlyargs, *function.args.args], function.args.kwonlyargs
    missing = [None] * (len(plain) - len(function.args.defaults))
    return list(zip([*plain, *by_name], [*missing, *function.args.defaults, *function.args.kw_defaults], strict=True))


def generator_of(function: ast.FunctionDef, arguments: Sequence[tuple[ast.arg, ast.expr | None]]) -> ast.arg | None:
    """The parameter that is the generator: which a run gives it to, or whose draws are taken; else the second."""
    draws = [node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr in DRAWS]
    drawn = {node.value.id for node in draws if isinstance(node.value, ast.Name)} | {"random_state"}
    plain = [each for each, default in arguments if default is None]
    absent = [each for each, default in arguments if default is None or ast.unparse(default) == "None"]
    noted = [each for each in absent if each.annotation and re.search(r"\bGenerator\b", ast.unparse(each.annotation))]
    named = [[each for each in absent if each.arg == name] for name in ("rng", "gen", "generator")]
    ordered = [*named[0], *noted, *named[1], *named[2], *(each for each in plain if each.arg in drawn), *plain[1:2]]
    return ordered[0] if ordered else None


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


Node = TypeVar("Node", bound=ast.AST)
UNNAMED = "(the outputs)"  # a list that the source gives no name


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop: which names are the answer and its index, what else must hold to go on, what is done.

    `counter` is the index of a `while` loop, which the source sets to 0 before it and raises at its end.
    """

    answer: str | None
    index: str | None
    counter: str | None
    guards: tuple[ast.expr, ...]
    body: tuple[ast.stmt, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of a function's body, in order."""

    asserts: tuple[ast.Assert, ...]
    before: tuple[ast.stmt, ...]
    loop: Loop | None
    after: tuple[ast.stmt, ...]
    result: ast.Return


def outline_of(function: ast.FunctionDef, signature: Signature) -> Outline:
    """The outline of a function's body. Raises `OutsideLanguage` for a second loop, or where nothing is returned."""
    body = list(function.body)
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    first = next((place for place, each in enumerate(body) if not isinstance(each, ast.Assert)), len(body))
    asserts = [each for each in body[:first] if isinstance(each, ast.Assert)]
    body = [part for statement in body[first:] for part in _unfolded(statement)]
    if not any(isinstance(part, ast.Return) and part.value for each in body for part in ast.walk(each)):
        line = body[-1].lineno if body else function.lineno
        raise OutsideLanguage(function.name, line, "an end without a result", "end the function with `return output`")
    last = body[-1]
    if isinstance(last, ast.Return) and last.value:
        body.pop()
    else:
        last = _at(ast.Return(value=ast.Constant(None)), last)
    places = [place for place, statement in enumerate(body) if isinstance(statement, ast.For | ast.While)]
    if len(places) > 1:
        cure = "do its work in the first loop: there may be one, over the answers"
        raise OutsideLanguage(function.name, body[places[1]].lineno, "a second loop", cure)
    if not places:
        return Outline(tuple(asserts), tuple(body), None, (), last)
    place = places[0]
    lengths = []
    for part in body[:place]:
        match part:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value) if is_length(value, signature.data):
                lengths += [name] * (assigned(function)[name] == 1)
    loop = _loop(body[place], lengths, function.name, signature.data)
    return Outline(tuple(asserts), tuple(body[:place]), loop, tuple(body[place + 1 :]), last)


def is_length(node: ast.expr, data: str, names: Sequence[str] = ()) -> bool:
    """Whether an expression is the number of answers: `len(data)`, or a name for it."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return name == data
        case ast.Name(id=name):
            return name in names
    return False


def assigned(*nodes: ast.AST) -> Counter[str]:
    """How often each name is given a value in the text of a function, or of some statements."""
    parts = (part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name))
    return Counter(part.id for part in parts if not isinstance(part.ctx, ast.Load))


def _loop(statement: ast.stmt, lengths: Sequence[str], function: str, data: str) -> Loop:
    assert isinstance(statement, ast.For | ast.While)
    if statement.orelse:
        raise OutsideLanguage(function, statement.lineno, "else of a loop", "write it after the loop")
    if isinstance(statement, ast.While):
        return _while(statement, function, data, lengths)
    line, body = statement.lineno, tuple(statement.body)
    match statement.target, statement.iter:
        case ast.Name(id=answer), ast.Name(id=name) if name == data:
            return Loop(answer, None, None, (), body, line)
        case ast.Name(id=index), ast.Call(func=ast.Name(id="range"), args=[end], keywords=[]) if is_length(
            end, data, lengths
        ):
            return Loop(None, index, None, (), body, line)
        case (
            ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=answer)]),
            ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=name)], keywords=[]),
        ) if name == data and index != answer:
            return Loop(answer, index, None, (), body, line)
    cure = f"loop by `for x in {data}`, `for i in range(len({data}))` or `for i, x in enumerate({data})`"
    raise OutsideLanguage(function, line, f"a loop over `{ast.unparse(statement.iter)}`", cure)


def _while(statement: ast.While, function: str, data: str, lengths: Sequence[str]) -> Loop:
    test = statement.test
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    guards, counters = [], []
    for part in parts:
        match part:
            case (
                ast.Compare(left=ast.Name(id=name), ops=[ast.Lt()], comparators=[end])
                | ast.Compare(left=end, ops=[ast.Gt()], comparators=[ast.Name(id=name)])
            ) if is_length(end, data, lengths):
                counters.append(name)
            case _:
                guards.append(part)
    if len(counters) != 1:
        cure = f"loop by `while i < len({data})`, with more conditions joined by `and`"
        raise OutsideLanguage(function, statement.lineno, f"a loop while `{ast.unparse(test)}`", cure)
    counter, body = counters[0], list(statement.body)
    if not _raises(body[-1], counter):
        cure = f"raise {counter} by 1 as the last statement of the loop"
        raise OutsideLanguage(function, body[-1].lineno, f"a loop that does not end with `{counter} += 1`", cure)
    changes = [part for part in ast.walk(statement) if isinstance(part, ast.Name) and part.id == counter]
    if sum(not isinstance(part.ctx, ast.Load) for part in changes) != 1:
        cure = f"raise {counter} once, as the last statement of the loop"
        raise OutsideLanguage(function, statement.lineno, f"a loop that changes {counter} elsewhere", cure)
    return Loop(None, None, counter, tuple(guards), tuple(body[:-1]), statement.lineno)


def _raises(statement: ast.stmt, counter: str) -> bool:
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.Constant(value=step)):
            return name == counter and type(step) is int and step == 1
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.BinOp(left=ast.Name(id=old), op=ast.Add(), right=ast.Constant(value=step)),
        ):
            return name == old == counter and type(step) is int and step == 1
    return False


def _unfolded(statement: ast.stmt) -> list[ast.stmt]:
    """A statement with a comprehension as the loop and what is left of it."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() | ast.DictComp() as listed):
            return _as_loop(name, listed, statement)
        case ast.Return(value=ast.ListComp() | ast.DictComp() as listed):
            pass
        case ast.Return(
            value=ast.Call(
                func=ast.Name(id="tuple" | "list"), args=[ast.GeneratorExp() | ast.ListComp() as listed], keywords=[]
            )
        ):
            pass
        case ast.Return(value=ast.Call(func=ast.Name(id="max" | "min" as largest), args=[listed], keywords=[])) if (
            isinstance(listed, ast.GeneratorExp | ast.ListComp)
        ):
            outputs = _name(UNNAMED, statement)
            call = ast.Call(func=_name(largest, statement), args=[outputs], keywords=[])
            return [*_as_loop(UNNAMED, listed, statement), _at(ast.Return(value=_at(call, statement)), statement)]
        case _:
            return [statement]
    return [*_as_loop(UNNAMED, listed, statement), _at(ast.Return(value=_name(UNNAMED, statement)), statement)]


def _as_loop(name: str, listed: ast.ListComp | ast.GeneratorExp | ast.DictComp, statement: ast.stmt) -> list[ast.stmt]:
    itself = any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(listed))
    if len(listed.generators) != 1 or listed.generators[0].is_async or itself:
        return [statement]  # which no rule reads
    generator = listed.generators[0]
    if isinstance(listed, ast.DictComp):
        place = ast.Subscript(value=_name(name, listed), slice=listed.key, ctx=ast.Store())
        inner: ast.stmt = ast.Assign(targets=[_at(place, listed)], value=listed.value)
    else:
        append = ast.Attribute(value=_name(name, listed), attr="append", ctx=ast.Load())
        inner = ast.Expr(value=_at(ast.Call(func=_at(append, listed), args=[listed.elt], keywords=[]), listed))
    start = ast.Dict([], []) if isinstance(listed, ast.DictComp) else ast.List([], ast.Load())
    empty = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=start)
    for test in reversed(generator.ifs):
        inner = ast.If(test=test, body=[_at(inner, listed)], orelse=[])
    loop = ast.For(target=generator.target, iter=generator.iter, body=[_at(inner, listed)], orelse=[])
    return [_at(empty, statement), _at(loop, listed)]


def _name(name: str, place: ast.AST) -> ast.Name:
    return _at(ast.Name(id=name, ctx=ast.Load()), place)


def _at(node: Node, place: ast.AST) -> Node:
    return ast.fix_missing_locations(ast.copy_location(node, place))


def unreadable(node: ast.AST) -> tuple[str, str]:
    """What to call a piece of Python that no rule of the language reads, and what to do about it."""
    name = type(node).__name__.lower()
    construct = WORDS.get(type(node), name if iskeyword(name) else None)
    if construct is None:
        construct = f"`{ast.unparse(node).splitlines()[0]}`" if isinstance(node, ast.expr | ast.stmt) else "this"
    return construct, CURES.get(type(node), "write the mechanism without it")
