"""How near the certified bound comes to the truth, and to what the best event would give, were it known."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.tables import print_table

SEEDS = 5
CONFIDENCE = 0.95
SIZES = (1_000_000, 10_000_000)
CELLS = 400  # of one coordinate's log ratio, in the law of the joint event
Floats = npt.NDArray[np.float64]
Points = tuple[Floats, Floats]  # P(S) and Q(S) of the candidates for the best event


@dataclass(frozen=True, slots=True)
class Line:
    """A mechanism of the catalogue on a pair, its loss, the candidates for the best event, and the goals."""

    title: str
    name: str
    parameters: dict[str, Any]
    points: Callable[[], Points]
    goals: tuple[float | None, float | None]


def _laplace(loss: float) -> Points:
    return np.array([0.5]), np.array([0.5 * math.exp(-loss)])


def _halting(first: list[float], second: list[float], threshold_scale: float, query_scale: float) -> Points:
    from dpaudit.losses.comparisons import halting

    laws = [halting(np.asarray(data, float), 0.0, threshold_scale, query_scale) for data in (first, second)]
    found = [_by_ratio(*laws), _by_ratio(*laws[::-1])]
    return np.concatenate([p for p, _ in found]), np.concatenate([q for _, q in found])


def _by_ratio(p: Floats, q: Floats) -> Points:
    """All sets of the likeliest outputs: the best event is one of them (Neyman & Pearson 1933)."""
    order = np.argsort(-np.divide(p, q, out=np.full(len(p), math.inf), where=q > 0.0), kind="stable")
    return np.cumsum(p[order]), np.cumsum(q[order])


def _joint(coordinates: int, scale: float) -> Points:
    """The law of the log ratio of independent Laplace releases of 0 against 1: a convolution on a grid."""
    ratio = np.linspace(-1.0, 1.0, CELLS + 1) / scale  # of one coordinate: least above 1, largest below 0
    one = np.exp(ratio / 2.0)  # between 0 and 1 the density falls by e^(-1 / scale)
    above = 0.5 * math.exp(-1.0 / scale)
    one[1:-1] *= (0.5 - above) / one[1:-1].sum()
    one[0], one[-1] = above, 0.5
    law = np.ones(1)
    for _ in range(coordinates):
        law = np.convolve(law, one)
    total = np.linspace(-coordinates / scale, coordinates / scale, len(law))
    tail = np.cumsum(law[::-1])
    return tail, np.cumsum((law * np.exp(-total))[::-1])


WITNESS = [1.0] * 7 + [-1.0], [2.0] * 7 + [-2.0]
LEAK = [0.0] * 9 + [1.0], [1.0] * 9 + [0.0]
LINES = (
    Line("Laplace", "laplace", {}, lambda: _laplace(1.0), (0.985, 0.995)),
    Line("Laplace, half the noise", "laplace.half_noise", {}, lambda: _laplace(2.0), (0.985, 0.995)),
    Line("AboveThreshold, 8 answers", "above_threshold", {}, lambda: _halting(*WITNESS, 2.0, 4.0), (0.92, 0.97)),
    Line(
        "AboveThreshold without threshold noise",
        "above_threshold.no_threshold_noise",
        {},
        lambda: _halting(*LEAK, 0.0, 4.0),
        (0.80, 0.93),
    ),
    Line("ten Laplace releases, joint event", "laplace_vector", {}, lambda: _joint(10, 10.0), (0.55, None)),
)
ENDLESS = (  # the mass of the best event, which the other side never shows
    ("uniform noise on [0, 5]", "laplace.uniform_noise", 0.2),
    ("AboveThreshold without query noise", "above_threshold.no_query_noise", 0.196735),
)
WITHIN = 0.5


def certified(name: str, parameters: dict[str, Any], runs: int) -> tuple[list[float], int, str]:
    """The bounds of some seeds, the certifying runs of each, and the last event."""
    from dpaudit.api.audits import audit
    from dpaudit.catalogue import find

    entry = find(name).with_parameters(parameters)
    results = [
        audit(entry, pair=entry.default_pair, claim=entry.claim(), runs=runs, confidence=CONFIDENCE, seed=seed)
        for seed in range(SEEDS)
    ]
    return [r.certificate.lower for r in results], results[0].evidence.runs, str(results[-1].witness.event)


def oracle(points: Points, runs: int) -> float:
    """The bound at the expected counts of the event that makes it largest."""
    from dpaudit.certify import CoinFlip
    from dpaudit.certify.coin_flip import epsilon_lower

    half = runs // 2
    hits = [(round(half * float(p)), round(half * float(q))) for p, q in zip(*points, strict=True)]
    return max(epsilon_lower(CoinFlip(min(x, half), min(y, half), half, half), 0.0, 1.0 - CONFIDENCE) for x, y in hits)


def run(quick: bool) -> None:
    """Prints the tables; `quick` leaves out the larger size."""
    from dpaudit.catalogue import find

    sizes = SIZES[:1] if quick else SIZES
    rows = []
    for line in LINES:
        entry = find(line.name).with_parameters(line.parameters)
        loss = entry.true_epsilon(*entry.default_pair)
        assert loss is not None
        for size, goal in zip(sizes, line.goals, strict=False):
            bounds, certifying, event = certified(line.name, line.parameters, size)
            parts = sorted(bound / loss for bound in bounds)
            median, best = statistics.median(parts), oracle(line.points(), certifying) / loss
            goal_text = "" if goal is None else f"{goal:g} {'met' if median >= goal else 'MISSED'}"
            spread = f"{parts[0]:.4f} to {parts[-1]:.4f}"
            rows.append(
                (
                    line.title,
                    f"{size:,}",
                    f"{loss:.4f}",
                    f"{median:.4f}",
                    spread,
                    f"{best:.4f}",
                    goal_text,
                    f"`{event}`",
                )
            )
    header = (
        "mechanism",
        "runs",
        "loss",
        "bound / loss",
        "all seeds",
        "best event known",
        "goal",
        "event of the last seed",
    )
    print_table(
        f"Tight: certified bound over true loss, median of {SEEDS} seeds, confidence {CONFIDENCE}", header, rows
    )
    _endless(sizes)


def _endless(sizes: tuple[int, ...]) -> None:
    """Where the loss has no end the bound is that of the hits: ln(K / 3), K hits on one side and none on the other."""
    rows = []
    for title, name, mass in ENDLESS:
        for size in sizes:
            bounds, certifying, event = certified(name, {}, size)
            best = math.log(certifying / 2.0 * mass / 3.0)
            median = statistics.median(bounds)
            goal = f"within {WITHIN:g} {'met' if abs(best - median) <= WITHIN else 'MISSED'}"
            spread = f"{min(bounds):.2f} to {max(bounds):.2f}"
            rows.append(
                (title, f"{size:,}", f"{median:.3f}", spread, f"{best:.3f}", f"{best - median:.3f}", goal, f"`{event}`")
            )
    header = ("mechanism", "runs", "bound", "all seeds", "ln(K / 3)", "short by", "goal", "event of the last seed")
    print_table("Tight: mechanisms with an endless loss", header, rows)
