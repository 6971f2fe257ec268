"""Steps of a path: names for keys and elements; one that starts with one @ is a name of ours, as `LENGTH` is."""

import enum
import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np

from dpaudit.outputs import READ_AS, token
from dpaudit.sampling.exact import base, module_of, own_words, real, words_of

LONGEST_STEP = 60
PRINTED = ("datetime", "uuid", "pathlib", "ipaddress")  # modules whose values are known by their text


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


def type_name(kind: type) -> str:
    """A type as people write it."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
