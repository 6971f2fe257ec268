"""Reading TOML that a stranger wrote: capped in size and depth before it costs anything, refused in one line."""

import datetime
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dpaudit.errors import InvalidSpec, at
from dpaudit.results.files import read_bytes
from dpaudit.results.wording.quoting import clean

LARGEST_FILE = 256 * 1024  # bytes
DEEPEST_NAME = 16  # parts of a dotted name; the parser's time is quadratic in them
DEEPEST_VALUE = 32  # tables and lists inside one another
LARGEST_WHOLE = 1 << 63  # the range that the format promises
LONGEST_VALUE = 200  # lines; behind a longer value no line is known

Keys = tuple[str | int, ...]  # that lead to a value: names of tables and keys, places in lists
CURES = {  # by the words of the parser
    "Invalid value": 'texts stand in quotes: name = "noisy count"',
    "Expected '='": 'a line is a key and a value: name = "noisy count"',
    "Expected newline": "one key and value on a line",
    "Illegal character": "close the quotes on the same line",
    "Unterminated string": "close the quotes",
    "Unclosed": "close the bracket",
    "Cannot overwrite": "a key stands once in a table",
    "Cannot declare": "a table stands once in a file; several audits are [[audit]] each",
}

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{DEEPEST_NAME}}}")


def read_toml(path: str | os.PathLike[str], *, largest: int = LARGEST_FILE, dates: bool = False) -> dict[str, Any]:
    """The tables of a file. Raises `NoSuchFile`, or `InvalidSpec` that names the file, and the line where there is one.

    Dates and times are refused unless they are asked for: nothing in a spec is one, and results could not store them.
    """
    shown = clean(path, 200)
    with at(shown):
        content = read_bytes(path, largest)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSpec(f"{shown}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
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
        told = " ".join(str(error).split())
        cure = next((f"; {cure}" for what, cure in CURES.items() if told.startswith(what)), "")
        raise InvalidSpec(f"{place}: not valid TOML: {told}{cure}") from None
    _check_values(tables, text, place, dates)
    return tables


def _check_values(tables: dict[str, Any], text: str, place: str, dates: bool) -> None:
    def wrong(keys: Keys, what: str) -> InvalidSpec:
        line = lines_of(text).get(keys)
        return InvalidSpec(f"{place}: {'' if line is None else f'line {line}: '}{keys[-1]}: {what}")

    layer: list[tuple[Keys, Any]] = [((key,), value) for key, value in tables.items()]
    for _ in range(DEEPEST_VALUE):
        below: list[tuple[Keys, Any]] = []
        for keys, value in layer:
            if isinstance(value, dict):
                below.extend(((*keys, key), each) for key, each in value.items())
            elif isinstance(value, list):
                below.extend(((*keys, number), each) for number, each in enumerate(value))
            elif isinstance(value, int) and not -LARGEST_WHOLE <= value < LARGEST_WHOLE:
                raise wrong(keys, f"a whole number must fit into 64 bits, got {value.bit_length()}")
            elif isinstance(value, datetime.date | datetime.time) and not dates:
                raise wrong(keys, f"a date or time has no place here, got {value}; write it as text")
        layer = below
        if not layer:
            return
    raise InvalidSpec(f"{place}: nested more than {DEEPEST_VALUE} deep; flatten it")


def lines_of(text: str) -> dict[Keys, int]:
    """The first line of the statement that gives each key, table and item of a valid TOML text.

    >>> lines_of("[[audit]]\\nname = 'a'\\nclaim = { epsilon = 1.0 }")[("audit", 0, "claim", "epsilon")]
    3
    """
    rows = text.replace("\r\n", "\n").split("\n")
    found: dict[Keys, int] = {}
    counts: Counter[Keys] = Counter()
    table: Keys = ()
    first = 0
    while first < len(rows):
        for last in range(first, min(first + LONGEST_VALUE, len(rows))):  # the shortest that is TOML is one statement
            with suppress(ValueError):
                held = tomllib.loads("\n".join(rows[first : last + 1]))
                break
        else:
            return found
        if rows[first].lstrip().startswith("["):
            table = _header(held, counts)
            found.setdefault(table, first + 1)
        for path in _inside(held, table) if not rows[first].lstrip().startswith("[") else ():
            found.setdefault(path, first + 1)
        first = last + 1
    return found


def _header(held: Any, counts: Counter[Keys]) -> Keys:
    """The keys of a table whose header alone was read."""
    table: Keys = ()
    while held:
        ((key, held),) = held.items()
        table = (*table, key)
        if isinstance(held, list):
            counts[table] += 1
            held = held[0]
        if table in counts:
            table = (*table, counts[table] - 1)
    return table


def _inside(held: Any, at: Keys) -> Iterator[Keys]:
    items = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from _inside(value, (*at, key))
