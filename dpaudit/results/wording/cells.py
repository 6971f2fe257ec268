"""Cells of a table that a spreadsheet opens: text that it could take for a formula is made harmless."""

from __future__ import annotations

import math
import re

from dpaudit.results.wording.quoting import LONGEST_DATA, clean

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four: full width

INNER = re.compile(
    r"(;\s*)(?=[=+@\-\uff1d\uff0b\uff0d\uff20])"
)  # where a semicolon parts cells, a cell begins after it


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
