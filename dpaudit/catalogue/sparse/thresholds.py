"""Sparse where each answer has a threshold of its own: answers less their thresholds meet one noisy 0."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dpaudit.base import validate
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, at_least_one
from dpaudit.catalogue.sparse.losses import bits_loss
from dpaudit.catalogue.sparse.restarted import RIGHT
from dpaudit.catalogue.sparse.runs import BASSI, BOTTOM, LYU, TOP, Answers, Rule, bits, in_room, one_run
from dpaudit.errors import InvalidSpec


def _reals(name: str, value: object) -> list[float]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidSpec(f"{name} must be a list of numbers, one for each answer, got {value!r}")
    return [validate.real(f"{name}[{place}]", each) for place, each in enumerate(value)]


def _sparse(data: Answers, rng: Rng, epsilon: float, thresholds: Sequence[float], c: int) -> tuple[int, ...]:
    sigma = 2.0 * c / epsilon
    noise = rng.laplace(scale=sigma)
    output, count = [], 0
    for answer, threshold in zip(data, thresholds, strict=True):
        if answer + rng.laplace(scale=2.0 * sigma) >= threshold + noise:
            output.append(TOP)
            count += 1
            noise = rng.laplace(scale=sigma)
        else:
            output.append(BOTTOM)
        if count >= c:
            break
    return tuple(output)


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
    code=_by_rule(RIGHT)._replace(program=_sparse),
    parameters=(
        EPSILON,
        Parameter("thresholds", [0, 10] * 8, "units of the answers", "what each answer is compared with", _reals),
        Parameter("c", 1, "answers", "the tops after which a run halts", at_least_one),
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
