"""The sparse vector technique: which answers lie above a threshold, at a price for the tops and none for the bottoms.

An output has one coordinate for each answer, `TOP` or `BOTTOM`, and nothing after the halt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit import validate
from dpaudit.catalogue.entry import Entry, Parameter, Source, Twin
from dpaudit.catalogue.exact.comparisons import epochs, halting_ratios, releasing_ratios
from dpaudit.catalogue.noise import laplace
from dpaudit.claims import PureDP

Rng = np.random.Generator
Answers = list[float]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Masked = np.ma.MaskedArray[Any, np.dtype[Any]]

TOP, BOTTOM = 1, 0

EPSILON = Parameter("epsilon", 1.0, "nats", "the claim", validate.positive)
THRESHOLD = Parameter("threshold", 0.0, "units of the answers", "what the answers are compared with", validate.real)
TOPS = Parameter("c", 2, "answers", "the tops after which a run halts", partial(validate.whole, least=1))


def _pure(epsilon: float, **_: Any) -> PureDP:
    return PureDP(epsilon)


# --- the whole family: `noises` are the scales for the threshold and for the answers, in units of c / epsilon --

Noises = tuple[float, float]


def _runs(
    data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float, c: int = 1, *, noises: Noises
) -> Masked:
    """Tops and bottoms, masked after the halt; the run is the first axis."""
    tops = np.full((len(data), runs), BOTTOM, np.int8)
    halted = np.full(runs, len(data), np.int16)
    for place, above, ended, _ in _comparisons(data, runs, rng, threshold, *_scales(noises, c, epsilon), c):
        tops[place, above] = TOP
        halted[ended] = place
    hidden = np.arange(len(data), dtype=np.int16)[:, None] > halted
    return np.ma.MaskedArray(tops.T, mask=hidden.T)


def _runs_with_values(
    data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float, c: int = 1, *, noises: Noises
) -> Masked:
    """The noisy answers that were tops; a bottom is masked, as is what follows the halt."""
    values = np.zeros((len(data), runs))
    hidden = np.ones((len(data), runs), np.bool_)
    for place, above, _, noisy in _comparisons(data, runs, rng, threshold, *_scales(noises, c, epsilon), c):
        values[place, above] = noisy
        hidden[place, above] = False
    return np.ma.MaskedArray(values.T, mask=hidden.T)


def _loss(
    first: Answers,
    second: Answers,
    epsilon: float,
    threshold: float,
    c: int = 1,
    *,
    noises: Noises,
    ratios: Callable[..., Floats] = halting_ratios,
) -> float:
    """A fresh threshold after each top makes the epochs independent: the best sum of their log ratios, either way."""
    scales = (threshold, *_scales(noises, c, epsilon))

    def one_way(p: Floats, q: Floats) -> float:
        return epochs(len(p), c, lambda start: ratios(p[start:], q[start:], *scales))

    before, after = np.asarray(first, float), np.asarray(second, float)
    return max(one_way(before, after), one_way(after, before))


def _scales(noises: Noises, c: int, epsilon: float) -> Noises:
    return noises[0] * c / epsilon, noises[1] * c / epsilon


def _comparisons(
    data: Answers, runs: int, rng: Rng, threshold: float, threshold_scale: float, query_scale: float, c: int
) -> Iterator[tuple[int, Indices, Indices, Floats]]:
    """Answer by answer: its place, the runs that see a top, those of them that halt there, the noisy answers on top.

    Runs that have halted are left out, so their noise is never drawn.
    """
    going, left = np.arange(runs), np.full(runs, c, np.int16)
    level = laplace(rng, threshold_scale, runs)
    level += threshold
    for place, answer in enumerate(data):
        noisy = laplace(rng, query_scale, len(going))
        noisy += answer
        is_top = noisy > level
        above = ended = np.flatnonzero(is_top)
        on = np.flatnonzero(~is_top)
        if c > 1:
            level[above] = threshold + laplace(rng, threshold_scale, len(above))
            left[above] -= 1
            ended, on = np.flatnonzero(left == 0), np.flatnonzero(left)
            left = left[on]
        yield place, going[above], going[ended], noisy[above]
        going, level = going[on], level[on]


# --- AboveThreshold -------------------------------------------------------------------------------------------


def _above_threshold(data: Answers, rng: Rng, epsilon: float, threshold: float) -> tuple[int, ...]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    output = []
    for answer in data:
        if answer + rng.laplace(scale=4.0 / epsilon) > noisy_threshold:
            output.append(TOP)
            break
        output.append(BOTTOM)
    return tuple(output)


def _above_threshold_no_threshold_noise(data: Answers, rng: Rng, epsilon: float, threshold: float) -> tuple[int, ...]:
    output = []
    for answer in data:
        if answer + rng.laplace(scale=4.0 / epsilon) > threshold:
            output.append(TOP)
            break
        output.append(BOTTOM)
    return tuple(output)


def _above_threshold_no_query_noise(data: Answers, rng: Rng, epsilon: float, threshold: float) -> tuple[int, ...]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    output = []
    for answer in data:
        if answer > noisy_threshold:
            output.append(TOP)
            break
        output.append(BOTTOM)
    return tuple(output)


def _above_threshold_half_noise(data: Answers, rng: Rng, epsilon: float, threshold: float) -> tuple[int, ...]:
    noisy_threshold = threshold + rng.laplace(scale=1.0 / epsilon)
    output = []
    for answer in data:
        if answer + rng.laplace(scale=2.0 / epsilon) > noisy_threshold:
            output.append(TOP)
            break
        output.append(BOTTOM)
    return tuple(output)


above_threshold = Entry(
    module="dpaudit.catalogue.sparse",
    name="above_threshold",
    title="AboveThreshold: the first answer above a threshold",
    source=Source(
        "Bassi 2019, notes 001, 'Detour: AboveThreshold algorithm'",
        "Dwork, Naor, Reingold, Rothblum & Vadhan 2009; Dwork & Roth 2014, algorithm 1",
    ),
    formula="the threshold gets a draw of Lap(2 / epsilon), each answer Lap(4 / epsilon); halt at the first top",
    neighbours="vectors of answers that each move by at most 1, in any direction",
    program=_above_threshold,
    sampler=partial(_runs, noises=(2.0, 4.0)),
    parameters=(EPSILON, THRESHOLD),
    promise=_pure,
    loss=partial(_loss, noises=(2.0, 4.0)),
    default_pair=([1, 1, 1, 1, 1, 1, 1, -1], [2, 2, 2, 2, 2, 2, 2, -2]),
).with_twins(
    Twin(
        name="no_threshold_noise",
        title="AboveThreshold with an exact threshold",
        reason="nothing that the comparisons share is random, so every bottom costs epsilon / 4 of its own",
        formula="each answer gets a draw of Lap(4 / epsilon), the threshold none; halt at the first top",
        program=_above_threshold_no_threshold_noise,
        sampler=partial(_runs, noises=(0.0, 4.0)),
        loss=partial(_loss, noises=(0.0, 4.0)),
        default_pair=([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
    ),
    Twin(
        name="no_query_noise",
        title="AboveThreshold with exact answers",
        reason="all answers meet one threshold: a larger one cannot be a bottom where a smaller one is the top",
        formula="the threshold gets a draw of Lap(2 / epsilon), the answers none; halt at the first top",
        program=_above_threshold_no_query_noise,
        sampler=partial(_runs, noises=(2.0, 0.0)),
        loss=partial(_loss, noises=(2.0, 0.0)),
        default_pair=([0, 1], [1, 0]),
    ),
    Twin(
        name="half_noise",
        title="AboveThreshold with both noises of half the scale",
        reason="a threshold moved by 1 now costs epsilon, and a top moved by 2 costs epsilon: 2 epsilon in all",
        formula="the threshold gets a draw of Lap(1 / epsilon), each answer Lap(2 / epsilon); halt at the first top",
        program=_above_threshold_half_noise,
        sampler=partial(_runs, noises=(1.0, 2.0)),
        loss=partial(_loss, noises=(1.0, 2.0)),
    ),
)


# --- Sparse: AboveThreshold started again after each top ------------------------------------------------------


def _sparse(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> tuple[int, ...]:
    sigma = 2.0 * c / epsilon
    noisy_threshold = threshold + rng.laplace(scale=sigma)
    output, count = [], 0
    for answer in data:
        if answer + rng.laplace(scale=2.0 * sigma) >= noisy_threshold:
            output.append(TOP)
            count += 1
            noisy_threshold = threshold + rng.laplace(scale=sigma)
        else:
            output.append(BOTTOM)
        if count >= c:
            break
    return tuple(output)


def _sparse_no_threshold_noise(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> tuple[int, ...]:
    sigma = 2.0 * c / epsilon
    output, count = [], 0
    for answer in data:
        if answer + rng.laplace(scale=2.0 * sigma) >= threshold:
            output.append(TOP)
            count += 1
        else:
            output.append(BOTTOM)
        if count >= c:
            break
    return tuple(output)


def _sparse_no_query_noise(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> tuple[int, ...]:
    sigma = 2.0 * c / epsilon
    noisy_threshold = threshold + rng.laplace(scale=sigma)
    output, count = [], 0
    for answer in data:
        if answer >= noisy_threshold:
            output.append(TOP)
            count += 1
            noisy_threshold = threshold + rng.laplace(scale=sigma)
        else:
            output.append(BOTTOM)
        if count >= c:
            break
    return tuple(output)


def _sparse_value_released(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> dict[int, float]:
    sigma = 2.0 * c / epsilon
    noisy_threshold = threshold + rng.laplace(scale=sigma)
    output: dict[int, float] = {}
    for place, answer in enumerate(data):
        noisy_answer = answer + rng.laplace(scale=2.0 * sigma)
        if noisy_answer >= noisy_threshold:
            output[place] = noisy_answer
            noisy_threshold = threshold + rng.laplace(scale=sigma)
        if len(output) >= c:
            break
    return output


sparse = Entry(
    module="dpaudit.catalogue.sparse",
    name="sparse",
    title="Sparse: the first c answers above a threshold",
    source=Source("Bassi 2019, notes 001, 'Sparse vector mechanism (cont.)'", "Dwork & Roth 2014, algorithm 2"),
    formula=(
        "with sigma = 2 c / epsilon: the threshold gets a draw of Lap(sigma), anew after each top, "
        "each answer Lap(2 sigma); halt at the c-th top"
    ),
    neighbours="vectors of answers that each move by at most 1, in any direction",
    program=_sparse,
    sampler=partial(_runs, noises=(2.0, 4.0)),
    parameters=(EPSILON, THRESHOLD, TOPS),
    promise=_pure,
    loss=partial(_loss, noises=(2.0, 4.0)),
    default_pair=([1, 1, 1, -1, 1, 1, 1, -1], [2, 2, 2, -2, 2, 2, 2, -2]),
).with_twins(
    Twin(
        name="no_threshold_noise",
        title="Sparse with an exact threshold",
        reason="nothing that the comparisons share is random, so every bottom costs epsilon / (4 c) of its own",
        formula="each answer gets a draw of Lap(4 c / epsilon), the threshold none; halt at the c-th top",
        program=_sparse_no_threshold_noise,
        sampler=partial(_runs, noises=(0.0, 4.0)),
        loss=partial(_loss, noises=(0.0, 4.0)),
        default_pair=([-1] * 12, [0] * 12),
    ),
    Twin(
        name="no_query_noise",
        title="Sparse with exact answers",
        reason="all answers meet one threshold: a larger one cannot be a bottom where a smaller one is the next top",
        formula="the threshold gets a draw of Lap(2 c / epsilon), anew after each top; the answers none",
        program=_sparse_no_query_noise,
        sampler=partial(_runs, noises=(2.0, 0.0)),
        loss=partial(_loss, noises=(2.0, 0.0)),
        default_pair=([0, 1, 0, 1], [1, 0, 1, 0]),
    ),
    Twin(
        name="value_released",
        title="Sparse that gives away the noisy answer it compared",
        reason="a low value betrays a low threshold, and then every bottom before it costs epsilon / (4 c) of its own",
        formula="as Sparse, but the output holds the tops only, each by its place: the noisy answer that was compared",
        program=_sparse_value_released,
        sampler=partial(_runs_with_values, noises=(2.0, 4.0)),
        loss=partial(_loss, noises=(2.0, 4.0), ratios=releasing_ratios),
        default_pair=([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
    ),
)

ENTRIES = (above_threshold, sparse)
