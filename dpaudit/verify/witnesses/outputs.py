"""Events of outputs: per output a symbol, a number, an interval of values, or anything."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import in_short, rational
from dpaudit.verify.language.nodes import Symbol
from dpaudit.verify.witnesses.states import NoisySum, Released


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
    """What must be positive for a released value to lie in the pattern; None if its probability is 0.

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
        match pattern:
            case tuple():
                word = in_words(pattern)
            case Symbol(word):
                pass
            case _:
                word = in_short(pattern) if isinstance(pattern, Fraction) else str(pattern)
        parts += [word] * repeats if repeats < 6 else [f"{word} {repeats} times"]
    return f"({', '.join(parts)})"


# --- shapes: what is the same in all runs of a path, with its noisy numbers left open -----------------------------


def shape(outputs: Sequence[Released]) -> OutputEvent:
    """The outputs of a path with every noisy number as "any number"."""

    def of_one(released: Released) -> Pattern:
        if isinstance(released, tuple):
            return shape(released)
        return released if isinstance(released, Symbol) else released.constant if released.is_number else NOISY

    return tuple(map(of_one, outputs))


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
