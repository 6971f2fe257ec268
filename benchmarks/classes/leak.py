"""A class of leak: a mechanism on a pair, and what the best event (Neyman & Pearson 1933) would certify."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Points = tuple[Floats, Floats]  # P(S) and Q(S) of the candidates for the best event
Rng = np.random.Generator

GRID = 40_000  # cells of a density
DRAWS = 400_000  # of a log ratio that has no closed law
LEAST_DRAWS = 30  # beyond a threshold of it
DRAWN = 400  # counts of an event, for the mean of its bound
TRIED = 8  # events that are near enough to be the best


@dataclass(frozen=True, slots=True)
class Leak:
    """One class: `sampler(data, runs, rng)`, or `(data, rng)` of one run, asked at `runs` of either dataset together.

    `points` are the candidates for the best event. `goal` is what certified over oracle should reach; `wanted`, where
    given, the part of the seeds that should refute instead. `kind` says which part of search should see it.
    """

    key: str
    kind: str
    title: str
    sampler: Callable[..., Any]
    pair: tuple[Any, Any]
    runs: int
    points: Callable[[], Points]
    claim: tuple[float, float] = (1.0, 0.0)
    goal: float = 0.9
    wanted: float | None = None
    confidence: float = 0.999
    order: float | None = None  # of a claim about a Rényi divergence
    alone: bool = False  # one run a call


def oracle(leak: Leak, certifying: int) -> float:
    """The mean of the bound that the best event certifies on so many runs; with delta, that at the expected counts."""
    if leak.order is not None:
        return _divergence(leak, certifying)
    return _best(leak.points, leak.claim[1], leak.confidence, certifying)


@functools.lru_cache(maxsize=1024)
def _best(points: Callable[[], Points], delta: float, confidence: float, certifying: int) -> float:
    from dpaudit.certify import FixedSides
    from dpaudit.certify.unconditional import epsilon_lower

    half, alpha = certifying // 2, 1.0 - confidence
    p, q = (np.minimum(each, 1.0) for each in points())
    rough = _pure(half * p, half * q, alpha) if delta == 0.0 else _shifted(half * p, half * q, half, delta, alpha)
    best = np.argsort(-rough)[:TRIED]
    if delta > 0.0:
        hits = {(round(half * float(p[j])), round(half * float(q[j]))) for j in best}
        return max(epsilon_lower(FixedSides(x, y, half, half), delta, alpha) for x, y in hits)
    rng = np.random.default_rng(0)
    return max(
        float(_pure(rng.binomial(half, p[j], DRAWN), rng.binomial(half, q[j], DRAWN), alpha).mean()) for j in best
    )


def _pure(x: Any, y: Any, alpha: float) -> Floats:
    """The coin-flip bound (`dpaudit.certify.coin_flip`), of counts that need not be whole."""
    from scipy.special import betaincinv

    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    other = betaincinv(y + 1.0, np.maximum(x, 1e-9), 1.0 - alpha)
    return np.where(other < 0.5, -np.log(np.maximum(other, 1e-300) / (1.0 - np.minimum(other, 0.5))), 0.0)


def _shifted(x: Floats, y: Floats, half: int, delta: float, alpha: float) -> Floats:
    from scipy.special import betaincinv

    low = betaincinv(np.maximum(x, 1e-9), half - x + 1.0, alpha / 2.0)
    high = betaincinv(y + 1.0, np.maximum(half - y, 1e-9), 1.0 - alpha / 2.0)
    return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -math.inf)


def _divergence(leak: Leak, certifying: int) -> float:
    """The largest bound of nested events at their expected counts; thresholds are moved one by one until none gains."""
    from dpaudit import RenyiDP
    from dpaudit.certify import Binned
    from dpaudit.certify.binned import parameter_lower

    assert leak.order is not None
    half, (p, q) = certifying // 2, leak.points()
    x, y = np.rint(half * p).astype(int), np.rint(half * q).astype(int)
    places = np.unique(np.searchsorted(p, np.geomspace(2e-6, 0.9, 60)))
    claim = RenyiDP(leak.order, leak.claim[0])

    def bound(cuts: Iterable[int]) -> float:
        ends = sorted(cuts)
        first, second = (tuple(int(v) for v in np.diff([0, *side[ends], half])) for side in (x, y))
        return parameter_lower(Binned(first, second, half, half), claim, 1.0 - leak.confidence)

    chosen: set[int] = set()
    best = 0.0
    while True:
        moves = [chosen | {a} for a in places] + [chosen - {b} for b in chosen]
        moves += [(chosen - {b}) | {a} for b in chosen for a in places]
        move = max((m for m in moves if m), key=bound)
        if bound(move) <= best + 1e-9:
            return best
        chosen, best = move, bound(move)


# --- laws ---------------------------------------------------------------------------------------------------------


def apart(mass: float) -> Points:
    """Outputs of this probability that the other side never shows."""
    return np.array([mass]), np.array([0.0])


def cells(p: Any, q: Any) -> Points:
    """All likelihood-ratio events of a law of disjoint outcomes, either side the likelier one."""
    sides = [np.asarray(side, np.float64).ravel() for side in (p, q)]
    found = []
    for one, other in (sides, sides[::-1]):
        kept = one > 0.0
        one, other = one[kept], other[kept]
        order = np.argsort(other / one, kind="stable")
        found.append((np.cumsum(one[order]), np.cumsum(other[order])))
    return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])


def sampled(draw: Callable[[bool, Rng], Floats], seed: int = 0) -> Points:
    """Of log ratios first over second that are drawn from either side: rare events are weighed by the ratio itself."""
    rng, found = np.random.default_rng(seed), []
    for first in (True, False):
        ratio = np.sort(draw(first, rng) * (1.0 if first else -1.0))[::-1]
        ends = np.unique(np.geomspace(LEAST_DRAWS, len(ratio), 600).astype(int)) - 1
        found.append(((ends + 1.0) / len(ratio), np.cumsum(np.exp(-ratio))[ends] / len(ratio)))
    return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])


def density(below: Callable[[Floats], Floats], low: float, high: float) -> Floats:
    """The masses of the cells of a grid, and of what lies outside, by a distribution function."""
    grid = np.linspace(low, high, GRID + 1)
    return np.diff(np.concatenate([[0.0], below(grid), [1.0]]))


def laplace_below(mean: float, scale: float) -> Callable[[Floats], Floats]:
    """The distribution function of Laplace noise around a value."""

    def below(points: Floats) -> Floats:
        away = (points - mean) / scale
        tail = 0.5 * np.exp(-np.abs(away))
        return np.where(away < 0.0, tail, 1.0 - tail)

    return below


def normal_below(mean: float, scale: float) -> Callable[[Floats], Floats]:
    """The distribution function of a normal law."""
    from scipy.special import ndtr

    return lambda points: np.asarray(ndtr((points - mean) / scale))


def laplace(shift: float, scale: float = 1.0) -> Points:
    """Laplace noise on a value, and on that value less `shift`."""
    low, high = -12.0 * scale, shift + 12.0 * scale
    return cells(*(density(laplace_below(mean, scale), low, high) for mean in (shift, 0.0)))


def normal(mu: float) -> Points:
    """Two normal laws of variance 1 at this distance."""
    return cells(*(density(normal_below(mean, 1.0), -9.0, 9.0 + mu) for mean in (mu, 0.0)))


def discrete_laplace(scale: float, values: npt.NDArray[np.int64]) -> Floats:
    """The masses of the discrete Laplace law (two-sided geometric) at these integers."""
    rate = math.exp(-1.0 / scale)
    return np.asarray((1.0 - rate) / (1.0 + rate) * rate ** np.abs(values).astype(np.float64))


def discrete_laplace_noise(rng: Rng, scale: float, runs: int) -> npt.NDArray[np.int64]:
    """Draws of it."""
    chance = 1.0 - math.exp(-1.0 / scale)
    return rng.geometric(chance, runs) - rng.geometric(chance, runs)


def integers(shift: int, scale: float) -> Points:
    """Discrete Laplace noise on an integer, and on that integer less `shift`."""
    noise, none = discrete_laplace(scale, np.arange(-400, 401)), np.zeros(shift)
    return cells(np.append(none, noise), np.append(noise, none))


def rates(p: float, q: float) -> Points:
    """One outcome that tells, at these probabilities."""
    return cells([p, 1.0 - p], [q, 1.0 - q])
