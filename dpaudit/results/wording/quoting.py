"""Text and data that came from a user, made harmless and short before a sentence quotes them."""

from __future__ import annotations

import itertools
import json
from typing import Any

LONGEST_NAME = 80  # characters of a user's text that a sentence quotes
LONGEST_DATA = 200


def clean(text: object, longest: int = LONGEST_NAME) -> str:
    r"""The text on one line, control, bidirectional and invisible characters as escapes, the middle cut when long.

    >>> clean("a\x1b[31m\u202eb")
    'a\\x1b[31m\\u202eb'
    """
    raw = str(text)
    if len(raw) > longest:
        tail = longest // 4
        raw = f"{raw[: longest - tail - 3]}...{raw[-tail:]}"
    if raw.isprintable():
        return raw
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in raw)


def data_text(stored: dict[str, Any], longest: int = LONGEST_DATA) -> str:
    """A recorded dataset: its value in Python's notation when it is small, its digest when it is not.

    >>> data_text({"digest": "5d1f", "value": ["a", "a", "a", "b"]})
    "['a'] * 3 + ['b']"
    """
    value = plain_text(stored["value"])
    text = None if value is None else literal(value)
    if text is None or len(text) > longest:
        size = f"{len(value):,} entries, " if isinstance(value, list | dict | str) else ""
        return f"not shown here ({size}digest {clean(stored['digest'])})"
    return clean(text, longest)


def plain_text(value: Any) -> Any:
    """The value as it comes back from JSON, so that a text is the same before and after storing."""
    return json.loads(json.dumps(value))


def literal(value: Any) -> str:
    """Python's notation, equal neighbours of a list written as a product when that is shorter."""
    text = repr(value)
    if not isinstance(value, list) or len(value) < 3:
        return text
    groups = [(item, len(list(same))) for item, same in itertools.groupby(repr(item) for item in value)]
    short = " + ".join(f"[{item}] * {times}" if times > 1 else f"[{item}]" for item, times in groups)
    return short if len(short) < len(text) else text
