"""Balls become two doubles around them: never one double too many inwards, at any size."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from dpaudit.base.installed import flint
from dpaudit.verify.enclosure import MOST, Enclosure, ball, of_ball, of_log


def test_a_double_is_its_own_enclosure() -> None:
    for value in (0.0, 1.0, -0.1, 5e-324, MOST, 2.0**1023, -(2.0**-1074)):
        assert of_ball(ball(value)) == Enclosure(value, value)


def test_numbers_between_doubles_lie_between_neighbouring_doubles() -> None:
    rng = random.Random(5)
    for _ in range(500):
        value = Fraction(rng.getrandbits(300) + 1, rng.getrandbits(300) + 1) * Fraction(2) ** rng.randint(-900, 900)
        value *= rng.choice((1, -1))
        with flint().ctx.workprec(700):
            found = of_ball(ball(value))
        assert Fraction(found.lower) <= value <= Fraction(found.upper)
        assert found.upper <= math.nextafter(math.nextafter(found.lower, math.inf), math.inf)


def test_what_no_double_can_hold_goes_outwards() -> None:
    for sign in (1, -1):
        huge, tiny = of_ball(sign * flint().arb(10**9).exp()), of_ball(sign * flint().arb(-(10**9)).exp())
        ends = [sorted(map(abs, (found.lower, found.upper))) for found in (huge, tiny)]
        assert ends == [[MOST, math.inf], [0.0, 5e-324]]
        assert huge.lower * sign > 0 or huge.upper * sign > 0
    assert of_ball(flint().arb(2) ** 1024) == Enclosure(MOST, math.inf)
    with flint().ctx.workprec(1100):
        assert of_ball(ball(Fraction(MOST) + 1)) == Enclosure(MOST, math.inf)
    for endless in ("inf", "nan"):
        assert of_ball(flint().arb(endless)) == Enclosure(-math.inf, math.inf)


def test_logarithms_of_rationals_against_the_mathematics_library() -> None:
    for ratio in (Fraction(2), Fraction(1, 3), Fraction(10**30, 7), Fraction(10**20 + 1, 10**20)):
        found = of_log(ratio)
        near = math.log(ratio.numerator) - math.log(ratio.denominator)
        assert found.lower - 1e-12 <= near <= found.upper + 1e-12
        assert found.upper - found.lower <= 1e-15 * max(1.0, abs(near))
    assert of_log(Fraction(10**20 + 1, 10**20)).lower > 0.0
