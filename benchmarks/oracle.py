"""How much of the best event's bound the search keeps: the same certifier, the same number of certifying runs.

The bound of an event is taken at its expected counts, so that only the choice of the event is measured and nothing
is certified. The laws are known: of discrete outputs from the catalogue's integrals, of numbers from their densities.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.tables import print_table

if TYPE_CHECKING:
    from dpaudit.auditing.question import Plan
    from dpaudit.results.certification import Witness

SEEDS, QUICK_SEEDS = 50, 5
ALPHA = 0.05
SIZES = (20_000, 200_000, 2_000_000)  # runs in all: both sides, search and certification
GOAL_SIZE = SIZES[-1]
TRIED = 8  # candidates for the best event that are certified; the search's own prediction picks them
MU = 0.268050  # of the Gaussian that is exactly (1, 1e-5)-DP
Floats = npt.NDArray[np.float64]
Sampler = Callable[[Any, int, np.random.Generator], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism on a pair, its claim and certifier, and the law of its output: of outcomes, or as densities."""

    title: str
    sampler: Sampler
    pair: tuple[Any, Any]
    claim: Any
    certifier: str
    goal: float | None
    outcomes: tuple[Any, ...] = ()
    law: Callable[[Any], Floats] | None = None  # of the outcomes, given a dataset
    below: Callable[[Any, Floats], Floats] | None = None  # the probability of at most so much, given a dataset

    def points(self) -> tuple[Floats, Floats]:
        """P(S) and Q(S) of all candidates for the best event: sets of likeliest outputs (Neyman & Pearson 1933)."""
        if self.law is not None:
            laws = [self.law(data) for data in self.pair]
            found = [_by_ratio(*laws), _by_ratio(*laws[::-1])]
        else:
            assert self.below is not None
            levels = np.linspace(-12.0, 12.0, 24_001)
            first, second = (self.below(data, levels) for data in self.pair)
            found = [(first, second), (second, first), (1.0 - first, 1.0 - second), (1.0 - second, 1.0 - first)]
        return np.concatenate([p for p, _ in found]), np.concatenate([q for _, q in found])

    def point(self, proposal: Witness) -> tuple[float, float]:
        """P(S) and Q(S) of the event of a witness."""
        if self.law is not None:
            inside = proposal.event.contains(_encoded(self.outcomes))
            both = [float(self.law(data)[inside].sum()) for data in self.pair]
        else:
            assert self.below is not None
            ends = [np.array(interval) for interval in proposal.event.intervals]
            both = [sum(float(np.diff(self.below(data, end))[0]) for end in ends) for data in self.pair]
        return (both[0], both[1]) if proposal.p_side == "first" else (both[1], both[0])


def cases() -> Iterator[Case]:
    """The pairs are written out: the laws of the discrete mechanisms depend on nothing else but the scales."""
    from scipy.special import ndtr

    from dpaudit.claims import ApproximateDP, PureDP
    from dpaudit.losses.comparisons import below, halting, winning

    def laplace(scale: float) -> Callable[[Any, Floats], Floats]:
        return lambda data, level: below(level - data, scale)

    pure = PureDP(1.0)
    yield Case("Laplace", _of("laplace"), (10.0, 9.0), pure, "coin-flip", 0.99, below=laplace(1.0))
    half = _of("laplace.half_noise")
    yield Case("Laplace, half the noise", half, (10.0, 9.0), pure, "coin-flip", None, below=laplace(0.5))
    for pair in (([1, 1, 1, 1, 0], [0, 0, 0, 0, 0]), ([1, 1, 1, 1, 1], [2, 0, 0, 0, 0])):
        title = f"noisy max, Lap(1), {_words(pair)}"
        law = functools.partial(_law, winning, (1.0,))
        yield Case(title, _of("report_noisy_max"), pair, pure, "coin-flip", 0.99, tuple(range(5)), law)
    ends = (*((*(0,) * place, 1) for place in range(10)), (0,) * 10)
    leak = ([0] * 9 + [1], [1] * 9 + [0])
    goal: float | None
    for title, name, scale, goal in (
        ("AboveThreshold", "above_threshold", 2.0, 0.97),
        ("AboveThreshold without threshold noise", "above_threshold.no_threshold_noise", 0.0, 0.95),
    ):
        law = functools.partial(_law, halting, (0.0, scale, 4.0))
        yield Case(f"{title}, {_words(leak)}", _of(name), leak, pure, "coin-flip", goal, ends, law)
    approximate = ApproximateDP(1.0, 1e-5)
    for title, mu, goal in (
        ("Gaussian, exactly (1, 1e-5)", MU, 0.93),
        ("Gaussian, half of that sigma", 2.0 * MU, None),
    ):
        yield Case(
            f"{title}, 0 against {mu:g} at sigma 1",
            lambda data, runs, rng: data + rng.standard_normal(runs),
            (mu, 0.0),
            approximate,
            "unconditional",
            goal,
            below=lambda data, level: np.asarray(ndtr(level - data)),
        )


def run(quick: bool) -> None:
    """Prints the table; `quick` takes few seeds."""
    seeds = QUICK_SEEDS if quick else SEEDS
    rows = []
    for case in cases():
        for size in SIZES:
            best, parts, events = fractions(case, size, seeds)
            mean, error = float(np.mean(parts)), float(np.std(parts)) / math.sqrt(seeds)
            goal = "" if case.goal is None or size != GOAL_SIZE else f"{case.goal:g} {_met(mean >= case.goal)}"
            worst = int(np.argmin(parts))
            rows.append(
                (
                    case.title,
                    f"{size:,}",
                    f"{best:.4f}",
                    f"{mean:.4f} ± {error:.4f}",
                    f"{parts[worst]:.3f}",
                    goal,
                    f"`{events[worst]}`",
                )
            )
    header = ("mechanism", "runs", "best event's bound", "fraction, mean", "least", "goal", "event of the least")
    print_table(
        f"Oracle: bound of the chosen event over that of the best, {seeds} seeds, confidence 0.95", header, rows
    )


def fractions(case: Case, size: int, seeds: int) -> tuple[float, list[float], list[str]]:
    """The best event's bound, and for each seed the fraction of it that the chosen event reaches, and that event."""
    from dpaudit.auditing.question import Question
    from dpaudit.certify import certifier_named
    from dpaudit.data import AdjacentPair
    from dpaudit.mechanisms import batched
    from dpaudit.search.goal import Goal
    from dpaudit.search.look import SEARCH_SHARE

    asked = Question(case.claim, batched(case.sampler), (AdjacentPair(*case.pair),), size, 1.0 - ALPHA)
    asked = replace(asked, certifier=certifier_named(case.certifier))
    share = asked.resolved().search_share or SEARCH_SHARE
    goal = Goal(case.claim, size - int(share * size), ALPHA, coins=case.certifier == "coin-flip")
    known: dict[tuple[float, float], float] = {}

    def bound(p: float, q: float) -> float:
        if (p, q) not in known:
            known[p, q] = expected_bound(p, q, goal)
        return known[p, q]

    best = max(bound(p, q) for p, q in likeliest(*case.points(), goal))
    parts, events = [], []
    for seed in range(seeds):
        witness = found(replace(asked, search_share=share, seed=seed).resolved())
        parts.append(bound(*case.point(witness)) / best)
        events.append(str(witness.event))
    return best, parts, events


def found(spec: Plan) -> Witness:
    """What search proposes, as in an audit."""
    from dpaudit.auditing.search_stage import find_witness
    from dpaudit.execution.engine import Engine

    with Engine(1) as engine, engine.session(spec.mechanism, spec.pairs, spec.seed, None) as session:
        return find_witness(spec, session, spent=0).witness


def likeliest(p: Floats, q: Floats, goal: Any) -> Iterator[tuple[float, float]]:
    """The few candidates that the certificate is predicted to be best for."""
    from dpaudit.search.goal import Spread

    kept = (p > q) & (q > 0.0)
    p, q = np.minimum(p[kept], 1.0), q[kept]
    none = np.zeros(len(p))
    for place in np.argsort(-goal.predicted(p, q, Spread(none, none)))[:TRIED]:
        yield float(p[place]), float(q[place])


def expected_bound(p: float, q: float, goal: Any) -> float:
    """The certified epsilon at the expected counts."""
    from dpaudit.certify import CoinFlip
    from dpaudit.certify.coin_flip import epsilon_lower as coin_flip
    from dpaudit.certify.unconditional import epsilon_lower as unconditional

    half = goal.runs // 2
    evidence = CoinFlip(min(half, round(half * p)), min(half, round(half * q)), half, half)
    if goal.coins:
        return coin_flip(evidence, goal.claim.delta, ALPHA)
    return unconditional(evidence, goal.claim.delta, ALPHA)


def _of(name: str) -> Sampler:
    """The sampler of an entry of the catalogue at its default parameters."""
    from dpaudit.catalogue import find

    entry = find(name)
    parameters = {each.name: each.default for each in entry.parameters} | dict(entry.bound)
    return lambda data, runs, rng: entry.sampler(data, runs, rng, **parameters)


def _law(law: Callable[..., Floats], scales: tuple[float, ...], data: list[float]) -> Floats:
    return law(np.asarray(data, np.float64), *scales)


def _by_ratio(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(-np.divide(p, q, out=np.full(len(p), math.inf), where=q > 0.0), kind="stable")
    return np.cumsum(p[order]), np.cumsum(q[order])


@functools.lru_cache(maxsize=8)
def _encoded(outcomes: tuple[Any, ...]) -> Any:
    from dpaudit.outputs.encode import encode_objects

    return encode_objects(list(outcomes))


def _words(pair: tuple[Any, Any]) -> str:
    return " against ".join(str(list(data)) for data in pair)


def _met(yes: bool) -> str:
    return "met" if yes else "MISSED"
