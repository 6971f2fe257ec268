"""Epsilon, delta, the curve of the best events and the worst one of exact laws, against a search over all events."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.replay import FiniteLosses
from tests.cases import for_each

Law = dict[int, Fraction]


def log(number: Fraction | int) -> Decimal:
    """The logarithm to 60 digits, by other means than balls."""
    with localcontext(prec=60):
        return Decimal(Fraction(number).numerator).ln() - Decimal(Fraction(number).denominator).ln()


def random_law(rng: np.random.Generator, outputs: int = 5) -> Law:
    weights = [int(weight) for weight in rng.integers(0, 6, outputs)]
    weights[int(rng.integers(outputs))] += 1
    return {output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights) if weight}


def events(p: Law, q: Law) -> list[tuple[Fraction, Fraction]]:
    outputs = sorted({*p, *q})
    return [
        (
            sum((p.get(output, Fraction(0)) for output in event), Fraction(0)),
            sum((q.get(output, Fraction(0)) for output in event), Fraction(0)),
        )
        for size in range(len(outputs) + 1)
        for event in itertools.combinations(outputs, size)
    ]


def losses_of(p: Law, q: Law) -> FiniteLosses:
    return FiniteLosses.of([0, 1], [(0, 1)], [p, q])


SEEDS = range(40)


@for_each("seed", SEEDS)
def test_epsilon_is_the_largest_ratio_of_all_events(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = random_law(rng), random_law(rng)
    found, both = losses_of(p, q), [*events(p, q), *events(q, p)]
    if any(b == 0 < a for a, b in both):
        assert found.infinite
        assert math.isinf(found.epsilon.lower)
        assert found.worst.p == max(a for a, b in both if b == 0)
        return
    largest = max(a / b for a, b in both if b)
    assert found.worst.p / found.worst.q == largest
    assert found.epsilon.lower <= log(largest) <= found.epsilon.upper
    laws = (p, q) if found.worst.first == 0 else (q, p)
    assert (found.worst.p, found.worst.q) in events(*laws)


@for_each("seed", SEEDS)
def test_delta_is_the_largest_excess_of_all_events(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = random_law(rng), random_law(rng)
    for epsilon in (0.0, 0.3, 1.0):
        excess = max(float(a) - math.exp(epsilon) * float(b) for a, b in [*events(p, q), *events(q, p)])
        found = losses_of(p, q).delta(epsilon)
        assert found.lower - 1e-14 <= excess <= found.upper + 1e-14
        assert found.upper - found.lower < 1e-15


@for_each("seed", SEEDS)
def test_epsilon_at_a_delta_is_the_least_that_all_events_allow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = random_law(rng), random_law(rng)
    both = [*events(p, q), *events(q, p)]
    for delta in (Fraction(0), Fraction(1, 10), Fraction(1, 3)):
        found = losses_of(p, q).epsilon_at(delta)
        if any(b == 0 and a > delta for a, b in both):
            assert math.isinf(found.lower)
        else:
            least = max(1, max((a - delta) / b for a, b in both if b))
            assert found.lower <= log(least) <= found.upper
            assert losses_of(p, q).delta(max(found.lower - 1e-9, 0.0)).upper >= delta or least == 1
            assert losses_of(p, q).delta(found.upper + 1e-15).lower <= delta


@for_each("seed", SEEDS)
def test_no_event_lies_above_the_curve_of_the_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = random_law(rng), random_law(rng)
    steps, both = losses_of(p, q).steps(0, 1), events(p, q)
    curve = [(Fraction(0), Fraction(0))]
    for more_p, more_q in steps:
        curve.append((curve[-1][0] + more_p, curve[-1][1] + more_q))
    assert curve[-1] == (1, 1)
    assert all(point in both for point in curve)
    for (p1, q1), (p2, q2) in itertools.pairwise(curve):
        assert all(a <= p1 + (p2 - p1) * (b - q1) / (q2 - q1) for a, b in both if q1 < b <= q2)
    ratios = [a / b if b else math.inf for a, b in steps]
    assert ratios == sorted(set(ratios), reverse=True)  # concave, and no vertex on a line


def test_of_equal_losses_the_likelier_event_is_the_worst() -> None:
    laws = [{0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}]
    rare = [{0: Fraction(1, 50), 1: Fraction(49, 50)}, {0: Fraction(1, 100), 1: Fraction(99, 100)}]
    worst = FiniteLosses.of(range(4), [(0, 1), (2, 3)], [*laws, *rare]).worst
    assert (worst.first, worst.second, worst.p, worst.q) == (0, 1, Fraction(1, 2), Fraction(1, 4))


def test_an_infinite_loss_is_worse_than_any_other() -> None:
    laws = [{0: Fraction(1, 10**9), 1: 1 - Fraction(1, 10**9)}, {1: Fraction(1)}]
    found = FiniteLosses.of([0, 1], [(0, 1)], laws)
    assert found.infinite
    assert found.delta(10**6).upper == pytest.approx(1e-9)
    assert found.epsilon_at(Fraction(1, 10**9)).upper == 0.0


def test_equal_laws_lose_nothing() -> None:
    found = FiniteLosses.of("ab", [(0, 1)], [{0: Fraction(1)}, {0: Fraction(1)}])
    assert (found.epsilon.lower, found.epsilon.upper, found.delta(0).upper, found.infinite) == (0.0, 0.0, 0.0, False)


def test_a_loss_beyond_the_doubles_is_still_finite() -> None:
    tiny = Fraction(1, 2**5000)
    found = FiniteLosses.of([0, 1], [(0, 1)], [{0: tiny, 1: 1 - tiny}, {0: 1 - tiny, 1: tiny}])
    assert found.epsilon.lower <= log(2**5000 - 1) <= found.epsilon.upper
    assert found.delta(3000).lower > 0.999  # e^3000 is no double either


@pytest.mark.parametrize("laws", [[{0: Fraction(1, 2)}, {0: Fraction(1)}], [{0: Fraction(2), 1: Fraction(-1)}] * 2])
def test_what_is_no_law_is_refused(laws: list[Law]) -> None:
    with pytest.raises(InvalidSpec, match="law 0 must have probabilities that sum to 1"):
        FiniteLosses.of([0, 1], [(0, 1)], laws)


def test_a_bound_is_for_the_delta_that_it_states() -> None:
    """One third as a double is less than one third, and the loss there is larger."""
    third = Fraction(1, 3)
    found = losses_of({0: Fraction(2, 3), 1: third}, {0: Fraction(1, 10**40), 1: 1 - Fraction(1, 10**40)})
    assert found.upper_bound(Fraction(2, 3)).epsilon_upper == found.epsilon_at(2 / 3).upper > 50.0
    assert found.epsilon_at(Fraction(2, 3)).upper < 0.41


def test_values_out_of_range_are_refused() -> None:
    found = losses_of({0: Fraction(1)}, {0: Fraction(1)})
    with pytest.raises(InvalidSpec, match="epsilon must be finite and at least 0, got -1"):
        found.delta(-1)
    with pytest.raises(InvalidSpec, match="delta must be a probability, got 2"):
        found.epsilon_at(2)
    with pytest.raises(InvalidSpec, match="places of two datasets"):
        FiniteLosses.of([0, 1], [(0, 2)], [{0: Fraction(1)}] * 2)
