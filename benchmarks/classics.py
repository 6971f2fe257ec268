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
from dpaudit.certify import CoinFlip
from dpaudit.events.event import Event
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.losses.comparisons import halting, winning
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
    log_ratio: Callable[[Floats], Floats]
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
        return weighed(event, self.log_ratio, entry, self.path)


def weighed(event: Event, log_ratio: Callable[[Floats], Floats], entry: Entry, path: Path = ()) -> Rates:
    """P(S) and Q(S) by runs of both sides, each weighted by what it is likelier by than in their mixture.

    `log_ratio` takes the numbers at `path`, float64[runs]. Where it hardly varies within S the quotient is near exact.
    """

    rng, sums = np.random.default_rng(DRAWN), np.zeros(2)
    for data in entry.pair.open():
        outputs = encode_batch(entry.open().call(data, DRAWN, rng), DRAWN)
        logs = log_ratio(np.asarray(outputs.column(path).values, np.float64)[event.contains(outputs)])
        sums += [2.0 * (1.0 / (1.0 + np.exp(sign * logs))).sum() for sign in (-1.0, 1.0)]
    return float(sums[0]) / (2.0 * DRAWN), float(sums[1]) / (2.0 * DRAWN)


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

        def log_ratio(values: Floats) -> Floats:
            with np.errstate(invalid="ignore"):
                return np.asarray(one.logpdf(values) - other.logpdf(values))

        return Numbers(one.cdf, other.cdf, log_ratio, (first + second) / 2.0, path)

    return law


def listed(outcomes: Callable[[Any], Iterator[Any]], chances: Callable[[Any], Floats]) -> Callable[..., Outcomes]:
    """The law of few outcomes, those of the first dataset."""
    return lambda first, second: Outcomes(tuple(outcomes(first)), chances(first), chances(second))


def transcripts(data: Any, tops: int, threshold_scale: float, query_scale: float) -> Iterator[tuple[Any, float]]:
    """Outputs of Sparse with their probabilities: after each top the threshold 0 is drawn again, and the last halts."""

    if not tops or not len(data):
        yield (), 1.0
        return
    *law, none = halting(np.asarray(data, np.float64), 0.0, threshold_scale, query_scale)
    for place, chance in enumerate(law):
        for rest, later in transcripts(data[place + 1 :], tops - 1, threshold_scale, query_scale):
            yield ((0,) * place + (1, *rest), float(chance) * later)
    yield (0,) * len(data), float(none)


def sparse(tops: int, threshold_scale: float, query_scale: float) -> Callable[..., Outcomes]:
    """The law of AboveThreshold (one top) and Sparse."""
    scales = tops, threshold_scale, query_scale
    return listed(
        lambda data: (output for output, _ in transcripts(data, *scales)),
        lambda data: np.array([chance for _, chance in transcripts(data, *scales)]),
    )


def classics() -> Iterator[Classic]:
    """All of them, at the catalogue's own parameters."""

    def integers(data: float) -> Iterator[int]:
        return iter(range(9 - TAIL, 11 + TAIL))

    def answered(data: Any) -> Iterator[int]:
        return iter(range(len(data)))

    yield Classic("Laplace", "laplace", noised(lambda data: stats.laplace(data)))
    geometric = listed(integers, lambda data: stats.dlaplace(1.0, data).pmf(np.fromiter(integers(data), float)))
    yield Classic("geometric", "geometric", geometric)
    yield Classic("Gaussian, mu", "gaussian_gdp", noised(lambda data: stats.norm(data)))
    told = listed(lambda _: iter((0, 1)), lambda bit: np.array([0.75, 0.25])[:: -1 if bit else 1])
    yield Classic("randomised response", "randomised_response", told)
    noisy_max = listed(answered, lambda data: winning(np.asarray(data, np.float64), 1.0))
    yield Classic("Report Noisy Max", "report_noisy_max", noisy_max, steep=False)
    yield Classic("AboveThreshold", "above_threshold", sparse(1, 2.0, 4.0), steep=False)
    yield Classic("Sparse", "sparse", sparse(2, 4.0, 8.0), steep=False)
    yield Classic("no threshold noise", "above_threshold.no_threshold_noise", sparse(1, 0.0, 4.0), steep=False)
    utilities = listed(answered, lambda data: exponential(np.asarray(data, np.float64), 0.5))
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
