"""The tables of the notes, row for row, and the laws of the noisy tables. Each fails by chance with <= 1e-8."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue.attacks.on_tables import PLATES, joined, match, register
from dpaudit.catalogue.releases import noisy_column, noisy_table, two_noisy_tables
from dpaudit.catalogue.releases.tables import (
    CONDITIONS,
    DECADES,
    HOSPITAL_A,
    HOSPITAL_B,
    cell,
    changed,
    counts,
    decade,
    half,
    k_anonymous,
)

LEVEL = 1e-8
RNG = np.random.default_rng(0)  # for programs that draw nothing

FOUR = {
    "<30": ["AIDS", "Heart Disease", "Viral Infection", "Viral Infection"],
    "≥40": ["Cancer", "Heart Disease", "Viral Infection", "Viral Infection"],
    "3*": ["Cancer"] * 4,
}
SIX = {
    "<35": ["AIDS", "Tuberculosis", "Flu", "Tuberculosis", "Cancer", "Cancer"],
    "≥35": ["Cancer", "Cancer", "Cancer", "Tuberculosis", "Viral Infection", "Viral Infection"],
}


def rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


@pytest.mark.parametrize(
    ("records", "k", "group", "table"), [(HOSPITAL_A, 4, decade, FOUR), (HOSPITAL_B, 6, half, SIX)]
)
def test_the_records_generalise_to_the_table_of_the_notes(records: list, k: int, group: object, table: dict) -> None:
    rows = [f"130** | {age} | * | {condition}" for age, held in table.items() for condition in held]
    assert k_anonymous(records, k, group) == tuple(rows)  # type: ignore[arg-type]
    assert k_anonymous(records, k + 1, group) == ()  # type: ignore[arg-type]
    assert min(Counter(row.rpartition(" | ")[0] for row in rows).values()) == k


def test_the_twins_publish_these_tables() -> None:
    assert noisy_table.four_anonymous.run(HOSPITAL_A, RNG) == k_anonymous(HOSPITAL_A, 4, decade)
    assert noisy_table.six_anonymous.run(HOSPITAL_B, RNG) == k_anonymous(HOSPITAL_B, 6, half)
    both = two_noisy_tables.both_k_anonymous.run(two_noisy_tables.default_pair[0], RNG)
    assert [row[3:] for row in both] == [*k_anonymous(HOSPITAL_A, 4, decade), *k_anonymous(HOSPITAL_B, 6, half)]
    assert HOSPITAL_A[0] == HOSPITAL_B[0], "the patient of both hospitals"


def test_a_group_that_becomes_too_small_is_left_out() -> None:
    assert len(k_anonymous(HOSPITAL_A[1:], 4, decade)) == 8
    moved = [("13012", 41, "Canadian", "AIDS"), *HOSPITAL_A[1:]]
    assert noisy_table.four_anonymous.true_epsilon(HOSPITAL_A, moved) == math.inf


def test_what_a_release_leaves_out_is_no_loss() -> None:
    """Another nationality, or another age in the group, is not in the k-anonymous table; the exact tables show it."""
    other = [("13012", 27, "Swiss", "AIDS"), *HOSPITAL_A[1:]]
    assert noisy_table.four_anonymous.true_epsilon(HOSPITAL_A, other) == 0.0
    assert noisy_table.true_epsilon(HOSPITAL_A, other) == 0.0
    for twin in ("pseudonymised", "generalised"):
        assert noisy_table.twins[twin].true_epsilon(HOSPITAL_A, other) == math.inf


def test_pseudonyms_are_a_random_order_of_the_same_rows() -> None:
    rows = noisy_table.pseudonymised.open().call(HOSPITAL_A, 24_000, rng(1))
    expected = [" | ".join(map(str, record)) for record in HOSPITAL_A]
    assert all(sorted(row) == sorted(expected) for row in rows[:50].tolist())
    for place in (0, 7):
        seen = Counter(rows[:, place].tolist())
        assert stats.chisquare([seen[row] for row in expected]).pvalue > LEVEL
    pairs = Counter(zip(rows[:, 0].tolist(), rows[:, 1].tolist(), strict=True))
    possible = list(itertools.permutations(expected, 2))
    assert stats.chisquare([pairs[pair] for pair in possible]).pvalue > LEVEL
    draws = rng(2)
    program = Counter(noisy_table.pseudonymised.run(HOSPITAL_A, draws)[3] for _ in range(3_000))
    assert stats.chisquare([program[row] for row in expected]).pvalue > LEVEL


def test_a_replaced_record_moves_at_most_two_cells_and_four_in_two_tables() -> None:
    for row, condition in itertools.product(range(3), CONDITIONS):
        loss = noisy_table.true_epsilon(HOSPITAL_A, changed(HOSPITAL_A, row, condition), {"epsilon": 0.7})
        assert loss == pytest.approx(0.0 if HOSPITAL_A[row][3] == condition else 0.7)
    first, second = two_noisy_tables.default_pair
    assert two_noisy_tables.true_epsilon(first, second) == pytest.approx(1.0)
    only_a = [*first[:1], ("A", *changed(HOSPITAL_A, 1, "Flu")[1]), *first[2:]]
    assert two_noisy_tables.true_epsilon(first, only_a) == pytest.approx(0.5)


def test_the_place_of_a_count() -> None:
    exact = counts(HOSPITAL_A, decade, DECADES)
    assert exact[cell("3*", "Cancer")] == 4
    assert exact[cell("≥40", "Viral Infection")] == 2
    assert sum(exact) == len(HOSPITAL_A)


# --- rows about people ----------------------------------------------------------------------------------------


def test_names_are_left_out_hashed_or_averaged() -> None:
    people = [("b", "x", 3.0), ("a", "y", 40.0), ("c", "x", -2.0)]
    assert noisy_column.without_names.run(people, RNG) == ("x | -2", "x | 3", "y | 40")
    expected = sorted(f"{hashlib.md5(name.encode()).hexdigest()} | {number:g}" for name, _, number in people)
    assert list(noisy_column.hashed_names.run(people, RNG)) == expected
    outputs = noisy_column.open().call(people, 20_000, rng(5))
    assert stats.kstest(outputs - 13.0 / 3.0, stats.laplace(scale=10.0 / 3.0).cdf).pvalue > LEVEL, "cut to [0, 10]"
    assert noisy_column.true_epsilon(people, [("b", "x", 99.0), *people[1:]]) == pytest.approx(0.7)


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
