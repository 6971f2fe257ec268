"""Laplace noise in bulk, at half the cost of `Generator.laplace`, and mechanisms that add noise to what they have.

Also releases that draw nothing: every run publishes the same, so two datasets either agree or are told apart.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bits, Places, Reals
from dpaudit.catalogue.entry import Code, Loss, Program
from dpaudit.catalogue.promises import unless_same
from dpaudit.losses.comparisons import centred_loss, vector_loss
from dpaudit.losses.distribution import gaussian_epsilon

Rng = np.random.Generator
SAME = 1e-9  # numbers closer than this are equal
Of = Callable[..., Any]  # something of the data and the parameters

# their raw words are 64 random bits, five times cheaper to get than bytes; those of MT19937 are half empty
_FULL_WORDS = (np.random.SFC64, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox)


def laplace(rng: Rng, scale: float, size: int) -> Reals:
    """`size` draws of Lap(scale): an exponential with a fair sign, the sign bit of a random byte.

    A scale of 0 gives zeros, for the twins that leave a noise out.
    """
    if scale == 0.0:
        return np.zeros(size)
    noise = rng.standard_exponential(size)
    noise *= scale
    if isinstance(rng.bit_generator, _FULL_WORDS):
        signs = rng.bit_generator.random_raw(-(-size // 8)).view(np.int8)[:size]
    else:
        signs = np.frombuffer(rng.bytes(size), np.int8)
    np.copysign(noise, signs, out=noise)
    return noise


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


def places_of(chances: Reals, runs: int, rng: Rng) -> Places:
    """Places drawn with these probabilities."""
    steps = np.cumsum(chances)
    return np.searchsorted(steps[:-1] / steps[-1], rng.random(runs), side="right")


def random_bits(code: Sequence[int], runs: int, rng: Rng, one: float, zero: float) -> Bits:
    """Independent bits (bit, run): 1 with probability `one` where the code has a 1, `zero` where it has a 0."""
    report = np.empty((len(code), runs), np.bool_)
    for row, bit in zip(report, code, strict=True):
        np.less(rng.random(runs), one if bit else zero, out=row)
    return report.view(np.int8)


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


def centred_each(centres: Of, scale: Of, program: Program | None = None, loss: Loss | None = None) -> Code:
    """The same around each number of a vector, with independent noise of one public scale."""

    def run(data: Any, rng: Rng, **given: Any) -> tuple[float, ...]:
        return tuple(float(centre) + rng.laplace(scale=scale(data, **given)) for centre in centres(data, **given))

    def exact(first: Any, second: Any, **given: Any) -> float:
        one, other = (np.asarray(centres(data, **given), float) for data in (first, second))
        return vector_loss(one, other, scale(first, **given))

    return Code(
        program or run,
        lambda data, runs, rng, **given: around_each(
            np.asarray(centres(data, **given), float), scale(data, **given), runs, rng
        ),
        loss or exact,
    )


def scaled_each(centres: Of, scales: Of, loss: Loss | None = None, program: Program | None = None) -> Code:
    """Laplace noise around each number of a vector, each with a scale of its own, which may be 0: a list of scales."""

    def run(data: Any, rng: Rng, **given: Any) -> tuple[float, ...]:
        pairs = zip(centres(data, **given), scales(data, **given), strict=True)
        return tuple(float(centre) + (rng.laplace(scale=scale) if scale else 0.0) for centre, scale in pairs)

    def sampler(data: Any, runs: int, rng: Rng, **given: Any) -> Reals:
        pairs = zip(centres(data, **given), scales(data, **given), strict=True)
        return np.stack([around(float(centre), float(scale), runs, rng) for centre, scale in pairs]).T

    def exact(first: Any, second: Any, **given: Any) -> float:
        """The losses add up; there is no end where a scale differs, or is 0 and its number moves."""
        widths, others = (np.asarray(scales(data, **given), float) for data in (first, second))
        moved = np.abs(np.subtract(centres(first, **given), centres(second, **given)))
        if np.any(widths != others) or np.any((widths == 0.0) & (moved > SAME)):
            return math.inf
        return float(np.sum(moved[widths > 0.0] / widths[widths > 0.0]))

    return Code(program or run, sampler, loss or exact)


def one_draw(centres: Of, scale: Of, *, normal: bool = False) -> Code:
    """One draw of noise around all numbers of a vector: their differences are exact, which is the mistake.

    It is Laplace noise of this scale, or normal noise with this sigma, and the loss then is mu.
    """

    def run(data: Any, rng: Rng, **given: Any) -> tuple[float, ...]:
        noise = (rng.normal if normal else rng.laplace)(scale=scale(data, **given))
        return tuple(float(centre) + noise for centre in centres(data, **given))

    def sampler(data: Any, runs: int, rng: Rng, **given: Any) -> Reals:
        width = scale(data, **given)
        noise = rng.standard_normal(runs) * width if normal else laplace(rng, width, runs)
        return np.asarray(noise[:, None] + np.asarray(centres(data, **given), float))

    def exact(first: Any, second: Any, **given: Any) -> float:
        """Only a move of all numbers together is hidden."""
        moved = np.subtract(centres(first, **given), centres(second, **given))
        return math.inf if np.ptp(moved) > SAME else float(abs(moved[0])) / scale(first, **given)

    return Code(run, sampler, exact)


def normal_each(centres: Of, sigma: Of, program: Program | None = None) -> Code:
    """Normal noise of one public sigma around each number of a vector.

    The loss is the epsilon at the claim's delta, or mu where it has none.
    """

    def run(data: Any, rng: Rng, **given: Any) -> tuple[float, ...]:
        return tuple(float(centre + rng.normal(scale=sigma(data, **given))) for centre in centres(data, **given))

    def sampler(data: Any, runs: int, rng: Rng, **given: Any) -> Reals:
        centre = np.asarray(centres(data, **given), float)
        noisy = rng.standard_normal((len(centre), runs))
        noisy *= sigma(data, **given)
        noisy += centre[:, None]
        return noisy.T

    def exact(first: Any, second: Any, **given: Any) -> float:
        """Along the line between the vectors the noise is normal with the same sigma; across it nothing differs."""
        mu = float(np.linalg.norm(np.subtract(centres(first, **given), centres(second, **given)))) / sigma(
            first, **given
        )
        return gaussian_epsilon(given["delta"], mu) if "delta" in given else mu

    return Code(program or run, sampler, exact)


def exact(publishes: Of, places: int = 0) -> Code:
    """A release without noise, `publishes(data, **parameters)`; with `places`, one that may leave some of them out."""

    def program(data: Any, rng: Rng, **parameters: Any) -> Any:
        return publishes(data, **parameters)

    def sampler(data: Any, runs: int, rng: Rng, **parameters: Any) -> npt.NDArray[Any]:
        """The same for each run, stored once; places that are left out are masked."""
        published = publishes(data, **parameters)
        if not places:
            values = np.asarray(published)
            return np.broadcast_to(values, (runs, *values.shape))
        values = np.array([published.get(place, 0.0) for place in range(places)])
        hidden = np.array([place not in published for place in range(places)])
        return np.ma.MaskedArray(np.broadcast_to(values, (runs, places)), mask=np.broadcast_to(hidden, (runs, places)))

    return Code(program, sampler, unless_same(publishes))
