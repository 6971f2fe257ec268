"""The statements on learning: what their simulations and closed forms stand on."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from scipy.linalg import hadamard

from audits.lectures.claims.learning_classes import ALPHA, BETA, CLASSES, Class, at_most, errors
from audits.lectures.claims.learning_parities import answers, drawn, eliminated, elimination_law, reduced
from audits.lectures.claims.private_erm import excess_risks, simulated
from audits.lectures.claims.regressions import largest_move
from tests.cases import for_each


@for_each("learned_class", CLASSES, ids=lambda each: each.title)
def test_a_sample_that_is_much_too_small_fails_more_often_than_beta(learned_class: Class) -> None:
    """The converse of theorem 3.2: the simulation can tell. Seeded."""
    failed = int(np.sum(errors(learned_class, learned_class.records // 1000 + 1, 200, seed=3) > ALPHA))
    assert stats.binom.sf(failed - 1, 200, BETA) < 1e-9


def test_no_failure_in_200_samples_is_less_than_beta() -> None:
    assert at_most(0, 200) < BETA < at_most(1, 200)


def test_a_parity_is_the_only_one_that_its_own_query_tells() -> None:
    """psi(x, y) = [y is the parity s of x] is 1 for s and 1/2 for the others; a mean of labels tells none."""
    sign = hadamard(16, dtype=float)[5]
    told = answers((1.0 + sign) / 2.0, (1.0 - sign) / 2.0)
    assert told.tolist() == [1.0 if s == 5 else 0.5 for s in range(16)]
    assert answers(np.zeros(16), np.ones(16)).tolist() == [0.0, *[0.5] * 15]


def test_elimination_needs_as_many_records_as_bits() -> None:
    """Full rank of m random vectors of n bits: the product of 1 - 2^-(m - i). A chance of 1e-9 to fail."""
    assert eliminated(6, 5, 50, seed=0) == 0.0
    exact = math.prod(1.0 - 2.0 ** -(8 - i) for i in range(6))
    assert abs(eliminated(6, 8, 1_000, seed=1) - exact) < 6.2 * math.sqrt(exact * (1.0 - exact) / 1_000)


def test_elimination_solves_what_can_be_solved() -> None:
    """Every solution that is drawn fits the equations, all of them are drawn, and a contradiction is seen."""
    rows, rng = [0b1_0110, 0b0_0011, 0b1_0101], np.random.default_rng(2)  # the last is the sum of the others
    basis = reduced(rows, 4)
    assert basis is not None
    assert len(basis) == 2
    fits = {s for s in range(16) if all(((row & s & 15).bit_count() & 1) == row >> 4 for row in rows)}
    assert {drawn(basis, 4, rng) for _ in range(400)} == fits  # one of the four is missed with 4 (3/4)^400
    assert reduced([*rows, 0b0_0101], 4) is None


def test_the_law_of_private_elimination_is_one() -> None:
    """One record x = 1, y = 1 of one bit: nothing with 1/2; s = 1 with (p + (1 - p) / 2) / 2, p = epsilon / 4."""
    assert np.allclose(elimination_law([0b11], 1), [0.75 / 4.0, (0.25 + 0.75 / 2.0) / 2.0, 0.5])


def test_optima_never_move_further_than_strong_convexity_allows() -> None:
    assert all(max(largest_move(weight, 6, seed=4)) <= 1.0 + 1e-9 for weight in (0.3, 0.5))


def test_noise_on_the_output_costs_its_closed_form_where_the_objective_is_flat() -> None:
    """Little noise: (J'' / 2) times the variance 2 scale^2, where J'' = lambda + the mean curvature of the loss."""
    output, _ = excess_risks(400, 0.2, 1.0)
    scale = 2.0 / (400 * 0.2)
    assert 0.2 * scale**2 < output < (0.2 + 0.25) * scale**2


def test_the_excess_falls_with_the_square_of_the_records_and_tells_where_it_is_exact() -> None:
    """Four times the records: a sixteenth, by both kinds of noise; seeded, and the same noise in both."""
    for few, many in zip(simulated(2, 1000), simulated(2, 4000), strict=True):
        assert 10.0 < few.mean / many.mean < 25.0
        assert few.mean < few.mean_bound
        assert few.mean_bound / many.mean_bound > 15.0
