"""Proofs by randomness alignment: the search. Its proofs are data; the checker doubts them by its own lines."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment.forms import NoProof, cost_text
from dpaudit.verify.alignment.lock_step import LockStep
from dpaudit.verify.alignment.outline import Parameters, outline_of
from dpaudit.verify.language import expression, rounded
from dpaudit.verify.language.algebra import TooLarge
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.proof import Adjacency, Proof, known_adjacency
from dpaudit.verify.proof import Unproved as Unproved


def prove(
    program: Program,
    adjacency: Adjacency,
    *,
    claim: str | None = None,
    fixed: Mapping[str, Fraction | int] | None = None,
) -> Proof | Unproved:
    """A proof by randomness alignment of the least cost that the search finds, or why there is none.

    The cost is an upper bound on the privacy loss (pure epsilon, nats) for all real answers, as many as there are, that
    differ as `adjacency` says, in the order in which it says so. It is a text in the parameters that are not `fixed`,
    and may lie above the `claim`, which is only written down. Complete for shifts with whole coefficients up to 2.
    Unproved is never a refutation: other alignments may exist.

    Raises `InvalidSpec` for an unknown adjacency or parameter, values that the program's asserts exclude, or a claim
    that cannot be read; `MissingRequirement` without z3.

    >>> from dpaudit.verify.language import read
    >>> program = read("def release(data, rng, eps):\\n    return data + rng.laplace(scale=2 / eps)\\n")
    >>> prove(program, "all-differ").cost
    'eps/2'
    """
    values = _checked(program, adjacency, fixed or {})
    if claim is not None:
        expression(claim, program)
    proof = _searched(program, adjacency, values)
    if isinstance(proof, Unproved):
        return _with_cure(proof, program, adjacency, values)
    unsure = rounded(program, values)
    if unsure is not None:
        return Unproved(str(unsure).partition(": ")[2], unsure.line)
    return replace(proof, claim=claim)


def _searched(
    program: Program, adjacency: Adjacency, fixed: Mapping[str, Fraction], granted: tuple[str, ...] = ()
) -> Proof | Unproved:
    try:
        parameters = Parameters(program, fixed, granted)
        outline = outline_of(program, parameters)
        parameters.check_divisors(program)
        shown = LockStep(outline, adjacency).shown()
    except NoProof as error:
        return error.unproved
    except TooLarge:
        what = "the program makes numbers or polynomials that are too large to compute with; simplify it"
        raise InvalidSpec(what) from None
    if isinstance(shown, Unproved):
        return shown
    return Proof(
        source=program.source,
        function=program.name,
        adjacency=adjacency,
        fixed=fixed,
        claim=None,
        cost=cost_text(shown.cost),
        alignment=shown.alignment,
        assumptions=parameters.granted,
    )


def _with_cure(unproved: Unproved, program: Program, adjacency: Adjacency, fixed: Mapping[str, Fraction]) -> Unproved:
    """The same, or what to assert where the cost is bounded as soon as whole parameters are at least 1."""
    whole = [name for name in program.parameters if name in program.integers and name not in fixed]
    if unproved.growing is None or not whole:
        return unproved
    with_them = _searched(program, adjacency, fixed, tuple(f"{name} >= 1" for name in whole))
    if isinstance(with_them, Unproved):
        return unproved
    names = " and ".join(f"{name} >= 1" for name in whole)
    return Unproved(f"nothing says that {names}: write it as an assert, or give a value (the cost is then bounded)")


def _checked(program: Program, adjacency: str, fixed: Mapping[str, Fraction | int]) -> dict[str, Fraction]:
    known_adjacency(adjacency)
    for name, value in fixed.items():
        if name not in program.parameters:
            raise InvalidSpec(f"fixed: {program.name} has no parameter {name!r}, only {', '.join(program.parameters)}")
        if name in program.integers and Fraction(value).denominator != 1:
            raise InvalidSpec(f"fixed: {name} must be a whole number, got {value}")
    return {name: Fraction(value) for name, value in fixed.items()}
