"""The statements on composition: each check finds what is known, and its figures are those worked out by hand."""

from __future__ import annotations

import math

import pytest
from matplotlib.figure import Figure

from audits.lectures.claims.composition import STATEMENTS
from audits.lectures.claims.composition_advanced import judged
from audits.lectures.claims.statement import Statement, Truth
from tests.cases import for_each

BY_NAME = {statement.name: statement for statement in STATEMENTS}


def truth(name: str) -> Truth:
    return BY_NAME[name].check()


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(STATEMENTS) == 16


@for_each("statement", STATEMENTS, ids=lambda each: each.name)
def test_a_check_finds_what_is_known(statement: Statement) -> None:
    found = statement.check()
    assert found.verdict == statement.verdict
    assert found.text.endswith(".")
    assert not any(math.isnan(value) for value in found.numbers.values())


@for_each(
    ("name", "number", "value"),
    [
        ("advanced-composition", "10,000 of 1/800", 1.0156),
        ("advanced-composition-sharper", "10,000 of 1/800", 1.0078),
        ("advanced-composition-sharper", "optimal", 0.8916),
        ("advanced-composition", "10 of 0.1", 1.7674),
        ("advanced-composition-sharper", "10 of 0.1", 1.7123),
        ("advanced-composition", "10 of 0.1, optimal", 0.9994),
        ("replace-one", "histogram", 2.0),
        ("replace-one", "single count", 1.0),
        ("replace-one", "delta, times", 1.0 + math.e),
        ("one-in-10000", "loss", 1.0),
        ("total-privacy-loss", "at delta 1e-6", 4.775),
    ],
)
def test_numbers(name: str, number: str, value: float) -> None:
    assert truth(name).numbers[number] == pytest.approx(value, abs=6e-4)


def test_what_an_epsilon_of_one_allows() -> None:
    numbers = truth("one-in-800").numbers
    assert [round(numbers[word], 1) for word in ("notes 001", "notes 004", "optimal")] == [812.3, 806.2, 715.5]


def test_where_the_short_rule_ends() -> None:
    numbers = truth("short-rule").numbers
    assert numbers["saved up to"] == pytest.approx(6.27, abs=0.01)
    assert numbers["at 8 and 0.01"] == pytest.approx(2.3, abs=0.05)
    assert numbers["at 20 and 1e-6"] == pytest.approx(187, abs=0.6)


def test_verdicts_follow_from_ratios() -> None:
    assert (judged([0.5, 1.01]), judged([0.5, 0.999]), judged([0.5])) == ("wrong", "right and tight", "right and loose")


def test_the_figure_shows_four_bounds() -> None:
    figure = BY_NAME["advanced-composition"].figure
    assert figure is not None
    axes = Figure().subplots()
    figure.draw(axes)
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert len(lines) == 4
    optimal = lines["optimal (exact)"]
    assert all(
        all(best <= bound * (1 + 1e-9) for best, bound in zip(optimal, line, strict=True)) for line in lines.values()
    )
