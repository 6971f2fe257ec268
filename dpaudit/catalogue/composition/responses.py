"""k randomised responses to one bit as one transcript: the mechanism that composition theorems are exact for."""

import math
from functools import partial

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Bits
from dpaudit.catalogue.composition.counts import in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import at_least_one
from dpaudit.claims import ApproximateDP, PureDP, Relation, compose_optimal
from dpaudit.losses.composing import advanced, advanced_sharper, responses
from dpaudit.losses.discrete import epsilon_of

KOV = "Kairouz, Oh & Viswanath 2015, The composition theorem for differential privacy"
BOUNDS = ("basic", "advanced", "sharper", "optimal")


def _repeated_response(data: int, rng: Rng, epsilon: float, k: int, delta: float, bound: str) -> tuple[int, ...]:
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    return tuple(data if rng.random() < keep else 1 - data for _ in range(k))


def _repeated_response_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int, delta: float, bound: str) -> Bits:
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    told = np.empty((k, runs), np.int8)
    for row in told:
        row[:] = np.where(rng.random(runs) < keep, np.int8(data), np.int8(1 - data))
    return told.T


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
        Parameter("epsilon", 0.25, "nats", "the loss of one response", validate.positive),
        Parameter("k", 10, "responses", "how many there are", at_least_one),
        Parameter("delta", 0.2, "probability", "of the claim; not used by the basic bound", validate.open_probability),
        Parameter(
            "bound", "basic", "word", f"the claim: one of {', '.join(BOUNDS)}", partial(validate.one_of, known=BOUNDS)
        ),
    ),
    promise=_bounded,
    default_pair=(0, 1),
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
    keep = leak + (1.0 - leak) / (1.0 + math.exp(-epsilon / k))
    told = np.empty((k, runs), np.int8)
    for row in told:
        uniform = rng.random(runs)
        row[:] = np.where(uniform < keep, np.int8(data), np.int8(1 - data))
        row[uniform < leak] = 2 + data
    return told.T


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
        Parameter("epsilon", 2.0, "nats", "the claim on all responses together", validate.positive),
        Parameter("delta", 0.05, "probability", "the additive part of that claim", validate.open_probability),
        Parameter("k", 4, "responses", "how many there are", at_least_one),
    ),
    promise=lambda epsilon, delta, k: ApproximateDP(epsilon, delta, Relation.LOCAL),
    default_pair=(0, 1),
).with_twins(
    """delta_not_divided: k approximate responses, only the epsilon divided
        each response gives the bit away with probability delta: some response does with 1 - (1 - delta)^k, which \
            is more than delta, and no epsilon makes up for it
        k times: with probability delta a sure answer, otherwise a randomised response with epsilon / k""",
    delta_not_divided=Twin(code=Code(_leaky_responses, _leaky_runs, _leaky_loss).given(divided=False)),
)
