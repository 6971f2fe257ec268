"""Searches: the worst pair up to a size, and refutations of wrong programs; right programs are never refuted."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from benchmarks.programs import FAMILY, PROGRAMS, RIGHT, WRONG, least_cost
from dpaudit.catalogue import find
from dpaudit.errors import InvalidSpec
from dpaudit.verify import integrals
from dpaudit.verify.language import read
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.proof import SYMMETRIC
from dpaudit.verify.witnesses import (
    OutsideIntegrals,
    PairLoss,
    pair_loss,
    worst_pair,
)
from dpaudit.verify.witnesses.outcomes import Outcomes
from tests.cases import for_each

DEFAULTS = {"eps": 1, "N": 1, "T": 0, "c": 1}
SMART = {"M": 2, "T": 1}


def parameters_of(name: str, **given: object) -> dict:
    program = read((PROGRAMS | FAMILY)[name].function)
    values = {**DEFAULTS, **(SMART if "smart" in name else {}), **given}
    return {key: Fraction(values[key]) for key in program.parameters}


def refuted(
    program: Program,
    adjacency: str,
    claim: Fraction | float,
    parameters: dict,
    *,
    most: int = 2,
    sizes: Sequence[int] = (1, 2, 3, 4, 5),
    effort: float = math.inf,
) -> PairLoss | None:
    """The first worst pair that loses more than is claimed; of a one-way adjacency in that order."""
    for size in sizes if program.loop is not None else (1,):
        with contextlib.suppress(*[OutsideIntegrals] * (effort < math.inf)):
            found = worst_pair(program, adjacency, size, parameters, most, effort)
            if (found.worst if adjacency in SYMMETRIC else found.forward).at_event.lower > claim:
                return found
    return None


BY_DAY = [name for name in WRONG if name[:2] in ("w1", "w3", "w4", "w6")]


@for_each("name", BY_DAY, nightly=WRONG)
def test_the_wrong_programs_are_refuted(name: str):
    case = WRONG[name]
    claim = 2 if case.claim.startswith("2") else 1
    found = refuted(read(case.function), case.adjacency, claim, parameters_of(name))
    assert found is not None
    way = found.worst
    assert way.at_event.lower > claim
    assert way.likelier.lower > math.exp(claim) * way.rarer.upper
    moves = [b - a for a, b in zip(found.first, found.second, strict=True)]
    assert all(abs(move) <= 1 for move in moves)
    assert case.adjacency != "one-differs" or sum(map(bool, moves)) == 1
    both = (found.first, found.second)[:: 1 if way is found.forward else -1]
    for answers, chance in zip(both, (way.likelier, way.rarer), strict=True):
        again = Outcomes(read(case.function), answers, found.parameters).probability(way.event)
        assert chance.lower <= float(again) <= chance.upper


@for_each("name", RIGHT)
def test_the_right_programs_are_not(name: str):
    case = RIGHT[name]
    claim = 2 if case.claim.startswith("2") else 1
    assert refuted(read(case.function), case.adjacency, claim, parameters_of(name), most=1, sizes=(1, 2)) is None


@for_each(
    ("name", "claim", "adjacency", "answers"),
    [("c1_noisy_max", "19/20", "all-differ", 3), ("c8_partial_sum", "99/100", "one-differs", 1)],
)
def test_a_smaller_claim_than_the_truth_is_refuted(name: str, claim: str, adjacency: str, answers: int):
    found = refuted(read(PROGRAMS[name].function), adjacency, Fraction(claim), parameters_of(name), most=5)
    assert found is not None
    assert len(found.first) <= answers + 1


@for_each("eps", [0.3, Fraction(1, 3), 1e-9], nightly=[0.1, Fraction("0.3"), math.log(3), 5.0])
def test_the_true_loss_itself_is_not_refuted_by_rounding(eps: float | Fraction):
    vector = read("def f(q, rng, eps):\n    return tuple(x + rng.laplace(scale=1 / eps) for x in q)\n")
    for adjacency, answers in (("one-differs", 1), ("all-differ", 2)):
        truth = answers * Fraction(eps)
        lost = worst_pair(vector, adjacency, answers, {"eps": eps}, most=1).worst.at_event.lower
        assert not lost > truth
        assert not lost > float(truth)
        assert lost > truth * Fraction(10**9 - 1, 10**9)


@pytest.mark.parametrize("law", ["laplace", "gumbel", "normal"])
def test_a_search_ends_after_a_bounded_effort(law: str, monkeypatch: pytest.MonkeyPatch):
    """Counted, not timed: 100 for an integral of normal noise, so that the bound is one on the time of all."""
    asked: list[object] = []
    computed = integrals.probability
    monkeypatch.setattr(integrals, "probability", lambda event: asked.append(event) or computed(event))
    program = read(
        f"def f(q, rng):\n    t = rng.{law}(scale=2)\n    out = []\n    for x in q:\n"
        f"        out.append(x + rng.{law}(scale=4) >= t)\n    return out\n"
    )
    with pytest.raises(OutsideIntegrals, match="so little effort") if law != "laplace" else contextlib.nullcontext():
        assert worst_pair(program, "all-differ", 5, {}, effort=300).loss.lower < 5
    assert len(asked) <= {"laplace": 300, "gumbel": 20, "normal": 8}[law]


SEARCH = sys.modules["dpaudit.verify.witnesses"]
HALT = {"epsilon": 1, "threshold": 0, "c": 2}


@pytest.mark.long
def test_where_a_run_starts_anew_many_answers_refute_what_few_do_not():
    """Each of the c + 1 tops of Sparse as printed costs epsilon / c after many bottoms, and little after few."""
    entry = find("sparse.printed_halt")
    found = refuted(read(entry.program), "all-differ", 1, HALT, sizes=(12,))
    assert found is not None
    first, second = ([float(each) for each in answers] for answers in (found.first, found.second))
    assert found.loss.lower == pytest.approx(entry.loss(first, second, epsilon=1.0, threshold=0.0, c=2), rel=1e-9)
    assert 1 < found.loss.lower < 1.5
    assert {abs(b - a) for a, b in zip(first, second, strict=True)} == {1.0}
    assert refuted(read(find("sparse").program), "all-differ", 1, HALT, sizes=(5,)) is None


def test_one_way_statements_are_refuted_one_way():
    """With these scales decreasing answers lose half of what increasing ones do."""
    sparse, parameters = read(PROGRAMS["c4_sparse_decreasing"].function), parameters_of("c4_sparse_decreasing")
    claim = Fraction(51, 100)
    assert refuted(sparse, "down", claim, parameters) is None
    found = refuted(sparse, "up", claim, parameters)
    assert found is not None
    assert all(b >= a for a, b in zip(found.first, found.second, strict=True))


def test_a_search_at_length_is_bounded():
    hidden = read(  # 2^10 paths, and one number given out
        "def f(q, rng):\n    count = 0\n    for x in q:\n        if x + rng.laplace(scale=4) >= 0:\n"
        "            count += 1\n    return count\n"
    )
    with pytest.raises(OutsideIntegrals, match="more than 100 paths"):
        worst_pair(hidden, "all-differ", 10, {}, effort=100)


def test_an_event_outside_the_integrals_gives_no_verdict():
    draws = "def f(q, rng):\n    a = rng.laplace(scale=1)\n    b = rng.laplace(scale=1)\n"
    program = read(f"{draws}    return q + a + b + rng.laplace(scale=1)\n")
    assert refuted(program, "all-differ", 5, {}) is None  # the event "any number" can be computed
    chain = read(f"{draws}    return [x + a + b + rng.laplace(scale=1) >= 0 for x in q]\n")
    with pytest.raises(OutsideIntegrals, match="a comparison of 3 draws together"):
        refuted(chain, "all-differ", 1, {}, sizes=(1,))
    with pytest.raises(OutsideIntegrals, match="a comparison of 3 draws together"):
        worst_pair(chain, "all-differ", 1, {})


@for_each(
    ("search", "given", "message"),
    [
        (worst_pair, ("some-differ", 1), "adjacency must be one of all-differ"),
        *(
            (worst_pair, ("all-differ", answers), "answers must be a whole number of at least 1")
            for answers in (1.5, "2", None, 0)
        ),
        (worst_pair, ("all-differ", 2, "most", math.nan), "the size of an answer must be a finite number, got nan"),
        (
            worst_pair,
            ("all-differ", 2, "most", Fraction(1, 4)),
            "answers from -1/4 to 1/4 have an output in common: give a pair",
        ),
    ],
)
def test_wrong_questions_are_named(search: Any, given: tuple[Any, ...], message: str):
    named = {given[2]: given[3]} if len(given) > 2 else {}
    with pytest.raises(InvalidSpec, match=message):
        search(read(FAMILY["lyu_1"].function), *given[:2], parameters_of("lyu_1"), **named)


@for_each(
    ("name", "given", "answers", "loss"),
    [
        ("lyu_1", {}, 4, 0.8072),
        ("lyu_4", {}, 1, 0.2220),
        ("lyu_6", {}, 1, 0.3177),
        ("half_noise", {}, 2, 0.9595),
        ("lyu_1", {"eps": 2}, 1, 0.4320),
    ],
    nightly=[
        ("lyu_2", {"c": 2}, 8, 0.7713),
        ("lyu_4", {}, 8, 1.7500),
        ("lyu_1", {"c": 2}, 4, 0.4698),
        ("lyu_4", {"c": 2}, 4, 2.7282),
        ("not_scaled", {"c": 2}, 8, 1.4399),
        ("lyu_6", {"eps": 2}, 4, 3.8769),
    ],
)
def test_the_worst_pair_up_to_two(name: str, given: dict, answers: int, loss: float):
    found = worst_pair(read(FAMILY[name].function), "all-differ", answers, parameters_of(name, **given))
    assert found.loss.lower == pytest.approx(loss, abs=5.1e-5)
    assert all(abs(each) <= 2 for each in (*found.first, *found.second))


def test_the_worst_pair_is_that_of_a_full_search():
    program, parameters = read(FAMILY["lyu_1"].function), parameters_of("lyu_1")
    grid = [Fraction(place, 1) for place in range(-2, 3)]
    every = max(
        pair_loss(program, (x, y), (x + dx, y + dy), parameters).loss.lower
        for x in grid
        for y in grid
        for dx in (-1, 1)
        for dy in (-1, 1)
        if abs(x + dx) <= 2 and abs(y + dy) <= 2
    )
    assert worst_pair(program, "all-differ", 2, parameters).loss.lower == pytest.approx(every, abs=1e-12)


def supremum(name: str, eps: Fraction, c: int, answers: int) -> float:
    variant = FAMILY[name]
    scales = variant.threshold(eps, c), variant.answers(eps, c)
    if variant.redraws:
        epoch = answers // c
        return float(c * least_cost(*scales, epoch - 1, 1))
    most = min(c, answers) if variant.halts else answers
    return float(max(least_cost(*scales, answers - tops, tops) for tops in range(most + 1)))


@for_each(
    ("name", "eps", "c", "answers"),
    [("lyu_1", "2", 1, 8)],
    nightly=[("lyu_1", "2", 3, 32), ("lyu_2", "1", 2, 16), ("lyu_4", "1/2", 3, 32), ("lyu_6", "1/2", 1, 32)],
)
def test_answers_up_to_eleven_reach_the_least_upper_bound(name: str, eps: str, c: int, answers: int):
    bound, given = supremum(name, Fraction(eps), c, answers), parameters_of(name, eps=eps, c=c)
    found = worst_pair(read(FAMILY[name].function), "all-differ", answers, given, most=11).loss.lower
    assert 0.99 * bound <= found <= bound * (1 + 1e-9)


@for_each(
    ("adjacency", "low", "high", "most"),
    [("all-differ", -1, 1, 2), ("one-differs", -1, 1, 1), ("up", 0, 1, 2), ("down", -1, 0, 2)],
)
def test_the_worst_pair_is_adjacent(adjacency: str, low: int, high: int, most: int):
    name = "gap" if adjacency == "all-differ" else "lyu_1"
    found = worst_pair(read(FAMILY[name].function), adjacency, 2, parameters_of(name), most=Fraction(5, 2))
    moves = [b - a for a, b in zip(found.first, found.second, strict=True)]
    assert all(low <= move <= high for move in moves)
    assert 1 <= sum(map(bool, moves)) <= most
    assert all(abs(each) <= Fraction(5, 2) for each in (*found.first, *found.second))


def test_few_paths_give_all_outputs_at_the_worst_pair(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SEARCH, "FEW_PATHS", 10)
    for name, exact in (("lyu_1", True), ("no_cut_off", False)):
        found = worst_pair(read(FAMILY[name].function), "all-differ", 4, parameters_of(name))
        assert found.exact is exact
        assert found.loss.upper - found.loss.lower < 1e-12 if exact else found.loss.upper == math.inf


def test_noisy_values_and_outputs_by_place_are_searched_by_half_lines():
    by_place = (
        "def f(q, rng, T):\n    t = T + rng.laplace(scale=2)\n    output = {}\n    for place, x in enumerate(q):\n"
        "        v = x + rng.laplace(scale=2)\n        if v >= t:\n            output[place] = v\n"
        "            if len(output) >= 1:\n                break\n    return output\n"
    )
    for source, given in ((PROGRAMS["w1_noisy_max_value"].function, {"eps": 1}), (by_place, {"T": 0})):
        assert worst_pair(read(source), "all-differ", 2, given).loss.lower == pytest.approx(1.0, abs=1e-9)


def test_noise_alone_is_searched_by_its_moves_where_no_event_is_computed():
    """Each sum carries the noise of all before it: comparisons of three draws and more."""
    sums = read(find("prefix_sums").program)
    for adjacency, loss in (("one-differs", 1.0), ("all-differ", 5.0)):
        found = worst_pair(sums, adjacency, 5, {"epsilon": 1, "sensitivity": 1})
        assert (found.loss.lower, found.exact) == (pytest.approx(loss, abs=1e-12), True)
