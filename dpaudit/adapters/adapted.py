"""What an adapter returns: a mechanism that each worker builds anew, and what is known of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from dpaudit.claims import Claim
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.functions import describe, name_of
from dpaudit.mechanisms.importing import in_a_line
from dpaudit.mechanisms.protocol import ADAPTED, Description, Opened
from dpaudit.mechanisms.resolve import wrap
from dpaudit.pairs import AdjacentPair


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
        """The mechanism, from what was made anew: a function of one run, or `batched(...)`."""

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

    def made(self) -> Any:
        """What the user's function makes. Raises `InvalidSpec` where it cannot."""
        try:
            return self.make(**self.parameters)
        except DpAuditError:
            raise
        except Exception as error:
            raise InvalidSpec(f"{self.name} could not build the mechanism: {in_a_line(error)}") from None

    def open(self) -> Opened:
        """The mechanism, ready to run in this worker."""
        return wrap(self.adapt()).open()

    def describe(self) -> Description:
        """The user's function by its source, what the adapter was told, and the adapter as the kind."""
        own = [each for each in fields(self) if each.name not in ("make", "parameters", "hidden")]
        told = {each.name: getattr(self, each.name) for each in own if getattr(self, each.name) != each.default}
        return describe(self.make, ADAPTED + self.adapter, {**told, **self.parameters}, self.open().takes_rng)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Self:
        """The same with more parameters given."""
        return replace(self, parameters={**self.parameters, **parameters})


def offered(mechanism: Any, claim: Any, epsilon: float | None, pair: Any, pairs: Any) -> tuple[Any, Any, Any]:
    """Claim, pair and pairs of an audit: of an adapted mechanism its own where none are given, the pairs checked."""
    if not isinstance(mechanism, Adapted):
        return claim, pair, pairs
    if claim is None and epsilon is None:
        claim = mechanism.claim
        if claim is None:
            raise InvalidSpec(f"{mechanism.name} states no claim; give it yourself: claim=...")
    if pair is not None:
        return claim, mechanism.checked(AdjacentPair.of(pair)), pairs
    given = pairs or mechanism.pairs or None
    if given is None:
        return claim, None, None
    if not isinstance(given, list | tuple):
        raise InvalidSpec(f"pairs of an adapted mechanism are a list, each to be checked, got {type(given).__name__}")
    named = (AdjacentPair.of(each, f"pair {at}") for at, each in enumerate(given))
    return claim, None, tuple(map(mechanism.checked, named))
