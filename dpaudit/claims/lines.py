"""Regions bounded by straight lines: what profiles, trade-off tables and regions at a distance have in common.

A region is the part of the square below its lines p <= e^epsilon q + delta, epsilon at least 0, and below their
mirror images p <= 1 - (1 - q - delta) / e^epsilon, which are the same promise for the other order of the datasets.
Any subset of the lines holds the region, and so does any mixture of two: all that is computed here is one of these.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.claims.claim import HalfPlane
from dpaudit.claims.pure import line_delta_at, line_epsilon_at
from dpaudit.claims.rounding import ratio, up

Line = tuple[float, float]  # epsilon and delta of the half-plane p <= e^epsilon q + delta


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that bound a region, steepest first: `epsilon` falls and `delta` rises.

    `corner_q`, `corner_p` are the points at which one line hands over to the next, one fewer than lines.

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
        kept: list[Line] = []
        corners: list[tuple[float, float]] = []
        for negative, delta in sorted((-epsilon, delta) for epsilon, delta in lines):
            line = (-negative, delta)
            if kept and line[0] == kept[-1][0]:
                continue
            corner = None
            while kept:
                corner = _corner(kept[-1], line)
                if corner[1] > (corners[-1][1] if corners else kept[0][1]):
                    break
                kept.pop()  # the new line lies below it wherever it was the lowest
                if corners:
                    corners.pop()
            if kept and corner:
                if corner[0] + corner[1] >= 1.0:
                    continue  # the mirror images are below it from here on
                corners.append(corner)
            kept.append(line)
        epsilons, deltas = zip(*kept, strict=True)
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
        found: list[Line] = []
        for left, right in zip(corners[:-1].tolist(), corners[1:].tolist(), strict=True):
            q = (left + right) / 2.0
            j = bisect_right(inner[1], q)
            i = bisect_right(outer[1], first.max_probability(q))
            epsilon, delta = outer[0][i][0] + inner[0][j][0], outer[0][i][1]
            if inner[0][j][1] > 0.0:
                delta += up(ratio(outer[0][i][0]) * inner[0][j][1], 16)
            if epsilon >= -1e-12 and delta <= 1.0:  # a slope below 1 by rounding alone is one of 1
                found.append((max(0.0, up(epsilon)), min(1.0, up(delta))))
        return Lines.of(found or [(0.0, 1.0)])

    def _all(self) -> tuple[list[Line], list[float]]:
        """The lines and their mirror images, from q = 0 to q = 1, and the q at which each hands over to the next."""
        images = [(-epsilon, 1.0 - (1.0 - delta) * math.exp(-epsilon)) for epsilon, delta in reversed(self.lines)]
        slope, delta = ratio(self.epsilon[-1]), self.delta[-1]
        turns = [*self.corner_q, (1.0 - delta) / (1.0 + slope), *(1.0 - p for p in reversed(self.corner_p))]
        return [*self.lines, *images], turns


def iterated(region: Lines, times: int, tolerance: float) -> Lines:
    """The region of so many steps, by squaring; each product is thinned.

    >>> region = iterated(Lines.of([(0.5, 0.0)]), 3, 1e-6)
    >>> round(region.epsilon[0], 12), region.delta[0]
    (1.5, 0.0)
    """
    square, made = region, None
    while True:
        if times & 1:
            made = square if made is None else square.after(made).thinned(tolerance)
        times >>= 1
        if not times:
            return made if made is not None else region
        square = square.after(square).thinned(tolerance)


def _corner(steep: Line, flat: Line) -> tuple[float, float]:
    """Where two lines meet: (q, p)."""
    less = -math.expm1(flat[0] - steep[0])
    rise = flat[1] - steep[1]
    return math.exp(-steep[0]) * rise / less, flat[1] + (1.0 - less) * rise / less
