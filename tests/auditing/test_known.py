"""A mechanism may offer what is known of it: its claim, its pair and its exact loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.known import OTHER, comes_with_us, known_of, known_upper
from dpaudit.data import AdjacentPair
from dpaudit.mechanisms import Description, Opened, wrap
from dpaudit.mechanisms.protocol import is_known
from dpaudit.sweeps.grid import Grid, points
from dpaudit.verify.bracketing import target_of


def _told(data: int, rng: Any, epsilon: float) -> int:
    return data if rng.random() < 1.0 / (1.0 + math.exp(-epsilon)) else 1 - data


@dataclass(frozen=True)
class Response:
    """Randomised response, claimed at half of what it loses."""

    bound: Mapping[str, float] = field(default_factory=dict)
    name: str = "response"
    reference: str = "tests.auditing.test_known:Response"
    adjacency: tuple[str, ...] = ()
    broken: bool = True

    @property
    def program(self) -> Callable[..., int]:
        return _told

    @property
    def pair(self) -> AdjacentPair:
        return AdjacentPair(0, 1, name="the bit")

    def with_parameters(self, parameters: Mapping[str, Any]) -> Response:
        return replace(self, bound={**self.bound, **parameters})

    def values(self) -> dict[str, Any]:
        return {"epsilon": 2.0, **self.bound}

    def claim(self) -> dpaudit.PureDP:
        return dpaudit.PureDP(self.values()["epsilon"] / 2.0)

    def true_loss(self, first: Any, second: Any) -> float | None:
        return 0.0 if first == second else self.values()["epsilon"]

    def open(self) -> Opened:
        return Opened(lambda data, rng: _told(data, rng, **self.values()), per_run=True, takes_rng=True)

    def describe(self) -> Description:
        return Description(self.name, "function", self.reference, self.values(), takes_rng=True)


def test_what_it_offers_is_found_and_bound() -> None:
    assert is_known(Response())
    assert not is_known(Response)
    assert not is_known(wrap(_told))
    found = known_of(wrap(Response(), {"epsilon": 0.5}))
    assert found.claim() == dpaudit.PureDP(0.25)
    assert known_of(wrap(_told)) is None
    assert not comes_with_us(Response())


def test_its_loss_is_the_upper_bound_of_an_audit_and_says_where_it_comes_from() -> None:
    known = known_upper(Response(), Response().pair, 0.0)
    assert (known.epsilon_upper, known.source) == (2.0, OTHER)
    result = dpaudit.audit(Response(), pair=Response().pair, claim=Response().claim(), runs=4_000, n_jobs=1)
    assert result.upper == known
    assert result.verdict is dpaudit.Verdict.REFUTED


def test_a_sweep_takes_its_claim_and_its_pair() -> None:
    (point,) = points(Grid((Response(),), ({"epsilon": 3.0},), options={"runs": (1_000,)}))
    assert point.error is None
    assert point.claim == dpaudit.PureDP(1.5)
    assert point.pair == Response().pair


def test_a_bracket_takes_and_replays_its_program() -> None:
    target = target_of(Response())
    assert (target.source, target.pair, target.claim) == (_told, Response().pair, Response().claim())
    assert dpaudit.bracket(Response(), domain=(0, 1), neighbours="all", runs=0).ends[1] == pytest.approx(2.0)
