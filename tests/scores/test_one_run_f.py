"""The one-run recursion for a whole curve: valid against the best mechanism, and the values of other tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.scores import counts
from dpaudit.scores.one_run import Guesses, curve_p_value, is_refuted, parameter_lower
from tests.cases import for_each
from tests.scores.naive import guess_vectors, largest_chance

ORACLE = json.loads(Path(__file__).with_name("oracle_values.json").read_text())["canary"]


@for_each(("canaries", "made"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
@for_each(("epsilon", "delta"), [(0.0, 0.1), (0.7, 0.0), (2.0, 0.01)])
def test_valid_no_mechanism_does_better(canaries: int, made: int, epsilon: float, delta: float) -> None:
    outputs = guess_vectors(canaries, made)
    for right in range(1, made + 1):
        best = largest_chance(canaries, epsilon, delta, outputs, lambda v, r, least=right: v >= least)
        claim = ApproximateDP(epsilon, delta)
        assert best <= curve_p_value(Guesses(right, made, canaries, fixed=True), claim) + 2e-6


def test_tight_where_all_guesses_are_right() -> None:
    best = largest_chance(3, 0.7, 0.01, guess_vectors(3, 3), lambda v, r: v == r)
    assert curve_p_value(Guesses(3, 3, 3, fixed=True), ApproximateDP(0.7, 0.01)) == pytest.approx(best, abs=1e-5)


def test_null_half_right_refutes_nothing() -> None:
    assert curve_p_value(Guesses(50, 100, 100, fixed=True), PureDP(0.0)) > 0.5
    assert not is_refuted(Guesses(0, 0, 10, fixed=True), PureDP(0.0).max_probability, 0.05)


def test_the_bound_and_the_p_value_agree() -> None:
    seen = Guesses(170, 200, 1000, fixed=True)
    bound = parameter_lower(None, PureDP(1.0), 0.05, seen)[0]
    assert curve_p_value(seen, PureDP(bound)) <= 0.05 < curve_p_value(seen, PureDP(bound + 1e-3))


def test_equals_the_values_of_other_tools() -> None:
    for (m, r, v), expected in zip(((1000, 200, 170), (500, 500, 400)), ORACLE["one_run_fdp"], strict=True):
        mu = parameter_lower(None, GaussianDP(1.0), 0.05, Guesses(v, r, m, fixed=True))[0]
        assert counts.epsilon_of_mu(mu, 1e-5) == pytest.approx(expected, abs=1e-4)
