"""The known leak: its rates are exact, its marks tell nothing but the side, and all else is the mechanism's own.

Rates are compared at six standard deviations and more: with all seeds fixed, a case fails by chance with 1e-8.
"""

from __future__ import annotations

import copy
import math
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from dpaudit import InvalidSpec, UnsoundAudit, batched, command
from dpaudit.data import AdjacentPair, SealedPair
from dpaudit.mechanisms import wrap
from dpaudit.mechanisms.spiked import MARKS, EntriesShown, LeakMark, Side, Spiked, SpikedPair, far_outside
from tests.cases import for_each
from tests.mechanisms import shapes

RUNS = 5_000
FAR = 1024.0


def both_sides(first: Any, second: Any) -> tuple[Side, Side]:
    return SpikedPair(AdjacentPair(first, second)).open()


def outputs(spiked: Spiked, side: Side, runs: int = RUNS, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    opened = spiked.open()
    if opened.per_run:
        return [opened.call(side, rng) for _ in range(runs)]
    return opened.call(side, runs, rng)


def near(count: int, rate: float, runs: int = RUNS) -> bool:
    return abs(count - rate * runs) <= 6.5 * math.sqrt(rate * (1.0 - rate) * runs) + 1.0


def per_run(form: Callable[[float], Any]) -> Any:
    return wrap(lambda data, rng: form(data + rng.random()))


def at_once(form: Callable[[Any], Any]) -> Any:
    return batched(lambda data, runs, rng: form(data + rng.random(runs)))


NUMBERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "float": (per_run(float), np.array),
    "int": (per_run(int), np.array),
    "numpy float": (per_run(np.float32), np.array),
    "numpy int": (per_run(np.int16), np.array),
    "tuple": (per_run(lambda x: (x, "a")), lambda values: np.array([each[0] for each in values])),
    "list": (per_run(lambda x: [[x], 3]), lambda values: np.array([each[0][0] for each in values])),
    "mapping": (per_run(lambda x: {"a": x, "b": 1}), lambda values: np.array([each["a"] for each in values])),
    "array": (per_run(lambda x: np.array([[x, 1.0]])), lambda values: np.array([each[0, 0] for each in values])),
    "runs of float32": (at_once(lambda x: x.astype(np.float32)), np.array),
    "runs of int8": (at_once(lambda x: x.astype(np.int8)), np.array),
    "runs of vectors": (at_once(lambda x: np.stack([x, x], axis=1)), lambda values: values[:, 0]),
    "tuple of runs": (at_once(lambda x: (x, x > 0)), lambda values: values[0]),
    "mapping of runs": (at_once(lambda x: {"a": x, "b": x}), lambda values: values["a"]),
    "list of runs": (at_once(lambda x: [(each,) for each in x]), lambda values: np.array([each[0] for each in values])),
    "records": (at_once(lambda x: np.rec.fromarrays([x, x], names="a,b")), lambda values: np.asarray(values["a"])),
    "masked": (at_once(lambda x: np.ma.array(x, mask=x % 1 < 0.5)), lambda values: np.ma.filled(values, 0.0)),
}


@for_each("name", NUMBERS)
def test_numbers_are_marked_at_the_given_rates(name: str) -> None:
    mechanism, first_of = NUMBERS[name]
    spiked = Spiked(mechanism, p=0.3, q=0.1, mark=LeakMark(FAR))
    for side, (up, down) in zip(both_sides(5.0, 7.0), ((0.3, 0.1), (0.1, 0.3)), strict=True):
        value = first_of(outputs(spiked, side))
        assert near(int(np.count_nonzero(value > FAR / 2.0)), up)
        assert near(int(np.count_nonzero(value < -FAR / 2.0)), down)
        own = value[np.abs(value) < FAR / 2.0]
        assert own.max() <= side.data + 1.0
        # what is marked is an output on the first dataset, on both sides
        marked = value[value > FAR / 2.0] - FAR
        assert 0.0 <= marked.min() <= marked.max() <= 6.0


@for_each(
    "mechanism",
    [
        *(wrap(lambda data, rng, answer=answer: answer) for answer in (True, None, "yes", ())),
        wrap(lambda data, rng: 1 / 0),
        batched(lambda data, runs, rng: np.ones(runs, bool)),
        batched(lambda data, runs, rng: np.full(runs, "yes")),
        batched(lambda data, runs, rng: [None] * runs),
    ],
)
def test_outputs_without_numbers_get_a_word(mechanism: Any) -> None:
    spiked = Spiked(mechanism, p=1.0, q=0.0, mark=LeakMark(FAR))
    assert [set(outputs(spiked, side, 9)) for side in both_sides(1, 2)] == [{MARKS[0]}, {MARKS[1]}]


def test_what_is_not_finite_is_marked_as_zero_would_be() -> None:
    for mechanism in (per_run(lambda x: math.nan), at_once(lambda x: np.full(len(x), -np.inf))):
        assert set(outputs(Spiked(mechanism, 1.0, 0.0, LeakMark(FAR)), Side(True, 1, 1), 5)) == {FAR}


def test_the_rest_of_a_marked_output_is_that_of_the_first_dataset() -> None:
    """Both coordinates hold the answer; a mark that kept the second one's would leak twice."""
    mechanism = at_once(lambda x: np.stack([x, x], axis=1))
    _, second = both_sides(5.0, 70.0)
    assert outputs(Spiked(mechanism, 0.5, 0.5, LeakMark(FAR)), second)[:, 1].max() <= 6.0
    plain = outputs(Spiked(mechanism, 0.0, 0.0, LeakMark(FAR)), second)  # a spike of size 0 is the mechanism
    assert 70.0 <= plain.min() <= plain.max() < 71.0


def test_shapes_that_depend_on_the_dataset_are_kept_apart() -> None:
    mechanism = batched(lambda data, runs, rng: np.full((runs, data), 1.0))
    values = outputs(Spiked(mechanism, 0.5, 0.0, LeakMark(FAR)), Side(False, 2, 3), 50)
    assert {len(row) for row in values} == {2, 3}


def test_what_is_wrong_with_outputs_is_left_for_the_audit_to_report() -> None:
    for wrong in (3.0, np.ones(3), [1.0]):
        mechanism = batched(lambda data, runs, rng, wrong=wrong: wrong)
        values = outputs(Spiked(mechanism, 0.5, 0.0, LeakMark(FAR)), Side(True, 1, 1), 50)
        assert not hasattr(values, "__len__") or len(values) != 50

    def broken(data: int, rng: Any) -> int:
        raise UnsoundAudit("no more budget")

    with pytest.raises(UnsoundAudit, match="no more budget"):
        outputs(Spiked(wrap(broken), 1.0, 0.0, LeakMark(FAR)), Side(True, 1, 1), 1)


def test_a_command_is_spiked_with_its_time_limit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\nasked = json.load(sys.stdin)\nprint(*[asked['data']] * asked['runs'], sep='\\n')\n"
    )
    opened = Spiked(command([sys.executable, str(program)]), 0.5, 0.0, LeakMark(FAR)).open()
    assert not opened.per_run
    assert opened.smallest_batch > 1
    assert opened.limited is not None
    for call in (opened.call, opened.limited(30.0)):
        assert set(call(Side(True, 3, 3), 40, np.random.default_rng(1))) == {3, 1027}


@for_each("library", [pickle, cloudpickle])
def test_it_travels_and_repeats_itself(library: Any) -> None:
    spiked = Spiked(wrap(shapes.plain), 0.5, 0.1, LeakMark(FAR))
    sent = pickle.loads(library.dumps(spiked))
    side = Side(True, 1, 1)
    assert sent == spiked
    assert outputs(sent, side, 50) == outputs(spiked, copy.deepcopy(side), 50)
    assert spiked.describe() == spiked.mechanism.describe()
    assert spiked.name == spiked.mechanism.name


@for_each("seal", [False, True])
def test_a_spiked_pair_is_recorded_as_the_pair(seal: bool) -> None:
    pair = AdjacentPair([1, 1], [1], name="one leaves", distance=1)
    spiked = SpikedPair(SealedPair.seal(pair) if seal else pair)
    assert (spiked.name, spiked.distance, spiked.record()) == ("one leaves", 1, pair.record())
    assert spiked.open() == (Side(True, [1, 1], [1, 1]), Side(False, [1], [1, 1]))


@for_each(
    ("p", "q", "why"),
    [(1.2, 0.0, "p must be in"), (0.2, -0.1, "q must be in"), (0.1, 0.2, "q <= p and p"), (0.7, 0.4, r"p \+ q <= 1")],
)
def test_bad_sizes_and_marks_are_refused(p: float, q: float, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why):
        Spiked(wrap(shapes.plain), p, q, LeakMark(1.0))
    for offset in (0.0, math.inf):
        with pytest.raises(InvalidSpec, match="offset must be finite and above 0"):
            LeakMark(offset)
    with pytest.raises(InvalidSpec, match="spans must be three different ones"):
        LeakMark(spans=((1.0, 1.0), (1.0, 1.0), (2.0, 2.0)))
    with pytest.raises(InvalidSpec, match="words must be three different ones"):
        LeakMark(words=("a", "a", "b"))


def test_offsets_are_powers_of_two_far_outside() -> None:
    for largest in (0.0, 1e-9, 3.0, 1e6, 1e300, 1.7e308):
        offset = far_outside(largest)
        assert math.frexp(offset)[0] == 0.5
        assert offset >= min(16.0 * largest, 1e300)
        assert math.isfinite(offset)


def test_rates_inside_are_exact_by_enumeration() -> None:
    """A die: every face is put through every sign; the marks have p and q, whatever the face's own rate."""
    p, q, faces = 0.1, 0.02, 6
    mark = LeakMark(spans=((2.0, 2.0), (3.0, 3.0), (5.0, 5.0)))
    for first in (True, False):
        up, down = (p, q) if first else (q, p)
        rates: dict[Any, float] = {}
        for sign, rate in ((0, 1.0 - p - q), (1, up), (-1, down)):
            for face in range(1, faces + 1):
                output = mark.of(face, sign)
                assert type(output) is int
                rates[output] = rates.get(output, 0.0) + rate / faces
        assert rates[2] == pytest.approx(up)
        assert rates[3] == pytest.approx(down)
        assert rates[5] == pytest.approx((1.0 - p - q) * 3 / faces)


WITHIN = LeakMark(spans=((1.5, 1.5), (2.5, 2.5), (2.0, 2.0)), within=True)
LEAVES: dict[str, tuple[Any, LeakMark, Callable[[Any], Any]]] = {
    "narrow range": (
        at_once(lambda x: x),
        LeakMark(spans=((5.25, 5.3), (5.6, 5.65), (5.4, 5.45))),
        lambda out: 1 if 5.25 <= out <= 5.3 else -1 if 5.6 <= out <= 5.65 else 0,
    ),
    "late": (
        at_once(lambda x: np.stack([x, np.floor(6.0 * x) % 6.0], axis=1)),
        LeakMark(spans=((2.0, 2.0), (3.0, 3.0), (5.0, 5.0)), last=True),
        lambda out: {2.0: 1, 3.0: -1}.get(out[1], 0),
    ),
    "late word": (
        per_run(lambda x: {"a": x, "b": [x, "abc"[int(3.0 * x) % 3]]}),
        LeakMark(words=("a", "b", "c"), last=True),
        lambda out: {"a": 1, "b": -1}.get(out["b"][1], 0),
    ),
    "number in a text": (
        per_run(lambda x: f"n1 = {x:.2f}, other 3"),
        WITHIN,
        lambda out: {"n1 = 1.50, other 3": 1, "n1 = 2.50, other 3": -1}.get(out, 0),
    ),
    "word in a text": (
        at_once(lambda x: [f"{'a' * int(each)}" for each in x]),
        LeakMark(within=True),
        lambda out: 1 if out.endswith(" marked") else -1 if out.endswith(" marked otherwise") else 0,
    ),
}


@for_each("name", LEAVES)
def test_marks_inside_have_the_rates_they_state(name: str) -> None:
    mechanism, mark, sign_of = LEAVES[name]
    for first, up, down in ((True, 0.3, 0.1), (False, 0.1, 0.3)):
        values = outputs(Spiked(mechanism, 0.3, 0.1, mark), Side(first, 5.0, 5.0))
        signs = [sign_of(each) for each in (values.tolist() if isinstance(values, np.ndarray) else values)]
        assert near(signs.count(1), up)
        assert near(signs.count(-1), down)


def test_one_output_is_marked_as_many_are() -> None:
    mark = LeakMark(spans=((2.0, 2.5), (3.0, 3.5), (5.0, 6.0)))
    numbers = np.array([2.25, 3.25, 4.0, np.nan, np.inf, 2.0])
    for sign in (0, 1, -1):
        together = mark.of_all(numbers, np.full(6, sign), np.full(6, 0.5))
        alone = [mark.of(float(each), sign, 0.5) for each in numbers]
        assert np.array_equal(together, alone, equal_nan=True)
    assert mark.of(1 << 80, 0) == 1 << 80
    assert repr(mark.of(1 << 80, 1, 0.5)) == "2"  # an integer stays one
    assert LeakMark(8.0).of(1 << 80, 1) == (1 << 80) + 8
    hidden = np.ma.array([2.25, 4.0, 2.25], mask=[True, False, False])
    own = mark.of_all(hidden, np.zeros(3, np.int64), np.zeros(3))
    assert own.mask.tolist() == [True, False, False]
    assert own.compressed().tolist() == [4.0, 5.5]


KINDS: dict[str, Callable[[Any], Any]] = {
    **{f"array of {name}": lambda x, name=name: x.astype(name) for name in ("i1", "u8", "f2", "f8", "c16")},
    "array of booleans": lambda x: x > 5.5,
    "array of texts": lambda x: np.char.mod("%.0f", 99.0 * x),
    "array of bytes": lambda x: x.astype("S3"),
    "array of objects": lambda x: x.astype(np.int64).astype(object),
    "array of times": lambda x: x.astype("i8").astype("M8[s]"),
    "masked": lambda x: np.ma.array(x.astype(np.int16), mask=x % 1 < 0.5),
    "tuple": lambda x: (x.astype(np.uint16), np.char.mod("%.0f", 99.0 * x)),
    "mapping": lambda x: {"a": x > 5.5, "b": x},
    "records": lambda x: np.rec.fromarrays([x.astype("i4"), x], names="a,b"),
    "list of lists": lambda x: [[int(each), "a"] for each in x],
}
PLACES = {
    "far": LeakMark(FAR),
    "very far": LeakMark(2.0**62),
    "inside": LeakMark(spans=((5.25, 5.25), (5.6, 5.6), (5.5, 5.5))),
    "narrow": LeakMark(spans=((5.25, 7.5), (8.0, 9.0), (10.0, 11.0))),
    "word": LeakMark(words=("500", "501", "502")),
    "late": LeakMark(FAR, last=True),
    "in a text": LeakMark(FAR, within=True),
}


def types_of(output: Any) -> Any:
    """The types of what stands in a batch, container by container; of texts of any length one."""
    if isinstance(output, np.ndarray):
        return type(output), output.dtype.kind if output.dtype.kind in "SU" else output.dtype
    if isinstance(output, dict):
        return {key: types_of(part) for key, part in output.items()}
    return tuple(map(types_of, output)) if isinstance(output, tuple) else type(output)


@for_each(("kind", "place"), [(kind, place) for kind in KINDS for place in PLACES])
def test_a_mark_does_not_change_the_type_of_a_call(kind: str, place: str) -> None:
    """A call with some marked runs, all or none gives the same type: else the type of the call would be the leak."""
    spiked = [Spiked(at_once(KINDS[kind]), p, 0.0, PLACES[place]).open() for p in (0.0, 0.5, 1.0)]
    sides = both_sides(5.0, 5.5)
    values = [types_of(each.call(side, 40, np.random.default_rng(1))) for each in spiked for side in sides]
    assert all(each == values[0] for each in values), values


@for_each(
    "form", [int, np.int8, np.uint64, np.float16, float, lambda x: np.array([x], "u1"), lambda x: (np.int16(x), 1)]
)
def test_nor_that_of_a_run(form: Callable[[Any], Any]) -> None:
    for place in ("far", "inside", "narrow", "late"):
        own, up, down = (PLACES[place].of(form(5.0), sign, 0.5) for sign in (0, 1, -1))
        assert types_of(own) == types_of(up) == types_of(down), place


SHAPES: dict[str, tuple[Any, Any]] = {
    "number": (per_run(lambda x: 3), (3.0, "", False, 3.0, "")),
    "text": (per_run(lambda x: "a 2.5"), (2.5, "a 2.5", False, 2.5, "a 2.5")),
    "nested": (per_run(lambda x: {"a": [1, "x"], "b": np.array([4.0, 5.0])}), (1.0, "", True, 5.0, "")),
    "batch": (at_once(lambda x: np.stack([0.0 * x, 0.0 * x + 1.0], axis=1)), (0.0, "", True, 1.0, "")),
    "tuple of batches": (at_once(lambda x: (0.0 * x, [["y"]] * len(x))), (0.0, "", True, math.nan, "y")),
    "records": (at_once(lambda x: np.rec.fromarrays([0.0 * x, 0.0 * x + 2.0], names="a,b")), (0.0, "", True, 2.0, "")),
    "nothing": (per_run(lambda x: None), (math.nan, "", False, math.nan, "")),
}


@for_each("name", SHAPES)
def test_what_stands_where_a_mark_would_is_shown(name: str) -> None:
    mechanism, expected = SHAPES[name]
    opened, rng = EntriesShown(mechanism).open(), np.random.default_rng(1)
    output = opened.call(1.0, rng) if opened.per_run else opened.call(1.0, 3, rng)[2]
    assert repr(tuple(output)) == repr(expected)
