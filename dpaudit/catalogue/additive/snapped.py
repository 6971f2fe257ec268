"""The snapping mechanism: Laplace noise whose floats tell nothing that the rounded answer does not."""

import math

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.additive.single import SENSITIVITY, in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, doubled
from dpaudit.claims import PureDP
from dpaudit.losses.laplace import clamped_loss

LOST = 2.0**-49  # of the bound, in sensitivities: what the rounding of floats costs (Mironov 2012, theorem 1)


def _grid(scale: float) -> float:
    """The least power of two that is at least the scale."""
    fraction, exponent = math.frexp(scale)
    return math.ldexp(1.0, exponent - (fraction == 0.5))


def _clamped(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))


def _snapping(data: float, rng: Rng, epsilon: float, sensitivity: float, bound: float) -> float:
    scale = sensitivity / epsilon
    uniform = (1.0 + int(rng.integers(1 << 52)) * 2.0**-52) * 2.0 ** -int(rng.geometric(0.5))
    sign = 1.0 if rng.integers(2) else -1.0
    grid = _grid(scale)
    noisy = _clamped(float(data), bound) + sign * scale * math.log(uniform)
    return _clamped(grid * float(np.rint(noisy / grid)), bound)


def _snapping_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float, bound: float) -> Reals:
    scale = sensitivity / epsilon
    uniform = rng.integers(1 << 52, size=runs) * 2.0**-52
    uniform += 1.0
    noisy: Reals = np.log(np.ldexp(uniform, -rng.geometric(0.5, runs)))
    noisy *= np.where(rng.integers(2, size=runs, dtype=np.int8), scale, -scale)
    noisy += _clamped(float(data), bound)
    grid = _grid(scale)
    noisy /= grid
    np.rint(noisy, out=noisy)
    noisy *= grid
    np.clip(noisy, -bound, bound, out=noisy)
    return noisy


def _snapping_loss(first: float, second: float, epsilon: float, sensitivity: float, bound: float) -> float:
    """The larger of the log ratios at the two ends, where the ratio of the rounded noise is the largest."""
    scale = sensitivity / epsilon
    grid = _grid(scale)
    edge = (math.ceil(bound / grid) - 0.5) * grid  # all that lies beyond is released as the bound
    answers = [_clamped(float(answer), bound) for answer in (first, second)]
    return clamped_loss(answers[0], answers[1], scale, -edge, edge)


snapping = in_room(
    name="snapping",
    title="Laplace noise snapped to a grid of powers of two",
    source=Source(None, "Mironov 2012, On significance of the least significant bits for differential privacy"),
    formula="the answer plus S ln(U) sensitivity / epsilon, S a fair sign and U a uniform float of full precision, "
    "rounded to multiples of the least power of two that is at least sensitivity / epsilon; "
    "both clamped to [-bound, bound]",
    code=Code(_snapping, _snapping_runs, _snapping_loss),
    parameters=(
        EPSILON,
        SENSITIVITY,
        Parameter("bound", 1024.0, "units of the answer", "where answer and output are clamped", validate.positive),
    ),
    promise=lambda epsilon, sensitivity, bound, **_: PureDP(epsilon * (1.0 + LOST * bound / sensitivity)),
).with_twins(
    """half_noise: The same with noise of half the scale
        noise of scale sensitivity / (2 epsilon) has the loss 2 epsilon, and rounding takes none of it off
        as the snapping mechanism, with sensitivity / (2 epsilon) in the place of sensitivity / epsilon""",
    half_noise=Twin(at=doubled),
)
