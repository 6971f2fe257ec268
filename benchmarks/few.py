"""Several trainings and steps: the level under early stopping, trainings needed, and step certificates composed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.tables import print_table

ALPHA = 0.05
REPEATS, ALLOWED = 2_000, 149  # a level of 5 % is exceeded so often with a probability below 1e-6
Rng = np.random.Generator
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Answer = Callable[[Bools, Rng, float], Floats]  # coins, randomness, log wealth so far -> scores


def normal(mu: float) -> Answer:
    """An ideal Gaussian audit: a score of its own for every canary."""
    return lambda coins, rng, wealth: mu * coins + rng.normal(size=coins.shape)


def laplace(epsilon: float) -> Answer:
    """The coin and Laplace noise."""
    return lambda coins, rng, wealth: coins + rng.laplace(scale=1.0 / epsilon, size=coins.shape)


def response(epsilon: float) -> Answer:
    """Randomised response to every coin."""
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    return lambda coins, rng, wealth: np.where(rng.random(coins.shape) < keep, coins, ~coins).astype(np.float64)


def sometimes(chance: float, epsilon: float) -> Answer:
    """With this chance randomised response to all coins of a training, or else nothing: one coin for all canaries."""

    def answer(coins: Bools, rng: Rng, wealth: float) -> Floats:
        told = rng.random((*coins.shape[:-1], 1)) < chance
        return np.where(told, response(epsilon)(coins, rng, wealth), rng.random(coins.shape))

    return answer


def bold_when_poor(coins: Bools, rng: Rng, wealth: float) -> Floats:
    """Within 1-GDP in another way each time: what is rare and strong while the auditor has lost, else what is safe."""
    return sometimes(*(PARTS[3] if wealth < 0.0 else PARTS[0]))(coins, rng, wealth)


def reveals(k: int, delta: float) -> Answer:
    """k of the m coins, with probability m delta / k: (0, delta)-DP."""

    def answer(coins: Bools, rng: Rng, wealth: float) -> Floats:
        scores = rng.random(coins.shape) * 0.5 + 0.25
        if rng.random() < coins.size * delta / k:
            which = rng.permutation(coins.size)[:k]
            scores[which] = coins[which]
        return scores

    return answer


PARTS = ((0.845, 0.95), (0.613, 1.2), (0.393, 1.5), (0.162, 2.0))  # within 1-GDP: chance and epsilon


@dataclass(frozen=True, slots=True)
class Boundary:
    """A mechanism that just keeps its claim, and how much of it is seen: trainings, or steps of one training."""

    title: str
    answer: Answer
    claim: Any
    canaries: int
    trainings: int
    steps: int = 0


def boundaries() -> tuple[Boundary, ...]:
    """The mechanisms of the level's table."""
    from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyProfile, PureDP

    one, step = GaussianDP(1.0), GaussianDP(0.2)
    rows = [
        Boundary("null scores, claim 0.1", normal(0.0), PureDP(0.1), 1_000, 20),
        Boundary("null scores, claim 0.1-GDP", normal(0.0), GaussianDP(0.1), 1_000, 20),
        Boundary("Laplace at the claim", laplace(1.0), PureDP(1.0), 1_000, 20),
        Boundary("randomised response at the claim", response(1.0), PureDP(1.0), 1_000, 20),
        Boundary("randomised response, (1, 1e-5)", response(1.0), ApproximateDP(1.0, 1e-5), 1_000, 20),
        Boundary("Gaussian at the claim", normal(1.0), one, 1_000, 20),
    ]
    rows += [
        Boundary(f"with probability {chance:g} RR({epsilon:g})", sometimes(chance, epsilon), one, 1_000, 20)
        for chance, epsilon in PARTS
    ]
    rows.append(Boundary("the same, bold when the auditor is poor", bold_when_poor, one, 1_000, 20))
    for k in (1, 10, 100):
        told = reveals(k, 1e-3)
        rows.append(Boundary(f"reveals {k} of 100, (0, 1e-3)", told, ApproximateDP(0.0, 1e-3), 100, 20))
    told = reveals(10, 1e-3)
    rows.append(Boundary("reveals 10 of 100, as a curve", told, PrivacyProfile(((0.0, 1e-3),)), 100, 20))
    rows += [
        Boundary("Gaussian steps at the claim", normal(0.2), step, 1_000, 1, 100),
        Boundary("Gaussian steps, 2 trainings", normal(0.2), step, 1_000, 2, 100),
        Boundary("Laplace steps at the claim", laplace(0.2), PureDP(0.2), 1_000, 1, 100),
        Boundary("steps that answer with 0.613", sometimes(0.613, 1.2), one, 1_000, 1, 100),
    ]
    return tuple(rows)


def evidence_of(line: Boundary) -> Any:
    """No evidence yet."""
    from dpaudit.scores import few

    if line.steps:
        return few.begin(line.claim, line.canaries, ALPHA, delta=1e-5, steps=line.steps)
    return few.begin(line.claim, line.canaries, ALPHA, delta=1e-5)


def largest(line: Boundary, seed: int) -> float:
    """The largest log e-value at any time: what an auditor who stops at will would show."""
    rng = np.random.default_rng([seed, line.canaries, line.trainings])
    evidence, wealth = evidence_of(line), 0.0
    shape = (line.steps, line.canaries) if line.steps else (line.canaries,)
    for _ in range(line.trainings):
        coins = rng.random(shape) < 0.5
        evidence = evidence.after(line.answer(coins, rng, wealth), coins)
        if line.answer is bold_when_poor:
            wealth = float(evidence.log_path(line.claim)[-1])
    return float(evidence.log_path(line.claim).max())


def level(quick: bool) -> None:
    """False refutations at a stated 5 %."""
    repeats = REPEATS // 10 if quick else REPEATS

    def rows() -> Iterator[tuple[str, ...]]:
        for line in boundaries():
            started = time.process_time()
            found = sum(largest(line, seed) >= math.log(1.0 / ALPHA) for seed in range(repeats))
            yield (
                line.title,
                str(line.claim),
                f"{line.canaries:,}",
                f"{line.trainings} x {line.steps} steps" if line.steps else f"{line.trainings}",
                f"{found:,}",
                "held" if found <= ALLOWED * repeats / REPEATS else "EXCEEDED",
                f"{time.process_time() - started:.0f}",
            )

    title = f"Several trainings: false at any time, of {repeats:,} at a stated 5 % (at most {ALLOWED} of {REPEATS:,})"
    print_table(title, ("mechanism", "claim", "canaries", "trainings", "false", "level", "CPU s"), rows())


def run(quick: bool) -> None:
    """Prints the tables; `quick` makes a tenth of the repeats."""
    level(quick)
    needed(quick)
    composed(quick)


def trainings_needed(answer: Answer, claim: Any, seed: int, most: int) -> float:
    """Trainings of 1,000 canaries until the claim is refuted; infinite where `most` do not."""
    from dpaudit.scores import few

    rng, evidence = np.random.default_rng([seed, 1]), few.begin(claim, 1_000, ALPHA, delta=1e-5)
    for used in range(1, most + 1):
        coins = rng.random(1_000) < 0.5
        evidence = evidence.after(answer(coins, rng, 0.0), coins)
        if evidence.refuted:
            return used
    return math.inf


def growths(mu: float, claim: Any, canaries: int) -> tuple[float, float]:
    """The most that a training of N(mu) canaries can add to ln e: were canaries independent, and if any dependence.

    Each is the relative entropy of the true law of scores and coins to one mechanism within the claim, which no
    e-value can outgrow. Independent: every canary's log odds shrunk, or cut at the claim's epsilon. Any dependence:
    with probability p all canaries so answered, else nothing; the best p, shrinking and cut on a grid.
    """
    x = np.linspace(-9.0, 9.0, 3_601)
    weight = (np.exp(-((x - mu / 2.0) ** 2) / 2.0) + np.exp(-((x + mu / 2.0) ** 2) / 2.0)) / 2.0
    weight *= (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
    truth = 1.0 / (1.0 + np.exp(-mu * x))
    alone, together = math.inf, math.inf
    for cut in np.linspace(0.1, 3.0, 59):
        epsilons = np.linspace(0.0, 0.999 * cut, 40)
        allowed = np.array([claim.delta_at(float(each)) for each in epsilons])
        for shrunk in np.linspace(0.3, 1.0, 36):
            odds = 1.0 / (1.0 + np.exp(-np.clip(shrunk * mu * x, -cut, cut)))
            lost = truth * np.log(truth / odds) + (1.0 - truth) * np.log((1.0 - truth) / (1.0 - odds))
            cost = canaries * float(weight @ lost)
            told = [2.0 * float(weight @ np.maximum(0.0, odds - math.exp(e) * (1.0 - odds))) for e in epsilons]
            chance = min(1.0, float(np.min(allowed / np.maximum(told, 1e-300))))
            if chance > 0.0:
                together = min(together, cost - math.log(chance))
            if chance == 1.0:
                alone = min(alone, cost)
    return alone, together


def needed(quick: bool) -> None:
    """Trainings until a claim of 1 is refuted where the truth is 2."""
    from dpaudit.claims import ApproximateDP, GaussianDP, PureDP

    mu = 0.502
    seeds = 20 if quick else 100
    rows = []
    for title, answer, claim, most in (
        ("randomised response", response(2.0), PureDP(1.0), 4),
        ("Laplace", laplace(2.0), PureDP(1.0), 4),
        ("randomised response", response(2.0), ApproximateDP(1.0, 1e-5), 4),
        ("Laplace", laplace(2.0), ApproximateDP(1.0, 1e-5), 4),
        ("Gaussian, mu .502", normal(mu), GaussianDP(0.268), 8),
        ("Gaussian, mu .502", normal(mu), ApproximateDP(1.0, 1e-5), 40),
    ):
        found = sorted(trainings_needed(answer, claim, seed, most) for seed in range(seeds))
        least = ("1", "1")
        if title.startswith("Gaussian"):
            goal = math.log(1.0 / ALPHA)
            least = tuple(f"{max(1.0, goal / each):.1f}" for each in growths(mu, claim, 1_000))
        rows.append(
            (title, str(claim), f"{found[seeds // 2]:g}", f"{found[math.ceil(0.95 * seeds) - 1]:g}", *reversed(least))
        )
    header = ("mechanism, epsilon 2", "claim", "median", "95 %", "least, any dependence", "least, independent")
    print_table(f"Trainings of 1,000 canaries until refuted at 5 %, {seeds} seeds", header, rows)


def composed(quick: bool) -> None:
    """Step certificates of an ideal Gaussian run of 100 steps with mu .2 each, and noise 10 % too small."""
    from dpaudit.claims import GaussianDP
    from dpaudit.scores import few

    seeds, rows, small = (4 if quick else 20), [], []
    exact = GaussianDP(2.0).epsilon_at(1e-5)
    for canaries in (1_000, 2_000, 5_000):
        for trainings in (1, 2):
            started, found, epsilons = time.process_time(), [], []
            for seed in range(seeds):
                rng = np.random.default_rng([seed, canaries, trainings])
                coins = rng.random((100 * trainings, canaries)) < 0.5
                evidence = few.begin(GaussianDP(0.2), canaries, ALPHA, delta=1e-5, steps=100)
                made = evidence.after(normal(0.2)(coins, rng, 0.0), coins).composed(100, 1e-5)
                found.append(made.detail["step_mu_lower"])
                epsilons.append(made.lower or 0.0)
            within = sum(each >= 0.95 * exact for each in epsilons)
            rows.append(
                (
                    f"{canaries:,}",
                    str(trainings),
                    f"{np.median(found):.4f}",
                    f"{np.median(epsilons):.3f}",
                    f"{min(epsilons):.3f}",
                    f"{within} of {seeds}",
                    f"{(time.process_time() - started) / seeds:.2f}",
                )
            )
        refuted = 0
        for seed in range(seeds):
            rng = np.random.default_rng([seed, canaries, 3])
            coins = rng.random((100, canaries)) < 0.5
            evidence = few.begin(GaussianDP(0.2), canaries, ALPHA, delta=1e-5, steps=100)
            refuted += evidence.after(normal(0.2 / 0.9)(coins, rng, 0.0), coins).refuted
        small.append((f"{canaries:,}", f"{refuted} of {seeds}"))
    header = ("canaries", "trainings", "step mu, median", "epsilon, median", "least", "within 5 %", "CPU s each")
    print_table(f"Steps composed: mu .2, 100 steps, epsilon {exact:.3f} at 1e-5, {seeds} seeds", header, rows)
    print_table("Steps: noise 10 % too small, one training", ("canaries", "refuted"), small)
