"""Entries of wide outputs are screened by statistics whose law without a leak is known; those that leak are found."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.outputs.encode import encode_batch, encode_objects
from dpaudit.search.entries import MOST, best, coordinates_of, looked_at, screened, unpaired
from tests.cases import for_each

Rng = np.random.Generator
WIDTH, RUNS, PLACE = 200, 4_000, 137


def pilot_of(first: np.ndarray, second: np.ndarray) -> Pilot:
    return Pilot(encode_batch(first, len(first)), encode_batch(second, len(second)))


def side_of(kind: str, rng: Rng, leaks: bool) -> np.ndarray:
    """A side whose entry at `PLACE` leaks by its scale, its place, what is rare in it and the like."""
    numbers = rng.standard_cauchy((RUNS, WIDTH)) if kind == "shifted" else rng.normal(size=(RUNS, WIDTH))
    entry, luck = numbers[:, PLACE], rng.random(RUNS)
    if kind == "scaled":
        entry *= 0.88 if leaks else 1.0  # which squares of normal scores see, and no part of the ranks
    elif kind == "shifted":
        entry += 0.5 * leaks
    elif kind == "rare":  # an exact answer in one run of a hundred, inside the range
        entry[luck < 0.01] = 0.5 + leaks
    elif kind == "tail":
        entry[luck < (0.02 if leaks else 0.001)] += 8.0
    elif kind == "far":  # values whose spread single precision does not see
        entry += 1e9 + leaks
    elif kind == "missing":
        entry[luck < (0.1 if leaks else 0.05)] = np.nan
    else:
        numbers = rng.integers(0, 2, (RUNS, WIDTH)).astype(float)
        numbers[:, PLACE] = luck < (0.6 if leaks else 0.5)
    return numbers


PATHS = [(place,) for place in range(WIDTH)]


@pytest.mark.long
@for_each("kind", ["scaled", "shifted", "rare", "far", "missing"], nightly=["tail", "counted"])
def test_an_entry_that_leaks_stands_out_of_all_others_and_luck_alone_is_small(kind: str) -> None:
    """It is the first of all, beyond what luck gives any statistic once in a million times.

    Equal sides: 200 entries with some 70 statistics each, none beyond 6.5 but once in a million times.
    """
    rng = np.random.default_rng(11)
    same, other, leaking = (side_of(kind, rng, leaks) for leaks in (False, False, True))
    z = screened(pilot_of(same, leaking), PATHS)
    assert int(np.argmax(z)) == PLACE
    assert z[PLACE] > 5.0
    assert screened(pilot_of(same, other), PATHS).max() < 6.5


def test_tokens_and_presence_are_screened_beside_numbers() -> None:
    rng = np.random.default_rng(13)

    def side(leaks: bool) -> Outputs:
        rows = []
        for _ in range(600):
            row = [float(each) for each in rng.normal(size=100)]
            mixed: list[object] = [*row]
            mixed[50] = "yes" if rng.random() < (0.6 if leaks else 0.3) else "no"
            mixed[70] = row[70] if rng.random() < (0.5 if leaks else 0.9) else None
            rows.append(mixed)
        return encode_objects(rows)

    z = screened(Pilot(side(False), side(True)), [(place,) for place in range(100)])
    assert set(np.argsort(-z)[:2].tolist()) == {50, 70}


def test_the_order_of_the_sides_and_of_the_entries_makes_no_difference() -> None:
    rng = np.random.default_rng(14)
    first, second = rng.normal(size=(300, 90)), rng.normal(size=(400, 90))
    paths = [(place,) for place in range(90)]
    found = screened(pilot_of(first, second), paths)
    np.testing.assert_array_equal(screened(pilot_of(first, second), paths[::-1])[::-1], found)
    turned = screened(pilot_of(-second, -first), paths)
    assert np.corrcoef(found, turned)[0, 1] > 0.9  # ranks from the other end: the cuts are not quite the same


def test_few_entries_are_all_looked_at_and_of_many_the_best() -> None:
    rng = np.random.default_rng(15)
    for width in (3, MOST, MOST + 1, 300):
        first, second = rng.normal(size=(200, width)), rng.normal(size=(200, width))
        second[:, -1] += 3.0
        pilot = pilot_of(first, second)
        both = pilot.both
        places = [path for path in looked_at(pilot, both) if path != ("@len",)]
        assert len(places) == min(width, MOST)
        assert (width - 1,) in places
        assert places == sorted(places, key=repr)
        assert len(coordinates_of(both)) == width
        assert unpaired(both) == max(0, width - MOST)


@for_each("runs", [(0, 0), (1, 5), (40, 3)])
def test_few_runs_are_screened_too(runs: tuple[int, int]) -> None:
    rng = np.random.default_rng(16)
    pilot = pilot_of(*(rng.normal(size=(count, 100)) for count in runs))
    assert len(best(pilot, [(place,) for place in range(100)], 10)) == 10
    assert np.isfinite(screened(pilot, [(place,) for place in range(100)])).all()
