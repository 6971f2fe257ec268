"""Loss and sampler of every entry whose law is written down in `laws.txt`: one property each, at other parameters too.

All seeds are fixed. A comparison of a sample with a law fails by chance with probability at most 1e-9; there are fewer
than 400 of them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpaudit.catalogue import Entry, find
from dpaudit.errors import InvalidSpec
from tests.cases import for_each
from tests.catalogue.laws import FORMULAS, fits, law_of, loss_of, seen

LEVEL = 1e-9
RUNS = 20_000
FEW = {"rappor": {"reports": 2}}  # whose reports can be listed
OF_THE_DATA = {"queries", "cells", "bits", "hashes"}  # parameters that say what the data are

# pairs beside the default one, where the loss is another: values at and beyond the bounds, moves by more than one
PAIRS: dict[str, list[tuple[Any, Any]]] = {
    "laplace": [(0.5, 3.0)],
    "laplace.rounded_first": [(9, 10), (10.4, 10.6), (0, 1), (4, 5)],
    "laplace_vector": [([0, 0], [3, -2])],
    "laplace_average": [([70.0, 80.0, 0.0], [70.0, 80.0, 40.0]), ([70.0, -50.0, 0.0], [70.0, 250.0, 0.0])],
    "laplace_average.observed_range": [([10.0, 20.0, 40.0], [10.0, 30.0, 40.0])],
    "laplace_average.rounded_values": [([70.0, 80.0, 4.0], [70.0, 80.0, 6.0])],
    "laplace_sum": [([1.0], [1.0, -0.5]), ([1.0, -0.5, 9.0], [1.0, -0.5])],
    "laplace_sum.observed_bound": [([1.0], [1.0, -0.5]), ([1.0], [1.0, -1.5])],
    "laplace_sum.replace_one": [([1.0, 9.0], [1.0, -9.0])],
    "counting_queries": [([[1, 0]], [[1, 0], [0, 1]])],
    "counting_queries.l2_sensitivity": [([[1, 0]], [[1, 0], [1, 1]])],
    "histogram": [([0, 1], [0, 1, 1])],
    "prefix_sums": [([1, 1, 1], [0, 2, 0.5])],
    "norm_l1": [([0.3, -1.0, 2.0], [0.0, 1.0, 0.5])],
    "geometric": [(10, 8)],
    "clamped_geometric": [(5, 4), (0, 1), (10, 8)],
    "clamped_geometric.wrapped": [(5, 4), (0, 1), (10, 8)],
    "gaussian_zcdp": [(10, 8)],
    "gaussian_gdp": [(10, 8)],
    "gaussian_vector": [([0.0] * 4, [0.5] * 4)],
    **{
        name: [([0.0, 1.0, 0.5], [0.5, 0.5, 0.5]), ([0.0, 0.0, -2.0, -2.0, 1.0], [0.0, 1.0, -1.0, -2.0, 0.5])]
        for name in FORMULAS
        if name.startswith(("report_noisy_max", "permute_and_flip", "exponential_mechanism"))
    },
    "randomised_response": [(1, 0)],
    "group_count": [([2, 7], [2])],
    "composed_gaussians": [([0, 0, 0, 0], [1.0, -1.0, 0.5, 0.0])],
    "repeated_response": [(1, 0)],
    "noisy_average": [([0] * 10, [10] + [0] * 9), ([0] * 10, [25] + [0] * 9)],
    "noisy_sum": [([4, 6, 30], [4, 6])],
    "noisy_maxima": [([0, 4, 12], [0, 10, 12]), ([4, 4, 4], [4, 4, 10])],
    "noisy_count_and_average": [([3, 5, 1, 0, 30], [3, 5, 1, 0]), ([3, 5, 1, 0, 30], [3, 5, 1, 30])],
    "noisy_subset_counts": [([0, 1, 1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0, 0, 0])],
    "regression_from_sums": [([[0.5, 0.2], [-3.0, 1.0]], [[0.5, 0.2]]), ([[0.5, 0.2], [0.4, -0.3]], [[0.5, 0.2]])],
}


def named(name: str) -> Entry:
    return find(name).with_parameters(FEW.get(name.partition(".")[0], {}))


def at_other_parameters(entry: Entry) -> Iterator[Entry]:
    """The entry as it is, and each number among its parameters changed to what it may be as well."""
    yield entry
    for parameter in entry.parameters:
        value = entry.values()[parameter.name]
        if isinstance(value, int | float) and parameter.name not in OF_THE_DATA:
            with contextlib.suppress(InvalidSpec):
                yield entry.with_parameters({parameter.name: value + 1 if isinstance(value, int) else 0.6 * value})


@for_each("name", FORMULAS)
def test_the_loss_is_that_of_the_law(name: str) -> None:
    for entry in at_other_parameters(named(name)):
        for first, second in [entry.default_pair, *PAIRS.get(name, [])]:
            found = entry.true_loss(first, second)
            expected = loss_of(law_of(entry, first), law_of(entry, second), entry.claim())
            assert found == pytest.approx(expected, rel=2e-6, abs=1e-9), (entry, first, second)
            assert entry.true_loss(second, first) == pytest.approx(expected, rel=2e-6, abs=1e-9), (entry, second, first)


@for_each("name", FORMULAS)
def test_the_sampler_has_the_law(name: str) -> None:
    entry = named(name)
    for seed, data in enumerate(one for pair in [entry.default_pair, *PAIRS.get(name, [])] for one in pair):
        outputs = entry.open().call(data, RUNS, np.random.Generator(np.random.SFC64(seed)))
        assert fits(law_of(entry, data), seen(entry, outputs)) > LEVEL, (entry, data)


def test_the_comparison_tells_wrong_laws() -> None:
    """The converse: another scale, another outcome, coordinates that move together, a parameter that is not used."""
    entry, rng = find("laplace_vector"), np.random.default_rng(1)
    outputs = entry.open().call([0.0, 5.0], RUNS, rng)
    assert fits(law_of(entry, [0.0, 5.0]), outputs) > LEVEL
    assert fits(law_of(entry, [0.0, 6.0]), outputs) < LEVEL
    assert fits(law_of(entry.with_parameters({"epsilon": 1.2}), [0.0, 5.0]), outputs) < LEVEL
    assert fits(law_of(entry, [0.0, 0.0]), np.repeat(outputs[:, :1], 2, axis=1)) < LEVEL
    assert fits({0: 0.5, 1: 0.5}, [0, 1, 2]) == 0.0
    assert fits({0: 0.5, 1: 0.5}, [0, 1, 1] * 10_000) < LEVEL
    one, other = ([law_of(find("laplace"), 0.0)[0]], [law_of(find("laplace.half_noise"), 0.0)[0]])
    assert loss_of(one, other, find("laplace").claim()) == math.inf
