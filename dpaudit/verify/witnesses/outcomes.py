"""What a program can give out at concrete answers: its paths followed once, for many questions about its outputs.

Outputs are not tagged: the probability of an event is that of all paths that give such outputs, whichever branch made
them. A value without noise is an atom, and is compared exactly.

A path is a set of sums of independent draws that must be positive. Draws that share no sum are independent of one
another. Within a group that hangs together there must be one draw, the outer one, that all sums of two draws share
(the noise of a threshold, or of the winner): given it, every other draw must lie between straight lines. Lines of a
slope other than -1, 0, 1 are scaled away: X > r t + a is X / r > t + a / r.

What the outer draw itself can be is computed exactly, from every lower and upper line of a draw: where that leaves
nothing, the path has probability exactly 0, and it is left out. Otherwise it holds an open set of positive probability.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.verify import integrals
from dpaudit.verify.deadline import left_s
from dpaudit.verify.enclosure import BITS, ball, rationals
from dpaudit.verify.integrals import Between, Event, Line, Slice, summed
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.witnesses.outputs import OutputEvent, has_noisy, is_plain, required, shape
from dpaudit.verify.witnesses.paths import MOST_PATHS, ConcretePath, Numbers, Parameters, answers_of, paths
from dpaudit.verify.witnesses.states import Noise, NoisySum, OutsideIntegrals

ZERO, ONE = Fraction(0), Fraction(1)
Limits = tuple[Fraction | None, Fraction | None]


def event_of(paths: Iterable[ConcretePath]) -> Event:
    """The paths as an event of independent draws. Raises `OutsideIntegrals` where they are not one."""
    return tuple(slices for slices in map(_slices, paths) if slices is not None)


def _slices(path: ConcretePath) -> tuple[Slice, ...] | None:
    """The independent parts of a path; None where its probability is exactly 0."""
    slices: list[Slice] = []
    alone: list[Between] = []
    for group in _groups(path.constraints):
        draws = {draw for each in group for draw, _ in each.terms}
        if len(draws) == 1:
            (draw,) = draws
            between, limits = _between(path.draws[draw], [_sides(each, draw, None) for each in group])
            if limits is None:
                return None
            alone.append(between)
            continue
        outer = _around(_outer(path.draws, draws, group), path.draws, group)
        if outer is None:
            return None
        slices.append(outer)
    if alone:
        slices.append(Slice(None, ONE, None, None, tuple(alone)))
    return tuple(slices)


def _groups(constraints: Sequence[NoisySum]) -> list[list[NoisySum]]:
    """The constraints by what hangs together: no draw is in two groups."""
    leader: dict[int, int] = {}

    def root(draw: int) -> int:
        while leader.setdefault(draw, draw) != draw:
            leader[draw] = draw = leader[leader[draw]]  # the next way up is half as long
        return draw

    for each in constraints:
        first = root(each.terms[0][0])
        for draw, _ in each.terms[1:]:
            leader[root(draw)] = first
    groups: dict[int, list[NoisySum]] = {}
    for each in constraints:
        groups.setdefault(root(each.terms[0][0]), []).append(each)
    return list(groups.values())


def _outer(draws: Sequence[Noise], members: set[int], group: Sequence[NoisySum]) -> int:
    """The draw that every sum of two or more draws of the group shares."""
    pairs = [each for each in group if len(each.terms) > 1]
    wide = next((each for each in pairs if len(each.terms) > 2), None)
    shared = set(members)
    for each in pairs:
        shared &= {draw for draw, _ in each.terms}
    lines = sorted({draws[draw].line for draw in members})
    if wide is not None:
        where = sorted({draws[draw].line for draw, _ in wide.terms})
        raise OutsideIntegrals(f"a comparison of {len(wide.terms)} draws together is outside the integrals", where[-1])
    if not shared:
        named = f" of lines {', '.join(map(str, lines))}" if any(lines) else ""  # code that is followed has none
        raise OutsideIntegrals(f"draws{named} are compared in a ring or a chain, not all with one draw")
    return min(shared)


@dataclass(frozen=True, slots=True)
class _Side:
    """One limit of a draw: it must be above (or below) slope * t + at, for the slope that the program gives."""

    above: bool
    slope: Fraction
    at: Fraction


def _sides(constraint: NoisySum, draw: int, outer: int | None) -> _Side:
    own, shared, at = ONE, ZERO, -constraint.constant
    for each, factor in constraint.terms:
        if each == draw:
            own = factor
        elif each == outer:
            shared = -factor
    if own != 1:
        shared, at = shared / own, at / own
    return _Side(own > 0, shared, at)


def _around(outer: int, draws: Sequence[Noise], group: Sequence[NoisySum]) -> Slice | None:
    """The group given its outer draw."""
    own = draws[outer]
    lower: Fraction | None = ZERO if own.law == "exponential" else None
    upper: Fraction | None = None
    others: dict[int, list[_Side]] = {}
    for each in group:
        rest = [draw for draw, _ in each.terms if draw != outer]
        if rest:
            others.setdefault(rest[0], []).append(_sides(each, rest[0], outer))
            continue
        side = _sides(each, outer, None)
        lower, upper = _narrowed((lower, upper), (side.at, None) if side.above else (None, side.at))
    factors: list[Between] = []
    for draw, sides in others.items():
        between, limits = _between(draws[draw], sides)
        if limits is None:
            return None
        lower, upper = _narrowed((lower, upper), limits)
        factors.append(between)
    if lower is not None and upper is not None and lower >= upper:
        return None
    line = (*factors[0].lower, *factors[0].upper)[0]
    # where it is counted from the first draw's own number, the slice of every winner looks alike
    shift = line.slope * line.at if next(iter(others)) < outer else ZERO
    return Slice(own.law, own.scale, lower, upper, tuple(factors), shift)


def _between(draw: Noise, sides: Sequence[_Side]) -> tuple[Between, Limits | None]:
    """A draw between its lines, and where the outer draw must be for that to be possible (None: nowhere)."""
    steep = {abs(side.slope) for side in sides if side.slope}
    if len(steep) > 1:
        raise OutsideIntegrals("a draw is compared with two different multiples of another", draw.line)
    scaled = steep.pop() if steep else ONE
    lines = [
        (side.above, Line((side.slope > 0) - (side.slope < 0), side.at if scaled == 1 else side.at / scaled))
        for side in sides
    ]
    lower = _strictest([line for above, line in lines if above], highest=True)
    upper = _strictest([line for above, line in lines if not above], highest=False)
    between = Between(draw.law, draw.scale if scaled == 1 else draw.scale / scaled, lower, upper)
    floors = (*lower, Line(0, ZERO)) if draw.law == "exponential" else lower
    limits: Limits | None = (None, None)
    for floor in floors:
        for ceiling in upper:
            slope, at = ceiling.slope - floor.slope, ceiling.at - floor.at  # slope * t + at must be positive
            if slope == 0:
                limits = limits if at > 0 else None
            elif limits is not None:
                end = -at if slope == 1 else at if slope == -1 else -at / slope
                limits = _narrowed(limits, (end, None) if slope > 0 else (None, end))
    return between, limits


def _strictest(lines: Sequence[Line], *, highest: bool) -> tuple[Line, ...]:
    """One line for every slope: the highest, or the lowest."""
    best: dict[int, Fraction] = {}
    for line in lines:
        known = best.get(line.slope, line.at)
        best[line.slope] = max(known, line.at) if highest else min(known, line.at)
    return tuple(Line(slope, at) for slope, at in sorted(best.items()))


def _narrowed(limits: Limits, others: Limits) -> Limits:
    lows = [each for each in (limits[0], others[0]) if each is not None]
    highs = [each for each in (limits[1], others[1]) if each is not None]
    return max(lows, default=None), min(highs, default=None)


QUADRATURE: dict[str | None, int] = {"normal": 100, "gumbel": 20}  # the time of an integral, in those of closed ones


class Balls:
    """Probabilities of events as balls; what has the same factors is computed once."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self.effort = 0  # 1 for each path whose probability was asked for, more for those by quadrature

    def __call__(self, event: Event) -> Any:
        """The probability of an event, exactly 0 where it is impossible."""
        self.effort += len(event)
        return summed(event, self._slice)

    def together(self, slices: Iterable[Slice]) -> None:
        """Computes at once what these share, for when they are asked for."""
        new = {key: each for each in slices if (key := _key(each)) not in self._known}
        self._known |= integrals.together(new)

    def _slice(self, each: Slice) -> Any:
        left_s()
        key = _key(each)
        if key not in self._known:
            self.effort += max(QUADRATURE.get(law, 0) for law in each.laws)
            self._known[key] = integrals.probability(((each,),))
        return self._known[key]


def _key(each: Slice) -> tuple[Any, ...]:
    return each.law, each.scale, each.lower, each.upper, frozenset(Counter(each.factors).items())


class Outcomes:
    """A program at concrete answers. Paths are followed when first needed; events asked for twice are known."""

    def __init__(
        self,
        program: Program,
        answers: Numbers,
        parameters: Parameters,
        balls: Balls | None = None,
        most: int = MOST_PATHS,
    ) -> None:
        self.program = program
        self.answers = answers_of(answers)
        self.parameters = {**program.defaults, **rationals(parameters)}
        self.balls = balls if balls is not None else Balls()
        self.most = most  # paths
        self._drawn: dict[OutputEvent, list[tuple[Fraction, Event]]] = {}
        self._known: dict[OutputEvent, Any] = {}

    @cached_property
    def paths(self) -> tuple[ConcretePath, ...]:
        """All paths. Raises `OutsideIntegrals` where they are too many."""
        return tuple(paths(self.program, self.answers, self.parameters, most=self.most))

    @cached_property
    def by_shape(self) -> dict[OutputEvent, list[ConcretePath]]:
        """The paths by their outputs, with noisy numbers as "any number", in the order of the paths."""
        by_shape: dict[OutputEvent, list[ConcretePath]] = {}
        for path in self.paths:
            by_shape.setdefault(shape(path.outputs), []).append(path)
        return by_shape

    @property
    def is_discrete(self) -> bool:
        """Whether every output is a symbol or an exact number."""
        return not any(map(has_noisy, self.by_shape))

    def probability(self, event: OutputEvent) -> Any:
        """The probability of an event of outputs, as a ball."""
        if event not in self._known:
            with flint().ctx.workprec(BITS):
                parts = (ball(weight) * self.balls(each) for weight, each in self.drawn(event))
                self._known[event] = sum(parts, start=flint().arb(0))
        return self._known[event]

    def together(self, events: Iterable[OutputEvent]) -> None:
        """Computes at once what the probabilities of some events share, for when they are asked for."""
        slices: list[Slice] = []
        for event in events:
            with contextlib.suppress(OutsideIntegrals):
                slices += chain.from_iterable(chain.from_iterable(each for _, each in self.drawn(event)))
        self.balls.together(slices)

    def drawn(self, event: OutputEvent) -> list[tuple[Fraction, Event]]:
        """An event of outputs as events of the draws, with what their probabilities count."""
        if event not in self._drawn:
            left_s()
            by_weight: dict[Fraction, Any] = {}
            if "paths" in self.__dict__:  # they were followed
                among = self.by_shape.get(event, []) if is_plain(event) else self.paths
                for path in among:
                    if (need := required(path.outputs, event)) is not None:
                        matches = by_weight.setdefault(path.weight, [])
                        matches.append(replace(path, constraints=path.constraints + tuple(need)))
            else:
                by_weight[ONE] = paths(self.program, self.answers, self.parameters, event)
            self._drawn[event] = [(weight, event_of(each)) for weight, each in by_weight.items()]
        return self._drawn[event]
