"""Certified bounds from one run by weighted guesses: the surer a guess, the more it counts.

Only the ranks of the scores say who gets which weight; the proof: docs/statistics/training.md. *A bound on epsilon*
tries each epsilon in turn, from 0, and ends at the first that is not refuted. So every epsilon may have its own design,
at no cost: the one for which the weakest Gaussian leak is refuted. `STEPS` of epsilon share one; within
a step the tail only grows with epsilon and the second term is taken at its start.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from dpaudit.certify.binomial import upper_tail
from dpaudit.claims.rounding import narrowed
from dpaudit.scores.one_run import steepest

SLACK = 1e-7  # relative, of a tail: many times what the transform loses
STEPS = (0.0, *(0.1 * 1.15**i for i in range(42)))  # of epsilon, to 30
LEVELS = 4  # weights of a design
WIDTHS = (1.4, 0.5, 0.0)  # from the first weight to the last, in standard deviations; less where delta asks for more
MOST_MU = 30.0


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of the most extreme `counts[0]` canaries is `weights[0]`, of the next `counts[1]` `weights[1]`, ..."""

    weights: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def guesses(self) -> int:
        """How many canaries are guessed."""
        return sum(self.counts)

    @property
    def total(self) -> int:
        """The weight of all guesses."""
        return sum(w * n for w, n in zip(self.weights, self.counts, strict=True))

    def won(self, right: Any) -> int:
        """The weight of the right guesses: `right` are bools, shape (canaries,), the most extreme score first."""
        ends = [0, *accumulate(self.counts)]
        return sum(w * int(right[a:b].sum()) for w, a, b in zip(self.weights, ends, ends[1:], strict=False))


def ranked(scores: Any, members: Any, rng: Any, event: str = "both") -> Any:
    """Whether the guess about each canary is right, the most extreme score first; bools, shape (canaries,).

    `event` "both": the highest score ("in"), the lowest ("out"), the second highest, ...; "in": from the highest down,
    "out": from the lowest up. Ties are broken by `rng`: another one for other data, as the order may know the coins.
    """
    mixed = rng.permutation(scores.size)
    coins = members[mixed[np.argsort(-scores[mixed], kind="stable")]]
    if event == "in":
        return coins
    if event == "out":
        return ~coins[::-1]
    right = np.empty(coins.size, dtype=bool)
    half = (coins.size + 1) // 2
    right[0::2], right[1::2] = coins[:half], ~coins[half:][::-1]
    return right


def tail(design: Weights, v: int, q: float) -> float:
    """Pr(sum of the weights of coins that show 1 with probability q >= v), rounded up.

    The law is tilted until v is its mean, which keeps the relative precision; then its lattice is summed by a Fourier
    transform of length beyond 12 standard deviations on each side, and tilted back.
    """
    if v <= 0:
        return 1.0
    if len(design.weights) == 1:
        return upper_tail(-(-v // design.weights[0]), design.guesses, q)
    if v > design.total:
        return 0.0
    w, n = np.array(design.weights, dtype=float), np.array(design.counts, dtype=float)
    if q >= 1.0:
        return 1.0
    low, high = 0.0, 40.0 / w.min()

    def tilted(theta: float) -> Any:
        return 1.0 / (1.0 + (1.0 - q) / q * np.exp(-theta * w))

    while high - low > 1e-3 * high and float(np.dot(w * n, tilted(0.0))) < v:
        middle = (low + high) / 2.0
        low, high = (middle, high) if float(np.dot(w * n, tilted(middle))) < v else (low, middle)
    theta, p = low, tilted(low)
    spread = math.sqrt(float(np.dot(w * w * n, p * (1.0 - p))))
    size = 1 << math.ceil(math.log2(min(design.total + 1, 26.0 * spread + 60.0 * float(w.max()))))
    start = 0 if size > design.total else int(np.dot(w * n, p)) - size // 2
    t = 2.0 * math.pi * np.arange(size // 2 + 1) / size
    log = sum(k * np.log1p(x * np.expm1(1j * each * t)) for each, k, x in zip(w, n, p, strict=True))
    mass = np.maximum(0.0, np.fft.irfft(np.conj(np.exp(log - 1j * start * t)), size))
    above = np.arange(size) + start - v
    part = above >= 0
    back = float(np.dot(n, np.log1p(q * np.expm1(theta * w)))) - theta * v if theta else 0.0
    return min(1.0, math.exp(back) * float(np.dot(mass[part], np.exp(-theta * above[part]))) * (1.0 + SLACK))


def excess(design: Weights, canaries: int, q: float, delta: float) -> float:
    """What delta adds to the tail: m (1 - q) delta C, rounded up."""
    if delta == 0.0 or q >= 1.0:
        return 0.0
    each = list(zip(design.weights, design.counts, strict=True))
    most = max(min(-(-k // w) * steepest(n + (w != k), q) for w, n in each) for k, _ in each)
    return canaries * (1.0 - q) * delta * min(1.0, most)


def p_value(design: Weights, v: int, canaries: int, epsilon: float, delta: float) -> float:
    """The least error probability at which (epsilon, delta)-DP is refuted by the weight v, rounded up."""
    q = _q(epsilon)
    return min(1.0, tail(design, v, q) + excess(design, canaries, q, delta))


def epsilon_lower(
    right: Any, delta: float, alpha: float, event: str = "both", claimed: float | None = None
) -> tuple[float, float | None, Weights]:
    """(The largest epsilon up to which all are refuted at `delta`, the p-value of the claimed one, the last design).

    A step ends at `claimed`; it is refuted where all below are, so the p-value is not below that of the step that
    ended the search. The bound is 0.0 where there is none.

    >>> import numpy as np
    >>> round(epsilon_lower(np.ones(100, dtype=bool), 0.0, 0.05)[0], 2)
    3.49
    """
    canaries, p, refuted = int(right.size), 0.0, True
    bound, last = 0.0, None
    for start, end in pairwise(sorted({*STEPS, claimed or 0.0})):
        own = end == claimed or start == claimed == 0.0
        if not refuted and not own:
            continue
        used = design(canaries, end, delta, alpha, event, start)
        v, left = used.won(right), alpha - excess(used, canaries, _q(start), delta)
        if claimed is not None and (own or (end < claimed and tail(used, v, _q(end)) > left)):
            p = max(p, min(1.0, tail(used, v, _q(claimed)) + alpha - left))
        if refuted:
            bound, last = _within(used, v, start, end, left), used
            refuted = bound == end
        if not refuted and end >= (claimed or 0.0):
            break
    assert last is not None
    return bound, None if claimed is None else p, last


def _within(used: Weights, v: int, low: float, high: float, left: float) -> float:
    """The largest epsilon of a step at which the tail is at most `left`; its start where there is none."""
    if tail(used, v, _q(high)) <= left:
        return high
    return narrowed(lambda epsilon: tail(used, v, _q(epsilon)) <= left, low, high, 1e-5)[0]


@lru_cache(maxsize=4096)
def design(
    canaries: int, epsilon: float, delta: float, alpha: float, event: str = "both", since: float | None = None
) -> Weights:
    """The design that refutes (epsilon, delta)-DP at `alpha` for the weakest Gaussian leak; known before the run.

    With `since`, it refutes all from that epsilon on.
    """
    size, q = canaries if event == "both" else canaries / 2.0, _q(epsilon)
    first = q if since is None else _q(since)
    best, winner = MOST_MU, Weights((1,), (math.ceil(size),))
    for width in WIDTHS if delta > 0.0 else WIDTHS[:1]:
        low, high = 0.0, best
        while high - low > 0.01 * high:
            middle = (low + high) / 2.0
            candidate, v = _expected(size, epsilon, middle, width)
            cost = 0.0 if candidate is None else excess(candidate, canaries, first, delta)
            if candidate is None or cost > alpha or tail(candidate, v, q) + cost > alpha:
                low = middle
            else:
                high, best, winner = middle, middle, candidate
        if excess(winner, canaries, first, delta) < 0.1 * alpha:
            break
    return winner


def tail_share(mu: float, z: float) -> tuple[float, float]:
    """(Part of the canaries whose score is at least z from the middle, part that is and is guessed right).

    Half the scores from N(mu/2, 1), half from N(-mu/2, 1); guessed by the side.
    """
    right, wrong = (0.5 * math.erfc((z + side * mu / 2.0) / math.sqrt(2.0)) for side in (-1.0, 1.0))
    return right + wrong, right


def _expected(canaries: float, epsilon: float, mu: float, width: float) -> tuple[Weights | None, int]:
    """The design for a leak of N(mu, 1) against N(0, 1), and the weight that it wins there on average, rounded down.

    A guess at a distance z from the middle is right with odds e^(mu z): worth mu z - epsilon where that is positive.
    """
    ends = [epsilon / mu + width * (i + 0.5) / LEVELS for i in range(LEVELS)]
    shares = [tail_share(mu, z) for z in ends] + [(0.0, 0.0)]
    counts = [round(canaries * (a[0] - b[0])) for a, b in pairwise(shares)]
    right = [canaries * (a[1] - b[1]) for a, b in pairwise(shares)]
    levels = [i for i in range(LEVELS - 1, -1, -1) if counts[i] > 0]
    if not levels:
        return None, 0
    won = sum((i + 1) * min(right[i], counts[i]) for i in levels)
    return Weights(tuple(i + 1 for i in levels), tuple(counts[i] for i in levels)), int(won)


def _q(epsilon: float) -> float:
    return min(1.0, (1.0 + 1e-15) / (1.0 + math.exp(-epsilon)))
