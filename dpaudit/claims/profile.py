"""Claims that are given as lines, and one of them: a privacy profile, a delta for each of several epsilons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.claims.claim import POINTS, Claim, HalfPlane, key
from dpaudit.claims.lines import Lines, iterated
from dpaudit.claims.relation import Relation
from dpaudit.errors import InvalidSpec

THINNED = 2e-5  # by which a region at a distance may grow for the sake of fewer lines


class OfLines(Claim):
    """A claim whose region is the intersection of lines; its parameter is the epsilon at a delta."""

    __slots__ = ()
    _region: Lines

    parameter: ClassVar[str] = "epsilon"

    @property
    def region(self) -> Lines:
        """The lines that bound the region."""
        return self._region

    @property
    def delta(self) -> float:
        return self._region.delta[0]

    @property
    def value(self) -> None:
        return None

    def of_groups(self, k: int) -> "PrivacyProfile":
        """Group privacy: G iterated `k` times (Dong, Roth & Su 2022, theorem 2.14), as a profile."""
        return PrivacyProfile(iterated(self._region, k, THINNED).lines, self.relation)

    def max_probability(self, q: float) -> float:
        return self._region.max_probability(validate.probability("q", q))

    def tangent(self, q: float) -> HalfPlane:
        return self._region.plane(validate.probability("q", q))

    def epsilon_at(self, delta: float) -> float:
        return self._region.epsilon_at(validate.probability("delta", delta))

    def delta_at(self, epsilon: float) -> float:
        return self._region.delta_at(validate.real("epsilon", epsilon))

    def lower(self, epsilon: float, delta: float) -> float:
        validate.probability("delta", delta)
        return max(0.0, validate.real("epsilon", epsilon))

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        return self._region.shift(q, p)

    def delta_through(self, q: float, p: float) -> float:
        return self._region.delta_through(validate.probability("q", q), validate.probability("p", p))


def sequence(name: str, points: Any) -> Iterable[Any]:
    """Something that can be walked through, and is not text."""
    if isinstance(points, str | bytes) or not isinstance(points, Iterable):
        raise InvalidSpec(f"{name} must be a sequence of points, got {points!r}")
    return points


def pair(name: str, point: Any) -> tuple[Any, Any]:
    """A point: two values."""
    try:
        first, second = point
    except (TypeError, ValueError):
        raise InvalidSpec(f"{name} must be a point of two numbers, got {point!r}") from None
    return _plain(first), _plain(second)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value  # numpy's numbers


def _point(at: int, point: Any) -> tuple[float, float]:
    epsilon, delta = pair(f"curve[{at}]", point)
    return (
        validate.not_negative(f"epsilon of curve[{at}]", epsilon),
        validate.probability(f"delta of curve[{at}]", delta),
    )


def _curve(name: str, given: Any) -> tuple[tuple[float, float], ...]:
    points = tuple(sorted(_point(at, each) for at, each in enumerate(sequence(name, given))))
    if not points:
        raise InvalidSpec(f"{name} needs at least one point (epsilon, delta), got none")
    return points


@dataclass(frozen=True, slots=True)
class PrivacyProfile(OfLines):
    """(epsilon, delta)-DP at every point of a curve (Balle & Wang 2018, section 2; Koskela et al. 2020).

    `curve` holds points (epsilon, delta), in any order, kept sorted; each epsilon is at least 0 and each delta in
    [0, 1]. Raises `InvalidSpec` for anything else. Its family is the profile with a number added to every epsilon.

    >>> claim = PrivacyProfile([(1.0, 0.02), (0.5, 0.1), (2.0, 0.001)])
    >>> claim.epsilon_at(0.02), claim.delta
    (1.0, 0.001)
    >>> round(claim.delta_at(0.7), 4)
    0.0727
    """

    curve: Sequence[tuple[float, float]] = field(
        metadata=key("a privacy profile: points [epsilon, delta]", _curve, POINTS, "profile")
    )
    relation: Relation | None = field(default=None)
    _region: Lines = field(init=False, repr=False, compare=False)

    example: ClassVar[tuple[Any, ...]] = (((0.5, 0.1), (1.0, 0.02), (2.0, 0.001)),)
    form: ClassVar[str] = "PrivacyProfile"
    stored: ClassVar[str] = "points (epsilon, delta)"

    def __post_init__(self) -> None:
        OfLines.__post_init__(self)
        object.__setattr__(self, "_region", Lines.of(self.curve))

    @property
    def short(self) -> str:
        return "a privacy profile, delta as a function of epsilon"

    def promise(self, other: str) -> str:
        return (
            "for each epsilon, the probability of any set of outputs with one dataset is at most e to the epsilon "
            f"times that with {other}, plus the delta of the curve"
        )

    def __str__(self) -> str:
        return f"privacy profile of {len(self.curve)} point{'s' if len(self.curve) > 1 else ''}"
