"""Gradient descent with differential privacy, the last model or all of them.

DP gradient descent takes all records and a linear model, DP-SGD Poisson batches or batches of one size.
With n and B public a record is replaced, not added: a batch is full, so who joins it takes the place of another one.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Program, Promise, Source, Twin, edited, left_out
from dpaudit.catalogue.learning.descent import losses, programs
from dpaudit.catalogue.learning.descent import runs as many
from dpaudit.catalogue.learning.descent.programs import Data, Descent, planned
from dpaudit.catalogue.learning.objective_noise import in_room
from dpaudit.catalogue.promises import DELTA, EPSILON, also
from dpaudit.claims import ApproximateDP, GaussianDP, Relation
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
NOISE = Parameter("noise_multiplier", 2.0, "clip norms", "the standard deviation of the noise on the sum")
LEARNING_RATE = Parameter("learning_rate", 0.5, "1", "how far a step goes")
PENALTY = Parameter("penalty", 0.0, "1", "the weight of the regulariser |w|^2 / 2", validate.not_negative)
STEPS = Parameter("steps", 4, "steps", "T, after which it ends")
PARAMETERS = (
    replace(NOISE, default=1.0),
    Parameter("clip", 0.1, "units of a gradient", "the largest l2 norm of a record's gradient"),
    replace(LEARNING_RATE, default=1.0),
    STEPS,
    Parameter("rate", 0.5, "probability", "of a record to be in the batch of a step", _RATE),
    Parameter("batch_size", 2, "records", "what the sum is divided by: the expected size, public, whatever the data"),
    DELTA,
)

OTHERS: Data = [[[0.0, 1.0], 1.0], [[0.0, 1.0], 0.0], [[0.0, 0.5], 1.0], [[0.0, -0.5], 0.0]]
CANARY = [[1.0, 0.0], 1.0]
ABADI = "Abadi et al. 2016, Deep learning with differential privacy, algorithm 1"


def accounted(noise_multiplier: float, steps: int, rate: float, delta: float, **_: Any) -> ApproximateDP:
    epsilon = subsampled_gaussian_epsilon(delta, noise_multiplier, rate, steps)
    return ApproximateDP(epsilon, delta, Relation.ADD_OR_REMOVE_ONE)


def coded(
    sampler: Callable[..., Any],
    loss: Callable[..., Any],
    program: Program = left_out,
    spread: Callable[[Descent], float] = programs.clip_norms,
    **parts: str,
) -> Code:
    """A descent, in its sampler with some parts changed, by their names in `PARTS`; `spread`: of the noise on a sum."""
    runs = {name: many.PARTS[part] for name, part in parts.items()}
    if spread is not programs.clip_norms:
        runs["spread"] = spread
    return Code(program if program is left_out else planned(program), planned(sampler, **runs), planned(loss))


coded_sgd = partial(coded, many.dp_sgd)
LAST = {"flattened(models)": "tuple(model.tolist())"}

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
    code=coded_sgd(losses.last_iterate, edited(programs.dp_sgd, "dp_sgd_last", LAST), out="last"),
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
        code=coded_sgd(losses.one_batch, batches="one poisson", out="last"), edit={"poisson(": "once(poisson)("}
    ),
    rate_of_one_record=Twin(promise=lambda rate, batch_size, **given: accounted(rate=rate / batch_size, **given)),
)

_WHOLE = {"clipped(logistic_gradient(model, record), at.clip)": "logistic_gradient(model, record)"}

dp_sgd_iterates = replace(
    dp_sgd,
    name="dp_sgd_iterates",
    title="DP-SGD with Poisson batches, the models of all steps",
    formula=(
        "as dp_sgd, and the models of all T steps are released; epsilon is exact, from the distribution of the privacy "
        "loss: T times that of (1 - rate) N(0, 1) + rate N(1 / noise_multiplier, 1) against N(0, 1)"
    ),
    code=coded_sgd(losses.all_iterates, programs.dp_sgd),
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
        code=coded_sgd(losses.unclipped, clip="whole"),
        edit=_WHOLE,
        default_pair=([*OTHERS, [[0.3, 0.0], 1.0]], OTHERS),
    ),
    clipping_per_batch=Twin(
        code=coded_sgd(losses.per_batch, clip="whole", average="expected, clipped"),
        edit={**_WHOLE, "total / at.size": "clipped(total / at.size, at.clip)"},
        default_pair=([[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0], CANARY], [[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0]]),
    ),
    realised_batch_size=Twin(
        code=coded_sgd(losses.realised_size, average="realised"),
        edit={"total / at.size": "total / max(len(batch), 1)"},
        default_pair=([[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0], CANARY], [[[0.0, 0.0], 1.0], [[0.0, 0.0], 0.0]]),
    ),
    shuffled_batches=Twin(
        code=coded_sgd(losses.shuffled, batches="shuffled"),
        edit={"poisson(": "shuffled("},
        default_pair=([[[1.0, 0.0], 0.0]] * 4 + [[[1.0, 0.0], 1.0]], [[[1.0, 0.0], 0.0]] * 4),
    ),
)


_NOISE, _CLIP, _LEARNING_RATE, _STEPS, _, _BATCH, _DELTA = PARAMETERS
RECORDS = Parameter("records", 6, "records", "n, which is public")
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
    """The sum of a batch that is used in `steps` steps, in deviations of the noise; the higher one first."""
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
    parts = [(1.0 - at.learning_rate * at.penalty) ** step for step in range(at.steps)]
    ways = list(itertools.product(range(len(joined.centres)), repeat=at.steps))
    shifts = [sum(w * joined.centres[k] for w, k in zip(parts, way, strict=True)) / math.hypot(*parts) for way in ways]
    chances = [math.prod(joined.weights[k] for k in way) for way in ways]
    return mixture_epsilon(at.delta, Mixture(tuple(shifts), tuple(chances)))


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
    code=coded_sgd(
        _all_models, edited(programs.dp_sgd, "dp_sgd_of_exactly", {"poisson(": "of_exactly("}), batches="of exactly"
    ),
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
    last=Harmless(code=coded_sgd(_last_model, batches="of exactly", out="last"), edit=LAST),
    usual_sigma=Twin(promise=_accounted(subsampled_gaussian_epsilon)),
    noise_over_n=Twin(
        at=lambda data, noise_multiplier, records, batch_size, **_: {
            "noise_multiplier": noise_multiplier * batch_size / records
        }
    ),
    one_batch=Twin(
        code=coded_sgd(
            lambda first, second, at: mixture_epsilon(at.delta, *_mixtures(first, second, at, at.steps)),
            batches="one of exactly",
        ),
        edit={"of_exactly(": "once(of_exactly)("},
    ),
)


CLIP = Parameter("clip", 3.0, "units of a gradient", "the largest l2 norm of a record's gradient")
SIZE = Parameter("size", 4.0, "records", "what the sum is divided by; public, whatever the data")
_FULL_PARAMETERS = (NOISE, CLIP, LEARNING_RATE, STEPS, SIZE)

_POINTS: Data = [[[0.0, 1.0], 0.5], [[0.0, 1.0], -0.5], [[0.0, 0.5], 0.25]]
_FAR_POINT = [[1.0, 0.0], 100.0]

TRANSCRIPT = "Bassily, Smith & Thakurta 2014, Private empirical risk minimization; Dong, Roth & Su 2022, corollary 3.3"


def _gaussian(
    noise_multiplier: float, steps: int, relation: Relation = Relation.ADD_OR_REMOVE_ONE, **_: Any
) -> GaussianDP:
    return GaussianDP(math.sqrt(steps) / noise_multiplier, relation)


def _of_a_share(at: Descent) -> float:
    return at.noise_multiplier * (at.clip / at.size)


_descent = partial(coded, many.descent)


def _exact_loss(first: Data, second: Data, at: Descent) -> float:
    """Infinite, unless both datasets lead to the same model."""
    one, other = (programs.gradient_descent(data, np.random.default_rng(0), at) for data in (first, second))
    return 0.0 if np.allclose(one, other, rtol=1e-9, atol=0.0) else math.inf


gradient_descent = in_room(
    name="gradient_descent",
    title="Gradient descent, as it is without differential privacy",
    source=Source(f"{NOTES}, 'Non-private Gradient Descent', algorithm 1", "Cauchy 1847, Méthode générale"),
    formula=(
        "in each of T steps the average of the records' gradients, and the penalty times the model, is followed "
        "downhill; the loss is half the squared error"
    ),
    code=Code(planned(programs.gradient_descent), planned(many.gradient_descent), planned(_exact_loss)),
    parameters=(EPSILON, LEARNING_RATE, STEPS, PENALTY),
    default_pair=([*_POINTS, [[1.0, 0.0], 1.0]], [*_POINTS, [[1.0, 0.0], 0.0]]),
    broken=True,
    reason="nobody claims an epsilon for it: the model is a function of the data, and one record makes another model",
)

dp_gradient_descent = in_room(
    name="dp_gradient_descent",
    title="DP gradient descent, the last model",
    source=Source(f"{NOTES}, 'DP Gradient Descent', algorithm 2", TRANSCRIPT),
    formula=(
        "in each of T steps the records' gradients, clipped to an l2 norm of C, are summed, with "
        "N(0, (noise_multiplier C)^2) on every coordinate, divided by `size` and followed "
        "downhill: sqrt(T) / noise_multiplier-GDP"
    ),
    neighbours="datasets of which one has one record more",
    code=_descent(partial(losses.gaussian_mu, own=True), edited(programs.descent, "descent_last", LAST), out="last"),
    parameters=_FULL_PARAMETERS,
    promise=_gaussian,
    default_pair=([*_POINTS, _FAR_POINT], _POINTS),
).with_twins(
    """no_clipping: DP gradient descent without clipping
        a record of large error moves the model as far as its error is large, and the noise knows no bound
        as DP gradient descent, with the records' own gradients in the sum
    clipping_after_averaging: DP gradient descent that clips the average
        one record can turn the clipped average round, by 2 C, and the noise is for a record's share, C / size
        the average of the gradients is clipped to C and gets N(0, (noise_multiplier C / size)^2)
    noise_at_the_end: DP gradient descent with the noise of one step on the last model
        the record has pulled T times by then, against one draw of noise: T / noise_multiplier, not sqrt(T)
        T exact steps with clipped gradients, then N(0, (learning_rate noise_multiplier C / size)^2)
    replace_one: DP gradient descent, claimed for a record replaced
        a clipped gradient that is replaced can turn round: the sum moves by 2 C, and the noise is for C
        as DP gradient descent; the claim is made for datasets of one size
    averaged: DP gradient descent, the mean of all models
        the mean is computed from the models, which are private together
        as DP gradient descent; the output is the mean of the models after all steps""",
    no_clipping=Twin(
        code=_descent(losses.unclipped_mu, total="unclipped", out="last"), edit={"clipped_sum": "unclipped_sum"}
    ),
    clipping_after_averaging=Twin(
        code=_descent(
            losses.after_averaging_mu,
            total="average clipped",
            spread=_of_a_share,
            step="of the average",
            out="last",
        ),
        edit={
            "clipped_sum(model, data, at)": "clipped(unclipped_sum(model, data, at) / len(data), at.clip)",
            "clip_norms(at)": "at.noise_multiplier * (at.clip / at.size)",
            "(total + noise) / at.size": "(total + noise)",
        },
        default_pair=(
            [[[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0], [[1.0, 0.0], 1000.0]],
            [[[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0]],
        ),
    ),
    noise_at_the_end=Twin(
        code=coded(
            many.noise_at_the_end,
            lambda first, second, at: math.sqrt(at.steps) * losses.gaussian_mu(first, second, at, own=True),
        ),
        edit={
            "        noise =": None,
            "(total + noise)": "total",
            "    return": "    noise = rng.normal(scale=clip_norms(at), size=len(model))\n    return",
            "tuple(model.tolist())": "tuple((model - at.learning_rate * noise / at.size).tolist())",
        },
    ),
    replace_one=Twin(
        code=Code(loss=planned(losses.replaced_mu)),
        default_pair=([*_POINTS, _FAR_POINT], [*_POINTS, [[1.0, 0.0], -100.0]]),
        promise=partial(_gaussian, relation=Relation.REPLACE_ONE),
        neighbours="datasets of which one record is replaced",
    ),
    averaged=Harmless(
        code=_descent(losses.averaged_mu, out="mean"), edit={"model.tolist()": "np.mean(models, axis=0).tolist()"}
    ),
)

dp_gradient_descent_iterates = replace(
    dp_gradient_descent,
    name="dp_gradient_descent_iterates",
    title="DP gradient descent, the models of all steps",
    formula=(
        "as dp_gradient_descent, and the models of all T steps are released: sqrt(T) / noise_multiplier-GDP just so"
    ),
    code=_descent(losses.gaussian_mu, programs.descent),
).with_twins(
    """noise_unscaled: DP gradient descent with noise that does not know the clip norm
        a record moves the sum by C, and the noise is for 1: C times the loss
        the noise on every coordinate of the sum is N(0, noise_multiplier^2), whatever C is
    noise_divided_twice: DP gradient descent with the noise averaged twice
        noise that is made for the average is divided by `size` once more: `size` times the loss
        the noise on every coordinate of the sum is N(0, (noise_multiplier C / size)^2)
    noise_in_the_first_step: DP gradient descent with noise in its first step only
        from one model to the next the later steps are exact, and give the gradient away
        the noise is added in the first step; the steps after it have none
    one_noise: DP gradient descent with one noise for all steps
        the noise cancels between two steps, and what is left is how the gradient changed, exactly
        one draw of N(0, (noise_multiplier C)^2) for every coordinate, added to the sum of each step
    seeded_by_the_data: DP gradient descent with noise seeded by the data
        a seed that is computed from the data gives one record more other noise: no output belongs to both
        the generator of the noise is seeded with the number of records and one of `seeds` numbers
    update_clipped: DP gradient descent that clips the step, learning rate included
        a step of length C is a gradient of C / learning_rate, and the noise is for one of C
        learning_rate times the gradient is clipped to C; the noise is that of the parent
    clipping_per_coordinate: DP gradient descent that clips every coordinate by itself
        a gradient of C in each of d coordinates has an l2 norm of sqrt(d) C
        each coordinate of a gradient is clipped to [-C, C]
    one_step_accounted: DP gradient descent, claimed as if it were one step
        every step tells as much as the first: mu grows with sqrt(T), and the claim does not
        as the sound one; the claim is 1 / noise_multiplier-GDP
    stopping: DP gradient descent that stops when its true error is small
        when it stops is computed from the data without noise: a record that no model fits keeps it going
        as the sound one, up to the first model whose mean absolute error on the data is below `tolerance`
    momentum: DP gradient descent with momentum
        the memory is made of noisy gradients, which are private together
        velocity = momentum velocity + noisy gradient; the step goes along the velocity
    regularised: DP gradient descent with the regulariser added after the noise
        the regulariser's gradient is computed from the model, not from the data
        penalty times the model is added to the noisy gradient""",
    noise_unscaled=Twin(
        code=_descent(
            lambda first, second, at: at.clip * losses.gaussian_mu(first, second, at),
            spread=lambda at: at.noise_multiplier,
        ),
        edit={"clip_norms(at)": "at.noise_multiplier"},
    ),
    noise_divided_twice=Twin(
        code=_descent(lambda first, second, at: at.size * losses.gaussian_mu(first, second, at), spread=_of_a_share),
        edit={"clip_norms(at)": "at.noise_multiplier * (at.clip / at.size)"},
    ),
    noise_in_the_first_step=Twin(
        code=_descent(losses.first_step_mu, noise="in the first step"),
        edit={"for _ in": "for step in", "size=len(model))": "size=len(model)) if step == 0 else 0.0"},
    ),
    one_noise=Twin(
        code=_descent(losses.one_noise_mu, noise="one draw"),
        edit={
            "    for": "    noise = rng.normal(scale=clip_norms(at), size=len(model))\n    for",
            "        noise =": None,
        },
        default_pair=([*_POINTS, [[30.0, 0.0], 0.1]], _POINTS),
    ),
    seeded_by_the_data=Twin(
        code=coded(many.seeded, losses.seeded_mu, programs.seeded_by_the_data),
        parameters=(Parameter("seeds", 8, "seeds", "the experiments it is repeated for"),),
    ),
    update_clipped=Twin(
        code=_descent(
            lambda first, second, at: (
                losses.gaussian_mu(first, second, replace(at, clip=at.clip / at.learning_rate)) / at.learning_rate
            ),
            total="updates clipped",
            spread=lambda at: at.learning_rate * at.noise_multiplier * at.clip,
            step="of the updates",
        ),
        edit={
            "clipped_sum(model, data, at)": (
                "sum(clipped(at.learning_rate * linear_gradient(model, record), at.clip) for record in data)"
            ),
            "clip_norms(at)": "at.learning_rate * at.noise_multiplier * at.clip",
            "at.learning_rate * (total": "(total",
        },
    ),
    clipping_per_coordinate=Twin(
        code=_descent(losses.per_coordinate_mu, total="coordinates clipped"),
        edit={
            "clipped_sum(model, data, at)": (
                "sum(np.clip(linear_gradient(model, record), -at.clip, at.clip) for record in data)"
            )
        },
        default_pair=([*_POINTS, [[1.0, 1.0], 100.0]], _POINTS),
    ),
    one_step_accounted=Twin(
        promise=lambda noise_multiplier, **_: GaussianDP(1.0 / noise_multiplier, Relation.ADD_OR_REMOVE_ONE)
    ),
    stopping=Twin(
        code=coded(many.stopping, losses.stopping_mu),
        edit={
            "-> Path": "-> dict[int, float]",
            "    return flattened(models)": """\
        errors = [abs(np.asarray(features, float) @ model - label) for features, label in data]
        if sum(errors) / len(data) < at.tolerance:
            break
    paths = enumerate(zip(*models, strict=True))
    return {j * at.steps + step: float(weight) for j, path in paths for step, weight in enumerate(path)}""",
        },
        default_pair=(_POINTS, [*_POINTS, [[0.0, 0.0], 100.0]]),
        parameters=(Parameter("tolerance", 1.0, "units of a label", "the error it stops below"),),
    ),
    momentum=Harmless(
        code=_descent(losses.momentum_mu, step="with momentum"),
        edit={
            "    for": "    velocity = np.zeros(len(model))\n    for",
            "model = model": "velocity = at.momentum * velocity + (total + noise) / at.size\n        model = model",
            "(total + noise) / at.size": "velocity",
        },
        parameters=(Parameter("momentum", 0.9, "share", "what is kept of the last velocity", validate.probability),),
    ),
    regularised=Harmless(
        code=_descent(losses.regularised_mu, step="with penalty"),
        edit={"(total + noise) / at.size": "((total + noise) / at.size + at.penalty * model)"},
        parameters=(replace(PENALTY, default=1.0),),
    ),
)
