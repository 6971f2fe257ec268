"""One bit or one number of one person, told as a single randomised bit."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Bits
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.local.values import in_room
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, unbounded
from dpaudit.claims import PureDP, Relation
from dpaudit.losses.discrete import largest_log_ratio

# --- randomised response ------------------------------------------------------------------------------------------


def _randomised_response(data: int, rng: Rng, keep: float) -> int:
    if rng.random() < keep:
        return data
    return 1 - data


def _randomised_response_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    return np.where(rng.random(runs) < keep, np.int8(data), np.int8(1 - data))


def _randomised_response_loss(first: int, second: int, keep: float) -> float:
    return 0.0 if first == second else abs(math.log(keep / (1.0 - keep)))


def _applied_twice(data: int, rng: Rng, keep: float) -> int:
    return _randomised_response(_randomised_response(data, rng, keep), rng, keep)


def _applied_twice_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    lies = (rng.random(runs) >= keep) ^ (rng.random(runs) >= keep)
    return np.where(lies, np.int8(1 - data), np.int8(data))


def _applied_twice_loss(first: int, second: int, keep: float) -> float:
    return _randomised_response_loss(first, second, keep**2 + (1.0 - keep) ** 2)


def _asked_twice(data: int, rng: Rng, keep: float) -> tuple[int, ...]:
    return (_randomised_response(data, rng, keep), _randomised_response(data, rng, keep))


def _asked_twice_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    return np.stack([_randomised_response_runs(data, runs, rng, keep) for _ in range(2)], axis=1)


def _asked_twice_loss(first: int, second: int, keep: float) -> float:
    return 2.0 * _randomised_response_loss(first, second, keep)


def _fair_coin(data: int, rng: Rng, keep: float) -> int:
    if rng.random() < keep:
        return data
    return int(rng.integers(2))


def _one_sided(data: int, rng: Rng, keep: float) -> int:
    if data == 1 and rng.random() >= keep:
        return 0
    return data


def _one_sided_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    return ((rng.random(runs) < keep) & (data == 1)).astype(np.int8)


randomised_response = in_room(
    name="randomised_response",
    title="Randomised response on one bit",
    source=Source(None, "Warner 1965, Randomized response: a survey technique for eliminating evasive answer bias"),
    formula="the bit with probability `keep`, otherwise the other bit",
    neighbours="any two bits",
    code=Code(_randomised_response, _randomised_response_runs, _randomised_response_loss),
    parameters=(Parameter("keep", 0.75, "probability", "that the truth is told", validate.open_probability),),
    promise=lambda keep: PureDP(abs(math.log(keep / (1.0 - keep))), Relation.LOCAL),
    default_pair=(0, 1),
).with_twins(
    flipped=Harmless(
        title="Randomised response with the reported bit flipped",
        reason="0 and 1 change places in the report, which anyone can undo; only the estimate goes wrong",
        formula="the other bit with probability `keep`, otherwise the bit",
        on=lambda data, keep: 1 - data,
    ),
    applied_twice=Harmless(
        title="Randomised response to the answer of randomised response",
        reason="randomising a report once more is post-processing, and the loss shrinks",
        formula="the report is randomised again, by the same coin: true with probability keep^2 + (1 - keep)^2",
        code=Code(_applied_twice, _applied_twice_runs, _applied_twice_loss),
    ),
    asked_twice=Twin(
        title="Randomised response asked twice, with fresh coins",
        reason="two independent reports about the same bit cost epsilon each: 2 epsilon",
        formula="two reports of randomised response on the same bit",
        code=Code(_asked_twice, _asked_twice_runs, _asked_twice_loss),
    ),
    fair_coin=Twin(
        title="Randomised response that answers by a fair coin instead of lying",
        reason="the coin tells the truth half the time: kept with probability (1 + keep) / 2, claimed for `keep`",
        formula="the bit with probability `keep`, otherwise a fair coin",
        code=Code(_fair_coin),
        at=lambda data, keep: {"keep": (1.0 + keep) / 2.0},
    ),
    one_sided=Twin(
        title="Randomised response that lies for the value 1 only",
        reason="whoever has 0 never reports 1, so a report of 1 is the truth for certain",
        formula="0 if the bit is 0; if it is 1, the bit with probability `keep`, otherwise 0",
        code=Code(_one_sided, _one_sided_runs, unbounded),
    ),
)


# --- a number in [-1, 1], told as one bit -------------------------------------------------------------------------


def _slope(epsilon: float) -> float:
    return math.tanh(epsilon / 2.0)  # (e^epsilon - 1) / (e^epsilon + 1)


def _chance(data: float, epsilon: float) -> float:
    return (1.0 + _slope(epsilon) * min(max(data, -1.0), 1.0)) / 2.0


def _told(chance: float, runs: int, rng: Rng) -> Bits:
    return (rng.random(runs) < chance).view(np.int8)


def _ratio(first: float, second: float) -> float:
    """The loss of a bit that is 1 with these probabilities; 0 below 0, 1 above 1."""
    return largest_log_ratio(*(np.clip([chance, 1.0 - chance], 0.0, 1.0) for chance in (first, second)))


def _bit(chance: Callable[[float, float], float]) -> Code:
    """A bit that is 1 with a probability made from the number and epsilon."""

    def program(data: float, rng: Rng, epsilon: float) -> int:
        return int(rng.random() < chance(data, epsilon))

    return Code(
        program,
        lambda data, runs, rng, epsilon: _told(chance(data, epsilon), runs, rng),
        lambda first, second, epsilon: _ratio(chance(first, epsilon), chance(second, epsilon)),
    )


one_bit_mean = in_room(
    name="one_bit_mean",
    title="A number in [-1, 1] as one randomised bit",
    source=Source(None, "Duchi, Jordan & Wainwright 2013, Local privacy and statistical minimax rates"),
    formula="1 with probability (1 + t x) / 2, t = (e^epsilon - 1) / (e^epsilon + 1), x the number clipped to [-1, 1]",
    neighbours="any two numbers",
    code=_bit(_chance),
    parameters=(EPSILON,),
    default_pair=(0.8, -1.0),
).with_twins(
    full_slope=Twin(
        title="A number as one bit, 1 with probability (1 + x) / 2",
        reason="at x = -1 and x = 1 the bit is not random at all: rounding at random is not enough",
        formula="1 with probability (1 + x) / 2, x the number clipped to [-1, 1]",
        code=_bit(lambda data, epsilon: _chance(data, math.inf)),
    ),
    not_clipped=Twin(
        title="A number as one bit, without clipping it first",
        reason="beyond (e^epsilon + 1) / (e^epsilon - 1) the probability passes 0 or 1, and the bit is certain",
        formula="1 with probability (1 + t x) / 2, or 0 or 1 where that lies outside [0, 1]; x as it is",
        code=_bit(lambda data, epsilon: (1.0 + _slope(epsilon) * data) / 2.0),
        default_pair=(3.0, 0.0),
    ),
)
