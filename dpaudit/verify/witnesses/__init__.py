"""Witnesses: what a program's outputs are worth at concrete answers, and at which it loses most.

A claim is refuted by a rational pair of answers and an event of outputs whose two enclosures contradict it. The search
tries few answer vectors, few moves, few events, in a fixed order. A vector of answers has two values, x and y, laid out
in two blocks (or in repeated ones, for programs that start again). A move takes it to a neighbour: everything up or
down, the two blocks in opposite directions, one answer alone.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import rational, rationals
from dpaudit.verify.integrals import log_ratio
from dpaudit.verify.language.nodes import Emitted, Program
from dpaudit.verify.proof import REACH, SYMMETRIC, Adjacency, known_adjacency
from dpaudit.verify.witnesses.losses import PairLoss, family, loss_between, pair_delta, pair_loss
from dpaudit.verify.witnesses.outcomes import Balls, Outcomes
from dpaudit.verify.witnesses.outputs import OutputEvent, Pattern, at_least, at_most, has_noisy
from dpaudit.verify.witnesses.paths import MOST_PATHS, Parameters
from dpaudit.verify.witnesses.states import OutsideIntegrals

Layout = tuple[int, ...]  # per answer: 0 for the first block's value, 1 for the second's
Move = tuple[int, ...]  # per answer: how far it moves

TOGETHER: dict[str, tuple[tuple[int, int], ...]] = {
    "all-differ": ((1, 1), (-1, -1), (1, -1), (-1, 1)),
    "one-differs": (),
    "up": ((1, 1), (1, 0), (0, 1)),
    "down": ((-1, -1), (-1, 0), (0, -1)),
}


def splits(answers: int) -> tuple[Layout, ...]:
    """Two blocks, the second of 1 to all answers."""
    return tuple((0,) * (answers - second) + (1,) * second for second in range(1, answers + 1))


def layouts(answers: int) -> tuple[Layout, ...]:
    """Two blocks of many sizes, and repeated ones."""
    blocks = splits(answers)
    if answers > 8:
        near = {1, 2, 3, 4, answers // 2, answers - 3, answers - 2, answers - 1, answers}
        blocks = tuple(layout for layout in blocks if sum(layout) in near)
    repeated = [
        ((0,) * (answers // times - 1) + (1,)) * times + (0,) * (answers % times)
        for times in range(2, 9)
        if answers // times > 1
    ]
    return tuple(dict.fromkeys((*blocks, *repeated)))


def together(adjacency: Adjacency, layout: Layout) -> Iterator[Move]:
    """The moves of whole blocks."""
    for move in dict.fromkeys(tuple(pair[block] for block in layout) for pair in TOGETHER[adjacency]):
        if any(move):
            yield move


def alone(adjacency: Adjacency, layout: Layout) -> Iterator[Move]:
    """The moves of one answer: the first or the last of a block."""
    size = len(layout)
    edges = [place for place in range(size) if place in (0, size - 1) or layout[place] != layout[place - 1]]
    for place in edges:
        for step in (step for step in (1, -1) if step in REACH[adjacency]):
            yield tuple(step if each == place else 0 for each in range(size))


def vector(layout: Layout, x: Fraction, y: Fraction) -> tuple[Fraction, ...]:
    """The answers of a layout."""
    return tuple(y if block else x for block in layout)


def moved(answers: Iterable[Fraction], move: Move) -> tuple[Fraction, ...]:
    """The neighbour."""
    return tuple(answer + step for answer, step in zip(answers, move, strict=True))


def within(answers: Sequence[Fraction], most: Fraction) -> bool:
    """Whether no answer is larger than the cap."""
    return all(-most <= answer <= most for answer in answers)


SMALL = 4  # answers where styles are compared
KEPT = 4  # styles that are followed to the number of answers asked for
CLIMBS = 2  # of the best pairs are improved step by step
FEW = 100  # paths that are followed at once where styles are compared
FEW_PATHS = 300  # with more, only the worst event's loss is computed at the end
STEPS = tuple(Fraction(step) for step in ("4", "1", "1/2"))
NOTHING = ()  # where an answer gives out nothing
_MOVES = TOGETHER | {"one-differs": ((0, 1), (0, -1), (1, 0), (-1, 0))}


@dataclass(frozen=True, slots=True)
class _Style:
    """How a pair and its event are made, whatever the number of answers: the two values, the two moves, the outputs.

    `gives` is what the answers of either block give out; None where the output is no list, and all outputs are tried.
    """

    x: Fraction
    y: Fraction
    moves: tuple[int, int]
    gives: tuple[Pattern, Pattern] | None


@dataclass(frozen=True, slots=True)
class _Place:
    """A style at a layout, with its event."""

    style: _Style
    layout: Layout
    event: OutputEvent

    @property
    def pair(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        first = vector(self.layout, self.style.x, self.style.y)
        return first, moved(first, tuple(self.style.moves[block] for block in self.layout))


def worst_pair(
    program: Program,
    adjacency: str,
    answers: int,
    parameters: Parameters,
    most: Fraction | float = 2,
    effort: float = math.inf,
) -> PairLoss:
    """The largest loss found between answers of size at most `most`, with its pair and event.

    It is a search: its pair need not be the worst one, but the loss of the pair is exact. Answers have two values on
    the half-integers, laid out in two blocks or in repeated ones; whole blocks move; outputs follow the blocks. The cap
    is part of the question: losses often keep growing with the size of the answers.
    Where the program has few paths at the pair found, all outputs are computed, and the result says so; not where an
    `effort` ends the search: so many paths followed and integrals asked for, the same ones on every machine.
    Raises as `pair_loss` does.
    """
    kind = known_adjacency(adjacency)
    whole = isinstance(answers, int) and not isinstance(answers, bool) and answers >= 1
    if not whole or (program.loop is None and answers != 1):
        raise InvalidSpec(f"answers must be a whole number of at least 1 (1 without a loop), got {answers!r}")
    search = Climb(program, kind, rationals(parameters), rational("the size of an answer", most), effort)
    try:
        best = search.best(answers)
    except OutsideIntegrals:
        if search.most < 1:
            raise
        # a program that only adds noise, where no event but "any number" can be computed: the moves decide
        start = (Fraction(0),) * answers
        moves = {move for layout in layouts(answers) for by in (together, alone) for move in by(kind, layout)}
        pairs = ((search.outcomes(start), search.outcomes(moved(start, move))) for move in sorted(moves, reverse=True))
        return max((loss_between(*pair) for pair in pairs), key=lambda pair: pair.loss.lower)
    if best is None and search.balls.effort > effort:
        raise OutsideIntegrals(f"no loss of {program.name} was computed with so little effort")
    if best is None:
        size = f"-{search.most} to {search.most}"
        raise InvalidSpec(f"no adjacent datasets with answers from {size} have an output in common: give a pair")
    ours, theirs = (Outcomes(program, each, search.parameters, search.balls, FEW_PATHS) for each in best.pair)
    try:
        every = effort == math.inf and ours.is_discrete and theirs.is_discrete and len(ours.paths) <= FEW_PATHS
    except OutsideIntegrals:  # too many paths
        every = False
    if every:
        return loss_between(ours, theirs)
    ours, theirs = map(search.outcomes, best.pair)
    return loss_between(ours, theirs, [best.event])


@dataclass(slots=True)
class Climb:
    """The search, with all it has computed, among answers of at most the size `most`.

    After `effort`, counted as `Balls` does, nothing new is computed. `outside` is the last event that could not be.
    """

    program: Program
    adjacency: Adjacency
    parameters: Mapping[str, Fraction]
    most: Fraction
    effort: float = math.inf
    balls: Balls = field(default_factory=Balls)
    known: dict[tuple[Fraction, ...], Outcomes] = field(default_factory=dict)  # each dataset is followed once
    losses: dict[_Place, float] = field(default_factory=dict)
    outside: OutsideIntegrals | None = None

    def best(self, answers: int) -> _Place | None:
        """The worst place with this number of answers, if there is one.

        Raises `OutsideIntegrals` where there is none that could be computed.
        """
        small = min(answers, SMALL)
        styles = list(self.styles())
        places = self.ranked(place for layout in layouts(small) for style in styles for place in self.at(style, layout))
        if answers > small:
            leading = list(dict.fromkeys(place.style for place in places))[:KEPT]
            places = self.ranked(
                place for layout in layouts(answers) for style in leading for place in self.at(style, layout)
            )
        if not places and self.outside is not None:
            raise self.outside
        return max((self.climbed(place) for place in places[:CLIMBS]), key=self.loss, default=None)

    def ranked(self, places: Iterator[_Place]) -> list[_Place]:
        """Those with a loss, the largest first."""
        candidates = [place for place in dict.fromkeys(places) if self.loss(place) > float("-inf")]
        return sorted(candidates, key=self.loss, reverse=True)

    def styles(self) -> Iterator[_Style]:
        """The corners: both values as large or as small as the moves leave room for."""
        gives = self.outputs()
        for moves in _MOVES[self.adjacency]:
            corners = [(-self.most - min(0, step), self.most - max(0, step)) for step in moves]
            for x, y in product(*corners):
                for each in gives:
                    yield _Style(x, y, moves, each)

    def outputs(self) -> list[tuple[Pattern, Pattern] | None]:
        """What the two blocks may give out, learned from the program's outputs on a few answers of 0."""
        if self.program.result != (Emitted(),):
            return [None]
        size = 3 if self.program.loop is not None else 1
        shapes = self.outcomes((Fraction(0),) * size).by_shape
        keyed = any(isinstance(each, tuple) for shape in shapes for each in shape)
        kinds: dict[Pattern, None] = {NOTHING: None} if keyed else {}
        half_lines = [side(end) for end in (-self.most, Fraction(0), self.most) for side in (at_most, at_least)]
        for each in (each for shape in shapes for each in shape):
            value = each[1] if isinstance(each, tuple) else each
            for by in half_lines if has_noisy(value) else (value,):
                kinds[("at", by) if isinstance(each, tuple) else by] = None  # type: ignore[index]
        return [(first, second) for first in kinds for second in kinds]

    def at(self, style: _Style, layout: Layout) -> Iterator[_Place]:
        """A style at a layout: one place, or one for every output."""
        if self.adjacency == "one-differs" and sum(style.moves[block] != 0 for block in layout) != 1:
            return
        if style.gives is not None:
            for size in dict.fromkeys((len(layout), len(layout) - layout[::-1].index(1))):
                yield _Place(style, layout, _event(style.gives, layout[:size]))
            return
        ends = (-self.most, Fraction(0), self.most)
        place = _Place(style, layout, ())
        for shape in self.outcomes(place.pair[0]).by_shape:
            if (
                len(shape) > 1
                or not isinstance(shape[0], Fraction)
                or shape[0] in (0, layout.index(1), len(layout) - 1)
            ):
                for event in family(shape, ends):
                    yield replace(place, event=event)

    def outcomes(self, answers: tuple[Fraction, ...]) -> Outcomes:
        """What is known of a dataset; no more paths are followed than the effort allows."""
        if answers not in self.known:
            every = int(min(self.effort, MOST_PATHS))
            for most in (FEW, every) if len(answers) <= SMALL else (every,):
                self.known[answers] = Outcomes(self.program, answers, self.parameters, self.balls, most)
                with contextlib.suppress(OutsideIntegrals):  # where these are too many, each event has its own followed
                    if most == FEW and self.known[answers].paths:
                        break
        return self.known[answers]

    def loss(self, place: _Place) -> float:
        if place not in self.losses:
            self.losses[place] = self.computed(place)
        return self.losses[place]

    def computed(self, place: _Place) -> float:
        pair = place.pair
        if self.balls.effort > self.effort or not all(within(each, self.most) for each in pair):
            return float("-inf")
        try:
            p, q = (self.outcomes(each).probability(place.event) for each in pair)
        except OutsideIntegrals as error:
            self.outside = error
            return float("-inf")
        ways = [log_ratio(p, q), log_ratio(q, p)] if self.adjacency in SYMMETRIC else [log_ratio(p, q)]
        return max(way.lower for way in ways)

    def climbed(self, place: _Place) -> _Place:
        """The place moved step by step while that raises the loss."""
        improved = True
        while improved:
            improved = False
            for step in STEPS:
                for dx, dy in ((step, 0), (-step, 0), (0, step), (0, -step)):
                    style = replace(place.style, x=place.style.x + dx, y=place.style.y + dy)
                    other = replace(place, style=style)
                    if self.loss(other) > self.loss(place) + 1e-9:
                        place, improved = other, True
        return place


def _event(gives: tuple[Pattern, Pattern], layout: Layout) -> OutputEvent:
    patterns: list[Pattern] = []
    for place, block in enumerate(layout):
        each = gives[block]
        if each == NOTHING:
            continue
        patterns.append((Fraction(place), each[1]) if isinstance(each, tuple) else each)
    return tuple(patterns)


__all__ = ["OutsideIntegrals", "PairLoss", "pair_delta", "pair_loss", "worst_pair"]
