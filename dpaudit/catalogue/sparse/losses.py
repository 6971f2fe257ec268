"""Exact losses of the sparse vector family, from its rules."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.entry import Code, Program
from dpaudit.catalogue.sparse.runs import Answers, Rule, bits, one_run
from dpaudit.losses.comparisons import epochs, halting, halting_ratios
from dpaudit.losses.discrete import epsilon_of, log_ratios
from dpaudit.losses.one_threshold import one_threshold_laws, one_threshold_loss
from dpaudit.losses.released import no_top_ratio

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
