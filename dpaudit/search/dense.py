"""Scores that weigh the numbers of all entries: directions from one side to the other, learned from outputs held.

The diagonal direction is the difference of means over the pooled variance (Fisher 1936); learned in d entries on n runs
a side, of a shift by mu it keeps the part 1 / sqrt(1 + 4 d / (n mu^2)) or so. Entries with a small difference are left
out as well, for a few of many carry the leak (Fan & Fan 2008), and up to `MOST_TOGETHER` entries their covariance is
taken into account, shrunk towards the identity (Ledoit & Wolf 2004). All that of the values, of values cut off, of
distances from the centre and of their squares. What is best on runs that it was not learned on, by two folds, is
learned once more on all.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.events.scores import OF, Linear, weighed
from dpaudit.outputs.canonical import Outputs, Path

LEFT_OUT = (0.0, 1.5, 3.0)  # differences below so many standard errors weigh nothing
MOST_TOGETHER = 256  # entries whose covariance is taken into account
FEWEST = 32  # runs of a side in a fold
SURE_Z = 2.0  # standard errors from 0 that the best is on runs that did not make it
SMALL = 64  # entries whose covariance takes no threads
PIECE = 1 << 20  # cells at a time
LARGEST = 1e6  # that a number may count when weights are learned
GLANCE = 1 << 10  # runs that centre and scale are read off


@dataclass(frozen=True, slots=True)
class _Rule:
    """One way to learn weights: what of the numbers is weighed, what is left out, whether the covariance counts."""

    of: str
    least: float
    together: bool = False


def dense(first: Outputs, second: Outputs, paths: Sequence[Path]) -> tuple[Linear, ...]:
    """The best direction score over the numbers at these paths, and one of another kind where it may be better.

    None where no rule parts the sides on runs that it was not learned on.
    """
    if min(first.runs, second.runs) < 2 * FEWEST or not paths:
        return ()
    sides = [side.numbers(paths) for side in (first, second)]
    centres, scales = _standard(np.concatenate([each[:, : GLANCE + 1] for each in sides], axis=1))
    there = scales > 0.0
    if not there.any():
        return ()
    data = _Data(sides, centres, np.where(there, scales, 1.0), there)
    rules = [_Rule(of, least) for of in OF for least in LEFT_OUT]
    rules += [_Rule("values", 0.0, True)] if 1 < len(paths) <= MOST_TOGETHER else []
    apart = data.held_out(rules)
    order = np.argsort(-apart, kind="stable")
    top, error = int(order[0]), 2.0 / np.sqrt(data.runs)
    if apart[top] < SURE_Z * error:
        return ()
    # what is within a standard error may be better (Breiman et al. 1984), if it weighs something else
    other = [int(each) for each in order if rules[each].of != rules[top].of and apart[each] >= apart[top] - error]
    return tuple(data.learned(rules[each], paths) for each in (top, *other[:1]))


def _standard(glance: Reals) -> tuple[Reals, Reals]:
    """Centre and scale of each row: median and median distance, or the standard deviation where that is 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(glance)
        middle = np.where(finite, glance, np.nan)
        middle[~finite.any(axis=1)] = 0.0
        centres = np.nanmedian(middle, axis=1)
        away = middle - centres[:, None]
        scales = 1.4826 * np.nanmedian(np.abs(away), axis=1)
        return centres, np.where(scales > 0.0, scales, np.sqrt(np.nanmean(away**2, axis=1)))


class _Data:
    """The outputs of both sides, standardised piece by piece, and in two folds: half of the runs each."""

    def __init__(self, sides: Sequence[Reals], centres: Reals, scales: Reals, there: Bools) -> None:
        self.sides, self.centres, self.scales, self.there = sides, centres, scales, there
        self.runs = sum(side.shape[1] for side in sides)
        self.entries = len(centres)
        self.moments = {of: self._moments(of) for of in OF}

    def pieces(self, side: int, of: str) -> Iterator[tuple[slice, Reals]]:
        """What is weighed of one side's numbers: entries, and float64[entries, runs]."""
        numbers = self.sides[side]
        step = max(1, PIECE // max(1, numbers.shape[1]))
        for start in range(0, self.entries, step):
            rows = slice(start, start + step)
            found = weighed(numbers[rows], self.centres[rows, None], self.scales[rows, None], of)
            yield rows, np.clip(found, -LARGEST, LARGEST)

    @staticmethod
    def fold(piece: Reals, fold: int) -> slice:
        """The runs of a fold, of these."""
        half = piece.shape[1] // 2
        return slice(half, None) if fold else slice(half)

    def _moments(self, of: str) -> Reals:
        """Number, sum and sum of squares: float64[3, folds, sides, entries]."""
        found = np.zeros((3, 2, 2, self.entries))
        for side in (0, 1):
            for rows, piece in self.pieces(side, of):
                for fold in (0, 1):
                    part = piece[:, self.fold(piece, fold)]
                    found[:, fold, side, rows] = (
                        np.full(len(part), part.shape[1]),
                        part.sum(axis=1),
                        np.einsum("ij,ij->i", part, part),
                    )
        return found

    def weights(self, rule: _Rule, folds: Sequence[int]) -> Reals:
        """The weight of each entry, learned on some folds."""
        count, total, squares = self.moments[rule.of][:, list(folds)].sum(axis=1)
        means = total / count
        spreads = np.maximum(squares / count - means**2, 0.0)
        difference, error = means[0] - means[1], np.sqrt((spreads / count).sum(axis=0))
        pooled = (spreads * count).sum(axis=0) / count.sum(axis=0)
        kept = self.there & (pooled > 0.0) & (np.abs(difference) >= rule.least * error)
        if rule.together:
            return self._together(difference, means, folds, kept)
        return np.where(kept, difference / np.where(pooled > 0.0, pooled, 1.0), 0.0)

    def _together(self, difference: Reals, means: Reals, folds: Sequence[int], kept: Bools) -> Reals:
        """The direction by the covariance within the sides, shrunk as far as Ledoit & Wolf (2004, lemma 3.2) say."""
        size = int(kept.sum())
        if size == 0:
            return np.zeros(self.entries)
        parts = []
        for side in (0, 1):
            whole = np.concatenate([piece for _, piece in self.pieces(side, "values")]) - means[side][:, None]
            parts.append(whole[kept][:, self.fold(whole, folds[0])] if len(folds) == 1 else whole[kept])
        away = np.concatenate(parts, axis=1)
        runs = away.shape[1]
        spread = np.sqrt((away**2).mean(axis=1))
        spread[spread == 0.0] = 1.0  # an entry that is constant in this half
        away /= spread[:, None]
        found = _inner(away) / runs
        far = float(((found - np.eye(size)) ** 2).sum())
        luck = float((_inner(away**2) / runs - found**2).sum()) / runs
        part = min(1.0, luck / far) if far > 0.0 else 1.0
        weights = np.zeros(self.entries)
        shrunk = part * np.eye(size) + (1.0 - part) * found + 1e-9 * np.eye(size)
        weights[kept] = np.linalg.solve(shrunk, difference[kept] / spread) / spread
        return weights

    def held_out(self, rules: Sequence[_Rule]) -> Reals:
        """How far each rule, learned on one fold, parts the sides on the other: in deviations, the mean of both."""
        found = np.zeros((2, len(rules)))
        for of, group in itertools.groupby(range(len(rules)), lambda place: rules[place].of):
            places = list(group)
            found[:, places] = [self._parted(of, rules, places, fold) for fold in (0, 1)]
        return np.asarray(found.mean(axis=0))

    def _parted(self, of: str, rules: Sequence[_Rule], places: Sequence[int], fold: int) -> Reals:
        weights = np.array([self.weights(rules[place], [1 - fold]) for place in places])
        means, spreads = np.zeros((2, len(places))), np.zeros((2, len(places)))
        for side in (0, 1):
            scores = np.zeros((len(places), self.sides[side][:1, self.fold(self.sides[side], fold)].shape[1]))
            for rows, piece in self.pieces(side, of):  # einsum: small products are not worth threads
                scores += np.einsum("rj,jk->rk", weights[:, rows], piece[:, self.fold(piece, fold)])
            means[side], spreads[side] = np.mean(scores, axis=1), np.var(scores, axis=1)
        deviation = np.sqrt(spreads.mean(axis=0))
        return np.where(deviation > 0.0, (means[0] - means[1]) / np.where(deviation > 0.0, deviation, 1.0), 0.0)

    def learned(self, rule: _Rule, paths: Sequence[Path]) -> Linear:
        """The score of a rule learned on all; its scale is one, for halves are counted together."""
        weights = self.weights(rule, [0, 1])
        weights = weights / np.abs(weights).sum()
        kept = np.flatnonzero(weights).tolist()
        centres, scales, weights = (each[kept].tolist() for each in (self.centres, self.scales, weights))
        return Linear(tuple(paths[place] for place in kept), tuple(centres), tuple(scales), tuple(weights), rule.of)


def _inner(rows: Reals) -> Reals:
    """The products of all rows with each other; small ones in this thread, which is quicker than to share them out."""
    return np.asarray(np.einsum("ik,jk->ij", rows, rows) if len(rows) <= SMALL else rows @ rows.T)
