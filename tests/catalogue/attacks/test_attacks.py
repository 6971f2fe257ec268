"""What the attacks achieve without DP and with it, against exact values. Seeded; each fails by chance with <= 1e-8."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import dpaudit
from dpaudit.catalogue.attacks import ATTACKS, Attack, achieves, allowed, attacked, find, identified
from dpaudit.catalogue.attacks.on_aggregates import homer_advantage, member_score, people, the_last_grade
from dpaudit.catalogue.attacks.on_tables import (
    PEOPLE,
    QUERIES,
    SECRET,
    fraction_recovered,
    least_squares,
    linear_program,
    only,
    present,
    release,
)
from dpaudit.catalogue.releases import noisy_average, noisy_mean_vector
from dpaudit.catalogue.releases.counts import noise_of
from dpaudit.catalogue.releases.tables import most_queries_of_one, subsets
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

SIX = 6.0  # deviations; exceeded with probability 2e-9


def test_attacks_are_found_by_their_names() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 9
    assert all(find(attack.name) is attack for attack in ATTACKS)
    with pytest.raises(InvalidSpec, match="no attack 'guess'; there are: linkage, "):
        find("guess")


@for_each("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_attacker_is_right_without_dp_and_with_it_no_better_than_is_allowed(attack: Attack) -> None:
    """Both releases are claimed for the same two neighbours, so the claim of the private one bounds the advantage.

    The difference of two rates of n runs has a standard deviation of at most sqrt(1 / (2 n)).
    """
    claim = attack.private.claim()
    attack.pair.check(claim.relation)
    assert (claim.relation is not None, attack.pair.distance) == (True, 1)
    assert (attack.private.broken, attack.without.broken) == (False, True)
    assert attack.without.name.startswith(f"{attack.private.name}.")
    assert attack.without.claim() == claim
    assert all((attack.title, attack.formula, attack.source.lecture, attack.source.paper))
    found = achieves(attack, attack.without, 300, seed=1)
    assert found.advantage > 0.95 if attack.name == "averaging" else found.advantage == 1.0
    runs = min(attack.runs, 1_000) // 4 if attack.name.endswith("program") else min(attack.runs, 10_000)
    found = achieves(attack, attack.private, runs, seed=2)
    most = allowed(claim.epsilon, claim.delta)  # type: ignore[attr-defined]
    assert found.advantage <= most + SIX * math.sqrt(0.5 / runs)


def laplace_advantage(middle: float, scale: float) -> float:
    """A threshold in the middle of two worlds that lie `middle` from it on either side."""
    return 1.0 - math.exp(-middle / scale)


def difference_of_laplace(middle: float, scale: float) -> float:
    """The same for a difference of two independent Laplace draws, by quadrature."""
    law = stats.laplace(scale=scale)
    tail = integrate.quad(lambda z: law.pdf(z) * law.sf(middle - z), -60 * scale, 60 * scale, points=[0, middle])[0]
    return 1.0 - 2.0 * tail


@for_each(
    ("name", "exact"),
    [
        ("colluding_students", laplace_advantage(0.4, 1.0)),
        ("differencing", laplace_advantage(2.5, 40.0)),
        ("averaging", laplace_advantage(5.0, 10.0)),
        *((name, laplace_advantage(0.5, 1.0)) for name in ("linkage", "inverted_pseudonyms", "matched_ratings")),
        ("homogeneity", difference_of_laplace(1.0, 2.0)),
        ("background_knowledge", difference_of_laplace(1.0, 2.0)),
        ("refusal", difference_of_laplace(1.0, 20.0)),
    ],
)
def test_what_is_left_with_dp_is_what_the_noise_says(name: str, exact: float) -> None:
    attack, runs = find(name), 20_000
    assert achieves(attack, attack.private, runs, seed=3).advantage == pytest.approx(
        exact, abs=SIX * math.sqrt(0.5 / runs)
    )


# --- the bound ------------------------------------------------------------------------------------------------


@for_each(("epsilon", "delta"), [(0.0, 0.0), (0.1, 0.05), (1.0, 0.0), (1.0, 0.3), (4.0, 1e-5), (12.0, 0.5)])
def test_the_largest_advantage_is_that_of_a_linear_program(epsilon: float, delta: float) -> None:
    """Largest t - f among all (t, f) that DP leaves, in both orders, for the event and for its complement."""
    e = math.exp(epsilon)
    rows = [[1, -e], [-1, e], [-e, 1], [e, -1]]
    bounds = [delta, delta + e - 1, delta, delta + e - 1]
    found = optimize.linprog([-1.0, 1.0], A_ub=rows, b_ub=bounds, bounds=[(0, 1), (0, 1)], method="highs")
    assert allowed(epsilon, delta) == pytest.approx(-found.fun, abs=1e-9)
    assert 2.0 * identified(2, epsilon, delta) - 1.0 == pytest.approx(allowed(epsilon, delta))


def test_randomised_response_reaches_the_bounds() -> None:
    """Among k values it keeps the right one with e^epsilon / (e^epsilon + k - 1)."""
    for epsilon, k in ((0.1, 2), (1.0, 10), (3.0, 1000)):
        keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
        assert identified(k, epsilon) == pytest.approx(keep)
        assert k > 2 or allowed(epsilon) == pytest.approx(2.0 * keep - 1.0)
    assert identified(10, 0.0, 0.5) == 0.55, "all of delta, or a blind guess"
    assert allowed(800.0) == 1.0


# --- an attack in an audit ------------------------------------------------------------------------------------


@for_each(
    ("name", "given", "verdict"),
    [  # asked four times, the mean of the answers tells more than epsilon allows for one
        ("averaging", {"times": 4, "epsilon": 2.0}, dpaudit.Verdict.REFUTED),
        ("homogeneity", None, dpaudit.Verdict.NOT_REFUTED),
    ],
)
def test_an_attack_is_a_mechanism_that_can_be_audited(
    name: str, given: dict[str, Any] | None, verdict: dpaudit.Verdict
) -> None:
    attack = find(name)
    release = attack.private if given is None else attack.without.with_parameters(given)
    asked = {"pair": attack.pair, "claim": release.claim(), "confidence": 0.9999, "seed": 5, "n_jobs": 1}
    found = dpaudit.audit(attacked(attack, release), runs=60_000 if given else 5_000, backend="threading", **asked)  # type: ignore[arg-type]
    assert found.verdict is verdict


# --- tables ---------------------------------------------------------------------------------------------------


def test_conditions_of_a_group_in_different_runs() -> None:
    rows = np.array([["G | AIDS", "G | Flu"], ["G | Flu", "H | AIDS"], ["H | Flu", "H | Flu"]])
    assert present(rows, "G").astype(int).tolist() == [[1, 0, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0] * 6]
    assert only(present(rows, "G"), "Flu").tolist() == [False, True, False]
    assert only(present(rows, "G"), "Flu", ruled_out=("AIDS",)).tolist() == [True, True, False]


# --- membership -----------------------------------------------------------------------------------------------


def test_the_inner_product_test_over_random_cohorts() -> None:
    """Against the normal law of the scores: its error is of order 1 / d, beside the sampling error."""
    size, attributes, cohorts = 40, 400, 3_000
    rng = np.random.default_rng(6)
    member, stranger = people(cohorts, attributes, rng), people(cohorts, attributes, rng)
    mean = (2.0 * rng.binomial(size - 1, 0.5, (cohorts, attributes)) - (size - 1) + member) / size
    rates = [
        np.mean([member_score(p, m) > 0.5 / size for p, m in zip(each, mean, strict=True)])
        for each in (member, stranger)
    ]
    expected = homer_advantage(size, attributes)
    assert rates[0] - rates[1] == pytest.approx(expected, abs=SIX * math.sqrt(0.5 / cohorts) / 2 + 0.01)


def test_members_of_a_noisy_average_are_told_by_the_law_of_their_score() -> None:
    """One pair of datasets: the score is normal around the exact one, with the noise over sqrt(d)."""
    attack, runs = find("membership_in_an_average"), 4_000
    target = np.asarray(attack.pair.first)[0]
    spread = noise_of(40, 400, 1.0, 0.01) / math.sqrt(400)
    exact = [
        stats.norm.sf((0.5 / 40 - float(member_score(target, np.asarray(data).mean(axis=0)))) / spread)
        for data in attack.pair.open()
    ]
    found = achieves(attack, attack.private, runs, seed=7)
    assert found.true_positive == pytest.approx(exact[0], abs=SIX * 0.5 / math.sqrt(runs))
    assert found.false_positive == pytest.approx(exact[1], abs=SIX * 0.5 / math.sqrt(runs))
    assert noisy_mean_vector.true_epsilon(*attack.pair.open()) < 1.0  # type: ignore[operator]


# --- reconstruction -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", [least_squares, linear_program], ids=["squares", "program"])
def test_exact_counts_give_every_bit_away(decoder: object) -> None:
    exact = release(PEOPLE, QUERIES).exact
    assert fraction_recovered(decoder, exact, SECRET, 2, seed=8) == 1.0  # type: ignore[arg-type]


def test_a_linear_program_bears_counts_that_are_far_off() -> None:
    """Ten of 72 counts are replaced by nonsense: squares are led astray, absolute differences are not."""
    counts = (subsets(PEOPLE, QUERIES) @ SECRET).astype(float)
    counts[:10] += 40.0
    hidden = np.array(SECRET, bool)
    assert np.mean(linear_program(counts[None], PEOPLE)[0] == hidden) == 1.0
    assert np.mean(least_squares(counts[None], PEOPLE)[0] == hidden) < 0.9


def test_least_squares_finds_what_its_normal_error_says() -> None:
    """The error of a bit is a weighted sum of Laplace draws: nearly normal, with the variance of the weights."""
    entry, runs = release(PEOPLE, QUERIES, epsilon=30.0), 4_000
    scale = most_queries_of_one(PEOPLE, QUERIES) / 30.0
    weights = np.linalg.pinv(subsets(PEOPLE, QUERIES).astype(float))
    deviation = scale * np.sqrt(2.0 * np.sum(weights**2, axis=1))
    expected = float(np.mean(stats.norm.cdf(0.5 / deviation)))
    found = fraction_recovered(least_squares, entry, SECRET, runs, seed=9)
    assert found == pytest.approx(expected, abs=0.02)


def test_with_dp_a_bit_is_found_little_better_than_by_a_coin() -> None:
    found = fraction_recovered(least_squares, release(PEOPLE, QUERIES), SECRET, 2_000, seed=10)
    assert abs(found - 0.5) < 0.05
    assert found < 1.0 / (1.0 + math.exp(-1.0))


def test_two_worlds_of_the_students() -> None:
    """The grade that the students work out is exact to rounding."""
    for data in noisy_average.default_pair:
        assert the_last_grade(np.array([noisy_average.exact.run(data, np.random.default_rng(0))])) == pytest.approx(
            data[0]
        )
