"""Claims as values: what they refuse, how they read, what they store."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.errors import InvalidSpec
from tests.cases import for_each


@for_each("value", [-0.1, -1e-300, math.nan, math.inf, -math.inf, "1", None, True, [1.0], 1j])
def test_an_epsilon_is_a_finite_number_of_at_least_zero(value: Any) -> None:
    for make in (PureDP, lambda value: ApproximateDP(value, 0.1)):
        with pytest.raises(InvalidSpec, match=r"^epsilon must be") as caught:
            make(value)
        assert "\n" not in str(caught.value)
        assert (repr(value) in str(caught.value)) or "NaN" in str(caught.value)


@for_each("value", [-1e-9, 1.0000001, math.nan, math.inf, "0", None, False])
def test_a_delta_is_a_probability(value: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"^delta must be"):
        ApproximateDP(1.0, value)


@for_each("value", [0, -1, 1.5, math.nan, "2", True])
def test_a_distance_is_a_whole_number_of_at_least_one(value: Any) -> None:
    for claim in (PureDP(1.0), ApproximateDP(1.0, 0.1)):
        with pytest.raises(InvalidSpec, match=r"^distance must be"):
            claim.at_distance(value)


def test_a_claim_keeps_its_relation_and_cannot_change() -> None:
    claim = ApproximateDP(1, 0.1, "replace_one")  # type: ignore[arg-type]
    assert claim.relation is claim.at_distance(2).relation is Relation.REPLACE_ONE
    assert isinstance(claim.epsilon, float)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        claim.epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(InvalidSpec, match="relation must be one of add_or_remove_one"):
        PureDP(1.0, "neighbours")  # type: ignore[arg-type]


def test_claims_read_and_store_as_what_they_are() -> None:
    assert str(PureDP(1.0)) == "1-DP"
    assert str(ApproximateDP(0.5, 1e-6)) == "(0.5, 1e-06)-DP"
    assert PureDP(1.0).to_dict() == {"form": "PureDP", "epsilon": 1.0, "relation": None}
    stored = {"form": "ApproximateDP", "epsilon": 0.5, "delta": 1e-6, "relation": "local"}
    assert ApproximateDP(0.5, 1e-6, Relation.LOCAL).to_dict() == stored
    assert PureDP(1.0) == PureDP(1) != ApproximateDP(1.0, 0.0)
    assert (PureDP.parameter, ApproximateDP.parameter) == ("epsilon", "epsilon")
