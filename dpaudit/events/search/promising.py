"""Which of many features are worth asking for an event: by what all tables show at a glance, a few operations each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.arrays import Integers
from dpaudit.events.search.goal import Goal

BY_BOUND, BY_SPREAD = 8, 4  # features that are asked: for one event of theirs, and for all of their cells together
PARTS, HALVINGS = 32, range(6, 10)  # parts of the mass at which thresholds are tried, and halvings towards both ends
ALONE = 4  # cells that are tried one by one: those furthest from even
LUCK_Z = 1.0  # deviations of luck taken off


def promising(tables: Sequence[Integers], goal: Goal) -> frozenset[int]:
    """The places of the most promising tables of counts, int64[cells, sides] each, of the same runs."""
    if len(tables) <= BY_BOUND + BY_SPREAD:
        return frozenset(range(len(tables)))
    ends = 0.5 ** np.array(HALVINGS)
    levels = np.sort(np.concatenate([ends, np.arange(1, PARTS) / PARTS, 1.0 - ends]))
    nested, single = [], []
    for table in tables:
        grown = np.cumsum(table, axis=0)
        both, hits = grown.sum(axis=1), table.sum(axis=1)
        nested.append(grown[np.minimum(np.searchsorted(both, levels * both[-1]), len(both) - 1)])
        apart = (table[:, 0] * grown[-1, 1] - table[:, 1] * grown[-1, 0]) ** 2.0 / np.maximum(hits, 1)
        single.append(table[np.resize(np.argsort(-apart)[:ALONE], ALONE)])
    below, runs = np.array(nested), tables[0].sum(axis=0)
    events = np.concatenate([below, runs - below, np.array(single)], axis=1).astype(np.float64)
    bounds = [
        goal.scores(events[..., p].ravel(), events[..., 1 - p].ravel(), int(runs[p]), int(runs[1 - p]), LUCK_Z)
        for p in (0, 1)
    ]
    bound = np.max(np.array(bounds).reshape(2, len(tables), -1), axis=(0, 2))
    cells = np.diff(np.append(below, np.broadcast_to(runs, (len(tables), 1, 2)), axis=1), axis=1, prepend=0)
    luck = np.maximum(cells.sum(axis=2) * float(runs[0]) * float(runs[1]), 1.0)
    spread = ((cells[..., 0] * float(runs[1]) - cells[..., 1] * float(runs[0])) ** 2 / luck - 1.0).sum(axis=1)
    first = np.argsort(-bound, kind="stable")[:BY_BOUND].tolist()
    rest = [place for place in np.argsort(-spread, kind="stable").tolist() if place not in first]
    return frozenset([*first, *rest[:BY_SPREAD]])
