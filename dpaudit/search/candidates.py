"""The features that outputs deserve, the simplest first, and the terms of the scores that may be learned on them."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.events.bits import (
    ROUNDED,
    ZERO,
    BitScore,
    FirstBit,
    LinePart,
    LowestBit,
    OnGrid,
    TrailingZeros,
    bits_of,
    exponents,
)
from dpaudit.events.features import Coordinate, Feature, Shape, Whole, single
from dpaudit.events.grammar import DECIMALS, Expression
from dpaudit.events.joint import Distinct, Equal, FirstOf, Present, ordered
from dpaudit.events.scores import Binning, Linear, Part
from dpaudit.outputs.canonical import NOT_A_NUMBER, TYPE, Column, Outputs, Path, Pilot, derived, is_metadata
from dpaudit.search.binning import Tables, atoms_of, binning
from dpaudit.search.entries import coordinates_of, varies
from dpaudit.search.learning import alike, cells_of, chain_of, dense

GRIDS = 8  # coordinates whose numbers may lie on a grid
ALL_PAIRS = 6  # up to this many coordinates, every difference and equality; beyond, neighbours only
RECURRING = 2  # times that an output is seen on average where outputs count as recurring
FEW_VALUES = 32
FEWEST_STEPS = 3  # coordinates from which steps say more than differences do
MOST_SHAPES = 256  # different ones on the pilot
FAR = 1e4  # a centre more spreads than this from 0 is taken off before rounding
SHOWN_TOKENS = 4  # values that "position of the first" is tried for


def features_of(both: Outputs, paths: Sequence[Path] | None = None) -> Iterator[Feature]:
    """Every feature that outputs like these deserve, the simplest first; of these paths alone where there are some."""
    paths = sorted(both.columns, key=repr) if paths is None else paths
    varying = [path for path in paths if varies(both.column(path))]
    for path in varying:
        yield Coordinate(path, _centre(both.column(path)))
    for path in varying[:GRIDS]:
        yield from residues_of(both, path)
    every = coordinates_of(both)
    places = _of_these(every, paths)
    if len(places) >= 2:
        yield from _vector_features(both, places)
    if len(every) > len(places) and len(numeric := _numeric(both, every)) >= 2:
        yield from (Expression(word, numeric) for word in ("sum", "min", "max"))
    if len(places) >= 2 and (shape := _shape(both, places)) is not None:
        yield shape
    varying = [path for path in varying if not derived(path) and (path == (TYPE,) or not is_metadata(path))]
    if not both.complete or (len(varying) == 1 and len(places) < 2):
        return
    if len(np.unique(Whole().column(both).tokens)) * RECURRING <= both.runs:
        yield Whole()


def _vector_features(both: Outputs, places: list[Path]) -> Iterator[Feature]:
    numeric = _numeric(both, places)
    paths = tuple(places)
    if any(both.column(path).codes is not None for path in places):
        yield Present(paths)
    yield from _first_positions(both, paths)
    pairs = list(itertools.combinations(paths, 2)) if len(paths) <= ALL_PAIRS else list(itertools.pairwise(paths))
    for left, right in pairs:
        yield Equal(left, right)
    if len(paths) > 2 and varies(Distinct(paths).column(both)):
        yield Distinct(paths)
    if len(numeric) < 2:
        return
    yield from (Expression(word, numeric) for word in ("sum", "argmax", "argmin"))
    yield from _ordered(both, numeric)
    numbers = set(numeric)
    for left, right in pairs:
        if left in numbers and right in numbers:
            yield Expression("minus", (left, right))


def _ordered(both: Outputs, numeric: tuple[Path, ...]) -> Iterator[Feature]:
    """Ranks, and how many lie above the middle of them all."""
    ranks = range(len(numeric)) if len(numeric) <= ALL_PAIRS else (0, 1, 2, len(numeric) // 2, -3, -2, -1)
    yield from (ordered(numeric, rank if rank != len(numeric) - 1 else -1) for rank in ranks)
    if _spread_out(both, numeric):
        numbers = both.numbers(numeric)
        middle = single(np.quantile(numbers[np.isfinite(numbers)], [0.5]))
        yield Expression("sum", (Expression("above", numeric, (float(middle[0]),)),))


def _first_positions(both: Outputs, paths: tuple[Path, ...]) -> Iterator[Feature]:
    """The first entry of each kind that recurs: a token, a number, a repeated value."""
    columns = [both.column(path) for path in paths]
    tokens = np.concatenate([column.tokens for column in columns])
    codes, times = np.unique(tokens[tokens != 0], return_counts=True)
    for code in codes[np.argsort(-times, kind="stable")][:SHOWN_TOKENS]:
        yield FirstOf(paths, code=int(code), label=both.labels.get(int(code), "nan"))
    if len(codes) and np.any(tokens == 0):
        yield FirstOf(paths)
    values = np.concatenate([single(column.values) for column in columns])
    numbers, times = np.unique(values[tokens == 0], return_counts=True)
    if 1 < len(numbers) <= 2 * SHOWN_TOKENS:
        for number in numbers[np.argsort(-times, kind="stable")][:SHOWN_TOKENS]:
            yield FirstOf(paths, number=float(number), label=f"{number:g}")


def _of_these(places: Sequence[Path], paths: Iterable[Path]) -> list[Path]:
    chosen = frozenset(paths)
    return [path for path in places if path in chosen]


def _many_valued(column: Column) -> bool:
    return len(np.unique(column.values[column.tokens == 0])) > FEW_VALUES


def _centre(column: Column) -> float:
    numbers = column.values[column.tokens == 0].astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        return 0.0
    low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    spread = float(high - low) or float(numbers.max() - numbers.min())
    return float(middle) if 0.0 < spread < abs(float(middle)) / FAR else 0.0


def terms_of(
    both: Outputs, paths: Sequence[Path] | None = None, beside: Sequence[Expression] = ()
) -> tuple[Tables, ...]:
    """The terms of log-ratio scores: of all entries at these paths that vary, and of the steps between numbers.

    Those of entries are also tried beside some expressions of several.
    """
    places = [path for path in _of_these(coordinates_of(both), paths or both.columns) if varies(both.column(path))]
    if len(places) < 2 or both.runs < 4:
        return ()
    coordinates = [Coordinate(path, _centre(both.column(path))) for path in places]
    groups: list[Sequence[Part]] = [coordinates]
    numeric = _numeric(both, places)
    if len(numeric) == len(places) >= FEWEST_STEPS and _spread_out(both, numeric):
        groups.append([coordinates[0], *(Expression("minus", pair[::-1]) for pair in itertools.pairwise(numeric))])
    if beside:
        groups.append([*coordinates, *beside])
    spread = [each for each in coordinates if _many_valued(each.column(both))]
    if (shape := _shape(both, places)) is not None:
        groups.append([shape, *spread])
    tables = [cells_of(group, both) for group in groups]
    if len({bins for _, bins in tables[0].features}) > 1 and len(coordinates) >= FEWEST_STEPS:
        tables.append(alike(coordinates, both))
    chain = chain_of(coordinates, both)
    return (*tables, *(() if chain is None else (chain,)))


def _shape(both: Outputs, places: Sequence[Path]) -> Shape | None:
    """The shape of the outputs, where it varies and there are numbers for it to leave out; None where it does not."""
    places = [path for path in places if not derived(path)]
    atoms = set()
    for path in _numeric(both, places):
        column = both.column(path)
        numbers = np.sort(single(column.values[column.tokens == 0]))
        atoms |= set((atoms_of(numbers) if _many_valued(column) else np.unique(numbers)).tolist())
    if not _spread_out(both, places) or len(atoms) > FEW_VALUES:
        return None
    shape = Shape(tuple(places), tuple(sorted(atoms)))
    return shape if 1 < len(np.unique(shape.column(both).tokens)) <= MOST_SHAPES else None


def lines_of(pilot: Pilot, both: Outputs) -> tuple[Linear, ...]:
    """Direction scores over all numbers that vary."""
    numeric = _numeric(both, coordinates_of(both))
    if len(numeric) < 2 or not _spread_out(both, numeric):
        return ()  # where each coordinate has few values, their log ratios say all that a line could
    return dense(pilot.first, pilot.second, numeric)


def _numeric(both: Outputs, places: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(path for path in places if np.any(both.column(path).tokens == 0))


def _spread_out(both: Outputs, paths: Sequence[Path]) -> bool:
    """Whether some coordinate has many values."""
    return any(_many_valued(both.column(path)) for path in paths)


# which grids a column's numbers may lie on: moduli whose residues recur on the pilot, and how many decimals they have
# Numbers of a continuous law have no recurring residue, so none of this is tried for them.


WHOLE = (*(float(each) for each in range(2, 13)), 16.0, 60.0, 64.0, 100.0)
PARTS = (1.0, *(10.0**-place for place in range(1, 7)))
FEW = 64  # different numbers have a cell each, and residues say no more
RECURS = 0.01  # of the numbers have one residue, or one number of decimals
LOOKED_AT = 1 << 12  # outputs


def residues_of(both: Outputs, path: Path) -> Iterator[Expression]:
    """The residues, and the number of decimals, that outputs like these deserve at a path."""
    rows = np.linspace(0, both.runs - 1, min(both.runs, LOOKED_AT)).astype(np.intp)
    column = both.column(path).take(rows)
    values = column.values[column.tokens == 0]
    if len(np.unique(values)) <= FEW:
        return
    look = Outputs(len(rows), {path: column})
    places = _recurring(Expression("decimals", (path,)), look)
    if places == [DECIMALS + 1.0]:
        moduli: tuple[float, ...] = PARTS  # an unrounded number may have been moved by rounded noise
    else:
        moduli = (*WHOLE, *PARTS) if 0.0 in places else PARTS
    if len(places) > 1:
        yield Expression("decimals", (path,))
    seen: list[list[float]] = []
    for modulus in moduli:
        residues = _recurring(Expression("modulo", (path,), (modulus,)), look)
        if len(residues) > 1 and residues not in seen:
            yield Expression("modulo", (path,), (modulus,))
            seen.append(residues)


def _recurring(feature: Expression, look: Outputs) -> list[float]:
    column = feature.column(look)
    values, times = np.unique(column.values[column.tokens == 0], return_counts=True)
    return [float(value) for value in values[times > max(2.0, RECURS * look.runs)]]


MOST = 16  # coordinates of an output that are looked at
SEGMENTS = 16  # of equal mass, cut again at powers of two
FEWEST, SURE_Z, TINY, RIDGE = 256, 3.5, 1e-9, 0.01  # numbers, deviations and a difference that teach a bit's weight


def bit_features(both: Outputs) -> Iterator[Feature]:
    """The features on bits that the outputs of a pilot deserve; none for text, integers, or whole numbers."""
    finite = ((path, _finite(both.column(path))) for path in sorted(both.columns, key=repr))
    places = [path for path, numbers in finite if np.any(numbers != np.rint(numbers))][:MOST]
    for path in places:
        yield LowestBit((path,))
        numbers = _finite(both.column(path))
        first, last = exponents(numbers)
        there = last != ZERO
        yield TrailingZeros(path, _edges(numbers), int(np.max(first[there] - last[there])) + 1)
        for step in _steps(numbers):
            yield OnGrid(path, step)
    if len(places) > 1:
        yield LowestBit(tuple(places))


def bit_score(first: Outputs, second: Outputs, path: Path) -> BitScore | None:
    """The direction in which the 64 bits of a number part the sides (Fisher 1936); None where no bit does by itself."""
    sides = [np.array([*bits_of(_finite(each.column(path)))], np.float64) for each in (first, second)]
    if min(side.shape[1] for side in sides) < FEWEST:
        return None
    means, lucks = zip(*((side.mean(axis=1), np.cov(side) / side.shape[1]) for side in sides), strict=True)
    apart, luck = means[0] - means[1], lucks[0] + lucks[1]
    apart[np.abs(apart) < SURE_Z * np.sqrt(luck.diagonal()) + TINY] = 0.0
    weights = np.linalg.solve(luck + RIDGE * np.eye(len(luck)) * luck.diagonal().max(), apart)
    return BitScore(path, tuple((weights / np.abs(weights).max()).tolist())) if apart.any() else None


def without_bits(feature: Feature) -> Feature | None:
    """What is left of a feature once the last bits are taken out of it: the size or place of the number alone."""
    if isinstance(feature, LowestBit):
        return FirstBit(feature.paths)
    if isinstance(feature, BitScore):
        return BitScore(feature.path, (0.0,) * ROUNDED + feature.weights[ROUNDED:])
    return LinePart(feature.path, feature.edges) if isinstance(feature, TrailingZeros) else None


def bit_binning(feature: Feature, both: Outputs) -> Binning:
    """The cells of a feature on bits, each with its label."""
    labels = feature.labels() if isinstance(feature, TrailingZeros) else {}
    return binning(feature.column(both), {**both.labels, **labels, NOT_A_NUMBER.code: "no finite number"})


def _finite(column: Column) -> Reals:
    numbers: Reals = column.values[column.tokens == 0].astype(np.float64)
    return numbers[np.isfinite(numbers)]


def _edges(numbers: Reals) -> tuple[float, ...]:
    """Borders of parts of equal mass, short enough to read, and the powers of two among them."""
    ranks = np.linspace(0.0, 1.0, SEGMENTS + 1)[1:-1]
    cuts = {float(f"{cut:.3g}") for cut in np.quantile(numbers, ranks)}
    inner = np.abs(np.quantile(numbers, [0.001, 0.999]))
    largest = math.frexp(max(float(inner.max()), 1e-300))[1]
    powers = [sign * math.ldexp(1.0, k) for k in range(largest - 6, largest) for sign in (-1.0, 1.0)]
    low, high = float(numbers.min()), float(numbers.max())
    return tuple(sorted(cut for cut in {*cuts, *powers} if low < cut < high))


def _steps(numbers: Reals) -> Iterator[float]:
    """The step of a grid that the numbers lie on, but for rounding; none where they do not recur on one.

    Powers of two are left out: there the last set bit says all.
    """
    scale = float(np.max(np.abs(numbers)))
    if scale == 0.0 or not math.isfinite(scale * 1e9):
        return
    gaps = np.diff(np.unique(numbers))
    gaps = gaps[gaps > 1e-9 * scale]
    if len(gaps) == 0 or 2 * (len(gaps) + 1) > len(numbers):
        return
    least = float(gaps.min())
    with np.errstate(over="ignore"):
        offsets = numbers / least - np.rint(numbers / least)
    if float(np.max(np.abs(offsets))) > 1e-3:
        return
    for step in dict.fromkeys((float(f"{least:.9g}"), least)):
        if math.frexp(step)[0] != 0.5:
            yield step
