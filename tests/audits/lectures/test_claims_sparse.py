"""The statements on the sparse vector technique and on Thresholdout: verdicts and numbers, all exact."""

from __future__ import annotations

import pytest

from audits.lectures.claims import holdout, sparse, sparse_composed
from audits.lectures.claims.statement import Statement
from dpaudit.catalogue import find
from tests.cases import for_each

ALL = (*sparse.STATEMENTS, *holdout.STATEMENTS)


@for_each("statement", ALL, ids=lambda statement: statement.name)
def test_the_check_finds_what_is_known(statement: Statement) -> None:
    truth = statement.check()
    assert truth.verdict == statement.verdict
    assert truth.numbers
    assert "nan" not in truth.text


def test_a_promise_is_judged_by_the_loss_found() -> None:
    assert sparse.of_bound(1.01, 1.0) == "wrong"
    assert sparse.of_bound(0.999, 1.0) == "right and tight"
    assert sparse.of_bound(0.5, 1.0) == "right and loose"


@pytest.mark.parametrize(("epsilon", "delta", "value"), [(1.0, 1e-2, 1.109), (5.0, 1e-6, 5.919)])
def test_advanced_composition_gives_more_than_promised(epsilon: float, delta: float, value: float) -> None:
    assert sparse_composed.advanced(epsilon, 1_000, delta) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize(("delta", "epsilon"), [(1e-2, 6.27), (1e-4, 7.59), (1e-6, 8.47), (1e-9, 9.47)])
def test_optimal_composition_saves_moderate_epsilons(delta: float, epsilon: float) -> None:
    assert sparse_composed.largest_saved(1_000, delta) == pytest.approx(epsilon, abs=0.01)


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(8.0, 1e-2, 2.27), (20.0, 1e-6, 186.6)])
def test_beyond_them_delta_is_exceeded(epsilon: float, delta: float, times: float) -> None:
    assert sparse_composed.excess(epsilon, 1_000, delta) == pytest.approx(times, rel=0.01)


def test_the_epochs_of_the_printed_line_add_up() -> None:
    exact = find("sparse.printed_halt").true_epsilon(*sparse.repeated(3, 3), {"c": 2})
    assert sparse.halting_as_printed(3, 2) == pytest.approx(exact)
