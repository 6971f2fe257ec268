"""The bounds around the true epsilon: what is known from below and from above, and what follows for the claim.

Contract: REFUTED and PROVED need a bound that is certified, exact or proved, PINNED one for all inputs that is proved
or exact; a search that found nothing changes no verdict, a bound in plain floats neither refutes nor proves nor pins,
one that a lower bound exceeds proves nothing, and where any two contradict each other none pins.
"""

import itertools
import math
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from dpaudit.base import validate
from dpaudit.base.strict import JsonObject, Written, by_fields, stored
from dpaudit.base.validate import Bound, Probability
from dpaudit.claims import ApproximateDP, Claim, PureDP, implies
from dpaudit.claims.rounding import HAIR
from dpaudit.errors import InvalidSpec
from dpaudit.results.display import Displayed


class Label(Enum):
    """What kind of statement an upper bound is."""

    EXACT_FINITE = "exact-finite"  # the code itself, run on every choice: all listed inputs, all outputs
    EXACT_PAIR = "exact-pair"  # one pair of datasets, all outputs
    PROVED = "proved"  # all inputs of the scope, all outputs
    NUMERIC_UPPER = "numeric-upper"  # the declared mechanism, computed with floats that err upwards


class Arithmetic(Enum):
    """What the numbers were computed with."""

    RATIONAL = "exact rational"
    BALLS = "balls"  # rigorous enclosures
    REALS = "reals"  # linear arithmetic over the real numbers, decided by a solver
    FLOATS = "floats"


@dataclass(frozen=True, slots=True)
class UpperBound:
    """An upper bound on the loss: what kind of statement it is, for which inputs, and where it comes from.

    The privacy loss is at most `epsilon_upper` at `delta`, for what `scope` says.
    `scope` says in words which inputs (and which number of them) the bound holds for; `source` what made it.
    `epsilon_lower` is given where the same computation also says that the loss is at least so large, as an exact one
    does: it is then no statistical bound. `shows` is a claim of another form that is shown too. Labels `exact-finite`
    and `proved` hold for all inputs of the scope; `exact-pair` for one pair.

    >>> UpperBound(1.0, 0.0, Label.PROVED, "all query answers", Arithmetic.REALS, "alignment").holds_for_all_inputs
    True
    """

    epsilon_upper: Bound
    delta: Probability
    label: Label
    scope: str
    arithmetic: Arithmetic
    source: str
    epsilon_lower: Bound | None = None
    shows: Claim | None = None
    _KEYS: ClassVar = ("epsilon_upper", "epsilon_lower", "delta", "label", "scope", "arithmetic", "source", "shows")
    _LATER: ClassVar = ("shows",)
    _SPARSE: ClassVar = ("shows",)

    def __post_init__(self) -> None:
        for name, kind in (("label", Label), ("arithmetic", Arithmetic), ("scope", str), ("source", str)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise InvalidSpec(f"{name} must be a {kind.__name__}, got {value!r}")
        for name in ("epsilon_upper", "delta", "epsilon_lower"):
            value = getattr(self, name)
            if value is not None or name != "epsilon_lower":
                object.__setattr__(self, name, validate.real(name, value))
        if self.epsilon_upper < 0.0:
            raise InvalidSpec(f"epsilon_upper must be at least 0, got {self.epsilon_upper!r}")
        validate.probability("delta", self.delta)
        if self.epsilon_lower is not None and not 0.0 <= self.epsilon_lower <= self.epsilon_upper:
            raise InvalidSpec(f"epsilon_lower must lie in [0, {self.epsilon_upper!r}], got {self.epsilon_lower!r}")

    def to_dict(self) -> JsonObject:
        """The bound as plain values, as results store it."""
        return by_fields(self)

    @property
    def holds_for_all_inputs(self) -> bool:
        """Whether the bound is one for every pair of the scope, not for one pair alone."""
        return self.label is not Label.EXACT_PAIR


PINNED_WITHIN = 0.01  # of the upper bound
PROVES = (Label.PROVED, Label.EXACT_FINITE)
EXACT = (Label.EXACT_PAIR, Label.EXACT_FINITE)
RIGOROUS = (Arithmetic.RATIONAL, Arithmetic.BALLS)


class BracketVerdict(Enum):
    """What a bracket says of the claim, in the order in which the first that applies is taken."""

    REFUTED = "REFUTED"  # a certified lower bound, or the exact loss of a pair, is above the claim
    PROVED = "PROVED"  # the loss is at most the claim for all inputs of the scope
    PINNED = "PINNED"  # the bound from below is within 1 % of one from above that holds for all inputs of its scope
    OPEN = "OPEN"


@dataclass(frozen=True, slots=True)
class LowerBound(Written):
    """The privacy loss at `delta` is at least `epsilon_lower`: certified by an audit with this confidence.

    `scope` says for which pair, `source` what certified it; `refutes` whether the audit refuted its claim, which its
    p-value decides. `parameter` and `lower` are the bound in the claim's own parameter, such as mu.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    scope: str
    source: str
    refutes: bool = False
    parameter: str = "epsilon"
    lower: float | None = None
    _KEYS: ClassVar = ("epsilon_lower", "delta", "confidence", "scope", "source", "refutes")

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon_lower) or self.epsilon_lower < 0.0:
            raise InvalidSpec(f"epsilon_lower must be at least 0, got {self.epsilon_lower!r}")
        validate.probability("delta", self.delta)
        validate.open_probability("confidence", self.confidence)


@dataclass(frozen=True, slots=True, repr=False)
class Bracket(Displayed):
    """Everything that is known of a mechanism's loss, from below and from above.

    `claim` is None where only the loss was asked for. What is said of a pair, in `lower` or with the label
    `exact-pair`, is said of one and the same pair. `one_way` is "up" or "down" where all is about the loss from the
    first dataset to the second alone, None where neighbours are compared both ways. `reasons` say why a method gave
    nothing.

    >>> proved = UpperBound(1.0, 0.0, Label.PROVED, "all query answers", Arithmetic.REALS, "alignment")
    >>> exact = UpperBound(0.99, 0.0, Label.EXACT_PAIR, "q = (1, -1)", Arithmetic.BALLS, "integrals", 0.99)
    >>> known = Bracket("sparse", PureDP(1.0), uppers=(proved, exact))
    >>> known.verdict.value, known.ends
    ('PROVED', (0.99, 1.0))
    """

    name: str
    claim: Claim | None
    lower: LowerBound | None = None
    uppers: tuple[UpperBound, ...] = ()
    reasons: tuple[str, ...] = ()
    one_way: str | None = None
    _KEYS: ClassVar = (  # of its stored form
        *("name", "verdict", "claim", "delta", "epsilon", "own", "for_all_inputs", "one_way", "contradictory", "lower"),
        *("uppers", "reasons"),
    )
    _SPARSE: ClassVar = ("own",)

    @property
    def verdict(self) -> BracketVerdict:
        """The first of REFUTED, PROVED and PINNED that applies, otherwise OPEN."""
        if self.refuted:
            return BracketVerdict.REFUTED
        if self.proving is not None:
            return BracketVerdict.PROVED
        return BracketVerdict.PINNED if self.pinned else BracketVerdict.OPEN

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return bool(self.refuting)

    @property
    def settled(self) -> bool:
        """Whether the claim is refuted or proved."""
        return self.refuted or self.proving is not None

    @property
    def of_epsilon(self) -> bool:
        """Whether the claim is one of epsilon at a delta."""
        return isinstance(self.claim, PureDP | ApproximateDP)

    @property
    def refuting(self) -> tuple[LowerBound | UpperBound, ...]:
        """What refutes the claim: the audit, and exact losses whose lower end is above what the claim allows."""
        if self.claim is None:
            return ()
        audited = [self.lower] if self.lower is not None and self.lower.refutes else []
        enclosed = [each for each in self.uppers if _enclosed(each) and each.epsilon_lower is not None]
        allowed = self.claim.epsilon_at
        return (*audited, *(each for each in enclosed if (each.epsilon_lower or 0.0) > hair_above(allowed(each.delta))))

    @property
    def proving(self) -> UpperBound | None:
        """The least bound for all inputs that proves the claim: proved or exact-finite, and not in floats."""
        proofs = [each for each in self.uppers if self._proves(each)]
        return min(proofs, key=lambda each: each.epsilon_upper, default=None)

    @property
    def for_all_inputs(self) -> bool:
        """Whether the upper end holds for all inputs of a scope, and not for one pair alone."""
        return self.upper is not None and self.upper.holds_for_all_inputs

    @property
    def delta(self) -> float:
        """The delta of both ends: the claim's, or else that of the audit or of the first upper bound."""
        if isinstance(self.claim, PureDP | ApproximateDP):
            return self.claim.delta
        known = [each.delta for each in (self.lower, *self.uppers) if each is not None]
        return known[0] if known else 0.0

    @property
    def upper(self) -> UpperBound | None:
        """The least bound at `delta`: of those for all inputs where there is a finite one, otherwise of all.

        A bound at a smaller delta holds at this one. One of a pair that loses less than another is no end.
        """
        wide = [each for each in self._at_delta if each.holds_for_all_inputs and each.epsilon_upper < math.inf]
        finite = [each for each in self.uppers if each.label is Label.EXACT_FINITE and each.delta >= self.delta]
        worst = max([0.0, *(each.epsilon_lower or 0.0 for each in finite if _enclosed(each))])
        ends = [each for each in self._at_delta if each.label not in EXACT or hair_above(each.epsilon_upper) >= worst]
        return min(wide or ends, key=lambda each: each.epsilon_upper, default=None)

    @property
    def _at_delta(self) -> list[UpperBound]:
        return [each for each in self.uppers if each.delta <= _near(self.delta)]

    @property
    def ends(self) -> tuple[float, float]:
        """The epsilon at `delta` lies between these two; 0 and infinity where nothing is known.

        The lower end of a loss in plain floats does not count.
        """
        return self.least(self.delta), math.inf if self.upper is None else self.upper.epsilon_upper

    @property
    def own_ends(self) -> tuple[float, float] | None:
        """The own parameter of a claim that is none of epsilon, such as mu, lies between these two.

        None where no bound shows one of its family.
        """
        shown = [each.shows for each in self.uppers if each.shows is not None and self._of_family(each.shows)]
        lower = None if self.lower is None else self.lower.lower
        return (lower or 0.0, min(float(each.value or 0.0) for each in shown)) if shown else None

    def _of_family(self, shown: Claim) -> bool:
        """Whether what is shown differs from the claim in the parameter alone; the relation is the scope's."""
        if self.claim is None or self.of_epsilon or self.claim.value is None or shown.value is None:
            return False
        same = type(shown) is type(self.claim)
        return same and self.claim.with_relation(None) == shown.with_value(self.claim.value).with_relation(None)

    def least(self, delta: float) -> float:
        """What epsilon is at least at a delta: a lower bound at a larger delta holds there."""
        below = [each.epsilon_lower for each in self.uppers if _enclosed(each) and each.delta >= delta]
        audited = [self.lower.epsilon_lower] if self.lower is not None and self.lower.delta >= delta else []
        return max([0.0, *audited, *(end for end in below if end is not None)])

    @property
    def pinned(self) -> bool:
        """Whether a bound for all inputs, proved or exact-finite, is within 1 % of the lower end, or both are infinite.

        Of a claim of another form, which is about every delta, a loss that is known at one delta decides nothing.
        """
        if self.contradictory or not (self.claim is None or self.of_epsilon):
            return False
        return any(self._near_the_lower_end(each.epsilon_upper) for each in self._at_delta if sure(each))

    @property
    def agree(self) -> bool:
        """Whether the two ends are within 1 % of each other, whatever they hold for."""
        return self.upper is not None and not self.contradictory and self._near_the_lower_end(self.ends[1])

    @property
    def contradictions(self) -> tuple[tuple[LowerBound | UpperBound, UpperBound], ...]:
        """Each lower bound, audited or enclosed, with each upper one that it exceeds at a delta where both hold.

        A rare error of the audit, or code that is not what was proved: a proof is about real numbers, an audit about
        the code that runs. The lower end of an exact-finite loss is of its worst pair, which need not be the one pair.
        """
        lows: list[LowerBound | UpperBound] = [each for each in self.uppers if _enclosed(each)]
        lows += [] if self.lower is None else [self.lower]
        return tuple(
            (low, high)
            for low, high in itertools.product(lows, self.uppers)
            if low.epsilon_lower is not None
            and low.epsilon_lower > hair_above(high.epsilon_upper)
            and high.delta <= _near(low.delta)
            and not (high.label is Label.EXACT_PAIR and getattr(low, "label", None) is Label.EXACT_FINITE)
            or high.shows is not None
            and (low.epsilon_lower or 0.0) > hair_above(high.shows.epsilon_at(low.delta))
            or low is self.lower
            and high.shows is not None
            and self._of_family(high.shows)
            and (low.lower or 0.0) > hair_above(high.shows.value or 0.0)
        )

    @property
    def contradictory(self) -> bool:
        """Whether two of the bounds contradict each other."""
        return bool(self.contradictions)

    def to_dict(self) -> JsonObject:
        """The bounds as plain values; infinity is the string "inf". `own` are the ends in the claim's own parameter."""
        return by_fields(self, epsilon=_from_to(self.ends), own=self.own_ends and _from_to(self.own_ends))

    def _near_the_lower_end(self, high: float) -> bool:
        low = self.ends[0]
        return low == high or (high < math.inf and high - low <= PINNED_WITHIN * high)

    def _proves(self, bound: UpperBound) -> bool:
        if self.claim is None or not sure(bound) or any(bound is exceeded for _, exceeded in self.contradictions):
            return False
        if isinstance(self.claim, PureDP | ApproximateDP):
            return bound.delta <= _near(self.claim.delta) and bound.epsilon_upper <= hair_above(self.claim.epsilon)
        # of one relation: the scope of the bound is the claim's
        if bound.shows is not None and implies(bound.shows.with_relation(self.claim.relation), _hair_more(self.claim)):
            return True
        both_ways = bound.epsilon_upper < math.inf and self.one_way is None  # other forms follow of no loss one way
        return both_ways and implies(ApproximateDP(bound.epsilon_upper, bound.delta, self.claim.relation), self.claim)


def _from_to(ends: tuple[float, float]) -> JsonObject:
    return stored({"lower": ends[0], "upper": ends[1]})  # type: ignore[no-any-return]


def _hair_more(claim: Claim) -> Claim:
    """The claim with its parameter and a hair; a curve as it stands."""
    return claim if claim.value is None else claim.with_value(hair_above(claim.value))


def sure(bound: UpperBound) -> bool:
    """Whether it is known for certain for all inputs of its scope."""
    return bound.label in PROVES and bound.arithmetic is not Arithmetic.FLOATS


def _enclosed(bound: UpperBound) -> bool:
    """Whether its lower end, where it has one, is known for certain: an exact loss, and not in floats."""
    return bound.label in EXACT and bound.arithmetic in RIGOROUS


def hair_above(value: float) -> float:
    """The value and a hair: what a number that was rounded on its way may have been."""
    for _ in range(HAIR):
        value = math.nextafter(value, math.inf)
    return value


def _near(delta: float) -> float:
    """The delta and a hair; no failure at all stays none."""
    return hair_above(delta) if delta else 0.0
