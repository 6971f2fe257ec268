"""What a program can give out at concrete answers: its paths followed once, for many questions about its outputs.

Outputs are not tagged: the probability of an event is that of all paths that give such outputs, whichever branch made
them. A value without noise is an atom, and is compared exactly.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from dpaudit.verify import integrals
from dpaudit.verify.deadline import left_s
from dpaudit.verify.integrals import Event, Slice
from dpaudit.verify.integrals.probabilities import summed
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.witnesses.events import event_of
from dpaudit.verify.witnesses.outputs import OutputEvent, has_noisy, is_plain, output_event, required, shape
from dpaudit.verify.witnesses.paths import MOST_PATHS, ConcretePath, Numbers, Parameters, answers_of, paths
from dpaudit.verify.witnesses.rationals import MOST_OUTPUTS, OutsideIntegrals, rationals, too_many_outputs

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

    def _slice(self, each: Slice) -> Any:
        left_s()
        key = (each.law, each.scale, each.lower, each.upper, frozenset(Counter(each.factors).items()))
        if key not in self._known:
            laws = {each.law, *(term.law for factor in each.factors for product in factor for term in product)}
            self.effort += max(QUADRATURE.get(law, 0) for law in laws)
            self._known[key] = integrals.probability(((each,),))
        return self._known[key]


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
        self._known: dict[OutputEvent, Any] = {}

    @cached_property
    def paths(self) -> tuple[ConcretePath, ...]:
        """All paths. Raises `OutsideIntegrals` where they are too many."""
        return tuple(paths(self.program, self.answers, self.parameters, most=self.most))

    @cached_property
    def by_shape(self) -> dict[OutputEvent, list[ConcretePath]]:
        """The paths by their outputs, with noisy numbers as "any number", in the order of the paths."""
        found: dict[OutputEvent, list[ConcretePath]] = {}
        for path in self.paths:
            found.setdefault(shape(path.outputs), []).append(path)
        return found

    @property
    def shapes(self) -> tuple[OutputEvent, ...]:
        """The different outputs, with noisy numbers as "any number"."""
        return tuple(self.by_shape)

    @property
    def is_discrete(self) -> bool:
        """Whether every output is a symbol or an exact number."""
        return not any(map(has_noisy, self.shapes))

    def probability(self, event: OutputEvent) -> Any:
        """The probability of an event of outputs, as a ball."""
        if event not in self._known:
            if "paths" in self.__dict__:  # they were followed
                among = self.by_shape.get(event, []) if is_plain(event) else self.paths
                needs = [(path, required(path.outputs, event)) for path in among]
                found = (replace(p, constraints=p.constraints + tuple(need)) for p, need in needs if need is not None)
                self._known[event] = self.balls(event_of(found))
            else:
                self._known[event] = self.balls(event_of(paths(self.program, self.answers, self.parameters, event)))
        return self._known[event]


def event(program: Program, answers: Numbers, parameters: Parameters, outputs: Iterable[object]) -> Event:
    """The event of draws in which the program's outputs are as `outputs` says, for the integrals.

    Raises `OutsideIntegrals` where it is none of theirs, `InvalidSpec` for wrong parameters.
    """
    return event_of(paths(program, answers, parameters, output_event(outputs)))


def probability(program: Program, answers: Numbers, parameters: Parameters, outputs: Iterable[object]) -> Any:
    """The probability of an event of outputs at concrete answers: a ball (`flint.arb`), exactly 0 where it is so.

    `outputs` holds one item per output: a symbol (None, True, False, a text), a number, an interval (`at_most`,
    `at_least`, `Values`), or `ANY`. Raises `OutsideIntegrals` (one line that names the program's line) for comparisons
    that the integrals do not cover, `InvalidSpec` for missing parameters, `MissingRequirement` without python-flint.
    """
    return Outcomes(program, answers, parameters).probability(output_event(outputs))


def law(
    program: Program, answers: Numbers, parameters: Parameters, outputs: Iterable[Iterable[object]] | None = None
) -> dict[OutputEvent, Any]:
    """The probabilities of the outputs given, or of all outputs there are, which must then be symbols or exact numbers.

    The balls of all outputs add up to a ball around 1. Raises as `probability` does, and `OutsideIntegrals` for a
    program that gives out noisy numbers where no outputs are given, or more than 4,096 different ones.
    """
    found = Outcomes(program, answers, parameters)
    if outputs is not None:
        return {wanted: found.probability(wanted) for wanted in map(output_event, outputs)}
    if not found.is_discrete:
        raise OutsideIntegrals(f"{program.name} gives out noisy numbers: give events of them, such as at_most(0)")
    if len(found.shapes) > MOST_OUTPUTS:
        raise too_many_outputs(program.name)
    laws = {output: found.probability(output) for output in found.shapes}
    return {output: ball for output, ball in laws.items() if not ball.is_zero()}
