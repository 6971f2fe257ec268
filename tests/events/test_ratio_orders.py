"""Sets of values in order of their ratio: what is scored is the set that is proposed. Seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.events.binning import Binning
from dpaudit.events.features import Coordinate
from dpaudit.events.goal import Goal
from dpaudit.events.selection import propose

RUNS = 50_000


@pytest.mark.parametrize("seed", range(200))
def test_equal_ratios_do_not_exchange_a_common_set_for_a_rare_one(seed: int) -> None:
    """Forty values with one ratio e^0.69 on either side, their masses from 0.2 to 1e-5.

    The order of equal ratios is luck, so orders of two halves of the runs put other values first. The event must show
    most of the loss whatever the order: a set of a tenth of the mass, with its bound of 0.6 at 450,000 runs a side.
    """
    rng = np.random.default_rng(seed)
    values = np.arange(-20, 20)
    mass = 0.6 ** np.abs(values + 0.5)
    p, q = (mass * np.where(values >= 0, up, 3 - up) for up in (2, 1))
    p, q = p / p.sum(), q / q.sum()
    counts = np.stack([rng.multinomial(RUNS, p), rng.multinomial(RUNS, q)], axis=1)
    edges = np.arange(-20, 19) + 0.5
    binning = Binning(edges.astype(np.float32))
    padded = np.vstack([counts, np.zeros((1, 2), np.int64)])
    proposal = propose(Coordinate(()), binning, padded, Goal(PureDP(0.5), 900_000, 1e-5, "coin-flip"))
    assert proposal is not None
    held = np.array([any(low < value <= high for low, high in proposal.event.intervals) for value in values])
    likelier, rarer = (p, q) if proposal.p_side == "first" else (q, p)
    assert likelier[held].sum() > 0.1
    assert np.log(likelier[held].sum() / rarer[held].sum()) > 0.6
