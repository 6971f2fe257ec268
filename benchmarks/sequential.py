"""How many runs an anytime audit needs until it refutes, events learned on the way, and a published benchmark."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.tables import print_table

SEEDS = 50
CONFIDENCE = 0.95
RUNS = 2_000_000  # of both sides, at the most
EPSILON, DELTA = 1.0, 1e-5  # that Gaussian noise is calibrated to
Rng = np.random.Generator
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """A mechanism, a pair, a claim that is false, and the runs a side in which half of the audits should say so."""

    title: str
    mechanism: Any
    pair: tuple[Any, Any]
    claim: Any
    goal: int
    share: float = 0.2  # of the error probability, for the bets


def constant(data: int, runs: int, rng: Rng) -> Floats:
    """The answer itself."""
    return np.full(runs, float(data))


def gaussian(data: float, runs: int, rng: Rng, sigma: float) -> Floats:
    """The answer and normal noise."""
    return data + sigma * rng.standard_normal(runs)


def mean_of_count(data: list[float], runs: int, rng: Rng, epsilon: float) -> Floats:
    """The mean plus Laplace noise of scale 1 / (n epsilon), n the true number of records: n is not kept secret.

    The mechanism "NonDPLaplace1" of Kong, Munoz Medina & Ribero (2024, DP-Auditorium, section 5) for values in [0, 1],
    which Gonzalez, Dulce-Rubio, Ramdas & Ribero (2025) audit by kernel tests with `epsilon` also as the claim.
    """
    return np.mean(data) + rng.laplace(0.0, 1.0 / (len(data) * epsilon), runs)


def calibrated_mu(epsilon: float, delta: float) -> float:
    """The mu at which normal noise just has this (epsilon, delta) (Balle & Wang 2018, theorem 8)."""
    from dpaudit.losses.distribution import gaussian_delta

    low, high = 1e-3, 10.0
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaussian_delta(epsilon, middle) < delta else (low, middle)
    return low


def lines() -> tuple[Line, ...]:
    """The mechanisms of the table."""
    from dpaudit import batched
    from dpaudit.catalogue import find
    from dpaudit.claims import ApproximateDP, GaussianDP, PureDP, ZeroConcentratedDP

    pure, mu = PureDP(1.0), calibrated_mu(EPSILON, DELTA)
    half, near = batched(gaussian, sigma=0.5 / mu), batched(gaussian, sigma=0.95 / mu)
    gdp = GaussianDP(mu)
    noise, leak = "above_threshold.no_threshold_noise", ([0.0] * 9 + [1.0], [1.0] * 9 + [0.0])
    return (
        Line("constant", batched(constant), (0, 1), pure, 40),
        Line("uniform noise on [0, 5]", find("laplace.uniform_noise"), (10, 9), pure, 200),
        Line("Laplace, half the noise", find("laplace.half_noise"), (10, 9), pure, 220),
        Line(
            "noisy max, half the noise", find("report_noisy_max"), ([1.0] * 5, [2.0, 0.0, 0.0, 0.0, 0.0]), pure, 2_500
        ),
        Line("AboveThreshold without threshold noise", find(noise), leak, pure, 38_000),
        Line("Gaussian, half the sigma", half, (0.0, 1.0), ApproximateDP(EPSILON, DELTA), 30_000),
        Line("Gaussian, half the sigma, as mu-GDP", half, (0.0, 1.0), gdp, 2_000),
        Line("Gaussian, half the sigma, as zCDP", half, (0.0, 1.0), ZeroConcentratedDP(mu**2 / 2.0), 500_000),
        Line("Gaussian, 5 % too little, distance 8", near, (0.0, 8.0), gdp.at_distance(8), 8_000),
        Line("Gaussian, 5 % too little, distance 1", near, (0.0, 1.0), gdp, 300_000),
    )


def published() -> tuple[Line, ...]:
    """The non-private count: every observation there is an output of each dataset; all of alpha is bet."""
    from dpaudit import batched
    from dpaudit.claims import PureDP

    data = ([0.0], [0.0, 1.0])
    return tuple(
        Line(
            f"non-private count, claim {epsilon:g}",
            batched(mean_of_count, epsilon=epsilon),
            data,
            PureDP(epsilon),
            goal,
            share,
        )
        for share in (0.2, 0.999999)
        for epsilon, goal in ((0.01, 331), (0.1, 920))
    )


def runs_needed(line: Line, seed: int, runs: int = RUNS) -> float:
    """The runs a side at which one audit stops; infinite where it does not."""
    from dpaudit.auditing.anytime import run_blocks
    from dpaudit.auditing.question import Question
    from dpaudit.data import AdjacentPair
    from dpaudit.execution.engine import Engine
    from dpaudit.search.goal import Goal

    spec = Question(
        claim=line.claim,
        mechanism=line.mechanism,
        pairs=(AdjacentPair(*line.pair),),
        runs=runs,
        confidence=CONFIDENCE,
        seed=seed,
        stopping="anytime",
        certifier="unconditional",
        sequential_share=line.share,
    ).resolved()
    share = spec.search_share
    goal = Goal(line.claim, int((1.0 - share) * runs), (1.0 - line.share) * (1.0 - CONFIDENCE), coins=False)
    with Engine(1).session(spec.mechanism, spec.pairs, seed, None) as session:
        session.per_run = False
        found = run_blocks(spec, session, pair=0, runs=runs, goal=goal)
    return (
        math.inf if found.counted[0].evidence.runs else found.runs / 2.0
    )  # the bets refuted: none was counted for more


def run(quick: bool) -> None:
    """Prints the tables; `quick` makes a tenth of the audits."""
    seeds = SEEDS // 10 if quick else SEEDS
    header = ("mechanism", "bets at", "median", "mean", "95 %", "goal")
    for title, table in (
        (f"Sequential: runs a side until refuted, {seeds} seeds, confidence {CONFIDENCE}", lines()),
        ("Sequential: a published benchmark (kernel tests: 331 and 920 observations)", published()),
    ):
        rows = []
        for line in table:
            needed = sorted(runs_needed(line, seed) for seed in range(seeds))
            median = statistics.median(needed)
            rows.append(
                (
                    line.title,
                    f"{line.share * (1.0 - CONFIDENCE):.2g}",
                    f"{median:,.0f}",
                    f"{statistics.fmean(needed):,.0f}",
                    f"{needed[math.ceil(0.95 * len(needed)) - 1]:,.0f}",
                    f"{line.goal:,} {'met' if median <= line.goal else 'MISSED'}",
                )
            )
        print_table(title, header, rows)
