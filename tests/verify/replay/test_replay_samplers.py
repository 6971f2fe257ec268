"""Loops without a last round: laws that are summed are those of the code, and what is not sure to be right is not summed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.replay import FiniteLosses, replay
from dpaudit.verify.replay.tails import Tail
from tests.cases import for_each
from tests.verify.replay import sampled

pytestmark = pytest.mark.usefixtures("unwatched")

COUNTS = (3, 4, 6)
RATE = Fraction(math.ceil(Fraction(sampled.E) * 2**53), 2**53)  # of random() < exp(-1)


def near(a: int, b: int) -> bool:
    return abs(a - b) == 1


def probability(law: Mapping[Hashable, Fraction], output: int) -> Fraction:
    """Of one output, in a tail too."""
    found = law.get(output, Fraction(0))
    for tail, p in law.items():
        if isinstance(tail, Tail) and (output - tail.start) % tail.step == 0 and (output - tail.start) // tail.step >= 0:
            found += p * (1 - tail.rate) * tail.rate ** ((output - tail.start) // tail.step)
    return found


@for_each("mechanism", sampled.LAPLACE)
def test_two_geometric_numbers_make_a_discrete_laplace_in_whatever_way_they_are_written(mechanism: Any) -> None:
    found = replay(mechanism, COUNTS, near)
    for count, law in zip(COUNTS, found.laws, strict=True):
        for output in range(-9, 20):
            assert probability(law, output) == (1 - RATE) / (1 + RATE) * RATE ** abs(output - count)
    assert found.worst.p / found.worst.q == 1 / RATE
    assert found.epsilon.upper <= 1.0
    assert not any(found.rests)
    assert "loops without a last round" in found.scope
