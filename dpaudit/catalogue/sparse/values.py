"""Sparse with numbers: tops that give away how far above the threshold they are, or a value with fresh noise."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from dpaudit.base.arrays import Masked, Reals
from dpaudit.catalogue.entry import Code, Program, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import SHADOW, unbounded
from dpaudit.catalogue.sparse.runs import (
    Answers,
    Rule,
    Seen,
    bits,
    comparisons,
    in_room,
    one_run,
    released,
    up_to_the_halt,
)
from dpaudit.losses.comparisons import epochs, halting, halting_ratios, one_threshold_laws, one_threshold_loss
from dpaudit.losses.distribution import epsilon_of, log_ratios
from dpaudit.losses.released import exact_gap_ratio, gap_ratio, known_threshold_ratio, no_top_ratio

TopRatio = Callable[..., float]


def bits_loss(first: Answers, second: Answers, threshold: float, c: int = 1, *, rule: Rule, **given: Any) -> float:
    """The loss of tops and bottoms."""
    before, after = np.asarray(first, float), np.asarray(second, float)
    scales = (threshold, *rule.noises(c=c, **given))
    if rule.threshold == "once":
        return one_threshold_loss(before, after, c if rule.halts else None, *scales)
    most = c if rule.halts else len(first)
    if rule.threshold == "each answer":
        return epochs_loss(before, after, most, lambda p, q: _unshared_ratios(p, q, *scales))
    return epochs_loss(before, after, most, lambda p, q: halting_ratios(p, q, *scales))


def _unshared_ratios(p: Reals, q: Reals, *scales: float) -> Reals:
    """As `halting_ratios`, where every comparison has noise of its own: log ratios of bottoms before a top add up."""
    one, other = (np.array([halting(np.array([answer]), *scales) for answer in side]) for side in (p, q))
    ratios = log_ratios(one, other)  # (answer, top or bottom)
    before = np.concatenate([[0.0], np.cumsum(ratios[:, 1])])
    return np.append(before[:-1] + ratios[:, 0], before[-1])


def by_rule(rule: Rule, program: Program | None = None, loss: Callable[..., float] = bits_loss) -> Code:
    """Tops and bottoms by a rule; a program that is to be read for a proof is written out."""
    return Code(program or partial(one_run, rule=rule), partial(bits, rule=rule), partial(loss, rule=rule))


def tops_loss(
    first: Answers, second: Answers, threshold: float, c: int = 1, *, rule: Rule, top: TopRatio, **given: Any
) -> float:
    """The loss where tops give away a number.

    `top` is the log ratio of an epoch with its top at the last of its answers, the largest over that number.
    """
    before, after = np.asarray(first, float), np.asarray(second, float)
    scales = (threshold, *rule.noises(c=c, **given))

    @cache  # most epochs hold the same answers as another
    def ratio(p: tuple[float, ...], q: tuple[float, ...]) -> float:
        return top(np.array(p), np.array(q), *scales)

    def ratios(p: Reals, q: Reals) -> Reals:
        tops = (ratio(tuple(p[: place + 1]), tuple(q[: place + 1])) for place in range(len(p)))
        return np.array([*tops, no_top_ratio(p, q, *scales)])

    return epochs_loss(before, after, c, ratios)


def epochs_loss(before: Reals, after: Reals, most: int, ratios: Callable[[Reals, Reals], Reals]) -> float:
    """A fresh threshold after each top makes the epochs independent: the best sum of their log ratios, either way."""

    def one_way(p: Reals, q: Reals) -> float:
        return epochs(len(p), most, lambda start: ratios(p[start:], q[start:]))

    return max(one_way(before, after), one_way(after, before))


def bits_loss_at(
    first: Answers, second: Answers, threshold: float, c: int, delta: float, *, rule: Rule, **given: Any
) -> float:
    """The epsilon of tops and bottoms at a delta: all outputs are listed, at most 2^len(first) of them."""
    before, after = np.asarray(first, float), np.asarray(second, float)
    scales = (threshold, *rule.noises(c=c, delta=delta, **given))
    if rule.threshold == "once":
        outputs, p, q, _ = one_threshold_laws(before, after, c if rule.halts else None, *scales)
        return epsilon_of(p * outputs.size, q * outputs.size, delta)
    most = c if rule.halts else len(first)
    return epsilon_of(listed(before, most, *scales), listed(after, most, *scales), delta)


def listed(answers: Reals, most: int, threshold: float, threshold_scale: float, query_scale: float) -> Reals:
    """The probabilities of all outputs, with a fresh threshold after each top; in one order for all datasets.

    >>> listed(np.array([0.0, 0.0]), 1, 0.0, 0.0, 1.0).tolist()  # a top at once, at the second answer, none
    [0.5, 0.25, 0.25]
    """

    @cache
    def rest(start: int, left: int) -> Reals:
        if left == 0 or start == len(answers):
            return np.ones(1)
        epoch = halting(answers[start:], threshold, threshold_scale, query_scale)
        tops = [epoch[j] * rest(start + j + 1, left - 1) for j in range(len(epoch) - 1)]
        return np.concatenate([*tops, epoch[-1:]])

    return rest(0, most)


GAP = Rule(lambda epsilon, c: (2.0 * c / epsilon, 4.0 * c / epsilon))
NUMERIC = Rule(lambda epsilon, c: (3.0 / epsilon, 6.0 * c / epsilon), "once")
NOT_PAID = Rule(lambda epsilon, c: (2.0 / epsilon, 4.0 * c / epsilon), "once")


def _gap(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> dict[int, float]:
    sigma = 2.0 * c / epsilon
    noisy_threshold = threshold + rng.laplace(scale=sigma)
    output: dict[int, float] = {}
    for place, answer in enumerate(data):
        noisy_answer = answer + rng.laplace(scale=2.0 * sigma)
        if noisy_answer >= noisy_threshold:
            output[place] = noisy_answer - noisy_threshold
            noisy_threshold = threshold + rng.laplace(scale=sigma)
        if len(output) >= c:
            break
    return output


def _gap_of(rng: Rng, answer: float, seen: Seen, **_: Any) -> Reals:
    return seen.noisy - seen.level


def _value_beside_gap_runs(data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float, c: int) -> Masked:
    answers = len(data)
    values, hidden = np.zeros((2 * answers, runs)), np.ones((2 * answers, runs), np.bool_)
    for seen in comparisons(data, runs, rng, threshold, c, GAP, epsilon=epsilon):
        for row, value in ((seen.place, seen.noisy - seen.level), (answers + seen.place, seen.noisy)):
            values[row, seen.tops] = value
            hidden[row, seen.tops] = False
    return np.ma.MaskedArray(values.T, mask=hidden.T)


gap_sparse = in_room(
    name="gap_sparse",
    title="Sparse that also gives away the gaps: how far each top is above its noisy threshold",
    source=Source(
        None,
        "Wang, Ding, Wang, Kifer & Zhang 2019, Proving differential privacy with shadow execution; Ding, Wang, Zhang & "
        "Kifer 2019, Free gap information from the differentially private sparse vector and noisy max mechanisms "
        "(there with one noisy threshold; here, as in the notes' Sparse, with a new one after each top)",
    ),
    formula="as Sparse; the output holds the tops only, each by its place: the noisy answer minus the noisy threshold",
    code=Code(_gap, partial(released, rule=GAP, value=_gap_of), partial(tops_loss, rule=GAP, top=gap_ratio)),
    default_pair=([1, 1, -1, 1, 1, -1], [2, 2, -2, 2, 2, -2]),
).with_twins(
    """value_beside_gap: Sparse that gives away both the gap and the noisy answer
        their difference is the noisy threshold, which then hides nothing: each bottom costs epsilon / (4 c)
        as Sparse with gaps; the output holds the noisy answers of the tops too, after all gaps
    exact_gap: Sparse that gives away the exact answer minus the noisy threshold
        beside the answer the threshold has no secret left, so a bottom that moves the other way costs up to \
            epsilon / (2 c) of its own
        as Sparse; the output holds the tops only, each by its place: the answer minus the noisy threshold""",
    value_beside_gap=Twin(
        code=Code(sampler=_value_beside_gap_runs, loss=partial(tops_loss, rule=GAP, top=known_threshold_ratio)),
        edit={
            "    output:": "    values: dict[int, float] = {}\n    output:",
            "output[place] =": "values[len(data) + place] = noisy_answer\n            output[place] =",
            "return output": "return output | values",
        },
        default_pair=([0] * 12 + [1], [1] * 12 + [0]),
    ),
    exact_gap=Twin(
        code=Code(
            sampler=partial(released, rule=GAP, value=lambda rng, answer, seen, **_: answer - seen.level),
            loss=partial(tops_loss, rule=GAP, top=exact_gap_ratio),
        ),
        edit={"= noisy_answer - ": "= answer - "},
        default_pair=([0] * 5 + [1], [1] * 5 + [0]),
    ),
)


def _numeric(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> dict[int, float]:
    noisy_threshold = threshold + rng.laplace(scale=3.0 / epsilon)
    output: dict[int, float] = {}
    for place, answer in enumerate(data):
        if answer + rng.laplace(scale=6.0 * c / epsilon) >= noisy_threshold:
            output[place] = answer + rng.laplace(scale=3.0 * c / epsilon)
            if len(output) >= c:
                break
    return output


def _fresh_value(rng: Rng, answer: float, seen: Seen, epsilon: float, c: int, *, scale: float) -> Reals:
    return answer + laplace(rng, scale * c / epsilon, len(seen.tops))


def _numeric_loss(
    first: Answers, second: Answers, epsilon: float, threshold: float, c: int, *, rule: Rule, scale: float
) -> float:
    before, after = np.asarray(first, float), np.asarray(second, float)
    costs = np.abs(before - after) * epsilon / (scale * c)
    return one_threshold_loss(before, after, c, threshold, *rule.noises(epsilon, c), costs)


def _exact(rng: Rng, answer: float, seen: Seen, **_: Any) -> Reals:
    return np.full(len(seen.tops), float(answer))


numeric_sparse = in_room(
    name="numeric_sparse",
    title="Numeric Sparse: each top is answered, with fresh noise",
    source=Source(None, f"{SHADOW}; Dwork & Roth 2014, algorithm 3, divides epsilon in another way"),
    formula=(
        "the threshold gets one draw of Lap(3 / epsilon), each answer Lap(6 c / epsilon) for its comparison; a top is "
        "given away with a fresh draw of Lap(3 c / epsilon); halt at the c-th top"
    ),
    code=Code(
        _numeric,
        partial(released, rule=NUMERIC, value=partial(_fresh_value, scale=3.0)),
        partial(_numeric_loss, rule=NUMERIC, scale=3.0),
    ),
).with_twins(
    """value_not_paid: Sparse that spends all of epsilon on the tops, and as much again on their values
        finding the tops costs epsilon, and c values with Lap(c / epsilon) cost epsilon more
        the threshold gets one draw of Lap(2 / epsilon), each answer Lap(4 c / epsilon) for its comparison; a top \
            is given away with a fresh draw of Lap(c / epsilon); halt at the c-th top
    exact_value: Numeric Sparse without noise on the values
        that an answer is a top is hidden by noise, but the answer itself is given away as it is
        as numeric Sparse, but a top is given away as it is""",
    value_not_paid=Twin(
        code=Code(
            sampler=partial(released, rule=NOT_PAID, value=partial(_fresh_value, scale=1.0)),
            loss=partial(_numeric_loss, rule=NOT_PAID, scale=1.0),
        ),
        edit={"3.0 / epsilon": "2.0 / epsilon", "6.0 * c": "4.0 * c", "3.0 * c": "c"},
    ),
    exact_value=Twin(
        code=Code(sampler=partial(released, rule=NUMERIC, value=_exact), loss=unbounded),
        edit={"answer + rng.laplace(scale=3.0 * c / epsilon)": "float(answer)"},
        default_pair=([1, 1], [2, 0]),
    ),
)


def _numerical(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> tuple[float, ...]:
    noisy_threshold = threshold + rng.laplace(scale=3.0 / epsilon)
    output, count = [], 0
    for answer in data:
        if answer + rng.laplace(scale=6.0 * c / epsilon) >= noisy_threshold:
            output.append(answer + rng.laplace(scale=3.0 * c / epsilon))
            count += 1
            if count >= c:
                break
        else:
            output.append(0.0)
    return tuple(output)


def _numerical_runs(data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float, c: int) -> Masked:
    values = np.zeros((len(data), runs))

    def answered(seen: Seen) -> None:
        values[seen.place, seen.tops] = _fresh_value(rng, data[seen.place], seen, epsilon, c, scale=3.0)

    return up_to_the_halt(values, comparisons(data, runs, rng, threshold, c, NUMERIC, epsilon=epsilon), answered)


numerical_sparse = in_room(
    name="numerical_sparse",
    title="Numeric Sparse that says 0 for a bottom",
    source=Source(None, f"{SHADOW} (NumericalSVT)"),
    formula="as numeric Sparse; the output is a list, with 0 for each bottom, that ends at the c-th top",
    code=Code(_numerical, _numerical_runs, partial(_numeric_loss, rule=NUMERIC, scale=3.0)),
)
