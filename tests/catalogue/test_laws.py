"""Loss and sampler of every entry whose law is written down in `laws.txt`: one property each, at other parameters too.

All seeds are fixed. A comparison of a sample with a law fails by chance with probability at most 1e-9; there are fewer
than 800 of them.
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
from tests.cases import NIGHTLY, for_each
from tests.catalogue.laws import FORMULAS, fits, law_of, loss_of, pairs_of, seen

LEVEL = 1e-9
RUNS = 20_000
FEW: dict[str, dict[str, Any]] = {  # outputs that can be listed
    "rappor": {"reports": 2},
    "rappor_one_time": {"bits": 6, "hashes": 2},
    "snapping": {"bound": 6.5},
}
OF_THE_DATA = {"queries", "cells", "bits", "hashes"}  # parameters that say what the data are


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
        for first, second in [entry.default_pair, *pairs_of(name)]:
            found = entry.true_loss(first, second)
            expected = loss_of(law_of(entry, first), law_of(entry, second), entry.claim())
            assert found == pytest.approx(expected, rel=2e-6, abs=1e-9), (entry, first, second)
            assert entry.true_loss(second, first) == pytest.approx(expected, rel=2e-6, abs=1e-9), (entry, second, first)


@for_each("name", FORMULAS)
def test_the_sampler_has_the_law(name: str) -> None:
    entry = named(name)
    every = [data for pair in [entry.default_pair, *pairs_of(name)] for data in pair]
    for seed, data in enumerate(every if NIGHTLY else every[:: max(1, len(every) - 1)]):  # by day the first, the last
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
