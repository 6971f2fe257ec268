"""Exact rationals of Python's and numpy's, in short words; their sums with noises; and one error."""

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.nodes import Law, Symbol


class OutsideIntegrals(InvalidSpec):
    """The program's outputs are no events that the integrals can express: no number is given, and none is guessed."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


MOST_OUTPUTS = 4096  # that are all looked at


class TooMany(OutsideIntegrals):
    """The program has more outputs, or paths to them, than are looked at one by one."""


def too_many_outputs(program: str) -> TooMany:
    """The refusal of a program with more different outputs than that."""
    return TooMany(f"{program} has more than {MOST_OUTPUTS} outputs here; give those of interest")


SMALL = 1_000  # a denominator below it is printed as it is


def rational(what: str, value: object) -> Fraction:
    """A finite number as the rational that it is. Raises `InvalidSpec` for anything else, and for numpy's narrow ones.

    >>> rational("eps", 0.5)
    Fraction(1, 2)
    """
    if isinstance(value, Fraction):
        return value
    check_wide(what, value)
    if not isinstance(value, bool) and isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value):
        return Fraction(float(value))
    raise InvalidSpec(f"{what} must be a finite number, got {value!r}")


class NarrowFloat(InvalidSpec):
    """Numbers whose sums round otherwise than those of doubles: what holds of real numbers is not theirs."""


def check_wide(what: str, value: Any) -> None:
    """Raises `InvalidSpec` for integers of fewer than 64 bits or without a sign (200 + 100 is 44 in eight), and near
    the end of 64; `NarrowFloat` for floats that are no doubles, of any library."""
    kind = getattr(value, "dtype", None)
    name = str(getattr(kind, "name", kind)).rpartition(".")[2]
    if kind is None or getattr(kind, "kind", "f") not in "iufc" or name == "float64":
        return
    if name != "int64" and "int" not in name:
        raise NarrowFloat(f"{what} is of the type {name}, which rounds otherwise than doubles: give float64")
    if name != "int64" or value.size and max(abs(int(value.max())), abs(int(value.min()))) > 2**53:
        raise InvalidSpec(f"{what} is of the type {name}, whose sums wrap around: give int, float or int64 below 2^53")


def rationals(given: Mapping[str, object]) -> dict[str, Fraction]:
    """Parameters by name. Raises `InvalidSpec` for one that is no finite number."""
    return {name: rational(f"the parameter {name}", value) for name, value in given.items()}


def in_short(value: Fraction) -> str:
    """A rational as text: the shortest decimal of the double that it is, unless it is a simple fraction, or no double.

    >>> in_short(Fraction(3.731)), in_short(Fraction(1, 2)), in_short(Fraction(3731, 1000))
    ('3.731', '1/2', '3731/1000')
    """
    if value.denominator < SMALL:
        return str(value)
    try:
        nearest = float(value)
    except OverflowError:
        return str(value)
    return repr(nearest) if Fraction(nearest) == value else str(value)


def named(parameters: Mapping[str, Fraction]) -> str:
    """Parameters as text.

    >>> named({"eps": Fraction(1, 2), "T": Fraction(0)})
    'eps = 1/2, T = 0'
    """
    return ", ".join(f"{name} = {in_short(value)}" for name, value in parameters.items())


def shown(answers: Iterable[Fraction]) -> str:
    """Answers as text.

    >>> shown((Fraction(0), Fraction(1, 2)))
    '(0, 1/2)'
    """
    return f"({', '.join(map(in_short, answers))})"


@dataclass(frozen=True, slots=True)
class Noise:
    """A draw of a run: its law, its scale, and the line of the source that makes it."""

    law: Law
    scale: Fraction
    line: int


@dataclass(frozen=True, slots=True)
class NoisySum:
    """constant + the sum of coefficient * draw, over draws by number; without draws it is a number.

    `double` is what Python's doubles make of such a number where they part from the real one; NaN where noise cancels.
    `python` is the number as Python holds it, or words that are the same for one type and sign; None: unknown.

    >>> total = NoisySum.draw(0) + NoisySum(Fraction(1)) - NoisySum.draw(0)
    >>> total.is_number, total.constant
    (True, Fraction(1, 1))
    """

    constant: Fraction
    terms: tuple[tuple[int, Fraction], ...] = ()  # by number of the draw, ascending; no coefficient is 0
    double: float | None = field(default=None, compare=False)
    python: int | float | str | None = field(default=None, compare=False)

    @classmethod
    def draw(cls, number: int) -> "NoisySum":
        """The draw itself."""
        return cls(Fraction(0), ((number, Fraction(1)),))

    @property
    def is_number(self) -> bool:
        """Whether no draw is in it."""
        return not self.terms

    def __add__(self, other: "NoisySum") -> "NoisySum":
        if not other.terms:
            return NoisySum(self.constant + other.constant, self.terms)
        if not self.terms:
            return NoisySum(self.constant + other.constant, other.terms)
        return NoisySum(self.constant + other.constant, _merged(dict(self.terms), other.terms))

    def __neg__(self) -> "NoisySum":
        return NoisySum(-self.constant, tuple((draw, -factor) for draw, factor in self.terms))

    def __sub__(self, other: "NoisySum") -> "NoisySum":
        return self + (-other)

    def times(self, factor: Fraction) -> "NoisySum":
        """The value multiplied by a number."""
        if factor == 0:
            return NoisySum(Fraction(0))
        return NoisySum(self.constant * factor, tuple((draw, each * factor) for draw, each in self.terms))


Value = NoisySum | Symbol


@dataclass(frozen=True, slots=True)
class UnknownDraw:
    """A number that is overwritten before it matters: a running maximum before the answer that wins."""


Known = Mapping[str, Value | UnknownDraw]


def _merged(sums: dict[int, Fraction], others: tuple[tuple[int, Fraction], ...]) -> tuple[tuple[int, Fraction], ...]:
    for draw, factor in others:
        sums[draw] = sums.get(draw, Fraction(0)) + factor
    return tuple(sorted((draw, factor) for draw, factor in sums.items() if factor))
