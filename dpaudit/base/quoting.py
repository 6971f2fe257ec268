"""Text and data that came from a user, made harmless and short before a sentence quotes them."""

import itertools
import json
import math
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dpaudit.base.validate import unspelled

LONGEST_NAME = 80  # characters of a user's text that a sentence quotes
LONGEST_DATA = 200
LONGEST_REASON = 2_000  # why there is no verdict: whole, but for data in it
TABLE = {"table", "columns", "types", "rows"}  # keys of a table as `dpaudit.data.data` spells it
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four: full width
INNER = re.compile(r"(;\s*)(?=[=+@\-\uff1d\uff0b\uff0d\uff20])")  # where a semicolon parts cells


def clean(text: object, longest: int = LONGEST_NAME) -> str:
    r"""The text on one line, control, bidirectional and invisible characters as escapes, the middle cut when long.

    >>> clean("a\x1b[31m\u202eb")
    'a\\x1b[31m\\u202eb'
    """
    raw = str(text)
    if len(raw) > longest:
        tail = longest // 4
        raw = f"{raw[: longest - tail - 3]}...{raw[-tail:]}"
    return visible(raw)


def visible(text: str) -> str:
    r"""The text with line breaks and hidden characters as escapes.

    >>> visible("a\nPROVED")
    'a\\nPROVED'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def data_text(stored: dict[str, Any], longest: int = LONGEST_DATA) -> str:
    """A recorded dataset: its value in Python's notation when it is small, its digest when it is not.

    >>> data_text({"digest": "5d1f", "value": ["a", "a", "a", "b"]})
    "['a'] * 3 + ['b']"
    """
    value = plain_text(stored["value"])
    text = stored.get("shown") if value is None else literal(value)
    table = isinstance(value, dict) and value.keys() >= TABLE
    if text is not None and (table or len(text) <= longest):
        return clean(text, longest)  # of a long table the first rows and the names of its columns
    size = f"{len(value):,} entries, " if isinstance(value, list | dict | str) else ""
    return f"not shown here ({size}digest {clean(stored['digest'])})"


def plain_text(value: Any) -> Any:
    """The value as it comes back from JSON, so that a text is the same before and after storing.

    >>> plain_text(({"float": "nan"},))  # in Python's notation
    [float('nan')]
    """
    return unspelled(json.loads(json.dumps(value)), _NotFinite)


class _NotFinite(float):
    def __repr__(self) -> str:
        return f"float({super().__repr__()!r})"


def literal(value: Any) -> str:
    """Python's notation, of a table too, equal neighbours of a list written as a product when that is shorter.

    >>> literal({"table": "pandas.Series", "columns": ["age"], "types": ["int64"], "rows": [[3], [3], [4]]})
    "pandas.Series([3, 3, 4], name='age')"
    """
    if isinstance(value, dict) and value.keys() >= TABLE:
        names, rows, alone = value["columns"], value["rows"], value["table"].endswith("Series")
        details = {
            "numpy.array": f"dtype={list(zip(names, value['types'], strict=True))}",
            "polars.DataFrame": f"schema={names}, orient='row'",
            "pandas.DataFrame": f"columns={names}",
        }.get(value["table"], f"name={names[0]!r}")
        if alone and value["table"].startswith("polars"):
            return f"polars.Series({names[0]!r}, {literal([row[0] for row in rows])})"
        index = f", index={literal(value['index'])}" if "index" in value else ""
        return f"{value['table']}({literal([row[0] if alone else tuple(row) for row in rows])}, {details}{index})"
    text = repr(value)
    if not isinstance(value, list) or len(value) < 3:
        return text
    groups = [(item, len(list(same))) for item, same in itertools.groupby(repr(item) for item in value)]
    short = " + ".join(f"[{item}] * {times}" if times > 1 else f"[{item}]" for item, times in groups)
    return short if len(short) < len(text) else text


def cell(value: object, longest: int = LONGEST_DATA) -> str | int | float:
    """A value as a cell: numbers as they are, infinity as text, other text on one line and never a formula.

    A text that a spreadsheet would compute gets an apostrophe before it, which is how a spreadsheet marks text; so does
    what follows a semicolon, which parts cells in half of Europe.

    >>> cell("=1+1"), cell("noisy count"), cell(0.5), cell(None), cell(float("inf")), cell("a;=1+1")
    ("'=1+1", 'noisy count', 0.5, '', 'inf', "a;'=1+1")
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raw = str(value)
    text = INNER.sub(r"\1'", clean(raw, longest))
    return f"'{text}" if raw.lstrip(" ").startswith(FORMULA) and not isinstance(value, float) else text


P = ParamSpec("P")
Part = TypeVar("Part")


def standing(instead: Callable[[str], Any]) -> Callable[[Callable[P, Part]], Callable[P, Part]]:
    """Decorates a writer of one part: where it fails, only `instead`, of the line that says so, takes its place."""

    def guarded(tell: Callable[P, Part]) -> Callable[P, Part]:
        @wraps(tell)
        def part(*given: P.args, **named: P.kwargs) -> Part:
            try:
                return tell(*given, **named)
            except Exception as error:
                put: Part = instead(untold(error))
                return put

        return part

    return guarded


def untold(error: Exception) -> str:
    """The line in the place of a part, with the error, so that it can be reported.

    >>> untold(OverflowError("too large"))
    'this part cannot be told (OverflowError: too large); verdict and counts stand; please report the error'
    """
    what = f"{type(error).__name__}: {clean(error, LONGEST_DATA)}"
    return f"this part cannot be told ({what}); verdict and counts stand; please report the error"


def line(text: str) -> tuple[str, ...]:
    """A part that is one line."""
    return (text,)
