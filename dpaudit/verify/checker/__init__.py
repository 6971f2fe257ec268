"""A proof, doubted by its certificate; by one that cvc5 finds where it has none. Judgements are in `checked`."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dpaudit.verify.alethe.obligations import Bases
from dpaudit.verify.alethe.search import Search
from dpaudit.verify.checker import checked
from dpaudit.verify.checker.checked import Checked as Checked
from dpaudit.verify.checker.formulas import ProofRejected as ProofRejected
from dpaudit.verify.proof import Basis, Proof


def check(proof: Proof) -> Checked:
    """Derives the obligations of a proof from its source and discharges them one by one.

    The statement holds in real-number arithmetic: for every two datasets of the adjacency, every set S of outputs and
    all parameters of the scope, P(output in S) of the first <= e^cost P(output in S) of the second.
    Raises `ProofRejected` where an obligation fails, cannot be decided, or the proof is not of a form that is known,
    `MissingRequirement` without cvc5 for a proof that has no certificate.

    >>> from dpaudit.verify.proof import Alignment, Shift
    >>> source = "def release(data, rng, eps):\\n    return data + rng.laplace(scale=2 / eps)\\n"
    >>> moved = Alignment((Shift("before:", "draw_1", answer=Fraction(-1)),))
    >>> proof = Proof(source, "release", "all-differ", {}, "eps", "eps/2", moved)
    >>> check(proof).keeps_claim, epsilon(proof, {"eps": 3}), check(certified(proof)).keeps_claim
    (True, Fraction(3, 2), True)
    """
    return checked.check(proof, _bases(proof))


def certified(proof: Proof) -> Proof:
    """The proof, checked, with a certificate that was found anew. Raises as `check` does."""
    search = Search()
    checked.check(proof, search)
    return replace(proof, certificate=search.certificate)


def epsilon(proof: Proof, parameters: Mapping[str, Fraction | int]) -> Fraction:
    """The cost of a proof at parameter values ("n" for the number of answers, where the cost depends on it).

    The proof is not checked by this. Raises `InvalidSpec` where a value is missing, or outside the proof's scope.
    """
    return checked.epsilon(proof, parameters, _bases(proof))


def _bases(proof: Proof) -> Bases:
    known = proof.certificate
    return Search() if known is None else lambda obligation: known.get(obligation.digest, Basis())
