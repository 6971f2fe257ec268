"""Calls of functions and methods of Python, numpy and math: by Python itself, or by rules on values of two runs."""

from __future__ import annotations

import ast
import builtins
import functools
import math
from collections.abc import Callable, Iterator, MappingView
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.coupled.executor import TreeExecutor
from dpaudit.verify.coupled.expressions import MISSING, TOTAL
from dpaudit.verify.coupled.noise import Rng
from dpaudit.verify.coupled.numeric import NumberRules
from dpaudit.verify.coupled.rules import ANY
from dpaudit.verify.coupled.values import (
    AT_LEAST_0,
    ME,
    USER,
    EntryAxis,
    EntryIndex,
    FreshNoise,
    Function,
    Instance,
    Keyed,
    KnownArray,
    Noisy,
    NormedVector,
    Only,
    OpaqueValue,
    Order,
    Own,
    PairedNumber,
    PairedTruth,
    Record,
    Rest,
    Span,
    UnknownValue,
    Unlisted,
    Vector,
    form_of,
    has_inside,
    holds,
    is_known,
    is_number,
    is_plain,
    is_same,
    parts,
    words,
)
from dpaudit.verify.coupled.ways import OtherKind, RaisedAlike

ALONG = words("sum mean max min amax amin prod any all argmax argmin cumsum std var median argsort sort")  # an axis
THREE = words("arange linspace full where clip histogram bincount")  # arguments; of others the third may be out
OF_NUMPY = ALONG | words(
    """
    array asarray copy zeros ones full arange linspace zeros_like ones_like ravel
    abs absolute sign clip minimum maximum round around rint floor ceil trunc exp expm1 log log1p log2 log10 sqrt square
    power tanh isfinite isnan where count_nonzero histogram bincount
    dot linalg.norm float64 int64
    """
)
OF_MATH = words(
    """
    exp log sqrt floor ceil log1p expm1 log2 log10 tanh sin cos fsum isfinite isnan pow fabs trunc hypot erf erfc
    """
)
KNOWN: dict[str, tuple[Any, frozenset[str]]] = {"": (builtins, TOTAL), "numpy": (np, OF_NUMPY), "math": (math, OF_MATH)}
NUMBERS = words("int float round pow divmod")  # functions of one number alone
METHODS = words(  # of plain values
    """
    append extend remove index count copy items keys values get setdefault
    sum mean max min argmax argmin argsort cumsum clip round tolist astype ravel dot all any std var
    prod item nonzero lower upper strip split startswith endswith is_integer
    """
)
CHANGES = words("append extend setdefault remove")  # in place, and followed
IN_PLACE = CHANGES | words("insert pop popitem update reverse clear sort fill put itemset partition resize")
SAME_ARRAY = words("asarray ravel")  # of an array: itself, or a view of it
TYPES = {"int": int, "float": float, "bool": bool, "numpy.float64": np.float64, "numpy.int64": np.int64}
ANSWERS = "give a list of answers, or an adjacency of records"
PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "items": lambda key, value: (key, value),
    "keys": lambda key, value: key,
    "values": lambda key, value: value,
}


class CallRules(NumberRules):
    """Calls, attributes, and what gives containers."""

    def call(self, run: TreeExecutor, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a function by its name, or a method, makes of its arguments."""
        name, owner = function.name, function.owner
        if isinstance(owner, Function) and (owner.name, name) == ("dict", "fromkeys"):
            keys, value = (*args, None)[:2]
            return {self.run.key(key): value for key in run.known_items(keys)}
        if isinstance(owner, Rng):
            return self.draw(name, args, kwargs) if type(owner) is Rng else run.plain(owner.draw, name, args, kwargs)
        if name.startswith("numpy.random."):
            return self.of_numpys_generator(name.removeprefix("numpy.random."), args, kwargs)
        if owner is not None:
            return self.method(owner, name, args, kwargs)
        module, _, short = name.partition(".") if "." in name else ("", "", name)
        home, known = KNOWN.get(module, (None, frozenset()))
        if short not in known:
            raise run.refusal(f"a call of `{name}`", "write what it does by other means, or leave it out")
        if module == "numpy":
            args, kwargs = self.along(short, args, kwargs)
            if short in SAME_ARRAY and isinstance(args[0], KnownArray):
                return self.same_array(*args, **kwargs)
        numbers = module == "math" and short != "fsum" or short in NUMBERS or short in ("max", "min") and len(args) > 1
        if numbers and any(form_of(each) != "other" for each in args):  # an array of one entry may be one
            raise run.refusal(f"Python's `{short}` of an array", "use numpy's")
        own = any(isinstance(each, Function) and each.node is not None for each in (*args, *kwargs.values()))
        if own or not is_known(args) or not is_known(kwargs):
            return self.by_rule(short, args, kwargs)
        if any(isinstance(each, int) and abs(each) > 10**7 for each in args):
            raise run.refusal("a number this large", "give smaller parameters")
        return self.by_python(functools.reduce(getattr, short.split("."), home), args, kwargs)

    def along(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of numpy's functions, `axis` by its name; none of an array of one axis."""
        own = getattr(np, name, None)
        most = own.nin if isinstance(own, np.ufunc) else 3 if name in THREE else 2
        if any(isinstance(each, dict) for each in args):
            raise self.run.refusal("numpy's functions of a dictionary", "use a list of its values")
        if len(args) > most or {"out", "where", "initial", "copy"} & set(kwargs):
            raise self.run.refusal(f"these arguments of `{name}`", "write `a = np.f(a)`, and no out or where")
        if name in ALONG and len(args) == 2:
            args, kwargs = args[:1], {"axis": args[1], **kwargs}
        entries = parts(args[0]) if args and isinstance(args[0], list | tuple | KnownArray) else ()
        if any(isinstance(each, list | tuple | KnownArray) for each in entries):
            raise self.run.refusal("an array of several axes", "use one for each row")
        if entries and kwargs.get("axis", 1) in (0, -1, None):
            kwargs = {key: each for key, each in kwargs.items() if key != "axis"}
        return args, kwargs

    @staticmethod
    def same_array(array: KnownArray, dtype: Any = None, **more: Any) -> KnownArray:
        """The array, or a view of it: by its other name it is written to as well."""
        array.shared = True
        if dtype == Function("float") and not more:
            return KnownArray([np.float64(each) if is_number(each) else each for each in array.items], True, "f")
        return KnownArray(list(array.items), True, "O" if more or dtype is not None else None)

    def by_python(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call on plain values, by Python itself."""
        named = {name: self.unwrapped(each) for name, each in kwargs.items()}
        unwrapped = [*map(self.unwrapped, args)]
        if has_inside([*unwrapped, *named.values()], OpaqueValue | Instance):
            raise self.run.refusal("a function or an object as an argument", "call it, or give its values")
        found = self.run.plain(function, *unwrapped, **named)
        if isinstance(found, tuple) and has_inside(found, np.ndarray):
            return tuple(map(self.as_known, found))
        return self.as_known(found)

    def as_known(self, found: Any) -> Any:
        """What Python gave: arrays as `KnownArray`, iterators as lists."""
        if isinstance(found, np.ndarray):
            if found.ndim != 1:
                raise self.run.refusal("an array of several axes, or of none", "use one for each row")
            return KnownArray(list(found), found.base is not None)  # a view is written to by two names
        return self.run.plain(list, found) if isinstance(found, Iterator | MappingView) else found

    @staticmethod
    def unwrapped(value: Any) -> Any:
        """An array of plain numbers as numpy's; a type as itself."""
        if isinstance(value, Function) and value.node is None and value.owner is None:
            return TYPES.get(value.name, value)
        return np.array(value.items) if isinstance(value, KnownArray) else value

    def of_numpys_generator(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """numpy.random, as a generator that the mechanism makes or takes."""
        if name != "default_rng":
            return self.draw({"rand": "random", "randn": "standard_normal"}.get(name, name), args, kwargs)
        if args or kwargs:
            raise self.run.refusal("a generator with a seed of its own", "its noise is known: take rng as a parameter")
        return Rng()

    # --- attributes and methods -----------------------------------------------------------------------------------

    def attribute(self, owner: Any, name: str) -> Any:
        """owner.name of what is unknown."""
        if isinstance(owner, Record) and name not in ("get", "sum", "copy"):
            return self.part(owner, f".{name}")
        if name == "shape" and isinstance(owner, NormedVector):
            return (self.by_rule("len", [owner], {}),)
        if name in ("shape", "size") and isinstance(owner, Vector | KnownArray):
            length = self.by_rule("len", [owner], {})
            return (length,) if name == "shape" else length
        return Function(name, owner=owner)

    def method(self, owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """owner.name(...)"""
        if name in IN_PLACE:
            self.run.check_alone(owner)
            both = isinstance(owner, Unlisted) and owner.same and self.single is None
            if not both and (not isinstance(owner, list | dict) or name not in CHANGES):
                raise self.run.refusal(f"`{name}` of this, in place", "make a new one, by sorted(...) say")
        if isinstance(owner, KnownArray | Vector):
            (owner, *args), kwargs = self.along(name, [owner, *args], kwargs)
            if isinstance(owner, KnownArray) and name in SAME_ARRAY:
                return self.same_array(owner, *args, **kwargs)
        if name not in METHODS:
            raise self.run.refusal(f"a call of the method `{name}`", "write what it does")
        if isinstance(owner, list | dict):
            return self.of_container(owner, name, args, kwargs)
        if is_known([owner, args, kwargs]) and name not in ("copy", "astype"):
            return self.by_python(self.run.plain(getattr, self.unwrapped(owner), name), args, kwargs)
        if isinstance(owner, Keyed) and name in PARTS:
            vector, keys = owner.vector, self.places(owner.vector.axis)
            return {"keys": keys, "values": vector}.get(name) or self.each(keys, PARTS[name], vector)
        if isinstance(owner, Record) and name == "get" and args and is_plain(args):
            return self.part(owner, args[0] if len(args) == 1 else (args[0], repr(args[1:])))  # or a default
        return self.by_rule(name, [owner, *args], kwargs)

    def of_container(self, owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Methods of lists and dictionaries, with whatever is in them."""
        several = any(isinstance(each, Rest | Own) for each in owner)  # more than are written out here
        if name == "copy" and isinstance(owner, dict):
            raise self.run.refusal("a copy of a dictionary", "use one dictionary")
        if name in ("get", "setdefault") and (several or args and not is_plain(args[0])):
            if isinstance(owner, list) or not args:
                return self.refused(name)
            if not is_plain(args[0]) or not self.run.plain(owner.__contains__, args[0]):
                return self.of_unknown_key(owner, name, *args)
        if isinstance(owner, list) and name == "remove" and not (is_plain(args) and is_plain(owner)):
            if not is_plain(owner) or self.single is not None or len(args) != 1 or not is_same(self.look(args)):
                return self.refused(name)
            place = self.run.choose(len(owner) + 1)  # the first that is equal to it is any of them, or none
            if place == len(owner):
                raise RaisedAlike("ValueError")
            del owner[place]
            return None
        if isinstance(owner, list) and name == "extend" and len(args) == 1:
            return owner.extend(self.run.known_items(args[0]))
        if name in ("index", "count") and not (is_plain(owner) and is_plain(args)):
            return self.by_rule(name, [owner, *args], kwargs)
        if name in PARTS and several:
            return self.of_keys(owner, PARTS[name])
        found = self.run.plain(self.run.plain(getattr, owner, name), *args, **kwargs)
        return self.run.plain(list, found) if isinstance(found, MappingView) else found

    def of_unknown_key(self, owner: dict[Any, Any], name: str, index: Any, default: Any = None) -> Any:
        """owner.get(index, default), or setdefault, where it is not known which key that is."""
        self.check_keys(owner, index, "store" if name == "setdefault" else "")
        key = self.key(owner, index)
        if is_plain(key) and not is_plain(index):
            return owner.get(key, default) if name == "get" else owner.setdefault(key, default)
        usual = any(isinstance(each, Record) for each in (index, *parts(index)))  # of a record that both runs have
        users = isinstance(index, Record) and index.path in USER  # no other row has the user of one run alone
        own = any(isinstance(each, Own) and not (users and each is ME) for each in owner)  # it may be asked for
        others = [owner[each] for each in self.others(owner)] if usual else list(owner.values())
        if own or not is_same([index, *others, default]) or holds(others):
            return self.refused(name)
        if isinstance(default, list | dict | KnownArray) and self.run.names_of(default):
            raise self.run.refusal("a default that has a name", "write it where it stands")
        if name == "setdefault":
            made = Unlisted()
            self.store(owner, index, made)
            return made
        return functools.reduce(self.join, [default, *others])

    def of_keys(self, owner: dict[Any, Any], part: Callable[[Any, Any], Any]) -> Vector:
        """The keys of a dictionary that are the data's, and what they lead to; in the data's order (`ordered` not)."""
        usual, changed, extras = MISSING, [], []
        for key, value in owner.items():
            if isinstance(value, Only):
                extras.append((value.second, part(key, value.value)))
            elif is_same(value) or key is ANY:
                usual = part(key, value) if usual is MISSING else self.join(usual, part(key, value))
            else:
                changed.append(part(key, value))
        if usual is MISSING:
            usual = part(ANY, changed[0] if changed else PairedNumber())
        axis = EntryAxis(len(changed), tuple(second for second, _ in extras), keys=True)
        more = tuple(each for _, each in extras)
        return Vector(usual=usual, changed=tuple(changed), extras=more, axis=axis, ordered=not changed)

    # --- rules: sizes and places ----------------------------------------------------------------------------------

    def _len_of(self, value: Any) -> Any:
        value = value.vector if isinstance(value, Keyed) else value
        match value:
            case Vector(extras=()):
                return self.counted(value.axis, 1, PairedNumber(True, Span(Fraction(1), Fraction(1)), whole=True))
            case Vector():
                change = Fraction(sum(1 if second else -1 for second in value.axis.extras))
                return PairedNumber(False, AT_LEAST_0, Span(change, change), True, axis=value.axis)
            case NormedVector():
                return PairedNumber(True, AT_LEAST_0, whole=True, axis=value.axis)
            case PairedNumber():
                raise OtherKind(self.run.line, "the length of one number", ANSWERS)
            case dict() if any(isinstance(each, Rest | Own) for each in value):
                change = Fraction(sum(1 if each.second else -1 for each in value.values() if isinstance(each, Only)))
                return PairedNumber(True, AT_LEAST_0, Span(change, change), True)
            case KnownArray() | list() | dict() | tuple():
                if not any(isinstance(each, Rest) for each in parts(value)):
                    return len(value.items if isinstance(value, KnownArray) else value)
        return NotImplemented

    def _range_of(self, length: Any) -> Any:
        axis = length.axis if isinstance(length, PairedNumber) else None
        return NotImplemented if axis is None else self.places(axis)

    def beside_each(self, length: PairedNumber, make: Callable[[], Any]) -> Vector:
        """Something new for each entry that a length counts."""

        def own(_: Any) -> Any:
            noise = make()
            self.own.add(id(noise))
            return noise

        return self.each(self._range_of(length), own, array=True)

    def _enumerate_of(self, value: Any, start: Any = 0) -> Any:
        found = self.run.items(value)
        if isinstance(found, list):
            return [(start + place, each) for place, each in enumerate(found)]
        if not isinstance(found, Vector):
            return NotImplemented
        indices = self.places(found.axis)
        if start != 0:
            indices = self.each(indices, lambda index: PairedNumber(index.same, AT_LEAST_0, index.moved, True))
        return self.each(indices, PARTS["items"], found)

    def _zip_of(self, *values: Any) -> Any:
        found = [self.run.items(value) for value in values]
        vectors = [each for each in found if isinstance(each, Vector)]
        if not vectors:
            return list(zip(*found, strict=False)) if all(isinstance(each, list) for each in found) else NotImplemented
        first, in_step = vectors[0], len(vectors) == len(found)
        if first.extras and not in_step:
            return NotImplemented
        columns = [each if isinstance(each, Vector) else self.alongside(each, first) for each in found]
        axis = first.axis if in_step else EntryAxis(len(first.changed))
        return self.each(columns[0], lambda *row: row, *columns[1:], array=False, axis=axis)

    def alongside(self, values: Any, vector: Vector) -> Vector:
        """A public list beside the entries of a dataset."""
        if not is_same(values):
            raise self.run.refusal("data beside data", "take both from one dataset")
        value = functools.reduce(self.join, values) if isinstance(values, list) and values else UnknownValue()
        return self.each(vector, lambda _: value)

    # --- rules: containers ----------------------------------------------------------------------------------------

    def _list_of(self, value: Any = ()) -> Any:
        found = self.run.items(value)
        return replace(found, array=False) if isinstance(found, Vector) else found

    def _tuple_of(self, value: Any = ()) -> Any:
        found = self._list_of(value)
        return tuple(found) if isinstance(found, list) else found

    def _dict_of(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.of_container(value, "copy", [], {})
        found = self.run.items(value)
        if isinstance(found, list) and all(isinstance(each, tuple) and len(each) == 2 for each in found):
            return {self.run.key(key): each for key, each in found}
        return NotImplemented

    def _sorted_of(self, value: Any, key: Any = None, reverse: bool = False) -> Any:
        if not isinstance(reverse, bool):
            return NotImplemented
        if isinstance(value, dict) and key is None:
            value = self.of_container(value, "keys", [], {})
        if isinstance(value, Vector) and key is None and value.axis.keys:
            return replace(value, ordered=True)
        entries = self.run.items(value)
        found = self.keyed(entries, key) if key is not None or isinstance(entries, Vector) else None
        if found is None:
            return NotImplemented
        if isinstance(entries, list) and is_plain(found):
            order = self.run.plain(sorted, range(len(found)), key=found.__getitem__, reverse=reverse)
            return [entries[place] for place in order]
        if holds(entries):
            raise self.run.refusal("an order of containers", "sort numbers, or their places")
        public = is_same(entries) or isinstance(entries, Vector) and isinstance(entries.usual, EntryIndex)
        return Order(found, reverse) if public else NotImplemented

    def _array_of(self, value: Any, dtype: Any = None) -> Any:
        kind = TYPES.get(dtype.name) if isinstance(dtype, Function) else None
        if kind in (int, np.int64):
            return self._int_of(self._array_of(value))
        if dtype is not None and kind not in (float, np.float64):
            return NotImplemented
        one = isinstance(value, Record | KnownArray | NormedVector | PairedNumber | FreshNoise | Noisy)
        found = value if one else self.run.items(value)
        match found:
            case Vector():
                return replace(found, array=True)
            case PairedNumber():
                raise OtherKind(self.run.line, "an array of one number", ANSWERS)
            case KnownArray():
                return KnownArray(list(found.items), kind=None if found.kind == "L" else found.kind)
            case list():
                return self.as_array(found)
        return found

    def counts(self, places: Vector, within: list[Callable[[Any], Any]]) -> KnownArray:
        """How many entries are in each bin."""
        return KnownArray([self._sum_of(self.each(places, each)) for each in within])

    def _bincount_of(self, value: Any, minlength: Any = 0) -> Any:
        places = self.as_array(value)
        if not isinstance(places, Vector) or not isinstance(minlength, int):
            return NotImplemented

        def placed(one: Any) -> Any:
            number = self.number(one)
            if number is None or not number.whole or number.span.low < 0 or number.span.high > minlength - 1:
                raise self.run.refusal("np.bincount of what may be outside", "clip whole numbers to 0 .. minlength - 1")
            return self.one_of(number, minlength) if self.single is not None else number

        equal: Callable[..., Any] = functools.partial(self.run.compared, ast.Eq())
        return self.counts(self.each(places, placed), [functools.partial(equal, bin) for bin in range(minlength)])

    def _histogram_of(self, value: Any, bins: Any = 10) -> Any:
        found, edges = self.as_array(value), self.as_array(bins)
        if not isinstance(found, Vector) or not isinstance(edges, KnownArray) or not is_plain(edges.items):
            raise self.run.refusal("a histogram whose edges are the data's", "give public edges in bins")

        def within(low: Any, high: Any, one: Any) -> Any:
            above = self.run.compared(ast.GtE(), one, low)
            last = high is edges.items[-1]  # the last bin has its upper edge
            below = self.run.compared(ast.LtE() if last else ast.Lt(), one, high)
            if not isinstance(above, PairedTruth) or below is False:
                return above and below
            return PairedTruth(above.same and is_same(below))

        ends = zip(edges.items, edges.items[1:], strict=False)
        return self.counts(found, [functools.partial(within, *each) for each in ends]), edges
