"""What the best known event would certify with the runs of an audit: search apart from statistics.

Where all outputs of a mechanism can be listed, its law is exact and every event is considered: the likeliest ones
(Neyman & Pearson 1933). Elsewhere the best known event is the best of those that the audits of one mechanism have
frozen, chosen on fresh runs, its probabilities counted on others. The bound is that of the audit's own certifier, at
the expected counts. Nothing is certified here.
"""

from __future__ import annotations

import functools
import itertools
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import AuditResult, DpAuditError
from dpaudit.base.arrays import Reals
from dpaudit.base.validate import error_probability
from dpaudit.catalogue import Entry
from dpaudit.certify import CoinFlip, certifier_named
from dpaudit.events import Partition
from dpaudit.outputs.encode import encode_batch
from dpaudit.verify.replay import FiniteLosses, replay

MOST_PATHS = 3_000  # of a mechanism's choices that are listed
TRIED = 8  # events of a law that are certified; a quick formula picks them
BATCH = 20_000
Point = tuple[float, float]  # P(S), Q(S)


@dataclass(frozen=True, slots=True)
class Asked:
    """How an audit certifies: with which claim and certifier, at which delta, on how many runs of both sides."""

    claim: Any
    certifier: str
    delta: float
    confidence: float
    runs: int

    @classmethod
    def of(cls, result: AuditResult) -> Asked:
        """The certification of a result."""
        delta, level = result.certificate.delta, result.certificate.confidence
        return cls(result.claim, result.certifier, delta, level, result.evidence.runs)

    def bound(self, p: float, q: float) -> float:
        """The epsilon that the expected counts of an event certify.

        >>> from dpaudit import PureDP
        >>> round(Asked(PureDP(1.0), "coin-flip", 0.0, 0.95, 200).bound(0.5, 0.0), 4)  # 50 hits against none
        2.7847
        """
        half = self.runs // 2
        evidence = CoinFlip(min(half, round(half * p)), min(half, round(half * q)), half, half)
        certifier = certifier_named(self.certifier).at(self.claim).single
        return certifier.epsilon_lower(evidence, self.delta, error_probability(self.confidence))

    def order(self, p: Reals, q: Reals) -> Reals:
        """The places of events by P(S) and Q(S), float64[events] each, those first that two limits find best."""
        from scipy.special import betaincinv

        half, alpha = self.runs // 2, error_probability(self.confidence) / 2.0
        hits, misses = np.rint(half * np.minimum(1.0, p)), np.rint(half * np.minimum(1.0, q))
        low = betaincinv(np.maximum(hits, 1.0), half - hits + 1.0, alpha) - self.delta
        high = betaincinv(misses + 1.0, np.maximum(half - misses, 1.0), 1.0 - alpha)
        return np.argsort(-np.where(hits > misses, low / high, 0.0), kind="stable")

    def best(self, p: Reals, q: Reals) -> float:
        """The largest bound of such events, certified for the few of them that come first."""
        return max((self.bound(float(p[k]), float(q[k])) for k in self.order(p, q)[:TRIED]), default=0.0)


@functools.lru_cache(maxsize=64)
def law_of(entry: Entry) -> FiniteLosses | None:
    """The exact laws of the output on the default pair; None where the outputs cannot be listed."""
    program = functools.partial(entry.program, **entry.values())
    try:
        return replay(lambda data, rng: program(data, rng), entry.default_pair, "all", most_paths=MOST_PATHS)
    except DpAuditError:
        return None


def likeliest(law: FiniteLosses) -> tuple[Reals, Reals]:
    """P(S) and Q(S) of the sets of likeliest outputs, both ways.

    >>> from fractions import Fraction
    >>> coin = [{0: Fraction(3, 4), 1: Fraction(1, 4)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}]
    >>> [side.tolist() for side in likeliest(FiniteLosses.of([0, 1], [(0, 1)], coin))]
    [[0.75, 1.0, 0.75, 1.0], [0.25, 1.0, 0.25, 1.0]]
    """
    sums = [law.steps(first, second) for first, second in ((0, 1), (1, 0))]
    found = [point for each in sums for point in itertools.accumulate(each, lambda a, b: (a[0] + b[0], a[1] + b[1]))]
    return np.array([float(p) for p, _ in found]), np.array([float(q) for _, q in found])


class Events:
    """The best known event of a mechanism: of those that its audits froze, measured on runs of their own."""

    def __init__(self, entry: Entry, results: Iterable[AuditResult], runs: int) -> None:
        self._entry, self._runs = entry, runs
        self._held: dict[str, tuple[Any, bool]] = {}
        for result in results:
            event, first = result.witness.event, result.witness.p_side == "first"
            if not isinstance(event, Partition):
                self._held[json.dumps([event.to_dict(), first], sort_keys=True)] = event, first

    def __len__(self) -> int:
        return len(self._held)

    @functools.cached_property
    def measured(self) -> tuple[list[Point], list[Point]]:
        """The probabilities of the events, on the runs that choose and on those that count."""
        rng = np.random.default_rng([zlib.crc32(self._entry.name.encode()), self._runs])
        chosen, counted = (self._rates(rng).tolist() for _ in range(2))
        return [tuple(point) for point in chosen], [tuple(point) for point in counted]

    def best(self, asked: Asked) -> float | None:
        """The bound of the event that is best on the first runs, at its rates on the others."""
        if not self._held:
            return None
        chosen, counted = self.measured
        place = int(asked.order(*np.transpose(chosen))[0])
        return asked.bound(*counted[place])

    def _rates(self, rng: np.random.Generator) -> Reals:
        call, hits = self._entry.open().call, np.zeros((len(self._held), 2))
        for side, data in enumerate(self._entry.pair.open()):
            for start in range(0, self._runs, BATCH):
                size = min(BATCH, self._runs - start)
                outputs = encode_batch(call(data, size, rng), size)
                for place, (event, first) in enumerate(self._held.values()):
                    hits[place, side if first else 1 - side] += np.count_nonzero(event.contains(outputs))
        return hits / self._runs
