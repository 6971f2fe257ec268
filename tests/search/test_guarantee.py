"""What docs/statistics/search.md proves of search: no value or threshold is missed that a part of the runs shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from dpaudit.base.arrays import Integers, Reals
from dpaudit.claims import PureDP
from dpaudit.events.features import Coordinate
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import Token
from dpaudit.search.goal import Goal
from dpaudit.search.selection import MARGIN, propose, surely
from tests.cases import for_each

BELOW, ABOVE, CONSTANT = 2.72, 2.89, 6.0  # deviations of hits of P and of Q, and what they cost together
FEWEST = 100.0  # hits of Q expected in the search
assert math.exp(-(BELOW**2) / 2.0) <= 0.025  # Chernoff's bound below, Bernstein's above: each fails in one of 40
assert math.exp(-(ABOVE**2) / (2.0 * (1.0 + ABOVE / (3.0 * math.sqrt(FEWEST))))) <= 0.0255
assert -math.log(MARGIN) < 0.17  # a threshold that is moved clear of an edge gives up so much of its bound


def part(z: float, sure: float, search: float, certifying: float) -> float:
    """The part of the certifying runs in the statement."""
    return (z / (z + (sure + CONSTANT) * math.sqrt(certifying / search))) ** 2


def shown(p: float, q: float, runs: float, z: float) -> float:
    """The bound of a known event at its expected counts, of so many runs of both sides."""
    return math.log(p / q) - z * math.sqrt(2.0 / runs * (1.0 / p + 1.0 / q))


@for_each("values", [2, 10_000])
def test_the_worst_counts_still_show_the_stated_part(values: int) -> None:
    """The inequality of the proof, over rates, runs and error probabilities."""
    sure, tried = surely(values), 0
    for alpha in (0.05, 1e-3, 1e-6):
        for search in (1e4, 1e6, 1e8):
            for share in (0.05, 0.25, 0.5):
                certifying = search * (1.0 - share) / share
                goal, z = Goal(PureDP(1.0), int(certifying), alpha), -float(ndtri(alpha))
                for q in np.geomspace(2.0 * FEWEST / search, 0.4, 12):
                    for p in q * np.exp([0.01, 0.1, 0.5, 1.0, 2.0, 4.0]):
                        if p > 1.0:
                            continue
                        x, y = (search / 2.0 * rate for rate in (p, q))
                        worst = np.array([x - BELOW * math.sqrt(x)]), np.array([y + ABOVE * math.sqrt(y)])
                        score = float(goal.scores(*worst, int(search / 2), int(search / 2), sure)[0])
                        at = part(z, sure, search, certifying) * certifying
                        assert score >= shown(p, q, at, z), (p, q, search, share, alpha)
                        tried += 1
    assert tried > 700


def law(values: int, rng: np.random.Generator) -> tuple[Reals, Reals]:
    """Outputs of random masses, a tenth of which are likelier on one side."""
    p = rng.dirichlet(np.full(values, 0.5))
    q = p * np.exp(np.where(rng.random(values) < 0.1, rng.normal(0.0, 1.5, values), 0.0))
    return p, q / q.sum()


def drawn(p: Reals, q: Reals, runs: int, rng: np.random.Generator) -> Integers:
    """Tokens of these laws: the table of their cells, of which the first and the last hold nothing."""
    return np.pad(np.stack([rng.multinomial(runs, side) for side in (p, q)], axis=1), ((1, 1), (0, 0)))


def tokens(values: int) -> Binning:
    return Binning(np.empty(0, np.float32), tuple(Token(str(j), 2 * j + 1) for j in range(values)))


@for_each("values", [3, 700], nightly=[40, 10_000])
def test_nothing_is_proposed_below_what_is_sure(values: int) -> None:
    """Whatever is believed: the score is at least that of each single value at `surely` deviations."""
    rng, bins = np.random.default_rng(values), tokens(values)
    goal = Goal(PureDP(1.0), 300_000, 1e-3)
    for _ in range(6):
        counts = drawn(*law(values, rng), 50_000, rng)
        found = propose(Coordinate(()), bins, counts, goal)
        seen = counts[counts.sum(axis=1) > 0]
        sure = [
            goal.scores(*seen[:, way].T.astype(float), 50_000, 50_000, surely(len(seen))).max()
            for way in ([0, 1], [1, 0])
        ]
        assert found.score >= max(sure) - 1e-12


@pytest.mark.long
@for_each("values", [10, 10_000], nightly=[1_000])
def test_the_score_reaches_the_oracle_of_the_stated_part(values: int) -> None:
    """In more than 0.95 of searches, all seeded: of twenty, nine would fail by chance with a probability of 2e-7."""
    search, certifying, alpha, missed = 200_000, 600_000, 1e-3, 0
    goal, z, bins = Goal(PureDP(1.0), certifying, alpha), -float(ndtri(alpha)), tokens(values)
    runs = part(z, surely(values), search, certifying) * certifying
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, q = law(values, rng)
        found = propose(Coordinate(()), bins, drawn(p, q, search // 2, rng), goal)
        both = [*zip(p, q, strict=True), *zip(q, p, strict=True)]
        oracle = max((shown(a, b, runs, z) for a, b in both if b * search >= 2 * FEWEST), default=0.0)
        missed += found is None or found.score < oracle
    assert missed < 9
