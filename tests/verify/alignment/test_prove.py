"""What the search proves: the least cost, for right programs and for wrong ones, and why where it proves nothing."""

from __future__ import annotations

import random
import time
from fractions import Fraction
from typing import get_args

import pytest

from benchmarks.programs import FAMILY, PROGRAMS, RIGHT, least_cost
from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment import Unproved, prove
from dpaudit.verify.checker import check
from dpaudit.verify.language import read
from dpaudit.verify.proof import ADJACENCIES, Adjacency, Proof
from tests.cases import for_each

SECONDS = 2.0


def proved(source: object, adjacency: Adjacency = "all-differ", **given: object) -> Proof:
    found = prove(read(source), adjacency, **given)  # type: ignore[arg-type]
    assert isinstance(found, Proof), found
    return found


def unproved(source: object, adjacency: Adjacency = "all-differ", **given: object) -> Unproved:
    found = prove(read(source), adjacency, **given)  # type: ignore[arg-type]
    assert isinstance(found, Unproved), found
    return found


COSTS = {  # of the proofs for any number of answers; None: there is none
    "c1_noisy_max": "eps",
    "c2_sparse_vector": "eps",
    "c3_sparse_increasing": "eps",
    "c4_sparse_decreasing": "eps/2",
    "c5_gap_sparse_vector": "eps",
    "c6_numeric_sparse_vector": "eps",
    "c7_adaptive_sparse_vector": "eps",
    "c8_partial_sum": "eps",
    "c9_smart_sum": "2*eps",
    "w2_partial_sum_half_noise": "2*eps",
    "w6_sparse_lee_clifton": "(6*N*eps + eps)/4",
    "lyu_1": "eps",
    "lyu_2": "eps",
    "lyu_4": "(6*c*eps + eps)/4",
    "half_noise": "2*eps",
    "not_scaled": "(c*eps + eps)/2",
    "gap": "eps",
}
GROWING = {  # what the least cost grows like with the number of answers, where there is no proof; None: no alignment
    "w1_noisy_max_value": "eps*n/2",
    "w5_sparse_unscaled": "eps*n/2",
    "w7_gap_value": "eps*n/(4*N)",
    "w8_adaptive_value": "3*eps*n/(8*N)",
    "w3_smart_sum_missing_draw": None,
    "w4_sparse_no_query_noise": None,
    "lyu_3": "eps*n/(2*c)",
    "lyu_6": "eps*n/2",
    "no_cut_off": "eps*n/4",
    "no_threshold_noise": "eps*n/(4*c)",
    "lyu_5": None,
}


def test_every_program_is_listed() -> None:
    assert {*COSTS, *GROWING} == {*PROGRAMS, *FAMILY}


@for_each(("name", "cost"), COSTS.items())
def test_programs_get_their_least_cost_in_time_and_the_checker_agrees(name: str, cost: str) -> None:
    case = (PROGRAMS | FAMILY)[name]
    claim = case.claim if name in PROGRAMS else None
    began = time.process_time()
    proof = proved(case.function, getattr(case, "adjacency", "all-differ"), claim=claim)
    assert time.process_time() - began < SECONDS
    assert (proof.cost, proof.answers, proof.claim) == (cost, None, claim)
    checked = check(proof)
    assert (checked.cost, checked.keeps_claim) == (cost, claim and name in RIGHT)


@for_each(("name", "growing"), GROWING.items())
def test_programs_without_a_bound_get_no_proof_and_what_grows_is_named(name: str, growing: str | None) -> None:
    case = (PROGRAMS | FAMILY)[name]
    found = unproved(case.function, getattr(case, "adjacency", "all-differ"))
    assert found.growing == growing
    assert found.line is not None


def test_lines_are_those_of_the_program() -> None:
    found = unproved(PROGRAMS["w4_sparse_no_query_noise"].function)
    assert found.line == 6
    assert "line 6" in found.reason


def largest_class(name: str, answers: int, c: int) -> Fraction:
    """The closed form of the loss over all answers: the worst class of runs."""
    variant = FAMILY[name]
    scales = variant.threshold(Fraction(1), c), variant.answers(Fraction(1), c)
    most = min(c, answers) if variant.halts else answers
    return max(least_cost(*scales, answers - tops, tops) for tops in range(most + 1))


BITS = ("lyu_1", "lyu_4", "lyu_6", "no_cut_off", "no_threshold_noise", "half_noise", "not_scaled")


@for_each("name", BITS)
@for_each(("answers", "c"), [(1, 1), (4, 1), (32, 1), (8, 3)])
def test_proof_by_classes_equals_the_closed_form_of_the_loss(name: str, answers: int, c: int) -> None:
    function = FAMILY[name].function
    fixed = {"c": c, "eps": 1} if FAMILY[name].halts else {"eps": 1}
    assert Fraction(proved(function, fixed=fixed, answers=answers).cost) == largest_class(name, answers, c)


@pytest.mark.parametrize(("answers", "c", "cost"), [(1, 1, "eps/2"), (4, 1, "2*eps"), (8, 1, "4*eps"), (4, 2, "eps")])
def test_noisy_answers_given_away_cost_their_number(answers: int, c: int, cost: str) -> None:
    proof = proved(FAMILY["lyu_3"].function, fixed={"c": c}, answers=answers)
    assert proof.cost == cost
    assert proof.answers == answers
    assert check(proof).cost == cost


SPARSE = """
def sparse(q, rng, eps):
    t = rng.laplace(scale={threshold})
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale={answers}) >= t:
            out.append(True)
            count += 1
            if count >= {tops}:
                break
        else:
            out.append(None)
    return out
"""


@for_each("seed", range(8))
def test_random_scales_give_the_closed_form_of_the_loss(seed: int) -> None:
    rng = random.Random(seed)
    scales = [Fraction(rng.randint(1, 12), rng.randint(1, 4)) for _ in range(2)]
    tops, answers = rng.randint(1, 3), rng.randint(1, 6)
    words = [f"{scale.numerator} / ({scale.denominator} * eps)" for scale in scales]
    source = SPARSE.format(threshold=words[0], answers=words[1], tops=tops)
    cost = Fraction(proved(source, fixed={"eps": 1}, answers=answers).cost)
    assert cost == max(least_cost(*scales, answers - k, k) for k in range(min(tops, answers) + 1))


MAX = """
def race(q, rng, eps):
    noisy = [x + rng.{law}(scale={scale}) for x in q]
    return noisy.index(max(noisy))
"""


@for_each("law", ["laplace", "exponential"])
@for_each(
    ("scale", "adjacency", "cost"),
    [
        ("2 / eps", "all-differ", "eps"),
        ("1 / eps", "all-differ", "2*eps"),
        ("1 / eps", "up", "eps"),
        ("1 / eps", "down", "eps"),
        ("2 / eps", "up", "eps/2"),
    ],
)
def test_noisy_max_by_its_winner(law: str, scale: str, adjacency: Adjacency, cost: str) -> None:
    proof = proved(MAX.format(law=law, scale=scale), adjacency)
    assert (proof.shape, proof.cost) == ("winner", cost)
    assert check(proof).cost == cost


def test_noisy_max_where_one_answer_differs_is_cheaper_in_lock_step_if_noise_may_be_lowered() -> None:
    proof = proved(MAX.format(law="laplace", scale="2 / eps"), "one-differs")
    assert (proof.shape, proof.cost) == ("lock-step", "eps/2")
    proof = proved(MAX.format(law="exponential", scale="2 / eps"), "one-differs")
    assert (proof.shape, proof.cost) == ("winner", "eps")


def test_one_sided_noise_is_never_shifted_below_zero() -> None:
    release = "def f(data, rng, eps):\n    return data + rng.exponential(scale=1 / eps)\n"
    assert proved(release, "down").cost == "eps"
    assert unproved(release, "up").growing is None
    assert isinstance(unproved(release, "all-differ"), Unproved)


@pytest.mark.parametrize("law", ["gumbel", "normal"])
def test_other_noise_has_no_alignment(law: str) -> None:
    found = unproved(f"def f(data, rng, s):\n    return data + rng.{law}(scale=s)\n")
    assert law in found.reason
    assert found.line == 2


@pytest.mark.parametrize(
    ("threshold", "adjacency", "cost"),
    [("2*c", "all-differ", "epsilon"), ("2*c", "up", "3*epsilon/4"), ("2*c", "down", "3*epsilon/4")],
)
def test_redrawn_threshold_is_not_paid_for_after_the_last_top(threshold: str, adjacency: Adjacency, cost: str) -> None:
    source = f"""
def sparse(q, rng, epsilon, c):
    assert c >= 1
    t = rng.laplace(scale={threshold} / epsilon)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=4 * c / epsilon) >= t:
            out.append(True)
            count += 1
            if count >= c:
                break
            t = rng.laplace(scale={threshold} / epsilon)
        else:
            out.append(None)
    return out
"""
    proof = proved(source, adjacency)
    # one way, a threshold kept still with the tops paid by 1 each is cheaper where answers fall
    assert proof.cost == (cost if adjacency != "down" else "epsilon/4")


def test_costs_of_one_path_are_added_before_the_largest_is_taken() -> None:
    """One draw pays where the answer rises, the other where it does not: never both in full."""
    source = """
def f(q, rng, eps):
    out = []
    for x in q:
        if x + rng.laplace(scale=2 / eps) >= 0:
            out.append(x + rng.laplace(scale=1 / eps))
            break
        out.append(None)
    return out
"""
    assert proved(source, "down", answers=1).cost == "3*eps/2"
    assert proved(source, "up", answers=1).cost == "eps"


def test_a_claim_that_is_missing_its_assert_is_told_so() -> None:
    source = SPARSE.replace("eps):", "eps, c):").format(threshold="2 / eps", answers="4 / eps", tops="c")
    found = unproved(source)
    assert found.growing is None
    assert "assert" in found.reason
    assert "c >= 1" in found.reason
    assert proved(source, fixed={"c": 2}).cost == "3*eps/2"
    with_assert = source.replace("    t = ", "    assert c >= 1\n    t = ")
    assert proved(with_assert).cost == "(c*eps + eps)/2"


def test_scales_that_may_be_negative_are_refused() -> None:
    assert "positive" in unproved("def f(data, rng, s):\n    return data + rng.laplace(scale=s - 3)\n").reason
    assert (
        "positive" in unproved("def f(data, rng, s):\n    return data + rng.laplace(scale=s)\n", fixed={"s": -1}).reason
    )


@pytest.mark.parametrize("least", ["N >= 1", "N >= 1 and N > 0", "N > 0 and N >= 1"])
def test_a_scale_that_is_0_at_the_least_value_is_refused(least: str) -> None:
    source = f"def f(data, rng, N):\n    assert {least}\n    return data + rng.laplace(scale=LARGE)\n"
    assert "positive" in unproved(source.replace("LARGE", "N - 1")).reason
    assert proved(source.replace("LARGE", "N")).cost == "1/N"


def test_costs_of_unrelated_parameters_are_not_compared_by_guess() -> None:
    source = """
def f(data, rng, a, b, side):
    if side > 0:
        return_value = data + rng.laplace(scale=a)
    else:
        return_value = data + rng.laplace(scale=b)
    return return_value
"""
    assert "values" in unproved(source).reason
    assert proved(source, fixed={"a": 2, "b": 3}).cost == "1/2"


@pytest.mark.parametrize("adjacency", get_args(Adjacency))
def test_partial_sums_need_one_that_differs(adjacency: Adjacency) -> None:
    found = prove(read(PROGRAMS["c8_partial_sum"].function), adjacency)
    assert isinstance(found, Proof) == (adjacency == "one-differs")


def test_adjacencies_are_those_of_proofs() -> None:
    assert set(get_args(Adjacency)) == set(ADJACENCIES)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"adjacency": "all"}, "adjacency"),
        ({"fixed": {"M": 1}}, "'M'"),
        ({"fixed": {"N": Fraction(1, 2)}}, "whole"),
        ({"fixed": {"N": 0}}, "asserts"),
        ({"answers": 0}, "answers"),
        ({"claim": "eps +"}, "eps"),
    ],
)
def test_wrong_questions_are_errors(given: dict[str, object], word: str) -> None:
    program = read(PROGRAMS["c2_sparse_vector"].function)
    with pytest.raises(InvalidSpec, match=word):
        prove(program, given.pop("adjacency", "all-differ"), **given)  # type: ignore[arg-type]


def test_preconditions_that_contradict_themselves_are_named() -> None:
    program = read("def f(q, rng, eps):\n    assert 1 > 2\n    return q + rng.laplace(scale=1 / eps)\n")
    with pytest.raises(InvalidSpec, match="no values keep what f asserts"):
        prove(program, "all-differ")
