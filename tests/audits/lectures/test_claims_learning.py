"""The statements on learning: each check finds what is known, and its text holds its numbers."""

from __future__ import annotations

import math

from scipy import stats

from audits.lectures.claims.learning import STATEMENTS, learner_failures
from audits.lectures.claims.regressions import excess_risks, largest_move
from audits.lectures.claims.statement import Statement
from dpaudit.catalogue.learning.queries import sample_size
from tests.cases import for_each


@for_each("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_check_finds_what_is_known(statement: Statement) -> None:
    truth = statement.check()
    assert truth.verdict == statement.verdict
    assert truth.numbers
    assert all(math.isfinite(number) for number in truth.numbers.values())
    assert any(character.isdigit() for character in truth.text)


def test_names_are_unique() -> None:
    assert len({statement.name for statement in STATEMENTS}) == len(STATEMENTS)


def test_a_sample_that_is_much_too_small_fails_more_often_than_beta() -> None:
    """The converse of theorem 3.2: the simulation can tell. Seeded."""
    failed, missed = learner_failures(sample_size(3, 0.1, 1.0, 0.05) // 20, 5_000, seed=3)
    assert stats.binom.sf(int(missed * 5_000) - 1, 5_000, 0.05) < 1e-9
    assert failed <= missed


def test_optima_never_move_further_than_strong_convexity_allows() -> None:
    assert all(max(largest_move(weight, 6, seed=4)) <= 1.0 + 1e-9 for weight in (0.3, 0.5))


def test_noise_on_the_output_costs_its_closed_form_where_the_objective_is_flat() -> None:
    """Little noise: (J'' / 2) times the variance 2 scale^2, where J'' = lambda + the mean curvature of the loss."""
    output, _ = excess_risks(400, 0.2, 1.0)
    scale = 2.0 / (400 * 0.2)
    assert 0.2 * scale**2 < output < (0.2 + 0.25) * scale**2
