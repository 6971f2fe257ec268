"""The sparse vector technique.

Here: AboveThreshold, the place of the first answer above a noisy threshold, and Sparse where each answer has its own
threshold: answers less their thresholds meet one noisy 0.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin, edited
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import BASSI, EPSILON
from dpaudit.catalogue.sparse.lyu import sparse_lyu_1, sparse_lyu_7, sparse_monotone
from dpaudit.catalogue.sparse.restarted import RIGHT, sparse, sparse_approximate
from dpaudit.catalogue.sparse.runs import BOTTOM, LYU, THRESHOLD, TOP, Answers, Rule, bits, in_room, one_run
from dpaudit.catalogue.sparse.values import bits_loss, by_rule, gap_sparse, numeric_sparse, numerical_sparse
from dpaudit.errors import InvalidSpec
from dpaudit.losses.released import announced_threshold_loss

ONE_TOP = Rule(lambda epsilon, c: (2.0 / epsilon, 4.0 / epsilon))


def _above_threshold(data: Answers, rng: Rng, epsilon: float, threshold: float) -> tuple[int, ...]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    output = []
    for answer in data:
        if answer + rng.laplace(scale=4.0 / epsilon) > noisy_threshold:
            output.append(TOP)
            break
        output.append(BOTTOM)
    return tuple(output)


def _threshold_released(data: Answers, rng: Rng, epsilon: float, threshold: float) -> tuple[float, float]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    place = 0
    for answer in data:
        if answer + rng.laplace(scale=4.0 / epsilon) > noisy_threshold:
            break
        place += 1
    return noisy_threshold, float(place)


def _threshold_released_runs(data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float) -> Reals:
    noisy_threshold = threshold + laplace(rng, 2.0 / epsilon, runs)
    going, place = np.arange(runs), np.full(runs, float(len(data)))
    for j, answer in enumerate(data):
        is_top = answer + laplace(rng, 4.0 / epsilon, len(going)) > noisy_threshold[going]
        place[going[is_top]] = j
        going = going[~is_top]
    return np.column_stack([noisy_threshold, place])


def _threshold_released_loss(first: Answers, second: Answers, epsilon: float, **_: Any) -> float:
    p, q = np.asarray(first, float), np.asarray(second, float)
    return max(announced_threshold_loss(one, other, 4.0 / epsilon) for one, other in ((p, q), (q, p)))


above_threshold = in_room(
    name="above_threshold",
    title="AboveThreshold: the first answer above a threshold",
    source=Source(
        f"{BASSI}, 'Detour: AboveThreshold algorithm'",
        "Dwork, Naor, Reingold, Rothblum & Vadhan 2009; Dwork & Roth 2014, algorithm 1",
    ),
    formula="the threshold gets a draw of Lap(2 / epsilon), each answer Lap(4 / epsilon); halt at the first top",
    code=by_rule(ONE_TOP, _above_threshold),
    parameters=(EPSILON, THRESHOLD),
    default_pair=([1, 1, 1, 1, 1, 1, 1, -1], [2, 2, 2, 2, 2, 2, 2, -2]),
).with_twins(
    """no_threshold_noise: AboveThreshold with an exact threshold
        nothing that the comparisons share is random, so every bottom costs epsilon / 4 of its own
        each answer gets a draw of Lap(4 / epsilon), the threshold none; halt at the first top
    no_query_noise: AboveThreshold with exact answers
        all answers meet one threshold: a larger one cannot be a bottom where a smaller one is the top
        the threshold gets a draw of Lap(2 / epsilon), the answers none; halt at the first top
    half_noise: AboveThreshold with both noises of half the scale
        a threshold moved by 1 now costs epsilon, and a top moved by 2 costs epsilon: 2 epsilon in all
        the threshold gets a draw of Lap(1 / epsilon), each answer Lap(2 / epsilon); halt at the first top
    fresh_threshold: AboveThreshold with new threshold noise for each answer
        no noise is shared, so a move of all answers is not hidden: every bottom costs up to epsilon / 4
        as AboveThreshold, but the threshold gets a new draw of Lap(2 / epsilon) for each answer
    no_halt: AboveThreshold that goes on after the first top
        only one top is paid for: each further one costs epsilon / 2, up to n epsilon / 4 in all
        as AboveThreshold, but every answer is compared: there is no halt
    threshold_released: AboveThreshold that also gives away its noisy threshold
        once the noisy threshold is known it hides nothing, and every bottom costs epsilon / 4 of its own
        as AboveThreshold; the output is the noisy threshold and the number of bottoms""",
    no_threshold_noise=Twin(
        code=by_rule(Rule(lambda epsilon, c: (0.0, 4.0 / epsilon))),
        edit={"noisy_threshold =": None, "noisy_threshold": "threshold"},
        default_pair=([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
    ),
    no_query_noise=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 / epsilon, 0.0))),
        edit={" + rng.laplace(scale=4.0 / epsilon)": ""},
        default_pair=([0, 1], [1, 0]),
    ),
    half_noise=Twin(
        code=by_rule(Rule(lambda epsilon, c: (1.0 / epsilon, 2.0 / epsilon))),
        edit={"2.0 / epsilon": "1.0 / epsilon", "4.0 / epsilon": "2.0 / epsilon"},
    ),
    fresh_threshold=Twin(
        code=by_rule(Rule(ONE_TOP.noises, "each answer")),
        edit={
            "    noisy": "    output = []\n    for answer in data:\n        noisy",
            "    output = []\n    for answer in data:\n": "",
        },
        default_pair=([-2] * 12, [-1] * 12),
    ),
    no_halt=Twin(
        code=by_rule(Rule(ONE_TOP.noises, "once", halts=False)),
        edit={"            break\n        ": "        else:\n            "},
        default_pair=([1] * 4 + [-1] * 4, [2] * 4 + [-2] * 4),
    ),
    threshold_released=Twin(
        code=Code(_threshold_released, _threshold_released_runs, _threshold_released_loss),
        default_pair=([0] * 8, [1] * 8),
    ),
)


def _reals(name: str, value: object) -> list[float]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidSpec(f"{name} must be a list of numbers, one for each answer, got {value!r}")
    return [validate.real(f"{name}[{place}]", each) for place, each in enumerate(value)]


def _less(call: Callable[..., Any], datasets: int = 1) -> Callable[..., Any]:
    """What takes one threshold, on answers less their thresholds: `given` starts with this many datasets."""

    def made(*given: Any, thresholds: Sequence[float], **parameters: Any) -> Any:
        less = ([a - t for a, t in zip(data, thresholds, strict=True)] for data in given[:datasets])
        return call(*less, *given[datasets:], threshold=0.0, **parameters)

    return made


def _by_rule(rule: Rule) -> Code:
    one, many, loss = (partial(call, rule=rule) for call in (one_run, bits, bits_loss))
    return Code(_less(one), _less(many), _less(loss, 2))


sparse_thresholds = in_room(
    name="sparse_thresholds",
    title="Sparse with a threshold for each answer",
    source=Source(f"{BASSI}, 'Sparse vector mechanism'", f"{LYU}, algorithms 1 and 7 (T_1, T_2, ...)"),
    formula=(
        "with sigma = 2 c / epsilon: all thresholds get one draw of Lap(sigma), anew after each top, "
        "each answer Lap(2 sigma); halt at the c-th top; with c = 1 it is AboveThreshold"
    ),
    code=_by_rule(RIGHT)._replace(
        program=edited(
            sparse.program,
            "_sparse_thresholds",
            {
                "threshold: float": "thresholds: list[float]",
                "noisy_threshold = threshold + rng": "noise = rng",
                "answer in data": "answer, threshold in zip(data, thresholds, strict=True)",
                ">= noisy_threshold": ">= threshold + noise",
            },
        )
    ),
    parameters=(
        EPSILON,
        Parameter("thresholds", [0, 10] * 8, "units of the answers", "what each answer is compared with", _reals),
        Parameter("c", 1, "answers", "the tops after which a run halts"),
    ),
    default_pair=([1, 11] * 7 + [1, 9], [2, 12] * 7 + [2, 8]),
).with_twins(
    """noise_of_its_own: Sparse where each threshold has noise of its own
        no noise is shared, so a move of all answers is not hidden: every bottom costs up to epsilon / (4 c)
        as Sparse with a threshold for each answer, but each threshold gets a draw of its own
    from_the_data: Sparse whose thresholds come from the data: the answer before
        an answer less the one before it moves by 2, and the noise hides moves of 1: twice the claim
        as Sparse with a threshold for each answer, to which the exact answer before it is added""",
    noise_of_its_own=Twin(code=_by_rule(Rule(RIGHT.noises, "each answer")), default_pair=([-3, 7] * 8, [-2, 8] * 8)),
    from_the_data=Twin(
        on=lambda data, **_: [answer - before for answer, before in zip(data, [0, *data], strict=False)],
        default_pair=([1, 0] * 8, [2, -1] * 8),
    ),
)


ENTRIES = (
    *(above_threshold, sparse, sparse_approximate, sparse_lyu_1, sparse_lyu_7, sparse_monotone),
    *(sparse_thresholds, gap_sparse, numeric_sparse, numerical_sparse),
)
