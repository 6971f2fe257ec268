"""How tokens are printed: those of the outputs, and whole outputs as they are written."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpaudit.events.cells import Binning
from dpaudit.events.features.column import Feature, single
from dpaudit.events.features.plain import Coordinate, Shape, Whole
from dpaudit.events.search.binning import binning
from dpaudit.events.search.entries import MOST, coordinates_of
from dpaudit.outputs import Column, Outputs, Path, derived

LONGEST_VALUE = 120


def binning_of(feature: Feature, both: Outputs) -> Binning:
    """The cells of a feature, chosen on these outputs."""
    exact = both.column(feature.path).values if isinstance(feature, Coordinate) else None
    return binning(feature.column(both), labels_of(feature, both), exact)


def labels_of(feature: Feature, both: Outputs) -> dict[int, str]:
    """How the tokens of a feature are printed: those of the outputs, whole outputs and shapes as they are written."""
    if not isinstance(feature, Whole | Shape):
        return dict(both.labels)
    codes, rows = np.unique(feature.column(both).tokens, return_index=True)
    places = [path for path in coordinates_of(both) if not derived(path)][:MOST]
    columns = {path: both.column(path) for path in places or [()]}
    if () in both.columns:
        columns[()] = both.column(())
    kept = None if isinstance(feature, Whole) else frozenset(feature.values)
    return {
        int(code): _written(int(row), columns, both.labels, kept)
        for code, row in zip(codes[:512], rows[:512], strict=True)
    }


def _written(row: int, columns: dict[Path, Column], labels: Mapping[int, str], kept: frozenset[float] | None) -> str:
    """One output; of a shape only the numbers that are `kept` as they are."""
    parts = []
    for path, column in columns.items():
        code = int(column.tokens[row])
        text = f"{column.values[row]:g}" if code == 0 else labels.get(code, "nan")
        if code == 0 and kept is not None and float(single(column.values[row : row + 1])[0]) not in kept:
            text = "a number"
        if text != "absent":
            parts.append(
                text if len(path) <= 1 and not isinstance(path[-1] if path else 0, str) else f"{path[-1]}: {text}"
            )
    return ("(" + ", ".join(parts) + ")" if len(parts) != 1 else parts[0])[:LONGEST_VALUE]
