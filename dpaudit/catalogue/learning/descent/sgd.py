"""DP-SGD on a logistic model, in Poisson batches and in batches of one size: the last model or all of them.

With n and B public a record is replaced, not added: a batch is full, so who joins it takes the place of another one.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit.base import validate
from dpaudit.catalogue.entry import Harmless, Parameter, Promise, Source, Twin
from dpaudit.catalogue.learning.descent import losses, programs
from dpaudit.catalogue.learning.descent import runs as many
from dpaudit.catalogue.learning.descent.steps import Data, Descent, coded, last
from dpaudit.catalogue.learning.output_noise import in_room
from dpaudit.catalogue.promises import also, at_least_one
from dpaudit.claims import ApproximateDP, Relation
from dpaudit.losses.distribution import (
    ALONE,
    Mixture,
    fixed_batch_epsilon,
    mixture_epsilon,
    repeated_epsilon,
    step_losses,
    subsampled_gaussian_epsilon,
)

NOTES = "CS 208, notes 002"


_RATE = also(validate.positive, lambda rate: rate <= 1.0, "be at most 1")
NOISE = Parameter(
    "noise_multiplier", 2.0, "clip norms", "the standard deviation of the noise on the sum", validate.positive
)
LEARNING_RATE = Parameter("learning_rate", 0.5, "1", "how far a step goes", validate.positive)
PENALTY = Parameter("penalty", 0.0, "1", "the weight of the regulariser |w|^2 / 2", validate.not_negative)
STEPS = Parameter("steps", 4, "steps", "T, after which it ends", at_least_one)
PARAMETERS = (
    replace(NOISE, default=1.0),
    Parameter("clip", 0.1, "units of a gradient", "the largest l2 norm of a record's gradient", validate.positive),
    replace(LEARNING_RATE, default=1.0),
    STEPS,
    Parameter("rate", 0.5, "probability", "of a record to be in the batch of a step", _RATE),
    Parameter(
        "batch_size",
        2,
        "records",
        "what the sum is divided by: the expected size, public, whatever the data",
        at_least_one,
    ),
    Parameter("delta", 0.01, "probability", "the additive part of the claim", validate.open_probability),
)

OTHERS: Data = [[[0.0, 1.0], 1.0], [[0.0, 1.0], 0.0], [[0.0, 0.5], 1.0], [[0.0, -0.5], 0.0]]
CANARY = [[1.0, 0.0], 1.0]
ABADI = "Abadi et al. 2016, Deep learning with differential privacy, algorithm 1"


def accounted(noise_multiplier: float, steps: int, rate: float, delta: float, **_: Any) -> ApproximateDP:
    epsilon = subsampled_gaussian_epsilon(delta, noise_multiplier, rate, steps)
    return ApproximateDP(epsilon, delta, Relation.ADD_OR_REMOVE_ONE)


coded_sgd = partial(coded, programs.dp_sgd, many.dp_sgd)
LAST = (programs.last, last)

dp_sgd = in_room(
    name="dp_sgd",
    title="DP-SGD with Poisson batches, the last model",
    source=Source(f"{NOTES}, 'DP Stochastic Gradient Descent', algorithm 3", ABADI),
    formula=(
        "in each of T steps every record joins the batch with probability `rate`, by itself; the batch's gradients, "
        "clipped to an l2 norm of C, are summed, with N(0, (noise_multiplier C)^2) on every coordinate, divided by "
        "`batch_size` and followed downhill; epsilon is exact for all models seen"
    ),
    neighbours="datasets of which one has one record more",
    code=coded_sgd(losses.last_iterate, out=LAST),
    parameters=PARAMETERS,
    promise=accounted,
    default_pair=([*OTHERS, CANARY], OTHERS),
).with_twins(
    """one_batch: DP-SGD that draws one batch for all its steps
        a record joins all steps or none, so its pulls add up; the accountant counts on a new draw each step
        the batch is drawn once, before the first step
    rate_of_one_record: DP-SGD, accounted at the rate of a batch of one
        the accountant was given 1 / n where a record joins with probability batch_size / n
        as DP-SGD; epsilon is computed for the rate `rate` / `batch_size`""",
    one_batch=Twin(
        code=coded_sgd(losses.one_batch, batches=(programs.once(programs.poisson), many.once(many.poisson)), out=LAST)
    ),
    rate_of_one_record=Twin(promise=lambda rate, batch_size, **given: accounted(rate=rate / batch_size, **given)),
)

dp_sgd_iterates = replace(
    dp_sgd,
    name="dp_sgd_iterates",
    title="DP-SGD with Poisson batches, the models of all steps",
    formula=(
        "as dp_sgd, and the models of all T steps are released; epsilon is exact, from the distribution of the privacy "
        "loss: T times that of (1 - rate) N(0, 1) + rate N(1 / noise_multiplier, 1) against N(0, 1)"
    ),
    code=coded_sgd(losses.all_iterates),
).with_twins(
    """no_clipping: DP-SGD without clipping
        a record's gradient is as long as its features allow, and the noise is for one of length C
        as DP-SGD, with the records' own gradients in the sum
    clipping_per_batch: DP-SGD that clips the gradient of the batch
        alone in the average a record moves it by up to C, and the noise is for its share, C / batch_size
        the average of the batch is clipped to C and gets N(0, (noise_multiplier C / batch_size)^2)
    realised_batch_size: DP-SGD that divides by the number of records drawn
        in a small batch a record's share is large, up to C, and the noise is for C / batch_size
        the sum is divided by the size of the batch that was drawn, the noise by `batch_size`
    shuffled_batches: DP-SGD with shuffled batches, claimed as Poisson batches
        batches are full, so whoever joins pushes another out, and the sum moves by up to 2 C; in a Poisson batch \
            it moves by C
        each epoch deals the shuffled records out in batches of `batch_size`; what is left over sits out""",
    no_clipping=Twin(
        code=coded_sgd(losses.unclipped, clip=(programs.whole, many.whole_pull)),
        default_pair=([*OTHERS, [[0.3, 0.0], 1.0]], OTHERS),
    ),
    clipping_per_batch=Twin(
        code=coded_sgd(
            losses.per_batch,
            clip=(programs.whole, many.whole_pull),
            average=(programs.expected_clipped, many.expected_clipped),
        ),
        default_pair=([[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0], CANARY], [[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0]]),
    ),
    realised_batch_size=Twin(
        code=coded_sgd(losses.realised_size, average=(programs.realised, many.realised)),
        default_pair=([[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0], CANARY], [[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0]]),
    ),
    shuffled_batches=Twin(
        code=coded_sgd(losses.shuffled, batches=(programs.shuffled, many.shuffled)),
        default_pair=([[[1.0, 0.0], 0.0]] * 4 + [[[1.0, 0.0], 1.0]], [[[1.0, 0.0], 0.0]] * 4),
    ),
)


_NOISE, _CLIP, _LEARNING_RATE, _STEPS, _, _BATCH, _DELTA = PARAMETERS
RECORDS = Parameter("records", 6, "records", "n, which is public", at_least_one)
_DRAWN = (RECORDS, replace(_BATCH, default=3))
ALIKE: Data = [[[1.0, 0.0], 0.0]] * 5


def _accounted(by: Callable[[float, float, float, int], float]) -> Promise:
    def promise(
        noise_multiplier: float, steps: int, records: int, batch_size: int, delta: float, **_: Any
    ) -> ApproximateDP:
        losses.need(batch_size <= records, "a batch has at most n records")
        return ApproximateDP(by(delta, noise_multiplier, batch_size / records, steps), delta, Relation.REPLACE_ONE)

    return promise


# --- exact losses: all records pull along one line, by a clip norm each -----------------------------------------------


def _pulls(data: Data, at: Descent) -> list[int]:
    (line, *more) = {tuple(features) for features, _ in data}
    drift = losses.drift(at, at.size)
    shrinks = at.learning_rate * at.penalty <= 2.0  # else the regulariser throws the model out further at each step
    clipped = shrinks and all(losses.clipped_within(record, drift, at.clip) for record in data)
    losses.need(not more and clipped and any(line), "all records have the same features and are always clipped")
    return [1 if label else -1 for _, label in data]


def _mixtures(first: Data, second: Data, at: Descent, steps: int = 1) -> tuple[Mixture, Mixture]:
    """The sum of a batch, used in so many steps, in deviations of the noise; the higher one first."""
    low, high = sorted((_pulls(data, at) for data in (first, second)), key=sum)
    losses.need(len(low) == len(high) == at.records, "both datasets have n records")
    losses.need(sum(high) - sum(low) <= 2, "one label is replaced")
    least, unit = sum(sorted(low)[: int(at.size)]), at.noise_multiplier / math.sqrt(steps)

    def mixture(pulls: list[int]) -> Mixture:
        sums = Counter(map(sum, itertools.combinations(pulls, int(at.size))))
        centres = tuple((total - least) / unit for total in sorted(sums))
        return Mixture(centres, tuple(sums[total] / sums.total() for total in sorted(sums)))

    return mixture(high), mixture(low)


def _all_models(first: Data, second: Data, at: Descent) -> float:
    return repeated_epsilon(at.delta, step_losses(*_mixtures(first, second, at), "above"), at.steps)


def _last_model(first: Data, second: Data, at: Descent) -> float:
    """The noisy sum of each step has its weight in the last model: a mixture of all the ways to join T steps."""
    joined, alone = _mixtures(first, second, at)
    if joined == alone:
        return 0.0
    losses.need(alone == ALONE, "all other records pull one way")
    kept = [(1.0 - at.learning_rate * at.penalty) ** step for step in range(at.steps)]
    ways = list(itertools.product(range(len(joined.centres)), repeat=at.steps))
    shifts = [sum(w * joined.centres[k] for w, k in zip(kept, way, strict=True)) / math.hypot(*kept) for way in ways]
    chances = [math.prod(joined.weights[k] for k in way) for way in ways]
    return mixture_epsilon(at.delta, Mixture(tuple(shifts), tuple(chances)))


_EXACTLY = (programs.of_exactly, many.of_exactly)

dp_sgd_fixed_batches = in_room(
    name="dp_sgd_fixed_batches",
    title="DP-SGD with batches of exactly B records, the models of all steps",
    source=Source(
        f"{NOTES}, 'DP Stochastic Gradient Descent', algorithm 3",
        "Balle, Barthe & Gaboardi 2018, Privacy amplification by subsampling; Zhu, Dong & Wang 2022",
    ),
    formula=(
        "in each of T steps a fresh batch of exactly B of the n records, without replacement; the average of its "
        "gradients, clipped to an l2 norm of C, plus the gradient of the regulariser, plus N(0, sigma^2 I) with "
        "sigma = noise_multiplier C / B, is followed downhill; the models of all steps are released. "
        "epsilon holds for all data: T times (1 - B/n) N(0, 1) + (B/n) N(2 / noise_multiplier, 1) against N(0, 1), "
        "and whichever order tells more at each loss"
    ),
    code=coded_sgd(_all_models, batches=_EXACTLY),
    parameters=(replace(_NOISE, default=2.0), _CLIP, _LEARNING_RATE, _STEPS, *_DRAWN, PENALTY, _DELTA),
    promise=_accounted(fixed_batch_epsilon),
    default_pair=([*ALIKE, [[1.0, 0.0], 1.0]], [*ALIKE, [[1.0, 0.0], 0.0]]),
).with_twins(
    """last: DP-SGD with batches of exactly B records, the last model
        the last model is one of those that are private together
        as DP-SGD with batches of exactly B records; only the last model is released
    usual_sigma: DP-SGD with batches of exactly B records, claimed as Poisson batches
        a Poisson batch changes by a record's pull, up to C; in a full batch another pull goes for it: 2 C
        as DP-SGD with batches of exactly B records; epsilon is that of Poisson batches of the rate B / n
    noise_over_n: DP-SGD with the noise of an average over all n records
        a record's share in the average of a batch is 1 / B, not 1 / n: the noise is n / B times too small
        as DP-SGD with batches of exactly B records, with sigma = noise_multiplier C / n
    one_batch: DP-SGD that draws one batch of exactly B records for all its steps
        a record joins all steps or none, so its pulls add up; the accountant counts on a new draw each step
        the batch of B records is drawn once, before the first step""",
    last=Harmless(code=coded_sgd(_last_model, batches=_EXACTLY, out=LAST)),
    usual_sigma=Twin(promise=_accounted(subsampled_gaussian_epsilon)),
    noise_over_n=Twin(
        at=lambda data, noise_multiplier, records, batch_size, **_: {
            "noise_multiplier": noise_multiplier * batch_size / records
        }
    ),
    one_batch=Twin(
        code=coded_sgd(
            lambda first, second, at: mixture_epsilon(at.delta, *_mixtures(first, second, at, at.steps)),
            batches=(programs.once(programs.of_exactly), many.once(many.of_exactly)),
        )
    ),
)
