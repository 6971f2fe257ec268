"""Leaks that no single entry shows, planted in outputs that are otherwise alike: the grammar has a word for each.

Of each class the best event has probability .75 on one side and .25 on the other. A search here looks at 4,096 + 8,000
outputs a side, and its event is judged on 8,000 fresh ones: it must show a log ratio of .8 of ln 3, nine standard
deviations of those rates. In the sound twin both sides are the first one, and no expression stands out: each has a
chance of 3 in a million to be beyond the luckiest of as many by two deviations, and seeds are fixed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.events.grammar import Expression
from dpaudit.outputs.canonical import Outputs, Pilot, Sample
from dpaudit.outputs.encode import encode_batch, encode_objects
from dpaudit.search.entries import looked_at
from dpaudit.search.explore import best, pilot_counts, plan
from dpaudit.search.expressions import expressions_of, parted
from dpaudit.search.goal import Goal
from tests.cases import for_each

Rng = np.random.Generator
Leak = Callable[[Any, int, Rng], Any]  # which side each run shows, runs

WORDS = ("the", "we", "see", "data", "point", "yes", "maybe", "often", "rare")


def bit(up: Any, runs: int, rng: Rng) -> Any:
    numbers = rng.integers(0, 1 << 20, runs)
    return numbers & ~(1 << 11) | up << 11


def two_bits(up: Any, runs: int, rng: Rng) -> Any:
    numbers = rng.integers(0, 1 << 16, runs)
    return numbers & ~(1 << 4) | (up ^ numbers >> 9 & 1) << 4


def parity(up: Any, runs: int, rng: Rng) -> Any:
    """Of the set bits of a number."""
    numbers = rng.integers(0, 1 << 16, runs)
    set_bits = np.array([number.bit_count() for number in numbers.tolist()])
    return numbers ^ (set_bits & 1 ^ up)


def digit(up: Any, runs: int, rng: Rng) -> Any:
    numbers = rng.integers(0, 10**6, runs)
    return numbers + (rng.integers(0, 5, runs) + 5 * up - numbers // 1000 % 10) * 1000


def product(up: Any, runs: int, rng: Rng) -> Any:
    numbers = rng.normal(size=(runs, 12))
    numbers[:, 7] = np.where(up, 1, -1) * np.sign(numbers[:, 3]) * np.abs(numbers[:, 7])
    return numbers


def two_coins(up: Any, runs: int, rng: Rng) -> Any:
    coins = rng.integers(0, 2, (runs, 14))
    coins[:, 9] = coins[:, 2] ^ up
    return coins


def order_by_a_third(up: Any, runs: int, rng: Rng) -> Any:
    numbers = rng.normal(size=(runs, 3))
    pair = np.sort(numbers[:, :2], axis=1)
    turned = (numbers[:, 2] > 0.0) ^ (up == 1)
    numbers[:, :2] = np.where(turned[:, None], pair[:, ::-1], pair)
    return numbers


def gap(up: Any, runs: int, rng: Rng) -> Any:
    numbers = rng.normal(size=(runs, 6))
    lead = np.where(up, rng.random(runs) * 0.2, 0.2 + rng.random(runs))
    numbers[np.arange(runs), numbers.argmax(axis=1)] = np.sort(numbers, axis=1)[:, -2] + lead
    return numbers


def ratio(up: Any, runs: int, rng: Rng) -> Any:
    one = np.exp(2.0 * rng.normal(size=runs))
    return np.stack([one, one * np.where(up, 1.0 + 0.3 * rng.random(runs), 1.3 + rng.random(runs))], axis=1)


def largest(up: Any, runs: int, rng: Rng) -> Any:
    """In size, of eight numbers of either sign."""
    numbers, rows = rng.normal(size=(runs, 8)), np.arange(runs)
    top, place = np.abs(numbers).argmax(axis=1), np.where(up, 2, 5)
    numbers[rows, top], numbers[rows, place] = numbers[rows, place].copy(), numbers[rows, top].copy()
    return numbers


def length(up: Any, runs: int, rng: Rng) -> Any:
    """Of a vector of any direction."""
    numbers = rng.normal(size=(runs, 5))
    return numbers / np.linalg.norm(numbers, axis=1)[:, None] * (rng.random(runs) + up)[:, None]


def run_length(up: Any, runs: int, rng: Rng) -> Any:
    numbers, starts = rng.integers(0, 3, (runs, 15)), rng.integers(0, 10, runs)
    rows = np.flatnonzero(up)
    for place in range(1, 5):
        numbers[rows, starts[rows] + place] = numbers[rows, starts[rows]]
    return numbers


def word(up: Any, runs: int, rng: Rng) -> Any:
    """How often one word comes in a text, anywhere."""
    texts = []
    for times in (rng.integers(0, 4, runs) + 4 * up).tolist():
        text = [WORDS[place] for place in rng.integers(len(WORDS), size=int(rng.integers(22, 40)))]
        for place in rng.choice(len(text), times, replace=False):
            text[place] = "no"
        texts.append(" ".join(text))
    return texts


LEAKS: list[tuple[Leak, str]] = [
    (bit, r"^bit 11 of output"),
    (two_bits, r"bit 4 of output \^ bit 9 of output"),
    (parity, r"number of bits set in output"),
    (product, r"output\[3\] \* output\[7\]"),
    (gap, r"gap of the two largest"),
    (digit, r"digit 3 of output"),
    (two_coins, r"\(output\[2\] - 0.5\) \* \(output\[9\] - 0.5\)"),
    (order_by_a_third, r"output\[2\] \* sign\(output\[0\] - output\[1\]\)"),
    (ratio, r"output\[\d\] / output\[\d\]"),
    (largest, r"argmax\(abs\(output\)\)"),
    (length, r"sum\(output\*\*2\)|sum\(abs\(output\)\)"),
    (run_length, r"longest run"),
]


def outputs_of(leak: Leak, chance: float, runs: int, rng: Rng) -> Outputs:
    made = leak((rng.random(runs) < chance).astype(np.int64), runs, rng)
    return encode_objects(made) if isinstance(made, list) else encode_batch(made, runs)


@pytest.mark.long
@for_each(("leak", "says"), [*LEAKS[:5], (word, r"\(repeats in output\)\['no'\]")], nightly=LEAKS[5:])
def test_a_leak_that_no_entry_shows_has_an_event_with_a_name(leak: Leak, says: str) -> None:
    rng = np.random.default_rng(7)
    pilot, more, fresh = (
        [outputs_of(leak, chance, runs, rng) for chance in (0.75, 0.25)] for runs in (4_096, 8_000, 8_000)
    )
    goal = Goal(PureDP(0.5), 50_000, 0.01)
    chosen = plan(Pilot(*pilot), goal)
    counts = pilot_counts(chosen, Pilot(*pilot)) + chosen.tables(*map(Sample, more))
    found = best(chosen, counts, goal)
    assert found is not None
    named = found if re.search(says, str(found.event)) else found.part
    assert named is not None, str(found.event)
    assert re.search(says, str(named.event)), str(found.event)
    p, q = (float(np.mean(named.event.contains(side))) for side in fresh)
    assert abs(math.log(p / q)) > 0.8 * math.log(3.0), str(named.event)


@pytest.mark.long
@for_each("leak", [leak for leak, _ in LEAKS[:5]], nightly=[leak for leak, _ in LEAKS[5:]])
def test_null_nothing_is_said_of_sides_that_are_alike(leak: Leak) -> None:
    rng = np.random.default_rng(8)
    pilot = Pilot(*(outputs_of(leak, 0.75, 4_096, rng) for _ in range(2)))
    assert expressions_of(pilot, looked_at(pilot, pilot.both), 0.0) == []


def test_an_expression_that_says_no_more_than_an_entry_is_none() -> None:
    rng = np.random.default_rng(9)
    pilot = Pilot(*(encode_batch(rng.laplace(size=(4_096, 3)) + np.array([up, 0.0, 0.0]), 4_096) for up in (1.0, 0.0)))
    some = expressions_of(pilot, looked_at(pilot, pilot.both), 0.0)
    assert some
    assert all(isinstance(each, Expression) for each in some)
    numbers = [side.column((0,)).values for side in (pilot.first, pilot.second)]
    table = np.stack([np.histogram(side, np.linspace(-8.0, 9.0, 40))[0] for side in numbers], axis=1)
    assert expressions_of(pilot, looked_at(pilot, pilot.both), parted(table)) == []


def test_counts_apart_are_as_many_deviations_as_a_normal_law_has() -> None:
    """Of two cells the root of chi-square; of equal counts none; whatever is in a cell that hardly came."""
    assert parted(np.array([[300, 200], [200, 300]])) == pytest.approx(math.sqrt(40.0), abs=0.4)
    assert parted(np.array([[100, 100], [50, 50], [3, 0]])) < 2.5
    assert parted(np.array([[5, 0]])) == 0.0 == parted(np.zeros((3, 2), np.int64))
