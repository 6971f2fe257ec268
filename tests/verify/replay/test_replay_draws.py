"""The finite draws have the laws and types of numpy's own, to the last bit; a number of random() is only compared."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.verify.replay import canonical, replay
from dpaudit.verify.replay.source import GRID, by_levels
from tests.cases import for_each

pytestmark = pytest.mark.usefixtures("unwatched")

RUNS, CHANCE = (
    4000,
    1e-11,
)  # of a frequency further from its probability than Hoeffding's bound; below 200 are looked at
ALLOWED = math.sqrt(math.log(2 / CHANCE) / (2 * RUNS))

Law = dict[Any, Fraction]


def law_of(draw: Callable[[Any], Any]) -> Law:
    return dict(replay(lambda data, rng: draw(rng), [0, 1], "all").laws[0])


def formed(law: Law) -> Law:
    return {canonical(output): p for output, p in law.items()}


def plain(output: Any) -> Any:
    """Without numpy's types."""
    found = output.tolist() if isinstance(output, np.generic | np.ndarray) else output
    return tuple(map(tuple, found) if output.ndim == 2 else found) if isinstance(found, list) else found


def named(value: Any) -> str:
    return f"{type(value).__name__} of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def uniform_over(values: Iterable[Any]) -> Law:
    counts = Counter(values)
    return {value: Fraction(count, counts.total()) for value, count in counts.items()}


def below(probability: float) -> Law:
    share = Fraction(math.ceil(probability * GRID), GRID)
    return {True: share, False: 1 - share}


def shuffled(values: Any, rng: Any) -> Any:
    rng.shuffle(values)
    return tuple(int(value) for value in values)


def remembered(u: Any) -> tuple[int, ...]:
    v = copy.deepcopy(u)
    return int(u < 0.5), int(v < 0.5), int(u >= 0.25), int(v >= 0.25)


def beside_itself(u: Any) -> tuple[int, ...]:
    v = copy.copy(u)
    return int(u < v), int(u <= v), int(u > v), int(u >= v), int(u == v), int(u != v)


PAIRS = list(itertools.product((0, 1), repeat=2))
ORDERS = list(itertools.permutations(range(3)))
EXACT: dict[str, tuple[Callable[[Any], Any], Law]] = {
    "bytes": (lambda rng: rng.bytes(1)[0] % 2, uniform_over([0, 1])),
    "integers": (lambda rng: rng.integers(3), uniform_over(range(3))),
    "integers from below": (lambda rng: rng.integers(-2, 2), uniform_over(range(-2, 2))),
    "integers with the end": (lambda rng: rng.integers(1, 3, endpoint=True), uniform_over([1, 2, 3])),
    "integers far from 0": (lambda rng: rng.integers(300, 304), uniform_over(range(300, 304))),
    "small integers": (lambda rng: rng.integers(2, dtype=np.int8), uniform_over([0, 1])),
    "Python's integers": (lambda rng: rng.integers(2, dtype=int), uniform_over([0, 1])),
    "truth": (lambda rng: rng.integers(2, dtype=bool), uniform_over([False, True])),
    "two integers": (lambda rng: rng.integers(2, size=2), uniform_over(PAIRS)),
    "a table of integers": (
        lambda rng: rng.integers(2, size=(2, 2)),
        uniform_over(itertools.product(PAIRS, repeat=2)),
    ),
    "choice of a number": (lambda rng: rng.choice(4), uniform_over(range(4))),
    "choice of a list": (lambda rng: rng.choice([-1.0, 1.0]), uniform_over([-1.0, 1.0])),
    "choice of whole numbers": (lambda rng: rng.choice([0, 1]), uniform_over([0, 1])),
    "choice of texts": (lambda rng: rng.choice(["no", "yes"]), uniform_over(["no", "yes"])),
    "choice of two": (lambda rng: rng.choice([0.0, 1.0], 2), uniform_over(itertools.product((0.0, 1.0), repeat=2))),
    "choice without replacement": (
        lambda rng: rng.choice(3, 2, replace=False),
        uniform_over(itertools.permutations(range(3), 2)),
    ),
    "choice with halves": (lambda rng: rng.choice(3, p=[0.5, 0.25, 0.25]), uniform_over([0, 0, 1, 2])),
    "permutation": (lambda rng: rng.permutation(3), uniform_over(ORDERS)),
    "permutation of texts": (lambda rng: rng.permutation(["a", "b"]), uniform_over(itertools.permutations("ab"))),
    "permuted": (lambda rng: rng.permuted([1, 2, 2]), uniform_over(itertools.permutations([1, 2, 2]))),
    "a list shuffled": (lambda rng: shuffled([0, 1, 2], rng), uniform_over(ORDERS)),
    "an array shuffled": (lambda rng: shuffled(np.arange(3), rng), uniform_over(ORDERS)),
    "binomial": (lambda rng: rng.binomial(2, 0.25), {0: Fraction(9, 16), 1: Fraction(6, 16), 2: Fraction(1, 16)}),
    "one trial": (lambda rng: rng.binomial(1, np.float64(0.1)), {1: Fraction(0.1), 0: 1 - Fraction(0.1)}),
    "two trials": (lambda rng: rng.binomial(1, 0.5, 2), uniform_over(PAIRS)),
    "random below": (lambda rng: rng.random() < 0.1, below(0.1)),
    "random above": (lambda rng: np.float64(0.1) >= rng.random(), below(0.1)),
    "random in an array": (
        lambda rng: rng.random(2) < np.array([0.5, 0.25]),
        {(a, b): Fraction(3 - 2 * b, 8) for a, b in itertools.product((True, False), repeat=2)},
    ),
    "random in a search": (
        lambda rng: np.searchsorted([0.25, 0.75], rng.random(), side="right"),
        {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)},
    ),
    "random bisected": (
        lambda rng: bisect_left([0.25, 0.75], rng.random()),
        {0: Fraction(GRID // 4 + 1, GRID), 1: Fraction(1, 2), 2: Fraction(GRID // 4 - 1, GRID)},
    ),
    "uniform": (lambda rng: rng.uniform() >= 0.5, uniform_over([True, False])),
    "random as truth": (lambda rng: bool(rng.random()), {False: Fraction(1, GRID), True: 1 - Fraction(1, GRID)}),
    "random below each": (
        lambda rng: np.array([0.25, 0.5]) > rng.random(),
        {(True, True): Fraction(1, 4), (False, True): Fraction(1, 4), (False, False): Fraction(1, 2)},
    ),
    "a table of random": (
        lambda rng: int((rng.random((2, 2)) < 0.5).sum()),
        {k: Fraction(math.comb(4, k), 16) for k in range(5)},
    ),
    "random that is remembered": (
        lambda rng: remembered(rng.random()),
        {each: Fraction(2 - each[0], 4) for each in ((1, 1, 0, 0), (1, 1, 1, 1), (0, 0, 1, 1))},
    ),
    "random beside itself": (lambda rng: beside_itself(rng.random()), {(0, 1, 0, 1, 1, 0): Fraction(1)}),
}


@for_each("name", EXACT)
def test_a_draw_has_exactly_its_law_and_the_type_that_numpy_gives(name: str) -> None:
    draw, law = EXACT[name]
    assert law_of(lambda rng: plain(draw(rng))) == formed(law)
    assert set(law_of(lambda rng: named(draw(rng)))) == {named(draw(np.random.default_rng(0)))}


def mixture(rng: Any) -> Any:
    """Many draws of numpy's Generator in one output."""
    values = list(range(3))
    rng.shuffle(values)
    u = rng.random()
    side = "low" if u < 0.3 else ("high" if u >= np.float64(0.8) else "middle")
    return side, values[0], int(rng.choice(2, p=[0.3, 0.7])), int(rng.binomial(2, 0.4)), bool(rng.random() < 0.6)


def test_the_generator_itself_has_that_law() -> None:
    law, generator = law_of(mixture), np.random.default_rng(11)
    counts = Counter(canonical(mixture(generator)) for _ in range(RUNS))
    assert set(counts) <= set(law)
    assert len(law) < 200
    assert all(abs(counts[output] / RUNS - p) < ALLOWED for output, p in law.items())


def test_probabilities_that_add_up_to_less_by_rounding_are_stretched_as_numpy_does() -> None:
    levels = np.cumsum([0.1] * 10)
    assert levels[-1] < 1.0
    cuts = [0, *(math.ceil(Fraction(level) * GRID) for level in (levels / levels[-1]).tolist())]
    law = law_of(lambda rng: rng.choice(10, p=[0.1] * 10))
    assert law == {place: Fraction(cuts[place + 1] - cuts[place], GRID) for place in range(10)}


@for_each("seed", range(10))
def test_the_cuts_of_a_choice_are_where_numpy_s_search_changes(seed: int) -> None:
    chances = np.random.default_rng(seed).dirichlet(np.full(5, 0.5))
    levels = np.cumsum(chances)
    levels /= levels[-1]
    weights = by_levels(tuple(levels.tolist()))
    scale = GRID // sum(weights)
    cuts = list(itertools.accumulate(weight * scale for weight in weights))
    assert cuts[-1] == GRID
    for place, cut in enumerate(cuts[:-1]):
        below, above = ((cut - 1) / GRID, cut / GRID)
        assert levels.searchsorted(below, side="right") <= place < levels.searchsorted(above, side="right")


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "laplace": (lambda rng: rng.laplace(0, 1), "rng.laplace draws from a continuous law.*dpaudit.verify.witnesses"),
    "normal": (lambda rng: rng.normal(), "rng.normal draws from a continuous law"),
    "geometric": (lambda rng: rng.geometric(0.5), "rng.geometric has no last outcome.*cut the law off"),
    "multinomial": (lambda rng: rng.multinomial(3, [0.5, 0.5]), "rng.multinomial is no draw that replay knows"),
    "bit_generator": (lambda rng: rng.bit_generator.state, "rng.bit_generator is no draw"),
    "uniform": (lambda rng: rng.uniform(0, 5), "between 0 and 1 only"),
    "integers": (lambda rng: rng.integers(0), "nothing to draw"),
    "integers of arrays": (lambda rng: rng.integers([1, 2]), "whole numbers"),
    "float32": (lambda rng: rng.random(dtype=np.float32), "leave out dtype"),
    "binomial": (lambda rng: rng.binomial(1, 1.5), r"a number p in \[0, 1\]"),
    "two draws": (lambda rng: rng.random() < rng.random(), "compared with another draw"),
    "too many trials": (lambda rng: rng.binomial(10**6, 0.5), r"n in 0\.\.500"),
    "probabilities": (lambda rng: rng.choice(2, p=[0.5, 0.6]), "2 probabilities that sum to 1"),
    "a draw of pairs": (lambda rng: rng.choice([(0, 1), (1, 0)]), "choose a place"),
    "integers that are none": (lambda rng: rng.integers(2, dtype=float), "draws no float64"),
    "integers beyond their type": (lambda rng: rng.integers(250, 257, dtype=np.uint8), "draws no uint8"),
    "weighted and taken once": (
        lambda rng: rng.choice(2, 2, replace=False, p=[0.5, 0.5]),
        "without p and with shuffle=True",
    ),
    "too many taken": (lambda rng: rng.choice(2, 3, replace=False), "3 cannot be taken from 2"),
    "nothing to choose from": (lambda rng: rng.choice([]), "choose a place|not empty"),
    "an unknown keyword": (lambda rng: rng.integers(2, low_=1), "cannot do what the mechanism asks"),
    "a size below 0": (lambda rng: rng.choice(2, size=-1), "cannot do what the mechanism asks"),
    "a size that is a truth": (lambda rng: rng.random(True), "cannot do what the mechanism asks"),
    "no length": (lambda rng: rng.bytes(None), "cannot do what the mechanism asks"),
    "an axis too many": (lambda rng: rng.permuted([1, 2], axis=np.int64(1)), "cannot do what the mechanism asks"),
    "a huge draw": (lambda rng: rng.integers(1 << 52), "one draw has 4,503,599,627,370,496 outcomes"),
    "a copy": (lambda rng: __import__("copy").deepcopy(rng), "must not be copied"),
}


@for_each("name", REFUSED)
@for_each("swallowed", [False, True])
def test_a_draw_that_cannot_be_replayed_is_refused_and_may_not_be_swallowed(name: str, swallowed: bool) -> None:
    draw, message = REFUSED[name]

    def mechanism(data: int, rng: Any) -> Any:
        with contextlib.suppress(*([InvalidSpec] if swallowed else [])):
            return draw(rng)
        return data

    with pytest.raises(InvalidSpec, match=f"dataset 0 of the domain: .*{message}"):
        replay(mechanism, [0, 1], "all")


def test_numpy_chooses_no_letter_of_a_text() -> None:
    with pytest.raises(ValueError, match="a must be a sequence"):
        np.random.default_rng(0).choice("ab")
    with pytest.raises(InvalidSpec, match="pass a list of its letters"):
        replay(lambda data, rng: rng.choice("ab"), [0, 1], "all")


# --- the number of rng.random(): compared with numbers it has exact probabilities, and nothing else is let through ---


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
