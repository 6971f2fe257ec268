"""What the counts of all cells say about each: log ratios smoothed along a line or a surface, or by empirical Bayes.

Of cells in order the slope changes little from cell to cell (Whittaker 1923); how little is the choice that makes what
was seen likeliest, and on a surface a choice for each of its directions.

Of cells without order (`believed`; Robbins 1956) the hits of P are binomial, given the hits that both sides have in a
cell; the log odds of the cells are drawn from one law, which their counts show: its likeliest one on a grid (Kiefer &
Wolfowitz 1956), by steps of EM (Laird 1978). Among a hundred cells of ratio 1 the luckiest is taken for one of them;
one that is too far out is taken nearly as seen. No cell is its own witness: its prior is learned from cells of other
folds, and one cell's worth of a law that is flat in the logarithm of the distance of a log ratio from none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Bools, Places, Reals
from dpaudit.search.goal import Spread

BENDS = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])  # the change of slope, in log ratio a cell
STEPS, MOST = 8, 30.0  # of Newton's method at the most, and log ratio that they may reach
SETTLED = 1e-4  # a step of Newton's method after which there need be no other: what is left is of its square
FLAT = 1e-9  # eigenvalues of a difference that count as 0
FREE = 1e-8  # precision that a cell has without anything seen, so that there always is a solution

Place = tuple[int, int]  # of two bends in their grid


def trends(lines: Sequence[Reals]) -> list[tuple[Reals, Reals]]:
    """ln(x / y) along lines of cells with these hits of two sides, each smoothed by itself, and the covariances.

    float64[cells, sides] each, of three cells at least; float64[cells] and float64[cells, cells] come back.

    Given the hits of both, x is binomial; the posterior is taken as normal about its mode (Laplace's approximation),
    which a few steps of Newton's method find for each bend.
    """
    from scipy.linalg.lapack import dpbtrs

    if not lines:
        return []
    sizes = np.array([len(line) for line in lines])
    starts, inner = np.cumsum(sizes) - sizes, np.ones(sizes.sum(), np.bool_)
    inner[starts] = inner[starts + 1] = False
    x, y = np.concatenate(lines).T
    bands = {size: _band(_second(size), np.zeros((1, 1))) for size in set(sizes.tolist())}
    hits, penalty = x + y, np.concatenate([bands[len(line)] for line in lines], axis=1)
    centre = np.log((x + 0.5) / (y + 0.5))
    most, best, factors = np.full(len(lines), -np.inf), centre.copy(), penalty.copy()
    for bend in BENDS[::-1]:
        centre, factor = _mode(x, hits, penalty / bend**2, centre)
        bent = np.where(inner, np.append([0.0, 0.0], np.diff(centre, n=2)) ** 2, 0.0) / bend**2
        fit = x * centre - hits * np.logaddexp(0.0, centre) - bent / 2.0 - np.log(factor[0])
        likelihood = np.add.reduceat(fit, starts) - (sizes - 2) * np.log(bend)
        better = np.repeat(likelihood > most, sizes)
        most = np.maximum(most, likelihood)
        best[better], factors[:, better] = centre[better], factor[:, better]
    parts = zip(np.split(best, starts[1:]), np.split(factors, starts[1:], axis=1), strict=True)
    return [(line, dpbtrs(each, np.eye(len(line)), lower=1)[0]) for line, each in parts]


def surface(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    """The same over a surface of hits (line, cell), with a bend along the lines and another across; the variances.

    All four arrays are float64[lines, cells]; cells without hits are filled in. At least three lines of three cells.
    """
    lines, cells = x.shape
    across, along = (_second(count) for count in (lines, cells))
    bent = np.linalg.eigvalsh(along)[:, None], np.linalg.eigvalsh(across)[None, :]
    bands = _band(along, 0.0 * across), _band(0.0 * along, across)
    mine, hits = x.T.ravel(), (x + y).T.ravel()  # cell by cell, so that the band is narrow
    start = np.where(hits > 0.0, np.log((mine + 0.5) / (hits - mine + 0.5)), 0.0)

    def at(place: Place, centre: Reals) -> tuple[float, Reals, Reals]:
        """Log evidence, mode and factor of the precision with the bends at this place of their grid."""
        bend, other = BENDS[place[0]], BENDS[place[1]]
        band = bands[0] / bend**2 + bands[1] / other**2
        centre, factor = _mode(mine, hits, band, centre)
        known = bent[0] / bend**2 + bent[1] / other**2
        free = np.log(known[known > FLAT * known.max()]).sum()
        # at the mode the penalty's force balances that of the hits, so it need not be multiplied out
        force = mine - hits / (1.0 + np.exp(-centre))
        fit = float((mine * centre - hits * np.logaddexp(0.0, centre)).sum() - centre @ force / 2.0)
        return fit - float(np.log(factor[0]).sum()) + float(free) / 2.0, centre, factor

    # uphill on the grid of bends, one way as far as that goes: the evidence has one summit as far as was seen
    here = (len(BENDS) // 2, len(BENDS) // 2)
    fits, ways, lower = {here: at(here, start)}, itertools.cycle(((-1, 0), (0, -1), (1, 0), (0, 1))), 0
    while lower < 4:
        way = next(ways)
        lower += 1
        while min(place := (here[0] + way[0], here[1] + way[1])) >= 0 and max(place) < len(BENDS):
            if place not in fits:
                fits[place] = at(place, fits[here][1])
            if fits[place][0] <= fits[here][0]:
                break
            here, lower = place, 1
    variance = _inverse_diagonal(fits[here][2])
    return fits[here][1].reshape(cells, lines).T, variance.reshape(cells, lines).T


def _mode(x: Reals, hits: Reals, penalty: Reals, centre: Reals) -> tuple[Reals, Reals]:
    """The mode of the log ratios, from a start, and the factor of the precision there; the penalty is a band."""
    from scipy.linalg.lapack import dpbtrf, dpbtrs

    for _ in range(STEPS):
        share = 1.0 / (1.0 + np.exp(-centre))
        weight = hits * share * (1.0 - share) + FREE
        whole = penalty.copy()
        whole[0] += weight
        factor, _ = dpbtrf(whole, lower=1, overwrite_ab=1)
        moved, _ = dpbtrs(factor, weight * centre + x - hits * share, lower=1, overwrite_b=1)
        moved.clip(-MOST, MOST, out=moved)
        settled, centre = float(np.abs(moved - centre).max()) < SETTLED, moved
        if settled:
            break
    return centre, factor


def _inverse_diagonal(factor: Reals) -> Reals:
    """The diagonal of the inverse of a matrix whose lower Cholesky factor has these diagonals, the main one first.

    Blocks as wide as the band are 0 but for those on and just below the diagonal, so those of the inverse follow from
    the last to the first (Takahashi, Fagan & Chin 1973).
    """
    size, count = len(factor) - 1, factor.shape[1]
    blocks = -(-count // size)
    padded = np.zeros((size + 1, blocks * size))
    padded[0], padded[:, :count] = 1.0, factor
    row, column = np.indices((size, size))
    bands = padded.reshape(size + 1, blocks, size)
    own = np.where(row >= column, np.moveaxis(bands[np.maximum(row - column, 0), :, column], 2, 0), 0.0)
    below = np.where(row <= column, np.moveaxis(bands[size + np.minimum(row - column, 0), :, column], 2, 0), 0.0)
    root = np.linalg.inv(own)
    onward, inverse = below @ root, np.swapaxes(root, 1, 2) @ root
    for block in range(blocks - 2, -1, -1):
        inverse[block] += onward[block].T @ inverse[block + 1] @ onward[block]
    return np.asarray(inverse.diagonal(axis1=1, axis2=2).ravel()[:count])


def _second(count: int) -> Reals:
    """The square of the second difference of `count` values."""
    second = np.diff(np.eye(count), n=2, axis=0)
    return np.asarray(second.T @ second)


def _band(along: Reals, across: Reals) -> Reals:
    """The lower band of the penalty of a surface, cell by cell: the next cell of a line is a whole column away."""
    cells, lines = len(along), len(across)
    band = np.zeros((2 * lines + 1, cells * lines))
    for step in range(3):
        if step < lines:
            band[step] += np.tile(np.concatenate([across.diagonal(step), np.zeros(step)]), cells)
        band[step * lines] += np.repeat(np.concatenate([along.diagonal(step), np.zeros(step)]), lines)
    return band


# Tails seen through their neighbours: the log ratio of a rare tail, smoothed along the thresholds that lead to it
# In a quarter of all mass, thresholds `RATIO` apart in mass cut a tail into cells whose counts are independent.
# Their log ratios are smoothed by a trend whose slope changes little from cell to cell (Whittaker 1923); how little
# is the choice that makes the counts likeliest. A far tail with few hits then borrows from the nearer ones, and is
# neither taken for a leak when it was lucky nor given up because it is rare.


SMOOTHED = 0.25  # of both sides' mass: larger tails have hits enough
RATIO = math.sqrt(2.0)
OWN_LUCK = 0.7  # of the deviation that a tail's own hits have: no trend is known better
FEWEST_CELLS = 5
FEWEST_IN_A_CELL = 5.0


@dataclass(frozen=True, slots=True)
class Tails:
    """Nested tails: the index of each among the candidates, its smoothed hits, and how sure they are.

    `moved` is the deviation of P's share of the hits, in hits that change sides.
    """

    at: Places
    x: Reals
    y: Reals
    moved: Reals

    def mirrored(self) -> Tails:
        """The same with the sides exchanged."""
        return Tails(self.at, self.y, self.x, self.moved)

    def spread(self, z: Reals | float) -> Spread:
        """The luck in (ln p, ln q), `z` deviations of it: hits that change sides, and hits of both."""
        common = 1.0 / (self.x + self.y)
        p, q = self.moved / self.x, self.moved / self.y
        return Spread(z**2 * (p**2 + common), z**2 * (q**2 + common), z**2 * (common - p * q))


def smoothed(x: Reals, y: Reals) -> Tails | None:
    """The tails among nested candidates with these counts, smallest first; None where they are too few to smooth.

    `x` and `y` are hits of the two sides, float64[candidates], and grow.
    """
    both = x + y
    top = SMOOTHED * both[-1] if len(both) else 0.0
    if top < FEWEST_IN_A_CELL * RATIO**FEWEST_CELLS:
        return None
    levels = top / RATIO ** np.arange(1 + int(math.log(top / FEWEST_IN_A_CELL) / math.log(RATIO)))
    at = np.unique(np.searchsorted(both, levels, side="right") - 1)
    at = at[(at >= 0) & (both[at] > 0.0)]
    if len(at) < FEWEST_CELLS:
        return None
    mine, other = np.diff(x[at], prepend=0.0), np.diff(y[at], prepend=0.0)
    centre, covariance = trends([np.stack([mine, other], axis=1)])[0]
    share = 1.0 / (1.0 + np.exp(-centre))
    hits = mine + other
    # of a sum over the first cells: what a change of each cell's log ratio moves from one side to the other
    weight = hits * share * (1.0 - share)
    moved = np.cumsum(np.cumsum(weight[:, None] * covariance * weight[None, :], axis=0), axis=1).diagonal()
    x, y = np.cumsum(hits * share), np.cumsum(hits * (1.0 - share))
    return Tails(at, x, y, np.sqrt(np.maximum(moved, OWN_LUCK**2 * x * y / (x + y))))


POINTS, NEAREST, FARTHEST = 121, 0.02, 16.0  # of the grid: log odds, about even up to the first, geometric to the last
FOLDS = 4  # of the cells
FINEST = 32  # parts of one of its intervals at the most
EVEN = 0.5  # of the law that EM starts from lies at a ratio of 1
UNLIKELY = 1e-12  # beside the likeliest place of a cell, so that it is in no other
EM_STEPS, KINDS = 40, 256  # of EM, which never come to an end and need not; kinds of cells that teach it, of all ratios


@dataclass(frozen=True, slots=True)
class Believed:
    """Of each cell: P's share of its hits, and the variance of that share; float64[cells] both."""

    share: Reals
    variance: Reals

    def mirrored(self) -> Believed:
        """The same for the other side's share."""
        return Believed(1.0 - self.share, self.variance)


def believed(x: Reals, y: Reals, alone: float = 0.3, single: Bools | None = None) -> Believed:
    """The posterior of each cell with these hits of two sides, float64[cells]; all hits together say what is even.

    The flat law counts for `alone` cells: less where more features than this one could show a cell like no other. Where
    some cells are `single` values and others are not, each kind is believed by what its own kind shows.

    >>> made = believed(np.array([300.0, 90.0]), np.array([100.0, 310.0]))
    >>> made.share.round(1).tolist()
    [0.7, 0.2]
    """
    even = math.log((x.sum() + 1.0) / (y.sum() + 1.0))
    mean, variance = np.zeros(len(x)), np.zeros(len(x))
    kind = np.zeros(len(x), np.bool_) if single is None else single
    for cells in (kind, ~kind):
        if cells.any():
            mean[cells], variance[cells] = _posterior(x[cells], y[cells], even, alone)
    hits = x + y  # and all cells together have the hits that they have
    up, down = (x.sum() + 0.5) / ((hits * mean).sum() + 0.5), (y.sum() + 0.5) / ((hits * (1.0 - mean)).sum() + 0.5)
    return Believed(mean * up / (mean * up + (1.0 - mean) * down), variance)


def _grid(seen: Reals, luck: Reals, even: float) -> tuple[Reals, Reals, Reals]:
    """Where log odds may lie: a grid, geometric about even, and finer where cells are known better than it is fine.

    Log odds as seen, and their variance, float64[cells]. The grid comes with the flat law's part of each of its
    places, and with the squared distance of the places about each cell.
    """
    width = math.asinh(FARTHEST / NEAREST)
    base, step = np.linspace(-width, width, POINTS, retstep=True)
    own = np.arcsinh((seen - even) / NEAREST)
    place = np.clip(((own + width) / step).astype(np.intp), 0, POINTS - 2)
    scale = (seen - even) ** 2 + NEAREST**2
    finest = np.full(POINTS + 1, np.inf)  # with an interval at either end that is none
    np.minimum.at(finest, place + 1, np.sqrt(luck / scale))
    finest = np.minimum(np.minimum(finest[:-2], finest[2:]), finest[1:-1])
    parts = np.clip(np.ceil(step / finest), 1, FINEST).astype(np.intp)
    first = np.repeat(np.cumsum(parts) - parts, parts)
    at = np.append(
        np.repeat(base[:-1], parts) + step * (np.arange(len(first)) - first) / np.repeat(parts, parts), width
    )
    part = np.gradient(at)
    return even + NEAREST * np.sinh(at), part / part.sum(), (step / parts[place]) ** 2 * scale


def _posterior(x: Reals, y: Reals, even: float, alone: float) -> tuple[Reals, Reals]:
    """The mean and the variance of P's share of each cell, of one kind."""
    fold = np.arange(len(x)) % FOLDS
    _, one, alike = np.unique(x * (y.max(initial=0.0) + 1.0) + y, return_index=True, return_inverse=True)
    hits = np.stack([x[one], y[one]])
    others = np.zeros((len(one), FOLDS))  # the cells with these hits that are not in the fold
    np.add.at(others, alike, 1.0 - np.eye(FOLDS)[fold])
    mine, other = hits
    seen = np.log((mine + 0.5) / (other + 0.5))
    luck = 1.0 / (mine + 0.5) + 1.0 / (other + 0.5)
    grid, part, apart = _grid(seen, luck, even)
    # of a cell that is known better than the grid is fine, only so many hits are asked where on the grid it lies
    asked = np.minimum(1.0, luck / apart)
    fit = (asked * mine)[:, None] * grid - (asked * (mine + other))[:, None] * np.logaddexp(0.0, grid)
    fit = np.exp(fit - fit.max(axis=1, keepdims=True))
    weight = np.repeat(
        (1.0 - EVEN) * part[:, None], FOLDS, axis=1
    )  # cells of one hit fit any law that is as wide both ways
    weight[np.searchsorted(grid, even)] += EVEN
    near = np.flatnonzero(fit.max(axis=0) > UNLIKELY)  # of the grid, where some cell may be
    grid, fit, weight, part = grid[near], np.ascontiguousarray(fit[:, near]), weight[near], part[near]
    some = np.argsort(seen, kind="stable")[:: -(-len(seen) // KINDS)]
    likely, cells = fit[some], others[some] * (others.sum(axis=0) / np.maximum(others[some].sum(axis=0), 1.0))
    turned, total = np.ascontiguousarray(likely.T), cells.sum(axis=0) + alone
    cells, least = cells / total, alone * part[:, None] / total
    for _ in range(EM_STEPS):
        weight = weight * (turned @ (cells / (likely @ weight))) + least  # with those left out their sum is 1
    odds = fit[alike] * weight.T[fold]
    odds /= odds.sum(axis=1, keepdims=True)
    seen, luck, apart, asked = (part[alike] for part in (seen, luck, apart, asked))
    share = 1.0 / (1.0 + np.exp(-grid))
    mean = odds @ share
    variance = np.maximum(odds @ share**2 - mean**2, 0.0)
    centre = odds @ grid
    spread = np.maximum(odds @ grid**2 - centre**2, 0.0) + apart / 12.0
    more = (1.0 - asked) / luck  # what the hits that were not asked know
    spread = 1.0 / (1.0 / spread + more)
    finer = 1.0 / (1.0 + np.exp(-(centre + spread * more * (seen - centre))))
    mean, variance = (
        np.where(asked < 1.0, sure, rough)
        for sure, rough in ((finer, mean), (spread * (finer * (1.0 - finer)) ** 2, variance))
    )
    return mean, variance
