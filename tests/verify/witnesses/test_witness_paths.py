"""Paths, running maxima and events of draws; what is outside is refused with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.programs import FAMILY, PROGRAMS, lyu_1
from dpaudit.errors import InvalidSpec
from dpaudit.verify.integrals import Event, Line
from dpaudit.verify.language import read
from dpaudit.verify.language.nodes import Program, Symbol
from dpaudit.verify.witnesses import OutsideIntegrals
from dpaudit.verify.witnesses.outcomes import event_of
from dpaudit.verify.witnesses.outputs import ANY, Values, at_least, at_most, in_words, output_event, required
from dpaudit.verify.witnesses.paths import paths
from dpaudit.verify.witnesses.states import NoisySum, maximum
from tests.cases import for_each

ONE = Fraction(1)
FIRST = NoisySum.draw(0)


def program(body: str, signature: str = "q, rng"):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return read(f"def mechanism({signature}):\n{lines}\n")


def event(program: Program, answers: Any, parameters: dict, outputs: Iterable[object]) -> Event:
    return event_of(paths(program, answers, parameters, output_event(outputs)))


MAXIMUM = """\
best = 0
winner = 0
for i in range(len(q)):
    y = q[i] + rng.laplace(scale=1)
    if i == 0 or y > best:
        winner = i
        best = y
return winner"""


def test_sums_of_draws_cancel():
    assert (FIRST + FIRST - FIRST.times(Fraction(2))).is_number
    assert (FIRST - FIRST + NoisySum(ONE)).constant == 1
    assert FIRST.times(Fraction(0)) == NoisySum(Fraction(0))
    assert (NoisySum.draw(3) + FIRST).terms == ((0, ONE), (3, ONE))


def outputs_of(text: str, answers: list[int]) -> list[object]:
    return [path.outputs[0].constant for path in paths(program(text), answers, {})]  # type: ignore[union-attr]


def test_a_maximum_has_one_path_for_each_winner():
    noisy_max = program(MAXIMUM)
    assert maximum(noisy_max) is not None
    assert outputs_of(MAXIMUM, [0] * 4) == [0, 1, 2, 3]
    assert all(len(path.constraints) == 3 for path in paths(noisy_max, [0] * 4, {}))
    started = MAXIMUM.replace("i == 0 or ", "").replace("winner = 0", "winner = -1")  # from a start it may stay there
    assert outputs_of(started, [0, 0]) == [-1, 0, 1]
    assert [len(path.constraints) for path in paths(program(started), [0, 0], {})] == [2, 2, 2]
    least = event(program(MAXIMUM.replace("y > best", "y < best")), [0, 3], {}, [0])  # a minimum is one the other way
    assert least != event(noisy_max, [0, -3], {}, [0])
    assert least[0][0].factors[0].lower == (Line(1, Fraction(-3)),)


@pytest.mark.parametrize(("better", "winner"), [(">", 1), (">=", 2)])
def test_without_noise_equal_answers_are_compared_as_python_does(better: str, winner: int):
    exact = MAXIMUM.replace(" + rng.laplace(scale=1)", "").replace("y > best", f"y {better} best")
    assert outputs_of(exact, [2, 5, 5, 1]) == [winner]


@for_each(
    ("old", "new"),
    [
        ("best = y", "best = y + 1"),
        ("y > best:", "y > best + 1:"),
        ("i == 0 or", "i == 1 or"),
        ("    if i == 0", "    z = best\n    if i == 0"),
    ],
)
def test_what_only_looks_like_a_maximum_is_none(old: str, new: str):
    assert maximum(program(MAXIMUM.replace(old, new))) is None


TEXTS = """\
out = []
for x in q:
    if x + rng.laplace(scale=1) > 0:
        out.append('top')
    elif x > 1:
        out.append('None')
    else:
        out.append(None)
return out"""
CHAIN = """\
last = 0
out = []
for x in q:
    y = x + rng.laplace(scale=1)
    out.append(y > last)
    last = y
return out"""
SPARSE, UNSCALED = read(lyu_1), read(PROGRAMS["w5_sparse_unscaled"].function)
EXACT, GAP = read(PROGRAMS["w4_sparse_no_query_noise"].function), read(FAMILY["gap"].function)
NO_CUT_OFF = read(FAMILY["no_cut_off"].function)
EXPONENTIAL = program("return q + rng.exponential(scale=2)")
SCALED = program("return q + rng.laplace(scale=b)", "q, rng, b")
AT = {"eps": 1, "T": 0}
SUM = "a = rng.laplace(scale=1)\nb = rng.laplace(scale=1)\nc = rng.laplace(scale=1)\nreturn q + a + b + c"
MULTIPLES = "a = rng.laplace(scale=1)\nb = a + rng.laplace(scale=1)\nreturn q + a + b, b"


@for_each(
    ("program", "answers", "parameters", "outputs", "count"),
    [
        (UNSCALED, [0] * 5, AT, None, 32),
        (UNSCALED, [0] * 5, AT, [None] * 5, 1),  # an output names one path of many
        (UNSCALED, [0] * 30, AT, [True] * 30, 1),
        (SPARSE, [0, 0], AT | {"c": 1}, [None], 0),  # outputs of another length
        (SPARSE, [0, 0], AT | {"c": 1}, [None] * 3, 0),
        (SPARSE, [0, 0], AT | {"c": 1}, [True, None], 0),
        (SPARSE, [0, 0], AT | {"c": 1}, [], 0),
        (EXACT, [1, 0], AT, [None, True], 0),  # which no threshold gives
        (EXACT, [0, 0], AT, [None, True], 0),
        (EXACT, [0, Fraction(1, 10**30)], AT, [None, True], 1),
        (GAP, [0], AT | {"c": 1}, [at_most(-1)], 0),
        (GAP, [0], AT | {"c": 1}, [Values(Fraction(0), Fraction(1))], 1),
        (SCALED, 3, {"b": 0}, [3], 1),  # a scale of 0 is no noise
        (EXPONENTIAL, 1, {}, [at_most(1)], 0),  # never below its start
        (EXPONENTIAL, 1, {}, [at_most(2)], 1),
        (EXPONENTIAL, np.int64(1), {}, [at_most(np.int64(2))], 1),
        (program(TEXTS), [2], {}, ["top"], 1),  # texts are symbols as the reader writes them
        (program(TEXTS), [2], {}, ["None"], 1),
        (program(TEXTS), [2], {}, [None], 0),
        (program(TEXTS), [2], {}, ["bottom"], 0),
        (program(TEXTS), [2], {}, ["'top'"], 0),
        (program(TEXTS), [0], {}, [None], 1),
        (program(TEXTS), [0], {}, ["None"], 0),
    ],
    ids=lambda value: getattr(value, "name", repr(value)),
)
def test_an_event_has_the_paths_that_are_possible(
    program: Program, answers: Any, parameters: dict, outputs: list | None, count: int
):
    if outputs is None:
        assert len(list(paths(program, answers, parameters))) == count
    else:
        assert len(event(program, answers, parameters, outputs)) == count


@for_each(
    ("program", "answers", "parameters", "outputs", "message"),
    [
        (SCALED, 3, {"b": -1}, [ANY], "line 2: a scale must be a public number, at least 0"),
        (program(SUM), 0, {}, [at_most(0)], "line 4: a comparison of 3 draws together"),
        (program(MULTIPLES), 0, {}, [at_most(0), at_least(0)], "a draw is compared with two different multiples"),
        (program(CHAIN), [0] * 4, {}, [True] * 4, "draws of lines 5 are compared in a ring or a chain"),
    ],
    ids=lambda value: getattr(value, "name", repr(value)),
)
def test_what_the_integrals_do_not_cover_is_refused(
    program: Program, answers: Any, parameters: dict, outputs: list, message: str
):
    with pytest.raises(OutsideIntegrals, match=message):
        event(program, answers, parameters, outputs)


@for_each(
    ("answers", "parameters", "message"),
    [
        ([0], {"eps": 1, "T": 0}, "needs a value of its parameter c"),
        ([0], {"eps": 1, "T": 0, "c": 1, "d": 1}, "has no parameter d; it has eps, T, c"),
        ([0], {"eps": 1, "T": 0, "c": 0}, "break what lyu_1 asserts of them: eps = 1, T = 0, c = 0"),
        ([], {"eps": 1, "T": 0, "c": 1}, "needs at least one answer, got 0"),
        (None, {"eps": 1, "T": 0, "c": 1}, "an answer must be a finite number, got None"),
        ([0], {"eps": float("nan"), "T": 0, "c": 1}, "the parameter eps must be a finite number, got nan"),
        ([0], {"eps": True, "T": 0, "c": 1}, "the parameter eps must be a finite number, got True"),
        ([float("nan")], {"eps": 1, "T": 0, "c": 1}, "an answer must be a finite number, got nan"),
    ],
)
def test_wrong_questions_are_named(answers: Any, parameters: dict[str, Any], message: str):
    with pytest.raises(InvalidSpec, match=message):
        list(paths(read(lyu_1), answers, parameters))


@for_each(
    ("released", "pattern", "wanted"),
    [
        (Symbol("None"), Symbol("True"), None),
        (Symbol("True"), Values(None, None), None),
        (Symbol("True"), ANY, []),
        (NoisySum(ONE), Fraction(2), None),
        (NoisySum(ONE), at_least(2), None),
        (FIRST, ONE, None),
        (FIRST, at_least(1), [FIRST - NoisySum(ONE)]),
        (FIRST, at_most(1), [NoisySum(ONE) - FIRST]),
        ((FIRST, NoisySum(ONE)), (ANY, ONE), []),
        ((FIRST, NoisySum(ONE)), (ANY,), None),
    ],
)
def test_released_values_and_patterns(released: object, pattern: object, wanted: object):
    assert required(released, pattern) == wanted  # type: ignore[arg-type]


def test_events_in_words():
    assert in_words(output_event([None, True, 0.5, at_most(2), (0, at_least(1)), ANY])) == (
        "(None, True, 1/2, <= 2, (0, >= 1), anything)"
    )
    assert in_words(output_event([None] * 7 + [True])) == "(None 7 times, True)"
    assert in_words(output_event(["None", None])) == "('None', None)"
    assert in_words(output_event([3.731, Fraction(1, 3), at_most(0.1), Values(0.1, 3.731)])) == (  # type: ignore[arg-type]
        "(3.731, 1/3, <= 0.1, in [0.1, 3.731])"
    )


@pytest.mark.parametrize(
    ("plain", "numpys"),
    [(1, np.int64(1)), (Fraction(1, 2), np.float32(0.5)), (True, np.bool_(True)), ((0, 2.5), np.array([0, 2.5]))],
)
def test_numpys_values_are_the_numbers_that_they_are(plain: object, numpys: object):
    assert output_event([numpys]) == output_event([plain])
    held = output_event([numpys])[0]
    assert not isinstance(held, Fraction) or type(held.numerator) is int  # or it would overflow in silence


def test_numpys_answers_and_parameters_are_exact():
    numpys = {"eps": np.int64(1), "T": np.float64(0), "c": np.int64(1)}
    assert event(SPARSE, np.array([0, 1]), numpys, [None, True]) == event(SPARSE, [0, 1], AT | {"c": 1}, [None, True])


@for_each(
    ("make", "message"),
    [
        (lambda: output_event([object()]), "an output event holds symbols"),
        (lambda: output_event([float("nan")]), "a number in an output event must be a finite number, got nan"),
        (lambda: output_event(5), "a tuple with one item for every output, got 5"),  # type: ignore[arg-type]
        (lambda: output_event({0: 1}), "a tuple with one item for every output"),
        (lambda: at_most(float("inf")), "the end of a half-line must be a finite number, got inf"),
        (lambda: at_least(float("nan")), "the end of a half-line must be a finite number, got nan"),
        (lambda: Values(None, float("nan")), r"an interval of values \(upper\) must be a finite number, got nan"),  # type: ignore[arg-type]
        (lambda: Values("a", None), r"an interval of values \(lower\) must be a finite number, got 'a'"),  # type: ignore[arg-type]
        (lambda: Values(ONE, Fraction(0)), r"lower <= upper, got \[1, 0\]"),
    ],
)
def test_what_is_no_event_is_named(make: Callable[[], object], message: str):
    with pytest.raises(InvalidSpec, match=message):
        make()


def test_too_many_paths_and_outputs_are_refused_before_all_are_followed(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(OutsideIntegrals, match="no_cut_off has more than 64 paths; give fewer answers"):
        list(paths(NO_CUT_OFF, [0] * 7, AT, most=64))
    monkeypatch.setattr("dpaudit.verify.witnesses.paths.MOST_OUTPUTS", 256)
    with pytest.raises(OutsideIntegrals, match="outputs here; give those of interest"):
        list(paths(NO_CUT_OFF, [0] * 20, AT))  # 2^20 paths; it ends at the 9th answer
