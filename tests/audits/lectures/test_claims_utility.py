"""Utility, conversions, examples and knowledge: checks find what is known, and chances are those of exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from audits.lectures.claims import conversions, examples, knowledge, utility, utility_queries
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.losses.comparisons import halting, winning
from tests.cases import for_each

MODULES = (utility, conversions, examples, knowledge)
STATEMENTS = tuple(statement for module in MODULES for statement in module.STATEMENTS)
BY_NAME = {statement.name: statement for statement in STATEMENTS}


@pytest.fixture(scope="module")
def truths() -> dict[str, Truth]:
    return {statement.name: statement.check() for statement in STATEMENTS}


@for_each("statement", STATEMENTS, ids=list(BY_NAME))
def test_the_check_finds_what_is_known(statement: Statement, truths: dict[str, Truth]) -> None:
    truth = truths[statement.name]
    assert truth.verdict == statement.verdict
    assert truth.text.endswith(".")
    assert statement.quote
    assert all(math.isfinite(value) for value in truth.numbers.values())


@for_each("statement", [each for each in STATEMENTS if each.figure], ids=lambda each: each.name)
def test_a_figure_has_lines(statement: Statement) -> None:
    assert statement.figure is not None
    axes = Canvas().subplots()
    statement.figure.draw(axes)
    assert axes.lines
    assert axes.get_legend() is not None


@for_each(
    ("name", "number", "value"),
    [
        ("exponential-mechanism-utility", "ten", 0.9 / (1.0 + 0.9 * math.exp(-5.0))),
        ("accuracy-and-noise", "number at 1", 1.0 - math.exp(-3.0)),
        ("concentration-at-zero", "error", 1.0 / math.sinh(1.0)),
        ("two-prices", "moved up", 1.0 + math.log(2.5)),
        ("two-prices", "lower price", 1.9676),
        ("scale-and-shift", "loss", 1000.0),
        ("zcdp-conversions", "rho at 1", math.tanh(0.5)),
        ("zcdp-conversions", "simple", 5.2985),
        ("zcdp-decay", "xi of the way back", math.sqrt(math.pi / 2.0)),
        ("smoker", "most", 0.2 * math.e / (0.2 * math.e + 0.8)),
        ("mean-on-a-grid", "mean", 400.0 / 108.0),
        ("mean-on-a-grid", "common", 6.0),
        ("two-interpretations", "four databases", 4.0),
        ("binoculars", "highest", 1.0 / (1.0 + math.exp(-1.0))),
        ("benign-facts", "one", 0.015 / (0.015 + 0.99)),
        ("side-information", "largest", 1.0),
        ("groups-preclude-learning", "at least", 1.0 / (1.0 + math.e)),
    ],
)
def test_the_numbers(name: str, number: str, value: float, truths: dict[str, Truth]) -> None:
    assert truths[name].numbers[number] == pytest.approx(value, abs=5.1e-5)


# --- the chances of being right, by the losses' own integrals -------------------------------------------------


def test_the_chance_of_the_leader_is_that_of_the_race() -> None:
    for counts, gap, scale in ((2, 0.5, 1.0), (5, 3.0, 2.0), (12, 7.0, 1.5)):
        expected = winning(np.array([gap] + [0.0] * (counts - 1)), scale)[0]
        assert utility_queries.leads(counts, gap, scale) == pytest.approx(expected, abs=1e-10)


def test_the_chance_of_the_first_top_is_that_of_above_threshold() -> None:
    for bottoms, gap, scale in ((0, 1.0, 2.0), (1, 4.0, 2.0), (9, 20.0, 3.0)):
        law = halting(np.array([-gap] * bottoms + [gap]), 0.0, scale, 2.0 * scale)
        assert utility_queries.first_top(bottoms, gap, scale) == pytest.approx(law[bottoms], abs=1e-10)


def test_no_order_of_the_tops_is_worse_than_an_even_one() -> None:
    """All ways to put three tops among nine answers, each top with the bottoms before it; the last answer is a top."""
    gap, scale = 30.0, 6.0
    chances = {
        math.prod(
            utility_queries.first_top(after - before - 1, gap, scale) for before, after in itertools.pairwise((-1, *at))
        )
        for at in itertools.product(range(9), repeat=3)
        if at[0] < at[1] < at[2] == 8
    }
    assert utility_queries.sparse_right(9, 3, gap, 1.0) == pytest.approx(min(chances), abs=1e-12)
    assert max(chances) > min(chances)


def test_the_least_gap_is_where_the_chance_is() -> None:
    for queries, tops in ((10, 1), (500, 7)):
        gap = utility_queries.gap_of(queries, tops)
        assert 1.0 - utility_queries.sparse_right(queries, tops, gap, 1.0) == pytest.approx(
            utility_queries.BETA, rel=1e-6
        )
    gap = utility_queries.gap_of_all(50)
    assert (1.0 - math.exp(-gap / 50.0) / 2.0) ** 50 == pytest.approx(1.0 - utility_queries.BETA)


def test_the_cost_of_moved_noise_is_its_mean() -> None:
    at = np.linspace(-60.0, 60.0, 240_001)
    law = np.exp(-np.abs(at - 0.7) / 1.5) / 3.0
    mean = float(np.sum(law * np.where(at > 0.0, at, -4.0 * at)) * (at[1] - at[0]))
    assert utility.laplace_cost(0.7, 1.5, 4.0, 1.0) == pytest.approx(mean, abs=1e-6)


# --- conversions ----------------------------------------------------------------------------------------------


def test_the_tail_of_normal_noise_and_the_least_rho() -> None:
    losses = np.random.default_rng(3).normal(0.5, 1.0, 200_000)  # N(rho, 2 rho) at rho = 0.5
    share = conversions.normal_tail(1.0, 0.5)
    assert abs(float(np.mean(losses > 1.5)) - share) < 6.0 * math.sqrt(share / len(losses))  # by chance: 2e-9
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    assert conversions.concentrated(p, q) == pytest.approx(math.log(3.0) / 2.0, rel=1e-3)  # the relative entropy
