"""The interpreter: what a program outputs, for given answers and draws. It is the meaning that proofs are about."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import OPERATIONS, ORDERS

Number = Fraction | float
DrawsOne = Callable[[nodes.Law, Any], Any]
SYMBOLS: dict[str, bool | None] = {"None": None, "True": True, "False": False}


def run(
    program: nodes.Program, answers: Sequence[Number] | Number, parameters: Mapping[str, Number], draw: DrawsOne
) -> Any:
    """The output of one run: a value, or a tuple where several are returned; the list of outputs is a tuple.

    `answers` is a sequence, or one number where the program has no loop; `draw(law, scale)` gives each noise, in the
    order of the source. Fractions stay exact, floats stay floats. Outputs by place are pairs (place, value). Raises
    `InvalidSpec` for parameters against the preconditions, for a divisor that is 0 (wherever it stands), and for a
    scale not above 0.

    >>> from dpaudit.verify.language import read
    >>> program = read("def f(q, rng, eps):\\n    return tuple(x + rng.laplace(scale=1 / eps) for x in q)")
    >>> [str(value) for value in run(program, [1, 2], {"eps": 4}, lambda law, scale: scale)]
    ['5/4', '9/4']
    """
    queries = [_exact(answer) for answer in (answers if isinstance(answers, Sequence) else [answers])]
    values = {name: _exact(value) for name, value in {**program.defaults, **parameters}.items()}
    state = InterpreterState(program, values, queries, draw)
    for precondition in program.preconditions:
        if not state.value(precondition):
            raise InvalidSpec(f"the parameters must keep what {program.name} asserts of them")
    for divisor, line in program.divisors:
        for state.index in range(len(queries)):
            if state.value(divisor) == 0:
                raise InvalidSpec(f"what is divided by in line {line} of {program.name} must not be 0")
    found = state.result()
    return found[0] if len(found) == 1 else found


def _exact(value: Number) -> Any:
    return Fraction(value) if isinstance(value, int | Fraction) else value


@dataclass
class InterpreterState:
    """A run in progress; `decisions` are those of the part that it is in."""

    program: nodes.Program
    parameters: Mapping[str, Any]
    answers: Sequence[Any]
    draw: Callable[..., Any]
    index: int = 0
    variables: dict[str, Any] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    decisions: str = ""

    def result(self) -> tuple[Any, ...]:
        """What the program returns at the end of the run."""
        self.part("before", self.program.before)
        for place in range(len(self.answers) if self.program.loop is not None else 0):
            self.index = place
            if self.part("loop", self.program.loop or ()):
                break
        self.part("after", self.program.after)
        parts = self.program.result
        return tuple(tuple(self.outputs) if part == nodes.Emitted() else self.value(part) for part in parts)

    def part(self, name: nodes.Part, block: nodes.Block) -> bool:
        """Runs a part of the program; True where the loop ends."""
        self.decisions = ""
        return self.block(block)

    def drawn(self, statement: nodes.Draw, size: Any) -> Any:
        """The noise of a draw."""
        return self.draw(statement.law, size)

    def block(self, block: nodes.Block) -> bool:
        """Runs the statements; True where the loop ends."""
        for statement in block:
            match statement:
                case nodes.Assign(target=target, value=value):
                    self.variables[target] = self.value(value)
                case nodes.Draw(target=target, scale=scale, line=line):
                    size = self.value(scale)
                    if not size > 0:
                        raise InvalidSpec(f"the scale in line {line} must be above 0, got {size}")
                    self.variables[target] = self.drawn(statement, size)
                case nodes.Emit(value=value, key=key):
                    output = self.value(value)
                    self.outputs.append(output if key is None else (self.value(key), output))
                case nodes.Branch(condition=condition, then=then, otherwise=otherwise):
                    truth = self.value(condition)
                    self.decisions += "T" if truth else "F"
                    if self.block(then if truth else otherwise):
                        return True
                case nodes.Stop():
                    return True
        return False

    def value(self, expression: nodes.Expression) -> Any:
        match expression:
            case nodes.Number(value=value):
                return value
            case nodes.Symbol(name=name):
                return SYMBOLS[name] if name in SYMBOLS else ast.literal_eval(name)
            case nodes.ProgramParameter(name=name):
                return self.parameters[name]
            case nodes.Variable(name=name):
                return self.variables[name]
            case nodes.Answer():
                return self.answers[self.index]
            case nodes.Index():
                return Fraction(self.index)
            case nodes.Length():
                return Fraction(len(self.answers))
            case nodes.Arithmetical(operation=operation, left=left, right=right):
                return OPERATIONS[operation](self.value(left), self.value(right))
            case nodes.Compared(order=order, left=left, right=right):
                return ORDERS[order](self.value(left), self.value(right))
            case nodes.All(parts=parts):
                return all(self.value(part) for part in parts)
            case nodes.Any(parts=parts):
                return any(self.value(part) for part in parts)
            case nodes.Not(part=part):
                return not self.value(part)
            case nodes.Emitted():
                raise InvalidSpec("the list of outputs is no number")
