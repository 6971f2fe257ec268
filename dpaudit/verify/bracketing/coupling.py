"""Proofs by coupling: what derivations show as a bound, and in a file, and for which pairs they are."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.account.bracketed import ONE_WAY, bound_text, spent_text
from dpaudit.claims import Claim, Relation, claim_from_dict
from dpaudit.claims.rounding import above
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Bracket, Label, UpperBound, hair_above
from dpaudit.verify.bracketing.targets import RECORDS, WAYS, Target, answers_of_pair, form_of, many_answers, words_of
from dpaudit.verify.checker import Checked, check
from dpaudit.verify.coupled import ROWS, Derivation, Way, check_derivation
from dpaudit.verify.coupled.cases import NeighbourCase
from dpaudit.verify.coupled.examples import COMMON, example
from dpaudit.verify.coupled.spent import Spending
from dpaudit.verify.coupled.values import Keyed
from dpaudit.verify.enclosure import check_wide
from dpaudit.verify.language.source import place_of, source_of
from dpaudit.verify.proof import REACH, SYMMETRIC, Proof
from dpaudit.verify.stored import is_json

COUPLING = "proof by coupling"
OF_USERS = ("add_or_remove_user", "records")
MOST_PAIRS = 12  # small ones, that what is shown is held against
DELTA = 1e-6  # of the epsilon that is shown beside a claim of another form
ASSUMED = (
    "arithmetic of real numbers, not of floats",
    "numbers in the data are finite, below 2^53 in size, and Python's own or of 64 bits",
    "mappings have their keys in one order on both datasets",
)


def proposed(case: NeighbourCase, adjacency: str, common: int = COMMON) -> AdjacentPair | None:
    """A pair of datasets of records that shows a case, with so many common ones; None where none can be made up."""
    if adjacency not in RECORDS:
        return None
    made = example(case, adjacency == "add_or_remove_user", isinstance(case.data, Keyed), common)
    return None if made is None else AdjacentPair(*made, f"made up: {made[0]} and {made[1]}")


def small_pairs(found: Derivation, heard: Sequence[NeighbourCase]) -> Iterator[AdjacentPair]:
    """Few pairs that a derivation is about, of each of its cases: what it shows must hold for them as well."""
    made = [proposed(case, found.adjacency, common) for common in (COMMON, 0, 1) for case in heard]
    size, moves = found.answers or 3, [by for by in REACH.get(found.adjacency, ()) if by]  # type: ignore[call-overload]
    if found.data == "one number":
        made = [AdjacentPair(start, start + by, f"{start} and {start + by}") for by in moves for start in (0, 5.0)]
    elif found.data == "an array":
        which = [[0], [size - 1], *([[*range(size)]] if found.adjacency != "one-differs" else [])]
        after = [np.array([float(by * (place in each)) for place in range(size)]) for by in moves for each in which]
        made = [AdjacentPair(np.zeros(size), each, f"zeros, and a move of {each.sum():g}") for each in after]
    for pair in filter(None, made[:MOST_PAIRS]):
        with suppress(InvalidSpec):
            check_about(found, pair)
            yield pair


def dearest(found: Derivation) -> Way:
    """The way that spends most."""
    return max(found.ways, key=lambda each: each.total.size)


def most_spent(found: Sequence[Derivation]) -> str:
    """Which step spends most, of the way that does; nothing where none spends."""
    way = max(map(dearest, found), key=lambda each: each.total.size)
    step = max(way.steps, key=lambda each: each[2].size, default=None)
    place = step and place_of(found[0].source, step[0])
    return "" if step is None else f", of which {place} spends most ({in_words(step[2])}: {step[1]})"


def bounds_of(found: Sequence[Derivation], claim: Claim | None, source: str = COUPLING) -> Iterator[UpperBound]:
    """What derivations of all ways of an adjacency show together: without a delta where that is finite, and at one."""
    first = found[0]
    ways = tuple(each.adjacency for each in found)
    adjacency = next((word for word, both in WAYS.items() if both == ways), first.adjacency)
    many = f"; {many_answers(first.answers)}" if adjacency in WAYS and first.data != "one number" else ""
    at = ", ".join(f"{name} = {value!r}" for name, value in first.parameters.items())
    named = " whose first part, or user, names the user" if (adjacency, first.data) == OF_USERS else ""
    kind = f"the data {first.data}{' of whole numbers' if first.whole else ''}{named}{many}{at and f'; at {at}'}"
    shown = None if claim is None else _weakest([each.shown(claim) for each in found])
    least, delta = max(one.epsilon_at(0.0) for one in found), DELTA if claim is None else claim.delta or DELTA
    scope = f"all inputs ({words_of(adjacency)}; {kind})"
    if least < math.inf:
        yield UpperBound(least, 0.0, Label.PROVED, scope, Arithmetic.REALS, source, shows=shown)
    takes = min(1.0, above(max(way.total.delta for one in found for way in one.ways)))  # where a threshold is too low
    ends = ((max(one.epsilon_at(at) for one in found), at) for at in (delta, hair_above(delta), takes))
    epsilon, delta = next((each for each in ends if each[0] < math.inf), (math.inf, delta))
    if least == math.inf or epsilon < least and claim is not None and claim.delta:
        yield UpperBound(epsilon, delta, Label.PROVED, scope, Arithmetic.REALS, source, shows=shown)


def _weakest(shown: Sequence[Claim | None]) -> Claim | None:
    """Of claims of one family that with the largest parameter; None where they are of several."""
    known = [each for each in shown if each is not None and each.value is not None]
    if len(known) < len(shown) or len({each.with_value(1.0) for each in known}) != 1:
        return None
    return max(known, key=lambda each: each.value or 0.0)


def checked(proof: Proof | Derivation) -> Checked:
    """A proof of either kind, doubted: what it shows. Raises `ProofRejected`."""
    if isinstance(proof, Proof):
        return check(proof)
    check_derivation(proof)
    claim = None if proof.claim is None else claim_from_dict(proof.claim)
    bounds = tuple(bounds_of((proof,), claim))
    way = "" if proof.adjacency not in WAYS or proof.adjacency in SYMMETRIC else f"; {ONE_WAY}"
    ends = [
        f"{each.case}{each.raised and f', which raises {each.raised}'}: {in_words(each.total)}" for each in proof.ways
    ]
    return Checked(
        function=proof.function,
        statement=f"the privacy loss of {proof.function}: {'; '.join(dict.fromkeys(map(bound_text, bounds)))}{way}",
        scope=bounds[0].scope,
        assumptions=ASSUMED,
        obligations=tuple(dict.fromkeys(ends)),
        cost=bound_text(bounds[-1]),
        claim=None if claim is None else str(claim),
        keeps_claim=None if claim is None else Bracket("", claim, None, bounds).proving is not None,
    )


def in_words(spent: Spending) -> str:
    """What is spent, in words."""
    return spent_text(float(spent.pure), math.sqrt(spent.gaussian), float(spent.delta))


def bound_of_derivations(
    found: Sequence[Derivation], target: Target, claim: Claim | None, pairs: Sequence[AdjacentPair], source: str
) -> UpperBound:
    """What stored derivations of all ways of an adjacency show of a mechanism at its parameters, on these pairs."""
    if target.source is None:
        raise InvalidSpec(target.unread)
    read = source_of(target.source, target.function)
    if target.check is not None:
        target.check()
    for each in found:
        if each.source != read.text:
            raise InvalidSpec(f"the proof is of another program than {target.name}, as its source now reads; prove it")
        ours, theirs = map(_sorted, (each.parameters, target.parameters))
        if ours != theirs or not is_json(dict(target.parameters)):
            raise InvalidSpec(f"the proof is for {ours}, and {target.name} has {theirs}; prove it for these")
        check_derivation(each)
        for pair in pairs:
            check_about(each, pair)
    if len({(each.data, each.answers, each.whole) for each in found}) > 1:
        raise InvalidSpec("the proofs of the two ways must be for the same data")
    *_, bound = bounds_of(found, claim, source)
    return bound


def _sorted(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {parameters[name]!r}" for name in sorted(parameters)) or "no parameters"


def check_about(derivation: Derivation, pair: AdjacentPair) -> None:
    """Raises `InvalidSpec` where a derivation is not about a pair."""
    kind, number = form_of(pair, derivation.adjacency in RECORDS)
    if derivation.data == ROWS and kind == "records" and all(map(_is_row, (*pair.first, *pair.second))):
        kind = ROWS
    if kind != derivation.data or derivation.answers not in (None, number):
        many = "" if derivation.answers is None else f" of {derivation.answers} answers"
        raise InvalidSpec(f'the proof is for {derivation.data}{many} as data, the pair "{pair.name}" holds {kind}')
    if derivation.adjacency in RECORDS:
        relation = Relation.of(derivation.adjacency)
        if relation is Relation.ADD_OR_REMOVE_USER:  # a mapping has the rows of each; without `user` it is trusted
            relation = (
                Relation.ADD_OR_REMOVE_ONE if kind == "a mapping" else relation if pair.user is not None else None
            )
        pair.check(relation)
        check_wide("a number of the data", (pair.first, pair.second))
        if not all(map(_finite, (pair.first, pair.second))):
            raise InvalidSpec(f'the proof is about finite numbers, and the pair "{pair.name}" has others')
    else:
        answers = answers_of_pair(pair)  # raises for numbers that round otherwise than doubles
        if derivation.whole and any(each.denominator != 1 for side in answers for each in side):
            raise InvalidSpec(f'the proof is for whole answers, and the pair "{pair.name}" has others')


def _is_row(record: Any) -> bool:
    return not isinstance(record, str | Mapping) and hasattr(record, "__len__") and len(record) > 1


def _finite(value: Any) -> bool:
    """Whether no number in data is infinite, or none at all."""
    if getattr(getattr(value, "dtype", None), "kind", "") == "b":  # of numpy's, which do not add up
        return False
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple | set):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
