"""The tree of a mechanism that was read: expressions, statements, one loop over the answers, what is returned.

The reader (`parse`) leaves a plain form behind, so that those who work on it meet few cases:

- Every draw is a statement of its own, `Draw("draw_1", ...)`, numbered in the order of the source; expressions hold
  no draws. Draws inside an expression are taken out from left to right, just before the statement.
- A conditional expression has become a `Branch`, a `while` loop a loop over the answers with a guard: a first
  `Branch` whose body is a `Stop`. A generator or list of answers has become the loop with `Emit`.
- `len(out)` of the list of outputs has become a counter of its own, named "len(out)", set to 0 before the loop and
  raised by an assignment after each `Emit`.
- The index of the largest of some noisy answers has become the loop `if index == 0 or y > best: ...`, and so has a
  search whose first largest is None or an infinity.
- Several returns have become outputs of a list: a number or a symbol, or of a tuple one for each part. A return in the
  loop sets "returned", which is asked after it. What stands behind `continue` has become the other arm of its branch.
- A helper function has become expressions of the arguments, with "result" where its paths part; a name that is counted
  down its start less "..._used", which counts up.
- Constants of the function's module have become numbers.

A path through a block is named by the decisions of the branches it meets, in order: "TF" takes the first and not the
second. Paths before, in and after the loop are "before:...", "loop:...", "after:..." (see `path_name`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

Law = Literal["laplace", "exponential", "gumbel", "normal"]
Order = Literal["<", "<=", ">", ">=", "==", "!="]
Operation = Literal["+", "-", "*", "/", "//", "%"]
Part = Literal["before", "loop", "after"]


# --- expressions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A constant: the double that Python reads, where the source writes one (`real`), so 0.1 is not one tenth."""

    value: Fraction
    real: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """None, True, False or a text: an output that equals no number and no other symbol."""

    name: str


@dataclass(frozen=True, slots=True)
class ProgramParameter:
    """A public parameter: the same number in both runs."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A local name: a real number, a public whole number (a counter), an index, or a draw."""

    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The query answer at the loop's index; where the program has no loop over the data, the data itself, a number."""


@dataclass(frozen=True, slots=True)
class Index:
    """The index of the loop, from 0: public."""


@dataclass(frozen=True, slots=True)
class Length:
    """The number of answers: public, at least 1."""


@dataclass(frozen=True, slots=True)
class Arithmetical:
    """left (operation) right. `//` and `%` are of public whole numbers only."""

    operation: Operation
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Compared:
    """left (order) right."""

    order: Order
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class All:
    """Every part is true (`and`)."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Some part is true (`or`)."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part is false."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Emitted:
    """The list of everything that was emitted; occurs in `Program.result` only."""


Expression = (
    Number
    | Symbol
    | ProgramParameter
    | Variable
    | Answer
    | Index
    | Length
    | Arithmetical
    | Compared
    | All
    | Any
    | Not
    | Emitted
)


# --- statements -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """target = value."""

    target: str
    value: Expression
    line: int


@dataclass(frozen=True, slots=True)
class Draw:
    """target = a fresh draw of the law with centre 0 (exponential: from 0 upwards) and this public, positive scale.

    The scale is that of `rng.laplace`, `rng.exponential` (the mean), `rng.gumbel` and `rng.normal` (the deviation).
    """

    target: str
    law: Law
    scale: Expression
    line: int


@dataclass(frozen=True, slots=True)
class Emit:
    """The next output; with `key`, the output at that place (a dictionary), which is then part of the output."""

    value: Expression
    key: Expression | None
    line: int


@dataclass(frozen=True, slots=True)
class Branch:
    """if condition: then, else: otherwise."""

    condition: Expression
    then: Block
    otherwise: Block
    line: int


@dataclass(frozen=True, slots=True)
class Stop:
    """break: the loop ends, and what stands after it follows."""

    line: int


Statement = Assign | Draw | Emit | Branch | Stop
Block = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A mechanism as the provers see it: before, the loop over the answers (None: there is none), after, result.

    `parameters` are public, in the order of the signature; `integers` those of them that are whole numbers;
    `preconditions` what the source asserts of them. `defaults` are the values in the signature. The output is
    `result`: one expression or several (a tuple), `Emitted()` for the list. `divisors` are everything that the source
    divides by, with its line, even if the quotient is unused: none of them may be 0. `operations` are all that it
    computes and compares, used or not.
    """

    name: str
    source: str
    data: str
    parameters: tuple[str, ...]
    integers: frozenset[str]
    preconditions: tuple[Expression, ...]
    before: Block
    loop: Block | None
    after: Block
    result: tuple[Expression, ...]
    defaults: Mapping[str, Fraction] = field(default_factory=dict)
    divisors: tuple[tuple[Expression, int], ...] = ()
    operations: tuple[tuple[Arithmetical | Compared, int], ...] = ()

    @property
    def body(self) -> Block:
        """All its statements in order: before, in and after the loop."""
        return (*self.before, *(self.loop or ()), *self.after)


def path_name(part: Part, decisions: str) -> str:
    """The name of a path: its part of the program and its decisions.

    >>> path_name("loop", "TF")
    'loop:TF'
    """
    return f"{part}:{decisions}"
