"""Events of comparison programs as data: which draws must fall between which lines.

Given one outer draw t (such as the noise of a threshold), the other draws are independent, and each must fall between
limits that are straight lines in t. So the probability of an event is one integral of a product of probabilities.

Draws have centre 0 (an exponential draw starts at 0) and a positive scale, the standard deviation where the law is
normal. A draw of law None is no draw: it is the number 0, for comparisons that carry no noise.
All numbers are exact. Limits are open; that matters only where no noise is at all (law None at both places).
"""

from dataclasses import dataclass
from fractions import Fraction

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.nodes import Law


@dataclass(frozen=True, slots=True)
class Line:
    """The number slope * t + at, where t is the outer draw; slope is -1, 0 or 1."""

    slope: int
    at: Fraction

    def __post_init__(self) -> None:
        if self.slope not in (-1, 0, 1):
            raise InvalidSpec(f"slope of a line must be -1, 0 or 1, got {self.slope!r}")


@dataclass(frozen=True, slots=True)
class Between:
    """P(max of the lower lines < X < min of the upper lines) for a fresh draw X; an empty tuple is no limit.

    >>> Between("laplace", Fraction(4), lower=(Line(1, Fraction(0)),), upper=()).upper
    ()
    """

    law: Law | None
    scale: Fraction
    lower: tuple[Line, ...]
    upper: tuple[Line, ...]

    def __post_init__(self) -> None:
        _positive_scale(self.law, self.scale)


@dataclass(frozen=True, slots=True)
class Density:
    """The density of a fresh draw X at a line: stands where a released value is one exact number.

    An event with densities has no probability but a density; the ratio of two such, over the same released values,
    is the likelihood ratio there.
    """

    law: Law
    scale: Fraction
    at: Line

    def __post_init__(self) -> None:
        _positive_scale(self.law, self.scale)


Term = Between | Density
Factor = tuple[tuple[Term, ...], ...]  # alternatives that exclude one another, each a product of independent draws


@dataclass(frozen=True, slots=True)
class Slice:
    """An outer draw t between constant limits (None: no limit), and what must hold given t: every factor.

    Law None is no outer draw: t is 0, nothing is integrated, and the limits must hold of 0.
    """

    law: Law | None
    scale: Fraction
    lower: Fraction | None
    upper: Fraction | None
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        _positive_scale(self.law, self.scale)


Event = tuple[tuple[Slice, ...], ...]  # a sum of products of independent slices; () has probability 0, ((),) has 1


def _positive_scale(law: str | None, scale: Fraction) -> None:
    if law not in (None, "laplace", "exponential", "gumbel", "normal"):
        raise InvalidSpec(f"law must be laplace, exponential, gumbel, normal or None, got {law!r}")
    if law is not None and not scale > 0:
        raise InvalidSpec(f"scale of a {law} draw must be positive, got {scale}")
