"""Random programs that couplings prove, held against laws; and that such a test fails where a bound is too small.

Exact laws leave nothing to chance; each comparison of counted runs is wrong once in 10^12 at most, and seeds are fixed.
`python -m benchmarks laws` tries thousands.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.cases import NIGHTLY, for_each
from tests.verify.coupled import laws
from tests.verify.coupled.laws import Confronted, Law, confronted, excess, law_of, renyi
from tests.verify.coupled.random_programs import ADJACENCIES, MUTATIONS, Mechanism, mechanism, mutant

SEEDS = range(400 if NIGHTLY else 40)


@pytest.fixture(scope="module")
def tried() -> dict[int, Confronted]:
    return {seed: confronted(mechanism(seed), seed) for seed in SEEDS}


@pytest.mark.long
def test_no_law_is_against_what_is_proved(tried: dict[int, Confronted]) -> None:
    assert not {seed: found.against for seed, found in tried.items() if found.against}
    assert not {seed: found.reason for seed, found in tried.items() if found.word == "failed"}


@pytest.mark.long
def test_a_good_part_is_proved_and_most_laws_are_exact(tried: dict[int, Confronted]) -> None:
    assert len({mechanism(seed).mode for seed in SEEDS}) >= len(ADJACENCIES) - 1
    spends = [found for found in tried.values() if found.word == "proved" and found.epsilon > 0.0]
    assert 0.3 * len(SEEDS) < len(spends)
    assert sum(found.word == "refused" for found in tried.values()) > 0.1 * len(SEEDS)
    assert sum(found.exact for found in spends) > sum(found.counted for found in spends)


@pytest.mark.long
def test_bounds_that_are_too_small_are_contradicted(tried: dict[int, Confronted]) -> None:
    spends = [seed for seed, found in tried.items() if found.word == "proved" and 0.0 < found.epsilon < math.inf][:12]
    lower = [confronted(mechanism(seed), seed, pairs=8, factor=0.8) for seed in spends]
    assert sum(bool(found.against) for found in lower) >= len(spends) / 4


@pytest.mark.long
def test_mutants_are_refused_or_what_is_proved_of_them_holds(tried: dict[int, Confronted]) -> None:
    words = Counter[str]()
    for seed in [seed for seed, found in tried.items() if found.word == "proved"][:: 1 if NIGHTLY else 2]:
        for mutation in MUTATIONS:
            other = mutant(mechanism(seed), mutation)
            if other is not None:
                found = confronted(other, seed, pairs=2)
                assert not found.against, f"{found.against}\n{other.source}"
                more = found.word == "refused" or found.epsilon > tried[seed].epsilon
                words[f"{mutation}: {'more' if more else 'as before'}"] += 1
    assert all(words[f"{mutation}: more"] for mutation in MUTATIONS), words


TIGHT = "def f(data, rng):\n    n = sum([min(max(x, 0), 1) for x in data])\n    return n + rng.laplace(scale=1.0)\n"


@for_each(
    ("old", "new"),
    [
        ("scale=1.0", "scale=0.5"),  # half the scale
        (" + rng.laplace(scale=1.0)", ""),  # no noise
        ("0), 1)", "0), 2)"),  # twice as sensitive
        ("return n + rng.laplace(scale=1.0)", "d = rng.laplace(scale=1.0)\n    return n + d, d"),  # its noise beside it
    ],
)
def test_a_law_is_against_what_was_proved_before_a_mutation(old: str, new: str) -> None:
    given = Mechanism("numbers", TIGHT, "add_or_remove_one", None, True)
    broken = Mechanism("numbers", TIGHT.replace(old, new), "add_or_remove_one", None, True)
    assert confronted(given, 0, pairs=8).epsilon == 1.0
    for whole in (True, False):  # by the exact law, and by runs
        assert proved_of(given, broken, whole).against


def proved_of(given: Mechanism, other: Mechanism, whole: bool) -> Confronted:
    """What is proved of a mechanism, held against laws of another."""
    result = Confronted("proved")
    for first, second in (([0, 2], [0]), ([2], [])):
        words = laws.against(other.function, (first, second), [(1.0, 0.0)], None, 0, result, exact=whole)
        result.against = result.against or "".join(each for _, each in words)
    return result


def noisy(data: float, rng: Any, scale: float) -> float:
    return data + rng.laplace(scale=scale)  # type: ignore[no-any-return]


@for_each("scale", (0.5, 1.0, 2.0))
def test_the_law_of_one_draw_is_as_far_as_it_should_be(scale: float) -> None:
    one, two = (law_of(partial(noisy, scale=scale), data) for data in (0, 1))
    assert 0.0 < one.missing < 1e-4
    assert excess(one, two, 1 / scale) < 1e-12
    assert excess(one, two, 0.99 / scale) > 1e-4


def test_a_bell_is_as_concentrated_as_it_should_be() -> None:
    one, two = (law_of(lambda data, rng: data + rng.normal(scale=1.0), data) for data in (0, 1))
    for order in laws.ORDERS:
        assert renyi(one, two, order) <= order / 2 + 1e-9
    assert renyi(one, two, 2.0) > 0.99


def test_every_way_of_drawing_has_its_chance() -> None:
    def sampled(data: list[int], rng: Any) -> Any:
        kept = [x for x in data if rng.random() < 0.25]
        return rng.choice(["a", "b"], p=np.array([0.125, 0.875])) if len(kept) == 2 else rng.integers(2)

    assert law_of(sampled, [1, 2]) == Law({"a": 1 / 128, "b": 7 / 128, 0: 15 / 32, 1: 15 / 32}, 0.0)
