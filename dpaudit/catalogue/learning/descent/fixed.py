"""DP-SGD with a fresh batch of exactly B records in each step, as the notes draw it, and what goes wrong.

With n and B public a record is replaced, not added: a batch is full, so who joins it takes the place of another one.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit import validate
from dpaudit.catalogue.entry import Harmless, Parameter, Promise, Source, Twin
from dpaudit.catalogue.learning.descent import losses, programs
from dpaudit.catalogue.learning.descent import runs as many
from dpaudit.catalogue.learning.descent.sgd import LAST, NOTES, PENALTY, coded_sgd
from dpaudit.catalogue.learning.descent.sgd import PARAMETERS as POISSON
from dpaudit.catalogue.learning.descent.steps import Data, Descent
from dpaudit.catalogue.learning.output_noise import in_room
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

_NOISE, _CLIP, _LEARNING_RATE, _STEPS, _, _BATCH, _DELTA = POISSON
RECORDS = Parameter("records", 6, "records", "n, which is public", partial(validate.whole, least=1))
_DRAWN = (RECORDS, replace(_BATCH, default=3))
OTHERS: Data = [[[1.0, 0.0], 0.0]] * 5


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


def _one_batch(first: Data, second: Data, at: Descent) -> float:
    return mixture_epsilon(at.delta, *_mixtures(first, second, at, at.steps))


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
    default_pair=([*OTHERS, [[1.0, 0.0], 1.0]], [*OTHERS, [[1.0, 0.0], 0.0]]),
).with_twins(
    last=Harmless(
        title="DP-SGD with batches of exactly B records, the last model",
        reason="the last model is one of those that are private together",
        formula="as DP-SGD with batches of exactly B records; only the last model is released",
        code=coded_sgd(_last_model, batches=_EXACTLY, out=LAST),
    ),
    usual_sigma=Twin(
        title="DP-SGD with batches of exactly B records, claimed as Poisson batches",
        reason="a Poisson batch changes by a record's pull, up to C; in a full batch another pull goes for it: 2 C",
        formula="as DP-SGD with batches of exactly B records; epsilon is that of Poisson batches of the rate B / n",
        promise=_accounted(subsampled_gaussian_epsilon),
    ),
    noise_over_n=Twin(
        title="DP-SGD with the noise of an average over all n records",
        reason="a record's share in the average of a batch is 1 / B, not 1 / n: the noise is n / B times too small",
        formula="as DP-SGD with batches of exactly B records, with sigma = noise_multiplier C / n",
        at=lambda data, noise_multiplier, records, batch_size, **_: {
            "noise_multiplier": noise_multiplier * batch_size / records
        },
    ),
    one_batch=Twin(
        title="DP-SGD that draws one batch of exactly B records for all its steps",
        reason="a record joins all steps or none, so its pulls add up; the accountant counts on a new draw each step",
        formula="the batch of B records is drawn once, before the first step",
        code=coded_sgd(_one_batch, batches=(programs.once(programs.of_exactly), many.once(many.of_exactly))),
    ),
)
