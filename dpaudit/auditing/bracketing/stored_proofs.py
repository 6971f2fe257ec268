"""Stored proofs as an upper bound of a mechanism: checked again, and only of the program that the mechanism is."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.auditing.bracketing.above import Found, check_unit, proved_scope, read_program
from dpaudit.auditing.bracketing.targets import WAYS, Target, check_adjacent, exact_answers
from dpaudit.claims.rounding import above
from dpaudit.errors import InvalidSpec
from dpaudit.pairs import AdjacentPair
from dpaudit.results.upper import Arithmetic, Label, UpperBound
from dpaudit.verify.proof import Proof


def bound_of_proofs(
    proofs: Sequence[Proof], target: Target, pairs: Sequence[AdjacentPair] = (), *, source: str
) -> UpperBound:
    """What proofs show of a mechanism at its parameters; those of "up" and "down" together are one of neighbours.

    `pairs` are those that are audited beside it. Raises `InvalidSpec` where a proof is of another program, of other
    parameters, of one way alone, or not about one of the pairs, and `ProofRejected` where the checker rejects it.
    """
    from dpaudit.verify.checker import check, epsilon

    ways = sorted(proof.adjacency for proof in proofs)
    adjacency = next((word for word, both in WAYS.items() if sorted(both) == ways), None)
    if adjacency in ("up", "down"):
        raise InvalidSpec(f"a proof for {adjacency!r} is one way; give the proof of the other way beside it")
    if adjacency is None:
        raise InvalidSpec(f"give one proof, or one of 'up' and one of 'down'; got {', '.join(ways) or 'none'}")
    found = Found([])
    read_program(target, None, found, pairs)
    check_unit(found)
    assert found.program is not None
    costs = []
    for proof in proofs:
        if proof.source != found.program.source:
            raise InvalidSpec(f"the proof is of another program than {target.name}, as its source now reads; prove it")
        check(proof)
        for name, value in proof.fixed.items():
            if found.parameters[name] != value:
                raise InvalidSpec(f"the proof is for {name} = {value}, and {target.name} has {found.parameters[name]}")
        costs.append(epsilon(proof, found.parameters))
    numbers = {proof.answers for proof in proofs}
    if len(numbers) > 1:
        raise InvalidSpec("the proofs of the two ways must be for the same number of answers")
    answers = numbers.pop()
    for pair in pairs:
        _check_in_scope(pair, adjacency, answers)
    scope = proved_scope(adjacency, answers, found)
    return UpperBound(above(max(costs)), 0.0, Label.PROVED, scope, Arithmetic.REALS, source)


def _check_in_scope(pair: AdjacentPair, adjacency: str, answers: int | None) -> None:
    if pair.distance > 1:
        raise InvalidSpec(f'the proof is about neighbours, and the pair "{pair.name}" is {pair.distance} steps apart')
    first, second = (exact_answers(f"pair.{side}", getattr(pair, side)) for side in ("first", "second"))
    check_adjacent(first, second, adjacency)
    if answers is not None and len(first) != answers:
        raise InvalidSpec(f'the proof is for {answers} answers, and the pair "{pair.name}" has {len(first)}')
