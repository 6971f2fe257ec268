"""OpenDP: a `Measurement`, or a query of a `Context`, with the claim of its own `map` (Hay, Gaboardi & Vadhan 2020).

And what accountants promise, as a claim: every number is rounded towards more loss, so that it is never stronger.
"""

import copy
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from dpaudit.adapters.adapted import Adapted
from dpaudit.claims import Claim, PrivacyProfile, PureDP, Relation, ZeroConcentratedDP, claim_of
from dpaudit.claims.rounding import up
from dpaudit.data.data import same
from dpaudit.data.pair import AdjacentPair, compared
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.functions import BuiltBy, check_callable
from dpaudit.mechanisms.importing import in_a_line

DELTAS = tuple(10.0**-k for k in range(1, 13))  # at which a curve of OpenDP is evaluated
RELATIONS: dict[tuple[str, float], Relation] = {
    ("SymmetricDistance", 1): Relation.ADD_OR_REMOVE_ONE,
    ("InsertDeleteDistance", 1): Relation.ADD_OR_REMOVE_ONE,
    ("SymmetricDistance", 2): Relation.REPLACE_ONE,  # one leaves and one comes
    ("InsertDeleteDistance", 2): Relation.REPLACE_ONE,
    ("ChangeOneDistance", 1): Relation.REPLACE_ONE,
    ("HammingDistance", 1): Relation.REPLACE_ONE,
    ("DiscreteDistance", 1): Relation.LOCAL,
}
ANSWERS = ("AbsoluteDistance", "L1Distance", "L2Distance", "LInfDistance")


def opendp(make: Callable[..., Any], d_in: float = 1, **parameters: Any) -> "OpenDP":
    """The measurement that `make(**parameters)` returns, or a Context's query, which is resolved to its measurement.

    Its claim is `map(d_in)` in the words of its output measure; a curve is asked at deltas from 0.1 to 1e-12. Pairs may
    be `d_in` apart in its input metric: one record for d_in = 1 of data, and two for the symmetric distance stand for
    one that is replaced; of query answers, which have no records, numbers that differ by d_in at most. That, and
    whether the datasets are members of its input domain, is checked. OpenDP owns its randomness.
    Raises `InvalidSpec` for a measurement in place of the function that makes it: it is a native object, and cannot be
    sent to workers.

        def laplace():
            space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
            return dp.m.make_laplace(*space, scale=1.0)

        dpaudit.audit(dpaudit.adapters.opendp(laplace, d_in=1), pair=(0, 1))
    """
    if (hasattr(make, "output_measure") or hasattr(make, "resolve")) and not isinstance(make, type):
        raise InvalidSpec("an object of opendp cannot be sent to workers: give the function that makes it")
    check_callable("adapters.opendp", make)
    library = sys.modules.get("opendp.mod")
    return OpenDP(make, parameters, d_in, () if library is None else tuple(sorted(library.GLOBAL_FEATURES)))


@dataclass(frozen=True, slots=True)
class OpenDP(Adapted):
    """A measurement of OpenDP, at the input distance `d_in` in units of its metric; made by `opendp`."""

    d_in: float = 1
    hidden: tuple[str, ...] = ()  # features of opendp that are enabled here, and so in workers

    adapter: ClassVar[str] = "opendp"

    def adapt(self) -> Any:
        return self._measurement().__call__

    @property
    def claim(self) -> Claim:
        """The measurement's own `map(d_in)`. Raises `InvalidSpec` where no claim form holds it."""
        measurement = self._measurement()
        try:
            return _claim(str(measurement.output_measure), measurement.map(self.d_in)).with_relation(
                RELATIONS.get((_plain(measurement.input_metric), self.d_in))
            )
        except InvalidSpec:
            raise
        except Exception as error:
            raise InvalidSpec(f"{self.name}: map({self.d_in!r}) failed with {in_a_line(error)}") from None

    def checked(self, pair: AdjacentPair) -> AdjacentPair:
        """The pair, of answers with `d_in` as their sensitivity.

        Raises `InvalidSpec` where the datasets are further apart than `d_in`, or outside of the input domain.
        """
        measurement = self._measurement()
        for word, data in (("first", pair.first), ("second", pair.second)):
            if not measurement.input_domain.member(data):
                raise InvalidSpec(f"the {word} dataset of {pair.name!r} is not in {measurement.input_domain}")
        metric = _plain(measurement.input_metric)
        apart = _apart(metric, pair.first, pair.second)
        if apart is not None and apart > Fraction(self.d_in * pair.distance) ** (2 if metric == "L2Distance" else 1):
            raise InvalidSpec(
                f"the datasets of {pair.name!r} are more than d_in = {self.d_in!r} apart in the {metric} of "
                f"{self.name}; change the pair or d_in"
            )
        answers = apart is not None and metric in ANSWERS
        return replace(pair, sensitivity=float(self.d_in)) if answers else pair

    def _measurement(self) -> Any:
        if self.hidden:
            from opendp.mod import enable_features

            enable_features(*self.hidden)
        result = BuiltBy(self.make, self.parameters).build()
        measurement = result.resolve() if hasattr(result, "resolve") else result
        if not hasattr(measurement, "output_measure"):
            raise InvalidSpec(
                f"{self.name} must return a Measurement or a query of opendp, got {type(result).__name__}"
            )
        return measurement


def _plain(metric: object) -> str:
    """The name of a metric, without the type of its numbers."""
    return re.split(r"[(<]", str(metric))[0]


def _claim(measure: str, allowed: Any) -> Claim:
    kind, more = re.sub(r"\(?f(32|64)\)?|\(\)", "", measure), 0.0
    if kind.startswith("Approximate("):
        kind, (allowed, more) = kind[len("Approximate(") : -1], allowed
    elif kind == "FixedSmoothedMaxDivergence":
        kind, (allowed, more) = "MaxDivergence", allowed
    if kind == "MaxDivergence":
        return claim_of(float(allowed), float(more))
    if kind == "ZeroConcentratedDivergence":
        if more == 0.0:
            return ZeroConcentratedDP(float(allowed))
        # but for events of probability delta zCDP holds, and so does each of its lines (Bun & Steinke 2016, def. 8.1)
        epsilon = ZeroConcentratedDP(float(allowed)).epsilon_at
    elif kind == "SmoothedMaxDivergence":
        epsilon = allowed.epsilon
    else:
        raise InvalidSpec(
            f"the output measure {measure} has no claim form; give the claim yourself: "
            "dpaudit.audit(dpaudit.adapters.opendp(...), claim=...)"
        )
    points = ((float(epsilon(delta)), up(delta + more)) for delta in DELTAS)
    return PrivacyProfile([point for point in points if point[0] < float("inf") and point[1] <= 1.0])


def _apart(metric: str, first: Any, second: Any) -> Fraction | None:
    """How far apart two inputs are, exactly, of L2 the square; None where that is taken on trust."""
    if metric in ("SymmetricDistance", "ChangeOneDistance"):
        records = compared(first, second)
        if records is not None and metric == "ChangeOneDistance":
            _one_length(metric, *records.sizes)
        return None if records is None else Fraction(records.gone + records.come, 1 + (metric == "ChangeOneDistance"))
    if metric == "AbsoluteDistance":
        return abs(Fraction(first) - Fraction(second))
    if metric == "InsertDeleteDistance":
        return Fraction(len(first) + len(second) - 2 * _in_common(first, second))
    if metric not in ("HammingDistance", *ANSWERS):
        return None
    _one_length(metric, len(first), len(second))
    if metric == "HammingDistance":
        return Fraction(sum(not same(one, other) for one, other in zip(first, second, strict=True)))
    moved = [abs(Fraction(one) - Fraction(other)) for one, other in zip(first, second, strict=True)]
    if metric == "LInfDistance":
        return max(moved, default=Fraction())
    return sum((each if metric == "L1Distance" else each * each for each in moved), Fraction())


def _one_length(metric: str, first: int, second: int) -> None:
    if first != second:
        raise InvalidSpec(f"datasets compared by {metric} are of one length, got {first} and {second} records")


def _in_common(first: Any, second: Any) -> int:
    """The length of the longest sequence that both hold in its order."""
    row = [0] * (len(second) + 1)
    for one in first:
        before = row
        row = [0]
        for place, other in enumerate(second):
            row.append(before[place] + 1 if same(one, other) else max(before[place + 1], row[place]))
    return row[-1]


# --- accountants ---

EPSILONS = (0.0, *(2.0 ** (power / 4) for power in range(-16, 25)))  # 1/16 to 64: where a curve of theirs is evaluated
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
            raise InvalidSpec(
                "a PrivacyLossDistribution made with pessimistic_estimate=False promises nothing, for its deltas are "
                "too small; make it with True"
            )
        return _curve(event.get_delta_for_epsilon, word)
    if word in (Relation.LOCAL, Relation.ADD_OR_REMOVE_USER):
        raise InvalidSpec(
            f"dp-accounting knows no relation {word.value!r}: leave it out, and state it of the claim, where it covers "
            f"what a record of the event stands for: claim.with_relation({word.value!r})"
        )
    neighbours = (word or Relation.ADD_OR_REMOVE_ONE).name
    if accountant is None:
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import PLDAccountant

        accountant = PLDAccountant(NeighboringRelation[neighbours])
    if accountant.neighboring_relation.name != neighbours:
        raise InvalidSpec(
            f"{type(accountant).__name__} is made for {accountant.neighboring_relation.name}, not for {neighbours}; "
            "make it for these neighbours, or give relation="
        )
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
    deltas = [(epsilon, float(delta(epsilon))) for epsilon in EPSILONS]
    points = [(epsilon, max(each, 0.0) * (1.0 + 1e-6) + LEAST) for epsilon, each in deltas if each == each]
    points = [point for point in points if point[1] < 1.0]
    if not points:
        raise InvalidSpec(
            "the accountant promises nothing at any epsilon up to 64; give an event with more noise or fewer steps"
        )
    return PrivacyProfile(points, relation)
