"""The choice of a partition: the bins whose certified Rényi divergence will be largest, errors of search taken off.

The divergence of the bins is ln(sum of p^a q^(1 - a)) / (a - 1). More bins lose less of it, and cost more: each has
two limits at an equal share of alpha. So neighbouring bins are merged one by one, always those two that lose least,
and the best number of bins is kept. Neighbours stand side by side on the line of numbers, or, where values are few,
in the order of their ratios.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.errors import InvalidSpec
from dpaudit.events.binning import Binning, Counts
from dpaudit.events.event import Event
from dpaudit.events.explore import Plan, price
from dpaudit.events.features import Feature
from dpaudit.events.goal import Goal, Reals, luck_down, luck_up
from dpaudit.events.partition import Partition
from dpaudit.events.selection import MANY_CELLS, Proposal, event_of, falling

ORDERS = (2.0, 4.0, 8.0)  # tried for a claim about all orders
FEWEST_BINS, MOST_BINS = 2, 16
CELLS = 40  # of which bins are made, at the most
FEWEST_HITS = 10.0  # of both sides in one of them
LUCK_Z, SORTED_Z = 1.0, 1.5  # deviations of luck taken off; of an order that was learned

Cells = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class PartitionProposal:
    """A partition, the side that is P in D(P || Q), how it was found, its uncertified score, and the order."""

    partition: Partition
    p_side: Literal["first", "second"]
    family: str
    score: float
    order: float


def best_partition(chosen: Plan, counts: Counts, goal: Goal) -> PartitionProposal | None:
    """The best partition of all features counted, less what it costs a reader; None where none will certify anything.

    Raises `InvalidSpec` for a claim that is not about Rényi divergences.
    """
    found = [
        (proposal.score * (1.0 - price(feature, learned)), proposal)
        for (feature, bins), table, learned in zip(
            chosen.tables.features, chosen.tables.split(counts), chosen.learned, strict=True
        )
        if (proposal := propose_partition(feature, bins, table, goal)) is not None
    ]
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def propose_partition(feature: Feature, bins: Binning, counts: Counts, goal: Goal) -> PartitionProposal | None:
    """The best partition of one feature, over both sides and the orders of the claim.

    The score is in the claim's own parameter. Raises `InvalidSpec` for a claim that is not about Rényi divergences.
    """
    best: PartitionProposal | None = None
    runs = counts.sum(axis=0)
    for p, side in ((0, "first"), (1, "second")):
        x, y = counts[:, p].astype(float), counts[:, 1 - p].astype(float)
        cells, sorted_ = _cells(bins, x, y)
        if len(cells) < FEWEST_BINS or min(runs) == 0:
            continue
        sums = np.array([[x[part].sum(), y[part].sum()] for part in cells])
        for order in orders(goal.claim):
            sizes = int(runs[p]), int(runs[1 - p])
            divergence, groups = _merged(sums, sizes, order, goal, SORTED_Z if sorted_ else LUCK_Z)
            score = _in_parameter(goal, divergence, order)
            if score > (0.0 if best is None else best.score):
                parts = [np.sort(np.concatenate(cells[low:high])) for low, high in groups]
                partition = Partition(feature, tuple(event_of(feature, bins, part) for part in parts))
                family = "bins in order of their ratio" if sorted_ else "neighbouring bins"
                best = PartitionProposal(partition, side, family, score, order)  # type: ignore[arg-type]
    return best


def as_partition(proposal: Proposal, order: float = ORDERS[0]) -> PartitionProposal:
    """An event as a partition of one bin: where no partition was found."""
    event: Event = proposal.event
    return PartitionProposal(Partition(event.feature, (event,)), proposal.p_side, proposal.family, 0.0, order)


def orders(claim: object) -> tuple[float, ...]:
    """The orders at which a partition for this claim is looked for. Raises `InvalidSpec` where it has none."""
    if hasattr(claim, "order"):
        return (float(claim.order),)
    if hasattr(claim, "rho"):
        return ORDERS
    raise InvalidSpec(f"bins are for claims about Rényi divergences, got the claim {claim}")


def _in_parameter(goal: Goal, divergence: float, order: float) -> float:
    """The divergence of an order in the claim's own parameter: rho of xi + rho a, or itself."""
    if hasattr(goal.claim, "rho"):
        return (divergence - float(getattr(goal.claim, "xi", 0.0))) / order
    return divergence


def _cells(bins: Binning, x: Reals, y: Reals) -> tuple[list[Cells], bool]:
    """The cells that bins are made of, in an order in which neighbours may merge; and whether it was learned."""
    both = x + y
    filled = np.flatnonzero(both[:-1])  # the last cell, tokens never seen on the pilot, cannot be named
    if len(filled) == 0:
        return [], False
    numbers, tokens = filled[filled < bins.bins], filled[filled >= bins.bins]
    if len(numbers) <= MANY_CELLS:
        order = filled[falling(np.stack([x[filled], y[filled]]))]
        return _in_groups(order, both), True
    order = tokens[falling(np.stack([x[tokens], y[tokens]]))]
    room = max(CELLS - len(order), CELLS // 2)
    cuts = _cuts(both[: bins.bins], room)
    parts = [np.arange(low, high) for low, high in zip([0, *cuts], [*cuts, bins.bins], strict=True)]
    return [*parts, *(_in_groups(order, both) if len(order) else [])], False


def _in_groups(order: Cells, both: Reals) -> list[Cells]:
    """The cells one by one, those with few hits with the next; at most `CELLS`, of equal mass where there are more."""
    least = max(FEWEST_HITS, both[order].sum() / CELLS if len(order) > CELLS else 0.0)
    groups: list[list[int]] = [[]]
    mass = 0.0
    for cell in order:
        groups[-1].append(int(cell))
        mass += both[cell]
        if mass >= least:
            groups.append([])
            mass = 0.0
    if len(groups) > 1:  # what is left over, too little for a group of its own
        rest = groups.pop()
        groups[-1].extend(rest)
    return [np.array(group, np.intp) for group in groups]


def _cuts(both: Reals, room: int) -> list[int]:
    """Cuts of the numbers: geometric in the mass of either tail, where ratios are largest, and even between."""
    mass = np.cumsum(both)
    total = mass[-1]
    tails = np.geomspace(min(FEWEST_HITS, total / 8.0), total / 8.0, room // 3)
    levels = np.concatenate([tails, np.linspace(total / 8.0, total * 7.0 / 8.0, room - 2 * len(tails)), total - tails])
    cuts = np.unique(np.searchsorted(mass, levels, side="left")) + 1
    return [int(cut) for cut in cuts if cut < len(both)]


def _merged(
    sums: Reals, runs: tuple[int, int], order: float, goal: Goal, z: float
) -> tuple[float, list[tuple[int, int]]]:
    """The best predicted divergence, and its bins as ranges of cells."""
    edges = list(range(len(sums) + 1))
    totals = np.concatenate([np.zeros((1, 2)), np.cumsum(sums, axis=0)])
    best: tuple[float, list[tuple[int, int]]] = (-math.inf, [])
    while True:
        bins = len(edges) - 1
        if FEWEST_BINS <= bins <= MOST_BINS:
            terms, luck = _terms(np.diff(totals[edges], axis=0), runs, order, goal, bins, z)
            top = float(terms.max())
            weights = np.exp(terms - top)
            sure = top + math.log(weights.sum()) - math.sqrt(float(((weights * luck) ** 2).sum())) / weights.sum()
            if sure / (order - 1.0) > best[0]:
                best = (sure / (order - 1.0), list(itertools.pairwise(edges)))
        if bins <= FEWEST_BINS:
            return best
        here = np.array(edges)
        apart, luck = _terms(np.diff(totals[here], axis=0), runs, order, goal, bins - 1, z)
        merged, together = _terms(totals[here[2:]] - totals[here[:-2]], runs, order, goal, bins - 1, z)
        apart, merged = apart - luck, merged - together
        top = max(float(apart.max()), float(merged.max()))
        gain = np.exp(merged - top) - np.exp(apart[:-1] - top) - np.exp(apart[1:] - top)
        del edges[int(np.argmax(gain)) + 1]


def _terms(sums: Reals, runs: tuple[int, int], order: float, goal: Goal, bins: int, z: float) -> tuple[Reals, Reals]:
    """ln of each bin's term at the limits of the certification to come, and `z` deviations of luck in it."""
    from scipy.special import ndtri

    x, y = sums[:, 0], sums[:, 1]
    p, q = (x + 0.5) / (runs[0] + 1.0), (y + 0.5) / (runs[1] + 1.0)
    final, side = -float(ndtri(goal.alpha / (2.0 * bins))), goal.runs / 2.0
    low, high = np.log(p) - luck_down(side * p, p, final), np.log(q) + luck_up(side * q, q, final)
    luck = np.hypot(order * luck_down(x, p, z), (order - 1.0) * luck_up(y, q, z))
    return order * low + (1.0 - order) * high, luck
