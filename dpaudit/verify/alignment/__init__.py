"""Proofs by randomness alignment: the search. Its proofs are data; the checker doubts them by its own lines."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment.forms import NoProof, cost_text
from dpaudit.verify.alignment.lock_step import LockStep, Shown, cheaper
from dpaudit.verify.alignment.outline import Parameters, ProgramOutline, outline_of
from dpaudit.verify.alignment.winner import by_winner
from dpaudit.verify.language import expression, rounded
from dpaudit.verify.language.algebra import TooLarge
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.proof import Adjacency, Proof, Shape, known_adjacency
from dpaudit.verify.proof import Unproved as Unproved

MOST_ANSWERS = 1_000


def prove(
    program: Program,
    adjacency: Adjacency,
    *,
    claim: str | None = None,
    fixed: Mapping[str, Fraction | int] | None = None,
    answers: int | None = None,
) -> Proof | Unproved:
    """A proof by randomness alignment of the least cost that the search finds, or why there is none.

    The cost is an upper bound on the privacy loss (pure epsilon, nats) for all real answers that differ as `adjacency`
    says, in the order in which it says so. It is a text in the parameters that are not `fixed`, and may lie above the
    `claim`, which is only written down. Without `answers` the proof holds for any number of them; with it the shifts
    may depend on how often each path is taken, and a proof for this number alone is returned where it is cheaper.
    Complete for shifts with whole coefficients up to 2. Unproved is never a refutation: other alignments may exist.

    Raises `InvalidSpec` for an unknown adjacency or parameter, values that the program's asserts exclude, a claim that
    cannot be read, or a wrong number of answers; `MissingRequirement` without z3.

    >>> from dpaudit.verify.language import read
    >>> program = read("def release(data, rng, eps):\\n    return data + rng.laplace(scale=2 / eps)\\n")
    >>> prove(program, "all-differ").cost
    'eps/2'
    """
    values = _checked(program, adjacency, fixed or {}, answers)
    if claim is not None:
        expression(claim, program)
    proof = _searched(program, adjacency, values, answers)
    if isinstance(proof, Unproved):
        return _with_cure(proof, program, adjacency, values)
    unsure = rounded(program, values)
    if unsure is not None:
        return Unproved(str(unsure).partition(": ")[2], unsure.line)
    return replace(proof, claim=claim)


def _searched(
    program: Program,
    adjacency: Adjacency,
    fixed: Mapping[str, Fraction],
    answers: int | None,
    granted: tuple[str, ...] = (),
) -> Proof | Unproved:
    try:
        parameters = Parameters(program, fixed, granted)
        outline = outline_of(program, parameters)
        parameters.check_divisors(program)
        results = list(_results(outline, adjacency, answers))
        best: tuple[Shape, int | None, Shown] | None = None
        for shape, number, shown in results:
            if isinstance(shown, Shown) and (best is None or cheaper(shown.cost, best[2].cost, parameters)):
                best = (shape, number, shown)
    except NoProof as error:
        return error.unproved
    except TooLarge:
        what = "the program makes numbers or polynomials that are too large to compute with; simplify it"
        raise InvalidSpec(what) from None
    if best is None:
        refused = [shown for _, _, shown in results if isinstance(shown, Unproved)]
        return next((one for one in refused if one.growing is not None), refused[0])
    shape, number, shown = best
    return Proof(
        source=program.source,
        function=program.name,
        adjacency=adjacency,
        fixed=fixed,
        answers=number,
        claim=None,
        cost=cost_text(shown.cost),
        shape=shape,
        alignments=shown.alignments,
        cases=shown.cases,
        assumptions=parameters.granted,
    )


def _results(
    outline: ProgramOutline, adjacency: Adjacency, answers: int | None
) -> Iterator[tuple[Shape, int | None, Shown | Unproved]]:
    """What each shape gives; of equal costs the first is taken, which holds for any number of answers."""
    winner = by_winner(outline, adjacency)
    if winner is not None:
        yield "winner", None, winner
    search = LockStep(outline, adjacency)
    shown = _attempt(search)
    yield "lock-step", None, shown
    loops = outline.program.loop is not None
    if answers is not None and loops and (adjacency != "one-differs" or isinstance(shown, Unproved)):
        yield "lock-step", answers, _attempt(search, answers)


def _with_cure(unproved: Unproved, program: Program, adjacency: Adjacency, fixed: Mapping[str, Fraction]) -> Unproved:
    """The same, or what to assert where the cost is bounded as soon as whole parameters are at least 1."""
    whole = [name for name in program.parameters if name in program.integers and name not in fixed]
    if unproved.growing is None or not whole:
        return unproved
    with_them = _searched(program, adjacency, fixed, None, tuple(f"{name} >= 1" for name in whole))
    if isinstance(with_them, Unproved):
        return unproved
    names = " and ".join(f"{name} >= 1" for name in whole)
    return Unproved(f"nothing says that {names}: write it as an assert, or give a value (the cost is then bounded)")


def _attempt(search: LockStep, answers: int | None = None) -> Shown | Unproved:
    try:
        return search.for_any_number() if answers is None else search.for_answers(answers)
    except NoProof as error:
        return error.unproved


def _checked(
    program: Program, adjacency: str, fixed: Mapping[str, Fraction | int], answers: int | None
) -> dict[str, Fraction]:
    known_adjacency(adjacency)
    for name, value in fixed.items():
        if name not in program.parameters:
            raise InvalidSpec(f"fixed: {program.name} has no parameter {name!r}, only {', '.join(program.parameters)}")
        if name in program.integers and Fraction(value).denominator != 1:
            raise InvalidSpec(f"fixed: {name} must be a whole number, got {value}")
    if answers is not None and not 1 <= answers <= MOST_ANSWERS:
        raise InvalidSpec(f"answers must lie in 1..{MOST_ANSWERS}, got {answers}")
    return {name: Fraction(value) for name, value in fixed.items()}
