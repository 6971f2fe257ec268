"""The loops of a function that are samplers, found in its source; they are draws in a function made from it.

A loop is one if it reads and writes names of its function alone, calls what only computes, and draws. A function that
is called is read as a loop of one round. A loop that turns out to be none when it is run is run as it stands.
"""

import __future__

import ast
import builtins
import copy
import functools
import math
import types
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.source import WORDS_OF_PYTHON, ReadSource, free_names, local_names, read_names, source_of
from dpaudit.verify.replay.faces import Uniform
from dpaudit.verify.replay.samplers import AGAIN, EXIT, Sampler, is_plain
from dpaudit.verify.replay.tails import Unbounded

PURE = [abs, bool, divmod, float, int, len, max, min, pow, range, round, tuple, np.float64, np.int64]
PURE += [each for each in vars(math).values() if callable(each)]
REACHING = frozenset(
    ("exec", "eval", "globals", "locals", "vars", "setattr", "delattr", "breakpoint", "super", "id", "dir")
)
ASKING = frozenset(("getattr", "hasattr", "type"))  # what a stand-in has, say
REBINDING = (ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ClassDef, ast.Delete, ast.MatchClass)
ODD = frozenset((*dir(Unbounded), *dir(Uniform), "format", "format_map"))  # of stand-ins, or asks for their attributes
ODD |= {"errstate", "seterr", "seterrcall", "printoptions", "set_printoptions"}  # the state of numpy
_WITHIN = "builtins char core ctypeslib dtypes emath exceptions f2py fft lib linalg ma mtrand os polynomial rec strings"
ODD |= {*_WITHIN.split(), "sys", "testing", "typing", "warnings"}  # modules of numpy, which reach whatever there is
_STATEMENTS = "Assign AugAssign AnnAssign Expr If While For Break Continue Return Pass Raise Assert"
_EXPRESSIONS = "BoolOp BinOp UnaryOp IfExp Compare Call keyword Constant Name Tuple Subscript Slice Attribute NamedExpr"
_PARTS = "expr_context operator boolop unaryop cmpop arguments arg"
READ = tuple(getattr(ast, name) for name in f"{_STATEMENTS} {_EXPRESSIONS} {_PARTS}".split())


def _is_odd(node: ast.Attribute) -> bool:
    """Whether an attribute is set, hidden, or one that numbers do not have and their stand-ins do."""
    return not isinstance(node.ctx, ast.Load) or node.attr[0] == "_" or node.attr in ODD


VALUE = "__value__"  # of a function that is called
ROUND = f"""
for __round__ in (0,):
    pass
else:
    return {AGAIN}, locals()
return {EXIT}, locals()
"""
DRAW = """
__end__ = __sampler__({}, locals())
if __end__ is None:
    pass
else:
    pass
"""


class Samplers:
    """The samplers of a function and of those that it calls, and the `function` in which each is one draw.

    `unfit` says of other loops why they are none. Without `tails` what a loop counts is followed by values.
    """

    def __init__(self, function: Any, *, tails: bool = True) -> None:
        self.tails = tails
        self.function, self.loops, self.unfit = function, list[Sampler](), dict[str, str]()
        self.space: dict[str, Any] = {"__sampler__": lambda place, found: self.loops[place].end(found)}
        if type(function) is types.FunctionType:
            try:
                self.function = self._made(source_of(function))
            except (InvalidSpec, KeyError) as error:  # the latter in a replay within one
                self.unfit[f"the source of {function.__name__}"] = str(error)

    @property
    def summed(self) -> bool:
        """Whether a loop was a draw."""
        return any(type(law) is tuple for loop in self.loops for law in loop.laws.values())

    def _made(self, source: ReadSource) -> Any:
        """The function in a module of its own, in which names mean for ever what they mean now."""
        tree = ast.parse(source.text)
        if not any(isinstance(part, ast.While) for part in ast.walk(tree)):
            return self.function
        # what a number can do that its stand-in cannot raises, and nobody is to catch that
        self.tails = self.tails and not any(isinstance(part, ast.Try | ast.TryStar) for part in ast.walk(tree))
        functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
        known = {*WORDS_OF_PYTHON - REACHING - ASKING, *source.functions, *source.constants, *source.modules}
        for each in functions:
            names = free_names(each) - known | {name for name in read_names(each) if name[:2] == "__"}
            if names:
                raise InvalidSpec(f"{', '.join(sorted(names))} may change what names mean")
            for part in [part for statement in each.body for part in ast.walk(statement)]:
                if isinstance(part, REBINDING) or isinstance(part, ast.Attribute) and _is_odd(part):
                    raise InvalidSpec(f"`{ast.unparse(part)}` may change what names mean")
                if isinstance(part, ast.Compare) and not all(map(_by_value, part.ops, part.comparators)):
                    raise InvalidSpec(f"`{ast.unparse(part)}` tells objects apart by `is`, not by their values")
        self.run(tree.body)  # as it stands: what names mean
        for each in functions:
            _Loops(self, source, each, called=each is not functions[0])
        self.run(tree.body)
        return self.space[functions[0].name]

    def run(self, body: list[ast.stmt]) -> None:
        """Runs statements of the module."""
        tree, flags = ast.fix_missing_locations(ast.Module(body, [])), __future__.annotations.compiler_flag
        exec(compile(tree, "<samplers>", "exec", flags, dont_inherit=True), self.space)


class _Loops(ast.NodeTransformer):
    """Puts one draw in the place of each loop that is a sampler, and of all of a function that is called."""

    def __init__(self, samplers: Samplers, source: ReadSource, definition: ast.FunctionDef, called: bool) -> None:
        self.samplers, self.source, self.name, self.first = samplers, source, definition.name, definition.lineno
        self.local, self.loads = local_names(definition), _loads(definition)
        loops = [each for each in ast.walk(definition) if isinstance(each, ast.While | ast.For)]
        self.within = {part for each in loops for part in ast.walk(each) if part is not each}
        self.whole = ast.copy_location(ast.While(ast.Constant(True), [*definition.body, ast.Return()], []), definition)
        definition.body = [self.whole] if called else definition.body
        self.visit(definition)

    def visit_While(self, node: ast.While) -> Any:
        whole, inside = node is self.whole, [*(ast.walk(node) if node is self.whole else _inside(node))]
        place = f"the loop in line {node.lineno - self.first + 1} of {self.name} cannot be summed up"
        found = [each for each in inside if isinstance(each, ast.Name)]
        names = {each.id for each in found} & self.local
        stored = {each.id for each in found if isinstance(each.ctx, ast.Store)}
        kept = stored.intersection(self.loads if node in self.within else self.loads - _loads(node))
        kept |= {n for each in ast.walk(node) if isinstance(each, ast.Return) for n in read_names(each)} & stored
        try:
            self.check_computes(inside, self.local)
            if node.orelse:
                raise InvalidSpec("it has an else")
        except InvalidSpec as error:
            self.samplers.unfit[place] = str(error)
            self.generic_visit(node)
            return node
        kept = {VALUE} if whole else kept
        returns, state = _Returns(whole), stored - _written_first(node, kept)
        self.generic_visit(node)
        test, *body = returns.visit(ast.Module(copy.deepcopy([ast.Expr(node.test), *node.body]), [])).body
        once: list[Any] = ast.parse(ROUND).body
        once[0].body = [ast.If(test.value, body, [ast.Break()])]

        @functools.cache
        def code(given: tuple[str, ...]) -> Callable[..., tuple[int, dict[str, Any]]]:
            made: Any = ast.parse(f"def __turn__({', '.join(given)}): pass").body[0]
            unset = [f"{name} = 0" for name in names.difference(given)]  # never run: they make the names its own
            made.body = [*once, *ast.parse("\n".join(unset)).body]
            self.samplers.run([made])
            return self.samplers.space.pop("__turn__")  # type: ignore[no-any-return]

        counter = next(iter(sorted(_counters(inside) & state)), "") if self.samplers.tails else ""
        sampler = Sampler(place, names - stored, state, counter, kept, code, self.samplers.unfit)
        self.samplers.loops.append(sampler)
        made: list[Any] = ast.parse(DRAW.format(len(self.samplers.loops) - 1)).body
        made[1].body = [node]
        lines = [f"if {name!r} in __end__[1]: {name} = __end__[1][{name!r}]" for name in sorted(kept)]
        lines += [f"if __end__[0] == {at}: return {ast.unparse(value)}" for at, value in enumerate(returns.values)]
        made[1].orelse += ast.parse("\n".join(lines)).body
        return made

    def check_computes(self, nodes: Iterable[ast.AST], local: set[str], seen: frozenset[str] = frozenset()) -> None:
        """Raises `InvalidSpec` where code may do more than compute and draw."""
        nodes = [*nodes]
        attributes = {node.value: node.attr for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            if not isinstance(node, READ) or isinstance(getattr(node, "ctx", None), ast.Del):
                text = ast.unparse(node).partition("\n")[0]
                raise InvalidSpec(f"`{text}` in it; numbers and texts of its own may be computed, compared and drawn")
            if not isinstance(node, ast.Name) or node.id in local:
                continue
            if (helper := self.source.functions.get(node.id)) is not None:
                if node.id not in seen:
                    parts = [part for each in (helper.args, *helper.body) for part in ast.walk(each)]
                    self.check_computes(parts, local_names(helper), seen | {node.id})
                continue
            value = self.samplers.space.get(node.id, getattr(builtins, node.id, None))
            if isinstance(value, types.ModuleType):
                value = getattr(value, attributes.get(node, ""), value)
            if not (is_plain(value) or isinstance(value, np.ufunc) or any(value is each for each in PURE)):
                raise InvalidSpec(f"`{node.id}` in it, which may do more than compute")


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


def _loads(node: ast.AST) -> Counter[str]:
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    added = [n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
    return Counter(n.id for n in (*names, *added))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """What a loop does, but for what is computed of a value that it returns, which is done after it."""
    yield node
    for each in ast.iter_child_nodes(node) if not isinstance(node, ast.Return) else ():
        yield from _inside(each)


def _written_first(node: ast.While, kept: set[str]) -> set[str]:
    """Names that each round writes before it reads them; those `kept` after the loop, before it may be left, too."""
    seen, first, leaves = read_names(node.test), set[str](), not isinstance(node.test, ast.Constant)
    for each in node.body:
        match each:
            case ast.Assign([ast.Name(name)], value) if name not in seen | read_names(value):
                first |= {name} - (kept if leaves else set())
        seen |= read_names(each)
        leaves = leaves or any(isinstance(part, ast.Break | ast.Return) for part in ast.walk(each))
    return first


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


def _by_value(op: ast.cmpop, other: ast.expr) -> bool:
    """Whether a comparison tells nothing but values apart."""
    return not isinstance(op, ast.Is | ast.IsNot) or isinstance(other, ast.Constant) and other.value is None
