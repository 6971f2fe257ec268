"""DP-SGD on a logistic model: the last model or all of them, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit import validate
from dpaudit.catalogue.entry import Parameter, Source, Twin
from dpaudit.catalogue.learning.descent import losses, programs
from dpaudit.catalogue.learning.descent import runs as many
from dpaudit.catalogue.learning.descent.steps import Data, coded, last
from dpaudit.catalogue.learning.output_noise import in_room
from dpaudit.catalogue.promises import also
from dpaudit.claims import ApproximateDP, Relation
from dpaudit.losses.distribution import subsampled_gaussian_epsilon

NOTES = "CS 208, notes 002"


_RATE = also(validate.positive, lambda rate: rate <= 1.0, "be at most 1")
NOISE = Parameter(
    "noise_multiplier", 2.0, "clip norms", "the standard deviation of the noise on the sum", validate.positive
)
LEARNING_RATE = Parameter("learning_rate", 0.5, "1", "how far a step goes", validate.positive)
PENALTY = Parameter("penalty", 0.0, "1", "the weight of the regulariser |w|^2 / 2", validate.not_negative)
STEPS = Parameter("steps", 4, "steps", "T, after which it ends", partial(validate.whole, least=1))
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
        partial(validate.whole, least=1),
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
    one_batch=Twin(
        title="DP-SGD that draws one batch for all its steps",
        reason="a record joins all steps or none, so its pulls add up; the accountant counts on a new draw each step",
        formula="the batch is drawn once, before the first step",
        code=coded_sgd(losses.one_batch, batches=(programs.once(programs.poisson), many.once(many.poisson)), out=LAST),
    ),
    rate_of_one_record=Twin(
        title="DP-SGD, accounted at the rate of a batch of one",
        reason="the accountant was given 1 / n where a record joins with probability batch_size / n",
        formula="as DP-SGD; epsilon is computed for the rate `rate` / `batch_size`",
        promise=lambda rate, batch_size, **given: accounted(rate=rate / batch_size, **given),
    ),
)

dp_sgd_iterates = in_room(
    name="dp_sgd_iterates",
    title="DP-SGD with Poisson batches, the models of all steps",
    source=Source(f"{NOTES}, 'DP Stochastic Gradient Descent', algorithm 3", ABADI),
    formula=(
        "as dp_sgd, and the models of all T steps are released; epsilon is exact, from the distribution of the privacy "
        "loss: T times that of (1 - rate) N(0, 1) + rate N(1 / noise_multiplier, 1) against N(0, 1)"
    ),
    neighbours="datasets of which one has one record more",
    code=coded_sgd(losses.all_iterates),
    parameters=PARAMETERS,
    promise=accounted,
    default_pair=([*OTHERS, CANARY], OTHERS),
).with_twins(
    no_clipping=Twin(
        title="DP-SGD without clipping",
        reason="a record's gradient is as long as its features allow, and the noise is for one of length C",
        formula="as DP-SGD, with the records' own gradients in the sum",
        code=coded_sgd(losses.unclipped, clip=(programs.whole, many.whole_pull)),
        default_pair=([*OTHERS, [[0.3, 0.0], 1.0]], OTHERS),
    ),
    clipping_per_batch=Twin(
        title="DP-SGD that clips the gradient of the batch",
        reason="alone in the average a record moves it by up to C, and the noise is for its share, C / batch_size",
        formula="the average of the batch is clipped to C and gets N(0, (noise_multiplier C / batch_size)^2)",
        code=coded_sgd(
            losses.per_batch,
            clip=(programs.whole, many.whole_pull),
            average=(programs.expected_clipped, many.expected_clipped),
        ),
        default_pair=([[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0], CANARY], [[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0]]),
    ),
    realised_batch_size=Twin(
        title="DP-SGD that divides by the number of records drawn",
        reason="in a small batch a record's share is large, up to C, and the noise is for C / batch_size",
        formula="the sum is divided by the size of the batch that was drawn, the noise by `batch_size`",
        code=coded_sgd(losses.realised_size, average=(programs.realised, many.realised)),
        default_pair=([[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0], CANARY], [[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0]]),
    ),
    shuffled_batches=Twin(
        title="DP-SGD with shuffled batches, claimed as Poisson batches",
        reason=(
            "batches are full, so whoever joins pushes another out, and the sum moves by up to 2 C; in a Poisson batch "
            "it moves by C"
        ),
        formula="each epoch deals the shuffled records out in batches of `batch_size`; what is left over sits out",
        code=coded_sgd(losses.shuffled, batches=(programs.shuffled, many.shuffled)),
        default_pair=([[[1.0, 0.0], 0.0]] * 4 + [[[1.0, 0.0], 1.0]], [[[1.0, 0.0], 0.0]] * 4),
    ),
)
