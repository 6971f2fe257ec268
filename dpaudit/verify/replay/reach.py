"""What the code of a mechanism reaches that replay cannot see through: clocks, files, other libraries."""

import builtins
import inspect
import types
from builtins import type  # the real one: see faces
from typing import Any

_SEEN = """
    builtins math cmath random itertools functools collections operator fractions decimal statistics bisect heapq typing
    enum dataclasses copy numbers string abc numpy dpaudit
"""
SEEN = frozenset(_SEEN.split())  # libraries that only compute, or whose generators replay compares
TELLING = frozenset(("open", "input", "exec", "eval", "__import__", "id", "hash", "globals", "locals", "vars", "dir"))
CONTAINERS = (dict, list, tuple, set)


def outside(function: Any) -> set[str]:
    """The names that a function reaches, through what it calls too, of which nobody says that they only compute.

    >>> import time
    >>> outside(lambda data, rng: data + time.time()), outside(lambda data, rng: len(data) + rng.random())
    ({'time'}, set())
    """
    found, known = set[str](), set[int]()
    waiting: list[tuple[str, Any]] = [("", function)]
    while waiting:
        name, value = waiting.pop()
        if id(value) in known:
            continue
        known.add(id(value))
        module, kind = isinstance(value, types.ModuleType), value if isinstance(value, type) else type(value)
        methods = [(word, each) for word, each in vars(kind).items() if inspect.isfunction(each)]
        home = value.__name__ if module else getattr(value if callable(value) else kind, "__module__", "")
        if not module and (own := getattr(value, "__self__", None)) is not None and not inspect.ismodule(own):
            waiting += [(name, own), (name, getattr(value, "__func__", own))]
        elif inspect.isfunction(value):
            waiting += _named(value)
        elif isinstance(value, CONTAINERS):
            waiting += [(name, each) for each in (value.values() if isinstance(value, dict) else value)]
        elif str(home).partition(".")[0] in SEEN:
            found |= {name} & TELLING
        elif module or not methods:
            found.add(name)
        else:
            waiting += [*methods, *getattr(value, "__dict__", {}).items()]
    return found


def _named(function: Any) -> list[tuple[str, Any]]:
    """What the names of a function stand for: of its module, of Python, of its closure, its defaults."""
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names |= {*code.co_names, *code.co_freevars}
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    scope = {**vars(builtins), **function.__globals__, **inspect.getclosurevars(function).nonlocals}
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return [*((name, scope[name]) for name in names if name in scope), *(("a default", each) for each in given)]
