"""The probability of an event of outputs, and the law of all outputs, of a program at concrete answers.

Outputs are not tagged: the probability of an event is that of all paths that give such outputs, whichever branch made
them. A value without noise is an atom, and is compared exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from dpaudit.verify import integrals
from dpaudit.verify.enclosure import BITS
from dpaudit.verify.integrals import Event, Slice
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.requirement import flint
from dpaudit.verify.witnesses.errors import MOST_OUTPUTS, OutsideIntegrals, too_many_outputs
from dpaudit.verify.witnesses.events import event_of
from dpaudit.verify.witnesses.linear import Linear
from dpaudit.verify.witnesses.outputs import OutputEvent, Released, output_event
from dpaudit.verify.witnesses.paths import Numbers, Parameters, paths
from dpaudit.verify.witnesses.shapes import is_atom

QUADRATURE: dict[str | None, int] = {"normal": 100, "gumbel": 20}  # the time of an integral, in those of closed ones


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
    return Balls()(event(program, answers, parameters, outputs))


def law(
    program: Program, answers: Numbers, parameters: Parameters, outputs: Iterable[Iterable[object]] | None = None
) -> dict[OutputEvent, Any]:
    """The probabilities of the outputs given, or of all outputs there are, which must then be symbols or exact numbers.

    The balls of all outputs add up to a ball around 1. Raises as `probability` does, and `OutsideIntegrals` for a
    program that gives out noisy numbers where no outputs are given, or more than 4,096 different ones.
    """
    balls = Balls()
    if outputs is not None:
        wanted = [output_event(each) for each in outputs]
        return {each: balls(event_of(paths(program, answers, parameters, each))) for each in wanted}
    return {output: balls(found) for output, found in events_of(program, answers, parameters).items()}


def events_of(program: Program, answers: Numbers, parameters: Parameters) -> dict[OutputEvent, Event]:
    """Every output of the program with its event; impossible ones are left out. Raises as `law` does."""
    by_output: dict[OutputEvent, list[tuple[Slice, ...]]] = {}
    for path in paths(program, answers, parameters):
        output = tuple(_atom(released, program) for released in path.outputs)
        by_output.setdefault(output, []).extend(event_of([path]))
        if len(by_output) > MOST_OUTPUTS:
            raise too_many_outputs(program.name)
    return {output: tuple(found) for output, found in by_output.items() if found}


def _atom(released: Released, program: Program) -> Any:
    if isinstance(released, tuple):
        return tuple(_atom(each, program) for each in released)
    if not is_atom(released):
        raise OutsideIntegrals(f"{program.name} gives out noisy numbers: give events of them, such as at_most(0)")
    return released.constant if isinstance(released, Linear) else released


class Balls:
    """Probabilities of events as balls; what has the same factors is computed once."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self.effort = 0  # 1 for each path whose probability was asked for, more for those by quadrature

    def __call__(self, event: Event) -> Any:
        """The probability of an event, exactly 0 where it is impossible."""
        self.effort += len(event)
        with flint().ctx.workprec(BITS):
            total = flint().arb(0)
            for slices in event:
                product = flint().arb(1)
                for each in slices:
                    product *= self._slice(each)
                total += product
        return total

    def _slice(self, each: Slice) -> Any:
        key = (each.law, each.scale, each.lower, each.upper, frozenset(Counter(each.factors).items()))
        if key not in self._known:
            laws = {each.law, *(term.law for factor in each.factors for product in factor for term in product)}
            self.effort += max(QUADRATURE.get(law, 0) for law in laws)
            self._known[key] = integrals.probability(((each,),))
        return self._known[key]
