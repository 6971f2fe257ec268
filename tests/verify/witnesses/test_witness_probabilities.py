"""Probabilities of events of outputs: against sampling, against each other, and against the catalogue's own losses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.programs import FAMILY, PROGRAMS
from dpaudit.catalogue import rooms
from dpaudit.catalogue.entry import Entry
from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import read
from dpaudit.verify.witnesses import ANY, OutsideIntegrals, at_least, at_most, law, output_event, pair_loss, probability
from dpaudit.verify.witnesses.outcomes import Outcomes
from dpaudit.verify.witnesses.outputs import Anything, Values
from tests.cases import for_each

SPARSE = {"eps": 1, "N": 1, "T": 0}
RUNS = 2000
SAMPLING = math.sqrt(math.log(2 / 1e-10) / (2 * RUNS))  # Hoeffding: each comparison fails with chance 1e-10 at most


def inside(value: object, pattern: object) -> bool:
    if isinstance(pattern, Anything):
        return True
    if isinstance(pattern, Values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        low = pattern.lower is None or (is_number and value >= pattern.lower)
        return is_number and low and (pattern.upper is None or value <= pattern.upper)
    return value is pattern if pattern is None or isinstance(pattern, bool) else value == pattern


SAMPLED = [
    ("c1_noisy_max", [0, 1, 1, -1], {"eps": 1}, [1]),
    ("c2_sparse_vector", [0, 0, 1], SPARSE | {"N": 2}, [None, True, True]),
    ("c5_gap_sparse_vector", [-2, 1], SPARSE, [None, at_least(3)]),
    ("c6_numeric_sparse_vector", [0, 2], SPARSE, [None, at_most(1)]),
    ("c7_adaptive_sparse_vector", [10, 14], SPARSE, [ANY, at_least(4)]),
    ("c7_adaptive_sparse_vector", [20, 14], SPARSE, [at_least(20)]),
    ("c9_smart_sum", [1, 0, 1], {"eps": 1, "M": 2, "T": 5}, [at_most(1), at_least(0), at_least(1)]),
    ("w1_noisy_max_value", [0, 1, -1], {"eps": 1}, [at_most(1)]),
    ("w7_gap_value", [0, 1], SPARSE, [None, at_least(2)]),
    ("w8_adaptive_value", [4, 16], SPARSE, [ANY, at_most(20)]),
    ("lyu_2", [0, 1, 0], {"eps": 1, "T": 0, "c": 2}, [None, True, None]),
    ("lyu_5", [0, 1], {"eps": 1, "T": 0}, [None, True]),
]


@for_each(("name", "answers", "parameters", "outputs"), SAMPLED)
def test_probabilities_are_those_of_runs(name: str, answers: list[int], parameters: dict, outputs: list):
    source = (PROGRAMS | FAMILY)[name]
    program = read(source.function)
    rng = np.random.default_rng(20_240_601)
    values = {key: Fraction(value) for key, value in parameters.items()}
    hits = 0
    for _ in range(RUNS):
        found = source.function(answers, rng, **{key: float(value) for key, value in values.items()})
        output = tuple(found) if isinstance(found, tuple | list) else (found,)
        hits += len(output) == len(outputs) and all(map(inside, output, outputs))
    exact = float(probability(program, answers, parameters, outputs))
    assert abs(hits / RUNS - exact) <= SAMPLING
    assert 0.02 < exact < 0.98  # or the comparison says nothing


@pytest.mark.parametrize(
    ("name", "answers", "parameters", "size"),
    [
        ("c1_noisy_max", [0, 3, -1, 3], {"eps": 1}, 4),
        ("c2_sparse_vector", [0, 1, -2, 1, 0], SPARSE, 6),
        ("lyu_2", [0, 1, -2, 1, 0], {"eps": 1, "T": 0, "c": 2}, 16),
        ("lyu_5", [0, 1, 1], {"eps": 1, "T": 0}, 3),
        ("lyu_6", [0, 1, -1, 3, 1], {"eps": "1/2", "T": 1}, 32),
        ("no_threshold_noise", [0, 1, -1], {"eps": 2, "T": 0, "c": 3}, 8),
    ],
)
def test_the_outputs_of_a_law_add_up_to_one(name: str, answers: list[int], parameters: dict, size: int):
    program = read((PROGRAMS | FAMILY)[name].function)
    found = law(program, answers, {key: Fraction(value) for key, value in parameters.items()})
    assert len(found) == size
    total = sum(found.values())
    assert total.contains(1)
    assert float(total.rad()) < 1e-12


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


def test_a_law_of_noisy_numbers_needs_events():
    with pytest.raises(OutsideIntegrals, match="gives out noisy numbers: give events of them"):
        law(read(PROGRAMS["c8_partial_sum"].function), [0], {"eps": 1})
    found = law(read(PROGRAMS["c8_partial_sum"].function), [0], {"eps": 1}, [[at_most(0)], [at_least(0)]])
    assert [float(each) for each in found.values()] == pytest.approx([0.5, 0.5])


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
