"""The grid of a sweep: every combination of mechanism, parameters, claim, pair and procedure, in a fixed order.

A combination that cannot be asked (a parameter that the mechanism does not have, a certifier that is not for the claim)
is a point with the reason. What is wrong in the grid itself (a word that nothing knows, no mechanism) is an error.
"""

import itertools
import json
import math
import numbers
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import PathFinder
from importlib.util import find_spec
from inspect import signature
from typing import Any

from dpaudit.auditing.known import known_of
from dpaudit.auditing.question import Question
from dpaudit.base import validate
from dpaudit.base.quoting import clean
from dpaudit.certify import certifier_names
from dpaudit.claims import Claim, PureDP, Relation, check_claim
from dpaudit.data import AdjacentPair
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms import Imported, Mechanism, wrap
from dpaudit.mechanisms.functions import own
from dpaudit.mechanisms.importing import import_reference, in_a_line, is_own, not_there
from dpaudit.mechanisms.protocol import Known
from dpaudit.options import IN_SWEEPS, SWEEP_KEYS
from dpaudit.verify.bracketing.targets import epsilon_of

LARGEST_GRID = 100_000  # points: beyond that a grid is a slip, such as a list of runs given as a list of seeds


@dataclass(frozen=True, slots=True)
class Grid:
    """What a sweep varies; a point for every combination, the last axis fastest.

    `mechanisms` are what `dpaudit.audit` takes. `parameters` are the combinations of their keywords. A claim or pair of
    None is the catalogue entry's own; of a mapping it is the one under the name of the mechanism, and what a mapping
    leaves out is None; a function is called with those parameters of the point that it names. `options` are the values
    of options of audits, by their names. `prove`: every question is bounded from above too.

    Raises `InvalidSpec` for an empty axis, an unknown word, a number out of range, a mechanism that is not there and a
    mapping with the name of none of them.
    """

    mechanisms: tuple[Any, ...]
    parameters: tuple[Mapping[str, Any], ...] = ({},)
    claims: tuple[Any, ...] = (None,)
    pairs: tuple[Any, ...] = (None,)
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    folder: str | None = None  # heads the import path of mechanisms given as text
    relation: Relation | None = None
    name: str = "sweep"
    prove: bool = False

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name, values in self.axes.items():
            if not values:
                raise InvalidSpec(f"{name} must hold at least one value, got none")
        if unknown := [name for name in self.options if name not in IN_SWEEPS]:
            raise InvalidSpec(f"a sweep has no option {unknown[0]!r}; it has: {', '.join(IN_SWEEPS)}")
        for name, each in IN_SWEEPS.items():
            if each.axis and not each.axis.several and len(self.procedures[name]) > 1:
                raise InvalidSpec(f"{each.axis.key} must be one value for all points, got {len(self.procedures[name])}")
        checked = {name: tuple(_checked(name, each) for each in values) for name, values in self.procedures.items()}
        put("options", checked)
        put("parameters", tuple({key: plain_number(value) for key, value in each.items()} for each in self.parameters))
        put("mechanisms", tuple(_found(each, self.folder) for each in self.mechanisms))
        names = set(map(_name, self.mechanisms))
        if any(isinstance(value, Mapping) and key in names for each in self.parameters for key, value in each.items()):
            raise InvalidSpec("parameters are those of all mechanisms; for others make two sweeps and join them with +")
        for axis in ("claims", "pairs"):
            _check_named(axis, getattr(self, axis), list(map(_name, self.mechanisms)))
        for name, values in self.axes.items():
            _check_once(name, values)
        if self.size > LARGEST_GRID:
            raise InvalidSpec(f"a sweep has at most {LARGEST_GRID:,} points, got {self.size:,}; give shorter lists")

    @property
    def procedures(self) -> dict[str, tuple[Any, ...]]:
        """The values of every option that a sweep knows."""
        return {name: self.options.get(name, (each.default,)) for name, each in IN_SWEEPS.items()}

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The values of each axis, by the name that a sweep has for it."""
        ours = {name: getattr(self, name) for name in ("mechanisms", "parameters", "claims", "pairs")}
        return ours | {SWEEP_KEYS[name]: values for name, values in self.procedures.items()}

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(map(len, self.axes.values()))


def _checked(name: str, value: Any) -> Any:
    if name == "certifier" and value is not None:
        return validate.one_of(SWEEP_KEYS[name], value, certifier_names())
    option = IN_SWEEPS[name]
    return value if value is option.default is None else option.check(SWEEP_KEYS[name], value)


@dataclass(frozen=True, slots=True)
class Point:
    """One question of a sweep, or the reason (`error`) why it cannot be asked.

    `parameters` are the keywords that were given, `pair` may still be one that only a worker opens.
    """

    number: int
    name: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    mechanism: Mechanism | None = None
    claim: Claim | None = None
    pair: Any = None
    error: str | None = None

    @property
    def known(self) -> Known | None:
        """The mechanism, where it offers its claim, its pair and its loss; None where it does not."""
        try:
            return None if self.mechanism is None else known_of(self.mechanism)
        except DpAuditError:
            return None

    def question(self) -> Question:
        """The question of the point. Raises `InvalidSpec` where it cannot be asked."""
        assert self.mechanism is not None
        assert self.claim is not None
        return Question(self.claim, self.mechanism, (self.pair,), name=self.name, **self.options)


def points(grid: Grid) -> Iterator[Point]:
    """Every point of the grid, in its order, numbered from 1.

    >>> from dpaudit.catalogue.additive import laplace
    >>> [point.claim.epsilon for point in points(Grid((laplace,), ({"epsilon": 0.5}, {"epsilon": 2.0})))]
    [0.5, 2.0]
    """
    number = 0
    for mechanism, parameters in itertools.product(grid.mechanisms, grid.parameters):
        for claim, pair in itertools.product(grid.claims, grid.pairs):
            asked = _asked(grid, mechanism, parameters, claim, pair)
            for values in itertools.product(*grid.options.values()):
                number += 1
                yield replace(asked, number=number, options=dict(zip(grid.options, values, strict=True)))


def _asked(grid: Grid, mechanism: Any, parameters: Mapping[str, Any], claim: Any, pair: Any) -> Point:
    name = _name(mechanism)
    given = dict(parameters)
    claim, pair = (each.get(name) if isinstance(each, Mapping) else each for each in (claim, pair))
    asked: dict[str, Any] = {}
    try:
        if not isinstance(mechanism, str):
            wrapped = wrap(mechanism, given)
        else:
            wrapped = own(mechanism, given) if is_own(mechanism) else Imported(mechanism, given, grid.folder)
        name = wrapped.name
        known = known_of(wrapped)
        bound = getattr(wrapped, "parameters", given) if known is None else known.bound
        given = dict(bound) if isinstance(bound, Mapping) else given
        _check_plain(given)
        values = given if known is None else known.values()
        promised = _claim(claim, values, known, grid.relation)
        between = _pair(pair, values, known)
        if isinstance(between, AdjacentPair):
            between = between.of_user(grid.options["user"][0])
            between.check(promised.relation)
        asked = {"mechanism": wrapped, "claim": promised, "pair": between}
    except DpAuditError as error:
        asked["error"] = str(error)
    except Exception as error:  # a mechanism of the user's own kind: only its own points are without an answer
        asked["error"] = f"making the question failed with {in_a_line(error)}"
    return Point(0, name, {key: value if _plain(value) else _kind(value) for key, value in given.items()}, **asked)


def _found(mechanism: Any, folder: str | None) -> Any:
    """A mechanism that is there: the entry of the catalogue that a text names, otherwise what was given."""
    if not isinstance(mechanism, str):
        return mechanism
    module, colon, attribute = mechanism.partition(":")
    if not colon:
        return import_reference("dpaudit.catalogue:find")(mechanism)
    if not (module and attribute):
        raise InvalidSpec(f"a mechanism reads module:attribute, or names an entry of the catalogue, got {mechanism!r}")
    package = module.partition(".")[0]
    if is_own(mechanism):
        import_reference(mechanism)
    elif not (
        package in sys.modules or package and (PathFinder.find_spec(package, [folder or ""]) or find_spec(package))
    ):
        raise not_there(mechanism, package)  # and no more is looked at: it is imported where mechanisms may run
    return mechanism


def _check_named(axis: str, values: Sequence[Any], mechanisms: list[str]) -> None:
    """Raises `InvalidSpec` where a mapping has the name of no mechanism."""
    for name in (name for each in values if isinstance(each, Mapping) for name in each if name not in mechanisms):
        hint = validate.meant(str(name), mechanisms, f"; the sweep has: {', '.join(mechanisms)}")
        raise InvalidSpec(f"{axis}: there is no mechanism {name!r}{hint}")


def _claim(stated: Any, parameters: Mapping[str, Any], known: Known | None, relation: Relation | None) -> Claim:
    claim: Any = stated
    if callable(claim) and not isinstance(claim, type):
        claim = _called("claim", claim, parameters)
    if isinstance(claim, str):
        claim = epsilon_of(claim, parameters)
    if isinstance(claim, numbers.Real):
        claim = PureDP(validate.not_negative("claim", claim), relation)
    if claim is None:
        if known is None:
            raise InvalidSpec("an audit needs a claim, such as claim=1.0 or '2*eps'; entries of the catalogue have one")
        claim = known.claim()
        if relation is not None:
            claim = claim.with_relation(relation)
    return check_claim(claim)


def _pair(pair: Any, parameters: Mapping[str, Any], known: Known | None) -> Any:
    if hasattr(pair, "resolve"):  # it is made where mechanisms may run
        return pair
    if callable(pair):
        pair = _called("pair", pair, parameters)
    if pair is None:
        if known is None:
            raise InvalidSpec("an audit needs two datasets, pair=(first, second); entries of the catalogue have them")
        return known.pair
    return AdjacentPair.of(pair)


def _called(what: str, make: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """What a user's function makes of those parameters that it names, or of all where it has `**others`."""
    try:
        takes = signature(make).parameters
        others = any(each.kind is each.VAR_KEYWORD for each in takes.values())
        return make(**{name: value for name, value in parameters.items() if others or name in takes})
    except DpAuditError:
        raise
    except Exception as error:  # a user's function: whatever it does, only its own points are without an answer
        known = f"it is called with those parameters of the point that it names, of: {', '.join(parameters) or 'none'}"
        raise InvalidSpec(f"making the {what} failed with {in_a_line(error)}; {known}") from None


def _name(mechanism: Any) -> str:
    if isinstance(mechanism, str):
        return mechanism.partition(":")[2] or mechanism
    name = getattr(mechanism, "name", None) or getattr(mechanism, "__qualname__", type(mechanism).__name__)
    return str(name).replace("<locals>.", "")  # as results have it


def _check_once(name: str, values: Sequence[Any]) -> None:
    """A value that stands twice on an axis would count one point twice. Raises `InvalidSpec`."""
    seen: set[Any] = set()
    for each in values:
        key = json.dumps(each, sort_keys=True) if isinstance(each, Mapping) and _plain(each) else each
        try:
            known = key in seen
            seen.add(key)
        except TypeError:  # it cannot be hashed: datasets, arrays
            continue
        if known:
            raise InvalidSpec(f"{name} holds the same value twice, {clean(repr(each), 200)}; leave one of the two out")


def _plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _kind(value: Any) -> str:
    return f"<{type(value).__qualname__}>"


def plain_number(value: Any) -> Any:
    """A number of numpy as Python's own, so that results can store it; anything else as it is."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def _check_plain(given: Mapping[str, Any]) -> None:
    """Parameters stand in results, as JSON, which has no NaN."""
    for key, value in given.items():
        if not _plain(value):
            shown = clean(repr(value), 200) if isinstance(value, float | list | tuple | dict) else _kind(value)
            raise InvalidSpec(
                f"parameters.{key}: a sweep records its parameters, so they must be finite numbers, texts, and lists "
                f"or tables of them, got {shown}; give functools.partial(function, ...) for others"
            )
