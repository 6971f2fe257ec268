"""Releases: the tables of the notes, row for row, what is left out, sensitivities over grids, and what draws show.

Random tests have fixed seeds, and fail by chance with probability at most 1e-8 each.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.attacks.on_tables import PLATES, joined, match, register
from dpaudit.catalogue.releases.counts import AREAS, CELLS
from dpaudit.catalogue.releases.tables import (
    DECADES,
    HOSPITAL_A,
    HOSPITAL_B,
    cell,
    counts,
    decade,
    fit,
    half,
    k_anonymous,
    most_queries_of_one,
    population,
    subsets,
)
from dpaudit.claims import PureDP
from dpaudit.losses.distribution import gaussian_delta, gaussian_mu
from dpaudit.losses.released import random_rounding_loss, rounded_noise_loss
from tests.cases import for_each
from tests.catalogue.laws import Laplace, loss_of, rounding, whole

LEVEL = 1e-8
RNG = np.random.default_rng(0)  # for programs that draw nothing
SIZES = (3, 6, 5, 4, 1, 4)
AGES = {
    "<30": ["AIDS", "Heart Disease", "Viral Infection", "Viral Infection"],
    "≥40": ["Cancer", "Heart Disease", "Viral Infection", "Viral Infection"],
    "3*": ["Cancer"] * 4,
    "<35": ["AIDS", "Tuberculosis", "Flu", "Tuberculosis", "Cancer", "Cancer"],
    "≥35": ["Cancer", "Cancer", "Cancer", "Tuberculosis", "Viral Infection", "Viral Infection"],
}


def people(*sizes: int) -> list[tuple[str, str]]:
    return [cell for cell, size in zip(CELLS, sizes, strict=True) for _ in range(size)]


def drawn(name: str, data: Any, runs: int, **given: Any) -> Any:
    return find(name).with_parameters(given).open().call(data, runs, np.random.Generator(np.random.SFC64(1)))


# --- tables -------------------------------------------------------------------------------------------------------


@for_each(
    ("records", "k", "group", "ages", "twin"),
    [
        (HOSPITAL_A, 4, decade, ("<30", "≥40", "3*"), "four_anonymous"),
        (HOSPITAL_B, 6, half, ("<35", "≥35"), "six_anonymous"),
    ],
)
def test_the_records_generalise_to_the_table_of_the_notes(
    records: Any, k: int, group: Any, ages: tuple[str, ...], twin: str
) -> None:
    rows = tuple(f"130** | {age} | * | {condition}" for age in ages for condition in AGES[age])
    assert k_anonymous(records, k, group) == rows == find(f"noisy_table.{twin}").run(records, RNG)
    assert k_anonymous(records, k + 1, group) == ()
    assert min(Counter(row.rpartition(" | ")[0] for row in rows).values()) == k


def test_the_patient_of_both_hospitals() -> None:
    twin = find("two_noisy_tables.both_k_anonymous")
    both = [row[3:] for row in twin.run(twin.default_pair[0], RNG)]
    assert both == [*k_anonymous(HOSPITAL_A, 4, decade), *k_anonymous(HOSPITAL_B, 6, half)]
    assert HOSPITAL_A[0] == HOSPITAL_B[0]
    assert len(k_anonymous(HOSPITAL_A[1:], 4, decade)) == 8, "a group that becomes too small is left out"


def test_pseudonyms_are_a_random_order_of_the_same_rows() -> None:
    rows = drawn("noisy_table.pseudonymised", HOSPITAL_A, 24_000)
    expected = [" | ".join(map(str, record)) for record in HOSPITAL_A]
    assert all(sorted(row) == sorted(expected) for row in rows[:50].tolist())
    seen = Counter(rows[:, 7].tolist())
    assert stats.chisquare([seen[row] for row in expected]).pvalue > LEVEL
    pairs = Counter(zip(rows[:, 0].tolist(), rows[:, 1].tolist(), strict=True))
    possible = list(itertools.permutations(expected, 2))
    assert stats.chisquare([pairs[pair] for pair in possible]).pvalue > LEVEL


def test_the_place_of_a_count() -> None:
    exact = counts(HOSPITAL_A, decade, DECADES)
    assert (exact[cell("3*", "Cancer")], exact[cell("≥40", "Viral Infection")]) == (4, 2)
    assert sum(exact) == len(HOSPITAL_A)


def test_names_are_left_out_or_hashed() -> None:
    rows = [("b", "x", 3.0), ("a", "y", 40.0), ("c", "x", -2.0)]
    assert find("noisy_column.without_names").run(rows, RNG) == ("x | -2", "x | 3", "y | 40")
    expected = sorted(f"{hashlib.md5(name.encode()).hexdigest()} | {number:g}" for name, _, number in rows)
    assert list(find("noisy_column.hashed_names").run(rows, RNG)) == expected


def test_a_join_names_who_is_alone_on_both_sides() -> None:
    names = register([("Ann", "1"), ("Bob", "2"), ("Tom", "3"), ("Una", "3")])
    assert joined(["1 | 5", "2 | 6", "2 | 7", "3 | 8", "4 | 9"], names) == {"Ann": 5.0}
    assert len(PLATES) == 26_000
    assert PLATES[hashlib.md5(b"7X42").hexdigest()] == "7X42"


def test_ratings_are_matched_by_the_rare_film_and_not_by_chance() -> None:
    tables = [{0: (5, 100), 7: (1, 300)}, {0: (5, 100)}, {0: (5, 104), 9: (2, 50)}, {0: (4, 99)}, {8: (1, 1)}]
    assert match(tables, {0: (5, 100), 7: (2, 310)}) == 0
    assert match(tables, {0: (5, 100)}) is None, "three fit alike"
    assert match(tables, {7: (5, 1900)}) == 0, "a wrong rating of a film that nobody else rated"


# --- counts -------------------------------------------------------------------------------------------------------


@for_each("base", [2, 3, 5])
def test_the_losses_of_rounded_counts_are_those_of_their_laws(base: int) -> None:
    for p, q in itertools.product(range(12), repeat=2):
        expected = loss_of(rounding(p, base), rounding(q, base), PureDP(1.0))
        assert random_rounding_loss([p, 4], [q, 4], base) == pytest.approx(expected, abs=1e-9)
        laws = [whole(Laplace(count / base, 0.7 / base), 0, 40) for count in (p, q)]
        assert rounded_noise_loss([p], [q], 0.7, base) == pytest.approx(loss_of(*laws, PureDP(1.0)), rel=1e-5)


@for_each("rate", [0.0, 0.1, 0.6, 1.0])
def test_swapping_keeps_both_totals(rate: float) -> None:
    outputs = drawn("noisy_counts.swapped", people(*SIZES), 4_000, rate=rate).reshape(-1, len(AREAS), 2)
    exact = np.array(SIZES).reshape(len(AREAS), 2)
    assert (outputs.sum(axis=2) == exact.sum(axis=1)).all()
    assert (outputs.sum(axis=1) == exact.sum(axis=0)).all()
    assert (outputs == exact).all(axis=(1, 2)).any()
    assert rate or (outputs == exact).all()


def test_what_is_left_out() -> None:
    data, of = people(*SIZES), find("noisy_counts")
    assert of.small_cells_left_out.run(data, RNG) == {1: 6.0, 2: 5.0}
    groups = of.small_groups_left_out.with_parameters({"least": 6}).run(data, RNG)
    assert groups == {0: 3.0, 1: 6.0, 2: 5.0, 3: 4.0}
    assert of.empty_left_out.run(people(3, 0, 5, 0, 1, 4), RNG).keys() == {0, 2, 4, 5}
    assert of.rounded.run(people(2, 3, 7, 8, 12, 13), RNG) == (0, 5, 5, 10, 10, 15)
    assert find("noisy_sum.refused").run([1, 2, 3, 4], RNG) == {}
    assert find("noisy_sum.refused").run([1, 2, 3, 4, 5], RNG) == {0: 15.0}
    for maxima in itertools.product(range(4), repeat=3):  # a refused largest value is the last one
        answers = find("noisy_maxima.query_auditing").run(maxima, RNG)
        assert (1 in answers) == (max(maxima[:-1]) == max(maxima))
        assert 1 in answers or answers[0] == maxima[-1]


def test_the_subsets_are_public_and_fixed() -> None:
    assert np.array_equal(subsets(8, 6), subsets.__wrapped__(8, 6))
    assert not subsets(8, 6).flags.writeable
    assert most_queries_of_one(8, 6) == max(sum(column) for column in zip(*subsets(8, 6).tolist(), strict=True)) == 5


# --- averages and models ------------------------------------------------------------------------------------------


@for_each(("epsilon", "delta"), [(1.0, 1e-5), (5.0, 0.001)])
def test_the_shift_of_normal_noise_is_scipys_root_of_the_exact_delta(epsilon: float, delta: float) -> None:
    shift = optimize.brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-6, 50.0, xtol=1e-13)
    assert gaussian_mu(epsilon, delta) == pytest.approx(shift, rel=1e-8)


def test_the_coefficients_are_the_smallest_of_their_objective() -> None:
    patients = population(12, 3, 0)
    table = np.array([[*np.divide(x, max(1.0, np.linalg.norm(x))), label] for *x, label in patients])

    def objective(w: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -table[:, -1] * (table[:, :-1] @ w)).mean() + 0.2 * w @ w)

    assert fit(patients, 0.4) == pytest.approx(optimize.minimize(objective, np.zeros(4), tol=1e-10).x, abs=1e-5)


def test_models_before_and_after() -> None:
    entry = find("noisy_models")
    data = entry.default_pair[0]
    assert np.reshape(entry.exact.run(data, RNG), (2, -1)) == pytest.approx(
        np.array([fit(data[:-1], 0.4), fit(data, 0.4)])
    )
    assert len(entry.labels_only.run(data, RNG)) == 42
