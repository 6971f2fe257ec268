"""Finite mechanisms whose exact losses are known, replayed: nothing but the code of the mechanism goes in."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.catalogue import local
from dpaudit.results.bounds import Arithmetic, Label
from dpaudit.verify.enclosure import Enclosure
from dpaudit.verify.replay import FiniteLosses, replay
from tests.cases import for_each

pytestmark = pytest.mark.usefixtures("unwatched")

CANDIDATES = ((0, 1, 0.5), (1, 0, 0.5), (1, 1, 0), (0, 0, 1), (1, 0, 0))  # losses of three candidates by record type


def one_step(a: int, b: int) -> bool:
    return abs(a - b) == 1


def one_bit(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return sum(x != y for x, y in zip(a, b, strict=True)) == 1


def respond(data: tuple[int, ...], rng: Any) -> tuple[int, ...]:
    return tuple(bit if rng.random() < 0.75 else 1 - bit for bit in data)


def shuffled(ones: int, rng: Any) -> int:
    return sum(rng.random() < 0.75 for _ in range(ones)) + sum(rng.random() < 0.25 for _ in range(8 - ones))


def one_of_six(value: int, rng: Any) -> int:
    if rng.random() < 0.375:
        return value
    return int((value + rng.integers(1, 6)) % 6)


def uniform(count: int, rng: Any) -> int:
    return count + int(rng.integers(6))


def geometric(count: int, rng: Any, clamped: bool = True) -> int:
    u, sign = rng.integers(256), rng.integers(2)
    noise = next(k for k in range(41) if u / 256 < 1 - 2.0 ** -(k + 1))
    noisy = count + noise if sign else count - noise
    return min(5, max(0, noisy)) if clamped else noisy


def exponential(records: tuple[int, ...], rng: Any) -> int:
    weights = [math.exp(-sum(CANDIDATES[record][j] for record in records) / 2) for j in range(3)]
    return int(rng.choice(3, p=[weight / sum(weights) for weight in weights]))


def log(number: Fraction | int) -> Decimal:
    """The logarithm to 60 digits, by other means than balls."""
    with localcontext(prec=60):
        return Decimal(Fraction(number).numerator).ln() - Decimal(Fraction(number).denominator).ln()


def is_log(found: Enclosure, number: int) -> bool:
    return found.lower <= log(number) <= found.upper and found.upper - found.lower < 1e-15


def near(found: Enclosure, value: float, digits: int) -> bool:
    return round(found.lower, digits) == round(found.upper, digits) == value


def test_randomised_response() -> None:
    found = replay(respond, itertools.product((0, 1), repeat=3), one_bit)
    assert found.paths == 64
    assert found.worst.p / found.worst.q == 3
    assert is_log(found.epsilon, 3)
    assert found.delta(0) == Enclosure(0.5, 0.5)
    assert near(found.delta(0.5), 0.33781968, 8)


def test_shuffled_randomised_response() -> None:
    found = replay(shuffled, range(9), one_step)
    assert found.paths == 2304
    assert found.worst.p / found.worst.q == 3
    assert near(found.delta(0.5), 0.0462911948, 10)
    assert near(found.delta(0.25), 0.0957025750, 10)


def test_one_of_six() -> None:
    found = replay(one_of_six, range(6), "all")
    assert found.paths == 36
    assert is_log(found.epsilon, 3)
    assert near(found.delta(0.5), 0.1689098, 7)


def test_uniform_noise_has_no_epsilon() -> None:
    found = replay(uniform, range(8), one_step)
    assert found.paths == 48
    assert found.infinite
    assert found.epsilon == Enclosure(math.inf, math.inf)
    assert all(
        near(found.delta(epsilon), 0.166666666667, 12) for epsilon in (0, 0.5, 1, 5, 50, 1000, 10**9, Fraction(1, 3))
    )
    assert (found.worst.p, found.worst.q) == (Fraction(1, 6), 0)
    assert found.epsilon_at(Fraction(1, 6)) == Enclosure(0.0, 0.0)
    assert math.isinf(found.epsilon_at(Fraction(1, 7)).lower)


def test_a_sampler_of_eight_bits_that_counts_zero_twice() -> None:
    found = replay(geometric, range(6), one_step)
    assert found.paths == 3072
    assert found.worst.p / found.worst.q == 4
    assert is_log(found.epsilon, 4)
    assert near(found.delta(0.7), 0.24828, 5)


def test_the_tail_of_eight_bits_ends() -> None:
    found = replay(geometric, range(100, 103), one_step, parameters={"clamped": False})
    assert found.paths == 1536
    assert found.infinite
    assert near(found.delta(0.7), 0.2502, 4)
    assert found.worst.p == found.laws[found.worst.first][92]  # 100 - 8, and 93 - 1 is not there
    told = "the 2 adjacent pairs of the 3 datasets listed, all outputs, at clamped=False"
    assert found.scope == told


def test_the_exponential_mechanism() -> None:
    databases = list(itertools.combinations_with_replacement(range(5), 5))
    found = replay(exponential, databases, lambda a, b: (Counter(a) - Counter(b)).total() == 1)
    assert near(found.epsilon, 0.934453610, 9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_catalogue_s_own_programs_lose_what_they_claim(epsilon: float) -> None:
    entry = local.k_randomised_response.with_parameters({"epsilon": epsilon, "k": 5})
    assert math.isclose(replay(entry.run, range(5), "all").epsilon.upper, epsilon, rel_tol=1e-14)


def test_an_upper_bound_says_what_it_is_about() -> None:
    bound = replay(respond, [(0,), (1,)], "all").upper_bound()
    assert (bound.label, bound.arithmetic) == (Label.EXACT_FINITE, Arithmetic.RATIONAL)
    assert bound.scope == "the one adjacent pair of the 2 datasets listed, all outputs"
    assert bound.epsilon_lower is not None
    assert bound.epsilon_lower <= log(3) <= bound.epsilon_upper
    at_delta = replay(respond, [(0,), (1,)], "all").upper_bound(0.25)
    assert at_delta.epsilon_lower is not None
    assert at_delta.epsilon_lower <= log(2) <= at_delta.epsilon_upper  # (3/4 - 1/4) / (1/4)


def walk_by_hand(data: tuple[int, ...], decide: Any) -> dict[Any, Fraction]:
    """The law of `respond` by summing over all vectors of lies."""
    law: dict[Any, Fraction] = {}
    for lies in itertools.product((0, 1), repeat=len(data)):
        output = tuple(bit ^ lie for bit, lie in zip(data, lies, strict=True))
        share = math.prod(decide[lie] for lie in lies)
        law[output] = law.get(output, Fraction(0)) + share
    return law


def test_laws_are_those_of_a_sum_over_all_lies() -> None:
    found = replay(respond, itertools.product((0, 1), repeat=4), one_bit)
    chances = (Fraction(3, 4), Fraction(1, 4))
    assert [dict(law) for law in found.laws] == [walk_by_hand(data, chances) for data in found.domain]


def test_two_to_the_twelve_paths() -> None:
    found = replay(lambda bits, rng: int(sum(rng.integers(2) for _ in range(bits))), [12, 11], "all")
    assert found.paths == 2**12 + 2**11
    assert found.laws[0] == {k: Fraction(math.comb(12, k), 2**12) for k in range(13)}


def random_program(seed: int) -> Any:
    """A function that draws in many ways; its shape is fixed by the seed, its outputs by data and draws."""
    shape = np.random.default_rng(seed)
    steps = [(int(shape.integers(4)), int(shape.integers(2, 4))) for _ in range(3)]

    def program(data: int, rng: Any) -> int:
        value = data
        for kind, size in steps:
            if kind == 0:
                value = (3 * value + int(rng.integers(size))) % 7
            elif kind == 1 and rng.random() < (value + 1) / 8:
                value = (value + 2) % 7
            elif kind == 2:
                value = (value + max(0, int(rng.integers(1 + value + size)) - value)) % 7
            elif kind == 3 and rng.integers(2 + value) == 0:
                return -1
        return value

    def law(data: int) -> dict[int, Fraction]:
        """The same by following the probabilities of the states."""
        states, ended = {data: Fraction(1)}, Fraction(0)
        for kind, size in steps:
            after: dict[int, Fraction] = {}
            for value, mass in states.items():
                if kind == 0:
                    moves = [((3 * value + k) % 7, Fraction(1, size)) for k in range(size)]
                elif kind == 1:
                    moves = [((value + 2) % 7, Fraction(value + 1, 8)), (value, Fraction(7 - value, 8))]
                elif kind == 2:
                    total = 1 + value + size
                    moves = [(value, Fraction(1 + value, total))]
                    moves += [((value + k) % 7, Fraction(1, total)) for k in range(1, size + 1)]
                else:
                    moves = [(value, 1 - Fraction(1, 2 + value))]
                    ended += mass * Fraction(1, 2 + value)
                for target, chance in moves:
                    after[target] = after.get(target, Fraction(0)) + mass * chance
            states = after
        return {**{value: mass for value, mass in states.items() if mass}, **({-1: ended} if ended else {})}

    return program, law


@for_each("seed", range(12))
def test_random_programs_have_the_law_of_their_chain_of_states(seed: int) -> None:
    program, law = random_program(seed)
    found = replay(program, range(7), "all")
    assert [dict(each) for each in found.laws] == [law(data) for data in range(7)]


def test_one_dataset_after_another_starts_anew() -> None:
    found: FiniteLosses = replay(lambda data, rng: [rng.integers(2), 0, rng.integers(2)][data], [0, 1, 2], "all")
    assert [len(law) for law in found.laws] == [2, 1, 2]
