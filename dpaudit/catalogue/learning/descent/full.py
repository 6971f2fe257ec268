"""DP gradient descent on a linear model: the last model or all of them, and what goes wrong."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.learning.descent import losses, programs
from dpaudit.catalogue.learning.descent import runs as many
from dpaudit.catalogue.learning.descent.sgd import LAST, LEARNING_RATE, NOISE, NOTES, PENALTY, STEPS
from dpaudit.catalogue.learning.descent.steps import Data, Descent, coded, mean, planned, unclipped_total
from dpaudit.catalogue.learning.output_noise import in_room
from dpaudit.catalogue.promises import EPSILON, at_least_one
from dpaudit.claims import GaussianDP, Relation

CLIP = Parameter("clip", 3.0, "units of a gradient", "the largest l2 norm of a record's gradient", validate.positive)
SIZE = Parameter("size", 4.0, "records", "what the sum is divided by; public, whatever the data", validate.positive)
PARAMETERS = (NOISE, CLIP, LEARNING_RATE, STEPS, SIZE)

OTHERS: Data = [[[0.0, 1.0], 0.5], [[0.0, 1.0], -0.5], [[0.0, 0.5], 0.25]]
CANARY = [[1.0, 0.0], 100.0]

TRANSCRIPT = "Bassily, Smith & Thakurta 2014, Private empirical risk minimization; Dong, Roth & Su 2022, corollary 3.3"


def _gaussian(
    noise_multiplier: float, steps: int, relation: Relation = Relation.ADD_OR_REMOVE_ONE, **_: Any
) -> GaussianDP:
    return GaussianDP(math.sqrt(steps) / noise_multiplier, relation)


def _of_one(at: Descent) -> float:
    """The spread of noise for a sum that moves by 1, whatever the clip norm."""
    return at.noise_multiplier


def _of_a_share(at: Descent) -> float:
    return at.noise_multiplier * (at.clip / at.size)


def _of_an_update(at: Descent) -> float:
    return at.learning_rate * at.noise_multiplier * at.clip


_descent = partial(coded, programs.descent, many.descent)


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
    default_pair=([*OTHERS, [[1.0, 0.0], 1.0]], [*OTHERS, [[1.0, 0.0], 0.0]]),
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
    code=_descent(partial(losses.gaussian_mu, own=True), out=LAST),
    parameters=PARAMETERS,
    promise=_gaussian,
    default_pair=([*OTHERS, CANARY], OTHERS),
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
    no_clipping=Twin(code=_descent(losses.unclipped_mu, total=(programs.unclipped_sum, unclipped_total), out=LAST)),
    clipping_after_averaging=Twin(
        code=_descent(
            losses.after_averaging_mu,
            total=(programs.clipped_average, many.average_clipped),
            spread=(_of_a_share, _of_a_share),
            step=(programs.of_the_average, many.of_the_average),
            out=LAST,
        ),
        default_pair=(
            [[[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0], [[1.0, 0.0], 1000.0]],
            [[[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0], [[1.0, 0.0], -100.0]],
        ),
    ),
    noise_at_the_end=Twin(
        code=coded(
            programs.noise_at_the_end,
            many.noise_at_the_end,
            lambda first, second, at: math.sqrt(at.steps) * losses.gaussian_mu(first, second, at, own=True),
        )
    ),
    replace_one=Twin(
        code=Code(loss=planned(losses.replaced_mu)),
        default_pair=([*OTHERS, CANARY], [*OTHERS, [[1.0, 0.0], -100.0]]),
        promise=partial(_gaussian, relation=Relation.REPLACE_ONE),
        neighbours="datasets of which one record is replaced",
    ),
    averaged=Harmless(code=_descent(losses.averaged_mu, out=(programs.mean, mean))),
)

dp_gradient_descent_iterates = replace(
    dp_gradient_descent,
    name="dp_gradient_descent_iterates",
    title="DP gradient descent, the models of all steps",
    formula=(
        "as dp_gradient_descent, and the models of all T steps are released: sqrt(T) / noise_multiplier-GDP just so"
    ),
    code=_descent(losses.gaussian_mu),
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
            lambda first, second, at: at.clip * losses.gaussian_mu(first, second, at), spread=(_of_one, _of_one)
        )
    ),
    noise_divided_twice=Twin(
        code=_descent(
            lambda first, second, at: at.size * losses.gaussian_mu(first, second, at), spread=(_of_a_share, _of_a_share)
        )
    ),
    noise_in_the_first_step=Twin(code=_descent(losses.first_step_mu, noise=(programs.first, many.first))),
    one_noise=Twin(
        code=_descent(losses.one_noise_mu, noise=(programs.one, many.one)),
        default_pair=([*OTHERS, [[30.0, 0.0], 0.1]], OTHERS),
    ),
    seeded_by_the_data=Twin(
        code=coded(programs.seeded_by_the_data, many.seeded, losses.seeded_mu),
        parameters=(Parameter("seeds", 8, "seeds", "the experiments it is repeated for", at_least_one),),
    ),
    update_clipped=Twin(
        code=_descent(
            lambda first, second, at: (
                losses.gaussian_mu(first, second, replace(at, clip=at.clip / at.learning_rate)) / at.learning_rate
            ),
            total=(programs.clipped_updates, many.updates_clipped),
            spread=(_of_an_update, _of_an_update),
            step=(programs.of_the_updates, many.of_the_updates),
        )
    ),
    clipping_per_coordinate=Twin(
        code=_descent(losses.per_coordinate_mu, total=(programs.clipped_coordinates, many.coordinates_clipped)),
        default_pair=([*OTHERS, [[1.0, 1.0], 100.0]], OTHERS),
    ),
    one_step_accounted=Twin(
        promise=lambda noise_multiplier, **_: GaussianDP(1.0 / noise_multiplier, Relation.ADD_OR_REMOVE_ONE)
    ),
    stopping=Twin(
        code=coded(programs.stopping, many.stopping, losses.stopping_mu),
        default_pair=(OTHERS, [*OTHERS, [[0.0, 0.0], 100.0]]),
        parameters=(Parameter("tolerance", 1.0, "units of a label", "the error it stops below", validate.positive),),
    ),
    momentum=Harmless(
        code=_descent(losses.momentum_mu, step=(programs.with_momentum, many.with_momentum)),
        parameters=(Parameter("momentum", 0.9, "share", "what is kept of the last velocity", validate.probability),),
    ),
    regularised=Harmless(
        code=_descent(losses.regularised_mu, step=(programs.with_penalty, many.with_penalty)),
        parameters=(replace(PENALTY, default=1.0),),
    ),
)
