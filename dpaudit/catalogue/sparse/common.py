"""The words that all entries of the sparse vector technique share."""

from __future__ import annotations

from functools import partial
from typing import Any

from dpaudit import validate
from dpaudit.catalogue.entry import Parameter
from dpaudit.claims import PureDP

TOP, BOTTOM = 1, 0

ROOM = "dpaudit.catalogue.sparse"
BASSI = "Bassi 2019, notes 001"
BOOK = "Dwork & Roth 2014, The algorithmic foundations of differential privacy"
LYU = "Lyu, Su & Li 2017, Understanding the sparse vector technique for differential privacy"
NEIGHBOURS = "vectors of answers that each move by at most 1, in any direction"

EPSILON = Parameter("epsilon", 1.0, "nats", "the claim", validate.positive)
THRESHOLD = Parameter("threshold", 0.0, "units of the answers", "what the answers are compared with", validate.real)
TOPS = Parameter("c", 2, "answers", "the tops after which a run halts", partial(validate.whole, least=1))


def pure(epsilon: float, **_: Any) -> PureDP:
    """The claim of nearly all of them."""
    return PureDP(epsilon)
