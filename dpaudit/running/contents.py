"""Values by their contents: equal digests mean equal values, in every process: sets sorted, no hash used.

`digest_of` is for questions of plain values, `Contents` for any: no code of a user runs, attributes are read where they
are stored, and only objects of libraries are asked what would rebuild them. Functions, classes and modules go by their
names; what they hold is for whoever asks.
"""

import contextvars
import copyreg
import dataclasses
import enum
import gc
import hashlib
import struct
import sys
import threading
import time
import types
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import PurePath
from random import Random, SystemRandom
from typing import Any

import numpy as np

from dpaudit.running.modules import is_library

LIMIT_S = 20.0  # for all values together
BUILTIN = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, np.ndarray)
STATES = (Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
EMPTY = {"_thread.lock", "_thread.RLock", "builtins.ellipsis", "builtins.NotImplementedType", "builtins.object"}
WRAPPERS: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    types.MethodType: ("__func__", "__self__"),
}
DESCRIPTORS = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
REBUILDING = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")

fields_of, bases_of, name_of, _module_of = (
    type.__dict__[name].__get__ for name in ("__dict__", "__mro__", "__qualname__", "__module__")
)  # of a class, past what a metaclass may say
globals_of = vars(types.ModuleType)["__dict__"].__get__


class Opaque(Exception):
    """A value that cannot be shown to be the same."""


def digest_of(*values: Any) -> str:
    """32 hex digits of plain values, arrays and dataclasses of them; raises `TypeError` for anything else.

    Fields that do not take part in comparison are left out: they follow from the others.

    >>> digest_of({"a": 1, "b": frozenset("xy")}) == digest_of({"b": frozenset("yx"), "a": 1})
    True
    >>> digest_of(1) == digest_of(True) or digest_of(1) == digest_of(1.0)
    False
    """
    return hashlib.sha256(_spelled(values)).hexdigest()[:32]


def hashed(kind: str, parts: Iterable[Any]) -> bytes:
    """The digest of some texts and bytes of a kind, each with its length."""
    found = hashlib.sha256(kind.encode("utf-8", "surrogatepass"))
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        found.update(b"|" + len(content).to_bytes(8, "little"))
        found.update(content)
    return found.digest()


def is_module(value: Any) -> bool:
    """Whether it is a module, without asking it."""
    return types.ModuleType in bases_of(type(value))


def home_of(kind: type) -> str:
    """The module of a class; that of Python where the class describes those of its objects."""
    found = _module_of(kind)
    return found if type(found) is str else "builtins"


def is_class(value: Any) -> bool:
    """Whether it is a class, without asking it."""
    return type in bases_of(type(value))


class Contents(ABC):
    """Digests of values; `texts` are those that were met."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.strict = True  # a value that cannot be looked at hides all that holds it
        self.ours = ""  # a package whose modules are no library's
        self.until = time.monotonic() + LIMIT_S

    @abstractmethod
    def referred(self, value: Any) -> bytes:
        """The digest of a reference to a function, a class or a module."""

    @abstractmethod
    def code(self, code: types.CodeType, seen: dict[int, Any]) -> list[Any]:
        """The parts of a code object."""

    def library(self, name: str, file: Any) -> bool:
        """Whether a module is a library's, which counts by its version."""
        return is_library(name, file if isinstance(file, str) else None) and name.partition(".")[0] != self.ours

    def users(self, value: Any) -> bool:
        """Whether it is a function or a class of a user; one that is made at run time says that it is of `types`."""
        if type(value) is types.FunctionType:
            return not self.library(str(value.__globals__.get("__name__")), value.__globals__.get("__file__"))
        if not is_class(value):
            return False
        module, home, top = sys.modules.get(home_of(value)), home_of(value), name_of(value).partition(".")[0]
        dynamic = "__dict__" in fields_of(value) and home in sys.stdlib_module_names and home != "builtins"
        return (dynamic and top not in vars(module or types)) or not self.library(
            home, getattr(module, "__file__", None)
        )

    def node(self, value: Any, seen: dict[int, Any]) -> bytes:
        """The digest of a value by its contents; `seen` holds what is known already, and where it is under way."""
        kind = type(value)
        if time.monotonic() > self.until:
            raise Opaque(f"there is more than can be looked at in {LIMIT_S:g} s")
        if value is None or kind in (bool, int, float, complex, str, bytes):
            return self._plain(kind, value)
        if kind is types.FunctionType or is_class(value) or is_module(value):
            return self.referred(value)
        if id(value) in seen:
            known = seen[id(value)][0]
            return known if isinstance(known, bytes) else hashed("around", [str(known).encode()])
        seen[id(value)] = len(seen), value
        try:
            found = hashed(name_of(kind), self._parts_of(value, kind, seen))
        except Opaque:
            if self.strict:
                raise
            found = hashed("opaque", self._each(_inside(value), seen))
        seen[id(value)] = found, value
        return found

    def _plain(self, kind: type, value: Any) -> bytes:
        if kind is str:
            self.texts.add(value)
            return hashed("str", [value])
        told = value if kind is bytes else hex(value).encode() if kind is int else repr(value).encode()
        return hashed(kind.__name__, [told])

    def _each(self, values: Iterable[Any], seen: dict[int, Any]) -> list[bytes]:
        return [self.node(each, seen) for each in values]

    def _parts_of(self, value: Any, kind: type, seen: dict[int, Any]) -> list[Any]:
        if kind is types.CodeType:
            return self.code(value, seen)
        if kind is types.CellType:
            with suppress(ValueError):  # it is empty
                return [self.node(value.cell_contents, seen)]
            return []
        if kind in WRAPPERS:
            return self._each([getattr(value, name) for name in WRAPPERS[kind]], seen)
        if kind in DESCRIPTORS:
            return [value.__qualname__]
        if kind in (types.BuiltinFunctionType, types.MethodWrapperType):
            owner = None if is_module(value.__self__) else value.__self__
            return [f"{getattr(value, '__module__', '')}.{value.__qualname__}", self.node(owner, seen)]
        if kind is types.MappingProxyType:
            return self._builtin(dict(value), dict, seen)
        if f"{home_of(kind)}.{name_of(kind)}" in EMPTY:
            return []
        if any(each in bases_of(kind) for each in STATES) and kind is not SystemRandom and not stands_in(value, kind):
            raise Opaque("a random generator with a state of its own")
        if kind in BUILTIN:
            return self._builtin(value, kind, seen)
        if not self.users(kind):
            return self._of_library(value, kind, seen)
        base = next((each for each in BUILTIN if each in bases_of(kind)), None)
        held, slots = _attributes(value)
        pointers = slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
        # it holds more than attributes and slots, as `object.__reduce_ex__` reckons it
        if base is None and (kind.__itemsize__ or kind.__basicsize__ > object.__basicsize__ + 8 * pointers):
            raise Opaque(f"a {name_of(kind)}")
        own = hashed("own", [] if base is None else self._builtin(value, base, seen))
        return [self.referred(kind), own, *self._each(held, seen)]

    def _builtin(self, value: Any, kind: Any, seen: dict[int, Any]) -> list[Any]:
        if kind is dict:
            return [self.node(each, seen) for item in dict.items(value) for each in item]
        if kind in (list, tuple):
            return self._each(kind.__iter__(value), seen)
        if kind in (set, frozenset):
            return sorted(self._each(kind.__iter__(value), seen))
        if kind is bytearray:
            return [bytes(value)]
        if kind is not np.ndarray:
            return [self._plain(kind, kind.__getnewargs__(value)[0] if kind is not complex else complex.__pos__(value))]
        plain = np.ndarray.view(value, np.ndarray)
        shape = [repr(plain.dtype).encode(), repr(plain.shape).encode()]
        if plain.dtype.hasobject:
            return [*shape, self.node(plain.tolist(), seen)]
        return [*shape, np.ascontiguousarray(plain).reshape(-1).view(np.uint8).data]

    def _of_library(self, value: Any, kind: type, seen: dict[int, Any]) -> list[Any]:
        """An object of a library: where it is the library's own, its name; else what would rebuild it."""
        name = [self.referred(kind)]
        if own := stands_in(value, kind):
            return [*name, own]
        if PurePath in bases_of(kind):
            self.texts.add(str(value))
        known = copyreg.dispatch_table.get(kind)
        try:
            if kind in weakref.ProxyTypes or any(
                self.users(each) for each in (known, *(getattr(kind, way, None) for way in REBUILDING))
            ):
                raise Opaque
            if home_of(kind).partition(".")[0] == "torch" and hasattr(kind, "numpy"):
                return [*name, self.node(value.detach().cpu().numpy(), seen)]
            rebuilt: Any = kind.__reduce_ex__  # of the class: an object may hold one of its own
            made = rebuilt(value, 4) if known is None else known(value)
        except Exception:
            raise Opaque(f"a {home_of(kind)}.{name_of(kind)}") from None
        if isinstance(made, str) and made.endswith(" (vectorized)"):  # a ufunc of somebody's function
            raise Opaque(f"numpy's {made}")
        if isinstance(made, str):  # its own name; what it wraps may be a user's
            return [*name, made, *self._each(_attributes(value)[0], seen)]
        *parts, items, pairs = [*made, None, None, None, None][:5]
        return [*name, *self._each([*parts, list(items or ()), list(pairs or ())], seen)]


def _inside(value: Any) -> list[Any]:
    """What a value holds that cannot be rebuilt, as the collector sees it; of a generator of numbers nothing."""
    bases = bases_of(type(value))
    if threading.local in bases:
        return [vars(value)]  # of this thread
    if contextvars.ContextVar in bases:
        return [value.get(None)]
    drawing = any(each in bases for each in STATES)
    return [] if drawing else [held for held in gc.get_referents(value) if not callable(held)]


def stands_in(value: Any, kind: Any) -> str:
    """The name under which the module of its kind has this very object; empty where it has not."""
    module = sys.modules.get(kind.__module__ if type(kind) is types.FunctionType else home_of(kind))
    return next((name for name, each in list(vars(module or types).items()) if each is value), "")


def _attributes(value: Any) -> tuple[list[tuple[str, Any]], int]:
    """What an object stores by name, and how many slots it has, without asking it."""
    found: list[tuple[str, Any]] = []
    slots = 0
    for each in bases_of(type(value)):
        for name, member in fields_of(each).items():
            if type(member) is types.MemberDescriptorType:
                slots += 1
                with suppress(AttributeError):
                    found.append((name, member.__get__(value)))
            elif name == "__dict__" and type(member) is types.GetSetDescriptorType and each is not type:
                found += [(str(key), held) for key, held in member.__get__(value).items()]
    return sorted(found, key=lambda item: item[0]), slots


def _spelled(value: Any) -> bytes:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if value is None or kind in (bool, int):
        return _joined(kind.__name__, [repr(value).encode()])
    if kind is float:
        return _joined("float", [struct.pack("<d", value)])
    if kind is str:
        return _joined("str", [value.encode("utf-8", "surrogatepass")])
    if kind is bytes:
        return _joined("bytes", [value])
    if isinstance(value, enum.Enum):
        return _joined("enum", [name.encode(), _spelled(value.name)])
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError("an array of objects has no digest that every process would find")
        return _joined("array", [array.dtype.str.encode(), repr(array.shape).encode(), array.tobytes()])
    if isinstance(value, tuple | list):
        return _joined("list" if isinstance(value, list) else "tuple", map(_spelled, value))
    if isinstance(value, set | frozenset):
        return _joined("set", sorted(map(_spelled, value)))
    if isinstance(value, Mapping):
        return _joined("map", sorted(_joined("", [_spelled(key), _spelled(held)]) for key, held in value.items()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value) if field.compare]
        return _joined("dataclass", [name.encode(), *map(_spelled, held)])
    raise TypeError(f"a {name} has no digest that every process would find")


def _joined(kind: str, parts: Iterable[bytes]) -> bytes:
    """The parts with their lengths, so that no two lists of parts are spelled alike."""
    made = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return kind.encode() + b"(" + made + b")"
