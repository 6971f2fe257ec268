"""Sets of values, held against events that were there before the counts, on runs that did not choose them.

The order of many values by their counts fits luck, and what is believed of it is too much where the law of the log odds
is known badly. So each kind of event is chosen by one half of the counts and judged by the other (cross-validation:
Stone 1974), and the kind that is best there is chosen from all.
"""

from __future__ import annotations

import numpy as np

from dpaudit.arrays import Integers
from dpaudit.events.cells import Binning
from dpaudit.events.features import Feature
from dpaudit.events.search.goal import Goal
from dpaudit.events.search.selection import IN_ORDER_PRICE, Proposal, cells_inside, proposals

SPLITS, KINDS = 2, 3  # of the counts into halves, at random; a threshold or a value, and sets by a fine or coarse order


def judged(
    feature: Feature, bins: Binning, counts: Integers, goal: Goal, *, smoothed_z: float, rivals: float
) -> Proposal | None:
    """The best event of one feature, of the kind that is best on halves of the counts that did not choose it."""
    rng, total = np.random.default_rng(int(counts.sum())), np.zeros(KINDS)
    for _ in range(SPLITS):
        half = rng.binomial(counts, 0.5)
        for one, other in ((half, counts - half), (counts - half, half)):
            found = proposals(feature, bins, one, goal, closely=False, rivals=rivals)
            runs = other.sum(axis=0)
            for kind in range(KINDS if found else 0):
                event = found[min(kind, len(found) - 1)]
                if event is not None:
                    p = int(event[1].p_side == "second")
                    x, y = other[cells_inside(bins, event[1].event)].sum(axis=0)[[p, 1 - p], None].astype(np.float64)
                    total[kind] += max(0.0, float(goal.scores(x, y, int(runs[p]), int(runs[1 - p]), 0.0)[0]))
    total /= 2 * SPLITS
    total[1:] -= IN_ORDER_PRICE * np.clip(total[1:], 0.0, 1.0)
    found = proposals(feature, bins, counts, goal, smoothed_z=smoothed_z, rivals=rivals)
    left = [(total[kind], each[1]) for kind, each in enumerate(found) if each is not None]
    return max(left, key=lambda each: each[0], default=(0.0, None))[1]
