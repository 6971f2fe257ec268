"""Cells: every value falls into exactly one, and a run of cells is the interval that it says it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpaudit.events.features import Coordinate, Whole
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import NONE, NOT_A_NUMBER, Column, Sample, token
from dpaudit.outputs.encode import encode_objects
from dpaudit.search.binning import EVEN_BINS, FEW_VALUES, Tables, binning, recurring
from tests.cases import for_each
from tests.events.samples import odd_outputs

Floats = npt.NDArray[np.float32]
RNG = np.random.default_rng(8)
WORD = token("text", "a")


def shapes() -> dict[str, Floats]:
    """Pilots of every shape that edges are chosen for."""
    normal = RNG.normal(size=6_000)
    return {
        "even": normal.astype(np.float32),
        "far away": (1e6 + normal).astype(np.float32),
        "few values": RNG.integers(0, 50, 5_000).astype(np.float32),
        "one value": np.full(100, 2.5, np.float32),
        "heavy tails": RNG.standard_cauchy(6_000).astype(np.float32) ** 3,
        "an atom": np.where(RNG.random(6_000) < 0.3, 0.25, normal).astype(np.float32),
        "infinities": np.concatenate([normal, [np.inf, -np.inf] * 30]).astype(np.float32),
        "largest": np.concatenate([normal * 1e37, [3.4e38, -3.4e38]]).astype(np.float32),
        "smallest": (normal * 1e-42).astype(np.float32),
        "neighbours": np.nextafter(np.float32(1.0), np.array([0.0, 2.0] * 9, np.float32)),
        "nothing": np.empty(0, np.float32),
    }


SHAPES = shapes()
PROBES = np.array([-np.inf, -3.4e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 0.25, 2.5, 49.0, 1e6, 3.4e38, np.inf], np.float32)


def cell_of(bins: Binning, values: Floats) -> npt.NDArray[np.intp]:
    """The one cell of each value, by counting it alone."""
    found = []
    for value in values:
        counts = bins.counts(Column(np.array([value], np.float32)))
        assert counts.sum() == 1
        found.append(int(np.argmax(counts)))
    return np.array(found)


@for_each("name", SHAPES)
def test_every_value_has_one_cell_and_lies_in_its_interval(name: str) -> None:
    bins = binning(Column(SHAPES[name]), {})
    edges = bins.edges
    assert np.all(np.diff(edges) > 0)
    values = np.unique(np.concatenate([SHAPES[name][:300], PROBES, edges[:: max(1, len(edges) // 40)]]))
    cells = cell_of(bins, values)
    assert np.all(cells < bins.bins)
    low, high = (np.array(ends) for ends in zip(*(bins.interval(int(cell), int(cell)) for cell in cells), strict=True))
    if bins.step is None:
        assert np.all((low < values) & (values <= high) | (values == -np.inf) & (low == -np.inf))
    else:  # found by arithmetic: a value within rounding of an edge may be one cell aside
        slack = bins.step + 4.0 * np.spacing(np.minimum(np.abs(values), np.float32(1e38)))
        assert np.all((low - slack <= values) & (values <= high + slack))
    counted = bins.counts(Column(SHAPES[name]))
    assert (counted.sum(), len(counted)) == (len(SHAPES[name]), bins.cells)
    if name in ("few values", "one value", "neighbours"):  # a cell each
        values = np.unique(SHAPES[name])
        assert len(np.unique(cell_of(bins, values))) == len(values) <= FEW_VALUES


def test_an_atom_has_a_cell_of_its_own() -> None:
    bins = binning(Column(SHAPES["an atom"]), {})
    around = np.nextafter(np.float32(0.25), np.array([-1.0, 1.0], np.float32))
    atom, below, above = cell_of(bins, np.array([0.25, *around], np.float32))
    assert below < atom < above


def test_even_cells_are_the_explicit_ones_to_within_one() -> None:
    even = binning(Column(SHAPES["even"]), {})
    assert even.step is not None
    assert len(even.edges) == EVEN_BINS - 1
    explicit = Binning(even.edges)
    values = RNG.normal(size=20_000).astype(np.float32)
    aside = cell_of(even, values[:2_000]) - cell_of(explicit, values[:2_000])
    assert np.all(np.abs(aside) <= 1)
    assert np.mean(aside != 0) < 0.01
    ours, theirs = (np.cumsum(bins.counts(Column(values))) for bins in (even, explicit))
    assert np.max(np.abs(ours - theirs)) <= 0.01 * len(values)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    arrays.arrays(np.float32, st.integers(0, 300), elements=st.floats(width=32, allow_nan=False)),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(list(SHAPES)),
    st.booleans(),
    st.integers(0, 4),
)
def test_cells_found_by_buckets_are_those_of_a_search(
    drawn: Floats, kind: type[np.floating], shape: str, of_pilot: bool, crowd: int
) -> None:
    pilot = SHAPES[shape]
    crowded = [np.sort(pilot[:: max(1, len(pilot) // 200)] if of_pilot else drawn)]
    with np.errstate(over="ignore"):
        for _ in range(crowd):  # so many beside some edge, too close for any grid to part
            crowded.append(np.nextafter(crowded[-1][:: 1 if crowded[1:] else 30], np.float32(np.inf)))
        edges = np.sort(np.concatenate(crowded))
        near = np.concatenate([np.nextafter(edges, np.float32(way)) for way in (-np.inf, np.inf)])
    bins = Binning(edges)
    values = np.concatenate([edges, near, pilot, drawn, np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0])]).astype(kind)
    if kind is np.float64:
        values = np.concatenate([values, np.nextafter(values, np.inf), [1e300, -1e300, 5e-324]])
    many = np.resize(values, max(len(values), 2_000))
    cells = np.where(np.isnan(many), bins.bins, np.searchsorted(edges, many, side="left"))
    assert np.array_equal(bins.places(Column(many)), cells)
    few = many[:500]
    assert np.array_equal(bins.places(Column(few)), cells[:500])
    whole = np.arange(-1_000, 1_000)
    assert np.array_equal(bins.places(Column(whole)), np.searchsorted(edges, whole, side="left"))


def test_a_longer_search_finds_room_beyond_the_pilot() -> None:
    for name in ("even", "an atom", "heavy tails"):
        pilot = SHAPES[name]
        bins = binning(Column(pilot), {})
        span = float(pilot.max()) - float(pilot.min())
        beyond = np.array([pilot.max() + 0.2 * span, pilot.min() - 0.2 * span], np.float32)
        high, low = cell_of(bins, beyond)
        assert low < cell_of(bins, pilot[[int(np.argmin(pilot))]])[0]
        assert high > cell_of(bins, pilot[[int(np.argmax(pilot))]])[0]
        assert bins.interval(high, bins.bins - 1)[1] == np.inf


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    pilot=arrays.arrays(np.float32, st.integers(0, 60), elements=st.floats(width=32)),
    later=arrays.arrays(np.float32, st.integers(1, 60), elements=st.floats(width=32)),
)
def test_any_floats_at_all(pilot: Floats, later: Floats) -> None:
    """NaN is a token; every other number lies in the interval of its cell."""
    bins = binning(Column(pilot), {})
    counts = bins.counts(Column(later))
    assert counts.sum() == len(later)
    unknown = np.isnan(later)
    assert counts[bins.bins :].sum() == np.count_nonzero(unknown)
    for value in later[~unknown][:10]:
        cell = int(np.argmax(bins.counts(Column(np.array([value])))))
        low, high = bins.interval(cell, cell)
        assert low < value <= high or value == low == -np.inf


def test_tokens_have_a_cell_each_and_strangers_the_last_one() -> None:
    pilot = encode_objects([1.0, "a", "a", None, float("nan")])
    bins = binning(Coordinate(()).column(pilot), dict(pilot.labels))
    assert bins.tokens[0].label == "'a'"  # the commonest first
    assert {each.code for each in bins.tokens} == {WORD.code, NONE.code, NOT_A_NUMBER.code}
    later = Coordinate(()).column(encode_objects(["a", "b", "b", 5.0, float("nan"), None, "c"]))
    counts = bins.counts(later)
    by_code = {each.code: int(counts[bins.bins + j]) for j, each in enumerate(bins.tokens)}
    assert by_code == {WORD.code: 1, NONE.code: 1, NOT_A_NUMBER.code: 1}
    assert counts[-1] == 3  # "b", "b" and "c" were never seen on the pilot
    assert counts[: bins.bins].sum() == 1


def test_outputs_that_count_many_times_over() -> None:
    column = Coordinate(()).column(encode_objects([1.0, "a", 2.0]))
    bins = Binning(np.array([1.5], np.float32), (WORD,))
    times = np.array([10**12, 5, 7])
    assert bins.counts(column, times).tolist() == [10**12, 7, 5, 0]
    repeated = np.repeat([0, 1, 2], [3, 5, 7])
    np.testing.assert_array_equal(bins.counts(column, np.array([3, 5, 7])), bins.counts(column.take(repeated)))


def test_tables_count_both_sides_of_every_feature() -> None:
    outputs = encode_objects(odd_outputs(500, seed=9))
    features = [Coordinate((0,)), Coordinate((1,)), Whole()]
    tables = Tables(tuple((each, binning(each.column(outputs), dict(outputs.labels))) for each in features))
    half = np.arange(500) < 200
    sides = outputs.take(half), outputs.take(~half)
    parts = tables.split(tables(*map(Sample, sides)))
    assert [part.sum(axis=0).tolist() for part in parts] == [[200, 300]] * 3
    for (feature, bins), part in zip(tables.features, parts, strict=True):
        np.testing.assert_array_equal(part, np.stack([bins.counts(feature.column(side)) for side in sides], axis=1))
    assert tables.wanted is None
    assert Tables(tables.features[:2]).wanted == frozenset({(0,), (1,)})


def test_equal_cells_are_equal_and_have_one_hash() -> None:
    """A learned score holds them, and results that hold it are compared."""
    one, same = (Binning(np.array([0.0, 1.0], np.float32), (WORD,)) for _ in range(2))
    assert (one, hash(one)) == (same, hash(same))
    assert one not in (Binning(np.array([0.0, 2.0], np.float32), one.tokens), Binning(one.edges), 3)


def test_a_double_that_recurs_has_a_cell_of_its_own() -> None:
    """Three of 20,000 doubles are equal; no continuous double recurs, and so none has a cell of its own by chance."""
    rng = np.random.default_rng(1)
    values = rng.laplace(size=20_000)
    values[[5, 700, 19_000]] = 0.25
    bins = binning(Column(values.astype(np.float32)), {}, values)
    assert 0.25 in bins.edges[np.flatnonzero(bins.alone)]
    assert recurring(values, values.astype(np.float32)).tolist() == [0.25]
    # pairs without number beside no single ones: what chance expects is then beyond all floats
    for few in (values[:600], np.append(np.repeat(np.arange(1000.0), 2), 2000.5)):
        assert len(recurring(few, few.astype(np.float32))) == 0


def test_float32_numbers_that_meet_by_chance_are_no_atoms() -> None:
    """200,000 float32 numbers of a continuous law, of which about 2,000 meet another: ten atoms of it at the most.

    Less than one is expected by chance; more than ten with probability below 1e-8.
    """
    values = np.random.default_rng(2).random(200_000).astype(np.float32)
    assert len(np.unique(values)) < 199_500
    assert len(recurring(values, values)) <= 10


def test_every_point_of_a_lattice_has_a_cell_of_its_own() -> None:
    """Also where nobody saw its neighbours, which then lie in none of these cells."""
    rng = np.random.default_rng(3)
    for scale in (30.0, 400.0):
        values = 10.005 + np.round(rng.laplace(scale=scale, size=60_000)) / 100.0
        bins = binning(Column(values.astype(np.float32)), {}, values)
        held = np.unique(values.astype(np.float32))
        cells = cell_of(bins, held)
        alone = bins.alone[cells]
        assert np.isin(values.astype(np.float32), held[alone]).mean() > 0.9
        assert len(set(cells[alone].tolist())) == np.count_nonzero(alone)
        beside = cell_of(bins, (held[alone][::20] + 0.005).astype(np.float32))
        assert not np.any(bins.alone[beside])


def test_a_fine_structure_inside_wide_numbers_is_not_lost_in_one_bin() -> None:
    rng = np.random.default_rng(4)
    values = np.where(rng.random(30_000) < 0.02, 0.001, 1.0) * rng.laplace(size=30_000)
    bins = binning(Column(values.astype(np.float32)), {}, values)
    assert np.count_nonzero(np.abs(bins.edges) < 0.003) > 8
