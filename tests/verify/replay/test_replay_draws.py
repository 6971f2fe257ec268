"""The finite draws: each has the law that numpy's and Python's own generators have, to the last bit."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec
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
    """Without numpy's types, of which another test speaks."""
    return output.item() if isinstance(output, np.generic) else output


def uniform_over(values: Any) -> Law:
    counts = Counter(values)
    return {value: Fraction(count, counts.total()) for value, count in counts.items()}


EXACT: dict[str, tuple[Callable[[Any], Any], Law]] = {
    "bytes": (lambda rng: rng.bytes(1)[0] % 2, uniform_over([0, 1])),
    "integers": (lambda rng: rng.integers(3), uniform_over(range(3))),
    "integers from below": (lambda rng: rng.integers(-2, 2), uniform_over(range(-2, 2))),
    "integers with the end": (lambda rng: rng.integers(1, 3, endpoint=True), uniform_over([1, 2, 3])),
    "two integers": (
        lambda rng: tuple(rng.integers(2, size=2).tolist()),
        uniform_over(itertools.product((0, 1), repeat=2)),
    ),
    "a table of integers": (
        lambda rng: int(rng.integers(2, size=(2, 2)).sum()),
        uniform_over([0, *[1] * 4, *[2] * 6, *[3] * 4, 4]),
    ),
    "choice of a number": (lambda rng: rng.choice(4), uniform_over(range(4))),
    "choice of a list": (lambda rng: rng.choice([-1.0, 1.0]), uniform_over([-1.0, 1.0])),
    "choice of texts": (lambda rng: rng.choice(["no", "yes"]), uniform_over(["no", "yes"])),
    "choice of two": (
        lambda rng: tuple(rng.choice([3, 5], 2).tolist()),
        uniform_over(itertools.product((3, 5), repeat=2)),
    ),
    "choice without replacement": (
        lambda rng: tuple(rng.choice(3, 2, replace=False).tolist()),
        uniform_over(itertools.permutations(range(3), 2)),
    ),
    "choice with halves": (lambda rng: rng.choice(3, p=[0.5, 0.25, 0.25]), uniform_over([0, 0, 1, 2])),
    "permutation": (lambda rng: tuple(rng.permutation(3).tolist()), uniform_over(itertools.permutations(range(3)))),
    "permutation of texts": (
        lambda rng: tuple(rng.permutation(["a", "b"]).tolist()),
        uniform_over(itertools.permutations("ab")),
    ),
    "permuted": (lambda rng: tuple(rng.permuted([1, 2, 2]).tolist()), uniform_over(itertools.permutations([1, 2, 2]))),
    "binomial": (lambda rng: rng.binomial(2, 0.25), {0: Fraction(9, 16), 1: Fraction(6, 16), 2: Fraction(1, 16)}),
    "one trial": (lambda rng: rng.binomial(1, np.float64(0.1)), {1: Fraction(0.1), 0: 1 - Fraction(0.1)}),
    "random below": (
        lambda rng: rng.random() < 0.1,
        {True: Fraction(math.ceil(0.1 * GRID), GRID), False: 1 - Fraction(math.ceil(0.1 * GRID), GRID)},
    ),
    "random in an array": (
        lambda rng: tuple((rng.random(2) < np.array([0.5, 0.25])).tolist()),
        {
            (True, True): Fraction(1, 8),
            (True, False): Fraction(3, 8),
            (False, True): Fraction(1, 8),
            (False, False): Fraction(3, 8),
        },
    ),
    "random in a search": (
        lambda rng: int(np.searchsorted([0.25, 0.75], rng.random(), side="right")),
        {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)},
    ),
    "random bisected": (
        lambda rng: bisect_left([0.25, 0.75], rng.random()),
        {0: Fraction(GRID // 4 + 1, GRID), 1: Fraction(1, 2), 2: Fraction(GRID // 4 - 1, GRID)},
    ),
    "uniform": (lambda rng: rng.uniform() >= 0.5, uniform_over([True, False])),
}


@for_each("name", EXACT)
def test_a_draw_has_exactly_its_law(name: str) -> None:
    draw, law = EXACT[name]
    assert law_of(lambda rng: plain(draw(rng))) == formed(law)


def shuffle_of(kind: type) -> Callable[[Any], Any]:
    def draw(rng: Any) -> Any:
        values = np.arange(3) if kind is np.ndarray else [0, 1, 2]
        rng.shuffle(values)
        return tuple(int(value) for value in values)

    return draw


@pytest.mark.parametrize("kind", [list, np.ndarray])
def test_a_shuffle_has_every_order(kind: type) -> None:
    assert law_of(shuffle_of(kind)) == uniform_over(itertools.permutations(range(3)))


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


@for_each(
    "draw",
    [
        lambda rng: rng.integers(5),
        lambda rng: rng.integers(2, dtype=np.int8),
        lambda rng: rng.integers(2, dtype=bool),
        lambda rng: rng.integers(2, dtype=int),
        lambda rng: rng.integers(2, size=3),
        lambda rng: rng.integers(300, 400),
        lambda rng: rng.choice(5),
        lambda rng: rng.choice([0, 1]),
        lambda rng: rng.choice(["a", "b"]),
        lambda rng: rng.choice(2, p=[0.5, 0.5]),
        lambda rng: rng.choice([0.5, 1.5], 2),
        lambda rng: rng.permutation(3),
        lambda rng: rng.permutation(["a", "b"]),
        lambda rng: rng.binomial(1, 0.5),
        lambda rng: rng.binomial(1, 0.5, 3),
        lambda rng: rng.random() < 0.5,
        lambda rng: rng.random(3) < 0.5,
    ],
)
def test_a_draw_has_the_type_that_numpy_gives(draw: Callable[[Any], Any]) -> None:
    def named(value: Any) -> str:
        return f"{type(value).__name__} of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__

    assert set(law_of(lambda rng: named(draw(rng)))) == {named(draw(np.random.default_rng(0)))}


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
    "integers of a float": (lambda rng: rng.integers(2.5), "whole numbers"),
    "float32": (lambda rng: rng.random(dtype=np.float32), "leave out dtype"),
    "binomial": (lambda rng: rng.binomial(1, 1.5), r"a number p in \[0, 1\]"),
    "too many trials": (lambda rng: rng.binomial(10**6, 0.5), r"n in 0\.\.500"),
    "probabilities": (lambda rng: rng.choice(2, p=[0.5, 0.6]), "2 probabilities that sum to 1"),
    "negative probabilities": (lambda rng: rng.choice(2, p=[1.5, -0.5]), "2 probabilities that sum to 1"),
    "a draw of pairs": (lambda rng: rng.choice([(0, 1), (1, 0)]), "choose a place"),
    "integers that are none": (lambda rng: rng.integers(2, dtype=float), "draws no float64"),
    "integers beyond their type": (lambda rng: rng.integers(250, 257, dtype=np.uint8), "draws no uint8"),
    "a mixed list": (lambda rng: rng.choice([1, "a"]), "choose a place"),
    "weighted without replacement": (
        lambda rng: rng.choice(3, 2, replace=False, p=[0.5, 0.25, 0.25]),
        "without p and with shuffle=True",
    ),
    "too many taken": (lambda rng: rng.choice(2, 3, replace=False), "3 cannot be taken from 2"),
    "nothing to choose from": (lambda rng: rng.choice([]), "choose a place|not empty"),
    "an unknown keyword": (lambda rng: rng.integers(2, low_=1), "cannot do what the mechanism asks"),
    "a huge draw": (lambda rng: rng.integers(1 << 52), "one draw has 4,503,599,627,370,496 outcomes"),
    "a copy": (lambda rng: __import__("copy").deepcopy(rng), "must not be copied"),
}


@for_each("name", REFUSED)
@for_each("swallowed", [False, True])
def test_a_draw_that_cannot_be_replayed_is_refused_even_where_the_mechanism_swallows_it(
    name: str, swallowed: bool
) -> None:
    draw, message = REFUSED[name]

    def mechanism(data: int, rng: Any) -> Any:
        try:
            return draw(rng)
        except InvalidSpec:
            if swallowed:
                return data
            raise

    with pytest.raises(InvalidSpec, match=f"dataset 0 of the domain: .*{message}"):
        replay(mechanism, [0, 1], "all")


def test_numpy_chooses_no_letter_of_a_text() -> None:
    with pytest.raises(ValueError, match="a must be a sequence"):
        np.random.default_rng(0).choice("ab")
    with pytest.raises(InvalidSpec, match="pass a list of its letters"):
        replay(lambda data, rng: rng.choice("ab"), [0, 1], "all")
