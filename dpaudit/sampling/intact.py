"""Whether the code that runs a mechanism is still what it was before anything of the user's was imported.

A mechanism that changes it by name (`dpaudit.sampling.encode.encode_objects = ...`) is noticed at the end of its task.
One that knows this module can hide from it: what decides is that its outputs are counted in another process.
"""

import builtins
import json
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from dpaudit.errors import UnsoundAudit

OFTEN_CHANGED = {"print", "input", "open", "help", "exit", "quit", "_"}  # of Python itself, by libraries and shells

_AS_MADE: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = []  # names, what holds them, what they meant
_CODES: list[tuple[str, FunctionType, Any]] = []


def remember() -> None:
    """Takes down what functions and classes are now, in this project's modules and in those that read outputs."""
    ours = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "dpaudit"]
    spaces: list[Any] = [(module.__name__, vars(module)) for module in (*ours, builtins, np, json)]
    spaces += [
        (f"{name}.{key}", vars(value))
        for name, space in spaces[: len(ours)]
        for key, value in space.items()
        if isinstance(value, type) and value.__module__ == name
    ]
    for name, space in spaces:
        meant = {
            key: value
            for key, value in space.items()
            if (callable(value) or isinstance(value, property)) and key not in OFTEN_CHANGED
        }
        _AS_MADE.append((name, space, meant))
        for key, value in meant.items():
            if isinstance(value, FunctionType):
                _CODES.append((f"{name}.{key}", value, value.__code__))


def check() -> None:
    """Raises `UnsoundAudit` where one of them is another."""
    changed = [f"{name}.{key}" for name, space, meant in _AS_MADE for key in meant if space.get(key) is not meant[key]]
    changed += [name for name, function, code in _CODES if function.__code__ is not code]
    if changed:
        raise UnsoundAudit(f"the mechanism changed the code that runs it ({changed[0]}); there is no verdict")
