"""What a run returned, apart: numbers in blocks, and all else as facts, each by its path such as `output['mean']`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.data.data import home_of
from dpaudit.running.guard import RunTimedOut

WHOLE = "output"
LONGEST, MOST_PARTS = 60, 100_000  # characters of what is shown; parts of an output that are told apart
PLAIN = {bool: "bool", int: "int", float: "float", str: "text", bytes: "bytes", type(None): "None"}


@dataclass(slots=True, eq=False)
class Apart:
    """One output: `numbers` by path, `facts` (text, types, lengths, keys, how it ended), coarsest float."""

    numbers: dict[str, Reals] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    roughness: float = 2.0**-52
    raised: bool = False


def apart(output: Any) -> Apart:
    """An output, or what a run raised, in its parts.

    >>> apart({"n": 3, "mean": 2.5}).numbers["output['mean']"]
    array([2.5])
    """
    found = Apart()
    if isinstance(output, BaseException):
        found.raised = True
        found.facts[WHOLE] = "timed out" if isinstance(output, RunTimedOut) else f"raised {type(output).__name__}"
    else:
        for path, value in _walk(WHOLE, output, found, 0):
            found.numbers[path] = value
    return found


def _walk(path: str, value: Any, found: Apart, depth: int) -> Iterator[tuple[str, Reals]]:
    if len(found.facts) > MOST_PARTS or depth > 32:
        return
    if home_of(value) in ("pandas", "polars"):
        value = value.to_dict("list") if hasattr(value, "iloc") and hasattr(value, "columns") else _columns(value)
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    elif hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "f":
        found.roughness = max(found.roughness, float(np.finfo(value.dtype).eps))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        found.facts[f"the shape of {path}"] = f"{value.dtype.kind}{value.shape}"
        yield path, np.asarray(value.real if value.dtype.kind == "c" else value, float).ravel()
    elif isinstance(value, Mapping):
        found.facts[f"the type of {path}"] = type(value).__name__
        for key, each in value.items():
            found.facts[f"the key {key!r} of {path}"] = "there"
            yield from _walk(f"{path}[{key!r}]", each, found, depth + 1)
    elif isinstance(value, list | tuple | np.ndarray):
        found.facts[f"the type of {path}"] = type(value).__name__
        found.facts[f"the length of {path}"] = str(len(value))
        if len(value) > 1 and isinstance(value, list) and set(map(type, value)) <= {float, int}:
            try:
                yield path, np.array(value, float)
                return
            except OverflowError:
                pass
        for place, each in enumerate(value):
            yield from _walk(f"{path}[{place}]", each, found, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found.facts[f"the type of {path}"] = type(value).__name__
        try:
            yield path, np.array([float(value)])
        except OverflowError:
            found.facts[path] = str(value)
    elif isinstance(value, set | frozenset):
        for each in value:
            found.facts[f"the member {each!r:.200} of {path}"] = "there"
    else:
        kind = PLAIN.get(type(value), type(value).__name__)
        found.facts[f"the type of {path}"] = kind
        text = repr(value) if type(value) in PLAIN else ""
        if text and kind != "None":
            found.facts[path] = text


def _columns(value: Any) -> Any:
    return value.to_dict(as_series=False) if hasattr(value, "columns") else value.to_list()


def named(path: str, place: int, size: int) -> str:
    """The name of one number of a block."""
    return path if size == 1 else f"{path}[{place}]"


def shown(value: Any) -> str:
    """A value for people, shortened."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
