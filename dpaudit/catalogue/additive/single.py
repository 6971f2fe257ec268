"""Laplace noise on one number, the mistakes that break it, and two that do not; and noise snapped to a grid."""

import functools
import math
from functools import partial

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around
from dpaudit.catalogue.noise import laplace as laplace_noise
from dpaudit.catalogue.promises import BASSI, DMNS, EPSILON, HAGHTALAB, SARKAR, doubled, per_unit, pure, unbounded
from dpaudit.claims import PureDP
from dpaudit.losses.comparisons import centred_loss, clamped_loss

SENSITIVITY = Parameter("sensitivity", 1.0, "units of the answer", "how far one person moves the answer")

in_room = partial(
    Entry,
    module="dpaudit.catalogue.additive",
    neighbours="answers at most `sensitivity` apart",
    parameters=(EPSILON, SENSITIVITY),
    promise=pure,
    default_pair=(10, 9),
)
of_number = partial(in_room, adjacency=("all-differ",))


SEEDS = 64  # of the generator that has too few of them

REACH = Parameter("reach", 1.0, "units of the answer", "where the noise is cut off, on both sides")
LARGEST = Parameter("largest", 10.0, "units of the answer", "the largest answer there can be")
SHIFT = Parameter("shift", 2.0, "units of the answer", "what is added to every output")
STEP = Parameter("step", 3.0, "units of the answer", "answers are rounded to its multiples")


def _laplace(data: float, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return data + rng.laplace(scale=sensitivity / epsilon)


def _laplace_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    return around(data, sensitivity / epsilon, runs, rng)


def _relative_noise(data: float, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return data * (1.0 + rng.laplace(scale=sensitivity / epsilon))


def _relative_noise_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    return _laplace_runs(1.0, runs, rng, epsilon, sensitivity) * data


def _relative_noise_loss(first: float, second: float, epsilon: float, sensitivity: float) -> float:
    scale = sensitivity / epsilon
    return centred_loss(first, abs(first) * scale, second, abs(second) * scale)


def _uniform(data: float, rng: Rng, epsilon: float, sensitivity: float, width: float) -> float:
    return data + rng.uniform(0.0, width)


def _one_sided_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    return rng.standard_exponential(runs) * (sensitivity / epsilon) + data


def _clipped(data: float, rng: Rng, epsilon: float, sensitivity: float, reach: float) -> float:
    noise = rng.laplace(scale=sensitivity / epsilon)
    return data + max(-reach, min(reach, noise))


def _clipped_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float, reach: float) -> Reals:
    return np.clip(laplace_noise(rng, sensitivity / epsilon, runs), -reach, reach) + data


def _few_seeds(data: float, rng: Rng, epsilon: float, sensitivity: float) -> float:
    seeded = np.random.default_rng(int(rng.integers(SEEDS)))
    return data + seeded.laplace(scale=sensitivity / epsilon)


@functools.cache
def _first_draws() -> Reals:
    return np.array([np.random.default_rng(seed).laplace() for seed in range(SEEDS)])


def _few_seeds_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    outputs = data + sensitivity / epsilon * _first_draws()
    return np.asarray(outputs[rng.integers(SEEDS, size=runs)])


def _rounded_noise(data: float, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return data + float(round(rng.laplace(scale=sensitivity / epsilon)))


def _rounded_noise_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    return np.rint(laplace_noise(rng, sensitivity / epsilon, runs)) + data


def _rounded_noise_loss(first: float, second: float, epsilon: float, sensitivity: float) -> float:
    """Noise on the integers: a whole difference shifts it, and the ratio is that of the tails; others part the two."""
    return per_unit(first, second, epsilon, sensitivity) if float(first - second).is_integer() else math.inf


def _rounded_output(data: float, rng: Rng, epsilon: float, sensitivity: float) -> float:
    return float(round(data + rng.laplace(scale=sensitivity / epsilon)))


def _rounded_output_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Reals:
    return np.rint(_laplace_runs(data, runs, rng, epsilon, sensitivity))


def _clamped_output(data: float, rng: Rng, epsilon: float, sensitivity: float, largest: float) -> float:
    return max(0.0, min(largest, data + rng.laplace(scale=sensitivity / epsilon)))


def _clamped_output_runs(data: float, runs: int, rng: Rng, epsilon: float, sensitivity: float, largest: float) -> Reals:
    return np.clip(_laplace_runs(data, runs, rng, epsilon, sensitivity), 0.0, largest)


def _clamped_output_loss(first: float, second: float, epsilon: float, sensitivity: float, largest: float) -> float:
    return clamped_loss(first, second, sensitivity / epsilon, 0.0, largest)


laplace = of_number(
    name="laplace",
    title="Laplace noise on a number",
    source=Source(
        f"{HAGHTALAB}, definition 2.5; {BASSI}, 'Laplace mechanism'; {SARKAR}, 'Simple example' (a count)", DMNS
    ),
    formula="the answer plus one draw of Lap(sensitivity / epsilon)",
    code=Code(_laplace, _laplace_runs, per_unit),
).with_twins(
    """half_noise: Laplace noise of half the scale
        Lap(sensitivity / (2 epsilon)) has a density that falls by e^(2 epsilon) over one sensitivity
        the answer plus one draw of Lap(sensitivity / (2 epsilon))
    uniform_noise: Uniform noise on [0, width]
        the noise ends: the smallest answers of one dataset cannot come from the other
        the answer plus one draw from the uniform distribution on [0, width]
    deviation_as_scale: Laplace noise whose standard deviation is sensitivity / epsilon
        Lap(b) has the standard deviation b sqrt(2), so the scale is too small by sqrt(2)
        the answer plus one draw of Lap(b), b = sensitivity / (epsilon sqrt(2)), of variance 2 b^2
    relative_noise: Laplace noise in proportion to the answer
        the scale is a function of the data: other answers have other tails, and an answer of 0 gets no noise
        the answer times 1 + Lap(sensitivity / epsilon)
    clipped_noise: Laplace noise cut off at a largest error
        the noise ends at `reach`: the outputs beyond the other answer's reach give the dataset away
        the answer plus Lap(sensitivity / epsilon) clipped to [-reach, reach]
    one_sided: Exponential noise, so that no output is too low
        no output lies below the answer: those between two answers can only come from the lower one
        the answer plus one exponential draw of mean sensitivity / epsilon
    moved_up: Laplace noise moved up, so that few outputs are too low
        all outputs move by the same, which is public: the ratios of their densities stay
        the answer plus one draw of Lap(sensitivity / epsilon) plus `shift`
    few_seeds: Laplace noise from a generator with few seeds
        there are only 64 noises, and everyone can compute them: an output tells which answer it is from
        the answer plus the first draw of Lap(sensitivity / epsilon) after one of the seeds 0, ..., 63
    rounded_first: The answer rounded to multiples of a step before the noise
        rounding can put neighbours a whole step apart, farther than the `sensitivity` that the noise is for
        the multiple of `step` nearest to the answer, plus one draw of Lap(sensitivity / epsilon)
    rounded_noise: The noise rounded to integers before it is added
        the answer keeps its digits behind the point, and outputs show them unchanged
        the answer plus the integer nearest to one draw of Lap(sensitivity / epsilon)
    rounded_output: The noisy answer rounded to an integer
        rounding comes after the noise, and what follows the release sees nothing else of the data
        the integer nearest to the answer plus one draw of Lap(sensitivity / epsilon)
    clamped_output: The noisy answer clamped to what is possible
        the noisy answer is changed after the noise, by a rule that knows nothing else of the data
        the answer plus one draw of Lap(sensitivity / epsilon), clamped to [0, largest]""",
    half_noise=Twin(edit={"/ epsilon": "/ (2.0 * epsilon)"}, at=doubled),
    uniform_noise=Twin(
        code=Code(
            _uniform, lambda data, runs, rng, epsilon, sensitivity, width: rng.random(runs) * width + data, unbounded
        ),
        parameters=(Parameter("width", 5.0, "units of the answer", "the length of the interval"),),
    ),
    deviation_as_scale=Twin(at=lambda data, epsilon, **_: {"epsilon": math.sqrt(2.0) * epsilon}),
    relative_noise=Twin(code=Code(_relative_noise, _relative_noise_runs, _relative_noise_loss), default_pair=(0, 1)),
    clipped_noise=Twin(code=Code(_clipped, _clipped_runs, unbounded), parameters=(REACH,)),
    one_sided=Twin(code=Code(sampler=_one_sided_runs, loss=unbounded), edit={"laplace(scale=": "exponential("}),
    moved_up=Harmless(
        edit={") ->": ", shift: float) ->", "data +": "data + shift +"},
        on=lambda data, shift, **_: data + shift,
        parameters=(SHIFT,),
    ),
    few_seeds=Twin(code=Code(_few_seeds, _few_seeds_runs, unbounded)),
    rounded_first=Twin(on=lambda data, step, **_: step * round(data / step), parameters=(STEP,), default_pair=(10, 11)),
    rounded_noise=Twin(code=Code(_rounded_noise, _rounded_noise_runs, _rounded_noise_loss), default_pair=(10.0, 9.5)),
    rounded_output=Harmless(code=Code(_rounded_output, _rounded_output_runs, per_unit)),
    clamped_output=Harmless(
        code=Code(_clamped_output, _clamped_output_runs, _clamped_output_loss), parameters=(LARGEST,)
    ),
)


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


snapping = of_number(
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
        Parameter("bound", 1024.0, "units of the answer", "where answer and output are clamped"),
    ),
    promise=lambda epsilon, sensitivity, bound, **_: PureDP(epsilon * (1.0 + LOST * bound / sensitivity)),
).with_twins(
    """half_noise: The same with noise of half the scale
        noise of scale sensitivity / (2 epsilon) has the loss 2 epsilon, and rounding takes none of it off
        as the snapping mechanism, with sensitivity / (2 epsilon) in the place of sensitivity / epsilon""",
    half_noise=Twin(at=doubled),
)
