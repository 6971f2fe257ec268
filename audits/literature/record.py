"""What the study keeps of a row, as plain data: integers, exact losses and words; bounds are computed from them.

The page and the figures are made from records alone, so that they can be made again without a run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from audits.literature.laws.curve import Curve
from audits.literature.oracle import oracle_bound
from dpaudit.certify import CoinFlip, error_probability
from dpaudit.certify.coin_flip import epsilon_lower
from dpaudit.certify.cross_check import two_interval_epsilon

CONFIDENCE = 0.9999  # of the audits
PEERS = 0.90  # of the published bounds, each by two intervals at 0.05
CONFIDENCES = (CONFIDENCE, 0.95, PEERS)
AGREEING = 1e-6  # relative: two computations of one loss may differ by so much
ROUNDING = 1e-9  # relative: a bound above an exact loss by less is the same number


@dataclass(frozen=True, slots=True)
class Point:
    """One audit of a row: how much was run, on what witness, with what counts, and what was possible.

    `executions` are all, `certifying` those on the frozen event, `cpu_s` and `wall_s` seconds of the audit with its
    search. `exact` is the exact loss of the certified pair in the certified direction, `oracle` the bound of its
    likeliest event with as many certifying runs, `oracle_all` the largest of all pairs and both directions; None where
    the law is not known. `chance_p` and `chance_q` are the event's probabilities, `chance_error` the standard error of
    ln(chance_p / chance_q), 0 where they are not counted (`audits.literature.chances`); None of the smaller audits.
    """

    asked: int
    executions: int
    hits_p: int
    hits_q: int
    runs_p: int
    runs_q: int
    pair: str
    likelier: str
    rarer: str
    event: str
    cpu_s: float
    wall_s: float
    exact: float | None
    oracle: float | None
    oracle_all: float | None
    chance_p: float | None = None
    chance_q: float | None = None
    chance_error: float | None = None

    @property
    def evidence(self) -> CoinFlip:
        """The counts as the certifier takes them."""
        return CoinFlip(self.hits_p, self.hits_q, self.runs_p, self.runs_q)

    @property
    def certifying(self) -> int:
        """Runs on the frozen event, both sides."""
        return self.runs_p + self.runs_q

    def bound(self, confidence: float = CONFIDENCE) -> float:
        """The certified lower bound on epsilon of the pair, from the counts alone."""
        return epsilon_lower(self.evidence, 0.0, error_probability(confidence))

    @property
    def two_intervals(self) -> float:
        """The bound by the convention of the published ones: two Clopper-Pearson limits at 0.05 each."""
        return two_interval_epsilon(self.evidence, 0.0, PEERS)

    @property
    def expected_part(self) -> float | None:
        """The event's bound over that of the best event of all pairs, both at expected counts."""
        if self.chance_p is None or self.chance_q is None or not self.oracle_all:
            return None
        event = Curve(np.array([self.chance_p]), np.array([self.chance_q]), math.inf, 0.0, "of one event")
        return oracle_bound(event, self.certifying, error_probability(CONFIDENCE)) / self.oracle_all

    def above_the_truth(self, confidence: float = CONFIDENCE) -> bool:
        """Whether the bound exceeds the exact loss of its pair, as it may with probability 1 - confidence."""
        return self.exact is not None and self.bound(confidence) > self.exact * (1.0 + ROUNDING)


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the study: the mechanism, what is true of it, and its audits by rising numbers of runs.

    `exact` is the largest exact loss of the pairs, both directions, by the law, `catalogued` the same by the
    catalogue's own formula, None where it has none. `ceiling` is the most that an event can show whose rarer
    probability is fixed at 0.01. `method` says how the law was computed, `error` bounds the relative error of its
    probabilities, `unknown` says why there is none. `oracle_s` are the CPU seconds of the laws.
    """

    name: str
    mechanism: str
    parameters: dict[str, Any]
    claim: str
    claimed: float
    discrete: bool
    pairs: int
    exact: float | None
    catalogued: float | None
    ceiling: float | None
    method: str
    error: float | None
    unknown: str
    oracle_s: float
    points: tuple[Point, ...]

    @property
    def agrees(self) -> bool:
        """Whether law and catalogue give one loss, as far as both are known."""
        if self.exact is None or self.catalogued is None:
            return True
        return math.isclose(self.exact, self.catalogued, rel_tol=AGREEING)

    @property
    def main(self) -> Point:
        """The audit with the most runs: the one of the table."""
        return self.points[-1]

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON holds it, its bounds beside the counts; infinity is the string "inf"."""
        plain = {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.name != "points"}
        return plain | {"part_of_oracle": self.main.expected_part, "points": [_point(point) for point in self.points]}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Record:
        """The record that `to_dict` wrote; what follows from its counts is computed again."""
        own = {field.name: _read(stored[field.name]) for field in fields(cls) if field.name != "points"}
        points = (  # older records have no chances
            Point(**{field.name: _read(point[field.name]) for field in fields(Point) if field.name in point})
            for point in stored["points"]
        )
        return cls(**own, points=tuple(points))


@dataclass(frozen=True, slots=True)
class Failed:
    """A row that could not be audited, and why."""

    name: str
    reason: str


def _point(point: Point) -> dict[str, Any]:
    own = {field.name: _plain(getattr(point, field.name)) for field in fields(point)}
    bounds = {f"{confidence:g}": _plain(point.bound(confidence)) for confidence in CONFIDENCES}
    return own | {"certifying": point.certifying, "bounds": bounds, "two_intervals_0.9": _plain(point.two_intervals)}


def _plain(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _read(value: Any) -> Any:
    return math.inf if value == "inf" else value
