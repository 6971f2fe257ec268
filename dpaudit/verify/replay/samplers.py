"""Loops without a last round: a loop of plain numbers is one draw, from the exact law of how it ends.

A *sampler* is a `while` loop that begins with plain numbers and texts, and does nothing but compute and draw, so that
how it ends depends on what it begins with and on its draws alone. Its own code is replayed, round by round. Rounds make
a chain of states, the values that a round reads before it writes them, and how the chain ends is solved for in
fractions. A counter, which a loop only adds constants to, is no part of the state: where a state comes back with it
larger by c, the loop adds c times a geometric number, see `tails`. A function that is called is a loop of one round.
"""

import ast
import builtins
import contextlib
import copy
import fractions
import functools
import math
import operator
import re
import sys
import types
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

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
MOST_STATES = 20_000  # of a loop
RARE = 2.0**-80  # a way to a state that is not followed
MOST_LOST = Fraction(1, 1 << 60)  # of a law, of what is not followed
PURE = [getattr(builtins, name) for name in "abs bool divmod float int len max min pow range round tuple".split()]
PURE += [Fraction, np.float64, np.int64, *(each for each in vars(math).values() if callable(each))]
MODULES = (math, np, fractions)
ATOMS = PLAIN | NUMBERS - {Decimal}
_STATEMENTS = "Assign AugAssign AnnAssign Expr If While For Break Continue Return Pass Raise Assert"
_EXPRESSIONS = "BoolOp BinOp UnaryOp IfExp Compare Call keyword Constant Name Tuple Subscript Slice Attribute NamedExpr"
READ = tuple(getattr(ast, name) for name in f"{_STATEMENTS} {_EXPRESSIONS} expr_context operator boolop unaryop cmpop".split())
AGAIN, EXIT = -1, -2  # how a round ends, or the place of the return that it came to
ROUND = f"""
for __round__ in (0,):
    if not 0:
        break
else:
    return {AGAIN}, locals()
return {EXIT}, locals()
"""

Place = tuple[types.CodeType, int]  # a loop: whose code, and the line in it
Reached = tuple[types.FunctionType, str, str]  # a name that is not a function's own, and an attribute of what it means


class Unfit(DpAuditError):
    """A loop is no sampler after all: it is run as it stands."""

    def __init__(self, place: Place, why: str) -> None:
        super().__init__(f"the loop in line {place[1]} of {place[0].co_name} cannot be summed up: {why}")
        self.place = place


class Missing(DpAuditError):
    """A name is part of the state: a round reads it before it writes it, or it counts in more than one way."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name = place, name


class Relearned(DpAuditError):
    """A draw has other weights than in the runs before: these are to be made anew."""


class Number(NamedTuple):
    """An `Unbounded` of how a round ends; those of one law depend on one draw."""

    law: int
    start: int
    step: int
    rate: Fraction


class End(NamedTuple):
    """How a round ends: with which values, as parts, and how much is added to each counter by then."""

    kind: int
    parts: tuple[tuple[str, Any], ...]
    added: tuple[int, ...]


Row = dict[End, Fraction]


class Sampler:
    """A loop: `names` stand in it, of which it writes `stored`, `counters` among them; `kept` may be read after it."""

    def __init__(
        self, place: Place, code: Callable[[tuple[str, ...]], Any], reached: "dict[Reached, Any]", failed: list[Unfit]
    ) -> None:
        self.place, self.code, self.reached, self.failed = place, code, reached, failed
        self.names, self.stored, self.counters, self.kept = set[str](), set[str](), set[str](), set[str]()
        self.tracked, self.idealised = set[str](), False
        self.values: dict[Hashable, Any] = {FACE: FACE}  # by their forms
        self.laws: dict[Hashable, tuple[list[tuple[End, tuple[int, ...], Fraction]], Weights]] = {}

    def end(self, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """How it ends, and the values of names then."""
        source = next((BEHIND.__get__(given[name]) for name in self.names if type(given.get(name)) is FACE), None)
        if source is None:
            self.failed.append(Unfit(self.place, "it draws from no generator that it is given"))
            raise self.failed[-1]
        while True:
            try:
                return self._end(source, given)
            except Missing as missing:
                if missing.name in self.tracked or missing.name not in self.stored:
                    raise source.remembered(missing)  # it may be of a loop around this one
                self.tracked.add(missing.name)
                if self.laws:
                    raise source.remembered(Relearned())
            except (OutOfTime, Unfit) as error:
                raise source.remembered(error)
            except DpAuditError as error:
                raise source.remembered(Unfit(self.place, str(error))) from None

    def _end(self, source: StandIn, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        begun = {name: given[name] for name in sorted(self.names) if name in given}
        counted = [name for name in begun if name in self.counters - self.tracked and type(begun[name]) in (int, Unbounded)]
        used = [name for name in begun if name not in counted and name not in self.stored - self.tracked]
        parts = tuple((name, self._part(begun[name])) for name in used)
        key = tuple(counted), parts, *np.geterr().values(), *(self._still(value, _value(*each)) for each, value in self.reached.items())
        if key not in self.laws:
            self.laws[key] = self._law(dict(parts), counted)
        ends, weights = self.laws[key]
        source.idealised = source.idealised or self.idealised
        place = source.pick(weights)
        if place == len(ends):
            raise source.lose()
        end, grows, rate = ends[place]
        found, law = self._filled(source, end.parts), Geometric(source, rate)
        for name, added, growing in zip(counted, end.added, grows, strict=True):
            found[name] = begun[name] + (Unbounded(law, added, growing) if growing else added)
        return end.kind, found

    def _still(self, before: Any, now: Any) -> Hashable:
        """A name's value, which no run may make another function of."""
        if now is not before and not _is_plain(now):
            raise Unfit(self.place, "a name of its module means something else now")
        return canonical(now) if _is_plain(now) else None

    def _filled(self, source: StandIn, parts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Values by name; numbers without a largest value are drawn anew."""
        laws: dict[int, Geometric] = {}

        def filled(part: Any) -> Any:
            if type(part) is Number:
                return Unbounded(laws.setdefault(part.law, Geometric(source, part.rate)), part.start, part.step)
            return tuple(map(filled, part)) if type(part) is tuple else self.values[part]

        return {name: filled(part) for name, part in parts}

    def _law(self, begun: Mapping[str, Any], counted: list[str]) -> Any:
        """The ways it ends from a state, what counters grow by, again and again, at which rate; with their weights."""
        fixed = {name: part for name, part in begun.items() if name not in self.stored}
        still = (0,) * len(counted)
        first = End(AGAIN, tuple((name, part) for name, part in begun.items() if name in self.stored), still)
        likely, waiting, rows, before = {first: 1.0}, [first], dict[End, Row](), defaultdict[End, dict[End, None]](dict)
        for here in waiting:
            if len(rows) > MOST_STATES:
                raise Unfit(self.place, f"its rounds begin in more than {MOST_STATES:,} states")
            rows[here] = self._round({**fixed, **dict(here.parts)}, counted) if likely[here] > RARE else {}
            for state, p in [(end._replace(added=still), p) for end, p in rows[here].items() if end.kind == AGAIN]:
                waiting += [state] if state not in likely else []
                likely[state] = max(likely.get(state, 0.0), likely[here] * float(p))
                before[state][here] = None
        for here in waiting[1:]:
            back, row = _apart(rows.pop(here), here)
            if back.keys() - {still}:
                raise Missing(self.place, counted[0])
            for other in [each for each in before[here] if each in rows]:
                moves, rest = _apart(rows[other], here)
                for (added, p), (end, q) in product(moves.items(), row.items() if back.get(still) != 1 else ()):
                    end = end._replace(added=tuple(map(operator.add, added, end.added)))
                    rest[end] = rest.get(end, Fraction(0)) + p * q / (1 - back.get(still, 0))
                    before[end._replace(added=still)][other] = None
                rows[other] = rest
        back, row = _apart(rows[first], first)
        wait = 1 - back.pop(still, Fraction(0))
        grows, again = next(iter(back.items()), (still, Fraction(0)))
        if len(back) > 1:
            raise Missing(self.place, counted[0])
        weights = in_whole([p / (wait - again) for p in row.values() if wait != again])
        if wait == again or weights[-1] > MOST_LOST * sum(weights):
            raise Unfit(self.place, "it never ends, or has too many likely ways to go on")
        return [(end, grows, again / wait) for end in row], weights

    def _round(self, begun: Mapping[str, Any], counted: list[str]) -> Row:
        """How one round ends from a state."""
        code, choices, places = self.code((*begun, *counted)), Choices(MOST_PATHS), dict[End, int]()

        def once(_: None, rng: Any) -> int:
            given = [rng if value is FACE else value for value in self._filled(choices, begun.items()).values()]
            kind, found = code(*given, *(0 for _ in counted))
            names = self.tracked if kind == AGAIN else self.kept
            for name in names - found.keys() - self.tracked:
                raise Missing(self.place, name)
            laws, plain = list[Geometric](), sorted((names - set(counted)) & found.keys())
            parts = tuple((name, self._part(found[name], laws)) for name in plain)
            added = tuple(_known(found[name]) if name in names or kind == AGAIN else 0 for name in counted)
            return places.setdefault(End(kind, parts, added), len(places))

        try:
            law = walk_paths(once, None, choices, MOST_PATHS).law
        except Relearned:
            return self._round(begun, counted)
        self.idealised = self.idealised or choices.idealised
        for output in law:
            if type(output) is Raised:
                named = re.search(r"variable '(\w+)'", output.message)
                if issubclass(output.kind, NameError) and named and named[1] in self.stored:
                    raise Missing(self.place, named[1])
                raise Unfit(self.place, f"it may raise {output.kind.__name__}")
        row = {end: law[place] for end, place in places.items() if place in law}
        return row if sum(row.values()) == 1 else {end: Fraction(int(p * FINE), FINE) for end, p in row.items()}

    def _part(self, value: Any, laws: list[Geometric] | None = None) -> Any:
        """A value of how a round begins or ends; `laws` are those of the numbers in it, None where it must be plain."""
        if type(value) is tuple:
            return tuple(self._part(each, laws) for each in value)
        if type(value) is Unbounded and value.law.value is None and laws is not None:
            value.law.once()
            laws.extend([value.law] if value.law not in laws else [])
            return Number(laws.index(value.law), value.offset + value.step * value.law.low, value.step, value.law.rate)
        value = _known(value)
        if type(value) is FACE and laws is None:
            return FACE
        if not _is_plain(value):
            raise Unfit(self.place, f"it uses a {type(value).__name__}: use whole numbers, floats and texts alone")
        self.values[form := canonical(value)] = value
        return form


def _apart(row: Row, here: End) -> tuple[dict[tuple[int, ...], Fraction], Row]:
    """The ways back to a state, by what is added on them, and the others."""
    back = {end.added: p for end, p in row.items() if end[:2] == here[:2]}
    return back, {end: p for end, p in row.items() if end[:2] != here[:2]}


def _known(value: Any) -> Any:
    return value.known() if type(value) is Unbounded else value


class Samplers:
    """The samplers of a function and of those that it calls; `unfit` are loops that are none, and why."""

    def __init__(self, unfit: dict[Place, str]) -> None:
        self.unfit, self.loops, self.failed = unfit, list[Sampler](), list[Unfit]()
        self._made: dict[types.FunctionType, types.FunctionType] = {}

    @property
    def endless(self) -> bool:
        """Whether a loop may go on for ever."""
        laws = [law for loop in self.loops for law in loop.laws.values()]
        return any(weights[-1] or any(rate for *_, rate in ends) for ends, weights in laws)

    def of(self, function: Any, *, called: bool = False) -> Any:
        """The same function, but that each loop that is a sampler is one draw; and so in functions that it calls."""
        if type(function) is not types.FunctionType:
            return function
        if function not in self._made:
            self._made[function] = function
            with contextlib.suppress(InvalidSpec, KeyError):  # the latter in a replay within one, of the type's own type
                self._made[function] = self._rewritten(function, copy.deepcopy(_definition(function)), called)
        return self._made[function]

    def _rewritten(self, function: types.FunctionType, definition: ast.FunctionDef, called: bool) -> Any:
        for each in _called(function, definition.body).values():
            self.of(each, called=True)
        loops = _Loops(self, function, definition, called)
        arguments = definition.args
        arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
        for part in [part for part in ast.walk(arguments) if isinstance(part, ast.arg)]:
            part.annotation = None
        loops.visit(definition)
        made = self.compiled(function, arguments, definition.body)
        for name in ("__name__", "__qualname__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__"):
            setattr(made, name, getattr(function, name))
        return made if self.loops else function

    def compiled(self, function: types.FunctionType, arguments: ast.arguments, body: list[ast.stmt]) -> Any:
        """A function that sees the names that another one sees."""
        given: dict[str, Any] = {name: self._late(each) for name, each in _called(function, body).items()}
        given |= {"__sampler__": lambda place, found: self.loops[place].end(found), "__plain__": _settled}
        tree = ast.parse(f"def outer({', '.join(given)}):\n def inner(): pass\n return inner")
        inner: Any = tree.body[0].body[0]  # type: ignore[attr-defined]
        inner.args, inner.body, space = arguments, body, dict[str, Any]()
        code = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec", dont_inherit=True)
        exec(code, function.__globals__, space)
        return space["outer"](**given)

    def _late(self, function: types.FunctionType) -> Callable[..., Any]:
        return lambda *arguments, **named: self._made[function](*arguments, **named)


class _Loops(ast.NodeTransformer):
    """Puts one draw in the place of each loop that is a sampler, and of the whole of a function that is called."""

    def __init__(
        self, samplers: Samplers, function: types.FunctionType, definition: ast.FunctionDef, called: bool
    ) -> None:
        self.samplers, self.function, self.loads, self.local = samplers, function, _loads(definition), _local(function)
        loops = [each for each in ast.walk(definition) if isinstance(each, ast.While | ast.For)]
        self.within = {each for loop in loops for each in ast.walk(loop) if each is not loop}
        self.whole = ast.While(ast.Constant(True), [*definition.body, ast.Return()], [])
        if called:
            definition.body = [ast.copy_location(self.whole, definition)]

    def visit_For(self, node: ast.For) -> Any:
        """As a loop over places, which is the same for what does not change."""
        items, at = f"__items_{node.lineno}__", f"__at_{node.lineno}__"
        text = f"{items} = __plain__(0)\n{at} = 0\nwhile {at} < len({items}):\n    _ = {items}[{at}]\n    {at} += 1"
        first, second, loop = made = ast.parse(text).body
        assert isinstance(first, ast.Assign) and isinstance(first.value, ast.Call) and isinstance(loop, ast.While)
        first.value.args, loop.body[0].targets = [node.iter], [node.target]  # type: ignore[attr-defined]
        loop.body += node.body
        loop.orelse, self.local = node.orelse, self.local | {items, at}
        self.within |= {loop} if node in self.within else set()
        found = self.visit_While(ast.copy_location(loop, node))
        node.body = loop.body[2:]
        return node if found is loop else [first, second, *found]

    def visit_While(self, node: ast.While) -> Any:
        place, loads, whole = (self.function.__code__, node.lineno), _loads(node), node is self.whole
        inside = [*(ast.walk(node) if whole else _inside(node))]
        stored = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        names = {each.id for each in inside if isinstance(each, ast.Name)} & self.local
        counters, reached = _counters(inside), dict[Reached, Any]()
        try:
            _reached(self.function, inside, reached, self.local)
            if node.orelse or stored - names:
                raise InvalidSpec("it has an else, or writes a name that is not its function's")
        except InvalidSpec as error:
            self.samplers.unfit.setdefault(place, str(Unfit(place, str(error))))
        self.generic_visit(node)
        if place in self.samplers.unfit:
            return node
        if whole:
            _Returns(VALUED).visit(node)
            names, stored = names | {"__value__"}, stored | {"__value__"}
        returns, body = _Returns(ENDED), ast.parse(ROUND).body
        body[0].body[0].test.operand = node.test  # type: ignore[attr-defined]
        body[0].body += returns.visit(ast.Module(node.body, [])).body  # type: ignore[attr-defined]

        @functools.cache
        def code(given: tuple[str, ...]) -> Any:
            arguments = ast.parse(f"def f({', '.join(given)}): pass").body[0].args  # type: ignore[attr-defined]
            unset = [f"{name} = 0" for name in names.difference(given)]  # never run: they make the names its own
            return self.samplers.compiled(self.function, arguments, [*body, *ast.parse("\n".join(unset)).body])

        sampler = Sampler(place, code, reached, self.samplers.failed)
        sampler.names, sampler.stored, sampler.counters = names, stored, counters
        read = {name for value in returns.values for name in read_names(value)}
        sampler.kept = {n for n in stored if n in read or self.loads[n] > (0 if node in self.within else loads[n])}
        self.samplers.loops.append(sampler)
        lines = [f"__end__ = __sampler__({len(self.samplers.loops) - 1}, locals())"]
        lines += [f"if {name!r} in __end__[1]: {name} = __end__[1][{name!r}]" for name in sorted(sampler.kept)]
        lines += [f"if __end__[0] == {at}: return {ast.unparse(value)}" for at, value in enumerate(returns.values)]
        return ast.parse("\n".join(lines)).body


VALUED, ENDED = "__value__ = 0\nreturn __value__", "return {}, locals()"


class _Returns(ast.NodeTransformer):
    """Puts other code in the place of each return; {} in it is the place of the value in `values`."""

    def __init__(self, text: str) -> None:
        self.text, self.values = text, list[ast.expr]()

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        self.values.append(node.value or ast.Constant(None))
        made = ast.parse(self.text.format(len(self.values) - 1)).body
        if len(made) > 1:
            made[0].value = self.values[-1]  # type: ignore[attr-defined]
        return made


def _settled(items: Any) -> Any:
    return tuple(items) if type(items) in (list, range) else items


def _loads(node: ast.AST) -> Counter[str]:
    return Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


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


def _local(function: types.FunctionType) -> set[str]:
    return {*function.__code__.co_varnames, *function.__code__.co_cellvars}


def _value(function: types.FunctionType, name: str, attribute: str = "") -> Any:
    """What a name of its module or of Python stands for; an attribute only where that is a module of `MODULES`."""
    value = function.__globals__.get(name, vars(builtins).get(name, ...))
    return getattr(value, attribute, value) if any(value is module for module in MODULES) else value


def _called(function: types.FunctionType, body: Iterable[ast.AST]) -> dict[str, types.FunctionType]:
    """The functions that a piece of a function may call, by name, but for those of Python and numpy."""
    names = {name for each in body for name in read_names(each)} - _local(function)
    found = {name: value for name in sorted(names) if type(value := _value(function, name)) is types.FunctionType}
    libraries = {"numpy", *sys.stdlib_module_names}
    return {name: value for name, value in found.items() if value.__module__.partition(".")[0] not in libraries}


def _reached(
    function: types.FunctionType, nodes: Iterable[ast.AST], known: dict[Reached, Any], local: set[str]
) -> None:
    """Adds the names of others that a piece of code reads, with the functions that it calls: all that it depends on.

    Raises `InvalidSpec` where it may do more than compute and draw.
    """
    nodes = [*nodes]
    attributes = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        private = isinstance(node, ast.Attribute) and (node.attr[0] == "_" or not isinstance(node.ctx, ast.Load))
        if private or not isinstance(node, READ):
            raise InvalidSpec(f"{type(node).__name__} in it, where numbers are computed, compared and drawn")
        if not isinstance(node, ast.Name) or node.id in local:
            continue
        entry = function, node.id, attributes.get(id(node), "")
        if entry in known:
            continue
        value = known[entry] = _value(*entry)
        given = getattr(value, "__defaults__", None) or (), getattr(value, "__kwdefaults__", None) or {}
        if type(value) is types.FunctionType and all(map(_is_plain, (*given[0], *given[1].values()))):
            inside = [part for each in _definition(value).body for part in ast.walk(each)]
            _reached(value, inside, known, _local(value))
        elif not _is_plain(value) and not isinstance(value, np.ufunc) and not any(value is each for each in PURE):
            raise InvalidSpec(f"{node.id} in it, which is not known to compute only")


def _definition(function: types.FunctionType) -> ast.FunctionDef:
    """What a function reads as. Raises `InvalidSpec` where that is not all, or where objects are told apart that are equal."""
    definition = source_of(function).definition
    same = [part for part in ast.walk(definition) if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is | ast.IsNot)]
    known = all(isinstance(part.comparators[-1], ast.Constant) and part.comparators[-1].value in (None, True, False) for part in same)
    if passed_through(function) is not function or "locals" in read_names(definition) or not known:
        raise InvalidSpec(f"{function.__name__} is not read")
    return definition


def _is_plain(value: Any) -> bool:
    """Whether it is a number, a text, or a tuple of such, and nothing else can be told of it than its value."""
    return type(value) in ATOMS and value == value or type(value) is tuple and all(map(_is_plain, value))
