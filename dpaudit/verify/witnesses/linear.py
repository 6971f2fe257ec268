"""Values of a program at concrete answers: numbers, symbols, and sums of draws with rational coefficients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.verify.language.nodes import Law, Symbol


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
