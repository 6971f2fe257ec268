"""Two runs of Sparse on the same answers, as one transcript."""

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Masked
from dpaudit.catalogue.composition.counts import in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.sparse.losses import bits_loss
from dpaudit.catalogue.sparse.lyu import FOUR, ONE, THREE
from dpaudit.catalogue.sparse.runs import BOTTOM, LYU, NEIGHBOURS, THRESHOLD, TOP, TOPS, Answers, bits, compared_values
from dpaudit.claims import PureDP
from dpaudit.losses.discrete import log_ratios
from dpaudit.losses.one_threshold import one_threshold_laws
from dpaudit.losses.released import one_threshold_values_loss

EPSILON = Parameter("epsilon", 1.0, "nats", "the claim on one of the two runs", validate.positive)


def _sparse_twice(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> dict[int, int]:
    output: dict[int, int] = {}
    for start in (0, len(data)):
        noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
        count = 0
        for place, answer in enumerate(data):
            if answer + rng.laplace(scale=4.0 * c / epsilon) >= noisy_threshold:
                output[start + place] = TOP
                count += 1
                if count >= c:
                    break
            else:
                output[start + place] = BOTTOM
    return output


def _sparse_twice_runs(data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float, c: int) -> Masked:
    return _side_by_side(*(bits(data, runs, rng, threshold, c, rule=ONE, epsilon=epsilon) for _ in range(2)))


def _sparse_twice_loss(first: Answers, second: Answers, epsilon: float, threshold: float, c: int) -> float:
    return 2.0 * bits_loss(first, second, threshold, c, rule=ONE, epsilon=epsilon)


def _lyu_3_and_4(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> dict[int, float]:
    output: dict[int, float] = {}
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    count = 0
    for place, answer in enumerate(data):
        noisy_answer = answer + rng.laplace(scale=2.0 * c / epsilon)
        if noisy_answer >= noisy_threshold:
            output[place] = noisy_answer
            count += 1
            if count >= c:
                break
    noisy_threshold = threshold + rng.laplace(scale=4.0 / epsilon)
    count = 0
    for place, answer in enumerate(data):
        if answer + rng.laplace(scale=4.0 / (3.0 * epsilon)) >= noisy_threshold:
            output[len(data) + place] = TOP
            count += 1
            if count >= c:
                break
        else:
            output[len(data) + place] = BOTTOM
    return output


def _lyu_3_and_4_runs(data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float, c: int) -> Masked:
    return _side_by_side(
        compared_values(data, runs, rng, threshold, c, rule=THREE, epsilon=epsilon),
        bits(data, runs, rng, threshold, c, rule=FOUR, epsilon=epsilon),
    )


def _lyu_3_and_4_loss(first: Answers, second: Answers, epsilon: float, threshold: float, c: int) -> float:
    """The runs are independent: in either direction the largest log ratios of both add up."""
    p, q = np.asarray(first, float), np.asarray(second, float)
    _, before, after, _ = one_threshold_laws(p, q, c, threshold, *FOUR.noises(epsilon, c))
    scales = (threshold, *THREE.noises(epsilon, c))
    one_way = one_threshold_values_loss(p, q, c, *scales) + float(np.max(log_ratios(before, after)))
    other_way = one_threshold_values_loss(q, p, c, *scales) + float(np.max(log_ratios(after, before)))
    return max(one_way, other_way)


def _side_by_side(one: Masked, other: Masked) -> Masked:
    """The places of both outputs; as numbers where one of them gives numbers."""
    values = np.concatenate([one.data.T, other.data.T])
    return np.ma.MaskedArray(values.T, mask=np.concatenate([one.mask.T, other.mask.T]).T)


sparse_twice = in_room(
    name="sparse_twice",
    title="Two runs of Sparse on the same answers",
    source=Source(None, f"{LYU}, algorithm 1, twice"),
    formula=(
        "Sparse with one noisy threshold, at epsilon, and once more with noise of its own; the output holds both, "
        "each answer of the first run by its place i, of the second by n + i; the claim is 2 epsilon"
    ),
    neighbours=NEIGHBOURS,
    code=Code(_sparse_twice, _sparse_twice_runs, _sparse_twice_loss),
    parameters=(EPSILON, THRESHOLD, TOPS),
    promise=lambda epsilon, **_: PureDP(2.0 * epsilon),
    default_pair=([1, 1, 1, 1, 1, 1, -1, -1], [2, 2, 2, 2, 2, 2, -2, -2]),
).with_twins(
    """lyu_3_and_4: Two wrong variants of Sparse on the same answers: algorithms 3 and 4 of Lyu, Su & Li
        each of the two breaks epsilon by itself, and their losses add up
        algorithm 3, whose tops give away the noisy answers compared, then algorithm 4, whose noise does not grow \
            with c; the output holds the tops of the first by their places i, and the second by n + i""",
    lyu_3_and_4=Twin(
        code=Code(_lyu_3_and_4, _lyu_3_and_4_runs, _lyu_3_and_4_loss),
        default_pair=([0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 0, 0]),
    ),
)
