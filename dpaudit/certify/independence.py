"""Tests that runs are independent, on integers: each p-value, as its logarithm, is exact or too large.

If runs are independent and those of a side identically distributed, then, given how many of a side's runs are
hits, every choice of the runs that are hits is equally likely. So the hits among any runs chosen without a look
at them (a half of the shard, those that follow a hit) are hypergeometric (Fisher 1935), whatever the rate of
hits; nothing is approximated, however far in the tail. Several tables share the level by Bonferroni's inequality.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Reals, Words

SPLITS = (1 / 2, 1 / 4, 1 / 8, 3 / 4, 7 / 8)  # where a series is cut in two, in search of a drift
ODDS = (1 / 16, 1 / 4, 2.0, 16.0, 256.0)  # times which a value may be likelier to recur than in a random order
EXCESS = (1.0, 3.0, 10.0, 30.0, 100.0)  # variance of a part's hits above that of independent runs, in units of it
RARE = 1 / 16  # of the runs considered: a value that more of them have recurs everywhere


def upper_tail(hits: Any, drawn: Any, marked: Any, total: Any) -> Reals:
    """ln Pr(X >= hits) where `drawn` of `total` runs are drawn and `marked` are hits, rounded up; arrays broadcast.

    The probability of `hits` itself times 1 / (1 - r), r the ratio of the next probability to it: the ratios fall,
    so the geometric series is above the tail, and within a few percent of it wherever the tail is small.

    >>> round(math.exp(upper_tail(2, 2, 2, 4)) * 6, 9)  # one of the six choices of two runs
    1.0
    >>> float(upper_tail(0, 2, 2, 4))
    0.0
    """
    from scipy.special import gammaln

    x, n, k, t = (np.asarray(value, np.float64) for value in np.broadcast_arrays(hits, drawn, marked, total))
    least, most = np.maximum(0.0, n + k - t), np.minimum(n, k)
    inside = np.clip(x, least, most)
    log = sum(
        sign * (gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1))
        for sign, a, b in ((1.0, k, inside), (1.0, t - k, n - inside), (-1.0, t, n))
    )
    log = log + 1e-14 * gammaln(t + 2) + 1e-12  # more than the error of nine values of gammaln
    ratio = (k - inside) * (n - inside) / ((inside + 1.0) * (t - k - n + inside + 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(ratio < 1.0, log - np.log1p(-np.minimum(ratio, 1.0)), 0.0)
    tail = np.where(x <= least, 0.0, np.where(x > most, -np.inf, np.minimum(tail, 0.0)))
    return np.asarray(tail)


def contrast(hits: Any, runs: Any, other_hits: Any, other_runs: Any) -> Reals:
    """The two-sided ln p of equal rates in two groups of runs: twice the smaller tail (Fisher's exact test).

    Hits and runs of either group, arrays of one shape, and that shape comes back.

    >>> bool(contrast(10, 10, 0, 10) < math.log(1.1e-5)), float(contrast(5, 10, 5, 10))
    (True, 0.0)
    """
    x, n, y, m = (np.asarray(value, np.int64) for value in (hits, runs, other_hits, other_runs))
    tails = np.minimum(upper_tail(x, n, x + y, n + m), upper_tail(y, m, x + y, n + m))
    return np.asarray(np.minimum(0.0, tails + math.log(2.0)))


def least(logs: Any) -> float:
    """Bonferroni's ln p of several: that of the smallest times their number, at most 0; 0 for none.

    >>> round(math.exp(least(np.log([0.5, 0.01, 0.9]))), 9)
    0.03
    """
    values = np.asarray(logs, np.float64).ravel()
    return min(0.0, float(values.min()) + math.log(values.size)) if values.size else 0.0


def drift(hits: Integers, runs: Integers) -> float:
    """Whether the rate of hits changes along a series of parts (ln p); both int64[parts, sides].

    >>> quarters = np.array([[9], [8], [1], [2]])
    >>> drift(quarters, np.full((4, 1), 10)) < math.log(0.01)
    True
    """
    parts = len(runs)
    places = sorted({max(1, min(parts - 1, round(parts * split))) for split in SPLITS}) if parts > 1 else []
    before = [np.cumsum(each, axis=0)[np.array(places, np.intp) - 1] for each in (hits, runs)]
    return least(contrast(before[0], before[1], hits.sum(axis=0) - before[0], runs.sum(axis=0) - before[1]))


def outlier(hits: Integers, runs: Integers) -> tuple[float, int]:
    """Whether a part has another rate of hits than all others (ln p), and which; both int64[parts, sides]."""
    if len(runs) < 2:
        return 0.0, 0
    logs = contrast(hits, runs, hits.sum(axis=0) - hits, runs.sum(axis=0) - runs)
    return least(logs), int(logs.min(axis=1).argmin())


def spread(hits: Integers, runs: Integers) -> float:
    """Whether rates of hits differ from part to part by more than chance (ln p); both int64[parts, sides].

    One over the mean of three e-values: of either side, and their product, for the sides are independent. That of a
    side is its likelihood by bets on each part, made of the parts before it, over the largest likelihood of one rate
    for all (Wasserman, Ramdas & Balakrishnan 2020; docs/statistics/separation.md).

    >>> calls = np.array([[40, 60] * 20, [50] * 40]).T
    >>> spread(calls, np.full((40, 2), 100)) < math.log(1e-6), spread(calls[:, 1:], np.full((40, 1), 100))
    (True, 0.0)
    """
    from scipy.special import logsumexp

    each = [_likelier(side, of) for side, of in zip(hits.T, runs.T, strict=True)]
    return min(0.0, math.log(len(each) + 1) - float(logsumexp([*each, sum(each)])))


def _likelier(hits: Integers, runs: Integers) -> float:
    """ln of the e-value of one side: beta-binomial bets, at the mean over `EXCESS`, over the best binomial."""
    from scipy.special import betaln, gammaln, logsumexp, xlogy

    there = runs > 0
    h, n = hits[there].astype(np.float64), runs[there].astype(np.float64)
    if len(n) < 2:
        return 0.0
    excess, before_h, before_n = np.array(EXCESS)[:, None], np.cumsum(h) - h, np.cumsum(n) - n
    mean = (before_h + 1.0) / (before_n + 2.0)
    size = 1.0 / (excess / n.mean() + 1.0 / (before_n / (1.0 + excess) + 2.0))
    bets = betaln(mean * size + h, (1.0 - mean) * size + n - h) - betaln(mean * size, (1.0 - mean) * size)
    total, whole = float(h.sum()), float(n.sum())
    best = float(xlogy(total, total / whole) + xlogy(whole - total, 1.0 - total / whole))
    slack = 1e-13 * len(n) * float(gammaln(whole + 2.0)) + 1e-9  # more than the rounding of all terms
    return float(logsumexp(bets.sum(axis=1))) - math.log(len(EXCESS)) - best - slack


def pairings(quads: Integers) -> list[Integers]:
    """Patterns of two runs from patterns of four: int64[4, 4] each, the earlier run first, for every lag and phase.

    A pattern's bits 2k and 2k + 1 are hit and side of run k; a row or column of the result is hit + 2 side.
    No run is in two pairs of the same table, so its pairs are independent.
    """
    four = np.asarray(quads).reshape(4, 4, 4, 4)  # axes: the last run first
    tables = [
        four.sum(axis=(0, 1)).T + four.sum(axis=(2, 3)).T,  # runs 0 and 1, 2 and 3
        four.sum(axis=(0, 3)).T,  # runs 1 and 2
        four.sum(axis=(0, 2)).T + four.sum(axis=(1, 3)).T,  # runs 0 and 2, 1 and 3
        four.sum(axis=(1, 2)).T,  # runs 0 and 3
    ]
    return [np.asarray(table, np.int64) for table in tables]


def after_hits(tables: Sequence[Integers]) -> float:
    """Whether a run is a hit more or less often after a hit; by the sides of both runs; tables as `pairings` gives."""
    five = np.stack(tables).reshape(-1, 2, 2, 2, 2)  # axes: table; side and hit before; side and hit now
    return _differ(five[:, :, 1], five[:, :, 0])


def after_sides(tables: Sequence[Integers]) -> float:
    """Whether a run is a hit more or less often after a run of the first side than of the second; the same tables."""
    four = np.stack(tables).reshape(-1, 2, 2, 2, 2).sum(axis=2)  # axes: table, side before, side and hit now
    return _differ(four[:, 1], four[:, 0])


def _differ(one: Integers, other: Integers) -> float:
    """Whether hits, counted along the last axis as (none, hit), differ between two groups of runs."""
    return least(contrast(one[..., 1], one.sum(axis=-1), other[..., 1], other.sum(axis=-1)))


def repeats(prints: Words, known: int = 0) -> tuple[float, tuple[int, int]]:
    """Whether two shards have the same outputs in the same order, and which: uint64[shards, runs], 0 for no run.

    The first `known` shards are compared with the others only.

    The last bit of a word is the side. Where two shards have a run of one side in one place, the outputs are
    compared; if all agree, the p-value is that of one arrangement of a shard's outputs within each side, one in
    n! / (c_1! c_2! ...) where value v is there c_v times: exact, given the outputs. A constant repeats itself
    with certainty, and is no finding.

    >>> one = np.arange(2, 66, 2, dtype=np.uint64)
    >>> repeats(np.stack([one, one]))[0] < -70.0, repeats(np.stack([one, one[::-1]]))[0]
    (True, 0.0)
    """
    from scipy.special import gammaln

    best, where = 0.0, (0, 1)
    for one, other, both in _alike(prints, known):
        log = 0.0
        for side in (0, 1):
            outputs = prints[one][both & (prints[one] & np.uint64(1) == side)]
            counts = np.unique(outputs, return_counts=True)[1]
            log += float(gammaln(counts + 1.0).sum() - gammaln(len(outputs) + 1.0))
        if log < best:
            best, where = log, (one, other)
    pairs = math.comb(len(prints), 2) - math.comb(known, 2)
    return min(0.0, best + math.log(max(1, pairs)) + 1e-9), where


def _alike(prints: Words, known: int) -> Iterator[tuple[int, int, Bools]]:
    """Pairs of shards whose outputs agree wherever they can be compared, and where that is."""
    for one in range(len(prints) - 1):
        start = max(known, one + 1)
        mine, rest = prints[one], prints[start:]
        both = (mine != 0) & (rest != 0) & ((mine ^ rest) & np.uint64(1) == 0)
        agree = both.any(axis=1) & ~(both & (mine != rest)).any(axis=1)
        for other in np.flatnonzero(agree).tolist():
            yield one, start + other, both[other]


def recurrences(values: Words) -> Reals:
    """ln of e-values of a series in random order: float64[windows, odds], values too frequent for a gap left out.

    Given which values there are, and all before run t, run t has one of the last L values with probability p_t: the
    share of these among what is left. So for odds o the product of o^[it has] / (1 - p_t + o p_t) has expectation 1
    over all orders: a test martingale (Shafer, Shen, Vereshchagin & Vovk 2011), and so is the mean over all L and o.
    Cycles and decks recur too late, replays too early; draws from a pool recur in any order, as they should.

    >>> cycle, even = np.arange(3_000, dtype=np.uint64) % 100, np.arange(50, dtype=np.uint64)
    >>> bool(recurrences(cycle).max() > 100.0), float(np.abs(recurrences(even)).max())
    (True, 0.0)
    """
    _, kinds, often = np.unique(values, return_inverse=True, return_counts=True)
    kinds = kinds[often[kinds] <= RARE * len(values)]
    runs, order = len(kinds), np.argsort(kinds, kind="stable")
    lengths = [4**k for k in range(1, runs.bit_length() // 2)]
    logs = np.zeros((len(lengths), len(ODDS)))
    same = np.flatnonzero(np.diff(kinds[order]) == 0)
    if not (len(same) and lengths):
        return logs
    now, left, follows = np.arange(runs), np.empty(runs), np.full(runs, runs)
    follows[order[same]] = order[same + 1]  # the next run with the same value
    ends = np.append(np.flatnonzero(np.diff(kinds[order])), runs - 1)
    left[order] = np.repeat(ends, np.diff(ends, prepend=-1)) - now  # how many more there are
    for row, length in enumerate(lengths):
        until = np.minimum(np.minimum(follows, now + length), runs - 1)
        change = np.bincount(now + 1, left, runs + 1) - np.bincount(until + 1, left, runs + 1)
        share = np.cumsum(change[:runs]) / (runs - now)
        hits = int(np.count_nonzero(order[same + 1] - order[same] <= length))
        logs[row] = [hits * math.log(odds) - np.log1p(share * (odds - 1.0)).sum() for odds in ODDS]
    return logs


def strangers(same: int, differing: int, others: int) -> float:
    """The ln p of `differing` of `others` runs unlike `same` runs that are all alike, were they all of one kind.

    All the different ones fall among the others: hypergeometric. A value cached in a process looks like this.

    >>> round(math.exp(strangers(8000, 4, 4)) * math.comb(8004, 4), 6)
    1.0
    """
    return float(upper_tail(differing, others, differing, same + others))
