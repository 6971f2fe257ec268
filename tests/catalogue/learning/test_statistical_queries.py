"""Statistical queries and the PAC learner: exact laws, the claim on every pair, and the sample of theorem 3.2.

Seeds are fixed; a comparison of a sample with a law fails by chance with probability at most 1e-9.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.queries import learner_law, sample_size, training_error

LEVEL = 1e-9


def test_answers_made_to_rise_cost_no_more_and_no_less() -> None:
    """Any event of the running maximum is an event of the answers; all large, rising answers are told unchanged."""
    twin = find("statistical_queries.made_monotone")
    first, second = twin.default_pair
    told = [twin.open().call(data, 400_000, np.random.default_rng(9)) for data in (first, second)]
    assert all(np.all(np.diff(each, axis=1) >= 0.0) for each in told)
    hits = [np.count_nonzero((np.diff(each, axis=1) > 0.0).all(axis=1) & (each[:, 0] > 0.1)) for each in told]
    exact = [400_000 / 8 / 6, 400_000 * math.exp(-1.0) / 8 / 6]  # three answers in the tail, in one order of six
    assert all(abs(k - n) < 6.5 * math.sqrt(n) for k, n in zip(hits, exact, strict=True))
    assert twin.true_loss(first, second) == pytest.approx(math.log(exact[0] / exact[1]))


def test_the_law_of_the_learner_is_that_of_its_sampler() -> None:
    entry = find("sq_learner")
    for data in entry.default_pair:
        _, law = learner_law(data, 1.0, 3, 0.15)
        assert law.sum() == pytest.approx(1.0)
        drawn = np.bincount(entry.open().call(data, 200_000, np.random.default_rng(6)), minlength=8)
        assert all(stats.binomtest(int(k), 200_000, p).pvalue > LEVEL for k, p in zip(drawn, law, strict=True))


def test_the_training_error_counts_what_is_wrong() -> None:
    data = find("sq_learner").default_pair[1]
    assert [training_error(data, t, 3) for t in (0, 5, 8)] == pytest.approx([7 / 20, 0.0, 13 / 20])


def test_the_sample_of_the_theorem_is_enough() -> None:
    """Failures on fresh samples are at most beta: the chance that 300 runs show a rate above it is below 1e-9."""
    entry = find("sq_learner").with_parameters({"tolerance": 0.1})
    beta, rng, failed = 0.05, np.random.default_rng(8), 0
    records = sample_size(3, 0.1, 1.0, beta)
    for _ in range(300):
        x = rng.integers(0, 8, records)
        data = np.column_stack([x, x >= 5]).astype(int).tolist()
        failed += abs(int(entry.open().call(data, 1, rng)[0]) - 5) / 8 > 0.2
    assert stats.binom.sf(failed - 1, 300, beta) > LEVEL


def test_the_sample_has_the_constants_of_hoeffding_and_of_a_union() -> None:
    for queries, tolerance, epsilon, beta in ((3, 0.1, 1.0, 0.05), (10, 0.05, 0.1, 1e-3)):
        m = sample_size(queries, tolerance, epsilon, beta)
        noise = queries * math.exp(-(tolerance / 2) * epsilon * m / queries)
        sample = queries * 2.0 * math.exp(-2.0 * m * (tolerance / 2) ** 2)
        assert noise <= beta / 2
        assert sample <= beta / 2
        smaller = (queries * math.exp(-(tolerance / 2) * epsilon * (m - 1) / queries), 2.0 * queries)
        assert max(smaller[0], smaller[1] * math.exp(-2.0 * (m - 1) * (tolerance / 2) ** 2)) > beta / 2
