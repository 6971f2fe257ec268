"""What an accountant promises, as a claim: never stronger than it, as every number is rounded towards more loss."""

import copy
import math
from collections.abc import Callable
from typing import Any

from dpaudit.claims import Claim, PrivacyProfile, PureDP, Relation
from dpaudit.claims.rounding import up
from dpaudit.errors import InvalidSpec

EPSILONS = (0.0, *(2.0 ** (k / 4) for k in range(-16, 25)))  # at which a curve is asked: 1/16 to 64
LEAST = 1e-12  # deltas below are rounding errors of the accountants


def dp_accounting(event: Any, relation: str | None = "add_or_remove_one", *, accountant: Any = None) -> Claim:
    """The claim of a `DpEvent` of dp-accounting, or of a `PrivacyLossDistribution`: its delta at a grid of epsilons.

    An event is composed by a `PLDAccountant`, whose deltas are pessimistic, for neighbours of this relation; another
    `accountant`, made for it, may be given, and stays as it is. Raises `InvalidSpec` for an event that the accountant
    does not know, an accountant for other neighbours, and a `PrivacyLossDistribution` whose deltas are optimistic.

        claim = dpaudit.adapters.dp_accounting(GaussianDpEvent(2.0))
    """
    word = Relation.of(relation)
    if hasattr(event, "get_delta_for_epsilon"):
        parts = [getattr(event, name, None) for name in ("_pmf_remove", "_pmf_add")]
        if not all(getattr(part, "_pessimistic_estimate", True) for part in parts):
            told = (
                "made with pessimistic_estimate=False promises nothing, for its deltas are too small; make it with True"
            )
            raise InvalidSpec(f"a PrivacyLossDistribution {told}")
        return _curve(event.get_delta_for_epsilon, word)
    neighbours = (word or Relation.ADD_OR_REMOVE_ONE).name
    if accountant is None:
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import PLDAccountant

        accountant = PLDAccountant(NeighboringRelation[neighbours])
    if accountant.neighboring_relation.name != neighbours:
        told = f"{type(accountant).__name__} is made for {accountant.neighboring_relation.name}, not for {neighbours}"
        raise InvalidSpec(f"{told}; make it for these neighbours, or give relation=")
    if not accountant.supports(event):
        raise InvalidSpec(f"{type(accountant).__name__} does not know {event!r}; give accountant=...")
    return _curve(copy.deepcopy(accountant).compose(event).get_delta, word)


def autodp(mechanism: Any, relation: str | None = None) -> Claim:
    """The claim of a mechanism of autodp: pure where its `eps_pureDP` is finite, else its delta at a grid of epsilons.

    claim = dpaudit.adapters.autodp(GaussianMechanism(sigma=2.0))
    """
    word = Relation.of(relation)
    if mechanism.eps_pureDP < math.inf and mechanism.delta0 == 0:
        return PureDP(up(float(mechanism.eps_pureDP)), word)
    return _curve(mechanism.get_approx_delta, word)


def _curve(delta: Callable[[float], Any], relation: Relation | None) -> Claim:
    """The profile through delta(epsilon), rounded up by a millionth and `LEAST`; what allows all is left out."""
    found = [(epsilon, float(delta(epsilon))) for epsilon in EPSILONS]
    kept = [(epsilon, max(each, 0.0) * (1.0 + 1e-6) + LEAST) for epsilon, each in found if each == each]
    kept = [point for point in kept if point[1] < 1.0]
    if not kept:
        raise InvalidSpec("the accountant promises nothing at any epsilon up to 64")
    return PrivacyProfile(kept, relation)
