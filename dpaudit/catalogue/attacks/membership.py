"""Membership inference: was this person's record used, judged from an average of many attributes."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.catalogue.attacks.attack import Attack
from dpaudit.catalogue.entry import Source
from dpaudit.catalogue.releases.vectors import HOMER, noisy_mean_vector
from dpaudit.pairs import AdjacentPair

SARKAR = "Sarkar, notes 003"
PEOPLE, ATTRIBUTES = 40, 400


def people(size: int, attributes: int, rng: np.random.Generator) -> Reals:
    """Rows of fair signs: a population in which no attribute leans to one side.

    >>> people(2, 3, np.random.default_rng(0)).shape
    (2, 3)
    """
    return np.asarray(2 * rng.integers(0, 2, (size, attributes)) - 1, np.float64)


def member_score(person: Reals, averages: Reals) -> Reals:
    """The inner product test: how far the published averages lean towards the person, over what a member adds.

    With fair signs it is 1 on average for a member and 0 for a stranger, with a variance of about n / d.

    >>> member_score(np.array([1.0, -1.0]), np.array([[0.5, -0.5]])) * 2
    array([1.])
    """
    return np.asarray(averages @ person / len(person))


def homer_advantage(size: int, attributes: int) -> float:
    """The advantage of the test on exact averages, over random members and strangers, for many attributes.

    Score times n is nearly N(1, n / d) against N(0, n / d), and the threshold lies at 1/2.

    >>> round(homer_advantage(40, 400), 4)
    0.8862
    """
    return math.erf(math.sqrt(attributes / size) / 2.0 / math.sqrt(2.0))


_DRAWN = people(PEOPLE + 1, ATTRIBUTES, np.random.default_rng(2008))
_TARGET, _STRANGER, _REST = _DRAWN[:1], _DRAWN[1:2], _DRAWN[2:]


membership_in_an_average = Attack(
    name="membership_in_an_average",
    title="Membership in an average of 400 attributes: the inner product test",
    source=Source(f"{SARKAR}, 'Aggregate functions' (membership inference attacks)", HOMER),
    formula=(
        "the inner product of her attributes with the averages; the attacker says 'member' above d / (2 n), "
        "as it is about d / n for a member and about 0 for a stranger"
    ),
    without=noisy_mean_vector.exact,
    private=noisy_mean_vector,
    pair=AdjacentPair(
        np.concatenate([_TARGET, _REST]), np.concatenate([_STRANGER, _REST]), name="she is one of the 40, or a stranger"
    ),
    guess=lambda averages: member_score(_TARGET[0], averages) > 0.5 / PEOPLE,
    runs=5_000,
)
