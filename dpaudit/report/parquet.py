"""Parquet: the rows of a table with their types, by whichever library is installed."""

import importlib
import io
import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from dpaudit.installed import lacking


def parquet(names: Sequence[str], rows: Sequence[Mapping[str, Any]], reals: Container[str]) -> bytes:
    """Rows of such columns as Parquet: doubles (those in `reals` always), whole numbers, booleans, and text.

    Raises `MissingRequirement` where neither pyarrow nor polars is installed.
    """
    held = {name: _typed([row.get(name) for row in rows], name in reals) for name in names}
    file = io.BytesIO()
    try:
        arrow, written = map(importlib.import_module, ("pyarrow", "pyarrow.parquet"))
        table = {name: arrow.array(values, getattr(arrow, kind)()) for name, (kind, values) in held.items()}
        written.write_table(arrow.table(table), file)
    except ImportError:
        try:
            polars: Any = importlib.import_module("polars")
        except ImportError:
            raise lacking("Parquet needs pyarrow or polars, and neither is installed here", "parquet") from None
        kinds = {"float64": polars.Float64, "int64": polars.Int64, "bool_": polars.Boolean, "string": polars.String}
        series = {name: polars.Series(values, dtype=kinds[kind]) for name, (kind, values) in held.items()}
        polars.DataFrame(series).write_parquet(file)
    return file.getvalue()


def _typed(values: list[Any], real: bool) -> tuple[str, list[Any]]:
    """The name that Arrow has for the type of a column, and its values as such; None stays None.

    >>> _typed([1, None, 0.5], False), _typed([True, [1]], False)
    (('float64', [1.0, None, 0.5]), ('string', ['true', '[1]']))
    """
    found = {type(value) for value in values if value is not None}
    if real or found == {float} or found == {int, float}:
        return "float64", [None if value is None else float(value) for value in values]
    if found == {bool} or (found == {int} and max(abs(value) for value in values if value is not None) < 2**63):
        return "bool_" if found == {bool} else "int64", values
    return "string", [value if value is None or type(value) is str else json.dumps(value) for value in values]
