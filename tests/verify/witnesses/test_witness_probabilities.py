"""Probabilities of outputs: against runs of the function itself, against each other, and the catalogue's own losses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.programs import FAMILY, PROGRAMS
from dpaudit.catalogue import rooms
from dpaudit.catalogue.entry import Entry
from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import read
from dpaudit.verify.language.nodes import Program, Symbol
from dpaudit.verify.witnesses import pair_loss
from dpaudit.verify.witnesses.outcomes import Outcomes
from dpaudit.verify.witnesses.outputs import ANY, NOISY, Anything, Values, at_least, at_most, output_event
from tests.cases import for_each

SPARSE = {"eps": 1, "N": 1, "T": 0}
RUNS = 3000
SAMPLING = math.sqrt(math.log(2 / 1e-11) / (2 * RUNS))  # Hoeffding: each of < 400 comparisons fails with chance 1e-11


def probability(program: Program, answers: Any, parameters: dict, outputs: Iterable[object]) -> Any:
    return Outcomes(program, answers, parameters).probability(output_event(outputs))


def texts(q, rng, start):
    t = start + rng.laplace(scale=2)
    out = []
    for x in q:
        if x + rng.laplace(scale=1) > t:
            out.append("top")
        elif x > 1:
            out.append("None")
        else:
            out.append(None)
    return tuple(out)


def ties(q, rng):
    """Answers without noise are compared as Python does; 0 is an atom beside noisy numbers."""
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        if x >= 2:
            out.append(0)
        elif x > 1:
            out.append(None)
        elif x + rng.laplace(scale=1) >= t:
            out.append(x + rng.laplace(scale=3))
        else:
            out.append(None)
    return out


def keyed(q, rng, c):
    t = rng.laplace(scale=2)
    output = {}
    for place, x in enumerate(q):
        v = x + rng.laplace(scale=3)
        if v >= t:
            output[place] = v - t
            t = rng.laplace(scale=2)
            if len(output) >= c:
                break
    return output


def weighted(q, rng, budget):
    """Runs end at different lengths."""
    t = rng.laplace(scale=2)
    spent = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=3) >= t + 2:
            out.append(True)
            spent += 3
        elif x + rng.laplace(scale=2) >= t:
            out.append(False)
            spent += 2
        else:
            out.append(None)
            spent += 1
        if spent > budget:
            break
    return tuple(out)


def listed_and_counted(q, rng):
    t = rng.laplace(scale=2)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=2) >= t:
            out.append(True)
            count += 1
            break
        out.append(None)
    return out, count


def place_and_threshold(q, rng):
    t = rng.laplace(scale=2)
    place = -1
    for i, x in enumerate(q):
        if x + rng.laplace(scale=2) >= t:
            place = i
            break
    return t, place


def smallest(q, rng):
    best = 0
    winner = -1
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=1)
        if y <= best:
            best = y
            winner = i
    return winner


def steep(q, rng):
    """Lines of other slopes than 1, on both sides of a draw."""
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        y = rng.laplace(scale=1)
        if 2 * x + 3 * y >= t:
            out.append(True)
        elif x - y > t / 3:
            out.append(False)
        else:
            out.append(None)
    return out


def two_sided(q, rng):
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        y = x + rng.laplace(scale=2)
        if y >= t or y <= -t:
            out.append(True)
        else:
            out.append(None)
    return out


def remembered(q, rng):
    t = rng.laplace(scale=2)
    seen = False
    out = []
    for x in q:
        above = x + rng.laplace(scale=2) >= t
        if above and not seen:
            out.append(1)
            seen = True
        elif above or x > 1:
            out.append(2)
        else:
            out.append(0)
    return out


def inside(value: object, pattern: object) -> bool:
    if isinstance(pattern, Anything):
        return True
    if isinstance(pattern, Values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        low = pattern.lower is None or (is_number and value >= pattern.lower)
        return is_number and low and (pattern.upper is None or value <= pattern.upper)
    return value is pattern if pattern is None or isinstance(pattern, bool) else value == pattern


def shape_of(output: Any, *, nested: bool = False) -> object:
    """The shape of what a function returned; numbers that are not whole are noisy."""
    if isinstance(output, dict):
        output = tuple(output.items())
    if isinstance(output, list | tuple):
        return tuple(shape_of(each, nested=True) for each in output)
    if output is None or isinstance(output, bool | str):
        found: object = Symbol(repr(output))
    else:
        found = Fraction(output) if output == int(output) else NOISY
    return found if nested else (found,)


@for_each(
    ("function", "answers", "parameters", "more"),
    [
        (texts, [0, 1, 2], {"start": 1}, None),
        (ties, [0, 1, Fraction(3, 2), 2], {}, None),
        (keyed, [0, 1, 2], {"c": 2}, None),
        (keyed, [2, 0, 0, 1], {"c": 1}, None),
        (weighted, [0, 1, 2, 0], {"budget": 4}, None),
        (listed_and_counted, [0, 1, 2], {}, None),
        (place_and_threshold, [0, 1], {}, None),
        (smallest, [0, 1, -1], {}, None),
        (steep, [-1, 2], {}, None),
        (two_sided, [0, 1], {}, None),
        (remembered, [0, 1, 2], {}, None),
        ("c1_noisy_max", [0, 1, 1, -1], {"eps": 1}, 4),
        ("c2_sparse_vector", [0, 1, -2, 1, 0], SPARSE, 6),
        ("c5_gap_sparse_vector", [-2, 1], SPARSE, [None, at_least(3)]),
        ("c6_numeric_sparse_vector", [0, 2], SPARSE, [None, at_most(1)]),
        ("c7_adaptive_sparse_vector", [10, 14], SPARSE, [ANY, at_least(4)]),
        ("c7_adaptive_sparse_vector", [20, 14], SPARSE, [at_least(20)]),
        ("c9_smart_sum", [1, 0, 1], {"eps": 1, "M": 2, "T": 5}, [at_most(1), at_least(0), at_least(1)]),
        ("w1_noisy_max_value", [0, 1, -1], {"eps": 1}, [at_most(1)]),
        ("w7_gap_value", [0, 1], SPARSE, [None, at_least(2)]),
        ("w8_adaptive_value", [4, 16], SPARSE, [ANY, at_most(20)]),
        ("lyu_2", [0, 1, -2, 1, 0], {"eps": 1, "T": 0, "c": 2}, 16),
        ("lyu_5", [0, 1, 1], {"eps": 1, "T": 0}, 3),
        ("lyu_6", [0, 1, -1, 3, 1], {"eps": Fraction(1, 2), "T": 1}, 32),
        ("no_threshold_noise", [0, 1, -1], {"eps": 2, "T": 0, "c": 3}, 8),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_outputs_are_as_likely_as_they_are_among_runs(
    function: Callable[..., Any] | str, answers: list[Any], parameters: dict, more: list | int | None
):
    """Every shape of output, and all together; `more` is another event, or how many shapes are possible."""
    if isinstance(function, str):
        function = (PROGRAMS | FAMILY)[function].function
    outcomes = Outcomes(read(function), answers, parameters)
    chances = {shape: outcomes.probability(shape) for shape in outcomes.by_shape}
    total = sum(chances.values())
    assert total.contains(1)
    assert float(total.rad()) < 1e-12
    assert not isinstance(more, int) or sum(not chance.is_zero() for chance in chances.values()) == more
    rng = np.random.default_rng(20_240_602)
    data, given = [float(each) for each in answers], {name: float(value) for name, value in parameters.items()}
    outputs = [function(data, rng, **given) for _ in range(RUNS)]
    seen = Counter(map(shape_of, outputs))
    assert set(seen) <= set(chances)
    for shape, chance in chances.items():
        assert abs(seen[shape] / RUNS - float(chance)) <= SAMPLING, shape
    if isinstance(more, list):
        lists = [output if isinstance(output, list | tuple) else (output,) for output in outputs]
        hits = sum(len(output) == len(more) and all(map(inside, output, more)) for output in lists)
        exact = float(outcomes.probability(output_event(more)))
        assert abs(hits / RUNS - exact) <= SAMPLING
        assert 0.02 < exact < 0.98  # or the comparison says nothing


def test_a_half_line_and_its_rest_add_up_to_one():
    value = read(PROGRAMS["w1_noisy_max_value"].function)
    for end in (-3, 0, Fraction(1, 3), 5):
        halves = [probability(value, [0, 1, 1], {"eps": 1}, [side(end)]) for side in (at_most, at_least)]
        assert sum(halves).contains(1)


def test_outputs_are_not_tagged_with_the_branch_that_made_them():
    adaptive = read(PROGRAMS["w8_adaptive_value"].function)
    outputs = [[None], [at_most(0)], [at_least(0)]]
    parts = [probability(adaptive, [12], SPARSE, each) for each in outputs]
    assert sum(parts).contains(1)
    assert float(parts[2]) > 0.5  # from the coarse branch and from the fine one
    negative = probability(adaptive, [4], SPARSE, [at_most(-1)])
    assert float(negative) > 0.0  # the coarse branch alone


def test_atoms_are_compared_exactly():
    smart = read(PROGRAMS["w3_smart_sum_missing_draw"].function)
    parameters = {"eps": 1, "M": 2, "T": 1}
    assert probability(smart, [0, 0, 0], parameters, [ANY, 0]) == 1
    assert probability(smart, [1, 0, 0], parameters, [ANY, 0]).is_zero()
    assert probability(smart, [1, 0, 0], parameters, [0, ANY]).is_zero()  # a noisy number is no atom


def test_an_event_has_one_probability_whether_all_paths_were_followed_or_its_own():
    """Of followed paths those of a plain event are looked up by their outputs, some of them from two branches."""
    plain = [(), (None,), (True,), (None, True), (None, ANY), (None, 0), (None, at_most(0)), (0, 1), ((1, 0),)]
    for name, given in (("lyu_1", {"c": 2}), ("w8_adaptive_value", {}), ("w3_smart_sum_missing_draw", {"M": 2})):
        program = read((FAMILY | PROGRAMS)[name].function)
        parameters = {each: (SPARSE | given)[each] for each in program.parameters}
        followed = Outcomes(program, [0, 1], parameters)
        assert followed.paths
        for event in map(output_event, plain):
            own = Outcomes(program, [0, 1], parameters).probability(event)
            assert followed.probability(event).overlaps(own)
            assert followed.probability(event).is_zero() == own.is_zero()


def readable(room: str) -> list[Entry]:
    """The entries of a room of the catalogue with a loss, and their twins, whose source the language reads."""
    module = next(held for held in rooms().values() if held[0].module.split(".")[2] == room)
    found = []
    for entry in (each for held in module for each in (held, *held.twins.values())):
        try:
            read(entry.program)
        except InvalidSpec:  # outside the language, or no plain function
            continue
        if entry.loss is not None and len(entry.default_pair[0]) <= 6:
            found.append(entry)
    return found


@pytest.mark.parametrize("room", ["selection", "sparse"])
def test_the_losses_of_the_catalogue(room: str):
    compared = 0
    for entry in readable(room):
        program, values = read(entry.program), entry.values()
        parameters = {name: Fraction(str(values[name])) for name in program.parameters if name in values}
        first, second = entry.default_pair
        known = entry.loss(first, second, **values)
        found = pair_loss(program, [Fraction(str(a)) for a in first], [Fraction(str(b)) for b in second], parameters)
        assert found.loss.lower <= known + 1e-9, entry.name
        assert found.loss.lower >= min(known, 9.0) - 1e-7, entry.name  # the least of events may stay below infinity
        if found.exact:
            assert found.loss.upper == pytest.approx(known, rel=1e-9), entry.name
            compared += 1
    assert compared >= 5
