"""Every feature against plain Python, output by output; and back from what a result stores."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.events import Event, Feature, event_from_dict, feature_from_dict
from dpaudit.events.features import Coordinate, Shape, Whole, spell
from dpaudit.events.grammar import Expression
from dpaudit.events.joint import Distinct, Equal, FirstOf, Present, ordered
from dpaudit.events.scores import OF, Binning, Linear, LogRatio, Term
from dpaudit.outputs.canonical import ABSENT, LENGTH, NONE, NOT_A_NUMBER, TYPE, Column, Outputs, Token, token
from dpaudit.outputs.encode import encode_objects
from tests.cases import for_each
from tests.events.samples import INF, NAN, learned_ratio, odd_outputs

PATHS = ((0,), (1,), (2,), (3,))
FAR = tuple((place,) for place in range(64))  # of an output that may have more
OUTPUTS = odd_outputs(600, seed=4)
ENCODED = encode_objects(OUTPUTS)
MISSING = object()
Plain = Callable[[tuple[Any, ...]], Any]


def single(number: float) -> float:
    """As float32 holds it."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def entry(output: tuple[Any, ...], place: int) -> Any:
    return output[place] if place < len(output) else MISSING


def number(cell: Any) -> float:
    """The number at a place; NaN where there is none."""
    return float(cell) if isinstance(cell, int | float) else NAN


def numbers(output: tuple[Any, ...]) -> list[float]:
    return [value for place in range(len(PATHS)) if not math.isnan(value := number(entry(output, place)))]


def steps(output: tuple[Any, ...]) -> list[float]:
    """Each number less the one before it, the first as it is; none where either is no number."""
    cells = [number(entry(output, place)) for place in range(len(PATHS))]
    found = [cell - before for before, cell in zip([0.0, *cells[:-1]], cells, strict=True)]
    return [value for value in found if not math.isnan(value)]


def ranked(rank: int, of: Callable[[tuple[Any, ...]], list[float]] = numbers) -> Plain:
    def plain(output: tuple[Any, ...]) -> float:
        found = sorted(of(output))
        return found[rank] if -len(found) <= rank < len(found) else NAN

    return plain


def above(threshold: float, of: Callable[[tuple[Any, ...]], list[float]] = numbers) -> Plain:
    return lambda output: float(sum(single(value) > single(threshold) for value in of(output)))


def total(output: tuple[Any, ...]) -> float:
    found = numbers(output)
    return NAN if INF in found and -INF in found else math.fsum(found) if INF not in map(abs, found) else sum(found)


def equal(left: int, right: int) -> Plain:
    def plain(output: tuple[Any, ...]) -> float:
        one, other = entry(output, left), entry(output, right)
        both_nan = one is not MISSING and other is not MISSING and one != one and other != other
        if isinstance(one, float | int) and isinstance(other, float | int):  # numbers are compared as float32
            with np.errstate(over="ignore"):
                one, other = np.float32(one), np.float32(other)
        return float(one is other or both_nan or (one is not MISSING and other is not MISSING and one == other))

    return plain


def extreme(sign: float) -> Plain:
    def plain(output: tuple[Any, ...]) -> float:
        values = [sign * number(entry(output, place)) for place in range(len(PATHS))]
        real = [value for value in values if not math.isnan(value)]
        return values.index(max(real)) if real else NAN

    return plain


def first_of(wanted: Callable[[Any], bool]) -> Plain:
    return lambda output: next((float(place) for place, cell in enumerate(output) if wanted(cell)), float(len(PATHS)))


def earlier(kind: str, **fields: Any) -> Any:
    """What results of before there was a grammar hold, as it is read today."""
    return feature_from_dict({"kind": kind, **fields})


def plain_cell(cell: Any) -> tuple[Any, Any]:
    """What is equal of two cells that are: numbers as float32, anything else with its type."""
    if isinstance(cell, int | float):
        return "number", "nan" if cell != cell else single(cell) + 0.0
    return type(cell), cell


def different(output: tuple[Any, ...]) -> float:
    return float(len({plain_cell(cell) for cell in output[: len(PATHS)]}))


CASES: list[tuple[Feature, Plain]] = [
    *((ordered(PATHS, rank), ranked(rank)) for rank in (0, 1, 2, 3, -1, -2, -3)),
    *((ordered(PATHS, rank, steps=True), ranked(rank, steps)) for rank in (0, 1, -1, -2)),
    *((earlier("above", paths=PATHS, threshold=level), above(level)) for level in (0.0, 0.3, 2.5, 3e38, INF, -INF)),
    *(
        (earlier("above", paths=PATHS, threshold=level, steps=True), above(level, steps))
        for level in (-2.0, 0.0, 1.5, -INF)
    ),
    (earlier("difference", left=[0], right=[1]), lambda o: number(entry(o, 0)) - number(entry(o, 1))),
    (earlier("sum", paths=PATHS), total),
    (Equal((0,), (1,)), equal(0, 1)),
    (Equal((2,), (3,)), equal(2, 3)),
    (earlier("extreme", paths=PATHS, greatest=True), extreme(1.0)),
    (earlier("extreme", paths=PATHS, greatest=False), extreme(-1.0)),
    (Present(PATHS), lambda o: float(len(o))),
    (Distinct(PATHS), different),
    (FirstOf(PATHS), first_of(lambda cell: isinstance(cell, int | float) and cell == cell)),
    (FirstOf(PATHS, number=2.5), first_of(lambda cell: cell == 2.5)),
    (FirstOf(PATHS, number=1.0), first_of(lambda cell: cell == 1.0)),  # True is 1
    (FirstOf(PATHS, code=token("text", "a").code), first_of(lambda cell: cell == "a")),
    (FirstOf(PATHS, code=NONE.code), first_of(lambda cell: cell is None)),
    (FirstOf(PATHS, code=NOT_A_NUMBER.code), first_of(lambda cell: cell != cell)),
    (Coordinate((LENGTH,)), lambda o: float(len(o))),
    (Coordinate((2,), centre=0.5), lambda o: number(entry(o, 2)) - 0.5),
]


@for_each(("feature", "plain"), CASES)
def test_a_feature_is_what_plain_python_makes_of_each_output(feature: Feature, plain: Plain) -> None:
    """And reading only the wanted paths, as certification does, gives the same."""
    column = feature.column(ENCODED)
    assert column.values.dtype == np.float32
    np.testing.assert_array_equal(feature.column(encode_objects(OUTPUTS, feature.wanted)).values, column.values)
    for row, output in enumerate(OUTPUTS):
        if "arg" in str(feature) and ambiguous(output):
            continue
        assert column.values[row] == pytest.approx(single(plain(output)), rel=1e-6, abs=0.0, nan_ok=True), output


def ambiguous(output: tuple[Any, ...]) -> bool:
    """Where what is no number stands before numbers that are all infinite one way: any position may be named."""
    return bool(found := numbers(output)) and (set(found) == {INF} or set(found) == {-INF})


@for_each("place", range(4))
def test_a_coordinate_holds_the_number_or_the_token(place: int) -> None:
    column = Coordinate((place,)).column(ENCODED)
    for row, output in enumerate(OUTPUTS):
        cell, code = entry(output, place), int(column.tokens[row])
        if isinstance(cell, int | float) and cell == cell:
            assert code == 0
            assert column.values[row] == np.float32(single(cell))
        else:
            known = {None: NONE, "a": token("text", "a"), "b": token("text", "b"), b"a": token("bytes", "61")}
            expected = ABSENT if cell is MISSING else NOT_A_NUMBER if cell != cell else known[cell]
            assert code == expected.code
            assert math.isnan(column.values[row])


def test_whole_outputs_are_equal_where_their_numbers_are_as_float32() -> None:
    def canonical(output: tuple[Any, ...]) -> list[Any]:
        return [plain_cell(cell) for cell in output]

    codes = Whole().column(ENCODED).tokens
    assert np.all(codes != 0)
    for (one, a), (other, b) in itertools.combinations(zip(OUTPUTS[:150], codes[:150], strict=True), 2):
        assert (a == b) == (canonical(one) == canonical(other)), (one, other)
    with pytest.raises(UnsoundAudit, match="compared whole"):
        Whole().column(Outputs(ENCODED.runs, ENCODED.columns, ENCODED.labels, complete=False))


@for_each("values", [(), (0.0,), (2.5, 1.0), (INF, -INF, 0.1 + 0.2)])
def test_two_outputs_have_one_shape_where_each_entry_is_of_one_kind(values: tuple[float, ...]) -> None:
    def canonical(output: tuple[Any, ...]) -> list[Any]:
        """Numbers are alike, apart from the `values`; NaN, tokens and what is not there are what they are."""
        found: list[Any] = []
        for place in range(len(PATHS)):
            cell = entry(output, place)
            if isinstance(cell, int | float):
                same = [value for value in values if single(value) == single(cell)]
                found.append("nan" if cell != cell else ("value", *same) if same else "number")
            else:
                found.append((type(cell), cell))
        return found

    column = Shape(PATHS, values).column(ENCODED)
    assert np.isnan(column.values).all()
    assert np.all(column.tokens != 0)
    kinds = [canonical(output) for output in OUTPUTS[:150]]
    for (one, a), (other, b) in itertools.combinations(zip(kinds, column.tokens[:150], strict=True), 2):
        assert (a == b) == (one == other), (one, other)


def test_sorting_knows_numbers_only() -> None:
    outputs = encode_objects([(3.0, NAN, "a"), (NAN, NAN, None), (INF, -INF, 2.0)])
    for rank, expected in ((0, [3.0, NAN, -INF]), (-1, [3.0, NAN, INF]), (1, [NAN, NAN, 2.0]), (-2, [NAN, NAN, 2.0])):
        np.testing.assert_array_equal(ordered(PATHS[:3], rank).column(outputs).values, expected)


def test_a_feature_leaves_the_outputs_as_they_are() -> None:
    """A column of one run is a copy where it is changed."""
    rows = np.arange(200.0) ** 2
    outputs = encode_objects([rows])
    steps = ordered(tuple((j,) for j in range(200)), 0, steps=True)
    first, again = (steps.column(outputs).values[0] for _ in range(2))
    assert first == again == 0.0
    np.testing.assert_array_equal(outputs.column((199,)).values, rows[-1:])
    outputs = Outputs(1, {(0,): Column(np.array([1.0])), (1,): Column(np.array([5.0]))})
    assert ordered(((0,), (1,)), -1, steps=True).column(outputs).values[0] == 4.0


def learned() -> list[Feature]:
    half = len(OUTPUTS) // 2
    first, second = encode_objects(OUTPUTS[:half]), encode_objects(OUTPUTS[half:])
    return [
        learned_ratio(first, second, [Coordinate((0,)), Coordinate((1,), centre=1.0)]),
        learned_ratio(first, second, [Coordinate((0,)), *(Expression("minus", ((j + 1,), (j,))) for j in range(3))]),
        learned_ratio(first, second, [Shape(PATHS, (0.0, 2.5)), Coordinate((1,)), Coordinate((3,), centre=-2.0)]),
        Linear(((0,), (2,)), (0.5, -1.0), (2.0, 1.0), (1.0, 0.25)),
        *(Linear(((1,), (3,)), (0.0, 1.0), (2.0, 1.0), (1.0, -3.0), of) for of in OF),
    ]


def test_scores_are_the_sums_of_the_weights_of_their_cells_or_of_numbers() -> None:
    text = token("text", "a")
    bins = Binning(np.array([0.0, 1.0], np.float32), (text,))  # up to 0, up to 1, beyond; "a"; anything else
    score = LogRatio((Term(Coordinate((0,)), bins, (1.0, 2.0, 4.0, 8.0, 0.0)),))
    found = score.column(encode_objects([(-1.0,), (0.0,), (0.5,), (1.5,), (INF,), ("a",), ("b",), (NAN,), ()]))
    assert found.values.tolist() == [1.0, 1.0, 2.0, 4.0, 4.0, 8.0, 0.0, 0.0, 0.0]
    two = LogRatio((*score.terms, Term(Coordinate((1,)), bins, (0.5, 0.25, 0.125, 0.0, 0.0))))
    assert two.column(encode_objects([(0.5, 0.5), ("a", 9.0)])).values.tolist() == [2.25, 8.125]
    weighted = Linear(((0,), (1,)), (1.0, 10.0), (2.0, 5.0), (3.0, -1.0))
    found = weighted.column(encode_objects([(5.0, 10.0), (1.0, 20.0), (5.0, "a"), (NAN, 10.0), (INF, 10.0)]))
    np.testing.assert_allclose(found.values, [6.0, -2.0, 6.0, 0.0, 3e6])


def every_feature() -> list[Feature]:
    return [
        *(feature for feature, _ in CASES),
        Coordinate(()),
        Coordinate(("total", 2, TYPE)),
        FirstOf(PATHS, code=token("text", "ü").code, label="'ü'"),
        Whole(),
        Shape(PATHS),
        Shape(PATHS, (0.0, 2.5)),
        *learned(),
    ]


@for_each("feature", every_feature())
def test_events_come_back_from_json_as_they_were(feature: Feature) -> None:
    tokens = (token("text", "a"), NOT_A_NUMBER, token("raised", "ValueError"))
    for event in (
        Event(feature, intervals=((-INF, 0.25), (1.5, 2.0), (float(np.float32(9.1)), INF))),
        Event(feature, tokens=tokens),
        Event(feature, intervals=((-INF, INF),), tokens=tokens[:1]),
        Event(feature),
    ):
        again = event_from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False)))
        assert again.to_dict() == event.to_dict()
        assert str(again) == str(event)
        assert again.wanted == event.wanted
        np.testing.assert_array_equal(again.contains(ENCODED), event.contains(ENCODED))
    with pytest.raises(InvalidSpec, match="unknown kind 'wavelet'"):
        feature_from_dict({"kind": "wavelet"})


def test_an_event_is_its_intervals_and_its_tokens() -> None:
    values: list[Any] = [-INF, -1.0, 0.0, 0.5, 1.0, 1.5, INF, NAN, None, "a", "b"]
    outputs = encode_objects(values)

    def inside(event: Event) -> list[Any]:
        return [value for value, there in zip(values, event.contains(outputs), strict=True) if there]

    feature = Coordinate(())
    assert inside(Event(feature)) == []
    assert inside(Event(feature, intervals=((0.0, 1.0),))) == [0.5, 1.0]
    assert inside(Event(feature, intervals=((-INF, 0.0), (1.0, INF)))) == [-INF, -1.0, 0.0, 1.5, INF]
    assert inside(Event(feature, intervals=((-INF, INF),))) == values[:7]
    assert inside(Event(feature, tokens=(token("text", "a"), NONE))) == [None, "a"]
    assert inside(Event(feature, tokens=(NOT_A_NUMBER,)))[0] is values[7]
    assert inside(Event(feature, intervals=((1.0, INF),), tokens=(token("text", "b"),))) == [1.5, INF, "b"]


def test_many_tokens_are_found_as_few_are() -> None:
    values: list[Any] = [f"word {j % 50}" for j in range(200)]
    outputs = encode_objects(values)
    for count in (1, 16, 17, 40):
        wanted = {f"word {j}" for j in range(0, 2 * count, 2)}
        event = Event(Coordinate(()), tokens=tuple(token("text", word) for word in sorted(wanted)))
        assert event.contains(outputs).tolist() == [value in wanted for value in values]


@for_each(
    ("event", "words"),
    [
        (Event(Coordinate(()), ((9.5, INF),)), "output > 9.5"),
        (Event(Coordinate((0,)), ((-INF, 9.5),)), "output[0] <= 9.5"),
        (Event(Expression("sum", PATHS), ((1.0, 2.0),)), "1 < sum(output) <= 2"),
        (Event(Expression("sum", FAR), ((1.0, 2.0),)), "1 < sum(64 entries of output) <= 2"),
        (Event(ordered(FAR, -1, steps=True), ((1.5, INF),)), "max(steps of 64 entries of output) > 1.5"),
        (Event(earlier("above", paths=FAR, threshold=0.5), ((1.5, INF),)), "sum(64 entries of output > 0.5) > 1.5"),
        (Event(Expression("argmax", FAR), ((1.5, INF),)), "argmax(64 entries of output) > 1.5"),
        (Event(earlier("above", paths=PATHS, threshold=0.5), ((1.5, INF),)), "sum(output > 0.5) > 1.5"),
        (
            Event(earlier("above", paths=PATHS, threshold=0.1, steps=True), ((1.5, INF),)),
            "sum(steps of output > 0.1) > 1.5",
        ),
        (Event(ordered(PATHS, 0, steps=True), ((9.5, INF),)), "min(steps of output) > 9.5"),
        (Event(ordered(PATHS, -1, steps=True), ((9.5, INF),)), "max(steps of output) > 9.5"),
        (Event(ordered(PATHS, -2, steps=True), ((9.5, INF),)), "sorted(steps of output)[-2] > 9.5"),
        (Event(Shape(PATHS), tokens=(Token("(1, absent)", 3),)), "shape of output is (1, absent)"),
        (Event(Coordinate(("total",)), ((-INF, INF),)), "output['total'] is a number"),
        (Event(Coordinate(()), tokens=(Token("'a'", 3),)), "output is 'a'"),
        (Event(Coordinate(()), tokens=(Token("'a'", 3), Token("'b'", 5))), "output is one of 'a', 'b'"),
        (
            Event(Coordinate(()), ((float(np.nextafter(np.float32(2.0), np.float32(0.0))), 2.0),)),
            "output == 2",
        ),
    ],
)
def test_events_read_as_python(event: Event, words: str) -> None:
    assert str(event) == words


def test_scores_and_paths_say_what_they_are_over() -> None:
    def score(*parts: Any) -> str:
        bins = Binning(np.array([0.0], np.float32))
        return str(LogRatio(tuple(Term(part, bins, (0.0, 0.0, 0.0)) for part in parts)))

    first, second = Coordinate((0,)), Coordinate((1,))
    assert score(first, second) == "log-ratio score of 2 coordinates"
    assert score(first, *(Expression("minus", ((j + 1,), (j,))) for j in (0, 1))) == "log-ratio score of 3 steps"
    assert score(Shape(PATHS), first, second) == "log-ratio score of the shape and 2 coordinates"
    paths = {(): "output", (0, LENGTH): "len(output[0])", (TYPE,): "type(output)", ("@has 'x'",): "('x' in output)"}
    assert {path: spell(path) for path in paths} == paths


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-3, 3), st.booleans())
def test_a_threshold_on_doubles_is_the_one_on_rounded_numbers(threshold: float, away: int, above: bool) -> None:
    """Around the point where rounding turns, ties included, and at the ends of the range of float32."""
    with np.errstate(over="ignore"):  # above the largest float32 there is infinity
        beside = float(np.nextafter(np.float32(threshold), np.float32(np.inf)))
    turn = (threshold + beside) / 2.0 if math.isfinite(beside) else 3.4028235677973366e38
    doubles = np.array([turn + away * math.ulp(turn), threshold, beside, -threshold, math.nan, math.inf, -math.inf])
    outputs = Outputs(len(doubles), {(): Column(doubles)})
    event = Event(Coordinate(()), intervals=((threshold, math.inf) if above else (-math.inf, threshold),))
    with np.errstate(over="ignore"):
        singles = doubles.astype(np.float32)
    plain = singles > np.float32(threshold) if above else singles <= np.float32(threshold)
    assert event.contains(outputs).tolist() == plain.tolist()
