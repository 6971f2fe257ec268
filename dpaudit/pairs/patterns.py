"""Stock patterns by name: what a spec file and a search over pairs may ask for without writing datasets down."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dpaudit import validate
from dpaudit.claims.relation import Relation
from dpaudit.errors import InvalidSpec
from dpaudit.pairs import data_patterns, query_patterns, telling_patterns
from dpaudit.pairs.pair import AdjacentPair

ADD = (Relation.ADD_OR_REMOVE_ONE,)
REPLACE = (Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL, Relation.LOCAL)
ANY = tuple(Relation)
NAN = "a number that becomes NaN leaves a sum or a count, by more than upper - lower"
ZERO = "an update of zeros is never clipped and has no direction: norms, counts and scales made of them tell of it"
RAISES = "what cannot be read raises on its side alone, and an exception is an output"
ORDER = "the values are the same on both sides, so their order must tell nothing"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A function that makes pairs, the relations it is meant for, and what such a pair has found."""

    make: Callable[..., tuple[AdjacentPair, ...]]
    relations: tuple[Relation, ...]
    reason: str = ""

    @property
    def keywords(self) -> tuple[str, ...]:
        """The names of its parameters, in their order."""
        return tuple(inspect.signature(self.make).parameters)

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters without a default."""
        found = inspect.signature(self.make).parameters.values()
        return tuple(parameter.name for parameter in found if parameter.default is inspect.Parameter.empty)


PATTERNS: dict[str, Pattern] = {
    "one_differs": Pattern(query_patterns.one_differs, ANY),
    "all_differ": Pattern(query_patterns.all_differ, ANY),
    "half_up_half_down": Pattern(query_patterns.half_up_half_down, ANY),
    "far_from_threshold": Pattern(query_patterns.far_from_threshold, ANY),
    "statdp_one_differs": Pattern(query_patterns.statdp_one_differs, ANY),
    "statdp_all_differ": Pattern(query_patterns.statdp_all_differ, ANY),
    "drop_one": Pattern(data_patterns.drop_one, ADD),
    "add_one": Pattern(data_patterns.add_one, ADD),
    "replace_one": Pattern(data_patterns.replace_one, REPLACE),
    "add_outlier": Pattern(data_patterns.add_outlier, ADD),
    "add_nan": Pattern(data_patterns.valued("added", math.nan), ADD, NAN),
    "add_infinity": Pattern(data_patterns.valued("added", math.inf, -math.inf), ADD),
    "add_zero": Pattern(data_patterns.valued("added", 0), ADD, ZERO),
    "add_none": Pattern(data_patterns.valued("added", None), ADD, RAISES),
    "add_in_front": Pattern(telling_patterns.add_in_front, ADD, ORDER),
    "replace_by_outlier": Pattern(data_patterns.replace_by_outlier, REPLACE),
    "replace_by_nan": Pattern(data_patterns.valued("first_replaced", math.nan), REPLACE, NAN),
    "replace_by_infinity": Pattern(data_patterns.valued("first_replaced", math.inf, -math.inf), REPLACE),
    "replace_by_zero": Pattern(data_patterns.valued("first_replaced", 0), REPLACE, ZERO),
    "replace_by_none": Pattern(data_patterns.valued("first_replaced", None), REPLACE, RAISES),
    "replace_in_front": Pattern(telling_patterns.replace_in_front, REPLACE, ORDER),
    "change_label": Pattern(
        telling_patterns.change_label,
        REPLACE,
        "a label moves a whole row from one sum to another, by more than its range",
    ),
    "far_from_zero": Pattern(
        telling_patterns.far_from_zero, ADD, "one record moves a sum by a bound, which may be more than upper - lower"
    ),
    "last_of_category": Pattern(
        telling_patterns.last_of_category, ADD, "categories taken from the data lose one when its last member leaves"
    ),
    "empty": Pattern(data_patterns.empty, ADD),
}


def stock_pairs(pattern: str, *, relation: Relation | str | None = None, **parameters: Any) -> tuple[AdjacentPair, ...]:
    """The pairs of a pattern, checked against the relation that the claim is stated for (None: none stated).

    `parameters` are the keywords of the pattern's function. Raises `InvalidSpec` for a name or keyword that does not
    exist, a keyword left out, or a pattern that the relation cannot connect.

    >>> [pair.name for pair in stock_pairs("one_differs", queries=1)]
    ['one differs: first up', 'one differs: first down']
    """
    found = PATTERNS[validate.one_of("pattern", pattern, tuple(PATTERNS))]
    unknown = [key for key in parameters if key not in found.keywords]
    if unknown:
        raise InvalidSpec(f"pattern {pattern!r} has no parameter {unknown[0]!r}; it has: {', '.join(found.keywords)}")
    missing = [key for key in found.required if key not in parameters]
    if missing:
        raise InvalidSpec(f"pattern {pattern!r} needs the parameter {missing[0]!r}; give {missing[0]} = ...")
    stated = Relation.of(relation)
    if stated is not None and stated not in found.relations:
        fit = ", ".join(name for name, each in PATTERNS.items() if stated in each.relations)
        raise InvalidSpec(
            f"pattern {pattern!r} makes no neighbours under {stated.value}, the claim's relation; these do: {fit}"
        )
    try:
        pairs = found.make(**parameters)
    except InvalidSpec as error:
        raise InvalidSpec(f"pattern {pattern!r}: {error}") from None
    for pair in pairs:
        pair.check(stated)
    return tuple(replace(pair, reason=found.reason) for pair in pairs)
