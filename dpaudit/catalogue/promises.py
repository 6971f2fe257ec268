"""What many entries share: their promise and its parameter, a loss without bound, and checks of parameters."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from dpaudit.base import validate
from dpaudit.catalogue.entry import Parameter
from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.importing import import_reference

Named = TypeVar("Named")
DMNS = "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis"
at_least_one = partial(validate.whole, least=1)  # the check of a number of things
EPSILON = Parameter("epsilon", 1.0, "nats", "the claim", validate.positive)


def pure(epsilon: float, **_: Any) -> PureDP:
    """epsilon-DP; what neighbours are is said in words, for datasets that are no collections of records."""
    return PureDP(epsilon)


def pure_if_added_or_removed(epsilon: float, **_: Any) -> PureDP:
    """epsilon-DP for datasets of which one has one record more."""
    return PureDP(epsilon, Relation.ADD_OR_REMOVE_ONE)


def pure_if_replaced(epsilon: float, **_: Any) -> PureDP:
    """epsilon-DP for datasets of one size that differ in one record."""
    return PureDP(epsilon, Relation.REPLACE_ONE)


def pure_if_local(epsilon: float, **_: Any) -> PureDP:
    """epsilon-DP between any two values of one person."""
    return PureDP(epsilon, Relation.LOCAL)


def approximate(epsilon: float, delta: float, **_: Any) -> ApproximateDP:
    """(epsilon, delta)-DP, for neighbours that the entry states in words."""
    return ApproximateDP(epsilon, delta)


def doubled(data: Any, epsilon: float, **_: Any) -> dict[str, float]:
    """Twice the epsilon, as where the noise is half of what it should be."""
    return {"epsilon": 2.0 * epsilon}


def unbounded(first: Any, second: Any, **_: Any) -> float:
    """The loss where any change of the data makes outputs that could not come from the other dataset."""
    return math.inf if first != second else 0.0


def also(check: Callable[[str, object], float], holds: Callable[[float], bool], must: str, why: str = "") -> Any:
    """A check of a parameter with one condition more, which its value `must` meet."""

    def checked(name: str, value: object) -> float:
        number = check(name, value)
        if not holds(number):
            raise InvalidSpec(f"{name} must {must}, got {value!r}{why}")
        return number

    return checked


def one_of(what: str, known: Mapping[str, Named], kind: type[Named], name: object) -> Named:
    """What has this name: one of those `known`, or `module:name`. Raises `InvalidSpec`."""
    found = None
    if isinstance(name, str):
        found = known.get(name) or (import_reference(name) if ":" in name else None)
    if not isinstance(found, kind):
        raise InvalidSpec(f"{what} must be one of {', '.join(known)}, or `module:name`, got {name!r}")
    return found
