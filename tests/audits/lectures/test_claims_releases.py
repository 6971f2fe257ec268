"""The statements on releases and attacks: verdicts as known, their numbers against independent values."""

from __future__ import annotations

import math
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from scipy import stats

from audits.lectures.claims import adversary, attacks, attacks_inference, attacks_models, releases, releases_linkage
from audits.lectures.claims.statement import Statement
from dpaudit.catalogue.attacks.on_tables import least_squares
from dpaudit.spec.reading import find_specs
from tests.cases import for_each

AUDITS = Path(__file__).parents[3] / "audits"
ALL = (*releases.STATEMENTS, *attacks.STATEMENTS, *adversary.STATEMENTS)
BY_NAME = {statement.name: statement for statement in ALL}


@for_each("statement", ALL, ids=lambda statement: statement.name)
def test_the_check_of_a_release_finds_what_is_known(statement: Statement) -> None:
    truth = statement.check()
    assert truth.verdict == statement.verdict
    assert truth.text.endswith(".")
    assert "nan" not in truth.text
    assert all(math.isfinite(value) for value in truth.numbers.values())
    assert len(statement.says) <= 240
    assert all(0 < len(words) <= 400 for words, _ in statement.quotations)
    assert statement.quotations
    assert statement.place.split(", ")[1].startswith("notes 00")


def test_statements_on_releases_have_names_of_their_own_and_audits_that_are_there() -> None:
    assert len(BY_NAME) == len(ALL) >= 30
    written = {
        table["name"] for path in find_specs([AUDITS]) for table in tomllib.loads(path.read_text("utf-8"))["audit"]
    }
    assert {name for statement in ALL for name in statement.audits} <= written


@pytest.mark.parametrize("statement", [each for each in ALL if each.figure], ids=lambda statement: statement.name)
def test_a_figure_of_an_attack_has_lines(statement: Statement) -> None:
    assert statement.figure is not None
    axes = Canvas().subplots()
    statement.figure.draw(axes)
    assert axes.has_data()
    assert axes.get_legend() is not None
    assert axes.get_xlabel()
    assert axes.get_ylabel()


def test_certainty_in_the_notes_tables() -> None:
    assert [releases.certainty(each) for each in releases.FOUR.values()] == [Fraction(1, 2), Fraction(1, 2), 1]
    assert [releases.certainty(each) for each in releases.SIX.values()] == [Fraction(1, 3), Fraction(1, 2)]
    assert releases.both(releases.FOUR[releases.YOUNG], releases.SIX[releases.BELOW_35]) == {"AIDS": 1}
    old = releases.both(releases.FOUR[releases.OLD], releases.SIX[releases.FROM_35])
    assert old == {"Cancer": Fraction(3, 7), "Viral Infection": Fraction(4, 7)}


def test_noise_without_end_is_needed() -> None:
    numbers = releases.check_zero_mean_noise().numbers
    assert numbers["delta of whole noise"] == pytest.approx(1 / 5)
    assert numbers["delta of random rounding"] == pytest.approx(1 / 3)


def test_an_office_of_twenty() -> None:
    """When the noisy count is 20 or more, every way to get there without her is e times as unlikely as with her."""
    numbers = releases.check_all_attended().numbers
    assert numbers["odds at 20"] == pytest.approx(math.e)
    assert numbers["largest odds"] == pytest.approx(math.e)


def test_how_often_an_auditor_refuses() -> None:
    """The last of four is alone the largest: sum over its value v of (v - 1)^3 / 10^4."""
    numbers = releases.check_query_auditing().numbers
    assert numbers["refused"] == pytest.approx(sum((v - 1) ** 3 for v in range(1, 11)) / 10**4)
    assert numbers["told"] == 1.0


def test_sets_of_grades_that_fit() -> None:
    numbers = attacks.check_drop_out().numbers
    assert numbers["sets of 2 that fit"] == sum(a <= 13 - a <= 10 for a in range(11))
    assert numbers["sets of 1 that fit"] == 1


def test_errors_of_collusion_and_averaging() -> None:
    """A median of 20,000 Laplace errors: its deviation is b / sqrt(20,000)."""
    assert attacks.check_collusion().numbers["median error"] == pytest.approx(10 * math.log(2), abs=6 * 10 / 141)
    assert attacks.check_differencing().numbers["median error"] == pytest.approx(40 * math.log(2), abs=6 * 40 / 141)
    for times in (4, 400):
        expected = 10 * math.sqrt(2 / times)
        assert attacks.check_averaging().numbers[f"error at {times}"] == pytest.approx(expected, rel=0.12)


def test_the_inner_product_test_with_noise_by_simulation() -> None:
    """Score times n: normal around 1 and 0; the variance of the noise adds to that of the cohort."""
    n, d, runs = attacks_inference.PATIENTS, attacks_inference.VARIANTS, 4_000
    sigma = attacks_inference.noise_of(n, d, 3.0, attacks_inference.DELTA)
    rng = np.random.default_rng(11)
    person = 2.0 * rng.integers(0, 2, (runs, d)) - 1.0
    rest = 2.0 * rng.binomial(n - 1, 0.5, (runs, d)) - (n - 1)
    other = 2.0 * rng.integers(0, 2, (runs, d)) - 1.0
    noise = sigma * rng.standard_normal((runs, d))
    rates = [np.mean(((rest + each) / n + noise) * person @ np.full(d, 1 / d) > 0.5 / n) for each in (person, other)]
    assert rates[0] - rates[1] == pytest.approx(attacks_inference.homer_with_noise(3.0), abs=6 * math.sqrt(0.5 / runs))


def test_no_release_gives_more_bits_than_epsilon_allows() -> None:
    for epsilon in (1.0, 3.0):
        found = attacks_inference.recovered(least_squares, epsilon, 500)
        assert found < attacks_inference.most_bits(epsilon)
    assert attacks_inference.most_bits(0.0) == 0.5
    assert attacks_inference.most_bits(1.0) == pytest.approx(stats.logistic.cdf(1.0))


def test_how_many_are_alone_in_a_town() -> None:
    """With c equally likely combinations a person is alone with (1 - 1/c)^(n - 1); the shares deviate by 0.01."""
    expected = {"date of birth": 60 * 365, "date of birth and sex": 2 * 60 * 365, "all three": 14 * 60 * 365}
    for name, combinations in expected.items():
        alone = releases_linkage.alone(releases_linkage.KNOWN[name])
        assert alone == pytest.approx((1 - 1 / combinations) ** (releases_linkage.TOWN - 1), abs=0.025)


def test_one_of_ten_candidates_is_named_no_more_often_than_epsilon_allows() -> None:
    """400 runs in each of ten worlds: six deviations."""
    for attack, epsilon in (("last", 3.0), ("joined", 3.0), ("last", 100.0)):
        found = attacks_models.found_out(attack, epsilon)
        assert found <= math.exp(epsilon) / (math.exp(epsilon) + 9) + 6 * 0.5 / math.sqrt(4_000)
    assert found > 0.5, "with little noise most are named"


def test_what_no_change_of_a_record_shows() -> None:
    assert adversary.unchanged_functions(2) == (64, 2, 2)
