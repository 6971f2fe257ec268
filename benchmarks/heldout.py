"""Ten classes of leak that were written after search, for its judgement only: nothing was changed by what they showed.

`python -m benchmarks.heldout --seeds 3` prints the table of `benchmarks.search` for them. Each is output of a mechanism
that could have been released, with the law of its best event in closed form.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.classes.leak import (
    Floats,
    Leak,
    Points,
    Rng,
    apart,
    cells,
    discrete_laplace,
    discrete_laplace_noise,
    integers,
    rates,
)
from benchmarks.search import QUICK_SEEDS, print_leaks

GOAL = 0.85
SEEDS = 3

SHARES = np.array([0.2, 0.15, 0.12, 0.1, 0.1, 0.08, 0.07, 0.06, 0.05, 0.03, 0.02, 0.02])
INCOMES = np.sort(np.random.default_rng(36).lognormal(10.4, 0.5, 101).round(2))
RATE = math.exp(-0.05)  # of the exponential mechanism, by ranks from the median
MILLISECONDS = np.array([np.random.default_rng(seed).laplace() for seed in range(1_000)])
WARDS, ROWS, COPIED = (3, 4, 0, 2, 5), 8.0, 0.1


def _shared_out(data: int, runs: int, rng: Rng) -> Any:
    """Counts of twelve cells, sampled by public shares from a noisy total that has half the noise it should have."""
    return rng.multinomial(data + discrete_laplace_noise(rng, 0.5, runs), SHARES)


def _weekday(data: str, runs: int, rng: Rng) -> list[str]:
    """A time stamp moved by whole weeks, with its time of day drawn anew: the day of the week stays."""
    weeks, minutes = discrete_laplace_noise(rng, 10.0, runs).tolist(), rng.integers(0, 1_440, runs).tolist()
    day = datetime.date.fromisoformat(data)
    moved = [day + datetime.timedelta(weeks=week) for week in weeks]
    return [f"{each} {minute // 60:02}:{minute % 60:02}" for each, minute in zip(moved, minutes, strict=True)]


def _unary(data: int, runs: int, rng: Rng) -> Any:
    """A category of sixteen as that many bits, each kept with 3/4: two of them change, and one was counted."""
    return (np.arange(16) == data) ^ (rng.random((runs, 16)) < 0.25)


def _forked(data: tuple[int, int], runs: int, rng: Rng) -> list[Any]:
    """Two counts, asked of eight workers that were forked with one state of the generator: one draw, or two."""
    first, second = discrete_laplace_noise(rng, 20.0, runs), discrete_laplace_noise(rng, 20.0, runs)
    second = np.where(rng.integers(0, 8, runs) == 0, first, second)
    pairs = zip((data[0] + first).tolist(), (data[1] + second).tolist(), strict=True)
    return [{"users": users, "active": active} for users, active in pairs]


@functools.cache
def _forked_law() -> Points:
    """Of 606 between them, at k: D(k) / 8 + 7 D(k)^2 / 8 against 7 D(k) D(k + 1) / 8, D the law of the noise."""
    span = np.arange(-300, 301)
    second = discrete_laplace(20.0, span)
    laws = []
    for shift in (0, 1):
        law = 7 / 8 * np.outer(discrete_laplace(20.0, span + shift), second)
        law[np.arange(len(span) - shift), np.arange(shift, len(span))] += second[shift:] / 8
        laws.append(law)
    return cells(*laws)


def _copied(data: int, rng: Rng) -> list[dict[str, Any]]:
    """Synthetic rows, as many as there are; the generator gives one person's own row again in a tenth of them."""
    rows = []
    for _ in range(rng.poisson(ROWS)):
        own = data == 1 and rng.random() < COPIED
        age, sex = (41, "F") if own else (int(rng.integers(30, 50)), "FM"[int(rng.integers(0, 2))])
        rows.append({"age": age, "sex": sex})
    return rows


def _copied_law() -> Points:
    """Copies and other rows are independent Poisson counts, of means 8 m and 8 (1 - m)."""
    from scipy.stats import poisson

    count, masses = np.arange(60), (COPIED + (1.0 - COPIED) / 40, 1 / 40)
    return cells(*(np.outer(poisson.pmf(count, ROWS * m), poisson.pmf(count, ROWS * (1.0 - m))) for m in masses))


def _own_value(data: int, runs: int, rng: Rng) -> Floats:
    """The exponential mechanism for a median, which gives a value of the data where it should draw between two."""
    values = INCOMES if data else np.append(np.delete(INCOMES, 50), 250_000.0)
    return values[rng.choice(101, runs, p=_rank_masses())]


def _rank_masses() -> npt.NDArray[np.float64]:
    masses = RATE ** np.abs(np.arange(101) - 50.0)
    return np.asarray(masses / masses.sum())


def _own_value_law() -> Points:
    """The median of one dataset is not in the other: (1 - r) / (1 + r - 2 r^51) against 0; the rest moves one rank."""
    masses = _rank_masses()
    return cells(np.append(masses, 0.0), np.insert(masses, 50, 0.0))


def _check_digit(data: int, runs: int, rng: Rng) -> Any:
    """A noisy count with its last digit again as a check, which in a tenth of the runs is that of the true count."""
    noisy = data + discrete_laplace_noise(rng, 50.0, runs)
    return 10 * noisy + np.where(rng.random(runs) < 0.1, data, noisy) % 10


def _check_digit_law() -> Points:
    """A check of 7 on another digit: .1 (1 - P[10 divides the noise]) against 0."""
    rate = math.exp(-1 / 50)
    return apart(0.1 * (1.0 - (1.0 - rate) / (1.0 + rate) * (1.0 + rate**10) / (1.0 - rate**10)))


def _touched(data: int, runs: int, rng: Rng) -> Floats:
    """Noise on the rows of an embedding that a batch touched, and exact zeros elsewhere; one person has two of them."""
    touched = rng.random((runs, 32)) < 0.1
    touched[:, [5, 13]] |= ((rng.random(runs) < 0.2) & (data == 1))[:, None]
    return np.where(touched, rng.standard_normal((runs, 32)), 0.0)


def _plural(data: int, rng: Rng) -> str:
    """A sentence with noisy counts of a sample, whose nouns are singular where the count without noise is one."""
    parts = []
    for ward, patients in zip("ABCDE", WARDS, strict=True):
        count = rng.binomial(patients + (data if ward == "C" else 0), 0.1)
        noisy = max(0, count + int(discrete_laplace_noise(rng, 1.0, 1)[0]))
        parts.append(f"{noisy} patient{'' if count == 1 else 's'} in ward {ward}")
    return "There were " + ", ".join(parts) + "."


def _milliseconds(data: float, runs: int, rng: Rng) -> Floats:
    """Noise of a generator that is seeded anew by the milliseconds of the clock: a thousand values."""
    return data + MILLISECONDS[rng.integers(0, 1_000, runs)]


def held_out() -> list[Leak]:
    """The classes; sizes at which the best event certifies well above the claim."""
    both = cells([0.208, 0.144, 0.648], [0.01, 0.18, 0.81])  # both touched, one, none: .2 + .8 x .01 against .01
    bits = cells([9 / 16, 6 / 16, 1 / 16], [1 / 16, 6 / 16, 9 / 16])  # of bits 5 and 9: 1 and 0, alike, 0 and 1
    total = partial(integers, 1, 0.5)  # the sum of the cells is enough: from the greater value, 1 / (1 + e^-2)
    always, singular = partial(apart, 1.0), partial(rates, 0.1, 0.0)
    days = ("2024-03-05", "2024-03-06")  # a Tuesday, and a Wednesday

    def leak(title: str, kind: str, sampler: Any, pair: Any, runs: int, points: Any, epsilon: float = 1.0) -> Leak:
        key, alone = sampler.__name__[1:], sampler in (_copied, _plural)
        return Leak(key, kind, title, sampler, pair, runs, points, (epsilon, 0.0), GOAL, alone=alone)

    return [
        leak("counts from a noisy total, loss 2", "dependence", _shared_out, (200, 199), 40_000, total),
        leak("a date moved by whole weeks", "text", _weekday, days, 20_000, always, 0.1),
        leak("two bits of sixteen", "dependence", _unary, (5, 9), 20_000, lambda: bits, math.log(3.0)),
        leak("one draw for two counts", "dependence", _forked, ((1_010, 404), (1_009, 404)), 100_000, _forked_law, 0.1),
        leak("a row copied in a tenth of rows", "dependence", _copied, (1, 0), 20_000, _copied_law),
        leak("a median that is of the data", "atoms", _own_value, (1, 0), 40_000, _own_value_law, 0.1),
        leak("a check digit kept", "lattices", _check_digit, (5_327, 5_326), 40_000, _check_digit_law, 0.1),
        leak("two of 32 rows touched", "wide", _touched, (1, 0), 40_000, lambda: both),
        leak("a singular by the true count", "text", _plural, (1, 0), 20_000, singular),
        leak("noise of a thousand seeds", "atoms", _milliseconds, (10.0, 9.0), 100_000, always),
    ]


def run(quick: bool) -> None:
    """Prints the table; `quick` takes one seed."""
    _print([], range(QUICK_SEEDS if quick else SEEDS))


def _print(only: Sequence[str], seeds: Sequence[int]) -> None:
    chosen = [each for each in held_out() if not only or each.key in only]
    print_leaks("Held-out classes", chosen, seeds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heldout", description=__doc__)
    parser.add_argument("--only", default="", help="keys of classes, with commas between")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds (default: three)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    _print([each for each in given.only.split(",") if each], range(given.first, given.first + given.seeds))
