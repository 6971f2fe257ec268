"""Frames, series and structured arrays of other libraries as plain values, and back; none of them is imported here."""

import sys
from typing import Any

HOMES = {"numpy": ("ndarray",), "pandas": ("DataFrame", "Series", "Index"), "polars": ("DataFrame", "Series")}
TABLE = {"table", "columns", "types", "rows"}  # the keys of a table as plain values; with an index, that too
PLAIN = (bool, int, float, str, type(None))


def home_of(data: Any) -> str | None:
    """The library whose array, frame or series this is; whoever made it has loaded that, or it is none.

    >>> import numpy as np
    >>> home_of(np.zeros(2)), home_of([0.0])
    ('numpy', None)
    """
    for name, kinds in HOMES.items():
        held = [getattr(sys.modules.get(name), kind, None) for kind in kinds]
        if isinstance(data, tuple(kind for kind in held if isinstance(kind, type))):
            return name
    return None


def records_of(data: Any) -> Any:
    """The records of a dataset, as a sequence; None where it is not known to hold any."""
    home = home_of(data)
    if home == "numpy":
        return None if data.ndim == 0 or hasattr(data, "mask") else data.tolist() if data.dtype.names else list(data)
    if home == "pandas":
        return data.to_dict("records") if hasattr(data, "columns") else data.tolist()
    if home == "polars":
        return data.to_dicts() if hasattr(data, "columns") else data.to_list()
    if isinstance(data, dict):
        columns: list[Any] = [None if isinstance(column, dict) else records_of(column) for column in data.values()]
        whole = bool(columns) and None not in columns and len(set(map(len, columns))) == 1
        return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)] if whole else None
    return data if isinstance(data, list | tuple) else None


def contents(data: Any) -> Any:
    """All that a mechanism sees of a frame or series, for a digest: names, types, labels and the values by column.

    None for anything else, an array too.
    """
    home = home_of(data)
    if home not in ("pandas", "polars"):
        return None
    columns = _columns(data)
    labels = [_values(data.index.get_level_values(j)) for j in range(data.index.nlevels)] if _labelled(data) else []
    return [
        f"{home}.{type(data).__name__}",
        _names(data),
        list(map(_type, columns)),
        labels,
        list(map(_values, columns)),
    ]


def spelled_table(data: Any) -> dict[str, Any] | None:
    """A frame, series or structured array as a dictionary of plain values; what is neither is None.

    >>> import numpy as np
    >>> spelled_table(np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]))["rows"]
    [[1, 2.5]]
    """
    home = home_of(data)
    if home == "numpy":
        if not data.dtype.names or data.ndim != 1:
            return None
        types = [data.dtype[name].str for name in data.dtype.names]
        made = {"table": "numpy.array", "columns": list(data.dtype.names), "types": types}
        return {**made, "rows": [list(map(_cell, row)) for row in data.tolist()]}
    if home is None or type(data).__name__.endswith("Index"):
        return None
    columns = _columns(data)
    rows = [list(map(_cell, row)) for row in zip(*(column.to_list() for column in columns), strict=True)]
    table = f"{home}.{type(data).__name__}"
    found = {"table": table, "columns": _names(data), "types": list(map(_type, columns)), "rows": rows}
    return {**found, "index": list(map(_cell, data.index))} if _labelled(data) else found


def table_again(value: dict[str, Any]) -> Any:
    """The frame, series or array of a spelled table; raises whatever its library raises where there is none such."""
    home, _, kind = value["table"].partition(".")
    library: Any = __import__(home if home in HOMES else "numpy")  # of a file that anybody may have written
    names, types, rows = value["columns"], value["types"], value["rows"]
    if home == "numpy":
        return library.array(list(map(tuple, rows)), dtype=list(zip(names, types, strict=True)))
    columns = [[row[j] for row in rows] for j in range(len(types))]
    if home == "polars":
        kinds = [getattr(library, of) for of in types]
        made = [library.Series(*each) for each in zip(names, columns, kinds, strict=True)]
        return library.DataFrame(made) if kind == "DataFrame" else made[0]
    index = value.get("index")
    kinds = [of if isinstance(of, str) else library.CategoricalDtype(*of[1:]) for of in types]
    series = [library.Series(each, index=index).astype(of) for each, of in zip(columns, kinds, strict=True)]
    if kind == "Series":
        return series[0].rename(names[0])
    frame = library.concat(series, axis=1) if series else library.DataFrame(index=index)
    frame.columns = names
    return frame


def _columns(data: Any) -> list[Any]:
    if not hasattr(data, "columns"):
        return [data]
    return [data.iloc[:, j] for j in range(data.shape[1])] if hasattr(data, "iloc") else data.get_columns()


def _names(data: Any) -> list[Any]:
    return list(data.columns) if hasattr(data, "columns") else [getattr(data, "name", None)]


def _type(column: Any) -> Any:
    """The type of a column by its name; of categories, which a mechanism sees too, with them."""
    kind = column.dtype
    if hasattr(kind, "categories") and hasattr(kind, "ordered"):
        return ["category", list(kind.categories), bool(kind.ordered)]
    return str(kind)


def _labelled(data: Any) -> bool:
    """Whether the rows have labels that are more than their places."""
    index: Any = getattr(data, "index", None)
    return hasattr(index, "nlevels") and list(index) != list(range(len(index)))


def _values(column: Any) -> Any:
    kind = column.dtype  # the bytes of numpy's own are hashed quickly
    quick = type(kind).__module__.startswith("numpy") and kind.kind in "biufmM"
    return column.to_numpy() if quick else column.to_list()


def _cell(value: Any) -> Any:
    """A value as JSON and people know it: a missing one is None, a date and the like its text."""
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    value = value.item() if hasattr(value, "item") else value
    return value if type(value) in PLAIN else str(value)
