"""What a mechanism sees of a stand-in: an object that answers every question as the generator itself would.

It is an instance of a true subclass of numpy's Generator, or of random.Random, with the same attributes and no other.
Draws go to the stand-in behind it; whatever would tell the two apart, or copy it, is refused.
"""

import builtins
import random
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpaudit.verify.replay.source import Kind, StandIn, refusal
from dpaudit.verify.replay.uniform import Uniform

HAVING = {"replay": ("bit", "bernoulli", "finite"), "random": dir(random.Random)}  # draws that numpy's has not
REAL: dict[str, type] = {"numpy": np.random.Generator, "random": random.Random}
TOLD = "__repr__ __str__ __format__ __sizeof__ __getstate__ __setstate__ __reduce__ __reduce_ex__ __copy__ __deepcopy__"
BITS = np.random.SFC64(0)  # behind every face; it moves where a draw goes past the stand-in
BY_NAME: dict[str, Callable[[Any], Any]] = {"choice": lambda source: lambda seq: source.sample(seq, 1)[0]}  # of random


def face(source: StandIn, kind: Kind) -> Any:
    """What a mechanism is given as its rng."""
    if kind == "replay":
        return source
    made: Any = FACES[kind].__new__(FACES[kind], 0) if kind == "random" else FACES[kind](BITS)
    BEHIND[kind].__set__(made, source)
    return made


def _class_of(kind: Kind) -> tuple[type, Any]:
    """The class of the faces of a kind, and the descriptor of the stand-in behind one, which is no attribute of it."""
    real = REAL[kind]

    def draw(name: str) -> Any:
        known = BY_NAME.get(name) if kind == "random" else None

        def method(seen: Any, *arguments: Any, **options: Any) -> Any:
            source = behind.__get__(seen)
            return (known(source) if known else getattr(source, name))(*arguments, **options)

        own = getattr(real, name)
        method.__name__, method.__qualname__, method.__doc__ = name, own.__qualname__, own.__doc__
        return method

    def told(name: str) -> Any:
        def method(seen: Any, *arguments: Any, **options: Any) -> Any:
            raise behind.__get__(seen).refuse(refusal(name))

        return method if name.startswith("__") else property(method)

    def lacking(seen: Any, name: str) -> Any:
        cure = next((each for each in HAVING if name in HAVING[each]), None)
        also = f'; replay it with generator="{cure}"' if cure else ""
        raise AttributeError(f"'{real.__module__}.{real.__name__}' object has no attribute {name!r}{also}")

    members: dict[str, Any] = {"__module__": real.__module__, "__doc__": real.__doc__, "__slots__": ("_source",)}
    for name in dir(real):
        if not name.startswith("__") or name in TOLD.split():
            members[name] = draw(name) if name[0] != "_" and callable(getattr(real, name)) else told(name)
    members |= {name: told(name) for name in TOLD.split()}
    if kind == "numpy":
        members["__module__"] = property()  # an instance of a type written in C says of none
    members |= {"__class__": property(lambda seen: real), "__dir__": lambda seen: dir(real), "__getattr__": lacking}
    made: Any = type(real.__name__, (real,), members)
    behind = made.__dict__["_source"]
    del made._source, made.__slots__
    return made, behind


FACES, BEHIND = {}, {}
for _kind in ("numpy", "random"):
    FACES[_kind], BEHIND[_kind] = _class_of(_kind)


SEEMS: dict[type, type] = {Uniform: float} | {FACES[kind]: REAL[kind] for kind in FACES}


class _Asked(type):
    """Answers `type(x)` in place of Python's own."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is not Type:
            return TYPE.__call__(cls, *arguments, **options)
        found = TYPE(*arguments, **options)
        if len(arguments) == 1:
            if issubclass(found, StandIn):
                raise arguments[0].refuse(refusal("__class__"))
            if found in (TYPE, _Asked):
                return Type
        return SEEMS.get(found, found)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, TYPE) if cls is Type else TYPE.__instancecheck__(cls, value)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, TYPE) if cls is Type else TYPE.__subclasscheck__(cls, kind)

    def __eq__(cls, other: object) -> bool:
        return other is cls or cls is Type and other is TYPE

    def __hash__(cls) -> int:
        return hash(TYPE) if cls is Type else TYPE.__hash__(cls)


TYPE = type


class Type(type, metaclass=_Asked):
    """Python's `type`, but for faces: of these it tells what they stand for."""

    __module__, __qualname__ = TYPE.__module__, TYPE.__qualname__
    __class_getitem__: Any = classmethod(types.GenericAlias)


Type.__name__ = TYPE.__name__


@contextmanager
def types_as_they_seem() -> Iterator[None]:
    """While mechanisms run, `type(rng)` is the generator's own: no class can say that of its instances."""
    before, builtins.type = builtins.type, Type  # type: ignore[misc]
    try:
        yield
    finally:
        builtins.type = before  # type: ignore[misc]
