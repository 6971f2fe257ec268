"""All the paths of a program at concrete answers that give outputs of a given kind, each with what its draws satisfy.

Different paths exclude one another, and so do the cases of one condition; the probability of an event of outputs is
the sum over the paths that can give such outputs, whichever branch made them. Comparisons of draws are strict or not
without a difference: two different sums of draws are equal with probability 0. Comparisons without draws are exact.

A running maximum (`if first or y > best: best = y`) would have as many paths as there are orders of its values. It is
read by its last winner instead: what each value would assign is kept, and at the end the run is split by which of them
wins, all before it are less and all after it are no more. These cases exclude one another as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.deadline import left_s
from dpaudit.verify.enclosure import in_short, named, rational, rationals
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import parts
from dpaudit.verify.witnesses.outputs import Anything, OutputEvent, Pattern, required, shape
from dpaudit.verify.witnesses.states import (
    MOST_OUTPUTS,
    ConcreteRun,
    Maximum,
    Noise,
    NoisySum,
    OutsideIntegrals,
    Released,
    TooMany,
    exact,
    given_out,
    maximum,
    near_enough,
    number,
    splits,
    too_many_outputs,
    winners,
)

Number = Fraction | int | float
Numbers = Sequence[Number] | Number  # the answers; one number for a program without a loop over the data
Parameters = Mapping[str, Number]

FIXED = (nodes.Number, nodes.ProgramParameter, nodes.Arithmetical)  # of these is what has one value in all of a run
MOST_PATHS = 20_000  # that are followed at once


@dataclass(frozen=True, slots=True)
class ConcretePath:
    """A way through the program: its draws, what must be positive for it, and what it gives out.

    `weight` is the probability of its picks from finite laws. `kinds` says of what types its outputs are, where code
    was followed; None where no draws take it.
    """

    draws: tuple[Noise, ...]
    constraints: tuple[NoisySum, ...]
    outputs: tuple[Released, ...]
    weight: Fraction = Fraction(1)
    kinds: Any = None


def paths(
    program: nodes.Program,
    answers: Numbers,
    parameters: Parameters,
    event: OutputEvent | None = None,
    most: int = MOST_PATHS,
) -> Iterator[ConcretePath]:
    """The paths whose outputs can lie in the event (None: all of them); what the event needs is in the constraints.

    Raises `InvalidSpec` for missing parameters or answers, `OutsideIntegrals` for what no path can say.
    """
    given = answers_of(answers)
    start = _start(program, given, parameters)
    prefix: Pattern | None = event  # the part of the event about the list of everything emitted
    if event is not None and not _lists(program):
        speaks = nodes.Emitted() in program.result and len(event) == len(program.result)
        prefix = event[program.result.index(nodes.Emitted())] if speaks else None
    among = prefix if isinstance(prefix, tuple) else None
    run = _Run(program, among, maximum(program), most, event is None and _lists(program))
    for state in run.finished(start):
        path = _path(program, state, event)
        if path is not None:
            yield path


def _lists(program: nodes.Program) -> bool:
    """Whether the output is the list of everything emitted, alone."""
    return program.result == (nodes.Emitted(),)


def answers_of(answers: Numbers) -> tuple[Fraction, ...]:
    """Answers as exact numbers. Raises `InvalidSpec` for what is no number.

    >>> answers_of([1, 0.5]), answers_of(2)
    ((Fraction(1, 1), Fraction(1, 2)), (Fraction(2, 1),))
    """
    if isinstance(answers, str) or not isinstance(answers, Iterable):
        return (rational("an answer", answers),)
    return tuple(rational("an answer", each) for each in answers)


def _start(program: nodes.Program, answers: tuple[Fraction, ...], given: Parameters) -> ConcreteRun:
    unknown = sorted(set(given) - set(program.parameters))
    if unknown:
        raise InvalidSpec(f"{program.name} has no parameter {unknown[0]}; it has {', '.join(program.parameters)}")
    values = {**program.defaults, **rationals(given)}
    missing = [name for name in program.parameters if name not in values]
    if missing:
        raise InvalidSpec(f"{program.name} needs a value of its parameter {missing[0]}")
    broken = [name for name in sorted(program.integers) if values[name].denominator != 1]
    if broken:
        raise InvalidSpec(f"{broken[0]} of {program.name} must be a whole number, got {in_short(values[broken[0]])}")
    if not answers or (program.loop is None and len(answers) != 1):
        raise InvalidSpec(f"{program.name} needs {'at least ' if program.loop else ''}one answer, got {len(answers)}")
    state = ConcreteRun(answers, values)
    for condition in program.preconditions:
        if splits(condition, state, None) != [(True, ())]:
            raise InvalidSpec(f"these parameters break what {program.name} asserts of them: {named(values)}")
    for divisor, line in program.divisors:
        for state.index in range(len(answers)):
            if near_enough(number(divisor, state, line), line).constant == 0:
                raise OutsideIntegrals("a division by 0", line)
    state.index = None
    return state


def _path(program: nodes.Program, state: ConcreteRun, event: OutputEvent | None) -> ConcretePath | None:
    outputs = state.outputs if _lists(program) else tuple(_result(each, state) for each in program.result)
    wanted = [] if event is None else required(outputs, event)
    if wanted is None:
        return None
    constraints = tuple(each for each in (*state.constraints, *wanted) if not each.is_number)
    return ConcretePath(state.draws, constraints, outputs)


def _result(expression: nodes.Expression, state: ConcreteRun) -> Released:
    return state.outputs if expression == nodes.Emitted() else given_out(expression, state, None)


@dataclass(frozen=True, slots=True)
class _Run:
    """Follows all paths at once, those apart at which the running maximum `largest` is raised last somewhere else."""

    program: nodes.Program
    prefix: Sequence[Pattern] | None
    largest: Maximum | None
    most: int
    all_outputs: bool

    def finished(self, start: ConcreteRun) -> list[ConcreteRun]:
        states = [state for state, _ in self.block(self.program.before, start)]
        if self.program.loop is not None:
            states = [ended for state in states for ended in self.looped(state)]
        after = [ended for state in states for ended, _ in self.block(self.program.after, state)]
        return [state for state in after if self.prefix is None or len(state.outputs) == len(self.prefix)]

    def looped(self, start: ConcreteRun) -> list[ConcreteRun]:
        assert self.program.loop is not None
        running, ended = [start], list[ConcreteRun]()
        for index in range(len(start.answers)):
            following: list[ConcreteRun] = []
            for state in running:
                left_s()
                state.index = index
                for after, stopped in self.block(self.program.loop, state):
                    (ended if stopped else following).append(after)
            running = following
            if self.all_outputs and len(running) > MOST_OUTPUTS:  # equally long outputs stay different
                by_length: dict[int, set[OutputEvent]] = {}
                for state in running:
                    by_length.setdefault(len(state.outputs), set()).add(shape(state.outputs))
                if max(map(len, by_length.values())) > MOST_OUTPUTS:
                    raise too_many_outputs(self.program.name)
            if len(running) + len(ended) > self.most:
                raise TooMany(f"{self.program.name} has more than {self.most} paths; give fewer answers")
        return [after for state in ended + running for after in self.won(state)]

    def block(self, block: nodes.Block, start: ConcreteRun) -> list[tuple[ConcreteRun, bool]]:
        running, stopped = [start], list[ConcreteRun]()
        for statement in block:
            following: list[ConcreteRun] = []
            for state in running:
                for after, ends in self.statement(statement, state):
                    (stopped if ends else following).append(after)
            running = following
            if not running:
                break
        return [(state, False) for state in running] + [(state, True) for state in stopped]

    def statement(self, statement: nodes.Statement, state: ConcreteRun) -> list[tuple[ConcreteRun, bool]]:
        match statement:
            case nodes.Assign(target, value, line):
                state.names[target] = number(value, state, line)
                return [(state, False)]
            case nodes.Draw(target, law, scale, line):
                self.drawn(target, law, scale, line, state)
                return [(state, False)]
            case nodes.Emit(value, key, line):
                return [(after, False) for after in self.emitted(value, key, line, state)]
            case nodes.Stop():
                return [(state, True)]
            case nodes.Branch(condition, then, otherwise, line):
                if self.largest is not None and statement is self.largest.branch:
                    self.offer(self.largest, state)
                    return [(state, False)]
                return [
                    after
                    for case, truth in self.cases(condition, state, line)
                    for after in self.block(then if truth else otherwise, case)
                ]

    def cases(self, condition: nodes.Expression, state: ConcreteRun, line: int) -> list[tuple[ConcreteRun, bool]]:
        """The state once for every way in which a condition can come out."""
        cases = splits(condition, state, line)
        copies = [state, *(state.copy() for _ in cases[1:])]
        for copy, (_, needs) in zip(copies, cases, strict=True):
            copy.constraints += needs
        return [(copy, truth) for copy, (truth, _) in zip(copies, cases, strict=True)]

    def drawn(self, target: str, law: nodes.Law, scale: nodes.Expression, line: int, state: ConcreteRun) -> None:
        wide = state.scales.get(id(scale))
        if wide is None:
            wide = number(scale, state, line)
            if not wide.is_number or wide.constant < 0:
                raise OutsideIntegrals("a scale must be a public number, at least 0", line)
            near_enough(wide, line)
            if all(isinstance(each, FIXED) for each in parts(scale)):
                state.scales[id(scale)] = wide
        if wide.constant == 0:  # no noise
            state.names[target] = NoisySum(Fraction(0))
            return
        state.names[target] = NoisySum.draw(len(state.draws))
        state.draws += (Noise(law, wide.constant, line),)

    def emitted(
        self, value: nodes.Expression, key: nodes.Expression | None, line: int, state: ConcreteRun
    ) -> Iterator[ConcreteRun]:
        released = given_out(value, state, line)
        output: Released = released if key is None else (number(key, state, line), released)
        place = len(state.outputs)
        if self.prefix is not None:
            if place >= len(self.prefix):
                return
            if not isinstance(self.prefix[place], Anything) and required(output, self.prefix[place]) is None:
                return
        state.outputs += (output,)
        yield state

    def offer(self, largest: Maximum, state: ConcreteRun) -> None:
        """The running maximum meets its next value; what it was before the loop is the first, where it may stay."""
        line, then = largest.branch.line, state.copy()
        value = exact(number(largest.value, state, line), line)
        if not state.offers and [(True, ())] not in [splits(part, state, line) for part in largest.opening]:
            state.offers = ((number(nodes.Variable(largest.name), state, line), {}),)
        self.block(largest.branch.then, then)
        state.offers += ((value, {name: then.names[name] for name in largest.assigned}),)

    def won(self, state: ConcreteRun) -> Iterator[ConcreteRun]:
        """The state once for each offer that can be the largest."""
        largest, values = self.largest, [value for value, _ in state.offers]
        if largest is None or not values:
            yield state
            return
        for place, needs in winners(values, largest.sign, largest.strict).items():
            names = {**state.names, **state.offers[place][1]}
            yield replace(state, names=names, constraints=(*state.constraints, *needs), offers=())
