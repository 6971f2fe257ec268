"""The loss of a pair of answers: exact where outputs are symbols or the program only adds noise, else from below.

Where a program takes one path, and the noisy numbers it gives out determine the draws behind them, the same outputs
come from the second dataset by shifted draws, each by an exact number. So the loss is the sum of what each shift costs
at the worst place, exactly: |s| / b for a Laplace draw of scale b. Numbers without noise must be equal, or every
output tells the datasets apart.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, product, repeat
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Label, UpperBound
from dpaudit.verify import integrals
from dpaudit.verify.deadline import left_s
from dpaudit.verify.enclosure import (
    BITS,
    INFINITE,
    Enclosure,
    ball,
    hockey_stick,
    largest,
    named,
    of_ball,
    shown,
)
from dpaudit.verify.language.nodes import Emitted, Law, Program, Symbol
from dpaudit.verify.witnesses.outcomes import Balls, Outcomes
from dpaudit.verify.witnesses.outputs import OutputEvent, Values, at_least, at_most, filled, noisy_numbers, output_event
from dpaudit.verify.witnesses.paths import ConcretePath, Numbers, Parameters
from dpaudit.verify.witnesses.states import (
    MOST_OUTPUTS,
    NoisySum,
    OutsideIntegrals,
    Released,
    TooMany,
    Value,
    too_many_outputs,
)

Row = tuple[dict[int, Fraction], Fraction]  # the draws of an output, and how much it moves


@dataclass(frozen=True, slots=True)
class Translation:
    """How the draws move between two datasets, in units of their scales; `apart`: no output is possible under both."""

    moves: tuple[tuple[Law, Fraction], ...]
    apart: bool = False

    @property
    def losses(self) -> tuple[Fraction | float, Fraction | float]:
        """The exact losses of the first over the second and back; infinity is a float.

        >>> Translation((("laplace", Fraction(1, 2)), ("laplace", Fraction(-1)))).losses
        (Fraction(3, 2), Fraction(3, 2))
        """
        if self.apart:
            return math.inf, math.inf
        forth, back = (sum((_cost(law, sign * move) for law, move in self.moves), Fraction(0)) for sign in (1, -1))
        return forth, back

    def delta(self, epsilon: Fraction | float) -> Enclosure | None:
        """The least delta at an epsilon where it has a closed form: one Laplace draw moves, or normal ones alone."""
        if self.apart:
            return Enclosure(1.0, 1.0)
        if not self.moves:
            return Enclosure(0.0, 0.0)
        if len(self.moves) == 1 and self.moves[0][0] == "laplace":
            return integrals.laplace_delta(self.moves[0][1], epsilon)
        if all(law == "normal" for law, _ in self.moves):
            with flint().ctx.workprec(BITS):
                mu = ball(sum((move * move for _, move in self.moves), Fraction(0))).sqrt()
            return integrals.gaussian_delta(mu, epsilon)
        return None


def translation(first: Sequence[ConcretePath], second: Sequence[ConcretePath]) -> Translation | None:
    """The translation that takes one dataset's outputs to the other's; None where the program does more than add noise.

    What is not certain is None.
    """
    if len(first) != 1 or len(second) != 1 or first[0].constraints or second[0].constraints:
        return None
    if (draws := first[0].draws) != second[0].draws:
        return None
    ours, theirs = list(flat(first[0].outputs)), list(flat(second[0].outputs))
    if len(ours) != len(theirs):
        return Translation((), apart=True)
    rows: list[Row] = []
    apart = False
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, Symbol) or isinstance(other, Symbol):
            apart |= one != other
        elif one.terms != other.terms:
            return None
        elif one.is_number:
            apart |= one != other
        else:
            rows.append((dict(one.terms), one.constant - other.constant))
    shifts = {} if apart else _solved(rows)
    if apart or shifts is None:
        return Translation((), apart=True)
    if len(shifts) < len({draw for factors, _ in rows for draw in factors}):
        return None  # the outputs do not determine the draws
    return Translation(tuple((draws[draw].law, move / draws[draw].scale) for draw, move in shifts.items() if move))


def flat(outputs: Sequence[Released]) -> Iterator[Value]:
    """The values of some outputs, one after the other."""
    for each in outputs:
        if isinstance(each, tuple):
            yield from flat(each)
        else:
            yield each


def _solved(rows: Sequence[Row]) -> dict[int, Fraction] | None:
    """How much each draw must move for all outputs to stay, of those that they determine; None where none can."""
    left, solved = [(dict(factors), move) for factors, move in rows], list[tuple[int, Row]]()
    while left:
        left_s()
        factors, move = left.pop()
        if not factors:
            if abs(move) > ROUNDED * max(abs(each) for _, each in rows):
                return None
            if move:
                return {}  # rounding may be all that parts them
            continue
        draw, factor = next(iter(factors.items()))
        row = {each: other / factor for each, other in factors.items()}, move / factor
        left = [_without(draw, each, row) for each in left]
        solved = [(other, _without(draw, each, row)) for other, each in solved] + [(draw, row)]
    return {draw: move for draw, (factors, move) in solved if len(factors) == 1}


def _without(draw: int, row: Row, by: Row) -> Row:
    """A row less so much of another that a draw falls away."""
    (factors, move), (others, other) = row, by
    if draw not in factors:
        return row
    times = factors[draw]
    rest = {
        each: factors.get(each, Fraction(0)) - times * others.get(each, Fraction(0)) for each in {*factors, *others}
    }
    return {each: factor for each, factor in rest.items() if factor}, move - times * other


def _cost(law: Law, shift: Fraction) -> Fraction | float:
    """The largest ln(f(x) / f(x + shift)) of the density f of a draw of scale 1."""
    if shift == 0:
        return Fraction(0)
    if law == "laplace":
        return abs(shift)
    if law == "normal" or shift < 0:  # exponential: x + shift may be below 0; gumbel: falls off doubly there
        return math.inf
    return shift


ROUNDED = Fraction(1, 10**9)  # relative
ALL = "all events of outputs, as real numbers"
AS_NUMBERS = "all events of outputs as numbers, with 0, 0.0 and -0.0 for one and the same"
FAMILY = "outputs with noisy numbers at most, at least, or next to one of a few ends, or some far below, some far above"
GIVEN = "the events given"
ALIKE = "outputs that are one and the same for all answers that move alike"
SHORT = Fraction(1, 10**6)  # an interval whose probability is nearly a density
FAR = 16  # from all answers, or 32 scales: where a half-line ends that only tails of the noise reach
FAR_SCALES = 32
TAILS = ("laplace", "exponential")  # laws whose tails are worth following so far: their log ratios become constant
LEARNED, MOST_ALIKE = 3, 64  # answers from which outputs are learned; ways to give them out
MIXED = 4  # noisy numbers that are placed far below or far above in all combinations


@dataclass(frozen=True, slots=True)
class OneWay:
    """The loss of one order of a pair, and the event that shows it.

    `loss` encloses the largest ln(P / Q) over all events; its upper end is infinite if not all were computed.
    `at_event` encloses ln(P / Q) at `event`, whose probabilities are `likelier` (P) and `rarer` (Q).
    """

    loss: Enclosure
    event: OutputEvent
    at_event: Enclosure
    likelier: Enclosure
    rarer: Enclosure


@dataclass(frozen=True, slots=True)
class PairLoss:
    """The loss of a pair of answers in both orders: `forward` is the first over the second.

    `over` says in words which events were computed; `exact` whether these decide the loss.
    """

    program: str
    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]
    parameters: Mapping[str, Fraction]
    forward: OneWay
    backward: OneWay
    over: str
    exact: bool

    @property
    def loss(self) -> Enclosure:
        """The loss of the pair, both orders: the larger one."""
        return largest((self.forward.loss, self.backward.loss))

    @property
    def worst(self) -> OneWay:
        """The order that loses more, at its event."""
        return max(self.forward, self.backward, key=lambda way: way.at_event.lower)

    @property
    def words(self) -> str:
        """The pair as text."""
        return f"{shown(self.first)} and {shown(self.second)}"

    def upper_bound(self) -> UpperBound:
        """The loss of this pair as an upper bound, label exact-pair; infinite if not all events were computed."""
        given = f", {named(self.parameters)}" if self.parameters else ""
        return UpperBound(
            epsilon_upper=max(0.0, self.loss.upper),
            delta=0.0,
            label=Label.EXACT_PAIR,
            scope=f"the answers {self.words}{given}; {self.over}",
            arithmetic=Arithmetic.BALLS,
            source=f"integrals of {self.program}",
            epsilon_lower=max(0.0, self.loss.lower),
        )


def pair_loss(
    program: Program,
    first: Numbers,
    second: Numbers,
    parameters: Parameters,
    outputs: Iterable[Iterable[object]] | None = None,
) -> PairLoss:
    """The loss of a pair of answers in both orders, with the worst event.

    Exact where every output is a symbol or an exact number (all outputs are computed), and where the program takes
    one path whose noisy numbers determine its draws. Otherwise, and where `outputs` are given, it is the largest over
    a family of events, which `over` names: certain from below, with an infinite upper end.
    Raises `OutsideIntegrals` for what the integrals cannot express, `InvalidSpec` for wrong parameters or answers.
    """
    ours, theirs = _both(program, first, second, parameters)
    try:
        return loss_between(ours, theirs, outputs)
    except TooMany:
        events = _alike(ours, theirs)
        if not events:
            raise
        return replace(loss_between(ours, theirs, events), over=ALIKE)


def pair_delta(
    program: Program, first: Numbers, second: Numbers, parameters: Parameters, epsilon: Fraction | float
) -> Enclosure:
    """The least delta of a pair at an epsilon, both orders: the sum over all outputs of max(0, P - e^epsilon Q).

    Raises `OutsideIntegrals` for a program with too many different outputs, or with noisy numbers among them, unless
    it only adds noise and one Laplace draw moves, or normal ones do.
    """
    return delta_between(*_both(program, first, second, parameters), epsilon)


def delta_between(ours: Outcomes, theirs: Outcomes, epsilon: Fraction | float) -> Enclosure:
    """The same of two datasets whose outcomes are known; see `pair_delta`."""
    program = ours.program
    if not epsilon >= 0:
        raise InvalidSpec(f"epsilon must be at least 0, got {epsilon!r}")
    discrete = ours.is_discrete and theirs.is_discrete
    moved = None if discrete else translation(ours.paths, theirs.paths)
    if not (moved is not None and moved.apart) and not _told_apart(ours, theirs):
        raise OutsideIntegrals(f"{program.name} gives out numbers of different types, or zeros of either sign")
    if not discrete:
        closed = None if moved is None else moved.delta(epsilon)
        if closed is None:
            raise OutsideIntegrals(f"{program.name} gives out noisy numbers: its delta is no sum over outputs")
        return closed
    both = [(p, q) for _, p, q in _probabilities(ours, theirs, _outputs(ours, theirs), every=True)]
    return largest((hockey_stick(both, epsilon), hockey_stick([(q, p) for p, q in both], epsilon)))


def _alike(ours: Outcomes, theirs: Outcomes) -> list[OutputEvent]:
    """The outputs that are the same for answers with the same move, also of runs that halt; few, or []."""
    if ours.program.result != (Emitted(),):
        return []
    known = Outcomes(ours.program, ours.answers[:LEARNED], ours.parameters, ours.balls)
    given = list(dict.fromkeys(each for shape in known.by_shape for each in shape))
    moves = list(zip(ours.answers, theirs.answers, strict=True))
    kinds = list(dict.fromkeys(moves))
    if not known.is_discrete or len(given) ** len(kinds) > MOST_ALIKE:
        return []
    chosen = (dict(zip(kinds, each, strict=True)) for each in product(given, repeat=len(kinds)))
    whole = [tuple(gives[move] for move in moves) for gives in chosen]
    return list(dict.fromkeys(each[:size] for each in whole for size in range(1, len(moves) + 1)))


def _told_apart(ours: Outcomes, theirs: Outcomes) -> bool:
    """Whether outputs that are one number are one in Python too: 1 and 1.0 are two, and so are 0.0 and -0.0."""
    kinds: list[dict[Fraction, set[str]]] = [{}, {}]
    for each, known in zip((ours, theirs), kinds, strict=True):
        for value in flat([path.outputs for path in each.paths]):
            if isinstance(value, NoisySum) and value.is_number:
                known.setdefault(value.constant, set()).add(repr(value.python))
    both = [(known.get(number, set()), kinds[0].get(number, set())) for known in kinds for number in known]
    return all(len(one | other) == 1 and not (one and other and "None" in one) for one, other in both)


def _both(program: Program, first: Numbers, second: Numbers, parameters: Parameters) -> tuple[Outcomes, Outcomes]:
    balls = Balls()
    ours, theirs = (Outcomes(program, answers, parameters, balls) for answers in (first, second))
    if len(ours.answers) != len(theirs.answers):
        raise InvalidSpec(f"a pair needs as many answers on both sides: {len(ours.answers)}, {len(theirs.answers)}")
    return ours, theirs


def _outputs(ours: Outcomes, theirs: Outcomes) -> list[OutputEvent]:
    events = list(dict.fromkeys([*ours.by_shape, *theirs.by_shape]))
    if len(events) > MOST_OUTPUTS:
        raise too_many_outputs(ours.program.name)
    return events


def loss_between(ours: Outcomes, theirs: Outcomes, outputs: Iterable[Iterable[object]] | None = None) -> PairLoss:
    """The loss of two datasets whose outcomes are known; see `pair_loss`."""
    translated: tuple[Fraction | float, Fraction | float] | None = None
    exact = False
    if outputs is not None:
        events, over = [output_event(each) for each in outputs], GIVEN
    elif ours.is_discrete and theirs.is_discrete:
        exact = _told_apart(ours, theirs)
        events, over = _outputs(ours, theirs), ALL if exact else AS_NUMBERS
    else:
        shift = translation(ours.paths, theirs.paths)
        shift = shift if shift is not None and (shift.apart or _told_apart(ours, theirs)) else None
        translated = None if shift is None else shift.losses
        near = {Fraction(0), *ours.answers, *theirs.answers}
        draws = [draw for each in (ours, theirs) for path in each.paths for draw in path.draws]
        scales = [draw.scale for draw in draws if draw.law in TAILS]
        far = max(Fraction(FAR), FAR_SCALES * max(scales)) if len(scales) == len(draws) > 0 else FAR
        ends = tuple(sorted(near | {min(near) - FAR, max(near) + far}))
        short = [Values(end, end + SHORT) for end in ends]  # in one of these ratios are as those of densities
        families = (
            [*family(each, ends), *(filled(each, repeat(by)) for by in short if noisy_numbers(each))]
            for each in _outputs(ours, theirs)
        )
        events = list(dict.fromkeys(chain.from_iterable(families)))
        over, exact = (FAMILY, False) if translated is None else (ALL, True)
    probabilities = _probabilities(ours, theirs, events, every=over != FAMILY and translated is None)
    if all(p.is_zero() and q.is_zero() for _, p, q in probabilities):
        raise InvalidSpec("no event given has a probability above 0 for either of the two; give others")
    forward = _one_way(probabilities, exact and translated is None)
    backward = _one_way([(event, q, p) for event, p, q in probabilities], exact and translated is None)
    if translated is not None:
        losses = (INFINITE if isinstance(loss, float) else of_ball(ball(loss)) for loss in translated)
        forward, backward = (replace(way, loss=loss) for way, loss in zip((forward, backward), losses, strict=True))
    pair = ours.answers, theirs.answers
    return PairLoss(ours.program.name, *pair, ours.parameters, forward, backward, over, exact)


def _probabilities(
    ours: Outcomes, theirs: Outcomes, events: Sequence[OutputEvent], *, every: bool
) -> list[tuple[OutputEvent, Any, Any]]:
    """The events with both probabilities; of a family, those that the integrals can express."""
    for each in (ours, theirs):
        each.together(events)
    rows: list[tuple[OutputEvent, Any, Any]] = []
    outside: OutsideIntegrals | None = None
    for event in events:
        try:
            rows.append((event, ours.probability(event), theirs.probability(event)))
        except OutsideIntegrals as error:
            if every:
                raise
            outside = error
    if outside is not None and not rows:
        raise outside
    return rows


def family(shape: OutputEvent, ends: Sequence[Fraction]) -> Iterator[OutputEvent]:
    """The events of a shape to compute: half-lines of all noisy numbers together, of the last alone, of each one."""
    yield from half_lines(shape, ends)
    if ends:
        yield from _mixed(shape, at_most(min(ends)), at_least(max(ends)))
    places = [place for place, each in enumerate(shape) if noisy_numbers(each)]
    if len(places) > 1:
        last = places[-1]
        for events in half_lines((shape[last],), ends):
            yield (*shape[:last], *events, *shape[last + 1 :])


def _mixed(shape: OutputEvent, low: Values, high: Values) -> Iterator[OutputEvent]:
    """The events where some noisy numbers are far below and the others far above: one of them alone, or any of few.

    Where a threshold lies below all noisy answers that were tops, one of these is far below; what the others lose is
    most in the tail on which they move away.
    """
    count = noisy_numbers(shape)
    if count < 2:
        return
    alone = [
        [first if each == place else other for each in range(count)]
        for place in range(count)
        for first, other in ((low, high), (high, low))
    ]
    for chosen in product((low, high), repeat=count) if count <= MIXED else alone:
        if len(set(chosen)) > 1:
            yield filled(shape, iter(chosen))


def half_lines(shape: OutputEvent, ends: Sequence[Fraction]) -> Iterator[OutputEvent]:
    """The events of a shape: itself, and where it holds noisy numbers, these all at most or all at least an end."""
    yield shape
    if not noisy_numbers(shape):
        return
    for by in (side(end) for end in ends for side in (at_most, at_least)):
        yield filled(shape, repeat(by))


def _one_way(probabilities: Sequence[tuple[OutputEvent, Any, Any]], every: bool) -> OneWay:
    ratios = [(integrals.log_ratio(p, q), event, p, q) for event, p, q in probabilities]
    at_event, event, p, q = max(ratios, key=lambda each: each[0].lower)
    upper = max(ratio.upper for ratio, *_ in ratios) if every else math.inf
    return OneWay(Enclosure(max(0.0, at_event.lower), max(0.0, upper)), event, at_event, of_ball(p), of_ball(q))
