"""The samplers of selection against the exact laws, and the claims of its entries.

Every comparison fails by chance with probability at most 1e-8; there are 44 of them, with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import Entry, find
from dpaudit.catalogue.selection.races import chosen, race, with_values
from dpaudit.claims import PureDP, Relation

LEVEL = 1e-8
RUNS = 100_000


def drawn(entry: Entry, data: Sequence[float], seed: int) -> np.ndarray:
    outputs: np.ndarray = entry.open().call(list(data), RUNS, np.random.Generator(np.random.SFC64(seed)))
    return outputs


def test_released_values_follow_their_noise() -> None:
    """One candidate: the value is its answer plus the noise."""
    laws = {
        "report_noisy_max.value_released": stats.laplace(3.0),
        "report_noisy_max_general.value_only": stats.laplace(3.0, 2.0),
        "report_noisy_max_general.unpaid_value": stats.laplace(3.0, 1.0),
        "report_noisy_max_exponential.value_released": stats.expon(3.0, 2.0),
        "report_noisy_max_gumbel.value_released": stats.gumbel_r(3.0, 2.0),
    }
    for name, law in laws.items():
        values = np.ma.getdata(drawn(find(name), [3.0], 23)).ravel()
        assert stats.kstest(values, law.cdf).pvalue > LEVEL


def test_the_gumbel_maximum_is_gumbel_about_the_sum_of_weights_whoever_wins() -> None:
    data = np.array([0.0, 1.0, 2.0])
    centre = 2.0 * np.logaddexp.reduce(data / 2.0)
    found = drawn(find("report_noisy_max_gumbel.value_released"), data.tolist(), 24)
    for place in range(3):
        assert stats.kstest(found[:, place].compressed(), stats.gumbel_r(centre, 2.0).cdf).pvalue > LEVEL


@pytest.mark.parametrize("steps", [1, 3, 12])
def test_the_chain_starts_at_the_median(steps: int) -> None:
    found = drawn(find("private_median.unmixed_chain").with_parameters({"steps": steps}), [1, 1, 7, 7], 25)
    assert np.abs(found - 1).max() <= steps


def test_draws_from_a_law_and_a_race_without_noise() -> None:
    rng = np.random.Generator(np.random.SFC64(26))
    law = np.array([0.0, 0.25, 0.0, 0.75, 0.0])
    seen = np.bincount(chosen(law, RUNS, rng), minlength=5)
    assert seen[[0, 2, 4]].sum() == 0
    assert stats.binomtest(int(seen[1]), RUNS, 0.25).pvalue > LEVEL
    winner, best = race([2.0, 5.0, 5.0], 3, np.zeros)
    assert winner.tolist() == [1, 1, 1]
    assert best.tolist() == [5.0, 5.0, 5.0]
    filled = with_values(winner, best, 3)
    assert filled.mask.tolist() == [[True, False, True]] * 3
    assert filled.compressed().tolist() == [5.0] * 3


def test_the_claims() -> None:
    assert find("report_noisy_max_general").claim({"epsilon": 0.3, "sensitivity": 7.0}) == PureDP(0.3)
    assert find("most_common").claim() == PureDP(1.0, Relation.ADD_OR_REMOVE_ONE)
    assert find("private_median").claim() == PureDP(1.0, Relation.ADD_OR_REMOVE_ONE)
    assert find("exponential_mechanism_learning").claim() == PureDP(1.0, Relation.REPLACE_ONE)
