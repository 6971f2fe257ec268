"""Certified bounds from one training run: m canaries, each put in or left out by a fair coin of its own.

Steinke, Nasr & Jagielski 2023, theorem 5.2, which holds given the output, so the number of guesses may be any function
of the scores; with delta the proof of docs/statistics/training.md. Where that number is random and delta > 0, the two
terms are bounded apart, with `DELTA_SHARE` of alpha for the second.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Any

import numpy as np

from dpaudit.certify.binomial import SLACK, lower_limit, upper_tail
from dpaudit.claims import Claim, GaussianDP
from dpaudit.claims.rounding import least, narrowed
from dpaudit.errors import InvalidSpec

DELTA_SHARE = 0.1  # of the error probability goes to the delta part where the number of guesses is random
LARGEST_EPSILON = 40.0

WITHIN = (
    "one training run (or several); a fair coin of its own, independent of all else, decided for every canary "
    "whether it was in; all canaries of the coins are scored, and the scores do not use the coins"
)


@dataclass(frozen=True, slots=True)
class Guesses:
    """`right` of `made` guesses about `canaries` canaries; `fixed` where their number was known before the run."""

    right: int
    made: int
    canaries: int
    fixed: bool

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.made <= self.canaries:
            raise InvalidSpec(
                f"guesses must have 0 <= right <= made <= canaries, got {self.right}, {self.made}, {self.canaries}"
            )


def guess_ends(scores: Any, members: Any, ends: tuple[int, int], rng: Any) -> Guesses:
    """Guesses "in" for the `ends[0]` highest scores and "out" for the `ends[1]` lowest.

    `scores` and `members` (bools) are arrays of shape (canaries,). Ties at the cut are broken by `rng`, never by the
    order of the file, which may know the coins.

    >>> import numpy as np
    >>> scores, members = np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False])
    >>> guess_ends(scores, members, (1, 1), np.random.default_rng(0))
    Guesses(right=2, made=2, canaries=4, fixed=True)
    """
    high, low = ends
    if high < 0 or low < 0 or high + low > scores.size:
        raise InvalidSpec(f"guesses must be two numbers that {scores.size} canaries allow together, got {ends}")
    mixed = rng.permutation(scores.size)
    order = mixed[np.argsort(scores[mixed], kind="stable")]
    right = int(members[order[scores.size - high :]].sum()) + int((~members[order[:low]]).sum())
    return Guesses(right, high + low, int(scores.size), fixed=True)


def p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """The least error probability at which (epsilon, delta)-DP is refuted, rounded up.

    >>> round(p_value(Guesses(right=9, made=10, canaries=100, fixed=True), 0.0, 0.0), 6)  # 11 / 2^10
    0.010742
    """
    q = 1.0 / (1.0 + math.exp(-epsilon))
    tail = upper_tail(guesses.right, guesses.made, min(1.0, q * (1.0 + 1e-15)))
    if delta == 0.0 or guesses.right == 0:
        return tail
    excess = guesses.canaries * (1.0 - q) * delta * steepest(guesses.made, q, guesses.right) * (1.0 + SLACK)
    if guesses.fixed:
        return min(1.0, tail + excess)
    return min(1.0, max(tail / (1.0 - DELTA_SHARE), excess / DELTA_SHARE))


def epsilon_lower(guesses: Guesses, delta: float, alpha: float) -> float:
    """The largest epsilon at `delta` that is refuted at error probability `alpha`; 0.0 where there is none.

    With delta = 0 it is the logit of the lower Clopper-Pearson limit of the part of right guesses.

    >>> round(epsilon_lower(Guesses(right=100, made=100, canaries=100, fixed=True), 0.0, 0.05), 4)
    3.493
    """
    if p_value(guesses, 0.0, delta) > alpha:
        return 0.0
    return narrowed(lambda epsilon: p_value(guesses, epsilon, delta) <= alpha, 0.0, LARGEST_EPSILON, 1e-7)[0]


@lru_cache(maxsize=4096)
def steepest(number: int, q: float, right: int | None = None) -> float:
    """The mean over k < made of the largest Pr(Bin(k, q) = w), rounded up; w from right - made + k to right - 1.

    Without `right`, w is any number.
    """
    from scipy.special import gammaln

    k = np.arange(number + 0.0)
    mode = np.clip(np.floor((k + 1.0) * q), 0.0, k)
    if right is not None:
        mode = np.clip(mode, right - number + k, right - 1.0)
    missed = k - mode
    log = gammaln(k + 1.0) - gammaln(mode + 1.0) - gammaln(missed + 1.0) + mode * math.log(q)
    if q < 1.0:
        log = log + missed * math.log1p(-q)
    return float(np.minimum(1.0, np.exp(log) * (1.0 + 1e-9)).mean())


# --- if canaries are answered independently: the product form (Xiang, Wang, Wang & Liu 2025) ---

# It is no certificate: mechanisms that answer all canaries, or none, are put above their claim (`benchmarks one_run`;
# the proof: docs/statistics/training.md).

CELLS = 256  # of equal probability, for the part beyond z; each takes its most favourable end
MOST_MU = 40.0
SHARE = 0.65  # of the canaries guessed: near the best for every mu from .1 to 3


def wrong_beyond(mu: Any, share: Any) -> Any:
    """The chance that a guess about one of the `share` most extreme scores is wrong; arrays that go together."""
    from scipy.special import ndtr, ndtri

    low, high = np.maximum(0.0, mu / 2.0 - ndtri(share)), np.asarray(mu / 2.0 - ndtri(share / 2.0))
    for _ in range(32):
        z = (low + high) / 2.0
        inside = ndtr(mu / 2.0 - z) + ndtr(-mu / 2.0 - z) > share
        low, high = np.where(inside, z, low), np.where(inside, high, z)
    return ndtr(-mu / 2.0 - high) / share


def mu_that_wins(accuracy: float, share: float) -> float:
    """The least mu at which so large a part of guesses about the `share` most extreme canaries is right on average."""
    return float(np.interp(accuracy, *_accuracies(share), right=math.inf))


@lru_cache(maxsize=1024)
def _accuracies(share: float) -> tuple[Any, Any]:
    mus = np.concatenate([[0.0], np.geomspace(1e-3, 30.0, 400)])
    return 1.0 - wrong_beyond(mus, share), mus


def largest_chance(guesses: Guesses, mu: float) -> float:
    """The probability of so few mistakes if all canaries are independent and within mu-GDP, rounded up."""
    from scipy.special import bdtr, betaincinv, ndtr

    r, m, wrong = guesses.made, guesses.canaries, guesses.made - guesses.right
    if wrong == r:
        return 1.0
    if r == m:
        return min(1.0, float(bdtr(wrong, r, ndtr(-mu / 2.0))) * (1.0 + SLACK))
    beyond = betaincinv(r + 1.0, float(m - r), np.arange(1, CELLS + 1) / CELLS)
    # the further out, the surer the guess: each cell at its least part beyond, the first at the far end of the tails
    beyond = np.concatenate([[betaincinv(r + 1.0, float(m - r), 1e-6 / CELLS)], beyond[:-1]])
    return min(1.0, (float(bdtr(wrong, r, wrong_beyond(mu, beyond)).mean()) + 1e-6 / CELLS) * (1.0 + SLACK))


def mu_lower(guesses: Guesses, alpha: float) -> float:
    """The largest mu that is refuted at `alpha` if the canaries are independent; 0.0 where there is none."""
    if largest_chance(guesses, 0.0) > alpha:
        return 0.0
    return narrowed(lambda mu: largest_chance(guesses, mu) <= alpha, 0.0, MOST_MU, 1e-5)[0]


# --- against a whole trade-off curve (Mahloujifar, Melis & Chaudhuri 2025, theorem 9 and algorithm 3) ---

# Let p_i be the probability of exactly i right of c guesses about m canaries, and p <= G(q) the claim's region.
# Flipping the coin of one canary turns "right, i in all" into "wrong, i - 1 in all"; averaged, as G is concave,
#
#     sum_{i in A} i p_i / m <= G( sum_{i in A} (c - i + 1) p_{i-1} / m )    for every set A.
#
# Take the tails A = {i, ..., c}: from an assumed Pr(at least v right) = tau, the probabilities below v are forced up
# one by one. Where they come to more than 1, tau was too large: the claim is refuted at tau. The number of guesses is
# fixed before the run, and may differ from claim to claim: nothing is paid for the choice.

LEAST = 1e-15  # the least tau that is tried
ROUNDING = 1e-12  # what a value of the region may be wrong by
POWER = 0.9  # with which a number of guesses refutes: it has slack for one error more
STEP = 1.15  # between two values of a parameter that have numbers of guesses of their own
STEPS = 24  # of them on each side of the claim's value
Region = Callable[[float], float]


def region_of(claim: Claim) -> Region:
    """The claim's G; that of a Gaussian claim without its checks, which take most of the time."""
    if not isinstance(claim, GaussianDP):
        return claim.max_probability
    normal, mu = NormalDist(), claim.mu

    def region(q: float) -> float:
        return normal.cdf(normal.inv_cdf(q) + mu) if 0.0 < q < 1.0 else q

    return region


def is_refuted(guesses: Guesses, region: Region, alpha: float) -> bool:
    """Whether `region` (G, concave, symmetric in the two orders) cannot give this many right guesses at `alpha`.

    >>> from dpaudit.claims import PureDP
    >>> is_refuted(Guesses(right=10, made=10, canaries=10, fixed=True), PureDP(0.0).max_probability, 0.01)
    True
    """
    c, m = guesses.made, guesses.canaries
    if c == 0:
        return False
    right, wrong = alpha * guesses.right / m, alpha * (c - guesses.right) / m
    most = (c / m) * (1.0 + SLACK)
    for i in range(guesses.right - 1, -1, -1):
        # G^-1 of a region that holds in both orders: q >= 1 - G(1 - p)
        least = 1.0 - region(1.0 - right) - ROUNDING
        if least <= wrong or right + wrong > most:
            break  # nothing is forced any more, here or below; or more than there is
        right = min(1.0, right + i / (c - i) * (least - wrong))
        wrong = least
    return right + wrong > most


def least_right(region: Region, number: int, canaries: int, alpha: float, low: int) -> int:
    """The least number of right guesses above `low` that refutes at `alpha`; `made` + 1 where none does."""
    return least(lambda v: is_refuted(Guesses(v, number, canaries, fixed=True), region, alpha), low, number + 1)


def curve_p_value(guesses: Guesses, claim: Claim) -> float:
    """The least error probability at which the claim is refuted, rounded up; 1.0 where none is."""
    region = region_of(claim)
    if not is_refuted(guesses, region, 1.0):
        return 1.0
    return math.exp(narrowed(lambda log: not is_refuted(guesses, region, math.exp(log)), math.log(LEAST), 0.0, 1e-6)[1])


@lru_cache(maxsize=1024)
def guesses_for(claim: Claim, canaries: int, alpha: float) -> int:
    """The number of guesses that refutes the claim at `alpha` with `POWER` for the weakest Gaussian leak.

    It is known before the run. Looked for among coarse shares of the canaries, then among finer ones near the best.
    """
    region = region_of(claim)

    def needed(number: int) -> float:
        right = least_right(region, number, canaries, alpha, number // 2)
        return mu_that_wins(lower_limit(right, number, POWER), number / canaries) if right <= number else math.inf

    coarse = [max(1, round(canaries * math.pow(2.0, -i / 2.0))) for i in range(19)]
    best = min(coarse, key=needed)
    near = [min(canaries, max(1, round(best * math.pow(2.0, i / 8.0)))) for i in (0, -3, -2, -1, 1, 2, 3)]
    return min(near, key=needed)


def parameter_lower(right: Any, claim: Claim, alpha: float, given: Guesses | None = None) -> tuple[float, Guesses]:
    """(The largest value of the claim's parameter up to which all are refuted, the guesses that end there).

    Each step of the values, which the claim's own value ends one of, has its number of guesses. `right` are bools,
    shape (canaries,), the most extreme score first (`ranked`); `claim` has a value above 0. With `given`,
    those guesses instead.
    """
    assert claim.value

    def refuted(guesses: Guesses, value: float) -> bool:
        return is_refuted(guesses, region_of(claim.with_value(value)), alpha)

    unit = 1.0 if isinstance(claim, GaussianDP) else claim.value
    for start, end in pairwise(sorted({0.0, claim.value, *(unit * STEP**i for i in range(-STEPS, STEPS + 1))})):
        guesses = given or guessed(right, claim.with_value(end), alpha)
        if not refuted(guesses, end):
            return narrowed(partial(refuted, guesses), start, end, 1e-7)[0], guesses
    return end, guesses


def guessed(right: Any, claim: Claim, alpha: float) -> Guesses:
    """The guesses whose number is that of `guesses_for`, from `right`, the most extreme score first."""
    number = guesses_for(claim, int(right.size), alpha)
    return Guesses(int(right[:number].sum()), number, int(right.size), fixed=True)


# --- weighted guesses: the surer a guess, the more it counts (the proof: docs/statistics/training.md) ---

# Only ranks say which score gets which weight. A bound on epsilon tries each epsilon in turn, from 0, and ends
# at the first that is not refuted. So every epsilon may have its own design, at no cost: the one for which the weakest
# Gaussian leak is refuted. A step of `EPSILONS` shares one; within it the tail only grows with epsilon and the second
# term is taken at its start.

TAIL_SLACK = 1e-7  # relative, of a tail: many times what the transform loses
EPSILONS = (0.0, *(0.1 * 1.15**i for i in range(42)))  # of epsilon, to 30
LEVELS = 4  # weights of a design
WIDTHS = (1.4, 0.5, 0.0)  # from the first weight to the last, in standard deviations; less where delta asks for more
MOST_LEAK = 30.0


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
    return min(1.0, math.exp(back) * float(np.dot(mass[part], np.exp(-theta * above[part]))) * (1.0 + TAIL_SLACK))


def excess(design: Weights, canaries: int, q: float, delta: float) -> float:
    """What delta adds to the tail: m (1 - q) delta C, rounded up."""
    if delta == 0.0 or q >= 1.0:
        return 0.0
    each = list(zip(design.weights, design.counts, strict=True))
    most = max(min(-(-k // w) * steepest(n + (w != k), q) for w, n in each) for k, _ in each)
    return canaries * (1.0 - q) * delta * min(1.0, most)


def weighted_p_value(design: Weights, v: int, canaries: int, epsilon: float, delta: float) -> float:
    """The least error probability at which (epsilon, delta)-DP is refuted by the weight v, rounded up."""
    q = _q(epsilon)
    return min(1.0, tail(design, v, q) + excess(design, canaries, q, delta))


def weighted_lower(
    right: Any, delta: float, alpha: float, event: str = "both", claimed: float | None = None
) -> tuple[float, float | None, Weights]:
    """(The largest epsilon up to which all are refuted at `delta`, the p-value of the claimed one, the last design).

    A step ends at `claimed`; it is refuted where all below are, so the p-value is not below that of the step that
    ended the search. The bound is 0.0 where there is none.

    >>> import numpy as np
    >>> round(weighted_lower(np.ones(100, dtype=bool), 0.0, 0.05)[0], 2)
    3.49
    """
    canaries, p, refuted = int(right.size), 0.0, True
    bound, last = 0.0, None
    for start, end in pairwise(sorted({*EPSILONS, claimed or 0.0})):
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
    best, winner = MOST_LEAK, Weights((1,), (math.ceil(size),))
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
