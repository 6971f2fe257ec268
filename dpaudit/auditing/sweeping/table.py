"""The table of a sweep as CSV: one row a point, cells that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from dpaudit.results.wording.quoting import cell

LONGEST_CELL = 1_000  # characters of a text


def csv_text(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> str:
    """The whole table, its header first; lines end in a single newline.

    >>> csv_text([{"mechanism": "=cmd", "lower": 0.5}], ("mechanism", "lower"))
    '"mechanism","lower"\\n"\\'=cmd",0.5\\n'
    """
    return csv_line(columns) + "".join(csv_line([row.get(name) for name in columns]) for row in rows)


def csv_line(cells: Iterable[Any]) -> str:
    """One line of the table."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(["" if each is None else cell(each, LONGEST_CELL) for each in cells])
    return text.getvalue()
