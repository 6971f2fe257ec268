"""Transcripts: a median by bisection, in which each question depends on the answers before it, k randomised responses
to one bit, for which composition theorems are exact, and two runs of Sparse on the same answers.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Bits, Masked, Reals
from dpaudit.catalogue.composition.counts import in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import BASSI, HAGHTALAB
from dpaudit.catalogue.sparse.lyu import FOUR, ONE, THREE, sparse_lyu_1
from dpaudit.catalogue.sparse.runs import LYU, NEIGHBOURS, THRESHOLD, TOPS, Answers, bits, compared_values
from dpaudit.catalogue.sparse.values import bits_loss
from dpaudit.claims import ApproximateDP, PureDP, Relation, compose_optimal
from dpaudit.losses.comparisons import one_threshold_laws
from dpaudit.losses.composing import advanced, advanced_sharper, responses
from dpaudit.losses.distribution import epsilon_of, log_ratios
from dpaudit.losses.released import one_threshold_values_loss

Values = list[int]


def _lead(data: Values, middle: int) -> int:
    """How many values lie below the middle, less those that do not: one person moves it by 1."""
    return sum(1 if value < middle else -1 for value in data)


def _noisy_bisection(data: Values, rng: Rng, epsilon: float, steps: int) -> tuple[float, ...]:
    low, high, answers = 0, 2**steps, []
    for _ in range(steps):
        middle = (low + high) // 2
        lead = _lead(data, middle)
        answers.append(lead + rng.laplace(scale=steps / epsilon))
        low, high = (low, middle) if answers[-1] > 0.0 else (middle, high)
    return tuple(answers)


# --- samplers: an interval is a node of a binary tree, 1 at the root, its halves 2 n and 2 n + 1 ---------------


def _leads(data: Values, steps: int) -> Reals:
    """The lead at each node; nothing stands at 0."""
    widths = [2**depth for depth in range(steps, 0, -1)]
    middles = [middle for width in widths for middle in range(width // 2, 2**steps, width)]
    return np.array([0.0, *(_lead(data, middle) for middle in middles)])


def _walk(
    data: Values, runs: int, rng: Rng, epsilon: float, steps: int, by_truth: bool = False
) -> Iterator[tuple[Reals, Reals]]:
    """The true leads of each question, and the answers to it."""
    leads, node = _leads(data, steps), np.ones(runs, np.intp)
    for _ in range(steps):
        truth = leads[node]
        answers = laplace(rng, steps / epsilon, runs)
        answers += truth
        yield truth, answers
        node *= 2
        node += (truth if by_truth else answers) <= 0.0


def _bisection_runs(data: Values, runs: int, rng: Rng, **given: Any) -> Reals:
    return np.stack([answers for _, answers in _walk(data, runs, rng, **given)]).T


def _stop_by_truth_runs(data: Values, runs: int, rng: Rng, **given: Any) -> Masked:
    truths, answers = map(np.stack, zip(*_walk(data, runs, rng, **given), strict=True))
    over = np.cumsum(truths == 0.0, axis=0) > 0
    return np.ma.MaskedArray(answers.T, mask=np.vstack([np.zeros((1, runs), np.bool_), over[:-1]]).T)


# --- exact losses: the best transcript from each node on -------------------------------------------------------


def _bisection_loss(first: Values, second: Values, epsilon: float, steps: int, *, stops: bool = False) -> float:
    """The largest sum of |z - q| - |z - p| along a path; a turn says on which side of 0 each answer z lies."""

    def one_way(p: Reals, q: Reals) -> float:
        best = np.zeros(2 ** (steps + 1))
        for node in reversed(range(1, 2**steps)):
            last = 2 * node >= 2**steps  # after this question every transcript ends
            if stops and not last and (p[node] == 0.0) != (q[node] == 0.0):
                best[node] = math.inf  # the end of the transcript tells the two apart
                continue
            at_zero, far = abs(q[node]) - abs(p[node]), abs(p[node] - q[node])
            if stops and p[node] == 0.0:
                best[node] = far
                continue
            left = far if p[node] >= q[node] else at_zero
            right = far if p[node] <= q[node] else at_zero
            best[node] = max(left + best[2 * node], right + best[2 * node + 1])
        return float(best[1])

    before, after = _leads(first, steps), _leads(second, steps)
    return max(one_way(before, after), one_way(after, before)) * epsilon / steps


def _turn_by_truth_loss(first: Values, second: Values, epsilon: float, steps: int) -> float:
    """The questions are fixed by the data, so the answers are vectors with noise: the l1 distance of the true ones."""

    def asked(data: Values) -> Reals:
        leads, node, path = _leads(data, steps), 1, []
        for _ in range(steps):
            path.append(leads[node])
            node = 2 * node + (1 if leads[node] <= 0.0 else 0)
        return np.array(path)

    return float(np.abs(asked(first) - asked(second)).sum()) * epsilon / steps


noisy_bisection = in_room(
    name="noisy_bisection",
    title="A median by bisection with noisy answers",
    source=Source(
        f"{BASSI}, 'Composition of DP mechanisms (cont.)' (adaptive); {HAGHTALAB}, theorem 3.3",
        "Blum, Dwork, McSherry & Nissim 2005, Practical privacy: the SuLQ framework (adaptive noisy sums)",
    ),
    formula=(
        "`steps` times: the number of values below the middle of the interval less the number of the others, plus "
        "a draw of Lap(steps / epsilon); a positive answer keeps the lower half of the interval, another the upper"
    ),
    neighbours="lists of whole numbers in [0, 2^steps), one of them added or removed",
    code=Code(_noisy_bisection, _bisection_runs, _bisection_loss),
    parameters=(
        Parameter("epsilon", 1.0, "nats", "the claim on all answers together"),
        Parameter("steps", 3, "questions", "how many are asked"),
    ),
    promise=lambda epsilon, steps: PureDP(epsilon, Relation.ADD_OR_REMOVE_ONE),
    default_pair=([0, 0, 7, 7], [0, 0, 0, 7, 7]),
).with_twins(
    """turn_by_truth: Bisection that turns by the answer without noise
        the next question gives away an exact comparison: the answers that follow are to other questions
        as the bisection, but the true answer decides which half is kept; the noisy answers are published
    stop_by_truth: Bisection that stops where the true answer is 0
        the number of answers gives away an exact comparison: it depends on data that no noise has touched
        as the bisection, but it ends after the first question whose true answer is 0""",
    turn_by_truth=Twin(
        code=Code(sampler=partial(_bisection_runs, by_truth=True), loss=_turn_by_truth_loss),
        edit={"if answers[-1]": "if lead"},
        default_pair=([3, 4], [0, 3, 4]),
    ),
    stop_by_truth=Twin(
        code=Code(sampler=_stop_by_truth_runs, loss=partial(_bisection_loss, stops=True)),
        edit={
            "-> tuple[float, ...]": "-> dict[int, float]",
            "        low, high =": "        if lead == 0:\n            break\n        low, high =",
            "tuple(answers)": "dict(enumerate(answers))",
        },
    ),
)


KOV = "Kairouz, Oh & Viswanath 2015, The composition theorem for differential privacy"
BOUNDS = ("basic", "advanced", "sharper", "optimal")


def _repeated_response(data: int, rng: Rng, epsilon: float, k: int, delta: float, bound: str) -> tuple[int, ...]:
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    return tuple(data if rng.random() < keep else 1 - data for _ in range(k))


def _responses(data: int, runs: int, rng: Rng, k: int, keep: float, leak: float = 0.0) -> Bits:
    """k times the bit below `keep`, which below `leak` is given away as 2 or 3; else the other bit."""
    transcript = np.empty((k, runs), np.int8)
    for row in transcript:
        uniform = rng.random(runs)
        row[:] = np.where(uniform < keep, np.int8(data), np.int8(1 - data))
        row[uniform < leak] = 2 + data
    return transcript.T


def _repeated_response_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int, **_: Any) -> Bits:
    return _responses(data, runs, rng, k, 1.0 / (1.0 + math.exp(-epsilon)))


def _bounded(epsilon: float, k: int, delta: float, bound: str) -> PureDP | ApproximateDP:
    if bound == "basic":
        return PureDP(k * epsilon, Relation.LOCAL)
    if bound == "optimal":
        return ApproximateDP(compose_optimal(PureDP(epsilon), k).epsilon_at(delta), delta, Relation.LOCAL)
    formula = advanced if bound == "advanced" else advanced_sharper
    return ApproximateDP(formula(k, epsilon, delta), delta, Relation.LOCAL)


def _repeated_response_loss(first: int, second: int, epsilon: float, k: int, delta: float, bound: str) -> float:
    if first == second:
        return 0.0
    return k * epsilon if bound == "basic" else epsilon_of(*responses(k, epsilon), delta)


repeated_response = in_room(
    name="repeated_response",
    title="k randomised responses to one bit",
    source=Source("Bassi 2019, notes 001, 'Advanced composition'; Cheema & Huszár, notes 004, 'Composition'", KOV),
    formula=(
        "k times, each on its own: the bit with probability e^epsilon / (1 + e^epsilon), otherwise the other bit; "
        "claimed by the `bound`: k epsilon (basic), epsilon sqrt(2 k ln(1 / delta)) + k epsilon (e^epsilon - 1) "
        "(advanced), the same with k epsilon^2 / 2 (sharper), or the exact epsilon at delta (optimal)"
    ),
    neighbours="any two bits",
    code=Code(_repeated_response, _repeated_response_runs, _repeated_response_loss),
    parameters=(
        Parameter("epsilon", 0.25, "nats", "the loss of one response"),
        Parameter("k", 10, "responses", "how many there are"),
        Parameter("delta", 0.2, "probability", "of the claim; not used by the basic bound", validate.open_probability),
        Parameter(
            "bound", "basic", "word", f"the claim: one of {', '.join(BOUNDS)}", partial(validate.one_of, known=BOUNDS)
        ),
    ),
    promise=_bounded,
    default_pair=(0, 1),
    every_pair=lambda **_: [(0, 1)],
).with_twins(
    """delta_forgotten: k randomised responses, advanced composition claimed without its delta
        the epsilon of advanced composition holds but for a part delta of the transcripts; those in which all \
            responses agree lose k epsilon
        the same responses, claimed as epsilon' = epsilon sqrt(2 k ln(1 / delta)) + k epsilon^2 / 2 with no delta""",
    delta_forgotten=Twin(
        code=Code(loss=lambda first, second, epsilon, k, delta, bound: 0.0 if first == second else k * epsilon),
        promise=lambda epsilon, k, delta, bound: PureDP(advanced_sharper(k, epsilon, delta), Relation.LOCAL),
    ),
)


def _leaky_responses(
    data: int, rng: Rng, epsilon: float, delta: float, k: int, *, divided: bool = True
) -> tuple[int, ...]:
    keep = 1.0 / (1.0 + math.exp(-epsilon / k))
    transcript = []
    for _ in range(k):
        if rng.random() < (delta / k if divided else delta):
            transcript.append(2 + data)  # 2 and 3 are sure answers
        else:
            transcript.append(data if rng.random() < keep else 1 - data)
    return tuple(transcript)


def _leaky_runs(data: int, runs: int, rng: Rng, epsilon: float, delta: float, k: int, *, divided: bool = True) -> Bits:
    leak = delta / k if divided else delta
    return _responses(data, runs, rng, k, leak + (1.0 - leak) / (1.0 + math.exp(-epsilon / k)), leak)


def _leaky_loss(first: int, second: int, epsilon: float, delta: float, k: int, *, divided: bool = True) -> float:
    if first == second:
        return 0.0
    return epsilon_of(*responses(k, epsilon / k, delta / k if divided else delta), delta)


leaky_responses = in_room(
    name="leaky_responses",
    title="k approximate responses to one bit: the deltas add up too",
    source=Source("Bassi 2019, notes 001, 'Composition of DP mechanisms (cont.)'", f"{KOV}, the extremal mechanism"),
    formula=(
        "k times, each on its own: with probability delta / k a sure answer (2 or 3), otherwise a randomised response "
        "with epsilon / k (0 or 1)"
    ),
    neighbours="any two bits",
    code=Code(_leaky_responses, _leaky_runs, _leaky_loss),
    parameters=(
        Parameter("epsilon", 2.0, "nats", "the claim on all responses together"),
        Parameter("delta", 0.05, "probability", "the additive part of that claim", validate.open_probability),
        Parameter("k", 4, "responses", "how many there are"),
    ),
    promise=lambda epsilon, delta, k: ApproximateDP(epsilon, delta, Relation.LOCAL),
    default_pair=(0, 1),
    every_pair=lambda **_: [(0, 1)],
).with_twins(
    """delta_not_divided: k approximate responses, only the epsilon divided
        each response gives the bit away with probability delta: some response does with 1 - (1 - delta)^k, which \
            is more than delta, and no epsilon makes up for it
        k times: with probability delta a sure answer, otherwise a randomised response with epsilon / k""",
    delta_not_divided=Twin(code=Code(_leaky_responses, _leaky_runs, _leaky_loss).given(divided=False)),
)


EPSILON = Parameter("epsilon", 1.0, "nats", "the claim on one of the two runs")


def _sparse_twice(data: Answers, rng: Rng, **given: Any) -> dict[int, int]:
    outputs = [sparse_lyu_1.program(data, rng, **given) for _ in range(2)]
    return {run * len(data) + place: bit for run, output in enumerate(outputs) for place, bit in enumerate(output)}


def _lyu_3_and_4(data: Answers, rng: Rng, **given: Any) -> dict[int, float]:
    values, bits = (each.program(data, rng, **given) for each in (sparse_lyu_1.lyu_3, sparse_lyu_1.lyu_4))
    return {**values, **{len(data) + place: bit for place, bit in enumerate(bits)}}


def _sparse_twice_runs(data: Answers, runs: int, rng: Rng, epsilon: float, threshold: float, c: int) -> Masked:
    return _side_by_side(*(bits(data, runs, rng, threshold, c, rule=ONE, epsilon=epsilon) for _ in range(2)))


def _sparse_twice_loss(first: Answers, second: Answers, epsilon: float, threshold: float, c: int) -> float:
    return 2.0 * bits_loss(first, second, threshold, c, rule=ONE, epsilon=epsilon)


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
