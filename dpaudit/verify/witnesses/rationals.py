"""Numbers as they come in and go out: exact rationals of Python's and numpy's, in short words; and one error."""

import math
import numbers
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from dpaudit.errors import InvalidSpec


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
