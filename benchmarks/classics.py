"""The classics with their exact laws: what the event that an audit froze is worth at its expected counts.

Search is that of an audit, on runs of the mechanism, probe and shares included; it ends where an audit would begin to
certify. The frozen event's probabilities come from the law, so that the luck of certifying is out.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.special import betaincinv

from dpaudit.api.audits import pose
from dpaudit.auditing.probing import kept_back, probe
from dpaudit.auditing.question import Plan
from dpaudit.auditing.search_stage import find_witness, goal_at
from dpaudit.base.validate import error_probability
from dpaudit.catalogue import Entry, find
from dpaudit.catalogue.sparse.values import listed
from dpaudit.certify import CoinFlip
from dpaudit.data import AdjacentPair
from dpaudit.events.event import Event
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.losses.comparisons import winning
from dpaudit.losses.released import exponential
from dpaudit.outputs.canonical import Path
from dpaudit.outputs.encode import encode_batch, encode_objects
from dpaudit.results.certification import Witness
from dpaudit.search.goal import RAREST, Spread

TRIED = 8  # candidates for the best event that are certified; the search's own prediction picks them
LEVELS = np.round(np.linspace(-20.0, 20.0, 40_001), 3)  # where half lines begin, around the pair's answers
DRAWN = 1 << 20  # runs of a side that an event of another feature is weighed on
TAIL = 80  # integers beyond the answers that are told apart: e^-80 lies outside
Floats = npt.NDArray[np.float64]
Rates = tuple[float, float]


@dataclass(frozen=True)
class Outcomes:
    """A law of few outcomes: their probabilities on the first dataset and on the second."""

    outcomes: tuple[Any, ...]
    first: Floats
    second: Floats

    def points(self) -> tuple[Floats, Floats]:
        """P(S) and Q(S) of the candidates for the best event: sets of likeliest outputs (Neyman & Pearson 1933)."""
        found = [by_ratio(self.first, self.second), by_ratio(self.second, self.first)]
        return np.concatenate([p for p, _ in found]), np.concatenate([q for _, q in found])

    def chances(self, event: Event, _: Entry) -> Rates:
        """The probability of any event on the first dataset, and on the second."""
        inside = event.contains(self._encoded)
        return float(self.first[inside].sum()), float(self.second[inside].sum())

    @functools.cached_property
    def _encoded(self) -> Any:

        return encode_objects(list(self.outcomes))


@dataclass(frozen=True)
class Numbers:
    """A number at one place of the output that alone tells: its two distribution functions, and ln(dP/dQ)."""

    first: Callable[[Floats], Floats]
    second: Callable[[Floats], Floats]
    log_ratio: Callable[[npt.NDArray[Any]], Floats]
    around: float
    path: Path = ()

    def points(self) -> tuple[Floats, Floats]:
        """P(S) and Q(S) of half lines, both ways."""
        a, b = (np.asarray(below(self.around + LEVELS)) for below in (self.first, self.second))
        return np.concatenate([a, b, 1.0 - a, 1.0 - b]), np.concatenate([b, a, 1.0 - b, 1.0 - a])

    def chances(self, event: Event, entry: Entry) -> Rates:
        """Exact for intervals of that number; others by fresh runs, half of either side, each with its exact weight."""

        if isinstance(event.feature, Coordinate) and event.feature.path == self.path:
            ends = [np.asarray(each) + event.feature.centre for each in event.intervals]
            first, second = (sum(float(np.diff(below(end))[0]) for end in ends) for below in (self.first, self.second))
            return first, second
        *place, ratio = *self.path, self.log_ratio
        return weighed(event, lambda drawn: ratio(drawn[(slice(None), *place)]), entry, entry.pair)[:2]


def weighed(
    event: Event, log_ratio: Callable[[Any], Floats], entry: Entry, pair: AdjacentPair
) -> tuple[float, float, float]:
    """P(S) and Q(S) by runs of both sides, each weighted by what it is likelier by than in their mixture.

    `log_ratio` is that of each run of a batch, float64[runs]. The standard error is that of ln(P(S) / Q(S)), which is
    near none where the ratio hardly varies within S.
    """
    rng, logs = np.random.default_rng(DRAWN), []
    for data in pair.open():
        drawn = entry.open().call(data, DRAWN, rng)
        logs.append(log_ratio(drawn)[event.contains(encode_batch(drawn, DRAWN))])
    first, second = (1.0 / (1.0 + np.exp(sign * np.concatenate(logs))) for sign in (-1.0, 1.0))
    p, q = float(first.sum()), float(second.sum())
    error = float(np.linalg.norm(first / p - second / q)) if min(p, q) > 0.0 else math.inf
    return p / DRAWN, q / DRAWN, error


@dataclass(frozen=True, slots=True)
class Classic:
    """An entry of the catalogue on its pair; `law` is made of the two datasets. `steep`: the worst seed has a goal."""

    title: str
    name: str
    law: Callable[[Any, Any], Outcomes | Numbers]
    steep: bool = True


def by_ratio(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """P(S) and Q(S) of all sets of the likeliest outputs."""
    order = np.argsort(-np.divide(p, q, out=np.full(len(p), math.inf), where=q > 0.0), kind="stable")
    return np.cumsum(p[order]), np.cumsum(q[order])


def noised(distribution: Callable[[float], Any], path: Path = ()) -> Callable[[Any, Any], Numbers]:
    """The law of an answer with continuous noise, at a place of the output."""

    def law(first: float, second: float) -> Numbers:
        one, other = distribution(first), distribution(second)

        def log_ratio(values: npt.NDArray[Any]) -> Floats:
            with np.errstate(invalid="ignore"):
                return np.asarray(one.logpdf(values) - other.logpdf(values))

        return Numbers(one.cdf, other.cdf, log_ratio, (first + second) / 2.0, path)

    return law


def finite(outcomes: Callable[[Any], Iterator[Any]], chances: Callable[[Any], Floats]) -> Callable[..., Outcomes]:
    """The law of few outcomes, those of the first dataset."""
    return lambda first, second: Outcomes(tuple(outcomes(first)), chances(first), chances(second))


def transcripts(answers: int, tops: int) -> Iterator[tuple[int, ...]]:
    """Outputs of a sparse vector technique that halts at its last top, in the order of the catalogue's `listed`.

    >>> [*transcripts(2, 1)]
    [(1,), (0, 1), (0, 0)]
    """
    if not tops or not answers:
        yield ()
        return
    for place in range(answers):
        yield from ((0,) * place + (1, *rest) for rest in transcripts(answers - place - 1, tops - 1))
    yield (0,) * answers


def sparse(tops: int, threshold_scale: float, query_scale: float) -> Callable[..., Outcomes]:
    """The law of AboveThreshold (one top) and Sparse, whose threshold 0 is drawn again after each top."""
    return finite(
        lambda data: transcripts(len(data), tops),
        lambda data: listed(np.asarray(data, np.float64), tops, 0.0, threshold_scale, query_scale),
    )


def classics() -> Iterator[Classic]:
    """All of them, at the catalogue's own parameters."""

    def integers(data: float) -> Iterator[int]:
        return iter(range(9 - TAIL, 11 + TAIL))

    def answered(data: Any) -> Iterator[int]:
        return iter(range(len(data)))

    yield Classic("Laplace", "laplace", noised(lambda data: stats.laplace(data)))
    geometric = finite(integers, lambda data: stats.dlaplace(1.0, data).pmf(np.fromiter(integers(data), float)))
    yield Classic("geometric", "geometric", geometric)
    yield Classic("Gaussian, mu", "gaussian_gdp", noised(lambda data: stats.norm(data)))
    told = finite(lambda _: iter((0, 1)), lambda bit: np.array([0.75, 0.25])[:: -1 if bit else 1])
    yield Classic("randomised response", "randomised_response", told)
    noisy_max = finite(answered, lambda data: winning(np.asarray(data, np.float64), 1.0))
    yield Classic("Report Noisy Max", "report_noisy_max", noisy_max, steep=False)
    yield Classic("AboveThreshold", "above_threshold", sparse(1, 2.0, 4.0), steep=False)
    yield Classic("Sparse", "sparse", sparse(2, 4.0, 8.0), steep=False)
    yield Classic("no threshold noise", "above_threshold.no_threshold_noise", sparse(1, 0.0, 4.0), steep=False)
    utilities = finite(answered, lambda data: exponential(np.asarray(data, np.float64), 0.5))
    yield Classic("exponential mechanism", "exponential_mechanism", utilities)
    yield Classic("uniform noise", "laplace.uniform_noise", noised(lambda data: stats.uniform(data, 5.0)))
    count = noised(lambda data: stats.laplace(data), (1,))
    yield Classic("histogram", "histogram", lambda one, other: count(one.count(1), other.count(1)))


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a search froze: the bound at the event's expected counts and its parts of the best event's, and the costs.

    `part` is over the best event's bound on three quarters of the runs asked, `same` over it on the same certifying
    runs. `share` of the runs searched, in `cpu_s` seconds.
    """

    bound: float
    part: float
    same: float
    share: float
    cpu_s: float
    event: str


def frozen(classic: Classic, runs: int, seed: int, confidence: float) -> Frozen:
    """One search judged."""
    plan, started = plan_of(classic.name, runs, seed, confidence), time.process_time()
    witness, certifying = found(plan)
    spent = time.process_time() - started
    entry = find(classic.name)
    law = classic.law(*entry.pair.open())
    assert isinstance(witness.event, Event)
    assert witness.tangent is not None
    p, q = law.chances(witness.event, entry)[:: 1 if witness.p_side == "first" else -1]
    reached = expected(plan, p, q, certifying, witness.tangent.offset)
    best, same = (best_bound(plan, law.points(), left) for left in (0.75 * runs, float(certifying)))
    return Frozen(reached, reached / best, reached / same, 1.0 - certifying / runs, spent, str(witness.event))


def plan_of(name: str, runs: int, seed: int, confidence: float) -> Plan:
    """The plan of an audit of an entry on its own pair, at its own claim."""
    entry = find(name)
    asked: dict[str, Any] = {"pair": entry.pair, "claim": entry.claim(), "runs": runs, "confidence": confidence}
    return pose(entry, **asked, seed=seed).resolved()


def found(plan: Plan) -> tuple[Witness, int]:
    """The witness that an audit freezes, and the runs that are left to certify it: all that drives the engine here."""
    with Engine(1) as engine, engine.session(plan.mechanism, plan.pairs, plan.seed, None) as session:
        seen = probe(plan, session)
        spent = seen.runs + kept_back(plan, seen)
        search = find_witness(plan, session, spent=spent)
        return search.witness, plan.runs - spent - search.runs


def expected(plan: Plan, p: float, q: float, runs: float, delta: float) -> float:
    """The bound on the claim's parameter that these probabilities certify at expected counts, `runs` of both sides.

    Under a pure claim it is the limit of the coin-flip certifier without rounding the counts; others are rounded.
    """
    alpha, half = error_probability(plan.confidence), runs / 2.0
    if plan.claim.pure:
        x, y = half * p, half * q
        share = betaincinv(x, y + 1.0, alpha) if x > y else 0.5
        return max(0.0, math.log(share / (1.0 - share)))
    side = int(half)
    counts = CoinFlip(min(side, round(half * p)), min(side, round(half * q)), side, side)
    return plan.certifier.certify(counts, plan.claim, plan.confidence, delta).lower


def best_bound(plan: Plan, points: tuple[Floats, Floats], runs: float) -> float:
    """The best bound of events with these P(S) and Q(S), at expected counts: of the few that are predicted best."""
    goal = goal_at(plan, plan.pairs[0].distance, int(runs))
    p, q = points
    kept = p > q
    p, q = np.minimum(p[kept], 1.0), np.maximum(q[kept], RAREST)
    order = np.argsort(-goal.predicted(p, q, _sure(len(p))))[:TRIED]
    return max(expected(plan, p[k], q[k], runs, goal.delta(p[k], q[k], _sure(1))) for k in order)


def _sure(events: int) -> Spread:
    return Spread(np.zeros(events), np.zeros(events))
