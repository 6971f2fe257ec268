"""Stored proofs as an upper bound of a mechanism: checked again, and only of the program that the mechanism is."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.auditing.bracketing.above import Found, above, check_unit, proved_scope, read_program
from dpaudit.auditing.bracketing.targets import WAYS, Target
from dpaudit.errors import InvalidSpec
from dpaudit.verify.proof import Proof
from dpaudit.verify.upper import Arithmetic, Label, UpperBound


def bound_of_proofs(proofs: Sequence[Proof], target: Target, *, source: str) -> UpperBound:
    """What proofs show of a mechanism at its parameters; those of "up" and "down" together are one of neighbours.

    Raises `InvalidSpec` where a proof is of another program, of other parameters, or of one way alone, and
    `ProofRejected` where the checker rejects it.
    """
    from dpaudit.verify.checker import check, epsilon

    ways = sorted(proof.adjacency for proof in proofs)
    adjacency = next((word for word, both in WAYS.items() if sorted(both) == ways), None)
    if adjacency in ("up", "down"):
        raise InvalidSpec(f"a proof for {adjacency!r} is one way; give the proof of the other way beside it")
    if adjacency is None:
        raise InvalidSpec(f"give one proof, or one of 'up' and one of 'down'; got {', '.join(ways) or 'none'}")
    found = Found([])
    read_program(target, None, found)
    check_unit(found)
    assert found.program is not None
    costs = []
    for proof in proofs:
        if proof.source != found.program.source:
            raise InvalidSpec(f"the proof is of another program than {target.name}, as its source now reads; prove it")
        for name, value in proof.fixed.items():
            if found.parameters[name] != value:
                raise InvalidSpec(f"the proof is for {name} = {value}, and {target.name} has {found.parameters[name]}")
        check(proof)
        costs.append(epsilon(proof, found.parameters))
    numbers = {proof.answers for proof in proofs}
    if len(numbers) > 1:
        raise InvalidSpec("the proofs of the two ways must be for the same number of answers")
    scope = proved_scope(adjacency, numbers.pop(), found)
    return UpperBound(above(max(costs)), 0.0, Label.PROVED, scope, Arithmetic.REALS, source)
