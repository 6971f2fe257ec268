"""Certificates: found, stored, checked where no solver is installed, held against z3, and forged."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
import z3

from benchmarks.tampered import forged, step_changed, untrue
from dpaudit.verify.alethe import branches
from dpaudit.verify.alethe.branches import Unknown, contradictory
from dpaudit.verify.alethe.obligations import Obligation
from dpaudit.verify.alethe.search import Search
from dpaudit.verify.checker import ProofRejected, certified, check, checked, epsilon
from dpaudit.verify.checker.formulas import inequalities
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Polynomial, TooLarge
from dpaudit.verify.proof import Basis, Proof
from dpaudit.verify.stored import load, save, to_dict
from tests.cases import NIGHTLY, for_each, some
from tests.verify.checker.certificates import RIGHT

CERTIFIED = {name: certified(proof) for name, proof in RIGHT.items()}
WITHOUT_SOLVERS = """
import sys
import time
sys.modules["z3"] = sys.modules["cvc5"] = None
from dpaudit.cli.group import exit_code
sys.exit(max(exit_code(["check-proof", path]) for path in sys.argv[1:]))
"""


class Asked:
    """Bases that remember which obligations they were asked for."""

    def __init__(self) -> None:
        self.search, self.obligations = Search(), dict[str, Obligation]()

    def __call__(self, obligation: Obligation) -> Basis:
        self.obligations[obligation.digest] = obligation
        return self.search(obligation)


def decided_by_z3(obligation: Obligation) -> str:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.from_string(obligation.text)
    return str(solver.check())


def without_solvers(*paths: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_SOLVERS, *paths], capture_output=True, text=True)


def test_stored_proofs_are_checked_where_no_solver_is_installed(tmp_path: Path) -> None:
    names = some(CERTIFIED, 6)
    paths = [tmp_path / f"{number}.json" for number in range(len(names))]
    for path, name in zip(paths, names, strict=True):
        proof = CERTIFIED[name]
        save(proof, path)
        assert load(path) == proof
        assert check(load(path)) == check(RIGHT[name])
    done = without_solvers(*paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("accepted: ") == len(paths)
    save(RIGHT["c2"], paths[0])  # as files are that were saved before there were certificates
    done = without_solvers(paths[0])
    assert "need cvc5, which is not installed here; the extra [verify] has it" in done.stderr
    raw = to_dict(RIGHT["c2"])
    del raw["certificate"]
    paths[0].write_text(json.dumps(raw))
    assert load(paths[0]) == RIGHT["c2"]


def test_a_certificate_is_the_same_each_time_and_small() -> None:
    assert certified(RIGHT["c7"]) == CERTIFIED["c7"] == certified(CERTIFIED["c7"])
    for proof in CERTIFIED.values():
        assert len(json.dumps(to_dict(proof))) < 20_000


def test_with_a_certificate_nothing_is_asked_of_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.verify.alethe.search.cvc5", None)
    for proof in CERTIFIED.values():
        assert check(proof).keeps_claim is True
    assert epsilon(CERTIFIED["c4"], {"eps": 1, "N": 2}) == Fraction(1, 2)
    with pytest.raises(TypeError):
        check(RIGHT["c2"])


# --- changed certificates ---------------------------------------------------------------------------------------


def rejected(proof: Proof) -> str:
    with pytest.raises(ProofRejected) as error:
        check(proof)
    assert "\n" not in str(error.value)
    return str(error.value)


def changes(certificate: dict[str, Basis]) -> dict[str, dict[str, Basis]]:
    """A certificate without a step, with a wrong one, with the bases of another obligation, with another state."""
    digests = [digest for digest, basis in certificate.items() if basis.steps]
    states = [digest for digest, basis in certificate.items() if basis.state]
    found: dict[str, dict[str, Basis]] = {"empty": {}}
    for digest in digests:
        steps = certificate[digest].steps
        found[f"{digest} left out"] = {key: value for key, value in certificate.items() if key != digest}
        found[f"{digest} with a state"] = {**certificate, digest: Basis(state=certificate[states[0]].state)}
        for place in range(len(steps)):
            rest = (*steps[:place], *steps[place + 1 :])
            found[f"{digest} without step {place}"] = {**certificate, digest: Basis(rest)}
            wrong = steps[place].replace(":args (", ":args (0 ").replace(" 1))", "))")
            found[f"{digest} with a wrong step {place}"] = {**certificate, digest: Basis((*steps, wrong))}
    for one, other in pairwise(digests):
        found[f"{one} for {other}"] = {**certificate, one: certificate[other], other: certificate[one]}
    for digest in states:
        halves = {name: value + Fraction(1, 3) for name, value in certificate[digest].state.items()}
        found[f"{digest} of parts"] = {**certificate, digest: Basis(state=halves)}
        found[f"{digest} of nothing"] = {**certificate, digest: Basis()}
    return found


@for_each("name", ["c2", "c6", "redraw"], nightly=[name for name in RIGHT if name not in ("c2", "c6", "redraw")])
def test_a_certificate_that_was_changed_does_not_show_the_proof(name: str) -> None:
    """But for steps that are not needed beside others: then the proof is the same."""
    proof = CERTIFIED[name]
    assert proof.certificate is not None
    found = changes(dict(proof.certificate))
    accepted = []
    for what, certificate in found.items():
        try:
            assert check(replace(proof, certificate=certificate)) == check(proof)
            accepted.append(what)
        except ProofRejected:
            pass
    assert all("without step" in what for what in accepted)
    assert len(accepted) < len(found) / 3


def test_what_a_certificate_does_not_show_is_named() -> None:
    proof = CERTIFIED["c2"]
    assert proof.certificate is not None
    nothing = dict.fromkeys(proof.certificate, Basis())
    assert "a proof of nothing" in rejected(replace(proof, certificate=nothing))
    kept = {digest: basis for digest, basis in proof.certificate.items() if basis.state}
    assert rejected(replace(proof, certificate=kept)) == (
        "loop:FF: both runs take the same branch at line 7: not shown"
    )
    hole = Basis(("(step t (cl (> |parameter.N| 0.0)) :rule hole)",))
    holes = {digest: hole for digest, basis in proof.certificate.items() if basis.steps}
    assert "no step of a rule that is known" in rejected(replace(proof, certificate=kept | holes))
    assert "not shown whether the cost" in rejected(replace(proof, claim="eps*N/2"))
    assert check(replace(proof, claim="99*eps/100")).keeps_claim is False  # the same obligation as the preconditions


@pytest.mark.long
def test_no_forged_certificate_is_accepted_for_a_false_claim() -> None:
    """And what the checker takes for a lemma of the changed steps is one, as z3 says."""
    tally, taken = forged(RIGHT, count=400 if NIGHTLY else 102)
    assert not tally.wrong
    assert tally.kinds["rejected"] == (400 if NIGHTLY else 102)
    assert len(taken) > 30
    assert untrue(taken) == []


def test_a_clause_that_is_no_lemma_would_be_found_out() -> None:
    x = Polynomial.of(Unknown("parameter", "x"))
    assert len(untrue([inequalities(">", x), Either((inequalities(">", x), inequalities("<=", x)))])) == 1
    assert len({step_changed("(step t (cl (> |x| 0.0)) :rule hole)", random.Random(seed)) for seed in range(99)}) > 20


# --- obligations against z3 -------------------------------------------------------------------------------------


@for_each("name", ["c2", "c6", "c9"], nightly=[name for name in RIGHT if name not in ("c2", "c6", "c9")])
def test_z3_says_the_same_of_every_obligation(name: str) -> None:
    asked = Asked()
    checked.check(RIGHT[name], asked)
    assert asked.obligations
    for digest, obligation in asked.obligations.items():
        basis = asked.search.certificate[digest]
        assert decided_by_z3(obligation) == ("unsat" if obligation.refuted(basis.steps) else "sat")
        assert bool(basis.state) != bool(basis.steps)


def obligation_of(seed: int, kind: str) -> Obligation:
    """Some formulas of real numbers, of whole ones, of both; or of products of positive numbers."""
    drawn = random.Random(f"{kind} {seed}")
    whole = {"real": lambda place: False, "whole": lambda place: True}.get(kind, lambda place: place % 2 == 0)
    numbers = [Polynomial.of(Unknown("parameter", name, whole(place))) for place, name in enumerate("xyz")]

    def sum_() -> Polynomial:
        total = Polynomial.number(Fraction(drawn.randint(-3, 3), drawn.choice((1, 1, 2))))
        for _ in range(drawn.randint(1, 3)):
            each = drawn.choice(numbers)
            each = each * drawn.choice(numbers) if kind == "products" and drawn.random() < 0.3 else each
            total = total + each.times(drawn.choice((-2, -1, 1, 2)))
        return total

    def formula(depth: int) -> Formula:
        if depth == 0 or drawn.random() < 0.5:
            return inequalities(drawn.choice(("<", "<=", ">", ">=", "==", "!=")), sum_())
        if drawn.random() < 0.2:
            return Opposite(formula(depth - 1))
        parts = tuple(formula(depth - 1) for _ in range(drawn.randint(1, 3)))
        return Both(parts) if drawn.random() < 0.4 else Either(parts)

    signs = [inequalities(">", number) for number in numbers if kind == "products"]
    return Obligation((*signs, *(formula(2) for _ in range(drawn.randint(2, 6)))))


@for_each("kind", ["real", "whole", "mixed", "products"])
def test_random_obligations_are_decided_as_z3_decides_them(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All linear ones are decided, and most of those with products; none otherwise than by z3."""
    monkeypatch.setattr("dpaudit.verify.alethe.search.PATIENCE_S", 0.5)
    refuted, met, open_ = 0, 0, 0
    for seed in range(300 if NIGHTLY else 30):
        obligation = obligation_of(seed, kind)
        basis = Search()(obligation)
        steps = obligation.refuted(basis.steps)
        truth = decided_by_z3(obligation)
        assert truth in ({"unsat"} if steps else {"sat"} if basis.state else {"sat", "unsat", "unknown"})
        refuted, met, open_ = refuted + steps, met + bool(basis.state), open_ + (not steps and not basis.state)
    assert min(refuted, met) >= 5
    assert open_ <= (0.02 if kind != "products" else 0.2) * (refuted + met)


def test_branches_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of twelve numbers may be on either side of 0, and each time the last formula contradicts itself."""
    numbers = [Polynomial.of(Unknown("parameter", f"x{place}")) for place in range(14)]
    sides = [Either((inequalities("<=", each), inequalities(">", each))) for each in numbers[2:]]
    none = [Both((inequalities("<", each), inequalities(">", each))) for each in numbers[:2]]
    assert contradictory([*sides[:5], Either(tuple(none))])
    monkeypatch.setattr(branches, "MOST_WORK", 10_000)
    with pytest.raises(TooLarge, match="more than 10000 inequalities"):
        contradictory([*sides, Either(tuple(none))])


N, EPS = "(to_real |parameter.N|)", "|parameter.eps|"
HOSTILE = {  # what a certificate may hold to keep the checker busy
    "brackets": "(" * 100_000,
    "closed brackets": "(step t (cl " + "(+ " * 5_000 + "1" + ")" * 5_000 + ") :rule la_generic :args (1))",
    "a long number": f"(step t (cl (>= {N} {'9' * 100_000})) :rule la_generic :args (1))",
    "a large number": f"(step t (cl (>= {N} (* {' '.join(['9' * 4_000] * 50)}))) :rule la_generic :args (1))",
    "a high power": f"(step t (cl (>= (* {' '.join([N] * 5_000)}) 1)) :rule la_generic :args (1))",
    "a product of sums": f"(step t (cl (>= (* {' '.join([f'(+ {N} {EPS} 1)'] * 24)}) 1)) :rule la_generic :args (1))",
    "a division by 0": f"(step t (cl (>= {N} (/ 1 0))) :rule la_generic :args (1))",
    "many literals": f"(step t (cl {f'(>= {N} 1)' * 5_000}) :rule la_generic :args ({'1 ' * 5_000}))",
    "quotes": '"|' * 50_000,
}


@for_each("what", HOSTILE)
def test_a_certificate_that_would_keep_the_checker_busy_is_refused(what: str) -> None:
    proof = CERTIFIED["c2"]
    assert proof.certificate is not None
    hostile = {
        digest: replace(basis, steps=(HOSTILE[what],) if basis.steps else ())
        for digest, basis in proof.certificate.items()
    }
    began = time.process_time()
    rejected(replace(proof, certificate=hostile))
    assert time.process_time() - began < 2.0


def test_many_true_steps_do_not_keep_the_checker_busy() -> None:
    proof = CERTIFIED["c2"]
    assert proof.certificate is not None
    many = {digest: replace(basis, steps=basis.steps * 300) for digest, basis in proof.certificate.items()}
    began = time.process_time()
    assert check(replace(proof, certificate=many)) == check(proof)
    assert time.process_time() - began < 4.0
