"""Local mechanisms: each person randomises their own value before anyone sees it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpaudit import validate
from dpaudit.catalogue.entry import Entry, Parameter, Source
from dpaudit.claims import PureDP, Relation

Rng = np.random.Generator


def _randomised_response(data: int, rng: Rng, keep: float) -> int:
    if rng.random() < keep:
        return data
    return 1 - data


def _randomised_response_runs(data: int, runs: int, rng: Rng, keep: float) -> npt.NDArray[np.int8]:
    return np.where(rng.random(runs) < keep, np.int8(data), np.int8(1 - data))


def _keeping(keep: float) -> PureDP:
    return PureDP(abs(math.log(keep / (1.0 - keep))), Relation.LOCAL)


def _randomised_response_loss(first: int, second: int, keep: float) -> float:
    return 0.0 if first == second else abs(math.log(keep / (1.0 - keep)))


randomised_response = Entry(
    module="dpaudit.catalogue.local",
    name="randomised_response",
    title="Randomised response on one bit",
    source=Source(None, "Warner 1965, Randomized response: a survey technique for eliminating evasive answer bias"),
    formula="the bit with probability `keep`, otherwise the other bit",
    neighbours="any two bits",
    program=_randomised_response,
    sampler=_randomised_response_runs,
    parameters=(Parameter("keep", 0.75, "probability", "that the truth is told", validate.open_probability),),
    promise=_keeping,
    loss=_randomised_response_loss,
    default_pair=(0, 1),
)

ENTRIES = (randomised_response,)
