"""Exact rational numbers, in short words; and enclosures: two floats with a real number between them, from a ball."""

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.errors import InvalidSpec

BITS = 256  # of a ball's centre, four words: enough for sums of terms that cancel to 1e-50
LEAST, MOST = 5e-324, 1.7976931348623157e308  # the doubles next to 0 and to infinity
SMALLEST, LARGEST = -1080, 1024  # binary sizes beyond which a number is taken for too small or too large for a double


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A real number that lies in [lower, upper]; both ends are infinite where the number is known to be.

    >>> Enclosure(0.5, 0.5).exact
    True
    """

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether both ends are the same number."""
        return self.lower == self.upper

    @property
    def middle(self) -> float:
        """The number to print: halfway between the ends."""
        return self.lower if self.exact else self.lower + (self.upper - self.lower) / 2.0


INFINITE = Enclosure(math.inf, math.inf)


def largest(ways: Iterable[Enclosure]) -> Enclosure:
    """The largest of some numbers.

    >>> largest([Enclosure(0.0, 0.5), Enclosure(0.25, 0.25)])
    Enclosure(lower=0.25, upper=0.5)
    """
    lower, upper = zip(*((way.lower, way.upper) for way in ways), strict=True)
    return Enclosure(max(lower), max(upper))


def of_ball(ball: Any) -> Enclosure:
    """The doubles around a ball (`flint.arb`), rounded outwards.

    >>> found = of_ball(flint().arb(1) / 3)
    >>> found.lower < 1 / 3 <= found.upper, found.upper - found.lower < 1e-15
    (True, True)
    """
    if not ball.is_finite():
        return Enclosure(-math.inf, math.inf)
    return Enclosure(_towards(ball.lower(), -math.inf), _towards(ball.upper(), math.inf))


def of_log(ratio: Fraction) -> Enclosure:
    """The logarithm of a positive rational number, enclosed.

    >>> of_log(Fraction(1))
    Enclosure(lower=0.0, upper=0.0)
    >>> of_log(Fraction(4)).lower <= 2 * math.log(2) <= of_log(Fraction(4)).upper
    True
    """
    if ratio == 1:
        return Enclosure(0.0, 0.0)
    with flint().ctx.workprec(BITS):
        return of_ball(ball(ratio).log())


def ball(value: Fraction | int | float) -> Any:
    """A rational number, or a double taken as the number it is, as a ball at the current precision of flint.

    >>> ball(Fraction(1, 2)) == flint().arb("0.5")
    True
    """
    return flint().arb(ratio(Fraction(value)))


def ratio(value: Fraction) -> Any:
    """A rational number as flint has it."""
    return flint().fmpq(value.numerator, value.denominator)


def as_ball(number: Any) -> Any:
    """A fraction, an integer, or a float as a ball; a ball as it is.

    >>> as_ball(Fraction(1, 4)) == 0.25
    True
    """
    if isinstance(number, flint().arb):
        return number
    try:
        return ball(number)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidSpec(f"a number must be finite, got {number!r}") from error


def within_one(probability: Any) -> Enclosure:
    """The doubles around a probability: a ball may reach below 0 or above 1, a probability does not.

    >>> within_one(flint().arb(2))
    Enclosure(lower=1.0, upper=1.0)
    """
    if abs(probability) < flint().arb(2) ** -1_100:  # far below every double
        return Enclosure(0.0, 0.0 if probability <= 0 else LEAST)
    enclosed = of_ball(probability)
    return Enclosure(min(1.0, max(0.0, enclosed.lower)), min(1.0, max(0.0, enclosed.upper)))


def hockey_stick(both: Iterable[tuple[Any, Any]], epsilon: Fraction | float) -> Enclosure:
    """The least delta of a pair at an epsilon: the sum of max(0, P - e^epsilon Q), one way.

    The two probabilities of outputs that exclude one another: balls, fractions or floats. Outputs left out count for
    nothing, so the upper end is one only if the outputs are all there are.

    >>> hockey_stick([(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))], 0)
    Enclosure(lower=0.5, upper=0.5)
    """
    with flint().ctx.workprec(BITS):
        slope, nothing = as_ball(epsilon).exp(), flint().arb(0)
        return within_one(sum(((as_ball(p) - slope * as_ball(q)).max(nothing) for p, q in both), start=nothing))


def normal_tail(at: Any) -> Any:
    """P(X > at) of a normal draw, as a ball.

    >>> normal_tail(flint().arb(0)) == 0.5
    True
    """
    return (at / flint().arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    """The least delta at an epsilon of a number with normal noise, in balls; `mu` is the shift in deviations, above 0.

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle & Wang 2018, theorem 8).

    >>> 0.1269 < float(gaussian_delta(ball(1), ball(1)).mid()) < 0.1270
    True
    """
    return normal_tail(epsilon / mu - mu / 2) - epsilon.exp() * normal_tail(epsilon / mu + mu / 2)


def _towards(end: Any, side: float) -> float:
    """An end of a ball as a double: the next one on that side, unless it is exactly one."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    outwards = (mantissa > 0) == (side > 0)
    size = exponent + mantissa.bit_length()  # the end is below 2^size; building 2^exponent may cost minutes
    if mantissa and size < SMALLEST:
        return math.copysign(LEAST if outwards else 0.0, mantissa)
    value = Fraction(0) if size > LARGEST else Fraction(mantissa) * Fraction(2) ** exponent
    if size > LARGEST or abs(value) > Fraction(MOST):
        return math.copysign(math.inf if outwards else MOST, mantissa)
    nearest = float(value)
    inside = Fraction(nearest) > value if side < 0.0 else Fraction(nearest) < value
    return math.nextafter(nearest, side) if inside else nearest


SIMPLE = 1_000  # a denominator below it is printed as it is


def rational(what: str, value: object) -> Fraction:
    """A finite number as the rational that it is. Raises `InvalidSpec` for anything else, and for numpy's narrow ones.

    >>> rational("eps", 0.5)
    Fraction(1, 2)
    """
    check_wide(what, value)
    if isinstance(value, Fraction):
        return value
    if not isinstance(value, bool) and isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value):
        return Fraction(float(value))
    raise InvalidSpec(f"{what} must be a finite number, got {value!r}")


class NarrowFloat(InvalidSpec):
    """Numbers whose sums round otherwise than those of doubles: what holds of real numbers is not theirs."""


def check_wide(what: str, value: Any) -> None:
    """Raises `InvalidSpec` for integers of fewer than 64 bits or without a sign (200 + 100 is 44 in eight), and near
    the end of 64, and for numbers of a class of its own; `NarrowFloat` for floats that are no doubles, of any library.
    Of a container all that is in it.
    """
    if type(value) in (float, int):
        return
    kind = getattr(value, "dtype", None)
    if isinstance(value, int | float | Fraction) and type(value).__module__ not in ("builtins", "numpy", "fractions"):
        raise InvalidSpec(f"{what} is of the type {type(value).__name__}: give int or float")
    value = value.tolist() if getattr(kind, "kind", "") == "O" and hasattr(value, "tolist") else value
    inside = [*value, *value.values()] if isinstance(value, dict) else value
    for each in inside if isinstance(inside, list | tuple | set | frozenset) else ():
        check_wide(what, each)
    name = str(getattr(kind, "name", kind)).rpartition(".")[2]
    if kind is None or str(getattr(kind, "kind", "f")) not in "iufc" or name == "float64":
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
    if value.denominator < SIMPLE:
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
