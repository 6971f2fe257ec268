"""The choice of a partition: the bins whose certified Rényi divergence will be largest, errors of search taken off.

What is certified of bins in order of falling ratio are the first j of them together, for each j: points (q, p), and
the divergence of the least concave curve above them. More bins lose less of the divergence, and cost more: each event
has two limits at an equal share of alpha. So cells are put in an order, the limits of the certification to come are
predicted for all their borders, and borders are taken away one by one, always the one that loses least (one below the
curve loses nothing); the best number of them is kept. An order that the search learned is judged on runs that did not
take part in it.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpaudit.base.arrays import Integers, Places, Reals
from dpaudit.errors import InvalidSpec
from dpaudit.events.event import Event, Partition
from dpaudit.events.features import Feature
from dpaudit.events.scores import Binning
from dpaudit.search.explore import SearchPlan, price
from dpaudit.search.goal import Goal, luck_down, luck_up
from dpaudit.search.selection import MANY_CELLS, Proposal, event_of
from dpaudit.search.smoothing import believed

ORDERS = (2.0, 4.0, 8.0)  # tried for a claim about all orders
FEWEST_BINS, MOST_BINS = 2, 16
CELLS = 40  # of which bins are made, at the most
FEWEST_HITS = 10.0  # of both sides in one of them
LUCK_Z = 2.5  # deviations of luck taken off each point
ALIKE = 0.99  # fewer bins are better for a reader where the bound is as good as that


@dataclass(frozen=True, slots=True)
class PartitionProposal:
    """A partition, the side that is P in D(P || Q), how it was found, its uncertified score, and the order."""

    event: Partition
    p_side: Literal["first", "second"]
    family: str
    score: float
    order: float
    delta: float = 0.0  # no single event is certified


def best_partition(chosen: SearchPlan, counts: Integers, goal: Goal) -> PartitionProposal | None:
    """The best partition of all features counted, less what it costs a reader; None where none will certify anything.

    Raises `InvalidSpec` for a claim that is not about Rényi divergences.
    """
    candidates = [
        (proposal.score * (1.0 - price(feature, learned)), proposal)
        for (feature, bins), table, learned in zip(
            chosen.tables.features, chosen.tables.split(counts), chosen.learned, strict=True
        )
        if (proposal := propose_partition(feature, bins, table, goal)) is not None
    ]
    return max(candidates, key=lambda each: each[0], default=(0.0, None))[1]


def propose_partition(feature: Feature, bins: Binning, counts: Integers, goal: Goal) -> PartitionProposal | None:
    """The best partition of one feature, over both sides and the orders of the claim; counts int64[cells, sides].

    The score is in the claim's own parameter. Raises `InvalidSpec` for a claim that is not about Rényi divergences.
    """
    best: PartitionProposal | None = None
    runs, orders = counts.sum(axis=0), goal.claim.orders(ORDERS)
    if not orders:
        raise InvalidSpec(f"bins are for claims about Rényi divergences, got the claim {goal.claim}")
    if min(runs) == 0:
        return None
    for p, side in ((0, "first"), (1, "second")):
        sizes = int(runs[p]), int(runs[1 - p])
        for ranked in _rankings(bins, counts[:, [p, 1 - p]]):
            for order in orders:
                divergence, borders = _chosen(ranked.hits, sizes, order, goal)
                score = goal.claim.at_divergence(order, divergence)
                if score > (0.0 if best is None else best.score):
                    groups = itertools.pairwise([0, *borders, len(ranked.cells)])
                    parts = [np.sort(np.concatenate(ranked.cells[low:high])) for low, high in groups]
                    partition = Partition(feature, tuple(event_of(feature, bins, part) for part in parts))
                    best = PartitionProposal(partition, side, ranked.family, score, order)  # type: ignore[arg-type]
    return best


def as_partition(proposal: Proposal, order: float = ORDERS[0]) -> PartitionProposal:
    """An event as a partition of one bin: where no partition was found."""
    event: Event = proposal.event
    return PartitionProposal(Partition(event.feature, (event,)), proposal.p_side, proposal.family, 0.0, order)


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Cells in the order in which they join the events, and the hits of the first 1, 2, ... of them, but not of all."""

    family: str
    cells: list[Places]
    hits: Reals  # (cell, side), P's first


def _rankings(bins: Binning, counts: Integers) -> list[_Ranking]:
    """The orders that are tried: numbers from either end, and all cells by the ratios that the search has seen."""
    both = counts.sum(axis=1).astype(float)
    filled = np.flatnonzero(both[:-1])  # the last cell, tokens never seen on the pilot, cannot be named
    numbers, tokens = filled[filled < bins.bins], filled[filled >= bins.bins]
    if len(filled) < FEWEST_BINS:
        return []
    few = len(numbers) <= MANY_CELLS
    cells: list[Places] = []
    if len(numbers) and not few:
        cuts = _cuts(both[: bins.bins], max(CELLS - len(tokens), CELLS // 2))
        cells = [np.arange(low, high) for low, high in itertools.pairwise([0, *cuts, bins.bins])]
    lines = (
        [] if few or len(tokens) else [(1, "bins from the lowest number up"), (-1, "bins from the highest number down")]
    )
    cells += [np.array([cell]) for cell in (filled if few else tokens)]
    sums = np.array([counts[part].sum(axis=0) for part in cells]).reshape(-1, 2)
    rankings = [
        _Ranking(family, cells[::way], np.cumsum(sums[::way], axis=0)[:-1].astype(float)) for way, family in lines
    ]
    belief, hits = believed(*sums.T.astype(float)), sums.sum(axis=1)
    order = np.argsort(-belief.share, kind="stable")
    ends = _ends(hits[order])
    together = [np.concatenate([cells[j] for j in order[low:high]]) for low, high in itertools.pairwise([0, *ends])]
    judged = np.cumsum(np.stack([hits * belief.share, hits * (1.0 - belief.share)], axis=1)[order], axis=0)
    judged = np.minimum(judged, sums.sum(axis=0))
    rankings.append(_Ranking("bins in order of their ratio", together, judged[ends[:-1] - 1]))
    return [each for each in rankings if len(each.cells) >= FEWEST_BINS]


def _ends(hits: Reals) -> Places:
    """Where groups of neighbours end: those with few hits go with the next; at most `CELLS`, of about equal mass."""
    least = max(FEWEST_HITS, hits.sum() / CELLS if len(hits) > CELLS else 0.0)
    ends: list[int] = []
    mass = 0.0
    for place, more in enumerate(hits.tolist()):
        mass += more
        if mass >= least:
            ends.append(place + 1)
            mass = 0.0
    return np.array([*ends[:-1], len(hits)], np.intp)  # what is left over goes with the last


def _cuts(both: Reals, room: int) -> list[int]:
    """Cuts of the numbers: geometric in the mass of either tail, where ratios are largest, and even between."""
    mass = np.cumsum(both)
    total = mass[-1]
    tails = np.geomspace(min(FEWEST_HITS, total / 8.0), total / 8.0, room // 3)
    levels = np.concatenate([tails, np.linspace(total / 8.0, total * 7.0 / 8.0, room - 2 * len(tails)), total - tails])
    cuts = np.unique(np.searchsorted(mass, levels, side="left")) + 1
    return [int(cut) for cut in cuts if cut < len(both)]


def _chosen(hits: Reals, runs: tuple[int, int], order: float, goal: Goal) -> tuple[float, list[int]]:
    """The best predicted divergence, and the borders of its bins: the numbers of cells before them."""
    luck = LUCK_Z / math.sqrt(2.0)  # of both rates together
    rates = (hits + 0.5) / (np.array(runs) + 1.0)
    p, q = _low(rates[:, 0], runs[0], luck), 1.0 - _low(1.0 - rates[:, 1], runs[1], luck)
    places = np.arange(len(hits))
    choices: list[tuple[float, list[int]]] = []
    while len(places):
        points = _predicted(p[places], q[places], goal)
        corners = _corners(points)
        if len(corners) < len(places):
            places = places[corners]
            continue
        pieces = np.diff(np.concatenate([[[0.0, 0.0]], points, [[1.0, 1.0]]]), axis=0)
        terms, merged = _log_terms(pieces, order), _log_terms(pieces[:-1] + pieces[1:], order)
        top = float(terms.max())
        terms, merged = np.exp(terms - top), np.exp(merged - top)
        if len(places) < MOST_BINS:
            choices.append(((top + math.log(terms.sum())) / (order - 1.0), [int(j) + 1 for j in places]))
        lost = terms[:-1] + terms[1:] - merged
        places = np.delete(places, int(np.argmin(lost)))
    most = max((divergence for divergence, _ in choices), default=0.0)
    return next((each for each in reversed(choices) if most > 0.0 and each[0] >= ALIKE * most), (-math.inf, []))


def _predicted(p: Reals, q: Reals, goal: Goal) -> Reals:
    """The points (q, p) at the limits of the certification to come, where these events share alpha."""
    from scipy.special import ndtri

    z, side = -float(ndtri(goal.alpha / (2.0 * len(p)))), goal.runs / 2.0
    return np.stack([1.0 - _low(1.0 - q, side, z), _low(p, side, z)], axis=1)


def _low(rate: Reals, runs: float, z: float) -> Reals:
    """The lower limit of rates, `z` deviations down: of the rarer of an event and its complement."""
    rare = np.clip(rate, 0.0, 0.5), np.clip(1.0 - rate, 0.0, 0.5)
    down = rare[0] * np.exp(-luck_down(runs * rare[0], rare[0], z))
    up = rare[1] * np.exp(luck_up(runs * rare[1], rare[1], z))
    return np.asarray(np.where(rate <= 0.5, down, np.maximum(1.0 - up, 0.0)))


def _corners(points: Reals) -> list[int]:
    """Which points, in order of the events, are corners of the least concave curve above them, (0, 0) and (1, 1)."""
    places: list[int] = []
    corners = [(0.0, 0.0)]
    for place, (q, p) in enumerate([*points.tolist(), (1.0, 1.0)]):
        if p <= corners[-1][1] or q <= 0.0:
            continue
        while len(corners) > 1:
            (a, b), (c, d) = corners[-2], corners[-1]
            if (d - b) * (q - a) > (p - b) * (c - a):
                break
            corners.pop()
            places.pop()
        if q > corners[-1][0]:
            corners.append((q, p))
            places.append(place)
    return [place for place in places if place < len(points)]


def _log_terms(pieces: Reals, order: float) -> Reals:
    return np.asarray(order * np.log(pieces[:, 1]) + (1.0 - order) * np.log(pieces[:, 0]))
