"""Digests of values by their contents: equal digests mean equal values, in every process (sets are sorted, no hash
is used); and modules by their files: whose they are, where they lie, what they import, and versions of libraries.

`digest_of` is for questions of plain values, `Contents` for any: no code of a user runs, attributes are read where they
are stored, and only objects of libraries are asked what would rebuild them. Functions, classes and modules go by their
names; subclasses decide what of them counts.
"""

import ast
import contextvars
import copyreg
import dataclasses
import enum
import gc
import hashlib
import os
import sys
import sysconfig
import threading
import time
import types
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path, PurePath
from random import Random, SystemRandom
from typing import Any

import numpy as np

from dpaudit.base.values import spelled, type_name
from dpaudit.version import __version__

PACKAGE = Path(__file__).parents[1]
STANDARD = tuple(os.path.join(sysconfig.get_path(each), "") for each in ("stdlib", "platstdlib"))
INSTALLED = {"site-packages", "dist-packages"}
LARGEST = 1 << 30  # bytes up to which a file is read


@cache
def is_library(name: str, file: str | None) -> bool:
    """Whether a module is Python's own, ours, or an installed one; a script, a notebook and a string are none."""
    if name == "__main__":
        return False
    if file is None:
        return name.partition(".")[0] in {*sys.stdlib_module_names, *sys.builtin_module_names, "dpaudit"}
    path = os.path.abspath(file)
    return path.startswith((*STANDARD, os.path.join(PACKAGE, ""))) or not INSTALLED.isdisjoint(Path(path).parts)


def located(name: str, folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and file of a module that is not loaded, the packages around it first; nothing where it is not found."""
    parts = name.split(".")
    path: Any = [*sys.path, *folders]
    for count in range(1, len(parts) + 1):
        full = ".".join(parts[:count])
        try:
            spec = PathFinder.find_spec(parts[count - 1], path) if all(parts[:count]) else None
        except (ImportError, OSError, ValueError):
            return
        if spec is None:
            return
        if spec.origin is not None and os.path.isfile(spec.origin):
            yield full, spec.origin
        if spec.submodule_search_locations is None:
            return
        path = list(spec.submodule_search_locations)


def parsed(file: str) -> Iterator[ast.AST]:
    """The syntax nodes of a source file; none of a file that is not Python."""
    try:
        tree = ast.parse(Path(file).read_bytes()) if file.endswith(".py") else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, RecursionError):
        return iter(())
    return ast.walk(tree)


@cache
def release(library: str) -> str:
    """The version of a library by its import name; the digest of its first file where it has none."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        named = metadata.packages_distributions().get(library, [])
    versions = ", ".join(f"{each} {metadata.version(each)}" for each in sorted(set(named)))
    module = sys.modules.get(library)
    return versions or f"#{digest_of_file(getattr(module, '__file__', None) or '')}"


@cache
def own_digest() -> str:
    """Our version, with a digest of all our source files."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{file.relative_to(PACKAGE)}:{file.stat().st_size}:".encode())
        digest.update(file.read_bytes())
    return f"{__version__} ({digest.hexdigest()[:16]})"


def digest_of_file(file: str) -> str:
    """The digest of a file as it is now, of a very large one by size and time; empty where it cannot be read."""
    try:
        if (status := os.stat(file)).st_size > LARGEST:
            return hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:16]
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    except OSError:
        return ""


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
    return hashlib.sha256(spelled(values, _of_plain, ordered=False)).hexdigest()[:32]


def hashed(kind: str, parts: Iterable[Any]) -> bytes:
    """The digest of a kind and of texts and bytes, each with its length."""
    digest = hashlib.sha256(kind.encode("utf-8", "surrogatepass"))
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(b"|" + len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()


def is_module(value: Any) -> bool:
    """Whether a value is a module, without running its code."""
    return types.ModuleType in bases_of(type(value))


def home_of(kind: type) -> str:
    """The module of a class; `builtins` where its `__module__` is a descriptor for its objects."""
    name = _module_of(kind)
    return name if type(name) is str else "builtins"


def is_class(value: Any) -> bool:
    """Whether a value is a class, without running its code."""
    return type in bases_of(type(value))


class Contents(ABC):
    """Digests of values; `texts` are the strings in them."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.strict = True  # a value without a digest leaves all that refer to it without one
        self.ours = ""  # a package whose modules do not count as a library's
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
        """Whether a value is a function or a class of a user; one made at run time names `types` as its module."""
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
        """The digest of a value by its contents; `seen` holds, by id, finished digests and the values in progress."""
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
            digest = hashed(name_of(kind), self._parts_of(value, kind, seen))
        except Opaque:
            if self.strict:
                raise
            digest = hashed("opaque", self._each(_inside(value), seen))
        seen[id(value)] = digest, value
        return digest

    def _plain(self, kind: type, value: Any) -> bytes:
        if kind is str:
            self.texts.add(value)
            return hashed("str", [value])
        content = value if kind is bytes else hex(value).encode() if kind is int else repr(value).encode()
        return hashed(kind.__name__, [content])

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
        attributes, slots = _attributes(value)
        pointers = slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
        # it holds more than attributes and slots, as `object.__reduce_ex__` reckons it
        if base is None and (kind.__itemsize__ or kind.__basicsize__ > object.__basicsize__ + 8 * pointers):
            raise Opaque(f"a {name_of(kind)}")
        own = hashed("own", [] if base is None else self._builtin(value, base, seen))
        return [self.referred(kind), own, *self._each(attributes, seen)]

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
            recipe = rebuilt(value, 4) if known is None else known(value)
        except Exception:
            raise Opaque(f"a {home_of(kind)}.{name_of(kind)}") from None
        if isinstance(recipe, str) and recipe.endswith(" (vectorized)"):  # a ufunc of a user's function
            raise Opaque(f"numpy's {recipe}")
        if isinstance(recipe, str):  # its own name; what it wraps may be a user's
            return [*name, recipe, *self._each(_attributes(value)[0], seen)]
        *parts, items, pairs = [*recipe, None, None, None, None][:5]
        return [*name, *self._each([*parts, list(items or ()), list(pairs or ())], seen)]


def _inside(value: Any) -> list[Any]:
    """What a value that cannot be rebuilt refers to, by the garbage collector; nothing for a random generator."""
    bases = bases_of(type(value))
    if threading.local in bases:
        return [vars(value)]  # of this thread
    if contextvars.ContextVar in bases:
        return [value.get(None)]
    drawing = any(each in bases for each in STATES)
    return [] if drawing else [inner for inner in gc.get_referents(value) if not callable(inner)]


def stands_in(value: Any, kind: Any) -> str:
    """The name of this very object in the module of its kind; empty where it has none."""
    module = sys.modules.get(kind.__module__ if type(kind) is types.FunctionType else home_of(kind))
    return next((name for name, each in list(vars(module or types).items()) if each is value), "")


def _attributes(value: Any) -> tuple[list[tuple[str, Any]], int]:
    """The attributes that an object stores, by name, and how many slots it has, without running its code."""
    attributes: list[tuple[str, Any]] = []
    slots = 0
    for each in bases_of(type(value)):
        for name, member in fields_of(each).items():
            if type(member) is types.MemberDescriptorType:
                slots += 1
                with suppress(AttributeError):
                    attributes.append((name, member.__get__(value)))
            elif name == "__dict__" and type(member) is types.GetSetDescriptorType and each is not type:
                attributes += [(str(key), each) for key, each in member.__get__(value).items()]
    return sorted(attributes, key=lambda item: item[0]), slots


def _of_plain(value: Any) -> dict[str, Any]:
    """What an enum, a mapping or a dataclass holds, as `digest_of` reads it."""
    if isinstance(value, enum.Enum):
        return {"name": value.name}
    if isinstance(value, Mapping):
        return {"items": dict(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.compare}
    raise TypeError(f"a {type_name(type(value))} has no digest that every process would find")
