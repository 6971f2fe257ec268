"""Pairs that nobody wrote down: of stock patterns by name, of one dataset, and drawn from a Hypothesis strategy.

Spec files and the search over pairs ask for the first two; the third are the first few that a strategy draws from a
seed, always the same.
"""

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from dpaudit.base import validate
from dpaudit.claims.claim import Relation
from dpaudit.data import stock
from dpaudit.data.data import digest, records_of, same
from dpaudit.data.data_records import ENDS, DataRecords, short
from dpaudit.data.data_users import Users, opened
from dpaudit.data.owners import User, by_user, stated
from dpaudit.data.pair import AdjacentPair
from dpaudit.errors import InvalidSpec, at

USER = Relation.ADD_OR_REMOVE_USER
ADD = (Relation.ADD_OR_REMOVE_ONE, USER)
REPLACE = (Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL, Relation.LOCAL)
AMONG = REPLACE[:2]  # of several records, which the local relation has not
ANY = tuple(Relation)
ONE_VALUE = (bool, int, float, str, bytes, type(None), np.generic)
NAN = "a number that becomes NaN leaves a sum or a count, by more than upper - lower"
ZERO = "an update of zeros is never clipped and has no direction: norms, counts and scales made of them tell of it"
RAISES = "what cannot be read raises on its side alone, and an exception is an output"
BOUND = "a sum that bounds each record and not how many one user has moves by as many times the bound"
ORDER = "the values are the same on both sides, so their order must tell nothing"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A function that makes pairs, the relations it is meant for, and what such a pair has found.

    `kind` is what pairs made of one dataset are counted by; empty for patterns that need more than a dataset. Under
    add_or_remove_user a pattern does to a user, with all of their records, what it does to a record elsewhere.
    """

    make: Callable[..., tuple[AdjacentPair, ...]]
    relations: tuple[Relation, ...]
    reason: str = ""
    kind: str = ""

    @property
    def keywords(self) -> tuple[str, ...]:
        """The names of its parameters, in their order."""
        return tuple(inspect.signature(self.make).parameters)

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters without a default."""
        parameters = inspect.signature(self.make).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty)

    def kind_under(self, relation: Relation | None) -> str:
        """The kind, in the words of the relation."""
        return OF_USERS.get(self.kind, self.kind) if relation is USER else self.kind

    def why(self, relation: Relation | None) -> str:
        """The kind and the reason, whichever there is."""
        return ": ".join(filter(None, (self.kind_under(relation), self.reason)))


OF_USERS = {
    "a record less": "a user less",
    "a duplicate more": "a copy of a user more",
    "all records of one value": "all users alike",
}
PATTERNS: dict[str, Pattern] = {
    "one_differs": Pattern(stock.one_differs, ANY),
    "all_differ": Pattern(stock.all_differ, ANY),
    "half_up_half_down": Pattern(stock.half_up_half_down, ANY),
    "far_from_threshold": Pattern(stock.far_from_threshold, ANY),
    "statdp_one_differs": Pattern(stock.statdp_one_differs, ANY),
    "statdp_all_differ": Pattern(stock.statdp_all_differ, ANY),
    "drop_one": Pattern(stock.drop_one, ADD, kind="a record less"),
    "add_one": Pattern(stock.add_one, ADD, kind="a duplicate more"),
    "replace_one": Pattern(stock.replace_one, REPLACE, kind="a record by another"),
    "add_outlier": Pattern(stock.add_outlier, ADD, kind="far out of bounds"),
    "add_zero": Pattern(stock.valued("added", 0), ADD, ZERO, "zero"),
    "add_nan": Pattern(stock.valued("added", math.nan), ADD, NAN, "NaN"),
    "add_infinity": Pattern(stock.valued("added", math.inf, -math.inf), ADD, kind="infinity"),
    "add_none": Pattern(stock.valued("added", None), ADD, RAISES, "None"),
    "add_in_front": Pattern(stock.add_in_front, ADD, ORDER, "another order"),
    "replace_by_outlier": Pattern(stock.replace_by_outlier, REPLACE, kind="far out of bounds"),
    "replace_by_zero": Pattern(stock.valued("first_replaced", 0), REPLACE, ZERO, "zero"),
    "replace_by_nan": Pattern(stock.valued("first_replaced", math.nan), REPLACE, NAN, "NaN"),
    "replace_by_infinity": Pattern(stock.valued("first_replaced", math.inf, -math.inf), REPLACE, kind="infinity"),
    "replace_by_none": Pattern(stock.valued("first_replaced", None), REPLACE, RAISES, "None"),
    "replace_in_front": Pattern(stock.replace_in_front, AMONG, ORDER, "another order"),
    "change_label": Pattern(
        stock.change_label, REPLACE, "a label moves a whole row from one sum to another, by more than its range"
    ),
    "far_from_zero": Pattern(
        stock.far_from_zero, ADD[:1], "one record moves a sum by a bound, which may be more than upper - lower"
    ),
    "last_of_category": Pattern(
        stock.last_of_category, ADD, "categories taken from the data lose one with it", "the last of its category"
    ),
    "alike": Pattern(stock.alike, ADD, kind="all records of one value"),
    "alike_but_one": Pattern(stock.alike_but_one, AMONG, kind="all records of one value"),
    "empty": Pattern(stock.empty, ADD, kind="the empty dataset"),
    "many_records": Pattern(stock.many_records, (USER,), BOUND, "a user with many records"),
}
FOUND = "found by recorded noise"  # the first words of the reason of a pair that shows a lead
UNASKED = ("add_none", "replace_by_none")  # only where they are named: a mechanism need not accept None
OF_VALUES = "two values"  # the kind of pairs of the local relation that are made of the values it was given


class Example(NamedTuple):
    """One example dataset, or a function that gives it, under a relation; `user` says whose each record is."""

    data: Any
    relation: Relation
    user: User | None = None


def pairs_of_data(
    data: Any, relation: Relation, patterns: Sequence[str] | None = None, user: User | None = None
) -> tuple[AdjacentPair, ...]:
    """Pairs made of one example dataset under a relation, by the patterns that suit both; or by those that are named.

    Each has its kind as the first words of its `reason`. Under the local relation a dataset of several records is read
    as the values that a mechanism may be given, and a single value is changed as a record is. Under add_or_remove_user
    `user` says whose record each one is, and users are changed as records are elsewhere. No pair is there twice. Raises
    `InvalidSpec` where none can be made, and for a named pattern that makes none.

    >>> [pair.name for pair in pairs_of_data(["a", "b"], Relation.ADD_OR_REMOVE_ONE, ["drop_one", "empty"])]
    ['drop one: first', 'drop one: last', 'empty: against the first']
    >>> [pair.second for pair in pairs_of_data([(1, 5), (2, 5), (1, 6)], USER, ["drop_one"], user=0)]
    [[(2, 5)], [(1, 5), (1, 6)]]
    """
    alone, local, of_users = isinstance(data, ONE_VALUE), relation is Relation.LOCAL, by_user(relation, user)
    if alone and not local:
        raise InvalidSpec(
            f"data = {short(data)} is one value, and {relation.value} is about records: give a list of them, "
            "relation 'local' (any two values are neighbours), or pair=(first, second)"
        )
    if local and not alone and patterns is None and len(records_of(data) or ()) > 1:
        return _of_values(records_of(data))
    if of_users:
        opened(Users(data, stated(user)), 1, least=1)
    candidates: dict[tuple[str, str], AdjacentPair] = {}
    suited = [name for name, each in PATTERNS.items() if each.kind and relation in each.relations]
    for name in [name for name in suited if name not in UNASKED] if patterns is None else patterns:
        try:
            pairs = stock_pairs(name, relation=relation, user=user, data=[data] if alone else data)
        except InvalidSpec:
            if patterns is not None:
                raise
            continue  # its kind counts as not tried
        for pair in pairs:
            if alone:
                pair = replace(pair, first=pair.first[0], second=pair.second[0])
            candidates.setdefault((digest(pair.first), digest(pair.second)), pair)
    if not candidates:
        cure = f"under {relation.value}; give pair=(first, second)"
        raise InvalidSpec(f"no pair can be made of data = {short(data)} {cure}")
    return tuple(candidates.values())


def _of_values(values: Sequence[Any]) -> tuple[AdjacentPair, ...]:
    """The first and the last, the least and the greatest of values that may be given, each against each other."""
    ends = {word: values[place] for word, (place,) in DataRecords(list(values), 1).ends(ENDS)}
    both = [(one, other) for one, other in combinations(ends, 2) if not same(ends[one], ends[other])]
    if not both:
        raise InvalidSpec(f"the values of data are all alike, {short(values[0])}; give two that differ")
    return tuple(AdjacentPair(ends[one], ends[other], f"{one} and {other}", reason=OF_VALUES) for one, other in both)


def kinds_of_pairs(reasons: Iterable[str], relation: Relation | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which kinds of pairs were made of one dataset, by the reasons of the pairs, and which might have been.

    >>> kinds_of_pairs(["zero: ..."], Relation.REPLACE_ONE)[1][:2]
    ('a record by another', 'far out of bounds')
    """
    tried = tuple(dict.fromkeys(reason.partition(": ")[0] for reason in reasons))
    every = dict.fromkeys(
        each.kind_under(relation) for each in PATTERNS.values() if each.kind and relation in each.relations
    )
    kinds = tuple(kind for kind in tried if kind in every or kind == OF_VALUES)
    return kinds, tuple(kind for kind in every if kind not in kinds)


def stock_pairs(
    pattern: str, *, relation: Relation | str | None = None, user: User | None = None, **parameters: Any
) -> tuple[AdjacentPair, ...]:
    """The pairs of a pattern, checked against the relation that the claim is stated for (None: none stated).

    `parameters` are the keywords of the pattern's function. With `user`, which says whose record each one of `data` is,
    users leave or come with all of their records. Raises `InvalidSpec` for a name or keyword that does not exist, a
    keyword left out, or a pattern that the relation cannot connect.

    >>> [pair.name for pair in stock_pairs("one_differs", queries=1)]
    ['one differs: first up', 'one differs: first down']
    """
    entry = PATTERNS[validate.one_of("pattern", pattern, tuple(PATTERNS))]
    unknown = [key for key in parameters if key not in entry.keywords]
    if unknown:
        raise InvalidSpec(f"pattern {pattern!r} has no parameter {unknown[0]!r}; it has: {', '.join(entry.keywords)}")
    missing = [key for key in entry.required if key not in parameters]
    if missing:
        raise InvalidSpec(f"pattern {pattern!r} needs the parameter {missing[0]!r}; give {missing[0]} = ...")
    under = Relation.of(relation)
    if under is not None and under not in entry.relations:
        fit = ", ".join(name for name, each in PATTERNS.items() if under in each.relations)
        raise InvalidSpec(
            f"pattern {pattern!r} makes no neighbours under {under.value}, the claim's relation; these do: {fit}"
        )
    if under is Relation.LOCAL and len(records_of(parameters.get("data", ())) or ()) > 1:
        raise InvalidSpec(
            f"pattern {pattern!r} changes a record, and under local data is the value of one person: give data=[value]"
        )
    of_users = by_user(under, user) and "data" in parameters
    if of_users and USER not in entry.relations:
        raise InvalidSpec(f"pattern {pattern!r} changes records, not users: leave out user = {user!r}")
    with at(f"pattern {pattern!r}"):
        if of_users:
            parameters["data"] = Users(parameters["data"], stated(user))
        pairs = entry.make(**parameters)
    for pair in pairs:
        pair.check(under)
    why = entry.why(USER if of_users else under)
    return tuple(replace(pair, reason=why) for pair in pairs)


PAIRS = 12  # pairs of one strategy: more of them would leave each too few search runs
TRIES = 10  # draws for each pair that is wanted; strategies repeat themselves, and draw equal datasets


def is_strategy(value: Any) -> bool:
    """Whether this is a Hypothesis strategy; Hypothesis is loaded by whoever made it, or it is none.

    >>> is_strategy([([1], [])])
    False
    """
    strategies = sys.modules.get("hypothesis.strategies")
    return strategies is not None and isinstance(value, strategies.SearchStrategy)


def drawn_pairs(strategy: Any, seed: int, count: int = PAIRS) -> tuple[AdjacentPair, ...]:
    """`count` different pairs that a strategy of (first, second) or of `AdjacentPair` draws from a seed.

    They are spread over its draws, from the simplest on; a strategy that has fewer gives fewer. The same seed draws
    the same pairs with one version of Hypothesis. Raises `InvalidSpec` where it draws something else, or no pair.
    """
    candidates: dict[tuple[str, str], Any] = {}
    for value in _draws(strategy, seed, TRIES * count):
        if not isinstance(value, AdjacentPair) and not (isinstance(value, list | tuple) and len(value) == 2):
            raise InvalidSpec(
                f"a strategy of pairs must draw (first, second) or dpaudit.AdjacentPair, it drew {value!r:.200}"
            )
        first, second = value.open() if isinstance(value, AdjacentPair) else value
        key = digest(first), digest(second)
        if key[0] != key[1]:
            candidates.setdefault(key, value)
    if not candidates:
        raise InvalidSpec("the strategy of pairs drew none of two different datasets; change the strategy")
    values = list(candidates.values())
    step = max(1.0, (len(values) - 1) / max(1, count - 1))
    chosen = [values[round(step * number)] for number in range(min(count, len(values)))]
    return tuple(AdjacentPair.of(value, f"drawn pair {number}") for number, value in enumerate(chosen, start=1))


def _draws(strategy: Any, seed: int, most: int) -> list[Any]:
    from hypothesis.errors import HypothesisException

    hypothesis: Any = import_module("hypothesis")
    drawn: list[Any] = []
    quiet = hypothesis.settings(
        max_examples=most,
        database=None,
        deadline=None,
        derandomize=False,
        backend="hypothesis",
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    def keep(value: Any) -> None:
        drawn.append(value)

    try:
        with without_constants():
            hypothesis.seed(seed)(quiet(hypothesis.given(strategy)(keep)))()
    except HypothesisException as error:
        raise InvalidSpec(f"the strategy of pairs cannot be drawn from ({type(error).__name__}: {error})") from None
    except Exception as error:  # raised by a function that the strategy calls
        raise InvalidSpec(
            f"the strategy of pairs raised {type(error).__name__}: {error!s:.200}; "
            "its example() shows where, outside of an audit"
        ) from None
    return drawn


@contextmanager
def without_constants() -> Iterator[None]:
    """Hypothesis mixes in constants of the modules loaded so far: what it draws would depend on these."""
    name = "hypothesis.internal.conjecture.providers"
    module: Any = import_module(name) if find_spec(name) else None
    if not hasattr(module, "CONSTANTS_CACHE") or not hasattr(module.HypothesisProvider, "_local_constants"):
        yield  # a version without such constants
        return
    home: Any = module.HypothesisProvider
    constants, cache, none = home.__dict__["_local_constants"], module.CONSTANTS_CACHE, module.Constants()
    home._local_constants = property(lambda provider: none)
    module.CONSTANTS_CACHE = type(cache)(1024)
    try:
        yield
    finally:
        home._local_constants = constants
        module.CONSTANTS_CACHE = cache
