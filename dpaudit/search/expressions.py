"""The expressions that outputs deserve: enumerated by the grammar, and screened by what they show on a glance.

Words are said of numbers up to a depth of three. Products of any two columns (entries, bits, orders of two) are
screened all at once, by how far their means on the two sides are apart. Every other expression falls into a few cells,
whose chi-square says whether it parts the sides (Pearson 1900). An expression is a feature only where it does so by
more than luck, among as many as were tried, and better than every plain feature.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Reals
from dpaudit.events.features import Coordinate, Feature
from dpaudit.events.grammar import LARGEST, Expression
from dpaudit.outputs.canonical import LENGTH, Column, Outputs, Path, Pilot, is_metadata
from dpaudit.search.entries import coordinates_of
from dpaudit.search.learning import inner

MOST = 4  # expressions that become features
ALONE, TOGETHER = 8, 64  # entries of which each has expressions of its own, and of which pairs are looked at
PAIRS = 6  # entries up to which every two of them are put in an order
LAGS, DEEPEST = 8, 40  # places between entries, and bits of an integer
FEW = 64  # different values that have cells of their own, and say all
LEVELS = np.array([1, 4, *range(8, 128, 8), 124, 127]) / 128  # parts of the mass, at which cells end
GROUPS = 20  # parts of equal mass of a feature that has more cells than `FEW`
LOOKED_AT, FEWEST = 1 << 10, 10  # outputs that cells are chosen by, and outputs of a cell
SURE_Z, AHEAD = 2.0, 1.05  # deviations beyond the luckiest of all that were tried, and so many times the best plain one
PART, HINT_Z, NEAR = 4, 1.0, 0.4  # one output of so many hints at what all show: so many deviations, of the best a part
CLOSELY = 8  # products that are looked at as features
APART, CLIPPED = 0.25, 3.0  # spreads that a middle is from 0 before it is taken off, and that a number may count
Part = Path | Expression


@np.errstate(all="ignore")  # of infinities nothing is known
def expressions_of(pilot: Pilot, paths: Sequence[Path], most: float) -> list[Feature]:
    """The expressions of the numbers at these paths that part the sides of a pilot best, by more than `most`."""
    if min(pilot.first.runs, pilot.second.runs) < PART * FEWEST:
        return []
    both, second = pilot.both, np.repeat([False, True], [pilot.first.runs, pilot.second.runs])
    rows = np.arange(0, both.runs, PART)
    some, sides = both.take(rows), second[rows]
    places = [path for path in paths if not (is_metadata(path) or path[-1:] == (LENGTH,))]
    columns = {path: both.column(path).values.astype(np.float64) for path in places}
    mostly = [path for path, each in columns.items() if np.isfinite(each).mean() > 0.5]
    columns = {path: columns[path] for path in mostly if np.nanmin(columns[path]) < np.nanmax(columns[path])}
    centred = {path: _centred(path, each[rows]) for path, each in columns.items()}
    entries = [path for path in coordinates_of(both) if path in columns]
    asked = [each for path in list(columns)[:ALONE] for each in _of_one(path, columns[path], centred[path])]
    asked += _of_several({path: columns[path] for path in entries}, centred) if len(entries) > 1 else ()
    hinted = [each for each in asked if _apart(each.column(some), sides) > max(HINT_Z, NEAR * most)]
    together = {path: columns[path] for path in entries[:TOGETHER] or list(columns)[:1]}
    pairs, tried = _products(together, centred, both, second)
    sure = max(AHEAD * most, math.sqrt(2.0 * math.log(len(asked) + tried + 1.0)) + SURE_Z)
    found = [(_apart(each.column(both), second), -place, each) for place, each in enumerate([*hinted, *pairs])]
    best: dict[float, Feature] = {}  # one of those that show the same
    for z, _, each in sorted(found, key=lambda one: (round(one[0], 6), one[1]), reverse=True):
        best.setdefault(round(z, 6), each)
    return [each for z, each in best.items() if z > sure][:MOST]


def _some(numbers: Reals, most: int) -> Reals:
    """About so many, of both sides."""
    return numbers[:: -(-len(numbers) // most) or 1]


def _centred(path: Path, numbers: Reals) -> Part:
    """Numbers less their middle; as they are where they lie about 0 already."""
    few = np.unique(_some(numbers[np.isfinite(numbers)], LOOKED_AT))
    low, middle, high = np.nanquantile(few if len(few) < 3 else numbers, [0.25, 0.5, 0.75])
    return path if abs(middle) <= APART * (high - low) else Expression("less", (path,), (float(np.float32(middle)),))


def _is_whole(numbers: Reals) -> bool:
    known = numbers[np.isfinite(numbers)]
    return bool(np.all(known == np.rint(known)) and np.abs(known).max() < LARGEST)


def _bits(path: Path, numbers: Reals) -> list[Expression]:
    """The bits of an integer, none where each of its values has a cell of its own."""
    if not _is_whole(numbers) or len(np.unique(numbers)) <= FEW:
        return []
    size = math.frexp(float(np.nanmax(np.abs(numbers))))[1]
    return [Expression("bit", (path,), (float(bit),)) for bit in range(min(DEEPEST, size))]


def _of_one(path: Path, numbers: Reals, centred: Part) -> Iterator[Expression]:
    """Expressions of one number: of an integer its bits and digits, of any its size and its leading digits."""
    if len(np.unique(_some(numbers, LOOKED_AT))) <= FEW:
        return
    if bits := _bits(path, numbers):
        yield from bits
        for word in ("bits", "digits"):
            yield Expression(word, (path,))
            yield from (Expression("modulo", (Expression(word, (path,)),), (by,)) for by in (2.0, 3.0))
        places = len(f"{np.nanmax(np.abs(numbers)):.0f}")
        yield from (Expression("digit", (path,), (float(place),)) for place in range(1, places))
    yield Expression("abs", (centred,))
    yield from (Expression(word, (path,)) for word in ("leading", "significand"))


def _of_several(columns: Mapping[Path, Reals], centred: Mapping[Path, Part]) -> Iterator[Expression]:
    """Expressions of several entries: words of entries or of rows, and then one that combines."""
    paths, numbers = tuple(columns), list(columns.values())
    middles = tuple(part.by[0] if isinstance(part := centred[path], Expression) else 0.0 for path in paths)
    of: tuple[Part, ...] = (Expression("less", paths, middles),) if any(middles) else paths
    some = np.concatenate([_some(each, FEW) for each in numbers])
    values, times = np.unique(some[np.isfinite(some)], return_counts=True)
    changes = Expression("changes", paths)
    maps = [changes, Expression("abs", of), *(Expression(word, (changes,)) for word in ("abs", "sign"))]
    if times.max(initial=0) > FEWEST:
        maps += [Expression("equal", paths, (float(values[times.argmax()]),)), Expression("equal", (changes,), (0.0,))]
    if all(map(_is_whole, numbers)):
        maps.append(Expression("modulo", paths, (2.0,)))
        yield Expression("modulo", (Expression("sum", paths),), (2.0,))
    yield from (Expression(word, paths) for word in ("lead", "longest"))
    yield from (Expression(word, (each,)) for each in maps for word in ("sum", "max", "min", "argmax", "longest"))
    lags = [Expression("lag", of, (float(lag),)) for lag in range(1, min(LAGS, len(paths) - 1) + 1)]
    yield from (Expression("sum", (each,)) for each in (Expression("square", of), *lags))
    yield from (Expression("rank", (path, *(each for each in paths if each != path))) for path in paths[: 2 * ALONE])
    pairs = itertools.permutations(paths, 2) if len(paths) <= PAIRS else itertools.pairwise(paths)
    yield from (Expression("over", pair) for pair in pairs)


def _products(
    columns: Mapping[Path, Reals], centred: Mapping[Path, Part], both: Outputs, second: Bools
) -> tuple[list[Expression], int]:
    """The products of two columns whose means on the sides are farthest apart, and how many there were.

    Columns are the entries, centred; the bits of a few integers; and the orders of every two of a few entries.
    """
    entries = list(columns)
    parts = [part if isinstance(part := centred[path], Expression) else Coordinate(part) for path in entries]
    parts += (bit for path in entries[:PAIRS] for bit in _bits(path, columns[path]))
    bits = range(len(entries), len(parts))
    pairs = itertools.combinations(entries, 2) if len(entries) <= PAIRS else ()
    parts += (Expression("sign", (Expression("minus", pair),)) for pair in pairs)
    if len(parts) < 2:
        return [], 0
    numbers = [part.column(both).values.astype(np.float64) for part in parts]
    units = [np.nan_to_num(each / (np.nanmedian(np.abs(each)) or 1.0), posinf=0.0, neginf=0.0) for each in numbers]
    matrix = np.clip(np.array(units, np.float32), -CLIPPED, CLIPPED)
    matrix -= matrix.mean(axis=1, keepdims=True)
    difference, luck = np.zeros((2, len(parts), len(parts)))
    for sign, side in ((1.0, matrix[:, ~second]), (-1.0, matrix[:, second])):
        mean = inner(side) / side.shape[1]
        difference += sign * mean
        luck += (inner(side**2) / side.shape[1] - mean**2) / side.shape[1]
    apart = np.triu(np.nan_to_num(np.abs(difference) / np.sqrt(luck)), 1)
    best = [divmod(int(place), len(parts)) for place in np.argsort(-apart, axis=None)[:CLOSELY]]
    of = [part.path if isinstance(part, Coordinate) else part for part in parts]
    found = [
        Expression("xor" if one in bits and other in bits else "times", (of[one], of[other]))
        for one, other in best
        if apart[one, other] > SURE_Z
    ]
    return found, len(parts) ** 2 // 2


def _apart(column: Column, second: Bools) -> float:
    """How far a column parts the sides, its numbers in cells of about equal mass and those that are none together."""
    numbers = np.where(np.isnan(column.values), np.inf, column.values)
    some = np.sort(numbers[:: max(1, len(numbers) // LOOKED_AT)])
    edges = np.unique(some)
    if len(edges) > FEW:
        edges = np.unique(some[(LEVELS * (len(some) - 1)).astype(np.intp)])
    cells = 2 * np.searchsorted(edges, numbers) + second
    return parted(np.bincount(cells, minlength=2 * len(edges) + 2).reshape(-1, 2))


def parted(table: Integers) -> float:
    """How far counts int64[cells, sides] are apart, in deviations of luck: a signed root (Cramér 1938)."""
    share = np.cumsum(table.sum(axis=1)) / max(1, int(table.sum()))
    groups = np.ceil(share * GROUPS) if len(table) > FEW else np.arange(len(table))
    starts = np.flatnonzero(np.diff(groups, prepend=-1.0))
    cells = np.add.reduceat(table, starts, axis=0).astype(np.float64)
    often = cells.sum(axis=1) >= FEWEST
    cells = np.concatenate([cells[often], cells[~often].sum(axis=0, keepdims=True)])
    cells = cells[cells.sum(axis=1) > 0.0]
    free = len(cells) - 1
    if free < 1 or not cells.sum(axis=0).all():
        return 0.0
    expected = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0) / cells.sum()
    chi = max(1e-9, float(((cells - expected) ** 2 / expected).sum()))
    return math.copysign(math.sqrt(max(0.0, chi - free - free * math.log(chi / free))), chi - free)
