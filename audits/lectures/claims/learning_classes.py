"""Classes learned by private statistical queries, simulated at the sample of theorem 3.2 and at smaller ones.

Haghtalab 2020, notes 000, definition 3.1 and theorem 3.2. A sample of m records of a finite universe is a vector of
counts; each simulated sample has a target and a distribution of its own, drawn at random. The learners are those of the
catalogue, and one more that is not: a perceptron whose answers are used as numbers (Blum, Dwork, McSherry & Nissim
2005, Practical privacy: the SuLQ framework). Errors are exact, by the distribution.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from scipy import stats

from audits.lectures.claims.statement import Figure, Truth
from dpaudit.catalogue.learning.learners import LEARNERS, Asking, Query, SQLearner, learned
from dpaudit.catalogue.learning.queries import sample_size

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

EPSILON, ALPHA, BETA = 1.0, 0.2, 0.05
SAMPLES = 200  # no failure in them: less than BETA with confidence 0.9999
SURE = 1e-4


@dataclass(frozen=True, slots=True)
class Class:
    """A class in a simulation: its learner, the bits of x, and how a target is drawn, as a hypothesis."""

    title: str
    learner: SQLearner
    bits: int
    target: Callable[[Rng, int], int]

    @property
    def tau(self) -> float:
        """The tolerance at which answers within it leave an error of ALPHA at the most."""
        return ALPHA / self.learner.errors(self.bits)

    @property
    def records(self) -> int:
        """The m of theorem 3.2, with its constants."""
        return sample_size(self.learner.queries(self.bits), self.tau, EPSILON, BETA)


def _any_literals(rng: Rng, bits: int) -> int:
    return sum(1 << (2 * place + int(value)) for place in range(bits) if (value := rng.integers(3)) < 2)


def _any_list(rng: Rng, bits: int) -> int:
    tests = [*rng.permutation(2 * bits)[: rng.integers(2 * bits + 1)].tolist(), 2 * bits]
    rules = [2 * test + int(rng.integers(2)) for test in tests]
    return sum((rule + 1) * int((4 * bits + 3) ** place) for place, rule in enumerate(rules))


CLASSES = (
    Class("thresholds on 64 points", LEARNERS["threshold"], 6, lambda rng, bits: int(rng.integers(2**bits))),
    Class("conjunctions of 4 Booleans", LEARNERS["conjunction"], 4, _any_literals),
    Class("decision lists of 3 Booleans", LEARNERS["decision list"], 3, _any_list),
    Class("halfspaces in 16 directions", LEARNERS["halfspace"], 6, lambda rng, bits: int(rng.integers(2 << bits // 2))),
)


def private_answers(counts: Floats, x: Any, y: Any, scale: float, rng: Rng) -> Callable[[Query], float]:
    """The oracle over a sample that is given as counts of the points x with labels y: means plus Lap(scale)."""
    shares = counts / counts.sum()
    return lambda query: float(shares @ query(x, y)) + rng.laplace(scale=scale)


def errors(learned_class: Class, records: int, samples: int, seed: int) -> Floats:
    """The error of the private learner on samples of so many records, each with a target and a distribution."""
    bits, learner, rng = learned_class.bits, learned_class.learner, np.random.default_rng(seed)
    x, most, found = np.arange(2**bits), learner.queries(bits), np.empty(samples)
    for place in range(samples):
        target, weights = learned_class.target(rng, bits), rng.dirichlet(np.full(2**bits, 0.3))
        y = learner.predict(target, x, bits).astype(int)
        answer = private_answers(rng.multinomial(records, weights), x, y, most / (EPSILON * records), rng)
        hypothesis, _ = learned(learner.start(bits, learned_class.tau), answer, most)
        found[place] = weights @ (learner.predict(hypothesis, x, bits) != y)
    return found


def at_most(failures: int, samples: int) -> float:
    """The upper limit of Clopper and Pearson for a failure rate, with confidence 1 - SURE."""
    return float(stats.beta.ppf(1.0 - SURE, failures + 1, samples - failures))


@functools.cache
def enough(learned_class: Class) -> int:
    """The divisor 1, 2, 4, ... of the theorem's m down to which at most BETA of 100 samples failed."""
    divisor = 1
    while np.mean(errors(learned_class, learned_class.records // (2 * divisor), 100, seed=divisor) > ALPHA) <= BETA:
        divisor *= 2
    return divisor


# --- a perceptron from noisy answers ----------------------------------------------------------------------------

MARGIN, ROUNDS, TOLERANCE = 0.25, 24, 0.1
SIDE = (-1.0, -0.5, 0.5, 1.0)
POINTS = np.array(list(itertools.product(SIDE, SIDE))) / math.sqrt(2.0)


def _pull(weights: Floats, coordinate: int, x: Any, y: Any) -> Any:
    """(1 + y x_i) / 2 where the halfspace errs, and 1 / 2 where it does not."""
    wrong = y * (POINTS[x] @ weights) <= 0.0
    return 0.5 + 0.5 * wrong * y * POINTS[x, coordinate]


def perceptron(rounds: int) -> Asking:
    """Adds the mean of y x over the records on the wrong side, coordinate by coordinate: twice `rounds` queries.

    The hypothesis is the direction that it ends at, in millionths of a turn.
    """
    weights = np.zeros(2)
    for _ in range(rounds):
        right = yield partial(_pull, weights, 0)
        up = yield partial(_pull, weights, 1)
        weights = weights + np.array([2.0 * right - 1.0, 2.0 * up - 1.0])
    return round(math.atan2(weights[1], weights[0]) / (2.0 * math.pi) * 1e6)


def perceptron_errors(records: int, samples: int, seed: int) -> Floats:
    """Its error, for halfspaces with a margin on a grid of 16 points."""
    rng, found = np.random.default_rng(seed), np.empty(samples)
    x, most = np.arange(len(POINTS)), 2 * ROUNDS
    for place in range(samples):
        turn = rng.random() * 2.0 * math.pi
        sides = POINTS @ np.array([math.cos(turn), math.sin(turn)])
        weights = rng.dirichlet(np.full(len(POINTS), 0.3)) * (np.abs(sides) >= MARGIN)
        weights /= weights.sum()
        y = np.where(sides > 0.0, 1, -1)
        answer = private_answers(rng.multinomial(records, weights), x, y, most / (EPSILON * records), rng)
        direction, _ = learned(perceptron(ROUNDS), answer, most)
        angle = direction / 1e6 * 2.0 * math.pi
        found[place] = weights @ (np.sign(POINTS @ np.array([math.cos(angle), math.sin(angle)])) != y)
    return found


# --- theorem 3.2 ------------------------------------------------------------------------------------------------


def check_sample() -> Truth:
    """Learns each class at the theorem's m and at less, and the perceptron."""
    texts, numbers, held = [], {}, True
    for each in CLASSES:
        failures = int(np.sum(errors(each, each.records, SAMPLES, seed=0) > ALPHA))
        limit, divisor = at_most(failures, SAMPLES), enough(each)
        held = held and limit <= BETA
        texts.append(
            f"{each.title} (K = {each.learner.queries(each.bits)}, tau = {each.tau:.3g}): m = {each.records:,}, "
            f"{failures} failures in {SAMPLES} samples, so less than {limit:.3f}; "
            f"at m / {divisor} at most {100 * BETA:.0f} of 100 failed"
        )
        numbers |= {f"m, {each.title}": each.records, f"limit, {each.title}": limit, f"fewer, {each.title}": divisor}
    records = sample_size(2 * ROUNDS, TOLERANCE, EPSILON, BETA)
    missed = int(np.sum(perceptron_errors(records, SAMPLES, seed=0) > ALPHA))
    loose = min(enough(each) for each in CLASSES) >= 2
    return Truth(
        ("right and loose" if loose else "right and tight") if held else "wrong",
        rf"With constants: $m = \max\left(\frac{{2K}}{{\varepsilon\tau}}\ln\frac{{2K}}{{\beta}}, "
        rf"\frac{{2}}{{\tau^2}}\ln\frac{{4K}}{{\beta}}\right)$ suffices for queries fixed before the sample. "
        rf"At $\varepsilon = {EPSILON:g}$, $\alpha = {ALPHA}$, $\beta = {BETA}$, with targets and "
        "distributions drawn at random: "
        + "; ".join(texts)
        + f". (Limits have the confidence {1 - SURE}.) Any learner can be plugged in: a perceptron of {2 * ROUNDS} "
        f"queries that uses its answers as numbers failed in {missed} of {SAMPLES} samples of {records:,}.",
        numbers | {"perceptron failures": missed},
    )


def _draw(axes: Axes) -> None:
    for place, each in enumerate(CLASSES):
        color, mark = f"C{place}", "os^D"[place]
        sizes = [each.records // 2**step for step in range(11) if each.records >> step >= 10]
        worst = [float(np.quantile(errors(each, size, 100, seed=size), 0.95)) for size in sizes]
        axes.plot(sizes, worst, color=color, marker=mark, markersize=4, label=each.title)
        axes.axvline(each.records, color=color, linestyle=":")
    axes.axhline(ALPHA, color="C5", linewidth=0.8)
    axes.set(xscale="log", xlabel="records m", ylabel="error in 95 % of samples, at most", ylim=(0.0, 1.0))
    axes.legend(framealpha=1.0)


SAMPLE = Figure(
    f"Error against the sample: below the line {ALPHA} the class is learned. Dotted: the m of theorem 3.2 for each.",
    _draw,
)
