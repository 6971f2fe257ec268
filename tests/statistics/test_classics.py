"""The table of the classics: its laws are those of the runs, its search is an audit's, and its lines bite."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import tight
from benchmarks.classics import (
    Classic,
    Frozen,
    Numbers,
    Outcomes,
    classics,
    expected,
    found,
    plan_of,
    weighed,
)
from dpaudit.api.audits import audit
from dpaudit.catalogue import find
from dpaudit.certify import CoinFlip
from dpaudit.certify.coin_flip import epsilon_lower
from dpaudit.events.event import Event
from dpaudit.events.features import Coordinate
from dpaudit.outputs.encode import encode_batch
from tests.cases import for_each

RUNS, FRESH = 20_000, 40_000
EVERY = [*classics()]


@for_each("classic", EVERY, ids=lambda each: each.title)
def test_an_event_has_the_chances_that_runs_show(classic: Classic) -> None:
    """44 deviations below 6.5 of a normal one: 4e-9 by chance."""
    entry = find(classic.name)
    law = classic.law(*entry.pair.open())
    if isinstance(law, Outcomes):
        assert sum(law.first) == pytest.approx(1.0)
        assert sum(law.second) == pytest.approx(1.0)
        loss = float(np.max(np.abs(np.log(law.first / law.second))))
        assert loss == pytest.approx(entry.true_epsilon(*entry.default_pair), abs=1e-6)
    witness, _ = found(plan_of(classic.name, RUNS, 0, 0.999))
    assert isinstance(witness.event, Event)
    rng = np.random.default_rng(36)
    for data, chance in zip(entry.pair.open(), law.chances(witness.event, entry), strict=True):
        hits = int(witness.event.contains(encode_batch(entry.open().call(data, FRESH, rng), FRESH)).sum())
        assert abs(hits - FRESH * chance) <= 6.5 * math.sqrt(FRESH * chance * (1.0 - chance)) + 1e-6


@for_each("name", ["laplace", "above_threshold", "gaussian_gdp"])
def test_the_search_is_that_of_an_audit(name: str) -> None:
    entry = find(name)
    result = audit(entry, pair=entry.pair, claim=entry.claim(), runs=RUNS, seed=3, n_jobs=1)
    witness, certifying = found(plan_of(name, RUNS, 3, 0.999))
    assert (witness.event, witness.p_side, witness.tangent) == (
        result.witness.event,
        result.witness.p_side,
        result.witness.tangent,
    )
    assert certifying == result.evidence.runs


def test_an_event_of_another_feature_is_weighed_by_the_exact_ratio() -> None:
    """The half line beyond both answers: its quotient is e whatever the runs are, its mass within 6.5 deviations."""
    (laplace,) = (each for each in EVERY if each.title == "Laplace")
    entry = find("laplace")
    law = laplace.law(*entry.pair.open())
    assert isinstance(law, Numbers)
    event = Event(Coordinate(), ((10.5, math.inf),))
    p, q, error = weighed(event, law.log_ratio, entry, entry.pair)
    assert p / q == pytest.approx(math.e, rel=1e-12)
    assert error < 1e-12
    exact = law.chances(event, entry)[0]
    assert abs(p - exact) < 6.5 * exact / math.sqrt(2.0 * (1 << 20) * exact * (1.0 + math.exp(-1.0)) / 4.0)


def test_the_bound_at_expected_counts_is_the_certifiers() -> None:
    plan = plan_of("laplace", RUNS, 0, 0.95)
    certified = epsilon_lower(CoinFlip(4_000, 1_500, 10_000, 10_000), 0.0, 0.05)
    assert expected(plan, 0.4, 0.15, 20_000, 0.0) == pytest.approx(certified, rel=1e-8)  # less its slack for rounding
    assert expected(plan, 0.15, 0.4, 20_000, 0.0) == 0.0


def test_lines_are_missed_by_a_fall_and_by_a_worst_seed() -> None:
    one = Frozen(1.0, 0.99, 0.99, 0.05, 0.1, "output > 1")

    def outcome(*parts: list[float]) -> list[bool]:
        sizes = dict(zip(tight.DECADES, ([replace(one, part=part) for part in each] for each in parts), strict=False))
        return [met for _, _, met in tight.lines({"Laplace": sizes})]

    assert outcome([0.97, 0.99, 0.99], [0.969, 0.989, 0.99]) == [True, True, False]
    assert outcome([0.98, 0.99, 0.99], [0.979, 0.989, 0.99]) == [True, True, True]
    assert outcome([0.98, 0.99, 0.99], [0.979, 0.987, 0.99]) == [False, True, True]
    assert outcome([0.98, 0.99, 0.99], [0.975, 0.99, 0.99]) == [True, False, True]
    sparse = {"Sparse": {10**5: [replace(one, part=0.5)]}}
    assert [met for _, _, met in tight.lines(sparse)] == [True, True]  # no least worst for those
