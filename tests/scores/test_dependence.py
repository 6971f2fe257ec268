"""What the tests of dependence see, and how often they see what is not there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.scores.dependence import dependence, halves_p_value, halves_right


def test_dependence_is_seen_between_neighbours_and_blocks_and_not_where_there_is_none() -> None:
    rng = np.random.default_rng(6)
    coins = rng.random(900) < 0.5
    seen = [dependence(rng.normal(size=900) + coins, coins).p_value <= 0.01 for _ in range(60)]
    assert sum(seen) <= 7  # probability of more, at 1 %: below 1e-6
    rare = ((rng.random((20, 200)) < 0.01, rng.random((20, 200)) < 0.5) for _ in range(60))
    seen = [dependence(flags.astype(float), members).p_value <= 0.01 for flags, members in rare]
    assert sum(seen) <= 7  # as often as for normal scores, in 20 rows; by a normal law it was 13
    noise = rng.normal(size=901)
    assert dependence(noise[1:] + 0.5 * noise[:-1] + coins, coins).p_value == 1e-3  # the least that there is
    assert dependence(rng.normal(size=900) + np.repeat(rng.normal(size=30), 30) + coins, coins).p_value == 1e-3
    assert dependence(np.arange(4.0), coins[:4]).p_value == 1.0
    told = np.where(rng.random(900) < 1.0 / (1.0 + math.exp(-1.5)), coins, ~coins) + 0.0
    assert dependence(told, coins).p_value > 0.01  # one coin that all canaries share cannot be seen in one training
    with pytest.raises(InvalidSpec, match="included must be bools, one for each of the 3 scores, got int64 of shape"):
        dependence([1.0, 2.0, 3.0], np.array([1, 0, 1]))


def test_rare_flags_of_independent_halves_share_nothing() -> None:
    """Two halves that each tell one thing once, in rows of their own: each other order is as strong, so p is 1.

    And of 60 sets of independent rows eight or more would be 1 in 100 in 2e-7 of all cases; a tenth of them were,
    while an order that tells less than none did not count as strong as itself.
    """
    apart = np.zeros((200, 2))
    apart[0, 0] = apart[1, 1] = 1.0
    assert halves_p_value(apart) == 1.0
    least = []
    for seed in range(60):
        rng = np.random.default_rng([711, seed])
        rows = ((rng.random((200, 20)) < 0.0007).astype(float), rng.random((200, 20)) < 0.5)
        least.append(halves_p_value(np.array([halves_right(*each) for each in zip(*rows, strict=True)])))
    assert sum(each <= 0.01 for each in least) <= 7
