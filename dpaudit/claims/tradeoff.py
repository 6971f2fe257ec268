"""f-DP: a trade-off between the two errors of telling the datasets apart, as a function, as a table, or Gaussian."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import exact
from dpaudit.claims.claim import POINTS, Claim, HalfPlane, Relation, key
from dpaudit.claims.profile import Line, Lines, OfLines, pair, sequence
from dpaudit.claims.rounding import UNIT, crossing, up
from dpaudit.errors import InvalidSpec

Point = tuple[float, float]

NOISE = 1e-12  # what a table's or a function's own rounding may break of convexity and of f(x) <= 1 - x
RIGHT_TO = 4e-16  # the values of a function are taken to be this right
NEAREST, PER_DECADE = 1e-12, 128  # the grid for a function: how near the ends, and how fine
COARSER = 1e-4  # by which the region of a function may grow for the sake of a short table


def _checked(name: str, given: Any) -> tuple[Point, ...]:
    if callable(given):
        return _tabulated(given)
    points: list[Point] = []
    for at, each in enumerate(sequence(name, given)):
        x, y = pair(f"f[{at}]", each)
        points.append((validate.probability(f"type I error of f[{at}]", x), validate.probability(_named(x), y)))
    if not points or points[0][0] != 0.0 or points[-1][0] != 1.0:
        ends = f"{points[0][0]:g} to {points[-1][0]:g}" if points else "no point"
        raise InvalidSpec(f"f must have points from a type I error of 0 to one of 1, got {ends}; add the ends")
    _check_shape(points)
    return tuple(points)


def _named(x: object) -> str:
    return f"f({x:g})" if isinstance(x, int | float) else f"f({x!r})"


def _check_shape(points: Sequence[Point]) -> None:
    """Raises `InvalidSpec` at the first point that no trade-off function has."""
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        if x2 <= x1:
            raise InvalidSpec(f"f must have rising type I errors, got {x2!r} after {x1!r}; sort the points")
        if y2 > y1 + NOISE:
            raise InvalidSpec(f"f must not rise, got f({x2!r}) = {y2!r} after f({x1!r}) = {y1!r}")
    for x, y in points:
        if y > 1.0 - x + NOISE:
            raise InvalidSpec(f"f must be at most 1 - x, got f({x!r}) = {y!r}; no pair of datasets has such errors")
    for (x1, y1), (x2, y2), (x3, y3) in zip(points, points[1:], points[2:], strict=False):
        if y2 > y1 + (y3 - y1) * ((x2 - x1) / (x3 - x1)) + NOISE:
            raise InvalidSpec(
                f"f must be convex, got f({x2!r}) = {y2!r} above the line through its neighbours; "
                "take the lower convex hull"
            )


@dataclass(frozen=True, slots=True)
class TradeOffDP(OfLines):
    """f-DP: a test of level x has a type II error of at least f(x) (Dong, Roth & Su 2022, definition 2.3).

    The claim is P(S) <= 1 - f(Q(S)) for both orders, so that f counts as the larger of f and its inverse. `f` is a
    sequence of points (type I error, type II error) from a type I error of 0 to one of 1, joined by straight lines;
    or a function on [0, 1]. Either is convex, non-increasing and at most 1 - x; anything else raises `InvalidSpec`
    naming the point. A function is called on a grid and replaced by a table that allows a little more, never less:
    its chords, extended beyond their ends, lie below a convex f. The table is what the claim stores, as `outer`: good
    for an accusation, and a proof of it would be none of f. A proof asks `least_error`, the function itself.

    Its family is the region with a number added to the epsilon of each of its lines.

    >>> claim = TradeOffDP([(0.0, 0.9), (0.1, 0.5), (0.4, 0.1), (1.0, 0.0)])
    >>> round(claim.delta, 9), round(claim.max_probability(0.1), 9)
    (0.0, 0.5)
    >>> claim = TradeOffDP(lambda x: max(0.0, 0.9 - 2.0 * x, 0.5 * (0.9 - x)))
    >>> round(claim.epsilon_at(0.2), 3)
    0.511
    """

    f: Sequence[Point] | Callable[[float], float] = field(
        metadata=key("a trade-off function: points [type I error, least type II error]", _checked, POINTS, "trade_off")
    )
    relation: Relation | None = field(default=None)
    outer: bool = field(default=False, repr=False)
    _region: Lines = field(init=False, repr=False, compare=False)
    _function: Callable[[float], float] | None = field(init=False, repr=False, compare=False)

    example: ClassVar[tuple[Any, ...]] = (((0.0, 0.9), (0.1, 0.5), (0.4, 0.1), (1.0, 0.0)),)
    form: ClassVar[str] = "TradeOffDP"
    stored: ClassVar[str] = "points (type I error, least type II error); `outer` where they allow more than f"

    def __post_init__(self) -> None:
        function = self.f if callable(self.f) else None
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "outer", bool(self.outer) or function is not None)
        OfLines.__post_init__(self)
        object.__setattr__(self, "_region", Lines.of(_lines(self.table)))

    @property
    def table(self) -> tuple[Point, ...]:
        """The points (type I error, type II error) that the claim keeps."""
        assert isinstance(self.f, tuple)
        return self.f

    def least_error(self, x: float) -> float:
        """f(x) as it was claimed, to the last digits; infinite, so that nothing is proved, where it is not known."""
        if self._function is not None:
            return _value(self._function, x)
        errors, missed = zip(*self.table, strict=True)
        return math.inf if self.outer else float(np.interp(x, errors, missed))

    def __reduce__(self) -> tuple[Any, ...]:  # a function may be one that cannot be pickled
        return TradeOffDP, (self.table, self.relation, self.outer)

    @property
    def short(self) -> str:
        return "a trade-off curve"

    def promise(self, other: str) -> str:
        return (
            f"who guesses from an output whether one dataset or {other} was used errs at least as often, in either way "
            "of erring, as the curve says"
        )

    def __str__(self) -> str:
        return f"trade-off function of {len(self.table)} points"


def _lines(table: Sequence[Point]) -> list[Line]:
    """The lines of 1 - f as (epsilon, delta), those of a slope below 1 as their mirror images.

    Rounded outwards: no point of the table lies above a line, as far as doubles can tell.
    """
    hull: list[Point] = []
    for x, y in ((x, min(y, 1.0 - x)) for x, y in table):
        while len(hull) > 1 and _above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    below, f = np.array([x for x, _ in table]), np.array([min(y, 1.0 - x) for x, y in table])
    lines: list[Line] = []
    for (x1, y1), (x2, y2) in itertools.pairwise(hull):
        fall, width = y1 - y2, x2 - x1
        if fall >= width:  # p <= R q + d through both points
            slope = up(fall / width)
            lines.append((up(math.log(slope)), _intercept(below, f, slope)))
        elif fall > 0.0:  # the mirror image exchanges q and 1 - p, which is f
            slope = up(width / fall)
            lines.append((up(math.log(slope)), _intercept(f, below, slope)))
    return [line for line in lines if line[1] < 1.0] or [(0.0, 1.0)]


def _intercept(q: Reals, f: Reals, slope: float) -> float:
    """The least delta at which a line of this slope lies above all points (q, 1 - f)."""
    delta = float(np.max(1.0 - f - slope * q))
    return delta + RIGHT_TO if delta > 0.0 else 0.0


def _above(left: Point, middle: Point, right: Point) -> bool:
    return (middle[1] - left[1]) * (right[0] - left[0]) >= (right[1] - left[1]) * (middle[0] - left[0])


def _tabulated(f: Callable[[float], float]) -> tuple[Point, ...]:
    """A table below f: between two points of the grid f lies above the chords of the neighbouring intervals."""
    half = np.geomspace(NEAREST, 0.5, int(PER_DECADE * math.log10(0.5 / NEAREST)))
    grid = [0.0, *half.tolist(), *(1.0 - half[-2::-1]).tolist(), 1.0]
    points = [(x, _value(f, x)) for x in grid]
    _check_shape(points)
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in itertools.pairwise(points)]
    below = [_lowest(points[i], points[i + 1], slopes, i) for i in range(len(slopes))]
    table = [*below, (1.0, 0.0)] if below[-1][0] < 1.0 else below
    rows: list[Point] = []
    for q, p in Lines.of(_lines(table)).thinned(COARSER).vertices():
        if not rows or q > rows[-1][0]:
            rows.append((q, max(0.0, 1.0 - p - RIGHT_TO)))
    return (*rows[:-1], (1.0, 0.0)) if rows[-1][0] == 1.0 else (*rows, (1.0, 0.0))


def _value(f: Callable[[float], float], x: float) -> float:
    try:
        value = f(x)
    except Exception as error:
        raise InvalidSpec(f"f({x!r}) failed with {type(error).__name__}: {error}") from None
    return validate.probability(f"f({x!r})", value.item() if hasattr(value, "item") else value)


def _lowest(left: Point, right: Point, slopes: Sequence[float], i: int) -> Point:
    """The lowest point that f may have between two neighbours of the grid: where the chords beside them meet."""
    width, chord = right[0] - left[0], slopes[i]
    if i == 0:
        return 0.0, _lowered(right[1] - slopes[1] * width)
    before = slopes[i - 1]
    if i + 1 == len(slopes):
        reach = min(width, -left[1] / before) if before < 0.0 else width
        return left[0] + reach, _lowered(left[1] + before * reach)
    after = slopes[i + 1]
    part = width * (after - chord) / (after - before) if after > before else width / 2.0
    part = min(width, max(0.0, part))
    return left[0] + part, _lowered(min(left[1] + before * part, right[1] - after * (width - part)))


def _lowered(value: float) -> float:
    return max(0.0, value - 4.0 * RIGHT_TO)


# --- Gaussian DP: telling the datasets apart is as hard as telling N(0, 1) from N(mu, 1) ---

STEEPEST = 700.0  # the largest logarithm of a tangent's slope: e^700 still is a number
CLOSEST = 1e-12  # to 0 or 1: nearer points of a search count as this one
FLOOR = 1e-300  # what underflow may hide
TINY = 1e-290  # of a delta: below it doubles run out


@dataclass(frozen=True, slots=True)
class GaussianDP(Claim):
    """mu-GDP: P(S) <= Phi(PhiInv(Q(S)) + mu) (Dong, Roth & Su 2022, definition 2.6).

    `mu` is at least 0. Raises `InvalidSpec` for NaN, a negative or an infinite value.

    >>> claim = GaussianDP(mu=1.0)
    >>> round(claim.max_probability(0.5), 4)
    0.8413
    >>> round(claim.epsilon_at(1e-5), 4), round(claim.delta_at(1.0), 4)
    (4.3772, 0.1269)
    >>> claim.at_distance(3)
    GaussianDP(mu=3.0, relation=None)
    """

    mu: float = field(metadata=key("Gaussian DP", validate.not_negative, ge=0.0))
    relation: Relation | None = field(default=None)

    example: ClassVar[tuple[Any, ...]] = (1.0,)
    form: ClassVar[str] = "GaussianDP"
    parameter: ClassVar[str] = "mu"

    def max_probability(self, q: float) -> float:
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(validate.probability("q", q)) + self.mu))

    def tangent(self, q: float) -> HalfPlane:
        from scipy.special import ndtri

        z = float(ndtri(validate.probability("q", q)))
        epsilon = min(STEEPEST, max(-STEEPEST, -self.mu * (z + self.mu / 2.0))) if self.mu else 0.0
        return HalfPlane(up(math.exp(epsilon)), profile(self.mu, epsilon))

    def epsilon_at(self, delta: float) -> float:
        return _epsilon_at(self.mu, validate.probability("delta", delta))

    def delta_at(self, epsilon: float) -> float:
        return profile(self.mu, validate.real("epsilon", epsilon))

    def lower(self, epsilon: float, delta: float) -> float:
        return _lower(validate.real("epsilon", epsilon), validate.probability("delta", delta))

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        from scipy.special import ndtri

        with np.errstate(invalid="ignore"):
            difference = np.asarray(ndtri(p)) - np.asarray(ndtri(q))
        return np.where(np.isnan(difference), -np.inf, difference)

    def delta_through(self, q: float, p: float) -> float:
        from scipy.special import ndtri

        q, p = (min(1.0 - CLOSEST, max(CLOSEST, validate.probability("q or p", each))) for each in (q, p))
        q, p = (q, p) if q + p <= 1.0 else (1.0 - p, 1.0 - q)
        low, high = float(ndtri(q)), float(ndtri(p))
        slope = math.exp(min(STEEPEST, (low - high) * (low + high) / 2.0))
        return min(1.0, max(0.0, p - slope * q))

    def of_groups(self, k: int) -> "GaussianDP":
        """Group privacy: k times mu (Dong, Roth & Su 2022, theorem 2.14)."""
        return GaussianDP(k * self.mu, self.relation)

    def promise(self, other: str) -> str:
        return (
            f"from an output, one dataset and {other} are no easier to tell apart than two normal distributions of "
            f"standard deviation 1 whose means are {exact(self.mu)} apart"
        )

    def __str__(self) -> str:
        return f"{self.mu:g}-GDP"


def profile(mu: float, epsilon: float) -> float:
    """delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), rounded up, for any real epsilon.

    Dong, Roth & Su 2022, corollary 2.13 (Balle & Wang 2018, theorem 8). With a, b = epsilon/mu -+ mu/2 it is
    phi(a) (M(a) - M(b)), M the Mills ratio: no product of a huge and a tiny number. What rounding may have cost is
    added: the terms' own errors, and that of a, which moves delta by at most Phi(-b) e^epsilon times mu a unit.

    >>> round(profile(1.0, 0.0), 6)
    0.382925
    """
    from scipy.special import erfcx

    if mu == 0.0 or epsilon == math.inf:
        return _excess(epsilon)
    centre = epsilon / mu
    a, b = centre - mu / 2.0, centre + mu / 2.0
    if a > 38.5 or b < -38.5:  # beyond the smallest double
        return min(1.0, _excess(epsilon) + FLOOR)
    density = math.exp(-a * a / 2.0)
    second = 0.5 * density * float(erfcx(b / math.sqrt(2.0))) if b > -36.0 else math.exp(epsilon)
    first = 0.5 * density * float(erfcx(a / math.sqrt(2.0))) if a > 0.0 else 0.5 * math.erfc(a / math.sqrt(2.0))
    argument = (abs(centre) + mu) * UNIT  # of a and of b
    slack = (first + second) * (8.0 + a * a) * UNIT + 2.0 * density * argument
    return min(1.0, max(0.0, first - second) + slack + FLOOR)


def _excess(epsilon: float) -> float:
    return -math.expm1(epsilon) if epsilon < 0.0 else 0.0


@lru_cache(maxsize=1 << 15)
def _epsilon_at(mu: float, delta: float) -> float:
    """The root of profile(mu, epsilon) = delta, from above."""
    if mu == 0.0 or delta == 1.0 or profile(mu, 0.0) <= delta:
        return 0.0
    if delta <= TINY:
        return math.inf
    low, high = 0.0, mu * (mu / 2.0 + 1.0)
    if high == math.inf:
        return math.inf
    while profile(mu, high) > delta:
        low, high = high, high * 1.5
    target = math.log(delta)
    return crossing(lambda epsilon: math.log(profile(mu, epsilon)) - target, low, high)[1]


@lru_cache(maxsize=1 << 15)
def _lower(epsilon: float, delta: float) -> float:
    """The root of profile(mu, epsilon) = delta in mu, from below."""
    if epsilon <= 0.0 or delta <= TINY:
        return 0.0
    if delta == 1.0 or epsilon == math.inf:
        return math.inf
    low, high = 0.0, 1.0
    while profile(high, epsilon) <= delta:
        low, high = high, high * 1.5
    target = math.log(delta)
    return crossing(lambda mu: target - math.log(max(FLOOR, profile(mu, epsilon))), low, high)[0]
