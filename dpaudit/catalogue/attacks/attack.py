"""An attack: an event 'the attacker says the first world', on a release without DP and on the same one with DP."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base import validate
from dpaudit.base.arrays import Bools
from dpaudit.catalogue.entry import Entry, Source
from dpaudit.data import AdjacentPair
from dpaudit.mechanisms import Batched, batched

Guess = Callable[[npt.NDArray[Any]], Bools]


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attacker computes from a release, and what the attacker concludes.

    `without` is the release without DP and `private` the same one with DP; `pair` are the two worlds, neighbours
    under the claim of both. `guess(outputs)` holds, run by run, the event that the attacker says: the first world.
    `guess_private` is that event on the release with DP, where its outputs have another form. `runs` are as many as
    measure the attack within about a second.
    """

    name: str
    title: str
    source: Source
    formula: str
    without: Entry
    private: Entry
    pair: AdjacentPair
    guess: Guess
    guess_private: Guess | None = None
    runs: int = 20_000

    def says(self, entry: Entry) -> Guess:
        """The event on the outputs of this entry."""
        return self.guess_private if self.guess_private is not None and entry.name == self.private.name else self.guess


@dataclass(frozen=True, slots=True)
class Achievement:
    """How often the attacker says 'the first world': where it is (true positive), and where it is the second.

    >>> Achievement(0.75, 0.25).advantage
    0.5
    """

    true_positive: float
    false_positive: float

    @property
    def advantage(self) -> float:
        """The difference: 0 for an attacker who guesses blindly, 1 for one who is always right."""
        return self.true_positive - self.false_positive


def achieves(attack: Attack, entry: Entry, runs: int, seed: int) -> Achievement:
    """What the attack achieves on a release, from `runs` runs in each world.

    >>> from dpaudit.catalogue.attacks import find
    >>> achieves(find("differencing"), find("differencing").without, runs=10, seed=0).advantage
    1.0
    """
    validate.whole("runs", runs, least=1)
    says, call = attack.says(entry), entry.open().call
    streams = np.random.SeedSequence(seed).spawn(2)
    rates = [
        float(np.mean(says(call(data, runs, np.random.Generator(np.random.SFC64(stream))))))
        for data, stream in zip(attack.pair.open(), streams, strict=True)
    ]
    return Achievement(*rates)


def allowed(epsilon: float, delta: float = 0.0) -> float:
    """The largest advantage of any attack on a mechanism that is (epsilon, delta)-DP, between two neighbours.

    DP bounds true and false positives t and f by t <= e^epsilon f + delta and 1 - f <= e^epsilon (1 - t) + delta. Both
    hold with equality where t - f is largest (Kairouz, Oh & Viswanath 2015, The composition theorem for DP).

    >>> round(allowed(1.0), 4), allowed(0.0, 0.1)
    (0.4621, 0.1)
    """
    validate.not_negative("epsilon", epsilon)
    validate.probability("delta", delta)
    odds = math.exp(-epsilon)
    return (1.0 - odds + 2.0 * delta * odds) / (1.0 + odds)


def identified(candidates: int, epsilon: float, delta: float = 0.0) -> float:
    """The largest chance of naming the right one of k equally likely candidates, any two of them neighbours.

    With p_i the chance where i is right, (k - 1) p_i is at most e^epsilon times the chance of naming i in all other
    worlds together, plus (k - 1) delta; summed over i this bounds their mean (for delta = 0: Alvim et al. 2011,
    Differential privacy: on the trade-off between utility and information leakage).

    >>> round(identified(2, 1.0), 4), identified(10, 0.0)
    (0.7311, 0.1)
    """
    others, odds = validate.whole("candidates", candidates, least=1) - 1, math.exp(-epsilon)
    return (1.0 + others * delta * odds) / (1.0 + others * odds)


def attacked(attack: Attack, entry: Entry) -> Batched:
    """The release followed by the attack: a mechanism whose output is what the attacker says.

    That is post-processing, so the claim of the release is one on this mechanism too, and can be audited so.

    >>> from dpaudit.catalogue.attacks import find
    >>> attack = find("homogeneity")
    >>> attacked(attack, attack.without).open().call(attack.pair.second, 2, np.random.default_rng(0))
    array([False, False])
    """
    says, call = attack.says(entry), entry.open().call

    def conclusion(data: Any, runs: int, rng: np.random.Generator) -> Bools:
        return says(call(data, runs, rng))

    return batched(conclusion)
