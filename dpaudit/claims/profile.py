"""A whole privacy profile as one claim: a delta for each of several epsilons, all promised at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpaudit import validate
from dpaudit.claims.lines import Lines, iterated
from dpaudit.claims.of_lines import OfLines
from dpaudit.claims.relation import Relation
from dpaudit.errors import InvalidSpec

THINNED = 2e-5  # by which a region at a distance may grow for the sake of fewer lines


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

    curve: Sequence[tuple[float, float]]
    relation: Relation | None = field(default=None)
    _region: Lines = field(init=False, repr=False, compare=False)

    form: ClassVar[str] = "PrivacyProfile"
    parameter: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        points = tuple(sorted(_point(at, each) for at, each in enumerate(sequence("curve", self.curve))))
        if not points:
            raise InvalidSpec("curve needs at least one point (epsilon, delta), got none")
        object.__setattr__(self, "curve", points)
        object.__setattr__(self, "relation", Relation.of(self.relation))
        object.__setattr__(self, "_region", Lines.of(points))

    def at_distance(self, distance: int) -> PrivacyProfile:
        """Group privacy: G iterated `distance` times (Dong, Roth & Su 2022, theorem 2.14)."""
        k = validate.whole("distance", distance, least=1)
        return self if k == 1 else PrivacyProfile(iterated(self._region, k, THINNED).lines, self.relation)

    def to_dict(self) -> dict[str, object]:
        word = Relation.word(self.relation)
        return {"form": self.form, "curve": [list(point) for point in self.curve], "relation": word}

    def __str__(self) -> str:
        return f"privacy profile of {len(self.curve)} point{'s' if len(self.curve) > 1 else ''}"


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
