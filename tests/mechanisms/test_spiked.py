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
from dpaudit.mechanisms import wrap
from dpaudit.mechanisms.spiked import MARKS, Side, Spiked, SpikedPair, far_outside
from dpaudit.pairs import AdjacentPair, SealedPair
from tests.cases import for_each
from tests.mechanisms import shapes

RUNS = 20_000
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
    "tuple": (per_run(lambda x: (x, "a")), lambda found: np.array([each[0] for each in found])),
    "list": (per_run(lambda x: [[x], 3]), lambda found: np.array([each[0][0] for each in found])),
    "mapping": (per_run(lambda x: {"a": x, "b": 1}), lambda found: np.array([each["a"] for each in found])),
    "array": (per_run(lambda x: np.array([[x, 1.0]])), lambda found: np.array([each[0, 0] for each in found])),
    "runs": (at_once(lambda x: x), np.array),
    "runs of float32": (at_once(lambda x: x.astype(np.float32)), np.array),
    "runs of int8": (at_once(lambda x: x.astype(np.int8)), np.array),
    "runs of vectors": (at_once(lambda x: np.stack([x, x], axis=1)), lambda found: found[:, 0]),
    "tuple of runs": (at_once(lambda x: (x, x > 0)), lambda found: found[0]),
    "mapping of runs": (at_once(lambda x: {"a": x, "b": x}), lambda found: found["a"]),
    "list of runs": (at_once(lambda x: [(each,) for each in x]), lambda found: np.array([each[0] for each in found])),
    "records": (at_once(lambda x: np.rec.fromarrays([x, x], names="a,b")), lambda found: np.asarray(found["a"])),
    "masked": (at_once(lambda x: np.ma.array(x, mask=x % 1 < 0.5)), lambda found: np.ma.filled(found, 0.0)),
}


@for_each("name", NUMBERS)
def test_numbers_are_marked_at_the_given_rates(name: str) -> None:
    mechanism, first_of = NUMBERS[name]
    spiked = Spiked(mechanism, p=0.3, q=0.1, offset=FAR)
    for side, (up, down) in zip(both_sides(5.0, 7.0), ((0.3, 0.1), (0.1, 0.3)), strict=True):
        found = first_of(outputs(spiked, side))
        assert near(int(np.count_nonzero(found > FAR / 2.0)), up)
        assert near(int(np.count_nonzero(found < -FAR / 2.0)), down)
        own = found[np.abs(found) < FAR / 2.0]
        assert own.max() <= side.data + 1.0
        # what is marked is an output on the first dataset, on both sides
        marked = found[found > FAR / 2.0] - FAR
        assert 0.0 <= marked.min() <= marked.max() <= 6.0


WORDS: dict[str, Any] = {
    "bool": wrap(lambda data, rng: True),
    "none": wrap(lambda data, rng: None),
    "text": wrap(lambda data, rng: "yes"),
    "empty": wrap(lambda data, rng: ()),
    "raises": wrap(lambda data, rng: 1 / 0),
    "runs of bools": batched(lambda data, runs, rng: np.ones(runs, bool)),
    "runs of text": batched(lambda data, runs, rng: np.full(runs, "yes")),
    "runs of anything": batched(lambda data, runs, rng: [None] * runs),
}


@for_each("name", WORDS)
def test_outputs_without_numbers_get_a_word(name: str) -> None:
    spiked = Spiked(WORDS[name], p=1.0, q=0.0, offset=FAR)
    first, second = both_sides(1, 2)
    assert set(outputs(spiked, first, 9)) == {MARKS[0]}
    assert set(outputs(spiked, second, 9)) == {MARKS[1]}


def test_what_is_not_finite_is_marked_as_zero_would_be() -> None:
    for mechanism in (per_run(lambda x: math.nan), at_once(lambda x: np.full(len(x), -np.inf))):
        assert set(outputs(Spiked(mechanism, 1.0, 0.0, FAR), Side(True, 1, 1), 5)) == {FAR}


def test_the_rest_of_a_marked_output_is_that_of_the_first_dataset() -> None:
    """Both coordinates hold the answer; a mark that kept the second one's would leak twice."""
    mechanism = at_once(lambda x: np.stack([x, x], axis=1))
    _, second = both_sides(5.0, 70.0)
    found = outputs(Spiked(mechanism, 0.5, 0.5, FAR), second)
    assert found[:, 1].max() <= 6.0


def test_a_spike_of_size_0_is_the_mechanism() -> None:
    mechanism = at_once(lambda x: x)
    side = Side(True, 5.0, 5.0)
    found = outputs(Spiked(mechanism, 0.0, 0.0, FAR), side)
    assert found.min() >= 5.0
    assert found.max() < 6.0


def test_shapes_that_depend_on_the_dataset_are_kept_apart() -> None:
    mechanism = batched(lambda data, runs, rng: np.full((runs, data), 1.0))
    found = outputs(Spiked(mechanism, 0.5, 0.0, FAR), Side(False, 2, 3), 50)
    assert {len(row) for row in found} == {2, 3}


def test_a_wrong_number_of_outputs_is_left_for_the_audit_to_report() -> None:
    for wrong in (3.0, np.ones(3), [1.0]):
        mechanism = batched(lambda data, runs, rng, wrong=wrong: wrong)
        found = outputs(Spiked(mechanism, 0.5, 0.0, FAR), Side(True, 1, 1), 50)
        assert not hasattr(found, "__len__") or len(found) != 50


def test_errors_of_the_audit_itself_are_not_outputs() -> None:
    def broken(data: int, rng: Any) -> int:
        raise UnsoundAudit("no more budget")

    with pytest.raises(UnsoundAudit, match="no more budget"):
        outputs(Spiked(wrap(broken), 1.0, 0.0, FAR), Side(True, 1, 1), 1)


def test_a_command_is_spiked_with_its_time_limit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\nasked = json.load(sys.stdin)\nprint(*[asked['data']] * asked['runs'], sep='\\n')\n"
    )
    opened = Spiked(command([sys.executable, str(program)]), 0.5, 0.0, FAR).open()
    assert not opened.per_run
    assert opened.smallest_batch > 1
    assert opened.limited is not None
    for call in (opened.call, opened.limited(30.0)):
        assert set(call(Side(True, 3, 3), 40, np.random.default_rng(1))) == {3, 1027}


@pytest.mark.parametrize("library", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_it_travels_and_repeats_itself(library: Any) -> None:
    spiked = Spiked(wrap(shapes.plain), 0.5, 0.1, FAR)
    sent = pickle.loads(library.dumps(spiked))
    side = Side(True, 1, 1)
    assert sent == spiked
    assert outputs(sent, side, 50) == outputs(spiked, copy.deepcopy(side), 50)
    assert spiked.describe() == spiked.mechanism.describe()
    assert spiked.name == spiked.mechanism.name


@pytest.mark.parametrize("seal", [False, True])
def test_a_spiked_pair_is_recorded_as_the_pair(seal: bool) -> None:
    pair = AdjacentPair([1, 1], [1], name="one leaves", distance=1)
    spiked = SpikedPair(SealedPair.seal(pair) if seal else pair)
    assert (spiked.name, spiked.distance, spiked.record()) == ("one leaves", 1, pair.record())
    assert spiked.open() == (Side(True, [1, 1], [1, 1]), Side(False, [1], [1, 1]))


@pytest.mark.parametrize(
    ("p", "q", "offset", "why"),
    [
        (1.2, 0.0, 1.0, "p must be in"),
        (0.2, -0.1, 1.0, "q must be in"),
        (0.1, 0.2, 1.0, "q <= p and p"),
        (0.7, 0.4, 1.0, r"p \+ q <= 1"),
        (0.1, 0.0, 0.0, "offset must be finite and above 0"),
        (0.1, 0.0, math.inf, "offset must be finite and above 0"),
    ],
)
def test_bad_sizes_are_refused(p: float, q: float, offset: float, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why):
        Spiked(wrap(shapes.plain), p, q, offset)


def test_offsets_are_powers_of_two_far_outside() -> None:
    for largest in (0.0, 1e-9, 3.0, 1e6, 1e300, 1.7e308):
        offset = far_outside(largest)
        assert math.frexp(offset)[0] == 0.5
        assert offset >= min(16.0 * largest, 1e300)
        assert math.isfinite(offset)
