"""What the code of a mechanism reaches that replay cannot see through: clocks, files, other libraries."""

import builtins
import inspect
import types
from builtins import type  # the real one: see faces
from collections.abc import Iterator
from typing import Any

_SEEN = """
    builtins math cmath random itertools functools collections operator fractions decimal statistics bisect heapq typing
    enum dataclasses copy numbers string abc numpy dpaudit
"""
SEEN = frozenset(_SEEN.split())  # libraries that only compute, or whose generators replay compares
TELLING = frozenset(("open", "input", "exec", "eval", "__import__", "id", "hash", "globals", "locals", "vars", "dir"))


def outside(function: Any) -> set[str]:
    """The names that a function reaches, through what it calls too, of which nobody says that they only compute.

    >>> import time
    >>> outside(lambda data, rng: data + time.time()), outside(lambda data, rng: len(data) + rng.random())
    ({'time'}, set())
    """
    found, known = set[str](), set[int]()
    waiting = [("", function)]
    while waiting:
        name, value = waiting.pop()
        if id(value) in known:
            continue
        known.add(id(value))
        own = getattr(value, "__self__", None)
        if isinstance(value, types.FunctionType | types.MethodType):
            waiting += [*_named(getattr(value, "__func__", value)), *([] if own is None else [("self", own)])]
        elif own is not None and not isinstance(own, types.ModuleType):
            waiting.append((name, own))  # what a method written in C is of
        elif isinstance(value, dict | list | tuple | set):
            waiting += [(name, each) for each in (value.values() if isinstance(value, dict) else value)]
        elif _home(value if callable(value) or isinstance(value, types.ModuleType) else _kind(value)) in SEEN:
            found |= {name} & TELLING
        elif isinstance(value, types.ModuleType) or not any(map(inspect.isfunction, vars(_kind(value)).values())):
            found.add(name)
        else:
            waiting += [*_functions(_kind(value)), *getattr(value, "__dict__", {}).items()]
    return found


def _kind(value: Any) -> type:
    return value if isinstance(value, type) else type(value)


def _home(value: Any) -> str:
    """The library of a module, of a function written in C, or of the class of an object."""
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    return str(module).partition(".")[0]


def _functions(kind: type) -> Iterator[tuple[str, Any]]:
    return ((name, each) for name, each in vars(kind).items() if inspect.isfunction(each))


def _named(function: Any) -> Iterator[tuple[str, Any]]:
    """What the names of a function stand for: of its module, of Python, of its closure, its defaults."""
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names |= {*code.co_names, *code.co_freevars}
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    scope = {**vars(builtins), **function.__globals__, **inspect.getclosurevars(function).nonlocals}
    yield from ((name, scope[name]) for name in names if name in scope)
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from (("a default", each) for each in given)
