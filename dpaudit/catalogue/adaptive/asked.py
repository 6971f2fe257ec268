"""Many runs of a whole interaction with an analyst at once, and its exact loss: the worst of all transcripts.

Runs with the same readings so far are asked the same query. Up to its next top a run is asked a fixed sequence, and a
new threshold after each top makes these epochs independent.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from dpaudit.base.arrays import Masked, Places, Reals
from dpaudit.catalogue.adaptive.analysts import Analyst, Query, Readings, Records
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.sparse.runs import Scales
from dpaudit.losses.comparisons import halting_ratios


class Posed(NamedTuple):
    """A query to one dataset: the number that meets the threshold, that of a top, and the answer where it is none."""

    compared: float
    value: float
    otherwise: float = 0.0


Both = tuple[Posed, Posed]
Chain = tuple[Both, ...]
Ratios = Callable[[Chain], Sequence[float]]
Costs = Callable[[Both, Chain], Iterable[tuple[int, float]]]
Show = Callable[[int, Posed, Reals, Places], Reals]  # the first is the place of the query


@dataclass(frozen=True, slots=True)
class Rules:
    """An interaction: who asks, `tell(query, data)`, the noises, how many queries, and the most tops (None: no halt).

    A threshold of minus infinity is one that every answer is above.
    """

    analyst: Analyst
    tell: Callable[[Query, Records], Posed]
    threshold: float
    scales: Scales
    queries: int
    most: int | None
    redrawn: bool = True

    def ended(self, readings: Readings) -> bool:
        """Whether nothing more is asked."""
        return len(readings) == self.queries or sum(top for top, _ in readings) == self.most


def interact(rules: Rules, data: Records, runs: int, rng: Rng, show: Show, *, bits: bool = False) -> Masked:
    """The answers of the tops by run and query, `show(place, asked, noisy, tops)`; or tops and bottoms to the halt."""
    for_threshold, for_answers = rules.scales
    kept = np.zeros((rules.queries, runs), np.int8 if bits else np.float64)
    hidden = np.ones(kept.shape, np.bool_)
    level = rules.threshold + laplace(rng, for_threshold, runs)
    groups: list[tuple[Readings, Places, Reals]] = [((), np.arange(runs), level)]
    while groups:
        readings, going, level = groups.pop()
        asked = rules.tell(rules.analyst.asks(readings), data)
        noisy = asked.compared + laplace(rng, for_answers, len(going))
        is_top = noisy > level
        tops, bottoms = going[is_top], going[~is_top]
        shown = show(len(readings), asked, noisy[is_top], tops)
        kept[len(readings), tops] = shown
        hidden[len(readings), going if bits else tops] = False
        raised = rules.threshold + laplace(rng, for_threshold, len(tops)) if rules.redrawn else level[is_top]
        cells = np.searchsorted(rules.analyst.cuts, shown)
        each = [((1, int(cell)), tops[cells == cell], raised[cells == cell]) for cell in np.unique(cells)]
        for reading, *group in (*each, (rules.analyst.read(False, asked.otherwise), bottoms, level[~is_top])):
            if len(group[0]) and not rules.ended((*readings, reading)):
                groups.append(((*readings, reading), *group))
    return np.ma.MaskedArray(kept.T, mask=hidden.T)


def compared_with(chain: Chain) -> tuple[Reals, Reals]:
    """What meets the threshold, in both datasets."""
    p, q = (np.array([both[side].compared for both in chain]) for side in (0, 1))
    return p, q


def worst(rules: Rules, first: Records, second: Records, costs: Costs, ratios: Ratios | None = None) -> float:
    """The largest |log ratio| of a transcript.

    `costs(query, tops so far)` are what the answer of a top shows, by how it is read; all tops so far are written as
    the first of them. `ratios` are those of an epoch,
    by the place of its top, and, last, of none; left out, they are those of the comparisons.
    """

    @cache  # most epochs hold the same queries as another
    def epoch(chain: Chain) -> list[float]:
        if rules.threshold == -math.inf:
            return [0.0] + [-math.inf] * len(chain)
        return list(map(float, halting_ratios(*compared_with(chain), rules.threshold, *rules.scales)))

    def one_way(*sides: Records) -> float:
        @cache
        def best(readings: Readings, tops: Chain) -> float:
            prefixes, chain = [readings], list[Both]()
            while not rules.ended(prefixes[-1]):
                query = rules.analyst.asks(prefixes[-1])
                chain.append((rules.tell(query, sides[0]), rules.tell(query, sides[1])))
                prefixes.append((*prefixes[-1], rules.analyst.read(False, chain[-1][0].otherwise)))
            *ratio, none = (ratios or epoch)(tuple(chain)) if chain else (0.0,)
            after = [
                shown + cost + best(rules.analyst.kept((*before, (1, cell))), (*tops, (*tops, both)[0]))
                for shown, before, both in zip(ratio, prefixes, chain, strict=False)
                if shown > -math.inf
                for cell, cost in costs(both, tops)
            ]
            return max([none, *after])

        return best((), ())

    return max(one_way(first, second), one_way(second, first))


def shown(rules: Rules, both: Both, scale: float) -> Iterable[tuple[int, float]]:
    """What a value with Lap(scale) shows, by how it is read: its ratio rises or falls, so it is largest at an end."""
    p, q = (asked.value for asked in both)
    if scale == 0.0:
        return [(rules.analyst.read(True, p)[1], math.inf if p != q else 0.0)]
    ends = np.clip([-np.inf, *rules.analyst.cuts, np.inf], min(p, q), max(p, q))
    ratios = (np.abs(ends - q) - np.abs(ends - p)) / scale
    return enumerate(np.maximum(ratios[1:], ratios[:-1]).tolist())
