"""What many entries share: where they come from, their promise and its parameter, losses, and checks of parameters."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from dpaudit.base import validate
from dpaudit.catalogue.entry import Loss, Parameter
from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.importing import import_reference

Named = TypeVar("Named")
HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
CS208, SARKAR, CHEEMA = "CS 208, notes 002", "Sarkar, notes 003", "Cheema & Huszár, notes 004"
DMNS = "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis"
MCSHERRY = "McSherry & Talwar 2007, Mechanism design via differential privacy"
SHADOW = "Wang, Ding, Wang, Kifer & Zhang 2019, Proving differential privacy with shadow execution"
GDP = "Dong, Roth & Su 2022, Gaussian differential privacy"
BOOK = "Dwork & Roth 2014, The algorithmic foundations of differential privacy"
EPSILON = Parameter("epsilon", 1.0, "nats", "the claim")
DELTA = Parameter("delta", 0.01, "probability", "the additive part of the claim", validate.open_probability)


def pure(epsilon: float, *, relation: Relation | None = None, **_: Any) -> PureDP:
    """epsilon-DP; without a relation the entry says in words what neighbours are."""
    return PureDP(epsilon, relation)


pure_if_added_or_removed = partial(pure, relation=Relation.ADD_OR_REMOVE_ONE)
pure_if_replaced = partial(pure, relation=Relation.REPLACE_ONE)
pure_if_local = partial(pure, relation=Relation.LOCAL)


def approximate(epsilon: float, delta: float, **_: Any) -> ApproximateDP:
    """(epsilon, delta)-DP, for neighbours that the entry states in words."""
    return ApproximateDP(epsilon, delta)


def doubled(data: Any, epsilon: float, **_: Any) -> dict[str, float]:
    """Twice the epsilon, as where the noise is half of what it should be."""
    return {"epsilon": 2.0 * epsilon}


def unless_same(of: Callable[..., Any]) -> Loss:
    """The loss of outputs that give away something of the data for certain: 0 where it is the same, else infinite.

    >>> unless_same(max)([1, 2], [1, 3])
    inf
    """
    return lambda first, second, **given: 0.0 if of(first, **given) == of(second, **given) else math.inf


unbounded = unless_same(lambda data, **_: data)  # any change of the data makes outputs that only one dataset has


def per_unit(first: float, second: float, epsilon: float, sensitivity: float = 1.0, **_: Any) -> float:
    """The loss of one number: epsilon for each `sensitivity` between its two values."""
    return epsilon * abs(first - second) / sensitivity


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
    value = None
    if isinstance(name, str):
        value = known.get(name) or (import_reference(name) if ":" in name else None)
    if not isinstance(value, kind):
        raise InvalidSpec(f"{what} must be one of {', '.join(known)}, or `module:name`, got {name!r}")
    return value
