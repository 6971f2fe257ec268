"""A certified statement: a deterministic function of evidence, claim and confidence; and the ways to make one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from dpaudit.base.validate import Bound, OpenProbability, Probability, error_probability
from dpaudit.certify.evidence import CoinFlip, Evidence, FixedSides
from dpaudit.claims.claim import Claim, frozen_delta
from dpaudit.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certified statement.

    With probability `confidence`, the pair's true parameter is at least `lower`.
    `lower` is in the unit of the claim's own parameter, `epsilon_lower` an epsilon at `delta` (None where the
    certifier gives none). `p_value` is the smallest error probability at which the claim would be refuted; that of
    the unconditional certifier is one for this confidence, sharp near it and never below a 500th of its error.
    """

    lower: Bound
    epsilon_lower: Bound | None
    p_value: Probability
    delta: Probability
    confidence: OpenProbability
    method: str

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at this confidence."""
        return self.p_value <= error_probability(self.confidence)


def divided(confidence: float, parts: float) -> float:
    """The confidence whose error probability is one of `parts` equal parts.

    >>> divided(0.95, 5)
    0.99
    """
    alpha = 1 - Decimal(repr(float(confidence)))  # in decimals, as it is written
    return confidence if parts == 1 else float(1 - alpha / Decimal(repr(float(parts))))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, each in the place of its own.

    The k-th least of m is multiplied by m - k + 1, and is at least the one before it (Holm 1979).

    >>> holm((0.25, 0.015625, 0.5))
    (0.5, 0.046875, 0.5)
    """
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, (len(p_values) - rank) * p_values[place])
        adjusted[place] = min(1.0, highest)
    return tuple(adjusted)


@dataclass(frozen=True)
class Certifier(ABC):
    """One way from counts to a certified statement, and all that depends on which way it is.

    A new one is a module with a subclass, and a place in `certifiers.CERTIFIERS`. `takes`: the evidence; `coins`: hits
    alone are compared, of runs whose sides fair coins drew; `bins`: it takes a partition, with a limit for each count;
    `slow`: a p-value takes much longer than a `guess`.
    """

    name: ClassVar[str]
    method: ClassVar[str]
    takes: ClassVar[tuple[type[Evidence], ...]]
    coins: ClassVar[bool] = False
    bins: ClassVar[bool] = False
    slow: ClassVar[bool] = False

    @abstractmethod
    def certify(self, evidence: Evidence, claim: Claim, confidence: float, delta: float | None = None) -> Certificate:
        """The certificate of one frozen event, or partition, on fresh runs; `delta` is the one frozen with the event.

        None: the claim's own. Raises `InvalidSpec` for evidence of another kind.
        """

    @abstractmethod
    def perfect(self, runs_p: int, runs_q: int, claim: Claim, confidence: float, delta: float) -> float:
        """The bound that all hits on one side would give: of epsilon at delta, or of bins in the claim's parameter."""

    @abstractmethod
    def refutable(self, runs_p: int, runs_q: int, claim: Claim, confidence: float) -> bool:
        """Whether outputs that give the dataset away refute the claim with these runs on the sides."""

    @abstractmethod
    def perfect_bound(self, claim: Claim, runs: int, confidence: float) -> float:
        """The bound in the claim's parameter that outputs which give the dataset away have, with `runs` a side."""

    @abstractmethod
    def counts(self, few: int, many: int, runs: int) -> Evidence:
        """The evidence of `few` hits on side P and `many` on side Q, of `runs` certifying runs."""

    @abstractmethod
    def refutes(self, evidence: Any, claim: Claim, delta: float, alpha: float) -> bool:
        """Whether the evidence refutes the claim, held to an epsilon at this delta."""

    def guess(self, evidence: Any, claim: Claim, delta: float, alpha: float) -> bool:
        """Whether it probably refutes; quick in any case."""
        return self.refutes(evidence, claim, delta, alpha)

    def suits(self, claim: Claim, stopping: str) -> bool:
        """Whether it is the usual one for a claim, by what the claim says of itself."""
        return False

    def fits(self, claim: Claim) -> bool:
        """Whether it can certify a claim at all."""
        return True

    @property
    @abstractmethod
    def single(self) -> "EventCertifier":
        """What certifies one event in an audit that this one was chosen for."""

    @property
    def forms(self) -> str:
        """The forms of claims that it is for, in words."""
        return "every form"

    def at(self, claim: Claim) -> "Certifier":
        """What certifies this claim: at a distance a claim may have become one that `single` is for."""
        return self if self.fits(claim) else self.single

    def of(self, evidence: Evidence) -> "Certifier":
        """What certifies this evidence: search may have found one event, and no partition."""
        return self if isinstance(evidence, self.takes) else self.single

    def check(self, evidence: Evidence) -> None:
        """Raises `InvalidSpec` for evidence that this certifier does not take."""
        if not isinstance(evidence, self.takes):
            kinds = " or ".join(kind.__name__ for kind in self.takes)
            raise InvalidSpec(f"the {self.name} certifier takes {kinds}, got {type(evidence).__name__}")


class EventCertifier(Certifier):
    """A certifier of one event: it tests p <= R q + delta, and bounds epsilon at delta.

    The claim implies the line with R = e^claim.epsilon_at(delta), and that is what the p-value tests; the bound on
    epsilon at delta is turned into the claim's parameter by `claim.lower`.
    """

    @abstractmethod
    def epsilon_lower(self, evidence: Any, delta: float, alpha: float) -> float:
        """The largest epsilon at delta that the evidence refutes at error probability `alpha`; 0 where none is."""

    @abstractmethod
    def p_value(self, evidence: Any, epsilon: float, delta: float, alpha: float) -> float:
        """A p-value of p <= e^epsilon q + delta, which may be sharp at `alpha` alone."""

    @abstractmethod
    def ceiling(self, runs_p: int, runs_q: int, delta: float, alpha: float) -> float:
        """The epsilon at delta that all hits on one side would give: no audit of this size can certify more."""

    @property
    def single(self) -> "EventCertifier":
        return self

    def certify(self, evidence: Evidence, claim: Claim, confidence: float, delta: float | None = None) -> Certificate:
        self.check(evidence)
        d = claim.delta if delta is None else delta
        alpha, claimed = error_probability(confidence), claim.epsilon_at(d)
        epsilon, value = self.epsilon_lower(evidence, d, alpha), self.p_value(evidence, claimed, d, alpha)
        return Certificate(claim.lower(epsilon, d), epsilon, value, d, confidence, self.method)

    def perfect(self, runs_p: int, runs_q: int, claim: Claim, confidence: float, delta: float) -> float:
        return self.ceiling(runs_p, runs_q, delta, error_probability(confidence))

    def refutable(self, runs_p: int, runs_q: int, claim: Claim, confidence: float) -> bool:
        if min(runs_p, runs_q) < 1:
            return False
        deltas = _free_deltas(claim, min(runs_p, runs_q))
        return any(self.perfect(runs_p, runs_q, claim, confidence, d) > claim.epsilon_at(d) for d in deltas)

    def perfect_bound(self, claim: Claim, runs: int, confidence: float) -> float:
        deltas = _free_deltas(claim, runs)
        return max(claim.lower(self.perfect(runs, runs, claim, confidence, d), d) for d in deltas)

    def best_delta(self, claim: Claim, runs: int, confidence: float) -> float:
        """The delta at which outputs that give the dataset away refute best with `runs` on each side."""
        alpha = error_probability(confidence)
        return max(_free_deltas(claim, runs), key=lambda d: self.ceiling(runs, runs, d, alpha) - claim.epsilon_at(d))

    def counts(self, few: int, many: int, runs: int) -> Evidence:
        if self.coins:
            return CoinFlip(few, many, max(few, runs // 2), max(many, runs - runs // 2))
        return FixedSides(few, many, runs // 2, runs // 2)

    def refutes(self, evidence: Any, claim: Claim, delta: float, alpha: float) -> bool:
        return self.p_value(evidence, claim.epsilon_at(delta), delta, alpha) <= alpha


def _free_deltas(claim: Claim, runs: int) -> tuple[float, ...]:
    """Deltas that search might freeze for outputs which give the dataset away; the claim's own where it has one."""
    points = [(q, p) for q in (min(0.25, 10.0 / runs), 0.01, 0.05, 0.25) for p in (1.0 - q, 0.5)]
    return tuple(dict.fromkeys(frozen_delta(claim, q, p) for q, p in points))
