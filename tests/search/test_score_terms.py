"""The cells of a log-ratio score's terms, and the terms of a shape: what falls where, and what each says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.base.arrays import Reals
from dpaudit.claims import PureDP
from dpaudit.events.features import Coordinate, Shape
from dpaudit.events.joint import Above, Difference, Ordered
from dpaudit.events.scores import LogRatio
from dpaudit.outputs.canonical import ABSENT, Column, Outputs, Pilot, Sample, absent, concatenate
from dpaudit.outputs.encode import encode_objects
from dpaudit.search.binning import Tables
from dpaudit.search.candidates import features_of, lines_of, terms_of
from dpaudit.search.explore import plan
from dpaudit.search.goal import Goal
from dpaudit.search.learning import GROUPS, cells_of, log_ratio
from tests.auditing.looks import vectors
from tests.cases import for_each
from tests.events.samples import INF, NAN

Rng = np.random.Generator
RUNS = 4_000


def parts(count: int) -> list[Any]:
    return [Coordinate((j,)) for j in range(count)]


def edges_of(tables: Tables) -> list[list[float]]:
    return [bins.edges.tolist() for _, bins in tables.features]


def test_coordinates_of_one_range_have_the_same_cells_and_others_their_own() -> None:
    matrix = np.random.default_rng(41).laplace(size=(RUNS, 4))

    def different(scale: float, shift: float) -> int:
        changed = matrix * np.array([1.0, 1.0, 1.0, scale]) + np.array([0.0, 0.0, 0.0, shift])
        return len({tuple(each) for each in edges_of(cells_of(parts(4), vectors(changed)))})

    assert [different(1.0, 0.0), different(1.0, 0.5), different(1.5, 0.0)] == [1, 1, 1]
    assert [different(50.0, 0.0), different(1.0, 50.0), different(50.0, 50.0)] == [4, 4, 4]


def test_the_middle_cells_hold_about_equal_masses_and_the_tails_halve() -> None:
    matrix = np.random.default_rng(42).laplace(size=(RUNS, 1))
    (feature, bins), *_ = cells_of(parts(1), vectors(matrix)).features
    counts = bins.counts(feature.column(vectors(matrix)))
    inside = [int(each) for each in counts[: bins.bins] if each]
    middle = [each for each in inside if each > 0.8 * RUNS / GROUPS]
    assert len(middle) >= GROUPS - 2
    assert max(inside) < 1.5 * RUNS / GROUPS
    # the last edges seen have 1/64 of all beyond them, 62 of 4,000; eight more on either side go on
    # as evenly apart as halvings are
    assert bins.edges[8] == pytest.approx(-math.log(32.0), abs=0.25)
    assert bins.edges[-9] == pytest.approx(math.log(32.0), abs=0.25)
    assert np.diff(bins.edges[:9]) == pytest.approx(np.full(8, math.log(2.0)), abs=0.25)
    assert np.all(np.diff(bins.edges) > 0.0)


def test_values_that_recur_and_few_values_stand_alone() -> None:
    rng = np.random.default_rng(43)
    matrix = rng.laplace(size=(RUNS, 3))
    matrix[rng.random(RUNS) < 0.3, 0] = 2.5
    matrix[:, 1] = rng.integers(0, 4, RUNS)
    tables = cells_of(parts(3), vectors(matrix))
    counts = tables.split(tables(Sample(vectors(matrix)), Sample(vectors(matrix[:0]))))
    atom = tables.features[0][1]
    place = int(np.searchsorted(atom.edges, np.float32(2.5)))
    assert atom.alone[place]
    assert counts[0][place, 0] == np.count_nonzero(matrix[:, 0] == 2.5)
    assert counts[1][: tables.features[1][1].bins, 0].tolist() == np.bincount(matrix[:, 1].astype(int)).tolist()


def _placed(rng: Rng, value: float, part: float) -> Reals:
    matrix = rng.laplace(size=(RUNS, 3))
    matrix[rng.random((RUNS, 3)) < part] = value
    return matrix


HOSTILE = {
    "heavy tails": lambda rng: rng.standard_cauchy((RUNS, 3)) ** 15,
    "beyond float32": lambda rng: rng.laplace(size=(RUNS, 3)) * 1e300,
    "integers beyond float32": lambda rng: rng.integers(2**60, 2**62, (RUNS, 3)).astype(float),
    "subnormal": lambda rng: rng.laplace(size=(RUNS, 3)) * 1e-44,
    "infinities of both signs": lambda rng: np.where(rng.random((RUNS, 3)) < 0.2, -INF, _placed(rng, INF, 0.2)),
    "many infinities below": lambda rng: _placed(rng, -INF, 0.6),
    "one coordinate of NaN": lambda rng: np.where([True, False, False], NAN, rng.laplace(size=(RUNS, 3))),
    "zeros of both signs": lambda rng: np.where(rng.random((RUNS, 3)) < 0.5, -0.0, 0.0),
}
BY_NIGHT = {
    "at the end of float32": lambda rng: rng.laplace(size=(RUNS, 3)) * 3e38,
    "far from 0": lambda rng: rng.laplace(size=(RUNS, 3)) + 1e12,
    "some infinities": lambda rng: _placed(rng, INF, 0.03),
    "nothing but infinities": lambda rng: np.where(rng.random((RUNS, 3)) < 0.5, -INF, INF),
    "one coordinate of infinities": lambda rng: np.where([True, False, False], INF, rng.laplace(size=(RUNS, 3))),
    "NaN": lambda rng: _placed(rng, NAN, 0.5),
    "one number among NaN": lambda rng: np.where(np.arange(RUNS)[:, None] == 7, rng.laplace(size=(RUNS, 3)), NAN),
}


@pytest.mark.long
@for_each("kind", HOSTILE, nightly=BY_NIGHT)
def test_numbers_of_every_size_have_cells_and_a_score(kind: str) -> None:
    """Neither an error nor a warning; each run falls into one cell; edges are numbers in order; the score is finite."""
    matrix = (HOSTILE | BY_NIGHT)[kind](np.random.default_rng(44))
    both, half = vectors(matrix), RUNS // 2
    first, second = vectors(matrix[:half]), vectors(matrix[half:])
    for group in (parts(3), [Coordinate((0,)), Difference((1,), (0,)), Difference((2,), (1,))]):
        tables = cells_of(group, both)
        for _, bins in tables.features:
            assert not np.isnan(bins.edges).any()
            assert np.all(bins.edges[1:] > bins.edges[:-1])
        counts = tables(Sample(first), Sample(second))
        assert [table.sum() for table in tables.split(counts)] == [RUNS] * 3
        score = log_ratio(tables, counts)
        assert np.isfinite(score.column(both).values).all()
        assert LogRatio.from_dict(score.to_dict()).to_dict() == score.to_dict()
    plan(Pilot(first, second), Goal(PureDP(1.0), 50_000, 0.05))


def one_of_four(first: bool, runs: int, rng: Rng) -> Outputs:
    """A number at one of four places, nothing elsewhere: the first likelier, the last with its number moved."""
    place = rng.choice(4, runs, p=[0.4, 0.2, 0.2, 0.2] if first else [0.25] * 4)
    numbers = rng.laplace(size=runs) + np.where(first & (place == 3), 1.0, 0.0)
    columns = {}
    for j in range(4):
        there = place == j
        columns[(j,)] = Column(np.where(there, numbers, NAN), np.where(there, np.uint64(0), np.uint64(ABSENT.code)))
    return Outputs(runs, columns, {ABSENT.code: ABSENT.label})


def test_terms_of_a_shape_say_what_numbers_add_to_it() -> None:
    """Exact log ratios: ln(0.4 / 0.25) and so on for the shape; 0 for three places, -1 to 1 along the last.

    50,000 hits a place and side: deviations of 0.007 for the shape; 0.1 of a cell of 300 hits and more in the tails,
    smoothed. Six of each.
    """
    rng = np.random.default_rng(45)
    first, second = (one_of_four(side, 100_000, rng) for side in (True, False))
    both = concatenate([first, second])
    terms = [each for each in terms_of(both) if isinstance(each.features[0][0], Shape)]
    assert [len(each.features) for each in terms] == [5]
    score = log_ratio(terms[0], terms[0](Sample(first), Sample(second)))
    numbers = [-4.0, -1.0, 0.25, 0.75, 1.0, 4.0]
    asked = [tuple(number if j == place else NAN for j in range(4)) for place in range(4) for number in numbers]
    columns = {}
    for j in range(4):
        values = np.array([row[j] for row in asked])
        columns[(j,)] = Column(values, np.where(np.isnan(values), np.uint64(ABSENT.code), np.uint64(0)))
    asked_outputs = Outputs(len(asked), columns)
    found = score.column(asked_outputs).values.reshape(4, -1)
    assert found[0] == pytest.approx(np.full(6, math.log(1.6)), abs=0.1)
    assert found[1] == pytest.approx(np.full(6, math.log(0.8)), abs=0.1)
    assert found[2] == pytest.approx(np.full(6, math.log(0.8)), abs=0.1)
    along = np.array([abs(number) - abs(number - 1.0) for number in numbers])
    assert found[3] == pytest.approx(math.log(0.8) + along, abs=0.25)
    # a shape never seen, and what is absent everywhere, weigh nothing
    assert score.column(Outputs(2, {(j,): absent(2) for j in range(4)})).values.tolist() == [0.0, 0.0]


def test_mirror_exchanging_the_sides_negates_a_score() -> None:
    rng = np.random.default_rng(46)
    first, second = (one_of_four(side, 5_000, rng) for side in (True, False))
    both = concatenate([first, second])
    for terms in terms_of(both):
        straight, swapped = (
            log_ratio(terms, terms(*(Sample(s) for s in p))) for p in ((first, second), (second, first))
        )
        assert swapped.column(both).values == pytest.approx(-straight.column(both).values, abs=1e-5)


def test_steps_and_levels_are_tried_where_three_numbers_have_many_values() -> None:
    rng = np.random.default_rng(47)
    three, two = (vectors(rng.laplace(size=(500, count))) for count in (3, 2))
    few = vectors(rng.integers(0, 3, (500, 3)).astype(float))

    def stepped(outputs: Outputs) -> list[Any]:
        return [each for each in features_of(outputs) if isinstance(each, Ordered | Above) and each.steps]

    def levels(outputs: Outputs) -> list[Any]:
        return [each for each in features_of(outputs) if isinstance(each, Above) and not each.steps]

    assert [len(stepped(outputs)) for outputs in (three, two, few)] == [4, 0, 0]
    assert [len(levels(outputs)) for outputs in (three, two, few)] == [1, 1, 0]
    assert [len(terms_of(outputs)) for outputs in (three, two, few)] == [4, 2, 2], "and neighbours, products"
    assert lines_of(Pilot(three, vectors(rng.laplace(size=(500, 3)) + 1.0)), three)
    assert lines_of(Pilot(few, few), few) == ()  # the log ratios of their values say all that it could


def test_a_shape_is_tried_where_it_varies_and_numbers_are_left_out() -> None:
    rng = np.random.default_rng(48)
    varied = encode_objects([(float(rng.normal()),) * int(rng.integers(1, 4)) for _ in range(500)])
    shapes = [each for each in features_of(varied) if isinstance(each, Shape)]
    assert [each.paths for each in shapes] == [((0,), (1,), (2,))]
    assert len(np.unique(shapes[0].column(varied).tokens)) == 3
    for outputs in (
        vectors(rng.laplace(size=(500, 3))),  # all of one shape
        encode_objects([("a",) * int(rng.integers(1, 4)) for _ in range(500)]),  # no numbers
    ):
        assert not any(isinstance(each, Shape) for each in features_of(outputs))
