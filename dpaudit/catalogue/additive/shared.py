"""What the entries of this room share: parameters, promises, sources, and noise in bulk."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Loss, Parameter, Program
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.claims import ApproximateDP
from dpaudit.losses.laplace import centred_loss, vector_loss

ROOM = "dpaudit.catalogue.additive"

HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
CS208, SARKAR, CHEEMA = "CS 208, notes 002", "Sarkar, notes 003", "Cheema & Huszár, notes 004"
DMNS = "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis"

SENSITIVITY = Parameter(
    "sensitivity", 1.0, "units of the answer", "how far one person moves the answer", validate.positive
)


def approximate(epsilon: float, delta: float, **_: Any) -> ApproximateDP:
    """(epsilon, delta)-DP, for neighbours that the entry states in words."""
    return ApproximateDP(epsilon, delta)


def unbounded(first: Any, second: Any, **_: Any) -> float:
    """The loss where any change of the data makes outputs that could not come from the other dataset."""
    return math.inf if first != second else 0.0


def around(centre: float, scale: float, runs: int, rng: Rng) -> Reals:
    """Many draws of Lap(scale) around one number."""
    noisy = laplace(rng, scale, runs)
    noisy += centre
    return noisy


def around_each(centres: Reals, scale: float, runs: int, rng: Rng) -> Reals:
    """The same around each number of a vector, by independent draws (run, coordinate)."""
    noisy = laplace(rng, scale, len(centres) * runs).reshape(len(centres), runs)
    noisy += centres[:, None]
    return noisy.T


Of = Callable[..., Any]  # something of the data and the parameters


def centred(centre: Of, scale: Of, program: Program | None = None, loss: Loss | None = None) -> Code:
    """Laplace noise around one number; both it and the scale of the noise may depend on the data."""

    def run(data: Any, rng: Rng, **given: Any) -> float:
        return float(centre(data, **given) + rng.laplace(scale=scale(data, **given)))

    def exact(first: Any, second: Any, **given: Any) -> float:
        (one, width), (other, other_width) = ((centre(data, **given), scale(data, **given)) for data in (first, second))
        return centred_loss(one, width, other, other_width)

    return Code(
        program or run,
        lambda data, runs, rng, **given: around(centre(data, **given), scale(data, **given), runs, rng),
        loss or exact,
    )


def centred_each(centres: Of, scale: Of, program: Program | None = None) -> Code:
    """The same around each number of a vector, with independent noise of one public scale."""

    def run(data: Any, rng: Rng, **given: Any) -> tuple[float, ...]:
        return tuple(float(centre) + rng.laplace(scale=scale(data, **given)) for centre in centres(data, **given))

    return Code(
        program or run,
        lambda data, runs, rng, **given: around_each(centres(data, **given), scale(data, **given), runs, rng),
        lambda first, second, **given: vector_loss(
            centres(first, **given), centres(second, **given), scale(first, **given)
        ),
    )
