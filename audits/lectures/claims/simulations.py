"""Simulations behind the statements on adaptive choices: what is chosen by the data, seen again on the same data.

Every function takes the generator it draws from, so the same seed gives the same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.catalogue import find
from dpaudit.catalogue.noise import laplace

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Rng = np.random.Generator
EPSILON_OF_ONE = 8.0  # for one of the few samples behind a final query of the unrealistic example


@dataclass(frozen=True, slots=True)
class Example:
    """The sizes of the notes' unrealistic example, as whole numbers: `per_group` groups of as many subsets."""

    size: int
    per_group: int

    @classmethod
    def of(cls, n: int) -> Example:
        """Subsets of about ln(n) samples, in about sqrt(n / ln(n)) groups of as many.

        >>> Example.of(10_000)
        Example(size=9, per_group=33)
        """
        size = round(math.log(n))
        return cls(size, round(math.sqrt(n / size)))

    def noise(self, beta: float) -> float:
        """The scale of the appendix in standard deviations of a subset's mean: 3 sqrt(2 / ln(1 / beta)).

        >>> round(Example.of(10_000).noise(0.05), 4)
        2.4512
        """
        return 3.0 * math.sqrt(2.0 / math.log(1.0 / beta))


def final_queries(example: Example, noise: float, runs: int, rng: Rng) -> Floats:
    """The average of the chosen subsets' means, the true mean being 0: one number a run.

    `noise` is in standard deviations of a subset's mean: 0 takes the exact maximum of each group, infinity any one.

    >>> final_queries(Example(9, 33), 0.0, 2, np.random.default_rng(1)).round(2)
    array([0.69, 0.76])
    """
    means = rng.standard_normal((runs, example.per_group, example.per_group))
    if math.isinf(noise):
        chosen = means[:, :, 0]
    else:
        picks = np.argmax(means + laplace(rng, noise, means.size).reshape(means.shape), axis=2)
        chosen = np.take_along_axis(means, picks[:, :, None], axis=2)[:, :, 0]
    return np.asarray(chosen.mean(axis=1) / math.sqrt(example.size))


def best_of(n: int, queries: int, epsilons: Floats, runs: int, rng: Rng) -> tuple[Counts, Counts]:
    """How many of n fair bits are 1 for the best of many queries: by exact choice, and by the exponential mechanism.

    Each query is true of every sample with probability 1/2, so its expectation is 1/2. The choice with e^(epsilon
    count / 2) is epsilon-DP: one sample moves a count by at most 1. Queries of one count are alike, so a run draws
    how many there are of each. Returns the exact choices (run) and the private ones (epsilon, run).

    >>> exact, private = best_of(400, 100_000, np.array([0.1]), 4, np.random.default_rng(1))
    >>> exact, private
    (array([249, 240, 246, 241]), array([[216, 209, 206, 201]]))
    """
    from scipy.stats import binom

    counts = np.arange(n + 1)
    law = binom.pmf(counts, n, 0.5)
    held = rng.multinomial(queries, law / law.sum(), size=runs)
    exact = np.max(np.where(held > 0, counts, -1), axis=1)
    private = np.empty((len(epsilons), runs), np.int64)
    for row, epsilon in enumerate(epsilons):
        weights = np.cumsum(held * np.exp(epsilon * (counts - n / 2.0) / 2.0), axis=1)
        private[row] = (weights < (rng.random(runs) * weights[:, -1])[:, None]).sum(axis=1)
    return exact, private


@dataclass(frozen=True, slots=True)
class Holdout:
    """The experiment with a holdout that is used again and again: labels that no feature predicts.

    Thresholdout has threshold `threshold`, noise rate `sigma` and `budget` answers from the holdout.
    """

    n: int = 1_000
    features: int = 2_000
    keep: int = 101
    threshold: float = 0.06
    sigma: float = 0.002
    budget: int = 60

    @property
    def epsilon(self) -> float:
        """What the budget costs by the notes: 2 B / (sigma n)."""
        return 2.0 * self.budget / (self.sigma * self.n)


def holdouts(setting: Holdout, runs: int, rng: Rng) -> dict[str, Floats]:
    """The accuracy of a vote of features kept by training set and holdout: as told by the holdout, and on fresh data.

    `naive` asks the holdout directly, `thresholdout` through Thresholdout; `used` is the budget spent.

    >>> seen = holdouts(Holdout(n=200, features=50, keep=5), 1, np.random.default_rng(1))
    >>> sorted(seen)
    ['naive: fresh', 'naive: holdout', 'naive: training', 'thresholdout: fresh', 'thresholdout: holdout', \
'thresholdout: training', 'used']
    """
    told = [_one_holdout(setting, rng) for _ in range(runs)]
    return {name: np.array([each[name] for each in told]) for name in told[0]}


def _one_holdout(setting: Holdout, rng: Rng) -> dict[str, float]:
    shape = (setting.n, setting.features)
    training, holdout, fresh = (rng.integers(0, 2, shape, dtype=np.int8) for _ in range(3))  # 1: agrees with the label
    learnt, exact = (data.mean(axis=0, dtype=float) for data in (training, holdout))
    answers = _Thresholdout(setting, rng)
    private = np.array([answers.ask(*both) for both in zip(learnt, exact, strict=True)])
    seen: dict[str, float] = {}
    for name, told in (("naive", exact), ("thresholdout", private)):
        kept, signs = _kept(learnt - 0.5, told - 0.5, setting)
        accuracies = [float(((2 * data[:, kept] - 1) @ signs > 0).mean()) for data in (training, holdout, fresh)]
        if name == "thresholdout":
            accuracies[1] = answers.ask(accuracies[0], accuracies[1])
        seen.update(zip((f"{name}: training", f"{name}: holdout", f"{name}: fresh"), accuracies, strict=True))
    return seen | {"used": float(answers.used)}


def _kept(learnt: Floats, told: Floats, setting: Holdout) -> tuple[Counts, Counts]:
    """The features on which both sets lean the same way, by more than one standard deviation: an odd number."""
    leaning = 0.5 / math.sqrt(setting.n)
    both = np.flatnonzero((learnt * told > 0) & (np.abs(learnt) > leaning) & (np.abs(told) > leaning))
    kept = both[np.argsort(-np.abs(learnt[both]))][: setting.keep]
    kept = kept[: len(kept) - (len(kept) % 2 == 0)]
    return kept, np.sign(learnt[kept]).astype(np.int64)


class BudgetSpent(RuntimeError):
    """Thresholdout has halted: nothing more is answered."""


class _Thresholdout:
    """Thresholdout as the notes write it: threshold Lap(2 sigma), comparison Lap(4 sigma), answer Lap(sigma)."""

    def __init__(self, setting: Holdout, rng: Rng) -> None:
        self.setting, self.rng, self.used = setting, rng, 0
        self.level = setting.threshold + rng.laplace(scale=2.0 * setting.sigma)

    def ask(self, training: float, holdout: float) -> float:
        if self.used >= self.setting.budget:
            raise BudgetSpent("the budget of the holdout is spent")
        sigma = self.setting.sigma
        if abs(training - holdout) + self.rng.laplace(scale=4.0 * sigma) <= self.level:
            return training
        self.used += 1
        self.level = self.setting.threshold + self.rng.laplace(scale=2.0 * sigma)
        return holdout + float(self.rng.laplace(scale=sigma))


def whole_examples(example: Example, beta: float, runs: int, rng: Rng) -> dict[str, Floats]:
    """The unrealistic example from its samples on: what is told of the final query in each run, the true mean being 0.

    The subsets are chosen by the catalogue's own mechanisms. "Thresholdout" answers the final query that a training
    sample chooses, again and again with other groups, from a holdout sample: one row for each of its answers.

    >>> seen = whole_examples(Example(4, 5), 0.05, 3, np.random.default_rng(1))
    >>> {name: told.shape for name, told in seen.items()}
    {'at random': (3,), 'largest mean': (3,), 'with noise': (3,), 'training set': (3, 4), 'Thresholdout': (3, 4)}
    """
    given = {"beta": beta, "size": example.size, "per_group": example.per_group}
    exact, noisy = (
        find(f"select_subsets.{name}").with_parameters(given) for name in ("exact_maximum", "half_sensitivity")
    )
    # a sample behind the final query moves it by 6 over their number, so all answers together are EPSILON_OF_ONE-DP
    rounds, moved = 4, 6.0 / (example.size * example.per_group)
    setting = Holdout(n=1, threshold=0.2, sigma=2.0 * rounds * moved / EPSILON_OF_ONE, budget=rounds)
    told: dict[str, list[Floats | float]] = {
        name: [] for name in ("at random", "largest mean", "with noise", "training set", "Thresholdout")
    }
    groups = np.arange(example.per_group)
    for _ in range(runs):
        training, holdout = rng.standard_normal((2, example.per_group, example.per_group, example.size))
        means = training.mean(axis=2)
        told["at random"].append(float(means[:, 0].mean()))
        for name, entry in (("largest mean", exact), ("with noise", noisy)):
            told[name].append(float(means[groups, list(entry.run(training.ravel(), rng))].mean()))
        answers = _Thresholdout(setting, rng)
        asked = [rng.permutation(means.size).reshape(means.shape) for _ in range(rounds)]
        chosen = [order[groups, np.argmax(means.ravel()[order], axis=1)] for order in asked]
        learnt, kept = ([float(side.ravel()[one].mean()) for one in chosen] for side in (means, holdout.mean(axis=2)))
        told["training set"].append(np.array(learnt))
        told["Thresholdout"].append(np.array([answers.ask(*both) for both in zip(learnt, kept, strict=True)]))
    return {name: np.array(values) for name, values in told.items()}


VOTES = (201, 101, 51)  # the features of the last three queries, from the largest told margin on


def followed(n: int, setting: Holdout, rng: Rng) -> dict[str, Floats]:
    """How far each answer is off, where an analyst asks of each feature, and then for the votes of those it likes best.

    Training and holdout set have n records each, whose labels no feature predicts: all true values are 1/2. `direct`
    answers with the averages of the holdout set itself, `Thresholdout` until its budget is spent.

    >>> seen = followed(400, Holdout(features=201, threshold=0.15, sigma=0.002), np.random.default_rng(1))
    >>> {name: round(float(abs(off[-len(VOTES) :]).max()), 2) for name, off in seen.items()}
    {'direct': 0.22, 'Thresholdout': 0.03}
    """
    shape = (setting.features, n)
    training, holdout = (2 * rng.integers(0, 2, shape, dtype=np.int8) - 1 for _ in range(2))  # 1: agrees
    both = [0.5 + data.mean(axis=1) / 2.0 for data in (training, holdout)]
    answers = _Thresholdout(setting, rng)
    seen = {}
    for name in ("direct", "Thresholdout"):

        def ask(learnt: float, exact: float, direct: bool = name == "direct") -> float:
            return exact if direct else answers.ask(learnt, exact)

        told = []
        try:
            told += [ask(*pair) for pair in zip(*both, strict=True)]
            margins = np.array(told) - 0.5
            for size in VOTES:
                liked = np.argsort(-np.abs(margins))[:size]
                signs = np.sign(margins[liked]).astype(np.float32)
                told.append(ask(*(float((signs @ data[liked] > 0).mean()) for data in (training, holdout))))
        except BudgetSpent:
            pass
        seen[name] = np.array(told) - 0.5
    return seen
