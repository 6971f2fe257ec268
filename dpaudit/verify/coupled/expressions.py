"""Expressions of a mechanism: on plain values as Python does it, and on what is unknown by rules."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import operator
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base.quoting import clean
from dpaudit.verify.coupled.values import (
    ABSTRACT,
    Function,
    Instance,
    KnownArray,
    OpaqueValue,
    Own,
    PairedNumber,
    PairedTruth,
    Rest,
    UnknownValue,
    Vector,
    is_plain,
    is_same,
    words,
)
from dpaudit.verify.coupled.ways import Left, NotShown, RaisedAlike, Ways
from dpaudit.verify.language.source import methods_of

MOST_DEEP = 30  # calls of helpers within one another


def table(text: str) -> dict[Any, Callable[..., Any]]:
    """Operators of the syntax tree, each with the function of `operator` that does the same.

    >>> table("Add add")[ast.Add](2, 3)
    5
    """
    names = text.split()
    return {getattr(ast, node): getattr(operator, name) for node, name in zip(names[::2], names[1::2], strict=True)}


BINARY = table(
    "Add add Sub sub Mult mul Div truediv FloorDiv floordiv Mod mod MatMult matmul Pow pow "
    "BitAnd and_ LShift lshift RShift rshift"
)
UNARY = table("USub neg UAdd pos")
ORDERS = table("Lt lt LtE le Gt gt GtE ge Eq eq NotEq ne Is is_ IsNot is_not") | {
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
PLAIN_TYPES = (int, float, str, bytes, type(None), tuple, list, dict, range, slice, np.generic)


@dataclass(frozen=True, slots=True)
class Module:
    """numpy, math, or a part of them."""

    name: str


class Expressions(Ways):
    """The value of each expression."""

    def block(self, statements: list[ast.stmt]) -> None:
        """Executes statements."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Any) -> None:
        """Gives a name, some names, or an entry a value."""
        raise NotImplementedError

    def call_definition(
        self, node: ast.FunctionDef | ast.Lambda, args: list[Any], kwargs: dict[str, Any], outer: Any
    ) -> Any:
        """What a function of the source returns."""
        if len(self.frames) > MOST_DEEP:
            raise self.refusal("calls within calls", "write it without recursion")
        arguments = node.args
        if arguments.vararg or arguments.kwarg:
            raise self.refusal("an open list of parameters", "name each parameter")
        try:
            bound = signature_of(arguments).bind(*args, **kwargs)
        except TypeError:
            raise RaisedAlike("TypeError") from None
        bound.apply_defaults()
        frame = dict(bound.arguments)
        frame["(outer)"] = outer
        frame["(locals)"] = frozenset(names_bound(node))
        frame["(others)"] = frozenset(names_given(node, self.source.modules))
        self.frames.append(frame)
        depth, line = len(self.frames), self.line
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body)
            self.block(node.body)
            return None
        except Left as left:
            if left.how != "return":
                raise
            return left.value
        finally:
            del self.frames[depth - 1 :]
            self.line = line if self.frames else self.line

    def truth(self, value: Any) -> Any:
        """Whether a value counts as true: known, or a `Truth` that both runs share."""
        if isinstance(value, OpaqueValue):
            raise self.refusal("a function as a truth value", "call it")
        if isinstance(value, list | dict) and any(isinstance(each, Rest | Own) for each in value):
            raise self.refusal("the truth of what has an unknown number of entries", "ask for its length")
        if not isinstance(value, ABSTRACT):
            return self.plain(bool, value)
        found = self.rules.truth(value)
        if isinstance(found, PairedTruth) and not found.same:
            raise self.refusal("a decision by data without noise", "decide by noisy or public values only")
        return found

    def value(self, node: ast.expr) -> Any:
        """The value of an expression."""
        self.step()
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name() | ast.Attribute():
                found = self.named(node)
                drawn = isinstance(found, Function) and isinstance(found.owner, OpaqueValue)  # a method of a generator
                if isinstance(found, Function) and not drawn and found.name not in VALUES:
                    raise self.refusal("a function that is not called", "call it where it stands")
                return found
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                condition = self.truth(self.value(operand))
                return PairedTruth(condition.same) if isinstance(condition, PairedTruth) else not condition
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                value = self.value(operand)
                return self.plain(UNARY[type(op)], value) if is_plain(value) else self.rules.unary(op, value)
            case ast.BoolOp(op=op, values=values):
                return self.joint(isinstance(op, ast.And), values)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self.comparison(self.value(left), ops, comparators)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.either(self.truth(self.value(test)), lambda: self.value(body), lambda: self.value(orelse))
            case ast.Call():
                return self.call(node)
            case ast.Subscript(value=owner, slice=index):
                return self.entry(self.value(owner), self.value(index))
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if part is None else self.value(part) for part in (lower, upper, step)))
            case ast.Tuple(elts=elts):
                return tuple([self.value(each) for each in elts])
            case ast.List(elts=elts):
                return [self.value(each) for each in elts]
            case ast.Dict(keys=keys, values=values):
                if None in keys:
                    raise self.refusal("`**` in a dictionary", "write its keys")
                return {self.key(self.value(k)): self.value(v) for k, v in zip(keys, values, strict=True) if k}
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node)
            case ast.Lambda():
                return Function("lambda", node, self.frame)
            case ast.JoinedStr(values=values):
                inside = [part for each in values for part in ast.walk(each) if isinstance(part, ast.FormattedValue)]
                if self.rules.single is not None or not is_same(self.rules.look([self.value(p.value) for p in inside])):
                    raise self.refusal("data in a text", "add noise first")
                return UnknownValue()
        raise self.refusal(f"`{ast.unparse(node)}`", "write the mechanism without it")

    def named(self, node: ast.expr) -> Any:
        """What a name or an attribute means: functions too."""
        match node:
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(self.value(owner), name)
        return self.value(node)

    def name(self, name: str) -> Any:
        """What a name means: local, of the function around, of the module, or Python's own."""
        frame: Any = self.frame
        while frame is not None:
            if name in frame:
                if frame[name] is MISSING:
                    raise self.refusal(f"`{name}` may have no value", "give it one on every way")
                return frame[name]
            if name in frame["(locals)"]:
                raise RaisedAlike("UnboundLocalError")
            frame = frame["(outer)"]
        if name in self.constants:
            return self.constants[name]
        if name in self.source.functions:
            return Function(name, self.source.functions[name])
        if name in self.source.classes:
            return Function(name, self.source.classes[name])
        if name in self.source.modules:
            module, dot, member = self.source.modules[name].partition(".")
            return self.member(Module(module), member) if dot else Module(module)
        if hasattr(builtins, name) and not name.startswith("__"):
            return Function(name)
        cure = "make it a parameter, a plain number or text, or a `def` or plain class of this module"
        if name in ("Counter", "defaultdict"):
            cure = "count in a dictionary: counts[key] = counts.get(key, 0) + 1"
        raise self.refusal(f"`{name}`, which is not read", cure)

    def member(self, module: Module, name: str) -> Any:
        """An attribute of numpy or math."""
        full = f"{module.name}.{name}"
        if full in ("numpy.random", "numpy.linalg"):
            return Module(full)
        value = getattr({"numpy": np, "math": math, "numpy.linalg": np.linalg}.get(module.name), name, None)
        if isinstance(value, int | float):
            return value
        return Function(full)

    def plain(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What Python makes of plain values; its exceptions are those of both runs."""
        if function in GROWING and too_large(function, *args):
            raise self.refusal("a value that is too large to compute", "give smaller numbers")
        try:
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)
        except (MemoryError, RecursionError) as error:
            raise self.refusal(f"a {type(error).__name__}", "give smaller parameters") from None
        except (TypeError, AttributeError) as error:
            raise self.refusal(
                f"what raises {type(error).__name__} ({clean(error, 100)})", "use values of the right type"
            ) from None
        except Exception as error:
            raise RaisedAlike(type(error).__name__) from None

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """left op right."""
        if type(op) not in BINARY:
            raise self.refusal("this operator", "write the mechanism without it")
        joins = isinstance(op, ast.BitAnd)
        if isinstance(left, bool | PairedTruth) and isinstance(right, bool | PairedTruth) and not joins:
            raise self.refusal("arithmetic with two truth values", "numpy's add up otherwise: use int(...)")
        if is_plain(left) and is_plain(right):
            return self.plain(BINARY[type(op)], left, right)
        if isinstance(op, ast.Add) and isinstance(left, list | tuple) and type(left) is type(right):
            return type(left)([*left, *right])
        return self.rules.binary(op, left, right)

    def comparison(self, value: Any, ops: list[ast.cmpop], comparators: list[ast.expr]) -> Any:
        """A chain of comparisons that begins with a value; Python stops at the first that is false."""
        other = self.value(comparators[0])
        found = self.compared(ops[0], value, other)
        if len(ops) == 1:
            return found
        rest = functools.partial(self.comparison, other, ops[1:], comparators[1:])
        return self.either(self.truth(found), rest, lambda: False)

    def compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """left op right."""
        if any(isinstance(each, OpaqueValue) for each in (left, right)) and not isinstance(op, ast.Is | ast.IsNot):
            raise self.refusal("a function or an attribute that is compared", "call it, or use len")
        if is_plain(left) and is_plain(right):
            return self.plain(ORDERS[type(op)], left, right)
        if isinstance(op, ast.Is | ast.IsNot) and (left is None or right is None):
            other = left if right is None else right
            if isinstance(other, UnknownValue) and not isinstance(other, PairedNumber | PairedTruth | Vector):
                return PairedTruth(is_same(other))
            return isinstance(op, ast.IsNot)
        return self.rules.compared(op, left, right)

    def joint(self, every: bool, values: list[ast.expr]) -> Any:
        """`and` and `or`: what Python evaluates of them."""
        for place, node in enumerate(values):
            value = self.value(node)
            if place == len(values) - 1:
                return value
            condition = self.truth(value)
            if isinstance(condition, PairedTruth):
                rest = values[place + 1 :]
                known = not every if isinstance(value, PairedTruth) else value
                stop, go = (lambda known=known: known), (lambda rest=rest: self.joint(every, rest))
                return self.either(condition, go if every else stop, stop if every else go)
            if bool(condition) is not every:
                return value
        return value

    def either(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """One of two values; what both may be, where either may be taken."""
        if not isinstance(condition, PairedTruth):
            return then() if condition else otherwise()
        before = self.contents()
        ends, spends = self.every_way(then, otherwise)
        if not spends and all(end.how == "end" and self.rules.untouched_contents(before, end.contents) for end in ends):
            with suppress(NotShown):
                return functools.reduce(self.rules.join, (end.value for end in ends))
        return otherwise() if self.choose() else then()

    def each_of(self, value: Any, items: list[Any]) -> Iterator[Any]:
        """The entries of what is iterated over, one by one; raises where those that come later have changed."""
        reads: list[Callable[[], list[Any]]] = [functools.partial(_held, value), *self.reads_of(value)]
        before = [read() for read in reads]
        for place in range(len(items) + 1):
            self.step()
            for read, held in zip(reads, before, strict=True):
                now = read()
                if len(now) != len(held) or any(map(operator.is_not, now[place:], held[place:])):
                    raise self.refusal("a container that is changed while it is iterated over", "iterate over a copy")
            if place < len(items):
                yield items[place]

    def known_items(self, value: Any) -> list[Any]:
        """The entries of what is iterated over, where they can be counted."""
        found = self.items(value)
        if not isinstance(found, list):
            raise self.refusal("as many entries as the data have", "use a comprehension of its own for them")
        return found

    def items(self, value: Any) -> Any:
        """The entries of what is iterated over, as a list; or a `Vector`."""
        if isinstance(value, ABSTRACT):
            return self.rules.items(value)
        if isinstance(value, dict) and any(isinstance(each, Rest | Own) for each in value):
            return self.rules.items(self.rules.of_container(value, "keys", [], {}))
        if isinstance(value, list) and any(isinstance(each, Rest) for each in value):
            return UnknownValue(is_same(self.rules.look(value)))  # how many there are is not known
        return self.plain(list, value)

    def key(self, value: Any) -> Any:
        """A key of a dictionary."""
        if not is_plain(value):
            raise self.refusal("a key that is not known", "use public keys")
        self.plain(hash, value)
        return value

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp, over: Any = None) -> Any:
        """A list or dictionary; over the entries of a dataset, or of `over` where it is known, a `Vector`."""
        targets = [part for each in node.generators for part in ast.walk(each.target)]
        names = {part.id for part in targets if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        first = self.value(node.generators[0].iter) if over is None else over
        lazy = isinstance(node, ast.GeneratorExp)
        before = self.contents() if lazy else {}
        self.frames.append({"(outer)": self.frame, "(locals)": frozenset(names)})
        depth = len(self.frames)
        try:
            found = self._generated(node, 0, first)
        except RaisedAlike:
            if lazy:
                raise self.refusal("a generator that raises, if it comes to that", "make it a list, in [ ]") from None
            raise
        finally:
            del self.frames[depth - 1 :]
        if lazy and not self.rules.untouched_contents(before, self.contents()):
            raise self.refusal("a generator that changes something", "write a loop")
        if isinstance(node, ast.DictComp) and not isinstance(found, Vector):
            return {self.key(key): value for key, value in found}
        return found

    def _generated(self, node: Any, place: int, value: Any) -> Any:
        generator = node.generators[place]
        items = self.items(value)
        last = place + 1 == len(node.generators)

        def element() -> Any:
            if isinstance(node, ast.DictComp):
                return self.value(node.key), self.value(node.value)
            return self.value(node.elt)

        def inner() -> Any:
            return self._generated(node, place + 1, self.value(node.generators[place + 1].iter))

        if isinstance(items, Vector):
            if not last or place or isinstance(node, ast.DictComp):
                raise self.refusal("such a comprehension over the data", "use a list over the data alone")
            return self.rules.comprehension(generator, items, element)
        if isinstance(items, UnknownValue):
            return self.rules.of_any(generator, items, element if last else inner)
        found: list[Any] = []
        for item in self.each_of(value, items):
            self.assign(generator.target, item)
            kept = True
            for test in generator.ifs:
                condition = self.truth(self.value(test))
                kept = not self.choose() if isinstance(condition, PairedTruth) else bool(condition)
                if not kept:
                    break
            if kept:
                more = [element()] if last else inner()
                if isinstance(more, Vector):
                    raise self.refusal("such a comprehension over the data", "use a list over the data alone")
                found += more
        return found

    def call(self, node: ast.Call) -> Any:
        """What a call returns."""
        chosen = self.rules.index_of_largest(node)
        if chosen is not None:
            return chosen
        function = self.named(node.func)
        args = [self.value(each) for each in node.args]
        if any(each.arg is None for each in node.keywords):
            raise self.refusal("`**` in a call", "name each argument")
        kwargs = {each.arg: self.value(each.value) for each in node.keywords if each.arg is not None}
        self.line = node.lineno
        found = self.apply(function, args, kwargs)
        if isinstance(found, list) and isinstance(function, Function) and function.name in LAZY:
            values, turned = function.name in ("items", "values"), function.name == "reversed"
            reads = [functools.partial(_held, each, values, turned) for each in (function.owner, *args)]
            self.read_by[id(found)] = found, [*reads, *(read for each in args for read in self.reads_of(each))]
        return found

    def reads_of(self, value: Any) -> list[Callable[[], list[Any]]]:
        """What the containers hold that an iterator reads as it goes."""
        return self.read_by.get(id(value), (None, []))[1]

    def apply(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a function makes of its arguments."""
        node = function.node if isinstance(function, Function) else None
        if isinstance(node, ast.ClassDef):
            made = Instance(node, {})
            if any(each.name == "__init__" for each in methods_of(node)):
                self.apply(self.attribute(made, "__init__"), args, kwargs)
            elif args or kwargs:
                raise RaisedAlike("TypeError")
            return made
        if node is not None:
            args = [function.owner, *args] if isinstance(function.owner, Instance) else args
            return self.call_definition(node, args, kwargs, function.frame)
        if isinstance(function, Function):
            return self.rules.call(self, function, args, kwargs)
        raise self.refusal("a call of what is not known to be a function", "call a function of the module by its name")

    def attribute(self, owner: Any, name: str) -> Any:
        """owner.name."""
        if isinstance(owner, Module):
            return self.member(owner, name)
        if isinstance(owner, Instance):
            methods = {each.name: each for each in methods_of(owner.kind)}
            if name in owner.attributes:
                return owner.attributes[name]
            if name in methods:
                return Function(name, methods[name], owner=owner)
            raise self.refusal(f"the attribute `{name}`", "set it in __init__")
        if isinstance(owner, ABSTRACT):
            return self.rules.attribute(owner, name)
        if is_plain(owner) and not isinstance(owner, OpaqueValue) and not callable(self.plain(getattr, owner, name)):
            raise self.refusal(f"the attribute `{name}`", "write its value")
        return Function(name, owner=owner)

    def entry(self, owner: Any, index: Any) -> Any:
        """owner[index]."""
        if isinstance(owner, list | tuple) and isinstance(index, bool | np.bool_):
            raise self.refusal("a truth value as a place", "use int(...)")
        held = isinstance(owner, list | dict) and any(isinstance(each, Rest) for each in owner)
        if held and not (isinstance(owner, dict) and is_plain(index) and index in owner) or not is_plain(index):
            return self.rules.entry(owner, index)
        known = isinstance(owner, PLAIN_TYPES) or is_plain(owner)
        return self.plain(operator.getitem, owner, index) if known else self.rules.entry(owner, index)

    def names_of(self, value: Any) -> int:
        """How often a value is held by something."""
        held = (each.values() if isinstance(each, dict) else each for _, each in self.contents().values())
        return sum(one is value for each in held for one in each)


def _held(value: Any, values: bool = False, turned: bool = False) -> list[Any]:
    """The entries, keys or `values` of a container, `turned`: from the end; none of what is no container."""
    value = value.items if isinstance(value, KnownArray) else value
    held = list(value.values()) if values and isinstance(value, dict) else []
    held = list(value) if not values and isinstance(value, list | dict) else held
    return held[::-1] if turned else held


def signature_of(arguments: ast.arguments) -> inspect.Signature:
    """How a function takes its arguments."""
    one = inspect.Parameter
    kinds = (
        (one.POSITIONAL_ONLY, arguments.posonlyargs),
        (one.POSITIONAL_OR_KEYWORD, arguments.args),
        (one.KEYWORD_ONLY, arguments.kwonlyargs),
    )
    named = [(each.arg, kind) for kind, several in kinds for each in several]
    without = len(named) - len(arguments.kwonlyargs) - len(arguments.defaults)
    defaults = [
        one.empty if value is None else ast.literal_eval(value)
        for value in (*[None] * without, *arguments.defaults, *arguments.kw_defaults)
    ]
    return inspect.Signature(
        [one(name, kind, default=value) for (name, kind), value in zip(named, defaults, strict=True)]
    )


def names_bound(function: ast.AST) -> Iterator[str]:
    """The names that a function gives a value: not those of comprehensions and lambdas inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if not isinstance(node, ast.Lambda | ast.ListComp | ast.DictComp | ast.GeneratorExp):
            waiting += ast.iter_child_nodes(node)


def names_given(function: ast.AST, modules: Collection[str]) -> Iterator[str]:
    """The names whose values may have another name, or a place in a container: parameters too."""
    yield from (part.arg for part in ast.walk(function) if isinstance(part, ast.arg))
    for node in ast.walk(function):
        match node:
            case ast.AugAssign() | ast.Subscript() | ast.Return():
                continue
            case ast.Attribute(attr=name) if name not in GIVEN:
                continue
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if is_new(value, modules):
                continue
        if not is_new(node, modules):
            yield from (part.id for part in ast.iter_child_nodes(node) if isinstance(part, ast.Name))


def is_new(node: ast.AST | None, modules: Collection[str]) -> bool:
    """Whether what an expression gives has no name yet."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in TOTAL
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
            return owner in modules and name not in GIVEN
    return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant)


GIVEN = words("asarray ravel")  # maybe the very array
TOTAL = words(
    "len range enumerate zip sum min max abs round int float bool str sorted reversed list tuple dict "
    "any all pow divmod isinstance ord chr"
)
VALUES = words("int float bool dict numpy.float64 numpy.int64")  # types: of dtype=, in isinstance, dict.fromkeys
LAZY = words("zip enumerate reversed items keys values")  # they read what they go over as they go
GROWING = (operator.mul, operator.pow, operator.lshift)


def too_large(function: Callable[..., Any], left: Any, right: Any) -> bool:
    """Whether a product, power or shift is an integer, or a list or text, of more than 100,000 bits or entries.

    >>> too_large(operator.pow, 10, 10**9), too_large(operator.mul, [0], 10**9), too_large(operator.mul, 3, 4)
    (True, True, False)
    """
    for one, two in ((left, right), (right, left)):
        if isinstance(one, list | tuple | str | bytes) and isinstance(two, int):
            return len(one) * two > 100_000
    if not (isinstance(left, int) and isinstance(right, int)):
        return False
    bits = {operator.mul: right.bit_length(), operator.lshift: right}.get(function)
    return (left.bit_length() * right if bits is None else left.bit_length() + bits) > 100_000


MISSING = object()  # of a name: without a value on some way
