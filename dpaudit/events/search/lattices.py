"""Which grids a column's numbers may lie on: moduli whose residues recur on the pilot, and how many decimals they have.

Numbers of a continuous law recur in no residue that is told, so they are spared all of this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpaudit.events.features import Decimals, Residue
from dpaudit.events.features.residue import DECIMALS
from dpaudit.outputs import Outputs, Path

WHOLE = (*(float(each) for each in range(2, 13)), 16.0, 60.0, 64.0, 100.0)
PARTS = (1.0, *(10.0**-place for place in range(1, 7)))
FEW = 64  # different numbers have a cell each, and residues say no more
RECURS = 0.01  # of the numbers have one residue, or one number of decimals
LOOKED_AT = 1 << 12  # outputs


def residues_of(both: Outputs, path: Path) -> Iterator[Residue | Decimals]:
    """The residues, and the number of decimals, that outputs like these deserve at a path."""
    rows = np.linspace(0, both.runs - 1, min(both.runs, LOOKED_AT)).astype(np.intp)
    column = both.column(path).take(rows)
    values = column.values[column.tokens == 0]
    if len(np.unique(values)) <= FEW:
        return
    look = Outputs(len(rows), {path: column})
    decimals = _recurring(Decimals(path), look)
    if decimals == [DECIMALS + 1.0]:
        moduli: tuple[float, ...] = PARTS  # an unrounded number may have been moved by rounded noise
    else:
        moduli = (*WHOLE, *PARTS) if 0.0 in decimals else PARTS
    if len(decimals) > 1:
        yield Decimals(path)
    seen: list[list[float]] = []
    for modulus in moduli:
        found = _recurring(Residue(path, modulus), look)
        if len(found) > 1 and found not in seen:
            yield Residue(path, modulus)
            seen.append(found)


def _recurring(feature: Residue | Decimals, look: Outputs) -> list[float]:
    column = feature.column(look)
    values, times = np.unique(column.values[column.tokens == 0], return_counts=True)
    return [float(value) for value in values[times > max(2.0, RECURS * look.runs)]]
