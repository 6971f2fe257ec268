"""The loops of a function that are samplers, found in its source; they are draws in a function made from it.

A loop is one if it reads and writes names of its function alone, calls what only computes, and draws. A function that
is called is read as a loop of one round. A loop that turns out to be none is run as it stands.
"""

import ast
import copy
import fractions
import functools
import math
import sys
import types
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.source import passed_through, read_names, source_of
from dpaudit.verify.replay.samplers import AGAIN, EXIT, Place, Sampler, is_plain, not_summed

PURE = [abs, bool, divmod, float, int, len, max, min, pow, range, round, tuple, Fraction, np.float64, np.int64]
PURE += [each for each in vars(math).values() if callable(each)]
MODULES = (math, np, fractions)
_STATEMENTS = "Assign AugAssign AnnAssign Expr If While For Break Continue Return Pass Raise Assert"
_EXPRESSIONS = "BoolOp BinOp UnaryOp IfExp Compare Call keyword Constant Name Tuple Subscript Slice Attribute NamedExpr"
_PARTS = "expr_context operator boolop unaryop cmpop"
READ = tuple(getattr(ast, name) for name in f"{_STATEMENTS} {_EXPRESSIONS} {_PARTS}".split())
ROUND = f"""
for __round__ in (0,):
    pass
else:
    return {AGAIN}, locals()
return {EXIT}, locals()
"""
VALUE = "__value__"  # of a function that is called

Function = types.FunctionType
Reached = dict[tuple[Function, str, str], Any]  # what names mean, and attributes of these, in a function's module


class Samplers:
    """The samplers of a function and of those that it calls; `unfit` says why other loops are none."""

    def __init__(self) -> None:
        self.unfit: dict[Place, str] = {}
        self.loops: list[Sampler] = []
        self._made: dict[Function, Function] = {}

    @property
    def summed(self) -> bool:
        """Whether a loop was a draw."""
        return any(map(any, (loop.laws.values() for loop in self.loops)))

    @property
    def endless(self) -> bool:
        """Whether one may go on for ever."""
        return any(law.endless for loop in self.loops for law in loop.laws.values() if law)

    def of(self, function: Any, *, called: bool = False) -> Any:
        """The same function, but that each loop that is a sampler is one draw; and so in functions that it calls."""
        if type(function) is not Function:
            return function
        if function not in self._made:
            self._made[function] = function
            try:
                self._made[function] = self._rewritten(function, _definition(function), called)
            except (InvalidSpec, KeyError) as error:  # the latter in a replay within one
                self.unfit[function.__code__, 0] = f"{function.__name__} is not read: {error}"
        return self._made[function]

    def _rewritten(self, function: Function, definition: ast.FunctionDef, called: bool) -> Function:
        for each in _called(function, definition.body).values():
            self.of(each, called=True)
        before = len(self.loops)
        body = _Loops(self, function, definition, called).body
        arguments = definition.args
        arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
        for part in [part for part in ast.walk(arguments) if isinstance(part, ast.arg)]:
            part.annotation = None
        made = self.compiled(function, arguments, body)
        for name in ("__name__", "__qualname__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__"):
            setattr(made, name, getattr(function, name))
        reaches = any(self._made[each] is not each for each in _called(function, definition.body).values())
        return made if reaches or len(self.loops) > before else function

    def compiled(self, function: Function, arguments: ast.arguments, body: list[ast.stmt]) -> Function:
        """A function that sees the names that another one sees."""
        given: dict[str, Any] = {name: self._late(function, name) for name in _called(function, body)}
        given["__sampler__"] = lambda place, found: self.loops[place].end(found)
        tree = ast.parse(f"def outer({', '.join(given)}):\n def inner(): pass\n return inner")
        inner: Any = tree.body[0].body[0]  # type: ignore[attr-defined]
        inner.args, inner.body, space = arguments, body, dict[str, Any]()
        code = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec", dont_inherit=True)
        exec(code, function.__globals__, space)
        made: Function = space["outer"](**given)
        return made

    def _late(self, function: Function, name: str) -> Callable[..., Any]:
        """What calls what the name means by then."""

        def call(*arguments: Any, **named: Any) -> Any:
            meant = _meaning(function, name)
            return (self._made.get(meant, meant) if type(meant) is Function else meant)(*arguments, **named)

        return call


class _Alive:
    """Which names may be read before they are written again: at the `head` of each round of a loop, and `after` it.

    Where names are read in ways that are not followed, each may be.
    """

    def __init__(self, function: Function, body: list[ast.stmt]) -> None:
        self.head, self.after = dict[ast.stmt, set[str]](), dict[ast.stmt, set[str]]()
        parts = [part for each in body for part in ast.walk(each)]
        followed = all(isinstance(part, READ) for part in parts if isinstance(part, ast.stmt))
        self.always = set[str]() if followed and not function.__code__.co_cellvars else _local(function)
        self.block(body, set(), set(), set())

    def block(self, body: list[ast.stmt], out: set[str], left: set[str], again: set[str]) -> set[str]:
        """Those before some statements, given those after them, where `break` leads, and where `continue` does."""
        for each in reversed(body):
            match each:
                case ast.Return() | ast.Raise():
                    out = read_names(each)
                case ast.Break() | ast.Continue():
                    out = left if isinstance(each, ast.Break) else again
                case ast.If(test, then, other):
                    ways = self.block(then, out, left, again) | self.block(other, out, left, again)
                    out = read_names(test) | ways
                case ast.While(turn) | ast.For(_, turn):
                    self.after[each] = out | self.always
                    sure = isinstance(turn, ast.Constant) and turn.value is True
                    ends = set[str]() if sure else self.block(each.orelse, out, left, again)
                    head = ends | read_names(turn) | read_names(getattr(each, "target", turn))
                    while (more := self.block(each.body, head, out, head)) - head:
                        head |= more
                    self.head[each] = out = head
                case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                    out = out - {name} | read_names(value)
                case _:
                    out = out | read_names(each)
        return out | self.always


class _Loops(ast.NodeTransformer):
    """Puts one draw in the place of each loop that is a sampler, and of all of a function that is called."""

    def __init__(self, samplers: Samplers, function: Function, definition: ast.FunctionDef, called: bool) -> None:
        self.samplers, self.function, self.local = samplers, function, _local(function)
        self.alive = _Alive(function, definition.body)
        self.whole = ast.copy_location(ast.While(ast.Constant(True), [*definition.body, ast.Return()], []), definition)
        self.alive.head[self.whole] = self.alive.after[self.whole] = set()
        definition.body = [self.whole] if called else definition.body
        self.body: list[ast.stmt] = self.visit(definition).body

    def visit_While(self, node: ast.While) -> Any:
        place, whole = (self.function.__code__, node.lineno), node is self.whole
        inside = [*(ast.walk(node) if whole else _inside(node))]
        if not (any(isinstance(each, ast.Attribute) for each in inside) or _called(self.function, inside)):
            return self.generic_visit(node)  # it draws nothing
        found = [each for each in inside if isinstance(each, ast.Name)]
        stored, reached = {each.id for each in found if isinstance(each.ctx, ast.Store)}, Reached()
        names = {each.id for each in found} & self.local
        try:
            _reach(self.function, inside, reached, self.local)
            if node.orelse or stored - names:
                raise InvalidSpec("it has an else, or writes a name of another function")
        except InvalidSpec as error:
            self.samplers.unfit[place] = not_summed(place, error)
            return self.generic_visit(node)
        self.generic_visit(node)
        returns = _Returns(whole)
        test, *body = returns.visit(ast.Module(copy.deepcopy([ast.Expr(node.test), *node.body]), [])).body
        once: list[Any] = ast.parse(ROUND).body
        once[0].body = [ast.If(test.value, body, [ast.Break()])]
        kept = (self.alive.after[node] | {name for each in returns.values for name in read_names(each)}) & stored
        kept |= {VALUE} if whole else set()

        @functools.cache
        def code(given: tuple[str, ...]) -> Function:
            head: Any = ast.parse(f"def f({', '.join(given)}): pass").body[0]
            unset = [f"{name} = 0" for name in names.difference(given)]  # never run: they make the names its own
            return self.samplers.compiled(self.function, head.args, [*once, *ast.parse("\n".join(unset)).body])

        others = [(functools.partial(_meaning, *each), meaning) for each, meaning in reached.items()]
        state = self.alive.head[node] & stored
        self.samplers.loops.append(
            Sampler(place, names - stored, state, _counters(inside) & state, kept, code, others, self.samplers.unfit)
        )
        lines = [f"__end__ = __sampler__({len(self.samplers.loops) - 1}, locals())"]
        lines += ["if __end__ is None: pass", "else:", " pass"]
        lines += [f" if {name!r} in __end__[1]: {name} = __end__[1][{name!r}]" for name in sorted(kept)]
        lines += [f" if __end__[0] == {at}: return {ast.unparse(value)}" for at, value in enumerate(returns.values)]
        made: list[Any] = ast.parse("\n".join(lines)).body
        made[1].body = [node]
        return made


class _Returns(ast.NodeTransformer):
    """Says in the place of each return which one it is; their `values` are computed after the loop.

    Of a function that is called the value is computed first, so that returns of equal values are one.
    """

    def __init__(self, whole: bool) -> None:
        self.whole, self.values = whole, list[ast.expr]()

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        value = node.value or ast.Constant(None)
        if not self.whole:
            self.values.append(value)
            return ast.parse(f"return {len(self.values) - 1}, locals()").body
        self.values = [ast.Name(VALUE, ast.Load())]
        return [ast.Assign([ast.Name(VALUE, ast.Store())], value), *ast.parse("return 0, locals()").body]


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """What a loop does, but for what is computed of a value that it returns, which is done after it."""
    yield node
    for each in ast.iter_child_nodes(node) if not isinstance(node, ast.Return) else ():
        yield from _inside(each)


def _counters(inside: Iterable[ast.AST]) -> set[str]:
    """The names that a loop only adds whole constants to."""
    uses = Counter(node.id for node in inside if isinstance(node, ast.Name))
    for node in inside:
        match node:
            case ast.AugAssign(ast.Name(name), ast.Add() | ast.Sub(), ast.Constant(int())):
                uses[name] -= 1
            case ast.Assign([ast.Name(name)], ast.BinOp(ast.Name(same), ast.Add() | ast.Sub(), ast.Constant(int()))):
                uses[name] -= 2 * (name == same)
    return {name for name, others in uses.items() if not others}


def _local(function: Function) -> set[str]:
    return {*function.__code__.co_varnames, *function.__code__.co_cellvars}


def _meaning(function: Function, name: str, attribute: str = "") -> Any:
    """What a name of a function's module or of Python means; an attribute only where that is one of `MODULES`."""
    value = function.__globals__.get(name, getattr(function, "__builtins__").get(name, ...))
    return getattr(value, attribute, value) if any(value is module for module in MODULES) else value


def _called(function: Function, body: Iterable[ast.AST]) -> dict[str, Function]:
    """The functions that a piece of a function calls, and does nothing else with, but for those of Python and numpy."""
    nodes = [node for each in body for node in ast.walk(each)]
    calls = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    others = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in calls}
    names = {node.id for node in nodes if isinstance(node, ast.Name)} - others - _local(function)
    found = {name: value for name in sorted(names) if type(value := _meaning(function, name)) is Function}
    libraries = {"numpy", *sys.stdlib_module_names}
    return {name: value for name, value in found.items() if value.__module__.partition(".")[0] not in libraries}


def _reach(function: Function, nodes: Iterable[ast.AST], known: Reached, local: set[str]) -> None:
    """Adds what the other names mean that a piece of code reads, and those of functions that it calls.

    Raises `InvalidSpec` where it may do more than compute and draw.
    """
    nodes = [*nodes]
    attributes = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        private = isinstance(node, ast.Attribute) and (node.attr[0] == "_" or not isinstance(node.ctx, ast.Load))
        if private or not isinstance(node, READ):
            text = ast.unparse(node).partition("\n")[0]
            raise InvalidSpec(f"`{text}` in it; numbers and texts of its own may be computed, compared and drawn")
        if not isinstance(node, ast.Name) or node.id in local:
            continue
        entry = function, node.id, attributes.get(id(node), "")
        if entry in known:
            continue
        value = known[entry] = _meaning(*entry)
        given = getattr(value, "__defaults__", None) or (), getattr(value, "__kwdefaults__", None) or {}
        if type(value) is Function and all(map(is_plain, (*given[0], *given[1].values()))):
            inside = [part for each in _definition(value).body for part in ast.walk(each)]
            _reach(value, inside, known, _local(value))
        elif not is_plain(value) and not isinstance(value, np.ufunc) and not any(value is each for each in PURE):
            raise InvalidSpec(f"`{node.id}` in it, which may do more than compute; use math and functions of your own")


def _definition(function: Function) -> ast.FunctionDef:
    """What a function reads as. Raises `InvalidSpec` where that is not all, or where equal objects are told apart."""
    definition = source_of(function).definition
    for part in ast.walk(definition):
        if isinstance(part, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in part.ops):
            sides = [each.value for each in part.comparators if isinstance(each, ast.Constant)]
            if len(sides) < len(part.comparators) or not all(side is None or type(side) is bool for side in sides):
                raise InvalidSpec("it tells objects apart by `is`, not by their values")
    if passed_through(function) is not function or "locals" in read_names(definition):
        raise InvalidSpec("a decorator, or locals()")
    return definition
