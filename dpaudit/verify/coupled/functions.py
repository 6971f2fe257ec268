"""Functions and methods of Python, numpy and math on values of two runs."""

from __future__ import annotations

import ast
import builtins
import functools
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.coupled import arithmetic
from dpaudit.verify.coupled.executor import TreeExecutor
from dpaudit.verify.coupled.expressions import MISSING, TOTAL
from dpaudit.verify.coupled.joins import ANY
from dpaudit.verify.coupled.noise import EntryAxis, Rng, terms_of
from dpaudit.verify.coupled.rules import ValueRules
from dpaudit.verify.coupled.values import (
    ALL,
    AT_LEAST_0,
    STILL,
    DrawnVector,
    EntryIndex,
    FreshNoise,
    Function,
    Keyed,
    KnownArray,
    Noisy,
    NoisyVector,
    Norm,
    NormedVector,
    Only,
    Order,
    Own,
    PairedNumber,
    PairedTruth,
    Record,
    Replaced,
    Rest,
    Span,
    UnknownValue,
    Vector,
    holds,
    is_known,
    is_number,
    is_plain,
    is_same,
    number_of,
    parts,
)
from dpaudit.verify.coupled.ways import OtherKind

OF_NUMPY = frozenset(
    [
        "array",
        "asarray",
        "zeros",
        "ones",
        "full",
        "arange",
        "linspace",
        "zeros_like",
        "ones_like",
        "abs",
        "absolute",
        "clip",
        "minimum",
        "maximum",
        "sum",
        "mean",
        "cumsum",
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sqrt",
        "where",
        "argmax",
        "argmin",
        "argsort",
        "sort",
        "round",
        "around",
        "rint",
        "floor",
        "ceil",
        "trunc",
        "sign",
        "dot",
        "power",
        "square",
        "any",
        "all",
        "max",
        "min",
        "amax",
        "amin",
        "median",
        "std",
        "var",
        "diff",
        "concatenate",
        "stack",
        "outer",
        "prod",
        "isfinite",
        "isnan",
        "float64",
        "int64",
        "float32",
        "int32",
        "linalg.norm",
        "unique",
        "count_nonzero",
        "histogram",
        "bincount",
        "eye",
        "inner",
        "matmul",
        "logical_and",
        "logical_or",
        "logical_not",
        "flip",
        "isclose",
        "tanh",
        "copy",
        "ravel",
        "atleast_1d",
    ]
)
OF_MATH = frozenset(
    [
        "exp",
        "log",
        "sqrt",
        "floor",
        "ceil",
        "log1p",
        "expm1",
        "log2",
        "log10",
        "tanh",
        "sin",
        "cos",
        "fsum",
        "isfinite",
        "isnan",
        "pow",
        "fabs",
        "trunc",
        "hypot",
        "erf",
        "erfc",
    ]
)
METHODS = frozenset(  # of plain values
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "index",
        "count",
        "sort",
        "reverse",
        "copy",
        "clear",
        "items",
        "keys",
        "values",
        "get",
        "setdefault",
        "update",
        "add",
        "discard",
        "union",
        "intersection",
        "sum",
        "mean",
        "max",
        "min",
        "argmax",
        "argmin",
        "argsort",
        "cumsum",
        "clip",
        "round",
        "tolist",
        "astype",
        "reshape",
        "ravel",
        "flatten",
        "dot",
        "all",
        "any",
        "std",
        "var",
        "prod",
        "lower",
        "upper",
        "strip",
        "split",
        "startswith",
        "endswith",
        "is_integer",
        "bit_length",
        "conjugate",
        "item",
        "nonzero",
    ]
)
ORDERLESS = frozenset(["len", "sorted", "sum", "min", "max", "set", "frozenset", "any", "all", "bool", "isinstance"])
ALIKE = {
    "absolute": "abs",
    "fabs": "abs",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "rint": "round",
    "fsum": "sum",
    "power": "pow",
}
SAME_ARRAY = frozenset({"asarray", "ravel", "atleast_1d", "reshape"})  # of an array: itself, or a view of it
ALONG = frozenset(
    [
        "sum",
        "mean",
        "max",
        "min",
        "amax",
        "amin",
        "prod",
        "any",
        "all",
        "argmax",
        "argmin",
        "cumsum",
        "std",
        "var",
        "median",
        "argsort",
        "sort",
    ]
)
IN_PLACE = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "add",
        "discard",
        "fill",
        "put",
        "itemset",
        "partition",
        "popitem",
    ]
)
CHANGES = frozenset(
    {"append", "extend", "insert", "pop", "add", "update", "setdefault", "reverse", "clear"}
)  # those that are followed
KEEPS = frozenset(
    [
        "array",
        "copy",
        "float64",
        "float",
        "float32",
        "tolist",
        "ravel",
        "astype",
        "flatten",
        "list",
        "tuple",
        "atleast_1d",
    ]
)


class KeyAxis(EntryAxis):
    """Names the keys of a dictionary."""


class CallRules(ValueRules):
    """Calls, and attributes."""

    def call(self, run: TreeExecutor, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a function by its name, or a method, makes of its arguments."""
        name, owner = function.name, function.owner
        if isinstance(owner, Function) and (owner.name, name) == ("dict", "fromkeys"):
            keys, value = (*args, None)[:2]
            return {self.run.key(key): value for key in run.known_items(keys)}
        if isinstance(owner, Rng):
            if name == "shuffle":
                raise run.refusal("a shuffle in place", "use rng.permutation")
            return self.draw(name, args, kwargs) if type(owner) is Rng else run.plain(owner.draw, name, args, kwargs)
        if name.startswith("numpy.random."):
            return self.of_numpys_generator(name.removeprefix("numpy.random."), args, kwargs)
        if owner is not None:
            return self.method(owner, name, args, kwargs)
        module, _, short = name.partition(".")
        known = {"numpy": OF_NUMPY, "math": OF_MATH}.get(module, frozenset()) if short else TOTAL
        short = short or name
        if short not in known:
            raise run.refusal(f"a call of `{name}`", "write what it does, or call a function of this module")
        if module == "numpy":
            args, kwargs = self.along(short, args, kwargs)
            if short in SAME_ARRAY and isinstance(args[0], KnownArray):
                return self.same_array(*args, **kwargs)
        if (
            is_known(args)
            and is_known(kwargs)
            and not any(isinstance(each, Function) and each.node is not None for each in (*args, *kwargs.values()))
        ):
            return self.of_plain(function, args, kwargs)
        return self.by_rule(ALIKE.get(short, short), args, kwargs)

    def along(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of numpy's functions, `axis` by its name; none of an array of one axis."""
        own = getattr(np, name, None)
        most = (
            own.nin
            if isinstance(own, np.ufunc)
            else {"clip": 3, "round": 2, "around": 2}.get(name, 2 if name in ALONG else 9)
        )
        if len(args) > most or {"out", "where", "initial"} & set(kwargs):
            raise self.run.refusal(f"these arguments of `{name}`", "write `a = np.f(a)`, and no out or where")
        if name in ALONG and len(args) == 2:
            args, kwargs = args[:1], {"axis": args[1], **kwargs}
        entries = parts(args[0]) if args and isinstance(args[0], list | tuple | KnownArray) else ()
        if any(isinstance(each, list | tuple | KnownArray | np.ndarray) for each in entries):
            if not is_plain(list(entries)):
                raise self.run.refusal("an array of several axes", "use one for each row")
        elif entries and kwargs.get("axis", 1) in (0, -1, None):
            kwargs = {key: each for key, each in kwargs.items() if key != "axis"}
        return args, kwargs

    def same_array(self, array: KnownArray, dtype: Any = None, **more: Any) -> KnownArray:
        """The array, or a view of it: by its other name it is written to as well."""
        if more or dtype not in (None, -1):
            array.shared = True
            return KnownArray(list(array.items), True, "O")
        return array

    def of_plain(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call on plain values, by Python itself."""
        name = function.name
        if "." in name:
            module, _, short = name.partition(".")
            own: Any = functools.reduce(getattr, short.split("."), {"numpy": np, "math": math}[module])
        else:
            own = getattr(builtins, name)
        if any(isinstance(each, int) and abs(each) > 10**7 for each in args):
            raise self.run.refusal("a number this large", "give smaller parameters")
        if name not in ORDERLESS and any(isinstance(each, set | frozenset) and len(each) > 1 for each in args):
            raise self.run.refusal("a set in an order, which is no one's", "sort it")
        args = [self.unwrapped(each) for each in args]
        if name in ("list", "tuple", "enumerate", "zip", "sum") and any(
            isinstance(each, set | frozenset) for each in args
        ):
            raise self.run.refusal("the order of a set, which is no one's", "use sorted(...) of it")
        found = self.run.plain(own, *args, **{name: self.unwrapped(each) for name, each in kwargs.items()})
        if isinstance(found, np.ndarray) and found.ndim == 1:
            return KnownArray(list(found))
        return list(found) if name in ("enumerate", "zip", "reversed") else found

    @staticmethod
    def unwrapped(value: Any) -> Any:
        """An array of plain numbers as numpy's; a type as itself."""
        if isinstance(value, Function) and value.node is None and value.owner is None:
            return {"int": int, "float": float, "bool": bool, "numpy.float64": np.float64, "numpy.int64": np.int64}.get(
                value.name, value
            )
        return np.array(value.items) if isinstance(value, KnownArray) else value

    def of_numpys_generator(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """numpy.random, as a generator that the mechanism makes or takes."""
        if name == "default_rng":
            if args or kwargs:
                raise self.run.refusal(
                    "a generator with a seed of its own", "its noise is known: take rng as a parameter"
                )
            return Rng()
        return self.draw({"rand": "random", "randn": "standard_normal"}.get(name, name), args, kwargs)

    def by_rule(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call with something unknown in it."""
        rule = getattr(self, "_" + name.replace(".", "_"), None)
        if rule is not None:
            found = rule(*args, **kwargs) if takes(rule, args, kwargs) else NotImplemented
            if found is not NotImplemented:
                return found
        looked = [self.look(each) for each in (*args, *kwargs.values())]
        if any(map(holds, looked)) or name in ("max", "min") and holds(looked):
            raise self.run.refusal(f"`{name}` of containers", "use numbers")
        if all(map(is_same, looked)) and not any(
            isinstance(each, Function) and each.node is not None for each in looked
        ):
            return UnknownValue()
        if self.single is not None and name not in ("len", "index"):
            return PairedNumber() if name in ("mod", "pow", "log", "sqrt", "dot") else self.refused(name)
        return self.refused(name)

    def refused(self, name: str) -> Any:
        """A function of data without noise that no rule covers."""
        raise self.run.refusal(
            f"`{name}` of data without noise", "add noise first, or use sums, means, clips and counts"
        )

    # --- attributes and methods -----------------------------------------------------------------------------------

    def attribute(self, owner: Any, name: str) -> Any:
        """owner.name of what is unknown."""
        if isinstance(owner, Record):
            return (
                Function(name, owner=owner)
                if name in ("get", "sum", "copy")
                else replace(owner, path=(*owner.path, f".{name}"))
            )
        if name in ("shape", "size") and isinstance(owner, Vector):
            length = self._len(owner)
            return (length,) if name == "shape" else length
        if name == "shape" and isinstance(owner, NormedVector):
            return (PairedNumber(True, AT_LEAST_0, whole=True, axis=owner.axis),)
        if name in ("shape", "size") and isinstance(owner, KnownArray):
            return (len(owner.items),) if name == "shape" else len(owner.items)
        return Function(name, owner=owner)

    def method(self, owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """owner.name(...)"""
        if name in IN_PLACE:
            self.run.check_alone(owner)
            both = type(owner) is UnknownValue and owner.same and self.single is None
            if not both and (not isinstance(owner, list | dict | set) or name not in CHANGES and not is_plain(owner)):
                raise self.run.refusal(f"`{name}` of this, in place", "make a new one, by sorted(...) say")
        if isinstance(owner, KnownArray | Vector):
            (owner, *args), kwargs = self.along(name, [owner, *args], kwargs)
            if isinstance(owner, KnownArray) and name in SAME_ARRAY:
                return self.same_array(owner, *args, **kwargs)
        if isinstance(owner, list | dict | set) and name in (
            "append",
            "add",
            "insert",
            "extend",
            "update",
            "setdefault",
            "get",
            "pop",
            "items",
            "keys",
            "values",
            "copy",
            "index",
            "count",
            "reverse",
            "clear",
        ):
            return self.of_container(owner, name, args, kwargs)
        if is_known(owner):
            if name not in METHODS:
                raise self.run.refusal(f"a call of the method `{name}`", "write what it does")
            array = self.unwrapped(owner)
            if is_known(args) and is_known(kwargs) and name not in ("copy", "astype"):
                found = (
                    self.run.plain(getattr(array, name), *map(self.unwrapped, args), **kwargs)
                    if hasattr(array, name)
                    else self.missing(owner, name)
                )
                if isinstance(found, np.ndarray) and found.ndim == 1:
                    return KnownArray(list(found))
                return (
                    list(found) if isinstance(found, type({}.items()) | type({}.keys()) | type({}.values())) else found
                )
        if isinstance(owner, Keyed) and name in ("items", "keys", "values"):
            vector = owner.vector
            assert vector is not None
            keys = self.indices(vector)
            return {
                "items": lambda: self.paired(lambda k, v: (k, v), keys, vector),
                "keys": lambda: keys,
                "values": lambda: vector,
            }[name]()
        if isinstance(owner, Record) and name == "get" and args and is_plain(args[0]):
            return replace(owner, path=(*owner.path, args[0]))
        return self.by_rule(ALIKE.get(name, name), [owner, *args], kwargs)

    def missing(self, owner: Any, name: str) -> Any:
        raise self.run.refusal(f"`{name}` of {type(owner).__name__}", "use values of the right type")

    def of_container(self, owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Methods of lists, dictionaries and sets, with whatever is in them."""
        if isinstance(owner, dict) and name in ("get", "setdefault", "pop") and args and not is_plain(args[0]):
            key, default = self.key(owner, args[0]), args[1] if len(args) > 1 else None
            if name == "get" and is_plain(key):
                return owner.get(key, default)
            if name == "setdefault" and is_plain(key):
                return owner.setdefault(key, default)
            others = [owner[each] for each in self.others(owner)]
            if name != "pop" and is_same(args[0]) and is_same([*others, default]) and not holds(others):
                if isinstance(default, list | dict | set | KnownArray) and self.run.names_of(default):
                    raise self.run.refusal("a default that has a name", "write it where it stands")
                if name == "setdefault":
                    self.store(owner, args[0], UnknownValue())
                return UnknownValue()
            return self.refused(name)
        if isinstance(owner, set) and not is_plain(args):
            raise self.run.refusal("a set of values that are not known", "use a list")
        if name == "extend" and isinstance(args[0], Vector | KnownArray | UnknownValue):
            owner.extend(self.run.known_items(args[0]))
            return None
        if name in ("index", "count") and not (is_plain(owner) and is_plain(args)):
            return self.by_rule(name, [owner, *args], kwargs)
        if name in ("items", "values", "keys") and any(isinstance(key, Rest | Own) for key in owner):
            part = {
                "items": lambda key, value: (key, value),
                "values": lambda key, value: value,
                "keys": lambda key, value: key,
            }[name]
            return replace(self.of_keys(owner, part), axis=KeyAxis())
        found = self.run.plain(getattr(owner, name), *args, **kwargs)
        return list(found) if name in ("items", "keys", "values") else found

    # --- rules: sizes and iteration ---------------------------------------------------------------------------------

    def _len(self, value: Any) -> Any:
        if isinstance(value, Keyed):
            value = value.vector
        if isinstance(value, Vector):
            if value.extra is None:
                return self.counted(value.axis, 1, PairedNumber(True, Span(Fraction(1), Fraction(1)), whole=True))
            change = Fraction(1) if value.extra[0] else Fraction(-1)
            return PairedNumber(True, AT_LEAST_0, Span(change, change), True, axis=value.axis)
        if isinstance(value, dict) and any(isinstance(each, Rest | Own) for each in value):
            sides = [each.second for each in value.values() if isinstance(each, Only)]
            moved = (
                STILL
                if not sides
                else Span(Fraction(sides[0]), Fraction(sides[0]))
                if sides[0]
                else Span(Fraction(-1), Fraction(-1))
            )
            return PairedNumber(True, AT_LEAST_0, moved, True)
        if isinstance(value, KnownArray | list | dict | tuple | set) and not any(
            isinstance(each, Rest) for each in parts(value)
        ):
            return len(value.items) if isinstance(value, KnownArray) else len(value)
        if isinstance(value, PairedNumber):
            raise OtherKind(
                self.run.line, "the length of one number", "give a list of answers, or an adjacency of records"
            )
        if isinstance(value, NormedVector):
            return PairedNumber(True, AT_LEAST_0, whole=True, axis=value.axis)
        return NotImplemented

    def _range(self, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], PairedNumber) and args[0].axis is not None:
            axis = args[0].axis
            changed = self.changed_axes.get(axis, False)
            extra = None if args[0].moved == STILL else (args[0].moved.low > 0, PairedNumber(whole=True))
            index = EntryIndex(True, AT_LEAST_0, STILL if extra is None else arithmetic.UNIT, True, axis=axis)
            return Vector(
                usual=index, changed=(replace(index, of_changed=True),) if changed else (), extra=extra, axis=axis
            )
        return NotImplemented

    def beside_each(self, length: PairedNumber, make: Callable[[], Any]) -> Vector:
        """Something new for each entry that a length counts."""
        index = self._range(length)
        return replace(self.each(index, lambda _: make()), array=True, fresh=True)

    def _enumerate(self, value: Any, start: Any = 0) -> Any:
        found = self.run.items(value)
        if isinstance(found, Vector):
            indices = self.indices(found)
            if start != 0:
                indices = self.each(indices, lambda index: PairedNumber(True, AT_LEAST_0, index.moved, True))
            return replace(self.paired(lambda i, x: (i, x), indices, found), array=False)
        if isinstance(found, UnknownValue):
            return NotImplemented
        return [(start + place, each) for place, each in enumerate(found)]

    def _zip(self, *values: Any) -> Any:
        found = [self.run.items(value) for value in values]
        vectors = [each for each in found if isinstance(each, Vector)]
        if not vectors:
            return list(zip(*found, strict=False)) if all(isinstance(each, list) for each in found) else NotImplemented
        first = vectors[0]
        if first.extra is not None and len(vectors) < len(found):
            return NotImplemented
        columns = [each if isinstance(each, Vector) else self.alongside(each, first) for each in found]
        result = self.each(columns[0], lambda one: (one,))
        for column in columns[1:]:
            result = self.paired(lambda row, one: (*row, one), result, column)
        return replace(result, array=False, axis=first.axis if len(vectors) == len(found) else EntryAxis())

    def alongside(self, values: Any, vector: Vector) -> Vector:
        """A public list beside the entries of a dataset."""
        if not is_same(values):
            raise self.run.refusal("data beside data", "take both from one dataset")
        value = (
            UnknownValue() if isinstance(values, UnknownValue) or not values else functools.reduce(self.join, values)
        )
        return self.each(vector, lambda _: value)

    def _list(self, value: Any = ()) -> Any:
        found = self.run.items(value)
        return replace(found, array=False) if isinstance(found, Vector) else found

    def _tuple(self, value: Any = ()) -> Any:
        found = self._list(value)
        return tuple(found) if isinstance(found, list) else found

    def _dict(self, value: Any) -> Any:
        found = self.run.items(value)
        if isinstance(found, list) and all(isinstance(each, tuple) and len(each) == 2 for each in found):
            return {self.run.key(key): each for key, each in found}
        return NotImplemented

    def _bincount(self, value: Any, minlength: Any = 0) -> Any:
        places = self.as_array(value)
        if not isinstance(places, Vector) or not isinstance(minlength, int):
            return NotImplemented
        bins = range(minlength)

        def placed(one: Any) -> Any:
            number = self.number(one)
            if number is None or not number.whole or number.span.low < 0 or number.span.high > minlength - 1:
                raise self.run.refusal("np.bincount of what may be outside", "clip it to 0 .. minlength - 1")
            return self.one_of(number, minlength) if self.single is not None else number

        found = self.each(places, placed)
        return KnownArray(
            [self._sum(self.each(found, lambda one, bin=bin: self.run.compared(ast.Eq(), one, bin))) for bin in bins]
        )

    def _histogram(self, value: Any, bins: Any = 10, range: Any = None) -> Any:
        found, edges = self.as_array(value), self.as_array(bins)
        if (
            not isinstance(found, Vector)
            or not isinstance(edges, KnownArray)
            or not is_plain(edges.items)
            or range is not None
        ):
            raise self.run.refusal("a histogram whose edges are the data's", "give public edges in bins")

        def within(one: Any, low: Any, high: Any, last: bool) -> Any:
            above = self.run.compared(ast.GtE(), one, low)
            below = self.run.compared(ast.LtE() if last else ast.Lt(), one, high)
            return self.both_true(above, below)

        pairs = list(zip(edges.items, edges.items[1:], strict=False))
        counts = [
            self._sum(self.each(found, lambda one, p=p, last=last: within(one, *p, last)))
            for last, p in ((p is pairs[-1], p) for p in pairs)
        ]
        return KnownArray(counts), edges

    def _array(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(dtype, Function) and dtype.name in ("int", "numpy.int64"):
            return self._int(self._array(value))
        if dtype is not None and not (isinstance(dtype, Function) and dtype.name in ("float", "numpy.float64")):
            return NotImplemented
        found = (
            value
            if isinstance(value, Record | KnownArray | NormedVector)
            else self.run.items(value)
            if not isinstance(value, PairedNumber | FreshNoise | Noisy)
            else value
        )
        if isinstance(found, Vector):
            return replace(found, array=True, fresh=False)
        if isinstance(found, PairedNumber):
            raise OtherKind(
                self.run.line, "an array of one number", "give a list of answers, or an adjacency of records"
            )
        if isinstance(found, KnownArray):
            return KnownArray(list(found.items), kind=found.kind)
        return self.entries(found) if isinstance(found, list) else found

    _copy = _ravel = _flatten = _atleast_1d = _asarray = _array

    def entries(self, found: list[Any]) -> KnownArray:
        """An array of these: numbers in it are numpy's, of a type that the others may decide."""
        if any(isinstance(each, list | tuple | KnownArray | np.ndarray) for each in found):
            raise self.run.refusal("an array of several axes", "use one for each row")
        plain = is_plain(found)
        return KnownArray(
            [
                number_of(each) if not plain and is_number(each) and not isinstance(each, bool) else each
                for each in found
            ],
            kind=KnownArray(found).kind,
        )

    def _float64(self, value: Any) -> Any:
        return NotImplemented if isinstance(value, list | KnownArray | Vector) else self._float(value)

    def _tolist(self, value: Any) -> Any:
        return (
            list(value.items)
            if isinstance(value, KnownArray)
            else replace(value, array=False)
            if isinstance(value, Vector)
            else NotImplemented
        )

    def _astype(self, value: Any, kind: Any) -> Any:
        if not isinstance(kind, Function) or kind.name not in ("float", "numpy.float64"):
            return NotImplemented
        return (
            KnownArray(list(value.items), kind="f")
            if isinstance(value, KnownArray) and value.kind in ("i", "f", "")
            else replace(value)
            if isinstance(value, Vector)
            else value
            if isinstance(value, Record)
            else NotImplemented
        )

    def of_keys(self, owner: dict[Any, Any], part: Callable[[Any, Any], Any]) -> Vector:
        """The keys of a dictionary that are the data's, and what they lead to; in the order of the data (`ordered` not)."""
        usual, changed, extra = MISSING, [], None
        for key, value in owner.items():
            if isinstance(value, Only):
                extra = value.second, part(key, value.value)
            elif is_same(value):
                usual = part(key, value) if usual is MISSING else self.join(usual, part(key, value))
            else:
                changed.append(part(key, value))
        if usual is MISSING:
            usual = part(ANY, changed[0] if changed else PairedNumber())
        return Vector(usual=usual, changed=tuple(changed), extra=extra, ordered=not changed)

    def looked(self, found: list[Any], entries: Any) -> list[Any]:
        """Entries that were looked at; the first of a vector's stands for many."""
        if isinstance(entries, list):
            return list(map(self.look, found))
        return [self.many(lambda: self.look(found[0])), *map(self.look, found[1:])]

    def _sorted(self, value: Any, key: Any = None, reverse: bool = False) -> Any:
        if not isinstance(reverse, bool):
            return NotImplemented
        if isinstance(value, dict) and key is None:
            value = self.of_container(value, "keys", [], {})
        if isinstance(value, Vector) and key is None and isinstance(value.axis, KeyAxis):
            return replace(value, ordered=True)
        entries = self.run.items(value)
        if key is not None and not isinstance(entries, UnknownValue) or isinstance(entries, Vector):
            found = self.keyed(entries, key)
            if found is not None and isinstance(entries, list) and is_plain(found):
                order = sorted(range(len(found)), key=found.__getitem__, reverse=reverse is True)
                return [entries[place] for place in order]
            if found is not None and is_same(
                entries if isinstance(entries, list) else entries.same or isinstance(entries.usual, EntryIndex)
            ):
                return Order(found, reverse is True)
        return NotImplemented

    def keyed(self, entries: Any, key: Any) -> list[Any] | None:
        """What a key function makes of each entry."""
        if isinstance(entries, Vector):
            if entries.extra is not None:
                return None
            entries = (entries.usual, *entries.changed)
        clock, own = self.clock, len(entries) if isinstance(entries, list) else None
        if key is None:
            return list(entries)
        found = [self.run.apply(key, [each], {}) for each in entries]
        return found if own is not None else [self.check_own(each, clock) for each in found]

    # --- rules: numbers ---------------------------------------------------------------------------------------------

    def mapped(self, function: Callable[..., Any], *values: Any) -> Any:
        """A function of numbers on numbers, or entry by entry on arrays."""
        arrays = [
            each
            for each in values
            if isinstance(each, KnownArray | Vector | NoisyVector | DrawnVector | np.ndarray | list | tuple)
        ]
        if arrays:
            rest = [each for each in values if each is not arrays[0]]
            if len(rest) == 0:
                return self.elementwise(lambda one, _: self.mapped(function, one), arrays[0], 0)
            if len(rest) == 1:
                first = values[0] is arrays[0]
                swap = lambda one, two: self.mapped(function, one, two) if first else self.mapped(function, two, one)
                return self.elementwise(swap, arrays[0], rest[0])
            if all(is_same(each) and not parts(each) for each in rest):
                return self.elementwise(lambda one, _: self.mapped(function, one, *rest), arrays[0], 0)
            return NotImplemented
        if is_plain(values):
            return function(*values)
        if any(isinstance(each, Replaced) for each in values):
            return self.both(lambda *each: self.mapped(function, *each), *values)
        found = [self.number(each) for each in values]
        return NotImplemented if None in found else function(*found)

    def _clip(self, value: Any, low: Any = None, high: Any = None, **more: Any) -> Any:
        if "a_min" in more or "a_max" in more:
            low, high = more.get("a_min"), more.get("a_max")
        for bound, pick in ((low, max), (high, min)):
            if bound is not None:
                value = self.extreme(value, bound, pick)
        return value

    def extreme(self, one: Any, two: Any, pick: Any) -> Any:
        """The smaller or the larger of two."""
        for norm, other in ((one, two), (two, one)):
            if isinstance(norm, Norm) and is_number(other) and (pick is max) is not norm.inverse:
                return replace(norm, kept=norm.kept or (other >= 0 if norm.inverse else other > 0))

        def of(a: Any, b: Any) -> Any:
            for norm, other in ((a, b), (b, a)):
                if isinstance(norm, Norm) and is_number(other):
                    return self.extreme(norm, other, pick)
            if is_plain((a, b)):
                return self.run.plain(pick, a, b)
            x, y = self.number(a), self.number(b)
            if x is None or y is None:
                return self.refused(pick.__name__)
            return arithmetic.extreme(x, y, pick)

        return self.mapped_pair(of, one, two)

    def mapped_pair(self, of: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
        """A function of two, entry by entry where one is an array."""
        arrays = KnownArray | Vector | NoisyVector | DrawnVector | np.ndarray
        if isinstance(one, arrays) or isinstance(two, arrays):
            return self.elementwise(of, one, two)
        return self.both(of, one, two)

    def _minimum(self, one: Any, two: Any) -> Any:
        return self.extreme(one, two, min)

    def _maximum(self, one: Any, two: Any) -> Any:
        return self.extreme(one, two, max)

    def _abs(self, value: Any) -> Any:
        found = self.mapped(lambda one: arithmetic.absolute(number_of(one)), value)  # type: ignore[arg-type]
        return replace(found, size_of=value) if isinstance(value, Record) and isinstance(found, PairedNumber) else found

    def _round(self, value: Any, digits: Any = None) -> Any:
        if digits not in (None, 0):
            found = self.look(value)
            return UnknownValue() if is_same(found) else NotImplemented
        return self.mapped(lambda one: arithmetic.whole_steps(number_of(one), True), value)  # type: ignore[arg-type]

    def _floor(self, value: Any) -> Any:
        return self.mapped(lambda one: arithmetic.whole_steps(number_of(one)), value)  # type: ignore[arg-type]

    def _trunc(self, value: Any) -> Any:
        return self.mapped(lambda one: arithmetic.whole_steps(number_of(one), to_zero=True), value)  # type: ignore[arg-type]

    def _int(self, value: Any) -> Any:
        terms = terms_of(value)
        if terms is not None and all(drawn.law == "geometric" and abs(f) == 1 for f, drawn in terms):
            base = self.number(value.base) if isinstance(value, Noisy) else number_of(0)
            if base is not None and base.whole:
                return value
        return self._trunc(value)

    _ceil = _floor
    _int64 = _int

    def _float(self, value: Any) -> Any:
        found = self.look(value)
        return self.numeric(found) if isinstance(found, PairedNumber | Record) else NotImplemented

    def _bool(self, value: Any) -> Any:
        return self.run.truth(value)

    def _exp(self, value: Any) -> Any:
        def of(one: Any) -> Any:
            number = number_of(one)
            assert number is not None
            if number.span.high > 700 and (not number.same or self.single is not None):
                raise self.run.refusal("exp of what may overflow", "subtract the largest first")
            return replace(arithmetic.monotone(number, math.exp), log=number)

        return self.mapped(of, value)

    def _pow(self, value: Any, exponent: Any) -> Any:
        return self.run.binary(ast.Pow(), value, exponent)

    def _square(self, value: Any) -> Any:
        return self.mapped(lambda one: arithmetic.power(number_of(one), 2), value)  # type: ignore[arg-type]

    def _sqrt(self, value: Any) -> Any:
        def of(one: Any) -> Any:
            number = number_of(one)
            assert number is not None
            if number.span.low < 0:
                return UnknownValue() if number.same and self.single is None else self.refused("sqrt")
            return arithmetic.monotone(number, math.sqrt)

        return self.mapped(of, value)

    def _log(self, value: Any) -> Any:
        def of(one: Any) -> Any:
            number = number_of(one)
            assert number is not None
            if number.span.low <= 0:
                return UnknownValue() if number.same and self.single is None else self.refused("log")
            return arithmetic.monotone(number, math.log, 1 / Fraction(number.span.low))

        return self.mapped(of, value)

    def _where(self, condition: Any, one: Any, two: Any) -> Any:
        def of(truth: Any, pair: Any) -> Any:
            if isinstance(truth, PairedTruth):
                if not truth.same:
                    raise self.run.refusal("np.where by data without noise", "decide by noisy or public values only")
                return self.join(*pair)
            return pair[0] if truth else pair[1]

        pairs = self.mapped_pair(lambda a, b: (a, b), one, two)
        if isinstance(condition, Vector | KnownArray | np.ndarray):
            return self.elementwise(
                of,
                condition,
                pairs
                if isinstance(pairs, Vector | KnownArray)
                else KnownArray([pairs] * len(condition.items))
                if isinstance(condition, KnownArray)
                else self.each(condition, lambda _: pairs),
            )
        return NotImplemented

    # --- rules: sums ------------------------------------------------------------------------------------------------

    def _sum(self, value: Any, start: Any = 0, axis: Any = None, **more: Any) -> Any:
        if axis not in (None, 0) or more:
            return NotImplemented
        found = self.run.items(value) if not isinstance(value, Record) else value
        if isinstance(found, list):
            total: Any = start
            for each in found:
                total = (
                    each
                    if is_plain(total) and total == 0 and not isinstance(each, Replaced)
                    else self.run.binary(ast.Add(), total, self.summand(each))
                )
            total = self.summand(total)
            logs = [self.look(each) for each in found if not isinstance(each, Noisy | FreshNoise)]
            if (
                len(logs) == len(found)
                and logs
                and all(isinstance(each, PairedNumber) and each.log is not None for each in logs)
            ):
                total = replace(total, summed=tuple(found), log=None, over=None)
            return total
        if not isinstance(found, Vector) or start != 0:
            return NotImplemented
        return self.sum_of_vector(self.each(found, self.summand), axis)

    def summand(self, value: Any) -> Any:
        """What is added up: True counts 1."""
        return (
            number_of(value)
            if isinstance(value, PairedTruth)
            else int(value)
            if isinstance(value, bool)
            else self.numeric(value)
        )

    def sum_of_vector(self, vector: Vector, axis: Any) -> Any:
        """The sum of a vector's entries."""
        usual, changed, extra = (
            self.many(lambda: self.look(vector.usual)),
            [self.look(each) for each in vector.changed],
            vector.extra,
        )
        every = [usual, *changed, *(extra or ())[1:]]
        if any(isinstance(each, NormedVector) for each in every):
            if vector.array and axis is None:
                raise self.run.refusal("a sum over rows and columns", "give axis=0")
            sizes = [each.size if isinstance(each, NormedVector) else math.inf for each in (extra or ())[1:]]
            far = sum(
                (each.moved_2 if isinstance(each, NormedVector) else math.inf for each in changed),
                sum(sizes, Fraction(0)),
            )
            usual_moves = usual.moved_2 if isinstance(usual, NormedVector) else 0
            return NormedVector(
                True, math.inf, math.inf if far else Fraction(0), math.inf if usual_moves else far, self.row_axis(usual)
            )
        numbers = [number_of(each) for each in every]
        if None in numbers or (axis is not None and vector.array and not isinstance(vector.usual, PairedNumber)):
            return self.refused("sum")
        first = numbers[0]
        assert first is not None
        low = Fraction(0) if all(each is not None and each.span.low >= 0 for each in numbers) else -math.inf
        high = Fraction(0) if all(each is not None and each.span.high <= 0 for each in numbers) else math.inf
        if self.single is not None and vector.most is not None:
            return PairedNumber(True, first.span * Span(Fraction(0), Fraction(vector.most)), whole=first.whole)
        moved = functools.reduce(operator.add, [number_of(each).moved for each in changed], STILL)  # type: ignore[union-attr]
        if extra is not None:
            last = number_of(extra[1])
            assert last is not None
            moved = moved + (last.span if extra[0] else -last.span)
        if first.moved != STILL:
            moved = ALL
        whole = all(each is not None and each.whole for each in numbers)
        logs = [usual, *changed]
        summed = (
            tuple(logs)
            if extra is None and all(isinstance(each, PairedNumber) and each.log is not None for each in logs)
            else ()
        )
        return PairedNumber(True, Span(low, high), moved, whole, summed=summed)

    def row_axis(self, block: Any) -> Any:
        """What names the length of the rows of a table."""
        return block.axis if isinstance(block, NormedVector) else None

    def _mean(self, value: Any, axis: Any = None) -> Any:
        return self.run.binary(ast.Div(), self._sum(value, axis=axis), self.run.apply(Function("len"), [value], {}))

    def _cumsum(self, value: Any) -> Any:
        found = self.as_array(value)
        if not isinstance(found, KnownArray):
            return NotImplemented
        totals, total = [], None
        for each in found.items:
            total = each if total is None else self.run.binary(ast.Add(), total, each)
            totals.append(total)
        return KnownArray(totals)

    def _count(self, value: Any, wanted: Any) -> Any:
        found = self.run.items(value)
        if isinstance(found, Vector):
            return self._sum(self.each(found, lambda each: self.run.compared(ast.Eq(), each, wanted)))
        return NotImplemented

    def _any(self, value: Any) -> Any:
        return self.all_or_any(value, False)

    def _all(self, value: Any) -> Any:
        return self.all_or_any(value, True)

    def all_or_any(self, value: Any, every: bool) -> Any:
        """Whether all, or any, of known entries are true."""
        found = self.run.items(value)
        if not isinstance(found, list):
            return NotImplemented
        truths = [self.run.truth(each) for each in found]
        if any(each is (not every) for each in truths):
            return not every
        return self.decided(PairedTruth()) if any(isinstance(each, PairedTruth) for each in truths) else every

    # --- rules: the largest -----------------------------------------------------------------------------------------

    def _max(self, *values: Any, key: Any = None, pick: Any = max, **more: Any) -> Any:
        if more or key is not None and len(values) != 1:
            return NotImplemented
        if len(values) > 1 and key is None:
            return functools.reduce(lambda one, two: self.extreme(one, two, pick), values)
        entries = self.run.items(values[0])
        if key is not None:
            found = self.keyed(entries, key)
            items = entries if isinstance(entries, list) else [entries.usual, *entries.changed]
            if not all(isinstance(each, EntryIndex) or is_same(each) for each in items):
                return NotImplemented
            if found and is_plain(found) and isinstance(entries, list):
                return items[found.index(self.run.plain(pick, found))]
            if found is not None and (
                self.largest(found, smallest=pick is min) or is_same(self.looked(found, entries))
            ):
                return UnknownValue()
            return NotImplemented
        if isinstance(entries, list) and entries:
            found = functools.reduce(lambda one, two: self.extreme(one, two, pick), entries)
            return (
                replace(found, top=tuple(entries))
                if type(found) is PairedNumber and pick is max and len(entries) > 1
                else found
            )
        if isinstance(entries, Vector) and entries.extra is None:
            numbers = [self.many(lambda: self.number(entries.usual)), *map(self.number, entries.changed)]
            if None not in numbers:
                hull = functools.reduce(operator.or_, (each.moved for each in numbers if each is not None))
                whole = all(each is not None and each.whole for each in numbers)
                return PairedNumber(True, ALL, hull, whole, top=(entries,) if pick is max else ())
        return NotImplemented

    def _min(self, *values: Any, key: Any = None, **more: Any) -> Any:
        return self._max(*values, key=key, pick=min, **more)

    def _argmax(self, value: Any, smallest: bool = False) -> Any:
        entries = (
            self.keyed(value if isinstance(value, NoisyVector) else self.run.items(value), None)
            if not isinstance(value, NoisyVector)
            else self.noisy_entries(value)
        )
        if entries is not None and self.largest(entries, smallest=smallest):
            return UnknownValue()
        return NotImplemented

    def noisy_entries(self, value: NoisyVector) -> list[Any] | None:
        """The entries of a vector with noise."""
        if (
            value.value is not None
            or value.draws.spent is not None
            or not isinstance(value.base, Vector)
            or value.base.extra is not None
        ):
            return None
        self.used(value.draws, "a choice")
        line, law, scale = value.draws.line, value.draws.law, value.draws.scale
        return [
            self.made(Noisy(each, ((Fraction(1), self.made(FreshNoise(law, scale, line))),)))
            for each in (value.base.usual, *value.base.changed)
        ]

    def _argmin(self, value: Any) -> Any:
        return self._argmax(value, smallest=True)

    def _argsort(self, value: Any) -> Any:
        entries = (
            self.noisy_entries(value) if isinstance(value, NoisyVector) else self.keyed(self.run.items(value), None)
        )
        return NotImplemented if entries is None else Order(entries)

    def index_of_largest(self, node: ast.Call) -> Any:
        """`v.index(max(v))`: the place of the largest, where the noise of v was not looked at; None for other calls."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="index"),
                args=[ast.Call(func=ast.Name(id="max" | "min" as pick), args=[ast.Name(id=inner)], keywords=[])],
                keywords=[],
            ) if name == inner:
                value = self.run.name(name)
                found = self._argmax(value, pick == "min") if isinstance(value, list | Vector) else NotImplemented
                return None if found is NotImplemented else found
        return None

    # --- rules: norms -----------------------------------------------------------------------------------------------

    def _linalg_norm(self, value: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        def norm(one: Any) -> Norm:
            return Norm(
                True, AT_LEAST_0, STILL if is_same(one) else ALL, of=one, column=axis is None or keepdims is True
            )

        if isinstance(value, Vector) and axis in (1, -1):
            return self.each(value, norm, array=True)
        if isinstance(value, Record | PairedNumber | KnownArray) and axis is None and not isinstance(value, Norm):
            return norm(value)
        return NotImplemented

    def clipped_block(self, op: ast.operator, left: Any, right: Any) -> Any:
        """A vector over a bound of its norm is no longer than that says."""
        for norm, other in ((right, left), (left, right)):
            if isinstance(norm, Norm) and other is norm.of and norm.column:
                if isinstance(op, ast.Mult) and norm.inverse and norm.kept:
                    return NormedVector(True, norm.factor, axis=self.rows)
                if isinstance(op, ast.Div) and not norm.inverse and norm is right and norm.kept:
                    return NormedVector(True, 1 / norm.factor, axis=self.rows)
        return super().clipped_block(op, left, right)

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """left op right: what is said of norms, then of all."""
        for norm, other in ((left, right), (right, left)):
            if isinstance(norm, Norm) and (not isinstance(other, Vector | KnownArray) or other is norm.of):
                if other is norm.of:
                    return self.clipped_block(op, left, right)
                found = self.of_norm(op, norm, other, norm is left)
                if found is not None:
                    return found
        if isinstance(op, ast.MatMult):
            left, right = self.as_array(left), self.as_array(right)
            if isinstance(left, KnownArray) and isinstance(right, KnownArray):
                return self._sum(
                    self.elementwise(lambda one, two: self.run.binary(ast.Mult(), one, two), left, right).items
                )
        for total, more in ((left, right), (right, left)):
            if (
                isinstance(total, KnownArray)
                and isinstance(more, NormedVector)
                and isinstance(op, ast.Add)
                and is_same(total)
            ):
                return replace(more, size=math.inf) if self.rows_have(len(total.items), more) else None
        return super().binary(op, left, right)

    def entry(self, owner: Any, index: Any) -> Any:
        """owner[index]: of an order, the places of some of the largest."""
        if isinstance(owner, Order):
            return self.of_order(owner, index)
        if isinstance(owner, Vector) and index == (slice(None), None) and isinstance(owner.usual, Norm):
            return self.each(owner, lambda one: replace(one, column=True))
        return super().entry(owner, index)

    def of_order(self, order: Order, index: Any) -> Any:
        """Some of the first or last places of an order, in it: that many are the largest."""
        if index == slice(None, None, -1):
            return Order(order.entries, not order.down)
        if not (isinstance(index, slice) and index.step is None and is_plain(index)) and not isinstance(index, int):
            raise self.run.refusal("an order of which this is taken", "take the first or the last k of it")
        if isinstance(index, int):
            index = slice(None, index + 1) if index >= 0 else slice(index, None)
        first = index.start in (None, 0) and index.stop is not None and index.stop >= 0
        if not first and not (index.stop is None and index.start is not None and index.start < 0):
            raise self.run.refusal("an order of which this is taken", "take the first or the last k of it")
        times = index.stop if first else -index.start
        if not self.largest(order.entries, times, smallest=first is not order.down):
            if not is_same(self.look(order.entries)):
                raise self.run.refusal("an order of data without noise", "add noise to each entry")
        return UnknownValue()

    def of_norm(self, op: ast.operator, norm: Norm, other: Any, is_left: bool) -> Norm | None:
        """A norm times, over or under a positive number, or with one added."""
        if not is_number(other) or other < 0:
            return None
        by = Fraction(other)
        if isinstance(op, ast.Add):
            return replace(norm, kept=norm.kept or other > 0) if not norm.inverse else None
        if by == 0:
            return None
        if isinstance(op, ast.Mult):
            return replace(norm, factor=norm.factor * by)
        if isinstance(op, ast.Div) and is_left:
            return replace(norm, factor=norm.factor / by)
        if isinstance(op, ast.Div) and not norm.inverse:
            return replace(norm, factor=by / norm.factor, inverse=True, kept=norm.kept)
        return None

    def rows_have(self, number: int, block: NormedVector) -> bool:
        """Takes it that each row has so many entries; not two numbers."""
        if number == 1:
            raise self.run.refusal("rows of one column", "use plain numbers")
        if self.rows.number not in (None, number):
            raise self.run.refusal("rows of two lengths", "use one public number of columns")
        self.rows.number = number
        return True


def takes(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a rule has these arguments."""
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    most = code.co_argcount - 1
    open_list, open_map = bool(code.co_flags & 4), bool(code.co_flags & 8)
    least = most - len(function.__defaults__ or ())
    known = open_map or set(kwargs) <= set(names)
    return (open_list or len(args) <= most) and len(args) + len(set(kwargs) & set(names[:most])) >= least and known
