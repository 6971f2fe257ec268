"""Features on bits: each against integer arithmetic on the same floats, and silent where there are no bits to read."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.events import event_from_dict
from dpaudit.events.bits import (
    KINDS,
    NOT_FINITE,
    ZERO,
    BitScore,
    FirstBit,
    LinePart,
    LowestBit,
    OnGrid,
    TrailingZeros,
    exponents,
)
from dpaudit.events.event import Event
from dpaudit.events.features import Feature
from dpaudit.outputs.canonical import NOT_A_NUMBER, Column, Outputs
from dpaudit.outputs.encode import encode_objects
from dpaudit.search.candidates import MOST, bit_binning, bit_features, without_bits
from tests.cases import for_each

Values = npt.NDArray[Any]
TINY, LARGE = 5e-324, 1.7976931348623157e308
ODD = [0.0, -0.0, 1.0, -1.0, 0.75, 3.0, 2.0**60, TINY, -3 * TINY, 2.0**-1022, 2.0**-1023, LARGE, 0.1, -2.5e-310]


def column_of(values: Values) -> Outputs:
    return Outputs(len(values), {(): Column(values)})


def vectors(matrix: Values) -> Outputs:
    return Outputs(len(matrix), {(j,): Column(matrix[:, j]) for j in range(matrix.shape[1])})


def naive(value: float) -> tuple[int, int]:
    """The exponents of the first and last set bit, from the number as a fraction of integers."""
    if not math.isfinite(value):
        return NOT_FINITE, NOT_FINITE
    if value == 0.0:
        return ZERO, ZERO
    above, below = abs(Fraction(value)).as_integer_ratio()
    shift = below.bit_length() - 1
    return above.bit_length() - 1 - shift, (above & -above).bit_length() - 1 - shift


def all_sorts(seed: int, count: int = 4_000) -> Values:
    """Doubles of every size, many with short significands, and the odd ones."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 1 << 64, count, dtype=np.uint64, endpoint=False).view(np.float64)
    short = np.ldexp(rng.integers(-(1 << 20), 1 << 20, count).astype(float), rng.integers(-1074, 900, count))
    return np.concatenate([any_bits, short, rng.normal(size=count), ODD, [math.nan, math.inf, -math.inf]])


def test_exponents_are_those_of_integer_arithmetic_however_a_value_is_held() -> None:
    values = all_sorts(1)
    first, last = exponents(values)
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == [naive(value) for value in values.tolist()]
    singles = np.random.default_rng(2).normal(size=1_000).astype(np.float32)
    wide = np.zeros((1_000, 3))
    wide[:, 1] = singles
    for held in (singles.astype(np.float64), wide[:, 1]):
        assert [part.tolist() for part in exponents(held)] == [part.tolist() for part in exponents(singles)]
    assert [part.tolist() for part in exponents(np.array([]))] == [[], []]


def test_the_lowest_bit_is_the_least_of_all_numbers_and_leaves_tokens_alone() -> None:
    outputs = encode_objects([0.5, 6.0, None, 0.0, math.inf])
    column = LowestBit().column(outputs)
    assert column.values[:2].tolist() == [-1.0, 1.0]
    assert column.values[3] == ZERO
    assert np.isnan(column.values[[2, 4]]).all()
    assert column.tokens[2] == outputs.column(()).tokens[2]
    assert column.tokens[4] == NOT_A_NUMBER.code
    several = encode_objects([(0.5, 0.125), (3.0, None), (math.nan, math.nan)])
    least = LowestBit(((0,), (1,))).column(several).values
    assert least[:2].tolist() == [-3.0, 0.0]
    assert np.isnan(least[2])


def test_trailing_zeros_are_counted_in_each_part_of_the_line() -> None:
    values = np.concatenate([all_sorts(3, 300), [1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)]])
    feature = TrailingZeros((), (-1.0, 1.0, 100.0), 53)
    labels = {**feature.labels(), NOT_A_NUMBER.code: "none"}
    got = [labels[code] for code in feature.column(column_of(values)).tokens.tolist()]
    ends = {0: "1", 1: "10", 2: "100"}
    for value, label in zip(values.tolist(), got, strict=True):
        if not math.isfinite(value):
            assert label == "none"
            continue
        first, last = naive(value)
        zeros = 3 if value == 0.0 else min(3, last - first + 52)
        place = (
            "x < -1" if value < -1 else "-1 <= x < 1" if value < 1 else "1 <= x < 100" if value < 100 else "100 <= x"
        )
        assert label == f"{place} ending in {ends.get(max(0, zeros), '000')}"
    outputs = encode_objects([0.5, "a", None])  # the tokens of other outputs stay
    assert TrailingZeros().column(outputs).tokens[1:].tolist() == outputs.column(()).tokens[1:].tolist()


@for_each("step", [0.1, 1.0 / 3.0, 0.01])
def test_on_a_grid_is_the_float_nearest_to_a_multiple(step: float) -> None:
    multiples = [k * step for k in range(-200, 200)]  # rounded once, so the nearest float
    near = [np.nextafter(value, 1e9) for value in multiples if value != 0.0]
    found = OnGrid((), step).column(column_of(np.array([*multiples, *near, math.nan, math.inf]))).values
    assert found[: len(multiples)].all()
    assert not found[len(multiples) : -2].any()
    assert np.isnan(found[-2:]).all()


def test_a_shift_leaves_the_grid_although_rounding_hides_it() -> None:
    """0.1 k + 0.1 is often another double than 0.1 (k + 1): as float32 they are the same number."""
    k = np.arange(50)
    shifted = 0.1 * k + 0.1
    feature = OnGrid((), 0.1)
    assert feature.column(column_of(0.1 * (k + 1))).values.all()
    assert not feature.column(column_of(shifted)).values.all()
    assert np.array_equal(shifted.astype(np.float32), (0.1 * (k + 1)).astype(np.float32))


@for_each("values", [np.arange(50), np.arange(50) * 3.0, np.array([0.0, -0.0, 1e300, math.inf]), np.full(9, math.nan)])
def test_there_is_no_feature_without_fractions(values: Values) -> None:
    assert list(bit_features(column_of(values))) == []
    assert list(bit_features(encode_objects(["a", None, b"c"]))) == []


def kinds_of(features: list[Feature]) -> list[str]:
    return [type(feature).__name__ for feature in features]


def test_features_are_read_off_the_pilot() -> None:
    rng = np.random.default_rng(4)
    noise = rng.laplace(size=3_000)
    assert kinds_of(list(bit_features(column_of(noise)))) == ["LowestBit", "TrailingZeros"]
    widths = [
        feature.width
        for values in (noise, noise.astype(np.float32), np.round(noise * 64.0) / 64.0)
        for feature in bit_features(column_of(values))
        if isinstance(feature, TrailingZeros)
    ]
    assert widths[:2] == [53, 24]
    assert widths[2] < 12
    steps = [
        each.step for each in bit_features(column_of(0.1 * rng.integers(-30, 30, 3_000))) if isinstance(each, OnGrid)
    ]
    assert steps[0] == 0.1
    halves = list(bit_features(column_of(0.5 * rng.integers(-30, 30, 3_000))))
    assert kinds_of(halves) == ["LowestBit", "TrailingZeros"]
    many = list(bit_features(vectors(rng.normal(size=(200, MOST + 5)))))  # each coordinate up to a bound, and all
    assert kinds_of(many) == ["LowestBit", "TrailingZeros"] * MOST + ["LowestBit"]
    assert len(many[-1].wanted or ()) == MOST


def test_each_feature_without_bits_is_blind_to_them() -> None:
    values = np.random.default_rng(6).normal(size=500)
    cleared = (values.view(np.uint64) & ~np.uint64(0xFF)).view(np.float64)
    for feature in bit_features(column_of(values)):
        blind = without_bits(feature)
        assert isinstance(blind, FirstBit | LinePart)
        assert blind.wanted == feature.wanted
        assert np.array_equal(blind.column(column_of(values)).values, blind.column(column_of(cleared)).values)
        whole, less = (feature.column(column_of(each)) for each in (values, cleared))
        assert not (np.array_equal(whole.tokens, less.tokens) and np.array_equal(whole.values, less.values))
    assert without_bits(OnGrid()) is None


@for_each(
    "feature",
    [LowestBit(((0,), ("a", 1))), TrailingZeros((2,), (-1.0, 0.5), 24), OnGrid((), 0.1), BitScore((), (0.5, -1.0))],
)
def test_events_on_bits_are_stored_and_read_back(feature: Feature) -> None:
    assert isinstance(feature, KINDS)
    event = Event(feature, ((-54.5, math.inf),))
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


def test_a_score_of_bits_is_their_weighted_sum_and_without_the_last_ones_it_is_blind_to_them() -> None:
    values, weights = all_sorts(9, 200), np.random.default_rng(10).normal(size=64)
    score = BitScore((), tuple(weights.tolist()))
    plain = [sum(w for k, w in enumerate(weights) if word >> k & 1) for word in values.view(np.uint64).tolist()]
    found = score.column(column_of(values)).values
    assert np.array_equal(np.isnan(found), ~np.isfinite(values))
    there = np.isfinite(values)
    assert np.allclose(found[there], np.array(plain)[there], rtol=1e-5, atol=1e-5)
    blind, cleared = without_bits(score), (values.view(np.uint64) & ~np.uint64((1 << 29) - 1)).view(np.float64)
    assert isinstance(blind, BitScore)
    assert np.array_equal(*(blind.column(column_of(each)).values[there] for each in (values, cleared)))
    assert str(score) == "linear score of the 64 bits of output"


def test_events_on_bits_read_as_sentences() -> None:
    assert str(Event(LowestBit(), ((-math.inf, -53.5),))) == "exponent of the last set bit of output <= -53.5"
    assert str(Event(OnGrid((1,), 0.1), ((0.5, math.inf),))) == "(output[1] is a float multiple of 0.1) > 0.5"
    values = np.array([0.5, 1.0, 1.5, 2.5])
    feature = TrailingZeros((), (1.0,), 3)
    tokens = bit_binning(feature, column_of(values)).tokens
    assert {str(Event(feature, tokens=(token,))) for token in tokens} == {
        "output as 3 bits is x < 1 ending in 100",
        "output as 3 bits is 1 <= x ending in 100",
        "output as 3 bits is 1 <= x ending in 10",
        "output as 3 bits is 1 <= x ending in 1",
    }
