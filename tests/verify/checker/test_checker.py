"""What the checker accepts, and says of it; changed certificates, and plausible ones for false claims, are rejected."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.checker import ProofRejected, check, epsilon
from dpaudit.verify.proof import Alignment, Kept, Potential, Proof
from tests.cases import for_each, some
from tests.verify.checker.certificates import (
    C2,
    FALSE,
    NO_CUT_OFF,
    ONE,
    PARTIAL_SUM,
    RIGHT,
    SPARSE,
    STEPS,
    proof,
    shift,
    tops,
)


def rejected(stated: Proof) -> str:
    with pytest.raises(ProofRejected) as error:
        check(stated)
    assert error.value.exit_code == 1
    assert "\n" not in str(error.value)
    return str(error.value)


@for_each("name", RIGHT)
def test_a_right_proof_is_accepted_and_keeps_its_claim(name: str) -> None:
    stated = RIGHT[name]
    checked = check(stated)
    assert checked.keeps_claim is True
    assert checked.cost == stated.cost
    assert len(checked.obligations) >= 4


def test_a_check_takes_a_fraction_of_a_second() -> None:
    check(RIGHT["c2"])
    begin = time.process_time()
    check(RIGHT["c7"])
    assert time.process_time() - begin < 2.0


def test_the_answer_says_what_is_shown_for_which_inputs() -> None:
    checked = check(RIGHT["c4"])
    loss = "the privacy loss of c4_sparse_decreasing is at most eps/2"
    assert checked.statement == f"{loss} (one way: from the first dataset to the second)"
    assert checked.scope == (
        "all real query answers, any number of answers; every answer falls by at most 1 from the first dataset to the "
        "second (one way); any eps, N, T as assumed"
    )
    assert checked.assumptions == ("N >= 1", "eps > 0", "N is whole", "arithmetic of real numbers, not of floats")
    assert {
        "loop:TF: both runs take the same branch at line 7",
        "loop:TF: the output of line 8 is the same in both runs",
        "entry: t' - t is kept at 1",
        "loop:TF: the cost is within the potential",
        "after: (from loop:TT): the cost is at most eps",
    } <= set(check(RIGHT["c2"]).obligations)


@for_each(
    ("changes", "keeps"),
    [
        ({"claim": "eps*9/10"}, False),
        ({"claim": "eps*N"}, True),
        ({"claim": "eps*N/2", "fixed": {"N": Fraction(2)}}, True),
        ({"claim": None}, None),
        ({"assumptions": ("eps > 0", "N >= 1")}, True),
        ({"cost": "2*eps"}, False),
        ({"cost": "eps*N", "claim": "2*eps*N"}, True),
    ],
)
def test_a_proof_of_its_cost_is_one_whether_or_not_it_keeps_a_claim(
    changes: dict[str, Any], keeps: bool | None
) -> None:
    stated = replace(RIGHT["c2"], **changes)
    checked = check(stated)
    assert (checked.cost, checked.keeps_claim) == (stated.cost, keeps)


def test_a_cost_may_grow_with_the_number_of_answers() -> None:
    shifts = tops("draw_2", top=(0, -1), paths=("loop:T", "loop:F"))
    counting = NO_CUT_OFF.replace("out = []", "out = []\n    seen = 0").replace("if x", "seen += 1\n        if x")
    growing = Alignment(shifts=shifts, bounds=("seen == index",), potential=Potential("0", {"seen": "eps/2"}))
    stated = proof(counting, growing, cost="n*eps/2")
    assert check(stated).keeps_claim is False
    assert epsilon(stated, {"eps": 1, "n": 8}) == 4
    with pytest.raises(InvalidSpec, match="needs a value of n"):
        epsilon(stated, {"eps": 1})


@for_each(
    ("name", "parameters", "expected"),
    [
        ("c4", {"eps": Fraction(1, 3), "N": 5}, Fraction(1, 6)),
        ("c2 of 2", {"eps": 8, "n": 3}, 8),
        ("c2 of 2", {"eps": 1, "N": 3}, "the proof is for N = 2"),
        ("c2", {}, "needs a value of eps"),
        ("c2", {"eps": 0}, "outside the proof's scope"),
        ("c2", {"eps": -1}, "outside the proof's scope"),
        ("c2", {"eps": 1, "N": 0}, "outside the proof's scope"),
        ("c2", {"eps": 1, "N": Fraction(1, 2)}, "N must be whole"),
        ("c2", {"eps": 1, "sigma": 1}, "no parameter 'sigma'"),
        ("c2", {"eps": 1, "n": 0}, "the proof is for"),
    ],
)
def test_epsilon_is_the_cost_at_values_that_the_proof_is_for(name: str, parameters: Any, expected: Any) -> None:
    stated = replace(RIGHT["c2"], fixed={"N": Fraction(2)}) if name == "c2 of 2" else RIGHT[name]
    if not isinstance(expected, str):
        assert epsilon(stated, parameters) == expected
        return
    with pytest.raises(InvalidSpec, match=expected):
        epsilon(stated, parameters)


# --- changed certificates ----------------------------------------------------------------------------------------


def put(values: tuple[Any, ...], place: int, *instead: Any) -> tuple[Any, ...]:
    """With another value in this place, or with none."""
    return (*values[:place], *instead, *values[place + 1 :])


def mutants(proof: Proof) -> Iterator[tuple[str, Proof]]:
    """Every change that these rules make to a proof, with its name."""
    for name, changed in _alignments(proof.alignment):
        yield name, replace(proof, alignment=changed)
    yield "the cost is less", replace(proof, cost=f"({proof.cost})*99/100")


def _alignments(alignment: Alignment) -> Iterator[tuple[str, Alignment]]:
    for place, each in enumerate(alignment.shifts):
        where = f"{each.path} {each.draw}"
        yield f"{where} left out", replace(alignment, shifts=put(alignment.shifts, place))
        changes: dict[str, Any] = {
            "more": {"constant": each.constant + Fraction(1, 2)},
            "less": {"constant": each.constant - Fraction(1, 2)},
            "the answer more": {"answer": each.answer + Fraction(1, 2)},
            "the answer less": {"answer": each.answer - Fraction(1, 2)},
            "turned round": {
                "constant": -each.constant,
                "answer": -each.answer,
                "differences": {name: -value for name, value in each.differences.items()},
            },
        }
        if place in (0, len(alignment.shifts) - 1):  # names are looked at for all shifts in one place
            changes |= {"of no such draw": {"draw": "draw_9"}, "on no such path": {"path": "loop:TTTTT"}}
            yield f"{where} twice", replace(alignment, shifts=(*alignment.shifts, each))
        if each.differences:
            changes["without differences"] = {"differences": {}}
        for name, change in changes.items():
            yield f"{where} {name}", replace(alignment, shifts=put(alignment.shifts, place, replace(each, **change)))
    for place, kept in enumerate(alignment.kept):
        other = replace(kept, value=kept.value + 1, by=None)
        yield f"{kept.variable} kept at more", replace(alignment, kept=put(alignment.kept, place, other))
        if kept.by is not None:
            half = replace(kept, value=kept.value / 2)
            yield f"{kept.variable} kept at half", replace(alignment, kept=put(alignment.kept, place, half))
            yield f"{kept.variable} not kept", replace(alignment, kept=put(alignment.kept, place))
    for place, bound in enumerate(alignment.bounds):
        yield f"{bound} not as bound", replace(alignment, bounds=put(alignment.bounds, place))
        yield f"{bound} of one less", replace(alignment, bounds=put(alignment.bounds, place, f"{bound} - 1"))
        yield "a contradiction as bound", replace(alignment, bounds=(*alignment.bounds, "1 <= 0"))
    if alignment.potential is not None:
        for name, potential in _potentials(alignment.potential):
            yield f"potential {name}", replace(alignment, potential=potential)


def _potentials(potential: Potential) -> Iterator[tuple[str, Potential | None]]:
    yield "left out", None
    if potential.start != "0":
        yield "starts lower", replace(potential, start=f"({potential.start})*99/100")
        yield "starts at 0", replace(potential, start="0")
    yield "starts higher", replace(potential, start=f"{potential.start} + eps/100")
    yield "starts below 0", replace(potential, start=f"{potential.start} - 3*eps")
    for name, text in potential.counters.items():
        for factor in ("99/100", "101/100", "0"):
            counters = {**potential.counters, name: f"({text})*{factor}"}
            yield f"{factor} per {name}", replace(potential, counters=counters)
    if potential.used != "0":
        yield "less for used", replace(potential, used=f"({potential.used})*99/100")
        yield "more for used", replace(potential, used=f"({potential.used})*101/100")
    for name, text in potential.held.items():
        yield f"less held by {name}", replace(potential, held={name: f"({text})*99/100"})
        yield f"more held by {name}", replace(potential, held={name: f"({text})*101/100"})
        yield f"none held by {name}", replace(potential, held={})


BY_DAY = ("c8", "c9", "redraw", "release")
BY_NIGHT = ("c2", "c4", "c7")
STILL_PROOFS = {("c9", "block not kept")}  # the fact that is left out was not needed


@for_each("name", BY_DAY, nightly=BY_NIGHT)
def test_every_changed_certificate_is_rejected(name: str) -> None:
    changed = list(mutants(RIGHT[name]))
    assert len(changed) >= 10
    for what, stated in some(changed, 20):
        if (name, what) not in STILL_PROOFS:
            rejected(stated)


@for_each(
    ("name", "adjacencies"),
    [
        ("c3", ["all-differ", "down"]),
        ("c4", ["up", "all-differ", "one-differs"]),
        ("c8", ["all-differ", "up"]),
        ("c9", ["all-differ", "down"]),
        ("c2", ["sideways"]),
    ],
)
def test_a_proof_for_another_adjacency_is_rejected(name: str, adjacencies: list[Any]) -> None:
    for adjacency in adjacencies:
        rejected(replace(RIGHT[name], adjacency=adjacency))


@for_each(
    ("name", "old", "new"),
    [
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
    ],
)
def test_a_proof_of_another_program_is_rejected(name: str, old: str, new: str) -> None:
    stated = RIGHT[name]
    assert old in stated.source
    rejected(replace(stated, source=stated.source.replace(old, new)))


@for_each(
    ("change", "message"),
    [
        ({"function": "other"}, "the source cannot be read"),
        ({"source": "def sparse(q, rng):\n    return open(q)\n"}, "the source cannot be read"),
        ({"source": "not python ("}, "the source cannot be read"),
        ({"fixed": {"M": ONE}}, "no such parameter"),
        ({"fixed": {"N": Fraction(1, 2)}}, "must be whole"),
        ({"fixed": {"N": Fraction(0)}}, "proof of nothing"),
        ({"fixed": {"eps": Fraction(-1)}}, "positive"),
        ({"fixed": {"eps": Fraction(0)}}, "division by 0"),
        ({"assumptions": ("eps > 1",)}, "taken for granted"),
        ({"assumptions": ("N >= 2",)}, "taken for granted"),
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
C7, C8, C9 = (RIGHT[name].alignment for name in ("c7", "c8", "c9"))
SMART = replace(C9, shifts=(shift("loop:FF", "draw_1", 0, -1),))
BLOCKS = replace(SMART, kept=(Kept("released", Fraction(0)), Kept("block", Fraction(0))))
BEST = Alignment(
    tops("draw_1", top=(0, -1), paths=("loop:T", "loop:F")), (Kept("best", Fraction(0)),), (), Potential("eps")
)
HALF_MOVED = shift("after:", "draw_1", s=Fraction(-1, 2))
ONCE, TWICE = {"adjacency": "one-differs"}, {"adjacency": "one-differs", "claim": "2*eps", "cost": "2*eps"}
AS_IF: dict[str, tuple[str, Alignment, dict[str, Any]]] = {  # a wrong program, and what might pass for its proof
    "in lock-step": ("w1", BEST, {}),
    "the noise of before": ("w2", C8, ONCE),
    "less moved": ("w2", Alignment((HALF_MOVED,), (Kept("s", ONE, "used"),), (), Potential("0")), ONCE),
    "the draw that is left": ("w3", SMART, TWICE),
    "blocks kept equal": ("w3", BLOCKS, TWICE),
    "the threshold alone": (
        "w4",
        Alignment((shift("before:", "draw_1", 1),), (Kept("t", ONE),), (), Potential("eps")),
        {},
    ),
    "tops moved": (
        "w5",
        Alignment(
            (shift("before:", "draw_1", 1), shift("loop:T", "draw_2", 1, -1)), (Kept("t", ONE),), (), Potential("eps")
        ),
        {},
    ),
    "counted in the index": (
        "w5",
        Alignment(tops("draw_2", top=(0, -1), paths=("loop:T", "loop:F")), (), (), Potential("0", {"index": "eps"})),
        {},
    ),
    "the proof of little noise": ("w6", C2, {}),
    "what one top costs": ("w6", replace(C2, potential=Potential("eps/4", {"count": "3*eps/(4*N)"})), {}),
    "the gap's proof": ("w7", C2, {}),
    "values equal": ("w7", replace(EMITS_VALUE, potential=STEPS), {}),
    "the adaptive gap's proof": ("w8", C7, {}),
    "coarse values equal": (
        "w8",
        replace(
            C7,
            shifts=(
                shift("before:", "draw_1", 1),
                *tops("draw_2", top=(0, -1), paths=("loop:TT", "loop:TF")),
                *tops("draw_3", top=(1, -1), paths=("loop:FTT", "loop:FTF")),
            ),
        ),
        {},
    ),
}


@for_each("name", AS_IF)
def test_a_plausible_certificate_for_a_false_claim_is_rejected(name: str) -> None:
    program, alignment, given = AS_IF[name]
    rejected(proof(FALSE[program], alignment, **given))


# --- what a certificate may not get away with ------------------------------------------------------------------


def c2(old: str = "", new: str = "", **changes: Any) -> Proof:
    """The certificate of the sparse vector with a change of its source and its alignment."""
    assert old in RIGHT["c2"].source
    return replace(RIGHT["c2"], source=RIGHT["c2"].source.replace(old, new), alignment=replace(C2, **changes))


NOISY = RIGHT["release"]
NOISY = replace(NOISY, source=NOISY.source.replace("laplace", "exponential"))
CAUGHT: dict[str, tuple[Proof, str]] = {
    "a shift is missing": (c2(shifts=C2.shifts[:2]), "loop:TF: both runs take the same branch at line 7: false at "),
    "a bound that holds on entry only": (c2(bounds=("count == 0",)), "count == 0 at the next head"),
    "a bound that does not hold on entry": (c2(bounds=("count <= N - 2",)), "entry: count <= N - 2: false at "),
    "a bound of both runs": (c2(bounds=("t' == t + 1",)), "t'"),
    "too many bounds": (c2(bounds=("count <= N",) * 101), "more than 100 bounds"),
    "no potential": (c2(potential=None), "a potential is missing"),
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
    "normal noise": (c2("laplace(scale=4", "normal(scale=4"), "a draw of law normal"),
    "gumbel noise": (c2("laplace(scale=4", "gumbel(scale=4"), "a draw of law gumbel"),
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


# --- all small alignments of a sparse vector program ---------------------------------------------------------------


PATHS = ("loop:TT", "loop:TF", "loop:FF")
SHIFTS = tuple(itertools.product((-1, 0, 1), (-1, 0)))


@for_each(("tops", "a", "b"), [(1, 2, 4)], nightly=[(1, 3, 1), (2, 2, 4)])
def test_no_alignment_is_cheaper_than_the_truth_and_one_is_as_cheap(tops: int, a: int, b: int) -> None:
    """The loss of any number of bottoms and so many tops, in the limit, by the scales of threshold and answers."""
    truth = Fraction(1, a) + Fraction(2 * tops, b)
    source = SPARSE.replace("2 / eps", f"{a}").replace("4 * N / eps", f"{b}").replace("eps, ", "")
    accepted = []
    for threshold, top, bottom in itertools.product((-1, 0, 1), SHIFTS, SHIFTS):
        most = max(abs(top[0] + top[1] * d) for d in (-1, 1))
        shifts = (
            shift("before:", "draw_1", threshold),
            *(shift(path, "draw_2", *(top if path.startswith("loop:T") else bottom)) for path in PATHS),
        )
        potential = Potential(f"{abs(threshold)}/{a}", {"count": f"{most}/{b}"})
        alignment = Alignment(shifts, (Kept("t", Fraction(threshold)),), ("count <= N - 1",), potential)
        cost = Fraction(abs(threshold), a) + Fraction(tops * most, b)
        stated = proof(source, alignment, fixed={"N": Fraction(tops)}, claim=None, cost=f"{cost}")
        with contextlib.suppress(ProofRejected):
            check(stated)
            accepted.append(cost)
    assert min(accepted) == truth
