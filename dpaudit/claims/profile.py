"""Claims whose region is bounded by straight lines, and one of them: a privacy profile, a delta for each epsilon.

A region is the part of the square below its lines p <= e^epsilon q + delta, epsilon at least 0, and below their
mirror images p <= 1 - (1 - q - delta) / e^epsilon, which are the same promise for the other order of the datasets.
Any subset of the lines holds the region, and so does any mixture of two: all that is computed here is one of these.
Trade-off tables and regions at a distance are bounded by such lines too.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.claims.claim import POINTS, Claim, HalfPlane, Relation, key
from dpaudit.claims.pure import line_delta_at, line_epsilon_at
from dpaudit.claims.rounding import ratio, up
from dpaudit.errors import InvalidSpec

Line = tuple[float, float]  # epsilon and delta of the half-plane p <= e^epsilon q + delta


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that bound a region, steepest first: `epsilon` falls and `delta` rises.

    `corner_q`, `corner_p` are the points where two neighbouring lines meet, one fewer than lines.

    >>> region = Lines.of([(1.0, 0.0), (0.5, 0.1), (0.9, 0.4)])
    >>> region.epsilon, region.delta
    ((1.0, 0.5), (0.0, 0.1))
    >>> region.epsilon_at(0.1), round(region.epsilon_at(0.05), 4), round(region.delta_at(0.7), 4)
    (0.5, 0.7809, 0.0659)
    """

    epsilon: tuple[float, ...]
    delta: tuple[float, ...]
    corner_q: tuple[float, ...]
    corner_p: tuple[float, ...]

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Lines":
        """The region below all these lines and their mirror images; those that bound it nowhere are dropped."""
        envelope: list[Line] = []
        corners: list[tuple[float, float]] = []
        for negative, delta in sorted((-epsilon, delta) for epsilon, delta in lines):
            line = (-negative, delta)
            if envelope and line[0] == envelope[-1][0]:
                continue
            corner = None
            while envelope:
                corner = _corner(envelope[-1], line)
                if corner[1] > (corners[-1][1] if corners else envelope[0][1]):
                    break
                envelope.pop()  # the new line lies below it wherever it was the lowest
                if corners:
                    corners.pop()
            if envelope and corner:
                if corner[0] + corner[1] >= 1.0:
                    continue  # the mirror images are below it from here on
                corners.append(corner)
            envelope.append(line)
        epsilons, deltas = zip(*envelope, strict=True)
        return cls(epsilons, deltas, tuple(q for q, _ in corners), tuple(p for _, p in corners))

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines, steepest first."""
        return tuple(zip(self.epsilon, self.delta, strict=True))

    def max_probability(self, q: float) -> float:
        """G(q): the lowest of the lines and their mirror images."""
        return min(1.0, self._rising(q)[0], self._falling(q)[0])

    def plane(self, q: float) -> HalfPlane:
        """The line that bounds the region at q, or its mirror image, rounded outwards."""
        (rising, i), (falling, j) = self._rising(q), self._falling(q)
        if rising <= falling:
            return HalfPlane(up(ratio(self.epsilon[i])), self.delta[i])
        less = math.exp(-self.epsilon[j])
        return HalfPlane(up(less), 1.0 - (1.0 - self.delta[j]) * less * (1.0 - 1e-15) + 1e-16)

    def _rising(self, q: float) -> tuple[float, int]:
        i = bisect_right(self.corner_q, q)
        return (self.delta[i] if q == 0.0 else ratio(self.epsilon[i]) * q + self.delta[i]), i

    def _falling(self, q: float) -> tuple[float, int]:
        i = bisect_right(self.corner_p, 1.0 - q)
        return 1.0 - max(0.0, 1.0 - q - self.delta[i]) * math.exp(-self.epsilon[i]), i

    def epsilon_at(self, delta: float) -> float:
        """The slope of the line through (0, delta) that touches the region: a mixture of two neighbours, rounded up."""
        i = bisect_left(self.delta, delta)
        if i == len(self.delta):
            return line_epsilon_at(self.epsilon[-1], self.delta[-1], delta)
        if self.delta[i] == delta:
            return self.epsilon[i]
        if i == 0:
            return math.inf
        share = (delta - self.delta[i - 1]) / (self.delta[i] - self.delta[i - 1])
        less = math.log1p(math.expm1(self.epsilon[i] - self.epsilon[i - 1]) * share * (1.0 - 1e-15))
        return min(self.epsilon[i - 1], up(self.epsilon[i - 1]) + less * (1.0 - 1e-15))

    def delta_at(self, epsilon: float) -> float:
        """The intercept of the line of slope e^epsilon that touches the region, rounded up."""
        if epsilon >= self.epsilon[0]:
            return self.delta[0]
        if epsilon < self.epsilon[-1]:
            return line_delta_at(self.epsilon[-1], self.delta[-1], epsilon)
        i = bisect_left(self.epsilon, -epsilon, key=lambda each: -each)  # the first that is not steeper
        if self.epsilon[i] == epsilon:
            return self.delta[i]
        steep, flat = self.epsilon[i - 1], self.epsilon[i]
        share = math.expm1(epsilon - steep) / math.expm1(flat - steep)
        return min(self.delta[i], self.delta[i - 1] + up(share, 16) * (self.delta[i] - self.delta[i - 1]) + 1e-300)

    def shift(self, q: Reals, p: Reals) -> Reals:
        """The least number that, added to every epsilon, lets the region hold each of the points; not rounded."""
        q, p = np.asarray(q, np.float64), np.asarray(p, np.float64)
        return np.maximum(self._steeper(q, p), self._steeper(1.0 - p, 1.0 - q))

    def _steeper(self, q: Reals, p: Reals) -> Reals:
        """The same for the lines without their mirror images: which of them binds depends on p alone."""
        i = np.searchsorted(np.array(self.corner_p), p, side="right")
        spare = p - np.array(self.delta)[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spare > 0.0, np.log(spare / q) - np.array(self.epsilon)[i], -np.inf)

    def delta_through(self, q: float, p: float) -> float:
        """The delta of the line that, shifted to hold the point (q, p), passes through it or its mirror image."""
        return self.delta[bisect_right(self.corner_p, p if p + q <= 1.0 else 1.0 - q)]

    def vertices(self) -> list[tuple[float, float]]:
        """The corners (q, G(q)) of the whole region, from q = 0 to q = 1."""
        rising = list(zip((0.0, *self.corner_q), (self.delta[0], *self.corner_p), strict=True))
        slope, delta = ratio(self.epsilon[-1]), self.delta[-1]
        middle = [((1.0 - delta) / (1.0 + slope), (slope + delta) / (1.0 + slope) if slope < math.inf else 1.0)]
        falling = [(1.0 - p, 1.0 - q) for q, p in reversed(rising)]
        return [*rising, *middle, *falling, (1.0, 1.0)]

    def thinned(self, tolerance: float) -> "Lines":
        """Fewer lines: G grows by at most this part of itself before the middle, and accordingly beyond it."""
        keep, last = [0], len(self.epsilon) - 1
        lines = self.lines
        while keep[-1] < last:
            here = keep[-1]
            low, high = here + 1, here + 2
            while high <= last and self._fits(lines[here], lines[high], tolerance):
                low, high = high, here + 2 * (high - here)
            high = min(high, last + 1)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if self._fits(lines[here], lines[middle], tolerance) else (low, middle)
            keep.append(low)
        return Lines.of(lines[i] for i in keep)

    def _fits(self, steep: Line, flat: Line, tolerance: float) -> bool:
        q, p = _corner(steep, flat)
        return p <= self._rising(q)[0] * (1.0 + tolerance)

    def after(self, first: "Lines") -> "Lines":
        """The region of two steps, `first` and then this one, where both are powers of one region.

        G is the composition of the two, and symmetric as they are. Every pair of lines gives a line that holds it;
        those that bound it somewhere are found between its corners.
        """
        outer, inner = self._all(), first._all()
        # corners of the composition: the inner ones, and where the inner region reaches an outer one
        back = [1.0 - first.max_probability(1.0 - q) for q in outer[1]]
        corners = np.unique(np.clip([0.0, *inner[1], *back, 1.0], 0.0, 1.0))
        products: list[Line] = []
        for left, right in zip(corners[:-1].tolist(), corners[1:].tolist(), strict=True):
            q = (left + right) / 2.0
            j = bisect_right(inner[1], q)
            i = bisect_right(outer[1], first.max_probability(q))
            epsilon, delta = outer[0][i][0] + inner[0][j][0], outer[0][i][1]
            if inner[0][j][1] > 0.0:
                delta += up(ratio(outer[0][i][0]) * inner[0][j][1], 16)
            if epsilon >= -1e-12 and delta <= 1.0:  # a slope below 1 by rounding alone is one of 1
                products.append((max(0.0, up(epsilon)), min(1.0, up(delta))))
        return Lines.of(products or [(0.0, 1.0)])

    def _all(self) -> tuple[list[Line], list[float]]:
        """The lines and their mirror images, from q = 0 to q = 1, and the q at which neighbours meet."""
        images = [(-epsilon, 1.0 - (1.0 - delta) * math.exp(-epsilon)) for epsilon, delta in reversed(self.lines)]
        slope, delta = ratio(self.epsilon[-1]), self.delta[-1]
        turns = [*self.corner_q, (1.0 - delta) / (1.0 + slope), *(1.0 - p for p in reversed(self.corner_p))]
        return [*self.lines, *images], turns


def iterated(region: Lines, times: int, tolerance: float) -> Lines:
    """The region of `times` steps, by squaring; each product is thinned.

    >>> region = iterated(Lines.of([(0.5, 0.0)]), 3, 1e-6)
    >>> round(region.epsilon[0], 12), region.delta[0]
    (1.5, 0.0)
    """
    square, power = region, None
    while True:
        if times & 1:
            power = square if power is None else square.after(power).thinned(tolerance)
        times >>= 1
        if not times:
            return power if power is not None else region
        square = square.after(square).thinned(tolerance)


def _corner(steep: Line, flat: Line) -> tuple[float, float]:
    """Where two lines meet: (q, p)."""
    less = -math.expm1(flat[0] - steep[0])
    rise = flat[1] - steep[1]
    return math.exp(-steep[0]) * rise / less, flat[1] + (1.0 - less) * rise / less


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
    """An iterable that is not text."""
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
