"""The number of rng.random(): compared with numbers it has exact probabilities, and nothing else is let through."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.verify.replay import canonical, replay
from dpaudit.verify.replay.source import GRID
from tests.cases import for_each

pytestmark = pytest.mark.usefixtures("unwatched")


def law_of(draw: Callable[[Any], Any]) -> dict[Any, Fraction]:
    return dict(replay(lambda data, rng: draw(rng), [0, 1], "all").laws[0])


def formed(law: dict[Any, Fraction]) -> dict[Any, Fraction]:
    return {canonical(output): p for output, p in law.items()}


def by_counting(draw: Callable[[float], Any], cuts: list[float]) -> dict[Any, Fraction]:
    """The law over all 2^53 numbers: constant between the numbers next to the cuts."""
    near = {math.floor(Fraction(cut) * GRID) + step for cut in cuts for step in (-1, 0, 1, 2)}
    ends = sorted({0, GRID, *(k for k in near if 0 < k < GRID)})
    law: Counter[Any] = Counter()
    for low, high in itertools.pairwise(ends):
        law[draw(low / GRID)] += high - low
    return {output: Fraction(count, GRID) for output, count in law.items()}


@for_each("seed", range(25))
def test_nested_comparisons_have_the_law_of_all_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cuts = [*map(float, rng.random(3)), 0.5, 2.0**-53, 3 * 2.0**-54, 1.0 - 2.0**-53][: 3 + seed % 5]
    orders = [int(order) for order in rng.integers(6, size=len(cuts))]

    def told(u: Any) -> tuple[bool, ...]:
        ways = (u.__lt__, u.__le__, u.__gt__, u.__ge__, u.__eq__, u.__ne__)
        return tuple(bool(ways[order](cut)) for order, cut in zip(orders, cuts, strict=True))

    assert law_of(lambda source: told(source.random())) == formed(by_counting(told, cuts))


@for_each(
    "number",
    [0.3, Fraction(1, 3), np.float64(0.3), 0, 1, -1, 2, True, np.int64(1), math.inf, -math.inf, math.nan, 5e-324],
)
def test_all_orders_agree_with_those_of_floats(number: Any) -> None:
    def told(u: Any) -> tuple[bool, ...]:
        return (
            *(bool(each) for each in (u < number, u <= number, u > number, u >= number, u == number, u != number)),
            *(() if isinstance(number, Fraction) else map(bool, (number < u, number <= u, number > u, number >= u))),
            *(() if isinstance(number, Fraction) else map(bool, (number == u, number != u))),
        )

    cuts = [float(number)] if 0 <= number <= 1 else []
    assert law_of(lambda source: told(source.random())) == formed(by_counting(told, cuts))


def test_a_draw_keeps_what_it_was_told() -> None:
    def told(source: Any) -> tuple[bool, ...]:
        u = source.random()
        v = copy.deepcopy(u)
        return u < 0.5, v < 0.5, u >= 0.25, v >= 0.25

    assert law_of(told) == formed(
        {
            (True, True, False, False): Fraction(1, 4),
            (True, True, True, True): Fraction(1, 4),
            (False, False, True, True): Fraction(1, 2),
        }
    )


def test_truth_is_being_no_zero() -> None:
    assert law_of(lambda source: bool(source.random())) == formed(
        {False: Fraction(1, GRID), True: 1 - Fraction(1, GRID)}
    )


OTHERWISE: dict[str, Callable[[Any], Any]] = {
    "added": lambda u: u + 1,
    "subtracted": lambda u: 0.5 - u,
    "multiplied": lambda u: int(u * 6),
    "divided": lambda u: 1 / u,
    "to a power": lambda u: u**2,
    "negated": lambda u: -u,
    "taken as a float": float,
    "taken as a whole number": int,
    "a logarithm": math.log,
    "numpy's logarithm": np.log,
    "an array of floats": lambda u: np.array([u], float),
    "printed": str,
    "printed with format": lambda u: f"{u:.3f}",
    "represented": repr,
    "hashed": lambda u: {u},
    "rounded": round,
    "floored": math.floor,
    "stored": json.dumps,
    "a Decimal": Decimal,
    "hexadecimal": lambda u: u.hex(),
    "returned": lambda u: u,
    "returned in a list": lambda u: [1, u],
    "returned in an array": lambda u: np.array([u]),
    "compared with float32": lambda u: u < np.float32(0.5),
    "compared with a text": lambda u: u == "a",
    "compared with an array of float32": lambda u: np.float32([0.5]) > u,
    "summed": lambda u: sum([u]),
}


@for_each("name", OTHERWISE)
def test_any_other_use_is_refused(name: str) -> None:
    told = r"rng\.random\(\) can be replayed|cannot do what the mechanism asks|did not do the same"
    with pytest.raises((InvalidSpec, UnsoundAudit), match=told):
        law_of(lambda source: OTHERWISE[name](source.random()))


def test_two_draws_are_not_compared_with_each_other() -> None:
    with pytest.raises(InvalidSpec, match="compared with another draw"):
        law_of(lambda source: source.random() < source.random())


def test_a_draw_equals_itself() -> None:
    def told(source: Any) -> tuple[bool, ...]:
        u = source.random()
        v = copy.copy(u)
        return u < v, u <= v, u > v, u >= v, u == v, u != v

    assert law_of(told) == formed({(False, True, False, True, True, False): Fraction(1)})


def test_a_program_that_asks_for_its_type_is_told_that_of_a_number() -> None:
    asks = (lambda u: isinstance(u, float), lambda u: type(u) is float, lambda u: u.__class__ is float)
    assert all(law_of(lambda source, ask=ask: int(ask(source.random()))) == {1: 1} for ask in asks)
    with pytest.raises(InvalidSpec, match="as_integer_ratio"):
        law_of(lambda source: Fraction(source.random()))


@for_each(
    "compare",
    [
        lambda rng: rng.random() < np.exp(1.0) / (1.0 + np.exp(1.0)),
        lambda rng: np.float64(0.3) >= rng.random(),
        lambda rng: rng.random() == np.int64(1),
        lambda rng: rng.random() > 0.3,
        lambda rng: rng.random(2)[0] < 0.3,
        lambda rng: np.less(rng.random(), 0.3),
        lambda rng: rng.random() <= np.array(0.3),
        lambda rng: rng.random() < np.array([0.3, 0.6]),
        lambda rng: [each < 0.3 for each in rng.random(2)],
    ],
)
def test_comparisons_give_what_those_of_a_double_give(compare: Callable[[Any], Any]) -> None:
    true = {canonical(compare(np.random.default_rng(seed))) for seed in range(99)}
    assert true == law_of(compare).keys()


def test_arrays_of_draws_compare_entry_by_entry() -> None:
    law = law_of(lambda source: int((source.random((2, 2)) < 0.5).sum()))
    assert law == {k: Fraction(math.comb(4, k), 16) for k in range(5)}
    assert law_of(lambda source: tuple((np.array([0.25, 0.5]) > source.random()).tolist())) == formed(
        {(True, True): Fraction(1, 4), (False, True): Fraction(1, 4), (False, False): Fraction(1, 2)}
    )
