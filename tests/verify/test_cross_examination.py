"""Every proof is confronted with exact losses: of no random mechanism may a pair lose more than is proved of it.

The source of each mechanism goes three ways. Python runs it beside its reading, with the same draws; the prover and the
checker bound its loss for all answers; integrals enclose the loss of concrete pairs from below. Seeds are fixed, so
that nothing here is left to chance.
"""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.programs import PROGRAMS, WRONG, function_of
from dpaudit import bracket
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Label
from dpaudit.verify.alignment import Unproved, prove
from dpaudit.verify.checker import ProofRejected, check, epsilon
from dpaudit.verify.coupled import derive
from dpaudit.verify.coupled.ways import NotShown
from dpaudit.verify.language import read
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.language.source import source_of
from dpaudit.verify.proof import SYMMETRIC, Proof
from dpaudit.verify.witnesses import OutsideIntegrals, PairLoss, pair_loss
from dpaudit.verify.witnesses.outputs import ANY, at_most
from tests.cases import for_each, some
from tests.verify.interpreter import Noise, as_output, run
from tests.verify.random_programs import Mechanism, Pair, mechanism
from tests.verify.random_python import KINDS, hostile, loss_between

RUNS = 6  # of a source beside its reading


def exceeding(cost: Fraction, losses: Iterable[float]) -> list[float]:
    """The losses that lie above a cost: none, or the proof is wrong."""
    return [loss for loss in losses if loss == float("inf") or Fraction(loss) > cost]


def certain_loss(found: PairLoss, adjacency: str) -> float:
    """What the pair loses at least, in the orders that the adjacency speaks of."""
    return found.loss.lower if adjacency in SYMMETRIC else found.forward.loss.lower


def costs_of(program: Program, drawn: Mechanism) -> Iterator[Fraction]:
    """What an alignment shows, and a coupling of as many answers as the pairs have."""
    fixed = {name: value for name, value in drawn.parameters.items() if name != "eps"}
    proof = prove(program, drawn.adjacency, fixed={} if drawn.symbolic else fixed)
    if isinstance(proof, Proof):
        check(proof)
        yield epsilon(proof, drawn.parameters)
    given = {name: int(value) if value.denominator == 1 else value for name, value in drawn.parameters.items()}
    with contextlib.suppress(NotShown):
        source = source_of(drawn.source, program.name)
        found = derive(source, drawn.adjacency, given, data="an array", answers=drawn.answers)
        yield Fraction(found.epsilon_at(0.0))


def losses_of(program: Program, drawn: Mechanism) -> list[float]:
    found = []
    for first, second in drawn.pairs:
        with contextlib.suppress(OutsideIntegrals):
            found.append(certain_loss(pair_loss(program, first, second, drawn.parameters), drawn.adjacency))
    return found


def same_as_python(drawn: Mechanism, program: Program, seed: int) -> None:
    """The source does what its reading does."""
    scope: dict[str, Any] = {}
    exec(drawn.source, scope)
    for number in range(RUNS):
        answers = list(drawn.pairs[number % len(drawn.pairs)][number % 2])
        noise = seed * RUNS + number
        expected = as_output(scope["f"](answers, Noise(noise), **drawn.parameters))
        assert run(program, answers, drawn.parameters, Noise(noise)) == expected, drawn.source


def confronted(seed: int) -> tuple[list[Fraction], list[float]]:
    """Examines the mechanism of a seed; fails where any two of the three disagree.

    The costs of its proofs, and the losses of its pairs where they are known.
    """
    drawn = mechanism(seed)
    program = read(drawn.source)
    same_as_python(drawn, program, seed)
    losses = losses_of(program, drawn)
    costs = list(costs_of(program, drawn))
    where = f"seed {seed}, {drawn.adjacency}, {drawn.parameters}, {drawn.pairs}\n{drawn.source}"
    assert not any(exceeding(cost, losses) for cost in costs), f"proved {costs}, pairs lose {losses}: {where}"
    return costs, losses


def test_no_pair_of_some_random_mechanisms_loses_more_than_is_proved() -> None:
    seen = [confronted(seed) for seed in range(6)]
    assert sum(bool(costs and losses) for costs, losses in seen) >= 3


@pytest.mark.slow
def test_no_pair_of_a_thousand_random_mechanisms_loses_more_than_is_proved() -> None:
    """And there is something to examine: bounds far above the truth, or a prover that is never put to the test, show
    nothing."""
    seen = [confronted(seed) for seed in range(1_000)]
    proved = [(min(costs), losses) for costs, losses in seen if costs]
    compared = [(cost, losses) for cost, losses in proved if losses]
    tight = [cost for cost, losses in compared if cost and max(losses) >= 0.9 * float(cost)]
    infinite = [losses for costs, losses in seen if not costs and float("inf") in losses]
    for group, share in ((proved, 0.6), (compared, 0.5), (tight, 0.1), (infinite, 0.02)):
        assert len(group) >= share * len(seen)


PAIRS: tuple[Pair, ...] = tuple(
    (tuple(map(Fraction, first)), tuple(map(Fraction, second)))
    for first, second in (((1, -1), (2, -2)), ((0, 0), (1, 1)), ((0, 0), (0, 1)), ((1, 1), (0, 0)))
)
VALUES = {"eps": Fraction(1), "N": Fraction(1), "T": Fraction(0), "M": Fraction(2)}


def neighbours(pair: Pair, adjacency: str) -> bool:
    moves = [after - before for before, after in zip(*pair, strict=True)]
    if adjacency == "one-differs":
        return sum(move != 0 for move in moves) <= 1
    return all({"all-differ": abs(move), "up": move, "down": -move}[adjacency] in (0, 1) for move in moves)


@for_each("name", some(PROGRAMS, 4))
def test_no_pair_of_the_known_programs_loses_more_than_is_proved(name: str) -> None:
    case = PROGRAMS[name]
    program = read(case.function)
    given = {name: VALUES[name] for name in program.parameters}
    pairs = [pair for pair in PAIRS if neighbours(pair, case.adjacency)]
    assert pairs
    drawn = Mechanism("", inspect.getsource(case.function), case.adjacency, given, tuple(pairs), False)
    costs = list(costs_of(program, drawn))
    assert costs or not case.right
    losses = [certain_loss(pair_loss(program, *pair, given), case.adjacency) for pair in pairs if costs]
    assert not any(exceeding(cost, losses) for cost in costs)


@for_each("name", WRONG)
def test_a_false_proof_would_be_found_out(name: str) -> None:
    """The claims of the wrong programs, had they been proved, lie below the loss of a pair at an event."""
    case = WRONG[name]
    known = case.counterexample
    assert known is not None
    program = read(case.function)
    given = {name: (VALUES | known.parameters)[name] for name in program.parameters}
    event = [ANY if item == "any" else at_most(item[1]) if isinstance(item, tuple) else item for item in known.event]
    found = pair_loss(program, known.before, known.after, given, [event])
    way = found.forward
    assert way.likelier.middle == pytest.approx(known.first, rel=1e-5)
    assert way.rarer.middle == pytest.approx(known.second, rel=1e-5)
    assert way.loss.lower == pytest.approx(known.loss, rel=1e-8)
    claim = Fraction(2 if case.claim == "2*eps" else 1)
    assert exceeding(claim, [way.loss.lower]) == [way.loss.lower]
    assert not exceeding(Fraction(3), [2.9])


def test_random_programs_are_of_all_kinds() -> None:
    drawn, beside = [mechanism(seed) for seed in range(1_000)], [hostile(seed) for seed in range(400)]
    kinds = Counter(each.kind for each in drawn)
    assert set(kinds) == {"sparse", "largest", "sums", "two draws"}
    assert min(kinds.values()) >= 25
    assert len({(each.source, each.adjacency) for each in drawn}) >= 800
    for each in drawn:
        assert all(neighbours(pair, each.adjacency) for pair in each.pairs), each
        assert each.answers in (1, 2, 3)
    assert {each.kind for each in beside} == set(KINDS)
    assert len({each.source for each in beside}) >= 200


# what a run may raise is an output, though nobody looks at it

NOISY = """
def f(q, rng, eps, N):
    s = 0
    seen = []
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=1 / eps)
        if y > 0:
            UNUSED
        s += y
    return s
"""
RELEASE = "def f(q, rng, eps, N):\n    UNUSED\n    return q + rng.laplace(scale=1 / eps)\n"
UNUSED = {  # sources that raise at eps = 1 and N = 0, on some of the data alone; the line that does
    "a quotient in one branch": (NOISY.replace("UNUSED", "z = 1 / (eps - 1)"), 7),
    "a remainder in one branch": (NOISY.replace("UNUSED", "z = i % N"), 7),
    "an output that nobody sees": (NOISY.replace("UNUSED", "seen.append(1 / (eps - 1))"), 7),
    "a scale that is divided": (NOISY.replace("UNUSED", "z = x / (2 * N)"), 7),
    "the second half of a comparison": (RELEASE.replace("UNUSED", "high = q > 0 and 1 / (eps - 1) > 0"), 2),
    "a chain that ends early": (RELEASE.replace("UNUSED", "high = 0 < q < 1 / N"), 2),
    "a quotient of nothing": (RELEASE.replace("UNUSED", "z = 1 / (N - N)"), 2),
}


@for_each("name", UNUSED)
def test_a_divisor_that_may_be_0_is_an_output(name: str) -> None:
    """Search, checker, integrals and interpreter each refuse it by themselves, and name the line."""
    source, line = UNUSED[name]
    program = read(source)
    at: dict[str, int] = {"eps": 1, "N": 0}
    for fixed in ({}, at):
        found = prove(program, "one-differs", fixed=fixed)
        assert isinstance(found, Unproved)
        assert found.line == line
    first, second = ((1, 0), (0, 0)) if program.loop else (1, 0)
    with pytest.raises(OutsideIntegrals, match=f"line {line}"):
        pair_loss(program, first, second, at)
    with pytest.raises(InvalidSpec, match=f"line {line}"):
        run(program, second, at, lambda law, scale: scale)
    unseen = prove(replace(program, divisors=()), "one-differs")
    if name == "a scale that is divided":
        return  # the search does not multiply an answer by a parameter
    assert isinstance(unseen, Proof)  # as a search that overlooks the divisor would have it
    with pytest.raises(ProofRejected, match=f"line {line}"):
        check(unseen)


def test_divisors_that_are_never_0_are_read() -> None:
    source = RELEASE.replace("UNUSED", "assert N >= 2\n    high = q > 0 and eps / (1 - N) < 1 and 1 / (2 * eps) > N")
    found = prove(read(source), "all-differ")
    assert isinstance(found, Proof)
    assert check(found).cost == "eps"


# programs that do what a reader may overlook, beside Python's own runs of them


def beside_python(seed: int) -> tuple[str, bool]:
    """What becomes of a program, and whether its bound is near the loss that Python shows; fails where it is below."""
    drawn = hostile(seed)
    answers = len(drawn.pair[0]) if isinstance(drawn.pair[0], list) else None
    asked = {"pair": drawn.pair, "adjacency": drawn.adjacency, "parameters": drawn.parameters, "answers": answers}
    try:
        found = bracket(drawn.function, drawn.claim, runs=0, **asked)
    except InvalidSpec:
        return "refused", False
    bounds = [each.epsilon_upper for each in found.uppers if each.label is Label.PROVED]
    if not bounds:
        return found.verdict.value, False
    exact = [each.epsilon_lower or 0.0 for each in found.uppers if each.label is Label.EXACT_PAIR]
    loss = loss_between(drawn.function, drawn.pair, drawn.parameters)
    where = f"seed {seed}, {drawn.kind}, {drawn.parameters}, {drawn.pair}\n{drawn.source}"
    assert loss <= min(bounds) + 1e-9, f"proved {min(bounds)}, in Python a pair loses {loss}: {where}"
    assert max(exact, default=0.0) <= min(bounds), f"proved {min(bounds)}, a pair loses {max(exact)}: {where}"
    return "proved", loss >= 0.7 * min(bounds)


FIRST_OF_ITS_KIND = {hostile(seed).kind: seed for seed in reversed(range(60))}


@for_each("seed", FIRST_OF_ITS_KIND.values())
def test_no_program_loses_more_in_python_than_is_proved_of_it(seed: int) -> None:
    assert FIRST_OF_ITS_KIND.keys() == KINDS.keys()
    beside_python(seed)


@pytest.mark.slow
def test_none_of_two_thousand_programs_loses_more_in_python_than_is_proved_of_it() -> None:
    seen = Counter(beside_python(seed) for seed in range(2_000))
    proved = sum(count for (word, _), count in seen.items() if word == "proved")
    assert proved >= 500, seen
    assert seen["proved", True] >= 0.3 * proved, seen  # bounds far above the truth would never be found out


LITERAL = "def f(q, rng, eps, N):\n    return q + rng.laplace(scale=1 / eps if eps > 0.1 else 1)\n"
TELLING = UNUSED["a quotient in one branch"][0].replace("y > 0", "x > 0")
OVERLOOKED = {  # what was once proved of programs, and what Python loses at least
    "a divisor in one branch": (TELLING, [1.0, 0.0], [0.0, 0.0], 1.0),
    "a name that has no value yet": (RELEASE.replace("UNUSED", "h = q > 0 and z > 0") + "    z = 1\n", 1.0, 0.0, 1.0),
    "one draw for a vector": (RELEASE.replace("    UNUSED\n", ""), np.array([0.0, 0.0]), np.array([1.0, -1.0]), 1.0),
    "a parameter that is a literal": (LITERAL, 0.0, 1.0, 0.1),
}


@for_each("name", OVERLOOKED)
def test_python_s_own_runs_show_what_a_reader_overlooks(name: str) -> None:
    source, first, second, eps = OVERLOOKED[name]
    loss = loss_between(function_of(source, "f"), (first, second), {"eps": eps, "N": 0})
    assert loss > 1.5 * eps
