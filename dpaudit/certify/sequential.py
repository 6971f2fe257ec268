"""Sequential tests: bets against a claim, valid at any time, and milestones where a deadline may cut.

A bet on an event, frozen before the block, names rates (p, q) outside the claim's region and an offset d; (p0, q0) is
the point of the claim's half-plane at d nearest to (p, q). A run on side P multiplies the wealth by p / p0 or
(1 - p) / (1 - p0), one on side Q by q / q0 or (1 - q) / (1 - q0). Under the claim that is a supermartingale, which
exceeds 1 / alpha at any time with probability alpha at the most (the proof: docs/statistics/anytime.md). The factor is
divided by its largest mean at the corners: rounding and an inexact nearest point cost wealth, never validity.

The nearest point minimises kl(p, p0) + kl(q, q0): the reverse information projection, against which the bet multiplies
its stake fastest (Grünwald, de Heide & Koolen 2024, theorem 1; for two Bernoulli streams Turner & Grünwald 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import AtLeastOne, OpenProbability, error_probability
from dpaudit.certify.certificate import Certificate
from dpaudit.certify.evidence import CoinFlip
from dpaudit.claims.claim import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event

STEPS, FEW_STEPS = 20, 8  # of Newton's method, halving where it leaves the bracket: to the last digit, and for scores


def nearest(p: Reals, q: Reals, ratio: Reals, offset: Reals, *, steps: int = STEPS) -> tuple[Reals, Reals]:
    """The points (p0, q0) with p0 <= ratio q0 + offset that minimise kl(p, p0) + kl(q, q0); all arrays broadcast.

    `p`, `q` lie strictly between 0 and 1, `ratio` is above 0 and may be infinite, `offset` is at least 0. A point
    that lies in the half-plane is its own nearest one. The equation is R (p0 - p) / (p0 (1 - p0)) = (q - q0) /
    (q0 (1 - q0)) on the line p0 = R q0 + d; it has one root between q and the end of the line at p.

    >>> p0, q0 = nearest(np.array(0.5), np.array(0.1), np.array(2.0), np.array(0.0))
    >>> round(float(p0), 4), round(float(q0), 4)
    (0.4194, 0.2097)
    """
    p, q, ratio, offset = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (p, q, ratio, offset)))
    inside = ~(p > ratio * q + offset)
    line, start = np.where(inside, 1.0, ratio), np.where(inside, 0.0, offset)
    low, high = np.where(inside, 0.5, q), np.where(inside, 0.5, (p - start) / line)
    spread = p * (1.0 - p) / (q * (1.0 - q))
    q0 = np.clip(q + (p - line * q - start) * line / (line**2 + spread), low, high)  # the nearest by variances
    for _ in range(steps):
        p0 = line * q0 + start
        odds_p, odds_q, past_p, past_q = p0 * (1.0 - p0), q0 * (1.0 - q0), p0 - p, q0 - q
        excess = line * past_p * odds_q + past_q * odds_p
        slope = line**2 * odds_q + line * past_p * (1.0 - 2.0 * q0) + odds_p + line * past_q * (1.0 - 2.0 * p0)
        low, high = np.where(excess < 0.0, q0, low), np.where(excess < 0.0, high, q0)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = q0 - excess / slope
        q0 = np.where((newton >= low) & (newton <= high), newton, np.sqrt(low * high))
    return np.where(inside, p, line * q0 + start), np.where(inside, q, q0)


def entropy(p: Reals, p0: Reals) -> Reals:
    """kl(p, p0), the relative entropy of two coins, for p strictly between 0 and 1.

    >>> round(float(entropy(np.array(0.5), np.array(0.1))), 4)
    0.5108
    """
    with np.errstate(divide="ignore"):
        return np.asarray(p * np.log(p / p0) + (1.0 - p) * np.log((1.0 - p) / (1.0 - p0)))


def growth(p: Reals, q: Reals, ratio: Reals, offset: Reals) -> Reals:
    """What a run adds to the log wealth of the best bet where (p, q) is the truth and each side is half the runs.

    To eight digits, but where rates are below 1e-4: there it may be a little too large.

    >>> round(float(growth(np.array(0.5), np.array(0.1), np.array(2.0), np.array(0.0))), 5)
    0.02805
    """
    p0, q0 = nearest(p, q, ratio, offset, steps=FEW_STEPS)
    return np.asarray((entropy(p, p0) + entropy(q, q0)) / 2.0)


METHOD = "anytime, bets on half-planes of the claim"
SLACK = 1e-15  # of a run's log factor: more than the rounding of its four logarithms
RUNGS_BELOW = tuple(1.05**-power for power in range(28, 0, -1))  # of the claimed value: the ladder begins at a quarter
STEP = 1.02  # between the rungs from the claimed value upwards
SMALLEST = 0.001  # the second rung where the claimed value is 0
HIGHEST = 700.0  # the ladder ends, e^epsilon being near the largest number
CHUNK = 16  # rungs that are tested together
OFFSETS = 64  # half-planes of a claim that bets choose among, at the most
RAREST = 1e-6  # the least q at which one of them touches the region


@dataclass(frozen=True, slots=True)
class Block:
    """Some runs of an anytime audit, and the bet that was frozen before them.

    The bet: `event` has rate `p` on side `p_side` and `q` on the other, both strictly between 0 and 1, against the
    claim's half-plane at the offset `delta`, 0 <= delta < 1. `evidence` counts the block's runs. Raises `InvalidSpec`.
    """

    event: Event
    p_side: Literal["first", "second"]
    p: OpenProbability
    q: OpenProbability
    delta: Annotated[float, ("ge", 0.0), ("lt", 1.0)]
    evidence: CoinFlip
    _KEYS: ClassVar = ("event", "event_in_words", "p_side", "p", "q", "delta", "evidence")  # of its stored form

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            object.__setattr__(self, name, validate.open_probability(f"{name} of a bet", getattr(self, name)))
        if not 0.0 <= self.delta < 1.0:
            raise InvalidSpec(f"delta of a bet must be at least 0 and below 1, got {self.delta:g}")
        if self.p_side not in ("first", "second"):
            raise InvalidSpec(f"p_side of a bet must be 'first' or 'second', got {self.p_side!r}")

    @property
    def event_in_words(self) -> str:
        """The event as it prints."""
        return str(self.event)


def log_factors(p: Reals, q: Reals, epsilon: Reals, delta: Reals) -> Reals:
    """What a run adds to the log wealth against p <= e^epsilon q + delta, in a last axis of four.

    They are: a hit on side P, a miss on side P, a hit on side Q, a miss on side Q. All 0 where (p, q) keeps to the
    half-plane. All arrays broadcast; `epsilon` may be infinite.

    >>> np.exp(log_factors(0.5, 0.1, math.log(2.0), 0.0)).round(3).tolist()
    [1.192, 0.861, 0.477, 1.139]
    """
    p, q, epsilon, delta = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (p, q, epsilon, delta)))
    with np.errstate(over="ignore"):
        ratio = np.exp(epsilon) * (1.0 + 4e-16)  # rounded up: a larger region
        bets = p > ratio * q + delta
    ratio, delta = np.where(bets, ratio, 1.0), np.where(bets, delta, 0.0)
    p0, q0 = nearest(np.where(bets, p, 0.5), np.where(bets, q, 0.5), ratio, delta)
    four = np.stack([p / p0, (1.0 - p) / (1.0 - p0), q / q0, (1.0 - q) / (1.0 - q0)], axis=-1)
    mean = np.maximum(1.0, _largest_mean(four, ratio, delta))
    return np.where(bets[..., None], np.log(four / mean[..., None]) - SLACK, 0.0)


def _largest_mean(four: Reals, ratio: Reals, delta: Reals) -> Reals:
    """The largest mean of a run's factor over the half-plane's part of the unit square: it is that of a corner."""
    hit_p, miss_p, hit_q, miss_q = np.moveaxis(four, -1, 0)

    def mean(p: Reals | float, q: Reals | float) -> Reals:
        return np.asarray((p * hit_p + (1.0 - p) * miss_p + q * hit_q + (1.0 - q) * miss_q) / 2.0)

    crosses = ratio + delta >= 1.0  # the line leaves the square at the top, not at the right
    top_p = np.where(crosses, 1.0, ratio + delta)
    top_q = np.where(crosses, (1.0 - delta) / ratio, 1.0)
    corners = [mean(0.0, 0.0), mean(0.0, 1.0), mean(delta, 0.0), mean(top_p, top_q), mean(top_p, 1.0)]
    return np.asarray(np.max(corners, axis=0))


def log_wealth(blocks: Sequence[Block], claim: Claim) -> Reals:
    """The log wealth at the end of each block, float64[blocks], from nothing but the blocks; it starts at 0.

    A block whose bet keeps to the claim at its delta leaves the wealth as it is.
    """
    if not blocks:
        return np.zeros(0)
    return _path(blocks, np.array([claim.epsilon_at(block.delta) for block in blocks]))


def p_value(blocks: Sequence[Block], claim: Claim) -> float:
    """An anytime p-value of the claim: one over the largest wealth at the end of a block so far, at most 1.

    Least wealth of the claim and of the stronger claims on the ladder below it, so that `lower` reaches the claimed
    value exactly where the p-value is as small as alpha.
    """
    rungs = [*_below(claim.value), claim.value] if claim.value is not None else []
    wealth = _best(blocks, [claim.with_value(rung) for rung in rungs] or [claim])
    return math.exp(-max(0.0, float(np.min(wealth))))


def lower(blocks: Sequence[Block], claim: Claim, alpha: float) -> float:
    """The largest rung of a ladder of claims such that it and all below are refuted at `alpha`; 0 where none is.

    The rungs are values of the claim's parameter, fixed beforehand, the claimed one among them. The least rung that is
    true is refuted with probability `alpha` at the most, so the bound holds, at all times at once. Forms without a
    scalar parameter (`PrivacyProfile`, `TradeOffDP`) have `epsilon_lower` for it.
    """
    if claim.value is None:
        return epsilon_lower(blocks, claim, alpha)[0]
    first = [*_below(claim.value), claim.value]
    return _climb(lambda rungs: _best(blocks, [*map(claim.with_value, rungs)]), first, math.log(1.0 / alpha))


def epsilon_lower(blocks: Sequence[Block], claim: Claim, alpha: float) -> tuple[float, float]:
    """A bound on epsilon at one delta, and that delta, whatever the form of the claim.

    Only bets at that delta count. The delta that gained most is taken, out of `offsets(claim)`, which were fixed
    beforehand: each of them has its part of `alpha`.
    """
    choices = {delta: epsilon for epsilon, delta in offsets(claim)}
    gains = dict.fromkeys((block.delta for block in blocks if block.delta in choices), 0.0)
    if not gains:
        return 0.0, claim.delta
    for block, step in zip(blocks, np.diff(log_wealth(blocks, claim), prepend=0.0).tolist(), strict=True):
        if block.delta in gains:
            gains[block.delta] += step
    delta = max(gains, key=lambda each: gains[each])
    chosen = [block for block in blocks if block.delta == delta]

    def best(rungs: list[float]) -> Reals:
        wealth = _path(chosen, np.broadcast_to(np.array(rungs)[:, None], (len(rungs), len(chosen))))
        return np.asarray(wealth.max(axis=1))

    claimed = choices[delta]
    first = [claimed * part for part in RUNGS_BELOW if claimed > 0.0]
    return _climb(best, [*first, claimed], math.log(len(choices) / alpha)), delta


def certificate(blocks: Sequence[Block], claim: Claim, confidence: float, *, share: float = 1.0) -> Certificate:
    """What the blocks certify, at any time, with a part `share` of the error probability.

    `lower` bounds the claim's own parameter, `epsilon_lower` an epsilon at the certificate's `delta`. The p-value is
    divided by `share`: it is that of the whole audit, to be compared with the whole error probability.
    """
    alpha = share * error_probability(confidence)
    epsilon, delta = epsilon_lower(blocks, claim, alpha)
    return Certificate(
        lower=lower(blocks, claim, alpha),
        epsilon_lower=epsilon,
        p_value=min(1.0, p_value(blocks, claim) / share),
        delta=delta,
        confidence=confidence,
        method=METHOD,
    )


def united(bets: Certificate, fixed: Certificate, *, share: float) -> Certificate:
    """Both certificates of one audit as one, by the union bound.

    `bets` were certified with a part `share` of the error probability, as `certificate` does, and `fixed` with the
    rest: at the confidence 1 - (1 - share) alpha. The larger bound is kept, and the smaller of the p-values.
    """
    better = bets if bets.lower > fixed.lower else fixed
    return replace(
        better,
        p_value=min(1.0, bets.p_value, fixed.p_value / (1.0 - share)),
        confidence=bets.confidence,
        method=f"{bets.method}; {fixed.method}",
    )


def offsets(claim: Claim) -> tuple[tuple[float, float], ...]:
    """The claim's half-planes that bets choose among, as (epsilon, delta): one for a form of one line.

    >>> from dpaudit.claims import ApproximateDP
    >>> offsets(ApproximateDP(1.0, 1e-5))
    ((1.0, 1e-05),)
    """
    epsilons: dict[float, float] = {}
    for q in np.geomspace(RAREST, 0.5, OFFSETS).tolist():
        line = claim.tangent(q)
        if line.ratio >= 1.0 and 0.0 <= line.offset < 1.0 and line.offset not in epsilons:
            epsilon = claim.epsilon_at(line.offset)
            if math.isfinite(epsilon):
                epsilons[line.offset] = epsilon
    return tuple((epsilon, delta) for delta, epsilon in sorted(epsilons.items()))


def _path(blocks: Sequence[Block], epsilons: Reals) -> Reals:
    """The log wealth at the end of each block, along the last axis; `epsilons` has those of one or many claims."""
    bets = np.array([(block.p, block.q, block.delta) for block in blocks])
    counts = np.array([_counts(block.evidence) for block in blocks], np.float64)
    four = log_factors(bets[:, 0], bets[:, 1], epsilons, bets[:, 2])
    return np.cumsum(np.sum(four * counts, axis=-1), axis=-1)


def _counts(evidence: CoinFlip) -> tuple[int, int, int, int]:
    misses_p, misses_q = evidence.runs_p - evidence.hits_p, evidence.runs_q - evidence.hits_q
    return evidence.hits_p, misses_p, evidence.hits_q, misses_q


def _best(blocks: Sequence[Block], members: Sequence[Claim]) -> Reals:
    """The largest log wealth so far against each of some claims."""
    if not blocks:
        return np.zeros(len(members))
    deltas = sorted({block.delta for block in blocks})
    table = np.array([[member.epsilon_at(delta) for delta in deltas] for member in members])
    place = np.searchsorted(deltas, [block.delta for block in blocks])
    return np.asarray(_path(blocks, table[:, place]).max(axis=1))


def _climb(best: Callable[[list[float]], Reals], first: list[float], threshold: float) -> float:
    """The last rung before the first one whose best wealth stays below the threshold; 0 where that is the first."""
    rungs, bound = first, 0.0
    while rungs:
        for rung, wealth in zip(rungs, best(rungs).tolist(), strict=True):
            if wealth < threshold:
                return bound
            bound = rung
        start = max(bound * STEP, SMALLEST)
        rungs = [rung for power in range(CHUNK) if (rung := start * STEP**power) <= HIGHEST]
    return bound


def _below(claimed: float) -> list[float]:
    return [claimed * part for part in RUNGS_BELOW if claimed > 0.0]


SPACING = 2**0.5  # from one milestone to the next: what is cut off is less than three tenths
LAST_SHARE = 0.9  # of the error probability is for all the runs; the rest is divided equally
MOST = 24  # milestones: the first of them has a 4,000th of the runs


@dataclass(frozen=True, slots=True)
class Milestones:
    """Where a deadline could cut certification: numbers of runs, fixed before the first, and the part of the last.

    A certificate may be made at the `ends`, which grow. The earlier ones share what the last leaves; one alone has all.
    Raises `InvalidSpec` where they do not grow.
    """

    ends: Annotated[tuple[AtLeastOne, ...], ("min_length", 1)]
    last: OpenProbability = LAST_SHARE

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(self.ends))
        if not self.ends or self.ends[0] < 1 or any(a >= b for a, b in zip(self.ends, self.ends[1:], strict=False)):
            raise InvalidSpec(f"milestones must be at least one number above 0, growing, got {self.ends!r}")
        if not 0.0 < self.last < 1.0:
            raise InvalidSpec(f"the part of the last milestone must lie between 0 and 1, got {self.last!r}")

    @classmethod
    def among(cls, ends: Sequence[int], refutable: Callable[[int, float], bool]) -> Milestones:
        """Some of these growing numbers of runs: the last, and before it one for each `SPACING`, at the most.

        The first is one at which outputs that tell their dataset refute: `refutable(n, share)` says whether they would
        with n runs, at that part of the error probability.

        >>> Milestones.among(range(10, 1001, 10), lambda runs, share: runs >= 100).ends
        (110, 160, 240, 340, 490, 700, 1000)
        """
        chosen = [ends[-1]]
        for end in reversed(ends):
            if end * SPACING <= chosen[0] and len(chosen) < MOST:
                chosen.insert(0, end)
        for first in range(len(chosen)):
            milestones = cls(tuple(chosen[first:]))
            if refutable(milestones.ends[0], milestones.share(milestones.ends[0])):
                return milestones
        return cls((ends[-1],))

    @property
    def planned_runs(self) -> int:
        """All the certifying runs that there would be."""
        return self.ends[-1]

    def reached(self, done: int) -> int:
        """The largest milestone within the first `done` runs; 0 where there is none.

        >>> Milestones((100, 200, 400)).reached(399)
        200
        """
        return max((end for end in self.ends if end <= done), default=0)

    def share(self, runs: int) -> float:
        """The part of the error probability of the milestone at `runs`. Raises `InvalidSpec` where there is none.

        >>> [round(Milestones((100, 200, 400)).share(runs), 3) for runs in (100, 200, 400)]
        [0.05, 0.05, 0.9]
        """
        if runs not in self.ends:
            raise InvalidSpec(f"{runs} certifying runs are no milestone of {', '.join(map(str, self.ends))}")
        if len(self.ends) == 1:
            return 1.0
        return self.last if runs == self.planned_runs else (1.0 - self.last) / (len(self.ends) - 1)

    def part(self, runs: int) -> float:
        """The same, and all of it where `runs` is no milestone: runs in fresh processes are never cut.

        >>> Milestones((100, 200, 400)).part(47)
        1.0
        """
        return self.share(runs) if runs in self.ends else 1.0
