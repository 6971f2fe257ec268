"""What an adapter returns: a mechanism that each worker builds itself, and what is known of it; and local ones."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, ClassVar, Self

from dpaudit.claims import Claim, PureDP, Relation
from dpaudit.data import AdjacentPair
from dpaudit.data.pair import VALUES
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.functions import Imported, describe, name_of, wrap
from dpaudit.mechanisms.protocol import ADAPTED, Description, Mechanism, Opened


@dataclass(frozen=True, slots=True)
class Adapted(ABC):
    """A mechanism made by a function of the user, in each worker that runs it; `parameters` are its keywords.

    `dpaudit.audit` takes its claim and its pairs where none are given, and has the pairs checked.
    """

    make: Any
    parameters: dict[str, Any] = field(default_factory=dict)

    adapter: ClassVar[str]

    @property
    def name(self) -> str:
        """What the user calls it."""
        return name_of(self.make)

    @abstractmethod
    def adapt(self) -> Any:
        """The mechanism, from a new object of `make`: a function of one run, or `batched(...)`."""

    @property
    def claim(self) -> Claim | None:
        """What the object promises; None where it does not say."""
        return None

    @property
    def pairs(self) -> tuple[AdjacentPair, ...]:
        """The pairs that suit it; none where the user chooses them."""
        return ()

    def checked(self, pair: AdjacentPair) -> AdjacentPair:
        """The pair, with what is known of it. Raises `InvalidSpec` for one that the claim does not speak of."""
        return pair

    def open(self) -> Opened:
        """The mechanism, ready to run in this worker."""
        return wrap(self.adapt()).open()

    def describe(self) -> Description:
        """The user's function by its source, the options of the adapter, and the adapter as the kind."""
        own = [each for each in fields(self) if each.name not in ("make", "parameters", "hidden")]
        options = {each.name: getattr(self, each.name) for each in own if getattr(self, each.name) != each.default}
        return describe(self.make, ADAPTED + self.adapter, {**options, **self.parameters}, self.open().takes_rng)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Self:
        """The same with more parameters given."""
        return replace(self, parameters={**self.parameters, **parameters})


@dataclass(frozen=True, slots=True)
class OwnClaim:
    """Where a spec states no claim: the mechanism's own, asked where it may be opened. The relation is the spec's."""

    relation: Relation | None = None

    short: ClassVar[str] = "its own"

    def to_dict(self) -> dict[str, Any]:
        """As what is recorded of a question."""
        return {"form": self.short, "relation": self.relation and self.relation.value}


def settled(
    claim: Any, user: str | int | None, mechanism: Mechanism, pairs: tuple[AdjacentPair, ...]
) -> tuple[Any, tuple[AdjacentPair, ...]]:
    """`offered` of the mechanism behind a name; of one that is not adapted, claim and pairs as they are."""
    inner = mechanism.resolve() if isinstance(mechanism, Imported) else mechanism
    asked = isinstance(claim, OwnClaim) or isinstance(inner, Adapted)
    return offered(claim, user, inner, pairs) if asked else (claim, pairs)


def offered(
    claim: Any, user: str | int | None, mechanism: Mechanism, pairs: tuple[AdjacentPair, ...]
) -> tuple[Claim, Any]:
    """Claim and pairs of an audit: of an adapted mechanism its own where none are given, the pairs checked.

    `user` says whose record each one of their datasets is. Raises `InvalidSpec` where there is no claim (`OwnClaim`),
    and for a pair that is none under claim or mechanism.
    """
    own = mechanism if isinstance(mechanism, Adapted) else None
    pairs = tuple(each.of_user(user) for each in (pairs if own is None else pairs or own.pairs))
    pairs = pairs if own is None else tuple(map(own.checked, pairs))
    if isinstance(claim, OwnClaim):
        stated = None if own is None else own.claim
        if stated is None:
            cure = "claim = { epsilon = 1.0 } in a spec, epsilon=1.0 in Python, --epsilon 1 in a shell"
            raise InvalidSpec(f"an audit needs a claim, and {mechanism.name} states none: {cure}")
        claim = stated if claim.relation is None else stated.with_relation(claim.relation)
    if not pairs:
        cure = "pair = { first = ..., second = ... } in a spec, pair=(first, second) in Python, --pair in a shell"
        raise InvalidSpec(f"an audit needs a pair, and {mechanism.name} has none: {cure}")
    for each in pairs:
        each.check(claim.relation)
    return claim, pairs


def local(f: Any, domain: Iterable[Any], epsilon: float | None = None, **parameters: Any) -> "Local":
    """A mechanism of one value, `f(value, rng)` or any other form, on all pairs of values of its domain.

    Search looks at both orders of a pair, so each two values stand once: `k` values make k (k - 1) / 2 pairs. `epsilon`
    is the claim. Raises `InvalidSpec` for fewer than two values, and for one that stands there twice.

    >>> flip = local(lambda bit, rng: bit ^ (rng.random() < 0.25), [0, 1, 2], epsilon=1.1)
    >>> [(pair.first, pair.second) for pair in flip.pairs]
    [(0, 1), (0, 2), (1, 2)]
    """
    values = tuple(domain)
    if len(values) < 2:
        raise InvalidSpec(f"a local mechanism needs a domain of at least two values, got {len(values)}")
    return Local(f, parameters, values, epsilon)


@dataclass(frozen=True, slots=True)
class Local(Adapted):
    """A mechanism of one value with its domain; made by `local`."""

    domain: tuple[Any, ...] = ()
    epsilon: float | None = None

    adapter: ClassVar[str] = "local"

    @property
    def name(self) -> str:
        """As of the mechanism alone."""
        return self.adapt().name

    def adapt(self) -> Mechanism:
        return wrap(self.make, self.parameters)

    def describe(self) -> Description:
        """As of the mechanism alone."""
        return self.adapt().describe()

    @property
    def claim(self) -> PureDP | None:
        """Local DP at `epsilon`, where that is given."""
        plain = {type(value) for value in self.domain} <= VALUES  # of others their records would be compared
        return None if self.epsilon is None else PureDP(self.epsilon, Relation.LOCAL if plain else None)

    @property
    def pairs(self) -> tuple[AdjacentPair, ...]:
        """All pairs of two values."""
        return tuple(AdjacentPair(one, other, f"{one!r} and {other!r}") for one, other in combinations(self.domain, 2))
