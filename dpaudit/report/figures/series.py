"""Rows of a study in lines: one for each procedure, its audits at each place taken together."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

PARAMETERS = "parameters."
TELLING = ("mechanism", "claim", "pair", "certifier", "selector", "stopping")  # what a procedure may differ in
MOST = 12  # lines that can be told apart
OTHERS = "all others"


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name, and at each place the middle, the least and the largest of its audits, and their number."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    number: tuple[int, ...]


def grouped(
    rows: Sequence[Row],
    x: str | Callable[[Row], float | None],
    y: Callable[[Row], float | None],
    *,
    mean: bool = False,
) -> tuple[Series, ...]:
    """Lines for the rows that differ in what tells a procedure; `mean` takes the mean and no range, as for shares.

    Only what differs among the rows is in a name. Beyond `MOST` lines the smallest ones are left together as one.
    """
    differing = [each for each in TELLING if len({str(row.get(each)) for row in rows}) > 1]
    differing += sorted(
        {key for row in rows for key in row if key.startswith(PARAMETERS)} if len(differing) == 0 else ()
    )
    names = [_name(row, differing) for row in rows]
    sizes: dict[str, int] = {}
    for name in names:
        sizes[name] = sizes.get(name, 0) + 1
    kept = sorted(sizes, key=lambda name: -sizes[name])[: MOST - 1] if len(sizes) > MOST else list(sizes)
    found: dict[str, dict[float, list[float]]] = {}
    for name, row in zip(names, rows, strict=True):
        at = row.get(x) if isinstance(x, str) else x(row)
        value = y(row)
        if at is not None and value is not None:
            places = found.setdefault(name if name in kept else OTHERS, {})
            places.setdefault(float(at), []).append(value)
    return tuple(_series(name, places, mean) for name, places in found.items())


def _series(name: str, places: Mapping[float, Sequence[float]], mean: bool) -> Series:
    ordered = sorted(places)
    values = [places[at] for at in ordered]
    centre = tuple(statistics.fmean(each) if mean else middle(each) for each in values)
    low = centre if mean else tuple(min(each) for each in values)
    high = centre if mean else tuple(max(each) for each in values)
    return Series(name, tuple(ordered), centre, low, high, tuple(len(each) for each in values))


def middle(values: Sequence[float]) -> float:
    """The median, the lower of two: a number that an audit has certified, and no mean of two of them.

    >>> middle([3.0, 1.0, 2.0, 10.0])
    2.0
    """
    return statistics.median_low(values)


def named(row: Row) -> str:
    """The mechanism with its parameters, and the claim."""
    values = [
        f"{key.removeprefix(PARAMETERS)}={row[key]}"
        for key in row
        if key.startswith(PARAMETERS) and row[key] is not None
    ]
    name = str(row.get("mechanism") or "mechanism")
    return f"{name}({', '.join(values)})" if values else name


def _name(row: Row, differing: Sequence[str]) -> str:
    parts = [
        f"{key.removeprefix(PARAMETERS)} {row.get(key)}" if key.startswith(PARAMETERS) else str(row.get(key))
        for key in differing
    ]
    return ", ".join(parts) or str(row.get("mechanism") or "audits")
