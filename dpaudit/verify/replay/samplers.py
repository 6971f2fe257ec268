"""Loops without a last round: a loop of plain numbers is one draw, from the exact law of how it ends.

A *sampler* is a `while` loop that begins with plain numbers and texts, and does nothing but compute and draw, so that
how it ends depends on what it begins with and on its draws alone. Its own code is replayed, round by round. Rounds make
a chain of states, the values that a round reads before it writes them, and how the chain ends is solved for in
fractions. A number that is only added to is no part of the state: what stands for it refuses all other use. Where a
state comes back with that number larger by c, the loop adds c times a geometric number: see `tails`.
"""

import ast
import builtins
import contextlib
import copy
import fractions
import functools
import math
import re
import sys
import types
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.errors import DpAuditError, InvalidSpec, OutOfTime
from dpaudit.verify.language.source import passed_through, read_names, source_of
from dpaudit.verify.replay.canonical import NUMBERS, PLAIN, Raised, canonical
from dpaudit.verify.replay.choices import Choices
from dpaudit.verify.replay.faces import BEHIND, FACE
from dpaudit.verify.replay.source import StandIn, Weights
from dpaudit.verify.replay.tails import FINE, Geometric, Unbounded, in_whole
from dpaudit.verify.replay.walk import walk_paths

MOST_PATHS = 100_000  # of one round
MOST_STATES = 2_000  # of a loop
RARE = 2.0**-80  # a way to a state that is not followed
MOST_LOST = Fraction(1, 1 << 40)  # of a law
PURE = [getattr(builtins, name) for name in "abs bool divmod float int max min pow range round tuple".split()]
PURE += [Fraction, np.float64, np.int64, *(each for each in vars(math).values() if callable(each))]
MODULES = (math, np, fractions)
_STATEMENTS = "FunctionDef Assign AugAssign AnnAssign Expr If While For Break Continue Return Pass Raise Assert"
_EXPRESSIONS = "BoolOp BinOp UnaryOp IfExp Compare Call keyword Constant Name Tuple Subscript Slice Attribute NamedExpr"
_PARTS = "expr_context operator boolop unaryop cmpop arguments arg"
READ = tuple(getattr(ast, name) for name in f"{_STATEMENTS} {_EXPRESSIONS} {_PARTS}".split())
ROUND = """
for __round__ in (0,):
    if not 0:
        break
else:
    return "again", locals()
return "exit", locals()
"""

State = tuple[tuple[str, Any], ...]  # values by name, as parts
Place = tuple[types.CodeType, int]  # a loop: whose code, and the line in it


class Unfit(DpAuditError):
    """A loop is no sampler after all: it is run as it stands."""

    def __init__(self, place: Place, why: str) -> None:
        super().__init__(f"the loop in line {place[1]} of {place[0].co_name} cannot be summed up: {why}")
        self.place = place


class Missing(DpAuditError):
    """A sampler needs the value of a name; with `count`, that of a number which is not only added to."""

    def __init__(self, sampler: "Sampler", name: str, *, count: bool = False) -> None:
        self.sampler, self.name, self.count = sampler, name, count


class Counted(Geometric):
    """Behind a number that a round begins with: it may be added to, and nothing else."""

    def __init__(self, source: StandIn, sampler: "Sampler", name: str) -> None:
        super().__init__(source, Fraction(0))
        self.missing = Missing(sampler, name, count=True)

    def once(self, *, last: bool = False) -> None:
        raise self.missing

    def known(self) -> int:
        raise self.missing

    def below(self, cut: int) -> bool:
        raise self.missing


@dataclass(frozen=True, slots=True)
class Plain:
    """A value of how a round ends; equal to none that can be told from it."""

    form: Hashable
    value: Any = field(compare=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of how a round ends: offset + step * the number of a name that it began with, or of a law by place."""

    law: str | int
    offset: int
    step: int
    rate: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class End:
    """How a round ends: "again", "exit" or "return", with which values; and by how much numbers have grown by then."""

    kind: str
    parts: Any
    grown: tuple[int, ...] = ()


Row = dict[End, Fraction]


class Sampler:
    """A loop: `names` that stand in it, of which it writes `stored`; `kept` may be read after it."""

    def __init__(
        self, place: Place, code: Callable[[Iterable[str]], Any], seen: Callable[[], Hashable], names: set[str]
    ) -> None:
        self.place, self.code, self.seen, self.names = place, code, seen, sorted(names)
        self.stored, self.kept = set[str](), set[str]()
        self.tracked, self.plain = set[str](), set[str]()
        self.idealised = False
        self.laws: dict[Hashable, tuple[list[tuple[End, dict[str, int], Fraction]], Weights]] = {}

    def end(self, given: Mapping[str, Any]) -> tuple[str, Any]:
        """How it ends: ("return", a value), or ("exit", values by name)."""
        source = next((BEHIND.__get__(v) for name, v in given.items() if name in self.names and type(v) is FACE), None)
        if source is None:
            raise Unfit(self.place, "it draws from no generator that it is given")
        while True:
            try:
                return self._end(source, given)
            except Missing as missing:
                known = self.plain if missing.count else self.tracked
                if missing.name in known or (missing.sampler is not self if missing.count else missing.name not in self.stored):
                    raise  # it may be of a loop around this one
                known.add(missing.name)
            except (OutOfTime, Unfit) as error:
                raise source.remembered(error)
            except DpAuditError as error:
                raise source.remembered(Unfit(self.place, str(error))) from None

    def _end(self, source: StandIn, given: Mapping[str, Any]) -> tuple[str, Any]:
        begun = {name: given[name] for name in self.names if name in given and name not in self.stored - self.tracked}
        counts = [n for n in begun if n in self.tracked - self.plain and type(begun[n]) in (int, Unbounded)]
        values = {name: self._part(value, True, []) for name, value in begun.items() if name not in counts}
        key = tuple(counts), tuple(values.items()), self.seen()
        if key not in self.laws:
            self.laws[key] = self._law(values, counts)
        ends, weights = self.laws[key]
        source.idealised = source.idealised or self.idealised
        place = source.pick(weights)
        if place == len(ends):
            raise source.lose()
        end, grown, rate = ends[place]
        laws: dict[str | int, Geometric] = {}

        def filled(part: Any) -> Any:
            if type(part) is tuple:
                return tuple(map(filled, part))
            if type(part) is Plain:
                return part.value
            if type(part) is not Number:
                return part
            if type(part.law) is int:
                return Unbounded(laws.setdefault(part.law, Geometric(source, part.rate)), part.offset, part.step)
            number = begun[part.law] * part.step + part.offset
            growing = part.step * grown[part.law]
            return number + Unbounded(laws.setdefault("", Geometric(source, rate)), 0, growing) if growing else number

        return end.kind, filled(end.parts) if end.kind == "return" else dict(filled(end.parts))

    def _law(self, values: Mapping[str, Any], counts: list[str]) -> Any:
        """The ways it ends from a state with their weights; and what is added then, once or more often, at which rate."""
        fixed = {name: part for name, part in values.items() if name not in self.stored}
        first, still = End("again", tuple((n, values[n]) for n in values if n in self.stored)), (0,) * len(counts)
        likely, waiting, rows = {first: 1.0}, [first], dict[End, Row]()
        for here in waiting:
            if len(rows) > MOST_STATES:
                raise Unfit(self.place, f"its rounds begin in more than {MOST_STATES:,} states")
            rows[here] = self._round(fixed, here.parts, counts) if likely[here] > RARE else {}
            for end, p in rows[here].items():
                if end.kind == "again":
                    state = replace(end, grown=())
                    waiting += [state] if state not in likely else []
                    likely[state] = max(likely.get(state, 0.0), likely[here] * float(p))
        for here in waiting[1:]:
            back, row = _apart(rows.pop(here), here)
            if back.keys() - {still}:
                raise Missing(self, counts[0], count=True)
            for other in rows.values():
                for grown, p in _apart(other, here, take=True)[0].items():
                    for end, q in row.items() if back.get(still) != 1 else ():
                        moved = _moved(end, dict(zip(counts, grown, strict=True)))
                        other[moved] = other.get(moved, Fraction(0)) + p * q / (1 - back.get(still, 0))
        back, row = _apart(rows[first], first)
        wait = 1 - back.pop(still, Fraction(0))
        if len(back) > 1:
            raise Missing(self, counts[0], count=True)
        grown, again = next(iter(back.items()), (still, Fraction(0)))
        if wait == again:
            raise Unfit(self.place, "it never ends")
        weights = in_whole([p / (wait - again) for p in row.values()])
        if weights[-1] > MOST_LOST * sum(weights):
            raise Unfit(self.place, "too much of it would not be followed")
        return [(end, dict(zip(counts, grown, strict=True)), again / wait) for end in row], weights

    def _round(self, fixed: Mapping[str, Any], state: State, counts: list[str]) -> Row:
        """How one round ends from a state."""
        values, places = {**fixed, **dict(state)}, dict[End, int]()
        code, choices = self.code((*values, *counts)), Choices(MOST_PATHS)

        def once(_: None, rng: Any) -> int:
            given = [rng if part.form is FACE else part.value for part in values.values()]
            kind, found = code(*given, *(Unbounded(Counted(choices, self, name), 0, 1) for name in counts))
            return places.setdefault(self._ended(kind, found, counts), len(places))

        law = walk_paths(once, None, choices, MOST_PATHS).law
        self.idealised = self.idealised or choices.idealised
        for output in law:
            if type(output) is Raised:
                named = re.search(r"variable '(\w+)'", output.message)
                if issubclass(output.kind, NameError) and named and named[1] in self.stored:
                    raise Missing(self, named[1])
                raise Unfit(self.place, f"it may raise {output.kind.__name__}")
        row = {end: law[place] for end, place in places.items() if place in law}
        return row if sum(row.values()) == 1 else {end: Fraction(int(p * FINE), FINE) for end, p in row.items()}

    def _ended(self, kind: str, found: Any, counts: list[str]) -> End:
        laws: list[Geometric] = []
        if kind == "return":
            return End(kind, self._part(found, False, laws))
        names = self.tracked if kind == "again" else self.kept
        for name in names - found.keys() - self.tracked:
            raise Missing(self, name)
        parts = {name: self._part(found[name], kind == "again", laws) for name in sorted(names) if name in found}
        if kind == "exit":
            return End(kind, tuple(parts.items()))
        grown = [parts.pop(name) for name in counts]
        for name, part in zip(counts, grown, strict=True):
            if type(part) is not Number or (part.law, part.step) != (name, 1):
                raise Missing(self, name, count=True)
        for number in _numbers(tuple(parts.values())):
            raise Missing(self, number.law, count=True)
        return End(kind, tuple(parts.items()), tuple(part.offset for part in grown))

    def _part(self, value: Any, settled: bool, laws: list[Geometric]) -> Any:
        """A value of how a round ends or begins; `settled` where it must be plain."""
        if type(value) is tuple:
            return tuple(self._part(each, settled, laws) for each in value)
        if type(value) is Unbounded and value.law.value is None:
            if type(value.law) is Counted and value.law.missing.sampler is self:
                return Number(value.law.missing.name, value.offset, value.step)
            if not settled:
                value.law.once()
                laws.extend([value.law] if value.law not in laws else [])
                start = value.offset + value.step * value.law.low
                return Number(laws.index(value.law), start, value.step, value.law.rate)
        value = value.known() if type(value) is Unbounded else value
        if type(value) is FACE:
            return Plain(FACE, None)
        if not _is_plain(value):
            raise Unfit(self.place, f"it uses a {type(value).__name__}: use whole numbers, floats and texts alone")
        return Plain(canonical(value), value)


def _apart(row: Row, here: End, *, take: bool = False) -> tuple[dict[tuple[int, ...], Fraction], Row]:
    """The ways back to a state, by what has grown on them, and the others; `take` takes them out of the row."""
    back = {end.grown: p for end, p in row.items() if end.kind == "again" and end.parts == here.parts}
    rest = {end: p for end, p in row.items() if end.kind != "again" or end.parts != here.parts}
    if take:
        row.clear()
        row.update(rest)
    return back, rest


def _moved(end: End, more: Mapping[str, int]) -> End:
    """How a round ends where it began with so much more."""

    def moved(part: Any) -> Any:
        if type(part) is tuple:
            return tuple(map(moved, part))
        counted = type(part) is Number and type(part.law) is str
        return replace(part, offset=part.offset + part.step * more[part.law]) if counted else part

    if end.kind == "again":
        return replace(end, grown=tuple(a + b for a, b in zip(end.grown, more.values(), strict=True)))
    return replace(end, parts=moved(end.parts)) if any(more.values()) else end


def _numbers(part: Any) -> Iterator[Number]:
    for each in part if type(part) is tuple else ():
        yield from _numbers(each)
    if type(part) is Number:
        yield part


class Samplers:
    """The samplers of a function and of those that it calls; `unfit` are loops that are none, and why."""

    def __init__(self, unfit: dict[Place, str]) -> None:
        self.unfit, self.loops = unfit, list[Sampler]()
        self._made: dict[types.FunctionType, types.FunctionType] = {}

    @property
    def endless(self) -> bool:
        """Whether a loop may go on for ever."""
        laws = [law for loop in self.loops for law in loop.laws.values()]
        return any(weights[-1] or any(rate for *_, rate in ends) for ends, weights in laws)

    def of(self, function: Any, *, within: bool = False) -> Any:
        """The same function, but that each loop that is a sampler is one draw; and so in functions that it calls."""
        if type(function) is types.FunctionType and function not in self._made:
            self._made[function] = function
            try:
                definition = copy.deepcopy(source_of(function).definition)
            except InvalidSpec:
                return function
            if passed_through(function) is not function:
                return function
            loops = _Loops(self, function, definition)
            for each in _called(function, definition.body).values():
                self.of(each, within=True)
            if within:  # a function that is called is a loop of one round
                once = ast.While(ast.Constant(True), [*definition.body, ast.Return()], [])
                definition.body = [ast.copy_location(once, definition)]
            definition.args.defaults, definition.args.kw_defaults = [], [None] * len(definition.args.kwonlyargs)
            for part in ast.walk(definition.args):
                if isinstance(part, ast.arg):
                    part.annotation = None
            loops.visit(definition)
            made = self.compiled(function, definition.args, definition.body)
            for name in ("__name__", "__qualname__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__"):
                setattr(made, name, getattr(function, name))
            self._made[function] = made if self.loops else function
        return self._made.get(function, function) if type(function) is types.FunctionType else function

    def compiled(self, function: types.FunctionType, arguments: ast.arguments, body: list[ast.stmt]) -> Any:
        """A function that sees the names that another one sees."""
        given: dict[str, Any] = {name: self._late(each) for name, each in _called(function, body).items()}
        given["__sampler__"] = lambda place, found: self.loops[place].end(found)
        tree = ast.parse(f"def outer({', '.join(given)}):\n def inner(): pass\n return inner")
        inner: Any = tree.body[0].body[0]  # type: ignore[attr-defined]
        inner.args, inner.body, space = arguments, body, dict[str, Any]()
        code = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec", dont_inherit=True)
        exec(code, function.__globals__, space)
        return space["outer"](**given)

    def _late(self, function: types.FunctionType) -> Callable[..., Any]:
        return lambda *arguments, **named: self._made.get(function, function)(*arguments, **named)


class _Loops(ast.NodeTransformer):
    """Puts one draw in the place of each loop that is a sampler."""

    def __init__(self, samplers: Samplers, function: types.FunctionType, definition: ast.FunctionDef) -> None:
        self.samplers, self.function, self.loads = samplers, function, _loads(definition)
        loops = [each for each in ast.walk(definition) if isinstance(each, ast.While | ast.For)]
        self.within = {each for loop in loops for each in ast.walk(loop) if each is not loop}

    def visit_While(self, node: ast.While) -> Any:
        place, loads, local = (self.function.__code__, node.lineno), _loads(node), _local(self.function)
        stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        names, returns = read_names(node) & local, any(isinstance(each, ast.Return) for each in ast.walk(node))
        reached = list[Any]()
        try:
            reached = _reached(self.function, [node], [])
            if node.orelse or stored - local:
                raise InvalidSpec("it has an else, or writes a name that is not its function's")
        except InvalidSpec as error:
            self.samplers.unfit.setdefault(place, str(error))
        self.generic_visit(node)
        if place in self.samplers.unfit:
            return node
        body = ast.parse(ROUND).body
        body[0].body[0].test.operand = node.test  # type: ignore[attr-defined]
        body[0].body += [_Returns().visit(each) for each in node.body]  # type: ignore[attr-defined]

        @functools.cache
        def code(given: tuple[str, ...]) -> Any:
            arguments = ast.parse(f"def f({', '.join(given)}): pass").body[0].args  # type: ignore[attr-defined]
            unset = [f"{name} = 0" for name in names.difference(given)]  # never run: they make the names its own
            return self.samplers.compiled(self.function, arguments, [*body, *ast.parse("\n".join(unset)).body])

        sampler = Sampler(place, code, lambda: tuple(_marked(*each) for each in reached), names)
        sampler.stored = stored
        sampler.kept = {name for name in stored if self.loads[name] > (0 if node in self.within else loads[name])}
        self.samplers.loops.append(sampler)
        lines = [f"__end__ = __sampler__({len(self.samplers.loops) - 1}, locals())"]
        lines += ["if __end__[0] == 'return':", "    return __end__[1]"] if returns else []
        for name in sorted(sampler.kept):
            lines += [f"if {name!r} in __end__[1]:", f"    {name} = __end__[1][{name!r}]"]
        return ast.parse("\n".join(lines)).body


class _Returns(ast.NodeTransformer):
    """Says of what a round returns that it is that."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        value = node.value or ast.Constant(None)
        return ast.Return(ast.Tuple([ast.Constant("return"), value], ast.Load()))


def _loads(node: ast.AST) -> Counter[str]:
    return Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _local(function: types.FunctionType) -> set[str]:
    return {*function.__code__.co_varnames, *function.__code__.co_cellvars}


def _value(function: types.FunctionType, name: str, attribute: str = "") -> Any:
    """What a name of its module or of Python stands for; an attribute only where that is a module's of `MODULES`."""
    value = function.__globals__.get(name, vars(builtins).get(name))
    return getattr(value, attribute, value) if any(value is module for module in MODULES) else value


def _called(function: types.FunctionType, body: Iterable[ast.AST]) -> dict[str, types.FunctionType]:
    """The functions that a piece of a function may call, by name, but for those of Python and numpy."""
    names = {name for each in body for name in read_names(each)} - _local(function)
    found = {name: value for name in sorted(names) if type(value := _value(function, name)) is types.FunctionType}
    libraries = {"numpy", *sys.stdlib_module_names}
    return {name: value for name, value in found.items() if value.__module__.partition(".")[0] not in libraries}


def _reached(function: types.FunctionType, body: Iterable[ast.AST], known: list[Any]) -> list[Any]:
    """The names of others that a piece of code reads, with the functions that it calls: all that it depends on.

    Raises `InvalidSpec` where it may do more than compute.
    """
    nodes, local = [node for each in body for node in ast.walk(each)], _local(function)
    attributes = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if not isinstance(node, READ) or isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            raise InvalidSpec(f"{type(node).__name__} in it, where numbers are computed, compared and drawn")
        if not isinstance(node, ast.Name) or node.id in local:
            continue
        entry = function, node.id, attributes.get(id(node), "")
        value = _value(*entry)
        if entry in known:
            continue
        known.append(entry)
        given = getattr(value, "__defaults__", None) or (), getattr(value, "__kwdefaults__", None) or {}
        if type(value) is types.FunctionType and all(map(_is_plain, (*given[0], *given[1].values()))):
            _reached(value, source_of(value).definition.body, known)
        elif not _is_plain(value) and not isinstance(value, np.ufunc) and value not in PURE:
            raise InvalidSpec(f"{node.id} in it, which is not known to compute only")
    return known


def _marked(function: types.FunctionType, name: str, attribute: str) -> Hashable:
    value = _value(function, name, attribute)
    return canonical(value) if _is_plain(value) else id(value)


def _is_plain(value: Any) -> bool:
    return type(value) in PLAIN | NUMBERS or type(value) is tuple and all(map(_is_plain, value))
