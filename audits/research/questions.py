"""What the study asks: every mechanism of the catalogue, sound, broken or harmless, and at which claims and sizes.

The number of bounds is known before the first run, and the confidence of each follows from it: all of them together
are wrong with probability at most `JOINT`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq

from dpaudit import InvalidSpec
from dpaudit.catalogue import Entry, entries

CLAIMED = (0.1, 0.5, 1.0, 2.0, 8.0)
DELTA = 0.01  # at which a claim on mu or rho is set to one of these epsilons
JOINT = 0.01  # the probability, at most, that one or more of all bounds of the study are wrong
LARGE = 8.0  # claims from here on need more runs to be refuted at all
CLOSE = 1e-8  # relative: how closely a parameter is set to make a claim
DIALS = {  # the parameter that sets the claim, where it is not epsilon, and where to look for its value
    "mu": (1e-3, 50.0),
    "rho": (1e-5, 100.0),
    "keep": (0.5 + 1e-6, 1.0 - 1e-6),
    "f": (1e-6, 1.0 - 1e-6),
    "noise_multiplier": (0.25, 50.0),
    "beta": (1e-6, 0.5),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is asked of each mechanism; `runs` are executions of one audit, search included.

    `seeds` repeat each mechanism at its own claim with `runs`. Every `apart`-th mechanism is audited with each of
    `sizes` too. Sound ones are asked at each of `claimed` with `claim_runs`, or more where a claim needs them, and all
    at their worst pair. The published benchmark is audited with `published_runs`.
    """

    seeds: int = 10
    runs: int = 20_000
    apart: int = 5
    sizes: tuple[int, ...] = (5_000, 80_000, 320_000)
    claimed: tuple[float, ...] = CLAIMED
    claim_runs: int = 50_000
    large_claim_runs: int = 250_000  # of a claim that fewer runs can never refute
    published_runs: int = 200_000

    def runs_at(self, epsilon: float) -> int:
        """The executions that a claim is asked with."""
        return self.claim_runs if epsilon < LARGE else self.large_claim_runs

    def bounds(self, mechanisms: int, sound: int, published: int) -> int:
        """The most bounds that the study certifies, each part at its largest."""
        sized = len(range(0, mechanisms, self.apart)) * len(self.sizes)
        return mechanisms * (self.seeds + 1) + sized + sound * len(self.claimed) + published


def every(most: int | None = None) -> list[Entry]:
    """The entries of the catalogue in order, each with its twins after it.

    >>> [entry.name for entry in every(1)][:3]
    ['laplace', 'laplace.half_noise', 'laplace.uniform_noise']
    """
    return [each for entry in entries()[:most] for each in (entry, *entry.twins.values())]


def kind_of(entry: Entry) -> str:
    """What the catalogue says of it: sound, broken, or harmless, which is a mistake that breaks nothing."""
    return "broken" if entry.broken else "sound" if "." not in entry.name else "harmless"


def promised(entry: Entry) -> float:
    """The epsilon that the entry's claim promises: at its own delta, or at `DELTA` for a claim on mu or rho."""
    claim: Any = entry.claim()
    return float(claim.epsilon if claim.parameter == "epsilon" else claim.epsilon_at(DELTA))


def dialled(entry: Entry, epsilon: float) -> Entry | None:
    """The entry with the parameter that makes it claim this epsilon; None where no value does."""
    names = {parameter.name for parameter in entry.parameters}
    dial = next((name for name in ("epsilon", *DIALS) if name in names), None)
    if dial is None:
        return None
    low, high = DIALS.get(dial, (1e-6, 64.0))

    def excess(value: float) -> float | None:
        try:
            return promised(entry.with_parameters({dial: value})) - epsilon
        except (InvalidSpec, ArithmeticError, ValueError):
            return None

    if dial == "epsilon" and excess(epsilon) == 0.0:
        return entry.with_parameters({dial: epsilon})
    first, last = excess(low), excess(high)
    if first is None or last is None or first * last > 0.0:
        return None
    # the claims are monotone in their parameter, and smooth in its logarithm
    value = math.exp(brentq(lambda log: excess(math.exp(log)) or 0.0, math.log(low), math.log(high), xtol=1e-12))
    error = excess(value)
    return entry.with_parameters({dial: value}) if error is not None and abs(error) <= CLOSE * epsilon else None


def asked(entry: Entry, claimed: Sequence[float] = CLAIMED) -> tuple[list[Entry], list[float]]:
    """The entry at every claim, and which claims no value of its parameters makes."""
    made, left_out = [], []
    for epsilon in claimed:
        found = dialled(entry, epsilon)
        if found is None:
            left_out.append(epsilon)
        else:
            made.append(found)
    return made, left_out
