"""Changed certificates, and plausible ones for false claims, are rejected with the obligation that fails."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.checker import ProofRejected, check, epsilon
from dpaudit.verify.proof import Alignment, Case, Kept, Potential, Proof
from tests.cases import for_each
from tests.verify.checker.certificates import (
    ADAPTIVE,
    C2,
    GAP,
    NO_CUT_OFF,
    NOISY_MAX,
    ONE,
    PARTIAL_SUM,
    RIGHT,
    SMART_SUM,
    SPARSE,
    STEPS,
    WINNER,
    proof,
    shift,
    tops,
)
from tests.verify.checker.mutations import mutants

CHANGED = (
    "c1",
    "c1 down",
    "c2",
    "c4",
    "c7",
    "c8",
    "c9",
    "redraw",
    "release",
    "no cut-off, 2 answers",
    "sparse, 2 of 3 answers",
)
STILL_PROOFS = {  # changes that leave a proof: the fact that is left out was not needed
    ("c9", "alignment 0: block not kept"),
}


def rejected(stated: Proof) -> str:
    with pytest.raises(ProofRejected) as error:
        check(stated)
    assert error.value.exit_code == 1
    assert "\n" not in str(error.value)
    return str(error.value)


@for_each("name", CHANGED)
def test_every_changed_certificate_is_rejected(name: str) -> None:
    accepted = []
    for what, changed in mutants(RIGHT[name]):
        try:
            check(changed)
        except ProofRejected:
            continue
        accepted.append((name, what))
    assert set(accepted) <= STILL_PROOFS


def test_there_are_enough_changed_certificates() -> None:
    assert sum(1 for name in CHANGED for _ in mutants(RIGHT[name])) >= 300


@for_each(
    ("name", "adjacency"),
    [
        ("c1 up", "all-differ"),
        ("c1 up", "one-differs"),
        ("c1 down", "up"),
        ("c1 down", "all-differ"),
        ("c3", "all-differ"),
        ("c3", "down"),
        ("c4", "up"),
        ("c4", "all-differ"),
        ("c4", "one-differs"),
        ("c8", "all-differ"),
        ("c8", "up"),
        ("c9", "all-differ"),
        ("c9", "down"),
        ("c2", "sideways"),
    ],
)
def test_a_proof_for_another_adjacency_is_rejected(name: str, adjacency: Any) -> None:
    rejected(replace(RIGHT[name], adjacency=adjacency))


@for_each(
    ("name", "old", "new"),
    [
        ("c1", "scale=2 / eps", "scale=1 / eps"),
        ("c1", "return winner", "return best"),
        ("c1", "y > best", "y < best"),
        ("c1", "if i == 0 or y > best", "if y > best"),
        ("c1", "            best = y\n", ""),
        ("c1", "winner = i\n", "winner = 0\n"),
        ("c1", "y = q[i] +", "y = 2 * q[i] +"),
        ("c2", "scale=2 / eps", "scale=1 / eps"),
        ("c2", "4 * N / eps", "3 * N / eps"),
        ("c2", "4 * N / eps", "4 / eps"),
        ("c2", ">= t", "<= t"),
        ("c2", "            count += 1\n", ""),
        ("c2", "count += 1", "count += -1"),
        ("c2", "count >= N", "count > N"),
        ("c2", "out.append(True)", "out.append(t)"),
        ("c2", "count = 0", "count = -1"),
        ("c2", "        if count >= N:\n            break\n", ""),
        ("c2", "x + rng", "2 * x + rng"),
        ("c2", "    assert N >= 1\n", "    assert N >= 1\n    assert N < 0\n"),
        ("c2", "rng.laplace(scale=2 / eps)", "rng.normal(scale=2 / eps)"),
        ("c4", "2 * N / eps", "N / eps"),
        ("c5", "v - t", "v"),
        ("c5", "v - t", "v - 2 * t"),
        ("c6", "x + rng.laplace(scale=3 * N / eps)", "2 * x + rng.laplace(scale=3 * N / eps)"),
        ("c6", "3 * N / eps", "2 * N / eps"),
        ("c7", "spent += 1", "spent += 0"),
        ("c7", "2 * N - 2", "2 * N - 1"),
        ("c7", "coarse - t)", "coarse)"),
        ("c8", "1 / eps", "1 / (2 * eps)"),
        ("c8", "s += x", "s += 2 * x"),
        ("c8", "laplace", "exponential"),
        ("c9", "block = 0\n        else", "block = block + x\n        else"),
        ("c9", "block + x + rng.laplace(scale=1 / eps)", "block + x"),
        ("redraw", "            t = T + rng.laplace(scale=2 * N / eps)\n", ""),
        ("redraw", "2 * N / eps", "N / eps"),
        ("release", "data +", "2 * data +"),
        ("release", "laplace", "gumbel"),
        ("sparse, 2 of 3 answers", "4 * N", "3 * N"),
        ("sparse, 2 of 3 answers", "count >= N", "count > N"),
        ("no cut-off, 2 answers", "rng.laplace(scale=2 / eps) >= t", "rng.laplace(scale=1 / eps) >= t"),
    ],
)
def test_a_proof_of_another_program_is_rejected(name: str, old: str, new: str) -> None:
    stated = RIGHT[name]
    assert old in stated.source
    rejected(replace(stated, source=stated.source.replace(old, new)))


@for_each(
    ("change", "message"),
    [
        ({"shape": "winner"}, "shape 'winner' needs"),
        ({"shape": "both"}, "the shape must be"),
        ({"function": "other"}, "the source cannot be read"),
        ({"source": "def sparse(q, rng):\n    return open(q)\n"}, "the source cannot be read"),
        ({"source": "not python ("}, "the source cannot be read"),
        ({"cases": (Case(1, "eps"),)}, "every alignment"),
        ({"cases": (Case(0, "eps"), Case(0, "eps"))}, "more than one case"),
        ({"cases": (Case(0, "eps", {"loop:TT": 1}),)}, "need a loop and a stated number"),
        ({"fixed": {"M": ONE}}, "no such parameter"),
        ({"fixed": {"N": Fraction(1, 2)}}, "must be whole"),
        ({"fixed": {"N": Fraction(0)}}, "proof of nothing"),
        ({"fixed": {"eps": Fraction(-1)}}, "positive"),
        ({"fixed": {"eps": Fraction(0)}}, "division by 0"),
        ({"answers": 0}, "number of answers"),
        ({"assumptions": ("eps > 1",)}, "taken for granted"),
        ({"assumptions": ("N >= 2",)}, "taken for granted"),
        ({"assumptions": ("all is well",)}, "cannot be read"),
        ({"cost": "sigma"}, "cannot be read"),
        ({"cost": "count"}, "the cost 'count'"),
        ({"cost": "eps/(N - 1)"}, "positive divisor"),
        ({"cost": "eps/0"}, "division by 0"),
        ({"claim": "t"}, "the claim 't'"),
        ({"claim": "eps <= 1"}, "the claim"),
    ],
)
def test_a_proof_of_no_known_form_is_rejected(change: dict[str, Any], message: str) -> None:
    assert message in rejected(replace(RIGHT["c2"], **change))


# --- plausible certificates for the eight wrong programs -------------------------------------------------------


EMITS_VALUE = replace(C2, shifts=tops("draw_2", top=(0, -1), paths=("loop:TT", "loop:TF")), kept=())
MISSING = SMART_SUM.replace("block + x + rng.laplace(scale=1 / eps)", "block + x")
SMART = RIGHT["c9"].alignments[0]
FALSE: dict[str, Proof] = {
    "w1, the index's proof": proof(NOISY_MAX.replace("return winner", "return best"), WINNER, shape="winner"),
    "w1, in lock-step": proof(
        NOISY_MAX.replace("return winner", "return best"),
        Alignment(
            shifts=tops("draw_1", top=(0, -1), paths=("loop:T", "loop:F")),
            kept=(Kept("best", Fraction(0)),),
            potential=Potential("eps"),
        ),
    ),
    "w2": proof(PARTIAL_SUM.replace("1 / eps", "1 / (2 * eps)"), RIGHT["c8"].alignments[0], adjacency="one-differs"),
    "w2, less moved": proof(
        PARTIAL_SUM.replace("1 / eps", "1 / (2 * eps)"),
        Alignment((shift("after:", "draw_1", s=Fraction(-1, 2)),), (Kept("s", ONE, "used"),), (), Potential("0")),
        adjacency="one-differs",
    ),
    "w3": proof(
        MISSING,
        replace(SMART, shifts=(shift("loop:FF", "draw_1", 0, -1),)),
        adjacency="one-differs",
        claim="2*eps",
        cost="2*eps",
    ),
    "w3, blocks kept equal": proof(
        MISSING,
        replace(
            SMART,
            shifts=(shift("loop:FF", "draw_1", 0, -1),),
            kept=(Kept("released", Fraction(0)), Kept("block", Fraction(0))),
        ),
        adjacency="one-differs",
        claim="2*eps",
        cost="2*eps",
    ),
    "w4": proof(
        NO_CUT_OFF.replace(" + rng.laplace(scale=2 / eps) >= t", " >= t"),
        Alignment((shift("before:", "draw_1", 1),), (Kept("t", ONE),), (), Potential("eps")),
    ),
    "w5, tops moved": proof(
        NO_CUT_OFF,
        Alignment(
            (shift("before:", "draw_1", 1), shift("loop:T", "draw_2", 1, -1)), (Kept("t", ONE),), (), Potential("eps")
        ),
    ),
    "w5, counted in the index": proof(
        NO_CUT_OFF,
        Alignment(tops("draw_2", top=(0, -1), paths=("loop:T", "loop:F")), (), (), Potential("0", {"index": "eps"})),
    ),
    "w6": proof(SPARSE.replace("2 / eps", "4 / eps").replace("4 * N / eps", "4 / (3 * eps)"), C2),
    "w6, what one top costs": proof(
        SPARSE.replace("2 / eps", "4 / eps").replace("4 * N / eps", "4 / (3 * eps)"),
        replace(C2, potential=Potential("eps/4", {"count": "3*eps/(4*N)"})),
    ),
    "w7, the gap's proof": proof(GAP.replace("v - t", "v"), C2),
    "w7, values equal": proof(GAP.replace("v - t", "v"), replace(EMITS_VALUE, potential=STEPS)),
    "w8, the gap's proof": proof(ADAPTIVE.replace("append(coarse - t", "append(coarse"), RIGHT["c7"].alignments[0]),
    "w8, values equal": proof(
        ADAPTIVE.replace("append(coarse - t", "append(coarse"),
        replace(
            RIGHT["c7"].alignments[0],
            shifts=(
                shift("before:", "draw_1", 1),
                *tops("draw_2", top=(0, -1), paths=("loop:TT", "loop:TF")),
                *tops("draw_3", top=(1, -1), paths=("loop:FTT", "loop:FTF")),
            ),
        ),
    ),
}


@for_each("name", FALSE)
def test_a_plausible_certificate_for_a_false_claim_is_rejected(name: str) -> None:
    rejected(FALSE[name])


# --- what a certificate may not get away with ------------------------------------------------------------------


def c2(old: str = "", new: str = "", **changes: Any) -> Proof:
    """The certificate of the sparse vector with a change of its source and its alignment."""
    assert old in RIGHT["c2"].source
    return replace(RIGHT["c2"], source=RIGHT["c2"].source.replace(old, new), alignments=(replace(C2, **changes),))


def race(*changed: str) -> Proof:
    """The certificate of the noisy maximum for a changed source."""
    return proof(NOISY_MAX.replace(*changed), WINNER, shape="winner")


CLASSES, NOISY = RIGHT["no cut-off, 2 answers"], RIGHT["release"]
NOISY = replace(NOISY, source=NOISY.source.replace("laplace", "exponential"))
CAUGHT: dict[str, tuple[Proof, str]] = {
    "a shift is missing": (c2(shifts=C2.shifts[:2]), "loop:TF: both runs take the same branch at line 7: false at "),
    "a bound that holds on entry only": (c2(bounds=("count == 0",)), "count == 0 at the next head"),
    "a bound that does not hold on entry": (c2(bounds=("count <= N - 2",)), "entry: count <= N - 2: false at "),
    "a bound of both runs": (c2(bounds=("t' == t + 1",)), "t'"),
    "too many bounds": (c2(bounds=("count <= N",) * 101), "more than 100 bounds"),
    "a missing class of runs": (
        replace(CLASSES, cases=(CLASSES.cases[0], CLASSES.cases[2])),
        "no case covers the runs that take loop:F 1 times, loop:T 1 times",
    ),
    "a class that is counted wrong": (
        replace(CLASSES, cases=(CLASSES.cases[0], replace(CLASSES.cases[1], counts={"loop:T": 1}), CLASSES.cases[2])),
        "no case covers the runs",
    ),
    "cases for fewer answers": (replace(CLASSES, answers=3), "no case covers the runs"),
    "a potential of used": (replace(RIGHT["c9"], adjacency="all-differ"), "one answer that differs"),
    "a shift by an unknown difference": (
        proof(
            PARTIAL_SUM,
            Alignment(shifts=(shift("after:", "draw_1", s=-1),), potential=Potential("0")),
            adjacency="one-differs",
        ),
        "the cost is at most",
    ),
    "exponential noise below 0": (replace(NOISY, adjacency="up"), "not shifted below 0"),
    "normal noise": (race("laplace", "normal"), "a draw of law normal"),
    "gumbel noise": (race("laplace", "gumbel"), "a draw of law gumbel"),
    "a draw in a branch": (race("best = y", "best = y + rng.laplace(scale=2 / eps)"), "only one of the two runs"),
    "a race that stops": (race("= y\n    return", "= y\n            break\n    return"), "only finds the winner"),
    "a scale that depends on noise": (c2("scale=4 * N / eps", "scale=t"), "cannot be read"),
    "a product of private numbers": (c2("x + rng", "x * t + rng"), "cannot be read"),
    "preconditions that nobody meets": (c2("N >= 1", "N >= 1 and N > 0 and N < 0"), "a proof of nothing"),
    "a remainder that there is not": (c2("N >= 1", "N >= 1 and N % 2 == 3"), "a proof of nothing"),
    "a half that there is not": (c2("N >= 1", "N >= 1 and N // 2 == 1 and N > 3"), "a proof of nothing"),
}


def test_the_message_shows_a_state_that_breaks_the_obligation() -> None:
    assert "d = " in rejected(CAUGHT["a shift is missing"][0])


@for_each("what", CAUGHT)
def test_what_a_certificate_may_not_get_away_with(what: str) -> None:
    stated, message = CAUGHT[what]
    assert message in rejected(stated)


def test_exponential_noise_may_be_shifted_up() -> None:
    assert check(replace(NOISY, adjacency="down")).keeps_claim is True


@pytest.mark.parametrize(
    "more", ["open('x')", "sparse = print", "K = 1", "def other(q, rng): pass", "# a remark", "'a text'"]
)
def test_a_source_that_holds_more_than_the_function_is_rejected(more: str) -> None:
    proof = RIGHT["c2"]
    for source in (f"{proof.source}\n{more}\n", f"{more}\n{proof.source}"):
        with pytest.raises(ProofRejected, match=r"and nothing else|set once"):
            check(replace(proof, source=source))


def test_a_parameter_beyond_the_floats_is_none_of_a_proof() -> None:
    """Python computes 2 / 10**400 as 0.0: the program then adds no noise at all; and 2 / 10**-400 not at all."""
    sizes = ((Fraction(10) ** 400, "may outgrow doubles"), (Fraction(1, 10**400), "rounding makes another number"))
    for size, why in sizes:
        assert why in rejected(replace(RIGHT["c2"], fixed={"eps": size}))
        with pytest.raises(InvalidSpec, match=why):
            epsilon(RIGHT["c2"], {"eps": size, "N": 1, "T": 0})
