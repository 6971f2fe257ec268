"""What every claim form answers, and relations: who counts as a neighbour of whom.

A new form is one module with one class, and a place in `claims.FORMS`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, fields, replace
from enum import Enum
from typing import Any, ClassVar, Self

from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import Bound, exact, meant
from dpaudit.errors import InvalidSpec

_ALIASES = {"unbounded": "add_or_remove_one", "bounded": "replace_one"}


class Relation(Enum):
    """How two adjacent datasets differ, in the words of the field's accounting libraries.

    Two have a second name: unbounded is add_or_remove_one, bounded is replace_one. Hyphens are underscores.

    >>> Relation.of("add-or-remove-one"), Relation.of("bounded")
    (<Relation.ADD_OR_REMOVE_ONE: 'add_or_remove_one'>, <Relation.REPLACE_ONE: 'replace_one'>)
    """

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"
    REPLACE_SPECIAL = "replace_special"
    LOCAL = "local"
    ADD_OR_REMOVE_USER = "add_or_remove_user"  # all records of one user

    @classmethod
    def of(cls, word: "Relation | str | None") -> "Relation | None":
        """The relation with this name; None stays None (none stated, none checked)."""
        if word is None or isinstance(word, Relation):
            return word
        given = word.lower().replace("-", "_") if isinstance(word, str) else ""
        try:
            return cls(_ALIASES.get(given, given))
        except ValueError:
            known = ", ".join(relation.value for relation in cls)
            hint = meant(given, cls.words(), " (or unbounded, bounded)")
            raise InvalidSpec(f"relation must be one of {known}, got {word!r}{hint}") from None

    @classmethod
    def words(cls) -> list[str]:
        """All names that relations have, with underscores."""
        return [*(relation.value for relation in cls), *_ALIASES]

    @staticmethod
    def word(relation: "Relation | None") -> str | None:
        """The name of a relation, as specs and results store it; None stays None."""
        return None if relation is None else relation.value


LARGEST_LOSS = 700.0  # e to a larger power is no float
FULL_DIGITS = 1e9  # from here on a ratio is written as a power of ten


def times(epsilon: float) -> str:
    """How many times as probable an epsilon above 0 allows.

    >>> times(1.0), times(1e4)
    ('about 2.72 times', 'about e to the 10000 times')
    """
    if epsilon > LARGEST_LOSS:
        return f"about e to the {exact(epsilon)} times"
    ratio = math.exp(epsilon)
    if ratio < 1_000.0:
        return f"about {ratio:.3g} times"
    power = math.floor(math.log10(ratio))
    whole = f"{round(ratio / 10.0 ** (power - 2)) * 10 ** (power - 2):,}" if ratio < FULL_DIGITS else f"10^{power:,}"
    return f"about {whole} times"


FLAT = 1.25  # a ratio of probabilities that bad luck may well turn into none
POINTS = list[tuple[float, float]]


def key(
    said: str, check: Callable[[str, Any], object], kind: Any = float, name: str | None = None, **limits: float
) -> dict[str, Any]:
    """The metadata of a claim's field: `epsilon: float = field(metadata=key("at least 0", validate.not_negative))`.

    What a spec says of it, how it is checked, its kind in a spec, what a spec calls it (None: as the field), and its
    limits as stored: `ge`, `gt`, `le`, as msgspec has them.
    """
    return {"said": said, "check": check, "kind": kind, "name": name, "limits": limits}


@dataclass(frozen=True, slots=True)
class HalfPlane:
    """The points (q, p) = (Q(S), P(S)) with p <= ratio * q + offset: the one shape that certification tests.

    Every claim form is a convex region p <= G(q) (Dong, Roth & Su 2022, section 2); its tangent at the point that
    search found contains it, so that refuting the half-plane refutes the claim. With an infinite ratio it says
    something only where q is 0.

    >>> HalfPlane(ratio=2.0, offset=0.1).holds(p=0.5, q=0.2)
    True
    """

    ratio: Bound
    offset: float

    def holds(self, p: float, q: float) -> bool:
        """Whether the point (q, p) lies in the half-plane."""
        return p <= (self.offset if q == 0.0 else self.ratio * q + self.offset)


@dataclass(frozen=True, slots=True)
class Claim(ABC):
    """A promise about every adjacent pair: P(S) <= G(Q(S)) for every set S of outputs, in both orders.

    G is concave, so for each d in [0, 1] the claim implies one half-plane p <= e^epsilon q + d, with the epsilon
    that `epsilon_at(d)` gives: the line through (0, d) that touches the region. What runs certify is such an epsilon
    at a d that was frozen before; `lower` says what it means for the claim's own parameter. Members of a form's
    family are nested, so the half-planes at one d are nested too, and `lower` is valid without any correction.

    A form is a frozen dataclass whose fields carry a `key` each, and `relation` last. Specs, stored results, sweeps
    and reports are derived from these; `stored` is what the schema of results says of the form.
    """

    example: ClassVar[tuple[Any, ...]]  # the values of one claim of the form, with which calibration tries it
    form: ClassVar[str]  # the name under which results store it
    parameter: ClassVar[str]  # the number that orders its family
    pure: ClassVar[bool] = False  # whether every member promises a ratio of probabilities and no delta
    linear: ClassVar[bool] = False  # whether it is p <= e^epsilon q + delta and the mirror image, epsilon its parameter
    stored: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            if check := each.metadata.get("check"):
                object.__setattr__(self, each.name, check(each.name, getattr(self, each.name)))
        object.__setattr__(self, "relation", Relation.of(self.relation))

    @property
    @abstractmethod
    def relation(self) -> Relation | None:
        """The relation the promise is stated for; None: none stated, none checked."""

    @property
    def delta(self) -> float:
        """The additive part of the promise; 0 where the form has none."""
        return 0.0

    @property
    def value(self) -> float | None:
        """The claim's own `parameter`; None of a curve, whose parameter is an epsilon at a delta."""
        return float(getattr(self, self.parameter))

    @abstractmethod
    def max_probability(self, q: float) -> float:
        """G(q): the largest P(S) that the claim allows where Q(S) = q."""

    @abstractmethod
    def tangent(self, q: float) -> HalfPlane:
        """A half-plane that contains the region (rounded outwards) and touches it at Q(S) = q."""

    @abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """The least epsilon of the (epsilon, delta)-DP that the claim implies, rounded up; inf where there is none.

        It is ln sup (G(q) - delta) / q over q in (0, 1], and at least 0.
        """

    @abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """The privacy profile: the least delta of the (epsilon, delta)-DP that the claim implies, rounded up."""

    @abstractmethod
    def lower(self, epsilon: float, delta: float) -> float:
        """The least value of `parameter` whose member has `epsilon_at(delta)` of at least `epsilon`, rounded down.

        0.0 where that says nothing: `epsilon` is not above 0, or every member has an infinite one at this delta.
        inf where no member reaches it, as at a delta of 1.
        """

    def promised(self, delta: float) -> float:
        """The promised value that `lower(..., delta)` is compared with: its own parameter; of a curve, its epsilon."""
        return self.epsilon_at(delta) if (own := self.value) is None else own

    @abstractmethod
    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        """The least parameter whose member's region holds each point (q, p); for scores, not for certificates.

        Arrays of one shape in, that shape out; -inf where every member holds the point, inf where none does.
        """

    @abstractmethod
    def delta_through(self, q: float, p: float) -> float:
        """The delta to freeze for a point that search found: where the tangent, at (q, p), of its member meets q = 0.

        Beyond p + q = 1 that of the mirror image (1 - p, 1 - q): the complement of the event, on the other side, is
        the event whose half-plane has a slope of at least 1.
        """

    def at_distance(self, distance: int) -> "Claim":
        """What the claim implies for datasets `distance` steps apart (group privacy)."""
        k = validate.whole("distance", distance, least=1)
        return self if k == 1 else self.of_groups(k)

    @abstractmethod
    def of_groups(self, k: int) -> "Claim":
        """The same for datasets `k` steps apart, at least 2."""

    def orders(self, among: Sequence[float] = (2.0,)) -> tuple[float, ...]:
        """The Rényi orders at which it bounds the divergence itself: its own, or all `among` these; often none."""
        return ()

    def at_divergence(self, order: float, divergence: float) -> float:
        """The parameter of the member that promises just this divergence at one of its `orders`."""
        raise InvalidSpec(f"bins are for claims about Rényi divergences, got the claim {self}")

    @property
    def where(self) -> str:
        """Where a bound on the parameter is stated, besides a delta: ` at order 2`."""
        return ""

    @property
    def short(self) -> str:
        """What is claimed: `epsilon 1 and delta 1e-06`, `mu 0.5`."""
        given = [(each, getattr(self, each.name)) for each in self.spec_fields().values()]
        return " and ".join(f"{each.name} {exact(value)}" for each, value in given if value != each.default)

    @abstractmethod
    def promise(self, other: str) -> str:
        """What it promises in plain words, of one dataset and `other`: `its neighbour`, or `the other`."""

    @abstractmethod
    def __str__(self) -> str: ...

    def with_relation(self, relation: Relation | str | None) -> Self:
        """The same promise, stated for a relation."""
        return replace(self, relation=relation)  # type: ignore[call-arg]

    def with_value(self, value: float) -> Self:
        """The member of the family with this `parameter`; not for a curve, which has none."""
        return replace(self, **{self.parameter: value})

    @classmethod
    def spec_fields(cls) -> dict[str, Field[Any]]:
        """The fields that a spec states, by the keys that it has for them."""
        return {each.metadata["name"] or each.name: each for each in fields(cls) if each.metadata}

    def to_dict(self) -> dict[str, object]:
        """The claim as plain values, as specs and results store it; `claim_from_dict` reads it back."""
        stored: dict[str, object] = {"form": self.form}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.init and value is not False:  # a flag is stored where it is set
                stored[each.name] = [list(point) for point in value] if isinstance(value, tuple) else value
        return {**stored, "relation": Relation.word(self.relation)}


def frozen_delta(claim: Claim, q: float, p: float) -> float:
    """The delta to freeze with an event at (q, p), so that what is tested there bounds the claim's region closely.

    It is `delta_through`, but where that tangent is flatter than `FLAT` a delta through (q, p) that leaves some
    epsilon, though never less than `delta_at(0)`: at that one the claim implies p <= q + delta_at(0), and beyond it
    a larger delta only weakens what is tested.

    >>> from dpaudit.claims import GaussianDP
    >>> claim = GaussianDP(0.5)
    >>> frozen_delta(claim, 0.4, 0.599) == claim.delta_at(0.0) < claim.delta_through(0.4, 0.599)
    True
    """
    through = claim.delta_through(q, p)
    if through <= claim.delta:
        return through
    if p + q > 1.0:  # the mirrored point, whose tangent `delta_through` gives
        q, p = 1.0 - p, 1.0 - q
    return min(through, max(claim.delta_at(0.0), p - FLAT * q))
