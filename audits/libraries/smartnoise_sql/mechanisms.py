"""Queries of smartnoise-sql on a pandas data frame, as in its README. The library owns its randomness.

A dataset is the list of its rows: the number of visits and the city of one person each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import snsql

VISITS = {"type": "int", "lower": 0, "upper": 10}
METADATA = {"": {"S": {"T": {"row_privacy": True, "rows": 20, "visits": VISITS, "city": {"type": "string"}}}}}


def execute(rows: Sequence[tuple[int, str]], *, query: str, epsilon: float, delta: float) -> list[list[Any]]:
    """The rows of the answer, without the names of its columns."""
    table = pd.DataFrame(rows, columns=["visits", "city"])
    reader = snsql.from_df(table, privacy=snsql.Privacy(epsilon=epsilon, delta=delta), metadata=METADATA)
    return [list(row) for row in reader.execute(query)[1:]]


def too_large() -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Seven people, one of them with a number of visits that fits into no signed 64 bits, and without that one."""
    kept = [(3, "Rome")] * 6
    return [*kept, (2**63, "Rome")], kept


def was_refused(output: object) -> bool:
    """ValueError was raised."""
    return isinstance(output, ValueError)
