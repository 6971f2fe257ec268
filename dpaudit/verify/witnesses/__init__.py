"""Witnesses: what a program's outputs are worth at concrete answers, and where it breaks its claim.

A refutation is a rational pair of answers and an event of outputs whose two enclosures contradict the claim.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import Enclosure, of_ball, rational, rationals, shown
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.proof import SYMMETRIC, Adjacency, known_adjacency
from dpaudit.verify.witnesses import worst
from dpaudit.verify.witnesses.losses import OneWay, PairLoss, family, log_ratio, pair_delta, pair_loss
from dpaudit.verify.witnesses.outcomes import Balls, Outcomes, event, law, probability
from dpaudit.verify.witnesses.outputs import ANY, OutputEvent, Values, at_least, at_most, in_words, output_event
from dpaudit.verify.witnesses.paths import Parameters
from dpaudit.verify.witnesses.states import OutsideIntegrals, maximum
from dpaudit.verify.witnesses.worst import worst_pair

__all__ = [
    "ANY",
    "OneWay",
    "OutputEvent",
    "OutsideIntegrals",
    "PairLoss",
    "Refutation",
    "Values",
    "at_least",
    "at_most",
    "event",
    "in_words",
    "law",
    "output_event",
    "pair_delta",
    "pair_loss",
    "probability",
    "refute",
    "refute_at_length",
    "worst_pair",
]

NEAR = Fraction(1)  # the size of the answers that are tried first
ALONE = 3  # answers up to which moves of one alone are tried
LENGTHS = (10, 20, 40, 80)  # numbers of answers where few are not enough: a top costs most after many bottoms
GAIN = 1.01  # twice as many answers that lose less than 1 % more end the search
MOST_EFFORT = 14_000  # paths followed and integrals asked for, then the search ends: less than five seconds
EFFORT_AT_LENGTH = 3_000  # the same for many answers, whose integrals take longer

Pair = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
Chance = tuple[Any, float]  # a probability as a ball, and about


@dataclass(frozen=True, slots=True)
class Refutation:
    """The event is likelier under `first` than e^claim times what it is under `second`, and that is certain.

    `likelier` encloses its probability under the first answers, `rarer` that under the second, `loss` the logarithm of
    their ratio. The lower end of `loss` is above `claim`.
    """

    program: str
    adjacency: Adjacency
    claim: float
    parameters: Mapping[str, Fraction]
    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]
    event: OutputEvent
    likelier: Enclosure
    rarer: Enclosure
    loss: Enclosure

    @property
    def words(self) -> str:
        """The refutation in one sentence."""
        return (
            f"answers {shown(self.first)} and {shown(self.second)}, output {in_words(self.event)}: probabilities "
            f"{self.likelier.middle:.6g} and {self.rarer.middle:.6g}, loss {self.loss.lower:.6g} > {self.claim:.6g}"
        )


def refute(
    program: Program,
    adjacency: str,
    claim_epsilon: Fraction | float,
    parameters: Parameters,
    *,
    most: int = 2,
    most_answers: int = 5,
) -> Refutation | None:
    """The first refutation found among small integer answers; None says nothing about the claim.

    It tries answers of two values up to `most` in size, up to `most_answers` of them, small ones and moves of
    whole blocks first, then moves of one of at most 3 answers; and events of outputs that change their kind at most
    once, with half-lines for noisy numbers. Where that takes more than some thousands of integrals the search ends
    early, after the same ones on every machine. The one-way adjacencies are refuted one way only. What is returned is
    certain (ball arithmetic). A claim given as a float is the number that the float is.
    Raises `OutsideIntegrals` where no event could be computed, `InvalidSpec` for a wrong question.
    """
    kind, claim = known_adjacency(adjacency), _claimed(claim_epsilon)
    for name, size in (("most", most), ("most_answers", most_answers)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidSpec(f"{name} must be a whole number of at least 1, got {size!r}")
    search = _Search(program, kind, claim, rationals(parameters), most)
    for first, second in search.pairs(most_answers if program.loop is not None else 1):
        refutation = search.refuted(first, second)
        if refutation is not None:
            return refutation
        if search.effort > MOST_EFFORT:
            return None
    if search.outside is not None and not search.computed:
        raise search.outside
    return None


def refute_at_length(
    program: Program, adjacency: str, claim_epsilon: Fraction | float, parameters: Parameters, *, most: int = 2
) -> Refutation | None:
    """The refutation by the fewest of 10, 20, 40 or 80 answers, up to `most` in size; None says nothing of the claim.

    Answers and outputs are laid out as `worst_pair` does it, in two blocks or in repeated ones: threshold programs that
    start again lose most where each top comes after many bottoms. Certain, one way and bounded as `refute` is.
    Raises `InvalidSpec` for a wrong question.
    """
    kind, claim = known_adjacency(adjacency), _claimed(claim_epsilon)
    if program.loop is None or maximum(program) is not None:  # a maximum starts no epochs
        return None
    search = worst.Climb(program, kind, rationals(parameters), Fraction(most), EFFORT_AT_LENGTH)
    known = 0.0
    with contextlib.suppress(OutsideIntegrals):  # where more answers have too many paths
        for place in map(search.best, LENGTHS):
            if place is None:
                break
            for first, second in (place.pair, place.pair[::-1])[: 2 if kind in SYMMETRIC else 1]:
                refutation = _refutation(search.outcomes(first), search.outcomes(second), place.event, kind, claim)
                if refutation is not None:
                    return refutation
            if search.balls.effort > EFFORT_AT_LENGTH or search.loss(place) < GAIN * known:
                break
            known = search.loss(place)
    return None


def _claimed(claim_epsilon: Fraction | float) -> Fraction:
    claim = rational("a claimed epsilon", claim_epsilon)
    if claim < 0:
        raise InvalidSpec(f"a claimed epsilon must be at least 0, got {claim_epsilon!r}")
    return claim


def _refutation(
    ours: Outcomes, theirs: Outcomes, event: OutputEvent, adjacency: Adjacency, claim: Fraction
) -> Refutation | None:
    """The event as a refutation, where its ratio is certainly above the claim."""
    p, q = ours.probability(event), theirs.probability(event)
    loss = log_ratio(p, q)
    if loss is None or not loss.lower > claim:
        return None
    data = ours.answers, theirs.answers
    program, parameters = ours.program.name, ours.parameters
    return Refutation(program, adjacency, float(claim), parameters, *data, event, of_ball(p), of_ball(q), loss)


class _Search:
    def __init__(
        self, program: Program, adjacency: Adjacency, claim: Fraction, parameters: Mapping[str, Fraction], most: int
    ) -> None:
        self.program, self.adjacency, self.claim, self.parameters = program, adjacency, claim, parameters
        self.most = Fraction(most)
        self.values = sorted(
            (Fraction(value) for value in range(-most, most + 1)), key=lambda value: (abs(value), value)
        )
        self.ends = tuple(dict.fromkeys((Fraction(0), -self.most, self.most)))
        self.balls = Balls()
        self.known: dict[tuple[Fraction, ...], Outcomes] = {}
        self.families: dict[OutputEvent, tuple[OutputEvent, ...]] = {}
        self.tables: dict[tuple[tuple[Fraction, ...], OutputEvent], list[Chance | None]] = {}
        self.computed = self.followed = 0
        self.outside: OutsideIntegrals | None = None

    def pairs(self, most_answers: int) -> Iterator[Pair]:
        """Pairs of answers, each once: small answers first, and of these the fewest."""
        seen: set[Pair] = set()
        for size in sorted({NEAR, self.most}):
            for moves, limit in ((worst.together, most_answers), (worst.alone, min(most_answers, ALONE))):
                for answers in range(1, limit + 1):
                    for pair in self.of_size(answers, min(size, self.most), moves):
                        if pair not in seen:
                            seen.add(pair)
                            yield pair

    def of_size(
        self, answers: int, size: Fraction, moves: Callable[[Adjacency, worst.Layout], Iterator[worst.Move]]
    ) -> Iterator[Pair]:
        """Pairs of datasets with this number of answers, the first ones no larger than `size`."""
        values = [value for value in self.values if abs(value) <= size]
        for x, y in sorted(product(values, repeat=2), key=lambda each: abs(each[0]) + abs(each[1])):
            for layout in worst.splits(answers):
                first = worst.vector(layout, x, y)
                for move in moves(self.adjacency, layout):
                    second = worst.moved(first, move)
                    if worst.within(second, self.most):
                        yield first, second

    def outcomes(self, answers: tuple[Fraction, ...]) -> Outcomes:
        """What is known of a dataset; all paths are followed at once, since many events are asked for."""
        outcomes = self.known.get(answers)
        if outcomes is None:
            outcomes = self.known[answers] = Outcomes(self.program, answers, self.parameters, self.balls)
            self.followed += len(outcomes.paths)
        return outcomes

    @property
    def effort(self) -> int:
        """What was done so far, the same on every machine."""
        return self.followed + self.balls.effort

    def refuted(self, first: tuple[Fraction, ...], second: tuple[Fraction, ...]) -> Refutation | None:
        ours, theirs = self.outcomes(first), self.outcomes(second)
        for shape in ours.by_shape:
            if self.effort > MOST_EFFORT:
                break
            events = self.events(shape)
            for outcome, p, q in zip(events, self.chances(ours, shape), self.chances(theirs, shape), strict=True):
                if p is None or q is None or p[1] <= 0.0 < q[1]:
                    continue
                if p[1] > 0.0 and q[1] > 0.0 and math.log(p[1]) - math.log(q[1]) < float(self.claim) - 1e-6:
                    continue  # clearly below the claim; what is close is left to the balls
                if refutation := _refutation(ours, theirs, outcome, self.adjacency, self.claim):
                    return refutation
        return None

    def events(self, shape: OutputEvent) -> tuple[OutputEvent, ...]:
        """The events of a shape, made once."""
        if shape not in self.families:
            self.families[shape] = tuple(dict.fromkeys(family(shape, self.ends))) if worst.aligned(shape) else ()
        return self.families[shape]

    def chances(self, outcomes: Outcomes, shape: OutputEvent) -> list[Chance | None]:
        """The probabilities of all events of a shape, computed once; None where the integrals cannot express one."""
        key = outcomes.answers, shape
        if key not in self.tables:
            self.tables[key] = [self.chance(outcomes, event) for event in self.events(shape)]
        return self.tables[key]

    def chance(self, outcomes: Outcomes, event: OutputEvent) -> Chance | None:
        try:
            ball = outcomes.probability(event)
        except OutsideIntegrals as error:
            self.outside = error
            return None
        self.computed += 1
        return ball, float(ball)
