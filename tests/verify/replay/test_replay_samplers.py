"""Loops without a last round: laws that are summed are those of the code, and what is not sure to be right is not summed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.replay import canonical, replay
from dpaudit.verify.replay.tails import Tail
from tests.cases import for_each
from tests.verify.replay import sampled

pytestmark = pytest.mark.usefixtures("unwatched")

COUNTS = (3, 4, 6)
RATE = Fraction(math.ceil(Fraction(sampled.E) * 2**53), 2**53)  # of random() < exp(-1)


def near(a: int, b: int) -> bool:
    return abs(a - b) == 1


def probability(law: Mapping[Hashable, Fraction], output: Any) -> Fraction:
    """Of one output, in a tail too."""
    found = law.get(output, Fraction(0))
    for tail, p in law.items():
        steps = Fraction(output - tail.start, tail.step) if isinstance(tail, Tail) and type(output) is int else Fraction(-1)
        if steps.denominator == 1 and steps >= 0:
            found += p * (1 - tail.rate) * tail.rate ** int(steps)
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
    assert found.scope.endswith("loops summed round by round as their source reads")


@for_each(
    ("mechanism", "ratio"),
    [
        (sampled.zero_counted_twice, 2 / RATE),
        (sampled.zero_never, None),
        (sampled.cut_off, None),
        (sampled.told_far_out, None),
    ],
)
def test_a_broken_twin_loses_more(mechanism: Any, ratio: Fraction | None) -> None:
    found = replay(mechanism, COUNTS, near)
    assert not any(found.rests)
    assert found.infinite is (ratio is None)
    if ratio is not None:
        assert found.worst.p / found.worst.q == ratio
        assert found.epsilon.lower > 1.6


def test_what_is_told_far_out_is_not_summed_away() -> None:
    """A loop that looks at its counter is followed until what is left is rare, and that counts as delta."""
    found = replay(sampled.told_at_a_thousand, (3, 4), near)
    assert 0 < found.rests[0] < 2.0**-75
    assert found.epsilon.upper == math.inf
    assert found.upper_bound().epsilon_upper == math.inf
    assert 1.0 <= found.epsilon_at(2.0**-70).upper < 1.0 + 1e-12
    assert math.isinf(found.epsilon_at(2.0**-90).upper)
    assert found.delta(1.0).upper < 2.0**-70


@for_each(
    "mechanism",
    [
        *(sampled.clamped, sampled.laplace, sampled.laplace_exact, sampled.gaussian, sampled.one_more_below),
        *(sampled.changed_between, sampled.halves, sampled.told_at_a_thousand, *sampled.LAPLACE),
    ],
)
def test_laws_are_those_of_all_paths_of_the_code(mechanism: Any) -> None:
    """Of the paths that a generator of its own enumerates, the likely ones: no output is likelier, or much rarer."""
    found = replay(mechanism, (3, 4), "all")
    for count, law, rest in zip((3, 4), found.laws, found.rests, strict=True):
        paths, left = sampled.enumerated(mechanism, count)
        assert left < 0.5
        for output, p in paths.items():
            assert p <= probability(law, canonical(output)) + rest
            assert probability(law, canonical(output)) <= p + left


NOT_SUMMED = {
    sampled.remembers: "line 3 of remembers .*: LOG in it, which is not known to compute only",
    sampled.remembers_elsewhere: "line 3 of remembers_elsewhere .*: LOG in it",
    sampled.in_an_attribute: "line 3 of in_an_attribute .*: Attribute in it",
    sampled.in_a_default: "in_an_argument in it",
    sampled.of_a_global: "writes a name that is not its function's",
    sampled.in_a_list: "line 3 of in_a_list .*: it uses a list: use whole numbers",
    sampled.for_ever: "it never ends",
}


@for_each(("mechanism", "why"), NOT_SUMMED.items())
def test_a_loop_that_may_do_more_than_compute_and_draw_is_not_summed_and_says_why(mechanism: Any, why: str) -> None:
    with pytest.raises(InvalidSpec, match=f"a loop that can go on for ever has no finite law; .*{why}"):
        replay(mechanism, (3, 4), "all")


def test_tails_that_fall_at_two_rates_are_not_compared() -> None:
    with pytest.raises(InvalidSpec, match="falls at two rates or in two steps"):
        replay(sampled.of_two_rates, (3, 4), "all")
