"""Outputs as exact numbers with noise, and events of them: per output a symbol, a number, an interval, or anything."""

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
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


@dataclass(frozen=True, slots=True)
class Values:
    """The numbers from `lower` to `upper`, both included; None is no limit.

    >>> str(Values(None, Fraction(0))), str(Values(Fraction(1), None))
    ('<= 0', '>= 1')
    """

    lower: Fraction | None
    upper: Fraction | None

    def __post_init__(self) -> None:
        for name, end in (("lower", self.lower), ("upper", self.upper)):
            if end is not None:
                object.__setattr__(self, name, rational(f"an end of an interval of values ({name})", end))
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise InvalidSpec(
                f"an interval of values needs lower <= upper, got [{in_short(self.lower)}, {in_short(self.upper)}]"
            )

    def __str__(self) -> str:
        low, high = ("" if end is None else in_short(end) for end in (self.lower, self.upper))
        if low and high:
            return f"in [{low}, {high}]"
        return f">= {low}" if low else f"<= {high}" if high else "any number"


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever this output is: a number or a symbol."""

    def __str__(self) -> str:
        return "anything"


ANY = Anything()
NOISY = Values(None, None)  # stands for a noisy number in a shape
Atom = Symbol | Fraction | Values | Anything
Pattern = Atom | tuple["Pattern", ...]
OutputEvent = tuple[Pattern, ...]  # one for every output, in order
Released = Value | tuple["Released", ...]  # what a path gives out: values, nested as the program nests them


def at_most(end: Fraction | float) -> Values:
    """The half-line of the numbers up to `end`. Raises `InvalidSpec` where that is no finite number."""
    return Values(None, rational("the end of a half-line", end))


def at_least(end: Fraction | float) -> Values:
    """The half-line of the numbers from `end` on. Raises `InvalidSpec` where that is no finite number."""
    return Values(rational("the end of a half-line", end), None)


def output_event(items: Iterable[object]) -> OutputEvent:
    """An event from plain Python (or numpy) values: None, truths and texts are symbols, numbers are exact.

    Raises `InvalidSpec` for anything else.

    >>> output_event([None, "top", 1, at_most(0)])
    (Symbol(name='None'), Symbol(name="'top'"), Fraction(1, 1), Values(lower=None, upper=Fraction(0, 1)))
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidSpec(f"an output event is a tuple with one item for every output, got {items!r}")
    return tuple(_pattern(item) for item in items)


def _pattern(item: object) -> Pattern:
    if isinstance(item, Symbol | Values | Anything):
        return item
    if hasattr(item, "tolist"):  # numpy's
        item = item.tolist()
    if item is None or isinstance(item, bool):
        return Symbol(str(item))
    if isinstance(item, str):
        return Symbol(repr(item))  # as the reader writes it: the text "None" is not None
    if isinstance(item, int | float | Fraction):
        return rational("a number in an output event", item)
    if isinstance(item, tuple | list):
        return output_event(item)
    raise InvalidSpec(f"an output event holds symbols, numbers, intervals of values or ANY, got {item!r}")


def required(released: Released, pattern: Pattern) -> list[NoisySum] | None:
    """What must be positive for a released value to lie in the pattern; None where it cannot (but for probability 0).

    >>> required(NoisySum(Fraction(3)), at_most(3)), required(NoisySum(Fraction(3)), at_most(2))
    ([], None)
    """
    if isinstance(pattern, Anything):
        return []
    if isinstance(released, tuple) or isinstance(pattern, tuple):
        if not (isinstance(released, tuple) and isinstance(pattern, tuple)) or len(released) != len(pattern):
            return None
        each = [required(value, part) for value, part in zip(released, pattern, strict=True)]
        return None if None in each else [need for needs in each for need in needs or ()]
    if isinstance(released, Symbol) or isinstance(pattern, Symbol):
        return [] if released == pattern else None
    if isinstance(pattern, Fraction):  # a sum of draws equals a number with probability 0
        return [] if released.is_number and released.constant == pattern else None
    wanted = []
    if pattern.lower is not None:
        wanted.append(released - NoisySum(pattern.lower))
    if pattern.upper is not None:
        wanted.append(NoisySum(pattern.upper) - released)
    if released.is_number:
        return [] if all(each.constant >= 0 for each in wanted) else None
    return wanted


def in_words(event: OutputEvent) -> str:
    """An event as text: a tuple of what each output must be.

    >>> in_words(output_event([None, None, True])), in_words(output_event([at_most(0)]))
    ('(None, None, True)', '(<= 0)')
    """
    parts = []
    for pattern, alike in groupby(event):
        repeats = len(list(alike))
        word = in_words(pattern) if isinstance(pattern, tuple) else _word(pattern)
        parts += [word] * repeats if repeats < 6 else [f"{word} {repeats} times"]
    return f"({', '.join(parts)})"


def _word(atom: Atom) -> str:
    if isinstance(atom, Symbol):
        return atom.name
    return in_short(atom) if isinstance(atom, Fraction) else str(atom)


# --- shapes: what is the same in all runs of a path, with its noisy numbers left open -----------------------------


def shape(outputs: Sequence[Released]) -> OutputEvent:
    """The outputs of a path with every noisy number as "any number"."""
    return tuple(_shaped(each) for each in outputs)


def _shaped(released: Released) -> Pattern:
    if isinstance(released, tuple):
        return shape(released)
    if isinstance(released, Symbol):
        return released
    return released.constant if released.is_number else NOISY


def noisy_numbers(pattern: Pattern) -> int:
    """How many noisy numbers a shape holds."""
    return sum(map(noisy_numbers, pattern)) if isinstance(pattern, tuple) else int(pattern is NOISY)


def has_noisy(pattern: Pattern) -> bool:
    """Whether a shape holds a noisy number."""
    return noisy_numbers(pattern) > 0


def is_plain(pattern: Pattern) -> bool:
    """Whether a pattern holds symbols and exact numbers alone: it is the shape of all outputs that lie in it."""
    if isinstance(pattern, tuple):
        return all(map(is_plain, pattern))
    return isinstance(pattern, Symbol | Fraction)


def filled(shape: OutputEvent, by: Iterator[Pattern]) -> OutputEvent:
    """A shape with its noisy numbers replaced, in order."""
    return tuple(filled(each, by) if isinstance(each, tuple) else next(by) if each is NOISY else each for each in shape)
