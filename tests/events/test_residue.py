"""Residues and decimals: those of exact arithmetic, the same for one output alone, and blind to the bits of doubles."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.events import Event
from dpaudit.events.grammar import Expression
from dpaudit.events.joint import plain_feature
from dpaudit.outputs.canonical import NOT_A_NUMBER, Outputs, Pilot
from dpaudit.outputs.encode import encode_batch, encode_objects
from dpaudit.search.candidates import residues_of
from dpaudit.search.explore import best, pilot_counts, plan
from dpaudit.search.goal import Goal
from tests.cases import for_each

RNG = np.random.default_rng(7)
NUMBERS = [
    *(round(float(each), places) for places in range(9) for each in RNG.laplace(scale=30.0, size=40)),
    *RNG.laplace(scale=30.0, size=40).tolist(),
    *RNG.integers(-(10**9), 10**9, 40).astype(float).tolist(),
    *(0.0, -0.0, 0.1 + 0.2, -0.3, 1e-9, 59.999999999, 1e17, -1e300, math.inf, -math.inf),
]


def earlier(kind: str, *path: str | int, **fields: float) -> Any:
    """As results of before there was a grammar hold them."""
    return plain_feature({"kind": kind, "path": list(path), **fields})


def residues(numbers: list[float], modulus: float) -> list[float]:
    return earlier("residue", modulus=modulus).column(encode_objects(numbers)).values.tolist()


@for_each("modulus", [2.0, 3.0, 7.0, 60.0, 100.0, 1.0, 0.1, 0.01, 1e-3, 1e-6])
def test_a_residue_is_that_of_exact_fractions(modulus: float) -> None:
    """To a millionth of the modulus, around it as around a circle, wherever it is told."""
    exact = Fraction(str(modulus))
    for number, found in zip(NUMBERS, residues(NUMBERS, modulus), strict=True):
        far = not math.isfinite(number) or abs(Fraction(number)) > 10**8 * exact
        whole = math.isfinite(number) and modulus >= 1.0 and number == int(number) and abs(number) < 2.0**53
        if far and not whole:
            assert found == -1.0
            continue
        assert 0.0 <= found < modulus
        apart = abs(Fraction(number) % exact - Fraction(found))
        assert min(apart, exact - apart) <= exact * Fraction(7, 10**7), (number, found)


def test_decimals_are_those_of_the_shortest_decimal_form() -> None:
    made = earlier("decimals").column(encode_objects(NUMBERS)).values.tolist()
    for number, found in zip(NUMBERS, made, strict=True):
        if not math.isfinite(number) or abs(number) > 1e11:
            assert found in (0.0, 9.0)
            continue
        exponent = Decimal(repr(number)).normalize().as_tuple().exponent
        assert isinstance(exponent, int)
        assert found == min(9, max(0, -exponent)) or number == 0.1 + 0.2, number
    assert made[NUMBERS.index(0.1 + 0.2)] == 1.0  # a few spacings of doubles are no decimals


@for_each("feature", [earlier("residue", modulus=0.1), earlier("residue", modulus=7.0), earlier("decimals")])
def test_a_cell_is_a_function_of_its_own_output(feature: Expression) -> None:
    numbers = [*NUMBERS, math.nan, "a"]
    whole = feature.column(encode_objects(numbers))
    for place in (0, 100, len(NUMBERS) - 3, len(NUMBERS), len(NUMBERS) + 1):
        alone = feature.column(encode_objects([numbers[place]]))
        assert alone.tokens[0] == whole.tokens[place]
        assert np.array_equal(alone.values[0], whole.values[place], equal_nan=True)
    assert whole.tokens[len(NUMBERS)] == NOT_A_NUMBER.code
    assert whole.values.dtype == np.float32


@for_each("feature", [earlier("residue", 2, modulus=0.1), earlier("residue", modulus=7.0), earlier("decimals", "a")])
def test_they_come_back_from_json(feature: Expression) -> None:
    assert plain_feature(json.loads(json.dumps(feature.to_dict()))) == feature
    assert ("modulo" in str(feature)) != ("decimals" in str(feature))


def drawn(values: np.ndarray) -> Outputs:
    return encode_batch(values, len(values))


@for_each("scale", [0.01, 1.0, 1e6])
def test_unrounded_noise_has_no_grid_that_is_told(scale: float) -> None:
    """However a double of f(x) + noise ends, it is no finding of calibration: no residue is even tried."""
    rng = np.random.default_rng(1)
    for value in (10.0, 10.0372, 1e9):
        both = drawn(value + rng.laplace(scale=scale, size=20_000))
        assert [each for each in residues_of(both, ()) if each.word == "modulo"] == [] or scale < 1e-7 * value


@pytest.mark.long
@for_each(
    ("first", "second", "tells"),
    [
        (10.0372, 10.0, True),
        (11.0, 10.0, False),  # both on the grid
    ],
)
def test_rounded_noise_on_an_unrounded_value_is_found(first: float, second: float, tells: bool) -> None:
    """A grid of 2,000 points, 4,000 outputs: no point is seen often, residue and decimals say all; mirrored too."""
    for sides in ((first, second), (second, first)):
        rng = np.random.default_rng(2)
        held = Pilot(*(drawn(side + np.round(rng.laplace(scale=20.0, size=2_000), 1)) for side in sides))
        goal = Goal(PureDP(1.0), 20_000, 0.05)
        chosen = plan(held, goal)
        found = best(chosen, pilot_counts(chosen, held), goal)
        if not tells:
            assert found is None or found.score < 0.25
            continue
        assert found is not None
        assert "modulo" in str(found.event) or "number of decimals" in str(found.event)
        assert found.score > 3.0
        assert isinstance(found.event, Event)
        fresh = [drawn(side + np.round(rng.laplace(scale=20.0, size=2_000), 1)) for side in sides]
        rates = [float(found.event.contains(each).mean()) for each in fresh]
        assert min(rates) == 0.0
        assert rates[found.p_side == "second"] > 0.85  # where the last decimal is 0 there is one less
