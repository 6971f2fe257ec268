"""The statements on releases and attacks: their tables, simulations and bounds against independent values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from audits.lectures.claims import adversary, attacks_inference, attacks_models, releases, releases_linkage
from dpaudit.catalogue.attacks.on_tables import least_squares


def test_certainty_in_the_notes_tables() -> None:
    assert [releases.certainty(each) for each in releases.FOUR.values()] == [Fraction(1, 2), Fraction(1, 2), 1]
    assert [releases.certainty(each) for each in releases.SIX.values()] == [Fraction(1, 3), Fraction(1, 2)]
    assert releases.both(releases.FOUR[releases.YOUNG], releases.SIX[releases.BELOW_35]) == {"AIDS": 1}
    old = releases.both(releases.FOUR[releases.OLD], releases.SIX[releases.FROM_35])
    assert old == {"Cancer": Fraction(3, 7), "Viral Infection": Fraction(4, 7)}


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
