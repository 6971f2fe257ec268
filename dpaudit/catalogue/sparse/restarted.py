"""Sparse as the notes write it: AboveThreshold started again, threshold and all, after each top; also with a delta."""

import math
from functools import partial
from typing import Any

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin, edited
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import BASSI, BOOK, approximate
from dpaudit.catalogue.sparse.runs import BOTTOM, THRESHOLD, TOP, Answers, Rule, compared_values, in_room
from dpaudit.catalogue.sparse.values import bits_loss_at, by_rule, gap_sparse, tops_loss
from dpaudit.losses.released import released_value_ratio

RIGHT = Rule(lambda epsilon, c: (2.0 * c / epsilon, 4.0 * c / epsilon))
NO_THRESHOLD_NOISE = Rule(lambda epsilon, c: (0.0, 4.0 * c / epsilon))
NO_CUT_OFF = Rule(RIGHT.noises, halts=False)


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


def _value_ratio(p: Reals, q: Reals, *scales: float) -> float:
    return released_value_ratio(p, q, (p[-1], q[-1]), *scales)


sparse = in_room(
    name="sparse",
    title="Sparse: the first c answers above a threshold",
    source=Source(
        f"{BASSI}, 'Sparse vector mechanism (cont.)', with delta = 0",
        "Dwork & Roth 2014, algorithm 2; Lyu, Su & Li 2017, algorithm 2",
    ),
    formula=(
        "with sigma = 2 c / epsilon: the threshold gets a draw of Lap(sigma), anew after each top, "
        "each answer Lap(2 sigma); halt at the c-th top (as the notes' comment says; their line reads count > c)"
    ),
    code=by_rule(RIGHT, _sparse),
    default_pair=([1, 1, 1, -1, 1, 1, 1, -1], [2, 2, 2, -2, 2, 2, 2, -2]),
).with_twins(
    """no_threshold_noise: Sparse with an exact threshold
        nothing that the comparisons share is random, so every bottom costs epsilon / (4 c) of its own
        each answer gets a draw of Lap(4 c / epsilon), the threshold none; halt at the c-th top
    no_query_noise: Sparse with exact answers
        all answers meet one threshold: a larger one cannot be a bottom where a smaller one is the next top
        the threshold gets a draw of Lap(2 c / epsilon), anew after each top; the answers none
    value_released: Sparse that gives away the noisy answer it compared
        a low value betrays a low threshold, and then every bottom before it costs epsilon / (4 c) of its own
        as Sparse, but the output holds the tops only, each by its place: the noisy answer that was compared
    query_noise_not_scaled: Sparse whose noise on the answers forgets c
        each of the c tops costs epsilon / 2, and the thresholds epsilon / 2: (1 + c) / 2 times the claim
        as Sparse, but each answer gets Lap(4 / epsilon), whatever c is
    noise_not_scaled: Sparse with the noise of one AboveThreshold
        c runs of AboveThreshold, each with all of epsilon, compose to c epsilon
        as Sparse, but with sigma = 2 / epsilon, whatever c is
    no_cut_off: Sparse that never halts
        only c tops are paid for: each further one costs up to epsilon / c
        as Sparse, but every answer is compared: there is no halt
    threshold_kept: Sparse with one noisy threshold for all tops
        a top costs epsilon / (2 c) whether or not the threshold is redrawn, and one draw costs less
        as Sparse, but the threshold gets one draw of Lap(2 c / epsilon), kept after each top
    printed_halt: Sparse with the halting line as it is printed
        by count > c, c + 1 tops are answered, each with a c-th of epsilon: (c + 1) / c times the claim
        as Sparse, with the noise for c tops, but a run halts at the top after the c-th""",
    no_threshold_noise=Twin(
        code=by_rule(NO_THRESHOLD_NOISE),
        edit={"noisy_threshold =": None, "noisy_threshold": "threshold"},
        default_pair=([-1] * 12, [0] * 12),
    ),
    no_query_noise=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 * c / epsilon, 0.0))),
        edit={" + rng.laplace(scale=2.0 * sigma)": ""},
        default_pair=([0, 1, 0, 1], [1, 0, 1, 0]),
    ),
    value_released=Twin(
        code=Code(
            edited(gap_sparse.program, "_value_released", {" - noisy_threshold": ""}),
            partial(compared_values, rule=RIGHT),
            partial(tops_loss, rule=RIGHT, top=_value_ratio),
        ),
        default_pair=([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
    ),
    query_noise_not_scaled=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 * c / epsilon, 4.0 / epsilon))), edit={"2.0 * sigma": "4.0 / epsilon"}
    ),
    noise_not_scaled=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 / epsilon, 4.0 / epsilon))),
        edit={"2.0 * c": "2.0"},
    ),
    no_cut_off=Twin(
        code=by_rule(NO_CUT_OFF),
        edit={", count = [], 0": " = []", "count +=": None, "count >=": None, "break": None},
        default_pair=([1, 1, 1, -1] * 4, [2, 2, 2, -2] * 4),
    ),
    threshold_kept=Harmless(
        code=by_rule(Rule(RIGHT.noises, "once")),
        edit={"        noisy_threshold =": None},
        default_pair=([1, 1, 1, 1, 1, 1, -1, -1], [2, 2, 2, 2, 2, 2, -2, -2]),
    ),
    printed_halt=Twin(
        edit={"count >= c": "count > c"},
        at=lambda _, epsilon, c, **__: {"epsilon": epsilon * (c + 1) / c, "c": c + 1},
        default_pair=([1, 1, 1, 1, 1, -1] * 3, [2, 2, 2, 2, 2, -2] * 3),
    ),
)


TOPS = Parameter("c", 3, "answers", "the tops after which a run halts")
DELTA = Parameter("delta", 1e-6, "probability", "the claim", validate.open_probability)


def noise_level(epsilon: float, c: int, delta: float) -> float:
    """The sigma of the notes for delta > 0.

    >>> round(noise_level(1.0, 2, 0.01), 4)
    8.5839
    """
    return 2.0 * math.sqrt(2.0 * c * math.log(1.0 / delta)) / epsilon


def _noises(inverted: bool = False, **given: Any) -> tuple[float, float]:
    sigma = noise_level(**given)
    return (1.0 / sigma, 2.0 / sigma) if inverted else (sigma, 2.0 * sigma)


_by_rule = partial(by_rule, loss=bits_loss_at)

sparse_approximate = in_room(
    name="sparse_approximate",
    title="Sparse with the noise of advanced composition",
    source=Source(
        f"{BASSI}, 'Sparse vector mechanism (cont.)', with delta > 0", f"{BOOK}, algorithm 2, there with more noise"
    ),
    formula=(
        "with sigma = 2 sqrt(2 c ln(1 / delta)) / epsilon: the threshold gets a draw of Lap(sigma), anew after each "
        "top, each answer Lap(2 sigma); halt at the c-th top"
    ),
    code=_by_rule(Rule(_noises)),
    parameters=(Parameter("epsilon", 2.0, "nats", "the claim"), THRESHOLD, TOPS, DELTA),
    promise=approximate,
    default_pair=([0, 0, 0, 0, -1] * 3, [1, 1, 1, 1, -2] * 3),
).with_twins(
    """noise_inverted: Sparse with the noise of advanced composition upside down
        the fraction is turned over: noise that shrinks as c grows and as epsilon shrinks hides nothing
        as this Sparse, with sigma = epsilon / (2 sqrt(2 c ln(1 / delta)))
    no_query_noise: Sparse with the noise of advanced composition on the threshold alone
        a larger answer cannot be a bottom where a smaller one is the next top, and that is no rare event
        the threshold gets a draw of Lap(sigma), anew after each top; the answers none
    threshold_kept: Sparse with the noise of advanced composition and one noisy threshold
        the threshold is paid for once, and each top then costs 1 / sigma instead of 2 / sigma
        as this Sparse, but the threshold gets one draw of Lap(sigma), kept after each top""",
    noise_inverted=Twin(code=_by_rule(Rule(partial(_noises, inverted=True)))),
    no_query_noise=Twin(
        code=_by_rule(Rule(lambda epsilon, c, delta: (noise_level(epsilon, c, delta), 0.0))),
        default_pair=([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]),
    ),
    threshold_kept=Harmless(code=_by_rule(Rule(_noises, "once"))),
)
