"""Datasets are opaque: they are compared and recorded by digest, and by value only when small and plain.

Frames, series and structured arrays of other libraries become plain values, and back; none of them is imported here.
"""

import copy
import hashlib
import marshal
import math
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import chain, product
from typing import Any

from dpaudit.base.validate import unspelled
from dpaudit.errors import InvalidSpec

LONGEST_NUMBER = 1_000  # bits of an integer; Python refuses to write much longer ones
LARGEST_RECORDED_VALUE = 2_000  # characters; a larger dataset is recorded by digest alone
ATOMS = frozenset({type(None), bool, int, float, str, bytes})
HOLDERS = frozenset({list, tuple, set, frozenset, dict})
BATCH = 1000  # items of a list that a pickler writes at a time
DEEPEST = 32  # levels of containers that are searched in a dataset
HOMES = {"numpy": ("ndarray",), "pandas": ("DataFrame", "Series", "Index"), "polars": ("DataFrame", "Series")}
TABLE = {"table", "columns", "types", "rows"}  # the keys of a table as plain values; with an index, that too
PLAIN = (bool, int, float, str, type(None))


def digest(data: Any) -> str:
    """A hash of the contents of a dataset (32 hex digits); equal contents give equal digests.

    Raises `InvalidSpec` where the dataset cannot be pickled.
    """
    try:
        return str(_hasher().hash(_unshared(data)))
    except Exception as error:  # whatever the pickling of an object raises
        raise InvalidSpec(
            f"a dataset must be picklable, got {type(data).__name__} ({error}); "
            "pass plain data, or make it inside the mechanism"
        ) from None


def _hasher() -> Any:
    """The hasher of `joblib.hash`, a pickler in Python; lists of atoms are pickled in C, to the same bytes."""
    from joblib.hashing import NumpyHasher

    hasher: Any = NumpyHasher("md5")
    one_by_one = hasher._batch_appends

    def append(items: Any, *rest: Any) -> None:
        if type(items) is not list or len(items) < BATCH or not ATOMS.issuperset(map(type, items)):
            one_by_one(items, *rest)
            return
        for start in range(0, len(items), BATCH):
            written = BytesIO()
            pickler = pickle.Pickler(written, 3)
            pickler.fast = True  # without a memo, as the hasher: parts that occur twice are written twice
            pickler.dump(items[start : start + BATCH])
            hasher.write(written.getvalue()[len(b"\x80\x03]") : -len(b".")])

    hasher._batch_appends = append
    return hasher


def same(first: Any, second: Any) -> bool:
    """Whether two datasets have one digest. Raises `InvalidSpec` as `digest` does."""
    quick = _is_builtin(first) and _is_builtin(second) and first != second  # a NaN is not equal to itself
    return not (quick and marshal.dumps(first, 2) != marshal.dumps(second, 2)) and digest(first) == digest(second)


def _unshared(data: Any) -> Any:
    """The data without shared parts, and arrays in one order: equal contents are hashed alike."""
    kind = type(data)
    if kind in (list, tuple):
        return kind(iter(data) if ATOMS.issuperset(map(type, data)) else map(_unshared, data))
    if kind is dict:
        return {key: _unshared(value) for key, value in data.items()}
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return data.copy(order="C")
    if home_of(data) == "numpy" and hasattr(data, "mask"):  # pickled, its bytes are not those of an array
        return [f"{kind.__module__}.{kind.__name__}", data.data, data.mask]
    with suppress(Exception):  # a frame of its own kind is hashed as it is pickled
        return data if (content := contents(data)) is None else content
    return data


def mark(data: Any) -> str | None:
    """A hash that changes when the dataset does, for comparing within one process; None for what cannot change.

    >>> len({mark([1]), mark([1.0]), mark([True]), mark((1,)), mark([1, 1])})
    5
    """
    if data is None or isinstance(data, int | float | str | bytes | bool):
        return None
    try:
        # version 2 writes every value with its type, and no references to shared parts
        return hashlib.sha256(marshal.dumps(data, 2)).hexdigest() if _is_builtin(data) else digest(data)
    except (InvalidSpec, ValueError):  # its classes were pickled by value, as their module cannot be imported here
        import cloudpickle

        return hashlib.sha256(cloudpickle.dumps(data)).hexdigest()


def private_copy(data: Any) -> Any:
    """A copy that a mechanism may spoil without spoiling the caller's; the object itself if it cannot be copied."""
    try:
        return pickle.loads(pickle.dumps(data, 5)) if _is_builtin(data) else copy.deepcopy(data)
    except Exception:
        return data


def _is_builtin(data: Any) -> bool:
    """Whether all of it is of Python's own plain types, exactly: C code of Python's then reads and copies it whole."""
    level = [data]
    for _ in range(DEEPEST):
        kinds = set(map(type, level))
        if not kinds <= ATOMS | HOLDERS:
            return False
        inner = [each for each in level if type(each) in HOLDERS] if kinds & HOLDERS else []
        if not inner:
            return True
        level = list(chain.from_iterable(chain(each, each.values()) if type(each) is dict else each for each in inner))
    return False


def plain_value(data: Any) -> Any:
    """The dataset as JSON-ready values when it is small and plain, otherwise None.

    >>> plain_value([1.5, math.nan])  # JSON has no such number
    [1.5, {'float': 'nan'}]
    """
    import numpy as np

    with suppress(Exception):
        if home_of(data) is not None and math.prod(data.shape) > LARGEST_RECORDED_VALUE:
            return None
        table = spelled_table(data)
        data = data if table is None else table
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if type(data) is dict:
        data = {key: plain_value(each) if home_of(each) == "numpy" else each for key, each in data.items()}
    if isinstance(data, np.generic):
        data = data.item()
    return _spelled(data) if _is_plain(data) and len(repr(data)) <= LARGEST_RECORDED_VALUE else None


def text_of(data: Any) -> str:
    """What a small dataset prints, where that is its content and no address or part of it; else nothing.

    >>> text_of({"b", "a"}), text_of(object())
    ("{'a', 'b'}", '')
    """
    try:
        if home_of(data) is not None or hasattr(data, "__len__") and len(data) > LARGEST_RECORDED_VALUE:
            return ""
        text = f"{{{', '.join(sorted(map(repr, data)))}}}" if isinstance(data, set | frozenset) and data else repr(data)
    except Exception:  # whatever the class raises
        return ""
    return text if len(text) <= LARGEST_RECORDED_VALUE and " at 0x" not in text and "..." not in text else ""


def _spelled(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return {"float": repr(data)}
    if isinstance(data, list | tuple):
        return type(data)(map(_spelled, data))
    return {key: _spelled(each) for key, each in data.items()} if isinstance(data, dict) else data


def restored(value: Any, recorded: str) -> Any:
    """The dataset behind a recorded value: the list, tuple or array of that content whose digest is the recorded one.

    Raises `InvalidSpec` where there is none; a dataset recorded by digest alone cannot be made again.
    """
    import numpy as np

    doubles, whole = (partial(np.array, dtype=kind) for kind in (np.float64, np.int64))
    makers: tuple[Callable[[Any], Any], ...] = (
        lambda same: same,
        _tuples,
        tuple,
        _rows_of,
        np.array,
        doubles,
        whole,
        np.float64,
    )
    if isinstance(value, dict):
        makers = (
            table_again if value.keys() >= TABLE else lambda same: same,
            lambda columns: {k: np.array(v) for k, v in columns.items()},
        )
    for given, make in product((value, unspelled(value)), makers):
        with suppress(Exception):  # whatever the library of the data raises
            candidate = make(given)
            if value is not None and digest(candidate) == recorded:
                return candidate
    raise InvalidSpec("the result holds its datasets by digest only; run the audit again with another seed")


def _rows_of(value: Any) -> Any:
    return [*map(_tuples, value)]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _is_plain(data: Any, depth: int = 6) -> bool:
    kind = type(data)  # exactly: a subclass would need its own module where the record is read
    if kind is int:
        return data.bit_length() < LONGEST_NUMBER  # type: ignore[no-any-return]
    if data is None or kind in (bool, str, float):
        return True
    if depth == 0 or kind not in (list, tuple, dict) or len(data) > LARGEST_RECORDED_VALUE:
        return False
    named = kind is not dict or all(type(key) is str for key in data)
    return named and all(_is_plain(item, depth - 1) for item in (data.values() if kind is dict else data))


def home_of(data: Any) -> str | None:
    """The library whose array, frame or series this is; whoever made it has loaded that, or it is none.

    >>> import numpy as np
    >>> home_of(np.zeros(2)), home_of([0.0])
    ('numpy', None)
    """
    for name, kinds in HOMES.items():
        classes = [getattr(sys.modules.get(name), kind, None) for kind in kinds]
        if isinstance(data, tuple(kind for kind in classes if isinstance(kind, type))):
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
        header = {"table": "numpy.array", "columns": list(data.dtype.names), "types": types}
        return {**header, "rows": [list(map(_cell, row)) for row in data.tolist()]}
    if home is None or type(data).__name__.endswith("Index"):
        return None
    columns = _columns(data)
    rows = [list(map(_cell, row)) for row in zip(*(column.to_list() for column in columns), strict=True)]
    table = f"{home}.{type(data).__name__}"
    value = {"table": table, "columns": _names(data), "types": list(map(_type, columns)), "rows": rows}
    return {**value, "index": list(map(_cell, data.index))} if _labelled(data) else value


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
        series = [library.Series(*each) for each in zip(names, columns, kinds, strict=True)]
        return library.DataFrame(series) if kind == "DataFrame" else series[0]
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
