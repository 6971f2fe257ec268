"""Analysts who choose each query by the answers to the ones before, and never see the data."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from dpaudit.base.arrays import Masked, Places, Reals
from dpaudit.catalogue.entry import Entry, Parameter, one_of, pure_if_replaced
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.sparse.losses import Scales
from dpaudit.losses.comparisons import halting_ratios

in_room = partial(Entry, module="dpaudit.catalogue.adaptive", promise=pure_if_replaced)

Record = Sequence[float]
Records = Sequence[Record]
Query = Callable[[Record], float]  # into [0, 1]
Readings = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Analyst:
    """Chooses the next query: `asks(readings)`, from how each answer so far was read.

    A reading is whether the private data answered (1, a top) or not (0), and the place of the answer among the `cuts`,
    0 below all of them. So there are finitely many transcripts, and the loss of all of them together is exact.
    `queries` says how many are asked, None: as many as a record has numbers. Where only the numbers of answers and of
    tops matter, not their order, `counts` says so: that keeps the exact loss cheap. One that an audit names, one of
    `ANALYSTS` or `module:name`, is the same for both datasets.
    """

    asks: Callable[[Readings], Query]
    queries: int | None = None
    cuts: tuple[float, ...] = ()
    counts: bool = False

    def many(self, data: Records) -> int:
        """How many queries these records are asked."""
        return len(data[0]) if self.queries is None else self.queries

    def read(self, is_top: bool, answer: float) -> tuple[int, int]:
        """How an answer is read."""
        return int(is_top), bisect_left(self.cuts, answer)

    def kept(self, readings: Readings) -> Readings:
        """What matters of the readings: their numbers, or all of them."""
        return tuple(sorted(readings)) if self.counts else readings


def _bisects(readings: Readings) -> Query:
    low, high = 0.0, 1.0
    for _, at_least_half in readings:
        middle = (low + high) / 2.0
        low, high = (low, middle) if at_least_half else (middle, high)
    return lambda record: float(record[0] <= (low + high) / 2.0)


def _follows(readings: Readings) -> Query:
    def query(record: Record) -> float:
        agree = [feature == record[-1] for feature in record[:-1]]
        if len(readings) < len(agree):
            return float(agree[len(readings)])
        votes = sum(agrees == bool(kept) for agrees, (_, kept) in zip(agree, readings, strict=False))
        return float(2 * votes > len(agree))

    return query


ANALYSTS = {
    "in order": Analyst(
        lambda readings: itemgetter(len(readings)), counts=True
    ),  # query j is the number at place j of a record, whatever the answers
    "repeats": Analyst(
        lambda readings: itemgetter(sum(top for top, _ in readings)), 8, counts=True
    ),  # asks for the first number until it is a top, then for the next one
    "bisects": Analyst(_bisects, 4, (0.5,)),  # looks for the median of the first number, in [0, 1]
    "follows": Analyst(_follows, None, (0.5,)),  # keeps features that agree with the label, then asks for their vote
}


def average(query: Query, data: Records) -> float:
    """E_S[phi], the average of a query over a dataset."""
    return sum(map(query, data)) / len(data)


def named(analyst: object, what: str = "analyst") -> Analyst:
    """The analyst of this name; raises `InvalidSpec`."""
    return one_of(what, ANALYSTS, Analyst, analyst)


ANALYST = Parameter(
    "analyst", "in order", "name", "who chooses the queries", lambda name, value: named(value, name) and value
)


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
