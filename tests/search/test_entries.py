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


def scaled(rng: Rng, leaks: bool) -> np.ndarray:
    numbers = rng.laplace(size=(RUNS, WIDTH))
    numbers[:, PLACE] *= 0.5 if leaks else 1.0
    return numbers


def shifted(rng: Rng, leaks: bool) -> np.ndarray:
    numbers = rng.standard_cauchy(size=(RUNS, WIDTH))
    numbers[:, PLACE] += 0.5 * leaks
    return numbers


def rare(rng: Rng, leaks: bool) -> np.ndarray:
    """An exact answer in one run of a hundred, inside the range."""
    numbers = rng.laplace(size=(RUNS, WIDTH))
    numbers[rng.random(RUNS) < 0.01, PLACE] = 0.5 + leaks
    return numbers


def tail(rng: Rng, leaks: bool) -> np.ndarray:
    numbers = rng.normal(size=(RUNS, WIDTH))
    numbers[rng.random(RUNS) < (0.02 if leaks else 0.001), PLACE] += 8.0
    return numbers


def far(rng: Rng, leaks: bool) -> np.ndarray:
    """Values whose spread single precision does not see."""
    numbers = rng.normal(size=(RUNS, WIDTH))
    numbers[:, PLACE] = 1e9 + rng.normal(size=RUNS) + leaks
    return numbers


def missing(rng: Rng, leaks: bool) -> np.ndarray:
    numbers = rng.normal(size=(RUNS, WIDTH))
    numbers[rng.random(RUNS) < (0.1 if leaks else 0.05), PLACE] = np.nan
    return numbers


def counted(rng: Rng, leaks: bool) -> np.ndarray:
    numbers = rng.integers(0, 2, (RUNS, WIDTH)).astype(float)
    numbers[:, PLACE] = rng.random(RUNS) < (0.6 if leaks else 0.5)
    return numbers


@pytest.mark.long
@for_each("leak", [scaled, shifted, rare, tail, far, missing, counted], ids=lambda leak: leak.__name__)
def test_an_entry_that_leaks_stands_out_of_all_others(leak: object) -> None:
    """It is the first of all, beyond what luck gives any statistic once in a million times."""
    rng = np.random.default_rng(11)
    pilot = pilot_of(leak(rng, False), leak(rng, True))  # type: ignore[operator]
    z = screened(pilot, [(place,) for place in range(WIDTH)])
    assert int(np.argmax(z)) == PLACE
    assert z[PLACE] > 5.0


@pytest.mark.long
@for_each("leak", [scaled, shifted, rare, tail, far, missing, counted], ids=lambda leak: leak.__name__)
def test_luck_alone_is_small(leak: object) -> None:
    """Equal sides: 200 entries with some 70 statistics each, none beyond 6.5 but once in a million times."""
    rng = np.random.default_rng(12)
    pilot = pilot_of(leak(rng, True), leak(rng, True))  # type: ignore[operator]
    assert screened(pilot, [(place,) for place in range(WIDTH)]).max() < 6.5


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


@pytest.mark.parametrize("runs", [(0, 0), (1, 5), (2, 2), (40, 3)])
def test_few_runs_are_screened_too(runs: tuple[int, int]) -> None:
    rng = np.random.default_rng(16)
    pilot = pilot_of(*(rng.normal(size=(count, 100)) for count in runs))
    assert len(best(pilot, [(place,) for place in range(100)], 10)) == 10
    assert np.isfinite(screened(pilot, [(place,) for place in range(100)])).all()
