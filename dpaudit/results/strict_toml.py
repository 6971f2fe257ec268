"""Reading TOML that a stranger wrote: capped in size and depth before it costs anything, refused in one line."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.results.files import read_bytes
from dpaudit.results.wording.quoting import clean

LARGEST_FILE = 256 * 1024  # bytes
DEEPEST_NAME = 16  # parts of a dotted name; the parser's time is quadratic in them
DEEPEST_VALUE = 32  # tables and lists inside one another
LARGEST_WHOLE = 1 << 63  # the range that the format promises

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{DEEPEST_NAME}}}")


def read_toml(path: str | os.PathLike[str], *, largest: int = LARGEST_FILE, dates: bool = False) -> dict[str, Any]:
    """The tables of a file. Raises `NoSuchFile`, or `InvalidSpec` that names the file, and the line where there is one.

    Dates and times are refused unless they are asked for: nothing in a spec is one, and results could not store them.
    """
    shown = clean(path, 200)
    try:
        text = read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSpec(f"{shown}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except InvalidSpec as error:
        raise type(error)(f"{shown}: {error}") from None
    return parse_toml(text, shown, dates=dates)


def parse_toml(text: str, place: str, *, dates: bool = False) -> dict[str, Any]:
    """The tables of a text; `place` is what messages call it.

    >>> parse_toml("runs = 1_000", "x.toml")
    {'runs': 1000}
    """
    long = _LONG_NAME.search(text)
    if long is not None:
        line = text.count("\n", 0, long.start()) + 1
        raise InvalidSpec(f"{place}: line {line}: a name of more than {DEEPEST_NAME} parts; use shorter names")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise InvalidSpec(f"{place}: nested more than {DEEPEST_VALUE} deep; flatten it") from None
    except ValueError as error:  # a decoding error, or a number of thousands of digits
        raise InvalidSpec(f"{place}: not valid TOML: {' '.join(str(error).split())}") from None
    _check_values(tables, place, dates)
    return tables


def _check_values(tables: dict[str, Any], place: str, dates: bool) -> None:
    layer: list[tuple[str, Any]] = list(tables.items())
    for _ in range(DEEPEST_VALUE):
        below: list[tuple[str, Any]] = []
        for key, value in layer:
            if isinstance(value, dict):
                below.extend(value.items())
            elif isinstance(value, list):
                below.extend((key, item) for item in value)
            elif isinstance(value, int) and not -LARGEST_WHOLE <= value < LARGEST_WHOLE:
                raise InvalidSpec(f"{place}: {key}: a whole number must fit into 64 bits, got {value.bit_length()}")
            elif isinstance(value, datetime.date | datetime.time) and not dates:
                raise InvalidSpec(f"{place}: {key}: a date or time has no place here, got {value}; write it as text")
        layer = below
        if not layer:
            return
    raise InvalidSpec(f"{place}: nested more than {DEEPEST_VALUE} deep; flatten it")
