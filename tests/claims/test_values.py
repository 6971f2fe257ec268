"""Claims as values: what they refuse, how they read, what they store."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.errors import InvalidSpec

NOT_EPSILONS = [-0.1, -1e-300, math.nan, math.inf, -math.inf, "1", None, True, [1.0], 1j]
NOT_DELTAS = [-1e-9, 1.0000001, math.nan, math.inf, "0", None, False]
FORMS: list[Callable[[Any], Any]] = [lambda value: PureDP(value), lambda value: ApproximateDP(value, 0.1)]


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize("value", NOT_EPSILONS, ids=repr)
def test_an_epsilon_is_a_finite_number_of_at_least_zero(make: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"^epsilon must be") as caught:
        make(value)
    assert "\n" not in str(caught.value)
    assert (repr(value) in str(caught.value)) or "NaN" in str(caught.value)


@pytest.mark.parametrize("value", NOT_DELTAS, ids=repr)
def test_a_delta_is_a_probability(value: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"^delta must be"):
        ApproximateDP(1.0, value)


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, "half"], ids=repr)
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproximateDP(1.0, 0.1)], ids=str)
def test_a_region_is_asked_at_probabilities(claim: PureDP | ApproximateDP, value: Any) -> None:
    for ask in (claim.max_probability, claim.tangent):
        with pytest.raises(InvalidSpec, match=r"^q must be"):
            ask(value)


@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, "2", True], ids=repr)
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproximateDP(1.0, 0.1)], ids=str)
def test_a_distance_is_a_whole_number_of_at_least_one(claim: PureDP | ApproximateDP, value: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"^distance must be"):
        claim.at_distance(value)


def test_a_claim_keeps_its_relation_and_cannot_change() -> None:
    claim = ApproximateDP(1, 0.1, "replace_one")  # type: ignore[arg-type]
    assert claim.relation is Relation.REPLACE_ONE
    assert claim.at_distance(2).relation is Relation.REPLACE_ONE
    assert isinstance(claim.epsilon, float)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        claim.epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(InvalidSpec, match="relation must be one of add_or_remove_one"):
        PureDP(1.0, "neighbours")  # type: ignore[arg-type]


def test_claims_read_and_store_as_what_they_are() -> None:
    assert str(PureDP(1.0)) == "1-DP"
    assert str(ApproximateDP(0.5, 1e-6)) == "(0.5, 1e-06)-DP"
    assert PureDP(1.0).to_dict() == {"form": "PureDP", "epsilon": 1.0, "relation": None}
    assert ApproximateDP(0.5, 1e-6, Relation.LOCAL).to_dict() == {
        "form": "ApproximateDP",
        "epsilon": 0.5,
        "delta": 1e-6,
        "relation": "local",
    }
    assert PureDP(1.0) == PureDP(1)
    assert PureDP(1.0) != ApproximateDP(1.0, 0.0)
    assert (PureDP.parameter, ApproximateDP.parameter) == ("epsilon", "epsilon")
