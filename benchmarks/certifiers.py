"""The certifiers side by side: runs needed for a given bound, and time per p-value and per bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from benchmarks.tables import print_table
from dpaudit.certify import CoinFlip, FixedSides, coin_flip, unconditional
from dpaudit.certify.cross_check import two_interval_epsilon

CONFIDENCE, ALPHA = 0.95, 0.05
LOSS = 1.0
RUNS = 1_000_000  # a side, for the bound that the older rule reaches
GOALS = {0.5: 0.60, 0.05: 0.40, 0.005: 0.40}  # event mass: the part of them that is enough
SIZES = (1_000, 10_000, 1_000_000, 100_000_000)
Bound = Callable[[int, float], float]


def two_interval(runs: int, mass: float) -> float:
    """The older rule at the expected counts of the event."""
    return two_interval_epsilon(CoinFlip(*expected(runs, mass)), 0.0, CONFIDENCE)


def by_coins(runs: int, mass: float) -> float:
    """The coin-flip certifier."""
    return coin_flip.epsilon_lower(CoinFlip(*expected(runs, mass)), 0.0, ALPHA)


def by_fixed_sides(runs: int, mass: float) -> float:
    """The unconditional certifier."""
    return unconditional.epsilon_lower(FixedSides(*expected(runs, mass)), 0.0, ALPHA)


def expected(runs: int, mass: float) -> tuple[int, int, int, int]:
    """Hits and runs of both sides, `runs` a side."""
    return round(runs * mass), round(runs * mass * math.exp(-LOSS)), runs, runs


def needed(bound: Bound, mass: float, target: float) -> int:
    """The runs a side from which on the bound reaches the target, but for the rounding of the counts."""
    low, high = 1, RUNS
    while high - low > RUNS // 2_000:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle, mass) >= target else (middle, high)
    return high


def timed(call: Callable[[], object]) -> float:
    """Milliseconds of the fastest of three calls."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return 1e3 * min(found)


def run(quick: bool) -> None:
    """Prints the tables; `quick` leaves out the largest size."""
    rows = []
    for mass, goal in GOALS.items():
        target = two_interval(RUNS, mass)
        parts = [needed(bound, mass, target) / RUNS for bound in (by_coins, by_fixed_sides)]
        met = "met" if max(parts) <= goal else "MISSED"
        rows.append((f"{mass:g}", f"{target:.4f}", *(f"{part:.3f}" for part in parts), f"{goal:g} {met}"))
    header = ("event mass", "bound of two intervals", "coin-flip", "unconditional", "goal")
    print_table(f"Certifiers: part of {RUNS:,} runs a side that gives the same bound, loss {LOSS:g}", header, rows)

    rows = []
    for size in SIZES[:-1] if quick else SIZES:
        for mass in GOALS:
            counts = expected(size, mass)
            fixed, coins = FixedSides(*counts), CoinFlip(*counts)
            times = (
                timed(lambda coins=coins: coin_flip.p_value(coins, 0.9, 0.0)),
                timed(lambda coins=coins: coin_flip.epsilon_lower(coins, 0.0, ALPHA)),
                timed(lambda fixed=fixed: unconditional.p_value(fixed, 0.9, 0.0, ALPHA)),
                timed(lambda fixed=fixed: unconditional.epsilon_lower(fixed, 0.0, ALPHA)),
            )
            rows.append((f"{size:,}", f"{mass:g}", *(f"{ms:.2f}" for ms in times)))
    header = ("runs a side", "event mass", "coin-flip p", "coin-flip bound", "unconditional p", "unconditional bound")
    print_table("Certifiers: milliseconds", header, rows)
