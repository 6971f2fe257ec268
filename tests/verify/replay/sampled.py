"""Samplers as people write them, with their broken twins; and an enumeration of their paths on its own."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.replay import canonical

STOP = Fraction(1, 2**12)  # a path of less probability is not followed by the enumeration


class TooRare(BaseException):
    """The path is not followed."""


class Tape:
    """A generator whose draws are read from a list of places, and at its end the first is taken."""

    def __init__(self, places: list[int]) -> None:
        self.places, self.shares, self.at, self.p = places, list[list[Fraction]](), 0, Fraction(1)

    def draw(self, shares: list[Fraction]) -> int:
        if self.at == len(self.places):
            self.places.append(0)
        place = self.places[self.at]
        self.shares.append(shares)
        self.at += 1
        self.p *= shares[place]
        if self.p < STOP:
            raise TooRare
        return place

    def integers(self, low: int, high: int | None = None) -> int:
        first, last = (0, low) if high is None else (low, high)
        return first + self.draw([Fraction(1, last - first)] * (last - first))

    def random(self) -> Coin:
        return Coin(self)


class Coin:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def __lt__(self, p: float) -> bool:
        share = Fraction(min(2**53, max(0, math.ceil(Fraction(p) * 2**53))), 2**53)
        return share == 1 or share > 0 and self.tape.draw([share, 1 - share]) == 0

    def __ge__(self, p: float) -> bool:
        return not self < p


def enumerated(function: Callable[..., Any], data: Any) -> tuple[dict[Any, Fraction], Fraction]:
    """The outputs of all likely paths, and what is left."""
    law: dict[Any, Fraction] = defaultdict(Fraction)
    places: list[int] = []
    left = Fraction(0)
    while True:
        tape = Tape(places)
        try:
            law[canonical(function(data, tape))] += tape.p
        except TooRare:
            left += tape.p
        del places[tape.at :]
        while places and places[-1] + 1 == len(tape.shares[len(places) - 1]):
            places.pop()
        if not places:
            return law, left
        places[-1] += 1


# --- noise of one count: a geometric number in either direction -------------------------------------------------------

E = math.exp(-1)
HALF = 0.5


def coins(p: float, rng: Any) -> int:
    k = 0
    while rng.random() < p:
        k += 1
    return k


def coins_counted_from_one(p: float, rng: Any) -> int:
    k = 1
    while rng.random() < p:
        k = k + 1
    return k - 1


def returned_from_the_loop(p: float, rng: Any) -> int:
    k = 0
    while True:
        if rng.random() >= p:
            return k
        k += 1


def with_a_flag(p: float, rng: Any) -> int:
    k = 0
    go = rng.random() < p
    while go:
        k += 1
        go = rng.random() < p
    return k


def from_the_second_on(p: float, rng: Any) -> int:
    """A counter that the first round leaves as it is: it is followed value by value."""
    k = 0
    begun = False
    while rng.random() < p:
        if begun:
            k += 1
        begun = True
    return k


def two_from_the_second_on(count: int, rng: Any) -> int:
    return count + from_the_second_on(HALF, rng) - coins(HALF, rng)


def with_break_and_continue(p: float, rng: Any) -> int:
    k = 0
    while True:
        if rng.integers(3) == 0:  # changes nothing
            continue
        if rng.random() >= p:
            break
        k += 1
    return k


def two(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    return count + coins(p, rng) - coins(p, rng)


def two_of_the_loop(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    return count + returned_from_the_loop(p, rng) - coins_counted_from_one(p, rng)


def two_with_a_flag(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    up = with_a_flag(p, rng)
    return up - with_break_and_continue(p, rng) + count


def two_in_place(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    up = 0
    while rng.random() < p:
        up += 1
    down = 0
    while rng.random() < p:
        down -= 1
    return count + up + down


def down_and_up(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    noisy = count
    while rng.random() < p:
        noisy += 1
    while rng.random() < p:
        noisy -= 1
    return noisy


def signed(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    while True:
        k = 0
        while rng.random() < p:
            k += 1
        negative = rng.integers(2) == 1
        if negative and k == 0:
            continue
        break
    return count - k if negative else count + k


def sign_first(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    sign = 0
    noise = 0
    while sign == 0:
        sign = 1 if rng.random() < HALF else -1
        noise = coins(p, rng)
        if sign < 0 and noise == 0:
            sign = 0
    return count + sign * noise


LAPLACE = (two, two_of_the_loop, two_with_a_flag, two_in_place, down_and_up, signed, sign_first)


def zero_counted_twice(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    """Without the rejection: 0 is too likely."""
    k = coins(p, rng)
    return count - k if rng.integers(2) == 1 else count + k


def zero_never(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    k = 1 + coins(p, rng)
    return count - k if rng.integers(2) == 1 else count + k


def one_more_below(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    """The difference of a number from 0 up and one from 2 up has another shape by nothing but its place."""
    k = coins(p, rng)
    while rng.random() < HALF:
        k += 2
    return count - k if rng.integers(2) == 1 else count + k


def cut_off(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    k = 0
    while k < 20 and rng.random() < p:
        k += 1
    j = 0
    while j < 20 and rng.random() < p:
        j += 1
    return count + k - j


def told_far_out(count: int, rng: Any, p: float = 0.36787944117144233) -> Any:
    noise = coins(p, rng) - coins(p, rng)
    return ("far", count) if noise > 30 else count + noise


def told_at_a_thousand(count: int, rng: Any, p: float = 0.36787944117144233) -> Any:
    k = 0
    while rng.random() < p:
        k += 1
        if k == 1000:
            return ("far", count)
    return count + k - coins(p, rng)


def clamped(count: int, rng: Any, p: float = 0.36787944117144233) -> int:
    return min(8, max(0, count + coins(p, rng) - coins(p, rng)))


def pair(count: int, rng: Any, p: float = 0.36787944117144233) -> tuple[int, int]:
    return count + coins(p, rng) - coins(p, rng), -count + coins(p, rng) - coins(p, rng)


def in_phases(count: int, rng: Any) -> int:
    """Each phase is stayed in for a while; the second one is reached half of the time."""
    phase = 0
    last = 0
    while phase < 2:
        last = phase
        if rng.random() < 0.25:
            phase += 1 if rng.integers(2) else 2
    return count + last


# --- after Canonne, Kamath and Steinke: the discrete Gaussian ---------------------------------------------------------


def bernoulli_of_one(x: float, rng: Any) -> bool:
    k = 1
    while rng.random() < x / k:
        k += 1
    return k % 2 == 1


def bernoulli(x: float, rng: Any) -> bool:
    while x > 1:
        if not bernoulli_of_one(1.0, rng):
            return False
        x -= 1
    return bernoulli_of_one(x, rng)


def discrete_laplace(t: int, rng: Any) -> int:
    while True:
        u = int(rng.integers(t))
        if not bernoulli_of_one(u / t, rng):
            continue
        v = 0
        while bernoulli_of_one(1.0, rng):
            v += 1
        size = u + t * v
        negative = rng.random() < 0.5
        if negative and size == 0:
            continue
        return -size if negative else size


def laplace(count: int, rng: Any, t: int = 2) -> int:
    return count + discrete_laplace(t, rng)


def gaussian(count: int, rng: Any, variance: float = 1.0) -> int:
    t = math.floor(math.sqrt(variance)) + 1
    while True:
        noise = discrete_laplace(t, rng)
        if bernoulli((abs(noise) - variance / t) ** 2 / (2 * variance), rng):
            return count + noise


def bernoulli_exact(top: int, bottom: int, rng: Any) -> bool:
    k = 1
    while rng.integers(bottom * k) < top:
        k += 1
    return k % 2 == 1


def laplace_exact(count: int, rng: Any, t: int = 2) -> int:
    while True:
        u = int(rng.integers(t))
        if bernoulli_exact(u, t, rng):
            v = 0
            while bernoulli_exact(1, 1, rng):
                v += 1
            sign = 1 - 2 * int(rng.integers(2))
            if sign > 0 or u + t * v > 0:
                return count + sign * (u + t * v)


# --- what must not be summed ------------------------------------------------------------------------------------------

LOG: list[int] = []
CONSTANT = 0.25
STEPS = np.array([1, 2])


class Box:
    value = 0


def remembers(count: int, rng: Any) -> int:
    LOG.clear()
    while rng.random() < HALF:
        LOG.append(1)
    return count + len(LOG)


def bumped() -> None:
    LOG.append(1)


def remembers_elsewhere(count: int, rng: Any) -> int:
    LOG.clear()
    while rng.random() < HALF:
        bumped()
    return count + len(LOG)


def in_an_attribute(count: int, rng: Any) -> int:
    Box.value = 0
    while rng.random() < HALF:
        Box.value += 1
    return count + Box.value


def in_an_argument(rng: Any, found: list[int] = LOG) -> None:
    found.append(1)


def in_a_default(count: int, rng: Any) -> int:
    LOG.clear()
    while rng.random() < HALF:
        in_an_argument(rng)
    return count + len(LOG)


def of_a_global(count: int, rng: Any) -> int:
    global CONSTANT
    CONSTANT = 0.25
    while rng.random() < CONSTANT:
        CONSTANT = 0.5
    return count


def in_a_list(count: int, rng: Any) -> int:
    found = [count]
    while rng.random() < HALF:
        found[0] += 1
    return found[0]


def grows(p: float, rng: Any) -> float:
    total = 0.0
    while rng.random() < p:
        total += 0.5
    return total


def halves(count: int, rng: Any) -> float:
    return count + grows(HALF, rng)


def changed_between(count: int, rng: Any) -> int:
    """A loop reads a constant of the module that has another value each time."""
    k = 0
    for share in (0.25, 0.5):
        set_share(share)
        k += shared(rng)
    return count + k


SHARE = 0.25


def set_share(share: float) -> None:
    globals()["SHARE"] = share


def shared(rng: Any) -> int:
    found = 0
    while found == 0 and rng.random() < SHARE:
        found = 1 if rng.random() < SHARE else 0
    return found


def flips(rng: Any) -> int:
    return int(rng.integers(2))


def never(rng: Any) -> int:
    return 0


CHOSEN: Callable[[Any], int] = flips


def choose(function: Callable[[Any], int]) -> None:
    globals()["CHOSEN"] = function


def of_changed_functions(count: int, rng: Any) -> int:
    choose(flips)
    k = 0
    while k < 2 and CHOSEN(rng):
        k += 1
    choose(never)
    j = 0
    while j < 2 and CHOSEN(rng):
        j += 1
    return count + k + j


def goes_on_where_it_was(count: int, rng: Any) -> int:
    """The loop begins with what it left behind the time before, which nobody else reads."""
    said, hits = 0, 0
    lines = []
    for _ in range(2):
        while rng.random() < HALF and said < 1:
            said = 1
            hits += 1
        lines.append(hits)
    return count + sum(lines)


def goes_over_where_it_was(count: int, rng: Any) -> int:
    said, hits = 0, 0
    lines = []
    for _ in range(2):
        for each in (1, 2):
            if rng.random() < HALF and said < 1:
                said = 1
                hits += each
        lines.append(hits)
    return count + sum(lines)


def counts_on(count: int, rng: Any) -> int:
    k = 0
    for k in itertools.count():  # noqa: B007
        if rng.random() < HALF:
            break
    return count + k


def has_no_value_yet(count: int, rng: Any) -> int:
    """The name is the function's own, and not that of the module."""
    k = 0
    while rng.random() < HALF and k < HALVES:  # noqa: F823
        k += 1
    HALVES = 1  # noqa: N806
    return count + k + HALVES


HALVES = 2


def by_ones_and_twos(count: int, rng: Any) -> int:
    k = 0
    while rng.random() < 0.25:
        if rng.integers(2):
            k += 1
        k += 1
    return count + k


def learns(x: int, rng: Any) -> int:
    """What the counter does is regular for one dataset and not for the other."""
    k = 0
    while rng.random() < 0.25:
        if x and rng.integers(2):
            k += 1
        k += 1
    return k


def is_copied(count: int, rng: Any) -> int:
    j = 0
    k = 0
    while rng.random() < HALF:
        if k == 2:
            return count + 100
        k = j + 1
        j = 1
    return count + j


def imports(count: int, rng: Any) -> int:
    LOG.clear()
    while rng.random() < HALF:
        from tests.verify.replay import sampled

        sampled.LOG.append(1)
    return count + len(LOG)


def tries(count: int, rng: Any) -> int:
    first = 0
    while rng.random() < HALF:
        try:
            first += last
        except NameError:
            last = 1  # noqa: F841
    return count + first


def walks(count: int, rng: Any) -> int:
    """It comes back for sure, and nobody can tell when."""
    x = 0
    while x != 3:
        x += 1 if rng.integers(2) else -1
    return count + x


def both_and_one(count: int, rng: Any) -> tuple[int, int]:
    while True:
        up = coins(HALF, rng)
        both = up - coins(HALF, rng)
        if rng.integers(2):
            break
    return count + both, up


def for_ever(count: int, rng: Any) -> int:
    while rng.integers(2) < 2:
        count += 1
    return count


def caught(count: int, rng: Any) -> Any:
    """What is not followed any further is lost whatever the mechanism does with it."""
    k = coins(HALF, rng)
    try:
        return count + k % 2
    except BaseException:
        return "caught"


def caught_alone(count: int, rng: Any) -> Any:
    """A loop without a draw is no sampler; what ends the replay then is caught here."""
    try:
        total = 0
        while total < 3:
            total += 1
    except Exception:
        return 0
    return count + coins(HALF, rng)


def told_by_identity(count: int, rng: Any) -> Any:
    x = 1000.5 + count
    before = x
    while rng.random() < HALF:
        x = x + 0.0 if x < 0 else x
    return count if before is x else 0


def not_a_number(count: int, rng: Any) -> int:
    x = math.nan
    while rng.random() < HALF and x in (x,):
        x = x + 0.0
    return count


def of_fractions(count: int, rng: Any) -> int:
    share = Fraction(1, 2)
    while rng.random() < share:
        share.__init__(1, 4)  # type: ignore[misc]
    return count


def a_tail_in_an_array(count: int, rng: Any) -> Any:
    return np.array([count + coins(HALF, rng), 1])


def in_a_record(count: int, rng: Any) -> dict[str, Any]:
    return {"count": count + coins(E, rng) - coins(E, rng), "rounds": [1, 2]}


def majority(people: list[int], rng: Any) -> int:
    total = 0
    for person in people:
        total += person if rng.random() < 0.75 else 1 - person
    return total


def until_one_says_so(people: list[int], rng: Any) -> tuple[int, int]:
    found = -1
    asked = 0
    for place in range(4):
        if place == 2:
            continue
        asked += 1
        if rng.random() < 0.25:
            found = place
            break
    return found + people[0], asked


def of_two_rates(count: int, rng: Any) -> int:
    return count + coins(0.5 if count % 2 else 0.25, rng)
