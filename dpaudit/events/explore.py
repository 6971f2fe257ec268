"""Which features an output deserves: read off a pilot, never from what the mechanism is called."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpaudit.events.binning import Binning, Tables, binning
from dpaudit.events.features import (
    Coordinate,
    Difference,
    Equal,
    Extreme,
    Feature,
    FirstOf,
    Ordered,
    Present,
    Sum,
    Whole,
    single,
)
from dpaudit.events.goal import Goal
from dpaudit.events.scores import learn_linear, learn_log_ratio
from dpaudit.events.selection import FEW_CELLS, FEW_Z, MANY_CELLS, SOME_Z, Proposal, propose
from dpaudit.sampling.outputs import LENGTH, TYPE, Column, Outputs, Path, Sample, concatenate
from dpaudit.sampling.worker import Pilot

MOST_COORDINATES = 64  # of one output that pairs, ranks and sums are made of
ALL_PAIRS = 6  # up to so many coordinates, every difference and equality; beyond, neighbours only
LEARNED_PRICE, DERIVED_PRICE = 0.02, 0.01  # of the bound: an event that people can read is worth that much
KEPT = 6  # features that the longer search counts, learned scores apart
RECURRING = 2  # times that an output is seen on average where outputs count as recurring
SCREENED = 1 << 13  # outputs on which every feature is tried
FEW_VALUES = 32
FAR = 1e4  # a centre so many spreads from 0 is taken off before rounding
SHOWN_TOKENS = 4  # values that "position of the first" is tried for
LONGEST_VALUE = 120


@dataclass(frozen=True, slots=True)
class Plan:
    """The features that the longer search will count, which of them were learned, and what was looked at."""

    tables: Tables
    learned: tuple[bool, ...]
    looked_at: tuple[tuple[str, float | None], ...]
    left_out: tuple[tuple[str, str], ...]


def plan(pilot: Pilot, goal: Goal, *, keep: int = KEPT) -> Plan:
    """Every feature scored on the pilot, and the best few kept; learned scores are kept unscored."""
    both = concatenate([pilot.first, pilot.second])
    glance = _part_of(pilot, SCREENED)
    look = concatenate([glance.first, glance.second])
    scored: list[tuple[float, Feature]] = []
    for feature in features_of(look):
        found = _on_pilot(feature, binning_of(feature, look), glance, goal)
        scored.append((-np.inf if found is None else goal.rank(found.score, found.delta), feature))
    scored.sort(key=lambda entry: -entry[0])
    # the whole output contains every event there is, so where outputs recur it always gets the longer look
    kept = [
        (feature, binning_of(feature, both))
        for rank, (_, feature) in enumerate(scored)
        if rank < keep or isinstance(feature, Whole)
    ]
    few = any(isinstance(feature, Whole) and len(bins.tokens) <= MANY_CELLS for feature, bins in kept)
    learned, left_out = ([], []) if few else _learned(pilot, both)  # sets of few outputs need no score
    extra = [(feature, binning(feature.column(both), {})) for feature in learned]
    looked_at = [(str(feature), None if score == -np.inf else float(score)) for score, feature in scored]
    return Plan(
        Tables((*kept, *extra)),
        (False,) * len(kept) + (True,) * len(extra),
        (*looked_at, *((str(feature), None) for feature in learned)),
        tuple(left_out),
    )


def pilot_counts(chosen: Plan, pilot: Pilot) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The pilot in the plan's tables; nothing for learned features, which have seen it before."""
    counts = chosen.tables(Sample(pilot.first), Sample(pilot.second))
    for table, learned in zip(chosen.tables.split(counts), chosen.learned, strict=True):
        if learned:
            table[:] = 0
    return counts


def best(chosen: Plan, counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], goal: Goal) -> Proposal | None:
    """The best event of all features counted, less what it costs a reader to be more than a value of the output."""
    tables = chosen.tables.split(counts)
    least_z = FEW_Z if _choices(chosen, tables) <= FEW_CELLS else SOME_Z
    found = [
        (goal.rank(proposal.score, proposal.delta) - price(feature, learned), proposal)
        for (feature, bins), table, learned in zip(chosen.tables.features, tables, chosen.learned, strict=True)
        if (proposal := propose(feature, bins, table, goal, thresholds_only=learned, least_z=least_z)) is not None
    ]
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def _choices(chosen: Plan, tables: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]) -> int:
    """The cells there are to choose among: of all features, or the different outputs where these are counted."""
    filled = [int(np.count_nonzero(table.any(axis=1))) for table in tables]
    whole = [cells for cells, (feature, _) in zip(filled, chosen.tables.features, strict=True) if feature == Whole()]
    return min([sum(filled), *whole])


def price(feature: Feature, learned: bool) -> float:
    """What an event on this feature costs a reader, in units of the bound."""
    if learned:
        return LEARNED_PRICE
    return 0.0 if isinstance(feature, Coordinate | Whole) else DERIVED_PRICE


def everything(pilot: Pilot) -> Proposal:
    """The event of last resort, when nothing was seen often enough: the commonest output of the pilot."""
    both = concatenate([pilot.first, pilot.second])
    bins = binning_of(Whole(), both)
    from dpaudit.events.event import Event

    return Proposal(Event(Whole(), tokens=bins.tokens[:1]), "first", "last resort", 0.0)


def _part_of(pilot: Pilot, runs: int) -> Pilot:
    """About `runs` of the outputs, evenly spread."""
    first, second = (
        side if side.runs <= runs // 2 else side.take(np.linspace(0, side.runs - 1, runs // 2).astype(np.intp))
        for side in (pilot.first, pilot.second)
    )
    return Pilot(first, second)


def _recurs(both: Outputs) -> bool:
    return len(np.unique(Whole().column(both).tokens)) * RECURRING <= both.runs


def _on_pilot(feature: Feature, bins: Binning, pilot: Pilot, goal: Goal) -> Proposal | None:
    counts = np.stack([bins.counts(feature.column(side)) for side in (pilot.first, pilot.second)], axis=1)
    return propose(feature, bins, counts, goal, closely=False, least_z=SOME_Z)


def binning_of(feature: Feature, both: Outputs) -> Binning:
    """The cells of a feature, chosen on these outputs."""
    column = feature.column(both)
    return binning(column, labels_of(feature, both))


# --- the features --------------------------------------------------------------------------------------------


def features_of(both: Outputs) -> Iterator[Feature]:
    """Every feature that outputs like these deserve, the simplest first."""
    varying = [path for path in sorted(both.columns, key=repr) if _varies(both.column(path))]
    for path in varying:
        yield Coordinate(path, _centre(both.column(path)))
    places = _coordinates(both)
    if len(places) >= 2:
        yield from _vector_features(both, places)
    if both.complete and (len(varying) != 1 or len(places) >= 2) and _recurs(both):
        yield Whole()


def _vector_features(both: Outputs, places: list[Path]) -> Iterator[Feature]:
    numeric = tuple(path for path in places if np.any(both.column(path).tokens == 0))
    paths = tuple(places)
    if any(both.column(path).codes is not None for path in places):
        yield Present(paths)
    yield from _first_positions(both, paths)
    pairs = list(itertools.combinations(paths, 2)) if len(paths) <= ALL_PAIRS else list(itertools.pairwise(paths))
    for left, right in pairs:
        yield Equal(left, right)
    if len(numeric) < 2:
        return
    yield Sum(numeric)
    yield Extreme(numeric, greatest=True)
    yield Extreme(numeric, greatest=False)
    ranks = range(len(numeric)) if len(numeric) <= ALL_PAIRS else (0, 1, 2, -3, -2, -1)
    for rank in ranks:
        yield Ordered(numeric, rank if rank != len(numeric) - 1 else -1)
    held = set(numeric)
    for left, right in pairs:
        if left in held and right in held:
            yield Difference(left, right)


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


def _coordinates(both: Outputs) -> list[Path]:
    """The paths that stand for entries of the output, in their own order."""
    places = [path for path in both.columns if path and path[-1] not in (LENGTH, TYPE)]
    places.sort(
        key=lambda path: [(isinstance(step, str), step if isinstance(step, int) else 0, str(step)) for step in path]
    )
    return places[:MOST_COORDINATES]


def _varies(column: Column) -> bool:
    tokens = column.tokens
    if len(tokens) == 0 or np.any(tokens != tokens[0]):
        return len(tokens) > 0
    if tokens[0] != 0:
        return False
    values = column.values
    return bool(np.any(values != values[0]))


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


def _learned(pilot: Pilot, both: Outputs) -> tuple[list[Feature], list[tuple[str, str]]]:
    """Scores over all coordinates that vary; what could not be fitted, and why."""
    places = [path for path in _coordinates(both) if _varies(both.column(path))]
    if len(places) < 2 or min(pilot.first.runs, pilot.second.runs) < 2:
        return [], []
    coordinates = [Coordinate(path, _centre(both.column(path))) for path in places]
    learned: list[Feature] = [learn_log_ratio(pilot.first, pilot.second, coordinates)]
    numeric = [path for path in places if np.any(both.column(path).tokens == 0)]
    if len(numeric) < 2 or not any(_many_valued(both.column(path)) for path in numeric):
        return learned, []  # where each coordinate has few values, their log ratios say all that a line could
    try:
        return [*learned, learn_linear(pilot.first, pilot.second, numeric)], []
    except ImportError:
        return learned, [("logistic score", "scikit-learn is not installed; pip install 'dpaudit[classify]'")]


# --- labels of whole outputs -----------------------------------------------------------------------------------


def labels_of(feature: Feature, both: Outputs) -> dict[int, str]:
    """How the tokens of a feature are printed: those of the outputs, or whole outputs as they are written."""
    return _labels(feature.column(both), both) if isinstance(feature, Whole) else dict(both.labels)


def _labels(column: Column, both: Outputs) -> dict[int, str]:
    codes, rows = np.unique(column.tokens, return_index=True)
    columns = {path: both.column(path) for path in _coordinates(both) or [()]}
    if () in both.columns:
        columns[()] = both.column(())
    return {
        int(code): _written(int(row), columns, both.labels) for code, row in zip(codes[:512], rows[:512], strict=True)
    }


def _written(row: int, columns: dict[Path, Column], labels: object) -> str:
    names = dict(labels)  # type: ignore[call-overload]
    parts = []
    for path, column in columns.items():
        code = int(column.tokens[row])
        text = f"{column.values[row]:g}" if code == 0 else names.get(code, "nan")
        if text != "absent":
            parts.append(
                text if len(path) <= 1 and not isinstance(path[-1] if path else 0, str) else f"{path[-1]}: {text}"
            )
    return ("(" + ", ".join(parts) + ")" if len(parts) != 1 else parts[0])[:LONGEST_VALUE]
