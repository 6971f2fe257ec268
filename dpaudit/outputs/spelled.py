"""What things are called, as steps of a path, and what an object holds, for what has no column.

A step is the name of a key or an element; one that starts with one @ is a name of ours, as `LENGTH` is.
"""

import copyreg
import datetime
import enum
import math
import numbers
import random
import sys
import types
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, cast

import numpy as np

from dpaudit.base.values import type_name
from dpaudit.outputs.canonical import READ_AS, token
from dpaudit.outputs.exact import LIBRARIES, base, module_of, own_words, real, words_of

LONGEST_STEP = 60
PRINTED = ("datetime", "uuid", "pathlib", "ipaddress")  # modules whose values are known by their text
LABELS = ("columns", "index", "names", "categories")  # of tables, one by one
FRAME = (*LABELS, "ordered", "freq", "flags", "name", "dtype", "dtypes", "attrs", "schema", "device", "requires_grad")
OF_LABELS = ("names", "dtype", "freq", "ordered", "categories", "levels")  # what an index keeps beside its labels


def step(key: Any) -> int | str:
    """One step of a path for a key or an element: equal keys give one step, different keys different ones.

    >>> step(True), step(2.0), step("a"), step((1, "a")), step("@len")
    (1, 2, 'a', "@(1, 'a')", '@@len')
    """
    if isinstance(key, str):
        text = str.__str__(key)
        text = "@" + text if text.startswith("@") else text  # what starts with one @ is a name of ours
    elif isinstance(key, numbers.Real | np.bool_ | Decimal):
        kind: Any = type(key)
        number, holder = real(key), base(kind, "__float__") or kind
        if math.isfinite(number) and number == int(number) and holder.__eq__(key, int(number)) is not False:
            return int(number)
        text = f"@{number!r}"
    else:
        text = "@" + _name_of(key)
    if len(text) > LONGEST_STEP:
        text = f"@{text[: LONGEST_STEP // 2]}...{token('step', text).code:016x}"
    return "@" + text if text.startswith(READ_AS) else text  # no key leads into what a text says


def _name_of(key: Any) -> str:
    if isinstance(key, str):
        return repr(str.__str__(key))
    if isinstance(key, numbers.Real | np.bool_ | Decimal):
        return str(step(key)).removeprefix("@")
    if isinstance(key, tuple):
        return f"({', '.join(map(_name_of, tuple.__iter__(key)))})"
    if isinstance(key, frozenset):
        return f"{{{', '.join(sorted(map(_name_of, frozenset.__iter__(key))))}}}"
    if key is None or isinstance(key, bytes):
        return "None" if key is None else bytes.__repr__(key)
    kind: Any = type(key)
    if isinstance(key, enum.Enum) or module_of(kind) in PRINTED:
        return str(key)
    return f"object {type_name(kind)} {words_of(key)}" if own_words(kind) else f"object {type_name(kind)}"


def has(element: Any) -> str:
    """The step of an element of a set."""
    return f"@has {step(element)!r}"


def state_of(value: Any) -> dict[str, Any] | None:
    """What an object holds that its printed value need not show, by name; None where it cannot be read."""
    kind: Any = type(value)
    if isinstance(value, type | types.BuiltinFunctionType | types.ModuleType | np.ufunc):
        return {"name": f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"}
    if isinstance(value, types.FunctionType):
        cells = [_inside(cell) for cell in value.__closure__ or ()]
        code = value.__code__
        named = {"name": value.__qualname__, "code": code.co_code, "constants": list(map(repr, code.co_consts))}
        return {**named, "holds": cells, "defaults": [value.__defaults__, value.__kwdefaults__], **vars(value)}
    if isinstance(value, types.MethodType):
        return {"self": value.__self__, "function": value.__func__}
    if isinstance(value, random.SystemRandom):  # the randomness of the system has no state
        return _attributes(value)
    if isinstance(value, types.MappingProxyType):
        return {"items": dict(value)}
    if isinstance(value, BaseException):
        own: Any = BaseException.__dict__["__dict__"].__get__(value)
        return {"args": value.args, **own}
    if hasattr(kind, "__array__"):
        return _of_frame(value) | ({} if foreign(kind) else _attributes(value))
    if not foreign(kind):
        return _attributes(value)
    try:
        reduced = _reduced(value)
    except Exception:
        return None
    if isinstance(reduced, str):
        return {"name": reduced}
    _, args, state, entries, items = (*reduced, *[None] * 5)[:5]
    args = [each for each in args if each is not kind]
    parts = {"args": args, "state": state, "entries": entries and [*entries], "items": items and [*items]}
    return {name: each for name, each in parts.items() if each is not None and (name != "args" or each)}


def attached(value: Any, known: Iterable[str] = ()) -> dict[str, Any]:
    """What was attached to an object whose value is read otherwise, but for the names that are."""
    extras, kind = _attributes(value), cast(Any, type(value))
    if isinstance(value, defaultdict):
        extras["factory"] = value.default_factory
    elif isinstance(value, datetime.datetime | datetime.time) and (value.fold or value.tzinfo is not None):
        extras |= {"fold": value.fold, "zone": value.tzinfo}
    elif reduces(kind):
        content = next((holder(value) for holder in (tuple, list, dict) if isinstance(value, holder)), None)
        extras |= {f"part {place}": part for place, part in enumerate(_reduced(value)[1]) if part != content}
    return {name: extras[name] for name in extras if name not in known}


def _reduced(value: Any) -> Any:
    """What pickling makes of an object of Python's own or of a library's type."""
    kind: Any = type(value)
    return copyreg.dispatch_table[kind](value) if kind in copyreg.dispatch_table else kind.__reduce_ex__(value, 4)


@lru_cache(maxsize=1 << 10)
def reduces(kind: Any) -> bool:
    """Whether a type of Python's own or of a library says itself what its objects hold, as `struct_time` does."""
    return foreign(kind) and kind.__module__ != "builtins" and kind.__reduce__ is not object.__reduce__


@lru_cache(maxsize=1 << 10)
def foreign(kind: Any) -> bool:
    """Whether a type is Python's own, or of a library that is known to tell the state of its objects."""
    top = str(kind.__module__).partition(".")[0]
    return (top in sys.stdlib_module_names and top != "__main__") or top in LIBRARIES


def _attributes(value: Any) -> dict[str, Any]:
    try:
        state: Any = object.__getstate__(value)
    except TypeError:
        return {}
    parts = state if isinstance(state, tuple) else (state,)
    return {str(name): each for part in parts if isinstance(part, dict) for name, each in dict.items(part)}


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def _of_frame(value: Any) -> dict[str, Any]:
    """The labels of a table or tensor of a library, as plain values."""
    labels: dict[str, Any] = {}
    for name in FRAME:
        label = getattr(value, name, None)
        if label is None or callable(label) or (name == "index" and _counts(label)):
            continue
        plain = isinstance(label, dict | str | bool | int | float)
        labels[name] = label if plain else list(label) if name in LABELS else _words(label)
        if name in ("columns", "index"):
            parts = ((each, getattr(label, each, None)) for each in OF_LABELS)
            labels |= {f"{name} {each}": _words(part) for each, part in parts if part is not None}
    return {name: each for name, each in labels.items() if not (isinstance(each, dict | list) and not each)}


def _counts(index: Any) -> bool:
    """Whether an index is the one that tables have of themselves, with no name."""
    return (getattr(index, "start", 1), getattr(index, "step", 0), getattr(index, "name", "")) == (0, 1, None)


def _words(label: Any) -> Any:
    if hasattr(label, "__iter__"):
        return [_words(each) for each in label] if not isinstance(label, str) else label
    order = [f" of {list(label.categories)}, ordered {label.ordered}"] if hasattr(label, "categories") else [""]
    return str(label) + order[0]
