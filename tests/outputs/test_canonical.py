"""The key property: the canonical form of an output is a function of that output alone.

Whatever else is in its batch, on whatever path it is read, counted first or not. A violation is a hole in
validity: the membership of one run in the event would depend on the other runs, of both sides.
"""

from __future__ import annotations

import fractions
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.events.features import Coordinate, Whole
from dpaudit.events.joint import Equal
from dpaudit.outputs.canonical import REST, TYPE, Path
from dpaudit.outputs.encode import encode_objects
from tests.cases import NIGHTLY, for_each
from tests.outputs import kinds

pytestmark = pytest.mark.filterwarnings("ignore")  # numpy warns where a strange object is read as a number

ALL = kinds.EVERYTHING


def alone(output: Any) -> dict[Any, kinds.Cell]:
    """The canonical form of one run."""
    return kinds.cells(encode_objects([output]), 0)


def check(objects: list[Any], forms: list[Any] | None = None) -> None:
    """Cell by cell: the batch against each of its outputs alone, whose forms may be given."""
    together = encode_objects(objects)
    for row, form in enumerate(forms or map(alone, objects)):
        assert kinds.cells(together, row) == form, f"row {row}: {objects[row]!r} in {objects!r}"


@pytest.mark.long
def test_no_neighbour_changes_an_output() -> None:
    """One output of each kind before and after each other one, and a kind in any turn; by night all beside all."""
    forms = {name: [(output, alone(output)) for output in outputs] for name, outputs in kinds.KINDS.items()}
    some = itertools.chain(*forms.values()) if NIGHTLY else [each[0] for each in forms.values()]
    turns = ([*kind[at:], *kind[: at + 1]] for kind in forms.values() for at in range(len(kind)))
    for batch in itertools.chain(itertools.permutations(some, 2), turns):
        check(*map(list, zip(*batch, strict=True)))


plain = st.one_of(
    st.sampled_from(ALL),
    st.floats(),
    st.integers(),
    st.text(max_size=3),
    st.booleans(),
    st.none(),
)
nested = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.integers(0, 3), st.sampled_from(["a", "0", "@len"])), inner, max_size=3),
    ),
    max_leaves=6,
)


@pytest.mark.long
@settings(max_examples=500 if NIGHTLY else 100, deadline=None, derandomize=True)
@given(objects=st.lists(nested, min_size=1, max_size=7), random=st.randoms(use_true_random=False))
@example(objects=[{"a": 1}, {"@len": 3}], random=None)
def test_batches_do_not_matter(objects: list[Any], random: Any) -> None:
    """In any order, whole, and where certification asks for paths that search saw."""
    check(objects)
    together = encode_objects(objects)
    codes = [int(Whole().column(encode_objects([output])).tokens[0]) for output in objects]
    assert Whole().column(together).tokens.tolist() == codes
    for path in [*list(together.columns)[:6], (REST,)]:
        asked = encode_objects(objects, frozenset({path}))
        for row in range(len(objects)):
            assert kinds.cell(asked, path, row) == kinds.cell(together, path, row), (path, objects)
    if random is not None:
        random.shuffle(objects)
        check(objects)


@for_each(
    "quick, path",
    [
        ([1.0, 2, True], ()),
        ([np.float64(1.0), np.int64(2**60 + 2**36 + 1)], ()),
        ([1.0, np.array([2.0])], ()),
        ([1.0, np.complex128(1 + 2j)], ()),
        ([np.complex128(1 + 2j), 1.0], ()),
        ([1.0, np.ma.masked], ()),
        ([1.0, kinds.Measured(2.0)], ()),
        ([np.timedelta64(5, "s"), 1.0], ()),
        ([(1.0, 2.0), (1.0, np.ma.masked)], (1,)),
        ([(1.0, 2.0), (1.0, kinds.Measured(2.0))], (1,)),
        ([(1.0, 2.0), (1.0, np.array(2.0))], (1,)),
        ([(1.0, 2.0), (1.0, np.array([2.0]))], (1,)),
        ([(1.0, 2.0), (1.0, np.complex128(2j))], (1,)),
        ([np.array([2**60 + 2**36 + 1]), np.array([2**53 + 1])], (0,)),
        ([np.array([2**63 + 1], np.uint64), np.array([-1])], (0,)),
    ],
    ids=kinds.label,
)
def test_the_quick_path_reads_what_the_slow_one_reads(quick: list[Any], path: Path) -> None:
    """A piece of text among the outputs sends them down the slow path."""
    wanted = frozenset({path})
    fast = encode_objects(quick, wanted)
    careful = encode_objects([*quick, "text"], wanted)
    feature = Coordinate(path)
    for row in range(len(quick)):
        assert kinds.cell(fast, path, row) == kinds.cell(careful, path, row)
    rounded = [feature.column(outputs).values[: len(quick)] for outputs in (fast, careful)]
    np.testing.assert_array_equal(*rounded)


def test_integers_are_rounded_alike_whatever_column_holds_them() -> None:
    """int64 to float32 directly, and by way of float64, differ in the last bit; only one of them may be used."""
    large = np.array([2**60 + 2**36 + 1, 2**53 + 1, 2**53])
    alone, beside = encode_objects([large]), encode_objects([large, np.array([1.0])])
    for feature in (Coordinate((0,)), Equal((1,), (2,)), Whole()):
        one, other = (feature.column(outputs) for outputs in (alone, beside))
        assert (one.values[0], one.tokens[0]) == (other.values[0], other.tokens[0]) or np.isnan(one.values[0])
        assert one.tokens[0] == other.tokens[0]


def test_whole_outputs_that_differ_have_different_codes() -> None:
    """64-bit codes of 3,000 outputs: chance of an equal pair below 3e-13."""
    outputs = [
        *itertools.product(range(10), range(10), "ab"),
        *range(1_000),
        *map(str, range(1_000)),
        *[(0, (i,)) for i in range(800)],
    ]
    codes = Whole().column(encode_objects(outputs)).tokens
    assert len(np.unique(codes)) == len(outputs)


def test_zero_has_no_sign_and_one_has_no_type() -> None:
    whole = Whole()
    for equals in (
        [0.0, -0.0, 0, False],
        [1, True, 1.0, np.int64(1), np.bool_(True)],
        [(1, "a"), (True, "a"), (1.0, "a")],
    ):
        for batch in (equals, [*equals, "text"]):
            assert len(set(whole.column(encode_objects(batch)).tokens[: len(equals)].tolist())) == 1


def test_the_type_asked_for_by_name_does_not_depend_on_the_batch() -> None:
    wanted = frozenset({(TYPE,)})
    objects = [output for output in ALL if not isinstance(output, fractions.Fraction | np.ma.MaskedArray)]
    together = encode_objects(objects, wanted)
    for row, output in enumerate(objects):
        assert kinds.cell(together, (TYPE,), row) == kinds.cell(encode_objects([output], wanted), (TYPE,), 0), output


@pytest.mark.long
def test_long_outputs_are_cut_at_the_same_place_in_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    widest = kinds.cut_earlier(monkeypatch)
    check([list(range(widest + 10)), [1], np.zeros(widest + 10), np.zeros(3)])
